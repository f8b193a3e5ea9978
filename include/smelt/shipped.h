/* shipped.h — the operations that have kernels of their own in kernels/, one function each.
 *
 * Each is smelt_apply (ops.h) with its arguments spelled out: it runs where its inputs are, on the default
 * stream of that device; derivatives (autodiff.h) and graphs (graph.h) record it. Attention, packed matrices
 * and the gated delta rule are in ops.h and nn.h, smelt_array_contiguous is in smelt.h, factorisations in
 * linalg.h.
 *
 * *result is a new array. Axes may be negative: -1 is the last. The errors are those of smelt_apply:
 * INVALID_ARGUMENT for shapes, dtypes and settings that do not match, UNSUPPORTED for dtypes that an
 * operation lacks, LIMIT, and the errors of allocating and running kernels. Every function may be called from
 * any thread. */
#ifndef SMELT_SHIPPED_H
#define SMELT_SHIPPED_H

#include <smelt/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Networks. */

/* Of x's shape; float16 and bfloat16 are summed in float32, integers become float32. */
SMELT_API smelt_status smelt_softmax(smelt_array *x, int axis, smelt_array **result);
SMELT_API smelt_status smelt_log_softmax(smelt_array *x, int axis, smelt_array **result);

/* (x - mean) / sqrt(variance + eps) over the last dimension, times weight, plus bias; rms_norm without the
 * mean: x / sqrt(mean square + eps). weight and bias have one number for each element of a row, or are NULL.
 */
SMELT_API smelt_status smelt_layer_norm(smelt_array *x, smelt_array *weight, smelt_array *bias, double eps,
                                        smelt_array **result);
SMELT_API smelt_status smelt_rms_norm(smelt_array *x, smelt_array *weight, double eps, smelt_array **result);

/* Rotary positions: pairs of the first `dims` elements of each row of x (batches, …, rows, elements) turn by
 * (offset + row) scale base^(-2 i / dims). */
typedef struct smelt_rope_desc {
    smelt_array *x;
    smelt_array *offset;      /* an integer, or one for each batch; NULL: 0 */
    smelt_array *frequencies; /* NULL; or dims / 2 numbers, whose reciprocals stand for base^(-2 i / dims) */
    int dims;                 /* even */
    bool traditional;         /* pairs are elements 2 i and 2 i + 1; otherwise i and i + dims / 2 */
    double base, scale;       /* scale 0: 1 */
    uint64_t reserved[4];
} smelt_rope_desc;
SMELT_API smelt_status smelt_rope(const smelt_rope_desc *desc, smelt_array **result);

/* The correlation of x (batches, spatial …, channels) with weight (outputs, spatial …, channels / groups), of
 * 1 to 3 spatial dimensions. For each of these: */
typedef struct smelt_convolve_desc {
    smelt_array *x, *weight;
    int64_t stride[3]; /* 0: 1 */
    int64_t before[3]; /* zeros before x and after it; negative: elements left out */
    int64_t after[3];
    int64_t dilation[3];       /* how far elements of the kernel are apart; 0: 1 */
    int64_t input_dilation[3]; /* those of x, with zeros between them; 0: 1 */
    int64_t groups;            /* 0: 1 */
    bool flip;                 /* a convolution: the kernel is turned round */
    uint64_t reserved[4];
} smelt_convolve_desc;
SMELT_API smelt_status smelt_convolve(const smelt_convolve_desc *desc, smelt_array **result);

/* Samples of images x (batches, height, width, channels) at the points of grid (batches, rows, columns, 2),
 * (across, down) from -1 to 1: the edges of an image, or with align_corners the centres of its outer pixels.
 * nearest: the nearest pixel, otherwise bilinear. border: points outside are moved to the border, otherwise
 * pixels there are 0. */
SMELT_API smelt_status smelt_sample_grid(smelt_array *x, smelt_array *grid, bool nearest, bool border,
                                         bool align_corners, smelt_array **result);

/* (I + S)⁻¹ for each chunk of x (batches, length, heads, width), S the part of its square below the diagonal;
 * width is 1 to 128. */
SMELT_API smelt_status smelt_chunk_inverse(smelt_array *x, smelt_array **result);

/* ---- Rows. */

/* Sums, products, largest and smallest elements so far; from the end with `reverse`. */
SMELT_API smelt_status smelt_cumsum(smelt_array *x, int axis, bool reverse, smelt_array **result);
SMELT_API smelt_status smelt_cumprod(smelt_array *x, int axis, bool reverse, smelt_array **result);
SMELT_API smelt_status smelt_cummax(smelt_array *x, int axis, bool reverse, smelt_array **result);
SMELT_API smelt_status smelt_cummin(smelt_array *x, int axis, bool reverse, smelt_array **result);

