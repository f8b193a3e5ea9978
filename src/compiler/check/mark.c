/* Marks of operations that arithmetic.c and not_finite.c test later: calls of functions of which LLVM knows
 * only that they compute. Each stands for its first operand. */
#include "compiler/check/check.h"
#include "compiler/analysis/flow.h"

#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {[CHECK_ADD] = "add",
                                    [CHECK_SUBTRACT] = "subtract",
                                    [CHECK_MULTIPLY] = "multiply",
                                    [CHECK_SHIFT] = "shift",
                                    [CHECK_DIVIDE] = "divide",
                                    [CHECK_DIVIDE_UNSIGNED] = "divide-unsigned",
                                    [CHECK_CONVERT] = "convert",
                                    [CHECK_CONVERT_UNSIGNED] = "convert-unsigned",
                                    [CHECK_ADD_UNSIGNED] = "add-unsigned",
                                    [CHECK_SUBTRACT_UNSIGNED] = "subtract-unsigned",
                                    [CHECK_MULTIPLY_UNSIGNED] = "multiply-unsigned",
                                    [CHECK_FINITE] = "finite"};

LLVMValueRef check_mark(struct unit *unit, enum check_operation operation, LLVMValueRef *operands,
                        unsigned count, const char *detail) {
    char name[400];
    LLVMTypeRef types[CHECK_MARK_OPERANDS];
    int length = snprintf(name, sizeof name, CHECK_MARK "%s", names[operation]);
    for (unsigned i = 0; i < count; i++) {
        types[i] = LLVMTypeOf(operands[i]);
        char *type = LLVMPrintTypeToString(types[i]);
        length += snprintf(name + length, sizeof name - (size_t)length, ".%s", type);
        LLVMDisposeMessage(type);
    }
    if (detail) snprintf(name + length, sizeof name - (size_t)length, ".%s", detail);
    LLVMTypeRef type = LLVMFunctionType(types[0], types, count, false);
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, name);
    if (!function) declare_in_place(unit, function = LLVMAddFunction(unit->module, name, type));
    return LLVMBuildCall2(unit->builder, type, function, operands, count, "");
}

bool check_is_mark(LLVMValueRef call, enum check_operation *operation) {
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

void check_mark_result(struct unit *unit, LLVMValueRef operation, enum check_operation kind,
                       LLVMValueRef *operands, unsigned count, const char *detail) {
    LLVMValueRef all[CHECK_MARK_OPERANDS] = {LLVMGetUndef(LLVMTypeOf(operation))};
    for (unsigned i = 0; i < count; i++) all[i + 1] = operands[i];
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(operation));
    LLVMSetCurrentDebugLocation2(unit->builder, LLVMInstructionGetDebugLoc(operation));
    LLVMValueRef place = check_mark(unit, kind, all, count + 1, detail);
    LLVMReplaceAllUsesWith(operation, place);
    LLVMSetOperand(place, 0, operation);
}

/* ---- Tests in their places. */

LLVMValueRef check_apart(struct unit *unit, LLVMValueRef value) {
    if (LLVMIsAInstruction(value))
        LLVMSetMetadata(value, LLVMGetMDKindIDInContext(unit->context, "nosanitize", 10),
                        LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, NULL, 0)));
    return value;
}

LLVMValueRef check_told(struct unit *unit, LLVMValueRef value) {
    LLVMBuilderRef b = unit->builder;
    if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind) {
        return LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64
                   ? LLVMBuildTrunc(b, value, type_i64(unit), "")
                   : LLVMBuildSExtOrBitCast(b, value, type_i64(unit), "");
    }
    return LLVMBuildBitCast(b, LLVMBuildFPExt(b, value, LLVMDoubleTypeInContext(unit->context), ""),
                            type_i64(unit), "");
}

void check_branch(struct unit *unit, LLVMValueRef before, LLVMValueRef condition) {
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef first = LLVMGetInstructionParent(before), after = flow_split_block(unit, before),
                      wrong = LLVMInsertBasicBlockInContext(unit->context, after, "wrong");
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(first));
    LLVMPositionBuilderAtEnd(b, first);
    check_apart(unit, LLVMBuildCondBr(b, condition, wrong, after));
    LLVMPositionBuilderAtEnd(b, wrong);
    LLVMPositionBuilderBefore(b, LLVMBuildBr(b, after));
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(before));
}
