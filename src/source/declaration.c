/* Reads one declaration at namespace or class scope, and the lists in it. */
#include "source/declaration.h"

uint32_t finder_angle_end(const struct finder *f, uint32_t open, uint32_t end) {
    uint32_t close = tokens_angle_end(f->tokens, open, end);
    return close ? close : open + 1;
}

uint32_t finder_statement_end(const struct finder *f, uint32_t from, uint32_t end) {
    for (uint32_t i = from; i < end; i++) {
        if (token_is(f->tokens, i, ";")) return i;
        if (partner(f, i) > i) i = partner(f, i);
    }
    return end;
}

uint32_t finder_before_attributes(const struct finder *f, uint32_t open) {
    while (open > 0 && token_is(f->tokens, open - 1, "]") && partner(f, open - 1) < open - 1 &&
           attribute_list_end(f->tokens, partner(f, open - 1)) == open - 1)
        open = partner(f, open - 1);
    return open;
}

bool finder_names_no_function(const struct finder *f, uint32_t i) {
    static const char *const words[] = {"alignas", "decltype", "__attribute__", "noexcept", "explicit",
                                        "sizeof",  "requires", "__declspec",    "asm",      "__asm__",
                                        NULL};
    return token_is_one_of(f->tokens, i, words);
}

bool finder_is_class_word(const struct finder *f, uint32_t i) {
    return token_is(f->tokens, i, "struct") || token_is(f->tokens, i, "class") ||
           token_is(f->tokens, i, "union") || token_is(f->tokens, i, "enum");
}

/* In a constructor's initialiser list `: a{1}, b(2) {`, member braces are followed by , or {. */
static bool is_member_initialiser(const struct finder *f, uint32_t brace, bool after_colon) {
    if (!after_colon) return false;
    uint32_t after = partner(f, brace) + 1;
    return token_is(f->tokens, after, ",") || token_is(f->tokens, after, "{");
}

struct declaration declaration_read(const struct finder *f, uint32_t start, uint32_t end) {
    struct declaration d = {.start = start, .end = end};
    uint32_t i = start;
    while (token_is(f->tokens, i, "template") && token_is(f->tokens, i + 1, "<")) {
        d.is_template = true;
        i = finder_angle_end(f, i + 1, end);
    }
    bool initialised = false, after_colon = false, after_operator = false;
    for (; i < end; i++) {
        uint32_t list = attribute_list_end(f->tokens, i);
        if (list) {
            i = list;
        } else if (token_is(f->tokens, i, ";")) {
            d.end = i;
            return d;
        } else if (token_is(f->tokens, i, "=") && !token_is(f->tokens, i - 1, "operator") && !d.open) {
            initialised = true;
        } else if (finder_is_class_word(f, i) && !d.open && !d.class_word && !initialised) {
            d.class_word = i;
        } else if (token_is(f->tokens, i, "operator")) {
            /* Its symbol may be () or []: skips it. */
            i++;
            while (i + 1 < end && !token_is(f->tokens, i + 1, "(") && !token_is(f->tokens, i + 1, ";")) i++;
            after_operator = true;
        } else if (token_is(f->tokens, i, "(") && partner(f, i) > i) {
            uint32_t name = finder_before_attributes(f, i) - 1;
            bool function =
                !d.open && !initialised && i > start && name >= start && !finder_names_no_function(f, name) &&
                (token_is_identifier(f->tokens, name) || token_is(f->tokens, name, ">") || after_operator);
            after_operator = false;
            if (function) {
                d.open = i;
                d.close = partner(f, i);
                d.class_word = 0;
            }
            i = partner(f, i);
        } else if (token_is(f->tokens, i, ":") && !token_pair(f->tokens, i, ':', ':') &&
                   !token_pair(f->tokens, i - 1, ':', ':')) {
            after_colon |= d.open != 0;
        } else if (token_is(f->tokens, i, "<") && !initialised) {
            i = finder_angle_end(f, i, end) - 1;
        } else if (token_is(f->tokens, i, "[") && partner(f, i) > i) {
            i = partner(f, i);
        } else if (token_is(f->tokens, i, "{") && partner(f, i) > i) {
            if (initialised || is_member_initialiser(f, i, after_colon) || (!d.open && !d.class_word)) {
                i = partner(f, i);
                continue;
            }
            d.brace = i;
            d.end = partner(f, i);
            /* A class may declare variables after its body. */
            if (!d.open) d.end = finder_statement_end(f, d.end, end);
            return d;
        }
    }
    return d;
}

bool finder_has_word(const struct finder *f, uint32_t first, uint32_t last, const char *word) {
    for (uint32_t i = first; i < last; i++)
        if (token_is(f->tokens, i, word)) return true;
    return false;
}

int finder_count_list(const struct finder *f, uint32_t first, uint32_t last, int *optional) {
    int count = first < last;
    bool counted = false;
    *optional = 0;
    for (uint32_t i = first; i < last; i++) {
        uint32_t close = token_is(f->tokens, i, "<") ? tokens_angle_end(f->tokens, i, last) : 0;
        if (close) {
            i = close - 1;
        } else if (partner(f, i) > i) {
            i = partner(f, i);
        } else if (token_is(f->tokens, i, ",")) {
            count++;
            counted = false;
        } else if (!counted && (token_is(f->tokens, i, "=") || token_pair(f->tokens, i, '.', '.'))) {
            *optional += token_is(f->tokens, i, "=") ? 1 : ANY_NUMBER;
            counted = true;
        }
    }
    return count;
}

uint32_t finder_name_before(const struct finder *f, uint32_t open) {
    open = finder_before_attributes(f, open);
    uint32_t at = open - 1;
    if (!token_is(f->tokens, at, ">")) return at;
    uint32_t lowest = open > FARTHEST_LOOK ? open - FARTHEST_LOOK : 0;
    int depth = 0;
    for (; at > lowest; at--) {
        if (partner(f, at) < at)
            at = partner(f, at);
        else if (token_is(f->tokens, at, ">"))
            depth++;
        else if (token_is(f->tokens, at, "<") && --depth == 0)
            return at - 1;
        if (at == 0) break;
    }
    return open - 1;
}
