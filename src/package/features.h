/* The instruction sets that code needs, by LLVM's names, in one string separated by blanks. Found without
 * LLVM, so that a package can be checked on a machine without it. */
#ifndef SMELT_PACKAGE_FEATURES_H
#define SMELT_PACKAGE_FEATURES_H

#include "base/text.h"

/* This machine's sets among those that code generation uses by default. */
void features_of_machine(struct text *features);

/* The sets that code for this machine may need: without those that code generation avoids. */
void features_of_code(struct text *features);

/* The sets that SMELT_CPU allows, if it is set. */
void features_allowed(struct text *features);

/* The sets of x86-64, x86-64-v3 or x86-64-v4; NULL for another name. */
const char *features_of_level(const char *cpu);

/* The first of `needed` that `had` lacks, in `missing`; false if there is none. */
bool features_missing(const char *needed, const char *had, char missing[64]);

/* 4: all of x86-64-v4, 3: of x86-64-v3, 1: less. */
int features_level(const char *features);

int features_count(const char *features);

#endif
