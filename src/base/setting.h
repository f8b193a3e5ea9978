/* Environment variables that hold one of a few words. */
#ifndef SMELT_BASE_SETTING_H
#define SMELT_BASE_SETTING_H

#include <stdatomic.h>

/* Static; one per variable. */
struct setting {
    const char *variable;
    const char *words[4]; /* ended by NULL; an unset or empty variable means the first */
    atomic_flag warned;
};

/* The index of the variable's word, read at every call. Any other word is logged as a warning, once, and
 * means the first. */
int setting_choice(struct setting *setting);

#endif
