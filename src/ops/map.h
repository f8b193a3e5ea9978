/* Kernels with one thread per point of an index space: elementwise operations, copies, gathers, scatters. */
#ifndef SMELT_OPS_MAP_H
#define SMELT_OPS_MAP_H

#include "ops/program.h"

#define MAP_MAX_OPERANDS PROGRAM_MAX_ARRAYS
#define MAP_MAX_NUMBERS 32

/* An array's place in the index space; without an array, only the offset: a position that the kernel needs.
 */
struct operand {
    smelt_array *array;
    int64_t
        strides[SMELT_MAX_DIMENSIONS]; /* in elements, for each dimension of the space; 0: the same element */
    int64_t offset;                    /* in elements, of the space's point (0, …) from element (0, …) */
    bool written;
};

struct map {
    const char *name; /* an identifier, for messages */
    struct program_key
        key; /* the caller's part: family PROGRAM_MAP, operation, form; the rest is filled in */
    const char *device;
    smelt_stream *stream;
    smelt_shape space;
    int operand_count;
    struct operand operands[MAP_MAX_OPERANDS];
    bool lanes;         /* the space's last dimension has 32 points: the lanes of a simdgroup */
    const char *atomic; /* type of the written operand, if it is written by atomics: "atomic_int" */
    /* The kernel reads these as l.number[i]: sizes and strides. */
    int number_count;
    int64_t numbers[MAP_MAX_NUMBERS];
    const void *context; /* of the two functions */
    /* (optional) Appends the text before the kernel. */
    void (*write_before)(struct text *text, const struct map *map);
    /* Appends the statements of one thread: operand j's element is p<j>[o<j>]. Types are those in memory. */
    void (*write)(struct text *text, const struct map *map);
};

/* Appends the text of the kernel that map_run would run. Simplifies `map`. */
void map_text(struct map *map, struct text *text);

/* Runs it; does nothing for an empty space. Operands are on the device; a GPU also accepts host operands of
 * which the space uses one element. Simplifies `map`. */
smelt_status map_run(struct map *map);

/* The strides with which `array` is broadcast to the last dimensions of a space. */
void map_broadcast(const smelt_array *array, const smelt_shape *space, int64_t strides[SMELT_MAX_DIMENSIONS]);

/* An operand that is broadcast, or of the space's own shape. */
struct operand map_operand(smelt_array *array, const smelt_shape *space, bool written);

/* The threads of a group for a grid, about `most` in all. */
void map_group(const int64_t grid[3], int64_t most, int64_t group[3]);

#endif
