/* The tokenizer, the structure finder and the rewriter on any bytes: they must end, within memory, and
 * account for every token. */
#include "source/program.h"

#include <stdlib.h>
#include <string.h>

static void require(bool holds) {
    if (!holds) abort();
}

static void check_tokens(const struct tokens *t) {
    uint32_t end = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct token *token = &t->items[i];
        require(token->length > 0 && token->start >= end && token->start + token->length <= t->text_length);
        require(token->partner < t->count && t->items[token->partner].partner == i);
        end = token->start + token->length;
    }
}

static void check_program(const struct program *p) {
    for (uint32_t i = 1; i < p->input.count; i++) require(p->positions[i - 1] <= p->positions[i]);
    for (uint32_t at = 0; at < p->text.length; at += 1 + at / 64)
        require(program_origin(p, at) <= p->input.text_length);
    for (int e = 0; e < p->entry_count; e++) {
        struct text entry_point = {0};
        require(program_add_entry_point(p, &p->entries[e], &entry_point) == SMELT_OK);
        text_free(&entry_point);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* A copy that ends with its zero: texts are C strings, and reads past the end are detected. */
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    struct program program;
    if (program_create(text, size, &program) == SMELT_OK) {
        check_tokens(&program.input);
        check_program(&program);
        program_free(&program);
    }
    free(text);
    return 0;
}
