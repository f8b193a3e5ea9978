/* Stored graphs: the uses of registered operations, and kernels from bodies, which are stored as text. */
#include "graph/owned.h"
#include "graph/stored.h"

#include <stdlib.h>

/* ---- Uses of registered operations. */

smelt_status stored_write_call(struct text *out, const struct graph_call *call) {
    if (!call->operation->shipped)
        return fail(
            SMELT_ERROR_UNSUPPORTED,
            "compiled save: operation '%s' is opaque: its function runs at each execution, and files do not "
            "hold functions",
            graph_call_name(call));
    int count = 0;
    while (call->attributes[count].name) count++;
    stored_string(out, graph_call_name(call));
    stored_number(out, count);
    for (const smelt_attribute *a = call->attributes; a->name; a++) {
        stored_string(out, a->name);
        stored_number(out, a->kind);
        stored_number(out, a->integer);
        stored_real(out, a->real);
        stored_number(out, a->boolean);
        stored_string(out, a->string);
    }
    return SMELT_OK;
}

smelt_status stored_read_call(struct stored_reader *r, struct graph_call **call) {
    char *strings[2 * SMELT_MAX_ATTRIBUTES + 1] = {NULL};
    smelt_custom_desc desc = {.name = strings[0] = stored_read_string(r)};
    int count = (int)stored_read_bounded(r, SMELT_MAX_ATTRIBUTES - 1), strings_read = 1;
    for (int i = 0; i < count; i++) {
        smelt_attribute *a = &desc.attributes[i];
        a->name = strings[strings_read++] = stored_read_string(r);
        a->kind = (smelt_attribute_kind)stored_read_bounded(r, SMELT_ATTRIBUTE_STRING);
        a->integer = stored_read_number(r);
        a->real = stored_read_real(r);
        a->boolean = stored_read_bounded(r, 1) == 1;
        a->string = strings[strings_read++] = stored_read_string(r);
    }
    smelt_status status = SMELT_OK;
    struct graph_call *made = NULL;
    if (!r->damaged) status = graph_call_create(&desc, &made);
    if (made && !made->operation->shipped) {
        status = fail(SMELT_ERROR_UNSUPPORTED,
                      "compiled load: operation '%s' was replaced by this program; expected smelt's own",
                      graph_call_name(made));
        graph_call_release(made);
        made = NULL;
    }
    for (int i = 0; i < strings_read; i++) free(strings[i]);
    *call = made;
    return status;
}

/* ---- Kernels. */

static void write_names(struct text *out, const char *const *names, int count) {
    stored_number(out, count);
    for (int i = 0; i < count; i++) stored_string(out, names[i]);
}

smelt_status stored_write_launch(struct text *out, const struct graph_launch *launch, int output_count) {
    const smelt_kernel *kernel = launch->kernel;
    const smelt_kernel_desc *desc = &kernel->desc;
    const smelt_run_desc *run = &launch->desc;
    if (desc->include_paths[0])
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "compiled save: kernel '%s' includes files of the folder '%s', which files do not hold; "
                    "put them into its header",
                    desc->name, desc->include_paths[0]);
    if (desc->macros)
        return fail(
            SMELT_ERROR_UNSUPPORTED,
            "compiled save: kernel '%s' has the macro '%s', which files do not hold; put it into its header",
            desc->name, desc->macros[0]);
    stored_string(out, desc->name);
    stored_string(out, desc->source);
    stored_string(out, desc->header);
    write_names(out, desc->inputs, kernel->input_count);
    write_names(out, desc->outputs, kernel->output_count);
    stored_number(out, desc->strided);
    stored_number(out, desc->atomic_outputs);
    for (int i = 0; i < kernel->output_count; i++) stored_number(out, desc->atomic_output[i]);
    stored_number(out, desc->math);
    stored_number(out, desc->metal_version);
    for (int d = 0; d < 3; d++) stored_number(out, run->grid[d]);
    for (int d = 0; d < 3; d++) stored_number(out, run->threadgroup[d]);
    int templates = 0;
    while (templates < SMELT_MAX_TEMPLATES && run->templates[templates].name) templates++;
    stored_number(out, templates);
    for (int i = 0; i < templates; i++) {
        const smelt_template *t = &run->templates[i];
        stored_string(out, t->name);
        stored_number(out, t->kind);
        stored_number(out, t->dtype);
        stored_number(out, t->integer);
        stored_number(out, t->boolean);
    }
    stored_number(out, run->initialise);
    stored_real(out, run->init_value);
    stored_number(out, launch->init_values ? output_count : 0);
    for (int i = 0; i < output_count && launch->init_values; i++) stored_real(out, launch->init_values[i]);
    return SMELT_OK;
}

