#include "array_value.h"
#include "commands.h"
#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"rand", "normal", "zeros", "ones", "arange"};
#define KIND_COUNT ((int)(sizeof kinds / sizeof *kinds))

static bool parse_generated(const char *what, const char *text, int kind, struct array_value *value) {
    const char *at = text + strlen(kinds[kind]) + 1;
    size_t length = strcspn(at, ":");
    int64_t seed = 0;
    if (!at[length]) return complain("%s is '%s', expected %s:DTYPE:SHAPE[:SEED]", what, text, kinds[kind]);
    if (!parse_dtype(what, at, length, &value->dtype)) return false;
    at += length + 1;
    length = strcspn(at, ":");
    if (!parse_shape(what, at, length, &value->shape)) return false;
    if (at[length]) {
        if (kind != ARRAY_RAND && kind != ARRAY_NORMAL)
            return complain("%s is '%s': only rand and normal take a seed", what, text);
        if (!parse_integer("the seed", at + length + 1, 0, INT64_MAX, &seed)) return false;
    }
    bool has_normal = value->dtype == SMELT_FLOAT16 || value->dtype == SMELT_BFLOAT16 ||
                      value->dtype == SMELT_FLOAT32 || value->dtype == SMELT_FLOAT64 ||
                      value->dtype == SMELT_COMPLEX64;
    if (kind == ARRAY_NORMAL && !has_normal)
        return complain("%s: dtype %s has no normal distribution; expected a float dtype", what,
                        smelt_dtype_name(value->dtype));
    value->kind = (enum array_kind)kind;
    value->seed = (uint64_t)seed;
    return true;
}

static bool parse_scalar(const char *what, const char *text, struct array_value *value) {
    char *end;
    value->kind = ARRAY_SCALAR;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value->dtype = SMELT_BOOL;
        value->scalar.truth = *text == 't';
        return true;
    }
    bool number = *text && !isspace((unsigned char)*text);
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (number && !*end) {
        if (errno || integer < INT32_MIN || integer > INT32_MAX)
            return complain("%s is %s, which does not fit in int32", what, text);
        value->dtype = SMELT_INT32;
        value->scalar.integer = (int32_t)integer;
        return true;
    }
    errno = 0;
    float real = strtof(text, &end);
    if (!number || *end)
        return complain(
            "%s is '%s', expected FILE.npy, rand:DTYPE:SHAPE[:SEED] (or normal, zeros, ones, arange), "
            "a number, true or false",
            what, text);
    if (errno == ERANGE && isinf(real))
        return complain("%s is %s, which does not fit in float32", what, text);
    value->dtype = SMELT_FLOAT32;
    value->scalar.real = real;
    return true;
}

static bool ends_with(const char *text, size_t length, const char *tail) {
    size_t n = strlen(tail);
    return length >= n && memcmp(text + length - n, tail, n) == 0;
}

bool array_value_parse(const char *what, const char *text, struct array_value *value) {
    *value = (struct array_value){.kind = ARRAY_SCALAR};
    size_t head = strcspn(text, ":"), length = strlen(text);
    for (int i = 0; i < KIND_COUNT; i++)
        if (text[head] && strlen(kinds[i]) == head && memcmp(text, kinds[i], head) == 0)
            return parse_generated(what, text, i, value);
    /* File names may hold colons. */
    const char *colon = strrchr(text, ':');
    if (colon && ends_with(text, (size_t)(colon - text), ".npy") && !ends_with(text, length, ".npy")) {
        if (!parse_dtype(what, colon + 1, strlen(colon + 1), &value->dtype)) return false;
        length = (size_t)(colon - text);
    }
    if (!ends_with(text, length, ".npy")) return parse_scalar(what, text, value);
    value->kind = ARRAY_FILE;
    value->path = strndup(text, length);
    return value->path || complain("out of memory");
}

static bool parse_tensor(const char *what, const char *text, struct array_value *value) {
    value->kind = ARRAY_TENSOR;
    value->tensor = malloc(sizeof *value->tensor);
    return value->tensor ? tensor_value_parse(what, text, strlen(text), true, value->tensor)
                         : complain("out of memory");
}

