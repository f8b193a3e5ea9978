/* Function constants of a package: listed when it is built, given values when it is loaded. */
#ifndef SMELT_PACKAGE_CONSTANTS_H
#define SMELT_PACKAGE_CONSTANTS_H

#include "abi/compiler.h"
#include "package/package.h"

/* The `count` constants that an entry names, in the order of their indexes (`uses` is put in it, and keeps
 * the names), with the values of `given` (ended by SMELT_NO_DTYPE). */
void constants_of_uses(struct constant_use *uses, int count, const smelt_constant *given,
                       struct package_constant *constants);

/* The values an entry runs with: those of the package, under those `given` (ended by SMELT_NO_DTYPE). Ended
 * the same way; *changed: they differ from those of the package's code. */
void package_constants(const struct package_entry *entry, const smelt_constant *given,
                       smelt_constant constants[SMELT_MAX_CONSTANTS + 1], bool *changed);

#endif
