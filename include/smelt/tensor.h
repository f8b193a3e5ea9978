/* smelt/tensor.h — tensors for kernels: Metal 4's `tensor` arguments, filled and read by the host.
 *
 * The conventions are those of smelt.h. Dimensions are counted from the innermost: a matrix of R rows and C
 * columns is an array of shape (R, C) and a tensor of dimensions {C, R}.
 */
#ifndef SMELT_TENSOR_H
#define SMELT_TENSOR_H

#include "smelt/smelt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Elements ----------------------------------------------------------------------------- */

/* Formats of elements that arrays do not have: number, name, bits. Several lie in a byte, the first in its
 * lowest bits. fp8_e4m3 has no infinity and the largest value 448; fp4_e2m1 has neither infinity nor NaN and
 * the largest value 6; ue8m0 is 2 to the power of the byte minus 127, 255 is NaN. */
#define SMELT_FORMAT_TABLE(X)    \
    X(64, INT4, int4, 4)         \
    X(65, UINT4, uint4, 4)       \
    X(66, INT2, int2, 2)         \
    X(67, UINT2, uint2, 2)       \
    X(68, FP4_E2M1, fp4_e2m1, 4) \
    X(69, FP8_E4M3, fp8_e4m3, 8) \
    X(70, FP8_E5M2, fp8_e5m2, 8) \
    X(71, UE8M0, ue8m0, 8)

typedef enum smelt_format {
#define SMELT_FORMAT_ENUM(number, upper, lower, bits) SMELT_##upper = number,
    SMELT_FORMAT_TABLE(SMELT_FORMAT_ENUM)
#undef SMELT_FORMAT_ENUM
} smelt_format;

/* The type of a tensor's elements is a smelt_dtype or a smelt_format, as an int. */

/* "float32", "fp8_e4m3" …; "none" for other numbers. */
SMELT_API const char *smelt_element_name(int element);

/* Bits per element; 0 for numbers that are not element types. */
SMELT_API int smelt_element_bits(int element);

/* The element type called `name`. INVALID_ARGUMENT lists the valid names. */
SMELT_API smelt_status smelt_element_from_name(const char *name, int *element);

/* The value of a code of one of smelt_format; NaN for other element types. */
SMELT_API double smelt_element_decode(int element, unsigned code);

/* The code of one of smelt_format that is nearest to a value, ties to even. Too large and infinite values
 * become the largest of their sign; NaN becomes NaN, the largest if the format has none, 0 of integers. Of
 * ue8m0: the power nearest by its exponent and mantissa, at least 2 to the power of -127. 0 for other element
 * types. */
SMELT_API unsigned smelt_element_encode(int element, double value);

/* ---- Tensors ------------------------------------------------------------------------------ */

/* A tensor's data and what belongs to them: planes of one value per block of elements. A kernel's argument
 * has at most scales; biases are bound as arrays. An element's value is data * scale + bias. */
typedef enum smelt_tensor_plane {
    SMELT_PLANE_DATA = 0,
    SMELT_PLANE_SCALES,
    SMELT_PLANE_BIASES
} smelt_tensor_plane;
#define SMELT_PLANE_COUNT 3

/* What a tensor is for, as bits. */
#define SMELT_TENSOR_COMPUTE 1u
#define SMELT_TENSOR_RENDER 2u
#define SMELT_TENSOR_MACHINE_LEARNING 4u

/* A plane of scales or biases. */
typedef struct smelt_tensor_plane_desc {
    int element;                         /* 0: the tensor has no such plane */
    int64_t block[SMELT_MAX_DIMENSIONS]; /* elements per value in each dimension, the innermost first; 0: 1 */
    smelt_array *memory;                 /* as in smelt_tensor_desc; packed: the innermost dimension first */
    int64_t offset;
    uint64_t reserved[4];
} smelt_tensor_plane_desc;

