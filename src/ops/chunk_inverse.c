/* The inverses of a sequence's chunks: by the kernel of kernels/linalg/triangular_inverse.metal, in float64
 * by its plain reference. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "kernels/linalg/triangular_inverse.h"
#include "ops/program.h"
#include "ops/routine_input.h"

#include <limits.h>

#define MOST_WIDTH 128

static smelt_status run(const struct call *call, smelt_array *a, smelt_array *inverse) {
    const struct routine routine = {.entry = "triangular_inverse", .texts = {kernel_text_triangular_inverse}};
    const int64_t *shape = a->shape.size;
    uint32_t size[4];
    for (int d = 0; d < 4; d++) size[d] = (uint32_t)shape[d];
    smelt_dispatch_desc dispatch = {
        .buffers = {{.array = a}, {.array = inverse}, {.bytes = size, .size = sizeof size}},
        .threadgroup_memory = {2 * (size_t)(shape[3] * shape[3]) * sizeof(float)},
        .groups = {(shape[1] + shape[3] - 1) / shape[3], shape[2], shape[0]},
        .threadgroup = {shape[3], 1, 1}};
    return routine_run(call, &routine, &dispatch);
}

smelt_status evaluate_chunk_inverse(const struct call *call, smelt_array **result) {
    smelt_array *x = call->inputs[0], *a = NULL, *made = NULL;
    const smelt_shape *shape = &x->shape;
    bool plain = x->dtype == SMELT_FLOAT64;
    smelt_dtype wide = plain ? SMELT_FLOAT64 : SMELT_FLOAT32;
    if (shape->ndim != 4 || shape->size[3] < 1 || shape->size[3] > MOST_WIDTH)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: x has shape %s; expected (batches, length, heads, width) with a width of 1 to %d",
                    call->name, shape_print(shape).text, MOST_WIDTH);
    if (!dtype_is_float(x->dtype))
        return fail(SMELT_ERROR_UNSUPPORTED, "%s: x has dtype %s; expected a float dtype", call->name,
                    smelt_dtype_name(x->dtype));
    for (int d = 0; d < 3; d++)
        if (shape->size[d] > INT_MAX)
            return fail(SMELT_ERROR_LIMIT, "%s: x has shape %s; sizes are below 2^31", call->name,
                        shape_print(shape).text);
    if (program_is_symbolic(call->device)) return call_output(call, x->dtype, shape, result);
    TRY(routine_input(call, x, wide, &a));
    smelt_status status = call_output(call, wide, shape, &made);
    if (status == SMELT_OK && made->size && plain)
        smelt_reference_triangular_inverse(smelt_array_data(a), shape->size[0], shape->size[1],
                                           shape->size[2], shape->size[3], smelt_array_data(made));
    else if (status == SMELT_OK && made->size)
        status = run(call, a, made);
    smelt_array_release(a);
    if (status == SMELT_OK) status = routine_input(call, made, x->dtype, result);
    smelt_array_release(made);
    return status;
}
