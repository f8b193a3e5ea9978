/* Arithmetic that Metal leaves undefined, whatever smelt defines for it (docs/semantics.md): signed sums,
 * differences and products that overflow, shifts past the width, divisions by zero, conversions of floats
 * that no integer can hold.
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
#include "compiler/flow.h"

#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <string.h>

enum { MOST_OPERANDS = 3 };

static const char *const names[] = {
    [CHECK_ADD] = "add",           [CHECK_SUBTRACT] = "subtract",
    [CHECK_MULTIPLY] = "multiply", [CHECK_SHIFT] = "shift",
    [CHECK_DIVIDE] = "divide",     [CHECK_DIVIDE_UNSIGNED] = "divide-unsigned",
    [CHECK_CONVERT] = "convert",   [CHECK_CONVERT_UNSIGNED] = "convert-unsigned"};

/* ---- Marks. Each stands for its first operand. */

static LLVMValueRef mark(struct unit *unit, enum check_operation operation, LLVMValueRef *operands,
                         unsigned count) {
    char name[120];
    LLVMTypeRef types[MOST_OPERANDS];
    int length = snprintf(name, sizeof name, CHECK_MARK "%s", names[operation]);
    for (unsigned i = 0; i < count; i++) {
        types[i] = LLVMTypeOf(operands[i]);
        char *type = LLVMPrintTypeToString(types[i]);
        length += snprintf(name + length, sizeof name - (size_t)length, ".%s", type);
        LLVMDisposeMessage(type);
    }
    LLVMTypeRef type = LLVMFunctionType(types[0], types, count, false);
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, name);
    if (!function) declare_pure(unit, function = LLVMAddFunction(unit->module, name, type));
    return LLVMBuildCall2(unit->builder, type, function, operands, count, "");
}

static bool is_mark(LLVMValueRef call, enum check_operation *operation) {
    const char *name = called_name(call);
    if (strncmp(name, CHECK_MARK, sizeof CHECK_MARK - 1) != 0) return false;
    name += sizeof CHECK_MARK - 1;
    size_t length = strcspn(name, ".");
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) {
            *operation = (enum check_operation)i;
            return true;
        }
    return false;
}

static bool is_whole(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind;
}

/* The result of the operation is the mark's. */
static void mark_result(struct unit *unit, LLVMValueRef operation, enum check_operation kind) {
    LLVMValueRef x = LLVMGetOperand(operation, 0), y = LLVMGetOperand(operation, 1);
    if (!LLVMGetNSW(operation) || !is_whole(operation)) return;
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(operation));
    LLVMSetCurrentDebugLocation2(unit->builder, LLVMInstructionGetDebugLoc(operation));
    LLVMValueRef place = mark(unit, kind, (LLVMValueRef[]){LLVMGetUndef(LLVMTypeOf(operation)), x, y}, 3);
    LLVMReplaceAllUsesWith(operation, place);
    LLVMSetOperand(place, 0, operation);
}

static void mark_operand(struct unit *unit, LLVMValueRef operation, unsigned operand,
                         enum check_operation kind, LLVMValueRef other) {
    LLVMValueRef value = LLVMGetOperand(operation, operand);
    if (LLVMIsConstant(value) && !LLVMIsNull(value)) return;
    LLVMPositionBuilderBefore(unit->builder, operation);
    LLVMSetOperand(operation, operand, mark(unit, kind, (LLVMValueRef[]){value, other}, 2));
}

static void mark_shift(struct unit *unit, LLVMValueRef shift) {
    LLVMValueRef count = LLVMGetOperand(shift, 1);
    if (is_whole(shift) && !LLVMIsConstant(count)) {
        LLVMPositionBuilderBefore(unit->builder, shift);
        LLVMSetOperand(shift, 1, mark(unit, CHECK_SHIFT, &count, 1));
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
        mark_result(unit, instruction, CHECK_ADD);
        break;
    case LLVMSub:
        mark_result(unit, instruction, CHECK_SUBTRACT);
        break;
    case LLVMMul:
        mark_result(unit, instruction, CHECK_MULTIPLY);
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
    return SMELT_OK;
}

static void remove_marks(LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(call, block) {
        enum check_operation operation;
        if (!is_mark(call, &operation)) continue;
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

/* A comparison that no shadow follows. */
static LLVMValueRef apart(struct unit *unit, LLVMValueRef value) {
    if (LLVMIsAInstruction(value))
        LLVMSetMetadata(value, LLVMGetMDKindIDInContext(unit->context, "nosanitize", 10),
                        LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, NULL, 0)));
    return value;
}

static LLVMValueRef compare(struct unit *unit, LLVMIntPredicate predicate, LLVMValueRef x, LLVMValueRef y) {
    return apart(unit, LLVMBuildICmp(unit->builder, predicate, x, y, ""));
}

static LLVMValueRef both(struct unit *unit, LLVMValueRef x, LLVMValueRef y) {
    return apart(unit, LLVMBuildAnd(unit->builder, x, y, ""));
}

static LLVMValueRef either(struct unit *unit, LLVMValueRef x, LLVMValueRef y) {
    return apart(unit, LLVMBuildOr(unit->builder, x, y, ""));
}

/* Whether sum ^ x and sum ^ y are negative, of a difference sum ^ x and x ^ y. */
static LLVMValueRef signs_differ(struct unit *unit, LLVMValueRef sum, LLVMValueRef x, LLVMValueRef y,
                                 bool of_difference) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef first = apart(unit, LLVMBuildXor(b, sum, x, "")),
                 second = apart(unit, LLVMBuildXor(b, of_difference ? x : sum, y, ""));
    return compare(unit, LLVMIntSLT, both(unit, first, second), LLVMConstNull(LLVMTypeOf(sum)));
}

