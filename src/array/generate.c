/* Arrays with generated contents: uniform, normal, arange. The generator is Philox4x32-10, so that element i
 * depends on the seed and i only: key = seed, counter = (i / 4, draw), word i % 4. Draw 0 is the first random
 * word of an element, draw 1 the second where one is not enough. */
#include "array/array.h"
#include "array/dtype.h"
#include "array/philox.h"

#include <math.h>

/* Four elements at a time. */
#define BLOCK 4

static struct philox random_words(uint64_t block, uint32_t draw, uint64_t seed) {
    struct philox counter = {{(uint32_t)block, (uint32_t)(block >> 32), draw, 0}};
    return philox4x32(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* [0, 1) in steps of 2^-24: exact in float32. */
static double unit(uint32_t bits) {
    return (double)(bits >> 8) * 0x1p-24;
}

/* The same rounded down to a dtype of fewer than 24 significant bits, so that 1 is never reached. */
static double unit_rounded_down(uint32_t bits, smelt_dtype dtype) {
    double value = unit(bits);
    int kept = dtype == SMELT_FLOAT16 ? 10 : dtype == SMELT_BFLOAT16 ? 7 : 52;
    uint64_t pattern;
    memcpy(&pattern, &value, sizeof pattern);
    pattern &= ~UINT64_C(0) << (52 - kept);
    memcpy(&value, &pattern, sizeof value);
    return value;
}

/* ---- Floats: generated as doubles, chunk by chunk, and rounded with the loops of array copies. */

#define CHUNK 1024 /* elements; a multiple of BLOCK that stays in the first-level cache */

static void uniform_reals(smelt_dtype dtype, uint64_t block, uint64_t seed, double out[BLOCK]) {
    struct philox words = random_words(block, 0, seed);
    for (int i = 0; i < BLOCK; i++) out[i] = unit_rounded_down(words.word[i], dtype);
}

/* Box–Muller: the logarithm's argument is in (0, 1]. */
static void box_muller(uint32_t first, uint32_t second, double *radius, double *angle) {
    *radius = sqrt(-2 * log(unit(first) + 0x1p-24));
    *angle = 6.283185307179586 * unit(second);
}

static void normal_reals(smelt_dtype dtype, uint64_t block, uint64_t seed, double out[BLOCK]) {
    (void)dtype;
    struct philox first = random_words(block, 0, seed), second = random_words(block, 1, seed);
    for (int i = 0; i < BLOCK; i++) {
        double radius, angle;
        box_muller(first.word[i], second.word[i], &radius, &angle);
        out[i] = radius * cos(angle);
    }
}

static void arange_reals(smelt_dtype dtype, uint64_t block, uint64_t seed, double out[BLOCK]) {
    (void)dtype;
    (void)seed;
    for (int i = 0; i < BLOCK; i++) out[i] = (double)(block * BLOCK + (uint64_t)i);
}

typedef void make_reals(smelt_dtype dtype, uint64_t block, uint64_t seed, double out[BLOCK]);

static void generate_reals(smelt_array *array, make_reals *make, uint64_t seed) {
    double chunk[CHUNK];
    for (int64_t at = 0; at < array->size; at += CHUNK) {
        int64_t count = array->size - at < CHUNK ? array->size - at : CHUNK;
        for (int64_t i = 0; i < count; i += BLOCK)
            make(array->dtype, (uint64_t)(at + i) / BLOCK, seed, chunk + i);
        store_reals(array->dtype, array->data + at * (int64_t)smelt_dtype_bytes(array->dtype), chunk, count);
    }
}

/* ---- Everything else. */

static void uniform_elements(smelt_dtype dtype, uint64_t block, uint64_t seed, struct element out[BLOCK]) {
    struct philox first = random_words(block, 0, seed);
    struct philox second = smelt_dtype_bytes(dtype) == 8 ? random_words(block, 1, seed) : first;
    for (int i = 0; i < BLOCK; i++) {
        uint64_t bits = (uint64_t)second.word[i] << 32 | first.word[i];
        out[i] = (struct element){.kind = ELEMENT_UNSIGNED,
                                  .integer = (int64_t)(dtype == SMELT_BOOL ? bits & 1 : bits)};
        if (dtype == SMELT_COMPLEX64)
            out[i] = (struct element){
                .kind = ELEMENT_REAL, .real = unit(first.word[i]), .imaginary = unit(second.word[i])};
    }
}

static void normal_elements(smelt_dtype dtype, uint64_t block, uint64_t seed, struct element out[BLOCK]) {
    (void)dtype;
    struct philox first = random_words(block, 0, seed), second = random_words(block, 1, seed);
    for (int i = 0; i < BLOCK; i++) {
        double radius, angle;
        box_muller(first.word[i], second.word[i], &radius, &angle);
        out[i] = (struct element){
            .kind = ELEMENT_REAL, .real = radius * cos(angle), .imaginary = radius * sin(angle)};
    }
}

static void arange_elements(smelt_dtype dtype, uint64_t block, uint64_t seed, struct element out[BLOCK]) {
    (void)dtype;
    (void)seed;
    for (int i = 0; i < BLOCK; i++)
        out[i] = (struct element){.kind = ELEMENT_SIGNED, .integer = (int64_t)(block * BLOCK) + i};
}

typedef void make_elements(smelt_dtype dtype, uint64_t block, uint64_t seed, struct element out[BLOCK]);

static void generate_elements(smelt_array *array, make_elements *make, uint64_t seed) {
    int64_t bytes = (int64_t)smelt_dtype_bytes(array->dtype);
    for (int64_t at = 0; at < array->size; at += BLOCK) {
        struct element block[BLOCK];
        int64_t count = array->size - at < BLOCK ? array->size - at : BLOCK;
        make(array->dtype, (uint64_t)at / BLOCK, seed, block);
        for (int64_t i = 0; i < count; i++)
            element_store(array->dtype, array->data + (at + i) * bytes, block[i]);
    }
}

/* ---- */

static smelt_status generate(make_reals *reals, make_elements *elements, smelt_dtype dtype, smelt_shape shape,
                             uint64_t seed, smelt_array **array) {
    smelt_array *made;
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "array: the address for the new array is NULL");
    TRY(smelt_array_create(dtype, shape, &made));
    if (dtype_is_float(dtype))
        generate_reals(made, reals, seed);
    else
        generate_elements(made, elements, seed);
    *array = made;
    return SMELT_OK;
}

smelt_status smelt_array_uniform(smelt_dtype dtype, smelt_shape shape, uint64_t seed, smelt_array **array) {
    return generate(uniform_reals, uniform_elements, dtype, shape, seed, array);
}

smelt_status smelt_array_normal(smelt_dtype dtype, smelt_shape shape, uint64_t seed, smelt_array **array) {
    if (!dtype_is_float(dtype) && dtype != SMELT_COMPLEX64)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "normal: dtype %s has no normal distribution; expected a float dtype",
                    smelt_dtype_name(dtype));
    return generate(normal_reals, normal_elements, dtype, shape, seed, array);
}

smelt_status smelt_array_arange(smelt_dtype dtype, smelt_shape shape, smelt_array **array) {
    return generate(arange_reals, arange_elements, dtype, shape, 0, array);
}
