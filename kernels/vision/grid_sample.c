#include "kernels/vision/grid_sample.h"
#include "kernels/kernel_text.h"
#include "kernels/shipped.h"

#define SIMDGROUP_LANES 32

static bool sizes_fit(const smelt_array *x, const smelt_array *grid) {
    if (!shipped_is_float(x, 4) || !shipped_is_float(grid, 4)) return false;
    smelt_shape image = smelt_array_shape(x), points = smelt_array_shape(grid);
    return points.size[0] == image.size[0] && points.size[3] == 2;
}

static smelt_shape out_shape(const smelt_array *x, const smelt_array *grid) {
    smelt_shape shape = smelt_array_shape(grid);
    shape.size[3] = smelt_array_shape(x).size[3];
    return shape;
}

static int64_t count(smelt_shape shape) {
    int64_t product = 1;
    for (int d = 0; d < shape.ndim; d++) product *= shape.size[d];
    return product;
}

/* A new array of zeros: what a call without work yields. */
static smelt_status zeros(smelt_dtype dtype, smelt_shape shape, smelt_array **array) {
    smelt_status status = smelt_array_create(dtype, shape, array);
    return status == SMELT_OK ? smelt_array_fill(*array, 0) : status;
}

smelt_status smelt_grid_sample(smelt_array *x, smelt_array *grid, smelt_array **out, const smelt_call *call) {
    if (!sizes_fit(x, grid)) return SMELT_ERROR_INVALID_ARGUMENT;
    smelt_shape shape = out_shape(x, grid);
    if (count(shape) == 0 || smelt_array_size(x) == 0) return zeros(smelt_array_dtype(x), shape, out);
    smelt_kernel *kernel;
    smelt_status status = shipped_kernel(&(smelt_kernel_desc){.name = "grid_sample",
                                                              .source = kernel_text_grid_sample,
                                                              .header = kernel_text_bilinear,
                                                              .header_label = "bilinear.metal",
                                                              .inputs = {"x", "grid"},
                                                              .outputs = {"out"}},
                                         &kernel);
    if (status != SMELT_OK) return status;
    smelt_run_desc run = {
        .inputs = {x, grid},
        .grid = {count(shape)},
        .threadgroup = {256},
        .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = smelt_array_dtype(x)}},
        .output_shapes = {shape},
        .output_dtypes = {smelt_array_dtype(x)}};
    shipped_apply_call(call, &run);
    return smelt_kernel_run(kernel, &run, out);
}

smelt_status smelt_grid_sample_vjp(smelt_array *x, smelt_array *grid, smelt_array *cotangent,
                                   smelt_array **x_grad, smelt_array **grid_grad, const smelt_call *call) {
    if (!sizes_fit(x, grid) || !shipped_is_float(cotangent, 4)) return SMELT_ERROR_INVALID_ARGUMENT;
    smelt_shape shape = out_shape(x, grid), given = smelt_array_shape(cotangent);
    for (int d = 0; d < 4; d++)
        if (given.size[d] != shape.size[d]) return SMELT_ERROR_INVALID_ARGUMENT;
    smelt_array *outputs[2] = {NULL, NULL};
    smelt_status status;
    if (count(shape) == 0 || smelt_array_size(x) == 0) {
        status = zeros(SMELT_FLOAT32, smelt_array_shape(x), &outputs[0]);
        if (status == SMELT_OK) status = zeros(SMELT_FLOAT32, smelt_array_shape(grid), &outputs[1]);
        if (status != SMELT_OK) smelt_array_release(outputs[0]);
    } else {
        smelt_kernel *kernel;
        status = shipped_kernel(&(smelt_kernel_desc){.name = "grid_sample_vjp",
                                                     .source = kernel_text_grid_sample_vjp,
                                                     .header = kernel_text_bilinear,
                                                     .header_label = "bilinear.metal",
                                                     .inputs = {"x", "grid", "cotangent"},
                                                     .outputs = {"x_grad", "grid_grad"},
                                                     .atomic_outputs = true},
                                &kernel);
        if (status != SMELT_OK) return status;
        int64_t padded = (shape.size[3] + SIMDGROUP_LANES - 1) / SIMDGROUP_LANES * SIMDGROUP_LANES;
        smelt_run_desc run = {.inputs = {x, grid, cotangent},
                              .grid = {shape.size[0] * shape.size[1] * shape.size[2] * padded},
                              .threadgroup = {256},
                              .output_shapes = {smelt_array_shape(x), smelt_array_shape(grid)},
                              .output_dtypes = {SMELT_FLOAT32, SMELT_FLOAT32},
                              .initialise = true,
                              .init_value = 0};
        shipped_apply_call(call, &run);
        status = smelt_kernel_run(kernel, &run, outputs);
    }
    if (status != SMELT_OK) return status;
    *x_grad = outputs[0];
    *grid_grad = outputs[1];
    return SMELT_OK;
}
