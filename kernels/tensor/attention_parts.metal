// What the kernels of attention share: sizes, masks, sinks. attention.metal or attention_warpgroups.metal follows.
//
// The text that precedes this one defines
//   ATTENTION_TYPE    float, half or bfloat
//   ATTENTION_DEPTH   at least the sizes of a row of q, k and v: what a row lacks counts as 0
//   ATTENTION_ROWS, ATTENTION_KEYS   of the tiles of scores
//   ATTENTION_MASK    0: there is none; 1: bools, true where a row sees a key; 2: floats that are added to scores; 3: numbers of
//                     ATTENTION_TYPE that are added; 4: keys are lines of ATTENTION_WIDTH columns, and two numbers of
//                     ATTENTION_TYPE are added, that of the key's line and that of its column
//   ATTENTION_PLACED  1: size.places locates q, k and v; 0: they are contiguous
//   ATTENTION_SINKS   1: there is a score for each head that takes its part of the sum and has no value
//
// q and out: batches × heads × rows × depth (value_depth). k and v: batches × key_heads × keys × depth (value_depth), where
// heads is a multiple of key_heads. size.result locates the rows of out.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

typedef ATTENTION_TYPE T;
constant constexpr int D = ATTENTION_DEPTH, ROWS = ATTENTION_ROWS, KEYS = ATTENTION_KEYS;
constant constexpr auto adding = matmul2d_descriptor::mode::multiply_accumulate;

struct attention_size {
    int rows, keys, depth, value_depth, heads, key_heads;
    float scale;
    int causal;                       // 1: row i sees the keys up to i + keys - rows
    long mask_first, mask_strides[4]; // of batches, heads, rows, keys; in elements
    int parts, part_keys;             // of attention_split.metal
    int lines;                        // of ATTENTION_WIDTH keys
    int tiles, turns;                 // of attention_warpgroups.metal
    struct matrices {
        long first, row, between; // in elements: where the first matrix begins, from row to row, from matrix to matrix
        int batch, head, count;   // how many matrices further the next batch and head are, and how many there are
        int unused;
    } places[3]; // of q, k and v; for attention_warpgroups.metal, and where ATTENTION_PLACED is 1
    struct {
        long batch, head, row; // in elements: from one to the next
    } result; // out of the forward kernels
};

#if ATTENTION_MASK == 4
typedef float mask_type;
struct head_mask { device const T *lines, *columns; }; // of a head's first row
constant constexpr int WIDTH = ATTENTION_WIDTH;
#elif ATTENTION_MASK == 1
typedef bool mask_type;
#elif ATTENTION_MASK == 3
typedef T mask_type;
#else
typedef float mask_type;
#endif

// Operations take tensors of elements that are not const.
inline auto rows_of(device const T *data, int columns, int rows) {
    return tensor(const_cast<device T *>(data), dextents<int, 2>(columns, rows));
}

// A head's rows of q (operand 0), k (1) or v (2).
inline auto operand_rows(device const T *data, int operand, int batch, int head, int heads, int columns, int rows,
                         constant attention_size &size) {
#if ATTENTION_PLACED
    const auto place = size.places[operand];
    device const T *first = data + place.first + ((long)batch * place.batch + (long)head * place.head) * place.between;
    return tensor(const_cast<device T *>(first), dextents<int, 2>(columns, rows), array<long, 2>{1, place.row});
#else
    return rows_of(data + ((long)batch * heads + head) * rows * columns, columns, rows);
#endif
}

// Where a row of out begins.
inline long result_at(int batch, int head, int row, constant attention_size &size) {
    return batch * size.result.batch + head * size.result.head + row * size.result.row;
}

#if ATTENTION_MASK == 4
inline float mask_at(head_mask mask, int row, int key, constant attention_size &size) {
    return (float)mask.lines[(long)row * size.lines + key / WIDTH] + (float)mask.columns[(long)row * WIDTH + key % WIDTH];
}
#else
typedef device const mask_type *head_mask;

