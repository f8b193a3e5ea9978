/* smelt bench tensor-ops: shared by its jobs. */
#ifndef SMELT_BENCH_TENSOR_TENSOR_H
#define SMELT_BENCH_TENSOR_TENSOR_H

#include "bench/contest.h"

/* ---- The jobs on CPUs (product.c). */
smelt_status bench_tensor_float_256(struct bench *bench, const char *job);
smelt_status bench_tensor_float_1024(struct bench *bench, const char *job);
smelt_status bench_tensor_float_2048(struct bench *bench, const char *job);
smelt_status bench_tensor_bfloat_1024(struct bench *bench, const char *job);

/* ---- The jobs on GPUs (decode.c, fp8.c). */
smelt_status bench_tensor_int4_1(struct bench *bench, const char *job);
smelt_status bench_tensor_int4_16(struct bench *bench, const char *job);
smelt_status bench_tensor_fp8(struct bench *bench, const char *job);
smelt_status bench_tensor_fp8_scaled(struct bench *bench, const char *job);

#endif
