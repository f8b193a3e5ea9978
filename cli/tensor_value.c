#include "tensor_value.h"
#include "values.h"

#include <stdio.h>
#include <string.h>

static bool parse_element(const char *what, const char *text, size_t length, int *element) {
    char name[64];
    smelt_dtype dtype;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    if (find_dtype(name, &dtype)) {
        *element = (int)dtype;
        return true;
    }
    return smelt_element_from_name(name, element) == SMELT_OK || complain("%s: %s", what, smelt_error());
}

/* "64x32" of at least one dimension. */
static bool parse_sizes(const char *what, const char *text, size_t length, int64_t *sizes, int *count) {
    smelt_shape shape;
    if (!parse_shape(what, text, length, &shape)) return false;
    if (!shape.ndim)
        return complain("%s is '%.*s'; expected dimensions, as in 64x32", what, (int)length, text);
    for (int d = 0; d < shape.ndim; d++)
        if (shape.size[d] < 1)
            return complain("%s: size %d of '%.*s' is 0; expected at least 1", what, d, (int)length, text);
    *count = shape.ndim;
    memcpy(sizes, shape.size, sizeof shape.size);
    return true;
}

static bool parse_scales(const char *what, const char *text, size_t length, smelt_tensor_desc *desc) {
    const char *colon = memchr(text, ':', length);
    int count = 0;
    if (!colon)
        return complain("%s has 'scales=%.*s'; expected scales=ELEMENT:BLOCKS, as in scales=ue8m0:32x1", what,
                        (int)length, text);
    if (!parse_element(what, text, (size_t)(colon - text), &desc->scales.element)) return false;
    if (!parse_sizes(what, colon + 1, length - (size_t)(colon + 1 - text), desc->scales.block, &count))
        return false;
    return count == desc->ndim ||
           complain("%s: its blocks of scales have %d dimensions; expected %d", what, count, desc->ndim);
}

bool tensor_value_parse(const char *what, const char *text, size_t length, bool seeded,
                        struct tensor_value *value) {
    static const char scales[] = "scales=";
    const char *end = text + length, *colon = memchr(text, ':', length);
    *value = (struct tensor_value){.seed = 0};
    if (!colon)
        return complain("%s is 'tensor:%.*s'; expected tensor:ELEMENT:DIMENSIONS[:scales=ELEMENT:BLOCKS]%s",
                        what, (int)length, text, seeded ? "[:SEED]" : "");
    if (!parse_element(what, text, (size_t)(colon - text), &value->desc.element)) return false;
    const char *at = colon + 1, *next = memchr(at, ':', (size_t)(end - at));
    if (!parse_sizes(what, at, (size_t)((next ? next : end) - at), value->desc.dimensions, &value->desc.ndim))
        return false;
    at = next ? next + 1 : end;
    if ((size_t)(end - at) >= sizeof scales - 1 && memcmp(at, scales, sizeof scales - 1) == 0) {
        at += sizeof scales - 1;
        const char *blocks = memchr(at, ':', (size_t)(end - at));
        next = blocks ? memchr(blocks + 1, ':', (size_t)(end - blocks - 1)) : NULL;
        if (!parse_scales(what, at, (size_t)((next ? next : end) - at), &value->desc)) return false;
        at = next ? next + 1 : end;
    }
    if (at == end)
        return !next || complain("%s is 'tensor:%.*s'; expected a seed at its end", what, (int)length, text);
    if (!seeded) return complain("%s is 'tensor:%.*s': an output has no seed", what, (int)length, text);
    char digits[32];
    int64_t seed;
    snprintf(digits, sizeof digits, "%.*s", (int)(end - at), at);
    if (!parse_integer("the seed", digits, 0, INT64_MAX, &seed)) return false;
    value->seed = (uint64_t)seed;
    return true;
}
