#include "source/literal.h"

#include <stddef.h>

/* u8"…", L"…": the prefix is a separate token. */
static bool has_prefix(const struct tokens *t, uint32_t i) {
    static const char *const prefixes[] = {"u8", "u", "U", "L", NULL};
    const struct token *before = &t->items[i > 0 ? i - 1 : 0];
    return i > 0 && before->start + before->length == t->items[i].start &&
           token_is_one_of(t, i - 1, prefixes);
}

/* A literal of plain characters: "…" or R"(…)". */
static bool is_plain(const struct tokens *t, uint32_t i) {
    if (i >= t->count || t->items[i].kind != TOKEN_STRING || has_prefix(t, i)) return false;
    const char *text = t->text + t->items[i].start;
    return text[0] == '"' || (text[0] == 'R' && text[1] == '"');
}

static bool stands_for_literal(const struct tokens *t, uint32_t i) {
    static const char *const names[] = {"__FILE__", "__func__", "__FUNCTION__", "__PRETTY_FUNCTION__", NULL};
    return token_is_identifier(t, i) && token_is_one_of(t, i, names);
}

/* Whether the parentheses opened at `open` are part of the language's syntax, so that their contents are not
 * an expression. */
static bool is_language_call(const struct tokens *t, uint32_t open) {
    static const char *const words[] = {"asm",
                                        "__asm",
                                        "__asm__",
                                        "static_assert",
                                        "_Static_assert",
                                        "__attribute__",
                                        "__declspec",
                                        "_Pragma",
                                        "__pragma",
                                        "__has_include",
                                        NULL};
    if (open == 0) return false;
    if (token_is_one_of(t, open - 1, words)) return true;
    /* asm volatile ("…" : …) */
    if (open > 1 && token_is(t, open - 1, "volatile") && token_is_one_of(t, open - 2, words)) return true;
    const struct token *name = &t->items[open - 1];
    static const char builtin[] = "__builtin_";
    if (name->kind != TOKEN_IDENTIFIER || name->length < sizeof builtin) return false;
    for (size_t c = 0; builtin[c]; c++)
        if (t->text[name->start + c] != builtin[c]) return false;
    return true;
}

/* If token `i` is the name that a typedef, or a `using name =`, gives to a type that is only words: the last
 * of these; otherwise `i`. */
static uint32_t aliased(const struct tokens *t, uint32_t i) {
    if (token_is(t, i + 1, "=") && token_is(t, i - 1, "using")) {
        uint32_t last = i + 1;
        while (token_is_identifier(t, last + 1)) last++;
        return last > i + 1 && token_is(t, last + 1, ";") ? last : i;
    }
    if (!token_is(t, i + 1, ";") || !token_is_identifier(t, i - 1)) return i;
    uint32_t first = i - 1;
    while (first > 0 && token_is_identifier(t, first) && !token_is(t, first, "typedef")) first--;
    return token_is(t, first, "typedef") ? i - 1 : i;
}

/* Whether the token names a type of characters, or a program's alias for one. */
static bool is_character(const struct tokens *t, uint32_t type) {
    static const char *const types[] = {"char", "uchar", "int8_t", "uint8_t", NULL};
    if (token_is_one_of(t, type, types)) return true;
    if (!token_is_identifier(t, type)) return false;
    for (uint32_t i = type; i-- > 1;) {
        uint32_t original = aliased(t, i);
        /* In `using byte = byte;`, the second is that of an outer scope. */
        if (original != i && original < type && tokens_alike(t, i, i + 1, type, type + 1))
            return is_character(t, original);
    }
    return false;
}

/* The token before the name in the declarator of an array, `name[…][…]`, that ends at token `last`; NO_PLACE
 * if it is not one. */
static uint32_t before_array(const struct tokens *t, uint32_t last) {
    uint32_t i = last;
    while (i > 0 && token_is(t, i, "]") && t->items[i].partner < i) i = t->items[i].partner - 1;
    return token_is_identifier(t, i) && i != last && i > 0 ? i - 1 : NO_PLACE;
}

/* Whether the literal initialises an array of characters: `char s[] = "…"`, where it cannot be a pointer, or
 * `char s[2][4] = {"…", "…"}`, where it could be one of an array of pointers. */
static bool initialises_characters(const struct tokens *t, uint32_t first) {
    uint32_t at = first;
    while (t->items[at].outer != NO_PLACE && token_is(t, t->items[at].outer, "{") && at > 0 &&
           (token_is(t, at - 1, "{") || token_is(t, at - 1, ",")))
        at = t->items[at].outer;
    bool assigned = at > 1 && token_is(t, at - 1, "=");
    if (at == first && !assigned) return false;
    uint32_t type = at > 0 ? before_array(t, at - 1 - assigned) : NO_PLACE;
    if (type == NO_PLACE || at == first) return type != NO_PLACE;
    if (token_is(t, type, "const") && type > 0) type--;
    return is_character(t, type);
}

static bool is_bare(const struct tokens *t, uint32_t first) {
    if (first > 0 && (token_is(t, first - 1, "extern") || token_is(t, first - 1, "operator"))) return true;
    for (uint32_t open = t->items[first].outer; open != NO_PLACE; open = t->items[open].outer) {
        if (token_is(t, open, "{")) break;
        if (token_is(t, open, "(") && is_language_call(t, open)) return true;
    }
    return initialises_characters(t, first);
}

uint32_t literal_value_end(const struct tokens *t, uint32_t first) {
    if (stands_for_literal(t, first)) return is_bare(t, first) ? NO_PLACE : first;
    if (!is_plain(t, first)) return NO_PLACE;
    uint32_t last = first;
    while (is_plain(t, last + 1)) last++;
    /* Joined with a literal of another kind: u8"…" "…". */
    bool joined = (first > 0 && t->items[first - 1].kind == TOKEN_STRING) ||
                  (last + 1 < t->count && t->items[last + 1].kind == TOKEN_STRING) ||
                  (last + 2 < t->count && has_prefix(t, last + 2));
    if (joined) return NO_PLACE;
    return is_bare(t, first) ? NO_PLACE : last;
}
