/* ops.h — operations on arrays.
 *
 * smelt_apply computes one operation. docs/operations.md describes the operations one by one. autodiff.h
 * differentiates through them.
 *
 * Status, ownership, defaults and units are those of smelt.h. Every function may be called from any thread.
 */
#ifndef SMELT_OPS_H
#define SMELT_OPS_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Operations ----------------------------------------------------------------------------- */

/* The inputs of an operation and the shape of its result. */
typedef enum smelt_operation_kind {
    SMELT_KIND_NONE = 0,
    SMELT_KIND_UNARY,      /* elementwise, one input */
    SMELT_KIND_BINARY,     /* elementwise, two inputs that are broadcast */
    SMELT_KIND_SELECT,     /* elementwise, three inputs that are broadcast */
    SMELT_KIND_REDUCE,     /* over `axes` (none given: all), with `keepdims` */
    SMELT_KIND_ARGUMENT,   /* over one axis (none given: the array flattened), with `keepdims`; int32 */
    SMELT_KIND_CUMULATIVE, /* along one axis (none given: the array flattened), `reverse`, `exclusive` */
    SMELT_KIND_SHAPE,      /* moves elements, or only views them */
    SMELT_KIND_INDEX,      /* reads or writes at indices in integer arrays */
    SMELT_KIND_CREATE,     /* no inputs */
    SMELT_KIND_PRODUCT,    /* of matrices */
    SMELT_KIND_OTHER
} smelt_operation_kind;

/* Upper and lower case name, kind, number of inputs (-1: one or more). In the comments x, y … are the inputs,
 * in their order. */
