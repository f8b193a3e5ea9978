/* smelt_apply: the table of evaluators, the checks all operations share, recording. */
#include "array/symbolic.h"
#include "base/reserved.h"
#include "ops/elementwise.h"
#include "ops/operation.h"
#include "ops/program.h"
#include "ops/routine.h"

#include <stdatomic.h>
#include <string.h>

/* ---- Who computes an operation: one of the two, or by dtypes either. */

struct computing {
    evaluator *evaluate; /* itself: tapes record it */
    evaluator *compose;  /* by other operations */
    bool unrecorded;     /* evaluated only while no tape records */
};

#define ROW(...) +1
_Static_assert(0 UNARY_TABLE(ROW) BINARY_TABLE(ROW)
                       OPERATION_TABLE(ROW, ROW, ROW, ROW) == SMELT_OPERATION_END - 1,
               "each operation has one row in elementwise.h or operation.h");
#undef ROW

static const struct computing *computing_of(smelt_operation operation) {
    static const struct computing table[SMELT_OPERATION_END] = {
#define UNARY(upper, ...) [SMELT_OPERATION_##upper] = {.evaluate = evaluate_unary},
#define BINARY(upper, ...) [SMELT_OPERATION_##upper] = {.evaluate = evaluate_binary},
#define EVALUATED(upper, who) [SMELT_OPERATION_##upper] = {.evaluate = evaluate_##who},
#define COMPOSED(upper, who) [SMELT_OPERATION_##upper] = {.compose = compose_##who},
#define FUSED(upper, kernel, parts) \
    [SMELT_OPERATION_##upper] = {.evaluate = evaluate_##kernel, .compose = compose_##parts},
#define GRADIENT(upper, kernel, parts) \
    [SMELT_OPERATION_##upper] = {evaluate_##kernel, compose_##parts, .unrecorded = true},
        /* clang-format off */
        UNARY_TABLE(UNARY)
        BINARY_TABLE(BINARY)
        OPERATION_TABLE(EVALUATED, COMPOSED, FUSED, GRADIENT)
    /* clang-format on */
#undef UNARY
#undef BINARY
#undef EVALUATED
#undef COMPOSED
#undef FUSED
#undef GRADIENT
    };
    return &table[operation];
}

/* ---- A call. */

static smelt_status check_inputs(const smelt_apply_desc *desc, struct call *call) {
    TRY(reserved_check(smelt_apply_desc, desc));
    call->name = smelt_operation_name(desc->operation);
    if (!call->name)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "apply: operation %d is not one of smelt_operation",
                    (int)desc->operation);
    while (call->count < SMELT_MAX_ARGUMENTS && desc->inputs[call->count]) {
        call->inputs[call->count] = desc->inputs[call->count];
        call->count++;
    }
    int wanted = smelt_operation_inputs(desc->operation);
    if (wanted >= 0 ? call->count != wanted : call->count < 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d inputs are given, expected %s%d", call->name,
                    call->count, wanted >= 0 ? "" : "at least ", wanted >= 0 ? wanted : 1);
    if (desc->axis_count < 0 || desc->axis_count > 2 * SMELT_MAX_DIMENSIONS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: axis_count is %d, expected 0 to %d", call->name,
                    desc->axis_count, 2 * SMELT_MAX_DIMENSIONS);
    call->device = program_device(desc->device, call->inputs, call->count);
    for (int i = 0; i < call->count; i++)
        if (array_is_symbolic(call->inputs[i])) call->device = ARRAY_SYMBOLIC_DEVICE;
    return SMELT_OK;
}

/* Inputs on the device of the call; one of one element may stay on the host. moved[i]: a reference, if it
 * was. */
static smelt_status move_inputs(struct call *call, smelt_array **moved) {
    bool host = program_is_host(call->device);
    for (int i = 0; i < call->count; i++) {
        const struct memory_space *space = call->inputs[i]->memory->space;
        if (host ? !space : (space && strcmp(space->device, call->device) == 0) || call->inputs[i]->size == 1)
            continue;
        if (!host && call->inputs[i]->dtype == SMELT_FLOAT64) continue;
        TRY(smelt_array_to(call->inputs[i], host ? "cpu" : call->device, call->desc->stream, &moved[i]));
        call->inputs[i] = moved[i];
    }
    return SMELT_OK;
}

static smelt_status compute(struct call *call, const struct computing *computing, smelt_array **result) {
    smelt_array *moved[SMELT_MAX_ARGUMENTS] = {0};
    smelt_status status = program_is_symbolic(call->device) ? SMELT_OK : move_inputs(call, moved);
    if (status == SMELT_OK) status = computing->evaluate(call, result);
    for (int i = 0; i < call->count; i++) smelt_array_release(moved[i]);
    return status;
}

/* What it is made of may be the input itself, or what a tape tracks under another name: results have handles
 * of their own. */
static smelt_status compose(const struct call *call, const struct computing *computing,
                            smelt_array **result) {
    smelt_array *made;
    TRY(computing->compose(call, &made));
    bool own = true;
    for (int i = 0; i < call->count; i++) own &= made != call->inputs[i];
    if (own) {
        *result = made;
        return SMELT_OK;
    }
    smelt_status status =
        smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_IDENTITY, .inputs = {made}}, result);
    smelt_array_release(made);
    return status;
}

