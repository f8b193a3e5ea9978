#include "array/dtype.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name, *source_name;
    size_t bytes;
} table[] = {[SMELT_NO_DTYPE] = {"none", "none", 0},
#define X(upper, lower, bytes, source) [SMELT_##upper] = {#lower, source, bytes},
             SMELT_DTYPE_TABLE(X)
#undef X
};

static bool known(smelt_dtype dtype) {
    return (unsigned)dtype < sizeof table / sizeof *table;
}

const char *smelt_dtype_name(smelt_dtype dtype) {
    return known(dtype) ? table[dtype].name : "none";
}
size_t smelt_dtype_bytes(smelt_dtype dtype) {
    return known(dtype) ? table[dtype].bytes : 0;
}
const char *dtype_source_name(smelt_dtype dtype) {
    return known(dtype) ? table[dtype].source_name : "none";
}

smelt_status smelt_dtype_from_name(const char *name, smelt_dtype *dtype) {
    char names[256] = "";
    size_t used = 0;
    if (!dtype) return fail(SMELT_ERROR_INVALID_ARGUMENT, "dtype from name: dtype is NULL");
    for (size_t i = 1; i < sizeof table / sizeof *table; i++) {
        if (name && strcmp(name, table[i].name) == 0) {
            *dtype = (smelt_dtype)i;
            return SMELT_OK;
        }
        used += (size_t)snprintf(names + used, sizeof names - used, i > 1 ? ", %s" : "%s", table[i].name);
    }
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "dtype '%s' is unknown; expected one of %s",
                name ? name : "(null)", names);
}

bool dtype_is_float(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16 || dtype == SMELT_FLOAT32 ||
           dtype == SMELT_FLOAT64;
}

bool dtype_is_inexact(smelt_dtype dtype) {
    return dtype_is_float(dtype) || dtype == SMELT_COMPLEX64;
}

bool dtype_is_integer(smelt_dtype dtype) {
    return dtype >= SMELT_UINT8 && dtype <= SMELT_INT64;
}
bool dtype_is_signed(smelt_dtype dtype) {
    return dtype >= SMELT_INT8 && dtype <= SMELT_INT64;
}

#define LOAD(type) (*(const type *)memcpy(&(type){0}, address, sizeof(type)))
#define SIGNED(type) ((struct element){.kind = ELEMENT_SIGNED, .integer = LOAD(type)})
#define UNSIGNED(type) ((struct element){.kind = ELEMENT_UNSIGNED, .integer = (int64_t)LOAD(type)})

struct element element_load(smelt_dtype dtype, const void *address) {
    switch (dtype) {
    case SMELT_BOOL:
        return (struct element){.kind = ELEMENT_UNSIGNED, .integer = LOAD(uint8_t) != 0};
    case SMELT_UINT8:
        return UNSIGNED(uint8_t);
    case SMELT_UINT16:
        return UNSIGNED(uint16_t);
    case SMELT_UINT32:
        return UNSIGNED(uint32_t);
    case SMELT_UINT64:
        return UNSIGNED(uint64_t);
    case SMELT_INT8:
        return SIGNED(int8_t);
    case SMELT_INT16:
        return SIGNED(int16_t);
    case SMELT_INT32:
        return SIGNED(int32_t);
    case SMELT_INT64:
        return SIGNED(int64_t);
    case SMELT_FLOAT16:
        return element_of_real(float16_to_double(LOAD(uint16_t)));
    case SMELT_BFLOAT16:
        return element_of_real(bfloat16_to_double(LOAD(uint16_t)));
    case SMELT_FLOAT32:
        return element_of_real((double)LOAD(float));
    case SMELT_FLOAT64:
        return element_of_real(LOAD(double));
    case SMELT_COMPLEX64: {
        float parts[2];
        memcpy(parts, address, sizeof parts);
        return (struct element){
            .kind = ELEMENT_REAL, .real = (double)parts[0], .imaginary = (double)parts[1]};
    }
    case SMELT_NO_DTYPE:
        break;
    }
    return (struct element){0};
}

