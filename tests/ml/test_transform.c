/* Transforms against their definitions in float64. A transform in s steps of radix r has a relative error of
 * about s·(r + 4)·u in the 2-norm; twiddles of angles up to 2π add 8·u per step. */
#include "ml.h"

#define FILE_ .file = "transform.metal"
#define PI 3.14159265358979323846

/* x: n complex numbers; the first `count` outputs, and their bounds. */
static void dft(const double *x, int n, int count, bool inverse, double steps, double *y, double *bound) {
    double norm = 0;
    for (int i = 0; i < 2 * n; i++) norm += x[i] * x[i];
    for (int k = 0; k < count; k++) {
        double re = 0, im = 0;
        for (int i = 0; i < n; i++) {
            double angle = (inverse ? 2 : -2) * PI * (double)((int64_t)i * k % n) / n;
            re += x[2 * i] * cos(angle) - x[2 * i + 1] * sin(angle);
            im += x[2 * i] * sin(angle) + x[2 * i + 1] * cos(angle);
        }
        y[2 * k] = inverse ? re / n : re, y[2 * k + 1] = inverse ? im / n : im;
        /* An output is at most √n times the input's norm, and all its error may fall on one element. */
        bound[2 * k] = bound[2 * k + 1] = steps * 0x1p-24 * sqrt(norm * n) / (inverse ? n : 1);
    }
}

static void planned(void **s) {
    (void)s;
    static const struct {
        int n, threads;
        uint32_t plan;
    } plans[] = {{1024, 100, 0x2888}, {60, 15, 0x345}, {405, 81, 0x33335}, {2, 1, 0x2}, {512, 64, 0x4448}};
    for (int i = 0; i < 5; i++)
        for (int inverse = 0; inverse < 2; inverse++) {
            if (inverse && i != 1) continue;
            const int n = plans[i].n, batch = 3;
            bool real = i == 4;
            const int count = real ? n / 2 + 1 : n;
            double steps = 0;
            for (uint32_t plan = plans[i].plan; plan; plan >>= 4) steps += 8 + 12 + (plan & 15);
            struct tensor *x = normal(SMELT_FLOAT32, batch * n * (real ? 1 : 2), 1),
                          *y = room(SMELT_FLOAT32, batch * count * 2);
            double *expected = doubles(y->count), *bound = doubles(y->count), *in = doubles(2 * n);
            for (int b = 0; b < batch; b++) {
                for (int j = 0; j < 2 * n; j++)
                    in[j] = !real ? x->value[b * 2 * n + j] : j & 1 ? 0 : x->value[b * n + j / 2];
                dft(in, n, count, inverse, steps, expected + b * count * 2, bound + b * count * 2);
            }
            RUN(FILE_, .entry = real ? "fft_rows_real" : "fft_rows_complex",
                .constants = {{0, SMELT_BOOL, {.integer = inverse}},
                              {3, SMELT_UINT32, {.integer = plans[i].plan}}},
                .in = {x}, .out = {[1] = y}, .bytes = {[2] = BYTES(int, n)}, .groups = {batch},
                .threadgroup = {plans[i].threads});
            check_bounds("fft", y, expected, bound);
        }
}

static void in_passes(void **s) {
    (void)s;
    static const uint32_t sizes[] = {2, 64, 2048};
    for (int i = 0; i < 3; i++) {
        const uint32_t n = sizes[i];
        struct tensor *x = normal(SMELT_FLOAT32, 2 * n, 1), *from = x, *to = NULL;
        double *expected = doubles(2 * n), *bound = doubles(2 * n);
        dft(x->value, (int)n, (int)n, false, 12 * log2(n), expected, bound);
        for (uint32_t p = 1; p < n; p *= 2, from = to) {
            to = room(SMELT_FLOAT32, 2 * n);
            RUN(FILE_, .entry = "fft_pass_radix2", .in = {from}, .out = {[1] = to},
                .bytes = {[2] = BYTES(uint32_t, n / 2), [3] = BYTES(uint32_t, p)}, .grid = {n / 2},
                .threadgroup = {100});
        }
        check_bounds("fft in passes", to, expected, bound);
    }
}

/* Each step adds or subtracts two; the error is at most log2(n)·u·Σ|x|, and half rounds once more. */
static void hadamard(void **s) {
    (void)s;
    static const struct {
        const char *entry;
        smelt_dtype dtype;
        int n, threads, passes;
        float scale;
    } kinds[] = {{"hadamard_f32_512", SMELT_FLOAT32, 512, 128, 0, 0.044194174f},
                 {"hadamard_f16_64", SMELT_FLOAT16, 64, 32, 1, 0.125f},
                 {"hadamard_simd", SMELT_FLOAT32, 32, 32, 0, 1}};
    for (int kind = 0; kind < 3; kind++) {
        const int n = kinds[kind].n, batch = 5;
        smelt_dtype dtype = kinds[kind].dtype;
        struct tensor *x = normal(dtype, batch * n, 1), *y = room(dtype, batch * n);
        double *expected = doubles(y->count), *bound = doubles(y->count);
        for (int b = 0; b < batch; b++)
            for (int i = 0; i < n; i++) {
                double size = 0, sum = 0;
                for (int j = 0; j < n; j++) {
                    double v = x->value[b * n + j];
                    sum += __builtin_popcount((unsigned)(i & j)) & 1 ? -v : v;
                    size += fabs(v);
                }
                expected[b * n + i] = sum * (double)kinds[kind].scale;
                bound[b * n + i] =
                    size * (double)kinds[kind].scale * (11 * 0x1p-24 + kinds[kind].passes * roundoff(dtype));
            }
        struct launch l = {FILE_,
                           .entry = kinds[kind].entry,
                           .in = {x},
                           .out = {[1] = y},
                           .grid = {kinds[kind].threads * batch},
                           .threadgroup = {kinds[kind].threads}};
        if (kind != 2) l.bytes[2] = (struct bytes){&kinds[kind].scale, 4};
        launch(l);
        check_bounds(kinds[kind].entry, y, expected, bound);
    }
}

ML_MAIN(ML_TEST(planned), ML_TEST(in_passes), ML_TEST(hadamard))
