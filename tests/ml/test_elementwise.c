/* Elementwise kernels against float64; integers and copies exactly. An operation's error is that of its
 * functions, stated next to it, and one rounding to the type. */
#include "ml.h"

#define FILE_ .file = "elementwise.metal"

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double gelu_tanh(double x) {
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
static double gelu_erf(double x) {
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}
static double silu(double x) {
    return x / (1 + exp(-x));
}
static double square_int8(double x) {
    return (int8_t)((int)x * (int)x);
}

static void unary(void **s) {
    (void)s;
    static const struct {
        const char *entry;
        smelt_dtype dtype;
        double (*f)(double);
        double relative, absolute;
    } kinds[] = {{"v_abs_float16", SMELT_FLOAT16, fabs, 0, 0},
                 {"v_abs_int64", SMELT_INT64, fabs, 0, 0},
                 {"v_abs_uint32", SMELT_UINT32, fabs, 0, 0},
                 {"v_sigmoid_float32", SMELT_FLOAT32, sigmoid, 16 * 0x1p-24, 8 * 0x1p-24},
                 /* exp, the sum and the quotient each round to bfloat. */
                 {"v_sigmoid_bfloat16", SMELT_BFLOAT16, sigmoid, 4 * 0x1p-8, 4 * 0x1p-8},
                 {"v_gelu_tanh_float32", SMELT_FLOAT32, gelu_tanh, 8 * 0x1p-24, 40 * 0x1p-24},
                 /* The polynomial is good to 1.5e-7, times x / 2. */
                 {"v_gelu_erf_float16", SMELT_FLOAT16, gelu_erf, 1.1 * 0x1p-11, 1e-6},
                 {"v_silu_bfloat16", SMELT_BFLOAT16, silu, 1.1 * 0x1p-8, 0},
                 {"v_square_int8", SMELT_INT8, square_int8, 0, 0}};
    static const uint32_t sizes[] = {1, 31, 1027};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < 3; i++) {
            uint32_t n = sizes[i];
            smelt_dtype d = kinds[k].dtype;
            struct tensor *x = d == SMELT_INT64    ? uniform(d, n, -0x1p50, 0x1p50)
                               : d == SMELT_UINT32 ? uniform(d, n, 0, 0x1p32)
                               : d == SMELT_INT8   ? uniform(d, n, -128, 128)
                                                   : uniform(d, n, -9, 9),
                          *y = room(d, n);
            double *expected = doubles(n);
            for (uint32_t j = 0; j < n; j++) expected[j] = kinds[k].f(x->value[j]);
            RUN(FILE_, .entry = kinds[k].entry, .in = {x}, .out = {[1] = y},
                .bytes = {[2] = BYTES(uint32_t, n)}, .grid = {n / 8 + 1}, .threadgroup = {50});
            check(kinds[k].entry, y, expected, kinds[k].relative, kinds[k].absolute);
        }
}

