/* Attention against float64. A score's error is (d + 4)·u·Σ|q·k|·scale. Together with that of exp, it is the
 * relative error of each weight, and an average with such weights is off by at most twice that times the
 * largest |v|. */
#include "ml.h"

#define FILE_ .file = "attention.metal"

/* One query of d over n keys; `visible` may be NULL. Returns the bound of its outputs. */
static double attend(const double *q, const double *k, const double *v, const bool *visible, int n, int d,
                     int dv, double scale, double cap, double *out) {
    double top = -INFINITY, sum = 0, size = 0, widest = 0, *score = doubles(n), low = INFINITY;
    for (int i = 0; i < n; i++) {
        double absolute = 0;
        if (visible && !visible[i]) continue;
        for (int j = 0; j < d; j++)
            score[i] += q[j] * k[i * d + j] * scale, absolute += fabs(q[j] * k[i * d + j] * scale);
        if (cap > 0) score[i] = tanh(score[i] / cap) * cap;
        top = fmax(top, score[i]), low = fmin(low, score[i]);
        size = fmax(size, absolute);
    }
    memset(out, 0, (size_t)dv * sizeof *out);
    for (int i = 0; i < n; i++) {
        if (visible && !visible[i]) continue;
        double e = exp(score[i] - top);
        sum += e;
        for (int j = 0; j < dv; j++) out[j] += e * v[i * dv + j], widest = fmax(widest, fabs(v[i * dv + j]));
    }
    for (int j = 0; j < dv; j++) out[j] /= sum;
    return 2 * widest * (2 * (d + 4) * size + 4 * (top - low) + 40 + n / 16.0) * 0x1p-24;
}

static struct launch vector_case(const char *entry, bool mask, bool transposed, bool causal) {
    return (struct launch){FILE_, .entry = entry,
                           .constants = {{20, SMELT_BOOL, {.integer = mask}},
                                         {21, SMELT_BOOL, {.integer = transposed}},
                                         {22, SMELT_BOOL, {.integer = causal}}}};
}

