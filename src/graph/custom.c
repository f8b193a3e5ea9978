/* Registered operations: the table of them, their uses, and their derivatives on tapes. */
#include "base/reserved.h"
#include "base/text.h"
#include "graph/owned.h"
#include "ops/program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table. */

static struct {
    pthread_mutex_t lock;
    struct registered *first;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static smelt_status put(const smelt_operation_desc *desc, bool shipped) {
    struct registered *made = calloc(1, sizeof *made), *replaced = NULL;
    char *name = made ? string_copy(desc->name, strlen(desc->name)) : NULL;
    if (!name) {
        free(made);
        return fail_out_of_memory(sizeof *made);
    }
    atomic_init(&made->references, 1);
    made->desc = *desc;
    made->desc.name = name;
    made->shipped = shipped;
    pthread_mutex_lock(&table.lock);
    struct registered **link = &table.first;
    while (*link && strcmp((*link)->desc.name, name) != 0) link = &(*link)->next;
    replaced = *link;
    if (replaced) made->next = replaced->next;
    *link = made;
    pthread_mutex_unlock(&table.lock);
    graph_registered_release(replaced);
    return SMELT_OK;
}

/* ---- The operations that are there from the start. */

static smelt_status first_status;

static void put_first(void) {
    const smelt_operation_desc *desc;
    for (int i = 0; first_status == SMELT_OK && (desc = graph_shipped_operation(i)); i++)
        first_status = put(desc, true);
}

static smelt_status start_table(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, put_first);
    return first_status;
}

/* ---- Registering and finding. */

smelt_status smelt_operation_register(const smelt_operation_desc *desc) {
    if (!desc) return fail(SMELT_ERROR_INVALID_ARGUMENT, "operation register: desc is NULL");
    if (!desc->name || !*desc->name || !desc->run)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "operation register: %s is missing",
                    desc->run ? "the name" : "the function `run`");
    TRY(reserved_check(smelt_operation_desc, desc));
    TRY(start_table());
    return put(desc, false);
}

/* A reference. */
static smelt_status find(const char *name, struct registered **out) {
    struct text names = {0};
    TRY(start_table());
    pthread_mutex_lock(&table.lock);
    struct registered *found = table.first;
    while (found && strcmp(found->desc.name, name) != 0) found = found->next;
    if (found) atomic_fetch_add(&found->references, 1);
    for (struct registered *each = table.first; each && !found; each = each->next)
        text_addf(&names, "%s%s", each == table.first ? "" : ", ", each->desc.name);
    pthread_mutex_unlock(&table.lock);
    *out = found;
    smelt_status status = found ? SMELT_OK
                                : fail(SMELT_ERROR_INVALID_ARGUMENT,
                                       "custom: operation '%s' is not registered; registered are: %s", name,
                                       text_string(&names));
    text_free(&names);
    return status;
}

/* ---- Uses. */

smelt_status graph_call_create(const smelt_custom_desc *desc, struct graph_call **out) {
    struct graph_call *call = calloc(1, sizeof *call);
    if (!call) return fail_out_of_memory(sizeof *call);
    atomic_init(&call->references, 1);
    smelt_status status = find(desc->name, &call->operation);
    for (int i = 0; i < SMELT_MAX_ATTRIBUTES && desc->attributes[i].name && status == SMELT_OK; i++) {
        const smelt_attribute *from = &desc->attributes[i];
        smelt_attribute *to = &call->attributes[i];
        bool string = from->kind == SMELT_ATTRIBUTE_STRING;
        if (from->kind < SMELT_ATTRIBUTE_INTEGER || from->kind > SMELT_ATTRIBUTE_STRING ||
            (string && !from->string)) {
            status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: attribute '%s' has no value of a known kind",
                          desc->name, from->name);
            break;
        }
        *to = *from;
        to->name = string_copy(from->name, strlen(from->name));
        to->string = string ? string_copy(from->string, strlen(from->string)) : NULL;
        if (!to->name || (string && !to->string)) status = fail_out_of_memory(sizeof *to);
    }
    if (status == SMELT_OK)
        *out = call;
    else
        graph_call_release(call);
    return status;
}

static smelt_operation_call view_of(const struct graph_call *call, const char *device,
                                    smelt_array *const *inputs, int input_count, const smelt_type *types,
                                    int type_count) {
    return (smelt_operation_call){.name = graph_call_name(call),
                                  .device = device,
                                  .inputs = inputs,
                                  .input_count = input_count,
                                  .types = types,
                                  .output_count = type_count,
                                  .attributes = call->attributes};
}

/* ---- Types of the outputs. */

