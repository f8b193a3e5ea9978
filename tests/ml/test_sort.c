/* Sorts against qsort; orders are unique, since equal keys are distinguished by their positions. */
#include "ml.h"

static const double *keys;
static bool down;

static int by_key(const void *a, const void *b) {
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    if (keys[i] != keys[j]) return (keys[i] < keys[j]) != down ? -1 : 1;
    return i < j ? -1 : 1;
}

/* The stable order of n keys. */
static uint32_t *order_of(const double *values, uint32_t n, bool descending) {
    uint32_t *order = scratch(n * sizeof *order);
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    keys = values, down = descending;
    qsort(order, n, sizeof *order, by_key);
    return order;
}

/* Bitonic sorting is not stable: keys are distinct. */
static void bitonic(void **s) {
    (void)s;
    static const int64_t sizes[] = {1, 31, 33, 1000};
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            int64_t n = sizes[i], pad = 1;
            while (pad < n) pad *= 2;
            double *values = doubles(2 * n);
            for (int64_t k = 0; k < 2 * n; k++) values[k] = (double)(k % n) - 300;
            for (int64_t row = 0; row < 2; row++)
                for (int64_t k = n - 1; k > 0; k--) {
                    int64_t other = random_below((uint32_t)k + 1);
                    double v = values[row * n + k];
                    values[row * n + k] = values[row * n + other], values[row * n + other] = v;
                }
            struct tensor *x = rounded(half ? SMELT_FLOAT16 : SMELT_FLOAT32, 2 * n, values),
                          *y = room(SMELT_UINT32, 2 * n);
            uint32_t *expected = scratch((size_t)n * 8);
            for (int row = 0; row < 2; row++)
                memcpy(expected + row * n, order_of(values + row * n, (uint32_t)n, half), (size_t)n * 4);
            RUN(.file = "sort.metal", .entry = half ? "bitonic_order_f16_down" : "bitonic_order_f32_up",
                .in = {x}, .out = {[1] = y}, .bytes = {[2] = BYTES(int, (int)n, (int)pad)},
                .threadgroup_memory = {(size_t)pad * 4}, .groups = {1, 2}, .threadgroup = {pad});
            check_exact("bitonic argsort", y, expected);
        }
}

static void merge_of_blocks(void **s) {
    (void)s;
    for (int narrow = 0; narrow < 2; narrow++) {
        const int sizes[] = {1, 33, narrow ? 1001 : 255};
        for (int i = 0; i < 3; i++) {
            int n = sizes[i], threads = narrow ? 128 : 64;
            /* Few values, so that many are equal. */
            struct tensor *x = narrow ? uniform(SMELT_INT8, 3 * n, -20, 20)
                                      : uniform(SMELT_FLOAT32, 3 * n, -5, 5),
                          *y = room(x->dtype, 3 * n), *order = room(SMELT_UINT32, 3 * n);
            if (!narrow) {
                for (int k = 0; k < 3 * n; k++) ((float *)x->data)[k] = floorf(((float *)x->data)[k]);
                changed(x);
            }
            RUN(.file = "sort.metal", .entry = narrow ? "sort_block_i8_128_8" : "sort_block_f32_64_4",
                .in = {x}, .out = {[1] = y, [2] = order}, .bytes = {[3] = BYTES(int, n)}, .groups = {1, 3},
                .threadgroup = {threads});
            double *expected = doubles(3 * n);
            uint32_t *places = scratch((size_t)n * 12);
            for (int row = 0; row < 3; row++) {
                uint32_t *o = order_of(x->value + row * n, (uint32_t)n, false);
                for (int k = 0; k < n; k++)
                    places[row * n + k] = o[k], expected[row * n + k] = x->value[row * n + (int)o[k]];
            }
            check("merge sort of a block", y, expected, 0, 0);
            check_exact("its order", order, places);
        }
    }
    /* NaN goes to the end. */
    struct tensor *x = uniform(SMELT_FLOAT32, 77, -1, 1), *y = room(SMELT_FLOAT32, 77),
                  *order = room(SMELT_UINT32, 77);
    ((float *)x->data)[5] = NAN;
    changed(x);
    RUN(.file = "sort.metal", .entry = "sort_block_f32_64_4", .in = {x}, .out = {[1] = y, [2] = order},
        .bytes = {[3] = BYTES(int, 77)}, .groups = {1, 1}, .threadgroup = {64});
    assert_true(isnan(y->value[76]) && !isnan(y->value[75]) && ((uint32_t *)order->data)[76] == 5);
}

