/* Block Cholesky and the triangular inverse by chunks: the shipped kernels and the seeds' own text. */
#include "seeds.h"
#include "kernels/linalg/cholesky.h"
#include "kernels/linalg/triangular_inverse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* B·Bᵀ/n + I/2 for random B: symmetric, well conditioned, and different in any two matrices. The upper
 * triangle is then overwritten: it must not be read. */
static smelt_array *positive_definite(int64_t matrices, int64_t n, bool spoil, uint64_t seed) {
    smelt_array *random = random_array(SMELT_FLOAT32, SHAPE(matrices, n, n), seed), *a;
    CHECK(smelt_array_create(SMELT_FLOAT32, SHAPE(matrices, n, n), &a));
    const float *b = smelt_array_data(random);
    float *to = smelt_array_data(a);
    for (int64_t m = 0; m < matrices; m++, b += n * n, to += n * n)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = i == j ? 0.5 : 0;
                for (int64_t k = 0; k < n; k++)
                    sum += (double)b[i * n + k] * (double)b[j * n + k] / (double)n;
                to[i * n + j] = spoil && j > i ? NAN : (float)sum;
            }
    smelt_array_release(random);
    return a;
}

/* L against the float64 factor, 0 above the diagonal, and L·Lᵀ against A. */
static void assert_is_factor(const char *what, const smelt_array *a, const smelt_array *l, int64_t n) {
    double *matrix = values_of(a), *factor = values_of(l),
           *expected = calloc((size_t)smelt_array_size(a), sizeof *matrix);
    for (int64_t m = 0; m < smelt_array_size(a) / (n * n); m++) {
        const double *am = matrix + m * n * n, *lm = factor + m * n * n;
        smelt_reference_cholesky(am, n, expected + m * n * n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                double sum = 0;
                for (int64_t k = 0; k <= j; k++) sum += lm[i * n + k] * lm[j * n + k];
                if (fabs(sum - am[i * n + j]) <= 1e-5) continue;
                print_error("%s: L times its transpose is %.9g at (%lld, %lld), the matrix has %.9g\n", what,
                            sum, (long long)i, (long long)j, am[i * n + j]);
                _fail(__FILE__, __LINE__);
            }
    }
    assert_close(what, l, expected, 1e-5, 1e-5);
    free(matrix);
    free(factor);
    free(expected);
}

