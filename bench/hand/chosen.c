/* Compiled for any x86-64 CPU. */
#include "bench/hand/handwritten.h"

#include <stdlib.h>
#include <string.h>

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool handwritten_supported(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const struct handwritten *handwritten(void) {
    const char *setting = getenv("SMELT_CPU");
    bool narrow = setting && (strcmp(setting, "avx2") == 0 || strcmp(setting, "sse2") == 0);
    return has_avx512() && !narrow ? &handwritten_avx512 : &handwritten_avx2;
}
