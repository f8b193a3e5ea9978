/* Counter-based generators, bit for bit against plain ones and published vectors; values computed from the
 * bits within their functions' errors. */
#include "ml.h"

#define FILE_ .file = "random.metal"

static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t k0 = key[0], k1 = key[1];
    memcpy(out, counter, 16);
    for (int i = 0; i < 10; i++) {
        uint64_t a = (uint64_t)0xD2511F53u * out[0], b = (uint64_t)0xCD9E8D57u * out[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ out[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ out[3] ^ k1,
                            (uint32_t)a};
        memcpy(out, next, 16);
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
}

static void threefry(const uint32_t key[2], uint32_t c0, uint32_t c1, uint32_t out[2]) {
    static const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const uint32_t ks[3] = {key[0], key[1], 0x1BD11BDAu ^ key[0] ^ key[1]};
    uint32_t x = c0 + ks[0], y = c1 + ks[1];
    for (uint32_t round = 0; round < 20; round++) {
        int r = turns[round % 8];
        x += y;
        y = (y << r | y >> (32 - r)) ^ x;
        if (round % 4 == 3) x += ks[(round / 4 + 1) % 3], y += ks[(round / 4 + 2) % 3] + round / 4 + 1;
    }
    out[0] = x, out[1] = y;
}

/* The vectors published with the generators, for all-zero input. */
static void references_are_right(void **s) {
    (void)s;
    uint32_t out[4];
    philox((uint32_t[4]){0}, (uint32_t[2]){0}, out);
    assert_true(out[0] == 0x6627e8d5u && out[1] == 0xe169c58du && out[2] == 0xbc57ac4cu &&
                out[3] == 0x9b00dbd8u);
    threefry((uint32_t[2]){0}, 0, 0, out);
    assert_true(out[0] == 0x6b200159u && out[1] == 0x99ba4efeu);
}

static uint64_t seed64(void) {
    return (uint64_t)random_below(~0u) << 32 | random_below(~0u);
}

static void bits(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 31, 1025};
    for (int i = 0; i < 3; i++) {
        const uint32_t n = sizes[i];
        uint64_t seed = seed64(), offset = seed64();
        struct tensor *y = room(SMELT_UINT32, 4 * n);
        uint32_t *expected = scratch(16 * n), key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
        for (uint32_t k = 0; k < n; k++)
            philox((uint32_t[4]){k, 0, (uint32_t)offset, (uint32_t)(offset >> 32)}, key, expected + 4 * k);
        RUN(FILE_, .entry = "philox_bits", .out = {[2] = y},
            .bytes = {BYTES(uint64_t, seed), BYTES(uint64_t, offset)}, .grid = {n}, .threadgroup = {64});
        check_exact("philox", y, expected);
    }
}

/* bytes_per_key bytes per key: the first half of the counters' words, then the second. */
static void split_keys(void **s) {
    (void)s;
    static const uint32_t sizes[] = {4, 7, 12, 130};
    for (int i = 0; i < 4; i++) {
        const uint32_t bytes = sizes[i], keys = 5, words = (bytes + 3) / 4, half = (words + 1) / 2;
        const bool odd = words & 1;
        struct tensor *k = uniform(SMELT_UINT32, 2 * keys, 0, 0x1p32), *y = room(SMELT_UINT8, keys * bytes);
        uint8_t *expected = scratch(keys * bytes);
        for (uint32_t n = 0; n < keys; n++) {
            uint8_t all[256];
            for (uint32_t w = 0; w < half; w++) {
                uint32_t out[2];
                bool last = odd && w == half - 1;
                threefry((uint32_t *)k->data + 2 * n, w, last ? 0 : w + half, out);
                memcpy(all + 4 * w, &out[0], 4);
                if (!last) memcpy(all + 4 * (w + half), &out[1], 4);
            }
            memcpy(expected + n * bytes, all, bytes);
        }
        RUN(FILE_, .entry = "threefry_fill", .in = {k}, .out = {[1] = y},
            .bytes = {[2] = BYTES(uint32_t, bytes)}, .grid = {keys, half}, .threadgroup = {3, 8});
        check_exact("threefry", y, expected);
    }
}

static double unit(uint32_t word) {
    return (double)(word >> 8) * 0x1p-24;
}

static void normals(void **s) {
    (void)s;
    const uint32_t n = 4099, seed[2] = {random_below(~0u), random_below(~0u)};
    struct tensor *y = room(SMELT_FLOAT32, n);
    double *expected = doubles(n), *bound = doubles(n), sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t out[4];
        philox((uint32_t[4]){k / 4, 0, 0, 0}, seed, out);
        double u1 = 1 - unit(out[k % 4 / 2 * 2]), u2 = unit(out[k % 4 / 2 * 2 + 1]),
               radius = sqrt(-2 * log(u1));
        double z = radius * (k & 1 ? sin(6.283185307179586 * u2) : cos(6.283185307179586 * u2));
        expected[k] = 3 * z + 0.5;
        /* An angle up to 2π has 3 roundings; the logarithm 2 ulp, the root and the products the rest. */
        bound[k] = 3 * radius * (3 * 6.3 + 10) * 0x1p-24 + fabs(expected[k]) * 0x1p-23;
        sum += z;
    }
    assert_true(fabs(sum) < 6 * sqrt(n));
    RUN(FILE_, .entry = "philox_normal", .out = {[1] = y},
        .bytes = {BYTES(uint32_t, seed[0], seed[1]), [2] = BYTES(uint32_t, n), [3] = BYTES(float, 0.5f),
                  [4] = BYTES(float, 3)},
        .grid = {(n + 3) / 4}, .threadgroup = {64});
    check_bounds("normal", y, expected, bound);
}

