/* What code may ask of a CPU: instruction sets by the names LLVM has for them, in one string with blanks
 * between. Found without LLVM, so that a package can be judged on a machine that has none. */
#ifndef SMELT_PACKAGE_FEATURES_H
#define SMELT_PACKAGE_FEATURES_H

#include "base/text.h"

/* What this machine has of the sets that code generation uses unasked. */
void features_of_machine(struct text *features);

/* What code made for this machine may need: less what code generation avoids. */
void features_of_code(struct text *features);

/* What SMELT_CPU leaves of it, where it is set. */
void features_allowed(struct text *features);

/* The sets of x86-64, x86-64-v3 or x86-64-v4; NULL for another name. */
const char *features_of_level(const char *cpu);

/* The first of `needed` that `had` is without, in `missing`; false if there is none. */
bool features_missing(const char *needed, const char *had, char missing[64]);

/* 4: all of x86-64-v4, 3: of x86-64-v3, 1: less. */
int features_level(const char *features);

int features_count(const char *features);

#endif
