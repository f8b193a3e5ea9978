#include "source/refuse.h"

#include <string.h>

/* Words that always are the construct. */
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
    {"__builtin_va_start", "functions with a variable number of arguments are not supported in Metal"},
};

/* After . -> or :: a word is the user's name. */
static bool is_member(const struct tokens *t, uint32_t i) {
    return i && (token_is(t, i - 1, ".") || token_pair(t, i - 2, '-', '>') || token_pair(t, i - 2, ':', ':'));
}

static const char *refused_word(const struct tokens *t, uint32_t i) {
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        if (!token_is(t, i, words[w].word) || is_member(t, i)) continue;
        if (token_is(t, i, "delete") && token_is(t, i - 1, "=")) return NULL;
        return words[w].message;
    }
    if (token_is(t, i, "long") && token_is(t, i + 1, "long"))
        return "'long long' is not supported in Metal; long has 64 bits";
    return NULL;
}

/* A `static` in a function that is neither constant nor in threadgroup memory. */
static bool is_static_variable(const struct tokens *t, uint32_t i) {
    static const char *const fixed[] = {"const", "constexpr", "constant", "threadgroup", NULL};
    uint32_t first = i;
    while (first > 0 && i - first < FARTHEST_LOOK && token_is_identifier(t, first - 1)) first--;
    for (uint32_t at = first; at < t->count && at < i + FARTHEST_LOOK; at++) {
        if (token_is(t, at, "=") || token_is(t, at, ";") || token_is(t, at, "{") || token_is(t, at, "}"))
            break;
        if (token_is_one_of(t, at, fixed)) return false;
    }
    return true;
}

/* asm("…") as a statement or a declaration, not as a label. */
static bool is_assembly(const struct tokens *t, uint32_t i, bool in_function) {
    static const char *const following[] = {"(",      "volatile", "__volatile__", "__volatile", "goto",
                                            "inline", "__inline", "__inline__",   NULL};
    bool word = token_is(t, i, "asm") || token_is(t, i, "__asm__") || token_is(t, i, "__asm");
    bool begins = i == 0 || token_is(t, i - 1, ";") || token_is(t, i - 1, "{") || token_is(t, i - 1, "}") ||
                  token_is(t, i - 1, ":");
    bool begins_here = in_function ? begins || token_is(t, i - 1, ")") || token_is(t, i - 1, "else") ||
                                         token_is(t, i - 1, "do")
                                   : begins || t->items[i - 1].kind == TOKEN_DIRECTIVE;
    return word && begins_here && token_is_one_of(t, i + 1, following);
}

/* `goto *place`: only the run can tell where it leads. */
static bool is_computed_jump(const struct tokens *t, uint32_t i) {
    return token_is(t, i, "goto") && token_is(t, i + 1, "*");
}

/* The number of #line or of a line marker must be within clang's range. */
static bool is_beyond_lines(const struct tokens *t, uint32_t i) {
    const struct token *token = &t->items[i];
    if (token->kind != TOKEN_DIRECTIVE || !directive_is_line(t, token)) return false;
    const char *at = t->text + token->start, *end = at + token->length;
    while (at < end && (*at < '0' || *at > '9')) at++;
    uint64_t number = 0;
    for (; at < end && *at >= '0' && *at <= '9' && number <= INT32_MAX; at++)
        number = 10 * number + (uint64_t)(*at - '0');
    return number > INT32_MAX;
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
        if (is_beyond_lines(tokens, i))
            return (struct refusal){i,
                                    "the number of a #line directive is too large, expected 1 to 2147483647"};
        if (tokens->items[i].kind != TOKEN_IDENTIFIER) continue;
        bool in_function = structure->scopes[i] >= SCOPE_FUNCTION;
        const char *message = refused_word(tokens, i);
        if (in_function && token_is(tokens, i, "static") && is_static_variable(tokens, i))
            message = "a 'static' variable in a function must be constant: threads would share it";
        if (is_assembly(tokens, i, in_function))
            message = in_function ? "inline assembly is not supported" : "assembly is not supported";
        if (is_computed_jump(tokens, i)) message = "a jump to a computed label is not supported";
        if (message) return (struct refusal){i, message};
    }
    uint32_t variable = structure->loose_variable;
    if (!variable) return (struct refusal){0, NULL};
    const struct token *name = &tokens->items[variable];
    return (struct refusal){
        variable, arena_printf(arena, "program-scope variable '%.*s' must be in the constant address space",
                               (int)name->length, tokens->text + name->start)};
}
