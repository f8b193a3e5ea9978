/* Quantised kernels against the definitions of their formats, in float64; the weights are random bits. */
#include "ml.h"

#include <stdio.h>

#define FILE_ .file = "quantised.metal"

/* ---- Affine: the i-th number of `bits` bits in a little-endian stream. */
static uint32_t bits_at(const uint8_t *stream, int64_t i, int bits) {
    uint32_t value = 0;
    for (int b = 0; b < bits; b++) {
        int64_t at = i * bits + b;
        value |= (uint32_t)(stream[at / 8] >> (at % 8) & 1) << b;
    }
    return value;
}

static void affine_matvec(void **s) {
    (void)s;
    static const struct {
        const char *entry;
        smelt_dtype dtype;
        int group, bits;
    } kinds[] = {{"affine_matvec_float_g32_b4", SMELT_FLOAT32, 32, 4},
                 {"affine_matvec_half_g64_b5", SMELT_FLOAT16, 64, 5},
                 {"affine_matvec_bfloat_g128_b6", SMELT_BFLOAT16, 128, 6},
                 {"affine_matvec_float_g64_b8", SMELT_FLOAT32, 64, 8}};
    static const int shapes[][3] = {
        /* rows, groups a row, vectors */ {1, 1, 1}, {7, 3, 2}, {33, 5, 1}, {8, 17, 2}};
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < 4; i++) {
            int rows = shapes[i][0], group = kinds[kind].group, n = shapes[i][1] * group,
                vectors = shapes[i][2];
            smelt_dtype dtype = kinds[kind].dtype;
            struct tensor *w = uniform(SMELT_UINT32, (int64_t)rows * n * kinds[kind].bits / 32, 0, 0x1p32),
                          *scales = normal(dtype, rows * n / group, 0.1),
                          *biases = normal(dtype, rows * n / group, 1), *x = normal(dtype, vectors * n, 1),
                          *y = room(dtype, vectors * rows);
            double *expected = doubles(y->count), *bound = doubles(y->count);
            for (int v = 0; v < vectors; v++)
                for (int r = 0; r < rows; r++) {
                    double sum = 0, size = 0;
                    for (int k = 0; k < n; k++) {
                        int64_t at = (int64_t)r * n + k;
                        double q = bits_at(w->data, at, kinds[kind].bits), scale = scales->value[at / group],
                               bias = biases->value[at / group], xv = x->value[v * n + k];
                        sum += xv * (q * scale + bias);
                        size += fabs(xv) * (fabs(q * scale) + fabs(bias));
                    }
                    expected[v * rows + r] = sum;
                    bound[v * rows + r] =
                        (n / 32.0 + 24) * 0x1p-24 * size + fabs(sum) * roundoff(dtype) * 1.01;
                }
            RUN(FILE_, .entry = kinds[kind].entry, .in = {w, scales, biases, x}, .out = {[4] = y},
                .bytes = {[5] = BYTES(int, rows, n)}, .groups = {(rows + 7) / 8, vectors},

                .threadgroup = {64});
            check_bounds(kinds[kind].entry, y, expected, bound);
        }
}