/* ---- Recording. */

static _Thread_local operation_recorder *recorder;

void operation_record_with(operation_recorder *wanted) {
    recorder = wanted;
}

/* ---- Values of graphs. */

static _Atomic(operation_tracer *) tracer;

void operation_trace_with(operation_tracer *wanted) {
    atomic_store(&tracer, wanted);
}

bool operation_is_composed(smelt_operation operation) {
    return computing_of(operation)->compose != NULL;
}

smelt_status operation_infer(const smelt_apply_desc *desc, smelt_array **result) {
    struct call call = {.desc = desc};
    TRY(check_inputs(desc, &call));
    call.device = ARRAY_SYMBOLIC_DEVICE;
    return computing_of(desc->operation)->evaluate(&call, result);
}

static smelt_status trace(const struct call *call, smelt_array *shaped, smelt_array **result) {
    operation_tracer *trace_with = atomic_load(&tracer);
    if (!trace_with)
        return fail(SMELT_ERROR_INTERNAL, "%s: an input is a value of a graph, but there are no graphs",
                    call->name);
    return trace_with(call->desc, call->count, shaped, result);
}

/* Without inputs there is no graph to be a value of: its elements are computed now, and become a constant of
 * the graph that uses them. Equal elements are one. */
static smelt_status create_constant(const smelt_apply_desc *desc, smelt_array **result) {
    smelt_apply_desc create = *desc;
    smelt_operation operation = desc->operation;
    bool equal = operation == SMELT_OPERATION_ZEROS || operation == SMELT_OPERATION_ONES ||
                 operation == SMELT_OPERATION_FULL;
    create.device = "cpu";
    create.stream = NULL;
    if (!equal) return smelt_apply(&create, result);
    int64_t strides[SMELT_MAX_DIMENSIONS] = {0}, size;
    smelt_array *one;
    TRY(shape_check(smelt_operation_name(operation), desc->dtype ? desc->dtype : SMELT_FLOAT32, &desc->shape,
                    &size));
    create.shape = (smelt_shape){.ndim = 0};
    TRY(smelt_apply(&create, &one));
    smelt_status status = smelt_array_view(one, desc->shape, strides, 0, result);
    smelt_array_release(one);
    return status;
}

/* ---- The call itself. */

smelt_status operation_apply_into(const smelt_apply_desc *desc, smelt_array *into) {
    struct call call = {.desc = desc, .into = into};
    smelt_array *made = NULL;
    TRY(check_inputs(desc, &call));
    TRY(compute(&call, computing_of(desc->operation), &made));
    smelt_status status = SMELT_OK;
    if (made->memory != into->memory || made->data != into->data)
        status = call_place(&(struct call){.desc = desc, .name = call.name, .device = call.device}, made,
                            into, &into->shape, into->strides, 0);
    smelt_array_release(made);
    return status;
}

static bool is_composed(const struct call *call, const struct computing *computing) {
    if (!computing->evaluate || !computing->compose) return computing->compose != NULL;
    /* In a graph the parts are fused with what surrounds them. */
    if (program_is_symbolic(call->device)) return true;
    if (computing->unrecorded && recorder) return true;
    bool any = call->count > 0 && call->inputs[0]->size > 0;
    return !any || !routine_is_float(call->inputs[0]->dtype) || call_has_float64(call);
}

smelt_status smelt_apply(const smelt_apply_desc *desc, smelt_array **result) {
    struct call call = {.desc = desc};
    smelt_array *made = NULL;
    if (!desc || !result)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "apply: %s is NULL", desc ? "result" : "desc");
    TRY(check_inputs(desc, &call));
    const struct computing *computing = computing_of(desc->operation);
    if (is_composed(&call, computing)) return compose(&call, computing, result);
    bool symbolic = program_is_symbolic(call.device);
    if (symbolic && !call.count) return create_constant(desc, result);
    TRY(compute(&call, computing, &made));
    if (symbolic) {
        smelt_array *shaped = made;
        smelt_status traced = trace(&call, shaped, &made);
        smelt_array_release(shaped);
        TRY(traced);
    }
    smelt_status status = recorder ? recorder(desc, call.count, made) : SMELT_OK;
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
