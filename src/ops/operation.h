/* Shared by the files of array operations: one call of smelt_apply in progress. */
#ifndef SMELT_OPS_OPERATION_H
#define SMELT_OPS_OPERATION_H

#include "array/array.h"
#include "smelt/ops.h"

/* A checked call: inputs are on the device that uses them (those of one element may stay on the host). */
struct call {
    const smelt_apply_desc *desc;
    const char *name; /* the operation's */
    smelt_array *inputs[SMELT_MAX_ARGUMENTS];
    int count;
    const char *device;
    smelt_array *into; /* NULL, or where call_output may place the result */
};

typedef smelt_status evaluator(const struct call *call, smelt_array **result);

/* The function that computes each operation, except those of elementwise.h: evaluate_* runs kernels, views or
 * plain loops, and tapes record the operation itself; compose_* expresses it by other operations, which tapes
 * record instead (composite.c). Those that are FUSED have a kernel for float32, float16 and bfloat16; their
 * composition serves other dtypes and empty arrays. A GRADIENT, which has no rule of its own, is also
 * composed while a tape of the thread is open. */
/* clang-format off */
#define OPERATION_TABLE(EVALUATED, COMPOSED, FUSED, GRADIENT)                                                \
    EVALUATED(ASTYPE, astype) EVALUATED(IDENTITY, identity) EVALUATED(STOP_GRADIENT, identity)               \
    EVALUATED(WHERE, where) COMPOSED(CLIP, clip)                                                             \
    EVALUATED(SUM, reduce) EVALUATED(PROD, reduce) EVALUATED(MAX, reduce) EVALUATED(MIN, reduce)             \
    EVALUATED(ALL, reduce) EVALUATED(ANY, reduce)                                                            \
    COMPOSED(MEAN, mean) COMPOSED(VAR, variance) COMPOSED(STD, variance)                                     \
    COMPOSED(LOGSUMEXP, logsumexp) FUSED(SOFTMAX, softmax, softmax)                                          \
    EVALUATED(ARGMAX, argument) EVALUATED(ARGMIN, argument)                                                  \
    EVALUATED(CUMSUM, cumulative) EVALUATED(CUMPROD, cumulative)                                             \
    EVALUATED(CUMMAX, cumulative) EVALUATED(CUMMIN, cumulative)                                              \
    EVALUATED(RESHAPE, reshape) COMPOSED(FLATTEN, flatten) EVALUATED(TRANSPOSE, transpose)                   \
    EVALUATED(BROADCAST_TO, broadcast_to) COMPOSED(EXPAND_DIMS, expand_dims) COMPOSED(SQUEEZE, squeeze)      \
    EVALUATED(CONCATENATE, concatenate) COMPOSED(STACK, stack)                                               \
    EVALUATED(SLICE, slice) EVALUATED(SLICE_UPDATE, slice_update) EVALUATED(PAD, pad)                        \
    COMPOSED(TRIL, triangle) COMPOSED(TRIU, triangle)                                                        \
    COMPOSED(TAKE, take) COMPOSED(TAKE_ALONG_AXIS, take_along_axis) EVALUATED(GATHER, gather)                \
    EVALUATED(SCATTER, scatter) COMPOSED(SCATTER_ADD, scatter_add) EVALUATED(SCATTER_SUM, scatter_sum)       \
    EVALUATED(ZEROS, create) EVALUATED(ONES, create) EVALUATED(FULL, create) EVALUATED(ARANGE, create)       \
    EVALUATED(EYE, create)                                                                                   \
    EVALUATED(MATMUL, matmul) COMPOSED(OUTER, outer) COMPOSED(INNER, inner) COMPOSED(TENSORDOT, tensordot)   \
    COMPOSED(ARRAY_EQUAL, array_equal) COMPOSED(ALL_CLOSE, close) COMPOSED(IS_CLOSE, close)                  \
    FUSED(LOG_SOFTMAX, softmax, log_softmax) GRADIENT(SOFTMAX_VJP, softmax_vjp, softmax_vjp)                 \
    GRADIENT(LOG_SOFTMAX_VJP, softmax_vjp, softmax_vjp)                                                      \
    FUSED(LAYER_NORM, norm, norm) FUSED(RMS_NORM, norm, norm)                                                \
    GRADIENT(LAYER_NORM_VJP, norm_vjp, norm_vjp) GRADIENT(RMS_NORM_VJP, norm_vjp, norm_vjp)                  \
    FUSED(ROPE, rope, rope) EVALUATED(CONV_GENERAL, convolve) EVALUATED(SORT, sort) EVALUATED(ARGSORT, sort)       \
    EVALUATED(CONTIGUOUS, contiguous) EVALUATED(VIEW, view) FUSED(GRID_SAMPLE, sample, sample)                                     \
    GRADIENT(GRID_SAMPLE_VJP_X, sample_by_x, sample_by_x)                                                    \
    GRADIENT(GRID_SAMPLE_VJP_GRID, sample_by_grid, sample_by_grid) EVALUATED(CHUNK_INVERSE, chunk_inverse)   \
    EVALUATED(FFT, fourier) COMPOSED(RFFT, rfft) COMPOSED(IRFFT, irfft)                                      \
    FUSED(HADAMARD_TRANSFORM, hadamard, hadamard)                                                            \
    EVALUATED(RANDOM_BITS, random) EVALUATED(RANDOM_SPLIT, random_split) EVALUATED(RANDOM_UNIFORM, random)   \
    EVALUATED(RANDOM_NORMAL, random) EVALUATED(RANDOM_GUMBEL, random) EVALUATED(RANDOM_INTEGERS, random)     \
    COMPOSED(RANDOM_TRUNCATED_NORMAL, truncated_normal) COMPOSED(RANDOM_BERNOULLI, bernoulli)                \
    COMPOSED(RANDOM_CATEGORICAL, categorical) COMPOSED(RANDOM_PERMUTATION, permutation)                      \
    EVALUATED(QUANTIZE_SCALES, quantize_scales) EVALUATED(QUANTIZE, quantize)                                \
    EVALUATED(DEQUANTIZE, dequantize) EVALUATED(ATTENTION, attention)                                        \
    EVALUATED(QUANTIZED_MATMUL, quantized_matmul)
