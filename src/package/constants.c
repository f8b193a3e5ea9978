#include "package/constants.h"

#include <stdlib.h>
#include <string.h>

/* ---- When a package is built. */

static const smelt_constant *find(const smelt_constant *given, int index, const char *name) {
    for (; given && given->dtype != SMELT_NO_DTYPE; given++)
        if (constant_matches(given, index, name)) return given;
    return NULL;
}

static int by_index(const void *a, const void *b) {
    const struct constant_use *p = a, *q = b;
    return (p->index > q->index) - (p->index < q->index);
}

void constants_of_uses(struct constant_use *uses, int count, const smelt_constant *given,
                       struct package_constant *constants) {
    qsort(uses, (size_t)count, sizeof *uses, by_index);
    for (int i = 0; i < count; i++) {
        const smelt_constant *value = find(given, uses[i].index, uses[i].name);
        smelt_dtype type = (smelt_dtype)uses[i].dtype;
        constants[i] = (struct package_constant){
            .name = uses[i].name, .type = type, .required = uses[i].required, .set = value != NULL};
        constants[i].value = value ? *value : (smelt_constant){.dtype = type};
        constants[i].value.index = uses[i].index;
        constants[i].value.name = NULL;
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
    if (a->count > 1 || b->count > 1)
        return a->count == b->count && a->dtype == b->dtype &&
               memcmp(&a->value, &b->value, (size_t)a->count * sizeof a->value.integer) == 0;
    return bits_as(type, a) == bits_as(type, b);
}

void package_constants(const struct package_entry *entry, const smelt_constant *given,
                       smelt_constant constants[SMELT_MAX_CONSTANTS + 1], bool *changed) {
    int count = 0;
    *changed = false;
    for (int i = 0; i < entry->constant_count && count < SMELT_MAX_CONSTANTS; i++) {
        const struct package_constant *own = &entry->constants[i];
        const smelt_constant *value = find(given, own->value.index, own->name);
        *changed |= value && !(own->set && same_value(own->type, value, &own->value));
        if (!value && own->set) value = &own->value;
        if (!value) continue;
        constants[count] = *value;
        constants[count].index = own->value.index;
        constants[count++].name = NULL;
    }
    constants[count] = (smelt_constant){.dtype = SMELT_NO_DTYPE};
}