/* Quantised, then dequantised: within half a step, and the extreme of each group nearly exact. */
static void affine_there_and_back(void **s) {
    (void)s;
    static const struct {
        const char *name;
        smelt_dtype dtype;
        int group, bits;
    } kinds[] = {{"float_g64_b4", SMELT_FLOAT32, 64, 4},
                 {"float_g32_b8", SMELT_FLOAT32, 32, 8},
                 {"half_g128_b6", SMELT_FLOAT16, 128, 6}};
    for (int kind = 0; kind < 3; kind++) {
        int group = kinds[kind].group, groups = 33, n = group * groups, bits = kinds[kind].bits;
        smelt_dtype dtype = kinds[kind].dtype;
        char to[64], from[64];
        snprintf(to, sizeof to, "affine_pack_%s", kinds[kind].name);
        snprintf(from, sizeof from, "affine_unpack_%s", kinds[kind].name);
        struct tensor *w = normal(dtype, n, 1), *q = room(SMELT_UINT8, n * bits / 8),
                      *scales = room(dtype, groups), *biases = room(dtype, groups), *y = room(dtype, n);
        RUN(FILE_, .entry = strcpy(scratch(64), to), .in = {w}, .out = {[1] = q, scales, biases},
            .groups = {groups}, .threadgroup = {32});
        RUN(FILE_, .entry = strcpy(scratch(64), from), .in = {q, scales, biases}, .out = {[3] = y},
            .grid = {n / 8}, .threadgroup = {64});
        double *bound = doubles(n), *exact = doubles(n);
        for (int i = 0; i < n; i++) {
            double scale = scales->value[i / group], bias = biases->value[i / group];
            exact[i] = bits_at(q->data, i, bits) * scale + bias;
            /* Half a step, and the effect of rounding scale and bias to the dtype: the last numbers may be
             * clipped. */
            bound[i] =
                scale * (0.5 + 0x1p-20) + (scale * (1 << bits) + 2 * fabs(bias)) * 1.1 * roundoff(dtype);
        }
        check_bounds(to, y, w->value, bound);
        check(from, y, exact, 1.01 * roundoff(dtype), 0x1p-24 * 8);
    }
    /* And 5 bits, from random bits. */
    struct tensor *q = uniform(SMELT_UINT8, 3 * 64 * 5 / 8, 0, 256), *scales = normal(SMELT_FLOAT16, 3, 1),
                  *biases = normal(SMELT_FLOAT16, 3, 1), *y = room(SMELT_FLOAT16, 3 * 64);
    double *expected = doubles(3 * 64), *bound = doubles(3 * 64);
    for (int i = 0; i < 3 * 64; i++) {
        double product = bits_at(q->data, i, 5) * scales->value[i / 64];
        expected[i] = product + biases->value[i / 64];
        bound[i] = fabs(product) * 0x1p-24 + fabs(expected[i]) * 0x1p-11 * 1.01 + 0x1p-24;
    }
    RUN(FILE_, .entry = "affine_unpack_half_g64_b5", .in = {q, scales, biases}, .out = {[3] = y},
        .grid = {3 * 8}, .threadgroup = {7});
    check_bounds("5 bits", y, expected, bound);
}

/* ---- Blocks: the bytes of one, and its weights. */

static double half_at(const uint8_t *bytes) {
    uint16_t bits = (uint16_t)(bytes[0] | bytes[1] << 8);
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return bits & 0x8000 ? -size : size;
}

static void put_half(uint8_t *bytes, double low, double high) {
    struct tensor *one = uniform(SMELT_FLOAT16, 1, low, high);
    memcpy(bytes, one->data, 2);
}

struct format {
    int weights, bytes, scale_at[2];
    void (*decode)(const uint8_t *block, double *weights);
};

static void decode_block4(const uint8_t *b, double *w) {
    for (int i = 0; i < 16; i++) {
        w[i] = half_at(b) * ((b[2 + i] & 15) - 8);
        w[i + 16] = half_at(b) * ((b[2 + i] >> 4) - 8);
    }
}
static void decode_block5(const uint8_t *b, double *w) {
    for (int i = 0; i < 32; i++) {
        int low = i < 16 ? b[6 + i] & 15 : b[6 + i - 16] >> 4, high = b[2 + i / 8] >> (i % 8) & 1;
        w[i] = half_at(b) * ((low | high << 4) - 16);
    }
}
static void decode_block8(const uint8_t *b, double *w) {
    for (int i = 0; i < 32; i++) w[i] = half_at(b) * (int8_t)b[2 + i];
}
/* Scales and minima of 8 runs of 32: the first four in the low 6 bits of bytes 0-3 and 4-7; of the others,
 * the low four bits in bytes 8-11 and the high two in the top bits of the first eight. */
