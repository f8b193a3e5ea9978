/* A library with OpenBLAS's name and a plain product, whose results are too large by 1000: a test sees who
 * computed. */
#define EXPORT __attribute__((visibility("default")))

EXPORT void openblas_set_num_threads(int threads);
EXPORT void openblas_set_num_threads(int threads) {
    (void)threads;
}

EXPORT void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                        const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
EXPORT void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                        const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    (void)order, (void)alpha, (void)beta;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 1000;
            for (int t = 0; t < k; t++)
                sum += (double)(transpose_a == 112 ? a[t * lda + i] : a[i * lda + t]) *
                       (transpose_b == 112 ? b[j * ldb + t] : b[t * ldb + j]);
            c[i * ldc + j] = (float)sum;
        }
}
