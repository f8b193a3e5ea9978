/* Metal's kernel argument attributes: one table for the signature generator, the entry finder and the
 * prelude. */
#ifndef SMELT_SOURCE_ATTRIBUTE_H
#define SMELT_SOURCE_ATTRIBUTE_H

#include "source/token.h"

/* name in Metal, dimensions. The value of each is __smelt_<name>() in the prelude. */
#define ATTRIBUTE_TABLE(X)                    \
    X(thread_position_in_grid, 3)             \
    X(thread_position_in_threadgroup, 3)      \
    X(threadgroup_position_in_grid, 3)        \
    X(threads_per_grid, 3)                    \
    X(threads_per_threadgroup, 3)             \
    X(threadgroups_per_grid, 3)               \
    X(grid_size, 3)                           \
    X(grid_origin, 3)                         \
    X(dispatch_threads_per_threadgroup, 3)    \
    X(thread_index_in_threadgroup, 1)         \
    X(thread_index_in_simdgroup, 1)           \
    X(simdgroup_index_in_threadgroup, 1)      \
    X(simdgroups_per_threadgroup, 1)          \
    X(threads_per_simdgroup, 1)               \
    X(thread_execution_width, 1)              \
    X(thread_index_in_quadgroup, 1)           \
    X(quadgroup_index_in_threadgroup, 1)      \
    X(quadgroups_per_threadgroup, 1)          \
    X(dispatch_simdgroups_per_threadgroup, 1) \
    X(dispatch_quadgroups_per_threadgroup, 1)

struct attribute {
    const char *name;
    int dimensions; /* 3: a uint3, 1: a uint */
};

/* The table, ended by a NULL name. */
extern const struct attribute attributes[];

/* The attribute spelled by `count` bytes, or NULL. */
const struct attribute *attribute_find(const char *name, size_t count);

/* For a misspelt name of an argument's attribute: the one that was probably meant, else NULL. */
const char *attribute_nearest(const char *name);

/* If an attribute list [[…]] starts at `index`: its last token, else 0. */
uint32_t attribute_list_end(const struct tokens *tokens, uint32_t index);

/* One attribute in a list: name tokens [name, name + 1), arguments inside the parentheses [first, last). */
struct attribute_use {
    uint32_t name, first, last; /* first = last where there are no arguments */
};

/* The attributes of the list starting at `index`, one at a time: *cursor starts at 0; false at the end. */
bool attribute_list_next(const struct tokens *tokens, uint32_t index, uint32_t *cursor,
                         struct attribute_use *use);

/* Of the list starting at `index`, the first attribute of the table; NULL: none. */
const struct attribute *attribute_of_thread(const struct tokens *tokens, uint32_t index);

#endif
