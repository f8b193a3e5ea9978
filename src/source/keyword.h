/* The words that cannot be the name of an argument or of a template parameter. */
#ifndef SMELT_SOURCE_KEYWORD_H
#define SMELT_SOURCE_KEYWORD_H

#include <stdbool.h>

/* A keyword of C++, or one that Metal adds: an address space, a kind of function, a type. */
bool keyword_is(const char *name);

#endif
