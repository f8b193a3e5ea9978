// Sums of products in integers of eight 16-bit limbs: 128 bits, whose position follows the largest term. Each product of two
// floats is exact; what lies 102 bits below the largest one is cut off. A result is a pair of floats, the nearest one and what
// remains: 48 bits. Matrices are planes of such pairs, so that factors keep 48 bits, too.
//
// One simdgroup computes a sum: lanes add every 32nd product, then limbs are added across the lanes.

constant constexpr uint LIMBS = 8, CARRY_AFTER = 4096; // products until a limb could overflow an int, with a margin
constant constexpr uint STATS = 4, NOT_FINITE = 4, TINY = 5, NOT_POSITIVE = 6;

// Pairs, by the usual error-free transformations.
inline float2 pair_of(float a, float b) { const float s = a + b; return float2(s, b - (s - a)); }
inline float2 pair_add(float2 a, float2 b) {
    const float s = a.x + b.x, t = s - a.x;
    return pair_of(s, ((a.x - (s - t)) + (b.x - t)) + a.y + b.y);
}
inline float2 pair_multiply(float2 a, float2 b) {
    const float p = a.x * b.x;
    return pair_of(p, metal::fma(a.x, b.x, -p) + a.x * b.y + a.y * b.x);
}
inline float2 pair_divide(float2 a, float2 b) {
    const float q = a.x / b.x;
    const float2 rest = pair_add(a, -pair_multiply(float2(q, 0.0f), b));
    const float r = rest.x / b.x;
    const float2 last = pair_add(rest, -pair_multiply(float2(r, 0.0f), b));
    return pair_add(pair_of(q, r), float2(last.x / b.x, 0.0f));
}
inline float2 pair_root(float2 a) {
    const float s = metal::precise::sqrt(a.x);
    if (!(s > 0.0f)) return float2(s, 0.0f);
    const float2 rest = pair_add(a, -float2(s * s, metal::fma(s, s, -(s * s))));
    return pair_of(s, rest.x / (2.0f * s));
}

struct limbs {
    int limb[LIMBS];
};

inline void limbs_carry(thread limbs &sum) {
    int carry = 0;
    SMELT_UNROLL for (uint i = 0; i + 1 < LIMBS; i++) {
        const int value = sum.limb[i] + carry;
        sum.limb[i] = value & 0xffff;
        carry = value >> 16;
    }
    sum.limb[LIMBS - 1] += carry;
}

// A float's exponent, as its bits have it, and mantissa: the value is mantissa · 2^(exponent - 150).
inline int exponent_of(float x) { return metal::max(int(as_type<uint>(x) >> 23 & 0xff), 1); }
inline ulong mantissa_of(float x) {
    const uint bits = as_type<uint>(x);
    return ulong((bits & 0x7fffffu) | ((bits >> 23 & 0xff) ? 0x800000u : 0u));
}

// Adds x · y; the lowest bit of `sum` counts 2^(base - 300).
inline void limbs_add(thread limbs &sum, float x, float y, int base) {
    ulong product = mantissa_of(x) * mantissa_of(y);
    int shift = exponent_of(x) + exponent_of(y) - base;
    if (shift < 0) {
        product = shift > -64 ? product >> uint(-shift) : 0ul;
        shift = 0;
    }
    product <<= uint(shift & 15);
    const int sign = (as_type<uint>(x) ^ as_type<uint>(y)) >> 31 ? -1 : 1;
    const uint first = uint(shift) >> 4;
    // Products take limbs 0 to 7 only: the largest begins in limb 3.
    SMELT_UNROLL for (uint i = 0; i < LIMBS; i++)
        if (i >= first && i < first + 4) sum.limb[i] += sign * int(product >> (16 * (i - first)) & 0xfffful);
}

