/* Dense factorisations and solves against float64 references: residuals on random matrices of awkward sizes,
 * batches, strides, dtypes; results are allocated in memory that held NaN. */
#include "graph.h"

#include "linalg/reference.h"
#include "smelt/linalg.h"

#include <float.h>
#include <malloc.h>

#define EPSILON 0x1p-24

/* Freed memory is filled, so that what a kernel leaves unwritten is seen. */
static int set_up(void **state) {
    (void)state;
    mallopt(M_PERTURB, 0x81);
    return 0;
}

static const char *device_at(int i) {
    static const char *const names[] = {NULL, "cpu-scalar"};
    return i ? names[i] : test_device();
}

/* The scalar engine runs the smaller sizes only, and fewer of them in make check, where `cpu` runs quick
 * code, which that engine generates. */
#define DEVICES(size) \
    ((size) <= (getenv("SMELT_TEST_FULL") ? 130 : 33) && strcmp(test_device(), "cpu") == 0 ? 2 : 1)

static smelt_array *new_matrices(smelt_dtype dtype, int64_t batch, int64_t m, int64_t n, enum layout layout) {
    smelt_shape shape = {.ndim = 3, .size = {batch, m, n}};
    if (batch < 0) shape = (smelt_shape){.ndim = 2, .size = {m, n}};
    return random_array(dtype, shape, layout, -1, 1);
}

/* A symmetric positive definite matrix: M Mᵀ / n + shift, of the transposed layout. */
static smelt_array *new_definite(smelt_dtype dtype, int64_t batch, int64_t n, double shift) {
    smelt_array *m = new_matrices(SMELT_FLOAT64, batch, n, n, CONTIGUOUS), *a, *view;
    const double *x = (const double *)m->data;
    smelt_shape shape = m->shape;
    OK(smelt_array_create(dtype, shape, &a));
    for (int64_t b = 0; b < (batch < 0 ? 1 : batch); b++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = i == j ? shift : 0;
                for (int64_t k = 0; k < n; k++)
                    sum += x[(b * n + i) * n + k] * x[(b * n + j) * n + k] / (double)n;
                element_store(dtype, a->data + ((b * n + i) * n + j) * (int64_t)smelt_dtype_bytes(dtype),
                              element_of_real(sum));
            }
    int64_t strides[3] = {n * n, 1, n};
    OK(smelt_array_view(a, shape, batch < 0 ? strides + 1 : strides, 0, &view));
    smelt_array_release(a);
    smelt_array_release(m);
    return view;
}

static void to_host(smelt_array **array) {
    OK(test_to_host(array));
}

#define BELOW(value, bound, ...)                                                                 \
    do {                                                                                         \
        double below_value = (value), below_bound = (bound);                                     \
        if (!(below_value <= below_bound)) {                                                     \
            print_message(__VA_ARGS__);                                                          \
            FAIL_TEST(": line %d: %s is %g, expected at most %g", __LINE__, #value, below_value, \
                      below_bound);                                                              \
        }                                                                                        \
    } while (0)

static const int sizes[] = {1, 2, 31, 33, 64, 65, 127, 130, 256, 257, 500};
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

/* ---- Cholesky. */

static void cholesky_multiplies_to_its_matrix(void **state) {
    (void)state;
    for (int s = 0; s < SIZES; s++)
        for (int device = 0; device < DEVICES(sizes[s]); device++)
            for (int upper = 0; upper < 2; upper++) {
                int64_t n = sizes[s], batch = n <= 130 ? 3 : -1;
                smelt_array *a = new_definite(SMELT_FLOAT32, batch, n, 0.5), *l;
                struct keepsake before = remember(a);
                OK(smelt_cholesky(
                    a, &(smelt_linalg_desc){.upper = upper, .symmetric = true, .device = device_at(device)},
                    &l));
                assert_unchanged(&before);
                assert_shape(l, a->shape);
                to_host(&l);
                double residual, outside = 0;
                OK(smelt_cholesky_residual(a, l, upper, &residual));
                BELOW(residual, 4 * EPSILON * sqrt((double)n) + EPSILON,
                      "cholesky of %lld, upper %d, device %d", (long long)n, upper, device);
                double *values = numbers_of(l);
                for (int64_t i = 0; i < l->size; i++)
                    if (upper ? i % n < i / n % n : i % n > i / n % n)
                        outside = fmax(outside, fabs(values[i]));
                BELOW(outside, 0, "cholesky of %lld", (long long)n);
                free(values);
                smelt_array_release(a);
                smelt_array_release(l);
            }
}

static void put(smelt_array *a, int64_t offset, float value) {
    ((float *)a->data)[offset] = value;
}

