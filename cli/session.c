#include "session.h"

#include <string.h>

/* Without --threadgroup a grid is cut into groups of 256 along x. */
static void set_threadgroup(const struct options *o, int64_t threadgroup[3]) {
    memcpy(threadgroup, o->threadgroup, sizeof o->threadgroup);
    if (!threadgroup[0] && o->grid[0]) threadgroup[0] = o->grid[0] < 256 ? o->grid[0] : 256;
}

static smelt_status open_kernel(const struct options *o, struct session *s) {
    smelt_kernel_desc desc = {.name = o->name,
                              .source = o->source,
                              .header = o->header,
                              .strided = o->strided,
                              .atomic_outputs = o->atomic_outputs,
                              .math = o->math,
                              .metal_version = o->metal_version,
                              .source_label = o->source_label,
                              .header_label = o->header_path};
    for (int i = 0; i < o->input_count; i++) desc.inputs[i] = o->input_names[i];
    for (int i = 0; i < o->output_count; i++) desc.outputs[i] = o->outputs[i].name;
    memcpy(desc.include_paths, o->include_paths, sizeof desc.include_paths);
    smelt_status status = smelt_kernel_create(&desc, &s->kernel);
    if (status != SMELT_OK) return status;
    for (int i = 0; i < o->input_count; i++) s->run.inputs[i] = o->inputs[i];
    for (int i = 0; i < o->output_count; i++) {
        s->run.output_shapes[i] = o->outputs[i].shape;
        s->run.output_dtypes[i] = o->outputs[i].dtype;
    }
    s->run.output_count = o->output_count;
    memcpy(s->run.templates, o->templates, sizeof s->run.templates);
    memcpy(s->run.grid, o->grid, sizeof s->run.grid);
    set_threadgroup(o, s->run.threadgroup);
    s->run.initialise = o->initialise;
    s->run.init_value = o->init_value;
    s->run.device = o->device;
    s->run.profile = o->profile;
    s->run.timeout = o->timeout;
    s->run.target = o->target;
    return SMELT_OK;
}

static smelt_status open_function(const struct options *o, struct session *s) {
    smelt_library_desc desc = {.path = o->source_label, .math = o->math, .metal_version = o->metal_version};
    if (o->package_size) {
        desc.package = o->source;
        desc.package_size = o->package_size;
    } else {
        desc.source = o->source;
    }
    memcpy(desc.include_paths, o->include_paths, sizeof desc.include_paths);
    smelt_status status = smelt_library_create(&desc, &s->library);
    if (status != SMELT_OK) return status;
    smelt_function_desc function = {.name = o->function};
    memcpy(function.constants, o->constants, sizeof function.constants);
    status = smelt_library_function(s->library, &function, &s->function);
    if (status != SMELT_OK) return status;
    memcpy(s->dispatch.buffers, o->buffers, sizeof s->dispatch.buffers);
    memcpy(s->dispatch.threadgroup_memory, o->threadgroup_memory, sizeof s->dispatch.threadgroup_memory);
    memcpy(s->dispatch.grid, o->grid, sizeof s->dispatch.grid);
    memcpy(s->dispatch.groups, o->groups, sizeof s->dispatch.groups);
    set_threadgroup(o, s->dispatch.threadgroup);
    s->dispatch.device = o->device;
    s->dispatch.profile = o->profile;
    s->dispatch.timeout = o->timeout;
    s->dispatch.target = o->target;
    return SMELT_OK;
}

smelt_status session_open(const struct options *options, struct session *session) {
    *session = (struct session){.options = options};
    return options->body ? open_kernel(options, session) : open_function(options, session);
}

static void release_outputs(struct session *s) {
    for (int i = 0; i < SMELT_MAX_ARGUMENTS; i++) {
        smelt_array_release(s->outputs[i]);
        s->outputs[i] = NULL;
    }
}

void session_close(struct session *session) {
    release_outputs(session);
    smelt_kernel_release(session->kernel);
    smelt_function_release(session->function);
    smelt_library_release(session->library);
}

smelt_status session_run(struct session *s, smelt_run_info *info) {
    if (s->kernel) {
        release_outputs(s);
        s->run.info = info;
        return smelt_kernel_run(s->kernel, &s->run, s->outputs);
    }
    /* Kernels may add to what they find: each run starts from zeros. */
    for (int i = 0; i < s->options->output_count; i++) {
        smelt_status status = smelt_array_fill(s->options->buffers[s->options->outputs[i].index].array, 0);
        if (status != SMELT_OK) return status;
    }
    s->dispatch.info = info;
    return smelt_function_run(s->function, &s->dispatch);
}

smelt_status session_show(struct session *s, smelt_stage stage, char **text) {
    if (s->kernel) return smelt_kernel_show(s->kernel, &s->run, stage, text);
    return smelt_function_show_run(s->function, &s->dispatch, stage, text);
}

smelt_status session_output(const struct session *session, const struct options *options, int index,
                            smelt_array **array) {
    smelt_array *output =
        session->kernel ? session->outputs[index] : options->buffers[options->outputs[index].index].array;
    return smelt_array_to(output, "cpu", NULL, array);
}

void session_print_source(struct session *session, FILE *out) {
    char *text;
    if (!session->kernel || session_show(session, SMELT_STAGE_SOURCE, &text) != SMELT_OK) return;
    fputs(text, out);
    smelt_free(text);
}