static void integers(void **s) {
    (void)s;
    for (int narrow = 0; narrow < 2; narrow++) {
        const uint32_t n = 1001, seed[2] = {random_below(~0u), random_below(~0u)};
        const int64_t low = narrow ? 3 : -5000000000000000000;
        const uint64_t range = narrow ? 250 : 9999999999999999999u;
        struct tensor *y = room(narrow ? SMELT_UINT8 : SMELT_INT64, n);
        int64_t *wide = scratch(8 * n);
        uint8_t *small = scratch(n);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t out[4];
            philox((uint32_t[4]){k / 2, 0, 0, 0}, seed, out);
            uint64_t word = (uint64_t)out[k % 2 * 2 + 1] << 32 | out[k % 2 * 2];
            wide[k] = (int64_t)((uint64_t)low + (uint64_t)((unsigned __int128)word * range >> 64));
            small[k] = (uint8_t)wide[k];
        }
        RUN(FILE_, .entry = narrow ? "philox_randint_uchar" : "philox_randint_int64", .out = {[1] = y},
            .bytes = {BYTES(uint32_t, seed[0], seed[1]), [2] = BYTES(uint32_t, n), [3] = BYTES(int64_t, low),
                      [4] = BYTES(uint64_t, range)},
            .grid = {501}, .threadgroup = {100});
        check_exact("integers", y, narrow ? (void *)small : (void *)wide);
    }
}

static void dropout(void **s) {
    (void)s;
    for (int half = 0; half < 2; half++) {
        const uint32_t n = 3001, seed[2] = {random_below(~0u), random_below(~0u)};
        smelt_dtype dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32;
        struct tensor *x = normal(dtype, n, 1), *y = room(dtype, n);
        double *expected = doubles(n);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t out[4];
            philox((uint32_t[4]){k / 4, 0, 7, 0}, seed, out);
            expected[k] = unit(out[k % 4]) >= (double)0.3f ? x->value[k] / (double)(1.0f - 0.3f) : 0;
        }
        /* A stride that is not a multiple of a simdgroup. */
        RUN(FILE_, .entry = half ? "dropout_f16" : "dropout_f32", .in = {x}, .out = {[1] = y},
            .bytes =
                {[2] = BYTES(float, 0.3f), [3] = BYTES(uint32_t, seed[0], seed[1]), [4] = BYTES(uint32_t, n)},
            .grid = {333}, .threadgroup = {100});
        check("dropout", y, expected, roundoff(dtype) * 1.01, half ? 0x1p-24 : 0);
    }
}

static void bernoulli(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 33, 1025};
    for (int i = 0; i < 3; i++) {
        const uint32_t n = sizes[i], words = (n + 31) / 32, seed[2] = {random_below(~0u), random_below(~0u)};
        struct tensor *p = uniform(SMELT_FLOAT32, n, 0, 1), *y = room(SMELT_UINT32, words);
        uint32_t *expected = scratch(4 * words);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t state = (k * 747796405u + seed[0]) * 1664525u + 1013904223u;
            uint32_t word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
            word = (word >> 22) ^ word;
            expected[k / 32] |= (uint32_t)(unit(word ^ seed[1]) < p->value[k]) << k % 32;
        }
        RUN(FILE_, .entry = "bernoulli_words", .in = {[1] = p}, .out = {[2] = y},
            .bytes = {BYTES(uint32_t, seed[0], seed[1]), [3] = BYTES(uint32_t, n)}, .grid = {32 * words},
            .threadgroup = {64});
        check_exact("bernoulli", y, expected);
    }
}

/* The winner must also win in float64, within the error of two logarithms. */
static void gumbel(void **s) {
    (void)s;
    static const int sizes[] = {1, 33, 2000};
    for (int i = 0; i < 3; i++) {
        enum { ROWS = 6 };
        const int n = sizes[i];
        const uint32_t seed[2] = {random_below(~0u), random_below(~0u)};
        struct tensor *x = normal(SMELT_FLOAT16, ROWS * n, 2), *y = room(SMELT_INT32, ROWS);
        RUN(FILE_, .entry = "gumbel_argmax", .in = {[1] = x}, .out = {[2] = y},
            .bytes = {BYTES(uint32_t, seed[0], seed[1]), [3] = BYTES(int, n)}, .groups = {ROWS},
            .threadgroup = {32});
        for (int r = 0; r < ROWS; r++) {
            double top = -INFINITY, got = NAN;
            for (int k = 0; k < n; k++) {
                uint32_t out[4];
                philox((uint32_t[4]){(uint32_t)k, (uint32_t)r, 0, 0}, seed, out);
                double v = x->value[r * n + k] - log(-log(((double)(out[0] >> 8) + 0.5) * 0x1p-24));
                top = fmax(top, v);
                if (k == ((int32_t *)y->data)[r]) got = v;
            }
            /* Near u = 1 the inner logarithm is that of a rounded number: 2^-24 may be half of -log(u). */
            if (!(got >= top - 1e-4 * (1 + fabs(top)) || top > 14))
                FAIL_TEST("row %d: %d has %.9g, the largest is %.9g", r, ((int32_t *)y->data)[r], got, top);
        }
    }
}

ML_MAIN(ML_TEST(references_are_right), ML_TEST(bits), ML_TEST(split_keys), ML_TEST(normals),
        ML_TEST(integers), ML_TEST(dropout), ML_TEST(bernoulli), ML_TEST(gumbel))