// The nearest float to (high, low) · 2^scale; what remains is left there, *negative tells its sign.
inline float limbs_round(thread ulong &high, thread ulong &low, int scale, thread bool &negative) {
    if (high == 0 && low == 0) return 0.0f;
    const int top = high ? 127 - int(metal::clz(high)) : 63 - int(metal::clz(low)), drop = metal::max(top - 23, 0);
    // value = kept · 2^drop + rest
    ulong kept, rest_high, rest_low;
    if (drop == 0) {
        kept = low, rest_high = 0, rest_low = 0;
    } else if (drop < 64) {
        kept = (low >> uint(drop)) | (high << uint(64 - drop));
        rest_high = 0, rest_low = low & ((1ul << uint(drop)) - 1);
    } else {
        const uint more = uint(drop - 64);
        kept = high >> more;
        rest_high = high & ((1ul << more) - 1), rest_low = low;
    }
    const bool sign = negative;
    // Up, if the rest is more than half, or half and the last bit is 1: the remainder is then negative.
    const ulong half_high = drop > 64 ? 1ul << uint(drop - 65) : 0ul, half_low = drop > 0 && drop <= 64 ? 1ul << uint(drop - 1) : 0ul;
    const bool equal = drop > 0 && rest_high == half_high && rest_low == half_low;
    const bool more = rest_high > half_high || (rest_high == half_high && rest_low > half_low);
    if (drop > 0 && (more || (equal && (kept & 1)))) {
        kept += 1;
        // 2^drop - rest
        const ulong one_high = drop >= 64 ? 1ul << uint(drop - 64) : 0ul, one_low = drop < 64 ? 1ul << uint(drop) : 0ul;
        const ulong borrow = one_low < rest_low ? 1ul : 0ul;
        rest_low = one_low - rest_low;
        rest_high = one_high - rest_high - borrow;
        negative = !negative;
    }
    high = rest_high, low = rest_low;
    const float value = metal::ldexp(float(kept), drop + scale);
    return sign ? -value : value;
}

// The sum as a pair.
inline float2 limbs_pair(thread limbs &sum, int base) {
    limbs_carry(sum);
    bool negative = sum.limb[LIMBS - 1] < 0;
    if (negative) {
        SMELT_UNROLL for (uint i = 0; i < LIMBS; i++) sum.limb[i] = -sum.limb[i];
        limbs_carry(sum);
    }
    ulong high = 0, low = 0;
    SMELT_UNROLL for (uint i = 0; i < 4; i++) {
        low |= ulong(uint(sum.limb[i])) << (16 * i);
        high |= ulong(uint(sum.limb[i + 4])) << (16 * i);
    }
    const float first = limbs_round(high, low, base - 300, negative);
    return float2(first, limbs_round(high, low, base - 300, negative));
}

// A vector of pairs; low may be NULL.
struct vector {
    device const float *high, *low;
    long step;
};
inline float2 at(vector v, uint i) { return float2(v.high[i * v.step], v.low ? v.low[i * v.step] : 0.0f); }

// start + sign · Σ x y, by the lanes of a simdgroup, to all of them.
inline float2 limbs_dot(vector x, vector y, uint count, float2 start, float sign, uint lane) {
    int most = exponent_of(start.x) + 127;
    bool finite = metal::isfinite(start.x);
    for (uint i = lane; i < count; i += 32) {
        const float a = x.high[i * x.step], b = y.high[i * y.step];
        most = metal::max(most, a != 0.0f && b != 0.0f ? exponent_of(a) + exponent_of(b) : 0);
        finite = finite && metal::isfinite(a) && metal::isfinite(b);
    }
    // The largest product, below 2^48, ends at bit 102; 26 bits are for carries and the sign.
    const int base = metal::simd_max(most) - 54;
    limbs sum;
    SMELT_UNROLL for (uint i = 0; i < LIMBS; i++) sum.limb[i] = 0;
    uint added = 0;
    for (uint i = lane; i < count; i += 32) {
        const float2 a = at(x, i) * sign, b = at(y, i);
        limbs_add(sum, a.x, b.x, base);
        if (y.low) limbs_add(sum, a.x, b.y, base);
        if (x.low) limbs_add(sum, a.y, b.x, base);
        if (x.low && y.low) limbs_add(sum, a.y, b.y, base);
        if (++added % CARRY_AFTER == 0) limbs_carry(sum);
    }
    if (lane == 0) {
        limbs_add(sum, start.x, 1.0f, base);
        limbs_add(sum, start.y, 1.0f, base);
    }
    limbs_carry(sum);
    SMELT_UNROLL for (uint i = 0; i < LIMBS; i++) sum.limb[i] = metal::simd_sum(sum.limb[i]);
    return metal::simd_all(finite) ? limbs_pair(sum, base) : float2(NAN, 0.0f);
}