inline mask_type mask_at(head_mask mask, int row, int key, constant attention_size &size) {
    return mask[row * size.mask_strides[2] + key * size.mask_strides[3]];
}
#endif

// x times factor, where what is finite stays so: a row whose mask holds the lowest float everywhere sees all keys alike.
inline float kept_finite(float x, float factor) {
    const float product = x * factor;
    return product == -INFINITY && x > -INFINITY ? -MAXFLOAT : product;
}

// The logarithm of a row's sum of exponentials, where top is the greatest score times log2(e) and kept finite.
inline float log_of_sum(float top, float sum) { return (top == -MAXFLOAT ? top : top * M_LN2_F) + log(sum); }

// A score with the mask's element applied. unit: the factor by which scores are scaled already.
inline float with_mask(float score, mask_type mask, float unit) {
#if ATTENTION_MASK == 1
    return mask ? score : -INFINITY;
#else
    return score + kept_finite((float)mask, unit);
#endif
}

// A score times the scale, with the mask: -INFINITY where the row does not see the key, or does not exist.
inline float masked(float score, int row, int column, constant attention_size &size, head_mask mask) {
    const bool seen = column < size.keys && row < size.rows && (!size.causal || column <= row + size.keys - size.rows);
    if (!seen) return -INFINITY;
    const float value = score * size.scale;
#if ATTENTION_MASK
    return with_mask(value, mask_at(mask, row, column, size), 1);
#else
    return value;
#endif
}

// Whether all of the tile's rows exist and see all of its keys.
inline bool sees_all(int first_row, int rows, int first_key, int keys, constant attention_size &size) {
    return !ATTENTION_MASK && first_key + keys <= size.keys && first_row + rows <= size.rows &&
           (!size.causal || first_key + keys - 1 <= first_row + size.keys - size.rows);
}

#if ATTENTION_MASK == 4
#define MASK_PARAMETER , device const T *bias_lines [[buffer(10)]], device const T *bias_columns [[buffer(12)]]
#define MASK_OF(batch, head) bias_of_head(bias_lines, bias_columns, (long)(batch) * size.heads + (head), size)
inline head_mask bias_of_head(device const T *lines, device const T *columns, long head, constant attention_size &size) {
    return {lines + head * size.rows * size.lines, columns + head * size.rows * WIDTH};
}
#elif ATTENTION_MASK
#define MASK_PARAMETER , device const mask_type *mask [[buffer(10)]]
#define MASK_OF(batch, head) (mask + size.mask_first + (batch) * size.mask_strides[0] + (head) * size.mask_strides[1])
#else
#define MASK_PARAMETER
#define MASK_OF(batch, head) nullptr
#endif
#if ATTENTION_SINKS
#define SINKS_PARAMETER , device const float *sinks [[buffer(11)]]
#define SINK_OF(head) sinks[head]
#else
#define SINKS_PARAMETER
#define SINK_OF(head) (-INFINITY)
#endif

// For the kernels of CPUs: 2^x for x <= 0, within 1 ULP; 0 below 2^-125, and NaN for NaN. exp2, which takes every x, has more
// instructions.
inline float exp2_down(float x) {
    const float rounder = 0x1.8p23f; // a sum with it is rounded to an integer, which its low bits then hold
    const float t = x < -125.0f ? -125.0f : x, z = t + rounder, r = t - (z - rounder);
    float p = 0x1.44138ap-13f; // 2^r for |r| <= 1/2, as in smelt_float_exp.h
    p = fma(p, r, 0x1.5f089p-10f);
    p = fma(p, r, 0x1.3b2a54p-7f);
    p = fma(p, r, 0x1.c6af6cp-5f);
    p = fma(p, r, 0x1.ebfbep-3f);
    p = fma(p, r, 0x1.62e43p-1f);
    p = fma(p, r, 1.0f);
    const float y = p * as_type<float>((as_type<uint>(z) << 23) + 0x3f800000u);
    return x < -125.0f ? 0.0f : y;
}
