/* The header of a .safetensors file: JSON of a known shape. */
#ifndef SMELT_TENSOR_SAFETENSORS_HEADER_H
#define SMELT_TENSOR_SAFETENSORS_HEADER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

/* Bytes of JSON; the format's own limit. */
#define SAFETENSORS_MAX_HEADER 100000000

struct safetensors_item {
    const char *name;
    int element;
    smelt_shape shape; /* in elements */
    uint64_t begin, end;
};

struct safetensors_header {
    struct safetensors_item *items; /* in the order of `begin` */
    size_t count;
    const char **metadata; /* keys and values, one after the other */
    size_t metadata_count; /* of pairs */
};

/* Reads and checks the header's JSON: `data_bytes` follow it. Names are unique, each array has the bytes of
 * its shape, and the arrays fill the data without overlaps and gaps. The result lives in `arena`. FORMAT,
 * with a sentence that names `path`; OUT_OF_MEMORY. */
smelt_status safetensors_read_header(const char *path, const char *json, size_t size, uint64_t data_bytes,
                                     struct arena *arena, struct safetensors_header *header);

/* The format's name of an element type, "F8_E4M3"; NULL: it has none. */
const char *safetensors_dtype(int element);

/* Appends a string as JSON. */
void safetensors_add_string(struct text *text, const char *string);

#endif
