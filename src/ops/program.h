/* The kernels of array operations: generated as text when first needed, kept for the process. */
#ifndef SMELT_OPS_PROGRAM_H
#define SMELT_OPS_PROGRAM_H

#include "array/array.h"
#include "base/text.h"

#define PROGRAM_MAX_ARRAYS 24

/* The properties that determine a kernel's text. Compared as bytes: always zero-initialised. */
struct program_key {
    uint16_t family;    /* whose text it is: enum program_family */
    uint16_t operation; /* smelt_operation, or the family's own number */
    uint16_t form;      /* the family's own */
    uint16_t unused;    /* 0. Keys are compared byte by byte, so none is padding */
    uint8_t dtypes[PROGRAM_MAX_ARRAYS];
    uint8_t operands[PROGRAM_MAX_ARRAYS]; /* how each is addressed */
    uint64_t content[2];                  /* a hash of statements that no other part determines */
};

enum program_family {
    PROGRAM_MAP = 1,
    PROGRAM_REDUCE,
    PROGRAM_SCAN,
    PROGRAM_MATMUL,
    PROGRAM_ATTENTION,
    PROGRAM_ROUTINE,
    PROGRAM_QUANTIZED,
    PROGRAM_LINALG
};

/* The function `name` of the text that `write(text, context)` appends. The library keeps it. */
smelt_status program_get(const struct program_key *key, const char *name,
                         void (*write)(struct text *text, const void *context), const void *context,
                         smelt_function **function);

/* Receives the calling thread's programs, and their launches that are not run. */
struct program_sink {
    /* Called by each program_get: the program's key, the name of its function, its whole text. */
    void (*add)(void *context, const struct program_key *key, const char *name, const char *text,
                const smelt_function *function);
    /* Called by program_run instead of running the launch, if program_is_only_collected. */
    void (*launch)(void *context, const smelt_function *function, const smelt_dispatch_desc *dispatch);
    void *context;
};
/* NULL: ends the collection. */
void program_collect(const struct program_sink *sink);
/* Whether the calling thread's programs go to a sink: work must then stay on it. */
bool program_is_collecting(void);

/* Whether launches on `device` are only collected, as the calling thread's programs go to a sink: on CPUs,
 * where a large model takes minutes. Results are then what was in their memory. */
bool program_is_only_collected(const char *device);

/* Runs the function, unless it is only collected. */
smelt_status program_run(smelt_function *function, const smelt_dispatch_desc *dispatch);

/* Gives the table the function from a package (smelt_library_build), unless it has one for the key. */
smelt_status program_put(const struct program_key *key, const char *name, const void *package, size_t bytes);

/* The whole text of such a function, as it is compiled. */
void program_write(const struct program_key *key, void (*write)(struct text *text, const void *context),
                   const void *context, struct text *text);

/* The name of a dtype in these texts: "half"; complex64 is a struct of helper text. */
const char *program_type(smelt_dtype dtype);

/* The dtype that `dtype` is computed in: float32 for float16 and bfloat16. */
smelt_dtype program_compute_dtype(smelt_dtype dtype);

/* Writes "typedef half NAME;\n". */
void program_typedef(struct text *text, const char *name, smelt_dtype dtype);

/* Where work on these arrays runs: `wanted`, or the first GPU an array is on, or "cpu". */
const char *program_device(const char *wanted, smelt_array *const *arrays, int count);

bool program_is_host(const char *device);

/* Whether it is the device of arrays without elements (array/symbolic.h), on which nothing runs. */
bool program_is_symbolic(const char *device);

/* Whether its code may use the warpgroups of compute capability 9.0. */
bool program_has_warpgroups(const char *device);

/* The number of multiprocessors of a device whose code may use such warpgroups; 0 for other devices. */
int64_t program_warpgroup_multiprocessors(const char *device);

/* A new array on `device`. */
smelt_status program_output(const char *device, smelt_stream *stream, smelt_dtype dtype,
                            const smelt_shape *shape, smelt_array **array);

/* The same, filled. */
smelt_status program_filled(const char *device, smelt_stream *stream, smelt_dtype dtype,
                            const smelt_shape *shape, double value, smelt_array **array);

/* All elements between an array's first and last, as a row of their own for binding: no reference, no
 * release. *start is the offset of element (0, …) in it. */
smelt_array program_span(const smelt_array *array, int64_t *start);

#endif