static int by_int64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void merge_in_memory(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 33, 1025, 30011};
    for (int i = 0; i < 4; i++) {
        uint32_t n = sizes[i], per_thread = 8;
        struct tensor *x = uniform(SMELT_INT64, n, -0x1p62, 0x1p62), *y = NULL;
        int64_t *expected = scratch(n * 8);
        memcpy(expected, x->data, n * 8);
        qsort(expected, n, 8, by_int64);
        /* Runs of 8, sorted here. */
        for (uint32_t k = 0; k < n; k += 8) qsort((int64_t *)x->data + k, n - k < 8 ? n - k : 8, 8, by_int64);
        for (uint32_t run = 8; run < n || !y; run *= 2, x = y) {
            y = room(SMELT_INT64, n);
            RUN(.file = "sort.metal", .entry = "merge_runs_i64", .in = {x}, .out = {[1] = y},
                .bytes =
                    {[2] = BYTES(uint32_t, n), [3] = BYTES(uint32_t, run), [4] = BYTES(uint32_t, per_thread)},
                .grid = {(n + per_thread - 1) / per_thread}, .threadgroup = {64});
        }
        check_exact("merged runs", y, expected);
    }
}

static void radix(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 33, 1025, 5003};
    for (int i = 0; i < 4; i++)
        for (int whole = 0; whole < 2; whole++) {
            uint32_t n = sizes[i], threads = 256, blocks = (n + threads - 1) / threads;
            smelt_dtype dtype = whole ? SMELT_INT32 : SMELT_FLOAT32;
            struct tensor *k = whole ? uniform(dtype, n, -2000, 2000) : normal(dtype, n, 1e3),
                          *v = room(SMELT_UINT32, n);
            uint32_t *expected = order_of(k->value, n, false);
            for (uint32_t j = 0; j < n; j++) ((uint32_t *)v->data)[j] = j;
            for (uint32_t shift = 0; shift < 32; shift += 8) {
                struct tensor *h = room(SMELT_UINT32, 256 * blocks), *k2 = room(dtype, n),
                              *v2 = room(SMELT_UINT32, n);
                RUN(.file = "sort.metal", .entry = whole ? "radix_histogram_i32" : "radix_histogram_f32",
                    .in = {k}, .out = {[1] = h},
                    .bytes = {[2] = BYTES(uint32_t, n),
                              [3] = BYTES(uint32_t, shift),
                              [4] = BYTES(uint32_t, blocks)},
                    .groups = {blocks}, .threadgroup = {threads});
                RUN(.file = "sort.metal", .entry = "radix_scan", .update = {h},
                    .bytes = {[1] = BYTES(uint32_t, 256 * blocks)}, .groups = {1}, .threadgroup = {32});
                RUN(.file = "sort.metal", .entry = whole ? "radix_scatter_i32" : "radix_scatter_f32",
                    .in = {k, v, [4] = h}, .out = {[2] = k2, [3] = v2},
                    .bytes = {[5] = BYTES(uint32_t, n),
                              [6] = BYTES(uint32_t, shift),
                              [7] = BYTES(uint32_t, blocks)},
                    .groups = {blocks}, .threadgroup = {threads});
                k = k2, v = v2;
            }
            check_exact("radix argsort", v, expected);
        }
}

