#include "unwritten.h"

#include <stdio.h>
#include <string.h>

/* Bits that look like no number a kernel computes, as a word of 8 bytes; floats are quiet NaNs. */
static uint64_t pattern_of(smelt_dtype dtype, int which) {
    static const uint64_t words[2] = {UINT64_C(0xA7C3E1952D4B8F61), UINT64_C(0x5C9A3B71D6E8240F)};
    switch (dtype) {
    case SMELT_FLOAT16:
        return which ? UINT64_C(0x7F5C7F5C7F5C7F5C) : UINT64_C(0x7EA77EA77EA77EA7);
    case SMELT_BFLOAT16:
        return which ? UINT64_C(0x7FDC7FDC7FDC7FDC) : UINT64_C(0x7FE77FE77FE77FE7);
    case SMELT_FLOAT32:
    case SMELT_COMPLEX64:
        return which ? UINT64_C(0x7FDC5C9A7FDC5C9A) : UINT64_C(0x7FE7A7C37FE7A7C3);
    case SMELT_FLOAT64:
        return UINT64_C(0x7FF8000000000000) | words[which] >> 16;
    default:
        return words[which];
    }
}

/* The lowest bytes of the word are an element's, and repeat. */
static uint64_t element_pattern(smelt_dtype dtype, int which) {
    uint64_t word = pattern_of(dtype, which);
    for (size_t bits = 8 * smelt_dtype_bytes(dtype); bits < 64; bits *= 2)
        word = (word & ((UINT64_C(1) << bits) - 1)) * ((UINT64_C(1) << bits) + 1);
    return word;
}

smelt_status unwritten_fill(smelt_dtype dtype, smelt_shape shape, int which, smelt_array **array) {
    smelt_status status = smelt_array_create(dtype, shape, array);
    if (status != SMELT_OK) return status;
    size_t bytes = (size_t)smelt_array_size(*array) * smelt_dtype_bytes(dtype), at = 0;
    uint64_t word = element_pattern(dtype, which);
    char *data = smelt_array_data(*array);
    for (; at + sizeof word <= bytes; at += sizeof word) memcpy(data + at, &word, sizeof word);
    memcpy(data + at, &word, bytes - at);
    return SMELT_OK;
}

bool unwritten_suspected(const smelt_array *first) {
    size_t width = smelt_dtype_bytes(smelt_array_dtype(first));
    uint64_t word = element_pattern(smelt_array_dtype(first), 0);
    const char *data = smelt_array_data(first);
    for (int64_t i = 0; i < smelt_array_size(first); i++)
        if (memcmp(data + (size_t)i * width, &word, width) == 0) return true;
    return false;
}

int64_t unwritten_settle(smelt_array *first, const smelt_array *second, int64_t *index) {
    smelt_dtype dtype = smelt_array_dtype(first);
    size_t width = smelt_dtype_bytes(dtype);
    uint64_t words[2] = {element_pattern(dtype, 0), element_pattern(dtype, 1)};
    bool real = dtype >= SMELT_FLOAT16;
    char *data = smelt_array_data(first);
    const char *other = smelt_array_data(second);
    int64_t count = 0;
    for (int64_t i = 0; i < smelt_array_size(first); i++) {
        size_t at = (size_t)i * width;
        if (memcmp(data + at, &words[0], width) != 0 || memcmp(other + at, &words[1], width) != 0) continue;
        if (count++ == 0) *index = i;
        if (!real) memset(data + at, 0, width);
    }
    return count;
}

void unwritten_warn(const char *name, const smelt_array *array, int64_t count, int64_t index) {
    smelt_shape shape = smelt_array_shape(array);
    const char *value = smelt_array_dtype(array) >= SMELT_FLOAT16 ? "nan"
                        : smelt_array_dtype(array) == SMELT_BOOL  ? "false"
                                                                  : "0";
    fprintf(stderr, "smelt: warning: output '%s'", name);
    if (count == smelt_array_size(array)) {
        fprintf(stderr, " was never written");
    } else {
        fprintf(stderr, ": %lld of %lld elements were never written, the first at [", (long long)count,
                (long long)smelt_array_size(array));
        int64_t below = smelt_array_size(array);
        for (int d = 0; d < shape.ndim; d++) {
            below /= shape.size[d];
            fprintf(stderr, d ? ", %lld" : "%lld", (long long)(index / below));
            index %= below;
        }
        fprintf(stderr, "]");
    }
    fprintf(stderr, "; unwritten elements are %s (--init sets what outputs start as)\n", value);
}
