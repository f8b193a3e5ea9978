/* Recordings of executions on a GPU: CUDA graphs, by the arrays that an execution reads and writes. */
#ifndef SMELT_GRAPH_RECORD_H
#define SMELT_GRAPH_RECORD_H

#include "graph/graph.h"

#define RECORDS 8

/* One combination of arrays. Before it is recorded, arrays are known by the address of their elements alone.
 */
struct record {
    const char **places; /* of inputs, then of outputs (NULL: new ones) */
    smelt_recording *recording;
    smelt_array **kept; /* inputs and outputs, references, while it is recorded */
};

struct records {
    struct record items[RECORDS];
    int count, next; /* next: to be replaced */
    int made;        /* recordings so far */
    smelt_stream *stream;
    int arrays; /* inputs and outputs */
};

/* The record of the arrays. NULL: they were not met before, and are noted now. */
struct record *record_find(struct records *records, smelt_array *const *inputs, int input_count,
                           smelt_array *const *outputs);
/* Keeps a recording. */
smelt_status record_keep(struct records *records, struct record *record, smelt_recording *recording,
                         smelt_array *const *inputs, int input_count, smelt_array *const *outputs);
void records_free(struct records *records);

#endif
