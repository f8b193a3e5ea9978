/* Reads one declaration at namespace or class scope, and the lists in it. */
#ifndef SMELT_SOURCE_DECLARATION_H
#define SMELT_SOURCE_DECLARATION_H

#include "source/structure.h"

/* The state of structure_find. */
struct finder {
    const struct tokens *tokens;
    struct arena *arena;
    struct structure *out;
    int depth; /* depth of nested scopes */
};

static inline uint32_t partner(const struct finder *f, uint32_t i) {
    return f->tokens->items[i].partner;
}

struct declaration {
    uint32_t start;
    uint32_t class_word;  /* 0: none */
    uint32_t open, close; /* parameter list; 0: none */
    uint32_t brace;       /* opening brace of the body; 0: none */
    uint32_t end;         /* the last token: ; or } */
    bool is_template;
};

/* The one that begins at `start`, before `end`. */
struct declaration declaration_read(const struct finder *f, uint32_t start, uint32_t end);

/* The token after the > that closes the < at `open`; if there is none, the token after the <. */
uint32_t finder_angle_end(const struct finder *f, uint32_t open, uint32_t end);

/* The first ; from `from` on that no brackets enclose; `end` if there is none. */
uint32_t finder_statement_end(const struct finder *f, uint32_t from, uint32_t end);

/* Where what stands before a parenthesis ends: attributes may be in between, as in `f [[host_name("g")]] (`.
 */
uint32_t finder_before_attributes(const struct finder *f, uint32_t open);

/* The name before a parameter list: the token f of "f(" and of "f<float>(". */
uint32_t finder_name_before(const struct finder *f, uint32_t open);

/* Words before a parenthesis that are not the name of a function. */
bool finder_names_no_function(const struct finder *f, uint32_t i);

/* struct, class, union or enum. */
bool finder_is_class_word(const struct finder *f, uint32_t i);

/* Whether the tokens [first, last) have the word. */
bool finder_has_word(const struct finder *f, uint32_t first, uint32_t last, const char *word);

/* Larger than the length of any argument list. */
#define ANY_NUMBER 10000

/* Items separated by commas in [first, last), skipping template lists and brackets. Items with a default, and
 * packs (`…`), are counted in *optional; a pack counts as ANY_NUMBER. */
int finder_count_list(const struct finder *f, uint32_t first, uint32_t last, int *optional);

#endif
