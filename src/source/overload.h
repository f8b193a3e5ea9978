/* Methods of one name that differ by the address space of their object: overload.c finds them, forwarder.c
 * writes the functions that have the object as a parameter. */
#ifndef SMELT_SOURCE_OVERLOAD_H
#define SMELT_SOURCE_OVERLOAD_H

#include "source/rewriter.h"

struct overload {
    uint32_t first;             /* of its declaration */
    uint32_t name, open, close; /* its name, and its parentheses */
    uint32_t space;             /* the word of its address space, or 0: thread */
    uint32_t body;              /* its opening brace */
    bool constant;              /* for constant objects */
};

/* If there are more of one name, method.c ranks them. */
#define MOST_OVERLOADS 64

/* The methods of one name in a class. */
struct group {
    uint32_t brace;  /* that opens the class */
    uint32_t class;  /* the token of its name */
    uint32_t name;   /* the first token of the methods' name, in one of them */
    uint32_t length; /* of that name, in tokens */
    struct overload overloads[MOST_OVERLOADS];
    uint32_t count;
};

static inline bool same_space(const struct rewriter *r, const struct overload *a, const struct overload *b) {
    return !a->space || !b->space ? a->space == b->space : same_token(r, a->space, b->space);
}

/* forwarder.c — the name of a method that has a forwarder. */
const char *forwarder_own_name(const struct rewriter *r, const struct overload *overload);

/* … what follows the body of a method: the functions that forward to it, and those that have to be declared
 * for its operator. "": nothing. */
const char *forwarder_text(const struct rewriter *r, const struct group *group,
                           const struct overload *overload);

#endif