/* clang-format off */
#define SMELT_OPERATION_TABLE(X)                                                                             \
    X(NEGATIVE, negative, UNARY, 1)                                                                          \
    X(ABS, abs, UNARY, 1)              /* of complex64: its modulus, float32 */                              \
    X(SIGN, sign, UNARY, 1)                                                                                  \
    X(EXP, exp, UNARY, 1)                                                                                    \
    X(EXPM1, expm1, UNARY, 1)                                                                                \
    X(LOG, log, UNARY, 1)                                                                                    \
    X(LOG2, log2, UNARY, 1)                                                                                  \
    X(LOG10, log10, UNARY, 1)                                                                                \
    X(LOG1P, log1p, UNARY, 1)                                                                                \
    X(SQRT, sqrt, UNARY, 1)                                                                                  \
    X(RSQRT, rsqrt, UNARY, 1)                                                                                \
    X(SQUARE, square, UNARY, 1)                                                                              \
    X(RECIPROCAL, reciprocal, UNARY, 1)                                                                      \
    X(SIN, sin, UNARY, 1)                                                                                    \
    X(COS, cos, UNARY, 1)                                                                                    \
    X(TAN, tan, UNARY, 1)                                                                                    \
    X(ARCSIN, arcsin, UNARY, 1)                                                                              \
    X(ARCCOS, arccos, UNARY, 1)                                                                              \
    X(ARCTAN, arctan, UNARY, 1)                                                                              \
    X(SINH, sinh, UNARY, 1)                                                                                  \
    X(COSH, cosh, UNARY, 1)                                                                                  \
    X(TANH, tanh, UNARY, 1)                                                                                  \
    X(ARCSINH, arcsinh, UNARY, 1)                                                                            \
    X(ARCCOSH, arccosh, UNARY, 1)                                                                            \
    X(ARCTANH, arctanh, UNARY, 1)                                                                            \
    X(SIGMOID, sigmoid, UNARY, 1)                                                                            \
    X(ERF, erf, UNARY, 1)                                                                                    \
    X(FLOOR, floor, UNARY, 1)                                                                                \
    X(CEIL, ceil, UNARY, 1)                                                                                  \
    X(ROUND, round, UNARY, 1)          /* halves to even */                                                  \
    X(LOGICAL_NOT, logical_not, UNARY, 1)                                                                    \
    X(BITWISE_INVERT, bitwise_invert, UNARY, 1)                                                              \
    X(ISNAN, isnan, UNARY, 1)                                                                                \
    X(ISINF, isinf, UNARY, 1)                                                                                \
    X(ISFINITE, isfinite, UNARY, 1)                                                                          \
    X(REAL, real, UNARY, 1)            /* complex64 gives float32, other dtypes themselves */                \
    X(IMAG, imag, UNARY, 1)                                                                                  \
    X(CONJUGATE, conjugate, UNARY, 1)                                                                        \
    X(ASTYPE, astype, UNARY, 1)        /* to `dtype`, as smelt_array_convert does */                         \
    X(IDENTITY, identity, UNARY, 1)    /* another handle on the same elements, for a tape another array */   \
    X(STOP_GRADIENT, stop_gradient, UNARY, 1) /* likewise, and tapes do not see that it depends on x */      \
    X(ADD, add, BINARY, 2)                                                                                   \
    X(SUBTRACT, subtract, BINARY, 2)                                                                         \
    X(MULTIPLY, multiply, BINARY, 2)                                                                         \
    X(DIVIDE, divide, BINARY, 2)                                                                             \
    X(FLOOR_DIVIDE, floor_divide, BINARY, 2) /* rounds toward minus infinity; integers: x / 0 is 0 */        \
    X(REMAINDER, remainder, BINARY, 2) /* has the sign of y; integers: x % 0 is x */                         \
    X(POWER, power, BINARY, 2)         /* integers: 0 for a negative exponent (but of 1 and -1) */           \
    X(MAXIMUM, maximum, BINARY, 2)     /* NaN if one is */                                                   \
    X(MINIMUM, minimum, BINARY, 2)                                                                           \
    X(ARCTAN2, arctan2, BINARY, 2)                                                                           \
    X(LOGADDEXP, logaddexp, BINARY, 2)                                                                       \
    X(EQUAL, equal, BINARY, 2)                                                                               \
    X(NOT_EQUAL, not_equal, BINARY, 2)                                                                       \
    X(LESS, less, BINARY, 2)                                                                                 \
    X(LESS_EQUAL, less_equal, BINARY, 2)                                                                     \
    X(GREATER, greater, BINARY, 2)                                                                           \
    X(GREATER_EQUAL, greater_equal, BINARY, 2)                                                               \
    X(LOGICAL_AND, logical_and, BINARY, 2)                                                                   \
    X(LOGICAL_OR, logical_or, BINARY, 2)                                                                     \
    X(BITWISE_AND, bitwise_and, BINARY, 2)                                                                   \
    X(BITWISE_OR, bitwise_or, BINARY, 2)                                                                     \
    X(BITWISE_XOR, bitwise_xor, BINARY, 2)                                                                   \
    X(LEFT_SHIFT, left_shift, BINARY, 2)   /* the count modulo the dtype's bits */                           \
    X(RIGHT_SHIFT, right_shift, BINARY, 2)                                                                   \
    X(WHERE, where, SELECT, 3)         /* x (as bool) ? y : z */                                             \
    X(CLIP, clip, SELECT, 3)           /* minimum(maximum(x, y), z) */                                       \
    X(SUM, sum, REDUCE, 1)                                                                                   \
    X(PROD, prod, REDUCE, 1)                                                                                 \
    X(MAX, max, REDUCE, 1)             /* NaN if there is one */                                             \
    X(MIN, min, REDUCE, 1)                                                                                   \
    X(ALL, all, REDUCE, 1)                                                                                   \
    X(ANY, any, REDUCE, 1)                                                                                   \
    X(MEAN, mean, REDUCE, 1)                                                                                 \
    X(VAR, var, REDUCE, 1)             /* `offset`: delta degrees of freedom */                              \
    X(STD, std, REDUCE, 1)                                                                                   \
    X(LOGSUMEXP, logsumexp, REDUCE, 1)                                                                       \
    X(SOFTMAX, softmax, REDUCE, 1)     /* over `axes`; the result has x's shape */                           \
    X(ARGMAX, argmax, ARGUMENT, 1)     /* the first of equals; of a NaN if there is one */                   \
    X(ARGMIN, argmin, ARGUMENT, 1)                                                                           \
    X(CUMSUM, cumsum, CUMULATIVE, 1)                                                                         \
    X(CUMPROD, cumprod, CUMULATIVE, 1)                                                                       \
    X(CUMMAX, cummax, CUMULATIVE, 1)                                                                         \
    X(CUMMIN, cummin, CUMULATIVE, 1)                                                                         \
    X(RESHAPE, reshape, SHAPE, 1)      /* to `shape`; one size may be -1 */                                  \
    X(FLATTEN, flatten, SHAPE, 1)      /* axes[0] to axes[1] become one; none given: all */                  \
    X(TRANSPOSE, transpose, SHAPE, 1)  /* a view: dimension i is x's axes[i]; none given: reversed */        \
    X(BROADCAST_TO, broadcast_to, SHAPE, 1) /* a view of `shape` */                                          \
    X(EXPAND_DIMS, expand_dims, SHAPE, 1) /* a view: the result's `axes` have size 1 */                      \
    X(SQUEEZE, squeeze, SHAPE, 1)      /* a view without `axes`; none given: without all of size 1 */        \
    X(CONCATENATE, concatenate, SHAPE, -1) /* along axes[0], or 0 */                                         \
    X(STACK, stack, SHAPE, -1)         /* along a new axis axes[0], or 0 */                                  \
    X(SLICE, slice, SHAPE, 1)          /* a view: of each dimension starts, stops, steps */                  \
    X(SLICE_UPDATE, slice_update, SHAPE, 2) /* a copy of x whose slice is y, broadcast */                    \
    X(PAD, pad, SHAPE, 2)              /* x with `starts` before and `stops` after, filled with the scalar y */ \
    X(TRIL, tril, SHAPE, 1)            /* of the last two dimensions, up to diagonal `offset`; else 0 */     \
    X(TRIU, triu, SHAPE, 1)                                                                                  \
    X(TAKE, take, INDEX, 2)            /* x at y along one axis (none given: x flattened) */                 \
    X(TAKE_ALONG_AXIS, take_along_axis, INDEX, 2) /* along axes[0] */                                        \
    X(GATHER, gather, INDEX, -1)       /* x[y, z …]: see Indices */                                          \
    X(SCATTER, scatter, INDEX, -1)     /* x with x[z …] = y */                                               \
    X(SCATTER_ADD, scatter_add, INDEX, -1) /* x with x[z …] += y, once for each index */                     \
    X(SCATTER_SUM, scatter_sum, INDEX, -1) /* zeros of `shape` with [y …] += x */                            \
    X(ZEROS, zeros, CREATE, 0)         /* of `shape`, `dtype` (default float32), on `device` */              \
    X(ONES, ones, CREATE, 0)                                                                                 \
    X(FULL, full, CREATE, 0)           /* numbers[0] */                                                      \
    X(ARANGE, arange, CREATE, 0)       /* from numbers[0], below numbers[1], in steps of numbers[2] */       \
    X(EYE, eye, CREATE, 0)             /* `shape` of two sizes, ones on diagonal `offset` */                 \
    X(MATMUL, matmul, PRODUCT, 2)      /* as NumPy's: vectors, batches that are broadcast */                 \
    X(OUTER, outer, PRODUCT, 2)                                                                              \
    X(INNER, inner, PRODUCT, 2)                                                                              \
    X(TENSORDOT, tensordot, PRODUCT, 2) /* sums over axes[0 … n-1] of x and axes[n … 2n-1] of y */           \
    X(ARRAY_EQUAL, array_equal, OTHER, 2) /* one bool; false where shapes differ; `equal_nan` */             \
    X(ALL_CLOSE, all_close, OTHER, 2)  /* |x - y| <= numbers[1] + numbers[0] |y|, one bool; `equal_nan` */   \
    X(IS_CLOSE, is_close, OTHER, 2)    /* the same, element by element */                                    \
    X(LOG_SOFTMAX, log_softmax, REDUCE, 1) /* over `axes`; the result has x's shape */                       \
    X(SOFTMAX_VJP, softmax_vjp, REDUCE, 2) /* of softmax x, y the cotangent: its gradient, `axes` as there */ \
    X(LOG_SOFTMAX_VJP, log_softmax_vjp, REDUCE, 2) /* likewise */                                            \
    X(LAYER_NORM, layer_norm, OTHER, -1) /* x[, weight[, bias]], over the last dimension; numbers[0]: eps */ \
    X(RMS_NORM, rms_norm, OTHER, -1)   /* the same without subtracting the mean */                           \
    X(LAYER_NORM_VJP, layer_norm_vjp, OTHER, -1) /* x, cotangent[, weight]: the gradient by x */             \
    X(RMS_NORM_VJP, rms_norm_vjp, OTHER, -1)                                                                 \
    X(ROPE, rope, OTHER, -1)           /* x, offsets[, frequencies]: see Networks */                         \
    X(CONV_GENERAL, conv_general, PRODUCT, 2) /* x, weight: see Networks */                                  \
    X(SORT, sort, CUMULATIVE, 1)       /* equals keep their order, NaN comes last; `reverse`: descending */  \
    X(ARGSORT, argsort, CUMULATIVE, 1) /* the places of x's elements in that order, int32 */                 \
    X(CONTIGUOUS, contiguous, SHAPE, 1) /* x row by row: a view if it is already */                          \
    X(GRID_SAMPLE, grid_sample, OTHER, 2) /* x, grid: see Networks */                                        \
    X(GRID_SAMPLE_VJP_X, grid_sample_vjp_x, OTHER, 2) /* cotangent, grid; `shape`: x's. float32 */           \
    X(GRID_SAMPLE_VJP_GRID, grid_sample_vjp_grid, OTHER, 3) /* cotangent, grid, x. float32 */                \
    X(CHUNK_INVERSE, chunk_inverse, OTHER, 1) /* see Networks */                                             \
    X(FFT, fft, CUMULATIVE, 1)         /* Fourier's transform along axes[0], of `offset` elements (0: all), or \
                                          with `reverse` its inverse; complex64 */                           \
    X(RFFT, rfft, CUMULATIVE, 1)       /* its first n / 2 + 1 elements, of real numbers */                   \
    X(IRFFT, irfft, CUMULATIVE, 1)     /* the inverse: `offset` real numbers (0: 2 (size - 1)) */            \
    X(HADAMARD_TRANSFORM, hadamard_transform, OTHER, 1) /* of the last dimension, see Signals, times numbers[0] */\
    X(ERFINV, erfinv, UNARY, 1) /* of erf, for -1 to 1 */                                                    \
    X(RANDOM_BITS, random_bits, OTHER, 1) /* see Random numbers */                                           \
    X(RANDOM_SPLIT, random_split, OTHER, 1)                                                                  \
    X(RANDOM_UNIFORM, random_uniform, OTHER, 1)                                                              \
    X(RANDOM_NORMAL, random_normal, OTHER, 1)                                                                \
    X(RANDOM_GUMBEL, random_gumbel, OTHER, 1)                                                                \
    X(RANDOM_INTEGERS, random_integers, OTHER, 1)                                                            \
    X(RANDOM_TRUNCATED_NORMAL, random_truncated_normal, OTHER, 3)                                            \
    X(RANDOM_BERNOULLI, random_bernoulli, OTHER, 2)                                                          \
    X(RANDOM_CATEGORICAL, random_categorical, OTHER, 2)                                                      \
    X(RANDOM_PERMUTATION, random_permutation, OTHER, 1)                                                      \
    X(QUANTIZE_SCALES, quantize_scales, OTHER, 1) /* see Packed numbers */                                   \
    X(QUANTIZE, quantize, OTHER, -1)   /* x, scales[, biases] */                                             \
    X(DEQUANTIZE, dequantize, OTHER, -1) /* w, scales[, biases] */                                           \
    X(ATTENTION, attention, OTHER, -1) /* q, k, v[, mask or biases][, sinks]: see below */                   \
    X(QUANTIZED_MATMUL, quantized_matmul, OTHER, -1) /* x, w, scales[, biases]: see smelt_quantized_matmul */ \
    X(VIEW, view, SHAPE, 1)            /* see smelt_array_reinterpret; copied if not contiguous or not aligned */
