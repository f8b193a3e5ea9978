/* SMELT_VENDOR: products are smelt's own unless it is 1; then OpenBLAS gets the matrices as they lie. */
#include "graph.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

/* The first element of x · y, and the largest difference of all elements from `more` plus the right ones. */
static double error_of(smelt_array *x, smelt_array *y, double more) {
    smelt_array *result = APPLY(.operation = OP(MATMUL), .inputs = {x, y});
    double *a = numbers_of(x), *b = numbers_of(y), *c = numbers_of(result), worst = 0;
    int n = x->shape.ndim;
    int64_t rows = x->shape.size[n - 2], depth = x->shape.size[n - 1],
            columns = y->shape.size[y->shape.ndim - 1], batch = n > 2 ? x->shape.size[0] : 1;
    for (int64_t s = 0; s < batch; s++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                double sum = more;
                for (int64_t t = 0; t < depth; t++)
                    sum += a[(s * rows + i) * depth + t] *
                           b[(y->shape.ndim > 2 ? s * depth * columns : 0) + t * columns + j];
                worst = fmax(worst, fabs(c[(s * rows + i) * columns + j] - sum));
            }
    free(a);
    free(b);
    free(c);
    smelt_array_release(result);
    return worst;
}

static const enum layout layouts[] = {CONTIGUOUS, TRANSPOSED};

static void expect_from(const char *setting, smelt_dtype dtype, double more) {
    if (setting)
        setenv("SMELT_VENDOR", setting, 1);
    else
        unsetenv("SMELT_VENDOR");
    for (int i = 0; i < 5; i++) { /* the last: a batch, whose matrices are dense */
        bool batched = i & 4;
        smelt_shape left = batched ? (smelt_shape){.ndim = 3, .size = {3, 7, 9}}
                                   : (smelt_shape){.ndim = 2, .size = {7, 9}},
                    right = batched ? (smelt_shape){.ndim = 3, .size = {3, 9, 5}}
                                    : (smelt_shape){.ndim = 2, .size = {9, 5}};
        smelt_array *x = random_array(dtype, left, layouts[i & 1], -1, 1),
                    *y = random_array(dtype, right, layouts[i >> 1 & 1], -1, 1);
        double error = error_of(x, y, more);
        if (!(error < 1e-2))
            FAIL_TEST("SMELT_VENDOR=%s, layouts %d: wrong by %g", setting ? setting : "", i, error);
        smelt_array_release(x);
        smelt_array_release(y);
    }
}

static void test_the_vendor_computes_on_request_only(void **state) {
    (void)state;
    if (test_device_has_memory()) SKIP_TEST("a vendor's library computes products on CPUs only");
    /* dlopen finds it by its name from then on. */
    assert_non_null(dlopen(FAKE_OPENBLAS, RTLD_NOW | RTLD_LOCAL));
    expect_from(NULL, SMELT_FLOAT32, 0);
    expect_from("0", SMELT_FLOAT32, 0);
    expect_from("1", SMELT_FLOAT32, 1000);
    expect_from("1", SMELT_FLOAT16, 0);
    expect_from(NULL, SMELT_FLOAT32, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_vendor_computes_on_request_only)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
