/* Sessions: the memory of a compiled graph, and its executions. */
#include "base/reserved.h"
#include "device/device.h"
#include "graph/branches.h"
#include "graph/crew.h"
#include "graph/plan.h"
#include "graph/record.h"
#include "ops/program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct smelt_session {
    atomic_int references;
    pthread_mutex_t lock; /* of an execution */
    smelt_compiled *compiled;
    smelt_array **buffers;
    /* By value: constants, values in buffers, and views of both. */
    smelt_array **fixed;
    struct records records;
    bool recording; /* whether executions are recorded */
};

/* ---- Values as arrays. */

/* A buffer's bytes as the value. */
static smelt_status view_buffer(const struct smelt_session *session, int value, smelt_array **out) {
    const smelt_compiled *compiled = session->compiled;
    const struct graph_value *type = plan_value(compiled, value);
    int64_t size = shape_product(&type->shape);
    smelt_shape flat = {1, {size * (int64_t)smelt_dtype_bytes(type->dtype)}};
    smelt_array *bytes = NULL, *elements = NULL;
    smelt_status status =
        smelt_array_view(session->buffers[compiled->places[value].index], flat, NULL, 0, &bytes);
    if (status == SMELT_OK) status = smelt_array_reinterpret(bytes, type->dtype, &elements);
    if (status == SMELT_OK) status = smelt_array_view(elements, type->shape, NULL, 0, out);
    smelt_array_release(bytes);
    smelt_array_release(elements);
    return status;
}

static smelt_status view_root(const smelt_compiled *compiled, int value, smelt_array *root,
                              smelt_array **out) {
    const struct place *place = &compiled->places[value];
    return smelt_array_view(root, plan_value(compiled, value)->shape, place->strides, place->offset, out);
}

/* A constant on the device. One element stays on the host: it travels with launches, and only there may it be
 * float64. */
static smelt_status fix_constant(struct smelt_session *session, int value) {
    const smelt_graph *graph = session->compiled->graph;
    smelt_array *constant = graph->nodes[graph->values[value].node].constant;
    const char *device = constant->size == 1 ? "cpu" : session->compiled->device;
    return smelt_array_to(constant, device, NULL, &session->fixed[value]);
}

/* A view of a constant or of a buffer; of an input or output there is none yet. */
static smelt_status fix_view(struct smelt_session *session, int value) {
    const smelt_compiled *compiled = session->compiled;
    smelt_array *root = session->fixed[compiled->places[value].root], *there;
    if (!root) return SMELT_OK;
    bool number = shape_product(&plan_value(compiled, value)->shape) == 1;
    TRY(smelt_array_to(root, number ? smelt_array_device(root) : compiled->device, NULL, &there));
    smelt_status status = view_root(compiled, value, there, &session->fixed[value]);
    smelt_array_release(there);
    return status;
}

static smelt_status fix_value(struct smelt_session *session, int value) {
    switch (session->compiled->places[value].kind) {
    case PLACE_CONSTANT:
        return fix_constant(session, value);
    case PLACE_BUFFER:
        return view_buffer(session, value, &session->fixed[value]);
    case PLACE_VIEW:
        return fix_view(session, value);
    default:
        return SMELT_OK;
    }
}

static smelt_status prepare(struct smelt_session *session) {
    const smelt_compiled *compiled = session->compiled;
    session->buffers = calloc((size_t)compiled->buffer_count + 1, sizeof *session->buffers);
    session->fixed = calloc((size_t)compiled->value_count + 1, sizeof *session->fixed);
    if (!session->buffers || !session->fixed)
        return fail_out_of_memory((size_t)compiled->value_count * sizeof *session->fixed);
    for (int b = 0; b < compiled->buffer_count; b++)
        TRY(smelt_array_create_on(compiled->device, SMELT_UINT8,
                                  (smelt_shape){1, {(int64_t)compiled->buffers[b]}}, &session->buffers[b]));
    /* Roots first: a view may have a smaller number than a scratch value, but never than its own root. */
    for (int v = 0; v < compiled->value_count; v++)
        if (compiled->places[v].kind != PLACE_VIEW) TRY(fix_value(session, v));
    for (int v = 0; v < compiled->value_count; v++)
        if (compiled->places[v].kind == PLACE_VIEW) TRY(fix_value(session, v));
    return SMELT_OK;
}

/* ---- Life. */

