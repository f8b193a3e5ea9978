/* The arms of conditional expressions that name an object: `c ? p[i] : float4(0)`, `c ? a : table.b`. C++
 * requires both arms of class type in one address space; the rewriter copies such an arm out of its own
 * (prelude: __smelt_arm). */
#ifndef SMELT_SOURCE_CONDITIONAL_H
#define SMELT_SOURCE_CONDITIONAL_H

#include "source/token.h"

/* Tokens [first, last]. */
struct conditional_arm {
    uint32_t first, last;
};

/* The arms of the ? at `question` that are accesses: x, n::x, p[i], (*p)[i], s.member, q->member, *p, or one
 * of these in parentheses. Returns how many. */
int conditional_arms(const struct tokens *tokens, uint32_t question, struct conditional_arm arms[2]);

#endif
