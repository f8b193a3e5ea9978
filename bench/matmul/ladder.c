#include "bench/matmul/ladder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

smelt_status ladder_time(struct ladder *ladder, smelt_status (*run)(void *context), void *context, int count,
                         double *seconds) {
    double start = bench_now(), all = 0;
    bool events = ladder->start != NULL;
    smelt_status status = events ? smelt_event_record(ladder->start, ladder->stream) : SMELT_OK;
    for (int i = 0; i < count && status == SMELT_OK; i++) status = run(context);
    if (status == SMELT_OK && events) status = smelt_event_record(ladder->end, ladder->stream);
    if (status == SMELT_OK && events) status = smelt_event_seconds(ladder->start, ladder->end, &all);
    *seconds = (events ? all : bench_now() - start) / count;
    return status;
}

#define SAMPLE_SECONDS 1e-3
#define MOST_RUNS 50

int ladder_runs(struct ladder *ladder, smelt_status (*run)(void *context), void *context) {
    double seconds = 0;
    if (!ladder->start || ladder->bench->quick) return 1;
    /* The first may compile. */
    for (int i = 0; i < 2; i++)
        if (ladder_time(ladder, run, context, 1, &seconds) != SMELT_OK) return 1;
    double runs = seconds > 0 ? SAMPLE_SECONDS / seconds : MOST_RUNS;
    return runs < 1 ? 1 : runs > MOST_RUNS ? MOST_RUNS : (int)runs;
}

/* ---- The check. */

/* Relative to the sum, and to the sum of the terms' sizes. */
static double allowed(const struct ladder *ladder, const struct rung *rung, double sum, double sizes) {
    double rounding = ladder->dtype == SMELT_FLOAT32   ? 0x1p-24
                      : ladder->dtype == SMELT_FLOAT16 ? 0x1p-10
                                                       : 0x1p-7;
    bool narrow = ladder->start && rung->algorithm && strcmp(rung->algorithm, "tensor_core") == 0;
    return fabs(sum) * rounding + sizes * ((narrow ? 0x1p-10 : 0) + (double)ladder->k * 0x1p-24);
}

#define CHECKED_ROWS 7

/* Element j of `row`, which counts the rows of all products, and its terms' sizes. */
static void add_row(const struct ladder *ladder, int64_t row, double *sums, double *sizes) {
    int64_t n = ladder->n, k = ladder->k;
    const float *x = (const float *)smelt_array_data(ladder->x) + row * k;
    const float *y = (const float *)smelt_array_data(ladder->y) + row / ladder->m * k * n;
    for (int64_t j = 0; j < n; j++) sums[j] = sizes[j] = 0;
    for (int64_t t = 0; t < k; t++)
        for (int64_t j = 0; j < n; j++) {
            double term = (double)x[t] * y[t * n + j];
            sums[j] += term;
            sizes[j] += fabs(term);
        }
}

/* False: a wrong element, described in `message`. */
static bool compare(const struct ladder *ladder, const struct rung *rung, const float *c, char *message,
                    size_t size) {
    int64_t n = ladder->n, rows = ladder->products * ladder->m;
    double *sums = calloc(2 * (size_t)n, sizeof *sums), *sizes = sums + n;
    bool right = sums != NULL;
    for (int at = 0; at < CHECKED_ROWS && right; at++) {
        int64_t row = at * (rows - 1) / (CHECKED_ROWS - 1);
        add_row(ladder, row, sums, sizes);
        for (int64_t j = 0; j < n && right; j++) {
            right = fabs(c[row * n + j] - sums[j]) <= allowed(ladder, rung, sums[j], sizes[j]);
            if (!right)
                snprintf(message, size, "wrong result: element (%lld, %lld) is %.9g, expected %.9g",
                         (long long)row, (long long)j, (double)c[row * n + j], sums[j]);
        }
    }
    for (int64_t i = 0; i < rows * n && right; i++)
        if (!isfinite(c[i])) {
            snprintf(message, size, "wrong result: element (%lld, %lld) was not written", (long long)(i / n),
                     (long long)(i % n));
            right = false;
        }
    free(sums);
    return right;
}

/* Memory that the next result of c's size probably gets. */
static smelt_status poison(const struct ladder *ladder) {
    smelt_array *array;
    smelt_status status =
        ladder->start
            ? smelt_array_create_on(ladder->device, ladder->dtype, smelt_array_shape(ladder->c), &array)
            : smelt_array_create(ladder->dtype, smelt_array_shape(ladder->c), &array);
    if (status != SMELT_OK) return status;
    status = smelt_array_fill(array, NAN);
    smelt_array_release(array);
    return status == SMELT_OK ? smelt_array_fill(ladder->c, NAN) : status;
}

bool ladder_is_right(struct ladder *ladder,
                     smelt_status (*run)(const struct rung *rung, smelt_array **result), struct rung *rung) {
    char message[256] = "";
    smelt_array *result = NULL, *here = NULL, *values = NULL;
    smelt_status status = poison(ladder);
    if (status == SMELT_OK) status = run(rung, &result);
    if (status == SMELT_OK) status = smelt_array_to(result, "cpu", ladder->stream, &here);
    if (status == SMELT_OK) status = smelt_array_convert(here, SMELT_FLOAT32, &values);
    if (status == SMELT_OK && !compare(ladder, rung, smelt_array_data(values), message, sizeof message))
        status = BENCH_WRONG_RESULT;
    if (status != SMELT_OK)
        bench_fail(ladder->bench, ladder->job, rung->name, status, *message ? message : smelt_error());
    smelt_array_release(result);
    smelt_array_release(here);
    smelt_array_release(values);
    return status == SMELT_OK;
}
