/* Dense factorisations in progress: their arrays, and the launches of kernels/linalg/dense_*.metal. */
#ifndef SMELT_LINALG_DENSE_H
#define SMELT_LINALG_DENSE_H

#include "array/array.h"
#include "smelt/linalg.h"

#define DENSE_BLOCK 64 /* most rows of a block; of the kernels, too */
#define DENSE_LEAF 8   /* columns factorised together within a panel */
#define FLAG_COUNT 16
#define MOST_MATRICES (1 << 28) /* too many: kernels index all flags with 32 bits */
#define STAT_COUNT 4

/* Codes in slot 13 of the flags; the kernels have the same. */
enum dense_code {
    CODE_NOT_FINITE = 4,
    CODE_TINY = 5, /* a norm or pivot within the tolerance */
    CODE_NOT_POSITIVE = 6,
    CODE_ASYMMETRIC = 7
};

/* One call. Matrices are dense float32 on `device`. */
struct dense {
    const char *name; /* of the function, for messages */
    smelt_linalg_desc desc;
    const char *device;
    bool host;
    int64_t batch, rows, columns;
    smelt_shape shape;        /* of a, as given */
    smelt_dtype dtype;        /* of the results */
    smelt_array *a;           /* (batch, rows, columns) */
    smelt_array *wide, *rest; /* limbs.c: a in float64, and what remains of it in a */
    smelt_array *flags;       /* (batch, FLAG_COUNT) */
    smelt_array *stats;       /* uint32 (batch, STAT_COUNT): dense_copy.metal */
    smelt_array *jitter;      /* (batch), or NULL */
    float *shift;             /* the same on the host */
    bool measured;            /* stats have been */
};

/* Reads descriptor and matrix: checks, converts and moves. Call dense_end in any case. `a` of float64 stays
 * as it is, on the host. */
smelt_status dense_begin(const char *name, smelt_array *a, const smelt_linalg_desc *desc, struct dense *d);
void dense_end(struct dense *d);

/* Flags and statistics of the matrices. */
smelt_status dense_create_flags(struct dense *d);

/* `array` as dense float32 (or float64, if it is) on the call's device. */
smelt_status dense_place(const struct dense *d, smelt_array *array, smelt_array **result);
/* A new float32 array on the device. */
smelt_status dense_create(const struct dense *d, smelt_dtype dtype, int64_t batch, int64_t rows,
                          int64_t columns, smelt_array **array);
/* Elements from row to row of a matrix of work, of `columns`. On the host, rows that begin at multiples of a
 * cache's period would lie in few of its sets. */
int64_t dense_pitch(const struct dense *d, int64_t columns);
/* Gives a result its shape (dimensions before the last two as a's) and dtype; takes the reference. */
smelt_status dense_finish(const struct dense *d, smelt_array *made, int64_t rows, int64_t columns,
                          smelt_dtype dtype, smelt_array **result);

/* Writes a matrix of doubles to number `matrix` of a result. */
smelt_status dense_store(const struct dense *d, smelt_array *to, int64_t matrix, const double *values);

/* ---- Launches (launch.c). Structures as in the kernels. */

struct copy_size {
    uint32_t rows, columns, transpose, triangle, clear, jitter, measure, first_row;
    int64_t from_matrix, from_first, from_row, to_matrix, to_first, to_row;
};
/* clear */
enum { KEEPS, CLEARS, STORES_NOTHING };
enum { TRIANGLE_ALL, TRIANGLE_UPPER, TRIANGLE_LOWER };
smelt_status dense_copy(const struct dense *d, smelt_array *from, smelt_array *to,
                        const struct copy_size *size);
/* Clears flags and statistics. */
smelt_status dense_clear(const struct dense *d);
/* Every matrix of `to` (batch, m, n), not empty, becomes the identity. */
smelt_status dense_identity(const struct dense *d, smelt_array *to);
smelt_status dense_symmetry(const struct dense *d);
/* Measures a, or one of its triangles, if that was not done. */
smelt_status dense_measure(struct dense *d, uint32_t triangle);

struct cholesky_size {
    uint32_t n, first, size, clear, jitter, pad;
    int64_t in_matrix, in_first, in_row, in_column, out_matrix, out_first, out_row, out_column;
};
smelt_status dense_cholesky_block(const struct dense *d, smelt_array *a, smelt_array *out,
                                  const struct cholesky_size *size);

