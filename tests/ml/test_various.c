/* Images, particles, automata, hashes: integers exactly, the rest against float64. */
#include "ml.h"

#include <stdio.h>

#define FILE_ .file = "various.metal"

static void resize(void **s) {
    (void)s;
    static const uint16_t cases[][6] = {{1, 1, 1, 5, 3, 1}, {13, 7, 3, 31, 20, 3}, {64, 33, 2, 17, 9, 2}};
    for (int i = 0; i < 3; i++)
        for (int corners = 0; corners < 2; corners++) {
            const uint16_t *c = cases[i];
            struct tensor *x = uniform(SMELT_UINT8, c[0] * c[1] * c[2], 0, 256),
                          *y = room(SMELT_UINT8, c[3] * c[4] * c[2]);
            double *expected = doubles(y->count);
            for (int j = 0; j < y->count; j++) {
                int at[2] = {j / c[2] % c[3], j / c[2] / c[3]}, low[2], high[2];
                double share[2];
                for (int d = 0; d < 2; d++) {
                    double place = corners ? c[3 + d] > 1 ? (double)at[d] * (c[d] - 1) / (c[3 + d] - 1) : 0
                                           : fmax((at[d] + 0.5) * c[d] / c[3 + d] - 0.5, 0);
                    low[d] = (int)fmin(floor(place), c[d] - 1), high[d] = (int)fmin(low[d] + 1, c[d] - 1);
                    share[d] = place - low[d];
                }
#define PIXEL(a, b) x->value[((b) * c[0] + (a)) * c[2] + j % c[2]]
                double top = PIXEL(low[0], low[1]) * (1 - share[0]) + PIXEL(high[0], low[1]) * share[0];
                double bottom = PIXEL(low[0], high[1]) * (1 - share[0]) + PIXEL(high[0], high[1]) * share[0];
                expected[j] = top * (1 - share[1]) + bottom * share[1];
            }
            RUN(FILE_, .entry = "resize_bilinear", .constants = {{0, SMELT_BOOL, {.integer = corners}}},
                .in = {x}, .out = {[1] = y}, .bytes = {[2] = {c, 12}}, .grid = {c[3], c[4], c[2]},
                .threadgroup = {16, 2, 1});
            /* Rounded to a whole number; positions up to 64 carry 64 · 4 units, times a slope of up to 255.
             */
            check("resize", y, expected, 0, 0.5 + 255 * 64 * 4 * 0x1p-24);
        }
}

static void blur(void **s) {
    (void)s;
    static const int cases[][3] = {{1, 1, 2}, {33, 31, 1}, {100, 7, 5}};
    for (int i = 0; i < 3; i++) {
        const int w = cases[i][0], h = cases[i][1], radius = cases[i][2], count = 2 * radius + 1;
        struct tensor *x = uniform(SMELT_UINT8, w * h * 4, 0, 256), *turned = room(SMELT_UINT8, w * h * 4),
                      *y = room(SMELT_UINT8, w * h * 4);
        double *once = doubles(w * h * 4), *twice = doubles(w * h * 4);
        for (int pass = 0; pass < 2; pass++) {
            const double *from = pass ? once : x->value;
            for (int r = 0; r < h; r++)
                for (int c = 0; c < w; c++)
                    for (int k = 0; k < 4; k++) {
                        double sum = 0;
                        for (int d = -radius; d <= radius; d++) {
                            int rr = pass ? (int)fmax(0, fmin(h - 1, r + d)) : r;
                            int cc = pass ? c : (int)fmax(0, fmin(w - 1, c + d));
                            sum += from[(rr * w + cc) * 4 + k];
                        }
                        (pass ? twice : once)[(r * w + c) * 4 + k] = floor((sum + count / 2) / count);
                    }
        }
        RUN(FILE_, .entry = "box_blur_rows", .in = {x}, .out = {[1] = turned},
            .bytes = {[2] = BYTES(int, w, h, radius, 0)}, .groups = {(h + 31) / 32}, .threadgroup = {32});
        RUN(FILE_, .entry = "box_blur_rows", .in = {turned}, .out = {[1] = y},
            .bytes = {[2] = BYTES(int, h, w, radius, 0)}, .groups = {(w + 31) / 32}, .threadgroup = {32});
        check("box blur", y, twice, 0, 0);
    }
}