/* Recordings where the device has them. */
static smelt_status prepare_records(struct smelt_session *session, const smelt_session_desc *desc) {
    const struct device *device;
    TRY(device_find(session->compiled->device, &device));
    if (!device->recordings || (desc && desc->no_recording)) return SMELT_OK;
    session->records.arrays = session->compiled->graph->input_count + session->compiled->graph->output_count;
    TRY(smelt_stream_create(session->compiled->device, &session->records.stream));
    session->recording = true;
    return SMELT_OK;
}

smelt_status smelt_session_create(smelt_compiled *compiled, const smelt_session_desc *desc,
                                  smelt_session **out) {
    if (!compiled || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "session: %s is NULL",
                    compiled ? "the address for the new session" : "compiled");
    if (desc) TRY(reserved_check(smelt_session_desc, desc));
    smelt_session *session = calloc(1, sizeof *session);
    if (!session) return fail_out_of_memory(sizeof *session);
    atomic_init(&session->references, 1);
    pthread_mutex_init(&session->lock, NULL);
    session->compiled = smelt_compiled_retain(compiled);
    smelt_status status = prepare(session);
    if (status == SMELT_OK) status = prepare_records(session, desc);
    if (status == SMELT_OK)
        *out = session;
    else
        smelt_session_release(session);
    return status;
}

smelt_session *smelt_session_retain(smelt_session *session) {
    if (session) atomic_fetch_add(&session->references, 1);
    return session;
}

void smelt_session_release(smelt_session *session) {
    if (!session || atomic_fetch_sub(&session->references, 1) != 1) return;
    for (int v = 0; v < session->compiled->value_count && session->fixed; v++)
        smelt_array_release(session->fixed[v]);
    for (int b = 0; b < session->compiled->buffer_count && session->buffers; b++)
        smelt_array_release(session->buffers[b]);
    free(session->fixed);
    free(session->buffers);
    records_free(&session->records);
    smelt_compiled_release(session->compiled);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

/* ---- An execution. */

struct execution {
    const smelt_session *session;
    const smelt_compiled *compiled;
    smelt_stream *stream;
    smelt_array **arrays; /* by value: fixed ones, and references to those of this execution */
    smelt_array **outputs;
    bool records; /* the stream is recording */
};

/* An array of the caller as the device reads it: there, without gaps. */
static smelt_status bind_input(struct execution *x, int index, smelt_array *given) {
    const smelt_graph *graph = x->compiled->graph;
    int value = graph->inputs[index].value;
    const struct graph_value *type = &graph->values[value];
    smelt_array *there, *dense;
    if (given->dtype != type->dtype || !shape_equal(&given->shape, &type->shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph '%s': input '%s' is %s %s, expected %s %s",
                    graph->name, graph->inputs[index].name, smelt_dtype_name(given->dtype),
                    shape_print(&given->shape).text, smelt_dtype_name(type->dtype),
                    shape_print(&type->shape).text);
    TRY(smelt_array_to(given, x->compiled->device, x->stream, &there));
    if (smelt_array_is_contiguous(there)) {
        x->arrays[value] = there;
        return SMELT_OK;
    }
    smelt_status status = program_output(x->compiled->device, x->stream, type->dtype, &type->shape, &dense);
    if (status == SMELT_OK) {
        smelt_apply_desc copy = {.operation = SMELT_OPERATION_IDENTITY,
                                 .inputs = {there},
                                 .device = x->compiled->device,
                                 .stream = x->stream};
        status = operation_apply_into(&copy, dense);
        if (status == SMELT_OK)
            x->arrays[value] = dense;
        else
            smelt_array_release(dense);
    }
    smelt_array_release(there);
    return status;
}

static int find_input(const smelt_graph *graph, const char *name) {
    for (int i = 0; i < graph->input_count; i++)
        if (strcmp(graph->inputs[i].name, name) == 0) return i;
    return -1;
}

static smelt_status bind_inputs(struct execution *x, const smelt_execute_desc *desc) {
    const smelt_graph *graph = x->compiled->graph;
    if (desc->input_count != graph->input_count || (graph->input_count && !desc->inputs))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph '%s': %d inputs are given, expected %d", graph->name,
                    desc->inputs ? desc->input_count : 0, graph->input_count);
    for (int i = 0; i < graph->input_count; i++) {
        const char *name = desc->input_names ? desc->input_names[i] : NULL;
        int index = name ? find_input(graph, name) : i;
        if (index < 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph '%s': there is no input '%s'", graph->name,
                        name);
        if (!desc->inputs[i] || x->arrays[graph->inputs[index].value])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph '%s': input '%s' is %s", graph->name,
                        graph->inputs[index].name, desc->inputs[i] ? "given twice" : "NULL");
        TRY(bind_input(x, index, desc->inputs[i]));
    }
    return SMELT_OK;
}

