/* The two sides of a system of equations: their shapes, and where they lie. */
#ifndef SMELT_LINALG_SIDES_H
#define SMELT_LINALG_SIDES_H

#include "linalg/dense.h"
#include "linalg/health.h"

/* Arrays of a call, with equal batches. A vector b is a matrix of one column. */
struct sides {
    smelt_array *a, *b; /* views or copies */
    bool vector;
};
/* `right`: b stands left of a, so its columns must match. */
smelt_status sides_begin(const char *name, smelt_array *a, smelt_array *b, bool right, struct sides *s);
void sides_end(struct sides *s);

/* LU of `a` in progress (lu.c): lu (batch, m, n) and pivots int32 (batch, min(m, n)). */
struct lu_job {
    smelt_array *lu, *pivots, *panel, *solved;
    double tolerance; /* < 0: no pivot is too small */
};
extern const struct dense_method lu_method;
smelt_status lu_create(const struct dense *d, struct lu_job *job);
void lu_release(struct lu_job *job);
smelt_status lu_compute(struct dense *d, void *job);

/* Exchanges rows first … first + count - 1 of w (batch, rows, columns), except columns skip …. */
struct exchange_size {
    uint32_t first, count, columns, skip, skipped, reverse;
    int64_t w_matrix, w_row, pivots_matrix;
};
smelt_status dense_exchange(const struct dense *d, smelt_array *w, smelt_array *pivots,
                            const struct exchange_size *size);

#endif
