#include "linalg/reference.h"

#include <math.h>
#include <string.h>

static double product(const double *x, int64_t x_step, const double *y, int64_t y_step, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i * x_step] * y[i * y_step];
    return sum;
}

void reference_cholesky_factor(double *a, int64_t n, bool upper, int64_t *failed, double *value) {
    /* Element (i, j), i >= j, of the lower factor; of the transposed upper one. */
    int64_t row = upper ? 1 : n, column = upper ? n : 1;
    *failed = -1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            double left = a[i * row + j * column] - product(a + i * row, column, a + j * row, column, j);
            if (i == j && !(left > 0 && left < INFINITY)) {
                *failed = j;
                *value = left;
                return;
            }
            a[i * row + j * column] = i == j ? sqrt(left) : left / a[j * row + j * column];
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) a[i * row + j * column] = 0;
}

/* A column below the diagonal, scaled so that its squares neither overflow nor vanish. */
static double norm_of(const double *x, int64_t step, int64_t count) {
    double largest = 0, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(x[i * step])) return NAN;
        largest = fmax(largest, fabs(x[i * step]));
    }
    if (largest == 0 || isinf(largest)) return largest;
    for (int64_t i = 0; i < count; i++) sum += x[i * step] / largest * (x[i * step] / largest);
    return largest * sqrt(sum);
}

/* b (rows, k) becomes (I - tau v vᵀ) b, with v[0] = 1 and the rest at `v`. */
static void reflect(const double *v, int64_t step, double tau, int64_t rows, double *b, int64_t b_row,
                    int64_t k) {
    for (int64_t c = 0; c < k; c++) {
        double sum = b[c] + product(v, step, b + b_row + c, b_row, rows - 1);
        b[c] -= tau * sum;
        for (int64_t i = 1; i < rows; i++) b[i * b_row + c] -= tau * sum * v[(i - 1) * step];
    }
}

void reference_qr_factor(double *a, int64_t m, int64_t n, double *tau) {
    int64_t rank = m < n ? m : n;
    for (int64_t j = 0; j < rank; j++) {
        double *top = a + j * n + j, below = norm_of(top + n, n, m - j - 1);
        tau[j] = 0;
        if (below == 0) continue;
        double beta = -copysign(norm_of(top, n, m - j), *top);
        tau[j] = (beta - *top) / beta;
        for (int64_t i = 1; i < m - j; i++) top[i * n] /= *top - beta;
        *top = beta;
        reflect(top + n, n, tau[j], m - j, top + 1, n, n - j - 1);
    }
}

void reference_qr_form(const double *a, int64_t m, int64_t n, const double *tau, int64_t count, double *q,
                       int64_t k) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++) q[i * k + j] = i == j;
    for (int64_t j = count - 1; j >= 0; j--) reflect(a + (j + 1) * n + j, n, tau[j], m - j, q + j * k, k, k);
}

void reference_qr_apply(const double *a, int64_t m, int64_t n, const double *tau, int64_t count, double *b,
                        int64_t k) {
    for (int64_t j = 0; j < count; j++) reflect(a + (j + 1) * n + j, n, tau[j], m - j, b + j * k, k, k);
}

void reference_lu_factor(double *a, int64_t m, int64_t n, int32_t *pivots, double tolerance, int64_t *failed,
                         double *value) {
    int64_t rank = m < n ? m : n;
    *failed = -1;
    for (int64_t j = 0; j < rank; j++) {
        int64_t best = j;
        for (int64_t i = j + 1; i < m; i++)
            if (fabs(a[i * n + j]) > fabs(a[best * n + j])) best = i;
        pivots[j] = (int32_t)best;
        for (int64_t c = 0; c < n && best != j; c++) {
            double moved = a[j * n + c];
            a[j * n + c] = a[best * n + c];
            a[best * n + c] = moved;
        }
        double pivot = a[j * n + j];
        if (*failed < 0 && (fabs(pivot) <= tolerance || !isfinite(pivot))) {
            *failed = j;
            *value = pivot;
        }
        for (int64_t i = j + 1; i < m; i++) {
            double factor = pivot != 0 ? a[i * n + j] / pivot : a[i * n + j];
            a[i * n + j] = factor;
            for (int64_t c = j + 1; c < n; c++) a[i * n + c] -= factor * a[j * n + c];
        }
    }
}

void reference_triangular(const double *a, int64_t n, bool upper, bool transpose, bool unit, double *x,
                          int64_t k) {
    bool forward = upper == transpose;
    int64_t row = transpose ? 1 : n, column = transpose ? n : 1;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = forward ? step : n - 1 - step;
        for (int64_t done = 0; done < step; done++) {
            int64_t j = forward ? done : n - 1 - done;
            for (int64_t c = 0; c < k; c++) x[i * k + c] -= a[i * row + j * column] * x[j * k + c];
        }
        for (int64_t c = 0; c < k && !unit; c++) x[i * k + c] /= a[i * row + i * column];
    }
}
