/* Norms and their gradients against float64. Bounds: sums of n terms cost n·u each (n / threads + 10 steps,
 * taken as all n for short rows); x - mean loses u·(|x| + |mean|). */
#include "ml.h"

#define FILE_ .file = "norm.metal"
#define EPS 1e-5f

static void rms_rows(void **s) {
    (void)s;
    static const struct {
        const char *entry;
        smelt_dtype dtype;
    } kinds[] = {{"rms_row_float32", SMELT_FLOAT32},
                 {"rms_row_float16", SMELT_FLOAT16},
                 {"rms_row_bfloat16", SMELT_BFLOAT16}};
    static const uint32_t widths[] = {1, 31, 129, 1025};
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < 4; i++) {
            uint32_t n = widths[i], rows = 3, threads = ((n + 3) / 4 + 31) / 32 * 32, stride = i != 1;
            smelt_dtype dtype = kinds[kind].dtype;
            struct tensor *x = normal(dtype, n * rows, 2), *w = normal(dtype, stride ? n : 1, 1),
                          *y = room(dtype, n * rows);
            double *expected = doubles(n * rows);
            for (uint32_t r = 0; r < rows; r++) {
                double sum = 0;
                for (uint32_t k = 0; k < n; k++) sum += x->value[r * n + k] * x->value[r * n + k];
                for (uint32_t k = 0; k < n; k++)
                    expected[r * n + k] =
                        w->value[stride * k] * x->value[r * n + k] / sqrt(sum / n + (double)EPS);
            }
            RUN(FILE_, .entry = kinds[kind].entry, .in = {x, w}, .out = {[2] = y},
                .bytes = {[3] = BYTES(float, EPS), [4] = BYTES(uint32_t, n, stride)}, .groups = {rows},
                .threadgroup = {threads});
            /* The squares' sum (halved by the root), the root, and two roundings to the type. */
            check(kinds[kind].entry, y, expected, 20 * 0x1p-24 + 2.1 * roundoff(dtype),
                  dtype == SMELT_FLOAT16 ? 0x1p-22 : 0);
        }
}

static void rms_fused(void **s) {
    (void)s;
    static const int widths[] = {4, 36, 1028};
    for (int i = 0; i < 3; i++)
        for (int four = 0; four < 2; four++) {
            int n = widths[i] - (four ? 0 : 1), rows = 2;
            struct tensor *x = normal(SMELT_FLOAT32, n * rows, 1), *w = normal(SMELT_FLOAT32, n, 1),
                          *b = normal(SMELT_FLOAT32, n, 1), *y = room(SMELT_FLOAT32, n * rows);
            double *expected = doubles(n * rows), *bound = doubles(n * rows);
            for (int r = 0; r < rows; r++) {
                double sum = 0;
                for (int k = 0; k < n; k++) sum += x->value[r * n + k] * x->value[r * n + k];
                for (int k = 0; k < n; k++) {
                    expected[r * n + k] = x->value[r * n + k] / sqrt(sum / n + (double)EPS) * w->value[k];
                    bound[r * n + k] = fabs(expected[r * n + k]) * (n / 128.0 + 24) * 0x1p-24;
                    if (!four) continue;
                    expected[r * n + k] += b->value[k];
                    bound[r * n + k] += fabs(expected[r * n + k]) * 0x1p-24;
                }
            }
            struct {
                int32_t ne00, ne00_t;
                uint64_t nb01;
                float eps;
            } args = {n, four ? n / 4 : n, (uint64_t)n * 4, EPS};
            RUN(FILE_, .entry = four ? "rms_fused_weight_shift_4" : "rms_fused_weight", .in = {[1] = x, w, b},
                .out = {[4] = y}, .bytes = {{&args, sizeof args}}, .groups = {rows},
                .threadgroup = {four ? 64 : 128});
            check_bounds("fused rms norm", y, expected, bound);
        }
}

static void layer_norm(void **s) {
    (void)s;
    static const uint32_t widths[] = {1, 33, 1025, 5001};
    for (int i = 0; i < 4; i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            uint32_t n = widths[i], rows = 2;
            smelt_dtype dtype = narrow ? SMELT_BFLOAT16 : SMELT_FLOAT32;
            struct tensor *x = normal(dtype, n * rows, 2), *w = normal(dtype, n, 1), *b = normal(dtype, 1, 1),
                          *y = room(dtype, n * rows);
            double *expected = doubles(n * rows), *bound = doubles(n * rows);
            for (uint32_t r = 0; r < rows; r++) {
                const double *xr = x->value + r * n;
                double mean = 0, size = 0, square = 0;
                for (uint32_t k = 0; k < n; k++) mean += xr[k] / n, size += fabs(xr[k]) / n;
                for (uint32_t k = 0; k < n; k++) square += (xr[k] - mean) * (xr[k] - mean) / n;
                double scale = 1 / sqrt(square + (double)EPS), steps = n / 64.0 + 20;
                for (uint32_t k = 0; k < n; k++) {
                    double v = (xr[k] - mean) * scale;
                    expected[r * n + k] = w->value[k] * v + b->value[0];
                    /* A shift of all elements by the mean's error, the scale's error, then two roundings to
                     * the type. */
                    bound[r * n + k] =
                        fabs(w->value[k]) * (scale * (steps * size + fabs(xr[k])) + steps * fabs(v)) *
                            0x1p-24 +
                        (2 * fabs(w->value[k] * v) + fabs(expected[r * n + k])) * roundoff(dtype);
                }
            }
            RUN(FILE_, .entry = narrow ? "layer_norm_long_bfloat16" : "layer_norm_long_float32",
                .in = {x, w, b}, .out = {[3] = y},
                .bytes = {[4] = BYTES(float, EPS), [5] = BYTES(uint32_t, n, 1, 0, 0)}, .groups = {rows},
                .threadgroup = {64});
            check_bounds("layer_norm", y, expected, bound);
        }
}