/* Numbers are multiples of 1/4 below 4: half's sums are exact; the root and its argument round once each. */
static void edges(void **s) {
    (void)s;
    const int w = 37, h = 21;
    struct tensor *x = uniform(SMELT_FLOAT16, w * h, 0, 16), *y = room(SMELT_FLOAT16, w * h);
    for (int i = 0; i < w * h; i++) x->value[i] = floor(x->value[i]) / 4;
    x = rounded(SMELT_FLOAT16, w * h, x->value);
    double *expected = doubles(w * h);
    for (int i = 0; i < w * h; i++) {
        double gx = 0, gy = 0;
        for (int d = 0; d < 9; d++) {
            static const int weight[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
            int r = (int)fmax(0, fmin(h - 1, i / w + d / 3 - 1)),
                c = (int)fmax(0, fmin(w - 1, i % w + d % 3 - 1));
            gx += weight[d / 3][d % 3] * x->value[r * w + c];
            gy += weight[d % 3][d / 3] * x->value[r * w + c];
        }
        expected[i] = sqrt(gx * gx + gy * gy);
    }
    RUN(FILE_, .entry = "sobel", .in = {x}, .out = {[1] = y}, .bytes = {[2] = BYTES(int, w, h)},
        .groups = {(w + 15) / 16, (h + 15) / 16}, .threadgroup = {16, 16});
    check("sobel", y, expected, 3 * 0x1p-11, 0);
}

static void bodies(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 33, 257};
    for (int i = 0; i < 3; i++) {
        const uint32_t n = sizes[i];
        struct tensor *x = uniform(SMELT_FLOAT32, 4 * n, 0.1, 1), *y = room(SMELT_FLOAT32, 4 * n),
                      *v = normal(SMELT_FLOAT32, 3 * n, 1);
        double *moved = doubles(4 * n), *speed = doubles(3 * n), *bound = doubles(3 * n),
               *reach = doubles(4 * n);
        for (uint32_t a = 0; a < n; a++) {
            double pull[3] = {0}, size = 0;
            for (uint32_t b = 0; b < n; b++) {
                double away[3], square = (double)0.01f;
                for (int d = 0; d < 3; d++) {
                    away[d] = x->value[4 * b + (uint32_t)d] - x->value[4 * a + (uint32_t)d];
                    square += away[d] * away[d];
                }
                double part = x->value[4 * b + 3] / (square * sqrt(square));
                for (int d = 0; d < 3; d++) pull[d] += part * away[d];
                /* Differences of numbers below 1 are off by u; the rest is relative. */
                size += part * (fabs(away[0]) + fabs(away[1]) + fabs(away[2]) + 1) * 4;
            }
            for (uint32_t d = 0; d < 3; d++) {
                speed[3 * a + d] = v->value[3 * a + d] + (double)0.02f * pull[d];
                moved[4 * a + d] = x->value[4 * a + d] + (double)0.02f * speed[3 * a + d];
                bound[3 * a + d] = 0.02 * size * (n + 16) * 0x1p-24 + fabs(speed[3 * a + d]) * 0x1p-23;
                reach[4 * a + d] = 0.02 * bound[3 * a + d] + fabs(moved[4 * a + d]) * 0x1p-23 + 0x1p-24;
            }
            moved[4 * a + 3] = x->value[4 * a + 3];
        }
        RUN(FILE_, .entry = "n_body_step", .in = {x}, .out = {[1] = y}, .update = {[2] = v},
            .bytes = {[3] = BYTES(uint32_t, n), [4] = BYTES(float, 0.02f, 0.01f)},
            .threadgroup_memory = {64 * 16}, .groups = {(n + 63) / 64}, .threadgroup = {64});
        check_bounds("speeds", v, speed, bound);
        check_bounds("places", y, moved, reach);
    }
}

static void automata(void **s) {
    (void)s;
    const int w = 45, h = 31;
    struct tensor *x = uniform(SMELT_UINT8, w * h, 0, 2), *y = NULL;
    uint8_t *now = scratch((size_t)(w * h)), *next = scratch((size_t)(w * h));
    memcpy(now, x->data, (size_t)(w * h));
    for (int step = 0; step < 4; step++, x = y) {
        y = room(SMELT_UINT8, w * h);
        RUN(FILE_, .entry = "life", .in = {x}, .out = {[1] = y}, .grid = {w, h}, .threadgroup = {16, 8});
        for (int i = 0; i < w * h; i++) {
            int around = 0;
            for (int d = 0; d < 9; d++)
                if (d != 4) around += now[(i / w + d / 3 - 1 + h) % h * w + (i % w + d % 3 - 1 + w) % w];
            next[i] = around == 3 || (around == 2 && now[i]);
        }
        memcpy(now, next, (size_t)(w * h));
    }
    check_exact("life", y, now);

    const uint8_t rule = (uint8_t)random_below(256);
    struct tensor *lines = uniform(SMELT_UINT32, 96, 0, 0x1p32);
    uint32_t *cells = scratch(96 * 4), *other = scratch(96 * 4);
    memcpy(cells, lines->data, 96 * 4);
    for (int step = 0; step < 50; step++) {
        memset(other, 0, 96 * 4);
        for (int i = 0; i < 3 * 1024; i++) {
            int ring = i / 1024 * 1024, k = 0;
            /* The neighbour in the lower bit is on the left. */
            for (int d = -1; d < 2; d++) {
                int at = ring + (i % 1024 + d + 1024) % 1024;
                k = 2 * k + (int)(cells[at / 32] >> (at % 32) & 1);
            }
            other[i / 32] |= (uint32_t)(rule >> k & 1) << (i % 32);
        }
        memcpy(cells, other, 96 * 4);
    }
    RUN(FILE_, .entry = "rule_line", .update = {lines},
        .bytes = {[1] = {&rule, 1}, [2] = BYTES(uint32_t, 50)}, .grid = {96}, .threadgroup = {64});
    check_exact("rule", lines, cells);
}

