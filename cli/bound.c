#include "bound.h"
#include "commands.h"
#include "values.h"

#include <stdio.h>
#include <string.h>

#define MOST_PARAMETERS (2 * SMELT_MAX_BUFFERS)

struct parameters {
    const char *kernel; /* its name */
    smelt_parameter list[MOST_PARAMETERS];
    int count;
};

/* Of several that function constants select from, the one that the code uses. */
static const smelt_parameter *find(const struct parameters *parameters, int index) {
    const smelt_parameter *found = NULL;
    for (int i = 0; i < parameters->count; i++) {
        const smelt_parameter *parameter = &parameters->list[i];
        bool better = !found || (parameter->used && !found->used);
        if (!parameter->threadgroup && parameter->index == index && better) found = parameter;
    }
    return found;
}

/* The dtype bound to a buffer, or none. */
static smelt_dtype dtype_of(const struct options *o, int index) {
    if (o->bytes[index]) return o->bytes_dtypes[index];
    return o->buffers[index].array ? smelt_array_dtype(o->buffers[index].array) : SMELT_NO_DTYPE;
}

static bool check_buffer(const struct options *o, const struct parameters *parameters, int index) {
    smelt_dtype dtype = dtype_of(o, index);
    if (dtype == SMELT_NO_DTYPE) return true;
    /* What the function does not have may be bound, as on Metal: one command serves several functions. */
    const smelt_parameter *parameter = find(parameters, index);
    return !parameter || !parameter->used || smelt_parameter_check(parameter, dtype) == SMELT_OK ||
           complain("kernel '%s': %s", parameters->kernel, smelt_error());
}

static void warn_unwritten(const struct options *o, const struct parameters *parameters) {
    for (int i = 0; i < o->output_count; i++) {
        const smelt_parameter *parameter = find(parameters, o->outputs[i].index);
        if (parameter && parameter->writable && parameter->used) continue;
        fprintf(stderr, "smelt: warning: output 'buffer %d' was never written: the kernel %s%s%s\n",
                o->outputs[i].index,
                !parameter        ? "has no such buffer"
                : parameter->used ? "only reads '"
                                  : "does not use '",
                parameter ? parameter->name : "", parameter ? "'" : "");
    }
}

int bound_check(struct session *session, smelt_run_info *info) {
    const struct options *o = session->options;
    if (!session->function) return EXIT_OK;
    struct parameters parameters = {.kernel = o->function ? o->function
                                                          : smelt_library_function_name(session->library, 0)};
    session->dispatch.info = info;
    smelt_status status = smelt_function_parameters(session->function, &session->dispatch, parameters.list,
                                                    MOST_PARAMETERS, &parameters.count);
    session->dispatch.info = NULL;
    if (status != SMELT_OK) return report(status);
    if (parameters.count > MOST_PARAMETERS) parameters.count = MOST_PARAMETERS;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (!check_buffer(o, &parameters, i)) return EXIT_KERNEL;
    warn_unwritten(o, &parameters);
    return EXIT_OK;
}
