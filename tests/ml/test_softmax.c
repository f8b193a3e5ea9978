/* Softmax against float64. With exponents x - max in [-r, 0] of relative error r·u (from rounding the
 * difference) plus that of exp (fast::exp: 3 + ⌊2r⌋ ulp), and n additions, a quotient is off by twice (4r + 8
 * + n / threads + 12)·u. */
#include "ml.h"

#define FILE_ .file = "softmax.metal"

static double spread(const double *x, int n) {
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < n; i++) low = fmin(low, x[i]), high = fmax(high, x[i]);
    return high - low;
}

static void softmax(const double *x, int n, double *y) {
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) top = fmax(top, x[i]);
    for (int i = 0; i < n; i++) sum += y[i] = exp(x[i] - top);
    for (int i = 0; i < n; i++) y[i] /= sum;
}

static void whole_rows(void **s) {
    (void)s;
    static const struct {
        const char *entry;
        smelt_dtype dtype, sums;
        int reads;
    } kinds[] = {{"softmax_row_float32", SMELT_FLOAT32, SMELT_FLOAT32, 4},
                 {"softmax_row_precise_float16", SMELT_FLOAT16, SMELT_FLOAT32, 4},
                 {"softmax_row_float16", SMELT_FLOAT16, SMELT_FLOAT16, 2}};
    static const int widths[] = {1, 31, 129, 1025};
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < 4; i++) {
            int n = widths[i], rows = 3, threads = (n + kinds[kind].reads - 1) / kinds[kind].reads;
            threads = (threads + 31) / 32 * 32;
            struct tensor *x = normal(kinds[kind].dtype, rows * n, 2), *y = room(kinds[kind].dtype, rows * n);
            double *expected = doubles(rows * n), widest = 0;
            for (int r = 0; r < rows; r++) {
                softmax(x->value + r * n, n, expected + r * n);
                widest = fmax(widest, spread(x->value + r * n, n));
            }
            RUN(FILE_, .entry = kinds[kind].entry, .in = {x}, .out = {[1] = y},
                .bytes = {[2] = BYTES(int, n)}, .groups = {rows}, .threadgroup = {threads});
            double u = roundoff(kinds[kind].sums), steps = kinds[kind].reads + 5 + 5;
            /* Quotients below the smallest normal half lose digits: 2^-24 absolute. */
            check(kinds[kind].entry, y, expected,
                  2 * (4 * widest + 8 + steps) * u + roundoff(kinds[kind].dtype),
                  kinds[kind].dtype == SMELT_FLOAT16 ? 0x1p-23 : 0);
        }
}

