#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names given to the command may hold what a terminal would act upon. */
static void put_printable(unsigned char c) {
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
        fprintf(stderr, "\\x%02x", c);
    else
        fputc(c, stderr);
}

bool complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("smelt: ", stderr);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) >= 0) {
        for (const char *at = text; *at; at++) put_printable((unsigned char)*at);
        free(text);
    }
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

bool parse_integer(const char *what, const char *text, int64_t low, int64_t high, int64_t *value) {
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (!*text || *end || errno || isspace((unsigned char)*text) || parsed < low || parsed > high)
        return complain("%s is '%s', expected a whole number from %lld to %lld", what, text, (long long)low,
                        (long long)high);
    *value = parsed;
    return true;
}

bool parse_real(const char *what, const char *text, bool special, double *value) {
    char *end;
    errno = 0;
    double parsed = strtod(text, &end);
    bool number = *text && !*end && !isspace((unsigned char)*text) && !(errno == ERANGE && isinf(parsed));
    if (!number || (!special && !(isfinite(parsed) && parsed >= 0)))
        return complain("%s is '%s', expected a number%s", what, text, special ? "" : " of at least 0");
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
            return complain("%s: shape '%.*s' is not a list of at most %d sizes joined by x, such as 4x16",
                            what, (int)length, text, SMELT_MAX_DIMENSIONS);
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
    memcpy(copy, text, strlen(text) + 1);
    triple[0] = triple[1] = triple[2] = 1;
    for (char *at = copy; at; count++) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        char *end;
        errno = 0;
        long long value = strtoll(at, &end, 10);
        if (count == 3 || !*at || *end || isspace((unsigned char)*at))
            return complain("%s is '%s', expected X[,Y[,Z]] in whole numbers", what, text);
        if (errno) return complain("%s is '%s': %s does not fit in 63 bits", what, text, at);
        if (value < 1) return complain("%s is '%s': %lld is less than 1", what, text, value);
        triple[count] = value;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

/* What Metal calls the dtypes. */
static const struct {
    const char *name;
    smelt_dtype dtype;
} metal_names[] = {{"char", SMELT_INT8},       {"short", SMELT_INT16},  {"int", SMELT_INT32},
                   {"long", SMELT_INT64},      {"uchar", SMELT_UINT8},  {"ushort", SMELT_UINT16},
                   {"uint", SMELT_UINT32},     {"ulong", SMELT_UINT64}, {"half", SMELT_FLOAT16},
                   {"bfloat", SMELT_BFLOAT16}, {"float", SMELT_FLOAT32}};

bool find_dtype(const char *name, smelt_dtype *dtype) {
    for (size_t i = 0; i < sizeof metal_names / sizeof *metal_names; i++)
        if (strcmp(name, metal_names[i].name) == 0) {
            *dtype = metal_names[i].dtype;
            return true;
        }
    return smelt_dtype_from_name(name, dtype) == SMELT_OK;
}

bool parse_dtype(const char *what, const char *text, size_t length, smelt_dtype *dtype) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    return find_dtype(name, dtype) || complain("%s: %s", what, smelt_error());
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
    if (find_dtype(text, &value->dtype)) return true;
    return complain("%s is '%s', expected a dtype, an integer, true or false", what, text);
}

/* ---- Numbers that become one element of a given dtype. */

static bool is_float(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16 || dtype == SMELT_FLOAT32 ||
           dtype == SMELT_FLOAT64 || dtype == SMELT_COMPLEX64;
}

/* A whole number, decimal or 0x…, between -2^63 and 2^64 - 1, by its 64 bits. */
struct whole {
    bool negative;
    uint64_t bits;
};

enum whole_result { WHOLE_NONE, WHOLE_TOO_LARGE, WHOLE_READ };

static enum whole_result read_whole(const char *text, struct whole *whole) {
    const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
    bool hexadecimal = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    const char *first = hexadecimal ? digits + 2 : digits;
    if (!isxdigit((unsigned char)*first)) return WHOLE_NONE;
    char *end;
    errno = 0;
    unsigned long long magnitude = strtoull(first, &end, hexadecimal ? 16 : 10);
    if (end == first || *end) return WHOLE_NONE;
    whole->negative = *text == '-' && magnitude > 0;
    if (errno || (whole->negative && magnitude > UINT64_C(1) << 63)) return WHOLE_TOO_LARGE;
    whole->bits = whole->negative ? 0 - (uint64_t)magnitude : (uint64_t)magnitude;
    return WHOLE_READ;
}

static bool fits(struct whole whole, smelt_dtype dtype) {
    int bits = 8 * (int)smelt_dtype_bytes(dtype);
    if (dtype == SMELT_BOOL) return !whole.negative && whole.bits <= 1;
    if (dtype >= SMELT_UINT8 && dtype <= SMELT_UINT64)
        return !whole.negative && (bits == 64 || whole.bits >> bits == 0);
    uint64_t limit = UINT64_C(1) << (bits - 1);
    return whole.negative ? 0 - whole.bits <= limit : whole.bits < limit;
}

