/* The seeds' own grid_sample: the forward kernel, which loads first and selects 0 afterwards, on memory
 * between inaccessible pages; and the VJP, whose gap in the document is filled in here. */
#include "seeds.h"
#include "kernels/vision/grid_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const smelt_template *dtype_template(smelt_dtype dtype) {
    static smelt_template template;
    template = (smelt_template){.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = dtype};
    return &template;
}

static smelt_shape image_shape(const struct grid_sample_size *s) {
    return SHAPE(s->batch, s->height, s->width, s->channels);
}
static smelt_shape out_shape(const struct grid_sample_size *s) {
    return SHAPE(s->batch, s->rows, s->columns, s->channels);
}

static smelt_kernel *forward_kernel(const char *document) {
    char *source = seed_block(document, "source = \"\"\"", "\"\"\"", 3);
    smelt_kernel *kernel;
    CHECK(smelt_kernel_create(
        &(smelt_kernel_desc){
            .name = "grid_sample", .source = source, .inputs = {"x", "grid"}, .outputs = {"out"}},
        &kernel));
    free(source);
    return kernel;
}

static void check_forward(smelt_kernel *kernel, const struct grid_sample_size *s, smelt_array *x,
                          smelt_array *grid) {
    smelt_dtype dtype = smelt_array_dtype(x);
    smelt_array *out;
    CHECK(smelt_kernel_run(kernel,
                           &(smelt_run_desc){.device = test_device(),
                                             .inputs = {x, grid},
                                             .grid = {s->batch * s->rows * s->columns * s->channels},
                                             .threadgroup = {256},
                                             .templates = {*dtype_template(dtype)},
                                             .output_shapes = {out_shape(s)},
                                             .output_dtypes = {dtype},
                                             .initialise = true,
                                             .init_value = (double)NAN},
                           &out));
    double *values = values_of(x), *points = values_of(grid);
    double *expected = calloc((size_t)smelt_array_size(out), sizeof *expected);
    smelt_reference_grid_sample(s, values, points, expected);
    /* The seed's weights, products and sums are of type T. */
    assert_close("the seed's grid_sample", out, expected, 1e-6,
                 dtype == SMELT_FLOAT32 ? 5e-5 : 40 * rounding(dtype));
    free(values);
    free(points);
    free(expected);
    smelt_array_release(out);
}

/* Every point touches row -1, row H, column -1 or column W, or is outside altogether. */
static smelt_array *border_points(const struct grid_sample_size *s) {
    smelt_array *grid = random_points(s->batch, s->rows, s->columns, 1.0, 4);
    float *value = smelt_array_data(grid);
    static const float edge[] = {-1, 1, -1.05f, 1.05f, -1.7f, 1.7f};
    for (int64_t p = 0; p < smelt_array_size(grid) / 2; p++) value[2 * p + (p & 1)] = edge[p / 2 % 6];
    return grid;
}

static void forward_loads_outside_the_image_are_thrown_away(void **state) {
    (void)state;
    char *document = seed_document("003_58571cf5fbbbae47.txt");
    if (!document) skip();
    smelt_kernel *kernel = forward_kernel(document);
    /* 4096 bytes as float32: inaccessible pages on both sides; then sizes that touch one side at a time. */
    static const struct grid_sample_size sizes[] = {
        {1, 16, 16, 4, 16, 24}, {1, 5, 7, 3, 8, 9}, {2, 1, 1, 1, 3, 4}, {3, 9, 4, 33, 5, 3}};
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};
    for (size_t d = 0; d < 3; d++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int at_end = 0; at_end < 2; at_end++) {
                smelt_array *values = random_array(dtypes[d], image_shape(&sizes[i]), i);
                smelt_array *x = between_guards(values, at_end), *grid = border_points(&sizes[i]);
                check_forward(kernel, &sizes[i], x, grid);
                smelt_array_release(values);
                smelt_array_release(x);
                smelt_array_release(grid);
            }
    smelt_kernel_release(kernel);
    free(document);
}

/* The shipped kernels load only corners inside the image. */
static void shipped_kernels_stay_inside_the_image(void **state) {
    (void)state;
    const struct grid_sample_size s = {1, 16, 16, 4, 16, 24};
    smelt_array *values = random_array(SMELT_FLOAT32, image_shape(&s), 1), *x = between_guards(values, true);
    smelt_array *grid = border_points(&s), *cotangent = random_array(SMELT_FLOAT32, out_shape(&s), 2);
    smelt_array *out, *x_grad, *grid_grad;
    CHECK(smelt_grid_sample(x, grid, &out, ON_DEVICE));
    CHECK(smelt_grid_sample_vjp(x, grid, cotangent, &x_grad, &grid_grad, ON_DEVICE));
    smelt_array *all[] = {values, x, grid, cotangent, out, x_grad, grid_grad};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) smelt_array_release(all[i]);
}

/* ---- The VJP. What the document kept is used unchanged; the corners that it lost, and the test before the
 * last one, are written here with its names. */

static void add_corner_test(FILE *out, const char *corner) {
    fprintf(out, "if (iy_%s >= 0 && iy_%s <= H - 1 && ix_%s >= 0 && ix_%s <= W - 1) {\n", corner, corner,
            corner, corner);
}

