/* Products of matrices on every path against sums in double precision: vectors, tiles, batches, layouts,
 * dtypes. Memory that a result is allocated in holds large numbers before. */
#include "graph.h"
#include "kernels/matmul/forms.h"
#include "trace_file.h"
#include "tune/setting.h"

#include <float.h>
#include <malloc.h>
#include <unistd.h>

/* ---- The reference. */

struct expected {
    double *sums, *sizes; /* Σ x y and Σ |x y| */
};

static int64_t side(const smelt_array *array, int from_end) {
    return array->shape.ndim >= from_end ? array->shape.size[array->shape.ndim - from_end] : 1;
}

/* The matrix of `array` that belongs to the batch at `index`, as its number in row-major order. */
static int64_t matrix_at(const smelt_array *array, const int64_t *index, int batch) {
    int own = array->shape.ndim > 2 ? array->shape.ndim - 2 : 0;
    int64_t number = 0;
    for (int d = 0; d < own; d++) {
        int64_t size = array->shape.size[d];
        number = number * size + (size == 1 ? 0 : index[batch - own + d]);
    }
    return number;
}

static struct expected expect(smelt_array *x, smelt_array *y, const smelt_array *result, int batch) {
    double *a = numbers_of(x), *b = numbers_of(y);
    int64_t rows = x->shape.ndim > 1 ? side(x, 2) : 1, depth = side(x, 1),
            columns = y->shape.ndim > 1 ? side(y, 1) : 1, at = 0, index[SMELT_MAX_DIMENSIONS] = {0};
    struct expected e = {calloc((size_t)result->size + 1, sizeof(double)),
                         calloc((size_t)result->size + 1, sizeof(double))};
    while (at < result->size) {
        const double *left = a + matrix_at(x, index, batch) * rows * depth,
                     *right = b + matrix_at(y, index, batch) * depth * columns;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < depth; k++)
                for (int64_t j = 0; j < columns; j++) {
                    double term = left[i * depth + k] * right[k * columns + j];
                    e.sums[at + i * columns + j] += term;
                    e.sizes[at + i * columns + j] += fabs(term);
                }
        at += rows * columns;
        for (int d = batch - 1; d >= 0 && ++index[d] == result->shape.size[d]; d--) index[d] = 0;
    }
    free(a);
    free(b);
    return e;
}

/* The half distance between neighbours at 1. */
static double rounding_of(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 ? 0x1p-11 : dtype == SMELT_BFLOAT16 ? 0x1p-8 : 0x1p-24;
}

/* `precision`: the relative error of a term. */
static void check(smelt_array *x, smelt_array *y, smelt_array *result, int batch, double precision,
                  const char *what) {
    struct expected e = expect(x, y, result, batch);
    double *got = numbers_of(result), rounding = rounding_of(result->dtype);
    double least = result->dtype == SMELT_FLOAT16 ? 0x1p-25 : 0; /* between subnormal numbers */
    for (int64_t i = 0; i < result->size; i++) {
        double bound = e.sizes[i] * ((double)side(x, 1) * 0x1p-24 + precision) +
                       fabs(e.sums[i]) * rounding * 1.001 + least;
        if (!(fabs(got[i] - e.sums[i]) <= bound))
            FAIL_TEST("%s: %s %s @ %s %s: element %lld is %.9g, expected %.9g", what,
                      smelt_dtype_name(x->dtype), shape_print(&x->shape).text, smelt_dtype_name(y->dtype),
                      shape_print(&y->shape).text, (long long)i, got[i], e.sums[i]);
    }
    free(got);
    free(e.sums);
    free(e.sizes);
}

static void multiply(smelt_array *x, smelt_array *y, const char *device) {
    struct keepsake left = remember(x), right = remember(y);
    smelt_array *result = APPLY(.operation = OP(MATMUL), .inputs = {x, y}, .device = device);
    int batch = result->shape.ndim - (x->shape.ndim > 1) - (y->shape.ndim > 1);
    check(x, y, result, batch, 0, device ? device : "");
    assert_unchanged(&left);
    assert_unchanged(&right);
    smelt_array_release(result);
    smelt_array_release(x);
    smelt_array_release(y);
}