static void refused(smelt_status status, const char *words) {
    if (status != SMELT_ERROR_HEALTH) FAIL_TEST("status %d, expected HEALTH (%s)", status, smelt_error());
    if (!strstr(smelt_error(), words)) FAIL_TEST("'%s' lacks '%s'", smelt_error(), words);
}

static char logged[512];
static void keep_log(smelt_log_level level, const char *line, void *context) {
    (void)level, (void)context;
    snprintf(logged, sizeof logged, "%s", line);
}

/* An indefinite matrix: identity with -0.25 at one place of the diagonal of one matrix of the batch. */
static smelt_array *new_indefinite(int64_t n, int64_t batch, int64_t which, int64_t pivot) {
    smelt_array *a;
    OK(smelt_array_create(SMELT_FLOAT32, (smelt_shape){.ndim = 3, .size = {batch, n, n}}, &a));
    OK(smelt_array_fill(a, 0));
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < n; i++) put(a, (b * n + i) * n + i, b == which && i == pivot ? -0.25F : 1);
    return a;
}

static void cholesky_says_which_pivot_fails(void **state) {
    (void)state;
    for (int large = 0; large < 2; large++) {
        int64_t n = large ? 150 : 20, pivot = large ? 70 : 7;
        smelt_array *a = new_indefinite(n, 4, 2, pivot), *l = NULL, *flags = NULL;
        smelt_linalg_report report;
        char words[96];
        snprintf(words, sizeof words,
                 "cholesky: matrix 2 of 4: pivot %d is -0.25, expected a positive number: the matrix is not",
                 (int)pivot);
        refused(smelt_cholesky(a, &(smelt_linalg_desc){.report = &report, .device = test_device()}, &l),
                words);
        assert_null(l);
        assert_int_equal(report.failed, 1);
        assert_int_equal(report.matrix, 2);
        assert_int_equal(report.index, pivot);
        assert_true(report.value == -0.25);
        /* Ignored: the others are right, and the flags tell. */
        OK(smelt_cholesky(
            a,
            &(smelt_linalg_desc){.on_failure = SMELT_LINALG_IGNORE, .flags = &flags, .device = test_device()},
            &l));
        to_host(&l);
        to_host(&flags);
        const float *f = (const float *)flags->data, *values = (const float *)l->data;
        for (int b = 0; b < 4; b++) {
            assert_true(f[b * 16 + 15] == (b != 2));
            assert_true(f[b * 16 + 13] == (b == 2 ? 6 : 0));
        }
        assert_true(f[2 * 16 + 8] == (float)pivot && f[2 * 16 + 14] == -0.25F);
        for (int64_t i = 0; i < n * n; i++) assert_true(values[3 * n * n + i] == (float)(i / n == i % n));
        smelt_array_release(flags);
        smelt_array_release(l);
        /* Jitter: only the one matrix gets it. */
        smelt_set_log(keep_log, NULL);
        OK(smelt_cholesky(
            a,
            &(smelt_linalg_desc){.on_failure = SMELT_LINALG_JITTER, .jitter = 0.003, .device = test_device()},
            &l));
        smelt_set_log(NULL, NULL);
        assert_non_null(strstr(logged, "0.3 was added to the diagonal"));
        smelt_array_release(l);
        OK(smelt_cholesky(a,
                          &(smelt_linalg_desc){.on_failure = SMELT_LINALG_JITTER,
                                               .jitter = 0.003,
                                               .report = &report,
                                               .device = test_device()},
                          &l));
        to_host(&l);
        values = (const float *)l->data;
        assert_int_equal(report.attempts, 3);
        assert_true(fabs(report.jitter - 0.3) < 1e-6);
        assert_true(fabs((double)values[2 * n * n + pivot * (n + 1)] - sqrt(0.05)) < 1e-6);
        assert_true(values[3 * n * n] == 1);
        assert_non_null(strstr(report.message, "0.3 was added to the diagonal"));
        smelt_array_release(l);
        /* Not by 2 attempts. */
        refused(smelt_cholesky(a,
                               &(smelt_linalg_desc){.on_failure = SMELT_LINALG_JITTER,
                                                    .jitter = 0.003,
                                                    .attempts = 2,
                                                    .device = test_device()},
                               &l),
                "matrix 2 of 4: pivot");
        /* The CPU cannot either. */
        smelt_set_log(keep_log, NULL);
        refused(
            smelt_cholesky(
                a, &(smelt_linalg_desc){.on_failure = SMELT_LINALG_FALLBACK, .device = test_device()}, &l),
            words);
        smelt_set_log(NULL, NULL);
        smelt_array_release(a);
    }
}