typedef struct smelt_tensor_desc {
    int element;                              /* required */
    int ndim;                                 /* 1 to SMELT_MAX_DIMENSIONS */
    int64_t dimensions[SMELT_MAX_DIMENSIONS]; /* the innermost first; each at least 1 */
    int64_t strides[SMELT_MAX_DIMENSIONS]; /* in elements; all 0: packed, rows padded as the rules require */
    unsigned usage;                        /* SMELT_TENSOR_…; 0: SMELT_TENSOR_COMPUTE */
    smelt_tensor_plane_desc scales, biases;
    const char *device;  /* where memory is allocated, as for arrays; NULL: "cpu" */
    smelt_array *memory; /* a row-contiguous array, whose memory the tensor uses from `offset` bytes on, and
                            keeps; NULL: new memory, filled with zeros */
    int64_t offset;
    uint64_t reserved[8];
} smelt_tensor_desc;

/* Creates a tensor. The rules are Metal's:
 * - strides[0] is 1, and each other stride at least as many elements as the dimensions before it take;
 * - elements of a smelt_format: dimension 0 is a multiple of 32; strides from index 1 on, and offsets, are
 *   multiples of 128 bytes;
 * - other elements: offsets are multiples of an element's size;
 * - SMELT_TENSOR_MACHINE_LEARNING: strides[1] is a multiple of 64 bytes, further strides are packed, the
 * offset is 0;
 * - dimensions are multiples of the blocks of scales and biases.
 * INVALID_ARGUMENT states the rule that is not met; so does memory that is too small. LIMIT if bytes
 * overflow; OUT_OF_MEMORY, NO_DEVICE. */
SMELT_API smelt_status smelt_tensor_create(const smelt_tensor_desc *desc, smelt_tensor **tensor);
SMELT_API smelt_tensor *smelt_tensor_retain(smelt_tensor *tensor);
SMELT_API void smelt_tensor_release(smelt_tensor *tensor);

/* Fills `desc` with what the tensor is: strides, blocks and usage are those in use. Its memory and device
 * live as long as the tensor. */
SMELT_API smelt_status smelt_tensor_describe(const smelt_tensor *tensor, smelt_tensor_desc *desc);

/* A view of a plane as an array, the outermost dimension first. Of packed formats it is the bytes (uint8),
 * with a last dimension of as many bytes as dimension 0 takes. INVALID_ARGUMENT if the tensor lacks the
 * plane. */
SMELT_API smelt_status smelt_tensor_array(const smelt_tensor *tensor, smelt_tensor_plane plane,
                                          smelt_array **array);

/* A tensor over an array's memory, whose last dimension must be dense: dimensions and strides are the array's
 * in reverse. `element` is the array's dtype (0 means this), or a smelt_format whose bytes the array of uint8
 * holds. The rules are those of smelt_tensor_create. */
SMELT_API smelt_status smelt_tensor_from_array(smelt_array *array, int element, smelt_tensor **tensor);

/* Writes what a kernel's structure of arguments holds where it has the tensor as a member: the addresses,
 * extents and strides of the data and the scales. That is 24 + 16 * ndim + index_bytes * ndim bytes, rounded
 * up to a multiple of 8, as is its place in the structure. `index_bytes` is the size of the index type of the
 * member's extents: 4 for dextents<int, N>. The tensor must live until the launch has ended, and its memory
 * must be that of the launch's device; the types are not compared. INVALID_ARGUMENT for another size than the
 * member's; LIMIT if a dimension does not fit the index type. */
SMELT_API smelt_status smelt_tensor_member(const smelt_tensor *tensor, size_t index_bytes, void *bytes,
                                           size_t size);

/* A part of a plane, and where the host has it. */
typedef struct smelt_tensor_slice {
    smelt_tensor_plane plane;
    int64_t origin[SMELT_MAX_DIMENSIONS]; /* in elements of the plane, the innermost dimension first */
    int64_t size[SMELT_MAX_DIMENSIONS];
    int64_t strides[SMELT_MAX_DIMENSIONS]; /* of the host's memory, in elements; all 0: packed */
    uint64_t reserved[4];
} smelt_tensor_slice;

