#include "values.h"
#include "commands.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("smelt: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

bool parse_integer(const char *what, const char *text, int64_t low, int64_t high, int64_t *value) {
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (!*text || *end || errno || isspace((unsigned char)*text) || parsed < low || parsed > high)
        return complain("%s is '%s', expected a whole number from %lld to %lld", what, text, (long long)low, (long long)high);
    *value = parsed;
    return true;
}

bool parse_real(const char *what, const char *text, bool special, double *value) {
    char *end;
    double parsed = strtod(text, &end);
    bool good = *text && !*end && !isspace((unsigned char)*text) && (special || (isfinite(parsed) && parsed >= 0));
    if (!good) return complain("%s is '%s', expected a number%s", what, text, special ? "" : " of at least 0");
    *value = parsed;
    return true;
}

bool parse_shape(const char *what, const char *text, size_t length, smelt_shape *shape) {
    smelt_shape out = {.ndim = 0};
    if (length == 0 || (length == 6 && memcmp(text, "scalar", 6) == 0)) {
        *shape = out;
        return true;
    }
    const char *at = text, *end = text + length;
    while (at < end) {
        char digits[24];
        size_t count = 0;
        while (at < end && isdigit((unsigned char)*at) && count < sizeof digits - 1) digits[count++] = *at++;
        digits[count] = 0;
        errno = 0;
        long long size = strtoll(digits, NULL, 10);
        bool separated = at == end || (*at == 'x' && at + 1 < end);
        if (!count || errno || !separated || out.ndim == SMELT_MAX_DIMENSIONS)
            return complain("%s: shape '%.*s' is not sizes joined by x, as 4x16 (at most %d)", what, (int)length, text,
                            SMELT_MAX_DIMENSIONS);
        out.size[out.ndim++] = size;
        if (at < end) at++;
    }
    *shape = out;
    return true;
}

bool parse_triple(const char *what, const char *text, int64_t triple[3]) {
    int count = 0;
    char copy[128];
    if (strlen(text) >= sizeof copy) return complain("%s is '%s', expected X[,Y[,Z]]", what, text);
    strcpy(copy, text);
    triple[0] = triple[1] = triple[2] = 1;
    for (char *at = copy; at; count++) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        char *end;
        errno = 0;
        long long value = strtoll(at, &end, 10);
        if (count == 3 || !*at || *end || errno || isspace((unsigned char)*at))
            return complain("%s is '%s', expected X[,Y[,Z]] in whole numbers", what, text);
        if (value < 1) return complain("%s is '%s': %lld is less than 1", what, text, value);
        triple[count] = value;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

bool parse_dtype(const char *what, const char *text, size_t length, smelt_dtype *dtype) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    if (smelt_dtype_from_name(name, dtype) == SMELT_OK) return true;
    return complain("%s: %s", what, smelt_error());
}

/* ---- Arrays. */

static bool ends_with(const char *text, size_t length, const char *tail) {
    size_t n = strlen(tail);
    return length >= n && memcmp(text + length - n, tail, n) == 0;
}

static bool parse_generated(const char *what, const char *kind, const char *rest, smelt_array **array, int *exit_status) {
    smelt_dtype dtype;
    smelt_shape shape;
    int64_t seed = 0;
    size_t length = strcspn(rest, ":");
    const char *at = rest + length;
    if (!*at) return complain("%s is '%s:%s', expected %s:DTYPE:SHAPE[:SEED]", what, kind, rest, kind);
    if (!parse_dtype(what, rest, length, &dtype)) return false;
    at++;
    length = strcspn(at, ":");
    if (!parse_shape(what, at, length, &shape)) return false;
    if (at[length] && !parse_integer(what, at + length + 1, 0, INT64_MAX, &seed)) return false;
    smelt_status status;
    if (strcmp(kind, "rand") == 0) {
        status = smelt_array_uniform(dtype, shape, (uint64_t)seed, array);
    } else if (strcmp(kind, "normal") == 0) {
        status = smelt_array_normal(dtype, shape, (uint64_t)seed, array);
    } else if (strcmp(kind, "arange") == 0) {
        status = smelt_array_arange(dtype, shape, array);
    } else {
        status = smelt_array_create(dtype, shape, array);
        if (status == SMELT_OK) status = smelt_array_fill(*array, strcmp(kind, "ones") == 0 ? 1 : 0);
    }
    if (status == SMELT_OK) return true;
    *exit_status = status == SMELT_ERROR_OUT_OF_MEMORY ? EXIT_ENVIRONMENT : EXIT_USAGE;
    return complain("%s: %s", what, smelt_error());
}

static bool parse_scalar(const char *what, const char *text, smelt_array **array) {
    smelt_shape scalar = {.ndim = 0};
    char *end;
    smelt_status status;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        bool value = *text == 't';
        status = smelt_array_from_values(SMELT_BOOL, scalar, &value, array);
    } else {
        errno = 0;
        long long integer = strtoll(text, &end, 10);
        if (*text && !*end && !isspace((unsigned char)*text)) {
            if (errno || integer < INT32_MIN || integer > INT32_MAX)
                return complain("%s is %s, which does not fit in int32", what, text);
            int32_t value = (int32_t)integer;
            status = smelt_array_from_values(SMELT_INT32, scalar, &value, array);
        } else {
            float value = strtof(text, &end);
            if (!*text || *end || isspace((unsigned char)*text))
                return complain("%s is '%s', expected FILE.npy, rand:DTYPE:SHAPE[:SEED] (or normal, zeros, ones, arange), "
                                "a number, true or false",
                                what, text);
            status = smelt_array_from_values(SMELT_FLOAT32, scalar, &value, array);
        }
    }
    return status == SMELT_OK || complain("%s: %s", what, smelt_error());
}