static smelt_array *matrix(smelt_dtype dtype, smelt_shape shape, enum layout layout) {
    return random_array(dtype, shape, layout, -1, 1);
}

#define SHAPE(...) \
    ((smelt_shape){.ndim = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .size = {__VA_ARGS__}})

/* A matrix, or matrices, whose columns are dense. */
static smelt_array *with_neighbouring_terms(smelt_dtype dtype, smelt_shape shape) {
    smelt_shape held = shape;
    int last = shape.ndim - 1;
    if (last < 1) return matrix(dtype, shape, CONTIGUOUS);
    held.size[last] = shape.size[last - 1];
    held.size[last - 1] = shape.size[last];
    smelt_array *base = matrix(dtype, held, CONTIGUOUS), *view;
    int64_t strides[SMELT_MAX_DIMENSIONS];
    memcpy(strides, base->strides, sizeof strides);
    strides[last] = base->strides[last - 1];
    strides[last - 1] = base->strides[last];
    OK(smelt_array_view(base, shape, strides, 0, &view));
    smelt_array_release(base);
    return view;
}

static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};

/* ---- Tests. */

static void sizes_that_no_tile_divides(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 7, 16, 31, 33, 64, 65, 100, 130};
    int count = sizeof sizes / sizeof *sizes;
    for (int n = 0; n < 150; n++) {
        int64_t m = sizes[random_bits() % (unsigned)count], k = sizes[random_bits() % (unsigned)count],
                c = sizes[random_bits() % (unsigned)count];
        smelt_dtype dtype = dtypes[n % 3];
        multiply(matrix(dtype, SHAPE(m, k), CONTIGUOUS), matrix(dtype, SHAPE(k, c), CONTIGUOUS),
                 n % 4 ? NULL : test_oracle());
    }
}

static void every_layout(void **state) {
    (void)state;
    for (int left = 0; left < LAYOUTS; left++)
        for (int right = 0; right < LAYOUTS; right++)
            for (int d = 0; d < 3; d++) {
                if (!in_sample((size_t)(left + right + d), 3)) continue;
                smelt_dtype dtype = dtypes[d];
                multiply(matrix(dtype, SHAPE(37, 45), (enum layout)left),
                         matrix(dtype, SHAPE(45, 70), (enum layout)right), NULL);
                multiply(matrix(dtype, SHAPE(37, 45), (enum layout)left),
                         matrix(dtype, SHAPE(45), (enum layout)right), NULL);
                multiply(matrix(dtype, SHAPE(1, 45), (enum layout)left),
                         matrix(dtype, SHAPE(45, 70), (enum layout)right), NULL);
                multiply(matrix(dtype, SHAPE(3, 2, 9, 21), (enum layout)left),
                         matrix(dtype, SHAPE(2, 21, 18), (enum layout)right), NULL);
            }
}

