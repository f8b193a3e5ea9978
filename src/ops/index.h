/* Arrays of indices, for gather, scatter and scatter_sum. */
#ifndef SMELT_OPS_INDEX_H
#define SMELT_OPS_INDEX_H

#include "ops/map.h"
#include "ops/operation.h"

/* An array's dimensions, and the integer arrays that index some of them. */
struct indexed {
    smelt_shape shape; /* of the array */
    int count;         /* index arrays */
    smelt_array **indices;
    int axes[SMELT_MAX_DIMENSIONS]; /* the dimension each indexes */
    smelt_shape query;              /* the indices' common shape */
    int position;                   /* of its dimensions among those of `picked` */
    smelt_shape picked;             /* the shape of what the indices pick */
};

/* Reads a call's indices, its inputs `first` …, for an array of `shape`. */
smelt_status indexed_read(const struct call *call, int first, const smelt_shape *shape, struct indexed *out);

/* Strides over `picked` of an array of `shape` with strides: 0 along the query's dimensions. */
void indexed_strides(const struct indexed *indexed, const int64_t *strides, int64_t *picked);

/* Operands for the index arrays at the front of a map over `picked`, numbers 2 j and 2 j + 1: size and stride
 * of the dimension the j-th indexes. */
void indexed_operands(const struct indexed *indexed, const int64_t *strides, struct map *map);

/* Writes "const long at = …;": the offset that the indices add. */
void indexed_write(struct text *text, int count);

/* A float64 array by its bits, which kernels can move. */
smelt_array indexed_bits(const smelt_array *array);

#endif