/* Definite in float64, not in float32: [1, 1; 1, 1 + 2^-23] times 2^20 in a larger identity, minus rounding.
 */
static void cholesky_falls_back_to_float64(void **state) {
    (void)state;
    for (int large = 0; large < 2; large++) {
        int64_t n = large ? 100 : 3;
        smelt_array *a, *l;
        smelt_linalg_report report;
        OK(smelt_array_create(SMELT_FLOAT32, (smelt_shape){.ndim = 2, .size = {n, n}}, &a));
        OK(smelt_array_fill(a, 0));
        for (int64_t i = 0; i < n; i++) put(a, i * (n + 1), 1);
        /* l = [1, 0, 0; 1/3, …]: 1/3 rounded up, squared, exceeds the diagonal in float32 by less than an
         * ulp. */
        float third = 1.0F / 3, square = (float)((double)third * (double)third);
        if ((double)square < (double)third * (double)third) square = nextafterf(square, 1);
        put(a, n, third), put(a, 1, third), put(a, n + 1, square);
        smelt_status status = smelt_cholesky(a, &(smelt_linalg_desc){.device = test_device()}, &l);
        if (status == SMELT_OK) { /* an fma may save it */
            smelt_array_release(l);
            smelt_array_release(a);
            continue;
        }
        smelt_set_log(keep_log, NULL);
        OK(smelt_cholesky(a,
                          &(smelt_linalg_desc){.on_failure = SMELT_LINALG_FALLBACK,
                                               .report = &report,
                                               .device = test_device()},
                          &l));
        smelt_set_log(NULL, NULL);
        assert_true(report.fell_back);
        assert_non_null(strstr(report.message, "the CPU computes it again in float64"));
        to_host(&l);
        double residual;
        OK(smelt_cholesky_residual(a, l, false, &residual));
        BELOW(residual, EPSILON, "fallback");
        smelt_array_release(l);
        smelt_array_release(a);
    }
}

static void preconditions_are_checked(void **state) {
    (void)state;
    smelt_array *a = new_indefinite(100, 2, -1, 0), *l = NULL, *x = NULL;
    put(a, 100 * 100 + 5 * 100 + 3, NAN);
    refused(smelt_cholesky(a, &(smelt_linalg_desc){.device = test_device()}, &l),
            "cholesky: matrix 1 of 2: element (5, 3) is nan, expected finite numbers");
    refused(smelt_cholesky(
                a, &(smelt_linalg_desc){.device = test_device(), .on_failure = SMELT_LINALG_JITTER}, &l),
            "element (5, 3) is nan");
    refused(smelt_qr(a, &(smelt_linalg_desc){.device = test_device()}, &x, &l),
            "qr: matrix 1 of 2: element (5, 3) is nan");
    refused(smelt_solve(a, a, &(smelt_linalg_desc){.device = test_device()}, &x), "element (5, 3) is nan");
    put(a, 100 * 100 + 5 * 100 + 3, 0.5F);
    put(a, 40 * 100 + 70, -0.75F);
    refused(smelt_cholesky(a, &(smelt_linalg_desc){.symmetric = true, .device = test_device()}, &l),
            "cholesky: matrix 0 of 2: elements (40, 70) and (70, 40) differ");
    smelt_array_release(a);
    a = new_matrices(SMELT_FLOAT32, -1, 3, 4, CONTIGUOUS);
    assert_int_equal(smelt_cholesky(a, NULL, &l), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), "cholesky: a has shape 3x4, expected square matrices");
    assert_int_equal(smelt_solve(a, a, NULL, &l), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_cholesky(a, &(smelt_linalg_desc){.reserved = {1}}, &l),
                     SMELT_ERROR_INVALID_ARGUMENT);
    smelt_array_release(a);
}

/* ---- QR. */

