/* What the files of array operations share: one call of smelt_apply on its way. */
#ifndef SMELT_OPS_OPERATION_H
#define SMELT_OPS_OPERATION_H

#include "array/array.h"
#include "smelt/ops.h"

/* A checked call: inputs are where they are used (those of one element may stay on the host). */
struct call {
    const smelt_apply_desc *desc;
    const char *name; /* the operation's */
    smelt_array *inputs[SMELT_MAX_ARGUMENTS];
    int count;
    const char *device;
};

typedef smelt_status evaluator(const struct call *call, smelt_array **result);

/* Elementwise: elementwise.c, copy.c; of float64 arrays, by plain loops: host.c. */
evaluator evaluate_unary, evaluate_binary, evaluate_where, evaluate_astype, evaluate_identity;
/* Over axes: reduce.c, scan.c. */
evaluator evaluate_reduce, evaluate_argument, evaluate_cumulative;
/* Views and copies: shape.c, place.c. */
evaluator evaluate_reshape, evaluate_transpose, evaluate_broadcast_to, evaluate_slice;
evaluator evaluate_concatenate, evaluate_slice_update, evaluate_pad;
/* By integer arrays: gather.c, scatter.c. */
evaluator evaluate_gather, evaluate_scatter, evaluate_scatter_sum;
/* create.c, matmul.c. */
evaluator evaluate_create, evaluate_matmul;
/* Those made of others: composite.c. They are given the caller's inputs; tapes see what they are made of. */
evaluator compose_clip, compose_mean, compose_variance, compose_logsumexp, compose_softmax, compose_flatten;
evaluator compose_expand_dims, compose_squeeze, compose_stack, compose_triangle, compose_take;
evaluator compose_take_along_axis, compose_scatter_add, compose_outer, compose_inner, compose_tensordot;
evaluator compose_close, compose_array_equal;

/* ---- What a call says: call.c. */

/* The common dtype of a call's inputs `first` …. */
smelt_status call_dtype(const struct call *call, int first, int count, smelt_dtype *dtype);

/* Whether an input is float64, scalars that are weak apart: those are converted on the host. */
bool call_has_float64(const struct call *call);

/* The shape to which a call's inputs `first` … are broadcast. */
smelt_status call_shape(const struct call *call, int first, int count, smelt_shape *shape);
/* Broadcasts `shape` with `more`, or says that they do not go together. */
smelt_status call_join_shapes(const char *name, const smelt_shape *more, smelt_shape *shape);
/* A list of axes, checked: each in 0 … ndim - 1, none twice. */
smelt_status call_check_axes(const char *name, const int *axes, int count, int ndim, int *checked);
/* The axes an operation works over, as bits; all if none are given. */
smelt_status call_axes(const struct call *call, int ndim, uint32_t *axes);
/* The one axis; if none is given, *flat is true. */
smelt_status call_axis(const struct call *call, int ndim, int *axis, bool *flat);
/* A new array of a call's device. */
smelt_status call_output(const struct call *call, smelt_dtype dtype, const smelt_shape *shape,
                         smelt_array **array);

/* ---- Copies: copy.c. */

/* A row-contiguous array of the same elements, on the call's device: a reference to `array`, or a copy. */
smelt_status call_contiguous(const struct call *call, smelt_array *array, smelt_array **result);
/* Copies `from`, broadcast and converted, to where `to`'s strides from `offset` on lie. */
smelt_status call_place(const struct call *call, smelt_array *from, smelt_array *to, const smelt_shape *space,
                        const int64_t *strides, int64_t offset);

/* shape.c: the part of `array` that a call's slice names: every element of it exists. */
smelt_status call_slice(const struct call *call, const smelt_array *array, smelt_shape *shape,
                        int64_t strides[SMELT_MAX_DIMENSIONS], int64_t *offset);

/* ---- Recording: operation.c. */

/* Called with each result that an evaluator computed on the thread; of a composition, with those of its
 * parts. */
typedef smelt_status operation_recorder(const smelt_apply_desc *desc, int count, smelt_array *result);

/* Sets the calling thread's recorder; NULL: none. */
void operation_record_with(operation_recorder *recorder);

/* ---- The plain loops: host.c. */

evaluator host_unary, host_binary, host_where, host_reduce;
/* Along an axis; the result is there. */
void host_lines_argument(const struct call *call, const smelt_array *from, int axis, smelt_array *to);
void host_lines_cumulative(const struct call *call, const smelt_array *from, int axis, smelt_array *to);

#endif