static void layer_norm_gradient(void **s) {
    (void)s;
    static const uint32_t widths[] = {3, 33, 300};
    for (int i = 0; i < 3; i++)
        for (int has_w = 0; has_w < 2; has_w++) {
            uint32_t n = widths[i], rows = 3, threads = ((n + 3) / 4 + 31) / 32 * 32;
            struct tensor *x = normal(SMELT_FLOAT32, n * rows, 1),
                          *w = normal(SMELT_FLOAT32, has_w ? n : 1, 1),
                          *g = normal(SMELT_FLOAT32, n * rows, 1), *gx = room(SMELT_FLOAT32, n * rows),
                          *gw = room(SMELT_FLOAT32, n * rows);
            double *ex = doubles(n * rows), *ew = doubles(n * rows), *bound = doubles(n * rows);
            for (uint32_t r = 0; r < rows; r++) {
                const double *xr = x->value + r * n, *gr = g->value + r * n;
                double mean = 0, square = 0, wg = 0, wgx = 0, size = 0, gsize = 0;
                for (uint32_t k = 0; k < n; k++) mean += xr[k] / n, size = fmax(size, fabs(xr[k]));
                for (uint32_t k = 0; k < n; k++) {
                    double c = w->value[has_w ? k : 0] * gr[k];
                    square += (xr[k] - mean) * (xr[k] - mean) / n;
                    wg += c / n, wgx += c * (xr[k] - mean) / n;
                    gsize = fmax(gsize, fabs(c));
                }
                double scale = 1 / sqrt(square + (double)EPS);
                for (uint32_t k = 0; k < n; k++) {
                    double v = (xr[k] - mean) * scale;
                    ex[r * n + k] = scale * (w->value[has_w ? k : 0] * gr[k] - wg) - v * wgx * scale * scale;
                    ew[r * n + k] = has_w ? gr[k] * v : NAN;
                    /* All terms are at most gsize·(1 + |v|)·scale, with 40 steps of rounding: 4 numbers per
                     * thread, 10 shuffles, the shift by the mean. */
                    bound[r * n + k] = 60 * 0x1p-24 * scale * gsize * (2 + 4 * size * scale) * (2 + fabs(v));
                }
            }
            RUN(FILE_, .entry = "layer_norm_gradient", .constants = {{20, SMELT_BOOL, {.integer = has_w}}},
                .in = {x, w, g}, .out = {[3] = gx, [4] = gw},
                .bytes = {[5] = BYTES(float, EPS), [6] = BYTES(uint32_t, n)}, .groups = {rows},
                .threadgroup = {threads});
            check_bounds("gradient of layer_norm by x", gx, ex, bound);
            check("gradient of layer_norm by w", gw, ew, 40 * 0x1p-24, 60 * 0x1p-24 * 20);
        }
}

static void group_norm(void **s) {
    (void)s;
    static const uint32_t cases[][4] = {/* images, channels, groups, pixels */
                                        {1, 2, 1, 1},
                                        {2, 6, 3, 35},
                                        {1, 32, 8, 121}};
    for (int i = 0; i < 3; i++)
        for (int half = 0; half < 2; half++) {
            const uint32_t *c = cases[i], n = c[1] / c[2] * c[3], all = c[0] * c[1] * c[3];
            smelt_dtype dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32;
            struct tensor *x = normal(dtype, all, 1), *gamma = normal(SMELT_FLOAT32, c[1], 1),
                          *beta = normal(SMELT_FLOAT32, c[1], 1), *y = room(dtype, all);
            double *expected = doubles(all), *bound = doubles(all);
            for (uint32_t g = 0; g < c[0] * c[2]; g++) {
                const double *xg = x->value + g * n;
                double mean = 0, square = 0, size = 0;
                for (uint32_t k = 0; k < n; k++) mean += xg[k] / n, size = fmax(size, fabs(xg[k]));
                for (uint32_t k = 0; k < n; k++) square += (xg[k] - mean) * (xg[k] - mean) / n;
                double scale = 1 / sqrt(square + (double)EPS), steps = 4 * (n / 96.0 + 12);
                for (uint32_t k = 0; k < n; k++) {
                    uint32_t channel = g % c[2] * (c[1] / c[2]) + k / c[3];
                    double v = (xg[k] - mean) * scale * gamma->value[channel];
                    expected[g * n + k] = v + beta->value[channel];
                    bound[g * n + k] = steps * 0x1p-24 *
                                           (fabs(gamma->value[channel]) * scale * size + fabs(v)) *
                                           (1 + size * size * scale) +
                                       fabs(expected[g * n + k]) * 2 * roundoff(dtype);
                }
            }
            RUN(FILE_, .entry = half ? "group_norm_f16" : "group_norm_f32", .in = {x, gamma, beta},
                .out = {[3] = y},
                .bytes = {[4] = BYTES(uint32_t, c[1], c[2], c[3], 0), [5] = BYTES(float, EPS)},
                .groups = {c[2], c[0]}, .threadgroup = {96});
            check_bounds("group_norm", y, expected, bound);
        }
}

ML_MAIN(ML_TEST(rms_rows), ML_TEST(rms_fused), ML_TEST(layer_norm), ML_TEST(layer_norm_gradient),
        ML_TEST(group_norm))
