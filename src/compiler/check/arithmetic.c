/* Arithmetic that Metal leaves undefined, whatever smelt defines for it (docs/semantics.md): signed sums,
 * differences and products that overflow, shifts past the width, divisions by zero, conversions of floats
 * that no integer can hold. On request also unsigned numbers that wrap, and floats that stop being finite
 * (not_finite.c).
 *
 * What clang promises is lost in the first passes, but code that asks must not be there while the way of the
 * lanes is laid out. So the operands in question pass through functions of which LLVM knows only that
 * they only compute: it moves none to where it would not be computed, and drops those whose value is not
 * used. Once the way is laid out, tests take their places. MemorySanitizer passes over the tests, as they do
 * not depend on what they test; it sees the call that tells the checker.
 *
 * pass_check_marked requires: the module as clang wrote it. pass_check_unmarked requires: functions inlined.
 * pass_check_tested requires: pass_hold. */
#include "compiler/check/check.h"
#include "compiler/analysis/flow.h"

#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <string.h>

/* ---- Marks. */

static bool is_whole(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind;
}

/* Sums, differences and products without the promise are unsigned. Those of the prelude are meant. */
static void mark_whole(struct unit *unit, LLVMValueRef operation, enum check_operation kind) {
    bool is_signed = LLVMGetNSW(operation);
    LLVMValueRef operands[2] = {LLVMGetOperand(operation, 0), LLVMGetOperand(operation, 1)};
    if (!is_whole(operation) || LLVMGetIntTypeWidth(LLVMTypeOf(operation)) > 64) return;
    if (!is_signed && (!(unit->request->shape.also & CHECK_ALSO_UNSIGNED) || !lines_are_of_user(operation)))
        return;
    check_mark_result(unit, operation, is_signed ? kind : kind - CHECK_ADD + CHECK_ADD_UNSIGNED, operands, 2,
                      NULL);
}

static void mark_operand(struct unit *unit, LLVMValueRef operation, unsigned operand,
                         enum check_operation kind, LLVMValueRef other) {
    LLVMValueRef value = LLVMGetOperand(operation, operand);
    if (LLVMIsConstant(value) && !LLVMIsNull(value)) return;
    LLVMPositionBuilderBefore(unit->builder, operation);
    LLVMSetOperand(operation, operand, check_mark(unit, kind, (LLVMValueRef[]){value, other}, 2, NULL));
}

static void mark_shift(struct unit *unit, LLVMValueRef shift) {
    LLVMValueRef count = LLVMGetOperand(shift, 1);
    if (is_whole(shift) && !LLVMIsConstant(count)) {
        LLVMPositionBuilderBefore(unit->builder, shift);
        LLVMSetOperand(shift, 1, check_mark(unit, CHECK_SHIFT, &count, 1, NULL));
    }
}

static void mark_called(struct unit *unit, LLVMValueRef call) {
    const char *name = called_name(call);
    bool is_signed = strncmp(name, "llvm.fptosi.sat.", 16) == 0;
    if (!is_signed && strncmp(name, "llvm.fptoui.sat.", 16) != 0) return;
    LLVMTypeRef to = LLVMTypeOf(call);
    if (LLVMGetTypeKind(to) == LLVMIntegerTypeKind)
        mark_operand(unit, call, 0, is_signed ? CHECK_CONVERT : CHECK_CONVERT_UNSIGNED, LLVMConstNull(to));
}

static void mark_instruction(struct unit *unit, LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMAdd:
        mark_whole(unit, instruction, CHECK_ADD);
        break;
    case LLVMSub:
        mark_whole(unit, instruction, CHECK_SUBTRACT);
        break;
    case LLVMMul:
        mark_whole(unit, instruction, CHECK_MULTIPLY);
        break;
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
        mark_shift(unit, instruction);
        break;
    case LLVMSDiv:
    case LLVMSRem:
        if (is_whole(instruction))
            mark_operand(unit, instruction, 1, CHECK_DIVIDE, LLVMGetOperand(instruction, 0));
        break;
    case LLVMUDiv:
    case LLVMURem:
        if (is_whole(instruction))
            mark_operand(unit, instruction, 1, CHECK_DIVIDE_UNSIGNED, LLVMGetOperand(instruction, 0));
        break;
    case LLVMCall:
        mark_called(unit, instruction);
        break;
    default:
        break;
    }
}

