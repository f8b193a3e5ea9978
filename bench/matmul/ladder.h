/* smelt bench matmul: the kernels of kernels/matmul on each device, next to its library and its peak. */
#ifndef SMELT_BENCH_MATMUL_LADDER_H
#define SMELT_BENCH_MATMUL_LADDER_H

#include "bench/harness.h"

/* One product, or several of one size, on one device. */
struct ladder {
    struct bench *bench;
    const char *device; /* "cpu" or "cuda:0" */
    char job[96];
    smelt_dtype dtype;
    int64_t products, m, n, k;
    smelt_array *a, *b, *c; /* on the device */
    smelt_array *x, *y, *z; /* float32 on the host, of the same values; z for a library's result */
    /* GPUs. */
    smelt_stream *stream;
    smelt_event *start, *end;
    smelt_function *peak, *copy;
    smelt_array *tiles, *peak_output; /* tiles: of 16-bit dtypes, for tensor cores */
    /* A copy, for the speed of the device's memory. */
    smelt_array *from, *to;
};

/* What is timed: a kernel, matmul itself (algorithm NULL), or a library. */
struct rung {
    struct ladder *ladder;
    char name[48];
    const char *algorithm;
    int runs; /* per sample; 0: not chosen yet */
};

/* The seconds of `count` runs on the ladder's device, by one. */
smelt_status ladder_time(struct ladder *ladder, smelt_status (*run)(void *context), void *context, int count,
                         double *seconds);

/* How many runs a sample on a GPU needs: short ones are enqueued more slowly than they run. On CPUs, 1. */
int ladder_runs(struct ladder *ladder, smelt_status (*run)(void *context), void *context);

/* Runs it after filling c and memory of its size with NaN, and compares some rows of the result, a new
 * reference, with sums in double precision; false: reported. */
bool ladder_is_right(struct ladder *ladder,
                     smelt_status (*run)(const struct rung *rung, smelt_array **result), struct rung *rung);

/* rivals.c: whether the device's library takes part, and enters its case and those of the bounds; the names
 * are NULL for what is missing, which is reported. */
struct rivals {
    const char *library, *peak, *bandwidth;
    struct rung rung;
    struct bench_case cases[3];
    int count;
};
void rivals_enter(struct ladder *ladder, struct rivals *rivals);
smelt_status rivals_open(struct ladder *ladder);
void rivals_close(struct ladder *ladder);

#endif