double element_as_real(struct element value) {
    if (value.kind == ELEMENT_SIGNED) return (double)value.integer;
    if (value.kind == ELEMENT_UNSIGNED) return (double)(uint64_t)value.integer;
    return value.real;
}

/* Integers go straight to float32: by way of double a 64-bit integer would be rounded twice. */
static float element_as_float(struct element value) {
    if (value.kind == ELEMENT_SIGNED) return (float)value.integer;
    if (value.kind == ELEMENT_UNSIGNED) return (float)(uint64_t)value.integer;
    return (float)value.real;
}

/* To a small float: a 64-bit integer is first rounded to odd in 53 bits, so that the second rounding is
 * exact. */
static double element_for_rounding(struct element value) {
    if (value.kind == ELEMENT_REAL) return value.real;
    bool negative = value.kind == ELEMENT_SIGNED && value.integer < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)value.integer : (uint64_t)value.integer;
    if (magnitude >> 53) magnitude = (magnitude & ~UINT64_C(0xfff)) | ((magnitude & 0xfff) ? 0x1000 : 0);
    return negative ? -(double)magnitude : (double)magnitude;
}

static int64_t saturate_signed(double value, int bits) {
    double limit = ldexp(1, bits - 1);
    if (isnan(value)) return 0;
    if (value >= limit) return bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    if (value < -limit) return bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    return (int64_t)value;
}

static uint64_t saturate_unsigned(double value, int bits) {
    if (isnan(value) || value <= 0) return 0;
    if (value >= ldexp(1, bits)) return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    return (uint64_t)value;
}

#define STORE(type, stored) memcpy(address, &(type){stored}, sizeof(type))
#define STORE_SIGNED(type)                                                                             \
    STORE(type, (type)(value.kind == ELEMENT_REAL ? saturate_signed(value.real, 8 * (int)sizeof(type)) \
                                                  : value.integer))
#define STORE_UNSIGNED(type)                                                                             \
    STORE(type, (type)(value.kind == ELEMENT_REAL ? saturate_unsigned(value.real, 8 * (int)sizeof(type)) \
                                                  : (uint64_t)value.integer))

void element_store(smelt_dtype dtype, void *address, struct element value) {
    switch (dtype) {
    case SMELT_BOOL:
        STORE(uint8_t,
              value.kind == ELEMENT_REAL ? value.real != 0 || value.imaginary != 0 : value.integer != 0);
        break;
    case SMELT_UINT8:
        STORE_UNSIGNED(uint8_t);
        break;
    case SMELT_UINT16:
        STORE_UNSIGNED(uint16_t);
        break;
    case SMELT_UINT32:
        STORE_UNSIGNED(uint32_t);
        break;
    case SMELT_UINT64:
        STORE_UNSIGNED(uint64_t);
        break;
    case SMELT_INT8:
        STORE_SIGNED(int8_t);
        break;
    case SMELT_INT16:
        STORE_SIGNED(int16_t);
        break;
    case SMELT_INT32:
        STORE_SIGNED(int32_t);
        break;
    case SMELT_INT64:
        STORE_SIGNED(int64_t);
        break;
    case SMELT_FLOAT16:
        STORE(uint16_t, float16_from_double(element_for_rounding(value)));
        break;
    case SMELT_BFLOAT16:
        STORE(uint16_t, bfloat16_from_double(element_for_rounding(value)));
        break;
    case SMELT_FLOAT32:
        STORE(float, element_as_float(value));
        break;
    case SMELT_FLOAT64:
        STORE(double, element_as_real(value));
        break;
    case SMELT_COMPLEX64: {
        float parts[2] = {element_as_float(value), value.kind == ELEMENT_REAL ? (float)value.imaginary : 0};
        memcpy(address, parts, sizeof parts);
        break;
    }
    case SMELT_NO_DTYPE:
        break;
    }
}
