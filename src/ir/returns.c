/* A `return` in a function that the kernel calls ends the thread where nothing but the kernel's end follows:
 * kernels are often a few lines around such a function. The rewriter marks the returns of functions without a
 * value by __smelt_function_return; here each mark becomes __smelt_thread_return, or nothing.
 *
 * Where the kernel goes on, even without a barrier, a thread that missed one stays an error: what it then
 * does would stand in no order with the others.
 *
 * Requires: functions inlined, so that marks stand in the entry; function constants folded. Establishes: no
 * marks. */
#include "ir/pass.h"

#include <string.h>

#define MARK "__smelt_function_return"
#define THREAD_RETURN "__smelt_thread_return"

/* What a thread that has ended could not do any more. */
static bool has_effect(LLVMValueRef i) {
    static const char *const harmless[] = {"llvm.dbg.", "llvm.lifetime.", "llvm.assume", MARK, THREAD_RETURN};
    if (LLVMIsAStoreInst(i) || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i))
        return true;
    if (!LLVMIsACallInst(i)) return false;
    const char *name = called_name(i);
    for (size_t n = 0; n < sizeof harmless / sizeof *harmless; n++)
        if (strncmp(name, harmless[n], strlen(harmless[n])) == 0) return false;
    return true;
}

bool block_has_effect(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        if (has_effect(i)) return true;
    }
    return false;
}

/* More blocks than lie between a return and the end of any kernel. */
#define MOST_BLOCKS 256

static bool effect_behind(LLVMValueRef mark) {
    LLVMBasicBlockRef reached[MOST_BLOCKS];
    int count = 1;
    for (LLVMValueRef i = LLVMGetNextInstruction(mark); i; i = LLVMGetNextInstruction(i))
        if (has_effect(i)) return true;
    reached[0] = LLVMGetInstructionParent(mark);
    for (int next = 0; next < count; next++) {
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(reached[next]);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
            LLVMBasicBlockRef successor = LLVMGetSuccessor(terminator, s);
            bool known = false;
            for (int k = 0; k < count && !known; k++) known = reached[k] == successor;
            if (known && successor != reached[0]) continue;
            if (count == MOST_BLOCKS || block_has_effect(successor)) return true;
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
        if (function != unit->entry || effect_behind(call)) LLVMInstructionEraseFromParent(call);
    }
    if (end)
        LLVMReplaceAllUsesWith(mark, end);
    else
        LLVMSetValueName2(mark, THREAD_RETURN, strlen(THREAD_RETURN));
    return SMELT_OK;
}
