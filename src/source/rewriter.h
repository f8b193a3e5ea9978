/* The rewriter's state, shared by the files that each rewrite one kind of construct. */
#ifndef SMELT_SOURCE_REWRITER_H
#define SMELT_SOURCE_REWRITER_H

#include "source/change.h"
#include "source/rewrite.h"

#include <string.h>

struct rewriter {
    const struct tokens *tokens;
    const struct structure *structure;
    struct arena *arena;
    struct changes changes;
    uint32_t *pragmas; /* those about contraction so far */
    int pragma_count;
    bool objects;         /* a method has its object as a parameter: C++23 */
    uint32_t asked_class; /* overload.c: the brace of the class it looked at last, and what it found */
    bool class_has_objects;
    uint32_t last_constant; /* 1 + the start of the last statement with function constants */
};

static inline uint32_t partner(const struct rewriter *r, uint32_t i) {
    return r->tokens->items[i].partner;
}
static inline enum scope scope_of(const struct rewriter *r, uint32_t i) {
    return (enum scope)r->structure->scopes[i];
}
static inline bool in_function(const struct rewriter *r, uint32_t i) {
    return scope_of(r, i) >= SCOPE_FUNCTION;
}

static inline void put_before(struct rewriter *r, uint32_t i, const char *text) {
    change_before(&r->changes, i, text);
}
static inline void put_instead(struct rewriter *r, uint32_t i, const char *text) {
    change_instead(&r->changes, i, text);
}
static inline void put_after(struct rewriter *r, uint32_t i, const char *text) {
    change_after(&r->changes, i, text);
}

static inline bool same_token(const struct rewriter *r, uint32_t a, uint32_t b) {
    const struct token *x = &r->tokens->items[a], *y = &r->tokens->items[b];
    return x->length == y->length &&
           memcmp(r->tokens->text + x->start, r->tokens->text + y->start, x->length) == 0;
}
static inline bool same_tokens(const struct rewriter *r, uint32_t a, uint32_t b, uint32_t count) {
    for (uint32_t k = 0; k < count; k++)
        if (!same_token(r, a + k, b + k)) return false;
    return true;
}

/* Directives that set lines stay. */
static inline void rewrite_erase(struct rewriter *r, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last && i < r->tokens->count; i++) {
        const struct token *token = &r->tokens->items[i];
        if (token->kind == TOKEN_DIRECTIVE && directive_is_line(r->tokens, token)) continue;
        r->changes.items[i].instead = "";
        r->changes.items[i].before = NULL;
    }
}

/* Whether token i is the first one of a statement. */
static inline bool rewrite_starts_statement(const struct rewriter *r, uint32_t i) {
    return i == 0 || token_is(r->tokens, i - 1, ";") || token_is(r->tokens, i - 1, "{") ||
           token_is(r->tokens, i - 1, "}") ||
           (token_is(r->tokens, i - 1, ":") && !token_pair(r->tokens, i - 2, ':', ':') &&
            !token_pair(r->tokens, i - 1, ':', ':')) ||
           r->tokens->items[i - 1].kind == TOKEN_DIRECTIVE;
}

/* method.c — `) const device {` at token i: true if it was a method's address space. */
bool rewrite_method_qualifier(struct rewriter *r, uint32_t i);
/* overload.c — the method whose parameters open there, with an address space at token `space`: true if its
 * object became a parameter, as methods of the name differ by the address space. */
bool rewrite_overload(struct rewriter *r, uint32_t open, uint32_t space);
/* … the token of the name of the class whose brace is given; 0 if it has none. */
uint32_t structure_name(const struct rewriter *r, uint32_t brace);
/* aggregate.c — removes a struct's constructor `S() = default;`, named at token i, if it is the only one. */
void rewrite_defaulted(struct rewriter *r, uint32_t i);
/* deduce.c — the template that begins at token i, if it is a function that deduces sizes of vectors. */
void rewrite_deduced(struct rewriter *r, uint32_t i);
/* directive.c — a pragma or an include. */
void rewrite_directive(struct rewriter *r, uint32_t i);
/* address_space.c — the word for an address space at token i; false: it is another word. `open`: the
 * parenthesis that encloses it, or 0. */
bool rewrite_address_space(struct rewriter *r, uint32_t i, uint32_t open);
/* attribute_list.c — the list [[…]] from token `list` to its last token `end`, which is returned. */
uint32_t rewrite_attribute_list(struct rewriter *r, uint32_t list, uint32_t end, bool in_parameters);
/* number.c — Metal's suffixes of a number. */
void rewrite_number(struct rewriter *r, uint32_t i);

#endif
