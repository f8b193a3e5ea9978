/* Training kernels against float64. */
#include "ml.h"

#define FILE_ .file = "training.metal"

static void embeddings(void **s) {
    (void)s;
    enum { ROWS = 19, WIDTH = 37, TOKENS = 50 };
    for (int narrow = 0; narrow < 2; narrow++) {
        smelt_dtype d = narrow ? SMELT_UINT8 : SMELT_FLOAT16;
        struct tensor *table = uniform(d, ROWS * WIDTH, 0, 256),
                      *ids = uniform(narrow ? SMELT_INT32 : SMELT_INT64, TOKENS, -ROWS, ROWS),
                      *y = room(d, TOKENS * WIDTH);
        double *expected = doubles(y->count);
        for (int i = 0; i < TOKENS * WIDTH; i++) {
            int id = (int)ids->value[i / WIDTH];
            expected[i] = table->value[(id < 0 ? id + ROWS : id) * WIDTH + i % WIDTH];
        }
        RUN(FILE_, .entry = narrow ? "take_u8_i32" : "take_f16_i64", .in = {table, ids}, .out = {[2] = y},
            .bytes = {[3] = BYTES(int, ROWS, WIDTH)}, .grid = {WIDTH, TOKENS}, .threadgroup = {32, 3});
        check("take", y, expected, 0, 0);
    }
    /* Sums in any order: the engines may differ. */
    struct tensor *ids = uniform(SMELT_INT32, TOKENS, 0, ROWS),
                  *grads = normal(SMELT_FLOAT32, TOKENS * WIDTH, 1),
                  *table = normal(SMELT_FLOAT32, ROWS * WIDTH, 1);
    double *expected = doubles(table->count), *bound = doubles(table->count);
    for (int i = 0; i < ROWS * WIDTH; i++) expected[i] = table->value[i], bound[i] = fabs(expected[i]);
    for (int i = 0; i < TOKENS * WIDTH; i++) {
        int at = (int)ids->value[i / WIDTH] * WIDTH + i % WIDTH;
        expected[at] += grads->value[i], bound[at] += fabs(grads->value[i]);
    }
    for (int i = 0; i < ROWS * WIDTH; i++) bound[i] *= TOKENS * 0x1p-24;
    RUN(FILE_, .entry = "add_at_float", .in = {[1] = ids, grads}, .update = {table},
        .bytes = {[3] = BYTES(uint32_t, WIDTH)}, .grid = {WIDTH, TOKENS}, .threadgroup = {16, 4},
        .open = true);
    check_bounds("add at", table, expected, bound);
}

static void atomics_by_exchange(void **s) {
    (void)s;
    enum { N = 1000, CELLS = 7 };
    struct tensor *ids = uniform(SMELT_INT32, N, 0, CELLS), *values = normal(SMELT_FLOAT32, N, 1),
                  *table = constant_of(SMELT_FLOAT32, CELLS, -100),
                  /* Small multiples of 1/8: their sums are exact in half, in any order. */
                      *steps = uniform(SMELT_FLOAT16, N, 0, 1), *sums = constant_of(SMELT_FLOAT16, 8, 0);
    double top[CELLS], sum[8] = {0};
    for (int i = 0; i < CELLS; i++) top[i] = -100;
    double *eighths = doubles(N);
    for (int i = 0; i < N; i++) eighths[i] = floor(steps->value[i] * 8) / 8 - 0.5;
    steps = rounded(SMELT_FLOAT16, N, eighths);
    for (int i = 0; i < N; i++) {
        int at = (int)ids->value[i];
        top[at] = fmax(top[at], values->value[i]);
        sum[at] += steps->value[i];
    }
    RUN(FILE_, .entry = "max_at_float", .in = {[1] = ids, values}, .update = {table}, .grid = {N},
        .threadgroup = {96});
    check("max at", table, top, 0, 0);
    RUN(FILE_, .entry = "add_at_halves", .in = {[1] = ids, steps}, .update = {sums}, .grid = {N},
        .threadgroup = {64});
    check("add at halves", sums, sum, 0, 0);
}

/* An exponential of x - log_sum has the error of that difference's roundings; sums of n terms that of n /
 * threads + 12. */
