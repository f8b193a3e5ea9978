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
    if (count) qsort(uses, (size_t)count, sizeof *uses, by_index);
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

static double number_of(const smelt_constant *c) {
    if (is_real(c->dtype)) return c->value.real;
    return c->dtype == SMELT_UINT64 ? (double)(uint64_t)c->value.integer : (double)c->value.integer;
}

/* A value as a whole number; false if it is not one of 64 bits. */
static bool whole_number(const smelt_constant *c, bool *negative, int64_t *bits) {
    double real = c->value.real;
    if (!is_real(c->dtype))
        *bits = c->dtype == SMELT_BOOL ? c->value.integer != 0 : c->value.integer;
    else if (real >= -9223372036854775808.0 && real < 9223372036854775808.0 && real == (double)(int64_t)real)
        *bits = (int64_t)real;
    else
        return false;
    *negative = c->dtype != SMELT_UINT64 && *bits < 0;
    return true;
}

/* Distinguishes -0 from 0; equal NaNs are equal. */
static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Whether two values give the same code for a constant of this type. A value that the compiler would refuse
 * is never the same, so that it is refused. */
static bool same_value(smelt_dtype type, const smelt_constant *a, const smelt_constant *b) {
    if (a->count > 1 || b->count > 1)
        return a->count == b->count && a->dtype == b->dtype &&
               memcmp(&a->value, &b->value, (size_t)a->count * sizeof a->value.integer) == 0;
    double p = number_of(a), q = number_of(b);
    if (is_real(type)) return bits_of(p) == bits_of(q);
    if (type == SMELT_BOOL) return (p != 0) == (q != 0);
    bool negative_a, negative_b;
    int64_t bits_a, bits_b;
    return whole_number(a, &negative_a, &bits_a) && whole_number(b, &negative_b, &bits_b) &&
           bits_a == bits_b && negative_a == negative_b;
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