static smelt_status check_into(const struct execution *x, int i, const smelt_array *into) {
    const smelt_graph *graph = x->compiled->graph;
    const struct graph_value *type = &graph->values[graph->outputs[i].value];
    bool fits = into->dtype == type->dtype && shape_equal(&into->shape, &type->shape) &&
                smelt_array_is_contiguous(into);
    const char *device = smelt_array_device(into);
    bool host = program_is_host(x->compiled->device);
    if (fits && (host ? program_is_host(device) : strcmp(device, x->compiled->device) == 0)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "graph '%s': the array for output '%s' is %s %s on %s, expected %s %s, row-contiguous, on %s",
                graph->name, graph->outputs[i].name, smelt_dtype_name(into->dtype),
                shape_print(&into->shape).text, device, smelt_dtype_name(type->dtype),
                shape_print(&type->shape).text, x->compiled->device);
}

static smelt_status bind_outputs(struct execution *x, const smelt_execute_desc *desc) {
    const smelt_graph *graph = x->compiled->graph;
    for (int i = 0; i < graph->output_count; i++) {
        int value = graph->outputs[i].value;
        smelt_array *into = desc->into ? desc->into[i] : NULL;
        if (into) TRY(check_into(x, i, into));
        x->outputs[i] = smelt_array_retain(into);
        if (!into)
            TRY(program_output(x->compiled->device, x->stream, graph->values[value].dtype,
                               &graph->values[value].shape, &x->outputs[i]));
        const struct place *place = &x->compiled->places[value];
        if (place->kind == PLACE_OUTPUT && place->index == i)
            x->arrays[value] = smelt_array_retain(x->outputs[i]);
    }
    return SMELT_OK;
}

static smelt_status bind_views(struct execution *x) {
    for (int v = 0; v < x->compiled->value_count; v++) {
        const struct place *place = &x->compiled->places[v];
        if (place->kind != PLACE_VIEW || x->session->fixed[v] || !x->arrays[place->root]) continue;
        TRY(view_root(x->compiled, v, x->arrays[place->root], &x->arrays[v]));
    }
    return SMELT_OK;
}

/* ---- Steps. */

static smelt_status run_fused(struct execution *x, const struct step *step) {
    for (int k = 0; k < step->kernel_count; k++) {
        struct map map;
        fused_kernel_map(&step->kernels[k], x->arrays, x->compiled->device, x->stream, &map);
        TRY(map_run(&map));
    }
    return SMELT_OK;
}

/* While launches are only collected, their results are not computed and may hold indexes out of range. Nodes
 * that run all the same get zeros instead. Constants and the caller's inputs are valid. */
static smelt_status clear_inputs(const struct execution *x, const struct graph_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        const struct place *place = &x->compiled->places[node->inputs[i]];
        if (place->kind == PLACE_VIEW) place = &x->compiled->places[place->root];
        if (place->kind != PLACE_CONSTANT && place->kind != PLACE_INPUT)
            TRY(array_fill_on(x->arrays[node->inputs[i]], x->stream, 0));
    }
    return SMELT_OK;
}

static bool has_float64(const struct execution *x, const struct graph_node *node) {
    bool found = false;
    for (int i = 0; i < node->input_count; i++) found |= x->arrays[node->inputs[i]]->dtype == SMELT_FLOAT64;
    return found;
}

static smelt_status run_operation(struct execution *x, const struct step *step) {
    const struct graph_node *node = &x->compiled->graph->nodes[step->node];
    if (program_is_only_collected(x->compiled->device) && has_float64(x, node)) TRY(clear_inputs(x, node));
    smelt_apply_desc desc = node->desc;
    for (int i = 0; i < node->input_count; i++) desc.inputs[i] = x->arrays[node->inputs[i]];
    desc.device = x->compiled->device;
    desc.stream = x->stream;
    return operation_apply_into(&desc, x->arrays[node->first]);
}

static smelt_status run_kernel(struct execution *x, const struct step *step) {
    const struct graph_node *node = &x->compiled->graph->nodes[step->node];
    smelt_array *inputs[SMELT_MAX_ARGUMENTS];
    if (program_is_only_collected(x->compiled->device)) return SMELT_OK; /* it is stored as text */
    for (int i = 0; i < node->input_count; i++) inputs[i] = x->arrays[node->inputs[i]];
    return graph_launch_run(node->launch, inputs, x->arrays + node->first, x->compiled->device, x->stream);
}

