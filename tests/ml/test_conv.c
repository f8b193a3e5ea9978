/* Convolutions against float64: a sum of n products is off by at most (n + 2)·u·Σ|x·w|. */
#include "ml.h"

#define FILE_ .file = "conv.metal"

struct params {
    int n, c, o, in[2], window[2], out[2], stride[2], pad[2], dilation[2], groups;
};

static void set_out(struct params *p) {
    for (int d = 0; d < 2; d++)
        p->out[d] = (p->in[d] + 2 * p->pad[d] - p->dilation[d] * (p->window[d] - 1) - 1) / p->stride[d] + 1;
}

/* `last`: channels last (NHWC by O, kh, kw, C), else first (NCHW by O, C / groups, kh, kw). */
static void conv2d(const struct params *p, bool last, const double *x, const double *w, double *y,
                   double *bound) {
    int each = p->c / p->groups;
    for (int n = 0; n < p->n; n++)
        for (int o = 0; o < p->o; o++)
            for (int i = 0; i < p->out[0]; i++)
                for (int j = 0; j < p->out[1]; j++) {
                    double sum = 0, size = 0;
                    for (int c = 0; c < each; c++)
                        for (int ky = 0; ky < p->window[0]; ky++)
                            for (int kx = 0; kx < p->window[1]; kx++) {
                                int row = i * p->stride[0] + ky * p->dilation[0] - p->pad[0],
                                    column = j * p->stride[1] + kx * p->dilation[1] - p->pad[1];
                                if (row < 0 || row >= p->in[0] || column < 0 || column >= p->in[1]) continue;
                                int channel = o / (p->o / p->groups) * each + c;
                                double term =
                                    last ? x[((n * p->in[0] + row) * p->in[1] + column) * p->c + channel] *
                                               w[((o * p->window[0] + ky) * p->window[1] + kx) * each + c]
                                         : x[((n * p->c + channel) * p->in[0] + row) * p->in[1] + column] *
                                               w[((o * each + c) * p->window[0] + ky) * p->window[1] + kx];
                                sum += term, size += fabs(term);
                            }
                    int to = last ? ((n * p->out[0] + i) * p->out[1] + j) * p->o + o
                                  : ((n * p->o + o) * p->out[0] + i) * p->out[1] + j;
                    y[to] = sum;
                    bound[to] = size * (each * p->window[0] * p->window[1] + 3) * 0x1p-24;
                }
}

static struct params cases[] = {
    {1, 1, 1, {1, 1}, {1, 1}, {0}, {1, 1}, {0, 0}, {1, 1}, 1},
    {2, 3, 5, {13, 17}, {3, 3}, {0}, {1, 1}, {1, 1}, {1, 1}, 1},
    {1, 6, 4, {20, 9}, {5, 2}, {0}, {2, 3}, {3, 0}, {2, 1}, 2},
    {1, 8, 8, {7, 33}, {3, 3}, {0}, {1, 2}, {2, 2}, {1, 2}, 8},
};

static void direct(void **s) {
    (void)s;
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            struct params p = cases[i];
            set_out(&p);
            bool has_bias = i & 1;
            smelt_dtype dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32;
            struct tensor *x = normal(dtype, p.n * p.c * p.in[0] * p.in[1], 1),
                          *w = normal(dtype, p.o * (p.c / p.groups) * p.window[0] * p.window[1], 1),
                          *bias = normal(SMELT_FLOAT32, p.o, 1),
                          *y = room(dtype, p.n * p.o * p.out[0] * p.out[1]);
            double *expected = doubles(y->count), *bound = doubles(y->count);
            conv2d(&p, false, x->value, w->value, expected, bound);
            for (int j = 0; j < y->count; j++) {
                double b = has_bias ? bias->value[j / (p.out[0] * p.out[1]) % p.o] : 0;
                expected[j] += b;
                bound[j] += fabs(b) * 0x1p-17 + fabs(expected[j]) * roundoff(dtype) * 1.01;
            }
            RUN(FILE_, .entry = half ? "conv2d_f16" : "conv2d_f32", .in = {[1] = x, w, bias},
                .out = {[4] = y}, .bytes = {{&p, sizeof p}, [5] = BYTES(bool, has_bias)},
                .groups = {(y->count + 63) / 64}, .threadgroup = {64});
            check_bounds("conv2d", y, expected, bound);
        }
}

