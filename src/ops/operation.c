/* smelt_apply: the table of evaluators, the checks all operations share, recording. */
#include "base/reserved.h"
#include "ops/elementwise.h"
#include "ops/operation.h"
#include "ops/program.h"
#include "ops/routine.h"

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
    smelt_status status = move_inputs(call, moved);
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

/* ---- The call itself. */

static bool is_composed(const struct call *call, const struct computing *computing) {
    if (!computing->evaluate || !computing->compose) return computing->compose != NULL;
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
    TRY(compute(&call, computing, &made));
    smelt_status status = recorder ? recorder(desc, call.count, made) : SMELT_OK;
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
