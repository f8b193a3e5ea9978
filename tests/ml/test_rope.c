/* Rotary embeddings against float64. An angle θ has a relative error of a few u (product, quotient, power),
 * so sine and cosine have an absolute error of that times |θ|, plus 2 ulp of their own. */
#include "ml.h"

#define FILE_ .file = "rope.metal"
#define FLAGS(f, t, h)                                                      \
    {                                                                       \
        {1, SMELT_BOOL, {.integer = f}}, {2, SMELT_BOOL, {.integer = t}}, { \
            3, SMELT_BOOL, {                                                \
                .integer = h                                                \
            }                                                               \
        }                                                                   \
    }

/* Rotates x[first], x[second] of one head, and sets the bound. */
static void rotate(const double *x, double *y, double *bound, int first, int second, double theta,
                   bool forward, double magnitude, double u, double steps) {
    double c = cos(theta) * magnitude, s = (forward ? 1 : -1) * sin(theta) * magnitude;
    y[first] = x[first] * c - x[second] * s;
    y[second] = x[first] * s + x[second] * c;
    double size = fabs(x[first]) + fabs(x[second]);
    bound[first] = size * magnitude * (steps * fabs(theta) + 8) * 0x1p-24 + fabs(y[first]) * u + u * 0x1p-13;
    bound[second] =
        size * magnitude * (steps * fabs(theta) + 8) * 0x1p-24 + fabs(y[second]) * u + u * 0x1p-13;
}

static void one_position(void **s) {
    (void)s;
    static const int half_dims[] = {1, 16, 33};
    for (int i = 0; i < 3; i++)
        for (int flags = 0; flags < 4; flags++) {
            bool forward = flags & 1, traditional = flags & 2;
            int half = half_dims[i], heads = 5, offset = (int)random_below(4000);
            struct tensor *x = normal(SMELT_FLOAT16, heads * half * 2, 1), *y = room(SMELT_FLOAT16, x->count);
            double *expected = doubles(x->count), *bound = doubles(x->count);
            float base = 13.28771f; /* log2(10000) */
            for (int h = 0; h < heads; h++)
                for (int d = 0; d < half; d++) {
                    double theta = 0.5 * offset * exp2(-(double)d / half * (double)base);
                    rotate(x->value + h * half * 2, expected + h * half * 2, bound + h * half * 2,
                           traditional ? 2 * d : d, traditional ? 2 * d + 1 : d + half, theta, forward, 1,
                           0x1p-11, 4 + 14 * 2);
                }
            RUN(FILE_, .entry = "rope_one_float16", .constants = FLAGS(forward, traditional, 0), .in = {x},
                .out = {[1] = y},
                .bytes = {[2] = BYTES(int, offset),
                          [3] = BYTES(float, 0.5f),
                          [4] = BYTES(int64_t, half * 2),
                          [10] = BYTES(float, base)},
                .grid = {half, heads}, .threadgroup = {32, 4});
            check_bounds("rope_one", y, expected, bound);
        }
}