#define MOST_STRINGS (3 + 2 * SMELT_MAX_ARGUMENTS)

/* The kernel's part. */
static smelt_status read_kernel(struct stored_reader *r, int input_count, int output_count,
                                smelt_kernel **kernel) {
    char *strings[MOST_STRINGS];
    int count = 0;
    smelt_kernel_desc desc = {.name = strings[count++] = stored_read_string(r)};
    desc.source = strings[count++] = stored_read_string(r);
    desc.header = strings[count++] = stored_read_string(r);
    if (stored_read_bounded(r, SMELT_MAX_ARGUMENTS - 1) != input_count) r->damaged = true;
    for (int i = 0; i < input_count; i++) desc.inputs[i] = strings[count++] = stored_read_string(r);
    if (stored_read_bounded(r, SMELT_MAX_ARGUMENTS - 1) != output_count) r->damaged = true;
    for (int i = 0; i < output_count; i++) desc.outputs[i] = strings[count++] = stored_read_string(r);
    desc.strided = stored_read_bounded(r, 1) == 1;
    desc.atomic_outputs = stored_read_bounded(r, 1) == 1;
    for (int i = 0; i < output_count; i++) desc.atomic_output[i] = stored_read_bounded(r, 1) == 1;
    desc.math = (smelt_math_mode)stored_read_bounded(r, SMELT_MATH_FAST);
    desc.metal_version = (int)stored_read_bounded(r, 10000);
    if (desc.header && !*desc.header) desc.header = NULL;
    smelt_status status = r->damaged ? SMELT_OK : smelt_kernel_create(&desc, kernel);
    for (int i = 0; i < count; i++) free(strings[i]);
    return status;
}

static void read_run(struct stored_reader *r, struct graph_launch *launch, int output_count) {
    smelt_run_desc *run = &launch->desc;
    for (int d = 0; d < 3; d++) run->grid[d] = stored_read_bounded(r, INT64_MAX);
    for (int d = 0; d < 3; d++) run->threadgroup[d] = stored_read_bounded(r, INT64_MAX);
    int templates = (int)stored_read_bounded(r, SMELT_MAX_TEMPLATES - 1);
    for (int i = 0; i < templates; i++) {
        smelt_template *t = &run->templates[i];
        t->name = stored_read_string(r);
        t->kind = (smelt_template_kind)stored_read_bounded(r, SMELT_TEMPLATE_BOOL);
        t->dtype = (smelt_dtype)stored_read_bounded(r, SMELT_FLOAT64);
        t->integer = stored_read_number(r);
        t->boolean = stored_read_bounded(r, 1) == 1;
    }
    run->initialise = stored_read_bounded(r, 1) == 1;
    run->init_value = stored_read_real(r);
    int64_t values = stored_read_bounded(r, output_count);
    if (!values || r->damaged) return;
    launch->init_values = calloc((size_t)output_count, sizeof(double));
    if (!launch->init_values || values != output_count) r->damaged = true;
    for (int i = 0; i < output_count && !r->damaged; i++) launch->init_values[i] = stored_read_real(r);
    run->init_values = launch->init_values;
}

smelt_status stored_read_launch(struct stored_reader *r, const smelt_type *types, int input_count,
                                int output_count, struct graph_launch **out) {
    struct graph_launch *launch = calloc(1, sizeof *launch);
    *out = NULL;
    if (!launch) return fail_out_of_memory(sizeof *launch);
    atomic_init(&launch->references, 1);
    smelt_status status = read_kernel(r, input_count, output_count, &launch->kernel);
    if (status == SMELT_OK && !r->damaged) read_run(r, launch, output_count);
    for (int i = 0; i < output_count; i++) {
        launch->desc.output_dtypes[i] = types[i].dtype;
        launch->desc.output_shapes[i] = types[i].shape;
    }
    launch->desc.output_count = output_count;
    if (status == SMELT_OK && !r->damaged)
        *out = launch;
    else
        graph_launch_release(launch);
    return status;
}
