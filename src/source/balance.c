#include "source/balance.h"

#include <string.h>

static const char brackets[] = "()[]{}";

static char first_of(const struct tokens *tokens, uint32_t i) {
    const struct token *token = &tokens->items[i];
    return token->kind == TOKEN_PUNCTUATION ? tokens->text[token->start] : 0;
}

static bool is_bracket(char c) {
    return c && strchr(brackets, c);
}

/* Whether the lines after this directive are the signature's (1) or the user's (0); -1 if it is not a line
 * directive. */
static int leads_to_signature(const struct tokens *tokens, const struct token *token) {
    const char *text = tokens->text + token->start;
    const char *name = memmem(text, token->length, "\"" SIGNATURE_LABEL "\"", strlen(SIGNATURE_LABEL) + 2);
    if (name) return 1;
    const char *at = text + 1, *end = text + token->length;
    while (at < end && *at == ' ') at++;
    bool line = at < end && ((*at >= '0' && *at <= '9') || (end - at > 4 && memcmp(at, "line", 4) == 0));
    return line && memchr(at, '"', (size_t)(end - at)) ? 0 : -1;
}

/* The braces around a body belong to the signature: one that is paired with a brace of the body shows which
 * of the body's is wrong. */
static bool check_signature(const struct tokens *tokens, struct imbalance *found) {
    bool inside = false;
    for (uint32_t i = 0; i < tokens->count; i++) {
        const struct token *token = &tokens->items[i];
        if (token->kind == TOKEN_DIRECTIVE) {
            int leads = leads_to_signature(tokens, token);
            if (leads >= 0) inside = leads;
            continue;
        }
        char c = first_of(tokens, i);
        if (!inside || (c != '{' && c != '}') || token->partner == i) continue;
        /* The partner's lines are the signature's if the nearest line directive before it is one of the
         * signature's. */
        uint32_t before = token->partner;
        int leads = -1;
        while (before-- > 0 && leads < 0)
            if (tokens->items[before].kind == TOKEN_DIRECTIVE)
                leads = leads_to_signature(tokens, &tokens->items[before]);
        if (leads == 1) continue;
        found->position = tokens->items[token->partner].start;
        found->message = c == '{' ? "this '}' closes the kernel function itself; the body has one too many"
                                  : "this '{' is never closed";
        return true;
    }
    return false;
}

bool imbalance_find(const struct tokens *tokens, struct imbalance *found) {
    if (tokens->unclosed != NO_PLACE) {
        char c = tokens->text[tokens->unclosed];
        found->position = tokens->unclosed;
        found->message = c == '/'    ? "this comment is never closed"
                         : c == '\'' ? "this character literal is never closed"
                                     : "this string literal is never closed";
        return true;
    }
    if (check_signature(tokens, found)) return true;
    for (uint32_t i = 0; i < tokens->count; i++) {
        char c = first_of(tokens, i);
        if (!is_bracket(c) || tokens->items[i].partner != i) continue;
        static const char *const messages[] = {"this '(' is never closed", "this ')' closes nothing",
                                               "this '[' is never closed", "this ']' closes nothing",
                                               "this '{' is never closed", "this '}' closes nothing"};
        found->position = tokens->items[i].start;
        found->message = messages[strchr(brackets, c) - brackets];
        return true;
    }
    return false;
}
