/* Recurrences against float64, step by step. Keys have length one and gates are at most 1, so no step
 * enlarges earlier errors: the bound is the number of steps times the error of one. */
#include "ml.h"

#define FILE_ .file = "recurrent.metal"

/* Vectors of n numbers, of length one. */
static struct tensor *unit_vectors(smelt_dtype dtype, int64_t count, int n) {
    struct tensor *x = normal(SMELT_FLOAT32, count * n, 1);
    for (int64_t i = 0; i < count; i++) {
        double square = 0;
        for (int j = 0; j < n; j++) square += x->value[i * n + j] * x->value[i * n + j];
        for (int j = 0; j < n; j++) x->value[i * n + j] *= 0.99 / sqrt(square);
    }
    return rounded(dtype, count * n, x->value);
}

/* One head's step on state[dv][dk]; `wrong` is the bound of each row's error, in the 2-norm. */
static void delta_step(double *state, double *wrong, const double *q, const double *k, const double *v,
                       const double *gate, bool gate_per_key, double beta, int dk, int dv, double *y,
                       double *bound) {
    for (int i = 0; i < dv; i++) {
        double recall = 0, size = 0, norm = 0, out = 0, out_size = 0, q_norm = 0;
        for (int j = 0; j < dk; j++) {
            double *s = &state[i * dk + j];
            *s *= gate[gate_per_key ? j : 0];
            recall += *s * k[j], size += fabs(*s * k[j]), norm += *s * *s;
        }
        double delta = (v[i] - recall) * beta;
        for (int j = 0; j < dk; j++) {
            state[i * dk + j] += k[j] * delta;
            out += state[i * dk + j] * q[j], out_size += fabs(state[i * dk + j] * q[j]);
            q_norm += q[j] * q[j];
        }
        wrong[i] += 0x1p-24 * ((dk / 32.0 + 12) * size + 4 * fabs(delta) + 4 * sqrt(norm));
        y[i] = out;
        bound[i] = wrong[i] * sqrt(q_norm) + (dk / 32.0 + 12) * 0x1p-24 * out_size;
    }
}

static void gated_delta(void **s) {
    (void)s;
    static const int cases[][4] = {/* batch, steps, key heads, value heads */ {1, 1, 1, 1}, {2, 33, 2, 4}};
    for (int per_key = 0; per_key < 2; per_key++)
        for (int i = 0; i < 2; i++) {
            const int batch = cases[i][0], steps = cases[i][1], hk = cases[i][2], hv = cases[i][3];
            const int dk = per_key ? 128 : 64, dv = per_key ? 32 : 48, gates = per_key ? dk : 1;
            smelt_dtype dtype = per_key ? SMELT_BFLOAT16 : SMELT_FLOAT32;
            struct tensor *q = unit_vectors(dtype, batch * steps * hk, dk),
                          *k = unit_vectors(dtype, batch * steps * hk, dk),
                          *v = normal(dtype, batch * steps * hv * dv, 1),
                          *g = uniform(SMELT_FLOAT32, batch * steps * hv * gates, 0.5, 1),
                          *beta = uniform(dtype, batch * steps * hv, 0, 1),
                          *state = normal(SMELT_FLOAT32, batch * hv * dv * dk, 0.1),
                          *mask = uniform(SMELT_UINT8, batch * steps, 0, 3), *y = room(dtype, v->count),
                          *after = room(SMELT_FLOAT32, state->count);
            double *expected = doubles(y->count), *bound = doubles(y->count), *last = doubles(state->count),
                   *last_bound = doubles(state->count), *wrong = doubles(dv);
            memcpy(last, state->value, (size_t)state->count * sizeof *last);
            for (int n = 0; n < batch * hv; n++) {
                double *sn = last + n * dv * dk;
                memset(wrong, 0, (size_t)dv * sizeof *wrong);
                for (int t = 0; t < steps; t++) {
                    int bt = n / hv * steps + t, at = (bt * hv + n % hv), head = n % hv / (hv / hk);
                    if (per_key && mask->value[bt] == 0) continue;
                    delta_step(sn, wrong, q->value + (bt * hk + head) * dk, k->value + (bt * hk + head) * dk,
                               v->value + at * dv, g->value + at * gates, per_key, beta->value[at], dk, dv,
                               expected + at * dv, bound + at * dv);
                    for (int j = 0; j < dv; j++)
                        bound[at * dv + j] += fabs(expected[at * dv + j]) * roundoff(dtype) * 1.01;
                }
                for (int j = 0; j < dv * dk; j++) last_bound[n * dv * dk + j] = wrong[j / dk];
            }
            struct launch l = {
                FILE_,
                .entry = per_key ? "gated_delta_bfloat16_128_32" : "gated_delta_float32_64_48",
                .constants = {{0, SMELT_BOOL, {.integer = per_key}}, {1, SMELT_BOOL, {.integer = per_key}}},
                .in = {q, k, v, g, beta, state},
                .out = {[8] = y, after},
                .bytes = {[6] = BYTES(int, steps, hk, hv)},
                .grid = {32, dv, batch * hv},
                .threadgroup = {32, 4, 1}};
            if (per_key) l.in[7] = mask;
            launch(l);
            check_bounds("gated delta rule", y, expected, bound);
            check_bounds("its state", after, last, last_bound);
        }
}

