#include "kernels/linalg/triangular_inverse.h"
#include "kernels/kernel_text.h"
#include "kernels/shipped.h"

#include <math.h>

static smelt_status run(smelt_array *a, smelt_array *inverse, int threads, const smelt_call *call) {
    smelt_function *function;
    smelt_status status =
        shipped_function("triangular_inverse.metal", kernel_text_triangular_inverse, &function);
    if (status != SMELT_OK) return status;
    smelt_shape shape = smelt_array_shape(a);
    uint32_t size[4];
    for (int d = 0; d < 4; d++) {
        if (shape.size[d] > INT32_MAX) return SMELT_ERROR_LIMIT;
        size[d] = (uint32_t)shape.size[d];
    }
    int64_t width = shape.size[3];
    smelt_dispatch_desc desc = {
        .buffers = {{.array = a}, {.array = inverse}, {.bytes = size, .size = sizeof size}},
        .threadgroup_memory = {2 * (size_t)(width * width) * sizeof(float)},
        .groups = {(shape.size[1] + width - 1) / width, shape.size[2], shape.size[0]},
        .threadgroup = {threads        ? threads
                        : width < 1024 ? width
                                       : 1024}};
    if (call) {
        desc.device = call->device;
        desc.timeout = call->timeout;
        desc.info = call->info;
    }
    return smelt_function_run(function, &desc);
}

smelt_status smelt_triangular_inverse(smelt_array *a, int threads, smelt_array **inverse,
                                      const smelt_call *call) {
    if (!a || smelt_array_dtype(a) != SMELT_FLOAT32 || smelt_array_shape(a).ndim != 4 || threads < 0)
        return SMELT_ERROR_INVALID_ARGUMENT;
    smelt_array *rows = NULL, *result = NULL;
    smelt_status status = smelt_array_contiguous(a, &rows);
    if (status == SMELT_OK) status = smelt_array_create(SMELT_FLOAT32, smelt_array_shape(a), &result);
    if (status == SMELT_OK && call && call->poison) status = smelt_array_fill(result, NAN);
    if (status == SMELT_OK && smelt_array_size(a) > 0) status = run(rows, result, threads, call);
    smelt_array_release(rows);
    if (status != SMELT_OK) {
        smelt_array_release(result);
        return status;
    }
    *inverse = result;
    return SMELT_OK;
}

void smelt_reference_triangular_inverse(const double *a, int64_t batch, int64_t length, int64_t heads,
                                        int64_t width, double *inverse) {
    int64_t step = heads * width;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t first = 0; first < length; first += width) {
                int64_t rows = length - first < width ? length - first : width;
                const double *s = a + (b * length + first) * step + h * width;
                double *x = inverse + (b * length + first) * step + h * width;
                /* Row by row: what the rows above contribute to row i is subtracted whole. */
                for (int64_t i = 0; i < rows; i++) {
                    for (int64_t j = 0; j < width; j++) x[i * step + j] = i == j;
                    for (int64_t k = 0; k < i; k++)
                        for (int64_t j = 0; j <= k; j++) x[i * step + j] -= s[i * step + k] * x[k * step + j];
                }
            }
}
