/* Questions about all threads of a launch, shared by launch.c, launch_values.c and launch_ends.c. */
#ifndef SMELT_COMPILER_BOUNDS_LAUNCH_H
#define SMELT_COMPILER_BOUNDS_LAUNCH_H

#include "compiler/bounds/bounds.h"

enum { MOST_VALUES = 40, MOST_DEPTH = 10, MOST_PRODUCTS = 6, MOST_QUESTIONS = 64 };

#define MOST_NARROW ((1 << 30) - 1)

/* A value of the thread's code, and what the function computes for it; NULL: it cannot. */
struct known {
    LLVMValueRef value, copy;
    struct known *next;
};

struct questions {
    LLVMValueRef function, group, wrong; /* wrong: i1, a copy is not the value */
    struct known *known;
    LLVMValueRef answers[MOST_QUESTIONS]; /* i1 in the function */
    LLVMValueRef calls[MOST_QUESTIONS];   /* i1 in the thread's code */
    int count, block;                     /* the block of the last one */
    int asked;
    bool loads; /* constant memory */
};

/* i64, the same for all threads; NULL: not known. */
struct ends {
    LLVMValueRef low, high;
};

struct look {
    struct bounds *b;
    int block;
    int left, products;
    bool scattered;                   /* the lanes' values are not a constant apart */
    bool fails;                       /* a number is never narrow */
    LLVMValueRef narrow[MOST_VALUES]; /* i64: what must be in [0, 2^30) */
    int narrow_count;
};

/* launch_values.c — NULL: no memory. */
struct questions *bounds_launch_begin_function(struct bounds *b);
/* Moves the builder to the function's end. */
void bounds_launch_continue_function(struct bounds *b);
/* … there: what the context has at an offset from `base`. */
LLVMValueRef bounds_launch_field(struct bounds *b, LLVMTypeRef type, LLVMValueRef base, size_t offset);
LLVMValueRef bounds_launch_argument_address(struct bounds *b, uint64_t slot);
/* INTRINSIC_BUFFER_START or _EXTENT of an argument. */
LLVMValueRef bounds_launch_extent(struct bounds *b, enum intrinsic intrinsic, uint64_t slot);
/* An integer of the thread's code that is the same in the whole launch; NULL: it is not known to be. */
LLVMValueRef bounds_launch_copy(struct bounds *b, LLVMValueRef value, int depth);

/* launch_ends.c */
struct ends bounds_launch_ends(struct look *l, LLVMValueRef value, int depth);
/* Both ends must be in [0, 2^30). */
void bounds_launch_require(struct look *l, struct ends e);
static inline struct ends bounds_launch_both(LLVMValueRef value) {
    return (struct ends){value, value};
}
static inline LLVMBuilderRef bounds_launch_builder(struct look *l) {
    return l->b->unit->builder;
}

#endif
