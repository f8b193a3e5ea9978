/* Matrix products: tiles in threadgroup memory, one output a thread and 8 x 8 outputs a thread; simdgroup
 * matrices. */
#include "bench/cpu/product.h"
#include "bench/hand/handwritten.h"
#include "bench/kernel_text.h"

#define LANES_BY_HAND "hand-written, lanes"
#define TOLERANCE 1e-4 /* sums of up to 1024 products in [-1, 1] */

struct by_hand {
    void (*run)(const float *a, const float *b, float *c, int64_t n);
    const struct cpu_product *product;
};

static smelt_status run_by_hand(void *context) {
    const struct by_hand *hand = context;
    const struct cpu_product *product = hand->product;
    hand->run(floats(product->a), floats(product->b), floats(product->c), product->n);
    return SMELT_OK;
}

static smelt_dispatch_desc dispatch_of(const struct cpu_product *product) {
    return (smelt_dispatch_desc){.buffers = {{.array = product->a},
                                             {.array = product->b},
                                             {.array = product->c},
                                             {.bytes = &product->n, .size = sizeof product->n}}};
}

static smelt_status measure_tiled(struct bench *bench, const char *name, struct cpu_product *product) {
    struct contest contest = cpu_product_contest(bench, name, product, TOLERANCE);
    smelt_dispatch_desc desc = dispatch_of(product);
    desc.grid[0] = desc.grid[1] = product->n;
    desc.threadgroup[0] = desc.threadgroup[1] = 32;
    struct standard standard;
    struct by_hand hand = {handwritten()->matmul_tiled, product};
    cpu_product_enter_openblas(&contest, product);
    contest_enter_hand(&contest, HAND_WRITTEN, run_by_hand, &hand, OPENBLAS);
    standard_enter(&contest, &standard, "matmul_tiled.metal", kernel_text_matmul_tiled, "matmul_tiled", &desc,
                   OPENBLAS, (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.5});
    contest_compare(&contest, SMELT_CPU, HAND_WRITTEN, NO_BAR);
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

/* In groups of so many threads, which compute 64 × 64 outputs. */
static smelt_dispatch_desc dispatch_in_64(const struct cpu_product *product, int64_t threads) {
    smelt_dispatch_desc desc = dispatch_of(product);
    desc.groups[0] = desc.groups[1] = product->n / 64, desc.groups[2] = 1;
    desc.threadgroup[0] = threads;
    return desc;
}

static smelt_status measure_register(struct bench *bench, const char *name, struct cpu_product *product) {
    struct contest contest = cpu_product_contest(bench, name, product, TOLERANCE);
    smelt_dispatch_desc desc = dispatch_in_64(product, 64);
    struct standard standard;
    struct by_hand hand = {handwritten()->matmul_register, product},
                   lanes = {handwritten()->matmul_register_lanes, product};
    cpu_product_enter_openblas(&contest, product);
    contest_enter_hand(&contest, HAND_WRITTEN, run_by_hand, &hand, OPENBLAS);
    contest_enter_hand(&contest, LANES_BY_HAND, run_by_hand, &lanes, OPENBLAS);
    standard_enter(&contest, &standard, "matmul_register.metal", kernel_text_matmul_register,
                   "matmul_register", &desc, LANES_BY_HAND, (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.9});
    contest_compare(&contest, SMELT_CPU, OPENBLAS, (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.5});
    contest_compare(&contest, SMELT_CPU, HAND_WRITTEN, NO_BAR);
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

static smelt_status measure_simdgroup(struct bench *bench, const char *name, struct cpu_product *product) {
    struct contest contest = cpu_product_contest(bench, name, product, TOLERANCE);
    smelt_dispatch_desc desc = dispatch_in_64(product, 128);
    struct standard standard;
    cpu_product_enter_openblas(&contest, product);
    standard_enter(&contest, &standard, "matmul_simdgroup.metal", kernel_text_matmul_simdgroup,
                   "matmul_simdgroup", &desc, OPENBLAS, NO_BAR);
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

static uint32_t side(const struct bench *bench) {
    return bench->quick ? 128 : 1024;
}

smelt_status bench_cpu_matmul_tiled(struct bench *bench, const char *name) {
    return cpu_product_run(bench, name, side(bench), measure_tiled);
}

smelt_status bench_cpu_matmul_register(struct bench *bench, const char *name) {
    return cpu_product_run(bench, name, side(bench), measure_register);
}

smelt_status bench_cpu_matmul_simdgroup(struct bench *bench, const char *name) {
    return cpu_product_run(bench, name, side(bench), measure_simdgroup);
}
