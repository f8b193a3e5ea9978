/* smelt bench ml: kernels of the families that inference and training consist of, each in the ways in which
 * public projects write them. Shared by its jobs, which run on the CPU. */
#ifndef SMELT_BENCH_ML_ML_H
#define SMELT_BENCH_ML_ML_H

#include "bench/cpu/cpu.h"

#define ML_PYTORCH "PyTorch float32"
#define ML_FLOOR_BYTES "floor: reading the bytes"
#define ML_FLOOR_OPERATIONS "floor: the multiply-adds"

/* ---- Copies of one array that together exceed the caches (rotate.c): launches take them in turn. */

#define ML_MAX_COPIES 64

struct ml_copies {
    smelt_array *arrays[ML_MAX_COPIES];
    int count, turn;
    int64_t bytes; /* of one */
};

/* Takes over the array, of `bytes` bytes. `quick`: two copies. */
smelt_status ml_copies_create(smelt_array *array, int64_t bytes, bool quick, struct ml_copies *copies);
void ml_copies_release(struct ml_copies *copies);
smelt_array *ml_copies_next(struct ml_copies *copies);

/* ---- A way to write a kernel: its function, and its threads. */

struct ml_way {
    const char *name, *function;
    int64_t groups[3], threads[3];
    bool slow; /* a few rounds are enough */
};

/* Variants of one contest: launches whose buffer 0 is the next copy. */
struct ml_variant {
    struct launches launches;
    struct ml_copies *rotated;
};

/* What variants are compared with. */
struct ml_anchor {
    const char *variant;
    struct bench_bar bar;
};

/* Enters each way. The variants must live until contest_run; release their launches in any case. */
void ml_enter(struct contest *contest, struct ml_variant *variants, const struct ml_way *ways, int count,
              const char *file, const char *text, const smelt_dispatch_desc *desc, struct ml_copies *rotated,
              struct ml_anchor anchor);

/* ---- Floors (floor.c). */

/* The time to read the copies' next array. */
void ml_enter_bytes(struct contest *contest, struct ml_copies *copies);

/* The time of as many float32 multiply-adds as the job has (contest->work, in FLOP), on registers, with the
 * instruction set that kernels are compiled for. ml_operations_release in any case. */
struct ml_operations {
    struct launches launches;
    smelt_array *output;
    double work;
};
void ml_enter_operations(struct contest *contest, struct ml_operations *operations);
void ml_operations_release(struct ml_operations *operations);

/* PyTorch's time for the job of bench/ml/peers_ml.py, or a row that says why there is none. Returns what
 * kernels are compared with: PyTorch, at most `most` times its time; otherwise the variant `otherwise`,
 * without a bar. */
struct ml_anchor ml_enter_peer(struct contest *contest, const char *job, double most, const char *otherwise);

/* ---- Block formats of weights (blocks.c). */

struct ml_format {
    const char *name;
    int weights, bytes; /* of a block */
    /* Random contents; weights are at most some 2 in magnitude. */
    void (*fill)(uint8_t *block, uint64_t *random);
    void (*decode)(const uint8_t *block, float *weights);
};

/* NULL: there is none of this name. */
const struct ml_format *ml_format_find(const char *name);

/* Random blocks as an array of bytes, and the weights they stand for. */
smelt_status ml_blocks_create(const struct ml_format *format, int64_t count, smelt_array **blocks,
                              smelt_array **weights);

/* expected[v][row] = sum of weights[row][c] · vectors[v][c]; all float32. */
void ml_expect_products(const smelt_array *weights, const smelt_array *vectors, smelt_array *expected,
                        int64_t rows, int64_t columns, int64_t count);

/* ---- The jobs, each in a file of its kind. */
smelt_status bench_ml_matvec(struct bench *bench, const char *job);
smelt_status bench_ml_matmat(struct bench *bench, const char *job);
smelt_status bench_ml_attention(struct bench *bench, const char *job);
smelt_status bench_ml_softmax(struct bench *bench, const char *job);
smelt_status bench_ml_norm(struct bench *bench, const char *job);

#endif
