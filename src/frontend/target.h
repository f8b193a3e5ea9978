/* The CPU that code is made for. */
#ifndef SMELT_FRONTEND_TARGET_H
#define SMELT_FRONTEND_TARGET_H

#include "base/hash.h"

/* What SMELT_CPU asks for (avx512, avx2, sse2), as LLVM calls it: "x86-64-v4"; NULL: this machine's own CPU.
 * A value that is unknown, or that this machine cannot run, is warned about once a process and counts as
 * none. */
const char *target_cpu(void);

/* What code made for `cpu` depends on: code made for one CPU must not reach another. */
void target_add_to_key(const char *cpu, struct hasher *hasher);

#endif