static void given_frequencies(void **s) {
    (void)s;
    static const int cases[][4] = {
        /* batch, heads, length, half */ {1, 1, 1, 1}, {2, 5, 7, 12}, {1, 6, 33, 17}};
    for (int i = 0; i < 3; i++)
        for (int flags = 0; flags < 8; flags++) {
            bool forward = flags & 1, traditional = flags & 2, transposed = flags & 4;
            if ((i == 0 && flags) || (i == 2 && flags != 2 && flags != 5)) continue;
            int batch = cases[i][0], heads = cases[i][1], length = cases[i][2], half = cases[i][3],
                dims = 2 * half;
            bool narrow = i == 1;
            smelt_dtype dtype = narrow ? SMELT_BFLOAT16 : SMELT_FLOAT32;
            int64_t all = (int64_t)batch * heads * length * dims;
            struct tensor *x = normal(dtype, all, 1), *y = room(dtype, all),
                          *freqs = room(SMELT_FLOAT32, half), *offsets = uniform(SMELT_INT32, batch, 0, 500);
            for (int d = 0; d < half; d++) ((float *)freqs->data)[d] = powf(10000, (float)d / (float)half);
            changed(freqs);
            double *expected = doubles(all), *bound = doubles(all), *in = doubles(dims), *out = doubles(dims),
                   *limit = doubles(dims);
            for (int b = 0; b < batch; b++)
                for (int h = 0; h < heads; h++)
                    for (int l = 0; l < length; l++) {
                        int64_t to = ((int64_t)(b * heads + h) * length + l) * dims;
                        int64_t from = transposed ? ((int64_t)(b * length + l) * heads + h) * dims : to;
                        memcpy(in, x->value + from, (size_t)dims * sizeof *in);
                        for (int d = 0; d < half; d++)
                            rotate(in, out, limit, traditional ? 2 * d : d,
                                   traditional ? 2 * d + 1 : d + half,
                                   0.25 * (l + offsets->value[b]) / freqs->value[d], forward, 1,
                                   roundoff(dtype), 4);
                        memcpy(expected + to, out, (size_t)dims * sizeof *out);
                        memcpy(bound + to, limit, (size_t)dims * sizeof *limit);
                    }
            struct {
                int64_t x_position, x_head, y_position, y_head;
                int heads;
                float scale;
            } layout = {dims, length * dims, dims, length * dims, heads, 0.25f};
            RUN(FILE_, .entry = narrow ? "rope_many_bfloat16" : "rope_many_float32",
                .constants = FLAGS(forward, traditional, transposed), .in = {x, [2] = offsets, freqs},
                .out = {[1] = y}, .bytes = {[4] = {&layout, sizeof layout}},
                .grid = {half, length, batch * ((heads + 3) / 4)}, .threadgroup = {8, 4, 1});
            check_bounds("rope_many", y, expected, bound);
        }
}

static void yarn(void **s) {
    (void)s;
    for (int mixed = 0; mixed < 2; mixed++)
        for (int half = 0; half < 2; half++) {
            enum { HEADS = 3, TOKENS = 5 };
            struct {
                int32_t dims, rotated;
                float base, squeeze, mix, magnitude, ramp[2];
            } args = {100, 64, 10000, 0.25f, (float)mixed, 1.0f, {5, 20}};
            smelt_dtype dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32;
            int64_t all = HEADS * TOKENS * args.dims;
            struct tensor *x = normal(dtype, all, 1), *y = room(dtype, all),
                          *positions = uniform(SMELT_INT32, TOKENS, 0, 1000);
            double *expected = doubles(all), *bound = doubles(all);
            memcpy(expected, x->value, (size_t)all * sizeof *expected);
            for (int row = 0; row < HEADS * TOKENS; row++)
                for (int d = 0; d < args.rotated / 2; d++) {
                    double outer = positions->value[row / HEADS] * pow(10000, -2.0 * d / args.rotated),
                           ramp = 1 - fmin(1, fmax(0, (d - 5) / 15.0));
                    double theta = mixed ? 0.25 * outer * (1 - ramp) + outer * ramp : 0.25 * outer;
                    rotate(x->value + row * args.dims, expected + row * args.dims, bound + row * args.dims, d,
                           d + args.rotated / 2, theta, true, mixed ? 1 + 0.1 * log(4) : 1, roundoff(dtype),
                           40);
                }
            RUN(FILE_, .entry = half ? "rope_yarn_f16" : "rope_yarn_f32", .in = {[1] = positions, x},
                .out = {[3] = y}, .bytes = {{&args, sizeof args}}, .groups = {HEADS, TOKENS},
                .threadgroup = {19});
            check_bounds("rope by YaRN", y, expected, bound);
        }
}

ML_MAIN(ML_TEST(one_position), ML_TEST(given_frequencies), ML_TEST(yarn))
