/* The properties of each operation before it is computed: name, kind, inputs, and of elementwise ones the
 * dtypes. */
#include "array/dtype.h"
#include "ops/elementwise.h"

#include <string.h>

/* ---- Names. */

static const struct {
    const char *name;
    smelt_operation_kind kind;
    int inputs;
} names[SMELT_OPERATION_END] = {
#define ROW(upper, lower, kind, inputs) [SMELT_OPERATION_##upper] = {#lower, SMELT_KIND_##kind, inputs},
    SMELT_OPERATION_TABLE(ROW)
#undef ROW
};

static bool known(smelt_operation operation) {
    return operation > SMELT_OPERATION_NONE && operation < SMELT_OPERATION_END;
}

int smelt_operation_count(void) {
    return SMELT_OPERATION_END - 1;
}

const char *smelt_operation_name(smelt_operation operation) {
    return known(operation) ? names[operation].name : NULL;
}

smelt_operation_kind smelt_operation_kind_of(smelt_operation operation) {
    return known(operation) ? names[operation].kind : SMELT_KIND_NONE;
}

int smelt_operation_inputs(smelt_operation operation) {
    return known(operation) ? names[operation].inputs : 0;
}

smelt_operation smelt_operation_from_name(const char *name) {
    for (int i = 1; name && i < SMELT_OPERATION_END; i++)
        if (strcmp(names[i].name, name) == 0) return (smelt_operation)i;
    return SMELT_OPERATION_NONE;
}

/* ---- Elementwise operations. */

const struct elementwise *elementwise_find(smelt_operation operation) {
    static const struct elementwise table[SMELT_OPERATION_END] = {
#define ROW(upper, domain, outcome, real, integer, complex, host) \
    [SMELT_OPERATION_##upper] = {DOMAIN_##domain, OUTCOME_##outcome, real, integer, complex},
        UNARY_TABLE(ROW) BINARY_TABLE(ROW)
#undef ROW
    };
    return &table[operation];
}

smelt_status elementwise_dtypes(smelt_operation operation, smelt_dtype common, smelt_dtype *computed,
                                smelt_dtype *result) {
    const struct elementwise *row = elementwise_find(operation);
    const char *name = smelt_operation_name(operation);
    if (row->domain == DOMAIN_FLOATS && !dtype_is_inexact(common)) common = SMELT_FLOAT32;
    if (row->domain == DOMAIN_INTEGERS && dtype_is_inexact(common))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the inputs' dtype is %s, expected integers or bool",
                    name, smelt_dtype_name(common));
    if (common == SMELT_COMPLEX64 && !row->complex[0])
        return fail(SMELT_ERROR_UNSUPPORTED, "%s is not defined for complex64", name);
    *computed = common;
    *result = row->outcome == OUTCOME_BOOL                                ? SMELT_BOOL
              : row->outcome == OUTCOME_REAL && common == SMELT_COMPLEX64 ? SMELT_FLOAT32
                                                                          : common;
    return SMELT_OK;
}