static void one_query(void **s) {
    (void)s;
    static const struct {
        bool half, mask, transposed, causal;
        int keys, queries;
    } cases[] = {{false, false, false, false, 1, 1},
                 {false, true, false, false, 31, 2},
                 {false, false, true, true, 77, 5},
                 {true, false, false, false, 1025, 1},
                 {true, false, true, true, 33, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int d = cases[i].half ? 128 : 64, dv = cases[i].half ? 96 : 64, n = cases[i].keys,
            nq = cases[i].queries;
        enum { HEADS = 6, GROUP = 3, KV = 2 };
        smelt_dtype dtype = cases[i].half ? SMELT_FLOAT16 : SMELT_FLOAT32;
        /* The cache is longer than its used part. */
        int room_for = n + 5;
        struct tensor *q = normal(dtype, HEADS * nq * d, 1), *k = normal(dtype, KV * room_for * d, 1),
                      *v = normal(dtype, KV * room_for * dv, 1), *y = room(dtype, HEADS * nq * dv),
                      *mask = uniform(SMELT_BOOL, HEADS * nq * n, 0, 2);
        for (int r = 0; r < HEADS * nq; r++) ((bool *)mask->data)[r * n] = true;
        float scale = 1 / sqrtf((float)d);
        double *expected = doubles(y->count), *bound = doubles(y->count);
        for (int h = 0; h < HEADS; h++)
            for (int t = 0; t < nq; t++) {
                bool *visible = scratch((size_t)n);
                for (int j = 0; j < n; j++)
                    visible[j] = cases[i].causal
                                     ? j <= n - nq + t
                                     : !cases[i].mask || ((bool *)mask->data)[(h * nq + t) * n + j];
                int at = h * nq + t;
                double b = attend(q->value + (cases[i].transposed ? t * HEADS + h : at) * d,
                                  k->value + h / GROUP * room_for * d, v->value + h / GROUP * room_for * dv,
                                  visible, n, d, dv, (double)scale, 0, expected + at * dv);
                for (int j = 0; j < dv; j++)
                    bound[at * dv + j] = b + fabs(expected[at * dv + j]) * roundoff(dtype) * 1.01;
            }
        struct launch l = vector_case(cases[i].half ? "attend_one_half_128_96" : "attend_one_float_64_64",
                                      cases[i].mask, cases[i].transposed, cases[i].causal);
        struct {
            int group, keys;
            int64_t strides[4];
            float scale;
        } cache = {GROUP, n, {room_for * d, d, room_for * dv, dv}, scale};
        l.in[0] = q, l.in[1] = k, l.in[2] = v, l.out[3] = y;
        if (cases[i].mask) l.in[5] = mask;
        l.bytes[4] = (struct bytes){&cache, sizeof cache};
        l.groups[0] = HEADS, l.groups[1] = nq, l.groups[2] = 1, l.threadgroup[0] = 1024;
        launch(l);
        check_bounds(l.entry, y, expected, bound);
    }
}

static void two_passes(void **s) {
    (void)s;
    static const int lengths[] = {1, 33, 1025};
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < 3; i++) {
            enum { HEADS = 4, GROUP = 2 };
            int n = lengths[i], d = wide ? 128 : 32, blocks = wide ? 3 : 5;
            smelt_dtype dtype = wide ? SMELT_FLOAT32 : SMELT_BFLOAT16;
            struct tensor *q = normal(dtype, HEADS * d, 1), *k = normal(dtype, HEADS / GROUP * n * d, 1),
                          *v = normal(dtype, HEADS / GROUP * n * d, 1), *y = room(dtype, HEADS * d),
                          *partial = room(SMELT_FLOAT32, HEADS * blocks * d),
                          *stats = room(SMELT_FLOAT32, HEADS * blocks * 2);
            double *expected = doubles(HEADS * d), *bound = doubles(HEADS * d);
            for (int h = 0; h < HEADS; h++) {
                double b = attend(q->value + h * d, k->value + h / GROUP * n * d,
                                  v->value + h / GROUP * n * d, NULL, n, d, d, 0.125, 0, expected + h * d);
                for (int j = 0; j < d; j++)
                    bound[h * d + j] = b + fabs(expected[h * d + j]) * roundoff(dtype) * 1.01;
            }
            RUN(FILE_, .entry = wide ? "sdpa_2pass_1_f32_128" : "sdpa_2pass_1_bf16_32", .in = {q, k, v},
                .out = {[3] = partial, [4] = stats},
                .bytes = {[5] = BYTES(int, GROUP, n), [6] = BYTES(float, 0.125f)}, .groups = {HEADS, blocks},
                .threadgroup = {128});
            RUN(FILE_, .entry = wide ? "sdpa_2pass_2_f32_128" : "sdpa_2pass_2_bf16_32",
                .in = {partial, stats}, .out = {[2] = y}, .groups = {HEADS}, .threadgroup = {32});
            check_bounds("two passes", y, expected, bound);
        }
}

