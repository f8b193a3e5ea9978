/* Shared by the tests of array operations: arrays with random contents in every layout, elements as numbers.
 */
#ifndef SMELT_TESTS_GRAPH_H
#define SMELT_TESTS_GRAPH_H

#include "unit.h"

#include "../device.h"
#include "array/array.h"
#include "array/dtype.h"
#include "smelt/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define APPLY(...) apply_ok(&(smelt_apply_desc){__VA_ARGS__}, __FILE__, __LINE__)
#define OP(upper) SMELT_OPERATION_##upper

/* Computes on SMELT_TEST_DEVICE, except operations that only the host supports. Results are moved to the
 * host, except those that a tape identifies by their handles. */
static inline smelt_array *apply_ok(const smelt_apply_desc *given, const char *file, int line) {
    smelt_apply_desc desc = *given;
    smelt_array *result = NULL;
    bool host_only = desc.operation >= OP(ZEROS) && desc.operation <= OP(EYE);
    for (int i = 0; i < SMELT_MAX_ARGUMENTS && desc.inputs[i]; i++)
        host_only |= desc.inputs[i]->dtype == SMELT_FLOAT64 && !(desc.weak >> i & 1);
    if (desc.operation == OP(ASTYPE)) host_only |= desc.dtype == SMELT_FLOAT64;
    if (desc.operation >= OP(SCATTER_ADD) && desc.operation <= OP(SCATTER_SUM))
        host_only |= desc.inputs[0]->dtype == SMELT_INT64;
    if (!desc.device && !host_only) desc.device = test_device();
    if (smelt_apply(&desc, &result) != SMELT_OK)
        FAIL_TEST("%s:%d: %s failed: %s", file, line, smelt_operation_name(desc.operation), smelt_error());
    for (int i = 0; i < SMELT_MAX_ARGUMENTS && desc.inputs[i]; i++)
        if (result == desc.inputs[i]) FAIL_TEST("%s:%d: the result is an input's handle", file, line);
    if (!smelt_tape_tracks(NULL, result)) OK(test_to_host(&result));
    return result;
}

