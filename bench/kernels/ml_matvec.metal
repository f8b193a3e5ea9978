// Matrix times vector, weights in blocks: a simdgroup for a few rows, a threadgroup for a row, a thread for a row. A block type
// divides its weights into parts, one for a lane: `take` reads the part's elements of the vector in the order in which `dot` needs
// them.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

constant constexpr uint LANES = 32;

// 32 weights: (q - 8) · scale; weights i and i + 16 share a byte. Pairs of bytes are masked in place: the vector is scaled instead.
struct q4_0 {
    static constant constexpr uint weights = 32, parts = 2, each = 16;
    half scale;
    uchar pairs[16];

    static float take(device const float *x, ushort part, thread float *v) {
        float total = 0;
        x += part * 8;
        for (ushort i = 0; i < 8; i += 2) {
            total += x[i] + x[i + 1] + x[i + 16] + x[i + 17];
            v[i] = x[i];
            v[i + 1] = x[i + 1] / 256.0f;
            v[i + 8] = x[i + 16] / 16.0f;
            v[i + 9] = x[i + 17] / 4096.0f;
        }
        return total;
    }
    static float dot(device const q4_0 *from, ushort part, thread const float *v, float total, threadgroup const float *) {
        device const ushort *words = (device const ushort *)from->pairs + part * 4;
        float4 sums = 0;
        for (ushort i = 0; i < 8; i += 2) {
            const ushort word = words[i / 2];
            sums[0] += v[i] * (word & 0x000f);
            sums[1] += v[i + 1] * (word & 0x0f00);
            sums[2] += v[i + 8] * (word & 0x00f0);
            sums[3] += v[i + 9] * (word & 0xf000);
        }
        return float(from->scale) * (sums[0] + sums[1] + sums[2] + sums[3] - 8.0f * total);
    }
};

// 32 weights: (q - 16) · scale, with the fifth bits apart.
struct q5_0 {
    static constant constexpr uint weights = 32, parts = 2, each = 16;
    half scale;
    uchar fifth[4];
    uchar pairs[16];

    static float take(device const float *x, ushort part, thread float *v) {
        float total = 0;
        for (ushort i = 0; i < 8; i++) {
            v[i] = x[part * 8 + i];
            v[i + 8] = x[part * 8 + i + 16];
            total += v[i] + v[i + 8];
        }
        return total;
    }
    static float dot(device const q5_0 *from, ushort part, thread const float *v, float total, threadgroup const float *) {
        const uint high = from->fifth[0] | from->fifth[1] << 8 | from->fifth[2] << 16 | uint(from->fifth[3]) << 24;
        float sum = 0;
        for (ushort i = 0; i < 8; i++) {
            const uint pair = from->pairs[part * 8 + i], at = part * 8 + i;
            sum += v[i] * float((pair & 15) | (high >> at << 4 & 16));
            sum += v[i + 8] * float(pair >> 4 | (high >> (at + 16) << 4 & 16));
        }
        return float(from->scale) * (sum - 16.0f * total);
    }
};

// 32 weights: q · scale.
struct q8_0 {
    static constant constexpr uint weights = 32, parts = 4, each = 8;
    half scale;
    char q[32];

    static float take(device const float *x, ushort part, thread float *v) {
        for (ushort i = 0; i < 8; i++) v[i] = x[part * 8 + i];
        return 0;
    }
    static float dot(device const q8_0 *from, ushort part, thread const float *v, float, threadgroup const float *) {
        device const char *mine = from->q + part * 8;
        float sum = 0;
        for (ushort i = 0; i < 8; i++) sum += mine[i] * v[i];
        return sum * from->scale;
    }
};

