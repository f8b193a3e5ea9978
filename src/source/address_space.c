/* The words for address spaces, which become the attributes of prelude/smelt_dialect.h. Arrays as parameters
 * become pointers to their elements' space; variables in function bodies become static. */
#include "source/attribute.h"
#include "source/rewriter.h"
#include "source/structure.h"

static const char *address_space_macro(const struct rewriter *r, uint32_t i) {
    static const char *const words[][2] = {{"device", "__smelt_device"},
                                           {"constant", "__smelt_constant"},
                                           {"threadgroup", "__smelt_threadgroup"},
                                           {"thread", ""}};
    if (!token_is_identifier(r->tokens, i)) return NULL;
    /* After . -> or :: it is the user's name; Metal does not allow it elsewhere. In a trailing return type,
     * the type follows. */
    bool arrow = token_pair(r->tokens, i - 2, '-', '>') && !token_is_identifier(r->tokens, i + 1);
    if (i && (token_is(r->tokens, i - 1, ".") || token_pair(r->tokens, i - 2, ':', ':') || arrow))
        return NULL;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (token_is(r->tokens, i, words[w][0])) return words[w][1];
    return NULL;
}

/* Whether a declaration, from its type on, declares a pointer or reference, so that the address space is the
 * pointee's. *stop is the token after the first declarator's name. */
static bool declares_pointer(const struct rewriter *r, uint32_t i, uint32_t *stop) {
    uint32_t end = r->tokens->count - i > FARTHEST_LOOK ? i + FARTHEST_LOOK : r->tokens->count;
    for (; i < end; i++) {
        uint32_t angle = token_is(r->tokens, i, "<") ? tokens_angle_end(r->tokens, i, end) : 0;
        if (angle) {
            i = angle - 1;
        } else if (token_is(r->tokens, i, "*") || token_is(r->tokens, i, "&")) {
            *stop = i;
            return true;
        } else if (token_is(r->tokens, i, "(")) {
            *stop = i;
            bool type = token_is(r->tokens, i - 1, "decltype") || token_is(r->tokens, i - 1, "alignas") ||
                        token_is(r->tokens, i - 1, "__attribute__");
            if (!type || partner(r, i) < i)
                return token_is(r->tokens, i + 1, "*") || token_is(r->tokens, i + 1, "&");
            i = partner(r, i);
        } else if (attribute_list_end(r->tokens, i)) {
            i = attribute_list_end(r->tokens, i);
        } else if (token_is(r->tokens, i, ";") || token_is(r->tokens, i, "=") ||
                   token_is(r->tokens, i, "[") || token_is(r->tokens, i, ",") ||
                   token_is(r->tokens, i, "{") || token_is(r->tokens, i, ")")) {
            break;
        }
    }
    *stop = i;
    return false;
}

/* The first token of the statement whose declaration specifiers contain token `i`; `i` itself if anything
 * except a type is between them, or if it is a template argument of the type. */
static uint32_t specifiers_start(const struct rewriter *r, uint32_t i, bool *already_static) {
    uint32_t first = i, lowest = i > FARTHEST_LOOK ? i - FARTHEST_LOOK : 0;
    int closed = 0; /* '>' without their '<' so far */
    while (first > lowest && !rewrite_starts_statement(r, first)) {
        uint32_t at = first - 1;
        closed += token_is(r->tokens, at, ">") - token_is(r->tokens, at, "<");
        if (closed < 0) return i;
        if (token_is(r->tokens, at, ")") && partner(r, at) > 0 && partner(r, at) < at) {
            /* alignas(16) threadgroup float x[4]; */
            at = partner(r, at);
            if (!token_is(r->tokens, at - 1, "alignas") && !token_is(r->tokens, at - 1, "decltype") &&
                !token_is(r->tokens, at - 1, "__attribute__"))
                return i;
            at--;
        } else if (token_is(r->tokens, at, "]") && attribute_list_end(r->tokens, partner(r, at)) == at) {
            at = partner(r, at);
        } else {
            bool part_of_type = token_is_identifier(r->tokens, at) || token_is(r->tokens, at, ":") ||
                                token_is(r->tokens, at, "<") || token_is(r->tokens, at, ">") ||
                                token_is(r->tokens, at, ",") || r->tokens->items[at].kind == TOKEN_NUMBER;
            bool statement = token_is(r->tokens, at, "return") || token_is(r->tokens, at, "else") ||
                             token_is(r->tokens, at, "do") || token_is(r->tokens, at, "case");
            if (!part_of_type || statement) return i;
        }
        *already_static |= token_is(r->tokens, at, "static");
        first = at;
    }
    return first;
}

