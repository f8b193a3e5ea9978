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
 * Of signed numbers, too, if neither a number nor d is negative, but not of other quotients or remainders:
 * what divides these, such as a factor of enlargement, may well be smaller than a gang. A remainder alone is
 * speculated on if an address is computed from it: neighbours then load neighbours.
 *
 * Quotients behind guards (`if (i >= n) return;`) are speculated on in a third version, which precedes the
 * other two: a gang whose lanes do not share them still has no masks in the second.
 *
 * Comparisons of positions with bounds: see edges.c. */
#include "compiler/simd/simd.h"

/* ---- Quotients. */

#define MOST_CONDITIONS 4 /* levels of and, or, … in one condition */

/* Whether the condition can only hold if the number is 0 or -1. */
static bool needs_unsafe(LLVMValueRef condition, LLVMValueRef number, int depth) {
    int64_t c;
    if (!LLVMIsAInstruction(condition) || depth == MOST_CONDITIONS) return false;
    LLVMValueRef left = LLVMGetOperand(condition, 0);
    switch (LLVMGetInstructionOpcode(condition)) {
    case LLVMICmp:
        return LLVMGetICmpPredicate(condition) == LLVMIntEQ && left == number &&
               shape_constant(LLVMGetOperand(condition, 1), &c) && (c == 0 || c == -1);
    case LLVMAnd:
        return needs_unsafe(left, number, depth + 1) ||
               needs_unsafe(LLVMGetOperand(condition, 1), number, depth + 1);
    case LLVMOr:
        return needs_unsafe(left, number, depth + 1) &&
               needs_unsafe(LLVMGetOperand(condition, 1), number, depth + 1);
    default:
        return false;
    }
}

/* The divisor that guard.c replaced by 1 in lanes that cannot divide by it. There it is 0 or -1, and not
 * speculated on. */
static LLVMValueRef unguarded(LLVMValueRef divisor) {
    int64_t c;
    if (!LLVMIsASelectInst(divisor) || !shape_constant(LLVMGetOperand(divisor, 1), &c) || c != 1)
        return divisor;
    LLVMValueRef number = LLVMGetOperand(divisor, 2);
    return needs_unsafe(LLVMGetOperand(divisor, 0), number, 0) ? number : divisor;
}

/* The divisor of a division, or of the shift or mask that represents one; NULL: it is neither. Adds no
 * instruction for those. */
static LLVMValueRef divisor_of(LLVMValueRef i) {
    LLVMValueRef operand = LLVMGetNumOperands(i) == 2 ? LLVMGetOperand(i, 1) : NULL;
    uint64_t c;
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMUDiv:
    case LLVMURem:
    case LLVMSDiv:
    case LLVMSRem:
        return unguarded(operand);
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
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    return opcode == LLVMUDiv || opcode == LLVMSDiv || opcode == LLVMLShr;
}

static bool is_signed(LLVMValueRef i) {
    return LLVMGetInstructionOpcode(i) == LLVMSDiv || LLVMGetInstructionOpcode(i) == LLVMSRem;
}

static bool is_remainder(LLVMValueRef i) {
    return LLVMGetInstructionOpcode(i) == LLVMURem || LLVMGetInstructionOpcode(i) == LLVMSRem;
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

#define STEPS_TO_POSITION 8

/* Whether the value is computed from one that is speculated on. */
static bool is_nested(struct simd *s, LLVMValueRef value, int steps) {
    for (int o = 0; steps > 0 && o < LLVMGetNumOperands(value); o++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)o);
        if (!LLVMIsAInstruction(operand) || LLVMIsAPHINode(operand) || LLVMIsALoadInst(operand)) continue;
        if (value_of(s, operand)->speculated || is_nested(s, operand, steps - 1)) return true;
    }
    return false;
}

static bool suits(struct simd *s, LLVMValueRef i, bool behind_guards) {
    if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(LLVMTypeOf(i)) < 32)
        return false;
    LLVMValueRef divisor = divisor_of(i);
    if (!divisor || shape_of(s, LLVMGetOperand(i, 0)) <= SHAPE_UNIFORM) return false;
    uint64_t c;
    int64_t span = span_of(s, shape_of(s, LLVMGetOperand(i, 0)));
    bool hopeless = is_constant_integer(divisor, &c) &&
                    (c <= (uint64_t)span || (is_signed(i) && c >> (shape_width(i) - 1)));
    if (is_signed(i) && is_nested(s, i, STEPS_TO_POSITION)) return false;
    if (shape_of(s, divisor) != SHAPE_UNIFORM || span <= 0 || hopeless || !effects_follow(s, i)) return false;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(i);
    return edges_all_start(s, block) || (behind_guards && edges_guard_block(s, block));
}

