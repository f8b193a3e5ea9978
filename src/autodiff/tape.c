#include "autodiff/tape.h"
#include "base/reserved.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- The thread's tapes, the innermost first. */

static _Thread_local struct smelt_tape *innermost;
static _Thread_local int paused;
static _Thread_local char thread_mark;

void smelt_tape_pause(void) {
    paused++;
}

void smelt_tape_resume(void) {
    if (paused) paused--;
}

/* Whether a pause that began after the tape is in progress: tapes begun within a pause do record. */
static bool is_paused(const smelt_tape *tape) {
    return tape->pauses < paused;
}

/* ---- Tracked handles. */

size_t tape_slot(const smelt_tape *tape, const smelt_array *array) {
    uint64_t hash = ((uint64_t)(uintptr_t)array >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 20) & (tape->capacity - 1);
    while (tape->tracked[at] && tape->tracked[at] != array) at = (at + 1) & (tape->capacity - 1);
    return at;
}

static bool tracks(const smelt_tape *tape, const smelt_array *array) {
    return tape->capacity && tape->tracked[tape_slot(tape, array)];
}

static bool make_room(smelt_tape *tape) {
    if (tape->count * 2 < tape->capacity) return true;
    size_t old = tape->capacity;
    smelt_array **slots = tape->tracked;
    smelt_array **more = calloc(old ? 2 * old : 64, sizeof(smelt_array *));
    if (!more) return false;
    tape->tracked = more;
    tape->capacity = old ? 2 * old : 64;
    for (size_t i = 0; i < old; i++)
        if (slots[i]) tape->tracked[tape_slot(tape, slots[i])] = slots[i];
    free(slots);
    return true;
}

static smelt_status track(smelt_tape *tape, smelt_array *array) {
    if (!make_room(tape)) return fail_out_of_memory(2 * tape->capacity * sizeof(smelt_array *));
    size_t at = tape_slot(tape, array);
    if (!tape->tracked[at]) tape->count++;
    tape->tracked[at] = array;
    return SMELT_OK;
}

bool smelt_tape_tracks(const smelt_tape *tape, const smelt_array *array) {
    if (tape) return tracks(tape, array);
    for (tape = innermost; tape; tape = tape->below)
        if (!tape->busy && !is_paused(tape) && tracks(tape, array)) return true;
    return false;
}

/* ---- Recording. */

static smelt_status add_node(smelt_tape *tape, const smelt_apply_desc *desc, struct custom *custom,
                             smelt_array *const *inputs, int input_count, smelt_array *const *outputs,
                             int output_count) {
    if (tape->node_count == tape->node_capacity) {
        int capacity = tape->node_capacity ? 2 * tape->node_capacity : 32;
        struct node *more = realloc(tape->nodes, (size_t)capacity * sizeof *more);
        if (!more) return fail_out_of_memory((size_t)capacity * sizeof *more);
        tape->nodes = more;
        tape->node_capacity = capacity;
    }
    int count = input_count + output_count;
    smelt_array **arrays = calloc((size_t)count, sizeof(smelt_array *));
    if (!arrays) return fail_out_of_memory((size_t)count * sizeof(smelt_array *));
    smelt_status status = SMELT_OK;
    for (int i = 0; i < output_count && status == SMELT_OK; i++) status = track(tape, outputs[i]);
    if (status != SMELT_OK) {
        free(arrays);
        return status;
    }
    for (int i = 0; i < count; i++)
        arrays[i] = smelt_array_retain(i < input_count ? inputs[i] : outputs[i - input_count]);
    if (custom) atomic_fetch_add(&custom->references, 1);
    struct node *node = &tape->nodes[tape->node_count++];
    *node = (struct node){.desc = desc ? *desc : (smelt_apply_desc){0},
                          .custom = custom,
                          .input_count = input_count,
                          .output_count = output_count,
                          .inputs = arrays,
                          .outputs = arrays + input_count};
    /* Both belong to the caller and may be gone when derivatives are requested. */
    node->desc.device = NULL;
    node->desc.algorithm = NULL;
    node->desc.stream = NULL;
    return SMELT_OK;
}

static bool records(const smelt_tape *tape, smelt_array *const *inputs, int count) {
    for (int i = 0; i < count && !tape->busy && !is_paused(tape); i++)
        if (tracks(tape, inputs[i])) return true;
    return false;
}

/* Records on every open tape of the thread that tracks an input. */
static smelt_status record_operation(const smelt_apply_desc *desc, int count, smelt_array *result) {
    if (desc->operation == SMELT_OPERATION_STOP_GRADIENT) return SMELT_OK;
    for (struct smelt_tape *tape = innermost; tape; tape = tape->below)
        if (records(tape, desc->inputs, count))
            TRY(add_node(tape, desc, NULL, desc->inputs, count, &result, 1));
    return SMELT_OK;
}

