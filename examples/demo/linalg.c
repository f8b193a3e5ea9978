#include "demo.h"
#include "kernels/linalg/cholesky.h"
#include "kernels/linalg/triangular_inverse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N 96

/* Covariances of points on a line, exp(-distance) and a little noise: a matrix as statistics has them. */
static void check_cholesky(void) {
    smelt_array *a, *l;
    smelt_run_info info;
    require(smelt_array_create(SMELT_FLOAT32, (smelt_shape){2, {N, N}}, &a), "the matrix");
    float *matrix = smelt_array_data(a);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            matrix[i * N + j] = expf(-0.1f * fabsf((float)(i - j))) + (i == j ? 0.01f : 0.0f);
    require(shipped_cholesky(a, 16, 64, &l, &(smelt_call){.info = &info}), "the Cholesky factor");
    const float *factor = smelt_array_data(l);
    double worst = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int k = 0; k <= j; k++) sum += (double)factor[i * N + k] * (double)factor[j * N + k];
            double error = fabs(sum - (double)matrix[i * N + j]);
            if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
        }
    report("block Cholesky: L Lt against A", &info, worst, 1e-5);
    smelt_array_release(a);
    smelt_array_release(l);
}

static void check_triangular_inverse(void) {
    const smelt_shape shape = {4, {1, 512, 2, 64}};
    smelt_array *a, *with_64, *with_128;
    smelt_run_info info;
    require(smelt_array_normal(SMELT_FLOAT32, shape, 21, &a), "the squares");
    float *value = smelt_array_data(a);
    for (int64_t i = 0; i < smelt_array_size(a); i++) value[i] *= 0.2f;
    double *values = values_of(a),
           *expected = require_memory(malloc(sizeof *expected * (size_t)smelt_array_size(a)));
    smelt_reference_triangular_inverse(values, shape.size[0], shape.size[1], shape.size[2], shape.size[3],
                                       expected);
    double scale = 1;
    for (int64_t i = 0; i < smelt_array_size(a); i++) scale = fmax(scale, fabs(expected[i]));
    require(smelt_triangular_inverse(a, 64, &with_64, &(smelt_call){.info = &info}),
            "the triangular inverse");
    report("triangular inverse by chunks", &info, largest_error(with_64, expected) / scale, 1e-5);
    require(smelt_triangular_inverse(a, 128, &with_128, &(smelt_call){.info = &info}),
            "the triangular inverse");
    bool same = memcmp(smelt_array_data(with_64), smelt_array_data(with_128),
                       (size_t)smelt_array_size(a) * sizeof(float)) == 0;
    report("  with 128 threads: the same bits", &info, same ? 0 : INFINITY, 0);
    free(values);
    free(expected);
    smelt_array_release(a);
    smelt_array_release(with_64);
    smelt_array_release(with_128);
}

void check_linear_algebra(void) {
    check_cholesky();
    check_triangular_inverse();
}
