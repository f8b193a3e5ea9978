#include "kernels/elementwise/exp.h"
#include "kernels/kernel_text.h"
#include "kernels/shipped.h"

#include <math.h>

static smelt_status run(smelt_array *x, smelt_shape shape, smelt_array **y, const smelt_call *call) {
    bool strided = !smelt_array_is_contiguous(x);
    smelt_kernel_desc desc = {.name = strided ? "exp_strided" : "exp",
                              .source = strided ? kernel_text_exp_strided : kernel_text_exp,
                              .inputs = {"inp"},
                              .outputs = {"out"},
                              .strided = strided};
    smelt_kernel *kernel;
    smelt_status status = shipped_kernel(&desc, &kernel);
    if (status != SMELT_OK) return status;
    smelt_run_desc run = {.inputs = {x},
                          .grid = {smelt_array_size(x)},
                          .threadgroup = {256},
                          .output_shapes = {shape},
                          .output_dtypes = {smelt_array_dtype(x)}};
    shipped_apply_call(call, &run);
    return smelt_kernel_run(kernel, &run, y);
}

smelt_status smelt_exp(smelt_array *x, smelt_array **y, const smelt_call *call) {
    if (!x || !shipped_is_float(x, smelt_array_shape(x).ndim)) return SMELT_ERROR_INVALID_ARGUMENT;
    smelt_shape shape = smelt_array_shape(x);
    if (smelt_array_size(x) == 0) return smelt_array_create(smelt_array_dtype(x), shape, y);
    if (shape.ndim > 0) return run(x, shape, y, call);
    /* A scalar input is a reference in the kernel, not a pointer: run it as one element. */
    smelt_array *one;
    smelt_status status = smelt_array_view(x, (smelt_shape){1, {1}}, (int64_t[]){1}, 0, &one);
    if (status != SMELT_OK) return status;
    status = run(one, shape, y, call);
    smelt_array_release(one);
    return status;
}

void smelt_reference_exp(const double *x, int64_t count, double *y) {
    for (int64_t i = 0; i < count; i++) y[i] = exp(x[i]);
}