/* ---- Life. */

smelt_status smelt_tape_begin(smelt_tape **out) {
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "tape: the address for the new tape is NULL");
    smelt_tape *tape = calloc(1, sizeof *tape);
    if (!tape) return fail_out_of_memory(sizeof *tape);
    tape->thread = &thread_mark;
    tape->open = true;
    tape->pauses = paused;
    tape->below = innermost;
    innermost = tape;
    operation_record_with(record_operation);
    *out = tape;
    return SMELT_OK;
}

smelt_status smelt_tape_end(smelt_tape *tape) {
    if (!tape) return fail(SMELT_ERROR_INVALID_ARGUMENT, "tape end: tape is NULL");
    if (!tape->open) return SMELT_OK;
    if (tape->thread != &thread_mark)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tape end: the tape was begun on another thread and must be ended there");
    struct smelt_tape **link = &innermost;
    while (*link != tape) link = &(*link)->below;
    *link = tape->below;
    if (!innermost) operation_record_with(NULL);
    tape->open = false;
    return SMELT_OK;
}

static void custom_release(struct custom *custom) {
    if (!custom || atomic_fetch_sub(&custom->references, 1) != 1) return;
    if (custom->desc.release) custom->desc.release(custom->desc.context);
    free(custom->name);
    free(custom);
}

void smelt_tape_release(smelt_tape *tape) {
    if (!tape || smelt_tape_end(tape) != SMELT_OK) return;
    for (int n = tape->node_count - 1; n >= 0; n--) {
        struct node *node = &tape->nodes[n];
        for (int i = 0; i < node->input_count + node->output_count; i++) smelt_array_release(node->inputs[i]);
        free(node->inputs);
        custom_release(node->custom);
    }
    for (int i = 0; i < tape->watched_count; i++) smelt_array_release(tape->watched[i]);
    free(tape->nodes);
    free(tape->watched);
    free(tape->tracked);
    free(tape);
}

smelt_status smelt_tape_watch(smelt_tape *tape, smelt_array *array) {
    if (!tape || !array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tape watch: %s is NULL", tape ? "array" : "tape");
    if (tracks(tape, array)) return SMELT_OK;
    if (tape->watched_count == tape->watched_capacity) {
        int capacity = tape->watched_capacity ? 2 * tape->watched_capacity : 8;
        smelt_array **more = realloc(tape->watched, (size_t)capacity * sizeof(smelt_array *));
        if (!more) return fail_out_of_memory((size_t)capacity * sizeof(smelt_array *));
        tape->watched = more;
        tape->watched_capacity = capacity;
    }
    TRY(track(tape, array));
    tape->watched[tape->watched_count++] = smelt_array_retain(array);
    return SMELT_OK;
}

/* ---- Custom functions. */

static smelt_status record_custom(const smelt_record_desc *desc, struct custom *custom) {
    for (int i = 0; i < desc->input_count + desc->output_count; i++) {
        bool input = i < desc->input_count;
        int at = input ? i : i - desc->input_count;
        if (!(input ? desc->inputs : desc->outputs)[at])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "record of '%s': %s %d is NULL", custom->name,
                        input ? "input" : "output", at);
    }
    for (int o = 0; o < desc->output_count; o++)
        for (int i = 0; i < desc->input_count; i++)
            if (desc->outputs[o] == desc->inputs[i])
                return fail(
                    SMELT_ERROR_INVALID_ARGUMENT,
                    "record of '%s': output %d is the handle of input %d, expected a handle of its own",
                    custom->name, o, i);
    for (struct smelt_tape *tape = innermost; tape; tape = tape->below)
        if (records(tape, desc->inputs, desc->input_count))
            TRY(add_node(tape, NULL, custom, desc->inputs, desc->input_count, desc->outputs,
                         desc->output_count));
    return SMELT_OK;
}

smelt_status smelt_tape_record(const smelt_record_desc *desc) {
    if (!desc || desc->input_count < 0 || desc->output_count < 1 || !desc->outputs ||
        (desc->input_count && !desc->inputs))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "record: %s",
                    !desc ? "desc is NULL" : "inputs or outputs are missing");
    TRY(reserved_check(smelt_record_desc, desc));
    struct custom *custom = calloc(1, sizeof *custom);
    const char *name = desc->name ? desc->name : "a custom function";
    char *copy = custom ? string_copy(name, strlen(name)) : NULL;
    if (!copy) {
        free(custom);
        if (desc->release) desc->release(desc->context);
        return fail_out_of_memory(sizeof *custom);
    }
    custom->name = copy;
    custom->desc = *desc;
    custom->desc.inputs = custom->desc.outputs = NULL;
    atomic_init(&custom->references, 1);
    smelt_status status = record_custom(desc, custom);
    custom_release(custom);
    return status;
}
