/* The parameters of a function: their types, names and defaults. */
#ifndef SMELT_SOURCE_PARAMETER_H
#define SMELT_SOURCE_PARAMETER_H

#include "source/token.h"

struct parameter {
    uint32_t first, end; /* the tokens [first, end), without a default */
    uint32_t stop;       /* the comma or parenthesis after it */
    uint32_t name;       /* the token of its name, or the one before which a name would be */
    bool named;
};

/* The parameter that starts at token `first` of a list which ends at token `close`; false if it cannot be
 * parsed: packs, `...`, rvalue references, attributes, pointers to functions without a name. */
bool parameter_read(const struct tokens *tokens, uint32_t first, uint32_t close, struct parameter *parameter);

/* The first token of a list whose parentheses are given: `close` if it has no parameters. */
uint32_t parameters_start(const struct tokens *tokens, uint32_t open, uint32_t close);

/* Whether two lists, which open there, have parameters of the same types, apart from address spaces. */
bool parameters_alike(const struct tokens *tokens, uint32_t open, uint32_t other_open);

/* The first token of the next parameter; `close` if there is none. */
uint32_t parameter_next(const struct parameter *parameter, uint32_t close);

#endif
