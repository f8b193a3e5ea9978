/* Which device linalg and ops measure. */
#include "bench/harness.h"

#include <string.h>

bool bench_is_gpu(const char *device) {
    return device && strncmp(device, "cuda", 4) == 0;
}

const char *bench_device(struct bench *bench) {
    const char *name, *reason;
    if (!bench_is_gpu(bench->products.device)) return "cpu";
    for (int i = 0; (name = smelt_device_name(i, &reason)); i++)
        if (bench_is_gpu(name) && !*reason) return name;
    bench_note(bench, "all jobs", "smelt", "there is no GPU");
    return NULL;
}
