/* Arrays with generated contents: uniform, normal, arange. The generator is Philox4x32-10
 * (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): a counter-based function, so that
 * element i depends on the seed and i only. */
#include "array/array.h"
#include "array/dtype.h"

#include <math.h>

struct four {
    uint32_t word[4];
};

static struct four philox(uint64_t counter, uint64_t seed) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    struct four x = {{(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0}};
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = UINT64_C(0xD2511F53) * x.word[0];
        uint64_t product1 = UINT64_C(0xCD9E8D57) * x.word[2];
        x = (struct four){{(uint32_t)(product1 >> 32) ^ x.word[1] ^ key0, (uint32_t)product1,
                           (uint32_t)(product0 >> 32) ^ x.word[3] ^ key1, (uint32_t)product0}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return x;
}

/* [0, 1) in steps of 2^-24: exact in float32. */
static double unit(uint32_t bits) { return (double)(bits >> 8) * 0x1p-24; }

/* The largest value of a float dtype below 1, so that rounding never reaches 1. */
static double below_one(smelt_dtype dtype) {
    if (dtype == SMELT_FLOAT16) return 1 - 0x1p-11;
    if (dtype == SMELT_BFLOAT16) return 1 - 0x1p-8;
    return 1 - 0x1p-24;
}

static struct element uniform_element(smelt_dtype dtype, uint64_t index, uint64_t seed) {
    struct four x = philox(index / 4, seed);
    uint32_t bits = x.word[index % 4];
    if (dtype_is_float(dtype)) {
        double value = unit(bits), limit = below_one(dtype);
        return element_of_real(value > limit ? limit : value);
    }
    if (dtype == SMELT_COMPLEX64) {
        struct four y = philox(index / 4, ~seed);
        return (struct element){.kind = ELEMENT_REAL, .real = unit(bits), .imaginary = unit(y.word[index % 4])};
    }
    uint64_t high = philox(index / 4, ~seed).word[index % 4];
    return (struct element){.kind = ELEMENT_UNSIGNED,
                            .integer = dtype == SMELT_BOOL ? bits & 1 : (int64_t)((high << 32) | bits)};
}

static struct element normal_element(uint64_t index, uint64_t seed) {
    uint32_t first = philox(index / 4, seed).word[index % 4];
    uint32_t second = philox(index / 4, ~seed).word[index % 4];
    double radius = sqrt(-2 * log(unit(first) + 0x1p-24));
    double angle = 6.283185307179586 * unit(second);
    return (struct element){.kind = ELEMENT_REAL, .real = radius * cos(angle), .imaginary = radius * sin(angle)};
}

smelt_status smelt_array_uniform(smelt_dtype dtype, smelt_shape shape, uint64_t seed, smelt_array **array) {
    smelt_array *made;
    TRY(smelt_array_create(dtype, shape, &made));
    size_t bytes = smelt_dtype_bytes(dtype);
    for (int64_t i = 0; i < made->size; i++)
        element_store(dtype, made->data + (size_t)i * bytes, uniform_element(dtype, (uint64_t)i, seed));
    *array = made;
    return SMELT_OK;
}

smelt_status smelt_array_normal(smelt_dtype dtype, smelt_shape shape, uint64_t seed, smelt_array **array) {
    if (!dtype_is_float(dtype) && dtype != SMELT_COMPLEX64)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "normal: dtype %s has no normal distribution; expected a float dtype",
                    smelt_dtype_name(dtype));
    smelt_array *made;
    TRY(smelt_array_create(dtype, shape, &made));
    size_t bytes = smelt_dtype_bytes(dtype);
    for (int64_t i = 0; i < made->size; i++)
        element_store(dtype, made->data + (size_t)i * bytes, normal_element((uint64_t)i, seed));
    *array = made;
    return SMELT_OK;
}

smelt_status smelt_array_arange(smelt_dtype dtype, smelt_shape shape, smelt_array **array) {
    smelt_array *made;
    TRY(smelt_array_create(dtype, shape, &made));
    size_t bytes = smelt_dtype_bytes(dtype);
    for (int64_t i = 0; i < made->size; i++)
        element_store(dtype, made->data + (size_t)i * bytes, (struct element){.kind = ELEMENT_SIGNED, .integer = i});
    *array = made;
    return SMELT_OK;
}