bool buffer_value_parse(const char *what, const char *text, struct array_value *value) {
    static const char tensor[] = "tensor:", extension[] = ".safetensors:";
    *value = (struct array_value){.kind = ARRAY_SCALAR};
    const char *file = strstr(text, extension);
    bool is_tensor = strncmp(text, tensor, sizeof tensor - 1) == 0;
    if (is_tensor) text += sizeof tensor - 1;
    if (!file) return is_tensor ? parse_tensor(what, text, value) : array_value_parse(what, text, value);
    size_t length = (size_t)(file - text) + sizeof extension - 2;
    value->kind = is_tensor ? ARRAY_SCALED_SAFETENSORS : ARRAY_SAFETENSORS;
    value->path = strndup(text, length);
    value->name = strdup(text + length + 1);
    return (value->path && value->name) || complain("out of memory");
}

static smelt_status fill(smelt_array *array, double number) {
    smelt_status status = smelt_array_fill(array, number);
    if (status != SMELT_OK) smelt_array_release(array);
    return status;
}

/* An array of any size in the memory of one element: enough where only dtype and shape matter. */
static smelt_status make_hollow(const struct array_value *value, smelt_array **array) {
    static char element[16];
    static const int64_t still[SMELT_MAX_DIMENSIONS];
    return smelt_array_from_memory(value->dtype, value->shape, still, element, NULL, NULL, array);
}

/* The file's array; its bytes as elements of `dtype` where that is another one. */
static smelt_status read_file(const char *path, smelt_dtype dtype, smelt_array **array) {
    smelt_array *read;
    bool bfloat = dtype == SMELT_BFLOAT16;
    smelt_status status = smelt_array_read_npy(path, bfloat ? dtype : SMELT_NO_DTYPE, &read);
    if (status != SMELT_OK || bfloat || dtype == SMELT_NO_DTYPE) {
        if (status == SMELT_OK) *array = read;
        return status;
    }
    status = smelt_array_reinterpret(read, dtype, array);
    smelt_array_release(read);
    return status;
}

static smelt_status make(const struct array_value *value, bool contents, smelt_array **array) {
    smelt_status status;
    if (!contents && value->kind < ARRAY_SCALAR) return make_hollow(value, array);
    switch (value->kind) {
    case ARRAY_RAND:
        return smelt_array_uniform(value->dtype, value->shape, value->seed, array);
    case ARRAY_NORMAL:
        return smelt_array_normal(value->dtype, value->shape, value->seed, array);
    case ARRAY_ARANGE:
        return smelt_array_arange(value->dtype, value->shape, array);
    case ARRAY_ZEROS:
    case ARRAY_ONES:
        status = smelt_array_create(value->dtype, value->shape, array);
        return status == SMELT_OK ? fill(*array, value->kind == ARRAY_ONES) : status;
    case ARRAY_SCALAR:
        return smelt_array_from_values(value->dtype, (smelt_shape){.ndim = 0}, &value->scalar, array);
    case ARRAY_FILE:
    case ARRAY_SAFETENSORS:
    case ARRAY_SCALED_SAFETENSORS:
    case ARRAY_TENSOR:
        break;
    }
    return read_file(value->path, value->dtype, array);
}

bool array_value_make(const char *what, const struct array_value *value, bool contents, smelt_array **array,
                      int *status) {
    smelt_array *made = NULL;
    smelt_status result = make(value, contents, &made);
    if (result == SMELT_OK) {
        *array = made;
        return true;
    }
    *status = result == SMELT_ERROR_OUT_OF_MEMORY ? EXIT_ENVIRONMENT : EXIT_USAGE;
    return complain("%s: %s", what, smelt_error());
}

void array_value_free(struct array_value *value) {
    free(value->path);
    free(value->name);
    free(value->tensor);
    value->path = value->name = NULL;
    value->tensor = NULL;
}
