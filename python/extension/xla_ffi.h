/* What smelt.jax needs of the binary interface between XLA and foreign functions ("XLA FFI", major version
 * 0): a handler is called with one structure, and calls XLA back through a table. Each structure begins with
 * its size, and later versions only append members. https://docs.jax.dev/en/latest/ffi.html */
#ifndef SMELT_PYTHON_XLA_FFI_H
#define SMELT_PYTHON_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum { FFI_MAJOR = 0, FFI_STAGE_EXECUTE = 3, FFI_EXTENSION_METADATA = 1 };
enum { FFI_SCALAR = 3, FFI_BUFFER = 1 }; /* kinds of an attribute, and of an argument or result */
enum { FFI_INVALID_ARGUMENT = 3, FFI_INTERNAL = 13 };

enum ffi_type {
    FFI_BOOL = 1,
    FFI_INT8 = 2,
    FFI_INT16 = 3,
    FFI_INT32 = 4,
    FFI_INT64 = 5,
    FFI_UINT8 = 6,
    FFI_UINT16 = 7,
    FFI_UINT32 = 8,
    FFI_UINT64 = 9,
    FFI_FLOAT16 = 10,
    FFI_FLOAT32 = 11,
    FFI_FLOAT64 = 12,
    FFI_COMPLEX64 = 15,
    FFI_BFLOAT16 = 16
};

struct ffi_extension {
    size_t size;
    int kind;
    struct ffi_extension *next;
};

/* The head of each structure. */
#define FFI_HEAD \
    size_t size; \
    struct ffi_extension *extensions

struct ffi_version {
    FFI_HEAD;
    int major, minor;
};

/* A handler is asked for this when it is registered: the extension of an otherwise empty call. */
struct ffi_metadata {
    size_t size;
    struct ffi_version version;
    uint32_t traits;
};
struct ffi_metadata_extension {
    struct ffi_extension head;
    struct ffi_metadata *metadata;
};

struct ffi_error;
struct ffi_context;

struct ffi_error_create {
    FFI_HEAD;
    const char *message;
    int code;
};
struct ffi_stream_get {
    FFI_HEAD;
    struct ffi_context *context;
    void *stream; /* out */
};
struct ffi_ordinal_get {
    FFI_HEAD;
    struct ffi_context *context;
    int32_t ordinal; /* out */
};

struct ffi_api {
    FFI_HEAD;
    struct ffi_version version;
    const void *internal;
    struct ffi_error *(*error_create)(struct ffi_error_create *);
    void (*unused_errors[2])(void);
    void (*unused_register)(void);
    struct ffi_error *(*stream_get)(struct ffi_stream_get *);
    void (*unused[12])(void);
    struct ffi_error *(*ordinal_get)(struct ffi_ordinal_get *); /* since minor version 2 or 3 */
};

struct ffi_buffer {
    FFI_HEAD;
    int type;
    void *data;
    int64_t rank;
    int64_t *sizes; /* row-major */
};

struct ffi_list { /* arguments, and results */
    FFI_HEAD;
    int64_t count;
    int *kinds;
    void **items;
};

struct ffi_text {
    const char *data;
    size_t length;
};
struct ffi_scalar {
    int type;
    void *value;
};
struct ffi_attributes {
    FFI_HEAD;
    int64_t count;
    int *kinds;
    struct ffi_text **names;
    void **items;
};

struct ffi_call {
    FFI_HEAD;
    const struct ffi_api *api;
    struct ffi_context *context;
    int stage;
    struct ffi_list arguments, results;
    struct ffi_attributes attributes;
};

#endif