smelt_status pass_check_marked(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        FOR_EACH_BLOCK(block, f)
    FOR_EACH_INSTRUCTION(instruction, block) mark_instruction(unit, instruction);
    return unit->request->shape.also & CHECK_ALSO_NOT_FINITE ? check_mark_reals(unit) : SMELT_OK;
}

static void remove_marks(LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(call, block) {
        enum check_operation operation;
        if (!check_is_mark(call, &operation)) continue;
        LLVMReplaceAllUsesWith(call, LLVMGetOperand(call, 0));
        LLVMInstructionEraseFromParent(call);
    }
}

smelt_status pass_check_unmarked(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        if (f != unit->entry) remove_marks(f);
    return SMELT_OK;
}

/* ---- Tests. */

static LLVMValueRef compare(struct unit *unit, LLVMIntPredicate predicate, LLVMValueRef x, LLVMValueRef y) {
    return check_apart(unit, LLVMBuildICmp(unit->builder, predicate, x, y, ""));
}

static LLVMValueRef both(struct unit *unit, LLVMValueRef x, LLVMValueRef y) {
    return check_apart(unit, LLVMBuildAnd(unit->builder, x, y, ""));
}

static LLVMValueRef either(struct unit *unit, LLVMValueRef x, LLVMValueRef y) {
    return check_apart(unit, LLVMBuildOr(unit->builder, x, y, ""));
}

/* Whether sum ^ x and sum ^ y are negative, of a difference sum ^ x and x ^ y. */
static LLVMValueRef signs_differ(struct unit *unit, LLVMValueRef sum, LLVMValueRef x, LLVMValueRef y,
                                 bool of_difference) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef first = check_apart(unit, LLVMBuildXor(b, sum, x, "")),
                 second = check_apart(unit, LLVMBuildXor(b, of_difference ? x : sum, y, ""));
    return compare(unit, LLVMIntSLT, both(unit, first, second), LLVMConstNull(LLVMTypeOf(sum)));
}

/* In twice the width. */
static LLVMValueRef product_differs(struct unit *unit, LLVMValueRef product, LLVMValueRef x, LLVMValueRef y,
                                    bool is_signed) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef wide = LLVMIntTypeInContext(unit->context, 2 * LLVMGetIntTypeWidth(LLVMTypeOf(product)));
    LLVMValueRef values[3] = {x, y, product};
    for (int i = 0; i < 3; i++)
        values[i] = check_apart(unit, is_signed ? LLVMBuildSExt(b, values[i], wide, "")
                                                : LLVMBuildZExt(b, values[i], wide, ""));
    LLVMValueRef whole = check_apart(unit, LLVMBuildMul(b, values[0], values[1], ""));
    return compare(unit, LLVMIntNE, whole, values[2]);
}

static LLVMValueRef smallest(LLVMTypeRef type) {
    return LLVMConstInt(type, UINT64_C(1) << (LLVMGetIntTypeWidth(type) - 1), false);
}

static LLVMValueRef divides_badly(struct unit *unit, LLVMValueRef by, LLVMValueRef x, bool is_signed) {
    LLVMTypeRef type = LLVMTypeOf(by);
    LLVMValueRef by_zero = compare(unit, LLVMIntEQ, by, LLVMConstNull(type));
    if (!is_signed) return by_zero;
    return either(unit, by_zero,
                  both(unit, compare(unit, LLVMIntEQ, by, LLVMConstAllOnes(type)),
                       compare(unit, LLVMIntEQ, x, smallest(type))));
}

/* Truncated it must fit: least - 1 < value < past; of 32 bits and more, least - 1 is not a float, but least
 * is.
 */
static LLVMValueRef converts_badly(struct unit *unit, LLVMValueRef value, LLVMTypeRef to, bool is_signed) {
    LLVMBuilderRef b = unit->builder;
    unsigned bits = LLVMGetIntTypeWidth(to);
    double past = 1;
    for (unsigned i = 0; i < bits - is_signed; i++) past *= 2;
    double least = is_signed ? -past : 0;
    LLVMTypeRef number = LLVMDoubleTypeInContext(unit->context);
    LLVMValueRef exact = check_apart(unit, LLVMBuildFPExt(b, value, number, ""));
    LLVMValueRef low =
        bits > 32 && is_signed
            ? check_apart(unit, LLVMBuildFCmp(b, LLVMRealOGE, exact, LLVMConstReal(number, least), ""))
            : check_apart(unit, LLVMBuildFCmp(b, LLVMRealOGT, exact, LLVMConstReal(number, least - 1), ""));
    LLVMValueRef fits = both(
        unit, low, check_apart(unit, LLVMBuildFCmp(b, LLVMRealOLT, exact, LLVMConstReal(number, past), "")));
    return check_apart(unit, LLVMBuildNot(b, fits, ""));
}

