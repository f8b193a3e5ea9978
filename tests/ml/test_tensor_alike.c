/* Products of simdgroups that share their right matrix, which warpgroups compute on some GPUs (mpp_alike.h),
 * against float64: sizes that no tile divides, and rows with different alignments. */
#include "ml.h"

static const struct product {
    const char *entry;
    smelt_dtype dtype;
    int m, n; /* n 0: a threadgroup computes all columns */
    bool transposed, changes;
} products[] = {{"alike_rows", SMELT_FLOAT16, 16, 64, false, false},
                {"alike_held", SMELT_BFLOAT16, 16, 48, false, false},
                {"alike_columns", SMELT_BFLOAT16, 32, 32, true, false},
                {"alike_columns_held", SMELT_FLOAT16, 16, 80, true, false},
                {"alike_backward", SMELT_FLOAT16, 32, 16, false, false},
                {"alike_leaves", SMELT_BFLOAT16, 16, 64, true, false},
                {"alike_apart", SMELT_FLOAT16, 16, 0, false, false},
                {"alike_changes", SMELT_FLOAT16, 16, 0, false, true}};

static void multiply(const struct product *p, int rows, int columns, int terms, int more, int threads) {
    const int width = p->transposed ? terms : columns, height = p->transposed ? columns : terms;
    const int stride = width + more, size[4] = {rows, columns, terms, stride};
    struct tensor *a = normal(p->dtype, rows * terms, 1), *b = normal(p->dtype, (int64_t)height * stride, 1),
                  *out = room(SMELT_FLOAT32, rows * columns);
    double *expected = doubles(rows * columns), *bound = doubles(rows * columns);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double sizes = 0, *sum = &expected[r * columns + c];
            for (int t = 0; t < terms; t++) {
                double x = a->value[r * terms + t],
                       y = b->value[p->transposed ? c * stride + t : t * stride + c];
                *sum += x * y;
                if (p->changes) *sum += x * (y + 1);
                sizes += fabs(x) * (fabs(y) + (p->changes ? fabs(y) + 1 : 0));
            }
            /* Elements of 16 bits are rounded when 1 is added, and again when it is subtracted. */
            bound[r * columns + c] =
                ((terms + 4) * 0x1p-23 + (p->changes ? (columns / 16 + 1) * 0x1p-10 : 0)) * sizes + 1e-6;
        }
    const int group_rows = threads / 32 * p->m;
    struct launch l = {
        .file = "tensor_alike.metal",
        .entry = p->entry,
        .in = {a},
        .update = {[1] = b}, /* the kernel may write there */
        .out = {[2] = out},
        .bytes = {[3] = {size, sizeof size}},
        .groups = {(rows + group_rows - 1) / group_rows, p->n ? (columns + p->n - 1) / p->n : 1},
        .threadgroup = {threads}};
    launch(l);
    check_bounds(p->entry, out, expected, bound);
}

static void alike(void **s) {
    (void)s;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const struct product *p = &products[i];
        multiply(p, p->changes ? 50 : 150, 130, 200, 0, 128);
        if (!runs_all() && i) continue;
        multiply(p, p->changes ? 40 : 70, 100, 97, 3, 128);
        multiply(p, p->changes ? 40 : 70, 33, 65, 0, 128);
        multiply(p, 17, 65, 30, 6, 256);
        multiply(p, 20, 70, 90, 2, 64);
    }
}

ML_MAIN(ML_TEST(alike))
