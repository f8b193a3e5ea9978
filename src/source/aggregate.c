/* Structs whose only constructor is `S() = default;` can be initialised by `{a, b}` in C++17, on which Metal
 * is based, but not in C++23, in which some texts are compiled (overload.c, tensors). Without the
 * declaration, which is what a struct has anyway, they can in both. */
#include "source/rewriter.h"

/* Of `S ( ) = default ;`, behind an optional constexpr. */
#define DEFAULTED_TOKENS 6

static uint32_t declaration_start(const struct rewriter *r, uint32_t name) {
    return token_is(r->tokens, name - 1, "constexpr") ? name - 1 : name;
}

static bool is_defaulted(const struct rewriter *r, uint32_t name) {
    static const char *const rest[] = {"(", ")", "=", "default", ";"};
    for (uint32_t k = 0; k < sizeof rest / sizeof *rest; k++)
        if (!token_is(r->tokens, name + 1 + k, rest[k])) return false;
    static const char *const ends[] = {"{", "}", ";", NULL};
    return token_is_one_of(r->tokens, declaration_start(r, name) - 1, ends);
}

/* Whether the struct may declare anything else that its initialisation depends on. */
static bool has_more(const struct rewriter *r, uint32_t brace, uint32_t constructor) {
    static const char *const access[] = {"private", "protected", "public", NULL};
    for (uint32_t i = brace + 1; i < partner(r, brace); i++) {
        if (r->tokens->items[i].outer != brace) continue;
        if (token_is_one_of(r->tokens, i, access)) return true;
        if (i != constructor && same_token(r, i, constructor) && token_is(r->tokens, i + 1, "(")) return true;
    }
    return false;
}

void rewrite_defaulted(struct rewriter *r, uint32_t i) {
    uint32_t brace = r->tokens->items[i].outer;
    if (i < 3 || brace == NO_PLACE || !token_is(r->tokens, brace, "{") || !is_defaulted(r, i)) return;
    uint32_t name = structure_name(r, brace);
    if (!name || !token_is(r->tokens, name - 1, "struct") || !same_token(r, name, i)) return;
    if (has_more(r, brace, i)) return;
    for (uint32_t k = declaration_start(r, i); k < i + DEFAULTED_TOKENS; k++) put_instead(r, k, "");
}