static LLVMValueRef is_wrong(struct unit *unit, enum check_operation operation, LLVMValueRef call) {
    LLVMValueRef value = LLVMGetOperand(call, 0);
    LLVMTypeRef type = LLVMTypeOf(value);
    switch (operation) {
    case CHECK_ADD:
    case CHECK_SUBTRACT:
        return signs_differ(unit, value, LLVMGetOperand(call, 1), LLVMGetOperand(call, 2),
                            operation == CHECK_SUBTRACT);
    case CHECK_MULTIPLY:
        return product_differs(unit, value, LLVMGetOperand(call, 1), LLVMGetOperand(call, 2), true);
    case CHECK_SHIFT:
        return compare(unit, LLVMIntUGE, value, LLVMConstInt(type, LLVMGetIntTypeWidth(type), false));
    case CHECK_DIVIDE:
    case CHECK_DIVIDE_UNSIGNED:
        return divides_badly(unit, value, LLVMGetOperand(call, 1), operation == CHECK_DIVIDE);
    case CHECK_ADD_UNSIGNED: /* the sum is less than an operand */
        return compare(unit, LLVMIntULT, value, LLVMGetOperand(call, 1));
    case CHECK_SUBTRACT_UNSIGNED:
        return compare(unit, LLVMIntULT, LLVMGetOperand(call, 1), LLVMGetOperand(call, 2));
    case CHECK_MULTIPLY_UNSIGNED:
        return product_differs(unit, value, LLVMGetOperand(call, 1), LLVMGetOperand(call, 2), false);
    case CHECK_CONVERT:
    case CHECK_CONVERT_UNSIGNED:
    case CHECK_FINITE: /* not_finite.c */
        break;
    }
    return converts_badly(unit, value, LLVMTypeOf(LLVMGetOperand(call, 1)), operation == CHECK_CONVERT);
}

/* The operands that the sentence about it names. */
static void tell(struct unit *unit, enum check_operation operation, LLVMValueRef call) {
    bool of_result = operation <= CHECK_MULTIPLY || operation >= CHECK_ADD_UNSIGNED,
         one = LLVMGetNumArgOperands(call) == 1;
    LLVMValueRef first = LLVMGetOperand(call, of_result),
                 second = one ? first : LLVMGetOperand(call, 1 + of_result);
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(second));
    LLVMValueRef arguments[4] = {check_told(unit, first), check_told(unit, second),
                                 constant_i32(unit, CHECK_ARITHMETIC(operation, width)),
                                 check_site(unit, call, NULL)};
    check_call(unit, "smelt_check_arithmetic", LLVMVoidTypeInContext(unit->context), arguments, 4, false);
}

static void test(struct unit *unit, enum check_operation operation, LLVMValueRef call) {
    LLVMPositionBuilderBefore(unit->builder, call);
    if (operation == CHECK_FINITE) {
        check_test_real(unit, call);
    } else {
        check_branch(unit, call, is_wrong(unit, operation, call));
        tell(unit, operation, call);
    }
    LLVMReplaceAllUsesWith(call, LLVMGetOperand(call, 0));
    LLVMInstructionEraseFromParent(call);
}

/* The next mark of a function, from a block on; blocks that tests add lie behind. */
static LLVMValueRef next_mark(LLVMBasicBlockRef from, enum check_operation *operation) {
    for (LLVMBasicBlockRef block = from; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
            if (check_is_mark(i, operation)) return i;
    return NULL;
}

smelt_status pass_check_tested(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        enum check_operation operation;
        LLVMBasicBlockRef from = LLVMGetFirstBasicBlock(f);
        for (LLVMValueRef call; (call = next_mark(from, &operation)); test(unit, operation, call))
            from = LLVMGetInstructionParent(call);
    }
    return SMELT_OK;
}
