/* smelt bench matmul: the kernels of kernels/matmul on each device, next to its library and its peak. */
#ifndef SMELT_BENCH_MATMUL_LADDER_H
#define SMELT_BENCH_MATMUL_LADDER_H

#include "bench/harness.h"

/* One product on one device. */
struct ladder {
    struct bench *bench;
    const char *device; /* "cpu" or "cuda:0" */
    char job[64];
    smelt_dtype dtype;
    int64_t m, n, k;
    smelt_array *a, *b, *c; /* on the device */
    smelt_array *x, *y, *z; /* float32 on the host, of the same values; z for a library's result */
    /* GPUs. */
    smelt_stream *stream;
    smelt_event *start, *end;
    smelt_function *peak;
    smelt_array *peak_output;
    /* The host: a copy, for the speed of its memory. */
    smelt_array *from, *to;
};

/* What is timed: a kernel, matmul itself (algorithm NULL), or a library. */
struct rung {
    struct ladder *ladder;
    char name[48];
    const char *algorithm;
};

/* The seconds of `count` runs on the ladder's device, by one. */
smelt_status ladder_time(struct ladder *ladder, smelt_status (*run)(void *context), void *context, int count,
                         double *seconds);

/* Runs it into poisoned c and compares some rows with sums in double precision; false: reported. */
bool ladder_is_right(struct ladder *ladder, smelt_status (*run)(void *context), struct rung *rung);

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