static char *whole_vjp(const char *document) {
    static const struct {
        const char *name, *by_x, *by_y;
    } lost[] = {{"nw", "-(iy_se - iy)", "-(ix_se - ix)"},
                {"ne", "(iy_sw - iy)", "-(ix - ix_sw)"},
                {"sw", "-(iy - iy_ne)", "(ix_ne - ix)"}};
    char *text = seed_block(document, "source = \"\"\"", "\"\"\"", 3);
    seed_repair(text, (const char *const[]){"multiple", "first.", "atomics.", NULL});
    const char *kept = "ix_se <= W - 1) {";
    char *gap = strstr(text, "if (channel_idx = 0"), *rest = strstr(text, kept);
    assert_non_null(gap);
    assert_non_null(rest);
    char *whole = NULL;
    size_t length;
    FILE *out = open_memstream(&whole, &length);
    assert_non_null(out);
    fwrite(text, 1, (size_t)(gap - text), out);
    fprintf(out, "if (channel_idx < C) {\nT cot = cotangent[elem / C_padded * C + channel_idx];\n");
    for (int k = 0; k < 3; k++) {
        add_corner_test(out, lost[k].name);
        fprintf(out,
                "int offset = base_idx + iy_%s * h_stride + ix_%s * w_stride;\n"
                "atomic_fetch_add_explicit(&x_grad[offset], %s * cot, memory_order_relaxed);\n"
                "gix += x[offset] * %s * cot;\ngiy += x[offset] * %s * cot;\n}\n",
                lost[k].name, lost[k].name, lost[k].name, lost[k].by_x, lost[k].by_y);
    }
    add_corner_test(out, "se");
    fputs(rest + strlen(kept), out);
    assert_int_equal(fclose(out), 0);
    free(text);
    return whole;
}

/* The document halves sizes as integers: for odd sizes its gradient is smaller than the derivative. */
static void halve_as_integers(const struct grid_sample_size *s, double *grid_grad) {
    for (int64_t p = 0; p < s->batch * s->rows * s->columns; p++) {
        grid_grad[2 * p] *= (double)(s->width / 2) / ((double)s->width / 2);
        grid_grad[2 * p + 1] *= (double)(s->height / 2) / ((double)s->height / 2);
    }
}

static void check_vjp(smelt_kernel *kernel, const struct grid_sample_size *s) {
    smelt_array *values = random_array(SMELT_FLOAT32, image_shape(s), 11), *x = between_guards(values, true);
    smelt_array *grid = random_points(s->batch, s->rows, s->columns, 1.3, 12);
    smelt_array *cotangent = random_array(SMELT_FLOAT32, out_shape(s), 13), *outputs[2];
    CHECK(smelt_kernel_run(
        kernel,
        &(smelt_run_desc){.device = test_device(),
                          .inputs = {x, grid, cotangent},
                          .grid = {s->batch * s->rows * s->columns * ((s->channels + 31) / 32 * 32)},
                          .threadgroup = {256},
                          .templates = {*dtype_template(SMELT_FLOAT32)},
                          .output_shapes = {image_shape(s), smelt_array_shape(grid)},
                          .output_dtypes = {SMELT_FLOAT32, SMELT_FLOAT32},
                          .initialise = true,
                          .init_value = 0},
        outputs));
    double *wide = values_of(x), *points = values_of(grid), *g = values_of(cotangent);
    double *x_expected = calloc((size_t)smelt_array_size(x), sizeof *x_expected);
    double *grid_expected = calloc((size_t)smelt_array_size(grid), sizeof *grid_expected);
    smelt_reference_grid_sample_vjp(s, wide, points, g, x_expected, grid_expected);
    halve_as_integers(s, grid_expected);
    assert_close("the seed's x_grad", outputs[0], x_expected, 1e-5, 2e-4);
    assert_close("the seed's grid_grad", outputs[1], grid_expected, 1e-5, 2e-3);
    smelt_array *arrays[] = {values, x, grid, cotangent, outputs[0], outputs[1]};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
    double *memory[] = {wide, points, g, x_expected, grid_expected};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) free(memory[i]);
}

static void seed_vjp(void **state) {
    (void)state;
    char *document = seed_document("000_cfbc3d0c38416d44.txt");
    if (!document) skip();
    char *source = whole_vjp(document);
    smelt_kernel *kernel;
    CHECK(smelt_kernel_create(&(smelt_kernel_desc){.name = "grid_sample_grad",
                                                   .source = source,
                                                   .inputs = {"x", "grid", "cotangent"},
                                                   .outputs = {"x_grad", "grid_grad"},
                                                   .atomic_outputs = true},
                              &kernel));
    /* Even sizes, odd sizes, more channels than lanes. */
    static const struct grid_sample_size sizes[] = {
        {2, 6, 8, 3, 5, 4}, {1, 7, 5, 3, 4, 6}, {1, 4, 3, 40, 3, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_vjp(kernel, &sizes[i]);
    smelt_kernel_release(kernel);
    free(source);
    free(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_loads_outside_the_image_are_thrown_away),
        cmocka_unit_test(shipped_kernels_stay_inside_the_image),
        cmocka_unit_test(seed_vjp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
