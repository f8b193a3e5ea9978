/* Products of float32 matrices on CPUs by OpenBLAS, for those who ask for it with SMELT_VENDOR=1. The library
 * is opened at run time; nothing else in smelt uses it. */
#include "base/setting.h"
#include "ops/product.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#define LIBRARY "libopenblas.so.0"

/* Of cblas.h, which need not be installed. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static sgemm_function *sgemm;

static void open_library(void) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void (*set_threads)(int) = library ? (void (*)(int))dlsym(library, "openblas_set_num_threads") : NULL;
    sgemm = set_threads ? (sgemm_function *)dlsym(library, "cblas_sgemm") : NULL;
    if (sgemm)
        set_threads(smelt_device_threads("cpu"));
    else
        log_line(SMELT_LOG_WARNING,
                 "SMELT_VENDOR is 1, but " LIBRARY " cannot be used; products are smelt's own");
}

static bool is_wanted(void) {
    static struct setting setting = {"SMELT_VENDOR", {"0", "1"}, ATOMIC_FLAG_INIT};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (setting_choice(&setting) == 0) return false;
    pthread_once(&once, open_library);
    return sgemm != NULL;
}

/* How the library reads a matrix: its rows, or its columns, lie dense. */
struct side {
    int transpose, stride;
};

static bool describe(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                     struct side *side) {
    bool dense = column_stride == 1 || columns == 1;
    int64_t length = dense ? columns : rows, stride = dense ? row_stride : column_stride;
    if ((dense ? rows : columns) == 1) stride = length;
    *side = (struct side){dense ? NO_TRANSPOSE : TRANSPOSE, (int)stride};
    return (dense || row_stride == 1 || rows == 1) && stride >= length && stride <= INT_MAX;
}

static int64_t offset_of(const int64_t *strides, const int64_t *index, int batch) {
    int64_t offset = 0;
    for (int d = 0; d < batch; d++) offset += strides[d] * index[d];
    return offset;
}

bool product_by_vendor(const struct product *p) {
    int64_t rows = p->shape.size[p->batch], columns = p->shape.size[p->batch + 1], depth = p->depth,
            index[SMELT_MAX_DIMENSIONS] = {0};
    struct side a, b;
    bool floats = p->dtype == SMELT_FLOAT32 && p->x->dtype == SMELT_FLOAT32 && p->y->dtype == SMELT_FLOAT32;
    if (!floats || rows > INT_MAX || columns > INT_MAX || depth > INT_MAX || !is_wanted()) return false;
    if (!describe(rows, depth, p->x_strides[p->batch], p->x_depth, &a) ||
        !describe(depth, columns, p->y_depth, p->y_strides[p->batch + 1], &b))
        return false;
    float *out = (float *)p->result->data;
    for (float *end = out + p->result->size; out < end; out += rows * columns) {
        sgemm(ROW_MAJOR, a.transpose, b.transpose, (int)rows, (int)columns, (int)depth, 1,
              (const float *)p->x->data + offset_of(p->x_strides, index, p->batch), a.stride,
              (const float *)p->y->data + offset_of(p->y_strides, index, p->batch), b.stride, 0, out,
              (int)columns);
        for (int d = p->batch - 1; d >= 0 && ++index[d] == p->shape.size[d]; d--) index[d] = 0;
    }
    return true;
}
