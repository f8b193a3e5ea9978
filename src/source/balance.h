/* Finds unterminated brackets, comments and literals before clang, which would report the end of the text. */
#ifndef SMELT_SOURCE_BALANCE_H
#define SMELT_SOURCE_BALANCE_H

#include "source/token.h"

struct imbalance {
    uint32_t position;   /* byte of the text */
    const char *message; /* a sentence about the error there */
};

/* The name of lines that signature_generate wrote itself, in #line directives. */
#define SIGNATURE_LABEL "<signature>"

/* Whether something is not closed, or closed twice. For preprocessed text, or text without conditionals. */
bool imbalance_find(const struct tokens *tokens, struct imbalance *found);

#endif
