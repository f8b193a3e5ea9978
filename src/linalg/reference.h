/* Factorisations of one matrix in float64 on the host: plain loops over row-major memory, the reference of
 * the kernels. reference_lapack has them done by LAPACK where that can be opened. Where a factorisation
 * fails, *failed is the index of the pivot and *value its value; else *failed is -1. */
#ifndef SMELT_LINALG_REFERENCE_H
#define SMELT_LINALG_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

/* a (n, n) becomes its lower factor (upper: of its upper triangle), with zeros in the other triangle. */
void reference_cholesky_factor(double *a, int64_t n, bool upper, int64_t *failed, double *value);

/* a (m, n) becomes its upper trapezoidal factor and, below the diagonal, reflections with tau (min(m, n)). */
void reference_qr_factor(double *a, int64_t m, int64_t n, double *tau);
/* The first k columns of the product of `count` reflections: q (m, k). */
void reference_qr_form(const double *a, int64_t m, int64_t n, const double *tau, int64_t count, double *q,
                       int64_t k);
/* b (m, k) becomes Qᵀ b. */
void reference_qr_apply(const double *a, int64_t m, int64_t n, const double *tau, int64_t count, double *b,
                        int64_t k);

/* a (m, n) becomes L and U; pivots (min(m, n)). Pivots of at most `tolerance` in magnitude fail; < 0: none.
 */
void reference_lu_factor(double *a, int64_t m, int64_t n, int32_t *pivots, double tolerance, int64_t *failed,
                         double *value);

/* x (n, k), which holds b, for a triangle of a (n, n). */
void reference_triangular(const double *a, int64_t n, bool upper, bool transpose, bool unit, double *x,
                          int64_t k);

/* The same by LAPACK; false: it cannot be opened, and nothing was done. */
bool lapack_cholesky(double *a, int64_t n, bool upper, int64_t *failed, double *value);
bool lapack_qr(double *a, int64_t m, int64_t n, double *tau);
bool lapack_lu(double *a, int64_t m, int64_t n, int32_t *pivots, double tolerance, int64_t *failed,
               double *value);

#endif
