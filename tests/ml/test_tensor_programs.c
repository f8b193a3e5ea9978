/* The programs of kernels/tensor against float64: products of tiles, formats of a kernel's own, attention. */
#include "ml.h"

#include <stdio.h>

#define FOLDER "../../kernels/tensor/"

/* ---- Weights in a 4-bit format. */

static void multiply_int4(const char *entry, int m, int n, int threads, int rows, int columns, int terms) {
    const int size[3] = {rows, columns, terms};
    struct tensor *a = normal(SMELT_FLOAT16, rows * terms, 1),
                  *codes = uniform(SMELT_UINT8, columns * terms / 2, 0, 256),
                  *scales = normal(SMELT_FLOAT16, columns * terms / 32, 1),
                  *out = room(SMELT_FLOAT32, rows * columns);
    double *expected = doubles(rows * columns), *bound = doubles(rows * columns);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double absolute = 0;
            for (int t = 0; t < terms; t++) {
                int at = c * terms + t, code = ((uint8_t *)codes->data)[at / 2] >> at % 2 * 4 & 15;
                double weight = (code - 8) * scales->value[at / 32], term = a->value[r * terms + t] * weight;
                expected[r * columns + c] += term;
                absolute += fabs(term);
            }
            /* Weights are rounded to half. */
            bound[r * columns + c] = (0x1p-11 + (terms + 4) * 0x1p-24) * absolute + 1e-6;
        }
    RUN(.file = FOLDER "matmul2d_int4.metal", .entry = entry, .in = {a, codes, scales}, .out = {[3] = out},
        .bytes = {[4] = {size, sizeof size}}, .groups = {(columns + n - 1) / n, (rows + m - 1) / m, 1},
        .threadgroup = {threads});
    check_bounds(entry, out, expected, bound);
}

static void int4(void **s) {
    (void)s;
    static const int sizes[][3] = {{64, 64, 64}, {1, 70, 96}, {67, 33, 32}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        multiply_int4("matmul_int4_staged", 64, 64, 128, sizes[i][0], sizes[i][1], sizes[i][2]);
        multiply_int4("matmul_int4_registers", 16, 32, 32, sizes[i][0], sizes[i][1], sizes[i][2]);
    }
}

/* ---- Attention. */

struct attention {
    smelt_dtype dtype;
    int D, batches, heads, key_heads, rows, keys;
    bool causal, masked;
    int simdgroups; /* of a threadgroup, with 16 rows each; 0: 2 */
};

/* Of one row: softmax of its scores, times the values; zeros if it sees no key. */
static void attend_row(const struct attention *a, const double *q, const double *k, const double *v,
                       const double *mask, int row, double scale, double *out) {
    double *score = doubles(a->keys), top = -INFINITY, sum = 0;
    for (int c = 0; c < a->keys; c++) {
        for (int d = 0; d < a->D; d++) score[c] += q[d] * k[c * a->D + d] * scale;
        if (mask) score[c] += mask[(int64_t)row * a->keys + c];
        if (a->causal && c > row + a->keys - a->rows) score[c] = -INFINITY;
        top = fmax(top, score[c]);
    }
    for (int c = 0; c < a->keys && top > -INFINITY; c++) {
        double weight = exp(score[c] - top);
        sum += weight;
        for (int d = 0; d < a->D; d++) out[d] += weight * v[c * a->D + d];
    }
    for (int d = 0; d < a->D && sum > 0; d++) out[d] /= sum;
}