/* threadgroup and constant variables in function bodies have one instance: static. */
static void make_static(struct rewriter *r, uint32_t i) {
    bool already = token_is(r->tokens, i + 1, "static");
    uint32_t first = specifiers_start(r, i, &already), stop;
    if (already || !rewrite_starts_statement(r, first) || declares_pointer(r, i + 1, &stop)) return;
    put_before(r, i, "static ");
}

/* Whether the declarator before the bracket at `stop` has a name. `first` is the first token of its type:
 * `float x[4]` has one; `T[4]`, `const metal::float4[4]`, `vec<float, 4>[4]` and `unsigned int[4]` have none.
 */
static bool declarator_has_name(const struct rewriter *r, uint32_t first, uint32_t stop) {
    static const char *const types[] = {"bool", "char",     "short", "int",  "long", "signed",
                                        "half", "unsigned", "float", "void", NULL};
    static const char *const qualifiers[] = {"const", "volatile", "struct", "typename", NULL};
    uint32_t name = stop - 1;
    if (!token_is_identifier(r->tokens, name) || token_is_one_of(r->tokens, name, types) ||
        token_is(r->tokens, name - 1, ":"))
        return false;
    for (uint32_t i = first; i < name; i++)
        if (!token_is_one_of(r->tokens, i, qualifiers)) return true;
    return false;
}

/* Whether the tokens from the address space at `i` to the brackets at `stop` are a parameter of the list that
 * `open` opens: not the operand of sizeof, and not a template argument in the list. */
static bool is_parameter(const struct rewriter *r, uint32_t i, uint32_t stop, uint32_t open) {
    static const char *const operators[] = {"sizeof",   "alignof",       "alignas",
                                            "decltype", "static_assert", NULL};
    static const char *const qualifiers[] = {"const", "volatile", NULL};
    while (token_is_one_of(r->tokens, i - 1, qualifiers)) i--;
    while (token_is(r->tokens, stop, "[") && partner(r, stop) > stop) stop = partner(r, stop) + 1;
    return (token_is(r->tokens, i - 1, "(") || token_is(r->tokens, i - 1, ",")) &&
           (token_is(r->tokens, stop, ")") || token_is(r->tokens, stop, ",")) && open > 0 &&
           !token_is_one_of(r->tokens, open - 1, operators);
}

/* Parameter `threadgroup float name[N][M]` → `threadgroup float (*name)[M]`; the name may be missing. */
static void rewrite_array_parameter(struct rewriter *r, uint32_t i, uint32_t open) {
    uint32_t stop;
    if (declares_pointer(r, i + 1, &stop) || !token_is(r->tokens, stop, "[") || stop <= i + 1 ||
        stop > partner(r, open) || attribute_list_end(r->tokens, stop))
        return;
    bool named = declarator_has_name(r, i + 1, stop);
    if (!named && !is_parameter(r, i, stop, open)) return;
    /* Not a member or call expression. */
    if (named && (token_is(r->tokens, stop - 2, ".") || token_is(r->tokens, stop - 2, ",") ||
                  token_is(r->tokens, stop - 2, "(")))
        return;
    if (named) put_before(r, stop - 1, "(*");
    rewrite_erase(r, stop, partner(r, stop) + 1);
    put_instead(r, stop, named ? ")" : "(*)");
}

bool rewrite_address_space(struct rewriter *r, uint32_t i, uint32_t open) {
    const char *macro = address_space_macro(r, i);
    if (!macro) return false;
    if (rewrite_method_qualifier(r, i)) return true;
    bool shared = token_is(r->tokens, i, "threadgroup") || token_is(r->tokens, i, "constant");
    if (open)
        rewrite_array_parameter(r, i, open);
    else if (shared && in_function(r, i))
        make_static(r, i);
    put_instead(r, i, macro);
    return true;
}
