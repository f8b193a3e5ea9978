/* Constructs of C++ that Metal lacks and clang would accept: found by their keywords, before clang. */
#ifndef SMELT_SOURCE_REFUSE_H
#define SMELT_SOURCE_REFUSE_H

#include "source/structure.h"

struct refusal {
    uint32_t token;
    const char *message; /* a sentence; NULL: nothing is refused */
};

/* The first of them, outside the functions of other stages. The message is constant or in the arena. */
struct refusal refusal_find(const struct tokens *tokens, const struct structure *structure,
                            struct arena *arena);

#endif