static void attend(struct attention a) {
    int64_t q_count = (int64_t)a.batches * a.heads * a.rows * a.D,
            k_count = (int64_t)a.batches * a.key_heads * a.keys * a.D;
    struct tensor *q = normal(a.dtype, q_count, 1), *k = normal(a.dtype, k_count, 1),
                  *v = normal(a.dtype, k_count, 1), *out = room(a.dtype, q_count), *mask = NULL;
    double *expected = doubles(q_count), scale = 1 / sqrt(a.D);
    if (a.masked) {
        mask = normal(SMELT_FLOAT32, (int64_t)a.rows * a.keys, 1);
        float *values = mask->data;
        for (int c = 0; c < a.keys; c++)
            values[a.rows / 2 * a.keys + c] = -INFINITY; /* a row that sees nothing */
        for (int i = 0; i < a.rows; i++) values[i * a.keys + (int)random_below((uint32_t)a.keys)] = -INFINITY;
        changed(mask);
    }
    for (int64_t row = 0; row < (int64_t)a.batches * a.heads * a.rows; row++) {
        int64_t head = row / a.rows, batch = head / a.heads,
                key_head = batch * a.key_heads + head % a.heads / (a.heads / a.key_heads);
        attend_row(&a, q->value + row * a.D, k->value + key_head * a.keys * a.D,
                   v->value + key_head * a.keys * a.D, mask ? mask->value : NULL, (int)(row % a.rows), scale,
                   expected + row * a.D);
    }
    struct {
        int rows, keys, heads, key_heads;
        float scale;
        int causal;
    } size = {a.rows, a.keys, a.heads, a.key_heads, (float)scale, a.causal};
    const int simdgroups = a.simdgroups ? a.simdgroups : 2;
    char entry[64];
    const char *type = a.dtype == SMELT_FLOAT16 ? "half" : a.dtype == SMELT_BFLOAT16 ? "bfloat" : "float";
    snprintf(entry, sizeof entry, "flash_attention_%s_%d", type, a.D);
    RUN(.file = FOLDER "flash_attention.metal", .entry = entry, .in = {q, k, v, [5] = mask},
        .out = {[3] = out}, .bytes = {[4] = {&size, sizeof size}},
        .constants = {{0, SMELT_BOOL, {.integer = a.masked}}},
        .groups = {(a.rows + simdgroups * 16 - 1) / (simdgroups * 16), a.heads, a.batches},
        .threadgroup = {simdgroups * 32});
    /* The result's rounding, and that of sums of D and of `keys` terms. */
    double allowed = 4 * roundoff(a.dtype) + (a.D + a.keys) * 0x1p-24;
    check(entry, out, expected, allowed, allowed);
}

/* All sizes of heads are instances of one template: make check runs the smallest of each type. */
static void attention(void **s) {
    (void)s;
    attend((struct attention){SMELT_FLOAT16, 64, 2, 2, 1, 40, 50, .causal = true});
    attend((struct attention){SMELT_BFLOAT16, 80, 1, 2, 2, 16, 32, .causal = false});
    attend((struct attention){SMELT_FLOAT32, 96, 1, 2, 1, 33, 65, .masked = true});
    /* The first rows see no key. */
    attend((struct attention){SMELT_FLOAT16, 64, 1, 1, 1, 20, 7, .causal = true});
    /* Threadgroups whose simdgroups share what they read of keys and values. */
    attend((struct attention){SMELT_BFLOAT16, 64, 1, 2, 1, 130, 140, .causal = true, .simdgroups = 4});
    if (!runs_all()) return;
    attend((struct attention){SMELT_FLOAT16, 80, 2, 2, 2, 70, 129, .simdgroups = 4});
    attend((struct attention){SMELT_BFLOAT16, 128, 1, 2, 2, 140, 200, .causal = true, .simdgroups = 8});
    attend((struct attention){SMELT_FLOAT16, 96, 1, 1, 1, 90, 67, .masked = true, .simdgroups = 8});
    attend((struct attention){SMELT_BFLOAT16, 256, 1, 1, 1, 70, 70, .causal = true, .simdgroups = 4});
    attend((struct attention){SMELT_FLOAT16, 128, 1, 4, 2, 17, 31, .causal = true, .masked = true});
    attend((struct attention){SMELT_BFLOAT16, 256, 1, 1, 1, 5, 70, .causal = false});
}

ML_MAIN(ML_TEST(int4), ML_TEST(attention))
