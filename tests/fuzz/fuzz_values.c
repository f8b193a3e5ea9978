/* Any text as a value of the command line: a complaint or a value that keeps the parser's promise. */
#include "array/array.h"
#include "values.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool condition) {
    if (!condition) abort();
}

static bool ends_with(const char *text, const char *tail) {
    size_t length = strlen(text), n = strlen(tail);
    return length >= n && strcmp(text + length - n, tail) == 0;
}

/* Arrays that open files or take long to fill are left out. */
static bool is_small(const char *text) {
    if (ends_with(text, ".npy") || ends_with(text, ".npy:bfloat16")) return false;
    double product = 1;
    for (const char *c = text; *c;) {
        char *end = (char *)c + 1;
        if (*c >= '0' && *c <= '9') product *= fmax(1, strtod(c, &end));
        c = end;
    }
    return product < 100000;
}

static void try_array(const char *text) {
    smelt_array *array = NULL;
    int status = 0;
    if (!is_small(text)) return;
    if (parse_array("array", text, &array, &status)) {
        require(array != NULL);
        smelt_array_release(array);
    } else {
        require(!array && (status == 2 || status == 3));
    }
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
        require(template.kind != SMELT_TEMPLATE_INT || (int32_t) template.integer == template.integer);
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
    if (parse_bytes("bytes", text, &bytes, &count)) {
        require(bytes && count > 0);
        free(bytes);
    }
    free(text);
    return 0;
}