static void delta_by_heads(void **s) {
    (void)s;
    static const int cases[][4] = {/* steps, heads, dk, dv */ {1, 1, 1, 1}, {31, 3, 33, 40}, {70, 2, 64, 17}};
    for (int i = 0; i < 3; i++) {
        const int steps = cases[i][0], heads = cases[i][1], dk = cases[i][2], dv = cases[i][3];
        struct tensor *q = unit_vectors(SMELT_FLOAT32, steps * heads, dk),
                      *k = unit_vectors(SMELT_FLOAT32, steps * heads, dk),
                      *v = normal(SMELT_FLOAT32, steps * heads * dv, 1),
                      *g = uniform(SMELT_FLOAT32, steps * heads, -1, 0),
                      *beta = uniform(SMELT_FLOAT32, steps * heads, 0, 1), *y = room(SMELT_FLOAT32, v->count);
        double *expected = doubles(y->count), *bound = doubles(y->count);
        for (int h = 0; h < heads; h++) {
            double *state = doubles(dv * dk), *wrong = doubles(dv);
            for (int t = 0; t < steps; t++) {
                int at = t * heads + h;
                double gate = exp(g->value[at]);
                delta_step(state, wrong, q->value + at * dk, k->value + at * dk, v->value + at * dv, &gate,
                           false, beta->value[at], dk, dv, expected + at * dv, bound + at * dv);
                /* One thread adds all dk products. */
                for (int j = 0; j < dv; j++) bound[at * dv + j] *= 3;
            }
        }
        RUN(FILE_, .entry = "delta_rule_head", .in = {q, k, v, g, beta}, .out = {[5] = y},
            .bytes = {[6] = BYTES(uint32_t, (uint32_t)steps, (uint32_t)heads, (uint32_t)dk, (uint32_t)dv)},
            .threadgroup_memory = {(size_t)(2 * dk * 4 + 15) / 16 * 16}, .groups = {heads},
            .threadgroup = {48});
        check_bounds("delta rule by heads", y, expected, bound);
    }
}

/* A term that entered s steps ago has passed s products of decays, each with an error of |dt·a| + 4 units;
 * the recurrence over magnitudes bounds the sum of all. softplus: log(1 + e^x) is off by at most twice u·(1 +
 * e^x). */