/* Where rounding to a float dtype reaches infinity. */
static double rounds_to_infinity(smelt_dtype dtype) {
    if (dtype == SMELT_FLOAT16) return 65520;
    if (dtype == SMELT_BFLOAT16) return 0x1.ffp127;
    return dtype == SMELT_FLOAT64 ? (double)INFINITY : 0x1.ffffffp127;
}

/* One number as a value of `dtype`: `whole` for integers and bool, `real` for floats. */
static bool parse_number(const char *what, const char *text, smelt_dtype dtype, struct whole *whole,
                         double *real) {
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *whole = (struct whole){.bits = *text == 't'};
        *real = *text == 't';
        return true;
    }
    if (!is_float(dtype)) {
        enum whole_result result = read_whole(text, whole);
        if (result == WHOLE_NONE)
            return complain("%s: '%s' is not a whole number, as %s needs", what, text,
                            smelt_dtype_name(dtype));
        if (result == WHOLE_TOO_LARGE || !fits(*whole, dtype))
            return complain("%s: %s does not fit in %s", what, text, smelt_dtype_name(dtype));
        return true;
    }
    char *end;
    errno = 0;
    *real = strtod(text, &end);
    if (!*text || *end || isspace((unsigned char)*text))
        return complain("%s: '%s' is not a number", what, text);
    bool written_infinite = isinf(*real) && errno != ERANGE;
    if (fabs(*real) >= rounds_to_infinity(dtype) && !written_infinite)
        return complain("%s: %s does not fit in %s", what, text, smelt_dtype_name(dtype));
    return true;
}

/* One number as one element of `dtype`, at `address`. */
static bool parse_element(const char *what, const char *text, smelt_dtype dtype, void *address) {
    struct whole whole = {0};
    double real = 0;
    smelt_shape scalar = {.ndim = 0};
    smelt_array *array = NULL, *converted = NULL;
    if (!parse_number(what, text, dtype, &whole, &real)) return false;
    smelt_status status = is_float(dtype)
                              ? smelt_array_from_values(SMELT_FLOAT64, scalar, &real, &array)
                              : smelt_array_from_values(SMELT_UINT64, scalar, &whole.bits, &array);
    if (status == SMELT_OK) status = smelt_array_convert(array, dtype, &converted);
    if (status == SMELT_OK) memcpy(address, smelt_array_data(converted), smelt_dtype_bytes(dtype));
    smelt_array_release(array);
    smelt_array_release(converted);
    return status == SMELT_OK || complain("%s: %s", what, smelt_error());
}

bool parse_bytes(const char *what, const char *text, smelt_dtype *dtype, void **bytes, size_t *size) {
    size_t head = strcspn(text, ":");
    if (!text[head] || !text[head + 1])
        return complain("%s is '%s', expected DTYPE:VALUE[,VALUE…]", what, text);
    if (!parse_dtype(what, text, head, dtype)) return false;
    size_t width = smelt_dtype_bytes(*dtype), count = 1;
    for (const char *c = text + head + 1; *c; c++) count += *c == ',';
    char *out = calloc(count, width), *copy = strdup(text + head + 1);
    bool good = out && copy;
    if (!good) complain("out of memory");
    size_t index = 0;
    for (char *at = copy; good && at; index++) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        good = parse_element(what, at, *dtype, out + index * width);
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
    smelt_dtype dtype = SMELT_NO_DTYPE;
    if (text[head]) {
        if (!parse_dtype(what, text, head, &dtype)) return false;
        text += head + 1;
    }
    int count = 1;
    for (const char *c = text; *c; c++) count += *c == ',';
    if (count > 4) return complain("%s has %d components, expected at most 4", what, count);
    if (count > 1 && !dtype)
        return complain("%s is '%s': a vector needs its dtype, such as float32:1,2", what, text);
    for (int i = 0; i < count; i++) {
        char word[64];
        struct whole whole = {0};
        double real = 0;
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        text += length + (text[length] == ',');
        if (!dtype)
            dtype = strcmp(word, "true") == 0 || strcmp(word, "false") == 0 ? SMELT_BOOL
                    : read_whole(word, &whole) == WHOLE_NONE                ? SMELT_FLOAT32
                                                                            : SMELT_INT64;
        if (dtype == SMELT_COMPLEX64)
            return complain("%s is complex64, which a function constant cannot be", what);
        if (!parse_number(what, word, dtype, &whole, &real)) return false;
        if (is_float(dtype))
            constant->value.reals[i] = real;
        else
            constant->value.integers[i] = (int64_t)whole.bits;
    }
    constant->dtype = dtype;
    constant->count = count;
    return true;
}
