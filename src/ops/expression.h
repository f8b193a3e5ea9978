/* Operations written as expressions. After the first failure, which is kept, calls do nothing; intermediate
 * arrays belong to the expression. */
#ifndef SMELT_OPS_EXPRESSION_H
#define SMELT_OPS_EXPRESSION_H

#include "ops/operation.h"

struct expression {
    smelt_status status;
    const char *device; /* as in smelt_apply_desc */
    smelt_stream *stream;
    smelt_array **made;
    int count, capacity;
};

/* Ends it: moves `value` to *result, releases the rest, returns the first failure. */
smelt_status expr_close(struct expression *e, smelt_array *value, smelt_array **result);

/* Passes an array to the expression, which releases it. */
smelt_array *expr_keep(struct expression *e, smelt_array *array);

/* Each returns an array of the expression, or NULL after a failure; NULL arguments are results of failures.
 */
smelt_array *expr_apply(struct expression *e, const smelt_apply_desc *desc);
smelt_array *expr_unary(struct expression *e, smelt_operation operation, smelt_array *x);
smelt_array *expr_binary(struct expression *e, smelt_operation operation, smelt_array *x, smelt_array *y);
/* With a weak number on the right, on the left. */
smelt_array *expr_with(struct expression *e, smelt_operation operation, smelt_array *x, double y);
smelt_array *expr_from(struct expression *e, smelt_operation operation, double x, smelt_array *y);
smelt_array *expr_where(struct expression *e, smelt_array *condition, smelt_array *x, smelt_array *y);
/* A scalar to be passed as weak: float64 on the host. */
smelt_array *expr_number(struct expression *e, double value);
smelt_array *expr_astype(struct expression *e, smelt_array *x, smelt_dtype dtype);
/* Of the dtype of `like`; if that is float64, also on its device, since only the host computes with it. */
smelt_array *expr_as(struct expression *e, smelt_array *x, const smelt_array *like);
/* Over axes given as bits. */
smelt_array *expr_reduce(struct expression *e, smelt_operation operation, smelt_array *x, uint32_t axes,
                         bool keepdims);
smelt_array *expr_reshape(struct expression *e, smelt_array *x, const smelt_shape *shape);
smelt_array *expr_broadcast(struct expression *e, smelt_array *x, const smelt_shape *shape);
smelt_array *expr_transpose(struct expression *e, smelt_array *x, const int *axes);
smelt_array *expr_cumulate(struct expression *e, smelt_operation operation, smelt_array *x, int axis,
                           bool reverse, bool exclusive);
/* x with `n` elements along an axis: the first, or zeros behind. */
smelt_array *expr_sized(struct expression *e, smelt_array *x, int axis, int64_t n);
/* x[i], a view. */
smelt_array *expr_row(struct expression *e, smelt_array *x, int64_t i);
/* Zeros like x. */
smelt_array *expr_zeros(struct expression *e, smelt_array *x);
/* Sums x over what was broadcast, so that it has `shape`. */
smelt_array *expr_sum_to(struct expression *e, smelt_array *x, const smelt_shape *shape);

#endif