/* Equal elements keep their order, NaN comes last. argsort: where elements were, int32. topk: the k largest,
 * in ascending order. */
SMELT_API smelt_status smelt_sort(smelt_array *x, int axis, smelt_array **result);
SMELT_API smelt_status smelt_argsort(smelt_array *x, int axis, smelt_array **result);
SMELT_API smelt_status smelt_topk(smelt_array *x, int64_t k, int axis, smelt_array **result);

/* ---- Signals. */

/* Fourier's transform along an axis, of its first n elements or zeros behind them (0: all), complex64;
 * `inverse` divides by n. rfft: the first n / 2 + 1 elements of the transform of real numbers. irfft: n real
 * numbers of those (0: 2 (size - 1)). */
SMELT_API smelt_status smelt_fft(smelt_array *x, int64_t n, int axis, bool inverse, smelt_array **result);
SMELT_API smelt_status smelt_rfft(smelt_array *x, int64_t n, int axis, smelt_array **result);
SMELT_API smelt_status smelt_irfft(smelt_array *x, int64_t n, int axis, smelt_array **result);

/* The Walsh-Hadamard transform of the last dimension, of 2^k, 12 2^k, 20 2^k or 28 2^k elements, times scale.
 */
SMELT_API smelt_status smelt_hadamard_transform(smelt_array *x, double scale, smelt_array **result);

/* ---- Packed numbers: the way back from smelt_quantize (ops.h). */

/* `biases` is NULL unless mode is affine. dtype 0: of mode affine that of scales and biases, else float32. */
SMELT_API smelt_status smelt_dequantize(smelt_array *w, smelt_array *scales, smelt_array *biases, int bits,
                                        int group_size, smelt_quantized_mode mode, smelt_dtype dtype,
                                        smelt_array **result);

/* ---- Random numbers: see smelt_apply. They depend on the key and an element's place only. */

/* uint32 (2): the seed's words, the low one first. */
SMELT_API smelt_status smelt_random_key(uint64_t seed, smelt_array **key);
/* (count, 2): keys whose numbers are independent of each other and of the key's own. */
SMELT_API smelt_status smelt_random_split(smelt_array *key, int64_t count, smelt_array **keys);
/* Integers over their full range, or bools; dtype 0: uint32. */
SMELT_API smelt_status smelt_random_bits(smelt_array *key, smelt_dtype dtype, smelt_shape shape,
                                         smelt_array **result);
/* From low up to, not including, high, which is larger. dtype 0: float32; of integers int32. */
SMELT_API smelt_status smelt_random_uniform(smelt_array *key, smelt_dtype dtype, smelt_shape shape,
                                            double low, double high, smelt_array **result);
SMELT_API smelt_status smelt_random_integers(smelt_array *key, smelt_dtype dtype, smelt_shape shape,
                                             int64_t low, int64_t high, smelt_array **result);
/* Mean 0 and standard deviation 1; the standard Gumbel distribution. dtype 0: float32. */
SMELT_API smelt_status smelt_random_normal(smelt_array *key, smelt_dtype dtype, smelt_shape shape,
                                           smelt_array **result);
SMELT_API smelt_status smelt_random_gumbel(smelt_array *key, smelt_dtype dtype, smelt_shape shape,
                                           smelt_array **result);
/* Normal numbers between lower and upper, which are broadcast; a shape of no dimensions is theirs. */
SMELT_API smelt_status smelt_random_truncated_normal(smelt_array *key, smelt_array *lower, smelt_array *upper,
                                                     smelt_dtype dtype, smelt_shape shape,
                                                     smelt_array **result);
/* True with probability p, which is broadcast; a shape of no dimensions is p's. */
SMELT_API smelt_status smelt_random_bernoulli(smelt_array *key, smelt_array *p, smelt_shape shape,
                                              smelt_array **result);
/* Indices along an axis, int32, with probabilities proportional to exp(logits); `samples` of them as a last
 * dimension (0: one, without that dimension). */
SMELT_API smelt_status smelt_random_categorical(smelt_array *key, smelt_array *logits, int axis,
                                                int64_t samples, smelt_array **result);
/* 0 … count - 1 in random order, int32. */
SMELT_API smelt_status smelt_random_permutation(smelt_array *key, int64_t count, smelt_array **result);

#ifdef __cplusplus
}
#endif
#endif