static inline uint64_t random_bits(void) {
    static uint64_t state = UINT64_C(0x2545f4914f6cdd1d);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* In [low, high). */
static inline double random_in(double low, double high) {
    return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

static inline double element_at(const smelt_array *array, int64_t offset) {
    return element_as_real(
        element_load(array->dtype, array->data + offset * (int64_t)smelt_dtype_bytes(array->dtype)));
}

/* Elements in row-major order. The caller frees. */
static inline double *numbers_of(smelt_array *array) {
    smelt_array *here;
    OK(smelt_array_to(array, "cpu", NULL, &here));
    double *numbers = calloc((size_t)array->size + 1, sizeof *numbers);
    int64_t i = 0;
    for (struct walk w = walk_begin(&here->shape, here->strides); w.left > 0; walk_next(&w))
        numbers[i++] = element_at(here, w.offset);
    smelt_array_release(here);
    return numbers;
}

static inline void fill_random(smelt_array *array, double low, double high) {
    size_t bytes = smelt_dtype_bytes(array->dtype);
    for (struct walk w = walk_begin(&array->shape, array->strides); w.left > 0; walk_next(&w)) {
        double value = random_in(low, high);
        if (array->dtype == SMELT_BOOL) value = random_bits() & 1;
        if (dtype_is_integer(array->dtype)) value = floor(value);
        element_store(array->dtype, array->data + w.offset * (int64_t)bytes, element_of_real(value));
    }
}

/* Whether the n-th of many similar cases is tested: one in `every`, since each compiles a kernel; with
 * SMELT_TEST_FULL (make check-long) all. */
static inline bool in_sample(size_t n, size_t every) {
    return n % every == 0 || getenv("SMELT_TEST_FULL");
}

enum layout { CONTIGUOUS, TRANSPOSED, REVERSED, SLICED, BROADCAST, LAYOUTS };

/* A random array of a shape whose elements lie as `layout` says. */
static inline smelt_array *random_array(smelt_dtype dtype, smelt_shape shape, enum layout layout, double low,
                                        double high) {
    smelt_array *base, *view;
    smelt_shape held = shape;
    int64_t strides[SMELT_MAX_DIMENSIONS], offset = 0;
    if (layout == SLICED)
        for (int d = 0; d < shape.ndim; d++) held.size[d] = 2 * shape.size[d] + 1;
    if (layout == TRANSPOSED)
        for (int d = 0; d < shape.ndim; d++) held.size[d] = shape.size[shape.ndim - 1 - d];
    if (layout == BROADCAST && shape.ndim) held.size[0] = shape.size[0] ? 1 : 0;
    OK(smelt_array_create(dtype, held, &base));
    fill_random(base, low, high);
    for (int d = 0; d < shape.ndim; d++) {
        strides[d] = base->strides[d];
        if (layout == TRANSPOSED) strides[d] = base->strides[shape.ndim - 1 - d];
        if (layout == REVERSED && shape.size[d]) {
            offset += (shape.size[d] - 1) * strides[d];
            strides[d] = -strides[d];
        }
        if (layout == SLICED) {
            offset += strides[d];
            strides[d] *= 2;
        }
        if (layout == BROADCAST && d == 0) strides[d] = 0;
    }
    if (!base->size) offset = 0;
    OK(smelt_array_view(base, shape, strides, offset, &view));
    smelt_array_release(base);
    return view;
}

/* A copy of an array's elements, to check that they are unchanged. */
struct keepsake {
    smelt_array *array;
    double *numbers;
};

static inline struct keepsake remember(smelt_array *array) {
    return (struct keepsake){array, numbers_of(array)};
}

static inline void assert_unchanged(struct keepsake *keepsake) {
    double *now = numbers_of(keepsake->array);
    for (int64_t i = 0; i < keepsake->array->size; i++)
        if (now[i] != keepsake->numbers[i] && !(isnan(now[i]) && isnan(keepsake->numbers[i])))
            FAIL_TEST("an input was changed: element %lld is %g, was %g", (long long)i, now[i],
                      keepsake->numbers[i]);
    free(now);
    free(keepsake->numbers);
}

/* The relative tolerance of results of a dtype. */
static inline double tolerance_of(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16    ? 1e-3
           : dtype == SMELT_BFLOAT16 ? 8e-3
           : dtype == SMELT_FLOAT64  ? 1e-12
           : dtype == SMELT_FLOAT32  ? 2e-6
                                     : 0;
}

static inline bool close_to(double got, double want, double relative, double absolute) {
    if (isnan(want)) return isnan(got);
    if (isinf(want) || isinf(got)) return got == want;
    return fabs(got - want) <= absolute + relative * fabs(want);
}

static inline void assert_shape(const smelt_array *array, smelt_shape shape) {
    bool equal = array->shape.ndim == shape.ndim;
    for (int d = 0; equal && d < shape.ndim; d++) equal = array->shape.size[d] == shape.size[d];
    if (!equal)
        FAIL_TEST("the shape is %s, expected %s", shape_print(&array->shape).text, shape_print(&shape).text);
}

static inline void assert_numbers(smelt_array *array, const double *want, double relative, double absolute) {
    double *got = numbers_of(array);
    for (int64_t i = 0; i < array->size; i++)
        if (!close_to(got[i], want[i], relative, absolute))
            FAIL_TEST("element %lld of %lld is %.9g, expected %.9g", (long long)i, (long long)array->size,
                      got[i], want[i]);
    free(got);
}

/* The call fails with a message that contains `words`. */
#define FAILS(status, words, ...) apply_fails(status, words, &(smelt_apply_desc){__VA_ARGS__}, __LINE__)

static inline void apply_fails(smelt_status status, const char *words, const smelt_apply_desc *desc,
                               int line) {
    smelt_array *result = NULL;
    smelt_status got = smelt_apply(desc, &result);
    if (got != status) FAIL_TEST("line %d: status %d, expected %d (%s)", line, got, status, smelt_error());
    if (!strstr(smelt_error(), words)) FAIL_TEST("line %d: '%s' lacks '%s'", line, smelt_error(), words);
    if (result) FAIL_TEST("line %d: the result was touched", line);
}

#endif
