/* Flags that kernels write, and results that must be finite. */
#include "array/array.h"
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "smelt/guard.h"

#include <math.h>
#include <stdio.h>

const char *smelt_flags_header(void) {
    return kernel_text_flags;
}

static const char *meaning_of(int code, const smelt_code *codes) {
    static const smelt_code own[] = {{1, "the matrix is too large"}, {2, "the work is too large"},
                                     {3, "too many iterations"},     {4, "numerical instability"},
                                     {5, "numerical instability"},   {0, NULL}};
    for (int i = 0; codes && codes[i].meaning; i++)
        if (codes[i].code == code) return codes[i].meaning;
    for (int i = 0; own[i].meaning; i++)
        if (own[i].code == code) return own[i].meaning;
    return "a code missing in the table of codes";
}

static bool is_flag(float value) {
    return value == 0 || value == 1;
}

static bool is_success(const float *f) {
    return f[SMELT_FLAG_START] == 1 && f[SMELT_FLAG_SUCCESS] == 1 && f[SMELT_FLAG_ERROR] == 0;
}

/* What is wrong with one set that is no success. */
static void describe(const float *f, const smelt_code *codes, char *text, size_t size) {
    float error = f[SMELT_FLAG_ERROR];
    char after[48] = "";
    if (f[SMELT_FLAG_ITERATIONS] > 0)
        snprintf(after, sizeof after, ", after %g iterations", (double)f[SMELT_FLAG_ITERATIONS]);
    if (!is_flag(f[SMELT_FLAG_START]) || !is_flag(f[SMELT_FLAG_SUCCESS]) || !isfinite(error) ||
        error != truncf(error))
        snprintf(text, size,
                 "the flags were never written or are overwritten (start %g, error code %g, success %g): "
                 "initialise the "
                 "output with 0",
                 (double)f[SMELT_FLAG_START], (double)error, (double)f[SMELT_FLAG_SUCCESS]);
    else if (error != 0)
        snprintf(text, size, "error %d, %s, with the value %g%s%s", (int)error, meaning_of((int)error, codes),
                 (double)f[SMELT_FLAG_ERROR_VALUE],
                 f[SMELT_FLAG_START] == 1 ? "" : " (found before the work began)", after);
    else if (f[SMELT_FLAG_START] != 1)
        snprintf(text, size, "the kernel never started: its start flag is 0%s",
                 f[SMELT_FLAG_SUCCESS] == 1 ? ", yet it reports success" : "");
    else
        snprintf(text, size, "the kernel started and did not finish: its success flag is 0%s", after);
}

static smelt_status refuse(const float *f, const char *name, const smelt_code *codes, int64_t set,
                           int64_t failed, int64_t sets) {
    char text[320], matrix[64] = "", where[80] = "";
    describe(f, codes, text, sizeof text);
    if (f[SMELT_FLAG_ROWS] != 0 || f[SMELT_FLAG_COLUMNS] != 0)
        snprintf(matrix, sizeof matrix, " on a %g × %g matrix", (double)f[SMELT_FLAG_ROWS],
                 (double)f[SMELT_FLAG_COLUMNS]);
    if (sets > 1)
        snprintf(where, sizeof where, " (set %lld; %lld of %lld failed)", (long long)set, (long long)failed,
                 (long long)sets);
    return fail(SMELT_ERROR_HEALTH, "kernel '%s'%s: %s%s", name ? name : "?", matrix, text, where);
}

smelt_status smelt_flags_check(smelt_array *flags, const char *name, const smelt_code *codes,
                               int64_t *failed) {
    smelt_array *here = NULL, *dense = NULL;
    if (!flags) return fail(SMELT_ERROR_INVALID_ARGUMENT, "flags: the array is NULL");
    int last = flags->shape.ndim - 1;
    if (flags->dtype != SMELT_FLOAT32 || last < 0 || flags->shape.size[last] != SMELT_FLAG_COUNT)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "flags: an array of %s with shape %s, expected float32 (…, %d)",
                    smelt_dtype_name(flags->dtype), shape_print(&flags->shape).text, SMELT_FLAG_COUNT);
    TRY(smelt_array_to(flags, "cpu", NULL, &here));
    smelt_status status = smelt_array_contiguous(here, &dense);
    smelt_array_release(here);
    if (status != SMELT_OK) return status;
    const float *values = (const float *)dense->data;
    int64_t sets = dense->size / SMELT_FLAG_COUNT, first = -1, count = 0;
    for (int64_t i = 0; i < sets; i++) {
        if (is_success(values + i * SMELT_FLAG_COUNT)) continue;
        if (count++ == 0) first = i;
    }
    if (failed) *failed = count;
    if (count) status = refuse(values + first * SMELT_FLAG_COUNT, name, codes, first, count, sets);
    smelt_array_release(dense);
    return status;
}

smelt_status smelt_check_finite(smelt_array *array, const char *name) {
    smelt_array *here = NULL;
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "check finite: the array is NULL");
    if (!dtype_is_inexact(array->dtype) || array->dtype == SMELT_COMPLEX64) return SMELT_OK;
    TRY(smelt_array_to(array, "cpu", NULL, &here));
    int64_t count = 0, number = 0, first = 0;
    double value = 0;
    for (struct walk w = walk_begin(&here->shape, here->strides); w.left > 0; walk_next(&w), number++) {
        double element = element_as_real(
            element_load(here->dtype, here->data + w.offset * (int64_t)smelt_dtype_bytes(here->dtype)));
        if (isfinite(element)) continue;
        if (count++ == 0) first = number, value = element;
    }
    int64_t size = here->size;
    smelt_array_release(here);
    return count
               ? fail(SMELT_ERROR_HEALTH,
                      "%s holds %lld values of %lld that are not finite, the first, %g, as element %lld",
                      name ? name : "the result", (long long)count, (long long)size, value, (long long)first)
               : SMELT_OK;
}
