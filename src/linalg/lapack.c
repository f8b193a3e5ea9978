/* LAPACK's factorisations in float64, from OpenBLAS, which is opened at run time when first needed. Nothing
 * else depends on it: without the library, plain loops compute (reference.c). */
#include "linalg/reference.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libopenblas.so.0"

/* Fortran's calling convention: all arguments are addresses; the length of a string comes last. */
static struct {
    void (*potrf)(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t length);
    void (*geqrf)(const int *m, const int *n, double *a, const int *lda, double *tau, double *work,
                  const int *size, int *info);
    void (*getrf)(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
} lapack;

static void open_library(void) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    void *found[3] = {dlsym(library, "dpotrf_"), dlsym(library, "dgeqrf_"), dlsym(library, "dgetrf_")};
    memcpy(&lapack.potrf, &found[0], sizeof found[0]);
    memcpy(&lapack.geqrf, &found[1], sizeof found[1]);
    memcpy(&lapack.getrf, &found[2], sizeof found[2]);
}

static bool is_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return lapack.potrf && lapack.geqrf && lapack.getrf;
}

/* to (columns, rows) is the transpose of from (rows, columns). */
static void transpose(const double *from, int64_t rows, int64_t columns, double *to) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
}

bool lapack_cholesky(double *a, int64_t n, bool upper, int64_t *failed, double *value) {
    if (!is_open() || n < 1) return false;
    int size = (int)n, info = 0;
    /* By columns, the triangles change their names. */
    lapack.potrf(upper ? "L" : "U", &size, a, &size, &info, 1);
    *failed = info > 0 ? info - 1 : -1;
    if (info > 0) *value = a[(info - 1) * (n + 1)];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) a[upper ? j * n + i : i * n + j] = 0;
    return info >= 0;
}

bool lapack_qr(double *a, int64_t m, int64_t n, double *tau) {
    if (!is_open() || m < 1 || n < 1) return false;
    int rows = (int)m, columns = (int)n, size = 64 * columns, info = -1;
    double *flipped = malloc((size_t)(m * n) * sizeof *flipped), *work = malloc((size_t)size * sizeof *work);
    if (flipped && work) {
        transpose(a, m, n, flipped);
        lapack.geqrf(&rows, &columns, flipped, &rows, tau, work, &size, &info);
        if (info == 0) transpose(flipped, n, m, a);
    }
    free(flipped);
    free(work);
    return info == 0;
}

bool lapack_lu(double *a, int64_t m, int64_t n, int32_t *pivots, double tolerance, int64_t *failed,
               double *value) {
    if (!is_open() || m < 1 || n < 1) return false;
    int rows = (int)m, columns = (int)n, info = -1;
    int64_t rank = m < n ? m : n;
    double *flipped = malloc((size_t)(m * n) * sizeof *flipped);
    if (flipped) {
        transpose(a, m, n, flipped);
        lapack.getrf(&rows, &columns, flipped, &rows, pivots, &info);
        if (info >= 0) transpose(flipped, n, m, a);
    }
    free(flipped);
    if (info < 0) return false;
    *failed = -1;
    for (int64_t j = rank - 1; j >= 0; j--) {
        pivots[j]--;
        if (!(fabs(a[j * n + j]) <= tolerance)) continue;
        *failed = j;
        *value = a[j * n + j];
    }
    return true;
}
