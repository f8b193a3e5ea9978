#include "source/conditional.h"

/* A longer arm is not a simple access. */
#define LONGEST_ARM 200

/* Skips a bracketed group: its last token, or `i` itself. */
static uint32_t group_end(const struct tokens *t, uint32_t i) {
    uint32_t partner = t->items[i].partner;
    return partner > i ? partner : i;
}

static bool is_closer(const struct tokens *t, uint32_t i) {
    return t->items[i].partner < i;
}

/* Whether the brace begins a value: T{…}, vec<T, 4>{…}. */
static bool is_value(const struct tokens *t, uint32_t brace) {
    return brace > 0 && (token_is_identifier(t, brace - 1) || token_is(t, brace - 1, ">"));
}

/* The : that belongs to the ? at `question`, or 0. */
static uint32_t colon_of(const struct tokens *t, uint32_t question) {
    int nested = 0;
    for (uint32_t i = question + 1; i < t->count && i < question + LONGEST_ARM; i++) {
        if (is_closer(t, i) || token_is(t, i, ";") || (token_is(t, i, "{") && !is_value(t, i))) return 0;
        if (token_pair(t, i, ':', ':'))
            i++;
        else if (token_is(t, i, "?"))
            nested++;
        else if (token_is(t, i, ":") && nested-- == 0)
            return i;
        else
            i = group_end(t, i);
    }
    return 0;
}

/* The token after the second arm: one that binds less tightly than ?:, or the : of an enclosing conditional.
 */
static uint32_t second_arm_end(const struct tokens *t, uint32_t first) {
    for (uint32_t i = first; i < t->count && i < first + LONGEST_ARM; i++) {
        if (is_closer(t, i) || token_is(t, i, ";") || token_is(t, i, ",")) return i;
        /* Another conditional, or an assignment: not an access. */
        if (token_is(t, i, "?") || token_is(t, i, "=") || (token_is(t, i, "{") && !is_value(t, i)))
            return first;
        if (token_pair(t, i, ':', ':'))
            i++;
        else if (token_is(t, i, ":"))
            return i;
        else
            i = group_end(t, i);
    }
    return first;
}

/* Keywords that look like names of objects. */
static bool is_no_object(const struct tokens *t, uint32_t i) {
    static const char *const words[] = {"nullptr",  "true",    "false",    "this",  "NULL",
                                        "sizeof",   "alignof", "noexcept", "throw", "typename",
                                        "template", "new",     "delete",   NULL};
    return token_is_one_of(t, i, words);
}

/* Whether [first, end) is a chain of names, members, subscripts and parentheses that ends in a name or a
 * subscript, or begins with a dereference. A chain that ends in a call is not one, since the call may return
 * void. */
static bool is_access(const struct tokens *t, uint32_t first, uint32_t end) {
    /* Enclosing parentheses. */
    while (end > first + 2 && token_is(t, first, "(") && t->items[first].partner == end - 1) {
        first++;
        end--;
    }
    bool dereference = first < end && token_is(t, first, "*"), ends_in_object = false;
    for (uint32_t i = first + dereference; i < end; i++) {
        bool arrow = token_pair(t, i, '-', '>');
        if (token_is(t, i, ".") || arrow) {
            i += arrow;
            if (i == first || !token_is_identifier(t, i + 1)) return false;
            ends_in_object = true;
            i++;
        } else if (token_pair(t, i, ':', ':')) {
            i++;
        } else if (token_is(t, i, "[") || token_is(t, i, "(")) {
            ends_in_object = token_is(t, i, "[");
            i = group_end(t, i);
        } else if (token_is_identifier(t, i)) {
            /* Two adjacent names are not a chain. */
            if (is_no_object(t, i) || (i > first && token_is_identifier(t, i - 1))) return false;
            ends_in_object = true;
        } else {
            return false;
        }
    }
    return ends_in_object || (dereference && end > first + 1);
}

int conditional_arms(const struct tokens *t, uint32_t question, struct conditional_arm arms[2]) {
    int count = 0;
    uint32_t colon = colon_of(t, question);
    if (!colon) return 0;
    uint32_t end = second_arm_end(t, colon + 1);
    if (is_access(t, question + 1, colon)) arms[count++] = (struct conditional_arm){question + 1, colon - 1};
    if (end > colon + 1 && is_access(t, colon + 1, end))
        arms[count++] = (struct conditional_arm){colon + 1, end - 1};
    return count;
}