/* ---- Hashes; the plain ones are written differently, and are checked against a published value. */

static uint32_t turn(uint32_t x, int by) {
    return x << by | x >> (32 - by);
}

static void sha256(const uint8_t *message, size_t length, uint8_t digest[32]) {
    /* The constants, computed: fractions of the roots of primes. */
    uint32_t k[64], h[8];
    for (int n = 2, count = 0; count < 64; n++) {
        bool prime = true;
        for (int d = 2; d * d <= n; d++) prime = prime && n % d;
        if (!prime) continue;
        if (count < 8) h[count] = (uint32_t)(int64_t)floorl(fmodl(sqrtl(n), 1) * 4294967296.0L);
        k[count++] = (uint32_t)(int64_t)floorl(fmodl(cbrtl(n), 1) * 4294967296.0L);
    }
    size_t whole = (length + 8) / 64 * 64 + 64;
    uint8_t *padded = scratch(whole);
    memcpy(padded, message, length);
    padded[length] = 0x80;
    for (int b = 0; b < 8; b++) padded[whole - 1 - (size_t)b] = (uint8_t)(length * 8 >> (8 * b));
    for (size_t at = 0; at < whole; at += 64) {
        uint32_t w[64], v[8];
        for (int i = 0; i < 64; i++) {
            if (i < 16) {
                const uint8_t *p = padded + at + 4 * i;
                w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
            } else {
                w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 25) ^ turn(w[i - 15], 14) ^ w[i - 15] >> 3) +
                       (turn(w[i - 2], 15) ^ turn(w[i - 2], 13) ^ w[i - 2] >> 10);
            }
        }
        memcpy(v, h, sizeof v);
        for (int i = 0; i < 64; i++) {
            uint32_t a = v[0], e = v[4];
            uint32_t one =
                v[7] + (turn(e, 26) ^ turn(e, 21) ^ turn(e, 7)) + ((e & (v[5] ^ v[6])) ^ v[6]) + k[i] + w[i];
            uint32_t two = (turn(a, 30) ^ turn(a, 19) ^ turn(a, 10)) + ((a & v[1]) | (v[2] & (a | v[1])));
            memmove(v + 1, v, 28);
            v[4] += one, v[0] = one + two;
        }
        for (int i = 0; i < 8; i++) h[i] += v[i];
    }
    for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

static uint32_t xxhash32(const uint32_t *words, uint32_t n, uint32_t seed) {
    const uint32_t p1 = 0x9E3779B1u, p2 = 0x85EBCA77u, p3 = 0xC2B2AE3Du, p4 = 0x27D4EB2Fu, p5 = 0x165667B1u;
    uint32_t hash = seed + p5, i = 0;
    if (n >= 4) {
        uint32_t lane[4] = {seed + p1 + p2, seed + p2, seed, seed - p1};
        for (; i < n / 4 * 4; i++) lane[i % 4] = turn(lane[i % 4] + words[i] * p2, 13) * p1;
        hash = turn(lane[0], 1) + turn(lane[1], 7) + turn(lane[2], 12) + turn(lane[3], 18);
    }
    hash += 4 * n;
    for (; i < n; i++) hash = turn(hash + words[i] * p3, 17) * p4;
    hash = (hash ^ hash >> 15) * p2;
    hash = (hash ^ hash >> 13) * p3;
    return hash ^ hash >> 16;
}

