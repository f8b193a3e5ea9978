#include "package/constants.h"

#include <stdlib.h>
#include <string.h>

/* ---- When a package is built. */

static const smelt_constant *find(const smelt_constant *given, int index) {
    for (; given && given->dtype != SMELT_NO_DTYPE; given++)
        if (given->index == index) return given;
    return NULL;
}

static int by_index(const void *a, const void *b) {
    const struct constant_use *p = a, *q = b;
    return (p->index > q->index) - (p->index < q->index);
}

/* Metal's names of the types a function constant may have. */
static const struct {
    const char *name;
    smelt_dtype dtype;
} types[] = {
    {"bool", SMELT_BOOL},       {"char", SMELT_INT8},    {"int8_t", SMELT_INT8},     {"uchar", SMELT_UINT8},
    {"uint8_t", SMELT_UINT8},   {"short", SMELT_INT16},  {"int16_t", SMELT_INT16},   {"ushort", SMELT_UINT16},
    {"uint16_t", SMELT_UINT16}, {"int", SMELT_INT32},    {"int32_t", SMELT_INT32},   {"uint", SMELT_UINT32},
    {"uint32_t", SMELT_UINT32}, {"long", SMELT_INT64},   {"int64_t", SMELT_INT64},   {"ulong", SMELT_UINT64},
    {"uint64_t", SMELT_UINT64}, {"half", SMELT_FLOAT16}, {"bfloat", SMELT_BFLOAT16}, {"float", SMELT_FLOAT32},
};

static smelt_dtype type_named(const struct tokens *t, uint32_t at) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (token_is(t, at, types[i].name)) return types[i].dtype;
    return SMELT_NO_DTYPE;
}

/* The type in the declaration of a constant: what stands behind `constant`. Only bitcode knows for certain,
 * but not of integers whether they have a sign, and of bytes whether they are truth values: a type of another
 * width than that of `known` is not this one's. */
static smelt_dtype declared_type(const struct tokens *t, const char *name, smelt_dtype known) {
    for (uint32_t i = 0; i + 2 < t->count; i++) {
        if (!token_is(t, i, name) || !token_pair(t, i + 1, '[', '[')) continue;
        uint32_t first = i;
        while (first > 0 && !token_is(t, first, "constant") && !token_is(t, first, ";") &&
               !token_is(t, first, "}"))
            first--;
        smelt_dtype type = token_is(t, first, "constant") ? type_named(t, first + 1) : SMELT_NO_DTYPE;
        if (smelt_dtype_bytes(type) == smelt_dtype_bytes(known)) return type;
    }
    return known;
}

void constants_of_uses(const struct tokens *source, struct constant_use *uses, int count,
                       const smelt_constant *given, struct package_constant *constants) {
    qsort(uses, (size_t)count, sizeof *uses, by_index);
    for (int i = 0; i < count; i++) {
        const smelt_constant *value = find(given, uses[i].index);
        smelt_dtype type = declared_type(source, uses[i].name, (smelt_dtype)uses[i].dtype);
        constants[i] = (struct package_constant){
            .name = uses[i].name, .type = type, .required = uses[i].required, .set = value != NULL};
        constants[i].value = value ? *value : (smelt_constant){.index = uses[i].index, .dtype = type};
    }
}

/* ---- When it is loaded. */

static bool is_real(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16 || dtype == SMELT_FLOAT32 ||
           dtype == SMELT_FLOAT64;
}

/* What a value is in code of a constant of this type: equal values have equal bits. */
static uint64_t bits_as(smelt_dtype type, const smelt_constant *c) {
    bool given_real = is_real(c->dtype);
    double real = given_real ? c->value.real : (double)c->value.integer;
    int64_t integer = given_real ? (int64_t)c->value.real : c->value.integer;
    size_t width = smelt_dtype_bytes(type);
    uint64_t bits;
    if (is_real(type)) {
        memcpy(&bits, &real, sizeof bits);
        return bits;
    }
    bits = (uint64_t)integer;
    if (type == SMELT_BOOL || c->dtype == SMELT_BOOL) return bits != 0;
    return width && width < 8 ? bits & ((UINT64_C(1) << 8 * width) - 1) : bits;
}

static bool same_value(smelt_dtype type, const smelt_constant *a, const smelt_constant *b) {
    return bits_as(type, a) == bits_as(type, b);
}

void package_constants(const struct package_entry *entry, const smelt_constant *given,
                       smelt_constant constants[SMELT_MAX_CONSTANTS + 1], bool *changed) {
    int count = 0;
    *changed = false;
    for (int i = 0; i < entry->constant_count && count < SMELT_MAX_CONSTANTS; i++) {
        const struct package_constant *own = &entry->constants[i];
        const smelt_constant *value = find(given, own->value.index);
        *changed |= value && !(own->set && same_value(own->type, value, &own->value));
        if (!value && own->set) value = &own->value;
        if (value) constants[count++] = *value;
    }
    constants[count] = (smelt_constant){.dtype = SMELT_NO_DTYPE};
}
