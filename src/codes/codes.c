/* A step of the build (cmake/codes.py): multiplies matrices on the GPU of tests/cuda, which only pretends to
 * compute, so that the code of these products is compiled, and collects it (frontend/installed.h).
 *
 * Usage: smelt_codes FOLDER DTYPE [M N K]. With sizes, only that product is computed; with the folder "-",
 * nothing is collected, and installed code is used. */
#include "frontend/installed.h"
#include "kernels/matmul/matmul.h"
#include "smelt/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE "cuda:0"
#define MULTIPROCESSORS 132 /* of an H200 */

static int failures;

static void check(smelt_status status, const char *what) {
    if (status == SMELT_OK) return;
    fprintf(stderr, "%s: %s\n", what, smelt_error());
    failures++;
}

static smelt_array *matrix(smelt_dtype dtype, int64_t products, int64_t rows, int64_t columns) {
    smelt_shape shape = {.ndim = 2, .size = {rows, columns}};
    smelt_array *array = NULL;
    if (products) shape = (smelt_shape){.ndim = 3, .size = {products, rows, columns}};
    check(smelt_array_create_on(DEVICE, dtype, shape, &array), "a matrix");
    return array;
}

/* ---- Every form of `best`, whatever sizes it is chosen for. */

/* A product whose result has so many tiles. */
static void run_form(smelt_dtype dtype, const struct matmul_form *form, int64_t down, int64_t across,
                     bool b_transposed) {
    int64_t m = form->rows * down, n = form->columns * across, k = 512 * form->parts;
    struct matmul_desc desc = {.algorithm = "best",
                               .a = matrix(dtype, 0, m, k),
                               .b = b_transposed ? matrix(dtype, 0, n, k) : matrix(dtype, 0, k, n),
                               .c = matrix(dtype, 0, m, n),
                               .b_transposed = b_transposed,
                               .form = form,
                               .multiprocessors = MULTIPROCESSORS,
                               .device = DEVICE};
    check(matmul_run(&desc), "a form");
    smelt_array_release(desc.a);
    smelt_array_release(desc.b);
    smelt_array_release(desc.c);
}

static void run_forms(smelt_dtype dtype, bool b_transposed) {
    struct matmul_form form;
    for (int i = 0; matmul_form_at(dtype, i, &form); i++) {
        run_form(dtype, &form, 2, 2, b_transposed);
        if (form.threads == 256) { /* clusters of one threadgroup, for odd numbers of tiles */
            run_form(dtype, &form, 11, 12, b_transposed);
            run_form(dtype, &form, 12, 11, b_transposed);
        } else {
            form.parts = 2;
            run_form(dtype, &form, 2, 2, b_transposed);
        }
    }
}

/* ---- Products as users write them: the kernels that copy, add parts, and multiply what is thin or small. */

static void run_product(smelt_dtype dtype, int64_t products, int64_t m, int64_t n, int64_t k,
                        bool b_transposed) {
    smelt_array *a = matrix(dtype, products, m, k), *c = NULL;
    smelt_array *stored = matrix(dtype, products, b_transposed ? n : k, b_transposed ? k : n), *b = NULL;
    int64_t strides[3] = {k * n, n, 1};
    smelt_shape shape = {.ndim = 2, .size = {k, n}};
    if (b_transposed) strides[1] = 1, strides[2] = k;
    if (products) shape = (smelt_shape){.ndim = 3, .size = {products, k, n}};
    check(smelt_array_view(stored, shape, products ? strides : strides + 1, 0, &b), "a view");
    check(smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_MATMUL, .inputs = {a, b}}, &c),
          "a product");
    smelt_array_release(a);
    smelt_array_release(b);
    smelt_array_release(c);
    smelt_array_release(stored);
}

static void run_products(smelt_dtype dtype, bool b_transposed) {
    static const int64_t sizes[][4] = {{0, 64, 64, 64},      {0, 256, 256, 256},    {0, 1024, 1024, 1024},
                                       {0, 1000, 3000, 517}, {0, 1023, 1023, 1023}, {0, 1, 1024, 1024},
                                       {0, 4, 1024, 1024},   {0, 8, 1024, 1024},    {0, 16, 1024, 1024},
                                       {0, 1024, 1, 1024},   {0, 32, 4096, 1024},   {64, 256, 256, 256},
                                       {16, 64, 64, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        run_product(dtype, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], b_transposed);
}

int main(int count, char **arguments) {
    smelt_dtype dtype = SMELT_NO_DTYPE;
    if ((count != 3 && count != 6) || smelt_dtype_from_name(arguments[2], &dtype) != SMELT_OK) {
        fputs("usage: smelt_codes FOLDER DTYPE [M N K]\n", stderr);
        return 2;
    }
    if (strcmp(arguments[1], "-") != 0) installed_collect(arguments[1]);
    if (count == 6)
        run_product(dtype, 0, atoll(arguments[3]), atoll(arguments[4]), atoll(arguments[5]), false);
    for (int transposed = 0; transposed < 2 && count == 3; transposed++) {
        run_forms(dtype, transposed);
        run_products(dtype, transposed);
    }
    return failures ? 1 : 0;
}
