// What quantized_matmul_fragments.metal and quantized_matmul_few.metal share: weights are unpacked to pairs of elements, which
// tensor cores multiply. The text that precedes this one defines QUANTIZED_TYPE, QUANTIZED_SCALE, QUANTIZED_MODE, QUANTIZED_BITS
// and QUANTIZED_GROUP, as for quantized_matmul.metal.
//
// A simdgroup's left matrix is weights, 16 lines of 16 terms, the right one is x. The order of terms is the same for both: a lane
// has eight neighbours, of which the first and the fifth are one pair, and so on, as they lie in a word of eight weights.
#include <metal_stdlib>
using namespace metal;

typedef QUANTIZED_TYPE T;
typedef QUANTIZED_SCALE S;
constant constexpr int MODE = QUANTIZED_MODE, BITS = QUANTIZED_BITS, GROUP = QUANTIZED_GROUP;
constant constexpr bool brain = is_same_v<T, bfloat>;

struct quantized_size {
    int rows, columns, terms;
};

// What precedes this call may run while the previous launch still computes its last groups, so it may access no array. That launch may
// even write w: the first bytes of line `line` are only read into the cache that all multiprocessors share. (8192 × 8192 weights of
// 4 bits, an H200: without these bytes 2 % more time for one row of x, 3 % for 16, and with 2 KiB 5 % and 1 %.)
constant constexpr uint AHEAD = 512;

inline void begin_ahead(device const uchar *w, uint line_bytes, uint line, bool reads) {
    __smelt_ptx_prefetch((ulong)w + (ulong)line * line_bytes, min(AHEAD, line_bytes), reads);
    __smelt_ptx_wait_previous();
}

inline uint multiply_add(uint x, uint y, uint z) {
    return brain ? __smelt_ptx_fma_bfloats(x, y, z) : __smelt_ptx_fma_halves(x, y, z);
}

inline uint pair_of(T x) { return as_type<ushort>(x) * 0x10001u; }

// How many times smaller the elements that `unpack` returns are than the codes.
constant constexpr float divisor = MODE != 0 ? 1 : brain ? 128 : 512;

// Unpacks eight codes to pairs of elements: the first and the fifth, and so on. The codes lie in `low`, from its lowest bits
// on; if they have 8 bits, the last four lie in `high`. In mode affine, a code in the lowest eight bits of a 16-bit word is, as a
// bfloat, code · 2^-133, and as a half, code · 2^-24. One multiplication scales it, from the bits where it lies.
inline void unpack(uint low, uint high, thread uint (&pairs)[4]) {
    uint shifts[4] = {0, 0, 0, 0};
    if (BITS == 8) {
#pragma unroll
        for (int i = 0; i < 4; i++) pairs[i] = (uint)as_type<uchar4>(low)[i] | (uint)as_type<uchar4>(high)[i] << 16;
    } else {
        const uint codes = BITS == 4 ? low : (low & 0xffu) | (low & 0xff00u) << 8;
        constexpr uint mask = ((1u << BITS) - 1) * 0x10001u;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            shifts[i] = MODE ? 0 : i * BITS % 8;
            pairs[i] = codes >> (i * BITS - shifts[i]) & mask << shifts[i];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint codes = pairs[i];
        if (MODE == 0) { // times 2^(126 - shift), 2^(15 - shift)
            pairs[i] = multiply_add(codes, ((brain ? 0x7e80 : 0x7800) - shifts[i] * (brain ? 0x80 : 0x400)) * 0x10001u, 0x80008000);
        } else if (MODE == 1) { // exponents of half begin 14 lower, of bfloat 126
            pairs[i] = brain ? multiply_add((codes & 0x00070007) << 6 | (codes & 0x00080008) << 12, 0x7e807e80, 0x80008000)
                             : multiply_add((codes & 0x00070007) << 9 | (codes & 0x00080008) << 12, 0x74007400, 0x80008000);
        } else { // 8 lower, 120 lower; NaN has all bits set but the sign
            const uint nan = (codes & 0x007f007f) + 0x00010001 & 0x00800080;
            const uint sign = (codes & 0x00800080) << 8;
            pairs[i] = brain ? multiply_add((codes & 0x007f007f) << 4 | sign | nan * 0xf0, 0x7b807b80, 0x80008000)
                             : multiply_add((codes & 0x007f007f) << 7 | sign | nan << 7, 0x5c005c00, 0x80008000);
        }
    }
}

inline __smelt_float4 product(uint a0, uint a1, uint a2, uint a3, uint b0, uint b1, __smelt_float4 sums) {
    return brain ? __smelt_fragment_product_bfloat(a0, a1, a2, a3, b0, b1, sums)
                 : __smelt_fragment_product_half(a0, a1, a2, a3, b0, b1, sums);
}

inline float scale_of(S scale) {
#if QUANTIZED_MODE == 0
    return (float)scale;
#else
    return scale == 255 ? NAN : as_type<float>(scale == 0 ? 0x400000u : (uint)scale << 23);
#endif
}
