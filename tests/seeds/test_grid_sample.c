/* grid_sample and its VJP: the shipped kernels against the float64 reference and finite differences. */
#include "seeds.h"
#include "kernels/vision/grid_sample.h"

#include <math.h>
#include <stdlib.h>

/* Odd and prime sizes, one channel, more channels than a simdgroup has lanes, an image of one pixel, inputs
 * of fewer than eight elements (the kernel gets these as constants). */
static const struct grid_sample_size sizes[] = {
    {2, 5, 7, 3, 4, 9},   {1, 1, 1, 1, 1, 3},   {3, 11, 6, 33, 3, 5},
    {1, 2, 1, 1, 17, 23}, {1, 9, 13, 64, 5, 1}, {2, 16, 16, 32, 8, 8},
};

struct input {
    struct grid_sample_size size;
    smelt_array *x, *grid, *cotangent;
};

static struct input make_input(struct grid_sample_size s, smelt_dtype dtype, uint64_t seed) {
    struct input input = {.size = s};
    input.x = random_array(dtype, SHAPE(s.batch, s.height, s.width, s.channels), seed);
    input.grid = random_points(s.batch, s.rows, s.columns, 1.4, seed + 1);
    input.cotangent = random_array(dtype, SHAPE(s.batch, s.rows, s.columns, s.channels), seed + 2);
    /* Points on the border, on corners, far outside, and at infinity. */
    static const float special[] = {-1, -1, 1, 1, 0, 0, -1, 1, 1e30f, 0, 0, -1e30f, 3, 3};
    float *points = smelt_array_data(input.grid);
    for (int64_t i = 0;
         i < (int64_t)(sizeof special / sizeof *special) && i < smelt_array_size(input.grid) / 2; i++)
        points[i] = special[i];
    return input;
}

static void free_input(struct input *input) {
    smelt_array_release(input->x);
    smelt_array_release(input->grid);
    smelt_array_release(input->cotangent);
}

static double *zeros(int64_t count) {
    double *values = calloc((size_t)count, sizeof *values);
    assert_non_null(values);
    return values;
}

/* Coordinates in pixels carry a rounding of `size` units, which affects the weights. */
static double absolute_tolerance(const struct grid_sample_size *size) {
    return 2e-6 * (double)(size->width + size->height);
}

/* In make check, each type of 16 bits is tested with half of the sizes: each compiles code of its own. */
static bool is_tested(size_t size, size_t type) {
    return !type || (size + type) % 2 || getenv("SMELT_TEST_FULL") || getenv("SMELT_TEST_DEVICE");
}

static void forward_matches_the_reference(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            if (!is_tested(s, d)) continue;
            struct input input = make_input(sizes[s], dtypes[d], 10 * s);
            double *x = values_of(input.x), *grid = values_of(input.grid);
            double *expected = zeros(smelt_array_size(input.cotangent));
            smelt_array *out;
            CHECK(smelt_grid_sample(input.x, input.grid, &out,
                                    &(smelt_call){.poison = true, .device = test_device()}));
            assert_int_equal(smelt_array_dtype(out), dtypes[d]);
            smelt_reference_grid_sample(&sizes[s], x, grid, expected);
            assert_close("grid_sample", out, expected, 1.1 * rounding(dtypes[d]),
                         absolute_tolerance(&sizes[s]));
            smelt_array_release(out);
            free(x);
            free(grid);
            free(expected);
            free_input(&input);
        }
}

