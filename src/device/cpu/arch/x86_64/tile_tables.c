/* The values of narrow formats' codes. */
#include "device/cpu/arch/x86_64/tile.h"

#include <math.h>

static struct tile_table tables[TILE_E5M2 + 1];

const struct tile_table *tile_table(enum tile_kind kind) {
    return &tables[kind];
}

static void fill_whole(enum tile_kind kind, unsigned bits, bool is_signed) {
    tables[kind].bits = bits;
    int count = 1 << bits;
    for (int code = 0; code < count; code++)
        tables[kind].values[code] = (float)(is_signed && code >= count / 2 ? code - count : code);
}

/* Magnitudes above `largest` are NaN; the first of them infinity, if the format has it. */
static void fill_real(enum tile_kind kind, int exponent_bits, int mantissa_bits, int largest, bool infinity) {
    int bits = 1 + exponent_bits + mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
    tables[kind].bits = (unsigned)bits;
    for (int code = 0; code < 1 << bits; code++) {
        int magnitude = code & ((1 << (bits - 1)) - 1), exponent = magnitude >> mantissa_bits;
        int mantissa = magnitude & ((1 << mantissa_bits) - 1);
        if (exponent) mantissa += 1 << mantissa_bits;
        float value = ldexpf((float)mantissa, (exponent ? exponent : 1) - bias - mantissa_bits);
        if (magnitude > largest) value = infinity && magnitude == largest + 1 ? INFINITY : NAN;
        tables[kind].values[code] = code >> (bits - 1) ? -value : value;
    }
}

void tile_fill_tables(void) {
    fill_whole(TILE_INT4, 4, true);
    fill_whole(TILE_UINT4, 4, false);
    fill_whole(TILE_INT2, 2, true);
    fill_whole(TILE_UINT2, 2, false);
    fill_real(TILE_FP4, 2, 1, 7, false);
    fill_real(TILE_E4M3, 4, 3, 0x7e, false);
    fill_real(TILE_E5M2, 5, 2, 0x7b, true);
}
