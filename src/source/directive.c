/* Directives that remain after preprocessing: pragmas, and includes of Metal's headers. */
#include "source/rewriter.h"

#include <stdio.h>
#include <string.h>

bool directive_is_line(const struct tokens *tokens, const struct token *token) {
    const char *at = tokens->text + token->start + 1, *end = at + token->length - 1;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    return at < end && ((*at >= '0' && *at <= '9') || (end - at > 4 && memcmp(at, "line", 4) == 0));
}

/* Metal's own headers are in the prelude. */
static bool is_metal_include(const struct tokens *tokens, const struct token *token) {
    const char *at = tokens->text + token->start, *end = at + token->length;
    for (at++; at < end && (*at == ' ' || *at == '\t'); at++) {
    }
    if (end - at < 7 || memcmp(at, "include", 7) != 0) return false;
    for (at += 7; at < end && (*at == ' ' || *at == '\t'); at++) {
    }
    static const char *const names[] = {"<metal_", "<metal/metal_", "<simd/", "<MetalPerformancePrimitives/",
                                        "<__exec/"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        size_t length = strlen(names[n]);
        if ((size_t)(end - at) <= length || memcmp(at, names[n], length) != 0) continue;
        /* Metal's headers have no suffix: <metal_helpers.h> is a project's. */
        const char *close = memchr(at, '>', (size_t)(end - at));
        return n > 1 || !memchr(at, '.', (size_t)((close ? close : end) - at));
    }
    return false;
}

bool directives_are_plain(const struct tokens *tokens) {
    for (uint32_t i = 0; i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind != TOKEN_DIRECTIVE || directive_is_line(tokens, token) ||
            is_metal_include(tokens, token))
            continue;
        const char *at = tokens->text + token->start + 1, *end = at + token->length - 1;
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        bool pragma = end - at >= 6 && memcmp(at, "pragma", 6) == 0;
        if (!pragma) return false;
    }
    return true;
}

/* The preprocessor does not expand macros in pragmas: if the count is a name, only the request to unroll
 * remains. */
static void rewrite_unroll(struct rewriter *r, uint32_t i, const char *count) {
    if (strpbrk(count, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"))
        put_instead(r, i, "#pragma unroll");
}

/* Reads a #pragma METAL fp: the word after it and the contents of its parentheses. */
static bool read_pragma(const struct tokens *tokens, const struct token *token, char word[32],
                        char value[32]) {
    char text[200];
    int used = 0;
    snprintf(text, sizeof text, "%.*s", (int)token->length, tokens->text + token->start);
    word[0] = value[0] = 0;
    if (sscanf(text, "# pragma METAL fp %n", &used) != 0 || !used) return false;
    return sscanf(text + used, "%31[a-z_] ( %31[a-z] )", word, value) == 2;
}

/* Whether pragma `other` applies at token `i`: to the end of its block, or of the text. */
static bool is_within(const struct rewriter *r, uint32_t other, uint32_t i) {
    uint32_t outer = r->tokens->items[other].outer;
    return !in_function(r, other) || outer == NO_PLACE || partner(r, outer) > i;
}

/* The value for clang's contraction pragma. `fast` allows more than smelt does: every engine fuses the same
 * operations. */
static const char *contraction_name(const char *value) {
    return strcmp(value, "off") == 0 ? "off" : "on";
}

/* The contraction that pragmas before `i` request, in its brackets or those around them. */
static const char *contraction_at(const struct rewriter *r, uint32_t i) {
    char word[32], value[32];
    const char *name = "on";
    for (int p = 0; p < r->pragma_count; p++)
        if (is_within(r, r->pragmas[p], i) &&
            read_pragma(r->tokens, &r->tokens->items[r->pragmas[p]], word, value))
            name = contraction_name(value);
    return name;
}

/* #pragma METAL fp math_mode(…): float_control is the only way to enable or disable special values for a part
 * of the text; it also sets contraction. */
static const char *math_mode(struct rewriter *r, uint32_t i, const char *value) {
    bool fast = strcmp(value, "fast") == 0, relaxed = strcmp(value, "relaxed") == 0;
    if (!fast && !relaxed && strcmp(value, "safe") != 0) return "";
    return arena_printf(
        r->arena, "_Pragma(\"float_control(precise, %s)\") _Pragma(\"clang fp contract(%s)%s\")",
        fast ? "off" : "on", contraction_at(r, i), relaxed ? " reassociate(on) reciprocal(on)" : "");
}

/* Metal's other pragmas have no effect here. */
static void rewrite_fp_pragma(struct rewriter *r, uint32_t i) {
    char word[32], value[32];
    bool known = read_pragma(r->tokens, &r->tokens->items[i], word, value);
    if (known && strcmp(word, "contract") == 0) {
        uint32_t *pragmas = arena_one_more(r->arena, r->pragmas, (size_t)r->pragma_count, sizeof *pragmas);
        if (pragmas) (r->pragmas = pragmas)[r->pragma_count++] = i;
        put_instead(r, i, arena_printf(r->arena, "#pragma clang fp contract(%s)", contraction_name(value)));
    } else {
        put_instead(r, i, known && strcmp(word, "math_mode") == 0 ? math_mode(r, i, value) : "");
    }
}

void rewrite_directive(struct rewriter *r, uint32_t i) {
    const struct token *token = &r->tokens->items[i];
    if (is_metal_include(r->tokens, token)) {
        put_instead(r, i, "");
        return;
    }
    const char *text = arena_copy(r->arena, r->tokens->text + token->start, token->length);
    int used = 0;
    if (!text) return;
    if (sscanf(text, "# pragma unroll%n", &used) == 0 && used) rewrite_unroll(r, i, text + used);
    used = 0;
    if (sscanf(text, "# pragma METAL %n", &used) == 0 && used) rewrite_fp_pragma(r, i);
}