static void binary(void **s) {
    (void)s;
    const int n = 1027;
    struct tensor *a = normal(SMELT_FLOAT16, n, 10), *b = normal(SMELT_FLOAT16, n, 10),
                  *c = room(SMELT_FLOAT16, n);
    double *expected = doubles(n);
    for (int i = 0; i < n; i++) expected[i] = a->value[i] + b->value[i];
    RUN(FILE_, .entry = "vv_add_float16", .in = {a, b}, .out = {[2] = c}, .grid = {n}, .threadgroup = {256});
    check("add", c, rounded(SMELT_FLOAT16, n, expected)->value, 0, 0);

    for (int sign = -1; sign < 2; sign += 2) {
        struct tensor *x = uniform(SMELT_INT32, 1, sign < 0 ? -100000 : 1, sign < 0 ? 0 : 100000),
                      *y = uniform(SMELT_INT32, n, -300, 300), *z = room(SMELT_INT32, n);
        for (int i = 0; i < n; i++)
            if (((int *)y->data)[i] == 0) ((int *)y->data)[i] = 7;
        changed(y);
        for (int i = 0; i < n; i++) expected[i] = floor(x->value[0] / y->value[i]);
        RUN(FILE_, .entry = "sv_floor_divide_int32", .in = {x, y}, .out = {[2] = z}, .grid = {n},
            .threadgroup = {64});
        check("floor_divide", z, expected, 0, 0);
    }

    struct tensor *u = uniform(SMELT_UINT8, n, 0, 256), *by = uniform(SMELT_UINT8, 1, 0, 8),
                  *v = room(SMELT_UINT8, n);
    for (int i = 0; i < n; i++) expected[i] = (uint8_t)((int)u->value[i] << (int)by->value[0]);
    RUN(FILE_, .entry = "vs_left_shift_uint8", .in = {u, by}, .out = {[2] = v}, .grid = {n},
        .threadgroup = {33});
    check("left_shift", v, expected, 0, 0);

    struct tensor *p = normal(SMELT_FLOAT32, n, 5), *q = normal(SMELT_FLOAT32, n, 5),
                  *r = room(SMELT_FLOAT32, n);
    ((float *)p->data)[3] = INFINITY, ((float *)p->data)[4] = -INFINITY, ((float *)q->data)[4] = -INFINITY;
    changed(p), changed(q);
    for (int i = 0; i < n; i++) {
        double top = fmax(p->value[i], q->value[i]), low = fmin(p->value[i], q->value[i]);
        expected[i] = isinf(top) ? top : top + log1p(exp(low - top));
    }
    RUN(FILE_, .entry = "vv_log_add_exp_float32", .in = {p, q}, .out = {[2] = r}, .grid = {n},
        .threadgroup = {100});
    check("log_add_exp", r, expected, 2 * 0x1p-24, 8 * 0x1p-24);
}

/* (3, 4, 5, 7): a with its first two axes exchanged, b one row for all. */
static void strided(void **s) {
    (void)s;
    const int shape[4] = {3, 4, 5, 7}, all = 3 * 4 * 5 * 7;
    const int64_t a_strides[4] = {35, 105, 7, 1}, b_strides[4] = {0, 0, 0, 1};
    for (int large = 0; large < 2; large++) {
        smelt_dtype d = large ? SMELT_BFLOAT16 : SMELT_FLOAT32;
        struct tensor *a = normal(d, all, 1), *b = normal(d, 7, 1), *c = room(d, all);
        if (large) {
            b->value[2] = NAN, a->value[9] = NAN;
            a = rounded(d, all, a->value), b = rounded(d, 7, b->value);
        }
        double *expected = doubles(all);
        for (int i = 0; i < all; i++) {
            double x = a->value[i / 140 * 35 + i / 35 % 4 * 105 + i % 35], y = b->value[i % 7];
            expected[i] = large ? isnan(x) || isnan(y) ? NAN : fmax(x, y) : x + y;
        }
        RUN(FILE_, .entry = large ? "g_large_maximum_bfloat16" : "g_add_float32", .in = {a, b},
            .out = {[2] = c},
            .bytes = {[3] = {shape, sizeof shape},
                      [4] = {a_strides, 32},
                      [5] = {b_strides, 32},
                      [6] = BYTES(int, 4)},
            .grid = {7, 5, 12}, .threadgroup = {4, 4, 4});
        check("strided", c, expected, 0x1p-24, 0);
    }
}

