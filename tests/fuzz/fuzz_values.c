/* Any text as a value of the command line: a complaint, or a value that satisfies the parser's contract. */
#include "array_value.h"
#include "values.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool condition) {
    if (!condition) abort();
}

/* Small enough to be created quickly; files are not opened. */
static bool is_small(const struct array_value *value) {
    double elements = 1;
    for (int d = 0; d < value->shape.ndim; d++) elements *= (double)value->shape.size[d];
    return value->kind != ARRAY_FILE && elements < 10000;
}

static void try_array(const char *text) {
    struct array_value value;
    if (array_value_parse("array", text, &value)) {
        smelt_array *array = NULL;
        int status = 0;
        require((value.kind == ARRAY_FILE) == (value.path != NULL));
        if (is_small(&value)) {
            require(array_value_make("array", &value, true, &array, &status) && array);
            require(smelt_array_dtype(array) == value.dtype &&
                    smelt_array_shape(array).ndim == value.shape.ndim);
        }
        smelt_array_release(array);
    }
    array_value_free(&value);
}

static void try_numbers(const char *text) {
    int64_t triple[3], integer;
    double real;
    if (parse_triple("triple", text, triple)) require(triple[0] >= 1 && triple[1] >= 1 && triple[2] >= 1);
    if (parse_integer("integer", text, -5, 1000, &integer)) require(integer >= -5 && integer <= 1000);
    if (parse_real("real", text, false, &real)) require(isfinite(real) && real >= 0);
    (void)parse_real("real", text, true, &real);
}

static void try_names(const char *text, size_t length) {
    smelt_shape shape;
    smelt_dtype dtype;
    smelt_template template = {0};
    smelt_constant constant = {0};
    if (parse_shape("shape", text, length, &shape)) {
        require(shape.ndim >= 0 && shape.ndim <= SMELT_MAX_DIMENSIONS);
        for (int d = 0; d < shape.ndim; d++) require(shape.size[d] >= 0);
    }
    if (parse_dtype("dtype", text, length, &dtype)) require(smelt_dtype_bytes(dtype) > 0);
    if (parse_template("template", text, &template))
        require(template.kind != SMELT_TEMPLATE_INT || (int32_t)template.integer == template.integer);
    if (parse_constant("constant", text, &constant)) require(smelt_dtype_bytes(constant.dtype) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    require(text != NULL);
    if (size) memcpy(text, data, size);
    text[size] = 0;
    size_t length = strlen(text);
    try_numbers(text);
    try_names(text, length);
    try_array(text);
    void *bytes = NULL;
    size_t count = 0;
    smelt_dtype dtype;
    if (parse_bytes("bytes", text, &dtype, &bytes, &count)) {
        require(bytes && count > 0 && count % smelt_dtype_bytes(dtype) == 0);
        free(bytes);
    }
    free(text);
    return 0;
}
