/* The CPU that code is generated for. */
#ifndef SMELT_FRONTEND_TARGET_H
#define SMELT_FRONTEND_TARGET_H

#include "base/hash.h"

/* The CPU that SMELT_CPU selects (avx512, avx2, sse2), in LLVM's terms: "x86-64-v4"; NULL: this machine's own
 * CPU. An unknown or unsupported value causes one warning per process and is ignored. */
const char *target_cpu(void);

/* The properties that code for `cpu` depends on: code for one CPU must not reach another. */
void target_add_to_key(const char *cpu, struct hasher *hasher);

#endif
