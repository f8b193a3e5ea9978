/* Arrays as the command line writes them. Reading the text and making the array are two steps, so that a
 * wrong option further on is answered before gigabytes are filled. */
#ifndef SMELT_CLI_ARRAY_VALUE_H
#define SMELT_CLI_ARRAY_VALUE_H

#include "tensor_value.h"

/* FILE.npy[:DTYPE] (its bytes as DTYPE), FILE.safetensors:NAME (or tensor:FILE.safetensors:NAME, with
 * scales), tensor:… (tensor_value.h), KIND:DTYPE:SHAPE[:SEED] with KIND rand, normal, zeros, ones or arange,
 * or a scalar (2 is int32, 2.0 float32, true bool). */
struct array_value {
    enum array_kind {
        ARRAY_RAND,
        ARRAY_NORMAL,
        ARRAY_ZEROS,
        ARRAY_ONES,
        ARRAY_ARANGE,
        ARRAY_SCALAR,
        ARRAY_FILE,
        ARRAY_SAFETENSORS,
        ARRAY_SCALED_SAFETENSORS,
        ARRAY_TENSOR
    } kind;
    smelt_dtype dtype; /* ARRAY_FILE: SMELT_NO_DTYPE is the file's own */
    smelt_shape shape;
    uint64_t seed;
    union {
        bool truth;
        int32_t integer;
        float real;
    } scalar;
    char *path;
    char *name;                  /* ARRAY_SAFETENSORS: of the array in the file */
    struct tensor_value *tensor; /* ARRAY_TENSOR; heap */
};

/* `what` names the option in the message on standard error if the result is false. */
bool array_value_parse(const char *what, const char *text, struct array_value *value);

/* The same of the command line's -b, which tensors may be bound to as well. */
bool buffer_value_parse(const char *what, const char *text, struct array_value *value);

/* Makes the array. Without `contents` generated arrays have dtype and shape only: enough to show code. On
 * failure complains and sets *status to the exit status to leave with. */
bool array_value_make(const char *what, const struct array_value *value, bool contents, smelt_array **array,
                      int *status);

/* The same of any value of -b: sets the buffer's array or tensor. */
bool buffer_value_make(const char *what, const struct array_value *value, bool contents, smelt_buffer *buffer,
                       int *status);

void array_value_free(struct array_value *value);

#endif