static void qr_is_orthogonal_and_multiplies_back(void **state) {
    (void)state;
    static const int shapes[][2] = {{1, 1},     {2, 1},     {1, 3},    {31, 31},   {33, 20},
                                    {64, 64},   {20, 64},   {65, 65},  {127, 64},  {70, 127},
                                    {130, 130}, {257, 100}, {500, 65}, {100, 257}, {1100, 40}};
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
        for (int device = 0; device < DEVICES(shapes[s][0] < 66 ? shapes[s][1] : 1000); device++)
            for (int complete = 0; complete < 2; complete++) {
                int64_t m = shapes[s][0], n = shapes[s][1], batch = m * n < 10000 ? 3 : -1;
                if (complete && m > 500) continue;
                int64_t k = complete || m < n ? m : n;
                smelt_array *a = new_matrices(SMELT_FLOAT32, batch, m, n, (enum layout)(s % 4)), *q, *r,
                            *only;
                smelt_linalg_desc desc = {.complete = complete, .device = device_at(device)};
                struct keepsake before = remember(a);
                double residual;
                OK(smelt_qr(a, &desc, &q, &r));
                OK(smelt_qr(a, &desc, NULL, &only));
                assert_unchanged(&before);
                to_host(&q), to_host(&r), to_host(&only);
                assert_int_equal(r->shape.size[r->shape.ndim - 2], k);
                OK(smelt_qr_residual(a, q, r, &residual));
                BELOW(residual, 3 * EPSILON * sqrt((double)(m < n ? m : n)) + 5 * EPSILON,
                      "qr of %lld x %lld, device %d", (long long)m, (long long)n, device);
                OK(smelt_orthogonality(q, &residual));
                BELOW(residual, 4 * EPSILON * (double)k + 5 * EPSILON, "qr of %lld x %lld, device %d",
                      (long long)m, (long long)n, device);
                OK(smelt_lower_residual(r, &residual));
                BELOW(residual, 0, "qr");
                double *one = numbers_of(r);
                assert_numbers(only, one, 0, 0);
                free(one);
                smelt_array_release(a), smelt_array_release(q), smelt_array_release(r),
                    smelt_array_release(only);
            }
}

/* Columns that are equal, 0, huge and tiny: still orthogonal, and only a tolerance refuses them. */
static void qr_takes_dependent_columns(void **state) {
    (void)state;
    for (int large = 0; large < 2; large++) {
        int64_t m = large ? 200 : 40, n = large ? 90 : 30;
        smelt_array *a = new_matrices(SMELT_FLOAT32, -1, m, n, CONTIGUOUS), *q, *r;
        double residual;
        for (int64_t i = 0; i < m; i++) {
            put(a, i * n + 5, ((float *)a->data)[i * n + 4]);
            put(a, i * n + 11, 0);
            for (int64_t j = 0; j < n; j++)
                put(a, i * n + j, ((float *)a->data)[i * n + j] * (j < 15 ? 1e30F : 1e25F));
        }
        OK(smelt_qr(a, &(smelt_linalg_desc){.device = test_device()}, &q, &r));
        to_host(&q), to_host(&r);
        OK(smelt_qr_residual(a, q, r, &residual));
        BELOW(residual, 1e-6, "dependent columns");
        OK(smelt_orthogonality(q, &residual));
        BELOW(residual, 1e-5, "dependent columns");
        smelt_array_release(q), smelt_array_release(r);
        smelt_linalg_report report;
        refused(smelt_qr(a,
                         &(smelt_linalg_desc){.tolerance = 1e-5, .report = &report, .device = test_device()},
                         &q, &r),
                "qr: the diagonal element of r in column 5 is");
        assert_int_equal(report.index, 5);
        smelt_array_release(a);
    }
}

/* ---- LU and solves. */

static void lu_multiplies_to_the_exchanged_rows(void **state) {
    (void)state;
    static const int shapes[][2] = {{1, 1},   {2, 2},     {31, 31},   {33, 65}, {65, 33},
                                    {64, 64}, {127, 130}, {257, 257}, {300, 40}};
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
        for (int device = 0; device < DEVICES(shapes[s][0]); device++) {
            int64_t m = shapes[s][0], n = shapes[s][1], batch = 2, rank = m < n ? m : n;
            smelt_array *a = new_matrices(SMELT_FLOAT32, batch, m, n, (enum layout)(s % 4)), *lu, *pivots;
            OK(smelt_lu(a, &(smelt_linalg_desc){.device = device_at(device)}, &lu, &pivots));
            to_host(&lu), to_host(&pivots);
            assert_int_equal(pivots->dtype, SMELT_INT32);
            assert_shape(pivots, (smelt_shape){2, {batch, rank}});
            double *x = numbers_of(a), *f = numbers_of(lu);
            const int32_t *p = (const int32_t *)pivots->data;
            for (int64_t b = 0; b < batch; b++) {
                double *rows = x + b * m * n, *factors = f + b * m * n, worst = 0;
                for (int64_t i = 0; i < rank; i++) {
                    int64_t other = p[b * rank + i];
                    assert_true(other >= i && other < m);
                    for (int64_t j = 0; j < n; j++) {
                        double moved = rows[i * n + j];
                        rows[i * n + j] = rows[other * n + j];
                        rows[other * n + j] = moved;
                    }
                }
                for (int64_t i = 0; i < m; i++)
                    for (int64_t j = 0; j < n; j++) {
                        double sum = 0;
                        for (int64_t k = 0; k < rank && k <= i && k <= j; k++)
                            sum += (k == i ? 1 : factors[i * n + k]) * factors[k * n + j];
                        worst = fmax(worst, fabs(sum - rows[i * n + j]));
                        if (j < i && j < rank) BELOW(fabs(factors[i * n + j]), 1, "a multiplier");
                    }
                BELOW(worst, 20 * EPSILON * (double)rank + EPSILON, "lu of %lld x %lld, device %d",
                      (long long)m, (long long)n, device);
            }
            free(x), free(f);
            smelt_array_release(a), smelt_array_release(lu), smelt_array_release(pivots);
        }
}