static void selective(void **s) {
    (void)s;
    static const int cases[][3] = {/* batch, length, channels */ {1, 1, 1}, {2, 33, 31}, {1, 200, 65}};
    for (int i = 0; i < 3; i++) {
        enum { N = 16 };
        const int batch = cases[i][0], length = cases[i][1], channels = cases[i][2];
        struct tensor *x = normal(SMELT_FLOAT32, batch * length * channels, 1),
                      *dt = normal(SMELT_FLOAT32, batch * length * channels, 2),
                      *a = uniform(SMELT_FLOAT32, channels * N, -4, -0.1),
                      *b = normal(SMELT_FLOAT32, batch * length * N, 1),
                      *c = normal(SMELT_FLOAT32, batch * length * N, 1),
                      *d = normal(SMELT_FLOAT32, channels, 1), *y = room(SMELT_FLOAT32, x->count);
        double *expected = doubles(y->count), *bound = doubles(y->count);
        for (int n = 0; n < batch * channels; n++) {
            int bi = n / channels, ch = n % channels;
            double h[N] = {0}, size[N] = {0};
            for (int t = 0; t < length; t++) {
                int at = (bi * length + t) * channels + ch;
                double raw = dt->value[at], delta = raw > 20 ? raw : log1p(exp(raw)), total = 0;
                /* Relative error of delta, in units. */
                double off = (2 * (1 + exp(fmin(raw, 20))) / fmax(exp(fmin(raw, 20)), 1e-12) + 6);
                off = fmin(off, 0x1p23 * 2);
                for (int j = 0; j < N; j++) {
                    double decay = exp(delta * a->value[ch * N + j]),
                           in = delta * b->value[(bi * length + t) * N + j] * x->value[at];
                    size[j] =
                        decay * size[j] *
                            (1 + 0x1p-24 * ((off + 4) * fabs(delta * a->value[ch * N + j]) + 6)) +
                        decay * fabs(h[j]) * 0x1p-24 * ((off + 4) * fabs(delta * a->value[ch * N + j]) + 6) +
                        fabs(in) * (off + 6) * 0x1p-24;
                    h[j] = decay * h[j] + in;
                    expected[at] += h[j] * c->value[(bi * length + t) * N + j];
                    bound[at] += fabs(c->value[(bi * length + t) * N + j]) *
                                 (size[j] + (N + 4) * 0x1p-24 * fabs(h[j]));
                    total += fabs(h[j] * c->value[(bi * length + t) * N + j]);
                }
                expected[at] += d->value[ch] * x->value[at];
                bound[at] += (total + fabs(d->value[ch] * x->value[at])) * 4 * 0x1p-24;
            }
        }
        RUN(FILE_, .entry = "selective_scan_16", .in = {x, dt, a, b, c, d}, .out = {[6] = y},
            .bytes = {[7] = BYTES(uint32_t, (uint32_t)length, (uint32_t)channels)}, .grid = {channels, batch},
            .threadgroup = {32, 1});
        check_bounds("selective scan", y, expected, bound);
    }
}

static void linear_recurrence(void **s) {
    (void)s;
    static const uint32_t lengths[] = {1, 33, 1025};
    for (int i = 0; i < 3; i++) {
        const uint32_t n = lengths[i];
        struct tensor *a = uniform(SMELT_FLOAT32, 3 * n, -1, 1), *b = normal(SMELT_FLOAT32, 3 * n, 1),
                      *y = room(SMELT_FLOAT32, 3 * n);
        double *expected = doubles(3 * n), *bound = doubles(3 * n);
        for (uint32_t k = 0; k < 3 * n; k++) {
            bool first = k % n == 0;
            expected[k] = b->value[k] + (first ? 0 : a->value[k] * expected[k - 1]);
            bound[k] = fabs(b->value[k]) + (first ? 0 : fabs(a->value[k]) * bound[k - 1]);
        }
        for (uint32_t k = 0; k < 3 * n; k++) bound[k] *= 2 * (k % n + 8) * 0x1p-24;
        RUN(FILE_, .entry = "linear_recurrence", .in = {a, b}, .out = {[2] = y},
            .bytes = {[3] = BYTES(uint32_t, n)}, .groups = {3}, .threadgroup = {32});
        check_bounds("linear recurrence", y, expected, bound);
    }
}