static smelt_status infer(const struct graph_call *call, const smelt_custom_desc *desc, smelt_type *types,
                          int *count) {
    const smelt_operation_desc *operation = &call->operation->desc;
    if (desc->output_count > SMELT_MAX_ARGUMENTS)
        return fail(SMELT_ERROR_LIMIT, "%s: %d outputs; at most %d are allowed", desc->name,
                    desc->output_count, SMELT_MAX_ARGUMENTS);
    *count = desc->types ? desc->output_count : 0;
    if (desc->types) memcpy(types, desc->types, (size_t)*count * sizeof *types);
    if (!operation->infer && !desc->types)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: the types of its outputs are not given, and the operation does not infer them",
                    desc->name);
    if (!operation->infer) return SMELT_OK;
    smelt_type inferred[SMELT_MAX_ARGUMENTS];
    memset(inferred, 0, sizeof inferred);
    int inferred_count = 0;
    smelt_operation_call seen =
        view_of(call, ARRAY_SYMBOLIC_DEVICE, desc->inputs, desc->input_count, inferred, 0);
    TRY(operation->infer(operation->context, &seen, inferred, &inferred_count));
    if (inferred_count < 0 || inferred_count > SMELT_MAX_ARGUMENTS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: it inferred %d outputs, expected 0 to %d", desc->name,
                    inferred_count, SMELT_MAX_ARGUMENTS);
    if (desc->types && *count != inferred_count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d output types are given, but it has %d outputs",
                    desc->name, *count, inferred_count);
    for (int i = 0; desc->types && i < *count; i++)
        if (types[i].dtype != inferred[i].dtype || !shape_equal(&types[i].shape, &inferred[i].shape))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "%s: output %d is given as %s %s, but it is %s %s for these inputs", desc->name, i,
                        smelt_dtype_name(types[i].dtype), shape_print(&types[i].shape).text,
                        smelt_dtype_name(inferred[i].dtype), shape_print(&inferred[i].shape).text);
    memcpy(types, inferred, (size_t)inferred_count * sizeof *types);
    *count = inferred_count;
    return SMELT_OK;
}

smelt_status graph_call_types(const struct graph_call *call, smelt_array *const *inputs, int input_count,
                              smelt_type *types, int *count) {
    const smelt_custom_desc desc = {
        .name = graph_call_name(call), .inputs = inputs, .input_count = input_count};
    return infer(call, &desc, types, count);
}

static smelt_status check_types(const char *name, const smelt_type *types, int count) {
    int64_t size;
    for (int i = 0; i < count; i++) TRY(shape_check(name, types[i].dtype, &types[i].shape, &size));
    return SMELT_OK;
}

/* ---- Running. */

smelt_status graph_call_expand(const struct graph_call *call, const char *device, smelt_array *const *inputs,
                               int input_count, const smelt_type *types, int type_count,
                               smelt_array **outputs) {
    const smelt_operation_desc *operation = &call->operation->desc;
    smelt_operation_call seen = view_of(call, device, inputs, input_count, types, type_count);
    smelt_array *made[SMELT_MAX_ARGUMENTS + 1] = {0};
    smelt_tape_pause();
    smelt_status status = operation->run(operation->context, &seen, made);
    smelt_tape_resume();
    for (int i = 0; i < type_count && status == SMELT_OK; i++) {
        bool fits =
            made[i] && made[i]->dtype == types[i].dtype && shape_equal(&made[i]->shape, &types[i].shape);
        if (!fits && made[i])
            status =
                fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: output %d is %s %s, expected %s %s", operation->name,
                     i, smelt_dtype_name(made[i]->dtype), shape_print(&made[i]->shape).text,
                     smelt_dtype_name(types[i].dtype), shape_print(&types[i].shape).text);
        else if (!fits)
            status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: output %d of %d was not computed",
                          operation->name, i, type_count);
    }
    for (int i = 0; i < type_count; i++) {
        if (status == SMELT_OK)
            outputs[i] = made[i];
        else
            smelt_array_release(made[i]);
    }
    return status;
}

static smelt_status add_node(struct graph_call *call, smelt_array *const *inputs, int input_count,
                             const smelt_type *types, int type_count, smelt_array **outputs) {
    smelt_graph *graph = graph_of(inputs, input_count);
    int *values = calloc((size_t)input_count + 1, sizeof *values), node, done = 0;
    smelt_status status = values ? SMELT_OK : fail_out_of_memory(sizeof *values);
    for (int i = 0; i < input_count && status == SMELT_OK; i++)
        status = graph_value_of(graph, inputs[i], &values[i]);
    if (status == SMELT_OK)
        status = graph_add(graph, &(struct graph_node){.kind = GRAPH_CUSTOM, .call = graph_call_retain(call)},
                           values, input_count, types, type_count, &node);
    free(values);
    for (; done < type_count && status == SMELT_OK; done++)
        status = graph_handle(graph, graph->nodes[node].first + done, &outputs[done]);
    for (int i = 0; i < done - 1 && status != SMELT_OK; i++) smelt_array_release(outputs[i]);
    return status;
}

/* ---- Derivatives: the context of a tape's record. */

struct recorded {
    struct graph_call *call;
    int input_count, type_count;
    smelt_type types[];
};

static const char *device_of(smelt_array *const *arrays, int count) {
    return graph_of(arrays, count) ? ARRAY_SYMBOLIC_DEVICE : program_device(NULL, arrays, count);
}