/* Half inputs, and views as inputs: the kernel sees row-contiguous copies. */
static void points_and_images_may_be_views_of_any_float(void **state) {
    (void)state;
    const struct grid_sample_size size = {2, 6, 5, 3, 4, 3};
    smelt_array *base = random_array(SMELT_FLOAT32, SHAPE(2, 3, 6, 5), 5), *x, *out, *grid;
    smelt_array *points = random_points(2, 4, 3, 1.2, 6);
    /* Channels first in memory, rows upside down. */
    CHECK(smelt_array_view(base, SHAPE(2, 6, 5, 3), (int64_t[]){90, -5, 1, 30}, 25, &x));
    CHECK(smelt_array_convert(points, SMELT_FLOAT16, &grid));
    CHECK(smelt_grid_sample(x, grid, &out, &(smelt_call){.poison = true, .device = test_device()}));
    double *values = values_of(x), *where = values_of(grid), *expected = zeros(smelt_array_size(out));
    smelt_reference_grid_sample(&size, values, where, expected);
    assert_close("grid_sample of views", out, expected, 1e-6, absolute_tolerance(&size));
    free(values);
    free(where);
    free(expected);
    smelt_array_release(base);
    smelt_array_release(points);
    smelt_array_release(x);
    smelt_array_release(grid);
    smelt_array_release(out);
}

static void vjp_matches_the_reference(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            if (!is_tested(s, d)) continue;
            struct input input = make_input(sizes[s], dtypes[d], 20 * s);
            double *x = values_of(input.x), *grid = values_of(input.grid), *g = values_of(input.cotangent);
            double *x_expected = zeros(smelt_array_size(input.x));
            double *grid_expected = zeros(smelt_array_size(input.grid));
            smelt_array *x_grad, *grid_grad;
            CHECK(smelt_grid_sample_vjp(input.x, input.grid, input.cotangent, &x_grad, &grid_grad,
                                        &(smelt_call){.poison = true, .device = test_device()}));
            smelt_reference_grid_sample_vjp(&sizes[s], x, grid, g, x_expected, grid_expected);
            /* Sums over points and over channels: the error grows with the number of terms. */
            double terms = (double)(sizes[s].rows * sizes[s].columns + sizes[s].channels);
            double absolute = absolute_tolerance(&sizes[s]) * sqrt(terms);
            assert_close("x_grad", x_grad, x_expected, 1e-6, absolute);
            assert_close("grid_grad", grid_grad, grid_expected, 1e-6,
                         absolute * (double)(sizes[s].width + sizes[s].height));
            smelt_array_release(x_grad);
            smelt_array_release(grid_grad);
            free(x);
            free(grid);
            free(g);
            free(x_expected);
            free(grid_expected);
            free_input(&input);
        }
}

/* ---- Finite differences. Along one axis the samples are linear between pixel centres, and linear in x:
 * central differences are exact as long as the step stays within the square of four pixels. */

/* Sum over the channels of each point of cotangent * (above - below). */
static double *change(const struct input *input, smelt_array *above, smelt_array *below) {
    const struct grid_sample_size *s = &input->size;
    int64_t points = s->batch * s->rows * s->columns;
    double *sum = zeros(points), *a = values_of(above), *b = values_of(below),
           *g = values_of(input->cotangent);
    for (int64_t i = 0; i < points * s->channels; i++) sum[i / s->channels] += g[i] * (a[i] - b[i]);
    free(a);
    free(b);
    free(g);
    return sum;
}

static smelt_array *moved_points(smelt_array *grid, int axis, float by) {
    smelt_array *moved;
    CHECK(smelt_array_convert(grid, SMELT_FLOAT32, &moved));
    float *value = smelt_array_data(moved);
    for (int64_t i = axis; i < smelt_array_size(moved); i += 2) value[i] += by;
    return moved;
}

