// Macros of the machine that compiles, and of the dialect that sources become, are not defined: headers that are shared
// with C++, CUDA or SYCL take Metal's side.
// run: -b 0:out:int32:4 --grid 4
// expect buffer 0: 1 1 1 1
#if defined(SYCL_LANGUAGE_VERSION) || defined(__SYCL_DEVICE_ONLY__)
#include <sycl/sycl.hpp>
#elif defined(__x86_64__) || defined(__SSE2__) || defined(__amd64__)
#include <immintrin.h>
#elif defined(__linux__) || defined(__unix__) || defined(__ELF__) || defined(_GNU_SOURCE)
#include <stdlib.h>
#elif defined(__METAL__) && defined(__METAL_VERSION__) && defined(__SMELT__)
#include <metal_stdlib>
#endif

kernel void host_macros(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = 1; }