/* ‖a x - b‖ / (‖a‖ ‖x‖), of float32 arrays on the host; aᵀ in place of a if `transpose`. */
static double backward_error(smelt_array *a, smelt_array *x, smelt_array *b, int64_t batch, int64_t n,
                             int64_t k) {
    double *av = numbers_of(a), *xv = numbers_of(x), *bv = numbers_of(b), worst = 0;
    for (int64_t m = 0; m < batch; m++) {
        double part = 0, whole = 0, sizes_x = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < k; c++) {
                double sum = -bv[(m * n + i) * k + c];
                for (int64_t j = 0; j < n; j++) sum += av[(m * n + i) * n + j] * xv[(m * n + j) * k + c];
                part += sum * sum;
            }
        for (int64_t i = 0; i < n * n; i++) whole += av[m * n * n + i] * av[m * n * n + i];
        for (int64_t i = 0; i < n * k; i++) sizes_x += xv[m * n * k + i] * xv[m * n * k + i];
        double error = sqrt(part) / sqrt(whole * sizes_x);
        worst = error > worst || isnan(error) ? error : worst;
    }
    free(av), free(xv), free(bv);
    return worst;
}

static void solve_has_small_residuals(void **state) {
    (void)state;
    for (int s = 0; s < SIZES; s++)
        for (int device = 0; device < DEVICES(sizes[s]); device++) {
            int64_t n = sizes[s], k = s % 3 == 0 ? 1 : s % 3 == 1 ? 5 : 70, batch = n <= 130 ? 2 : 1;
            smelt_array *a = new_matrices(SMELT_FLOAT32, batch, n, n, (enum layout)(s % 4)),
                        *b = new_matrices(SMELT_FLOAT32, batch, n, k, (enum layout)((s + 1) % 4)), *x;
            OK(smelt_solve(a, b, &(smelt_linalg_desc){.device = device_at(device)}, &x));
            to_host(&x);
            assert_shape(x, b->shape);
            BELOW(backward_error(a, x, b, batch, n, k), 20 * EPSILON * sqrt((double)n),
                  "solve of %lld, device %d", (long long)n, device);
            smelt_array_release(a), smelt_array_release(b), smelt_array_release(x);
        }
}

static void solve_refuses_singular_matrices(void **state) {
    (void)state;
    smelt_array *a = new_matrices(SMELT_FLOAT32, -1, 80, 80, CONTIGUOUS),
                *b = new_matrices(SMELT_FLOAT32, -1, 80, 2, CONTIGUOUS), *x = NULL;
    for (int i = 0; i < 80; i++) put(a, i * 80 + 13, 0);
    refused(smelt_solve(a, b, &(smelt_linalg_desc){.device = test_device()}, &x),
            "solve: pivot 13 is 0, expected a magnitude above the tolerance: the matrix is singular");
    smelt_set_log(keep_log, NULL);
    refused(smelt_solve(
                a, b, &(smelt_linalg_desc){.on_failure = SMELT_LINALG_FALLBACK, .device = test_device()}, &x),
            "solve: pivot 13 is 0");
    OK(smelt_solve(
        a, b,
        &(smelt_linalg_desc){.on_failure = SMELT_LINALG_JITTER, .jitter = 1e-3, .device = test_device()},
        &x));
    smelt_set_log(NULL, NULL);
    smelt_array_release(a), smelt_array_release(b), smelt_array_release(x);
}

