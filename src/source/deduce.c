/* Function templates that deduce the size of a vector or matrix, `template <typename T, uint N> f(vec<T,
 * N>)`.
 *
 * With Metal's vectors, N may have any integral type. smelt's are class templates whose sizes are of type
 * int, and C++ deduces N only if its type is the same. The parameter becomes an int of another name, and the
 * function's body begins with a constant that has the parameter's name and type. */
#include "source/rewriter.h"

/* A template's parameter that may be the size of a vector. */
struct size_parameter {
    uint32_t first, name; /* the tokens [first, name) are its type */
};

static bool is_integer_word(const struct rewriter *r, uint32_t i) {
    static const char *const words[] = {"uint",     "size_t",  "ushort",   "uchar",    "unsigned", "long",
                                        "ulong",    "short",   "uint32_t", "uint16_t", "uint8_t",  "int32_t",
                                        "uint64_t", "int64_t", "int16_t",  "int",      "const",    NULL};
    return token_is_one_of(r->tokens, i, words);
}

/* Whether token `i` is in the block that opens at `brace` (NO_PLACE: the file), or in a namespace of the same
 * name. */
static bool is_inside(const struct rewriter *r, uint32_t i, uint32_t brace) {
    if (brace == NO_PLACE) return true;
    for (i = r->tokens->items[i].outer; i != NO_PLACE; i = r->tokens->items[i].outer)
        if (i == brace ||
            (i > 0 && brace > 0 && token_is_identifier(r->tokens, i - 1) && same_token(r, i - 1, brace - 1)))
            return true;
    return false;
}

/* Whether the token names a type of Metal's, not one of the program's. */
static bool is_metal(const struct rewriter *r, uint32_t i) {
    static const char *const words[] = {"struct", "class", "using", NULL};
    if (token_pair(r->tokens, i - 2, ':', ':')) return token_is(r->tokens, i - 3, "metal");
    for (uint32_t k = 0; k + 1 < r->tokens->count; k++)
        if (token_is_one_of(r->tokens, k, words) && same_token(r, k + 1, i) &&
            is_inside(r, i, r->tokens->items[k].outer))
            return false;
    return true;
}

static bool has_arguments(const struct rewriter *r, uint32_t i) {
    static const char *const names[] = {"vec", "packed_vec", "matrix", NULL};
    return token_is_one_of(r->tokens, i, names) && token_is(r->tokens, i + 1, "<") && is_metal(r, i);
}

/* Whether a vector or matrix in the tokens [first, last) has the parameter as a size. */
static bool is_size(const struct rewriter *r, uint32_t first, uint32_t last, uint32_t name) {
    for (uint32_t i = first; i < last; i++) {
        uint32_t end = has_arguments(r, i) ? tokens_angle_end(r->tokens, i + 1, last) : 0;
        for (uint32_t k = i + 2; k < end; k++)
            if (same_token(r, k, name) && token_is(r->tokens, k - 1, ",") &&
                (token_is(r->tokens, k + 1, ",") || k + 2 == end))
                return true;
    }
    return false;
}

/* The parenthesis that opens the parameters of the function template whose declaration goes on at token `i`.
 * 0: it is something else, or a member defined outside of its class, which is not changed. */
static uint32_t parameters_open(const struct rewriter *r, uint32_t i) {
    static const char *const ends[] = {"{", ";", "=", "struct", "class", "kernel", "using", "template", NULL};
    static const char *const calls[] = {"__attribute__", "decltype", "alignas", NULL};
    for (uint32_t angle; i < r->tokens->count && !token_is_one_of(r->tokens, i, ends); i++) {
        if (token_is(r->tokens, i, "<") && (angle = tokens_angle_end(r->tokens, i, r->tokens->count)) != 0) {
            i = angle - 1;
        } else if (token_is(r->tokens, i, "[")) {
            if (token_is(r->tokens, i + 2, "kernel")) return 0;
            i = partner(r, i) > i ? partner(r, i) : i;
        } else if (token_is(r->tokens, i, "(")) {
            if (partner(r, i) < i) return 0;
            if (!token_is_one_of(r->tokens, i - 1, calls))
                return token_is_identifier(r->tokens, i - 1) && !token_pair(r->tokens, i - 3, ':', ':') ? i
                                                                                                        : 0;
            i = partner(r, i);
        }
    }
    return 0;
}

/* The opening brace of the body, or the semicolon of a declaration, after the parameters; 0: neither. */
static uint32_t declaration_end(const struct rewriter *r, uint32_t close) {
    bool constructs = token_is(r->tokens, close + 1, ":");
    for (uint32_t i = close + 1; i < r->tokens->count && i - close < FARTHEST_LOOK; i++) {
        bool initialises = constructs && token_is(r->tokens, i, "{") &&
                           (token_is_identifier(r->tokens, i - 1) || token_is(r->tokens, i - 1, ">"));
        if (token_is(r->tokens, i, ";") || (token_is(r->tokens, i, "{") && !initialises)) return i;
        if (partner(r, i) > i) i = partner(r, i);
    }
    return 0;
}

/* Whether the declaration from `i` to `end` is that of a member that is defined outside of its class. */
static bool is_defined_outside(const struct rewriter *r, uint32_t i, uint32_t end) {
    if (!token_is(r->tokens, end, ";") || scope_of(r, i) == SCOPE_NAMESPACE) return false;
    while (i < end && !token_is(r->tokens, i, "friend")) i++;
    return i == end;
}

static void deduce_int(struct rewriter *r, uint32_t list, uint32_t end, const struct size_parameter *p) {
    const char *type = tokens_text(r->tokens, p->first, p->name, r->arena);
    const char *name = tokens_text(r->tokens, p->name, p->name + 1, r->arena);
    if (!type || !name) return;
    const char *other = arena_printf(r->arena, "__smelt_%s", name);
    for (uint32_t i = list; i < end; i++)
        if (same_token(r, i, p->name) && !token_is(r->tokens, i - 1, ".")) put_instead(r, i, other);
    for (uint32_t i = p->first; i < p->name; i++) put_instead(r, i, i == p->first ? "int" : "");
    if (token_is(r->tokens, end, "{"))
        put_after(r, end,
                  arena_printf(r->arena, " [[maybe_unused]] constexpr %s %s = %s;", type, name, other));
}

void rewrite_deduced(struct rewriter *r, uint32_t i) {
    uint32_t after =
        token_is(r->tokens, i + 1, "<") ? tokens_angle_end(r->tokens, i + 1, r->tokens->count) : 0;
    uint32_t open = after && !in_function(r, i) ? parameters_open(r, after) : 0;
    uint32_t end = open ? declaration_end(r, partner(r, open)) : 0;
    if (!end || is_defined_outside(r, i, end)) return;
    for (uint32_t k = i + 2; k < after - 1; k++) {
        struct size_parameter p = {.first = k, .name = k};
        while (is_integer_word(r, p.name)) p.name++;
        bool separate = token_is(r->tokens, k - 1, ",") || token_is(r->tokens, k - 1, "<");
        if (p.name == k || !separate || !token_is_identifier(r->tokens, p.name)) continue;
        if (p.name == k + 1 && token_is(r->tokens, k, "int")) continue;
        if (is_size(r, open, partner(r, open), p.name)) deduce_int(r, i, end, &p);
    }
}