static void cholesky_matches_the_reference(void **state) {
    (void)state;
    static const struct {
        int64_t matrices, n;
        int block, threads;
    } cases[] = {{1, 1, 0, 0},  {3, 2, 0, 0},   {2, 16, 16, 32}, {1, 61, 16, 64},
                 {2, 33, 7, 5}, {1, 48, 1, 48}, {1, 50, 64, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        smelt_array *values = positive_definite(cases[i].matrices, cases[i].n, true, i), *l;
        smelt_array *a = between_guards(values, true);
        CHECK(shipped_cholesky(a, cases[i].block, cases[i].threads, &l, ON_DEVICE));
        assert_is_factor("cholesky", a, l, cases[i].n);
        smelt_array_release(values);
        smelt_array_release(a);
        smelt_array_release(l);
    }
}

static void cholesky_does_not_depend_on_threads(void **state) {
    (void)state;
    smelt_array *a = positive_definite(1, 45, false, 9), *one, *many;
    CHECK(shipped_cholesky(a, 8, 1, &one, ON_DEVICE));
    CHECK(shipped_cholesky(a, 8, 77, &many, ON_DEVICE));
    assert_same_bits("cholesky with 1 and with 77 threads", one, many);
    smelt_array_release(a);
    smelt_array_release(one);
    smelt_array_release(many);
}

static void cholesky_of_an_indefinite_matrix_is_nan_from_there_on(void **state) {
    (void)state;
    const float values[] = {4, 0, 0, 2, -3, 0, 1, 1, 5};
    smelt_array *a, *l, *other = NULL;
    CHECK(smelt_array_from_values(SMELT_FLOAT32, SHAPE(3, 3), values, &a));
    CHECK(shipped_cholesky(a, 2, 4, &l, ON_DEVICE));
    CHECK(test_to_host(&l));
    const float *factor = smelt_array_data(l);
    assert_true(factor[0] == 2 && factor[3] == 1 && factor[6] == 0.5f);
    assert_true(isnan(factor[4]) && isnan(factor[7]) && isnan(factor[8]));
    assert_int_equal(shipped_cholesky(a, 65, 4, &other, ON_DEVICE), SMELT_ERROR_INVALID_ARGUMENT);
    assert_null(other);
    smelt_array_release(a);
    smelt_array_release(l);
}

/* ---- The triangular inverse. */

/* Small enough below the diagonal that the inverse stays of order one; NaN on and above it if that must not
 * be read. */
static smelt_array *squares(int64_t batch, int64_t length, int64_t heads, int64_t width, bool spoil,
                            uint64_t seed) {
    smelt_array *a = random_array(SMELT_FLOAT32, SHAPE(batch, length, heads, width), seed);
    float *value = smelt_array_data(a);
    for (int64_t i = 0; i < smelt_array_size(a); i++) {
        int64_t column = i % width, row = i / width / heads % length % width;
        value[i] *= 0.25f;
        if (spoil && column >= row) value[i] = NAN;
    }
    return a;
}

static void assert_is_inverse(const char *what, const smelt_array *a, const smelt_array *inverse) {
    smelt_shape s = smelt_array_shape(a);
    double *values = values_of(a), *expected = calloc((size_t)smelt_array_size(a), sizeof *expected);
    smelt_reference_triangular_inverse(values, s.size[0], s.size[1], s.size[2], s.size[3], expected);
    assert_close(what, inverse, expected, 1e-5, 1e-5);
    /* Also as a product in the last chunk of the last head: (I + S) · X = I. */
    int64_t width = s.size[3], step = s.size[2] * width, first = (s.size[1] - 1) / width * width;
    const double *x = expected + (size_t)(smelt_array_size(a) - (s.size[1] - first) * step + step - width);
    const double *below = values + (x - expected);
    for (int64_t i = 0; i < s.size[1] - first; i++)
        for (int64_t j = 0; j < width; j++) {
            double sum = x[i * step + j];
            for (int64_t k = 0; k < i; k++) sum += below[i * step + k] * x[k * step + j];
            assert_true(fabs(sum - (i == j)) < 1e-9);
        }
    free(values);
    free(expected);
}

static void triangular_inverse_matches_the_reference(void **state) {
    (void)state;
    static const int64_t cases[][5] = {/* batch, length, heads, width, threads */
                                       {2, 128, 3, 64, 0}, {1, 70, 2, 33, 64}, {1, 5, 1, 1, 2},
                                       {2, 50, 2, 17, 7},  {1, 20, 2, 48, 96}, {1, 96, 1, 96, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *c = cases[i];
        /* If the last chunk were read as a whole one, it would reach the inaccessible page. */
        smelt_array *values = squares(c[0], c[1], c[2], c[3], true, i), *a = between_guards(values, true),
                    *inverse;
        CHECK(smelt_triangular_inverse(a, (int)c[4], &inverse,
                                       &(smelt_call){.poison = true, .device = test_device()}));
        assert_is_inverse("triangular inverse", a, inverse);
        smelt_array_release(values);
        smelt_array_release(a);
        smelt_array_release(inverse);
    }
}

static void triangular_inverse_is_the_same_with_64_and_128_threads(void **state) {
    (void)state;
    smelt_array *a = squares(1, 192, 2, 64, false, 5), *with_64, *with_128;
    CHECK(smelt_triangular_inverse(a, 64, &with_64, &(smelt_call){.poison = true, .device = test_device()}));
    CHECK(
        smelt_triangular_inverse(a, 128, &with_128, &(smelt_call){.poison = true, .device = test_device()}));
    assert_same_bits("64 and 128 threads", with_64, with_128);
    smelt_array_release(a);
    smelt_array_release(with_64);
    smelt_array_release(with_128);
}

/* ---- The seeds' own text. */

static smelt_array *run_seed_inverse(smelt_function *function, smelt_array *a, int64_t threads) {
    smelt_shape s = smelt_array_shape(a);
    uint32_t size[4] = {(uint32_t)s.size[0], (uint32_t)s.size[1], (uint32_t)s.size[2], (uint32_t)s.size[3]};
    smelt_array *inverse;
    CHECK(smelt_array_create(SMELT_FLOAT32, s, &inverse));
    CHECK(smelt_array_fill(inverse, (double)NAN));
    CHECK(smelt_function_run(
        function, &(smelt_dispatch_desc){
                      .device = test_device(),
                      .buffers = {{.array = a}, {.array = inverse}, {.bytes = size, .size = sizeof size}},
                      .threadgroup_memory = {2 * (size_t)(s.size[3] * s.size[3]) * sizeof(float)},
                      .groups = {s.size[1] / s.size[3], s.size[2], s.size[0]},
                      .threadgroup = {threads}}));
    return inverse;
}

/* With 128 threads, half of them return before the barrier. */
static void seed_triangular_inverse(void **state) {
    (void)state;
    char *document = seed_document("002_11cef5617188d901.txt");
    if (!document) skip();
    smelt_library *library;
    smelt_function *function;
    CHECK(smelt_library_create(&(smelt_library_desc){.source = strstr(document, "#include")}, &library));
    CHECK(smelt_library_function(library, &(smelt_function_desc){.name = "chunk_tri_solve_invert_f32"},
                                 &function));
    static const int64_t widths[] = {64, 24};
    for (int w = 0; w < 2; w++) {
        smelt_array *a = squares(2, 3 * widths[w], 2, widths[w], true, 40);
        smelt_array *with_64 = run_seed_inverse(function, a, 64),
                    *with_128 = run_seed_inverse(function, a, 128);
        assert_is_inverse("the seed's triangular inverse", a, with_64);
        assert_same_bits("the seed's triangular inverse with 64 and 128 threads", with_64, with_128);
        smelt_array_release(a);
        smelt_array_release(with_64);
        smelt_array_release(with_128);
    }
    smelt_function_release(function);
    smelt_library_release(library);
    free(document);
}

static smelt_array *small_uint(uint32_t value) {
    smelt_array *array;
    CHECK(smelt_array_from_values(SMELT_UINT32, SHAPE(1), &value, &array));
    return array;
}

static void seed_block_cholesky(void **state) {
    (void)state;
    char *document = seed_document("000_cfbc3d0c38416d44.txt");
    if (!document) skip();
    char *source = seed_block(document, "src = \"\"\"", "\"\"\"", 2);
    seed_repair(source, (const char *const[]){"sizing", "size", "stability", "threads", NULL});
    smelt_kernel *kernel;
    /* The header's includes lost their names; their contents are available anyway. */
    CHECK(smelt_kernel_create(&(smelt_kernel_desc){.name = "block_cholesky_kernel",
                                                   .source = source,
                                                   .header = "using namespace metal;\n",
                                                   .inputs = {"A", "block_param", "thread_count"},
                                                   .outputs = {"out"}},
                              &kernel));
    static const int64_t sizes[] = {5, 32, 53};
    for (int i = 0; i < 3; i++) {
        int64_t n = sizes[i], threads = n < 32 ? n : 32;
        smelt_array *a = positive_definite(1, n, false, (uint64_t)i), *matrix, *l;
        smelt_array *block = small_uint(16), *count = small_uint((uint32_t)threads);
        CHECK(smelt_array_view(a, SHAPE(n, n), (int64_t[]){n, 1}, 0, &matrix));
        CHECK(smelt_kernel_run(kernel,
                               &(smelt_run_desc){.device = test_device(),
                                                 .inputs = {matrix, block, count},
                                                 .grid = {threads},
                                                 .threadgroup = {threads},
                                                 .output_shapes = {SHAPE(n, n)},
                                                 .output_dtypes = {SMELT_FLOAT32},
                                                 .initialise = true,
                                                 .init_value = 0},
                               &l));
        assert_is_factor("the seed's block Cholesky", matrix, l, n);
        smelt_array *arrays[] = {a, matrix, l, block, count};
        for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) smelt_array_release(arrays[k]);
    }
    smelt_kernel_release(kernel);
    free(source);
    free(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cholesky_matches_the_reference),
        cmocka_unit_test(cholesky_does_not_depend_on_threads),
        cmocka_unit_test(cholesky_of_an_indefinite_matrix_is_nan_from_there_on),
        cmocka_unit_test(triangular_inverse_matches_the_reference),
        cmocka_unit_test(triangular_inverse_is_the_same_with_64_and_128_threads),
        cmocka_unit_test(seed_triangular_inverse),
        cmocka_unit_test(seed_block_cholesky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