// Dot products of rows. Groups: rows, of one simdgroup. x and y (rows, count).
kernel void linalg_limb_dot(device const float *x [[buffer(0)]], device const float *y [[buffer(1)]],
                            device float *out [[buffer(2)]], constant uint &count [[buffer(3)]],
                            uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const vector a = {x + ulong(row) * count, nullptr, 1}, b = {y + ulong(row) * count, nullptr, 1};
    const float2 sum = limbs_dot(a, b, count, float2(0.0f), 1.0f, lane);
    if (lane == 0) out[row] = sum.x;
}

struct limb_size {
    uint rows, columns, rank, middle; // middle: columns of q
    uint jitter, upper, wants_q;
    float tolerance;
    long plane; // from the nearest floats to what remains
};

// Lower Cholesky factors in place, columns from left to right. Groups: matrices, of 256 threads; a row for each simdgroup.
kernel void linalg_limb_cholesky(device float *w [[buffer(0)]], device float *dbg [[buffer(1)]],
                                 device const float *jitter [[buffer(2)]], constant limb_size &s [[buffer(3)]],
                                 uint matrix [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                                 uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float2 pivot;
    const uint n = s.rows;
    const long row_step = s.upper ? 1 : n, step = s.upper ? n : 1;
    device float *high = w + ulong(matrix) * n * n, *low = high + s.plane;
    dbg += matrix * DBG_COUNT;
    uint failed = n;
    float smallest = INFINITY, failure = 0.0f;
    for (uint j = 0; j < n; j++) {
        const vector across = {high + j * row_step, low + j * row_step, step};
        // The diagonal element by all simdgroups; then each divides its own rows.
        float2 d = at(across, j);
        if (s.jitter) d = pair_add(d, float2(jitter[matrix], 0.0f));
        d = limbs_dot(across, across, j, d, -1.0f, lane);
        if (failed == n && !(d.x > 0.0f && d.x < INFINITY)) failed = j, failure = d.x;
        smallest = metal::min(smallest, d.x);
        const float2 root = pair_root(d);
        for (uint i = j + 1 + simdgroup; i < n; i += simdgroups) {
            const vector down = {high + i * row_step, low + i * row_step, step};
            const float2 value = pair_divide(limbs_dot(down, across, j, at(down, j), -1.0f, lane), root);
            if (lane == 0) high[i * row_step + j * step] = value.x, low[i * row_step + j * step] = value.y;
        }
        threadgroup_barrier(mem_flags::mem_device);
        if (simdgroup == 0 && lane == 0) high[j * (row_step + step)] = root.x, low[j * (row_step + step)] = root.y;
        threadgroup_barrier(mem_flags::mem_device);
    }
    (void)pivot;
    for (uint e = simdgroup * 32 + lane; e < n * n; e += simdgroups * 32)
        if (s.upper ? e / n > e % n : e / n < e % n) high[e] = low[e] = 0.0f;
    if (simdgroup != 0 || lane != 0) return;
    dbg_iterations(dbg, failed);
    dbg_value(dbg, 1, smallest);
    if (failed == n) return dbg_succeed(dbg);
    dbg_value(dbg, 0, float(failed));
    dbg_fail(dbg, metal::isfinite(failure) ? NOT_POSITIVE : NOT_FINITE, failure);
}

// Householder QR. w (columns, rows): a transposed, which becomes R transposed above the reflections; q (middle, rows), transposed
// as well. Groups: matrices, of 256 threads; a column for each simdgroup.
kernel void linalg_limb_qr(device float *w [[buffer(0)]], device float *q [[buffer(1)]], device float *dbg [[buffer(2)]],
                           device float *tau [[buffer(3)]], constant limb_size &s [[buffer(4)]],
                           device const uint *stats [[buffer(5)]], uint matrix [[threadgroup_position_in_grid]],
                           uint index [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                           uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const uint m = s.rows, threads = simdgroups * 32;
    device float *high = w + ulong(matrix) * m * s.columns, *low = high + s.plane;
    tau += ulong(matrix) * 2 * s.rank;
    dbg += matrix * DBG_COUNT;
    const float largest = as_type<float>(stats[matrix * STATS]);
    uint failed = s.rank;
    float smallest = INFINITY, failure = 0.0f;
    bool tiny = false;
    for (uint j = 0; j < s.rank; j++) {
        const ulong diagonal = ulong(j) * m + j;
        const vector v = {high + diagonal + 1, low + diagonal + 1, 1};
        const uint below = m - j - 1;
        const float2 alpha = float2(high[diagonal], low[diagonal]);
        const float2 squares = limbs_dot(v, v, below, float2(0.0f), 1.0f, lane);
        const bool turns = !(squares.x == 0.0f);
        float2 beta = alpha, weight = float2(0.0f), scale = float2(0.0f);
        if (turns) {
            beta = pair_root(pair_add(squares, pair_multiply(alpha, alpha)));
            if (alpha.x >= 0.0f) beta = -beta;
            const float2 difference = pair_add(alpha, -beta);
            weight = pair_divide(-difference, beta);
            scale = pair_divide(float2(1.0f, 0.0f), difference);
        }
        if (failed == s.rank) {
            tiny = metal::abs(beta.x) <= s.tolerance * largest && s.tolerance >= 0.0f;
            if (tiny || !metal::isfinite(beta.x)) failed = j, failure = beta.x;
        }
        smallest = metal::min(smallest, metal::abs(beta.x));
        threadgroup_barrier(mem_flags::mem_device);
        for (uint r = index; r < below; r += threads) {
            const float2 value = pair_multiply(at(v, r), scale);
            high[diagonal + 1 + r] = value.x, low[diagonal + 1 + r] = value.y;
        }
        if (index == 0) {
            high[diagonal] = beta.x, low[diagonal] = beta.y;
            tau[2 * j] = weight.x, tau[2 * j + 1] = weight.y;
        }
        threadgroup_barrier(mem_flags::mem_device);
        for (uint c = j + 1 + simdgroup; c < s.columns; c += simdgroups) {
            device float *x = high + ulong(c) * m + j, *x_low = low + ulong(c) * m + j;
            const float2 top = float2(x[0], x_low[0]);
            const vector own = {x + 1, x_low + 1, 1};
            const float2 by = pair_multiply(weight, limbs_dot(v, own, below, top, 1.0f, lane));
            simdgroup_barrier(mem_flags::mem_device);
            for (uint r = lane; r < below; r += 32) {
                const float2 value = pair_add(at(own, r), -pair_multiply(at(v, r), by));
                x[r + 1] = value.x, x_low[r + 1] = value.y;
            }
            if (lane == 0) {
                const float2 value = pair_add(top, -by);
                x[0] = value.x, x_low[0] = value.y;
            }
        }
        threadgroup_barrier(mem_flags::mem_device);
    }
    if (s.wants_q)
        for (uint c = simdgroup; c < s.middle; c += simdgroups) {
            device float *x = q + (ulong(matrix) * s.middle + c) * m, *x_low = x + s.plane;
            for (uint r = lane; r < m; r += 32) x[r] = r == c ? 1.0f : 0.0f, x_low[r] = 0.0f;
            simdgroup_barrier(mem_flags::mem_device);
            for (uint j = s.rank; j-- > 0;) {
                const vector v = {high + ulong(j) * m + j + 1, low + ulong(j) * m + j + 1, 1}, own = {x + j + 1, x_low + j + 1, 1};
                const uint below = m - j - 1;
                const float2 top = float2(x[j], x_low[j]), weight = float2(tau[2 * j], tau[2 * j + 1]);
                const float2 by = pair_multiply(weight, limbs_dot(v, own, below, top, 1.0f, lane));
                simdgroup_barrier(mem_flags::mem_device);
                for (uint r = lane; r < below; r += 32) {
                    const float2 value = pair_add(at(own, r), -pair_multiply(at(v, r), by));
                    x[j + 1 + r] = value.x, x_low[j + 1 + r] = value.y;
                }
                if (lane == 0) {
                    const float2 value = pair_add(top, -by);
                    x[j] = value.x, x_low[j] = value.y;
                }
                simdgroup_barrier(mem_flags::mem_device);
            }
        }
    if (index != 0) return;
    dbg_iterations(dbg, failed);
    dbg_value(dbg, 1, smallest);
    if (failed == s.rank) return dbg_succeed(dbg);
    dbg_value(dbg, 0, float(failed));
    dbg_fail(dbg, tiny ? TINY : NOT_FINITE, failure);
}
