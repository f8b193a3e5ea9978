/* Kernels that would become too large by inlining, such as thousands of calls of precise functions. The SIMD
 * engine needs everything inlined and refuses them. In scalar code, functions without intrinsics and
 * threadgroup variables stay functions; all others are inlined as always.
 *
 * Requires: declare.c. Maintains: what the code does. */
#include "compiler/budget.h"
#include "compiler/callees.h"

static smelt_status outline(struct unit *unit, struct callees *callees) {
    TRY(callees_find(unit, callees));
    smelt_status status = budget_check(unit, BUDGET_INLINED, callees->first->instructions);
    if (status == SMELT_OK || unit->target->may_refuse) return status;
    unit->smaller = unit->refused = false;
    for (struct callee *c = callees->first->next; c; c = c->next)
        if (c->plain && c->instructions > FEW_INSTRUCTIONS) callees_keep(unit, c->function);
    return SMELT_OK;
}

smelt_status pass_outlined(struct unit *unit) {
    if (!unit->target->calls_runtime) return SMELT_OK;
    struct callees callees = {0};
    smelt_status status = outline(unit, &callees);
    arena_free(&callees.arena);
    return status;
}