/* clang-format on */

typedef enum smelt_operation {
    SMELT_OPERATION_NONE = 0,
#define SMELT_OPERATION_ENUM(upper, lower, kind, inputs) SMELT_OPERATION_##upper,
    SMELT_OPERATION_TABLE(SMELT_OPERATION_ENUM)
#undef SMELT_OPERATION_ENUM
        SMELT_OPERATION_END
} smelt_operation;

/* Operations are 1 … smelt_operation_count(). */
SMELT_API int smelt_operation_count(void);
/* "exp"; NULL for an invalid operation. */
SMELT_API const char *smelt_operation_name(smelt_operation operation);
SMELT_API smelt_operation_kind smelt_operation_kind_of(smelt_operation operation);
/* The number of inputs; -1: one or more. */
SMELT_API int smelt_operation_inputs(smelt_operation operation);
/* SMELT_OPERATION_NONE if the name is unknown. */
SMELT_API smelt_operation smelt_operation_from_name(const char *name);

/* One operation on arrays. The table above and docs/operations.md describe the fields of each operation;
 * others are ignored. Axes may be negative: -1 is the last. */
typedef struct smelt_apply_desc {
    smelt_operation operation;
    smelt_array *inputs[SMELT_MAX_ARGUMENTS]; /* ended by NULL */
    uint64_t weak; /* bit i: inputs[i] was a Python scalar; it does not widen the dtype of the others: see
                      smelt_result_dtype. Best given as a float64, int64 or bool array of no dimensions on the
                      host: it is converted there, rounded once */
    smelt_dtype dtype;
    int axes[2 * SMELT_MAX_DIMENSIONS];
    int axis_count;
    /* An empty list of axes, where axis_count 0 would mean all of them. */
    bool no_axes;
    bool keepdims;
    bool reverse;   /* cumulative: from the end */
    bool exclusive; /* cumulative: without the element itself */
    bool equal_nan;
    smelt_shape shape;
    /* Slices, for each dimension of x: elements start, start + step … before stop (after it, if step < 0),
     * all of which must exist, as from Python's slice.indices: with a negative step, stop -1 means "to the
     * first". A step of 0 is 1. For pad: sizes before and after, >= 0. */
    int64_t starts[SMELT_MAX_DIMENSIONS], stops[SMELT_MAX_DIMENSIONS], steps[SMELT_MAX_DIMENSIONS];
    int64_t offset;
    double numbers[3];
    const char *device;   /* NULL: where the inputs are; "cpu" if there are none */
    smelt_stream *stream; /* of the device; NULL: its default */
    /* matmul of two matrices of one dtype, float32, float16 or bfloat16: which kernel computes it, by name
     * (see smelt_matmul_algorithm); NULL: the fastest way for these inputs. */
    const char *algorithm;
    uint64_t reserved[7];
} smelt_apply_desc;