static void paged(void **s) {
    (void)s;
    for (int wide = 0; wide < 2; wide++) {
        enum { HEADS = 4, KV = 2, SEQUENCES = 3, PER_SEQUENCE = 20 };
        int d = wide ? 64 : 80, page = wide ? 8 : 16, pages = SEQUENCES * PER_SEQUENCE, x = wide ? 4 : 8;
        smelt_dtype dtype = wide ? SMELT_FLOAT32 : SMELT_FLOAT16;
        const uint32_t lengths[SEQUENCES] = {1, 33, (uint32_t)(PER_SEQUENCE * page - 5)};
        struct tensor *q = normal(dtype, SEQUENCES * HEADS * d, 1),
                      *k = normal(dtype, pages * KV * d * page, 1),
                      *v = normal(dtype, pages * KV * d * page, 1), *y = room(dtype, SEQUENCES * HEADS * d),
                      *table = room(SMELT_UINT32, pages),
                      *context = copy_of(SMELT_UINT32, SEQUENCES, lengths);
        uint32_t *t = table->data;
        for (int i = 0; i < pages; i++) t[i] = (uint32_t)i;
        for (int i = pages - 1; i > 0; i--) {
            uint32_t j = random_below((uint32_t)i + 1), swap = t[i];
            t[i] = t[j], t[j] = swap;
        }
        double *expected = doubles(y->count), *bound = doubles(y->count);
        for (int i = 0; i < SEQUENCES * HEADS; i++) {
            int n = (int)lengths[i / HEADS], kv = i % HEADS / (HEADS / KV);
            double *keys = doubles(n * d), *values = doubles(n * d);
            for (int j = 0; j < n; j++)
                for (int e = 0; e < d; e++) {
                    int64_t start = ((int64_t)t[i / HEADS * PER_SEQUENCE + j / page] * KV + kv) * d * page;
                    keys[j * d + e] = k->value[start + e / x * page * x + j % page * x + e % x];
                    values[j * d + e] = v->value[start + e * page + j % page];
                }
            double b =
                attend(q->value + i * d, keys, values, NULL, n, d, d, 0.1, wide ? 5 : 0, expected + i * d);
            for (int j = 0; j < d; j++)
                bound[i * d + j] = b + fabs(expected[i * d + j]) * roundoff(dtype) * 1.01;
        }
        struct {
            int kv_heads, pages_each;
            float scale, cap;
        } shape = {KV, PER_SEQUENCE, 0.1f, wide ? 5 : 0};
        RUN(FILE_, .entry = wide ? "attend_pages_float_64_8" : "attend_pages_half_80_16", .out = {y},
            .in = {[1] = q, k, v, table, context}, .bytes = {[6] = {&shape, sizeof shape}},
            .threadgroup_memory = {(size_t)(PER_SEQUENCE * page * 4)}, .groups = {HEADS, SEQUENCES},
            .threadgroup = {wide ? 256 : 96});
        check_bounds("paged attention", y, expected, bound);
    }
}

static void prefill(void **s) {
    (void)s;
    static const int cases[][3] = {
        /* queries, keys, causal */ {1, 1, 0}, {33, 70, 0}, {31, 31, 1}, {50, 129, 1}};
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 4; i++) {
            enum { HEADS = 2 };
            int nq = cases[i][0], nk = cases[i][1], d = half ? 32 : 64, rows = half ? 32 : 16;
            smelt_dtype dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32;
            struct tensor *q = normal(dtype, HEADS * nq * d, 1), *k = normal(dtype, HEADS * nk * d, 1),
                          *v = normal(dtype, HEADS * nk * d, 1), *y = room(dtype, HEADS * nq * d);
            double *expected = doubles(y->count), *bound = doubles(y->count);
            for (int r = 0; r < HEADS * nq; r++) {
                bool *visible = scratch((size_t)nk);
                for (int j = 0; j < nk; j++) visible[j] = !cases[i][2] || j <= r % nq + nk - nq;
                double b = attend(q->value + r * d, k->value + r / nq * nk * d, v->value + r / nq * nk * d,
                                  visible, nk, d, d, 0.125, 0, expected + r * d);
                for (int j = 0; j < d; j++)
                    bound[r * d + j] = b + fabs(expected[r * d + j]) * roundoff(dtype) * 1.01;
            }
            struct {
                int d, queries, keys, offset;
                float scale;
            } params = {d, nq, nk, nk - nq, 0.125f};
            struct launch l = vector_case(half ? "flash_attention_f16_32" : "flash_attention_f32_64", false,
                                          false, cases[i][2]);
            l.in[0] = q, l.in[1] = k, l.in[2] = v, l.out[3] = y;
            l.bytes[4] = (struct bytes){&params, sizeof params};
            l.groups[0] = (nq + rows - 1) / rows, l.groups[1] = HEADS, l.groups[2] = 1;
            l.threadgroup[0] = half ? 128 : 64;
            launch(l);
            check_bounds(l.entry, y, expected, bound);
        }
}

ML_MAIN(ML_TEST(one_query), ML_TEST(two_passes), ML_TEST(paged), ML_TEST(prefill))
