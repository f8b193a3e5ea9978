/* Shared by the tests of launches: kernels whose effect on the fake driver is implemented here in C, from the
 * parameters that the launch passes. */
#ifndef SMELT_TESTS_CUDA_LAUNCHES_H
#define SMELT_TESTS_CUDA_LAUNCHES_H

#include "unit/unit.h"

#include "cuda/fake_driver.h"
#include "abi/cuda_parameters.h"
#include "smelt/smelt.h"

extern const struct fake_cuda *fake;

/* The call fails with this status and this message. */
void expect_failure(smelt_status status, smelt_status expected, const char *message);

/* Opens the fake driver, once per program. */
int open_fake(void **state);
/* After each test: there were no violations, and nothing is left. */
int check_fake(void **state);

smelt_array *floats(const char *device, int64_t count, float first, float step);
smelt_array *on_host(smelt_array *array);
float value_of(smelt_array *array, int64_t index);

/* A library from one text, and one of its functions. */
smelt_function *function_of(const char *source, const char *name);

/* y[i] += a * x[i], as a body and as a function; the hook `run_axpy` performs both. */
#define AXPY_FILE                                                                           \
    "kernel void axpy(device float *y [[buffer(0)]], const device float *x [[buffer(1)]], " \
    "constant float &a [[buffer(2)]], uint i [[thread_position_in_grid]]) { y[i] += a * x[i]; }"

/* What a hook saw. */
struct seen {
    int launches;
    struct fake_launch launch; /* the last */
    struct cuda_parameters head;
    uint64_t slots[16];
    char bytes[512]; /* after the slots of the launched function or body */
};
/* Keeps the parameter of a launch with this many slots. */
void see(struct seen *seen, const struct fake_launch *launch, int slots);
/* context: a struct seen. */
CUresult run_axpy(const struct fake_launch *launch, void *context);

#endif
