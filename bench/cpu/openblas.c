#include "bench/cpu/openblas.h"
#include "bench/hand/handwritten.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Of cblas.h, which need not be installed. */
enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANSPOSE = 111 };
typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void set_threads_function(int threads);

static sgemm_function *sgemm;
static set_threads_function *set_threads;
static void *library;

bool openblas_open(int threads) {
    if (sgemm) return true;
    /* It treats CPUs that it does not recognise as ones without AVX, and is then not a measure. Its vectors
     * must be as wide as those of the code by hand. */
    if (__builtin_cpu_supports("avx512f"))
        setenv("OPENBLAS_CORETYPE", handwritten() == &handwritten_avx512 ? "SkylakeX" : "Haswell", 0);
    /* After a call, its threads spin for 2^28 cycles (0.1 s) and take CPUs from what is measured next. 2^20
     * cycles are half a millisecond, longer than the time between two calls. */
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
    library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    set_threads = (set_threads_function *)dlsym(library, "openblas_set_num_threads");
    sgemm = (sgemm_function *)dlsym(library, "cblas_sgemm");
    if (!set_threads || !sgemm) {
        sgemm = NULL;
        dlclose(library);
        library = NULL;
        return false;
    }
    set_threads(threads);
    return true;
}

void openblas_set_threads(int threads) {
    set_threads(threads);
}

void *openblas_function(const char *name) {
    return library ? dlsym(library, name) : NULL;
}

void openblas_product(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    sgemm(CBLAS_ROW_MAJOR, CBLAS_NO_TRANSPOSE, CBLAS_NO_TRANSPOSE, (int)m, (int)n, (int)k, 1.0f, a, (int)k, b,
          (int)n, 0.0f, c, (int)n);
}

void openblas_matmul(const float *a, const float *b, float *c, int64_t n) {
    openblas_product(a, b, c, n, n, n);
}