static void one_dimension(void **s) {
    (void)s;
    static const uint64_t shapes[][8] = {/* batch, in, out, length, window, stride, padding, dilation */
                                         {1, 1, 1, 1, 1, 1, 0, 1},
                                         {2, 3, 5, 33, 4, 1, 3, 1},
                                         {1, 7, 2, 131, 5, 3, 2, 2}};
    for (int i = 0; i < 3; i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            const uint64_t *a = shapes[i];
            struct params p = {(int)a[0], (int)a[1],      (int)a[2],      {1, (int)a[3]}, {1, (int)a[4]},
                               {0},       {1, (int)a[5]}, {0, (int)a[6]}, {1, (int)a[7]}, 1};
            set_out(&p);
            smelt_dtype dtype = narrow ? SMELT_BFLOAT16 : SMELT_FLOAT32;
            struct tensor *x = normal(dtype, p.n * p.c * p.in[1], 1),
                          *w = normal(dtype, p.o * p.c * p.window[1], 1),
                          *y = room(dtype, p.n * p.o * p.out[1]);
            double *expected = doubles(y->count), *bound = doubles(y->count);
            conv2d(&p, false, x->value, w->value, expected, bound);
            for (int j = 0; j < y->count; j++) bound[j] += fabs(expected[j]) * roundoff(dtype) * 1.01;
            struct launch l = {FILE_,
                               .entry = narrow ? "conv1d_bf16" : "conv1d_f32",
                               .in = {[8] = x, w},
                               .out = {[10] = y},
                               .grid = {y->count + 5},
                               .threadgroup = {32}};
            for (int j = 0; j < 8; j++) l.bytes[j] = (struct bytes){&a[j], 8};
            launch(l);
            check_bounds("conv1d", y, expected, bound);
        }
}

static void depthwise(void **s) {
    (void)s;
    for (int i = 0; i < 2; i++) {
        const int h = i ? 19 : 5, w = i ? 11 : 8, c = i ? 12 : 4, kh = i ? 5 : 3, kw = 3, pad = 1;
        struct params p = {1, c, c, {h, w}, {kh, kw}, {0}, {1, 1}, {pad, pad}, {1, 1}, c};
        set_out(&p);
        struct tensor *x = normal(SMELT_FLOAT16, h * w * c, 1), *k = normal(SMELT_FLOAT16, kh * kw * c, 1),
                      *y = room(SMELT_FLOAT16, p.out[0] * p.out[1] * c);
        /* The reference has the weights ordered by channels. */
        double *weights = doubles(k->count), *expected = doubles(y->count), *bound = doubles(y->count);
        for (int j = 0; j < k->count; j++) weights[j % c * kh * kw + j / c] = k->value[j];
        conv2d(&p, true, x->value, weights, expected, bound);
        for (int j = 0; j < y->count; j++) bound[j] += fabs(expected[j]) * 0x1p-11 * 1.01;
        RUN(FILE_, .entry = "depthwise_tiles_half",
            .constants = {{0, SMELT_INT32, {.integer = kh}}, {1, SMELT_INT32, {.integer = kw}}}, .in = {x, k},
            .out = {[2] = y}, .bytes = {[3] = BYTES(int, h, w, c, pad)},
            .threadgroup_memory = {(size_t)((8 + kh - 1) * (8 + kw - 1) * 8)},
            .groups = {(p.out[1] + 7) / 8, (p.out[0] + 7) / 8, c / 4}, .threadgroup = {8, 8});
        check_bounds("depthwise", y, expected, bound);
    }
}

/* Columns, exactly; another test multiplies them with the weights. */
static void columns(void **s) {
    (void)s;
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            struct params p = cases[i];
            p.groups = 1;
            set_out(&p);
            int window = p.window[0] * p.window[1], deep = p.c * window, places = p.out[0] * p.out[1];
            struct tensor *x = normal(SMELT_FLOAT32, p.n * p.c * p.in[0] * p.in[1], 1),
                          *y = room(half ? SMELT_FLOAT16 : SMELT_FLOAT32, p.n * places * deep);
            double *expected = doubles(y->count);
            for (int64_t j = 0; j < y->count; j++) {
                int k = (int)(j % deep), at = (int)(j / deep % places), n = (int)(j / deep / places);
                int row = at / p.out[1] * p.stride[0] + k % window / p.window[1] * p.dilation[0] - p.pad[0],
                    column = at % p.out[1] * p.stride[1] + k % p.window[1] * p.dilation[1] - p.pad[1];
                if (row >= 0 && row < p.in[0] && column >= 0 && column < p.in[1])
                    expected[j] = x->value[((n * p.c + k / window) * p.in[0] + row) * p.in[1] + column];
            }
            struct tensor *exact = rounded(y->dtype, y->count, expected);
            RUN(FILE_, .entry = half ? "image_to_columns_f16" : "image_to_columns_f32", .in = {[1] = x},
                .out = {[2] = y}, .bytes = {{&p, sizeof p}}, .grid = {deep, places, p.n},
                .threadgroup = {32, 3, 1});
            check("im2col", y, exact->value, 0, 0);
        }
}