static void hashes(void **s) {
    (void)s;
    uint8_t digest[32];
    sha256((const uint8_t *)"abc", 3, digest);
    assert_true(digest[0] == 0xba && digest[1] == 0x78 && digest[31] == 0xad);
    assert_true(xxhash32(NULL, 0, 0) == 0x02CC5D05u);
    static const uint32_t lengths[] = {1, 55, 64, 131};
    for (int i = 0; i < 4; i++) {
        const uint32_t n = lengths[i], count = 37;
        struct tensor *x = uniform(SMELT_UINT8, n * count, 0, 256), *y = room(SMELT_UINT8, 32 * count);
        uint8_t *expected = scratch(32 * count);
        for (uint32_t k = 0; k < count; k++) sha256((uint8_t *)x->data + k * n, n, expected + 32 * k);
        RUN(FILE_, .entry = "sha256_rows", .in = {x}, .out = {[1] = y},
            .bytes = {[2] = BYTES(uint32_t, n), [3] = BYTES(uint32_t, count)}, .groups = {2},
            .threadgroup = {32});
        check_exact("sha256", y, expected);

        struct tensor *words = uniform(SMELT_UINT32, n * count, 0, 0x1p32), *h = room(SMELT_UINT32, count);
        uint32_t *hashed = scratch(4 * count), seed = random_below(~0u);
        for (uint32_t k = 0; k < count; k++) hashed[k] = xxhash32((uint32_t *)words->data + k * n, n, seed);
        RUN(FILE_, .entry = "xxhash32_rows", .in = {words}, .out = {[1] = h},
            .bytes = {[2] = BYTES(uint32_t, n, seed)}, .grid = {count}, .threadgroup = {20});
        check_exact("xxhash32", h, hashed);
    }
}

/* The plain one takes the kernel's own steps in float, fused as smelt fuses: a · b + c is one rounding. */
static void escape(void **s) {
    (void)s;
    const int w = 71, h = 33;
    const float window[4] = {-2.1f, -1.3f, 0.041f, 0.079f};
    const uint16_t limit = 200;
    struct tensor *y = room(SMELT_UINT16, w * h);
    RUN(FILE_, .entry = "escape_times", .out = {y}, .bytes = {[1] = {window, 16}, [2] = {&limit, 2}},
        .grid = {w, h}, .threadgroup = {16, 4});
    /* Near the border rounding decides; all but a few points must agree with float64. */
    int differ = 0;
    for (int i = 0; i < w * h; i++) {
        double cx = (double)fmaf(window[2], (float)(i % w), window[0]),
               cy = (double)fmaf(window[3], (float)(i / w), window[1]);
        double x = 0, z = 0;
        uint16_t n = 0;
        for (; n < limit && x * x + z * z <= 4; n++) {
            double next = x * x - z * z + cx;
            z = 2 * x * z + cy, x = next;
        }
        if (n != ((uint16_t *)y->data)[i]) {
            differ++;
            assert_true(n > 10);
        }
    }
    if (differ > w * h / 50) FAIL_TEST("%d of %d escape times differ", differ, w * h);
}

static void distances(void **s) {
    (void)s;
    const uint32_t points = 19, centres = 45, dims = 7;
    struct tensor *p = normal(SMELT_FLOAT32, points * dims, 1), *c = normal(SMELT_FLOAT32, centres * dims, 1),
                  *which = room(SMELT_UINT32, points), *far = room(SMELT_FLOAT32, points);
    RUN(FILE_, .entry = "nearest_centre", .in = {p, c}, .out = {[2] = which, far},
        .bytes = {[4] = BYTES(uint32_t, centres, dims)}, .groups = {points}, .threadgroup = {32});
    double *least = doubles(points);
    for (uint32_t i = 0; i < points; i++) {
        double mine = NAN;
        least[i] = INFINITY;
        for (uint32_t k = 0; k < centres; k++) {
            double sum = 0;
            for (uint32_t d = 0; d < dims; d++)
                sum += pow(p->value[i * dims + d] - c->value[k * dims + d], 2);
            least[i] = fmin(least[i], sqrt(sum));
            if (k == ((uint32_t *)which->data)[i]) mine = sqrt(sum);
        }
        assert_true(mine <= least[i] * (1 + 40 * 0x1p-24));
    }
    check("distance", far, least, 40 * 0x1p-24, 0);

    struct tensor *a = uniform(SMELT_UINT64, 2 * 33, 0, 0x1p63), *b = uniform(SMELT_UINT64, 2 * 5, 0, 0x1p63),
                  *y = room(SMELT_UINT32, 33 * 5);
    uint32_t *bits = scratch(33 * 5 * 4);
    for (int i = 0; i < 33 * 5; i++)
        for (int k = 0; k < 2; k++)
            bits[i] += (uint32_t)__builtin_popcountll(((uint64_t *)a->data)[i / 5 * 2 + k] ^
                                                      ((uint64_t *)b->data)[i % 5 * 2 + k]);
    RUN(FILE_, .entry = "hamming", .in = {a, b}, .out = {[2] = y}, .grid = {5, 33}, .threadgroup = {4, 8});
    check_exact("hamming", y, bits);
}

ML_MAIN(ML_TEST(resize), ML_TEST(blur), ML_TEST(edges), ML_TEST(bodies), ML_TEST(automata), ML_TEST(hashes),
        ML_TEST(escape), ML_TEST(distances))
