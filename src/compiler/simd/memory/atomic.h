/* Copies of atomic instructions, for one lane after the other. */
#ifndef SMELT_COMPILER_SIMD_MEMORY_ATOMIC_H
#define SMELT_COMPILER_SIMD_MEMORY_ATOMIC_H

#include "compiler/simd/simd.h"

#define MAX_OPERANDS 3

struct lane_loop {
    LLVMValueRef instruction;
    int count;                          /* operands */
    LLVMValueRef scalars[MAX_OPERANDS]; /* uniform operands, or NULL: */
    LLVMValueRef slots[MAX_OPERANDS];   /* all others, by lane */
    LLVMTypeRef results[2];             /* of one lane; NULL: not used */
    enum simd_operation operation;      /* combines values for one address; SIMD_EXCLUSIVE: none does */
    LLVMValueRef result_slots[2];
};

static inline bool atomic_is_used(LLVMValueRef instruction) {
    return LLVMGetFirstUse(instruction) != NULL;
}

/* A copy of the instruction. `operands` has as many entries as it has operands; NULL for one without. */
LLVMValueRef atomic_copy(struct simd *s, LLVMValueRef instruction, LLVMValueRef const *operands);

/* Runs the active lanes. instruction, results and operation are set; the rest is set here. */
void atomic_run_lanes(struct simd *s, struct lane_loop *loop);

/* A chunk of result_slots, whose elements have this type. */
LLVMValueRef atomic_load_chunk(struct simd *s, LLVMTypeRef element, LLVMValueRef slot, int chunk);

#endif