static smelt_status record_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                               smelt_array *const *cotangents, smelt_array **gradients) {
    const struct recorded *r = context;
    const smelt_operation_desc *operation = &r->call->operation->desc;
    smelt_operation_call seen =
        view_of(r->call, device_of(inputs, r->input_count), inputs, r->input_count, r->types, r->type_count);
    return operation->vjp(operation->context, &seen, outputs, cotangents, gradients);
}

static smelt_status record_jvp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                               smelt_array *const *tangents, smelt_array **output_tangents) {
    const struct recorded *r = context;
    const smelt_operation_desc *operation = &r->call->operation->desc;
    smelt_operation_call seen =
        view_of(r->call, device_of(inputs, r->input_count), inputs, r->input_count, r->types, r->type_count);
    return operation->jvp(operation->context, &seen, outputs, tangents, output_tangents);
}

static void record_release(void *context) {
    struct recorded *r = context;
    graph_call_release(r->call);
    free(r);
}

static smelt_status record(struct graph_call *call, smelt_array *const *inputs, int input_count,
                           const smelt_type *types, int type_count, smelt_array **outputs) {
    bool tracked = false;
    for (int i = 0; i < input_count; i++) tracked |= smelt_tape_tracks(NULL, inputs[i]);
    if (!tracked) return SMELT_OK;
    struct recorded *r = calloc(1, sizeof *r + (size_t)type_count * sizeof *types);
    if (!r) return fail_out_of_memory(sizeof *r);
    r->call = graph_call_retain(call);
    r->input_count = input_count;
    r->type_count = type_count;
    memcpy(r->types, types, (size_t)type_count * sizeof *types);
    const smelt_operation_desc *operation = &call->operation->desc;
    return smelt_tape_record(&(smelt_record_desc){.name = operation->name,
                                                  .inputs = (smelt_array **)inputs,
                                                  .input_count = input_count,
                                                  .outputs = outputs,
                                                  .output_count = type_count,
                                                  .vjp = operation->vjp ? record_vjp : NULL,
                                                  .jvp = operation->jvp ? record_jvp : NULL,
                                                  .release = record_release,
                                                  .context = r});
}

/* `run` may return an input itself, but tapes need handles of their own. */
static smelt_status own_handles(smelt_array *const *inputs, int input_count, smelt_array **outputs,
                                int count) {
    for (int o = 0; o < count; o++)
        for (int i = 0; i < input_count; i++) {
            if (outputs[o] != inputs[i]) continue;
            smelt_array *own;
            TRY(smelt_array_view(outputs[o], outputs[o]->shape, outputs[o]->strides, 0, &own));
            smelt_array_release(outputs[o]);
            outputs[o] = own;
        }
    return SMELT_OK;
}

static smelt_status use(struct graph_call *call, const char *device, smelt_array *const *inputs,
                        int input_count, const smelt_type *types, int type_count, smelt_array **outputs) {
    if (graph_of(inputs, input_count)) {
        TRY(add_node(call, inputs, input_count, types, type_count, outputs));
    } else {
        const char *where = program_device(device, inputs, input_count);
        TRY(graph_call_expand(call, where, inputs, input_count, types, type_count, outputs));
        TRY(own_handles(inputs, input_count, outputs, type_count));
    }
    smelt_status status = record(call, inputs, input_count, types, type_count, outputs);
    for (int i = 0; i < type_count && status != SMELT_OK; i++) smelt_array_release(outputs[i]);
    return status;
}

smelt_status graph_call_again(const struct graph_call *call, smelt_array *const *inputs, int input_count,
                              const smelt_type *types, int type_count, smelt_array **outputs) {
    return use((struct graph_call *)call, NULL, inputs, input_count, types, type_count, outputs);
}

smelt_status smelt_custom(const smelt_custom_desc *desc, int capacity, smelt_array **outputs, int *count) {
    struct graph_call *call = NULL;
    smelt_type types[SMELT_MAX_ARGUMENTS];
    int type_count;
    if (!desc || !outputs || !count || !desc->name)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "custom: %s is NULL",
                    !desc      ? "desc"
                    : !outputs ? "outputs"
                    : !count   ? "count"
                               : "the name");
    TRY(reserved_check(smelt_custom_desc, desc));
    for (int i = 0; i < desc->input_count; i++)
        if (!desc->inputs || !desc->inputs[i])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: input %d is NULL", desc->name, i);
    TRY(graph_call_create(desc, &call));
    smelt_status status = infer(call, desc, types, &type_count);
    if (status == SMELT_OK) status = check_types(desc->name, types, type_count);
    if (status == SMELT_OK && type_count > capacity)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: it has %d outputs, but there is room for %d",
                      desc->name, type_count, capacity);
    if (status == SMELT_OK)
        status = use(call, desc->device, desc->inputs, desc->input_count, types, type_count, outputs);
    if (status == SMELT_OK) *count = type_count;
    graph_call_release(call);
    return status;
}
