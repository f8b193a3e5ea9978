/* Versions of a kernel for two, three and four dimensions.
 *
 *     for (d = 0; d < dimensions; d++) { at += index % shape[d] * strides[d]; index /= shape[d]; }
 *
 * Kernels for arrays of any layout compute an element's place so, once per array. The launch passes the
 * number of dimensions. Where it is one of these numbers, the loops are unrolled: arrays of one shape then
 * share the divisions, and what only the shape decides is computed once. One test at the start chooses the
 * version.
 *
 * Requires: the retargeted module. Maintains: what the code does. */
#include "compiler/flow.h"
#include "compiler/ptx/coarsen/strides.h"
#include "compiler/ptx/coarsen/twin.h"

#define MOST_DIMENSIONS 4
#define FEWEST_DIMENSIONS 2
#define MOST_INSTRUCTIONS 400 /* of a kernel: it is there once per version */
#define DEPTH 8

static bool is_invariant(struct unit *unit, LLVMValueRef value) {
    unsigned kind = LLVMGetMDKindIDInContext(unit->context, "invariant.load", 14);
    return LLVMIsALoadInst(value) && LLVMGetMetadata(value, kind);
}

/* Whether a number is loaded from an array that the launch passed, at a place that changes in the loop. */
static bool is_from_shape(struct unit *unit, LLVMValueRef value, int depth) {
    if (!LLVMIsAInstruction(value) || depth == 0) return false;
    if (LLVMIsALoadInst(value)) return is_invariant(unit, value) && !ptx_is_argument(unit, value);
    if (LLVMIsAPHINode(value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (is_from_shape(unit, LLVMGetOperand(value, (unsigned)i), depth - 1)) return true;
    return false;
}

static bool divides_by_shape(struct unit *unit, LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
        if (opcode != LLVMUDiv && opcode != LLVMURem && opcode != LLVMSDiv && opcode != LLVMSRem) continue;
        if (is_from_shape(unit, LLVMGetOperand(i, 1), DEPTH)) return true;
    }
    return false;
}

/* The argument that a value is, or is a constant away from. */
static LLVMValueRef argument_of(struct unit *unit, LLVMValueRef value) {
    for (int depth = 0; depth < DEPTH && LLVMIsAInstruction(value); depth++) {
        if (ptx_is_argument(unit, value)) return value;
        bool sum = LLVMGetInstructionOpcode(value) == LLVMAdd && LLVMIsAConstantInt(LLVMGetOperand(value, 1));
        if (!sum && !LLVMIsACastInst(value) && !LLVMIsAFreezeInst(value)) return NULL;
        value = LLVMGetOperand(value, 0);
    }
    return NULL;
}

/* The argument that a counter of the loop starts from, which a test compares. */
static LLVMValueRef start_of(struct unit *unit, LLVMValueRef value, LLVMBasicBlockRef header) {
    LLVMValueRef start = NULL;
    bool counts = false;
    for (int depth = 0; depth < DEPTH && LLVMIsAInstruction(value) && !LLVMIsAPHINode(value); depth++) {
        bool sum = LLVMGetInstructionOpcode(value) == LLVMAdd && LLVMIsAConstantInt(LLVMGetOperand(value, 1));
        if (!sum && !LLVMIsACastInst(value)) return NULL;
        value = LLVMGetOperand(value, 0);
    }
    if (!LLVMIsAPHINode(value) || LLVMGetInstructionParent(value) != header) return NULL;
    for (unsigned i = 0; i < LLVMCountIncoming(value); i++) {
        LLVMValueRef from = LLVMGetIncomingValue(value, i);
        if (LLVMIsAInstruction(from) && LLVMGetInstructionOpcode(from) == LLVMAdd &&
            LLVMGetOperand(from, 0) == value && LLVMIsAConstantInt(LLVMGetOperand(from, 1)))
            counts = true;
        else if (!start)
            start = argument_of(unit, from);
    }
    return counts ? start : NULL;
}

static LLVMValueRef argument_in(struct unit *unit, LLVMValueRef test, LLVMBasicBlockRef header, int depth) {
    LLVMValueRef found = NULL;
    if (!LLVMIsAInstruction(test) || depth == 0) return NULL;
    bool compares = LLVMIsAICmpInst(test) != NULL;
    if (!compares && !LLVMIsABinaryOperator(test) && !LLVMIsASelectInst(test)) return NULL;
    for (int i = 0; i < LLVMGetNumOperands(test) && !found; i++) {
        LLVMValueRef operand = LLVMGetOperand(test, (unsigned)i);
        found = compares ? argument_of(unit, operand) : argument_in(unit, operand, header, depth - 1);
        if (compares && !found) found = start_of(unit, operand, header);
    }
    return found;
}

/* The argument that a loop counts to, or from. */
static LLVMValueRef rounds_of(struct unit *unit, const struct flow *flow, int loop) {
    LLVMBasicBlockRef header = flow->blocks[flow->loops[loop].header].block;
    for (int b = 0; b < flow->block_count; b++) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[b].block);
        if (flow->blocks[b].loop != loop || !LLVMIsABranchInst(end) || !LLVMIsConditional(end)) continue;
        LLVMValueRef argument = argument_in(unit, LLVMGetCondition(end), header, DEPTH);
        if (argument) return argument;
    }
    return NULL;
}

