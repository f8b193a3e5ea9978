/* Replaces pointer variables that are written once, such as `this` and reference parameters of inlined
 * functions, by the pointer that is written. Otherwise any code might access the variable that it points to,
 * and the checker would be asked about each access.
 *
 * The store dominates every load, so that no load finds an undefined pointer. */
#include "compiler/check/check.h"
#include "compiler/flow.h"

#include <string.h>

bool check_is_lifetime(LLVMValueRef call) {
    return strncmp(called_name(call), "llvm.lifetime.", 14) == 0;
}

static bool is_before(LLVMValueRef first, LLVMValueRef second) {
    for (LLVMValueRef i = first; i; i = LLVMGetNextInstruction(i))
        if (i == second) return true;
    return false;
}

static bool dominates(const struct flow *flow, LLVMValueRef above, LLVMValueRef below) {
    LLVMBasicBlockRef from = LLVMGetInstructionParent(above), to = LLVMGetInstructionParent(below);
    if (from == to) return is_before(above, below);
    int a = flow_index(flow, from), b = flow_index(flow, to);
    return a >= 0 && b >= 0 && flow_dominates(flow, a, b);
}

/* The only store to the variable; NULL if there are others, or uses that are neither loads nor marks of its
 * life. */
static LLVMValueRef only_store(LLVMValueRef variable) {
    LLVMValueRef store = NULL;
    LLVMTypeRef type = LLVMGetAllocatedType(variable);
    for (LLVMUseRef use = LLVMGetFirstUse(variable); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (check_is_lifetime(user)) continue;
        if (LLVMIsALoadInst(user) && LLVMTypeOf(user) == type && !LLVMGetVolatile(user)) continue;
        bool stores = LLVMIsAStoreInst(user) && LLVMGetOperand(user, 1) == variable &&
                      LLVMTypeOf(LLVMGetOperand(user, 0)) == type && !LLVMGetVolatile(user);
        if (!stores || store) return NULL;
        store = user;
    }
    return store;
}

static void forward(const struct flow *flow, LLVMValueRef variable) {
    LLVMValueRef store = only_store(variable);
    if (!store) return;
    for (LLVMUseRef use = LLVMGetFirstUse(variable); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsALoadInst(user) && !dominates(flow, store, user)) return;
    }
    LLVMValueRef pointer = LLVMGetOperand(store, 0);
    for (LLVMUseRef use = LLVMGetFirstUse(variable), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsALoadInst(user)) LLVMReplaceAllUsesWith(user, pointer);
        LLVMInstructionEraseFromParent(user);
    }
    LLVMInstructionEraseFromParent(variable);
}

static bool holds_function(LLVMValueRef variable) {
    LLVMValueRef store = only_store(variable);
    return store && LLVMIsAFunction(LLVMGetOperand(store, 0));
}

static smelt_status forward_all(struct unit *unit, LLVMValueRef function, bool of_functions) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, function, &arena, &flow);
    for (LLVMValueRef i = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)), next;
         status == SMELT_OK && i; i = next) {
        /* The next variable, which stays: other instructions may be erased with this one. */
        next = LLVMGetNextInstruction(i);
        while (next && !LLVMIsAAllocaInst(next)) next = LLVMGetNextInstruction(next);
        if (LLVMIsAAllocaInst(i) && LLVMGetTypeKind(LLVMGetAllocatedType(i)) == LLVMPointerTypeKind &&
            (!of_functions || holds_function(i)))
            forward(&flow, i);
    }
    arena_free(&arena);
    return status;
}

smelt_status check_forward_pointers(struct unit *unit, LLVMValueRef function) {
    return forward_all(unit, function, false);
}

smelt_status pass_check_functions(struct unit *unit) {
    smelt_status status = SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && status == SMELT_OK;
         f = LLVMGetNextFunction(f))
        if (LLVMCountBasicBlocks(f)) status = forward_all(unit, f, true);
    return status;
}