static void triangular_solve_takes_every_form(void **state) {
    (void)state;
    for (int form = 0; form < 16; form++)
        for (int large = 0; large < 2; large++) {
            int64_t n = large ? 150 : 37, k = large ? 33 : 3, batch = 2;
            bool upper = form & 1, transpose = form & 2, unit = form & 4, right = form & 8;
            smelt_array *a = new_matrices(SMELT_FLOAT32, batch, n, n, large ? TRANSPOSED : CONTIGUOUS),
                        *b = new_matrices(SMELT_FLOAT32, batch, right ? k : n, right ? n : k, CONTIGUOUS), *x;
            double *av = numbers_of(a), worst = 0;
            /* Well conditioned: a strong diagonal; the other triangle holds what must not be read. */
            for (int64_t m = 0; m < batch; m++)
                for (int64_t i = 0; i < n; i++)
                    for (int64_t j = 0; j < n; j++) {
                        bool inside = upper ? i < j : i > j;
                        float value = i == j   ? (unit ? NAN : 2)
                                      : inside ? (float)av[(m * n + i) * n + j] / 16
                                               : 1e20F;
                        if (i == j && unit) value = 7; /* counts as 1 */
                        ((float *)a->data)[m * a->strides[0] + i * a->strides[1] + j * a->strides[2]] = value;
                        av[(m * n + i) * n + j] = i == j ? (unit ? 1 : 2) : inside ? (double)value : 0;
                    }
            OK(smelt_triangular_solve(
                a, b,
                &(smelt_linalg_desc){.upper = upper,
                                     .transpose = transpose,
                                     .unit = unit,
                                     .right = right,
                                     .device = device_at(form % 2 && strcmp(test_device(), "cpu") == 0)},
                &x));
            to_host(&x);
            assert_shape(x, b->shape);
            double *xv = numbers_of(x), *bv = numbers_of(b);
            for (int64_t m = 0; m < batch; m++)
                for (int64_t i = 0; i < n; i++)
                    for (int64_t c = 0; c < k; c++) {
                        double sum = 0, size = 1;
                        for (int64_t j = 0; j < n; j++) {
                            /* Row i of what multiplies x from the left. */
                            bool flips = transpose != right;
                            double value = av[m * n * n + (flips ? j * n + i : i * n + j)];
                            double there = xv[m * n * k + (right ? c * n + j : j * k + c)];
                            sum += value * there;
                            size += fabs(value * there);
                        }
                        worst =
                            fmax(worst, fabs(sum - bv[m * n * k + (right ? c * n + i : i * k + c)]) / size);
                    }
            BELOW(worst, 30 * EPSILON, "form %d, n %lld", form, (long long)n);
            free(av), free(xv), free(bv);
            smelt_array_release(a), smelt_array_release(b), smelt_array_release(x);
        }
}

static void lstsq_has_orthogonal_residuals(void **state) {
    (void)state;
    static const int shapes[][3] = {{1, 1, 1},  {30, 7, 2},   {65, 65, 1},   {130, 40, 3},
                                    {7, 30, 2}, {40, 130, 5}, {300, 90, 400}};
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
        int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        smelt_array *a = new_matrices(SMELT_FLOAT32, 2, m, n, (enum layout)(s % 4)),
                    *b = new_matrices(SMELT_FLOAT32, 2, m, k, CONTIGUOUS), *wide_a, *wide_b, *x, *want;
        OK(smelt_array_convert(a, SMELT_FLOAT64, &wide_a));
        OK(smelt_array_convert(b, SMELT_FLOAT64, &wide_b));
        OK(smelt_lstsq(a, b, &(smelt_linalg_desc){.device = test_device()}, &x));
        OK(smelt_lstsq(wide_a, wide_b, NULL, &want));
        to_host(&x);
        assert_int_equal(want->dtype, SMELT_FLOAT64);
        double *xv = numbers_of(x), *wv = numbers_of(want), *av = numbers_of(a), *bv = numbers_of(b),
               part = 0, whole = 0;
        for (int64_t i = 0; i < x->size; i++)
            part += (xv[i] - wv[i]) * (xv[i] - wv[i]), whole += wv[i] * wv[i];
        BELOW(sqrt(part / whole), 2e-4, "lstsq of %lld x %lld", (long long)m, (long long)n);
        /* The float64 one: aᵀ (a x - b) = 0, or a x = b. */
        double worst = 0;
        for (int64_t c = 0; c < k; c++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t i = 0; i < m; i++) {
                    double left = -bv[i * k + c];
                    for (int64_t t = 0; t < n; t++) left += av[i * n + t] * wv[t * k + c];
                    sum += av[i * n + j] * left;
                }
                worst = fmax(worst, fabs(sum));
                if (k > 10 && j > 10) break;
            }
        BELOW(worst, 1e-9, "float64 lstsq of %lld x %lld", (long long)m, (long long)n);
        free(xv), free(wv), free(av), free(bv);
        smelt_array_release(a), smelt_array_release(b), smelt_array_release(x), smelt_array_release(want);
        smelt_array_release(wide_a), smelt_array_release(wide_b);
    }
    smelt_array *a = new_matrices(SMELT_FLOAT32, -1, 50, 8, CONTIGUOUS),
                *b = new_matrices(SMELT_FLOAT32, -1, 50, 1, CONTIGUOUS), *x = NULL;
    for (int i = 0; i < 50; i++) put(a, i * 8 + 3, 0);
    refused(smelt_lstsq(a, b, &(smelt_linalg_desc){.device = test_device()}, &x),
            "lstsq: the diagonal element of r in column 3 is 0");
    smelt_array_release(a), smelt_array_release(b);
}

