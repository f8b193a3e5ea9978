#include "array/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int bits;
} formats[] = {
#define X(number, upper, lower, bits) {#lower, bits},
    SMELT_FORMAT_TABLE(X)
#undef X
};
enum { FIRST = SMELT_INT4, COUNT = sizeof formats / sizeof *formats };

bool element_is_packed(int element) {
    return element >= FIRST && element < FIRST + COUNT;
}

const char *smelt_element_name(int element) {
    return element_is_packed(element) ? formats[element - FIRST].name
                                      : smelt_dtype_name((smelt_dtype)element);
}

int smelt_element_bits(int element) {
    return element_is_packed(element) ? formats[element - FIRST].bits
                                      : 8 * (int)smelt_dtype_bytes((smelt_dtype)element);
}

struct element_names element_list(void) {
    struct element_names out = {""};
    size_t used = 0;
    for (int e = 1; e < FIRST + COUNT && used < sizeof out.text; e++)
        if (smelt_element_bits(e))
            used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%s", used ? ", " : "",
                                     smelt_element_name(e));
    return out;
}

smelt_status smelt_element_from_name(const char *name, int *element) {
    if (!element) return fail(SMELT_ERROR_INVALID_ARGUMENT, "element from name: element is NULL");
    for (int e = 1; e < FIRST + COUNT; e++)
        if (name && smelt_element_bits(e) && strcmp(name, smelt_element_name(e)) == 0) {
            *element = e;
            return SMELT_OK;
        }
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "element type '%s' is unknown; expected one of %s",
                name ? name : "(null)", element_list().text);
}

/* ---- Values. Real formats have a sign, an exponent and a mantissa; beyond `largest`, a magnitude's bits,
 * lie infinity, where the format has it, and NaN. */

struct real {
    int exponent_bits, mantissa_bits, bias;
    unsigned largest;
    bool infinity, nan;
};

static const struct real *real_of(int element) {
    static const struct real e2m1 = {2, 1, 1, 7, false, false}, e4m3 = {4, 3, 7, 0x7e, false, true},
                             e5m2 = {5, 2, 15, 0x7b, true, true};
    return element == SMELT_FP4_E2M1 ? &e2m1 : element == SMELT_FP8_E4M3 ? &e4m3 : &e5m2;
}

static double real_decode(const struct real *format, unsigned code) {
    int bits = format->exponent_bits + format->mantissa_bits;
    unsigned magnitude = code & ((1u << bits) - 1),
             mantissa = magnitude & ((1u << format->mantissa_bits) - 1);
    int exponent = (int)(magnitude >> format->mantissa_bits);
    if (!exponent)
        exponent = 1;
    else
        mantissa |= 1u << format->mantissa_bits;
    double value = ldexp(mantissa, exponent - format->bias - format->mantissa_bits);
    if (format->nan && magnitude > format->largest)
        value = format->infinity && magnitude == format->largest + 1 ? INFINITY : NAN;
    return code >> bits & 1 ? -value : value;
}

static unsigned real_encode(const struct real *format, double value) {
    int bits = format->exponent_bits + format->mantissa_bits, exponent;
    unsigned sign = signbit(value) ? 1u << bits : 0;
    if (isnan(value)) return sign | (format->nan ? format->largest + 1 + format->infinity : format->largest);
    if (isinf(value)) return sign | format->largest;
    (void)frexp(value, &exponent);
    int least = 1 - format->bias;
    exponent = value == 0 || exponent - 1 < least ? least : exponent - 1;
    if (exponent > 1 << format->exponent_bits) return sign | format->largest; /* units would not fit */
    double units = nearbyint(ldexp(fabs(value), format->mantissa_bits - exponent));
    /* Below 2^mantissa_bits it is a number below the normal ones; a carry gives the next exponent. */
    unsigned code = (unsigned)units + ((unsigned)(exponent - least) << format->mantissa_bits);
    return sign | (code > format->largest ? format->largest : code);
}

static double power_decode(unsigned code) {
    return code == 255 ? NAN : ldexp(1, (int)code - 127);
}

static int integer_low(int element) {
    return element == SMELT_INT4 ? -8 : element == SMELT_INT2 ? -2 : 0;
}

static bool is_integer(int element) {
    return element >= SMELT_INT4 && element <= SMELT_UINT2;
}

double smelt_element_decode(int element, unsigned code) {
    if (!element_is_packed(element)) return NAN;
    code &= (1u << smelt_element_bits(element)) - 1;
    if (element == SMELT_UE8M0) return power_decode(code);
    if (!is_integer(element)) return real_decode(real_of(element), code);
    int bits = smelt_element_bits(element), value = (int)code;
    return integer_low(element) && value >= 1 << (bits - 1) ? value - (1 << bits) : value;
}

/* The power of 2 below, or the next one if the mantissa is beyond half way; ties to the even code. */
static unsigned power_encode(double value) {
    int exponent;
    if (isnan(value)) return 255;
    if (isinf(value) || value <= 0) return value > 0 ? 254 : 0;
    double mantissa = 2 * frexp(value, &exponent);
    int code = exponent - 1 + 127;
    if (code < 0) return 0;
    if (mantissa > 1.5 || (mantissa == 1.5 && (code & 1))) code++;
    return (unsigned)(code > 254 ? 254 : code);
}

unsigned smelt_element_encode(int element, double value) {
    if (!element_is_packed(element)) return 0;
    if (element == SMELT_UE8M0) return power_encode(value);
    int bits = smelt_element_bits(element), low = integer_low(element), high = low + (1 << bits) - 1;
    if (!is_integer(element)) return real_encode(real_of(element), value);
    double whole = isnan(value) ? 0 : nearbyint(value);
    int clamped = whole < low ? low : whole > high ? high : (int)whole;
    return (unsigned)clamped & ((1u << bits) - 1);
}

unsigned packed_load(const void *bytes, int bits, int64_t index) {
    int64_t bit = index * bits;
    return ((const uint8_t *)bytes)[bit / 8] >> bit % 8 & ((1u << bits) - 1);
}

void packed_store(void *bytes, int bits, int64_t index, unsigned code) {
    int64_t bit = index * bits;
    uint8_t *byte = (uint8_t *)bytes + bit / 8;
    unsigned mask = ((1u << bits) - 1) << bit % 8;
    *byte = (uint8_t)((*byte & ~mask) | (code << bit % 8 & mask));
}
