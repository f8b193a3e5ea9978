/* Reductions against plain loops in float64; a sum of n numbers in any order is off by at most n·u·Σ|x|. */
#include "ml.h"

#define FILE_ .file = "reductions.metal"

/* Both passes; each group of the first takes `each` elements. */
static struct tensor *reduce_all(const char *first, const char *second, struct tensor *x, smelt_dtype result,
                                 uint64_t each, int threads) {
    uint64_t n = (uint64_t)x->count, groups = (n + each - 1) / each;
    struct tensor *partial = room(result, (int64_t)groups), *y = room(result, 1);
    RUN(FILE_, .entry = first, .in = {x}, .out = {[1] = partial},
        .bytes = {[2] = BYTES(uint64_t, n), [3] = BYTES(uint64_t, each)}, .groups = {(int64_t)groups},
        .threadgroup = {threads});
    if (!second) return partial;
    RUN(FILE_, .entry = second, .in = {partial}, .out = {[1] = y},
        .bytes = {[2] = BYTES(uint64_t, groups), [3] = BYTES(uint64_t, groups)}, .groups = {1},
        .threadgroup = {64});
    return y;
}

static void whole_arrays(void **s) {
    (void)s;
    static const int64_t sizes[] = {1, 31, 1025, 70001};
    for (int i = 0; i < 4; i++) {
        int64_t n = sizes[i];
        struct tensor *x = normal(SMELT_FLOAT32, n, 1), *h = normal(SMELT_FLOAT16, n, 1);
        double sum[2] = {0}, size[2] = {0};
        for (int64_t k = 0; k < n; k++) {
            sum[0] += x->value[k], size[0] += fabs(x->value[k]);
            sum[1] += h->value[k], size[1] += fabs(h->value[k]);
        }
        check("sum f32", reduce_all("all_reduce_sum_f32", "all_reduce_sum_f32", x, SMELT_FLOAT32, 5003, 256),
              sum, 0, (double)n * 0x1p-24 * size[0]);
        check("sum f16",
              reduce_all("all_reduce_sum_f16_f32", "all_reduce_sum_f32", h, SMELT_FLOAT32, 2999, 96), sum + 1,
              0, (double)n * 0x1p-24 * size[1]);

        struct tensor *c = uniform(SMELT_INT8, n, -128, 128), *w = uniform(SMELT_INT64, n, -0x1p60, 0x1p60);
        int32_t narrow = 0;
        uint64_t wide = 0;
        for (int64_t k = 0; k < n; k++) {
            narrow += ((int8_t *)c->data)[k];
            wide += ((uint64_t *)w->data)[k];
        }
        check_exact("sum i8", reduce_all("all_reduce_sum_i8_i32", NULL, c, SMELT_INT32, 1u << 20, 1000),
                    &narrow);
        check_exact("sum i64",
                    reduce_all("all_reduce_sum_i64", "all_reduce_sum_i64", w, SMELT_INT64, 777, 128), &wide);
    }
    /* A product, and whether all are true. */
    struct tensor *b = uniform(SMELT_BFLOAT16, 300, 0.9, 1.12), *flags = uniform(SMELT_UINT8, 1000, 1, 200);
    double product = 1;
    for (int k = 0; k < 300; k++) product *= b->value[k];
    check("prod bf16", reduce_all("all_reduce_prod_bf16_f32", NULL, b, SMELT_FLOAT32, 300, 64), &product,
          301 * 0x1p-24, 0);
    for (int zero = 0; zero < 2; zero++) {
        if (zero) ((uint8_t *)flags->data)[random_below(1000)] = 0;
        check_exact("and", reduce_all("all_reduce_and_u8", NULL, flags, SMELT_BOOL, 1000, 33),
                    &(bool){!zero});
    }
}

