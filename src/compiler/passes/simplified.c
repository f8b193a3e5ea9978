/* Functions that a large kernel calls in many places are optimised before they are inlined. Arithmetic of 256
 * bits is a few functions with loops over limbs: inlined as they are, hundreds of copies of the same loops
 * are unrolled and simplified one by one, in one long function, where each step also takes longer.
 *
 * If that saves much, the size of the kernel with everything inlined is known better than before. It has its
 * own budget. Past it, the SIMD engine refuses the kernel here, and a GPU's thread gets the plain form,
 * whatever the optimiser would save. In scalar code, and in a GPU's plain form, the functions stay
 * functions if their loops end soon (unrolled.c), since the stop flag is polled in the entry only.
 *
 * Requires: declare.c, guard.c, leave.c. Maintains: what the code does; kernels with less to save are left as
 * they are. */
#include "compiler/budget.h"
#include "compiler/analysis/callees.h"

#include <string.h>

/* Of clang's instructions, of which about a third remains after the optimiser. */
#define WORTH_SAVING 2500  /* all copies but the first of each function */
#define MUCH_SAVED 10000   /* … the size afterwards is near the final one */
#define LONG_FUNCTION 5000 /* larger ones only see their calls become smaller */

/* The optimiser leaves out functions that are marked with this. */
static const char leave_out[] = "optnone";

static bool is_simplified(const struct callees *callees, const struct callee *c) {
    return c && c != callees->first && c->plain && c->instructions <= LONG_FUNCTION;
}

static uint64_t saved(const struct callees *callees) {
    uint64_t sum = 0;
    for (struct callee *c = callees->first; c; c = c->next) {
        uint64_t own = 0;
        if (!is_simplified(callees, c)) continue;
        FOR_EACH_BLOCK(block, c->function)
        FOR_EACH_INSTRUCTION(i, block) own++;
        sum += own * (c->copies - 1);
    }
    return sum;
}

/* Calls in functions that are left out are not inlined yet. */
static void mark_calls(struct unit *unit, const struct callee *c, bool mark) {
    unsigned kind = LLVMGetEnumAttributeKindForName("noinline", 8);
    LLVMAttributeIndex index = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    FOR_EACH_BLOCK(block, c->function)
    FOR_EACH_INSTRUCTION(i, block) {
        if (!callees_called(i)) continue;
        if (mark)
            LLVMAddCallSiteAttribute(i, index, LLVMCreateEnumAttribute(unit->context, kind, 0));
        else
            LLVMRemoveCallSiteEnumAttribute(i, index, kind);
    }
}

static void mark_others(struct unit *unit, const struct callees *callees, bool mark) {
    unsigned kind = LLVMGetEnumAttributeKindForName(leave_out, sizeof leave_out - 1);
    LLVMAttributeIndex index = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    for (struct callee *c = callees->first; c; c = c->next) {
        if (is_simplified(callees, c)) continue;
        mark_calls(unit, c, mark);
        if (mark)
            LLVMAddAttributeAtIndex(c->function, index, LLVMCreateEnumAttribute(unit->context, kind, 0));
        else
            LLVMRemoveEnumAttributeAtIndex(c->function, index, kind);
    }
}

/* From the innermost functions to the outermost. */
#define SIMPLIFY                                                                            \
    "cgscc(inline<only-mandatory>,function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg," \
    "instcombine<no-verify-fixpoint>,simplifycfg,loop-simplify,lcssa,"                      \
    "loop(loop-rotate,indvars,loop-unroll-full),sroa<modify-cfg>,early-cse<memssa>,"        \
    "instcombine<no-verify-fixpoint>,gvn,simplifycfg))"

static smelt_status simplify(struct unit *unit, const struct callees *callees) {
    mark_others(unit, callees, true);
    smelt_status status = run_passes(unit, SIMPLIFY);
    mark_others(unit, callees, false);
    return status;
}

/* On GPUs a call costs more: registers are saved, and the callee's arguments are copied. The passes that
 * lower floats to a GPU's instructions see the entry only. */
#define LONG_ON_GPUS 150

static bool is_float(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind || kind == LLVMFloatTypeKind ||
           kind == LLVMDoubleTypeKind;
}

static bool has_floats(LLVMValueRef function) {
    for (unsigned p = 0; p < LLVMCountParams(function); p++)
        if (is_float(LLVMGetParam(function, p))) return true;
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(i, block)
    if (is_float(i) || LLVMIsAFCmpInst(i)) return true;
    return false;
}

static bool may_stay(struct unit *unit, const struct callee *c) {
    bool gpu = !unit->target->calls_runtime;
    if (!c->plain || c->instructions <= (gpu ? LONG_ON_GPUS : FEW_INSTRUCTIONS)) return false;
    return unrolled_ends(unit, c->function) && !(gpu && has_floats(c->function));
}

/* Whether the thread is certainly too large for vector code, or for a GPU. */
static smelt_status choose(struct unit *unit, const struct callees *callees) {
    smelt_status status = budget_check_inlined(unit, callees->first->instructions);
    bool again = unit->target->calls_runtime ? unit->target->may_refuse : unit->unrolls;
    if (status == SMELT_OK || again) return status;
    unit->smaller = unit->refused = false;
    for (struct callee *c = callees->first->next; c; c = c->next)
        if (may_stay(unit, c)) callees_keep(unit, c->function);
    return SMELT_OK;
}

smelt_status pass_simplified(struct unit *unit) {
    struct callees callees = {0};
    smelt_status status = callees_find(unit, &callees);
    uint64_t spared = status == SMELT_OK ? saved(&callees) : 0;
    if (spared >= WORTH_SAVING) {
        unit->simplified = true;
        status = simplify(unit, &callees);
        arena_free(&callees.arena);
        callees = (struct callees){0};
        if (status == SMELT_OK) status = callees_find(unit, &callees);
        if (status == SMELT_OK && spared >= MUCH_SAVED) status = choose(unit, &callees);
    }
    arena_free(&callees.arena);
    return status;
}
