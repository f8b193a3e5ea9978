/* linalg.h — dense factorisations, solves and least squares that check themselves.
 *
 * Arrays are matrices (…, rows, columns) of float32, float16 or bfloat16 on any device; the dimensions before
 * the last two are a batch, whose matrices are computed together. Halfs are computed in float32 and the
 * results rounded once. float64 arrays are computed on the host, in float64. Inputs may have any strides and
 * are never written. Tapes (autodiff.h) record these functions. docs/linalg.md describes them.
 *
 * Status, ownership, defaults and units are those of smelt.h. Every function may be called from any thread.
 */
#ifndef SMELT_LINALG_H
#define SMELT_LINALG_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Warnings below are logged, unless the call has a report, which then holds the sentence.
 *
 * What happens when a matrix cannot be factorised: a pivot is not positive or is 0, a norm is tiny, an
 * element is NaN or infinite. */
typedef enum smelt_linalg_policy {
    SMELT_LINALG_ERROR = 0, /* the call fails with SMELT_ERROR_HEALTH; the message has the index and value */
    SMELT_LINALG_JITTER,    /* a multiple of the identity is added, ten times more in each attempt; a warning
                               is logged. For matrices with NaN or infinity, as ERROR */
    SMELT_LINALG_FALLBACK,  /* the matrix is computed again on the CPU in float64, by LAPACK if
                               libopenblas.so.0 can be opened, else in plain C; a warning is logged. If that
                               fails too, as ERROR */
    SMELT_LINALG_IGNORE     /* nothing: its results hold NaN or are inaccurate. On a GPU the work is only
                               enqueued; with the other policies the call waits for it */
} smelt_linalg_policy;

/* How sums are computed. */
typedef enum smelt_linalg_precision {
    SMELT_LINALG_NATIVE = 0, /* float32 */
    SMELT_LINALG_EXTENDED /* in integers of eight 16-bit limbs, rounded once; factors have 48 bits while they
                             are computed. For dot products, Cholesky and QR; slow */
} smelt_linalg_precision;

/* What a call found. */
typedef struct smelt_linalg_report {
    int64_t matrices, failed; /* how many there are, and how many could not be factorised at first */
    int64_t matrix;           /* the first of those; -1: none */
    int64_t index;            /* its pivot, column or element that failed; -1: not known */
    double value;             /* … and its value */
    double jitter;            /* the largest that was added */
    int attempts;             /* factorisations, each with more jitter */
    bool fell_back;           /* whether the CPU computed failed matrices */
    char message[512];        /* a sentence: the failure, or what was done about it; "": nothing failed */
    uint64_t reserved[8];
} smelt_linalg_report;

typedef struct smelt_linalg_desc {
    bool upper;     /* cholesky: the upper factor, of a's upper triangle; triangular_solve: a is upper */
    bool unit;      /* triangular_solve: a's diagonal counts as 1 */
    bool transpose; /* triangular_solve: aᵀ stands for a */
    bool right;     /* triangular_solve: x a = b instead of a x = b */
    bool complete;  /* qr: q is (rows, rows) and r (rows, columns) */
    bool symmetric; /* cholesky: refuse matrices whose asymmetry is above 1e-5 of their largest magnitude */
    smelt_linalg_policy on_failure;
    smelt_linalg_precision precision;
    double jitter;      /* the first, relative to the largest magnitude of the matrix; 0: 1e-6 */
    int attempts;       /* at most so many with jitter; 0: 6 */
    double tolerance;   /* pivots of lu and solve, and diagonal elements of r in qr and lstsq, of at most this
                           times the largest magnitude count as failures. 0: exact zeros in solve and lstsq,
                           none in lu and qr */
    const char *device; /* NULL: where the inputs are */
    smelt_stream *stream;        /* of the device; NULL: its default */
    smelt_linalg_report *report; /* filled if given, also on failure */
    smelt_array **flags; /* if given, receives the flags that kernels wrote: float32 (matrices, 16), with the
                            slots of guard.h. Not for float64 and empty arrays: NULL */
    uint64_t reserved[8];
} smelt_linalg_desc;

/* `desc` may be NULL. Each fails with INVALID_ARGUMENT for shapes and dtypes other than those stated,
 * UNSUPPORTED, LIMIT (rows or columns above 2^31 - 1, 2^28 matrices or more), HEALTH as the policy says, and
 * the errors of allocating and running kernels. */

/* *l of a's shape (…, n, n): lower triangular with l lᵀ = a (`upper`: upper triangular with lᵀ l = a), 0 in
 * the other triangle. Only a's triangle of the same name is read, unless `symmetric`. */
SMELT_API smelt_status smelt_cholesky(smelt_array *a, const smelt_linalg_desc *desc, smelt_array **l);

/* a (…, m, n) = q r by Householder reflections, in panels. With k = min(m, n): *q (…, m, k) has orthonormal
 * columns and *r (…, k, n) is upper triangular. `q` may be NULL: only r is computed. */
SMELT_API smelt_status smelt_qr(smelt_array *a, const smelt_linalg_desc *desc, smelt_array **q,
                                smelt_array **r);

/* Partial pivoting: a (…, m, n) with its rows exchanged is l u, l unit lower trapezoidal and u upper
 * trapezoidal. *lu (…, m, n) holds both, l's diagonal omitted. *pivots int32 (…, min(m, n)): row i was
 * exchanged with row pivots[i], in this order. */
SMELT_API smelt_status smelt_lu(smelt_array *a, const smelt_linalg_desc *desc, smelt_array **lu,
                                smelt_array **pivots);

/* *x with a x = b: a (…, n, n), b (…, n, k), or (n) if a has two dimensions. Batches are broadcast. By LU. */
SMELT_API smelt_status smelt_solve(smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc,
                                   smelt_array **x);

/* The same for a triangular a, of which only one triangle is read (`upper`, `unit`, `transpose`, `right`).
 * With `right`, b is (…, k, n). */
SMELT_API smelt_status smelt_triangular_solve(smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc,
                                              smelt_array **x);

/* *x (…, n, k) with the smallest ‖a x − b‖ for a (…, m, n) of full rank and b (…, m, k), or (m); the x of
 * smallest norm if m < n. By QR. */
SMELT_API smelt_status smelt_lstsq(smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc,
                                   smelt_array **x);

/* *result: the sums of x y over the last dimension, which is equal; the others are broadcast. float32 (…).
 * With EXTENDED each is computed exactly in a window of 128 bits below its largest term and rounded once. */
SMELT_API smelt_status smelt_dot(smelt_array *x, smelt_array *y, const smelt_linalg_desc *desc,
                                 smelt_array **result);

/* Residuals, computed in float64 on the host: the largest of a batch. Arrays are of any real dtype. */

/* ‖a − l lᵀ‖ / ‖a‖ (Frobenius), of a's lower triangle; `upper`: ‖a − lᵀ l‖ / ‖a‖ of its upper one. */
SMELT_API smelt_status smelt_cholesky_residual(smelt_array *a, smelt_array *l, bool upper, double *residual);
/* ‖a − q r‖ / ‖a‖. */
SMELT_API smelt_status smelt_qr_residual(smelt_array *a, smelt_array *q, smelt_array *r, double *residual);
/* ‖I − qᵀ q‖. */
SMELT_API smelt_status smelt_orthogonality(smelt_array *q, double *residual);
/* The norm of r below its diagonal, divided by ‖r‖. */
SMELT_API smelt_status smelt_lower_residual(smelt_array *r, double *residual);

#ifdef __cplusplus
}
#endif
#endif