static void rows(void **s) {
    (void)s;
    static const int64_t widths[] = {1, 33, 1025, 4099};
    for (int i = 0; i < 4; i++) {
        int64_t w = widths[i], n = 7;
        struct tensor *x = normal(SMELT_FLOAT32, n * w, 3), *b = normal(SMELT_BFLOAT16, n * w, 1),
                      *c = uniform(SMELT_INT16, n * w, -32768, 32768),
                      *p = uniform(SMELT_INT32, n * w, -9, 9), *h = normal(SMELT_FLOAT16, n * w, 1);
        double *top = doubles(n), *sum = doubles(n), *bound = doubles(n), *low = doubles(n),
               *fsum = doubles(n), *fbound = doubles(n), *htop = doubles(n);
        int32_t product[7];
        for (int64_t r = 0; r < n; r++) {
            top[r] = htop[r] = -INFINITY, low[r] = 40000;
            uint32_t all = 1;
            for (int64_t k = r * w; k < (r + 1) * w; k++) {
                if (((int32_t *)p->data)[k] == 0) ((int32_t *)p->data)[k] = -7;
                all *= (uint32_t)((int32_t *)p->data)[k];
                top[r] = fmax(top[r], x->value[k]);
                htop[r] = fmax(htop[r], h->value[k]);
                low[r] = fmin(low[r], c->value[k]);
                sum[r] += b->value[k], bound[r] += fabs(b->value[k]) * 0x1p-24 * (double)w;
                fsum[r] += x->value[k], fbound[r] += fabs(x->value[k]) * 0x1p-24 * (double)w;
            }
            product[r] = (int32_t)all;
        }
        const struct bytes width = BYTES(int64_t, w), width32 = BYTES(int, (int)w),
                           count = BYTES(int, (int)n);
        struct tensor *y = room(SMELT_FLOAT32, n), *y16 = room(SMELT_INT16, n), *y32 = room(SMELT_INT32, n),
                      *yh = room(SMELT_FLOAT16, n);
        RUN(FILE_, .entry = "row_reduce_looped_max_f32", .in = {x}, .out = {[1] = y}, .bytes = {[2] = width},
            .groups = {n}, .threadgroup = {160});
        check("row max", y, top, 0, 0);
        RUN(FILE_, .entry = "row_reduce_looped_sum_bf16", .in = {b}, .out = {[1] = y}, .bytes = {[2] = width},
            .groups = {n}, .threadgroup = {32});
        check_bounds("row sum bf16", y, sum, bound);
        RUN(FILE_, .entry = "row_reduce_looped_min_i16", .in = {c}, .out = {[1] = y16},
            .bytes = {[2] = width}, .groups = {n}, .threadgroup = {1024});
        check("row min i16", y16, low, 0, 0);
        RUN(FILE_, .entry = "row_reduce_simple_sum_f32", .in = {x}, .out = {[1] = y},
            .bytes = {[2] = width32, [3] = count}, .groups = {2}, .threadgroup = {32});
        check_bounds("row sum", y, fsum, fbound);
        RUN(FILE_, .entry = "row_reduce_simple_prod_i32", .in = {p}, .out = {[1] = y32},
            .bytes = {[2] = width32, [3] = count}, .groups = {2}, .threadgroup = {32});
        check_exact("row prod", y32, product);
        RUN(FILE_, .entry = "row_reduce_simple_max_f16", .in = {h}, .out = {[1] = yh},
            .bytes = {[2] = width32, [3] = count}, .groups = {2}, .threadgroup = {32});
        check("row max f16", yh, htop, 0, 0);
    }
}

static void columns(void **s) {
    (void)s;
    static const uint32_t shapes[][2] = {{1, 1}, {70, 31}, {33, 65}, {1025, 100}};
    for (int i = 0; i < 4; i++) {
        uint32_t n = shapes[i][0], w = shapes[i][1];
        struct tensor *x = normal(SMELT_FLOAT32, n * w, 1), *b = normal(SMELT_BFLOAT16, n * w, 1),
                      *c = uniform(SMELT_UINT8, n * w, 0, 256);
        double *sum = doubles(w), *bound = doubles(w), *top = doubles(w), *whole = doubles(w);
        for (uint32_t k = 0; k < w; k++) top[k] = -INFINITY;
        for (uint32_t k = 0; k < n * w; k++) {
            sum[k % w] += x->value[k], bound[k % w] += fabs(x->value[k]) * 0x1p-24 * n;
            top[k % w] = fmax(top[k % w], b->value[k]);
            whole[k % w] += c->value[k];
        }
        struct tensor *y = room(SMELT_FLOAT32, w), *yb = room(SMELT_BFLOAT16, w), *yu = room(SMELT_UINT32, w);
        const struct bytes shape = BYTES(uint32_t, n, w);
        RUN(FILE_, .entry = "col_reduce_sum_f32", .in = {x}, .out = {[1] = y}, .bytes = {[2] = shape},
            .groups = {(w + 31) / 32}, .threadgroup = {32, 8});
        check_bounds("column sum", y, sum, bound);
        RUN(FILE_, .entry = "col_reduce_max_bf16", .in = {b}, .out = {[1] = yb}, .bytes = {[2] = shape},
            .groups = {(w + 31) / 32}, .threadgroup = {32, 8});
        check("column max", yb, top, 0, 0);
        RUN(FILE_, .entry = "col_reduce_sum_u8", .in = {c}, .out = {[1] = yu}, .bytes = {[2] = shape},
            .groups = {(w + 31) / 32}, .threadgroup = {32, 8});
        check("column sum u8", yu, whole, 0, 0);
    }
}

