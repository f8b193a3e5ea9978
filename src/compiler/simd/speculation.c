/* Speculation on values that neighbouring threads mostly share. The code is then written twice. The first
 * version treats such a value, and all that is computed from it, as uniform, and checks this. A gang that
 * fails a check runs the other version from the start, which makes no such assumption: the check precedes all
 * effects on memory.
 *
 * Quotients of a thread's number and a size: threads of one pixel, one row, one head share them.
 *
 *   q = (base + lane) / d      q = base / d             if base % d + last lane < d
 *   r = (base + lane) % d      r = base % d + lane
 *
 * Guards: comparisons of positions with bounds, which end the kernel for some threads. Only gangs at an edge
 * have lanes on both sides; the others need no masks. This is done for threads that compute a tile: they have
 * many accesses, and masks would take registers. It is also done for short kernels with a sum: otherwise each
 * round of their loop merges the sum under the mask. Other threads gain little for twice the code. */
#include "compiler/simd/simd.h"

#include <string.h>

/* Whether the instruction has effects, so that a gang cannot start again after it. */
static bool has_effects(LLVMValueRef i) {
    if (LLVMIsAStoreInst(i) || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i))
        return true;
    if (!LLVMIsACallInst(i)) return false;
    enum intrinsic intrinsic = intrinsic_of(i);
    if (intrinsic == INTRINSIC_INSIDE) return false; /* the test may be repeated */
    if (intrinsic == INTRINSIC_NONE) return strncmp(called_name(i), "llvm.", 5) != 0;
    return intrinsic_traits(intrinsic)->purity == ORDERED || intrinsic == INTRINSIC_THREAD_RETURN;
}

/* No effect precedes it in its block. */
static bool precedes_effects(LLVMValueRef i) {
    for (LLVMValueRef before = LLVMGetPreviousInstruction(i); before;
         before = LLVMGetPreviousInstruction(before))
        if (has_effects(before)) return false;
    return true;
}

/* ---- Guards. */

#define MOST_CONDITIONS 4 /* levels of and, or, … in one guard */

/* Whether the condition consists of comparisons of integers whose lanes are constants apart. Other conditions
 * may well differ between neighbours. */
static bool compares_positions(struct simd *s, LLVMValueRef i, int depth) {
    if (!LLVMIsAInstruction(i)) return true;
    if (LLVMIsAICmpInst(i))
        return LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, 0))) == LLVMIntegerTypeKind &&
               shape_of(s, LLVMGetOperand(i, 0)) >= 0 && shape_of(s, LLVMGetOperand(i, 1)) >= 0;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    bool joins = opcode == LLVMAnd || opcode == LLVMOr || opcode == LLVMXor || opcode == LLVMSelect;
    if (!joins || depth == MOST_CONDITIONS) return shape_of(s, i) == SHAPE_UNIFORM;
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        if (!compares_positions(s, LLVMGetOperand(i, (unsigned)o), depth + 1)) return false;
    return true;
}

/* Whether the block only ends the kernel. */
static bool is_end(LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i != end; i = LLVMGetNextInstruction(i))
        if (!LLVMIsAPHINode(i) && intrinsic_of(i) != INTRINSIC_THREAD_RETURN) return false;
    bool goes_on = LLVMIsABranchInst(end) && !LLVMIsConditional(end);
    return LLVMIsAReturnInst(end) ||
           (goes_on && LLVMIsAReturnInst(LLVMGetFirstInstruction(LLVMGetSuccessor(end, 0))));
}

/* The condition of the branch at the end of the block if one target only ends the kernel and the block has no
 * effects; otherwise NULL. *on: the other target. */
static LLVMValueRef leaving_condition(LLVMBasicBlockRef block, LLVMBasicBlockRef *on) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end) || !precedes_effects(end)) return NULL;
    bool first = is_end(LLVMGetSuccessor(end, 0));
    if (!first && !is_end(LLVMGetSuccessor(end, 1))) return NULL;
    *on = LLVMGetSuccessor(end, first ? 1 : 0);
    return LLVMGetCondition(end);
}