static void cross_entropy(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 33, 1025};
    for (int i = 0; i < 3; i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            const uint32_t n = sizes[i], rows = 5;
            smelt_dtype d = narrow ? SMELT_BFLOAT16 : SMELT_FLOAT32;
            struct {
                uint32_t classes;
                int32_t ignored;
                float smoothing;
            } args = {n, -1, narrow ? 0.125f : 0};
            struct tensor *x = normal(d, n * rows, 4), *targets = uniform(SMELT_INT32, rows, 0, n),
                          *loss = room(SMELT_FLOAT32, rows), *sums = room(SMELT_FLOAT32, rows),
                          *scale = uniform(SMELT_FLOAT32, rows, 0, 1), *grads = room(d, n * rows);
            ((int32_t *)targets->data)[2] = -1;
            changed(targets);
            double *expected = doubles(rows), *logs = doubles(rows), *g = doubles(n * rows),
                   *bound = doubles(n * rows), smoothing = (double)args.smoothing;
            for (uint32_t r = 0; r < rows; r++) {
                const double *xr = x->value + r * n;
                double top = -INFINITY, sum = 0, plain = 0;
                for (uint32_t k = 0; k < n; k++) top = fmax(top, xr[k]), plain += xr[k];
                for (uint32_t k = 0; k < n; k++) sum += exp(xr[k] - top);
                logs[r] = top + log(sum);
                int target = (int)targets->value[r];
                if (target >= 0) expected[r] = logs[r] - (1 - smoothing) * xr[target] - smoothing * plain / n;
                for (uint32_t k = 0; k < n; k++) {
                    double p = exp(xr[k] - logs[r]);
                    if (target >= 0)
                        g[r * n + k] = (p - smoothing / n - (k == (uint32_t)target ? 1 - smoothing : 0)) *
                                       scale->value[r];
                    bound[r * n + k] = scale->value[r] * p * 0x1p-24 * (2 * (n / 96.0 + 60) + 40) +
                                       4 * 0x1p-24 * scale->value[r] +
                                       fabs(g[r * n + k]) * roundoff(d) * 1.01;
                }
            }
            RUN(FILE_, .entry = narrow ? "cross_entropy_bf16" : "cross_entropy_f32", .in = {x, targets},
                .out = {[2] = loss, sums}, .bytes = {[4] = {&args, sizeof args}}, .groups = {rows},
                .threadgroup = {96});
            check("log of sums", sums, logs, 4 * 0x1p-24, (n / 96.0 + 60) * 0x1p-24);
            check("cross-entropy", loss, expected, 8 * 0x1p-24, (n / 96.0 + 60) * 0x1p-24 * 8);
            RUN(FILE_, .entry = narrow ? "cross_entropy_back_bf16" : "cross_entropy_back_f32",
                .in = {x, targets, sums, scale}, .out = {[4] = grads}, .bytes = {[5] = {&args, sizeof args}},
                .grid = {n, rows}, .threadgroup = {32, 2});
            check_bounds("gradient of cross-entropy", grads, g, bound);
        }
}

static void adam(void **s) {
    (void)s;
    const int n = 1027, step = 3;
    struct {
        float rate, beta1, beta2, epsilon, decay, correction1, correction2;
    } a = {0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 1 - powf(0.9f, step), 1 - powf(0.999f, step)};
    const float clip = 0.75f;
    struct tensor *w = normal(SMELT_BFLOAT16, n, 1), *master = normal(SMELT_FLOAT32, n, 1),
                  *moments = uniform(SMELT_FLOAT32, 2 * n, 0.01, 1), *g = normal(SMELT_BFLOAT16, n, 1);
    double *ew = doubles(n), *em = doubles(2 * n);
    for (int i = 0; i < n; i++) {
        double grad = g->value[i] * 0.75, b1 = (double)a.beta1, b2 = (double)a.beta2, rate = (double)a.rate;
        em[2 * i] = b1 * moments->value[2 * i] + (1 - b1) * grad;
        em[2 * i + 1] = b2 * moments->value[2 * i + 1] + (1 - b2) * grad * grad;
        ew[i] = master->value[i] * (1 - rate * (double)a.decay) -
                rate * em[2 * i] / (double)a.correction1 /
                    (sqrt(em[2 * i + 1] / (double)a.correction2) + (double)a.epsilon);
    }
    RUN(FILE_, .entry = "adamw", .update = {w, master, moments}, .in = {[3] = g},
        .bytes = {[4] = {&a, sizeof a}, [5] = {&clip, 4}}, .grid = {n}, .threadgroup = {64});
    check("moments", moments, em, 8 * 0x1p-24, 16 * 0x1p-24);
    /* A step is at most rate · 1 / √(0.01 / 0.003), and small relative to the weight. */
    check("weights", master, ew, 4 * 0x1p-24, 16 * 0x1p-24);
    check("weights in bfloat16", w, master->value, 0x1p-8, 0);
}

static void histogram(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 33, 5003};
    for (int i = 0; i < 3; i++) {
        const uint32_t n = sizes[i];
        /* Most values fall into few bins. */
        struct tensor *pixels = uniform(SMELT_UINT8, 4 * n, 0, 256),
                      *bins = constant_of(SMELT_UINT32, 768, 5);
        uint32_t expected[768];
        for (int b = 0; b < 768; b++) expected[b] = 5;
        for (uint32_t k = 0; k < 4 * n; k++) {
            if (random_below(4)) ((uint8_t *)pixels->data)[k] &= 3;
            if (k % 4 < 3) expected[k % 4 * 256 + ((uint8_t *)pixels->data)[k]]++;
        }
        RUN(FILE_, .entry = "histogram_256", .in = {pixels}, .update = {[1] = bins},
            .bytes = {[2] = BYTES(uint32_t, n)}, .grid = {500}, .threadgroup = {200});
        check_exact("histogram", bins, expected);
    }
}

ML_MAIN(ML_TEST(embeddings), ML_TEST(atomics_by_exchange), ML_TEST(cross_entropy), ML_TEST(adam),
        ML_TEST(histogram))
