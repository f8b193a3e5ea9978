#include "session.h"
#include "unwritten.h"

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
                              .macros = o->macros,
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
    /* Atomic operations start from 0 unless --init is given. */
    s->run.initialise = o->initialise || o->atomic_outputs;
    s->run.init_value = o->init_value;
    s->run.device = o->device;
    s->run.profile = o->profile;
    s->run.also = o->also;
    s->run.timeout = o->timeout;
    s->run.target = o->target;
    s->run.after = o->after;
    s->run.check = o->checked;
    return SMELT_OK;
}

static smelt_status open_function(const struct options *o, struct session *s) {
    smelt_library_desc desc = {
        .path = o->source_label, .math = o->math, .metal_version = o->metal_version, .macros = o->macros};
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
    s->dispatch.also = o->also;
    s->dispatch.timeout = o->timeout;
    s->dispatch.target = o->target;
    s->dispatch.after = o->after;
    s->dispatch.check = o->checked;
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
        const smelt_buffer *buffer = &s->options->buffers[s->options->outputs[i].index];
        smelt_status status =
            buffer->tensor ? tensor_value_clear(buffer->tensor) : smelt_array_fill(buffer->array, 0);
        if (status != SMELT_OK) return status;
    }
    s->dispatch.info = info;
    return smelt_function_run(s->function, &s->dispatch);
}

/* Gives the kernel arrays that are pattern `which` to write into. */
static smelt_status fill_outputs(struct session *s, int which) {
    const struct options *o = s->options;
    for (int i = 0; i < o->output_count; i++) {
        smelt_array *host;
        smelt_status status = unwritten_fill(o->outputs[i].dtype, o->outputs[i].shape, which, &host);
        if (status != SMELT_OK) return status;
        bool gpu = o->device && strncmp(o->device, "cuda", 4) == 0;
        status = smelt_array_to(host, gpu ? o->device : "cpu", NULL, &s->run.into[i]);
        smelt_array_release(host);
        if (status != SMELT_OK) return status;
    }
    return SMELT_OK;
}

static void drop_filled(struct session *s) {
    for (int i = 0; i < SMELT_MAX_ARGUMENTS; i++) {
        smelt_array_release(s->run.into[i]);
        s->run.into[i] = NULL;
    }
}

/* smelt_kernel_run itself reports outputs that cannot be allocated. */
static smelt_status run_filled(struct session *s, int which, smelt_array **outputs) {
    if (fill_outputs(s, which) != SMELT_OK) drop_filled(s);
    smelt_status status = smelt_kernel_run(s->kernel, &s->run, outputs);
    drop_filled(s);
    for (int i = 0; i < s->options->output_count && status == SMELT_OK; i++) {
        smelt_array *host;
        status = smelt_array_to(outputs[i], "cpu", NULL, &host);
        if (status != SMELT_OK) break;
        smelt_array_release(outputs[i]);
        outputs[i] = host;
    }
    return status;
}

static void ignore_kernel_log(const smelt_kernel_line *line, void *context) {
    (void)line, (void)context;
}
static void ignore_log(smelt_log_level level, const char *line, void *context) {
    (void)level, (void)line, (void)context;
}

/* The second run only detects what the first one wrote: it prints nothing, and may fail. */
static void settle_outputs(struct session *s) {
    smelt_array *second[SMELT_MAX_ARGUMENTS] = {NULL};
    s->run.info = NULL;
    smelt_set_kernel_log(ignore_kernel_log, NULL);
    smelt_set_log(ignore_log, NULL);
    smelt_status status = run_filled(s, 1, second);
    smelt_set_kernel_log(NULL, NULL);
    smelt_set_log(NULL, NULL);
    for (int i = 0; i < s->options->output_count && status == SMELT_OK; i++) {
        int64_t index = 0, count = unwritten_settle(s->outputs[i], second[i], &index);
        if (count) unwritten_warn(s->options->outputs[i].name, s->outputs[i], count, index);
    }
    for (int i = 0; i < SMELT_MAX_ARGUMENTS; i++) smelt_array_release(second[i]);
}

/* Filling touches all pages of an output; a kernel may need few of the zero pages of a large one. */
#define MOST_FILLED ((int64_t)2 << 30)

static bool are_large(const struct options *o) {
    int64_t total = 0;
    for (int i = 0; i < o->output_count; i++) {
        int64_t bytes = (int64_t)smelt_dtype_bytes(o->outputs[i].dtype);
        for (int d = 0; d < o->outputs[i].shape.ndim; d++)
            if (__builtin_mul_overflow(bytes, o->outputs[i].shape.size[d], &bytes)) return true;
        if (__builtin_add_overflow(total, bytes, &total)) return true;
    }
    return total > MOST_FILLED;
}

smelt_status session_run_last(struct session *s, smelt_run_info *info) {
    if (!s->kernel || s->run.initialise || are_large(s->options)) return session_run(s, info);
    release_outputs(s);
    s->run.info = info;
    smelt_status status = run_filled(s, 0, s->outputs);
    bool suspected = false;
    for (int i = 0; i < s->options->output_count && status == SMELT_OK; i++)
        suspected |= unwritten_suspected(s->outputs[i]);
    if (suspected) settle_outputs(s);
    return status;
}

smelt_status session_show(struct session *s, smelt_stage stage, char **text) {
    if (s->kernel) return smelt_kernel_show(s->kernel, &s->run, stage, text);
    return smelt_function_show_run(s->function, &s->dispatch, stage, text);
}

smelt_status session_output(const struct session *session, const struct options *options, int index,
                            smelt_array **array) {
    const smelt_buffer *buffer = &options->buffers[options->outputs[index].index];
    if (!session->kernel && buffer->tensor) return tensor_value_array(buffer->tensor, array);
    return smelt_array_to(session->kernel ? session->outputs[index] : buffer->array, "cpu", NULL, array);
}

void session_print_source(struct session *session, FILE *out) {
    char *text;
    if (!session->kernel || session_show(session, SMELT_STAGE_SOURCE, &text) != SMELT_OK) return;
    fputs(text, out);
    smelt_free(text);
}