/* clang-format on */

evaluator evaluate_unary, evaluate_binary;
#define OPERATION_EVALUATOR(upper, who) evaluator evaluate_##who;
#define OPERATION_COMPOSITION(upper, who) evaluator compose_##who;
#define OPERATION_BOTH(upper, kernel, parts) evaluator evaluate_##kernel, compose_##parts;
OPERATION_TABLE(OPERATION_EVALUATOR, OPERATION_COMPOSITION, OPERATION_BOTH, OPERATION_BOTH)
#undef OPERATION_EVALUATOR
#undef OPERATION_COMPOSITION
#undef OPERATION_BOTH
/* What evaluate_attention and evaluate_quantized_matmul give, by other operations: for their derivatives. */
evaluator compose_attention, compose_quantized_matmul;

/* ---- The arguments of a call: call.c. */

/* The common dtype of a call's inputs `first` …. */
smelt_status call_dtype(const struct call *call, int first, int count, smelt_dtype *dtype);

/* Whether an input is float64, except weak scalars, which are converted on the host. */
bool call_has_float64(const struct call *call);

/* The shape to which a call's inputs `first` … are broadcast. */
smelt_status call_shape(const struct call *call, int first, int count, smelt_shape *shape);
/* Broadcasts `shape` with `more`, or reports that they do not match. */
smelt_status call_join_shapes(const char *name, const smelt_shape *more, smelt_shape *shape);
/* A list of axes, checked: each in 0 … ndim - 1, none twice. */
smelt_status call_check_axes(const char *name, const int *axes, int count, int ndim, int *checked);
/* The axes of an operation, as bits; all if none are given. */
smelt_status call_axes(const struct call *call, int ndim, uint32_t *axes);
/* The one axis; if none is given, *flat is true. */
smelt_status call_axis(const struct call *call, int ndim, int *axis, bool *flat);
/* `offset` as the number of a diagonal: those outside of a matrix of this size are all alike. */
int64_t call_diagonal(const struct call *call, int64_t rows, int64_t columns);
/* A new array of a call's device. */
smelt_status call_output(const struct call *call, smelt_dtype dtype, const smelt_shape *shape,
                         smelt_array **array);

/* ---- Copies: copy.c. */

/* The array on the call's device: a reference to it, or a copy. */
smelt_status call_bring(const struct call *call, smelt_array *array, smelt_array **here);
/* A row-contiguous array of the same elements, on the call's device: a reference to `array`, or a copy. */
smelt_status call_contiguous(const struct call *call, smelt_array *array, smelt_array **result);
/* The input with the one axis, or if none is given its elements in a row. *array is a reference. */
smelt_status call_line(const struct call *call, smelt_array **array, int *axis);
/* Copies `from`, broadcast and converted, to `to` with its strides from `offset` on. */
smelt_status call_place(const struct call *call, smelt_array *from, smelt_array *to, const smelt_shape *space,
                        const int64_t *strides, int64_t offset);

/* shape.c: the part of `array` that a call's slice selects: every element of it exists. */
smelt_status call_slice(const struct call *call, const smelt_array *array, smelt_shape *shape,
                        int64_t strides[SMELT_MAX_DIMENSIONS], int64_t *offset);

/* ---- Recording: operation.c. */

/* Called with each result that an evaluator computed on the thread; of a composition, with those of its
 * parts. */
typedef smelt_status operation_recorder(const smelt_apply_desc *desc, int count, smelt_array *result);

/* Sets the calling thread's recorder; NULL: none. */
void operation_record_with(operation_recorder *recorder);

/* ---- Values of graphs: operation.c. */

/* Called in place of computing an operation that has a symbolic input (array/symbolic.h): `shaped` has the
 * result's dtype and shape, and the strides and offset of a view. *result becomes the handle that stands for
 * it. */
typedef smelt_status operation_tracer(const smelt_apply_desc *desc, int count, const smelt_array *shaped,
                                      smelt_array **result);

/* Sets the process's tracer. */
void operation_trace_with(operation_tracer *tracer);

/* What smelt_apply infers for symbolic inputs, without the tracer: the result is as `shaped` above. Not for
 * compositions. */
smelt_status operation_infer(const smelt_apply_desc *desc, smelt_array **result);

/* Whether the operation is expressed by others, so that a tracer never meets it. */
bool operation_is_composed(smelt_operation operation);

/* smelt_apply, with its result in `into`, which has the result's dtype and shape, is row-contiguous and on
 * the device. No tape records it. */
smelt_status operation_apply_into(const smelt_apply_desc *desc, smelt_array *into);

/* ---- The plain loops: host.c. */

evaluator host_unary, host_binary, host_where, host_reduce;
/* Along an axis; the result is there. */
void host_lines_argument(const struct call *call, const smelt_array *from, int axis, smelt_array *to);
void host_lines_cumulative(const struct call *call, const smelt_array *from, int axis, smelt_array *to);

#endif