/* ---- Extended precision. */

/* Terms that cancel: exact to the last bit, where floats lose all. */
static void extended_dots_are_rounded_once(void **state) {
    (void)state;
    for (int count = 1; count <= 20000; count = count * 3 + 1)
        for (int device = 0; device < DEVICES(count); device++) {
            smelt_array *x = new_matrices(SMELT_FLOAT32, -1, 3, count, CONTIGUOUS),
                        *y = new_matrices(SMELT_FLOAT32, -1, 3, count, TRANSPOSED), *got;
            for (int i = 0; i < 3 * count; i++)
                put(x, i, ((float *)x->data)[i] * exp2f((float)(random_bits() % 60) - 30));
            double *xv = numbers_of(x), *yv = numbers_of(y);
            OK(smelt_dot(
                x, y, &(smelt_linalg_desc){.precision = SMELT_LINALG_EXTENDED, .device = device_at(device)},
                &got));
            to_host(&got);
            assert_shape(got, (smelt_shape){1, {3}});
            for (int row = 0; row < 3; row++) {
                __float128 sum = 0; /* 113 bits hold these sums exactly */
                for (int i = 0; i < count; i++) sum += (__float128)xv[row * count + i] * yv[row * count + i];
                if (((float *)got->data)[row] != (float)sum)
                    FAIL_TEST("a dot product of %d terms is %.9g, expected %.9g", count,
                              (double)((float *)got->data)[row], (double)sum);
            }
            free(xv), free(yv);
            smelt_array_release(x), smelt_array_release(y), smelt_array_release(got);
        }
    smelt_array *x = new_matrices(SMELT_FLOAT32, -1, 1, 4, CONTIGUOUS),
                *y = new_matrices(SMELT_FLOAT32, -1, 1, 4, CONTIGUOUS), *got;
    const float left[4] = {1e30F, 1.5F, -1e30F, 0x1p-60F}, right[4] = {1, 3, 1, 1};
    for (int i = 0; i < 4; i++) put(x, i, left[i]), put(y, i, right[i]);
    OK(smelt_dot(x, y, &(smelt_linalg_desc){.precision = SMELT_LINALG_EXTENDED, .device = test_device()},
                 &got));
    to_host(&got);
    /* 2^-60 is more than 128 bits below 1e30 and was cut off. */
    assert_true(((float *)got->data)[0] == 4.5F);
    smelt_array_release(got);
    put(x, 1, INFINITY);
    OK(smelt_dot(x, y, &(smelt_linalg_desc){.precision = SMELT_LINALG_EXTENDED, .device = test_device()},
                 &got));
    to_host(&got);
    assert_true(isnan(((float *)got->data)[0]));
    smelt_array_release(x), smelt_array_release(y), smelt_array_release(got);
}

static void extended_factors_have_48_bits(void **state) {
    (void)state;
    static const int sizes_here[] = {1, 2, 33, 70};
    for (int s = 0; s < 4; s++)
        for (int device = 0; device < DEVICES(sizes_here[s]); device++) {
            int64_t n = sizes_here[s];
            double residual;
            smelt_linalg_desc desc = {
                .precision = SMELT_LINALG_EXTENDED, .device = device_at(device), .upper = s % 2};
            /* float64 is not for other devices than the host's. */
            smelt_array *a = new_definite(SMELT_FLOAT64, 2, n, 1e-7), *l, *q, *r,
                        *b = new_matrices(SMELT_FLOAT64, 2, n, n / 2 + 1, CONTIGUOUS);
            OK(smelt_cholesky(a, &desc, &l));
            assert_int_equal(l->dtype, SMELT_FLOAT64);
            OK(smelt_cholesky_residual(a, l, desc.upper, &residual));
            BELOW(residual, 0x1p-45, "extended cholesky of %lld", (long long)n);
            OK(smelt_qr(b, &desc, &q, &r));
            OK(smelt_qr_residual(b, q, r, &residual));
            BELOW(residual, 0x1p-43, "extended qr of %lld", (long long)n);
            OK(smelt_orthogonality(q, &residual));
            BELOW(residual, 0x1p-42 * (double)n, "extended qr of %lld", (long long)n);
            smelt_array_release(a), smelt_array_release(l), smelt_array_release(q), smelt_array_release(r);
            /* float32: rounded once. */
            smelt_array *single;
            OK(smelt_array_convert(b, SMELT_FLOAT32, &single));
            OK(smelt_qr(single, &desc, &q, &r));
            to_host(&q), to_host(&r);
            assert_int_equal(q->dtype, SMELT_FLOAT32);
            OK(smelt_qr_residual(single, q, r, &residual));
            BELOW(residual, 2 * EPSILON, "extended qr of %lld in float32", (long long)n);
            smelt_array_release(b), smelt_array_release(single), smelt_array_release(q),
                smelt_array_release(r);
        }
    /* What float32 cannot factorise, and failures. */
    smelt_array *a = new_definite(SMELT_FLOAT32, -1, 40, 0), *l;
    smelt_linalg_desc desc = {.precision = SMELT_LINALG_EXTENDED, .device = test_device()};
    put(a, 20 * 41, -1);
    refused(smelt_cholesky(a, &desc, &l), "cholesky: pivot 20 is -");
    put(a, 20 * 41, NAN);
    refused(smelt_cholesky(a, &desc, &l), "cholesky: element (20, 20) is nan");
    smelt_array_release(a);
}