/* On GPUs: factorises a whole block of `work` into `corners`, and replaces the rows right of the block by
 * those of U, which it also writes to `x`, negated. */
struct row_size {
    struct cholesky_size corner;
    uint32_t columns, pad;
    int64_t x_matrix, x_first, x_row;
};
smelt_status dense_cholesky_row(const struct dense *d, smelt_array *work, smelt_array *corners,
                                smelt_array *x, const struct row_size *size);

struct solve_size {
    uint32_t size, columns, diagonal, store, parts, silent;
    int64_t t_matrix, t_first, t_row, t_column, t_part, b_matrix, b_first, b_row, b_part, x_matrix, x_first,
        x_row, scale_matrix, scale_first, scale_step;
};
enum { DIAGONAL_DIVIDES, DIAGONAL_UNIT, DIAGONAL_SCALES };
smelt_status dense_solve_block(const struct dense *d, smelt_array *t, smelt_array *b, smelt_array *x,
                               smelt_array *scale, const struct solve_size *size);

struct product_size {
    uint32_t rows, columns, depth, upper, adds, tile_rows, tile_columns, chunk;
    int64_t a_matrix, a_first, a_row, a_column, b_matrix, b_first, b_row, b_column, c_matrix, c_first, c_row,
        c_part;
};
enum { SETS, ADDS, SUBTRACTS };
/* C = A B, C += A B or (on the host) C -= A B for each of `batch` matrices. With `chunk`, on GPUs only,
 * chunks of the depth yield separate results, c_part apart. */
smelt_status dense_product(const struct dense *d, int64_t batch, smelt_array *a, smelt_array *b,
                           smelt_array *c, const struct product_size *size);

struct leaf_size {
    uint32_t rows, first, columns, leaf, previous, rank;
    float tolerance;
    uint32_t pad;
    int64_t p_matrix, p_first, w_matrix, w_row, pivots_matrix;
};
#define NO_LEAF UINT32_MAX

/* ---- By halves, on the host (halves.c). */

/* Part of each matrix: element (i, j) is at first + i * row + j * column. Strides may be negative. */
struct dense_part {
    smelt_array *array;
    int64_t matrix, first, row, column;
};
/* The part from (i, j) on. */
struct dense_part dense_part_from(struct dense_part part, int64_t i, int64_t j);
/* Where n rows are cut in two. */
int64_t halves_cut(int64_t n, int64_t block);
/* x (n, k) becomes T⁻¹ x for a lower triangle; x.column is 1. */
smelt_status halves_solve(const struct dense *d, struct dense_part triangle, bool unit, struct dense_part x,
                          int64_t n, int64_t k);
/* c (rows, columns) -= a (rows, depth) b; c.column is 1. `upper`: what is below c's diagonal may be anything
 * after. */
smelt_status halves_subtract(const struct dense *d, struct dense_part a, struct dense_part b,
                             struct dense_part c, int64_t rows, int64_t columns, int64_t depth, bool upper);

/* ---- Triangles (triangular.c). */

/* x (batch, n, k), which holds b, becomes T⁻¹ b for a triangle of t (batch, n, n). */
smelt_status dense_triangular(const struct dense *d, smelt_array *t, int64_t t_row, int64_t n, bool upper,
                              bool transpose, bool unit, smelt_array *x, int64_t k);

/* ---- A factorisation a = q r by panels (qr_panels.c). */

struct panels {
    smelt_array *w;     /* (batch, m, n): R on and above the diagonal */
    smelt_array *v;     /* (batch, rank rounded up, m): the reflections, transposed */
    smelt_array *tau;   /* (batch, rank) */
    smelt_array *grams; /* Vᵀ V of each panel, as parts to be added */
    smelt_array *turns, *sums, *solved;
    int64_t m, n, rank, width, parts, count;
    int64_t most; /* given: columns that panels_apply will take, if more than n and m */
};
/* Factorises `a` (batch, m, n), whose statistics are known. Release it in any case. */
smelt_status panels_factor(struct dense *d, smelt_array *a, int64_t m, int64_t n, double tolerance,
                           struct panels *p);
/* b (batch, m, k) becomes Q b, or Qᵀ b. Columns before a panel's first row, of Q b, are known to be unchanged
 * if `identity`: b was I. */
smelt_status panels_apply(const struct dense *d, const struct panels *p, bool transpose, bool identity,
                          smelt_array *b, int64_t k);
void panels_release(struct panels *p);

#endif
