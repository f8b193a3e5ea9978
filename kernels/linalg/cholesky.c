#include "kernels/linalg/cholesky.h"
#include "kernels/kernel_text.h"
#include "kernels/shipped.h"

#include <math.h>
#include <string.h>

#define MAX_BLOCK 64 /* its square is 16 KiB of threadgroup memory: half of what an Apple GPU has */

smelt_status shipped_cholesky(smelt_array *a, int block, int threads, smelt_array **l,
                              const smelt_call *call) {
    if (!a || smelt_array_dtype(a) != SMELT_FLOAT32) return SMELT_ERROR_INVALID_ARGUMENT;
    smelt_shape shape = smelt_array_shape(a);
    int last = shape.ndim - 1;
    if (last < 1 || shape.size[last] != shape.size[last - 1]) return SMELT_ERROR_INVALID_ARGUMENT;
    if (block < 0 || block > MAX_BLOCK || threads < 0) return SMELT_ERROR_INVALID_ARGUMENT;
    if (smelt_array_size(a) == 0) return smelt_array_create(SMELT_FLOAT32, shape, l);
    smelt_kernel *kernel;
    smelt_status status = shipped_kernel(
        &(smelt_kernel_desc){
            .name = "cholesky", .source = kernel_text_cholesky, .inputs = {"a"}, .outputs = {"out"}},
        &kernel);
    if (status != SMELT_OK) return status;
    int64_t matrices = smelt_array_size(a) / (shape.size[last] * shape.size[last]);
    if (!threads) threads = 64;
    smelt_run_desc run = {
        .inputs = {a},
        .grid = {matrices * threads},
        .threadgroup = {threads},
        .templates = {{.name = "BLOCK", .kind = SMELT_TEMPLATE_INT, .integer = block ? block : 16}},
        .output_shapes = {shape},
        .output_dtypes = {SMELT_FLOAT32},
        .initialise = true,
        .init_value = 0};
    shipped_apply_call(call, &run);
    return smelt_kernel_run(kernel, &run, l);
}

void smelt_reference_cholesky(const double *a, int64_t n, double *l) {
    memset(l, 0, sizeof *l * (size_t)(n * n));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
}
