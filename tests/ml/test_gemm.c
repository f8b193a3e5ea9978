/* Matrix products against float64: a sum of n products in any order is off by at most (n + 2)·u·Σ|a·b|. */
#include "ml.h"

#define FILE_ .file = "gemm.metal"

/* One matrix: element (i, j) at i · row + j · column. */
static void product(const double *a, int a_row, int a_column, const double *b, int b_row, int b_column, int m,
                    int n, int k, double *out, double *size) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0, absolute = 0;
            for (int l = 0; l < k; l++) {
                double term = a[i * a_row + l * a_column] * b[l * b_row + j * b_column];
                sum += term, absolute += fabs(term);
            }
            out[i * n + j] = sum, size[i * n + j] = absolute * (k + 2) * 0x1p-24;
        }
}

static void tiled(void **s) {
    (void)s;
    static const struct {
        const char *entry;
        smelt_dtype dtype;
        bool ta, tb;
        int bm, bn, bk, threads;
    } kinds[] = {{"gemm_nn_float32", SMELT_FLOAT32, false, false, 32, 32, 16, 128},
                 {"gemm_nt_float16", SMELT_FLOAT16, false, true, 64, 32, 32, 128},
                 {"gemm_tn_bfloat16", SMELT_BFLOAT16, true, false, 32, 64, 16, 64},
                 {"gemm_tt_float32", SMELT_FLOAT32, true, true, 64, 64, 16, 128}};
    static const int cases[][5] = {/* batch, m, n, k, plus C */
                                   {1, 64, 64, 64, 0},
                                   {2, 33, 65, 31, 0},
                                   {1, 100, 7, 129, 1},
                                   {1, 1, 1, 1, 1}};
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < 4; i++) {
            const int batch = cases[i][0], m = cases[i][1], n = cases[i][2], k = cases[i][3];
            const bool plus = cases[i][4];
            smelt_dtype dtype = kinds[kind].dtype;
            /* The first kind runs all cases, each other kind two, of which make check runs one: other
             * constants need another compile. */
            static const int first[] = {0, 0, 0, 2};
            if (kind && i != first[kind] && i != 1) continue;
            if (kind && (i == 1) != (kind == 1) && !runs_all()) continue;
            struct tensor *a = normal(dtype, batch * m * k, 1), *b = normal(dtype, batch * k * n, 1),
                          *c = normal(dtype, batch * m * n, 1), *d = room(dtype, batch * m * n);
            double *expected = doubles(d->count), *bound = doubles(d->count);
            for (int z = 0; z < batch; z++)
                product(a->value + z * m * k, kinds[kind].ta ? 1 : k, kinds[kind].ta ? m : 1,
                        b->value + z * k * n, kinds[kind].tb ? 1 : n, kinds[kind].tb ? k : 1, m, n, k,
                        expected + z * m * n, bound + z * m * n);
            for (int64_t j = 0; j < d->count; j++) {
                if (plus) {
                    bound[j] = bound[j] * 0.5 + (fabs(expected[j]) + 2 * fabs(c->value[j])) * 0x1p-22;
                    expected[j] = 0.5 * expected[j] + 2 * c->value[j];
                    /* beta · c is computed in float, c is in its dtype. */
                }
                bound[j] += fabs(expected[j]) * roundoff(dtype) * 1.01;
            }
            struct {
                int m, n, k, lda, ldb, ldd;
                int64_t a, b, d;
            } params = {m, n, k, kinds[kind].ta ? m : k, kinds[kind].tb ? k : n, n, m * k, k * n, m * n};
            struct {
                int stride;
                float alpha, beta;
            } addmm = {n, 0.5f, 2.0f};
            struct launch l = {FILE_,
                               .entry = kinds[kind].entry,
                               .constants = {{200, SMELT_BOOL, {.integer = m % kinds[kind].bm == 0}},
                                             {201, SMELT_BOOL, {.integer = n % kinds[kind].bn == 0}},
                                             {202, SMELT_BOOL, {.integer = k % kinds[kind].bk == 0}},
                                             {100, SMELT_BOOL, {.integer = plus}}},
                               .in = {a, b},
                               .out = {[3] = d},
                               .bytes = {[4] = {&params, sizeof params}},
                               .groups = {(n + kinds[kind].bn - 1) / kinds[kind].bn,
                                          (m + kinds[kind].bm - 1) / kinds[kind].bm, batch},
                               .threadgroup = {kinds[kind].threads}};
            if (plus) l.in[2] = c, l.bytes[5] = (struct bytes){&addmm, sizeof addmm};
            launch(l);
            check_bounds(kinds[kind].entry, d, expected, bound);
        }
}