#define MOST_GUARDS 4 /* one after another */

/* Whether the value is a guard: it decides whether the kernel ends, in the first block or right after other
 * guards. */
static bool is_guard(struct simd *s, LLVMValueRef i) {
    LLVMTypeRef type = LLVMTypeOf(i);
    if (!s->guards_matter || s->code->masked || LLVMGetTypeKind(type) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(type) != 1)
        return false;
    LLVMBasicBlockRef block = s->blocks[0].original, on;
    for (int n = 0; n < MOST_GUARDS; n++, block = on) {
        LLVMValueRef condition = leaving_condition(block, &on);
        if (!condition || !compares_positions(s, condition, 0)) return false;
        if (condition == i) return true;
        if (s->paths.blocks[simd_place(s, on)].predecessor_count != 1) return false;
    }
    return false;
}

/* The condition in the lanes of a chunk. Its shape is uniform here, so it has no chunks of its own. */
static LLVMValueRef condition_of_chunk(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef operands[3];
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        operands[o] = chunk_of(s, LLVMGetOperand(i, (unsigned)o), chunk);
    if (LLVMIsAICmpInst(i)) return LLVMBuildICmp(b, LLVMGetICmpPredicate(i), operands[0], operands[1], "");
    if (LLVMIsASelectInst(i)) return LLVMBuildSelect(b, operands[0], operands[1], operands[2], "");
    return LLVMBuildBinOp(b, LLVMGetInstructionOpcode(i), operands[0], operands[1], "");
}

static void emit_guard(struct simd *s, LLVMValueRef i) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef all = NULL, some = NULL;
    simd_remark(s, i, "guard: gangs whose lanes all pass it, or all fail, run separate code without masks");
    for (int chunk = 0; chunk < s->chunk_count; chunk++) {
        LLVMValueRef own = condition_of_chunk(s, i, chunk);
        all = all ? LLVMBuildAnd(b, all, own, "") : own;
        some = some ? LLVMBuildOr(b, some, own, "") : own;
    }
    LLVMTypeRef bits = LLVMTypeOf(mask_bits(s, all));
    all = LLVMBuildICmp(b, LLVMIntEQ, mask_bits(s, all), LLVMConstAllOnes(bits), "");
    LLVMValueRef none = LLVMBuildICmp(b, LLVMIntEQ, mask_bits(s, some), LLVMConstNull(bits), "");
    LLVMBasicBlockRef shared = simd_block(s, "shared");
    LLVMBuildCondBr(b, LLVMBuildOr(b, all, none, ""), shared, s->general);
    LLVMPositionBuilderAtEnd(b, shared);
    scalar_set(s, i, all);
}

int speculation_of_guard(struct simd *s, LLVMValueRef i) {
    if (!s->speculating || !is_guard(s, i)) return SHAPE_VARYING;
    value_of(s, i)->speculated = true;
    return SHAPE_UNIFORM;
}

/* ---- Quotients. */

/* The divisor of a division, or of the shift or mask that represents one; NULL: it is neither. Adds no
 * instruction for those. */
static LLVMValueRef divisor_of(LLVMValueRef i) {
    LLVMValueRef operand = LLVMGetNumOperands(i) == 2 ? LLVMGetOperand(i, 1) : NULL;
    uint64_t c;
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMUDiv:
    case LLVMURem:
        return operand;
    case LLVMLShr:
        if (!is_constant_integer(operand, &c) || c >= LLVMGetIntTypeWidth(LLVMTypeOf(i))) return NULL;
        return LLVMConstInt(LLVMTypeOf(i), UINT64_C(1) << c, false);
    case LLVMAnd:
        if (!is_constant_integer(operand, &c) || !c || (c & (c + 1)) != 0) return NULL;
        return LLVMConstInt(LLVMTypeOf(i), c + 1, false);
    default:
        return NULL;
    }
}