/* The name of a kernel for products of matrices, by its number from 0: "naive", "coalescing" … "best", from
 * slow to fast on a GPU; NULL after the last. They lie in kernels/matmul; docs/matmul.md describes them.
 * On GPUs "tensor_core" multiplies float32 as TF32, with 11 significant bits. */
SMELT_API const char *smelt_matmul_algorithm(int index);

/* Computes one operation. *result is a new array, or a new view if no elements need moving; never the handle
 * of an input. Inputs may have any strides and are never written.
 *
 * Devices. If one input is on a GPU, the operation runs there: inputs on the host are copied, single elements
 * travel with the launch. On a GPU the work is enqueued on the stream.
 *
 * Dtypes. Inputs are converted to a common dtype (smelt_result_dtype), in registers. float16 and bfloat16 are
 * computed in float32 and rounded once. float64 arrays are computed on the host, in plain loops. complex64
 * has the operations that docs/operations.md lists.
 *
 * Indices. gather: after x come n integer arrays, broadcast to one shape q; they index the dimensions axes[0
 * … n-1] of x (none given: the first n). The result's dimensions are those of x that are not indexed, with
 * q's before them, or at `offset` of them. scatter and scatter_add: x, the updates, whose shape is broadcast
 * to the one gather would give, then the indices; scatter takes the last of several updates to one element.
 * scatter_sum: the updates, then the indices. An index i < 0 counts from the end; an index still out of range
 * selects the first or last element. No index faults.
 *
 * Networks. layer_norm and rms_norm divide by the square root of variance or mean square + numbers[0].
 * rope: x (batches, …, rows, elements); pairs of the first starts[0] elements of each row turn by the
 * angle (offset + row) · numbers[1] · numbers[0]^(-2 i / starts[0]), or 1 / frequencies[i] in place of the
 * power. The pair i is the elements 2 i and 2 i + 1 if starts[1] is 1, or i and i + starts[0] / 2 if it is
 * 0. offsets: one integer, or one per batch. `reverse` turns back. conv_general: x (batches, spatial …,
 * channels), weight (outputs, spatial …, channels / groups), 1 to 3 spatial dimensions; for each of these
 * `steps` has the stride, `starts` and `stops` the padding before and after, which may be negative,
 * `shape` the dilation of the kernel and `axes` that of x (either may be left out: 1); `offset` is the
 * number of groups (0: 1), and `reverse` turns the kernel round. grid_sample: x (batches, height, width,
 * channels), grid (batches, rows, columns, 2) of points (across, down); the result (batches, rows,
 * columns, channels) has x's dtype. starts[0]: 0 bilinear, 1 the nearest pixel (halves to even);
 * starts[1]: 0 pixels outside count as 0, 1 points outside are moved to the border; starts[2]: -1 and 1
 * are 0 the edges of the image, 1 the centres of its outer pixels. chunk_inverse: x (batches, length,
 * heads, width), width 1 to 128; each `width` rows of a head are a square of which the part S below the
 * diagonal is used, and the result has (I + S)⁻¹ there; a last chunk of fewer rows is the smaller square
 * it is, 0 in the columns past it.
 *
 * Signals. hadamard_transform multiplies by the matrix H of 2^k, 12 2^k, 20 2^k or 28 2^k rows of 1 and -1:
 * of an element's number i 2^k + j, i belongs to the matrix of 12, 20 or 28 rows, and j to Sylvester's.
 *
 * Random numbers. x is a key, uint32 (2). `shape` is the result's; its elements depend on the key and their
 * place in row-major order only, as those of smelt_array_uniform with seed key[0] | key[1] 2^32. bits,
 * integers and uniform numbers are the same bits on every device; so are normal and Gumbel's numbers of
 * float32. random_bits: integers or bool of `dtype` (default uint32). random_split: offset keys, uint32
 * (offset, 2). random_uniform: floats of `dtype` (default float32) from numbers[0] up to, not including,
 * numbers[1] (both 0: 0 and 1). random_normal: mean 0, standard deviation 1; complex64, too. random_gumbel:
 * -log(-log(u)). random_integers: from starts[0] up to, not including, stops[0], of `dtype` (default
 * int32). random_truncated_normal: normal numbers between y and z. random_bernoulli: true with probability
 * y. random_categorical: indices along axes[0] (default: the last) of y, the logarithms of unnormalised
 * probabilities, int32; `offset` of them for each line, as a last dimension (0: one, without that
 * dimension). Where y or z give the shape, `shape` of no dimensions means theirs. random_permutation: 0 …
 * offset - 1 in random order, int32. float64 numbers are computed on the host. Derivatives by keys are 0.
 *
 * Packed numbers. starts[0] is the number of bits, starts[1] the group's size, starts[2] a
 * smelt_quantized_mode; see smelt_quantize. quantize_scales: of x (…, K), (…, K / group) scales in uint8, or
 * of mode affine (2, …, K / group), scales and biases of x's dtype. quantize: x and its scales (and biases)
 * give the words. dequantize: words and scales (and biases) give elements of `dtype` (default: of mode affine
 * that of scales and biases, else float32); its gradients by scales and biases are sums over groups.
 *
 * Attention, products. attention: numbers[0] is the scale, starts[0] 1 if it is causal, starts[1] 1 if the
 * fourth array is a mask, 2 if the fourth and fifth are bias_lines and bias_columns. quantized_matmul: starts
 * as of dequantize. Both compute by the kernels of smelt_attention and smelt_quantized_matmul, and are
 * recorded by tapes and graphs; derivatives are those of the same composed of other operations, which store
 * scores or weights.
 *
 * Determinism. The same inputs give the same bits, except for scatter_add, scatter_sum and grid_sample_vjp_x
 * of floats, which add in any order.
 *
 * INVALID_ARGUMENT for inputs, shapes, axes and dtypes that do not match; UNSUPPORTED for dtypes that the
 * operation lacks; LIMIT; and the errors of allocating and running kernels. */
