/* The pieces of a stored graph: numbers of 8 bytes, and bytes behind their number. In this machine's order,
 * as the file holds its code.
 *
 *     magic, the size of smelt_apply_desc, device, name, unfused, unplanned, streams,
 *     nodes: kind, inputs, types of the outputs, what the kind has; ports: inputs, outputs,
 *     the size of struct program_key, a hash of the code, the code: the kernels of an execution, or nothing.
 *
 * The graph's part serves every build of this ABI; code of another build is not used. */
#ifndef SMELT_GRAPH_STORED_H
#define SMELT_GRAPH_STORED_H

#include "base/text.h"
#include "smelt/graph.h"

#include <stdint.h>
#include <string.h>

#define STORED_MAGIC "smeltgraph3"
#define STORED_BEFORE "smeltgraph2" /* the same without `streams` */

/* A kernel of the code. */
enum { STORED_END = 0, STORED_PROGRAM, STORED_SHIPPED };

/* The elements of a constant: as they are, or as float16, if float32 elements are all float16's. */
enum { STORED_ELEMENTS = 0, STORED_HALVES };

static inline void stored_number(struct text *out, int64_t number) {
    text_append(out, (const char *)&number, sizeof number);
}

static inline void stored_real(struct text *out, double real) {
    int64_t bits;
    memcpy(&bits, &real, sizeof bits);
    stored_number(out, bits);
}

static inline void stored_bytes(struct text *out, const void *bytes, size_t count) {
    stored_number(out, (int64_t)count);
    text_append(out, bytes, count);
}

/* A structure, most of which is 0: pieces of a number of zeros, a number of bytes, and these. The number of
 * pieces comes first; the rest is 0. */
void stored_structure(struct text *out, const void *structure, size_t size);

/* NULL is "". */
static inline void stored_string(struct text *out, const char *string) {
    stored_bytes(out, string ? string : "", string ? strlen(string) : 0);
}

struct graph_call;
struct graph_launch;

/* What nodes own besides constants (stored_owned.c). UNSUPPORTED for what files do not hold: functions of the
 * program, and headers of kernels that lie in folders. */
smelt_status stored_write_call(struct text *out, const struct graph_call *call);
smelt_status stored_write_launch(struct text *out, const struct graph_launch *launch, int output_count);

/* ---- Reading. */

struct stored_reader {
    const char *at, *end;
    bool damaged; /* and then everything is 0 or empty */
    bool before;  /* the file begins with STORED_BEFORE */
};

int64_t stored_read_number(struct stored_reader *r);
/* In [0, most]. */
int64_t stored_read_bounded(struct stored_reader *r, int64_t most);
double stored_read_real(struct stored_reader *r);
const char *stored_read_bytes(struct stored_reader *r, size_t *count);
void stored_read_structure(struct stored_reader *r, void *structure, size_t size);
/* A heap copy; NULL: damaged. */
char *stored_read_string(struct stored_reader *r);

/* A reference each; NULL without a failure: damaged. types: of the outputs that the file gives. */
smelt_status stored_read_call(struct stored_reader *r, struct graph_call **call);
smelt_status stored_read_launch(struct stored_reader *r, const smelt_type *types, int input_count,
                                int output_count, struct graph_launch **launch);

#endif