static void implicit_product(void **s) {
    (void)s;
    for (int i = 0; i < 4; i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            struct params p = cases[i];
            p.groups = 1;
            set_out(&p);
            smelt_dtype dtype = narrow ? SMELT_BFLOAT16 : SMELT_FLOAT32;
            struct tensor *x = normal(dtype, p.n * p.c * p.in[0] * p.in[1], 1),
                          *w = normal(dtype, p.o * p.c * p.window[0] * p.window[1], 1),
                          *y = room(dtype, p.n * p.o * p.out[0] * p.out[1]);
            double *expected = doubles(y->count), *bound = doubles(y->count);
            conv2d(&p, true, x->value, w->value, expected, bound);
            for (int j = 0; j < y->count; j++) bound[j] += fabs(expected[j]) * roundoff(dtype) * 1.01;
            RUN(FILE_, .entry = narrow ? "implicit_gemm_conv_2d_bfloat16" : "implicit_gemm_conv_2d_float32",
                .in = {x, w}, .out = {[2] = y}, .bytes = {[3] = {&p, sizeof p}},
                .groups = {(p.o + 15) / 16, (p.n * p.out[0] * p.out[1] + 15) / 16}, .threadgroup = {32});
            check_bounds("implicit product", y, expected, bound);
        }
}

static void transposed(void **s) {
    (void)s;
    static const int shapes[][5] = {/* in, out, length, window, stride */ {1, 1, 1, 1, 1}, {3, 5, 31, 4, 2}};
    for (int i = 0; i < 2; i++) {
        const int in = shapes[i][0], out = shapes[i][1], length = shapes[i][2], window = shapes[i][3],
                  stride = shapes[i][4], wide = (length - 1) * stride + window;
        struct tensor *w = normal(SMELT_FLOAT16, in * out * window, 1),
                      *x = normal(SMELT_FLOAT32, in * length, 1), *y = room(SMELT_FLOAT32, out * wide);
        double *expected = doubles(y->count), *bound = doubles(y->count);
        for (int c = 0; c < in; c++)
            for (int o = 0; o < out; o++)
                for (int l = 0; l < length; l++)
                    for (int k = 0; k < window; k++) {
                        double term = x->value[c * length + l] * w->value[(c * out + o) * window + k];
                        expected[o * wide + l * stride + k] += term;
                        bound[o * wide + l * stride + k] += fabs(term) * (in * window + 2) * 0x1p-24;
                    }
        RUN(FILE_, .entry = "conv1d_transposed", .in = {[1] = w, x}, .out = {[3] = y},
            .bytes = {BYTES(int, in, out, length, window, stride)}, .grid = {wide, out},
            .threadgroup = {16, 4});
        check_bounds("transposed convolution", y, expected, bound);
    }
}

static void pooling(void **s) {
    (void)s;
    for (uint32_t kind = 0; kind < 2; kind++) {
        struct {
            uint32_t kind, unused;
            int window[2], stride[2], pad[2], size[2], out[2];
        } a = {kind, 0, {3, 2}, {2, 2}, {1, 1}, {13, 31}, {7, 16}};
        struct tensor *x = normal(SMELT_FLOAT16, 3 * 13 * 31, 1), *y = room(SMELT_FLOAT16, 3 * 7 * 16);
        double *expected = doubles(y->count);
        for (int i = 0; i < y->count; i++) {
            double top = -INFINITY, sum = 0;
            int column = i % 16 * 2 - 1, row = i / 16 % 7 * 2 - 1, plane = i / 16 / 7;
            for (int r = row; r < row + 3; r++)
                for (int c = column; c < column + 2; c++) {
                    if (r < 0 || r >= 13 || c < 0 || c >= 31) continue;
                    top = fmax(top, x->value[(plane * 13 + r) * 31 + c]);
                    sum += x->value[(plane * 13 + r) * 31 + c];
                }
            expected[i] = kind ? sum / 6 : top;
        }
        RUN(FILE_, .entry = "pool_2d", .in = {[1] = x}, .out = {[2] = y}, .bytes = {{&a, sizeof a}},
            .groups = {3, 2, 3}, .threadgroup = {7, 5});
        check("pooling", y, expected, kind ? 0x1p-11 * 1.01 : 0, kind ? 6 * 0x1p-22 : 0);
    }
}

ML_MAIN(ML_TEST(direct), ML_TEST(one_dimension), ML_TEST(depthwise), ML_TEST(columns),
        ML_TEST(implicit_product), ML_TEST(transposed), ML_TEST(pooling))
