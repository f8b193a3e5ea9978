/* The grammar's rules: the contents of a line, as a table. */
#ifndef SMELT_FUZZ_RULES_H
#define SMELT_FUZZ_RULES_H

#include "generator.h"

/* Where a rule may be used. */
enum place { ANYWHERE, KERNEL, INTERLEAVED_F, INTERLEAVED_U, INTERLEAVED_C, WITH_HELPERS };

struct rule {
    enum type type;
    enum feature feature;
    int weight;
    enum place place;
    const char *text;
};

extern const struct rule rules[];
extern const int rule_count;

#endif