SMELT_API smelt_status smelt_apply(const smelt_apply_desc *desc, smelt_array **result);

/* The dtype to which inputs are converted. The highest kind of bool < unsigned and signed integers < floats <
 * complex64 wins, and within it the widest; unsigned with signed gives the signed dtype that holds both, or
 * float32 if there is none (uint64); float16 and bfloat16 give float32. An input that is `weak` counts only
 * if its kind is higher than that of all others (or all are weak): then a float is float32, an integer int32,
 * whatever its dtype. INVALID_ARGUMENT for an invalid dtype. */
SMELT_API smelt_status smelt_result_dtype(const smelt_dtype *dtypes, uint64_t weak, int count,
                                          smelt_dtype *dtype);

/* The shape that shapes are broadcast to. INVALID_ARGUMENT, naming the sizes, if they cannot be. */
SMELT_API smelt_status smelt_result_shape(const smelt_shape *shapes, int count, smelt_shape *shape);

/* ---- Attention ------------------------------------------------------------------------------ */

/* softmax(scale q kᵀ + mask) v for each head of each batch, in one pass: no array of scores is created. */
typedef struct smelt_attention_desc {
    smelt_array *q, *k,
        *v;             /* (batches, heads, rows, D), (batches, key_heads, keys, D) and (batches, key_heads,
                           keys, D_v); of one dtype: float32, float16 or bfloat16. D and D_v are 1 to 256.
                           heads is a multiple of key_heads: that many heads in a row share one of k */
    smelt_array *mask;  /* NULL; or an array of four dimensions, each of size 1 or that of (batches, heads,
                           rows, keys), with any strides: bool, true where a row sees a key, or float32
                           or the dtype of q, added to the scores */
    smelt_array *sinks; /* NULL; or float32 (heads): a score that takes its part of the sum, and no value */
    double scale;
    bool causal;          /* row i sees the keys up to i + keys - rows */
    const char *device;   /* NULL: where the inputs are */
    smelt_stream *stream; /* of the device; NULL: its default */
    /* NULL; or, instead of a mask, biases of keys that are L lines of W columns (L × W = keys, W at most
     * 65535): (batches, heads, rows, L) and (batches, heads, rows, W) of q's dtype. The elements of a
     * key's line and column are added to its score. smelt_attention_vjp does not accept them. */
    smelt_array *bias_lines, *bias_columns;
    bool rows_first; /* *out lies in memory as (batches, rows, heads, D_v): a layer that joins the heads of a
                        row reads it without a copy. smelt_attention_vjp ignores it */
    uint64_t reserved[5];
} smelt_attention_desc;

