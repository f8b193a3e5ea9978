/* Square float32 products on the CPU: their data, their check and OpenBLAS's variant, for all jobs that
 * multiply. */
#ifndef SMELT_BENCH_CPU_PRODUCT_H
#define SMELT_BENCH_CPU_PRODUCT_H

#include "bench/cpu/cpu.h"

#define OPENBLAS "OpenBLAS"

/* c = a · b, of n × n elements each. */
struct cpu_product {
    smelt_array *a, *b, *c, *expected;
    uint32_t n;
};

/* Creates the data, lets `measure` use it and releases it. */
smelt_status cpu_product_run(struct bench *bench, const char *name, uint32_t n,
                             smelt_status (*measure)(struct bench *bench, const char *name,
                                                     struct cpu_product *product));

/* A contest of products of what a and b hold now; without variants. `tolerance` is absolute. */
struct contest cpu_product_contest(struct bench *bench, const char *name, struct cpu_product *product,
                                   double tolerance);

/* Enters OpenBLAS, or reports that it is missing. */
void cpu_product_enter_openblas(struct contest *contest, struct cpu_product *product);

#endif
