/* smelt bench linalg: factorisations and solves beside LAPACK and PyTorch. Shared by its parts. */
#ifndef SMELT_BENCH_LINALG_LINALG_H
#define SMELT_BENCH_LINALG_LINALG_H

#include "bench/cpu/cpu.h"
#include "smelt/linalg.h"

enum problem_kind { CHOLESKY = 1, QR, LU, SOLVE, TRIANGULAR };

/* One problem: a batch of matrices. SOLVE has a right-hand side b of a's shape, TRIANGULAR reads a's lower
 * triangle. */
struct problem {
    enum problem_kind kind;
    int64_t batch, rows, columns;
    const float *a, *b; /* row-major */
};

/* What a method computed, each matrix in memory of its own, row-major or (LAPACK) by columns. QR: first is q,
 * second r. LU: l and u in first, LAPACK's pivots, from 0, in pivots. Else only first. */
struct answer {
    float *first, *second;
    int32_t *pivots;
    bool by_columns; /* LAPACK read a as its transpose, and b as well */
};

/* Multiplies random vectors by both sides of what must be equal, in float64. False: they differ by more than
 * rounding can explain; `message` says how. Cholesky: a = l lᵀ, the lower triangle of first (of a symmetric
 * matrix by columns: the upper). */
bool answer_check(const struct problem *problem, const struct answer *answer, char *message, size_t size);

/* ---- LAPACK, from OpenBLAS. */

/* False: it is not there. */
bool lapack_open(void);
/* Copies of a and b, which LAPACK overwrites, as row-major results need them; room for q, r and work. */
struct lapack_job;
struct lapack_job *lapack_create(const struct problem *problem);
void lapack_free(struct lapack_job *job);
/* Copies the inputs anew: not timed. */
void lapack_prepare(struct lapack_job *job);
/* Batches are dealt to the team's threads, whose calls then run on one thread each; a single matrix gets all
 * of OpenBLAS's threads. False: a routine failed. */
bool lapack_run(struct lapack_job *job);
/* Valid until the next run. */
struct answer lapack_answer(struct lapack_job *job);

/* ---- accuracy.c */
smelt_status bench_linalg_accuracy(struct bench *bench, const char *name);
smelt_status bench_linalg_extended(struct bench *bench, const char *name);
/* A symmetric positive definite matrix whose eigenvalues fall evenly, by their logarithms, from 1 to
 * 1 / condition; row-major, n × n. */
void fill_with_condition(double *a, int64_t n, double condition, uint64_t seed);

/* Seconds on the clock by which variants are compared: processor time of this process if smelt has one
 * thread, since other work on the machine does not count then; else elapsed time. */
double linalg_now(void);

#endif