static void grid_gradient_matches_finite_differences(void **state) {
    (void)state;
    const struct grid_sample_size s = {2, 7, 9, 5, 6, 7};
    struct input input = make_input(s, SMELT_FLOAT32, 3);
    /* Near the middle of squares of four pixels, some of them half outside. */
    float *points = smelt_array_data(input.grid);
    for (int64_t i = 0; i < smelt_array_size(input.grid); i++) {
        double size = i % 2 ? (double)s.height : (double)s.width;
        double pixel = floor(((double)points[i] + 1) / 2 * size) - 0.5 + 0.1 * sin((double)i);
        if (fabs((double)points[i]) > 4) pixel = -7.5;
        points[i] = (float)((2 * pixel + 1) / size - 1);
    }
    smelt_array *x_grad, *grid_grad;
    CHECK(smelt_grid_sample_vjp(input.x, input.grid, input.cotangent, &x_grad, &grid_grad, ON_DEVICE));
    double *expected = zeros(smelt_array_size(input.grid));
    for (int axis = 0; axis < 2; axis++) {
        float step = 0.3f * 2 / (float)(axis ? s.height : s.width);
        smelt_array *there = moved_points(input.grid, axis, step),
                    *back = moved_points(input.grid, axis, -step);
        smelt_array *above, *below;
        CHECK(smelt_grid_sample(input.x, there, &above, ON_DEVICE));
        CHECK(smelt_grid_sample(input.x, back, &below, ON_DEVICE));
        double *sum = change(&input, above, below);
        for (int64_t p = 0; p < smelt_array_size(input.grid) / 2; p++)
            expected[2 * p + axis] = sum[p] / (2 * (double)step);
        free(sum);
        smelt_array_release(there);
        smelt_array_release(back);
        smelt_array_release(above);
        smelt_array_release(below);
    }
    assert_close("grid_grad", grid_grad, expected, 1e-4, 2e-4);
    free(expected);
    smelt_array_release(x_grad);
    smelt_array_release(grid_grad);
    free_input(&input);
}

static void image_gradient_matches_finite_differences(void **state) {
    (void)state;
    const struct grid_sample_size s = {1, 5, 4, 3, 6, 7};
    struct input input = make_input(s, SMELT_FLOAT32, 8);
    smelt_array *x_grad, *grid_grad;
    CHECK(smelt_grid_sample_vjp(input.x, input.grid, input.cotangent, &x_grad, &grid_grad, ON_DEVICE));
    float *x = smelt_array_data(input.x);
    double *expected = zeros(smelt_array_size(input.x));
    for (int64_t i = 0; i < smelt_array_size(input.x); i++) {
        smelt_array *above, *below;
        float kept = x[i];
        x[i] = kept + 1;
        CHECK(smelt_grid_sample(input.x, input.grid, &above, ON_DEVICE));
        x[i] = kept - 1;
        CHECK(smelt_grid_sample(input.x, input.grid, &below, ON_DEVICE));
        x[i] = kept;
        double *sum = change(&input, above, below);
        for (int64_t p = 0; p < s.batch * s.rows * s.columns; p++) expected[i] += sum[p] / 2;
        free(sum);
        smelt_array_release(above);
        smelt_array_release(below);
    }
    assert_close("x_grad", x_grad, expected, 1e-4, 2e-5);
    free(expected);
    smelt_array_release(x_grad);
    smelt_array_release(grid_grad);
    free_input(&input);
}

static void wrong_shapes_are_refused(void **state) {
    (void)state;
    smelt_array *x = random_array(SMELT_FLOAT32, SHAPE(2, 3, 3, 1), 1);
    smelt_array *other_batch = random_points(1, 2, 2, 1, 2),
                *no_points = random_array(SMELT_FLOAT32, SHAPE(2, 2, 2, 3), 3);
    smelt_array *points = random_points(2, 2, 2, 1, 2), *out = NULL, *other = NULL;
    assert_int_equal(smelt_grid_sample(x, other_batch, &out, ON_DEVICE), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_grid_sample(x, no_points, &out, ON_DEVICE), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_grid_sample_vjp(x, points, no_points, &out, &other, ON_DEVICE),
                     SMELT_ERROR_INVALID_ARGUMENT);
    assert_null(out);
    assert_null(other);
    smelt_array_release(x);
    smelt_array_release(other_batch);
    smelt_array_release(no_points);
    smelt_array_release(points);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_matches_the_reference),
        cmocka_unit_test(points_and_images_may_be_views_of_any_float),
        cmocka_unit_test(vjp_matches_the_reference),
        cmocka_unit_test(grid_gradient_matches_finite_differences),
        cmocka_unit_test(image_gradient_matches_finite_differences),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