static void copies(void **s) {
    (void)s;
    /* A (6, 5, 9) view of a transposed (9, 6, 5); floats saturate when they become integers. */
    const int all = 9 * 6 * 5;
    struct tensor *x = normal(SMELT_FLOAT32, all, 60), *y = room(SMELT_INT8, all),
                  *i = uniform(SMELT_INT16, all, -32768, 32768), *b = room(SMELT_BFLOAT16, all);
    double *expected = doubles(all), *turned = doubles(all);
    for (int k = 0; k < all; k++) {
        int from = k / 45 * 5 + k / 9 % 5 + k % 9 * 30;
        expected[k] = fmax(-128, fmin(127, trunc(x->value[from])));
        turned[k] = i->value[from];
    }
    RUN(FILE_, .entry = "copy_g_3_float32_int8", .in = {x}, .out = {[1] = y},
        .bytes = {[2] = BYTES(int, 5, 1, 30)}, .grid = {9, 5, 6}, .threadgroup = {3, 5, 2});
    check("copy to int8", y, expected, 0, 0);
    RUN(FILE_, .entry = "copy_g_3_int16_bfloat16", .in = {i}, .out = {[1] = b},
        .bytes = {[2] = BYTES(int, 5, 1, 30)}, .grid = {9, 5, 6}, .threadgroup = {32, 1, 1});
    check("copy to bfloat16", b, rounded(SMELT_BFLOAT16, all, turned)->value, 0, 0);

    static const uint32_t sizes[][2] = {{1, 1}, {33, 31}, {70, 129}};
    for (int k = 0; k < 3; k++)
        for (int narrow = 0; narrow < 2; narrow++) {
            uint32_t rows = sizes[k][0], columns = sizes[k][1];
            smelt_dtype d = narrow ? SMELT_UINT8 : SMELT_FLOAT32;
            struct tensor *from = uniform(d, rows * columns, 0, 256), *to = room(d, rows * columns);
            double *other = doubles(rows * columns);
            for (uint32_t j = 0; j < rows * columns; j++)
                other[j % columns * rows + j / columns] = from->value[j];
            RUN(FILE_, .entry = narrow ? "transpose_uint8" : "transpose_float32", .in = {from},
                .out = {[1] = to}, .bytes = {[2] = BYTES(uint32_t, rows, columns)},
                .groups = {(columns + 31) / 32, (rows + 31) / 32}, .threadgroup = {32, 8});
            check("transpose", to, other, 0, 0);
        }
}

static void gated(void **s) {
    (void)s;
    for (int split = 0; split < 2; split++)
        for (int limited = 0; limited < 2; limited++) {
            const uint32_t width = 77, rows = 5, n = width * rows;
            struct tensor *a = normal(SMELT_FLOAT16, split ? n : 2 * n, 3), *b = normal(SMELT_FLOAT16, n, 3),
                          *y = room(SMELT_FLOAT16, n);
            double *expected = doubles(n);
            for (uint32_t i = 0; i < n; i++) {
                uint32_t row = i / width * 2 * width + i % width;
                double gate = a->value[split ? i : row], up = split ? b->value[i] : a->value[row + width];
                if (limited) gate = fmin(gate, 2.5), up = fmax(-2.5, fmin(2.5, up));
                expected[i] = silu(gate) * up;
            }
            struct launch l = {FILE_,
                               .entry = "swiglu",
                               .constants = {{0, SMELT_BOOL, {.integer = split}}},
                               .in = {a},
                               .out = {[2] = y},
                               .bytes = {[3] = BYTES(uint32_t, width)},
                               .grid = {width, rows},
                               .threadgroup = {32, 2}};
            if (limited)
                l.constants[1] = (smelt_constant){.index = 1, .dtype = SMELT_FLOAT32, .value.real = 2.5};
            if (split) l.in[1] = b;
            launch(l);
            check("swiglu", y, expected, 1.1 * 0x1p-11, 0x1p-24);
        }
}

static void choices(void **s) {
    (void)s;
    const int n = 333;
    struct tensor *which = uniform(SMELT_BOOL, n, 0, 2), *a = normal(SMELT_FLOAT32, 2 * n, 1),
                  *b = normal(SMELT_FLOAT32, 2 * n, 1), *c = room(SMELT_FLOAT32, 2 * n),
                  *p = uniform(SMELT_UINT16, n, 0, 65536), *q = uniform(SMELT_UINT16, n, 0, 65536),
                  *r = room(SMELT_UINT16, n);
    double *pairs = doubles(2 * n), *ones = doubles(n);
    for (int i = 0; i < 2 * n; i++) pairs[i] = (which->value[i / 2] != 0 ? a : b)->value[i];
    for (int i = 0; i < n; i++) ones[i] = (which->value[i] != 0 ? p : q)->value[i];
    RUN(FILE_, .entry = "select_float2", .in = {which, a, b}, .out = {[3] = c}, .grid = {n},
        .threadgroup = {64});
    check("select", c, pairs, 0, 0);
    RUN(FILE_, .entry = "select_uint16", .in = {which, p, q}, .out = {[3] = r}, .grid = {n},
        .threadgroup = {48});
    check("select", r, ones, 0, 0);
}

ML_MAIN(ML_TEST(unary), ML_TEST(binary), ML_TEST(strided), ML_TEST(copies), ML_TEST(gated), ML_TEST(choices))
