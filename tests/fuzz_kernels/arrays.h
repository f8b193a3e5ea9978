/* The arrays of every fuzzed kernel, so that any expression may name any of them. */
#ifndef SMELT_FUZZ_ARRAYS_H
#define SMELT_FUZZ_ARRAYS_H

#include "kernel_case.h"
#include "smelt/smelt.h"

/* Inputs: name, dtype, dimensions (0: a scalar), elements. */
#define INPUT_TABLE(X)                  \
    X(in_u, UINT32, 1, INPUT_ELEMENTS)  \
    X(in_i, INT32, 1, INPUT_ELEMENTS)   \
    X(in_f, FLOAT32, 1, INPUT_ELEMENTS) \
    X(in_x, FLOAT32, 1, INPUT_ELEMENTS) \
    X(in_h, FLOAT16, 1, INPUT_ELEMENTS) \
    X(in_s, INT16, 1, INPUT_ELEMENTS)   \
    X(in_c, UINT8, 1, INPUT_ELEMENTS)   \
    X(in_l, UINT64, 1, INPUT_ELEMENTS)  \
    X(in_small, UINT32, 1, 4)           \
    X(scalar_u, UINT32, 0, 1)           \
    X(scalar_i, INT32, 0, 1)            \
    X(scalar_f, FLOAT32, 0, 1)

/* Outputs: name, dtype, elements (0: ELEMENTS_A_THREAD per thread, 1: one per thread, otherwise this many),
 * atomic, value before the run. */
#define OUTPUT_TABLE(X)                           \
    X(out_u, UINT32, 0, false, 3735928559.0)      \
    X(out_i, INT32, 0, false, -559038737.0)       \
    X(out_f, FLOAT32, 0, false, -12345.5)         \
    X(out_h, FLOAT16, 0, false, -77.0)            \
    X(out_s, INT16, 0, false, -21555.0)           \
    X(out_c, UINT8, 0, false, 165.0)              \
    X(out_l, UINT64, 0, false, 1311768467463.0)   \
    X(own, INT32, 1, true, 1000.0)                \
    X(cells, UINT32, ATOMIC_CELLS, true, 65536.0) \
    X(cells_i, INT32, ATOMIC_CELLS, true, -3.0)

enum {
#define COUNT_INPUT(name, dtype, dimensions, elements) INPUT_##name,
    INPUT_TABLE(COUNT_INPUT) INPUT_COUNT
#undef COUNT_INPUT
};

enum {
#define COUNT_OUTPUT(name, dtype, elements, is_atomic, before) OUTPUT_##name,
    OUTPUT_TABLE(COUNT_OUTPUT) OUTPUT_COUNT
#undef COUNT_OUTPUT
};

extern const char *const input_names[INPUT_COUNT];
extern const char *const output_names[OUTPUT_COUNT];
extern const bool output_atomic[OUTPUT_COUNT];

/* The inputs of one kind, created at the first call. They lie between inaccessible pages, so that an access
 * outside an input is a fault. */
smelt_array **inputs_of(enum data_kind kind);

/* Sets the outputs of a launch of `threads`. */
void describe_outputs(int64_t threads, smelt_run_desc *run);

#endif