/* An opaque operation, whose results are copied to their places. */
static smelt_status run_call(struct execution *x, const struct step *step) {
    const struct graph_node *node = &x->compiled->graph->nodes[step->node];
    size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
    smelt_array **arrays = calloc(inputs + outputs + 1, sizeof *arrays);
    smelt_type *types = calloc(outputs + 1, sizeof *types);
    smelt_status status = arrays && types ? SMELT_OK : fail_out_of_memory(inputs * sizeof *arrays);
    if (status == SMELT_OK) {
        for (int i = 0; i < node->input_count; i++) arrays[i] = x->arrays[node->inputs[i]];
        for (int i = 0; i < node->output_count; i++)
            types[i] = graph_type(x->compiled->graph, node->first + i);
        status = graph_call_expand(node->call, x->compiled->device, arrays, node->input_count, types,
                                   node->output_count, arrays + inputs);
    }
    for (int i = 0; i < node->output_count && status == SMELT_OK; i++) {
        smelt_apply_desc copy = {.operation = SMELT_OPERATION_IDENTITY,
                                 .inputs = {arrays[inputs + (size_t)i]},
                                 .device = x->compiled->device,
                                 .stream = x->stream};
        status = operation_apply_into(&copy, x->arrays[node->first + i]);
    }
    for (size_t i = inputs; i < inputs + outputs && arrays; i++) smelt_array_release(arrays[i]);
    free(arrays);
    free(types);
    return status;
}

static smelt_status run_step(void *context, int number) {
    struct execution *x = context;
    const struct step *step = &x->compiled->steps[number];
    return step->kind == STEP_FUSED       ? run_fused(x, step)
           : step->kind == STEP_OPERATION ? run_operation(x, step)
           : step->kind == STEP_CALL      ? run_call(x, step)
                                          : run_kernel(x, step);
}

static smelt_status run_steps(struct execution *x) {
    bool host = program_is_host(x->compiled->device);
    if (x->compiled->needed && host && !program_is_collecting()) return crew_run(x->compiled, run_step, x);
    if (x->compiled->needed && x->records) return branches_run(x->compiled, x->stream, run_step, x);
    for (int s = 0; s < x->compiled->step_count; s++) TRY(run_step(x, s));
    return SMELT_OK;
}

/* Outputs that are inputs, constants, views, or output a second time. */
static smelt_status copy_outputs(struct execution *x) {
    for (int i = 0; i < x->compiled->graph->output_count; i++) {
        int value = x->compiled->graph->outputs[i].value;
        const struct place *place = &x->compiled->places[value];
        if (place->kind == PLACE_OUTPUT && place->index == i) continue;
        smelt_apply_desc copy = {.operation = SMELT_OPERATION_IDENTITY,
                                 .inputs = {x->arrays[value]},
                                 .device = x->compiled->device,
                                 .stream = x->stream};
        TRY(operation_apply_into(&copy, x->outputs[i]));
    }
    return SMELT_OK;
}

static smelt_status execute(struct execution *x, const smelt_execute_desc *desc) {
    TRY(bind_inputs(x, desc));
    TRY(bind_outputs(x, desc));
    TRY(bind_views(x));
    TRY(run_steps(x));
    return copy_outputs(x);
}

/* On the steps' own streams; outputs receive references. */
static smelt_status execute_plain(const smelt_session *session, const smelt_execute_desc *desc, bool records,
                                  smelt_array **outputs) {
    const smelt_compiled *compiled = session->compiled;
    size_t values = (size_t)compiled->value_count, output_count = (size_t)compiled->graph->output_count;
    smelt_array **block = calloc(values + output_count + 1, sizeof *block);
    if (!block) return fail_out_of_memory(values * sizeof *block);
    struct execution x = {.session = session,
                          .compiled = compiled,
                          .stream = desc->stream,
                          .records = records,
                          .arrays = block,
                          .outputs = block + values};
    memcpy(block, session->fixed, values * sizeof *block);
    smelt_status status = execute(&x, desc);
    for (size_t v = 0; v < values; v++)
        if (!session->fixed[v]) smelt_array_release(x.arrays[v]);
    for (size_t i = 0; i < output_count; i++) {
        if (status == SMELT_OK)
            outputs[i] = x.outputs[i];
        else
            smelt_array_release(x.outputs[i]);
    }
    free(block);
    return status;
}

/* ---- Recorded executions. The second execution with the same arrays is recorded, later ones replay it. */

/* Outputs for which the caller has no arrays are copied from those of the recording; larger ones are not
 * worth it. */
