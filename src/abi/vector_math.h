/* Arithmetic on vectors, for generated code on CPUs that have no instruction for it: LLVM would call a
 * function of the C library for each lane. */
#ifndef SMELT_ABI_VECTOR_MATH_H
#define SMELT_ABI_VECTOR_MATH_H

typedef float vector_of_4_floats __attribute__((vector_size(16)));

/* fmaf in each lane. */
vector_of_4_floats smelt_runtime_fma_4(vector_of_4_floats a, vector_of_4_floats b, vector_of_4_floats c);

#endif
