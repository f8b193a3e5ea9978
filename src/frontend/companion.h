/* The files that belong to libsmelt.so and are found by where it lies. */
#ifndef SMELT_FRONTEND_COMPANION_H
#define SMELT_FRONTEND_COMPANION_H

#include <stdbool.h>

#define COMPANION_COMPILER_LIBRARY "libsmelt_compiler.so"
#define COMPANION_CC1 "smelt-cc1"

/* Looks for `name` near libsmelt.so: in its folder (a build or a wheel), in that folder's `smelt`
 * (installed), and in the lib folder next to its own (a program that links the library's objects). False: it
 * is in none of them; `path` is then the first place. */
bool companion_find(const char *name, char path[4096]);

#endif
