#include "linalg/sides.h"
#include "array/dtype.h"
#include "smelt/ops.h"

static smelt_status refuse(const char *name, const smelt_array *a, const smelt_array *b,
                           const char *expected) {
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: shapes %s and %s do not match: %s", name,
                shape_print(&a->shape).text, shape_print(&b->shape).text, expected);
}

smelt_status sides_begin(const char *name, smelt_array *a, smelt_array *b, bool right, struct sides *s) {
    *s = (struct sides){0};
    if (!a || !b) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", name, a ? "b" : "a");
    if (a->shape.ndim < 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: a has shape %s, expected at least 2 dimensions", name,
                    shape_print(&a->shape).text);
    if (!dtype_is_inexact(b->dtype) || b->dtype == SMELT_COMPLEX64)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: b has dtype %s, expected float32, float16, bfloat16 or float64", name,
                    smelt_dtype_name(b->dtype));
    smelt_shape batches[2] = {a->shape, b->shape}, shape;
    smelt_array *matrix = NULL;
    s->vector = b->shape.ndim == 1;
    if (s->vector && a->shape.ndim != 2)
        return refuse(name, a, b, "b is a vector, which takes a single matrix a");
    smelt_shape column = {2, {right ? 1 : b->shape.size[0], right ? b->shape.size[0] : 1}};
    if (s->vector)
        TRY(smelt_apply(
            &(smelt_apply_desc){.operation = SMELT_OPERATION_RESHAPE, .inputs = {b}, .shape = column},
            &matrix));
    else
        matrix = smelt_array_retain(b);
    int rows = a->shape.ndim - 2;
    int64_t side = matrix->shape.size[matrix->shape.ndim - (right ? 1 : 2)];
    smelt_status status = SMELT_OK;
    if (side != a->shape.size[right ? rows + 1 : rows])
        status = refuse(name, a, b, right ? "b needs as many columns as a" : "b needs as many rows as a");
    batches[0].ndim -= 2;
    batches[1] = matrix->shape;
    batches[1].ndim -= 2;
    if (status == SMELT_OK) status = smelt_result_shape(batches, 2, &shape);
    for (int i = 0; i < 2 && status == SMELT_OK; i++) {
        smelt_array *from = i ? matrix : a, *own = NULL;
        smelt_shape whole = shape;
        whole.size[whole.ndim++] = from->shape.size[from->shape.ndim - 2];
        whole.size[whole.ndim++] = from->shape.size[from->shape.ndim - 1];
        status = smelt_apply(
            &(smelt_apply_desc){.operation = SMELT_OPERATION_BROADCAST_TO, .inputs = {from}, .shape = whole},
            &own);
        if (status == SMELT_OK) *(i ? &s->b : &s->a) = own;
    }
    smelt_array_release(matrix);
    return status;
}

void sides_end(struct sides *s) {
    smelt_array_release(s->a);
    smelt_array_release(s->b);
}