static void batches_are_broadcast(void **state) {
    (void)state;
    static const smelt_shape shapes[][2] = {{{3, {5, 6, 7}}, {2, {7, 9}}},
                                            {{3, {64, 1, 33}}, {2, {33, 40}}},
                                            {{2, {6, 7}}, {3, {5, 7, 9}}},
                                            {{4, {3, 1, 6, 7}}, {4, {1, 4, 7, 9}}},
                                            {{4, {3, 4, 1, 7}}, {2, {7, 9}}},
                                            {{4, {3, 4, 1, 7}}, {3, {4, 7, 9}}},
                                            {{5, {2, 1, 3, 5, 4}}, {4, {2, 1, 4, 1}}},
                                            {{1, {7}}, {4, {3, 2, 7, 5}}},
                                            {{4, {3, 2, 5, 7}}, {1, {7}}},
                                            {{1, {300}}, {1, {300}}},
                                            {{3, {40, 32, 32}}, {3, {40, 32, 32}}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int d = 0; d < 3; d++) {
            if (!in_sample(i + (size_t)d, 3)) continue;
            multiply(matrix(dtypes[d], shapes[i][0], CONTIGUOUS), matrix(dtypes[d], shapes[i][1], CONTIGUOUS),
                     NULL);
            multiply(matrix(dtypes[d], shapes[i][0], CONTIGUOUS),
                     with_neighbouring_terms(dtypes[d], shapes[i][1]), NULL);
        }
}

/* Either side has few rows or columns, in every layout; their terms are neighbours or apart, few or many. */
static void few_rows_or_columns(void **state) {
    (void)state;
    static const smelt_shape shapes[][2] = {{{2, {17, 1000}}, {2, {1000, 3}}},
                                            {{2, {3, 1000}}, {2, {1000, 17}}},
                                            {{2, {40, 3000}}, {2, {3000, 3}}},
                                            {{2, {5, 70}}, {2, {70, 6}}},
                                            {{2, {300, 65}}, {2, {65, 8}}},
                                            {{2, {131, 20}}, {2, {20, 2}}},
                                            {{3, {70, 4, 4}}, {3, {70, 4, 4}}},
                                            {{3, {70, 8, 8}}, {3, {70, 8, 8}}},
                                            {{3, {9, 8, 64}}, {3, {9, 64, 8}}},
                                            {{3, {6, 5, 100}}, {3, {6, 100, 7}}},
                                            {{4, {2, 3, 1, 129}}, {4, {2, 3, 129, 100}}},
                                            {{3, {4, 33, 1}}, {3, {4, 1, 5}}},
                                            {{2, {1, 1000}}, {2, {1000, 1}}},
                                            {{3, {3, 1, 127}}, {3, {3, 127, 1}}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            smelt_dtype dtype = dtypes[(i + (size_t)layout) % 3];
            if (!in_sample(i + (size_t)layout, 2)) continue;
            multiply(matrix(dtype, shapes[i][0], (enum layout)layout),
                     with_neighbouring_terms(dtype, shapes[i][1]), NULL);
            multiply(matrix(dtype, shapes[i][0], CONTIGUOUS),
                     matrix(dtype, shapes[i][1], (enum layout)layout), NULL);
            multiply(matrix(dtype, shapes[i][0], TRANSPOSED), matrix(dtype, shapes[i][1], CONTIGUOUS), NULL);
        }
}

static void inputs_of_two_dtypes(void **state) {
    (void)state;
    for (int left = 0; left < 3; left++)
        for (int right = 0; right < 3; right++) {
            multiply(matrix(dtypes[left], SHAPE(20, 35), CONTIGUOUS),
                     matrix(dtypes[right], SHAPE(35, 50), CONTIGUOUS), NULL);
            multiply(matrix(dtypes[left], SHAPE(20, 35), CONTIGUOUS),
                     matrix(dtypes[right], SHAPE(35), CONTIGUOUS), NULL);
        }
}

/* Several blocks of the runtime in every direction; rows at multiples of a page. */
static void large_matrices(void **state) {
    (void)state;
    for (int d = 0; d < 3; d++) {
        multiply(matrix(dtypes[d], SHAPE(530, 300), CONTIGUOUS),
                 matrix(dtypes[d], SHAPE(300, 290), CONTIGUOUS), NULL);
        multiply(matrix(dtypes[d], SHAPE(200, 1024), CONTIGUOUS),
                 matrix(dtypes[d], SHAPE(1024, 256), TRANSPOSED), NULL);
        multiply(matrix(dtypes[d], SHAPE(1024, 256), TRANSPOSED),
                 matrix(dtypes[d], SHAPE(256, 96), CONTIGUOUS), NULL);
        multiply(matrix(dtypes[d], SHAPE(1025, 2050), CONTIGUOUS), matrix(dtypes[d], SHAPE(2050), CONTIGUOUS),
                 NULL);
    }
}

static void no_elements_and_no_terms(void **state) {
    (void)state;
    for (int d = 0; d < 3; d++) {
        multiply(matrix(dtypes[d], SHAPE(0, 5), CONTIGUOUS), matrix(dtypes[d], SHAPE(5, 4), CONTIGUOUS),
                 NULL);
        multiply(matrix(dtypes[d], SHAPE(3, 0), CONTIGUOUS), matrix(dtypes[d], SHAPE(0, 4), CONTIGUOUS),
                 NULL);
        multiply(matrix(dtypes[d], SHAPE(2, 3, 5), CONTIGUOUS),
                 matrix(dtypes[d], SHAPE(0, 1, 5, 4), CONTIGUOUS), NULL);
    }
}

static void values_that_are_not_finite(void **state) {
    (void)state;
    float x[6] = {INFINITY, 1, NAN, 2, 0, 1}, y[6] = {1, 0, -INFINITY, 2, 3, 1};
    for (int rows = 1; rows < 3; rows++) { /* a vector times a matrix, and tiles */
        smelt_array *left, *right;
        OK(smelt_array_from_values(SMELT_FLOAT32, SHAPE(rows, 2), x, &left));
        OK(smelt_array_from_values(SMELT_FLOAT32, SHAPE(2, 3), y, &right));
        smelt_array *result = APPLY(.operation = OP(MATMUL), .inputs = {left, right});
        double want[6] = {INFINITY, NAN, -INFINITY, NAN, NAN, NAN};
        assert_numbers(result, want, 0, 0);
        smelt_array_release(result);
        smelt_array_release(left);
        smelt_array_release(right);
    }
}

/* Each kernel of the ladder, with sizes that its tiles divide and others. */
static void algorithms(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{130, 70, 140}, {1, 1, 1},   {128, 64, 256}, {257, 12, 300},
                                       {31, 33, 65},   {64, 40, 1}, {5, 0, 7},      {0, 3, 4}};
    for (int n = 0; smelt_matmul_algorithm(n); n++)
        for (int d = 0; d < 3; d++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                if (!in_sample((size_t)(n + d), 3)) continue; /* every dtype, and every kernel */
                const char *name = smelt_matmul_algorithm(n), *device = i % 4 ? NULL : test_oracle();
                smelt_array *x = matrix(dtypes[d], SHAPE(sizes[i][0], sizes[i][1]), (enum layout)(i % 3)),
                            *y = matrix(dtypes[d], SHAPE(sizes[i][1], sizes[i][2]), CONTIGUOUS);
                smelt_array *result =
                    APPLY(.operation = OP(MATMUL), .inputs = {x, y}, .device = device, .algorithm = name);
                bool narrow = test_device_has_memory() && !strcmp(name, "tensor_core");
                check(x, y, result, 0, narrow ? 0x1p-10 : 0, name);
                smelt_array_release(result);
                smelt_array_release(x);
                smelt_array_release(y);
            }
}

/* As many tiles of 512 × 256 as the threads of most machines need, cut off at both ends. */
static void large_tiles(void **state) {
    smelt_array *x = matrix(SMELT_FLOAT32, (smelt_shape){.ndim = 2, .size = {1030, 5}}, CONTIGUOUS),
                *y = matrix(SMELT_FLOAT32, (smelt_shape){.ndim = 2, .size = {5, 1300}}, CONTIGUOUS);
    (void)state;
    smelt_array *result = APPLY(.operation = OP(MATMUL), .inputs = {x, y}, .algorithm = "best");
    check(x, y, result, 0, 0, "best");
    smelt_array_release(result);
    smelt_array_release(x);
    smelt_array_release(y);
}

/* On a GPU, tiles for one or many products; rows of half and bfloat that tensor maps cannot describe. */
static void products_that_fill_a_gpu(void **state) {
    (void)state;
    for (int d = 0; d < 3; d++) {
        /* These sizes are not special for a CPU: one dtype is enough. */
        if (!test_device_has_memory() && !in_sample((size_t)d, 3)) continue;
        smelt_dtype dtype = dtypes[d];
        multiply(matrix(dtype, SHAPE(4, 260, 258), CONTIGUOUS), matrix(dtype, SHAPE(4, 258, 270), CONTIGUOUS),
                 NULL);
        multiply(matrix(dtype, SHAPE(4, 257, 264), CONTIGUOUS), matrix(dtype, SHAPE(264, 257), CONTIGUOUS),
                 NULL);
        multiply(matrix(dtype, SHAPE(260, 100), CONTIGUOUS), matrix(dtype, SHAPE(2, 2, 100, 272), CONTIGUOUS),
                 NULL);
        multiply(matrix(dtype, SHAPE(531, 261), CONTIGUOUS), matrix(dtype, SHAPE(261, 512), CONTIGUOUS),
                 NULL);
        multiply(matrix(dtype, SHAPE(17, 1040), CONTIGUOUS), matrix(dtype, SHAPE(1040, 1000), TRANSPOSED),
                 NULL);
        multiply(matrix(dtype, SHAPE(3, 270, 260), CONTIGUOUS),
                 with_neighbouring_terms(dtype, SHAPE(3, 260, 280)), NULL);
    }
}

/* Each form of `best` on a GPU, with K whole and in parts, each operand contiguous and transposed. */
static void forms_of_a_gpu(void **state) {
    (void)state;
    if (!test_device_has_memory()) SKIP_TEST("for GPUs only");
    for (int d = 0; d < 3; d++) {
        struct matmul_form form;
        for (int i = 0; matmul_form_at(dtypes[d], i, &form); i++)
            for (int n = 0; n < 8; n++) {
                int64_t k = n & 4 ? 521 : 520;
                smelt_array *x = matrix(dtypes[d], SHAPE(264, k), n & 1 ? TRANSPOSED : CONTIGUOUS),
                            *y = matrix(dtypes[d], SHAPE(k, 392), n & 2 ? TRANSPOSED : CONTIGUOUS);
                tune_setting_force((int64_t[]){form.rows, form.columns, form.threads, n % 3 ? 1 : 2});
                multiply(x, y, NULL);
                tune_setting_force(NULL);
            }
    }
}

/* On a GPU, with more large tiles than multiprocessors, a threadgroup of best_warpgroups.metal computes
 * several tiles, also of different products. */
static void more_tiles_than_multiprocessors(void **state) {
    (void)state;
    if (!test_device_has_memory()) SKIP_TEST("for GPUs only");
    for (int d = 1; d < 3; d++) {
        tune_setting_force((int64_t[]){d == 1 ? 128 : 256, d == 1 ? 256 : 128, 256, 1});
        multiply(matrix(dtypes[d], SHAPE(2060, 264), CONTIGUOUS),
                 matrix(dtypes[d], SHAPE(264, 2104), TRANSPOSED), NULL);
        multiply(matrix(dtypes[d], SHAPE(3, 1000, 264), CONTIGUOUS),
                 matrix(dtypes[d], SHAPE(3, 264, 1500), CONTIGUOUS), NULL);
        /* A part of K has fewer stages than the third warpgroup usually waits for. */
        tune_setting_force((int64_t[]){128, 256, 256, 4});
        multiply(matrix(dtypes[d], SHAPE(130, 264), CONTIGUOUS),
                 matrix(dtypes[d], SHAPE(264, 264), CONTIGUOUS), NULL);
        tune_setting_force(NULL);
    }
}

/* The parts of K cover it, and none is empty. Forms that do not exist are refused. */
static void forms_divide_k(void **state) {
    (void)state;
    struct matmul_form form = {64, 64, 64, 0};
    for (int d = 0; d < 2; d++)
        for (int64_t k = 0; k < 3000; k += 1 + k / 7)
            for (int64_t parts = 1; parts < 20; parts++) {
                form.parts = parts;
                int64_t depth = matmul_form_depth(dtypes[d], k, &form);
                assert_true(depth % (d ? 64 : 8) == 0 && depth > 0);
                assert_true(form.parts >= 1 && form.parts <= parts);
                assert_true(form.parts * depth >= k && (form.parts - 1) * depth < (k ? k : 1));
            }
    form.parts = 1;
    assert_true(matmul_form_exists(SMELT_FLOAT32, &form));
    assert_false(matmul_form_exists(SMELT_FLOAT16, &form)); /* that form has 128 threads */
    form.parts = 0;
    assert_false(matmul_form_exists(SMELT_FLOAT32, &form));
}

/* The fastest forms on an H200, or nearly so (docs/matmul.md). */
static void forms_are_chosen_by_sizes(void **state) {
    (void)state;
    static const struct {
        struct matmul_sizes sizes;
        int64_t rows, columns, parts;
    } cases[] = {{{512, 512, 512, 1}, 64, 64, 1},     {{4096, 4096, 4096, 1}, 128, 256, 1},
                 {{128, 4096, 4096, 1}, 128, 128, 4}, {{128, 14336, 4096, 1}, 128, 128, 1},
                 {{512, 4096, 4096, 1}, 128, 128, 1}, {{2048, 2048, 2048, 1}, 128, 256, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct matmul_form form = matmul_form_choose(SMELT_BFLOAT16, &cases[i].sizes);
        assert_int_equal(form.rows, cases[i].rows);
        assert_int_equal(form.columns, cases[i].columns);
        assert_int_equal(form.parts, cases[i].parts);
    }
}

/* On CPUs, all sizes of a class (tune/setting.h) use the tile that was tuned for it, or none of them does. */
static void small_products_use_a_tuned_tile(void **state) {
    (void)state;
    char file[64];
    if (test_device_has_memory()) SKIP_TEST("for CPUs only");
    snprintf(file, sizeof file, "/tmp/smelt_test_matmul_%d.json", (int)getpid());
    tune_setting_force((int64_t[SETTING_NUMBERS]){32, 64});
    OK(smelt_trace_start(file));
    multiply(matrix(SMELT_FLOAT32, SHAPE(100, 30), CONTIGUOUS),
             matrix(SMELT_FLOAT32, SHAPE(30, 70), CONTIGUOUS), NULL);
    OK(smelt_trace_stop());
    tune_setting_force(NULL);
    struct text text = read_trace(file);
    if (count_of(&text, "\"groups\":[2,4,1]") != 1) FAIL_TEST("not 2 x 4 tiles: %s", text_string(&text));
    text_free(&text);
    unlink(file);
}

static void algorithms_refuse(void **state) {
    (void)state;
    smelt_array *x = matrix(SMELT_FLOAT32, SHAPE(3, 4), CONTIGUOUS),
                *y = matrix(SMELT_FLOAT32, SHAPE(4, 5), CONTIGUOUS),
                *half = matrix(SMELT_FLOAT16, SHAPE(4, 5), CONTIGUOUS),
                *batch = matrix(SMELT_FLOAT32, SHAPE(2, 4, 5), CONTIGUOUS);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "algorithm 'fast' is unknown; expected one of naive, coalescing",
          .operation = OP(MATMUL), .inputs = {x, y}, .algorithm = "fast");
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "algorithm 'tiled' has no product of float32 and float16",
          .operation = OP(MATMUL), .inputs = {x, half}, .algorithm = "tiled");
    FAILS(SMELT_ERROR_INVALID_ARGUMENT,
          "algorithm 'best' multiplies two matrices; the shapes are 3x4 and 2x4x5", .operation = OP(MATMUL),
          .inputs = {x, batch}, .algorithm = "best");
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_array_release(half);
    smelt_array_release(batch);
}

int main(void) {
    test_quick_code();
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_PERTURB, 1); /* allocated memory holds bytes 0xfe */
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_that_no_tile_divides),
                                       cmocka_unit_test(every_layout),
                                       cmocka_unit_test(batches_are_broadcast),
                                       cmocka_unit_test(inputs_of_two_dtypes),
                                       cmocka_unit_test(large_matrices),
                                       cmocka_unit_test(no_elements_and_no_terms),
                                       cmocka_unit_test(values_that_are_not_finite),
                                       cmocka_unit_test(algorithms),
                                       cmocka_unit_test(large_tiles),
                                       cmocka_unit_test(products_that_fill_a_gpu),
                                       cmocka_unit_test(forms_of_a_gpu),
                                       cmocka_unit_test(small_products_use_a_tuned_tile),
                                       cmocka_unit_test(few_rows_or_columns),
                                       cmocka_unit_test(more_tiles_than_multiprocessors),
                                       cmocka_unit_test(forms_divide_k),
                                       cmocka_unit_test(forms_are_chosen_by_sizes),
                                       cmocka_unit_test(algorithms_refuse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
