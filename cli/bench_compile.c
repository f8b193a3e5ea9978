/* smelt bench compile: what it takes to get a kernel ready. */
#include "bench.h"

static smelt_status run(struct bench *bench) {
    return bench_measure(bench, NULL, 0, 1);
}

const struct benchmark bench_compile = {
    "compile", "from source to a kernel that is ready: cold, from the disk cache, in memory", run};