/* ---- Dtypes. */

static void halfs_are_rounded_once(void **state) {
    (void)state;
    smelt_array *a = new_definite(SMELT_BFLOAT16, 2, 20, 1), *single, *l, *expected, *rounded;
    OK(smelt_array_convert(a, SMELT_FLOAT32, &single));
    OK(smelt_cholesky(a, &(smelt_linalg_desc){.device = test_device()}, &l));
    OK(smelt_cholesky(single, &(smelt_linalg_desc){.device = test_device()}, &expected));
    to_host(&l), to_host(&expected);
    assert_int_equal(l->dtype, SMELT_BFLOAT16);
    OK(smelt_array_convert(expected, SMELT_BFLOAT16, &rounded));
    double *want = numbers_of(rounded);
    assert_numbers(l, want, 0, 0);
    free(want);
    smelt_array_release(a), smelt_array_release(single), smelt_array_release(l),
        smelt_array_release(expected);
    smelt_array_release(rounded);
}

/* LAPACK, where there is one, agrees with the plain loops. */
static void lapack_agrees_with_the_reference(void **state) {
    (void)state;
    enum { M = 40, N = 25 };
    double a[M * N], own[M * N], tau[N], other[N], square[N * N], factor[N * N], value;
    int32_t pivots[N], others[N];
    int64_t failed;
    for (int i = 0; i < M * N; i++) a[i] = own[i] = random_in(-1, 1);
    if (!lapack_qr(a, M, N, tau)) SKIP_TEST("LAPACK is not installed");
    reference_qr_factor(own, M, N, other);
    for (int i = 0; i < M * N; i++) BELOW(fabs(a[i] - own[i]), 1e-12, "qr");
    for (int i = 0; i < N * N; i++) square[i] = factor[i] = own[i];
    assert_true(lapack_lu(square, N, N, pivots, 0, &failed, &value));
    reference_lu_factor(factor, N, N, others, 0, &failed, &value);
    for (int i = 0; i < N * N; i++) BELOW(fabs(square[i] - factor[i]), 1e-12, "lu");
    assert_memory_equal(pivots, others, sizeof pivots);
    for (int upper = 0; upper < 2; upper++) {
        for (int i = 0; i < N * N; i++) square[i] = factor[i] = i / N == i % N ? 30 : sin(i / N + i % N);
        assert_true(lapack_cholesky(square, N, upper, &failed, &value));
        assert_int_equal(failed, -1);
        reference_cholesky_factor(factor, N, upper, &failed, &value);
        for (int i = 0; i < N * N; i++) BELOW(fabs(square[i] - factor[i]), 1e-12, "cholesky");
    }
}

int main(void) {
    test_quick_code();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cholesky_multiplies_to_its_matrix),
        cmocka_unit_test(cholesky_says_which_pivot_fails),
        cmocka_unit_test(cholesky_falls_back_to_float64),
        cmocka_unit_test(preconditions_are_checked),
        cmocka_unit_test(qr_is_orthogonal_and_multiplies_back),
        cmocka_unit_test(qr_takes_dependent_columns),
        cmocka_unit_test(lu_multiplies_to_the_exchanged_rows),
        cmocka_unit_test(solve_has_small_residuals),
        cmocka_unit_test(solve_refuses_singular_matrices),
        cmocka_unit_test(triangular_solve_takes_every_form),
        cmocka_unit_test(lstsq_has_orthogonal_residuals),
        cmocka_unit_test(extended_dots_are_rounded_once),
        cmocka_unit_test(extended_factors_have_48_bits),
        cmocka_unit_test(halfs_are_rounded_once),
        cmocka_unit_test(lapack_agrees_with_the_reference),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
