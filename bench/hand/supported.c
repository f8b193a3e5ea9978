/* Compiled without AVX-512: it must run anywhere. */
#include "bench/hand/handwritten.h"

bool handwritten_supported(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
}
