#include "ops/routine_input.h"
#include "ops/program.h"

#include <string.h>

/* A copy of another dtype or with other strides, or a reference. */
static smelt_status shape_input(const struct call *call, smelt_array *here, smelt_dtype dtype,
                                smelt_array **result) {
    smelt_array *made;
    if (here->dtype == dtype) return call_contiguous(call, here, result);
    TRY(call_output(call, dtype, &here->shape, &made));
    smelt_status status = call_place(call, here, made, &here->shape, made->strides, 0);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

smelt_status routine_input(const struct call *call, smelt_array *array, smelt_dtype dtype,
                           smelt_array **result) {
    smelt_array *here;
    if (program_is_symbolic(call->device)) return shape_input(call, array, dtype, result);
    const struct memory_space *space = array->memory->space;
    bool host = program_is_host(call->device);
    if (host ? !space : space && strcmp(space->device, call->device) == 0)
        here = smelt_array_retain(array);
    else
        TRY(smelt_array_to(array, host ? "cpu" : call->device, call->desc->stream, &here));
    smelt_status status = shape_input(call, here, dtype, result);
    smelt_array_release(here);
    return status;
}

/* ---- Rows. */

smelt_status routine_rows_open(const struct call *call, smelt_array *array, uint32_t axes, smelt_dtype dtype,
                               struct routine_rows *rows) {
    int ndim = 0;
    *rows = (struct routine_rows){.rows = 1, .columns = 1, .shape = {.ndim = array->shape.ndim}};
    int64_t strides[SMELT_MAX_DIMENSIONS];
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < array->shape.ndim; d++) {
            if ((int)(axes >> d & 1) != pass) continue;
            *(pass ? &rows->columns : &rows->rows) *= array->shape.size[d];
            rows->moved |= ndim != d;
            rows->shape.size[ndim] = array->shape.size[d];
            strides[ndim] = array->strides[d];
            rows->order[ndim++] = d;
        }
    smelt_array *turned;
    TRY(smelt_array_view(array, rows->shape, strides, 0, &turned));
    smelt_status status = routine_input(call, turned, dtype, &rows->array);
    smelt_array_release(turned);
    return status;
}

/* `made`, whose dimensions are in the order of the rows, in the order of the input. */
static smelt_status move_back(const struct call *call, const struct routine_rows *rows, smelt_array *made,
                              smelt_array **result) {
    smelt_shape shape = {.ndim = rows->shape.ndim};
    int64_t strides[SMELT_MAX_DIMENSIONS];
    smelt_array *view;
    for (int i = 0; i < shape.ndim; i++) {
        shape.size[rows->order[i]] = rows->shape.size[i];
        strides[rows->order[i]] = made->strides[i];
    }
    TRY(smelt_array_view(made, shape, strides, 0, &view));
    smelt_status status = call_contiguous(call, view, result);
    smelt_array_release(view);
    return status;
}

smelt_status routine_rows_close(const struct call *call, struct routine_rows *rows, smelt_status status,
                                smelt_array *made, smelt_array **result) {
    smelt_array_release(rows->array);
    if (status == SMELT_OK && rows->moved) {
        status = move_back(call, rows, made, result);
        smelt_array_release(made);
        return status;
    }
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
