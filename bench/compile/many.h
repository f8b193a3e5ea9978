/* Many threads that compile at once. */
#ifndef SMELT_BENCH_COMPILE_MANY_H
#define SMELT_BENCH_COMPILE_MANY_H

#include "bench/harness.h"

/* One new library in many threads, compared with one thread; many new kernels in a few threads, compared with
 * the processor time that they take, divided by the CPUs. */
smelt_status bench_compile_many(struct bench *bench);

#endif
