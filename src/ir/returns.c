/* A `return` in a function that the kernel calls ends the thread where no barrier can follow: kernels are
 * often a few lines around such a function. The rewriter marks the returns of functions without a value by
 * __smelt_function_return; here each mark becomes __smelt_thread_return, or nothing.
 *
 * Requires: functions inlined, so that marks stand in the entry; function constants folded. Establishes: no
 * marks. */
#include "ir/pass.h"

#include <string.h>

#define MARK "__smelt_function_return"
#define THREAD_RETURN "__smelt_thread_return"

static bool calls(LLVMValueRef instruction, const char *name) {
    return strcmp(called_name(instruction), name) == 0;
}

/* A call of a function that was not inlined may come to a barrier as well. */
static bool may_meet_barrier(LLVMValueRef instruction) {
    if (!LLVMIsACallInst(instruction)) return false;
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    return calls(instruction, "__smelt_threadgroup_barrier") || !LLVMIsAFunction(callee) ||
           !LLVMIsDeclaration(callee);
}

static bool block_meets_barrier(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        if (may_meet_barrier(i)) return true;
    }
    return false;
}

/* More blocks than lie between a return and the end of any kernel. */
#define MOST_BLOCKS 256

static bool barrier_behind(LLVMValueRef mark) {
    LLVMBasicBlockRef reached[MOST_BLOCKS];
    int count = 1;
    for (LLVMValueRef i = LLVMGetNextInstruction(mark); i; i = LLVMGetNextInstruction(i))
        if (may_meet_barrier(i)) return true;
    reached[0] = LLVMGetInstructionParent(mark);
    for (int next = 0; next < count; next++) {
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(reached[next]);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
            LLVMBasicBlockRef successor = LLVMGetSuccessor(terminator, s);
            bool known = false;
            for (int k = 0; k < count && !known; k++) known = reached[k] == successor;
            if (known && successor != reached[0]) continue;
            if (count == MOST_BLOCKS || block_meets_barrier(successor)) return true;
            if (!known) reached[count++] = successor;
        }
    }
    return false;
}

smelt_status pass_returns(struct unit *unit) {
    LLVMValueRef mark = LLVMGetNamedFunction(unit->module, MARK);
    LLVMValueRef end = LLVMGetNamedFunction(unit->module, THREAD_RETURN);
    if (!mark) return SMELT_OK;
    for (LLVMUseRef use = LLVMGetFirstUse(mark), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef call = LLVMGetUser(use);
        LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call));
        if (function != unit->entry || barrier_behind(call)) LLVMInstructionEraseFromParent(call);
    }
    if (end)
        LLVMReplaceAllUsesWith(mark, end);
    else
        LLVMSetValueName2(mark, THREAD_RETURN, strlen(THREAD_RETURN));
    return SMELT_OK;
}