static void decode_super4(const uint8_t *b, double *w) {
    const uint8_t *packed = b + 4, *q = b + 16;
    for (int run = 0; run < 8; run++) {
        int scale = run < 4 ? packed[run] & 63 : (packed[run + 4] & 15) | (packed[run - 4] >> 6) << 4;
        int low = run < 4 ? packed[run + 4] & 63 : packed[run + 4] >> 4 | (packed[run] >> 6) << 4;
        for (int i = 0; i < 32; i++) {
            uint8_t two = q[run / 2 * 32 + i];
            w[run * 32 + i] = half_at(b) * scale * (run & 1 ? two >> 4 : two & 15) - half_at(b + 2) * low;
        }
    }
}
static void decode_super6(const uint8_t *b, double *w) {
    for (int i = 0; i < 256; i++) {
        int part = i / 128, in = i % 128, run = in / 32, at = in % 32;
        int low = b[part * 64 + (run & 1) * 32 + at] >> (run < 2 ? 0 : 4) & 15;
        int high = b[128 + part * 32 + at] >> (2 * run) & 3;
        w[i] = half_at(b + 208) * (int8_t)b[192 + i / 16] * ((low | high << 4) - 32);
    }
}
static const struct format block4 = {32, 18, {0, 0}, decode_block4}, block5 = {32, 22, {0, 0}, decode_block5},
                           block8 = {32, 34, {0, 0}, decode_block8},
                           super4 = {256, 144, {0, 2}, decode_super4},
                           super6 = {256, 210, {208, 208}, decode_super6};

/* Random blocks, with finite scales, and their weights. */
static struct tensor *blocks_of(const struct format *format, int count, double **weights) {
    struct tensor *b = uniform(SMELT_UINT8, (int64_t)count * format->bytes, 0, 256);
    *weights = doubles((int64_t)count * format->weights);
    /* There are few scales, which repeat. */
    uint8_t scales[8][2];
    for (int i = 0; i < 8; i++) put_half(scales[i], -0.1, 0.1);
    for (int i = 0; i < count; i++) {
        uint8_t *block = (uint8_t *)b->data + i * format->bytes;
        for (int k = 0; k < 2; k++) memcpy(block + format->scale_at[k], scales[random_below(8)], 2);
        format->decode(block, *weights + i * format->weights);
    }
    changed(b);
    return b;
}

struct args {
    int32_t ne00, ne01;
    uint64_t nb01;
    int32_t ne1;
};

static void rows_of_blocks(void **s) {
    (void)s;
    static const struct {
        const char *entry;
        const struct format *format;
    } kinds[] = {{"take_rows_block4", &block4},
                 {"take_rows_block5", &block5},
                 {"take_rows_super4", &super4},
                 {"take_rows_super6", &super6}};
    for (int kind = 0; kind < 4; kind++) {
        const struct format *f = kinds[kind].format;
        enum { ROWS = 9, PER_ROW = 3, WANTED = 5 };
        double *weights;
        struct tensor *b = blocks_of(f, ROWS * PER_ROW, &weights),
                      *which = uniform(SMELT_INT32, WANTED, 0, ROWS);
        int n = PER_ROW * f->weights;
        struct tensor *y = room(SMELT_FLOAT32, WANTED * n);
        double *expected = doubles(y->count), largest = 0;
        for (int i = 0; i < WANTED * n; i++) {
            expected[i] = weights[(int)which->value[i / n] * n + i % n];
            largest = fmax(largest, fabs(expected[i]));
        }
        struct args args = {n, ROWS, (uint64_t)PER_ROW * (uint64_t)f->bytes, 0};
        RUN(FILE_, .entry = kinds[kind].entry, .in = {[1] = b, which}, .out = {[3] = y},
            .bytes = {{&args, sizeof args}}, .groups = {WANTED}, .threadgroup = {32});
        /* A product minus a minimum, each at most 0.1 · 63 · 15. */
        check(kinds[kind].entry, y, expected, 4 * 0x1p-24, kind == 2 ? 4 * 0x1p-24 * 95 : 0);
        assert_true(largest > 0.1);
    }
}

