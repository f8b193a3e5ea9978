/* The forms of `best` on GPUs: the tile of C that a threadgroup computes, and the parts that K is divided
 * into. */
#ifndef SMELT_KERNELS_MATMUL_FORMS_H
#define SMELT_KERNELS_MATMUL_FORMS_H

#include "kernels/call.h"

struct matmul_form {
    int64_t rows, columns; /* of the tile */
    int64_t threads;       /* of a threadgroup */
    int64_t parts;         /* of K, each summed by other threadgroups; 1: K is whole */
};

struct matmul_sizes {
    int64_t m, n, k, products;
};

/* Form number `index` of a dtype, with one part; false: there are fewer forms. */
bool matmul_form_at(smelt_dtype dtype, int index, struct matmul_form *form);

/* Whether the dtype has a form of these sizes, with 1 to 64 parts. */
bool matmul_form_exists(smelt_dtype dtype, const struct matmul_form *form);

/* The form that is expected to take the least time. Sizes are at least 1, except k, which may be 0. */
struct matmul_form matmul_form_choose(smelt_dtype dtype, const struct matmul_sizes *sizes);

/* The elements of K in each part: a multiple of what the kernels take at a time. form->parts becomes the
 * number of parts that are not empty. */
int64_t matmul_form_depth(smelt_dtype dtype, int64_t k, struct matmul_form *form);

/* How Metal names one of the three dtypes: "half". */
const char *matmul_type(smelt_dtype dtype);

#endif
