#include "source/program.h"
#include "source/bodies.h"
#include "source/entries.h"
#include "source/rewrite.h"
#include "source/structure.h"

#include <string.h>

/* __asm("air.simdgroup_async_copy_1d.p3i8.p1i8"); also written as "\\01air.…". */
static bool has_air_labels(const struct tokens *tokens) {
    for (uint32_t i = 2; i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind != TOKEN_STRING || !token_is(tokens, i - 1, "(")) continue;
        const char *text = tokens->text + token->start + 1;
        if (token->length > 6 && strncmp(text, "\\01", 3) == 0) text += 3;
        bool label = token_is(tokens, i - 2, "__asm") || token_is(tokens, i - 2, "__asm__") ||
                     token_is(tokens, i - 2, "asm");
        if (label && token->length > 8 && strncmp(text, "air.", 4) == 0) return true;
    }
    return false;
}

static bool text_has(const char *text, uint32_t length, const char *word) {
    return memmem(text, length, word, strlen(word)) != NULL;
}

/* #pragma METAL fp contract(off), clang's or C's. */
static bool has_contraction_off(const struct tokens *tokens) {
    for (uint32_t i = 0; i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind != TOKEN_DIRECTIVE) continue;
        const char *text = tokens->text + token->start;
        if (text_has(text, token->length, "pragma") &&
            (text_has(text, token->length, "contract") || text_has(text, token->length, "FP_CONTRACT")) &&
            (text_has(text, token->length, "off") || text_has(text, token->length, "OFF")))
            return true;
    }
    return false;
}

smelt_status program_create(const char *text, size_t length, struct program *program) {
    struct program p = {0};
    struct structure structure;
    smelt_status status = tokens_read(text, length, &p.input);
    if (status == SMELT_OK) {
        p.positions = arena_alloc(&p.arena, (p.input.count + 1) * sizeof *p.positions);
        status =
            p.positions ? structure_find(&p.input, &p.arena, &structure) : fail_out_of_memory(p.input.count);
    }
    for (uint32_t i = 0; status == SMELT_OK && i < p.input.count && !p.tensors; i++)
        p.tensors = token_is(&p.input, i, "tensor");
    if (status == SMELT_OK) p.air_functions = has_air_labels(&p.input);
    if (status == SMELT_OK) p.apart = has_contraction_off(&p.input);
    if (status == SMELT_OK) p.refusal = refusal_find(&p.input, &structure, &p.arena);
    if (status == SMELT_OK)
        status = rewrite(&p.input, &structure, &p.arena, &p.text, p.positions, &p.objects);
    if (status == SMELT_OK) status = entries_find(&p, &structure);
    if (status == SMELT_OK) status = bodies_find(&p, &structure);
    if (status == SMELT_OK && p.arena.failed)
        status = fail(SMELT_ERROR_OUT_OF_MEMORY, "the source's entries do not fit in memory");
    if (status != SMELT_OK) {
        program_free(&p);
        return status;
    }
    *program = p;
    return SMELT_OK;
}

void program_free(struct program *program) {
    tokens_free(&program->input);
    text_free(&program->text);
    arena_free(&program->arena);
}

uint32_t program_origin(const struct program *program, uint32_t position) {
    const struct tokens *tokens = &program->input;
    uint32_t low = 0, high = tokens->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->positions[middle] <= position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return 0;
    const struct token *token = &tokens->items[low - 1];
    uint32_t past = position - program->positions[low - 1];
    return token->start + (past < token->length ? past : 0);
}