/* *out: (batches, heads, rows, D_v) of the inputs' dtype; 0 in rows that see no key. *logsumexp, unless NULL:
 * float32 (batches, heads, rows), the logarithm of the sum of the exponentials of a row's scores, -infinity
 * if there are none. Sums are float32; weights are rounded to the inputs' dtype. Tapes do not record it.
 * INVALID_ARGUMENT, LIMIT and UNSUPPORTED for shapes and dtypes other than these, and the errors of
 * allocating and running kernels. */
SMELT_API smelt_status smelt_attention(const smelt_attention_desc *desc, smelt_array **out,
                                       smelt_array **logsumexp);

/* The gradients by q, k and v for the cotangent of out, which has its shape and dtype. out and logsumexp are
 * what smelt_attention gave for the same desc. Scores are computed again. On GPUs of compute capability 9.0,
 * the gradient by q of float16 and bfloat16 is summed in any order: the last bits of its sums may differ from
 * run to run. It takes 4 bytes of memory for each element of q, and a few for each row. Fails as
 * smelt_attention. */
SMELT_API smelt_status smelt_attention_vjp(const smelt_attention_desc *desc, smelt_array *out,
                                           smelt_array *logsumexp, smelt_array *cotangent,
                                           smelt_array *gradients[3]);

/* ---- Packed numbers, and products with a packed matrix
 * --------------------------------------------------------- */

