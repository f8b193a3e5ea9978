/* Weights in blocks of 4 to 8 bits, as their formats are defined: random ones, and their plain decoding. The
 * kernels' structures are in bench/kernels/ml_matvec.metal. */
#include "bench/cpu/threads.h"
#include "bench/ml/ml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next(uint64_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static void fill_bytes(uint8_t *bytes, int count, uint64_t *random) {
    for (int i = 0; i < count; i++) bytes[i] = (uint8_t)(next(random) >> 24);
}

/* A positive half in [2^exponent, 2^(exponent + 1)), and its value. */
static void fill_half(uint8_t *at, int exponent, uint64_t *random) {
    uint16_t bits = (uint16_t)((exponent + 15) << 10 | (next(random) >> 24 & 1023));
    memcpy(at, &bits, sizeof bits);
}

static float half_at(const uint8_t *at) {
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return ldexpf((float)(1024 + (bits & 1023)), (bits >> 10 & 31) - 25);
}

static void fill_q4_0(uint8_t *block, uint64_t *random) {
    fill_bytes(block, 18, random);
    fill_half(block, -4, random);
}

static void decode_q4_0(const uint8_t *block, float *weights) {
    float scale = half_at(block);
    for (int i = 0; i < 16; i++) {
        weights[i] = scale * (float)((block[2 + i] & 15) - 8);
        weights[i + 16] = scale * (float)((block[2 + i] >> 4) - 8);
    }
}

static void fill_q5_0(uint8_t *block, uint64_t *random) {
    fill_bytes(block, 22, random);
    fill_half(block, -5, random);
}

static void decode_q5_0(const uint8_t *block, float *weights) {
    float scale = half_at(block);
    for (int i = 0; i < 32; i++) {
        int four = block[6 + i % 16] >> (i / 16 * 4) & 15, fifth = block[2 + i / 8] >> (i % 8) & 1;
        weights[i] = scale * (float)((four | fifth << 4) - 16);
    }
}

static void fill_q8_0(uint8_t *block, uint64_t *random) {
    fill_bytes(block, 34, random);
    fill_half(block, -8, random);
}

static void decode_q8_0(const uint8_t *block, float *weights) {
    for (int i = 0; i < 32; i++) weights[i] = half_at(block) * (float)(int8_t)block[2 + i];
}

static void fill_mxfp4(uint8_t *block, uint64_t *random) {
    fill_bytes(block, 17, random);
    block[0] = (uint8_t)(122 + block[0] % 4);
}

static void decode_mxfp4(const uint8_t *block, float *weights) {
    static const float levels[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int i = 0; i < 32; i++) {
        int code = block[1 + i % 16] >> (i / 16 * 4) & 15;
        weights[i] = ldexpf(code & 8 ? -levels[code & 7] : levels[code & 7], block[0] - 127);
    }
}

static void fill_q4_k(uint8_t *block, uint64_t *random) {
    fill_bytes(block, 144, random);
    fill_half(block, -9, random);
    fill_half(block + 2, -6, random);
}

/* Six-bit numbers: s of runs 0 to 3 and m of runs 0 to 3 are in the low bits of eight bytes; the others are
 * in halves of four bytes, and in the upper two bits of the eight. */
static void decode_q4_k(const uint8_t *block, float *weights) {
    const uint8_t *packed = block + 4, *pairs = block + 16;
    for (int run = 0; run < 8; run++) {
        int k = run - 4;
        int s = run < 4 ? packed[run] & 63 : (packed[8 + k] & 15) | packed[k] >> 6 << 4;
        int m = run < 4 ? packed[run + 4] & 63 : packed[8 + k] >> 4 | packed[k + 4] >> 6 << 4;
        for (int i = 0; i < 32; i++) {
            int q = pairs[run / 2 * 32 + i] >> (run % 2 * 4) & 15;
            weights[run * 32 + i] = half_at(block) * (float)s * (float)q - half_at(block + 2) * (float)m;
        }
    }
}

static void fill_q6_k(uint8_t *block, uint64_t *random) {
    fill_bytes(block, 210, random);
    fill_half(block + 208, -12, random);
}

static void decode_q6_k(const uint8_t *block, float *weights) {
    for (int i = 0; i < 256; i++) {
        int upper = i / 128, run = i % 128 / 32, at = i % 32;
        int low = block[upper * 64 + run % 2 * 32 + at] >> (run / 2 * 4) & 15;
        int high = block[128 + upper * 32 + at] >> (run * 2) & 3;
        weights[i] =
            half_at(block + 208) * (float)(int8_t)block[192 + i / 16] * (float)((low | high << 4) - 32);
    }
}

static const struct ml_format formats[] = {
    {"q4_0", 32, 18, fill_q4_0, decode_q4_0},   {"q5_0", 32, 22, fill_q5_0, decode_q5_0},
    {"q8_0", 32, 34, fill_q8_0, decode_q8_0},   {"mxfp4", 32, 17, fill_mxfp4, decode_mxfp4},
    {"q4_K", 256, 144, fill_q4_k, decode_q4_k}, {"q6_K", 256, 210, fill_q6_k, decode_q6_k},
};

const struct ml_format *ml_format_find(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

smelt_status ml_blocks_create(const struct ml_format *format, int64_t count, smelt_array **blocks,
                              smelt_array **weights) {
    uint64_t random = 0x9e3779b97f4a7c15;
    smelt_status status = smelt_array_create(SMELT_UINT8, SHAPE_OF(count * format->bytes), blocks);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(count * format->weights), weights);
    for (int64_t i = 0; status == SMELT_OK && i < count; i++) {
        uint8_t *block = (uint8_t *)smelt_array_data(*blocks) + i * format->bytes;
        format->fill(block, &random);
        format->decode(block, floats(*weights) + i * format->weights);
    }
    return status;
}

/* ---- The reference. */

struct products {
    const float *weights, *vectors;
    float *expected;
    int64_t rows, columns, count;
};

static void expect_row(void *context, int64_t row) {
    const struct products *p = context;
    for (int64_t v = 0; v < p->count; v++) {
        double sums[8] = {0}; /* columns are a multiple of 8 */
        const float *w = p->weights + row * p->columns, *x = p->vectors + v * p->columns;
        for (int64_t c = 0; c < p->columns; c += 8)
            for (int k = 0; k < 8; k++) sums[k] += (double)w[c + k] * (double)x[c + k];
        for (int k = 1; k < 8; k++) sums[0] += sums[k];
        p->expected[v * p->rows + row] = (float)sums[0];
    }
}

void ml_expect_products(const smelt_array *weights, const smelt_array *vectors, smelt_array *expected,
                        int64_t rows, int64_t columns, int64_t count) {
    struct products p = {floats(weights), floats(vectors), floats(expected), rows, columns, count};
    team_run(expect_row, &p, rows);
}