static void wkv(void **s) {
    (void)s;
    static const uint32_t cases[][3] = {/* batch, steps, heads */ {1, 1, 1}, {2, 19, 3}};
    enum { D = 64 };
    for (int i = 0; i < 2; i++) {
        const uint32_t batch = cases[i][0], steps = cases[i][1], heads = cases[i][2], c = heads * D;
        struct tensor *k = normal(SMELT_FLOAT32, batch * steps * c, 1),
                      *v = normal(SMELT_FLOAT32, batch * steps * c, 1),
                      *r = normal(SMELT_FLOAT32, batch * steps * c, 1), *tf = normal(SMELT_FLOAT32, c, 1),
                      *td = uniform(SMELT_FLOAT32, batch * steps * c, 0, 1),
                      *before = normal(SMELT_FLOAT32, batch * c * D, 1), *y = room(SMELT_FLOAT32, k->count),
                      *after = room(SMELT_FLOAT32, before->count);
        double *expected = doubles(y->count), *bound = doubles(y->count), *state = doubles(before->count),
               *size = doubles(before->count);
        for (int64_t j = 0; j < before->count; j++) state[j] = before->value[j], size[j] = fabs(state[j]);
        for (uint32_t b = 0; b < batch; b++)
            for (uint32_t t = 0; t < steps; t++)
                for (uint32_t h = 0; h < c; h++) {
                    uint32_t head = h / D, at = (b * steps + t) * c;
                    for (uint32_t j = 0; j < D; j++) {
                        double *sj = &state[(b * heads + head) * D * D + j * D + h % D],
                               *zj = size + (sj - state);
                        uint32_t in = at + head * D + j;
                        double kv = k->value[in] * v->value[at + h];
                        expected[at + h] += r->value[in] * (tf->value[head * D + j] * kv + *sj);
                        bound[at + h] += fabs(r->value[in]) * (fabs(tf->value[head * D + j] * kv) + *zj) *
                                         (D + 3 * t + 8) * 0x1p-24;
                        *sj = *sj * td->value[in] + kv;
                        *zj = *zj * td->value[in] + fabs(kv);
                    }
                }
        for (int64_t j = 0; j < before->count; j++) size[j] *= 3 * steps * 0x1p-24;
        RUN(FILE_, .entry = "wkv_heads", .in = {k, v, r, tf, td, before}, .out = {[6] = y, after},
            .bytes = {[8] = BYTES(uint32_t, batch, steps, heads)}, .groups = {heads, batch},
            .threadgroup = {D});
        check_bounds("wkv", y, expected, bound);
        check_bounds("wkv's state", after, state, size);
    }
}

static void causal_conv(void **s) {
    (void)s;
    static const uint32_t cases[][2] = {/* length, channels */ {3, 1}, {33, 31}, {70, 129}};
    for (int i = 0; i < 3; i++) {
        const uint32_t n = cases[i][0], c = cases[i][1];
        struct tensor *x = normal(SMELT_FLOAT16, n * c, 1), *before = normal(SMELT_FLOAT16, 3 * c, 1),
                      *w = normal(SMELT_FLOAT16, c * 4, 1), *bias = normal(SMELT_FLOAT16, c, 1),
                      *y = room(SMELT_FLOAT16, n * c), *after = room(SMELT_FLOAT16, 3 * c);
        double *expected = doubles(n * c), *bound = doubles(n * c), *kept = doubles(3 * c);
        for (uint32_t t = 0; t < n; t++)
            for (uint32_t ch = 0; ch < c; ch++) {
                double sum = bias->value[ch], size = fabs(sum);
                for (int k = 0; k < 4; k++) {
                    int at = (int)t + k - 3;
                    double term =
                        w->value[ch * 4 + (uint32_t)k] * (at < 0 ? before->value[(uint32_t)(at + 3) * c + ch]
                                                                 : x->value[(uint32_t)at * c + ch]);
                    sum += term, size += fabs(term);
                }
                expected[t * c + ch] = sum / (1 + exp(-sum));
                /* The slope of silu is at most 1.1. */
                bound[t * c + ch] =
                    12 * 0x1p-24 * size + fabs(expected[t * c + ch]) * (0x1p-11 + 8 * 0x1p-24) + 0x1p-25;
            }
        for (uint32_t j = 0; j < 3 * c; j++) kept[j] = x->value[(n - 3) * c + j];
        RUN(FILE_, .entry = "causal_conv1d_silu_f16_4", .in = {x, before, w, bias}, .out = {[4] = y, after},
            .bytes = {[6] = BYTES(uint32_t, n), [7] = BYTES(uint32_t, c)}, .grid = {c, n},
            .threadgroup = {64, 2});
        check_bounds("causal convolution", y, expected, bound);
        check("its state", after, kept, 0, 0);
    }
}

ML_MAIN(ML_TEST(gated_delta), ML_TEST(delta_by_heads), ML_TEST(selective), ML_TEST(linear_recurrence),
        ML_TEST(wkv), ML_TEST(causal_conv))