static void masked(void **s) {
    (void)s;
    enum { HEADS = 2 };
    static const struct {
        bool mask, causal, sinks;
        int window, queries, keys, threads;
    } cases[] = {{false, false, false, 0, 3, 33, 32},  {true, false, false, 0, 5, 100, 64},
                 {false, true, false, 0, 31, 31, 32},  {true, true, true, 0, 7, 129, 96},
                 {false, true, true, 17, 33, 65, 128}, {false, false, false, 0, 1, 1025, 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            int nq = cases[i].queries, nk = cases[i].keys, offset = nk - nq;
            smelt_dtype dtype = narrow ? SMELT_BFLOAT16 : SMELT_FLOAT32;
            struct tensor *x = normal(dtype, HEADS * nq * nk, 3), *y = room(dtype, HEADS * nq * nk),
                          *mask = normal(narrow ? SMELT_FLOAT32 : SMELT_FLOAT16, nq * nk, 1),
                          *sinks = normal(SMELT_FLOAT32, HEADS, 1);
            for (int k = 0; k < nq * nk; k++)
                if (k % nk && random_below(5) == 0) mask->value[k] = -INFINITY;
            mask = rounded(mask->dtype, mask->count, mask->value);
            double *expected = doubles(y->count), *row = doubles(nk + 1), *out = doubles(nk + 1), widest = 0;
            for (int r = 0; r < HEADS * nq; r++) {
                int q = r % nq, last = q + offset, n = 0;
                for (int k = 0; k < nk; k++) {
                    row[k] = x->value[r * nk + k] * 0.125 + (cases[i].mask ? mask->value[q * nk + k] : 0);
                    if ((cases[i].causal && k > last) || (cases[i].window && last - k >= cases[i].window))
                        row[k] = -INFINITY;
                    else if (!isinf(row[k]))
                        out[n++] = row[k];
                }
                row[nk] = cases[i].sinks ? sinks->value[r / nq] : -INFINITY;
                widest = fmax(widest, spread(out, n) + 4);
                softmax(row, nk + 1, out);
                memcpy(expected + r * nk, out, (size_t)nk * sizeof *out);
            }
            struct launch l = {FILE_,
                               .entry = narrow ? "softmax_masked_bf16" : "softmax_masked_f32",
                               .constants = {{200, SMELT_BOOL, {.integer = cases[i].mask}},
                                             {201, SMELT_BOOL, {.integer = cases[i].causal}},
                                             {202, SMELT_BOOL, {.integer = cases[i].sinks}}},
                               .in = {x},
                               .out = {[1] = y},
                               .threadgroup_memory = {128},
                               .groups = {nq, HEADS},
                               .threadgroup = {cases[i].threads}};
            if (cases[i].window)
                l.constants[3] =
                    (smelt_constant){.index = 203, .dtype = SMELT_INT32, .value.integer = cases[i].window};
            if (cases[i].mask) l.in[2] = mask;
            if (cases[i].sinks) l.in[3] = sinks;
            struct {
                int heads, queries, keys, offset;
                float scale;
            } params = {HEADS, nq, nk, offset, 0.125f};
            l.bytes[4] = (struct bytes){&params, sizeof params};
            launch(l);
            check(l.entry, y, expected, 2 * (4 * widest + 8 + nk) * 0x1p-24 + roundoff(dtype), 0x1p-126);
        }
}

/* Vector loads, and rows with gaps between them. */
static void by_fours(void **s) {
    (void)s;
    static const int widths[] = {4, 36, 1028};
    for (int i = 0; i < 3; i++) {
        int n = widths[i], apart = n + 12;
        struct tensor *x = normal(SMELT_FLOAT32, 3 * apart, 2), *y = room(SMELT_FLOAT32, 3 * apart);
        double *expected = doubles(3 * apart);
        for (int k = 0; k < 3 * apart; k++) expected[k] = NAN;
        for (int r = 0; r < 3; r++) softmax(x->value + r * apart, n, expected + r * apart);
        RUN(FILE_, .entry = "softmax_by_fours", .in = {x}, .out = {[1] = y},
            .bytes = {[2] = BYTES(int64_t, n), [3] = BYTES(uint64_t, (uint64_t)apart * 4)}, .groups = {3},
            .threadgroup = {32});
        check("softmax_by_fours", y, expected, 2 * (20 + 8 + n / 32.0 + 8) * 0x1p-24, 0);
    }
}

static void backward(void **s) {
    (void)s;
    static const int widths[] = {1, 33, 1025};
    for (int i = 0; i < 3; i++)
        for (int half = 0; half < 2; half++) {
            int n = widths[i];
            smelt_dtype dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32;
            struct tensor *y = uniform(dtype, 2 * n, 0, 2.0 / n), *dy = normal(dtype, 2 * n, 1),
                          *dx = room(dtype, 2 * n);
            double *expected = doubles(2 * n), *bound = doubles(2 * n);
            for (int r = 0; r < 2; r++) {
                double dot = 0, size = 0;
                for (int k = r * n; k < (r + 1) * n; k++)
                    dot += y->value[k] * dy->value[k], size += fabs(y->value[k] * dy->value[k]);
                for (int k = r * n; k < (r + 1) * n; k++) {
                    expected[k] = y->value[k] * (dy->value[k] - dot);
                    bound[k] =
                        y->value[k] * ((n / 32.0 + 8) * size + 2 * fabs(dy->value[k] - dot)) * 0x1p-24 +
                        fabs(expected[k]) * roundoff(dtype) + (half ? 0x1p-24 : 0);
                }
            }
            RUN(FILE_, .entry = half ? "softmax_backward_f16" : "softmax_backward_f32", .in = {y, dy},
                .out = {[2] = dx}, .bytes = {[3] = BYTES(uint32_t, (uint32_t)n)}, .groups = {2},
                .threadgroup = {32});
            check_bounds("softmax_backward", dx, expected, bound);
        }
}

ML_MAIN(ML_TEST(whole_rows), ML_TEST(masked), ML_TEST(by_fours), ML_TEST(backward))