/* How elements become weights, with the scale (and the bias) of their group. */
typedef enum smelt_quantized_mode {
    SMELT_QUANTIZED_AFFINE, /* unsigned integers: element * scale + bias */
    SMELT_QUANTIZED_MXFP4,  /* fp4_e2m1 * 2^(scale - 127), in groups of 32 */
    SMELT_QUANTIZED_MXFP8   /* fp8_e4m3 * 2^(scale - 127), in groups of 32 */
} smelt_quantized_mode;

typedef struct smelt_quantize_desc {
    smelt_array *x; /* (…, K): float32, float16 or bfloat16 (integers become float32); K is a multiple of
                       group_size */
    int bits, group_size; /* affine: 2, 3, 4, 5, 6 or 8; 32, 64 or 128. mxfp4: 4, 32. mxfp8: 8, 32 */
    smelt_quantized_mode mode;
    const char *device;   /* NULL: where x is */
    smelt_stream *stream; /* of the device; NULL: its default */
    uint64_t reserved[8];
} smelt_quantize_desc;

/* Packs x. *w: uint32 (…, K * bits / 32), the codes of a row one after the other, the first in the lowest
 * bits, also across words. *scales (…, K / group_size) and, of mode affine, *biases: of x's dtype, or uint8.
 * `biases` is NULL for other modes.
 *
 * affine: of a group's finite elements the edge of the range farther from 0 is the bias, and the scale is
 * such that 0 is a whole number of steps from it; then codes are rounded to the nearest, as by mx.quantize.
 * mxfp4 and mxfp8: the scale is 2 to the power of floor(log2(the largest magnitude)) less 2 or 8; elements
 * are rounded to nearest even, and saturate. smelt_tensor_quantise computes the same in float64. The
 * dequantize operation is the way back. INVALID_ARGUMENT, LIMIT and UNSUPPORTED for other shapes, dtypes and
 * settings, and the errors of allocating and running kernels. */