/* In twice the width. */
static LLVMValueRef product_differs(struct unit *unit, LLVMValueRef product, LLVMValueRef x, LLVMValueRef y) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef wide = LLVMIntTypeInContext(unit->context, 2 * LLVMGetIntTypeWidth(LLVMTypeOf(product)));
    LLVMValueRef whole = apart(unit, LLVMBuildMul(b, apart(unit, LLVMBuildSExt(b, x, wide, "")),
                                                  apart(unit, LLVMBuildSExt(b, y, wide, "")), ""));
    return compare(unit, LLVMIntNE, whole, apart(unit, LLVMBuildSExt(b, product, wide, "")));
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
    LLVMValueRef exact = apart(unit, LLVMBuildFPExt(b, value, number, ""));
    LLVMValueRef low =
        bits > 32 && is_signed
            ? apart(unit, LLVMBuildFCmp(b, LLVMRealOGE, exact, LLVMConstReal(number, least), ""))
            : apart(unit, LLVMBuildFCmp(b, LLVMRealOGT, exact, LLVMConstReal(number, least - 1), ""));
    LLVMValueRef fits =
        both(unit, low, apart(unit, LLVMBuildFCmp(b, LLVMRealOLT, exact, LLVMConstReal(number, past), "")));
    return apart(unit, LLVMBuildNot(b, fits, ""));
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
        return product_differs(unit, value, LLVMGetOperand(call, 1), LLVMGetOperand(call, 2));
    case CHECK_SHIFT:
        return compare(unit, LLVMIntUGE, value, LLVMConstInt(type, LLVMGetIntTypeWidth(type), false));
    case CHECK_DIVIDE:
    case CHECK_DIVIDE_UNSIGNED:
        return divides_badly(unit, value, LLVMGetOperand(call, 1), operation == CHECK_DIVIDE);
    case CHECK_CONVERT:
    case CHECK_CONVERT_UNSIGNED:
        break;
    }
    return converts_badly(unit, value, LLVMTypeOf(LLVMGetOperand(call, 1)), operation == CHECK_CONVERT);
}

/* An operand as the checker gets it: 64 bits, of a float those of a double. */
static LLVMValueRef told(struct unit *unit, LLVMValueRef value) {
    LLVMBuilderRef b = unit->builder;
    if (is_whole(value)) {
        return LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64
                   ? LLVMBuildTrunc(b, value, type_i64(unit), "")
                   : LLVMBuildSExtOrBitCast(b, value, type_i64(unit), "");
    }
    return LLVMBuildBitCast(b, LLVMBuildFPExt(b, value, LLVMDoubleTypeInContext(unit->context), ""),
                            type_i64(unit), "");
}

/* The operands that the sentence about it names. */
static void tell(struct unit *unit, enum check_operation operation, LLVMValueRef call) {
    bool of_result = operation <= CHECK_MULTIPLY, one = LLVMGetNumArgOperands(call) == 1;
    LLVMValueRef first = LLVMGetOperand(call, of_result),
                 second = one ? first : LLVMGetOperand(call, 1 + of_result);
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(second));
    LLVMValueRef arguments[4] = {told(unit, first), told(unit, second),
                                 constant_i32(unit, CHECK_ARITHMETIC(operation, width)),
                                 check_site(unit, call, NULL)};
    check_call(unit, "smelt_check_arithmetic", LLVMVoidTypeInContext(unit->context), arguments, 4, false);
}

static void test(struct unit *unit, enum check_operation operation, LLVMValueRef call) {
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef before = LLVMGetInstructionParent(call), after = flow_split_block(unit, call),
                      wrong = LLVMInsertBasicBlockInContext(unit->context, after, "wrong");
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(before));
    LLVMValueRef condition = is_wrong(unit, operation, call);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(before));
    LLVMPositionBuilderAtEnd(b, before);
    apart(unit, LLVMBuildCondBr(b, condition, wrong, after));
    LLVMPositionBuilderAtEnd(b, wrong);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(call));
    tell(unit, operation, call);
    LLVMBuildBr(b, after);
    LLVMReplaceAllUsesWith(call, LLVMGetOperand(call, 0));
    LLVMInstructionEraseFromParent(call);
}

/* The next mark of a function, from a block on; blocks that tests add lie behind. */
static LLVMValueRef next_mark(LLVMBasicBlockRef from, enum check_operation *operation) {
    for (LLVMBasicBlockRef block = from; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
            if (is_mark(i, operation)) return i;
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
