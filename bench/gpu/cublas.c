#include "bench/gpu/cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stddef.h>

/* Of cublas_api.h and library_types.h, which need not be installed. */
enum {
    OP_NONE = 0,
    REAL_32 = 0,
    REAL_16 = 2,
    BRAIN_16 = 14,
    COMPUTE_32 = 68,
    COMPUTE_32_PEDANTIC = 69,
    GEMM_DEFAULT = -1
};

typedef int create_function(void **handle);
typedef int set_stream_function(void *handle, void *stream);
typedef int gemm_function(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                          const void *alpha, const void *a, int type_a, int lda, const void *b, int type_b,
                          int ldb, const void *beta, void *c, int type_c, int ldc, int compute,
                          int algorithm);
typedef int gemm_batch_function(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                                const void *alpha, const void *a, int type_a, int lda, long long step_a,
                                const void *b, int type_b, int ldb, long long step_b, const void *beta,
                                void *c, int type_c, int ldc, long long step_c, int count, int compute,
                                int algorithm);

static struct {
    void *handle;
    set_stream_function *set_stream;
    gemm_function *gemm;
    gemm_batch_function *gemm_batch;
} cublas;

static void *open_library(void) {
    static const char *const names[] = {"libcublas.so.13",
                                        "libcublas.so.12",
                                        "libcublas.so",
                                        "/usr/local/cuda/lib64/libcublas.so.13",
                                        "/usr/local/cuda/lib64/libcublas.so.12",
                                        "/usr/local/cuda/lib64/libcublas.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
    }
    return NULL;
}

const char *cublas_open(void) {
    if (cublas.handle) return NULL;
    void *library = open_library();
    if (!library) return "libcublas is not among the libraries that can be opened";
    create_function *create = (create_function *)dlsym(library, "cublasCreate_v2");
    cublas.set_stream = (set_stream_function *)dlsym(library, "cublasSetStream_v2");
    cublas.gemm = (gemm_function *)dlsym(library, "cublasGemmEx");
    cublas.gemm_batch = (gemm_batch_function *)dlsym(library, "cublasGemmStridedBatchedEx");
    if (!create || !cublas.set_stream || !cublas.gemm || !cublas.gemm_batch)
        return "libcublas lacks cublasGemmEx or cublasGemmStridedBatchedEx";
    return create(&cublas.handle) == 0 ? NULL : "cublasCreate failed";
}

/* Column-major, the transposes: cᵀ = bᵀ · aᵀ. */
const char *cublas_matmul(void *stream, enum cublas_type of, uint64_t a, uint64_t b, uint64_t c,
                          const struct cublas_sizes *sizes) {
    const float one = 1, zero = 0;
    int type = of == CUBLAS_FLOAT32 ? REAL_32 : of == CUBLAS_FLOAT16 ? REAL_16 : BRAIN_16;
    int compute = of == CUBLAS_FLOAT32 ? COMPUTE_32_PEDANTIC : COMPUTE_32;
    int m = (int)sizes->m, n = (int)sizes->n, k = (int)sizes->k, result;
    if (cublas.set_stream(cublas.handle, stream) != 0) return "cublasSetStream failed";
    /* The addresses are the device's. */
    if (sizes->products == 1)
        result = cublas.gemm(cublas.handle, OP_NONE, OP_NONE, n, m, k, &one, (const void *)b, type, n,
                             (const void *)a, type, k, &zero, (void *)c, type, n, compute, GEMM_DEFAULT);
    else
        result = cublas.gemm_batch(cublas.handle, OP_NONE, OP_NONE, n, m, k, &one, (const void *)b, type, n,
                                   sizes->k * sizes->n, (const void *)a, type, k, sizes->m * sizes->k, &zero,
                                   (void *)c, type, n, sizes->m * sizes->n, (int)sizes->products, compute,
                                   GEMM_DEFAULT);
    static char sentence[64];
    snprintf(sentence, sizeof sentence, "cuBLAS failed with %d", result);
    return result == 0 ? NULL : sentence;
}