/* The number of dimensions, which the launch passes; NULL: no loop needs it. */
static LLVMValueRef find_dimensions(struct unit *unit, const struct flow *flow) {
    for (int loop = 0; loop < flow->loop_count; loop++) {
        bool divides = false;
        for (int b = 0; b < flow->block_count && !divides; b++)
            divides = flow->blocks[b].loop == loop && divides_by_shape(unit, flow->blocks[b].block);
        LLVMValueRef dimensions = divides ? rounds_of(unit, flow, loop) : NULL;
        if (dimensions) return dimensions;
    }
    return NULL;
}

static smelt_status build_version(struct unit *unit, LLVMValueRef dimensions, uint64_t count) {
    struct twin twin;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(dimensions);
    smelt_status status = ptx_twin_build(unit, &twin);
    if (status == SMELT_OK) {
        LLVMValueRef copy = ptx_twin_value(&twin, dimensions), number = LLVMConstInt(type, count, false);
        LLVMPositionBuilderAtEnd(b, twin.choice);
        LLVMValueRef test =
            LLVMBuildICmp(b, LLVMIntEQ, ptx_read_argument(unit, dimensions), number, "dimensions");
        LLVMReplaceAllUsesWith(copy, number);
        ptx_twin_choose(&twin, test);
    }
    ptx_twin_free(&twin);
    if (status != SMELT_OK) return status;
    return ptx_run_passes(unit, "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)");
}

static bool is_small(struct unit *unit) {
    int count = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) if (++count > MOST_INSTRUCTIONS) return false;
    return true;
}

/* Each version is built of all before it; in it, what is for other numbers goes. */
smelt_status pass_ptx_dimensions(struct unit *unit) {
    int versions = 0;
    smelt_status status = SMELT_OK;
    if (!is_small(unit)) return SMELT_OK;
    for (uint64_t count = MOST_DIMENSIONS; status == SMELT_OK && count >= FEWEST_DIMENSIONS; count--) {
        struct arena arena = {0};
        struct flow flow;
        status = flow_find(unit, unit->entry, &arena, &flow);
        LLVMValueRef dimensions = status == SMELT_OK ? find_dimensions(unit, &flow) : NULL;
        arena_free(&arena);
        if (status != SMELT_OK || !dimensions) break;
        status = build_version(unit, dimensions, count);
        versions++;
    }
    if (status != SMELT_OK || !versions) return status;
    TRY(ptx_run_passes(unit, "function(loop(loop-unroll-full),early-cse<memssa>,"
                             "instcombine<no-verify-fixpoint>,simplifycfg,gvn,adce,simplifycfg)"));
    return ptx_note(unit, "versions of the code for 2 to %d dimensions", MOST_DIMENSIONS);
}