constant constexpr float levels[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// 32 weights: a table's level times a power of two.
struct mxfp4 {
    static constant constexpr uint weights = 32, parts = 2, each = 16;
    uchar exponent;
    uchar pairs[16];

    static float take(device const float *x, ushort part, thread float *v) {
        for (ushort i = 0; i < 8; i++) {
            v[i] = x[part * 8 + i];
            v[i + 8] = x[part * 8 + i + 16];
        }
        return 0;
    }
    static float dot(device const mxfp4 *from, ushort part, thread const float *v, float, threadgroup const float *table) {
        device const uchar *mine = from->pairs + part * 8;
        float4 sums = 0;
        for (ushort i = 0; i < 8; i += 2) {
            sums[0] += v[i] * table[mine[i] & 15];
            sums[1] += v[i + 1] * table[mine[i + 1] & 15];
            sums[2] += v[i + 8] * table[mine[i] >> 4];
            sums[3] += v[i + 9] * table[mine[i + 1] >> 4];
        }
        return as_type<float>(uint(from->exponent) << 23) * (sums[0] + sums[1] + sums[2] + sums[3]);
    }
};

// 256 weights in eight runs of 32: q · scale · s[run] - minimum · m[run]; s and m have 6 bits each in 12 bytes.
struct q4_K {
    static constant constexpr uint weights = 256, parts = 8, each = 32;
    half scale, minimum;
    uchar packed[12];
    uchar pairs[128];

    // Eight weights of each of four runs: two from the low halves of bytes and two from the high ones.
    static float take(device const float *x, ushort part, thread float *v) {
        x += part / 4 * 64 + part % 4 * 8;
        for (ushort i = 0; i < 8; i++) {
            v[i] = x[i];
            v[i + 8] = x[i + 32];
            v[i + 16] = x[i + 128];
            v[i + 24] = x[i + 160];
        }
        return 0;
    }
    static float2 run(device const uchar *packed, ushort k) {
        if (k < 4) return float2(packed[k] & 63, packed[k + 4] & 63);
        return float2((packed[k + 4] & 15) | (packed[k - 4] >> 6 << 4), packed[k + 4] >> 4 | (packed[k] >> 6 << 4));
    }
    static float dot(device const q4_K *from, ushort part, thread const float *v, float, threadgroup const float *) {
        const ushort half_ = part / 4, byte = half_ * 32 + part % 4 * 8;
        float result = 0;
        for (ushort h = 0; h < 2; h++) {
            device const ushort *words = (device const ushort *)(from->pairs + byte + h * 64);
            float4 sums = 0;
            float low = 0, high = 0;
            for (ushort i = 0; i < 8; i += 2) {
                const ushort word = words[i / 2];
                sums[0] += v[h * 16 + i] * (word & 0x000f);
                sums[1] += v[h * 16 + i + 1] * (word & 0x0f00);
                sums[2] += v[h * 16 + i + 8] * (word & 0x00f0);
                sums[3] += v[h * 16 + i + 9] * (word & 0xf000);
                low += v[h * 16 + i] + v[h * 16 + i + 1];
                high += v[h * 16 + i + 8] + v[h * 16 + i + 9];
            }
            const float2 a = run(from->packed, half_ * 2 + h * 4), b = run(from->packed, half_ * 2 + h * 4 + 1);
            result += float(from->scale) * ((sums[0] + sums[1] / 256) * a.x + (sums[2] + sums[3] / 256) * b.x / 16);
            result -= float(from->minimum) * (low * a.y + high * b.y);
        }
        return result;
    }
};

// 256 weights: (q - 32) · scale · scales[16 weights each], four bits in `low` and two in `high`.
struct q6_K {
    static constant constexpr uint weights = 256, parts = 16, each = 16;
    uchar low[128];
    uchar high[64];
    char scales[16];
    half scale;

    static float take(device const float *x, ushort part, thread float *v) {
        x += part / 8 * 128 + part % 8 * 4;
        for (ushort i = 0; i < 4; i++) {
            v[4 * i] = x[i];
            v[4 * i + 1] = x[i + 32];
            v[4 * i + 2] = x[i + 64];
            v[4 * i + 3] = x[i + 96];
        }
        return 0;
    }
    static float dot(device const q6_K *from, ushort part, thread const float *v, float, threadgroup const float *) {
        const ushort upper = part / 8, at = part % 8 * 4;
        device const uchar *a = from->low + upper * 64 + at, *b = a + 32, *h = from->high + upper * 32 + at;
        device const char *s = from->scales + upper * 8 + at / 16;
        float4 sums = 0;
        for (ushort i = 0; i < 4; i++) {
            sums[0] += v[4 * i] * (char((a[i] & 15) | ((h[i] & 3) << 4)) - 32);
            sums[1] += v[4 * i + 1] * (char((b[i] & 15) | ((h[i] & 12) << 2)) - 32);
            sums[2] += v[4 * i + 2] * (char(a[i] >> 4 | (h[i] & 48)) - 32);
            sums[3] += v[4 * i + 3] * (char(b[i] >> 4 | ((h[i] & 192) >> 2)) - 32);
        }
        return float(from->scale) * (sums[0] * s[0] + sums[1] * s[2] + sums[2] * s[4] + sums[3] * s[6]);
    }
};

template <typename block, uint rows_each>
kernel void matvec_simdgroup(device const block *w [[buffer(0)]], device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                             constant uint2 &size /* rows, columns */ [[buffer(3)]], uint group [[threadgroup_position_in_grid]],
                             uint me [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                             uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float table[16];
    if (me < 16) table[me] = levels[me];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint blocks = size.y / block::weights, first = (group * simdgroups + simdgroup) * rows_each;
    const ushort part = lane % block::parts;
    w += first * blocks;
    float v[block::each], sums[rows_each] = {0};
    for (uint b = lane / block::parts; b < blocks; b += LANES / block::parts) {
        const float total = block::take(x + b * block::weights, part, v);
        for (uint r = 0; r < rows_each; r++) sums[r] += block::dot(w + r * blocks + b, part, v, total, table);
    }
    for (uint r = 0; r < rows_each; r++) {
        const float sum = simd_sum(sums[r]);
        if (lane == 0 && first + r < size.x) y[first + r] = sum;
    }
}

template <typename block>
kernel void matvec_group(device const block *w [[buffer(0)]], device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                         constant uint2 &size [[buffer(3)]], uint row [[threadgroup_position_in_grid]],
                         uint me [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
    threadgroup float table[16], sums[256];
    if (me < 16) table[me] = levels[me];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint blocks = size.y / block::weights;
    float v[block::each], sum = 0;
    for (uint i = me; i < blocks * block::parts; i += threads) {
        const uint b = i / block::parts, part = i % block::parts;
        const float total = block::take(x + b * block::weights, part, v);
        sum += block::dot(w + row * blocks + b, part, v, total, table);
    }
    sums[me] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = threads / 2; step > 0; step /= 2) {
        if (me < step) sums[me] += sums[me + step];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (me == 0) y[row] = sums[0];
}

template <typename block>
kernel void matvec_thread(device const block *w [[buffer(0)]], device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                          constant uint2 &size [[buffer(3)]], uint row [[thread_position_in_grid]],
                          uint me [[thread_index_in_threadgroup]]) {
    threadgroup float table[16];
    if (me < 16) table[me] = levels[me];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint blocks = size.y / block::weights;
    float v[block::each], sum = 0;
    for (uint b = 0; b < blocks; b++)
        for (ushort part = 0; part < block::parts; part++) {
            const float total = block::take(x + b * block::weights, part, v);
            sum += block::dot(w + row * blocks + b, part, v, total, table);
        }
    y[row] = sum;
}

#define FORMAT(block)                                                                                                      \
    template [[host_name("simdgroup_" #block)]] kernel decltype(matvec_simdgroup<block, 4>) matvec_simdgroup<block, 4>;  \
    template [[host_name("group_" #block)]] kernel decltype(matvec_group<block>) matvec_group<block>;                    \
    template [[host_name("thread_" #block)]] kernel decltype(matvec_thread<block>) matvec_thread<block>;
FORMAT(q4_0)
FORMAT(q5_0)
FORMAT(q8_0)
FORMAT(mxfp4)
FORMAT(q4_K)
FORMAT(q6_K)
