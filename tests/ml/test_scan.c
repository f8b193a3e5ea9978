/* Prefix sums, products and maxima. If n numbers are added or multiplied in any order, the error is at most
 * n·u·Σ|x|, or n·u relative for products. */
#include "ml.h"

#include <stdio.h>

/* One row in float64 from either end; `bound` is the sum of magnitudes so far. */
static void scan_row(const double *x, int64_t n, char op, bool inclusive, bool reverse, double *y,
                     double *bound) {
    double sofar = op == 's' ? 0 : op == 'p' ? 1 : -INFINITY, size = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = reverse ? n - 1 - k : k;
        double before = sofar, size_before = size;
        sofar = op == 's' ? sofar + x[i] : op == 'p' ? sofar * x[i] : fmax(sofar, x[i]);
        size += fabs(x[i]);
        y[i] = inclusive ? sofar : before;
        bound[i] = op == 's' ? inclusive ? size : size_before : fabs(y[i]);
        bound[i] *= op == 'm' ? 0 : (double)(k + 1) * 0x1p-24;
    }
}

static void contiguous(void **s) {
    (void)s;
    static const struct {
        const char *name;
        smelt_dtype in, out;
        char op;
        double low, high, first;
    } kinds[] = {{"sum_float32", SMELT_FLOAT32, SMELT_FLOAT32, 's', -1, 1, 0},
                 {"sum_int32", SMELT_INT32, SMELT_INT32, 's', -1000, 1000, 0},
                 {"sum_bool", SMELT_BOOL, SMELT_INT32, 's', 0, 2, 0},
                 {"prod_float16", SMELT_FLOAT16, SMELT_FLOAT32, 'p', 0.97, 1.03, 1},
                 {"max_bfloat16", SMELT_BFLOAT16, SMELT_FLOAT32, 'm', -9, 9, -(double)0x1.fffffep127f}};
    static const uint64_t sizes[] = {1, 33, 1025, 2500};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (int form = 0; form < 4; form++)
            for (int i = 0; i < 4; i++) {
                /* Every size in the first form; all forms of the first kind at one size each, and one form of
                 * the others. */
                if (form && (i != form || (kind && form != (int)kind))) continue;
                int64_t n = (int64_t)sizes[i], rows = 3;
                bool inclusive = !(form & 1), reverse = form & 2;
                char entry[64];
                snprintf(entry, sizeof entry, "scan_rows_%s%s_%s", inclusive ? "inclusive" : "exclusive",
                         reverse ? "_reverse" : "", kinds[kind].name);
                struct tensor *x = uniform(kinds[kind].in, rows * n, kinds[kind].low, kinds[kind].high),
                              *y = room(kinds[kind].out, rows * n);
                double *expected = doubles(rows * n), *bound = doubles(rows * n);
                for (int64_t r = 0; r < rows; r++) {
                    scan_row(x->value + r * n, n, kinds[kind].op, inclusive, reverse, expected + r * n,
                             bound + r * n);
                    if (!inclusive) expected[r * n + (reverse ? n - 1 : 0)] = kinds[kind].first;
                }
                RUN(.file = "scan.metal", .entry = strcpy(scratch(64), entry), .in = {x}, .out = {[1] = y},
                    .bytes = {[2] = BYTES(uint64_t, sizes[i])}, .groups = {rows}, .threadgroup = {128});
                check_bounds(entry, y, expected, bound);
            }
}

static void strided(void **s) {
    (void)s;
    static const uint32_t shapes[][2] = {{1, 1}, {33, 5}, {100, 70}};
    for (int i = 0; i < 3; i++) {
        uint32_t rows = shapes[i][0], cols = shapes[i][1];
        int64_t n = 2 * rows * cols;
        struct tensor *u = uniform(SMELT_UINT64, n, 0, 0x1p63), *m = uniform(SMELT_INT16, n, -32768, 32768),
                      *f = normal(SMELT_FLOAT32, n, 1), *yu = room(SMELT_UINT64, n),
                      *ym = room(SMELT_INT16, n), *yf = room(SMELT_FLOAT32, n);
        uint64_t *sum = scratch((size_t)n * 8);
        int16_t *top = scratch((size_t)n * 2);
        double *fsum = doubles(n), *size = doubles(n), *bound = doubles(n);
        for (int64_t k = 0; k < n; k++) {
            bool first = k / cols % rows == 0;
            sum[k] = ((uint64_t *)u->data)[k] + (first ? 0 : sum[k - cols]);
            top[k] = ((int16_t *)m->data)[k];
            if (!first && top[k - cols] > top[k]) top[k] = top[k - cols];
            fsum[k] = f->value[k] + (first ? 0 : fsum[k - cols]);
            size[k] = fabs(f->value[k]) + (first ? 0 : size[k - cols]);
            bound[k] = size[k] * rows * 0x1p-24;
        }
        const struct bytes height = BYTES(uint32_t, rows), width = BYTES(uint32_t, cols);
        RUN(.file = "scan.metal", .entry = "strided_scan_sum_uint64", .in = {u}, .out = {[1] = yu},
            .bytes = {[2] = height, [3] = width}, .groups = {(cols + 31) / 32, 2}, .threadgroup = {128});
        check_exact("strided sum uint64", yu, sum);
        RUN(.file = "scan.metal", .entry = "strided_scan_max_int16", .in = {m}, .out = {[1] = ym},
            .bytes = {[2] = height, [3] = width}, .groups = {(cols + 31) / 32, 2}, .threadgroup = {64});
        check_exact("strided max int16", ym, top);
        RUN(.file = "scan.metal", .entry = "strided_scan_sum_float32", .in = {f}, .out = {[1] = yf},
            .bytes = {[2] = height, [3] = width}, .groups = {(cols + 31) / 32, 2}, .threadgroup = {256});
        check_bounds("strided sum float32", yf, fsum, bound);
    }
}

static void three_passes(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 31, 1025, 50001};
    for (int i = 0; i < 4; i++) {
        uint32_t n = sizes[i], threads = 256, groups = (n + threads - 1) / threads, sum = 0;
        struct tensor *x = uniform(SMELT_UINT32, n, 0, 0x1p32), *sums = room(SMELT_UINT32, groups),
                      *y = room(SMELT_UINT32, n);
        RUN(.file = "scan.metal", .entry = "scan_block_sums", .in = {x}, .out = {[1] = sums},
            .bytes = {[2] = BYTES(uint32_t, n)}, .groups = {groups}, .threadgroup = {threads});
        RUN(.file = "scan.metal", .entry = "scan_sums_exclusive", .update = {sums},
            .bytes = {[1] = BYTES(uint32_t, groups)}, .threadgroup_memory = {256 * 4}, .groups = {1},
            .threadgroup = {128});
        RUN(.file = "scan.metal", .entry = "scan_add_back", .in = {x, sums}, .out = {[2] = y},
            .bytes = {[3] = BYTES(uint32_t, n)}, .threadgroup_memory = {2 * threads * 4}, .groups = {groups},
            .threadgroup = {threads});
        uint32_t *expected = scratch(n * 4);
        for (uint32_t k = 0; k < n; k++) expected[k] = sum += ((uint32_t *)x->data)[k];
        check_exact("three passes", y, expected);
    }
}

ML_MAIN(ML_TEST(contiguous), ML_TEST(strided), ML_TEST(three_passes))
