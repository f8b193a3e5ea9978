#include "bench/cpu/product.h"
#include "bench/cpu/openblas.h"
#include "bench/cpu/threads.h"

#include <stdlib.h>

static void expect_row(void *context, int64_t row) {
    const struct cpu_product *product = context;
    int64_t n = product->n;
    double *sums = calloc((size_t)n, sizeof *sums);
    for (int64_t k = 0; sums && k < n; k++) {
        double a = floats(product->a)[row * n + k];
        const float *b = floats(product->b) + k * n;
        for (int64_t j = 0; j < n; j++) sums[j] += a * b[j];
    }
    for (int64_t j = 0; sums && j < n; j++) floats(product->expected)[row * n + j] = (float)sums[j];
    free(sums);
}

struct contest cpu_product_contest(struct bench *bench, const char *name, struct cpu_product *product,
                                   double tolerance) {
    team_run(expect_row, product, product->n);
    return (struct contest){.device = &cpu_contest,
                            .bench = bench,
                            .job = name,
                            .work = 2.0 * product->n * product->n * product->n,
                            .work_unit = "FLOP",
                            .output = product->c,
                            .expected = product->expected,
                            .tolerance = tolerance};
}

static smelt_status run_openblas(void *context) {
    const struct cpu_product *product = context;
    openblas_matmul(floats(product->a), floats(product->b), floats(product->c), product->n);
    return SMELT_OK;
}

void cpu_product_enter_openblas(struct contest *contest, struct cpu_product *product) {
    if (openblas_open(team_size()))
        contest_enter(contest, (struct variant){.name = OPENBLAS, .run = run_openblas, .context = product});
    else
        contest_absent(contest, OPENBLAS, "not installed (libopenblas.so.0)");
}

smelt_status cpu_product_run(struct bench *bench, const char *name, uint32_t n,
                             smelt_status (*measure)(struct bench *bench, const char *name,
                                                     struct cpu_product *product)) {
    struct cpu_product product = {.n = n};
    smelt_shape shape = SHAPE_OF(n, n);
    smelt_status status = random_floats(shape, 8, -1, 1, &product.a);
    if (status == SMELT_OK) status = random_floats(shape, 9, -1, 1, &product.b);
    if (status == SMELT_OK) status = new_floats(shape, &product.c);
    if (status == SMELT_OK) status = new_floats(shape, &product.expected);
    if (status == SMELT_OK) status = measure(bench, name, &product);
    smelt_array_release(product.a);
    smelt_array_release(product.b);
    smelt_array_release(product.c);
    smelt_array_release(product.expected);
    return status;
}