static void blocks_times_vector(void **s) {
    (void)s;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < 3; i++) {
            const struct format *f = kind ? &block8 : &super4;
            const int rows = (const int[]){1, 7, 33}[i], per_row = (const int[]){1, 5, 9}[i],
                      vectors = 1 + i % 2;
            double *weights;
            struct tensor *b = blocks_of(f, rows * per_row, &weights);
            int n = per_row * f->weights;
            struct tensor *x = normal(SMELT_FLOAT32, vectors * n, 1),
                          *y = room(SMELT_FLOAT32, vectors * rows);
            double *expected = doubles(y->count), *bound = doubles(y->count);
            for (int r = 0; r < vectors * rows; r++)
                for (int k = 0; k < n; k++) {
                    double xv = x->value[r / rows * n + k], w = weights[r % rows * n + k];
                    expected[r] += xv * w;
                    /* Products with scale and minimum are separate until the end: up to 0.1 · 63 · 15 each.
                     */
                    bound[r] += fabs(xv) * (kind ? fabs(w) : 120) * (n / 32.0 + 24) * 0x1p-24;
                }
            struct args args = {n, rows, (uint64_t)per_row * (uint64_t)f->bytes, vectors};
            RUN(FILE_, .entry = kind ? "block8_matvec_3" : "super4_matvec", .in = {[1] = b, x},
                .out = {[3] = y}, .bytes = {{&args, sizeof args}}, .threadgroup_memory = {3 * 128},
                .groups = {kind ? (rows + 2) / 3 : (rows + 1) / 2, vectors},
                .threadgroup = {kind ? 128 : 64});
            check_bounds(kind ? "block8 times vector" : "super4 times vector", y, expected, bound);
        }
}

static void blocks_times_matrix(void **s) {
    (void)s;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < 3; i++) {
            const struct format *f = kind ? &super6 : &block4;
            const int rows = (const int[]){1, 67, 130}[i], per_row = (const int[]){1, 3, 2}[i],
                      columns = (const int[]){1, 33, 50}[i];
            double *weights;
            struct tensor *b = blocks_of(f, rows * per_row, &weights);
            int n = per_row * f->weights;
            struct tensor *x = normal(SMELT_FLOAT32, columns * n, 1),
                          *y = room(SMELT_FLOAT32, columns * rows);
            double *expected = doubles(y->count), *bound = doubles(y->count);
            for (int c = 0; c < columns; c++)
                for (int r = 0; r < rows; r++)
                    for (int k = 0; k < n; k++) {
                        double xv = x->value[c * n + k], w = weights[r * n + k];
                        expected[c * rows + r] += xv * w;
                        /* Weights round to half (also the smallest), then sums of n terms. */
                        bound[c * rows + r] +=
                            fabs(xv) * (fabs(w) * (1.1 * 0x1p-11 + (n + 8) * 0x1p-24) + 0x1p-25 +
                                        (kind ? 64 * 128 * 0.1 * 0x1p-22 : 0x1p-20));
                    }
            struct args args = {n, rows, (uint64_t)per_row * (uint64_t)f->bytes, columns};
            RUN(FILE_, .entry = kind ? "super6_matmul" : "block4_matmul", .in = {[1] = b, x},
                .out = {[3] = y}, .bytes = {{&args, sizeof args}}, .threadgroup_memory = {8192},
                .groups = {(columns + 31) / 32, (rows + 31) / 32}, .threadgroup = {128});
            check_bounds(kind ? "super6 times matrix" : "block4 times matrix", y, expected, bound);
        }
}

/* Products with a vector come first: the 128 lanes of one gang spill more than 64 KiB, for which a fresh
 * stack must have room. */
ML_MAIN(ML_TEST(blocks_times_vector), ML_TEST(affine_matvec), ML_TEST(affine_there_and_back),
        ML_TEST(rows_of_blocks), ML_TEST(blocks_times_matrix))