SMELT_API smelt_status smelt_quantize(const smelt_quantize_desc *desc, smelt_array **w, smelt_array **scales,
                                      smelt_array **biases);

typedef struct smelt_quantized_matmul_desc {
    smelt_array *x;       /* (…, K): float32, float16 or bfloat16. K is a multiple of group_size */
    smelt_array *w;       /* uint32 (N, K * bits / 32): the elements of a row, the first in the lowest bits */
    smelt_array *scales;  /* (N, K / group_size): float32, float16 or bfloat16; else uint8 */
    smelt_array *biases;  /* the same, of the scales' dtype; NULL unless mode is affine */
    int bits, group_size; /* affine: 2, 4 or 8; 32, 64 or 128. mxfp4: 4, 32. mxfp8: 8, 32 */
    smelt_quantized_mode mode;
    const char *device;   /* NULL: where the inputs are */
    smelt_stream *stream; /* of the device; NULL: its default */
    uint64_t reserved[8];
} smelt_quantized_matmul_desc;

/* *out = x wᵀ, (…, N) of x's dtype, in one kernel that stores no weights: made for few rows of x, as when a
 * model decodes; it reads w once for each 4 of them, or for each 16 of float16 and bfloat16 on GPUs of
 * compute capability 9.0 if K is a multiple of 128. Sums are float32; the products of a group are summed
 * before they are scaled. Tapes do not record it. INVALID_ARGUMENT and LIMIT for other shapes,
 * dtypes and settings, and the errors of allocating and running kernels. */
SMELT_API smelt_status smelt_quantized_matmul(const smelt_quantized_matmul_desc *desc, smelt_array **out);

#ifdef __cplusplus
}
#endif
#endif
