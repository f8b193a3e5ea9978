/* The derivatives of f = sum(cotangent · grid_sample(picture, points)), three ways: the kernel, float64, and
 * finite differences of the forward kernel. f is linear in the picture, and linear in a point's coordinate as
 * long as the point stays between the same four pixels, so that central differences are exact but for
 * rounding. */
#include "demo.h"
#include "kernels/vision/grid_sample.h"

#include <math.h>
#include <stdlib.h>

/* Fewer points than the picture has pixels: each costs a whole simdgroup. */
#define ROWS 96
#define COLUMNS 128
#define POINTS (ROWS * COLUMNS)

static const struct grid_sample_size size = {1, PICTURE_HEIGHT, PICTURE_WIDTH, 3, ROWS, COLUMNS};

struct problem {
    smelt_array *x, *points, *cotangent;
    smelt_array *x_grad, *grid_grad;
};

static double largest(const double *values, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(values[i]));
    return most;
}

static void compare_with_float64(const struct problem *p, const smelt_run_info *info) {
    int64_t pixels = smelt_array_size(p->x);
    double *x = values_of(p->x), *points = values_of(p->points), *g = values_of(p->cotangent);
    double *x_grad = require_memory(malloc(sizeof *x_grad * (size_t)pixels));
    double *grid_grad = require_memory(malloc(sizeof *grid_grad * 2 * POINTS));
    smelt_reference_grid_sample_vjp(&size, x, points, g, x_grad, grid_grad);
    double by_x = largest_error(p->x_grad, x_grad) / largest(x_grad, pixels);
    double by_grid = largest_error(p->grid_grad, grid_grad) / largest(grid_grad, 2 * POINTS);
    report("its gradient: grid_sample_vjp", info, fmax(by_x, by_grid), 2e-4);
    free(x);
    free(points);
    free(g);
    free(x_grad);
    free(grid_grad);
}

static double *forward(smelt_array *x, smelt_array *points) {
    smelt_array *out;
    require(smelt_grid_sample(x, points, &out, NULL), "grid_sample");
    double *values = values_of(out);
    smelt_array_release(out);
    return values;
}

/* `array` + scale · direction, as float32. */
static smelt_array *moved(smelt_array *array, const double *direction, double scale) {
    smelt_array *result;
    require(smelt_array_convert(array, SMELT_FLOAT32, &result), "a copy");
    float *values = smelt_array_data(result);
    for (int64_t i = 0; i < smelt_array_size(result); i++) values[i] += (float)(scale * direction[i]);
    return result;
}

/* The change of f along a random direction of the picture, against the gradient's product with it. */
static void difference_of_picture(const struct problem *p) {
    smelt_array *random;
    require(smelt_array_normal(SMELT_FLOAT32, smelt_array_shape(p->x), 12, &random), "a direction");
    double *direction = values_of(random), *gradient = values_of(p->x_grad), *g = values_of(p->cotangent);
    smelt_array *there = moved(p->x, direction, 1), *back = moved(p->x, direction, -1);
    double *above = forward(there, p->points), *below = forward(back, p->points);
    double change = 0, product = 0, scale = 0;
    for (int64_t i = 0; i < 3 * POINTS; i++) change += g[i] * (above[i] - below[i]) / 2;
    for (int64_t i = 0; i < smelt_array_size(p->x); i++) {
        product += gradient[i] * direction[i];
        scale += gradient[i] * gradient[i];
    }
    report("  by finite differences, picture", NULL, fabs(change - product) / sqrt(scale), 1e-4);
    smelt_array_release(random);
    smelt_array_release(there);
    smelt_array_release(back);
    free(direction);
    free(gradient);
    free(g);
    free(above);
    free(below);
}

/* Whether a point can move by a fifth of a pixel along the axis and stay between the same pixels. */
static bool has_room(double coordinate, int axis) {
    double pixel = ((coordinate + 1) * (axis ? PICTURE_HEIGHT : PICTURE_WIDTH) - 1) / 2;
    double part = pixel - floor(pixel);
    return part > 0.25 && part < 0.75;
}

/* All points move at once along one axis: each changes only its own three samples. */
static void difference_of_points(const struct problem *p) {
    double *points = values_of(p->points), *gradient = values_of(p->grid_grad), *g = values_of(p->cotangent);
    double *direction = require_memory(malloc(sizeof *direction * 2 * POINTS));
    double worst = 0;
    for (int axis = 0; axis < 2; axis++) {
        double step = 0.2 * 2 / (axis ? PICTURE_HEIGHT : PICTURE_WIDTH);
        for (int i = 0; i < 2 * POINTS; i++) direction[i] = i % 2 == axis ? step : 0;
        smelt_array *there = moved(p->points, direction, 1), *back = moved(p->points, direction, -1);
        double *above = forward(p->x, there), *below = forward(p->x, back);
        for (int64_t i = 0; i < POINTS; i++) {
            if (!has_room(points[2 * i + axis], axis)) continue;
            double change = 0;
            for (int64_t c = 3 * i; c < 3 * i + 3; c++) change += g[c] * (above[c] - below[c]);
            double error = fabs(change / (2 * step) - gradient[2 * i + axis]);
            if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
        }
        smelt_array_release(there);
        smelt_array_release(back);
        free(above);
        free(below);
    }
    report("  by finite differences, points", NULL, worst / largest(gradient, 2 * POINTS), 1e-3);
    free(points);
    free(gradient);
    free(g);
    free(direction);
}

void check_gradient(smelt_array *picture) {
    struct problem p = {.points = whirl(ROWS, COLUMNS)};
    smelt_run_info info;
    require(smelt_array_view(picture, (smelt_shape){4, {1, PICTURE_HEIGHT, PICTURE_WIDTH, 3}},
                             (int64_t[]){PICTURE_HEIGHT * PICTURE_WIDTH * 3, PICTURE_WIDTH * 3, 3, 1}, 0,
                             &p.x),
            "the picture as a batch of one");
    require(smelt_array_normal(SMELT_FLOAT32, (smelt_shape){4, {1, ROWS, COLUMNS, 3}}, 11, &p.cotangent),
            "the cotangent");
    require(smelt_grid_sample_vjp(p.x, p.points, p.cotangent, &p.x_grad, &p.grid_grad,
                                  &(smelt_call){.info = &info}),
            "grid_sample_vjp");
    compare_with_float64(&p, &info);
    difference_of_picture(&p);
    difference_of_points(&p);
    smelt_array *arrays[] = {p.x, p.points, p.cotangent, p.x_grad, p.grid_grad};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
}
