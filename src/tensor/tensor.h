/* The tensor object: planes, each a view of memory as an array. */
#ifndef SMELT_TENSOR_TENSOR_H
#define SMELT_TENSOR_TENSOR_H

#include "array/array.h"
#include "smelt/tensor.h"

/* Values along the dimensions of a plane. */
struct tensor_plane {
    int element;                         /* 0: there is no such plane */
    int64_t block[SMELT_MAX_DIMENSIONS]; /* of elements of the data per value; all 1 for the data */
    int64_t extents[SMELT_MAX_DIMENSIONS], strides[SMELT_MAX_DIMENSIONS]; /* in elements */
    smelt_array *array; /* a view of it, the outermost dimension first; bytes if packed */
};

struct smelt_tensor {
    atomic_int references;
    int ndim;
    unsigned usage;
    struct tensor_plane planes[SMELT_PLANE_COUNT];
};

#endif
