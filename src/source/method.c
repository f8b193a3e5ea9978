/* Methods for objects in one address space. */
#include "source/rewriter.h"

/* A method without a qualifier is for objects in thread memory. */
#define THREAD_RANK " __smelt_rank __smelt_rank __smelt_rank __smelt_rank"

/* `S() : S(0) {}` names S to construct it, `public: S() {}` declares it. */
static bool initialises_member(const struct rewriter *r, uint32_t name) {
    if (name < 2 || token_is(r->tokens, name - 1, ",")) return true;
    bool access = token_is(r->tokens, name - 2, "public") || token_is(r->tokens, name - 2, "private") ||
                  token_is(r->tokens, name - 2, "protected");
    return token_is(r->tokens, name - 1, ":") && !access;
}

/* The token after the parameters that end at `close`, and the words that may follow them in a method without
 * an address space. */
static uint32_t after_unqualified(const struct rewriter *r, uint32_t close) {
    uint32_t i = close + 1;
    while (token_is(r->tokens, i, "const") || token_is(r->tokens, i, "noexcept")) i++;
    return i;
}

/* Whether the token names a member of the class: `S::get`, `S<T>::get`. */
static bool is_member_of(const struct rewriter *r, uint32_t i, uint32_t class) {
    if (i < 3 || !token_pair(r->tokens, i - 2, ':', ':')) return false;
    uint32_t before = i - 3;
    int depth = 0;
    for (; before > 0 && i - before < FARTHEST_LOOK; before--) {
        depth += token_is(r->tokens, before, ">") - token_is(r->tokens, before, "<");
        if (depth == 0 && !token_is(r->tokens, before, "<")) break;
    }
    return same_token(r, before, class);
}

/* Ranks the definitions of a method after its class, which ends at `i`, like its declarations. */
static void rank_definitions(struct rewriter *r, uint32_t i, uint32_t class, uint32_t name, uint32_t length) {
    for (; i + length < r->tokens->count; i++) {
        if (!token_is(r->tokens, i + length, "(") || !same_tokens(r, i, name, length)) continue;
        if (in_function(r, i) || !is_member_of(r, i, class)) continue;
        uint32_t end = partner(r, i + length), after = after_unqualified(r, end);
        bool defines = token_is(r->tokens, after, "{") || token_is(r->tokens, after, ":");
        if (end > i && defines && !r->changes.items[after].before) put_before(r, after, THREAD_RANK " ");
    }
}

/* A method of the same name without a qualifier, next to the qualified method whose parameters end at
 * `close`, would be the same function or lose against it: `S() {…} S() threadgroup {…}`. It gets the rank of
 * `thread`. */
static void rank_unqualified_siblings(struct rewriter *r, uint32_t close) {
    uint32_t open = partner(r, close), name = tokens_function_name(r->tokens, open), length = open - name;
    if (length == 0) return;
    uint32_t first = name;
    /* The class's opening brace: skips blocks and parentheses that end before. */
    while (first > 0 && !(token_is(r->tokens, first - 1, "{") && partner(r, first - 1) > close)) {
        uint32_t other = partner(r, first - 1);
        first = other > 0 && other < first - 1 ? other : first - 1;
    }
    uint32_t last = first > 0 ? partner(r, first - 1) : 0;
    for (uint32_t i = first; i + length < last; i++) {
        if (token_is(r->tokens, i, "{") && partner(r, i) > i) {
            i = partner(r, i);
        } else if (i != name && token_is(r->tokens, i + length, "(") && same_tokens(r, i, name, length) &&
                   !initialises_member(r, i)) {
            uint32_t end = partner(r, i + length), after = after_unqualified(r, end);
            bool declares = token_is(r->tokens, after, "{") || token_is(r->tokens, after, ";") ||
                            token_is(r->tokens, after, ":");
            if (end <= i || !declares || r->changes.items[after].before) continue;
            put_before(r, after, THREAD_RANK " ");
            uint32_t class = token_is(r->tokens, after, ";") ? structure_name(r, first - 1) : 0;
            if (class) rank_definitions(r, last, class, name, length);
        }
    }
}

/* `… ) const device {`: the qualifier of a method. It must change only the ranking of the signature. Of
 * several enable_if attributes, more make an overload preferred; the default space has none. */
bool rewrite_method_qualifier(struct rewriter *r, uint32_t i) {
    static const char *const ranks[][2] = {{"thread", THREAD_RANK},
                                           {"device", " __smelt_rank __smelt_rank __smelt_rank"},
                                           {"constant", " __smelt_rank __smelt_rank"},
                                           {"threadgroup", " __smelt_rank"}};
    uint32_t before = i;
    while (before > 0 &&
           (token_is(r->tokens, before - 1, "const") || token_is(r->tokens, before - 1, "volatile") ||
            token_is(r->tokens, before - 1, "noexcept")))
        before--;
    if (before == 0 || !token_is(r->tokens, before - 1, ")")) return false;
    uint32_t after = i + 1;
    while (token_is(r->tokens, after, "noexcept") || token_is(r->tokens, after, "const")) after++;
    bool defaulted = token_is(r->tokens, after, "=") &&
                     (token_is(r->tokens, after + 1, "default") || token_is(r->tokens, after + 1, "delete"));
    bool ends = token_is(r->tokens, after, "{") || token_is(r->tokens, after, ";") ||
                token_is(r->tokens, after, ":") || defaulted || token_pair(r->tokens, after, '-', '>');
    /* In a function body `) device …` can only be a cast or an if. */
    if (!ends || in_function(r, i)) return false;
    if (!defaulted && rewrite_overload(r, partner(r, before - 1), i)) return true;
    const char *rank = "";
    for (size_t w = 0; w < sizeof ranks / sizeof *ranks; w++)
        if (token_is(r->tokens, i, ranks[w][0])) rank = ranks[w][1];
    if (!defaulted) rank_unqualified_siblings(r, before - 1);
    put_instead(r, i, "");
    if (token_pair(r->tokens, after, '-', '>')) {
        /* Attributes follow a trailing return type. */
        uint32_t end = after + 2;
        while (end < r->tokens->count && end < after + FARTHEST_LOOK && !token_is(r->tokens, end, "{") &&
               !token_is(r->tokens, end, ";"))
            end = partner(r, end) > end ? partner(r, end) + 1 : end + 1;
        if (end < r->tokens->count) put_before(r, end, rank);
    } else if (after > i + 1) {
        put_after(r, after - 1, rank); /* threadgroup const {: attributes follow */
    } else {
        put_instead(r, i, rank);
    }
    return true;
}