/* Copies a slice to or from `bytes`, which has room for `size` of them; elements stay as they are. Of formats
 * with several elements per byte, origin, size and strides must begin at whole bytes. slice NULL: the whole
 * data, packed. INVALID_ARGUMENT for a slice outside the plane, too little room, or strides that give two
 * elements one place to be read to. */
SMELT_API smelt_status smelt_tensor_read_slice(const smelt_tensor *tensor, const smelt_tensor_slice *slice,
                                               void *bytes, size_t size);
SMELT_API smelt_status smelt_tensor_write_slice(smelt_tensor *tensor, const smelt_tensor_slice *slice,
                                                const void *bytes, size_t size);

/* ---- Quantisation ------------------------------------------------------------------------- */

/* How an array becomes a tensor. Groups of consecutive elements of the innermost dimension share a scale.
 * - fp8_e4m3, fp8_e5m2, fp4_e2m1: OCP's microscaling formats. The scale is ue8m0: 2 to the power of
 *   floor(log2(the largest magnitude)) less the format's largest exponent (8, 15, 2); elements are rounded to
 *   nearest even, and saturate.
 * - uint2, uint4, uint8: affine, as MLX's quantize does. value = data * scale + bias; the edge of the range
 * that is farther from 0 is exact, as is 0 if the range holds it.
 * - int2, int4, int8: symmetric. value = data * scale; the scale is the largest magnitude over 1, 7 or 127.
 * Scales and biases of integers are finite: those too large for their dtype are the largest it holds.
 */
typedef struct smelt_quantise_desc {
    int element;
    int64_t group;      /* 0: 32 for microscaling formats, 64 for integers */
    smelt_dtype scales; /* of integers: the dtype of scales and biases; 0: float32 */
    uint64_t reserved[4];
} smelt_quantise_desc;

/* How far the tensor's values are from the array's. NaN and infinite elements of the array are only counted.
 */
typedef struct smelt_quantise_error {
    int64_t count;      /* of elements compared */
    int64_t not_finite; /* of elements that are NaN or infinite */
    int64_t flushed;    /* of elements that are not 0 and became 0 */
    int64_t saturated;  /* of elements whose magnitude is beyond what data and scale can hold */
    double largest;     /* of the magnitudes of errors, at the element … */
    int64_t at;         /* … of this row-major index */
    double mean;        /* of the magnitudes of errors */
    double root_mean_square;
    double
        signal_to_noise; /* 10 log10 of the sum of squares over that of errors, dB; infinite without errors */
    uint64_t reserved[4];
} smelt_quantise_error;

/* A new tensor on the host with the array's values, rounded. `array`: floats, on any device, with at least
 * one dimension; the last one is a multiple of the group, and of 32 for formats. `error` may be NULL.
 * INVALID_ARGUMENT, OUT_OF_MEMORY. */
SMELT_API smelt_status smelt_tensor_quantise(const smelt_array *array, const smelt_quantise_desc *desc,
                                             smelt_tensor **tensor, smelt_quantise_error *error);

/* The tensor's values as a new row-contiguous array on the host, the outermost dimension first: data times
 * scale, plus bias, computed in float64 and rounded to `dtype` (0: float32), which is a float. */
SMELT_API smelt_status smelt_tensor_dequantise(const smelt_tensor *tensor, smelt_dtype dtype,
                                               smelt_array **array);

/* ---- Layouts of <smelt/layout>. */

/* A picture of the offsets of a layout, which is given in the words of the header: "row_major<2, 6>()",
 * "column_major(2, 6)", "strided<2, 6, 1, 2>()", "blocked(row_major<1, 3>(), column_major<2, 2>())". Free
 * *text with smelt_free. INVALID_ARGUMENT for other words, LIMIT for more than 64 rows or columns. */
SMELT_API smelt_status smelt_layout_picture(const char *layout, char **text);

#ifdef __cplusplus
}
#endif
#endif
