/* Checks of a kernel's description and of that of a run. */
#include "array/array.h"
#include "array/dtype.h"
#include "base/reserved.h"
#include "kernel/kernel.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

bool kernel_is_identifier(const char *name) {
    if (!name || !(isalpha((unsigned char)*name) || *name == '_')) return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_') return false;
    return true;
}

smelt_status kernel_check_names(const smelt_kernel_desc *desc, int *inputs, int *outputs) {
    const char *const *lists[2] = {desc->inputs, desc->outputs};
    int counts[2] = {0, 0};
    static const char *const words[2] = {"input", "output"};
    for (int l = 0; l < 2; l++)
        for (; counts[l] < SMELT_MAX_ARGUMENTS && lists[l][counts[l]]; counts[l]++) {
            const char *name = lists[l][counts[l]];
            if (!kernel_is_identifier(name))
                return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': %s name '%s' is not an identifier",
                            desc->name, words[l], name);
            for (int m = 0; m <= l; m++)
                for (int i = 0; i < (m == l ? counts[l] : counts[m]); i++)
                    if (strcmp(lists[m][i], name) == 0)
                        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': the name '%s' is used twice",
                                    desc->name, name);
        }
    if (counts[0] + counts[1] > SMELT_MAX_ARGUMENTS)
        return fail(SMELT_ERROR_LIMIT, "kernel '%s' has %d arguments; at most %d are allowed", desc->name,
                    counts[0] + counts[1], SMELT_MAX_ARGUMENTS);
    if (!counts[1])
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s' has no outputs; at least one is needed",
                    desc->name);
    *inputs = counts[0];
    *outputs = counts[1];
    return SMELT_OK;
}

static smelt_status check_inputs(const smelt_kernel *kernel, const smelt_run_desc *desc) {
    const char *name = kernel->desc.name;
    for (int i = 0; i < kernel->input_count; i++) {
        if (!desc->inputs[i])
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': input '%s' is missing: inputs[%d] is NULL", name,
                        kernel->desc.inputs[i], i);
        if (desc->inputs[i]->dtype == SMELT_FLOAT64)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': input '%s' is float64, which kernels do not support; convert it to "
                        "float32 first",
                        name, kernel->desc.inputs[i]);
    }
    if (kernel->input_count < SMELT_MAX_ARGUMENTS && desc->inputs[kernel->input_count])
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': more inputs are given than its %d names",
                    name, kernel->input_count);
    return SMELT_OK;
}

static smelt_status check_outputs(const smelt_kernel *kernel, const smelt_run_desc *desc) {
    const char *name = kernel->desc.name;
    int given = desc->output_count;
    if (!given)
        while (given < SMELT_MAX_ARGUMENTS && desc->output_dtypes[given] != SMELT_NO_DTYPE) given++;
    if (given != kernel->output_count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s' has %d outputs, but shapes and dtypes for %d are given", name,
                    kernel->output_count, given);
    for (int i = 0; i < kernel->output_count; i++) {
        smelt_dtype dtype = desc->output_dtypes[i];
        if (dtype == SMELT_FLOAT64)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': output '%s' is float64, which kernels do not support; use float32",
                        name, kernel->desc.outputs[i]);
        if (!smelt_dtype_bytes(dtype))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': output '%s': dtype %d is not one of smelt_dtype", name,
                        kernel->desc.outputs[i], (int)dtype);
    }
    return SMELT_OK;
}

static smelt_status check_templates(const smelt_kernel *kernel, const smelt_run_desc *desc, int *count) {
    const char *name = kernel->desc.name;
    int n = 0;
    for (; n < SMELT_MAX_TEMPLATES && desc->templates[n].name; n++) {
        const smelt_template *t = &desc->templates[n];
        TRY(reserved_check(smelt_template, t));
        if (!kernel_is_identifier(t->name))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': template name '%s' is not an identifier",
                        name, t->name);
        for (int i = 0; i < n; i++)
            if (strcmp(desc->templates[i].name, t->name) == 0)
                return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': template '%s' is given twice", name,
                            t->name);
        switch (t->kind) {
        case SMELT_TEMPLATE_DTYPE:
            if (!smelt_dtype_bytes(t->dtype) || t->dtype == SMELT_FLOAT64)
                return fail(
                    SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': template '%s' has dtype %s, which kernels do not support; use float32",
                    name, t->name, smelt_dtype_name(t->dtype));
            break;
        case SMELT_TEMPLATE_INT:
            if (t->integer < INT_MIN || t->integer > INT_MAX)
                return fail(SMELT_ERROR_INVALID_ARGUMENT,
                            "kernel '%s': template '%s' is %lld, which does not fit in an int", name, t->name,
                            (long long)t->integer);
            break;
        case SMELT_TEMPLATE_BOOL:
            break;
        default:
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "kernel '%s': template '%s' has kind %d; expected SMELT_TEMPLATE_DTYPE, _INT or _BOOL", name,
                t->name, (int)t->kind);
        }
    }
    *count = n;
    return SMELT_OK;
}

smelt_status kernel_check_run(const smelt_kernel *kernel, const smelt_run_desc *desc, int *template_count) {
    TRY(check_inputs(kernel, desc));
    TRY(check_outputs(kernel, desc));
    return check_templates(kernel, desc, template_count);
}
