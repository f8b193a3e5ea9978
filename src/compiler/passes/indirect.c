/* Calls through pointers reach only functions of the program: an integer cast to a function pointer must not
 * reach the host's code. A call that matches no function of the program is refused. Before any other, the
 * pointer is compared with the functions that match; if it is none of them, the call goes to an address
 * without code (context.h), which the launch reports.
 *
 * Requires: the optimised module, pass_refuse. Maintains: everything else. */
#include "abi/cpu_context.h"
#include "compiler/pass.h"

#include <llvm-c/DebugInfo.h>

static bool is_indirect(LLVMValueRef instruction) {
    if (!LLVMIsACallInst(instruction)) return false;
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    return !LLVMIsAFunction(callee) && !LLVMIsAInlineAsm(callee);
}

/* Other uses than direct calls, through which its address may get anywhere. */
static bool takes_address(LLVMValueRef user, LLVMValueRef function) {
    if (!LLVMIsACallInst(user) || LLVMGetCalledValue(user) != function) return true;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(user); i++)
        if (LLVMGetOperand(user, i) == function) return true;
    return false;
}

static bool is_target(struct unit *unit, LLVMValueRef function, LLVMTypeRef type) {
    if (function == unit->entry || LLVMIsDeclaration(function) || LLVMGlobalGetValueType(function) != type)
        return false;
    for (LLVMUseRef use = LLVMGetFirstUse(function); use; use = LLVMGetNextUse(use))
        if (takes_address(LLVMGetUser(use), function)) return true;
    return false;
}

/* Whether `callee` is one of the targets; NULL: there are none. */
static LLVMValueRef build_test(struct unit *unit, LLVMValueRef callee, LLVMTypeRef type) {
    LLVMValueRef any = NULL;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (!is_target(unit, f, type)) continue;
        LLVMValueRef same = LLVMBuildICmp(unit->builder, LLVMIntEQ, callee, f, "");
        any = any ? LLVMBuildOr(unit->builder, any, same, "") : same;
    }
    return any;
}

static smelt_status guard_call(struct unit *unit, LLVMValueRef call) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    LLVMPositionBuilderBefore(unit->builder, call);
    LLVMSetCurrentDebugLocation2(unit->builder, LLVMInstructionGetDebugLoc(call));
    LLVMValueRef test = build_test(unit, callee, LLVMGetCalledFunctionType(call));
    if (!test)
        return unit_fail_at(
            unit, call,
            "a call goes through a pointer that matches no function of the program: none of that "
            "type has its address taken"

        );
    if (!unit->target->calls_runtime) return SMELT_OK;
    LLVMValueRef nowhere =
        LLVMConstIntToPtr(LLVMConstInt(type_i64(unit), SMELT_NO_FUNCTION, false), LLVMTypeOf(callee));
    LLVMValueRef target = LLVMBuildSelect(unit->builder, test, callee, nowhere, "");
    LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, target);
    return SMELT_OK;
}

smelt_status pass_indirect(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (is_indirect(instruction)) TRY(guard_call(unit, instruction));
        }
    }
    return SMELT_OK;
}
