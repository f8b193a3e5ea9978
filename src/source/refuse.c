#include "source/refuse.h"

#include <string.h>

/* Words that are always the construct. */
static const struct word {
    const char *word, *message;
} words[] = {
    {"double", "'double' is not supported in Metal; use float"},
    {"virtual", "virtual functions are not supported in Metal"},
    {"new", "'new' is not supported in Metal: kernels allocate no memory"},
    {"delete", "'delete' is not supported in Metal: kernels allocate no memory"},
    {"try", "exceptions ('try') are not supported in Metal"},
    {"catch", "exceptions ('catch') are not supported in Metal"},
    {"throw", "exceptions ('throw') are not supported in Metal"},
    {"thread_local", "'thread_local' is not supported in Metal"},
    {"dynamic_cast", "'dynamic_cast' is not supported in Metal"},
    {"typeid", "'typeid' is not supported in Metal"},
};

static bool is(const struct tokens *t, uint32_t i, const char *spelling) {
    return token_is(t, i, spelling);
}

/* Behind . -> or :: a word is a name of someone's. */
static bool is_member(const struct tokens *t, uint32_t i) {
    return i && (is(t, i - 1, ".") || token_pair(t, i - 2, '-', '>') || token_pair(t, i - 2, ':', ':'));
}

static const char *refused_word(const struct tokens *t, uint32_t i) {
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        if (!is(t, i, words[w].word) || is_member(t, i)) continue;
        if (is(t, i, "delete") && is(t, i - 1, "=")) return NULL;
        return words[w].message;
    }
    if (is(t, i, "long") && is(t, i + 1, "long"))
        return "'long long' is not supported in Metal; long has 64 bits";
    return NULL;
}

/* A `static` in a function: its declaration must say that it never changes. */
static bool is_static_variable(const struct tokens *t, uint32_t i) {
    static const char *const fixed[] = {"const", "constexpr", "constant", "threadgroup"};
    uint32_t first = i;
    while (first > 0 && i - first < FARTHEST_LOOK && token_is_identifier(t, first - 1)) first--;
    for (uint32_t at = first; at < t->count && at < i + FARTHEST_LOOK; at++) {
        if (is(t, at, "=") || is(t, at, ";") || is(t, at, "{") || is(t, at, "}")) break;
        for (size_t w = 0; w < sizeof fixed / sizeof *fixed; w++)
            if (is(t, at, fixed[w])) return false;
    }
    return true;
}

/* asm("…"), not the label of a declaration. */
static bool is_inline_assembly(const struct tokens *t, uint32_t i) {
    bool word = is(t, i, "asm") || is(t, i, "__asm__") || is(t, i, "__asm");
    bool begins = i == 0 || is(t, i - 1, ";") || is(t, i - 1, "{") || is(t, i - 1, "}") || is(t, i - 1, ")");
    return word && begins && (is(t, i + 1, "(") || is(t, i + 1, "volatile") || is(t, i + 1, "__volatile__"));
}

struct refusal refusal_find(const struct tokens *tokens, const struct structure *structure,
                            struct arena *arena) {
    int kernel = 0;
    for (uint32_t i = 0; i < tokens->count; i++) {
        while (kernel < structure->kernel_count && structure->kernels[kernel].end < i) kernel++;
        const struct kernel_site *site =
            kernel < structure->kernel_count ? &structure->kernels[kernel] : NULL;
        if (site && site->graphics && i >= site->start) {
            i = site->end;
            continue;
        }
        if (tokens->items[i].kind != TOKEN_IDENTIFIER) continue;
        bool in_function = structure->scopes[i] >= SCOPE_FUNCTION;
        const char *message = refused_word(tokens, i);
        if (in_function && is(tokens, i, "static") && is_static_variable(tokens, i))
            message = "a variable in a function that is 'static' must be constant: threads would share it";
        if (in_function && is_inline_assembly(tokens, i)) message = "inline assembly is not supported";
        if (message) return (struct refusal){i, message};
    }
    uint32_t variable = structure->loose_variable;
    if (!variable) return (struct refusal){0, NULL};
    const struct token *name = &tokens->items[variable];
    return (struct refusal){
        variable, arena_printf(arena, "program-scope variable '%.*s' must be in the constant address space",
                               (int)name->length, tokens->text + name->start)};
}
