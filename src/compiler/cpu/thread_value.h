/* Integers and addresses in threadgroup memory as one thread of a group of known size computes them. */
#ifndef SMELT_COMPILER_CPU_THREAD_VALUE_H
#define SMELT_COMPILER_CPU_THREAD_VALUE_H

#include "compiler/pass.h"

struct thread_place {
    uint32_t position[3], index;
    bool first_round; /* counters of loops have the constant that they begin with */
    uint64_t *steps; /* how many values may yet be computed: a value is computed anew for each use, and a hash
                        has thousands of these. At 0, all are unknown. NULL: any number */
};

/* The thread with this index in a group of `size` threads. */
struct thread_place thread_place_of(const uint32_t size[3], uint32_t index);

/* The value of an integer of at most 64 bits; false: it depends on more than the thread's place. */
bool thread_value(LLVMValueRef integer, const struct thread_place *thread, uint64_t *value);

/* Whether it is computed from another address. */
bool thread_address_is_computed(LLVMValueRef address);

/* Adds the address's distance in bytes from `root`; false: unknown, or computed from another root. A negative
 * index is a large unsigned one. */
bool thread_offset(struct unit *unit, LLVMValueRef address, LLVMValueRef root,
                   const struct thread_place *thread, uint64_t *offset);

#endif
