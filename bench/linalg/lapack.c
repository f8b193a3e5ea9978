/* LAPACK's routines in float32, from OpenBLAS, opened at run time where it is installed. LAPACK stores
 * matrices by columns: a symmetric matrix is the same, other square ones are read as their transposes, and QR
 * gets a transposed copy, since its shape matters. */
#include "bench/cpu/openblas.h"
#include "bench/cpu/threads.h"
#include "bench/linalg/linalg.h"

#include <stdlib.h>
#include <string.h>

/* Fortran's calling convention: all arguments are addresses; the lengths of strings come last. */
static struct {
    void (*potrf)(const char *, const int *, float *, const int *, int *, size_t);
    void (*geqrf)(const int *, const int *, float *, const int *, float *, float *, const int *, int *);
    void (*orgqr)(const int *, const int *, const int *, float *, const int *, const float *, float *,
                  const int *, int *);
    void (*getrf)(const int *, const int *, float *, const int *, int *, int *);
    void (*gesv)(const int *, const int *, float *, const int *, int *, float *, const int *, int *);
    void (*trtrs)(const char *, const char *, const char *, const int *, const int *, const float *,
                  const int *, float *, const int *, int *, size_t, size_t, size_t);
} lapack;

struct lapack_job {
    struct problem problem;
    int64_t elements, middle; /* of one matrix; columns of q */
    float *a, *b, *r, *tau, *work;
    int32_t *pivots;
    int work_size; /* of one matrix */
    int *info;     /* by matrix */
};

bool lapack_open(void) {
    void *const found[] = {openblas_function("spotrf_"), openblas_function("sgeqrf_"),
                           openblas_function("sorgqr_"), openblas_function("sgetrf_"),
                           openblas_function("sgesv_"),  openblas_function("strtrs_")};
    for (int i = 0; i < 6; i++)
        if (!found[i]) return false;
    memcpy(&lapack.potrf, &found[0], sizeof found[0]);
    memcpy(&lapack.geqrf, &found[1], sizeof found[1]);
    memcpy(&lapack.orgqr, &found[2], sizeof found[2]);
    memcpy(&lapack.getrf, &found[3], sizeof found[3]);
    memcpy(&lapack.gesv, &found[4], sizeof found[4]);
    memcpy(&lapack.trtrs, &found[5], sizeof found[5]);
    return true;
}

struct lapack_job *lapack_create(const struct problem *p) {
    struct lapack_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    job->problem = *p;
    job->elements = p->rows * p->columns;
    job->middle = p->rows < p->columns ? p->rows : p->columns;
    job->work_size = 64 * (int)p->columns;
    size_t batch = (size_t)p->batch, all = batch * (size_t)job->elements;
    job->a = malloc(all * sizeof(float));
    job->b = malloc((p->b ? all : 1) * sizeof(float));
    job->r = calloc(batch * (size_t)(job->middle * p->columns), sizeof(float));
    job->tau = malloc(batch * (size_t)job->middle * sizeof(float));
    job->work = malloc(batch * (size_t)job->work_size * sizeof(float));
    job->pivots = malloc(batch * (size_t)job->middle * sizeof(int32_t));
    job->info = calloc(batch, sizeof(int));
    if (job->a && job->b && job->r && job->tau && job->work && job->pivots && job->info) return job;
    lapack_free(job);
    return NULL;
}

void lapack_free(struct lapack_job *job) {
    if (!job) return;
    free(job->a);
    free(job->b);
    free(job->r);
    free(job->tau);
    free(job->work);
    free(job->pivots);
    free(job->info);
    free(job);
}

void lapack_prepare(struct lapack_job *job) {
    const struct problem *p = &job->problem;
    int64_t m = p->rows, n = p->columns;
    size_t bytes = (size_t)(p->batch * job->elements) * sizeof(float);
    if (p->b) memcpy(job->b, p->b, bytes);
    if (p->kind != QR) {
        memcpy(job->a, p->a, bytes);
        return;
    }
    for (int64_t x = 0; x < p->batch; x++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) job->a[x * m * n + j * m + i] = p->a[x * m * n + i * n + j];
}

/* R, of which LAPACK's q takes the place. */
static void take_r(const float *a, int64_t m, int64_t k, int64_t n, float *r) {
    for (int64_t j = 0; j < n; j++)
        memcpy(r + j * k, a + j * m, (size_t)(j + 1 < k ? j + 1 : k) * sizeof(float));
}

static void run_one(void *context, int64_t index) {
    struct lapack_job *job = context;
    const struct problem *p = &job->problem;
    int m = (int)p->rows, n = (int)p->columns, k = (int)job->middle, *info = &job->info[index];
    float *a = job->a + index * job->elements, *b = job->b + (p->b ? index * job->elements : 0),
          *tau = job->tau + index * k, *work = job->work + index * job->work_size;
    int32_t *pivots = job->pivots + index * k;
    switch (p->kind) {
    case CHOLESKY:
        lapack.potrf("U", &n, a, &n, info, 1);
        return;
    case QR:
        lapack.geqrf(&m, &n, a, &m, tau, work, &job->work_size, info);
        take_r(a, m, k, n, job->r + index * k * n);
        if (!*info) lapack.orgqr(&m, &k, &k, a, &m, tau, work, &job->work_size, info);
        return;
    case LU:
        lapack.getrf(&m, &n, a, &m, pivots, info);
        return;
    case SOLVE:
        lapack.gesv(&m, &n, a, &m, pivots, b, &m, info);
        return;
    case TRIANGULAR:
        lapack.trtrs("U", "N", "N", &m, &n, a, &m, b, &m, info, 1, 1, 1);
    }
}

bool lapack_run(struct lapack_job *job) {
    bool single = job->problem.batch == 1;
    openblas_set_threads(single ? team_size() : 1);
    if (single)
        run_one(job, 0);
    else
        team_run(run_one, job, job->problem.batch);
    for (int64_t i = 0; i < job->problem.batch; i++)
        if (job->info[i]) return false;
    return true;
}

struct answer lapack_answer(struct lapack_job *job) {
    const struct problem *p = &job->problem;
    for (int64_t i = 0; p->kind == LU && i < p->batch * job->middle; i++) job->pivots[i]--;
    return (struct answer){.first = p->b ? job->b : job->a,
                           .second = job->r,
                           .pivots = job->pivots,
                           .by_columns = p->kind != CHOLESKY};
}