bool parse_array(const char *what, const char *text, smelt_array **array, int *exit_status) {
    static const char *const kinds[] = {"rand", "normal", "zeros", "ones", "arange"};
    *exit_status = EXIT_USAGE;
    size_t head = strcspn(text, ":");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i]) == head && memcmp(text, kinds[i], head) == 0 && text[head] == ':')
            return parse_generated(what, kinds[i], text + head + 1, array, exit_status);
    /* FILE.npy or FILE.npy:bfloat16; file names may hold colons. */
    size_t length = strlen(text);
    smelt_dtype dtype = SMELT_NO_DTYPE;
    if (ends_with(text, length, ".npy:bfloat16")) {
        dtype = SMELT_BFLOAT16;
        length -= strlen(":bfloat16");
    }
    if (!ends_with(text, length, ".npy")) return parse_scalar(what, text, array);
    char *path = strndup(text, length);
    if (!path) return complain("out of memory");
    smelt_status status = smelt_array_read_npy(path, dtype, array);
    free(path);
    if (status == SMELT_OK) return true;
    if (status == SMELT_ERROR_OUT_OF_MEMORY) *exit_status = EXIT_ENVIRONMENT;
    return complain("%s: %s", what, smelt_error());
}

bool parse_template(const char *what, const char *text, smelt_template *value) {
    char *end;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value->kind = SMELT_TEMPLATE_BOOL;
        value->boolean = *text == 't';
        return true;
    }
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (*text && !*end && !isspace((unsigned char)*text)) {
        if (errno || integer < INT32_MIN || integer > INT32_MAX)
            return complain("%s is %s, which does not fit in int32", what, text);
        value->kind = SMELT_TEMPLATE_INT;
        value->integer = integer;
        return true;
    }
    value->kind = SMELT_TEMPLATE_DTYPE;
    if (smelt_dtype_from_name(text, &value->dtype) == SMELT_OK) return true;
    return complain("%s is '%s', expected a dtype, an integer, true or false", what, text);
}

/* One number as one element of `dtype`, at `address` (at least 8 bytes of room). */
static bool parse_element(const char *what, const char *text, smelt_dtype dtype, void *address) {
    smelt_shape scalar = {.ndim = 0};
    smelt_array *array = NULL, *converted = NULL;
    char *end;
    smelt_status status;
    errno = 0;
    long long integer = strtoll(text, &end, 0);
    bool negative = *text == '-';
    unsigned long long natural = strtoull(text, &end, 0);
    if (*text && !*end && !isspace((unsigned char)*text)) {
        uint64_t bits = negative ? (uint64_t)integer : (uint64_t)natural;
        status = smelt_array_from_values(negative ? SMELT_INT64 : SMELT_UINT64, scalar, &bits, &array);
    } else {
        double real = strtod(text, &end);
        bool truth = strcmp(text, "true") == 0;
        if (truth || strcmp(text, "false") == 0) real = truth;
        else if (!*text || *end || isspace((unsigned char)*text))
            return complain("%s: '%s' is not a number", what, text);
        status = smelt_array_from_values(SMELT_FLOAT64, scalar, &real, &array);
    }
    if (status == SMELT_OK) status = smelt_array_convert(array, dtype, &converted);
    if (status == SMELT_OK) memcpy(address, smelt_array_data(converted), smelt_dtype_bytes(dtype));
    smelt_array_release(array);
    smelt_array_release(converted);
    return status == SMELT_OK || complain("%s: %s", what, smelt_error());
}

bool parse_bytes(const char *what, const char *text, void **bytes, size_t *size) {
    size_t head = strcspn(text, ":");
    smelt_dtype dtype;
    if (!text[head] || !text[head + 1]) return complain("%s is '%s', expected DTYPE:VALUE[,VALUE…]", what, text);
    if (!parse_dtype(what, text, head, &dtype)) return false;
    size_t width = smelt_dtype_bytes(dtype), count = 1;
    for (const char *c = text + head + 1; *c; c++) count += *c == ',';
    char *out = calloc(count, width), *copy = strdup(text + head + 1);
    bool good = out && copy;
    if (!good) complain("out of memory");
    size_t index = 0;
    for (char *at = copy; good && at; index++) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        good = parse_element(what, at, dtype, out + index * width);
        at = comma ? comma + 1 : NULL;
    }
    free(copy);
    if (!good) {
        free(out);
        return false;
    }
    *bytes = out;
    *size = count * width;
    return true;
}

bool parse_constant(const char *what, const char *text, smelt_constant *constant) {
    size_t head = strcspn(text, ":");
    if (text[head]) {
        if (!parse_dtype(what, text, head, &constant->dtype)) return false;
        text += head + 1;
    }
    char *end;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        if (!constant->dtype) constant->dtype = SMELT_BOOL;
        constant->value.integer = *text == 't';
        return true;
    }
    errno = 0;
    long long integer = strtoll(text, &end, 0);
    bool whole = *text && !*end && !errno && !isspace((unsigned char)*text);
    double real = strtod(text, &end);
    if (!*text || *end) return complain("%s is '%s', expected true, false, a number, or DTYPE:NUMBER", what, text);
    if (!constant->dtype) constant->dtype = whole ? SMELT_INT64 : SMELT_FLOAT32;
    bool is_real = constant->dtype == SMELT_FLOAT16 || constant->dtype == SMELT_BFLOAT16 ||
                   constant->dtype == SMELT_FLOAT32 || constant->dtype == SMELT_FLOAT64;
    if (!is_real && !whole) return complain("%s is '%s', expected a whole number for %s", what, text,
                                            smelt_dtype_name(constant->dtype));
    if (is_real) constant->value.real = real;
    else constant->value.integer = integer;
    return true;
}
