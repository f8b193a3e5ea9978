/* The text of a range of tokens: as one line, or the contents of string literals. */
#include "base/text.h"
#include "source/token.h"

#include <string.h>

char *tokens_text(const struct tokens *tokens, uint32_t first, uint32_t last, struct arena *arena) {
    struct text joined = {0};
    for (uint32_t i = first; i < last && i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind == TOKEN_DIRECTIVE) continue;
        bool apart = i > first && tokens->items[i - 1].start + tokens->items[i - 1].length != token->start;
        if (apart && joined.length) text_add(&joined, " ");
        text_append(&joined, tokens->text + token->start, token->length);
    }
    arena->failed |= joined.failed;
    char *copy = arena_copy(arena, text_string(&joined), joined.length);
    /* A literal may contain an escaped line end. */
    for (char *c = copy; c && *c; c++)
        if (*c == '\n') *c = ' ';
    text_free(&joined);
    return copy;
}

char *tokens_string(const struct tokens *tokens, uint32_t first, uint32_t last, struct arena *arena) {
    struct text joined = {0};
    for (uint32_t i = first; i < last; i++) {
        const struct token *token = &tokens->items[i];
        const char *start = tokens->text + token->start, *end = start + token->length;
        if (token->kind != TOKEN_STRING || token->length < 2) continue;
        bool raw = *start == 'R';
        start = raw ? memchr(start, '(', token->length) : start;
        end = raw ? memrchr(tokens->text + token->start, ')', token->length) : end - 1;
        if (start && end && end > start) text_append(&joined, start + 1, (size_t)(end - start - 1));
    }
    arena->failed |= joined.failed;
    char *copy = arena_copy(arena, text_string(&joined), joined.length);
    text_free(&joined);
    return copy;
}