#define MOST_COPIED ((int64_t)1 << 20)

static bool can_record(const smelt_session *session, const smelt_execute_desc *desc) {
    const smelt_graph *graph = session->compiled->graph;
    const char *device = session->compiled->device;
    int64_t copied = 0;
    if (!session->recording || desc->input_count != graph->input_count || desc->input_names) return false;
    for (int i = 0; i < desc->input_count; i++)
        if (!desc->inputs[i] || strcmp(smelt_array_device(desc->inputs[i]), device) != 0 ||
            !smelt_array_is_contiguous(desc->inputs[i]))
            return false;
    for (int i = 0; i < graph->output_count; i++) {
        const struct graph_value *type = &graph->values[graph->outputs[i].value];
        if (desc->into && !desc->into[i]) return false;
        if (!desc->into) copied += shape_product(&type->shape) * (int64_t)smelt_dtype_bytes(type->dtype);
    }
    return copied <= MOST_COPIED;
}

/* Records an execution, which does not run. */
static smelt_status record(smelt_session *session, const smelt_execute_desc *given, struct record *record) {
    smelt_execute_desc desc = *given;
    smelt_array **outputs = calloc((size_t)session->records.arrays + 1, sizeof *outputs);
    smelt_recording *recording = NULL;
    if (!outputs) return fail_out_of_memory(sizeof *outputs);
    desc.stream = session->records.stream;
    smelt_status status = smelt_stream_record_begin(desc.stream);
    if (status == SMELT_OK) {
        smelt_status done = execute_plain(session, &desc, true, outputs);
        status = smelt_stream_record_end(desc.stream, &recording);
        if (done != SMELT_OK) {
            if (status == SMELT_OK) smelt_recording_release(recording);
            status = done;
        }
    }
    if (status == SMELT_OK) {
        status = record_keep(&session->records, record, recording, desc.inputs, desc.input_count, outputs);
        if (status != SMELT_OK) smelt_recording_release(recording);
    }
    for (int i = 0; i < session->compiled->graph->output_count; i++) smelt_array_release(outputs[i]);
    free(outputs);
    return status;
}

/* The results of a replay: the caller's arrays, or copies. */
static smelt_status take_outputs(const smelt_session *session, const struct record *record,
                                 const smelt_execute_desc *desc, smelt_array **outputs) {
    const smelt_graph *graph = session->compiled->graph;
    smelt_status status = SMELT_OK;
    int done = 0;
    for (; done < graph->output_count && status == SMELT_OK; done++) {
        smelt_array *own = record->kept[graph->input_count + done];
        if (desc->into) {
            outputs[done] = smelt_array_retain(own);
            continue;
        }
        outputs[done] = NULL;
        status =
            program_output(session->compiled->device, desc->stream, own->dtype, &own->shape, &outputs[done]);
        if (status == SMELT_OK) status = smelt_array_copy(outputs[done], own);
    }
    for (int i = 0; i < done && status != SMELT_OK; i++) smelt_array_release(outputs[i]);
    return status;
}

/* *done is false if nothing was executed. */
static smelt_status execute_recorded(smelt_session *session, const smelt_execute_desc *desc,
                                     smelt_array **outputs, bool *done) {
    *done = false;
    if (!can_record(session, desc)) return SMELT_OK;
    struct record *found = record_find(&session->records, desc->inputs, desc->input_count, desc->into);
    if (!found || (!found->recording && session->records.made >= RECORDS)) return SMELT_OK;
    if (!found->recording && record(session, desc, found) != SMELT_OK) {
        log_line(SMELT_LOG_INFO, "graph '%s' cannot be recorded: %s", session->compiled->graph->name,
                 smelt_error());
        session->recording = false;
        return SMELT_OK;
    }
    *done = true;
    TRY(smelt_recording_replay(found->recording, desc->stream));
    return take_outputs(session, found, desc, outputs);
}

smelt_status smelt_session_execute(smelt_session *session, const smelt_execute_desc *desc,
                                   smelt_array **outputs) {
    if (!session || !desc || !outputs)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "execute: %s is NULL",
                    !session ? "session"
                    : !desc  ? "desc"
                             : "outputs");
    TRY(reserved_check(smelt_execute_desc, desc));
    bool done;
    pthread_mutex_lock(&session->lock);
    smelt_status status = execute_recorded(session, desc, outputs, &done);
    if (!done && status == SMELT_OK) status = execute_plain(session, desc, false, outputs);
    pthread_mutex_unlock(&session->lock);
    return status;
}
