/* Which element types suit a parameter of a library's function. */
#include "array/dtype.h"
#include "base/reserved.h"

#include <stdio.h>

static bool is_same_width(smelt_dtype a, smelt_dtype b) {
    return dtype_is_integer(a) && dtype_is_integer(b) && smelt_dtype_bytes(a) == smelt_dtype_bytes(b);
}

static bool fits(const smelt_parameter *parameter, smelt_dtype dtype) {
    smelt_dtype wanted = parameter->dtype;
    bool bytes = parameter->pointer && parameter->components == 1 && smelt_dtype_bytes(wanted) == 1 &&
                 dtype_is_integer(wanted);
    bool pairs = wanted == SMELT_FLOAT32 && parameter->components == 2 && dtype == SMELT_COMPLEX64;
    return wanted == SMELT_NO_DTYPE || dtype == wanted || dtype == SMELT_UINT8 || bytes || pairs ||
           is_same_width(dtype, wanted);
}

smelt_status smelt_parameter_check(const smelt_parameter *parameter, smelt_dtype dtype) {
    if (!parameter) return fail(SMELT_ERROR_INVALID_ARGUMENT, "parameter check: parameter is NULL");
    TRY(reserved_check(smelt_parameter, parameter));
    if (fits(parameter, dtype)) return SMELT_OK;
    char vector[32] = "";
    if (parameter->components > 1) snprintf(vector, sizeof vector, "vectors of %d ", parameter->components);
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "buffer %d ('%s') is %s; the function takes %s%s (or uint8, which passes bytes as they are)",
                parameter->index, parameter->name, smelt_dtype_name(dtype), vector,
                smelt_dtype_name(parameter->dtype));
}