static void topk(void **s) {
    (void)s;
    static const uint32_t cases[][2] = {{1, 1}, {33, 7}, {1025, 40}, {3001, 257}};
    for (int i = 0; i < 4; i++) {
        uint32_t n = cases[i][0], k = cases[i][1];
        struct tensor *x = normal(SMELT_FLOAT32, 2 * n, 4), *v = room(SMELT_FLOAT32, 2 * k),
                      *at = room(SMELT_INT32, 2 * k);
        /* Of elements equal to the threshold, the first in the row count. */
        for (uint32_t j = 0; j < 2 * n; j++)
            ((float *)x->data)[j] = roundf(((float *)x->data)[j] * 8) / 8 + 0.0f;
        changed(x);
        RUN(.file = "sort.metal", .entry = "topk_radix_select", .in = {x}, .out = {[1] = v, [2] = at},
            .bytes = {[3] = BYTES(uint32_t, n), [4] = BYTES(uint32_t, k)}, .groups = {2},
            .threadgroup = {128});
        double *values = doubles(2 * k), *places = doubles(2 * k);
        for (uint32_t row = 0; row < 2; row++) {
            uint32_t *order = order_of(x->value + row * n, n, true), count = 0;
            bool *taken = scratch(n);
            for (uint32_t j = 0; j < k; j++) taken[order[j]] = true;
            for (uint32_t j = 0; j < n; j++)
                if (taken[j]) values[row * k + count] = x->value[row * n + j], places[row * k + count++] = j;
        }
        check("top-k values", v, values, 0, 0);
        check("top-k places", at, places, 0, 0);
    }
}

/* Probabilities are multiples of 2^-20, so that float sums are exact and the token is unique. */
static void top_p(void **s) {
    (void)s;
    static const uint32_t sizes[] = {1, 33, 1000};
    for (int i = 0; i < 3; i++) {
        uint32_t n = sizes[i], rows = 9;
        struct tensor *p = room(SMELT_FLOAT32, n * rows), *ids = room(SMELT_UINT32, n * rows),
                      *u = uniform(SMELT_FLOAT32, rows, 0, 1), *y = room(SMELT_UINT32, rows);
        uint32_t expected[9];
        for (uint32_t row = 0; row < rows; row++) {
            ((float *)u->data)[row] = floorf(((float *)u->data)[row] * 8) / 8;
            double left = 1048576, *sizes_ = doubles(n);
            for (uint32_t k = 0; k < n; k++) left -= sizes_[k] = floor(left * random_unit() * 0.25);
            sizes_[0] += left;
            uint32_t *order = order_of(sizes_, n, true);
            double sum = 0, top = 0, head = 0;
            for (uint32_t k = 0; k < n; k++) {
                ((float *)p->data)[row * n + k] = (float)(sizes_[order[k]] / 1048576);
                ((uint32_t *)ids->data)[row * n + k] = order[k] + 7;
            }
            uint32_t kept = n, pick;
            for (uint32_t k = 0; k < n; k++)
                if ((sum += sizes_[order[k]] / 1048576) >= 0.75) {
                    kept = k + 1;
                    break;
                }
            top = sum;
            for (pick = 0; pick < kept - 1; pick++)
                if ((head += sizes_[order[pick]] / 1048576) > (double)((float *)u->data)[row] * top) break;
            expected[row] = order[pick] + 7;
        }
        RUN(.file = "sort.metal", .entry = "top_p_sample", .in = {p, ids, u}, .out = {[3] = y},
            .bytes = {[4] = BYTES(uint32_t, n), [5] = BYTES(float, 0.75f)}, .groups = {rows},
            .threadgroup = {32});
        check_exact("top-p token", y, expected);
    }
}

ML_MAIN(ML_TEST(bitonic), ML_TEST(merge_of_blocks), ML_TEST(merge_in_memory), ML_TEST(radix), ML_TEST(topk),
        ML_TEST(top_p))
