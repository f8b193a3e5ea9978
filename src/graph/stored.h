/* The pieces of a stored graph: numbers of 8 bytes, and bytes behind their number. In this machine's order,
 * as the file holds its code. */
#ifndef SMELT_GRAPH_STORED_H
#define SMELT_GRAPH_STORED_H

#include "base/text.h"

#include <stdint.h>

#define STORED_MAGIC "smeltgraph1"

/* What follows the graph. */
enum { STORED_END = 0, STORED_PROGRAM, STORED_SHIPPED };

static inline void stored_number(struct text *out, int64_t number) {
    text_append(out, (const char *)&number, sizeof number);
}

static inline void stored_bytes(struct text *out, const void *bytes, size_t count) {
    stored_number(out, (int64_t)count);
    text_append(out, bytes, count);
}

#endif
