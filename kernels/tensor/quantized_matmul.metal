// out = x · wᵀ of few rows, where w is packed: elements of BITS bits in words, the first in the lowest bits, with a scale (and
// mode affine: a bias) for each GROUP of them along a row. Weights are not stored; sums are float.
//
// The text that precedes this one defines
//   QUANTIZED_TYPE    of x and out: float, half or bfloat
//   QUANTIZED_SCALE   of scales and biases: float, half or bfloat; for MODE 1 and 2 uchar
//   QUANTIZED_MODE    0: element · scale + bias; 1: fp4_e2m1 · 2^(scale - 127); 2: fp8_e4m3 · 2^(scale - 127)
//   QUANTIZED_BITS, QUANTIZED_GROUP
//   QUANTIZED_ROWS    of x, for each simdgroup
//   QUANTIZED_WORDS   that a lane takes at once: 1, or 32 elements
//
// A simdgroup computes four columns of ROWS rows. Its lanes take turns at runs of elements, which are in one group.
#include <metal_stdlib>
using namespace metal;

typedef QUANTIZED_TYPE T;
typedef QUANTIZED_SCALE S;
constant constexpr int MODE = QUANTIZED_MODE, BITS = QUANTIZED_BITS, GROUP = QUANTIZED_GROUP, ROWS = QUANTIZED_ROWS,
                       WORDS = QUANTIZED_WORDS;
constant constexpr int COLUMNS = 4, RUN = WORDS * 32 / BITS;

struct quantized_size {
    int rows, columns, terms;
};

inline float scale_of(S scale) {
#if QUANTIZED_MODE == 0
    return (float)scale;
#else
    return scale == 255 ? NAN : as_type<float>(scale == 0 ? 0x400000u : (uint)scale << 23);
#endif
}

// The elements of 16 bits. Of mode affine, element i is multiplied by 2^(i · BITS): where it lies in the 16 bits, it is a part
// of the mantissa of a float.
inline void unpack(uint bits, thread float (&elements)[16 / BITS]) {
#pragma unroll
    for (int i = 0; i < 16 / BITS; i++) {
        const uint code = bits >> (i * BITS) & ((1u << BITS) - 1);
        if (MODE == 0) // 2^23 + element · 2^(i · BITS), exactly
            elements[i] = as_type<float>((bits & (((1u << BITS) - 1) << (i * BITS))) | 0x4b000000u) - 8388608.0f;
        else if (MODE == 1) // exponents of half begin 14 lower
            elements[i] = (float)as_type<half>((ushort)((code & 7) << 9 | (code & 8) << 12)) * 16384.0f;
        else // 8 lower
            elements[i] = (code & 127) == 127 ? NAN : (float)as_type<half>((ushort)((code & 127) << 7 | (code & 128) << 8)) * 256.0f;
    }
}

kernel void smelt_quantized_matmul(device const T *x [[buffer(0)]], device const uint *w [[buffer(1)]],
                                   device const S *scales [[buffer(2)]], device const S *biases [[buffer(3)]],
                                   device T *out [[buffer(4)]], constant quantized_size &size [[buffer(5)]],
                                   uint2 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                                   uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const int row = group.y * ROWS, column = (group.x * simdgroups + simdgroup) * COLUMNS;
    const int runs = size.terms / RUN, groups = size.terms / GROUP;
    if (column >= size.columns) return;
    device const T *rows[ROWS];
    for (int r = 0; r < ROWS; r++) rows[r] = x + (long)min(row + r, size.rows - 1) * size.terms;
    float sums[ROWS][COLUMNS] = {};
    for (int run = lane; run < runs; run += 32) {
        float terms[ROWS][RUN], all[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            all[r] = 0;
#pragma unroll
            for (int i = 0; i < RUN; i += 4) {
                const vec<T, 4> four = *(device const vec<T, 4> *)(rows[r] + run * RUN + i);
#pragma unroll
                for (int j = i; j < i + 4; j++) {
                    const float term = (float)four[j - i];
                    terms[r][j] = MODE == 0 ? term * (1.0f / (1 << j % (16 / BITS) * BITS)) : term;
                    all[r] += term;
                }
            }
        }
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const long line = min(column + c, size.columns - 1), at = line * groups + run * RUN / GROUP;
            const float scale = scale_of(scales[at]), bias = MODE == 0 ? (float)biases[at] : 0.0f;
            device const uint *from = w + (line * runs + run) * WORDS;
            uint words[WORDS];
            if (WORDS == 1) {
                words[0] = *from;
            } else {
#pragma unroll
                for (int i = 0; i < WORDS; i += 2) {
                    const uint2 pair = *(device const uint2 *)(from + i);
                    words[i] = pair.x, words[i + 1] = pair.y;
                }
            }
            float dots[ROWS] = {};
#pragma unroll
            for (int i = 0; i < 2 * WORDS; i++) {
                float elements[16 / BITS];
                unpack(i % 2 ? words[i / 2] >> 16 : words[i / 2], elements);
#pragma unroll
                for (int j = 0; j < 16 / BITS; j++)
#pragma unroll
                    for (int r = 0; r < ROWS; r++) dots[r] = fma(elements[j], terms[r][i * (16 / BITS) + j], dots[r]);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) sums[r][c] += scale * dots[r] + (MODE == 0 ? bias * all[r] : 0.0f);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const float sum = simd_sum(sums[r][c]);
            if (lane == 0 && row + r < size.rows && column + c < size.columns) out[(long)(row + r) * size.columns + column + c] = (T)sum;
        }
}