int speculation_shape(struct simd *s, LLVMValueRef i) {
    if (!s->speculating || !suits(s, i, s->behind_guards)) return SHAPE_VARYING;
    value_of(s, i)->speculated = true;
    return is_quotient(i) ? SHAPE_UNIFORM : shape_of(s, LLVMGetOperand(i, 0));
}

/* Quotients of unsigned numbers: smaller gangs, of which more share them, are worth their price. Others are
 * speculated on only in gangs of the size that the general code would have: that is not slower then. */
static bool is_counted(LLVMValueRef i) {
    return is_quotient(i) && !is_signed(i);
}

static bool is_worth_code(LLVMValueRef i) {
    return is_quotient(i) || (is_remainder(i) && edges_reach_address(i));
}

static bool has_quotient(struct simd *s, LLVMBasicBlockRef block, bool (*pays)(LLVMValueRef i)) {
    FOR_EACH_INSTRUCTION(i, block)
    if (shape_of(s, i) == SHAPE_VARYING && pays(i) && suits(s, i, true)) return true;
    return false;
}

/* `start`: in blocks where all lanes are; otherwise in others. */
static bool has_quotients(struct simd *s, bool start, bool (*pays)(LLVMValueRef i)) {
    for (int place = 0; place < s->paths.block_count; place++) {
        LLVMBasicBlockRef block = s->blocks[place].original;
        if (edges_all_start(s, block) == start && has_quotient(s, block, pays)) return true;
    }
    return false;
}

static bool pays_with(struct simd *s, bool (*pays)(LLVMValueRef i)) {
    return has_quotients(s, true, pays) || edges_have_guard(s) || edges_have_others(s);
}

bool speculation_pays(struct simd *s) {
    return pays_with(s, is_worth_code);
}

bool speculation_needs_small_gangs(struct simd *s) {
    return pays_with(s, is_counted);
}

bool speculation_pays_behind_guards(struct simd *s) {
    return has_quotients(s, false, is_worth_code);
}

/* Goes on where the check holds, and otherwise to the general code. */
static void go_on_if(struct simd *s, LLVMValueRef check) {
    LLVMBasicBlockRef shared = simd_block(s, "shared");
    LLVMBuildCondBr(s->unit->builder, check, shared, s->general);
    LLVMPositionBuilderAtEnd(s->unit->builder, shared);
}

void emit_speculated(struct simd *s, LLVMValueRef i) {
    LLVMBuilderRef b = s->unit->builder;
    if (emit_edge(s, i)) return;
    simd_remark(
        s, i, "speculation: gangs whose lanes share this quotient run separate code in which it is uniform");
    LLVMTypeRef type = LLVMTypeOf(i);
    LLVMValueRef number = scalar_of(s, LLVMGetOperand(i, 0)), divisor = divisor_of(i);
    if (LLVMIsAInstruction(divisor)) divisor = scalar_of(s, divisor);
    LLVMValueRef span = LLVMConstInt(type, (uint64_t)span_of(s, shape_of(s, LLVMGetOperand(i, 0))), false);
    /* Of small divisors, every gang would fail: they cost a comparison, whose result hardly ever changes. */
    if (!LLVMIsAConstantInt(divisor))
        go_on_if(s, LLVMBuildICmp(b, is_signed(i) ? LLVMIntSGT : LLVMIntUGT, divisor, span, ""));
    LLVMValueRef quotient = LLVMBuildUDiv(b, number, divisor, "");
    LLVMValueRef rest = LLVMBuildSub(b, number, LLVMBuildMul(b, quotient, divisor, ""), "");
    LLVMValueRef within = LLVMBuildICmp(b, LLVMIntULT, span, LLVMBuildSub(b, divisor, rest, ""), "");
    LLVMValueRef last = LLVMBuildAdd(b, number, span, ""), zero = LLVMConstNull(type);
    LLVMValueRef straight = LLVMBuildICmp(b, LLVMIntULE, number, last, "");
    LLVMValueRef suited = LLVMBuildAnd(b, within, straight, "");
    if (is_signed(i)) {
        LLVMValueRef either = LLVMBuildOr(b, last, divisor, ""); /* lane 0's number is below the last */
        suited = LLVMBuildAnd(b, suited, LLVMBuildICmp(b, LLVMIntSGE, either, zero, ""), "");
    }
    go_on_if(s, suited);
    scalar_set(s, i, is_quotient(i) ? quotient : rest);
}
