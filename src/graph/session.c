/* Sessions: the memory of a compiled graph, and its executions; repeated ones are recorded. */
#include "base/reserved.h"
#include "device/device.h"
#include "graph/execution.h"
#include "ops/program.h"

#include <stdlib.h>
#include <string.h>

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
    smelt_status status = execution_view(compiled, value, there, &session->fixed[value]);
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
        smelt_status done = execution_run(session, &desc, true, outputs);
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
    if (!done && status == SMELT_OK) status = execution_run(session, desc, false, outputs);
    pthread_mutex_unlock(&session->lock);
    return status;
}