static void plain(void **s) {
    (void)s;
    static const uint32_t cases[][3] = {{1, 1, 1}, {33, 31, 65}, {70, 129, 40}};
    for (int i = 0; i < 3; i++) {
        const uint32_t m = cases[i][0], n = cases[i][1], k = cases[i][2];
        struct tensor *a = normal(SMELT_FLOAT32, m * k, 1), *b = normal(SMELT_FLOAT32, k * n, 1),
                      *c = room(SMELT_FLOAT32, m * n);
        double *expected = doubles(m * n), *bound = doubles(m * n);
        product(a->value, (int)k, 1, b->value, (int)n, 1, (int)m, (int)n, (int)k, expected, bound);
        RUN(FILE_, .entry = "gemm_naive", .in = {[3] = a, b}, .out = {[5] = c},
            .bytes = {BYTES(uint32_t, m), BYTES(uint32_t, n), BYTES(uint32_t, k)}, .grid = {n, m},
            .threadgroup = {16, 16});
        check_bounds("gemm_naive", c, expected, bound);
        RUN(FILE_, .entry = "gemm_register_tiled", .in = {[1] = a, b}, .out = {[3] = c},
            .bytes = {BYTES(uint32_t, m, n, k, 0)}, .groups = {(n + 31) / 32, (m + 31) / 32},
            .threadgroup = {8, 8});
        check_bounds("gemm_register_tiled", c, expected, bound);
    }
}

static void with_vectors(void **s) {
    (void)s;
    static const int cases[][2] = {{1, 1}, {31, 33}, {7, 1025}, {200, 127}};
    for (int i = 0; i < 4; i++)
        for (int kind = 0; kind < 3; kind++) {
            static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_BFLOAT16, SMELT_FLOAT16};
            const int rows = cases[i][0], columns = cases[i][1];
            smelt_dtype dtype = dtypes[kind];
            struct tensor *a = normal(dtype, rows * columns, 1),
                          *x = normal(dtype, kind == 2 ? rows : columns, 1),
                          *y = room(dtype, kind == 2 ? columns : rows);
            double *expected = doubles(y->count), *bound = doubles(y->count);
            if (kind == 2)
                product(x->value, 0, 1, a->value, columns, 1, 1, columns, rows, expected, bound);
            else
                product(a->value, columns, 1, x->value, 1, 0, rows, 1, columns, expected, bound);
            for (int j = 0; j < y->count; j++) bound[j] += fabs(expected[j]) * roundoff(dtype) * 1.01;
            if (kind == 2)
                RUN(FILE_, .entry = "gemv_t_float16", .in = {a, x}, .out = {[2] = y},
                    .bytes = {[3] = BYTES(int, rows, columns)}, .groups = {(columns + 31) / 32},
                    .threadgroup = {32, 8});
            else
                RUN(FILE_, .entry = kind ? "gemv_bfloat16" : "gemv_float32", .in = {a, x}, .out = {[2] = y},
                    .bytes = {[3] = BYTES(int, rows, columns, columns, 0)},
                    .groups = {kind ? (rows + 7) / 8 : (rows + 15) / 16}, .threadgroup = {kind ? 256 : 128});
            check_bounds(kind == 2 ? "gemv_t" : "gemv", y, expected, bound);
        }
}

static void experts(void **s) {
    (void)s;
    static const uint32_t cases[][3] = {/* out, in, tokens */ {1, 1, 1}, {33, 100, 3}, {20, 259, 5}};
    enum { EXPERTS = 7, EACH = 2 };
    for (int i = 0; i < 3; i++) {
        const uint32_t out = cases[i][0], in = cases[i][1], tokens = cases[i][2];
        struct tensor *w = normal(SMELT_FLOAT16, EXPERTS * out * in, 1),
                      *x = normal(SMELT_FLOAT32, tokens * in, 1),
                      *ids = uniform(SMELT_UINT32, tokens * EACH, 0, EXPERTS + 1),
                      *gate = uniform(SMELT_FLOAT32, tokens * EACH, 0, 1),
                      *y = room(SMELT_FLOAT32, tokens * EACH * out), *all = room(SMELT_FLOAT32, tokens * out);
        double *expected = doubles(y->count), *bound = doubles(y->count), *sum = doubles(all->count),
               *limit = doubles(all->count);
        for (uint32_t slot = 0; slot < tokens * EACH; slot++) {
            uint32_t expert = ((uint32_t *)ids->data)[slot];
            if (expert == EXPERTS) continue; /* none: zero */
            product(w->value + expert * out * in, (int)in, 1, x->value + slot / EACH * in, 1, 0, (int)out, 1,
                    (int)in, expected + slot * out, bound + slot * out);
            for (uint32_t r = 0; r < out; r++) {
                double part = gate->value[slot] * expected[slot * out + r];
                sum[slot / EACH * out + r] += part;
                limit[slot / EACH * out + r] += bound[slot * out + r] + fabs(part) * 3 * 0x1p-24;
            }
        }
        RUN(FILE_, .entry = "moe_gather_mv", .in = {w, x, ids}, .out = {[3] = y},
            .bytes = {[4] = BYTES(uint32_t, out, in, EACH, EXPERTS)},
            .groups = {(out + 3) / 4, tokens * EACH}, .threadgroup = {128});
        check_bounds("experts", y, expected, bound);
        RUN(FILE_, .entry = "moe_combine", .in = {y, gate}, .out = {[2] = all},
            .bytes = {[3] = BYTES(uint32_t, out, EACH)}, .grid = {out, tokens}, .threadgroup = {32, 2});
        check_bounds("experts together", all, sum, limit);
    }
}

ML_MAIN(ML_TEST(tiled), ML_TEST(plain), ML_TEST(with_vectors), ML_TEST(experts))