/* The middle axis of a (5, 77, 13) array whose first axis is reversed. A compensated sum is off by (2·u +
 * O(n·u²))·Σ|x|. */
static void strided_axis(void **s) {
    (void)s;
    enum { A = 5, B = 77, C = 13 };
    struct tensor *x = normal(SMELT_FLOAT32, A * B * C, 100), *y = room(SMELT_FLOAT32, A * C);
    double *sum = doubles(A * C), *bound = doubles(A * C);
    for (int a = 0; a < A; a++)
        for (int b = 0; b < B; b++)
            for (int c = 0; c < C; c++) {
                double v = x->value[(a * B + b) * C + c];
                sum[c * A + a] += v, bound[c * A + a] += fabs(v) * (2 * 0x1p-24 + 2 * B * 0x1p-48);
            }
    /* Kept dimensions (C, A): a transposed output. */
    RUN(FILE_, .entry = "strided_axis_sum", .in = {x}, .out = {[1] = y},
        .bytes = {[2] = BYTES(int, C, A),
                  [3] = BYTES(int64_t, 1, (B * C)),
                  [4] = BYTES(int, 2),
                  [5] = BYTES(int, B),
                  [6] = BYTES(int64_t, C)},
        .grid = {A * C}, .threadgroup = {32});
    check_bounds("strided axis", y, sum, bound);
}

static void arguments(void **s) {
    (void)s;
    static const uint64_t widths[] = {1, 31, 129, 5000};
    for (int i = 0; i < 4; i++) {
        uint64_t w = widths[i];
        int64_t n = 5;
        struct tensor *x = uniform(SMELT_FLOAT32, n * (int64_t)w, -1, 1),
                      *c = uniform(SMELT_INT8, n * (int64_t)w, -128, 128),
                      *b = uniform(SMELT_BFLOAT16, n * (int64_t)w, -1, 1), *y = room(SMELT_UINT32, n);
        uint32_t low[5], high[5], top[5];
        for (int64_t r = 0; r < n; r++) {
            const double *xr = x->value + r * (int64_t)w, *cr = c->value + r * (int64_t)w,
                         *br = b->value + r * (int64_t)w;
            low[r] = high[r] = top[r] = 0;
            for (uint32_t k = 1; k < w; k++) {
                if (xr[k] < xr[low[r]]) low[r] = k;
                if (cr[k] > cr[high[r]]) high[r] = k;
                if (br[k] > br[top[r]]) top[r] = k;
            }
        }
        const struct bytes width = BYTES(uint64_t, w);
        RUN(FILE_, .entry = "argmin_f32", .in = {x}, .out = {[1] = y}, .bytes = {[2] = width}, .groups = {n},
            .threadgroup = {64});
        check_exact("argmin", y, low);
        RUN(FILE_, .entry = "argmax_i8", .in = {c}, .out = {[1] = y}, .bytes = {[2] = width}, .groups = {n},
            .threadgroup = {256});
        check_exact("argmax i8", y, high);
        RUN(FILE_, .entry = "argmax_bf16", .in = {b}, .out = {[1] = y}, .bytes = {[2] = width}, .groups = {n},
            .threadgroup = {1024});
        check_exact("argmax bf16", y, top);
    }
}

/* fast::exp may be off by 3 + ⌊2|x|⌋ ulp, and each of the w additions and rescalings rounds; the logarithm
 * turns a relative error of the sum into an absolute one. */
static void logsumexp(void **s) {
    (void)s;
    static const int widths[] = {1, 33, 1025, 3000};
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            int w = widths[i];
            smelt_dtype dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32;
            struct tensor *x = normal(dtype, 4 * w, 5), *y = room(dtype, 4);
            double *expected = doubles(4);
            for (int r = 0; r < 4; r++) {
                double top = -INFINITY, sum = 0;
                for (int k = 0; k < w; k++) top = fmax(top, x->value[r * w + k]);
                for (int k = 0; k < w; k++) sum += exp(x->value[r * w + k] - top);
                expected[r] = log(sum) + top;
            }
            RUN(FILE_, .entry = half ? "logsumexp_f16" : "logsumexp_f32", .in = {x}, .out = {[1] = y},
                .bytes = {[2] = BYTES(int, w)}, .groups = {4}, .threadgroup = {128});
            double steps = w / 128.0 + 12;
            check("logsumexp", y, expected, 4 * roundoff(dtype), steps * 80 * 0x1p-24);
        }
}

ML_MAIN(ML_TEST(whole_arrays), ML_TEST(rows), ML_TEST(columns), ML_TEST(strided_axis), ML_TEST(arguments),
        ML_TEST(logsumexp))