static bool is_quotient(LLVMValueRef i) {
    return LLVMGetInstructionOpcode(i) == LLVMUDiv || LLVMGetInstructionOpcode(i) == LLVMLShr;
}

/* The offset of the last lane if lane 0 has the smallest number; otherwise 0. */
static int64_t span_of(struct simd *s, int shape) {
    const int64_t *offsets = shape_offsets(s, shape);
    int64_t span = 0;
    for (int l = 0; l < s->lanes; l++) {
        if (offsets[l] < 0) return 0;
        if (offsets[l] > span) span = offsets[l];
    }
    return span;
}

static bool suits(struct simd *s, LLVMValueRef i) {
    if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(LLVMTypeOf(i)) < 32)
        return false;
    LLVMValueRef divisor = divisor_of(i);
    if (!divisor || shape_of(s, LLVMGetOperand(i, 0)) <= SHAPE_UNIFORM) return false;
    uint64_t c;
    int64_t span = span_of(s, shape_of(s, LLVMGetOperand(i, 0)));
    bool hopeless = is_constant_integer(divisor, &c) && c <= (uint64_t)span;
    return shape_of(s, divisor) == SHAPE_UNIFORM && span > 0 && !hopeless && value_of(s, i)->block == 0 &&
           precedes_effects(i);
}

int speculation_shape(struct simd *s, LLVMValueRef i) {
    if (!s->speculating || !suits(s, i)) return SHAPE_VARYING;
    value_of(s, i)->speculated = true;
    return is_quotient(i) ? SHAPE_UNIFORM : shape_of(s, LLVMGetOperand(i, 0));
}

bool speculation_has_guard(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++) {
        LLVMBasicBlockRef on;
        LLVMValueRef condition = leaving_condition(s->blocks[place].original, &on);
        if (condition && shape_of(s, condition) == SHAPE_VARYING && is_guard(s, condition)) return true;
    }
    return false;
}

bool speculation_pays(struct simd *s) {
    FOR_EACH_INSTRUCTION(i, s->blocks[0].original)
    if (shape_of(s, i) == SHAPE_VARYING && is_quotient(i) && suits(s, i)) return true;
    return speculation_has_guard(s);
}

bool speculation_reads_lanes(struct simd *s, LLVMValueRef i) {
    return value_of(s, i)->speculated && is_guard(s, i);
}

void emit_speculated(struct simd *s, LLVMValueRef i) {
    LLVMBuilderRef b = s->unit->builder;
    if (is_guard(s, i)) {
        emit_guard(s, i);
        return;
    }
    simd_remark(
        s, i, "speculation: gangs whose lanes share this quotient run separate code in which it is uniform");
    LLVMTypeRef type = LLVMTypeOf(i);
    LLVMValueRef number = scalar_of(s, LLVMGetOperand(i, 0)), divisor = divisor_of(i);
    if (LLVMIsAInstruction(divisor)) divisor = scalar_of(s, divisor);
    LLVMValueRef span = LLVMConstInt(type, (uint64_t)span_of(s, shape_of(s, LLVMGetOperand(i, 0))), false);
    LLVMValueRef quotient = LLVMBuildUDiv(b, number, divisor, "");
    LLVMValueRef rest = LLVMBuildSub(b, number, LLVMBuildMul(b, quotient, divisor, ""), "");
    LLVMValueRef within = LLVMBuildICmp(b, LLVMIntULT, span, LLVMBuildSub(b, divisor, rest, ""), "");
    LLVMValueRef straight = LLVMBuildICmp(b, LLVMIntULE, number, LLVMBuildAdd(b, number, span, ""), "");
    LLVMBasicBlockRef shared = simd_block(s, "shared");
    LLVMBuildCondBr(b, LLVMBuildAnd(b, within, straight, ""), shared, s->general);
    LLVMPositionBuilderAtEnd(b, shared);
    scalar_set(s, i, is_quotient(i) ? quotient : rest);
}
