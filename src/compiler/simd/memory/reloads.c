/* Loads of what the thread has loaded already. LLVM does not know that buffers do not overlap: after a store
 * to one, it loads elements of the others again. In launches in which no buffer that is written overlaps
 * another, they are the same. Without the copies, a thread's loads of neighbouring elements are one access
 * (neighbours.c), and factors stay in registers.
 *
 * Within a block, a load takes the value of an earlier one of the same type from the same address if nothing
 * in between may have written there.
 *
 * Requires: optimised code of one thread, before its accesses are tested. Maintains: what it does. */
#include "compiler/analysis/base.h"
#include "compiler/pass.h"

#include <string.h>

/* Accesses of a block that are remembered. */
#define MOST_ACCESSES 128

struct known {
    struct unit *unit;
    LLVMValueRef accesses[MOST_ACCESSES]; /* loads and stores, in their order; the oldest are forgotten */
    int count;
};

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

static bool is_plain(LLVMValueRef access) {
    return !LLVMGetVolatile(access) && LLVMGetOrdering(access) == LLVMAtomicOrderingNotAtomic;
}

static bool is_threadgroup(LLVMValueRef access) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address_of(access))) == THREADGROUP_SPACE;
}

/* Whether the store may write what the load reads. */
static bool may_write(struct known *k, LLVMValueRef store, LLVMValueRef load) {
    if (is_threadgroup(store) != is_threadgroup(load)) return false;
    struct base to = base_of(k->unit, address_of(store)), from = base_of(k->unit, address_of(load));
    if (to.kind == BASE_PRIVATE && from.kind == BASE_BUFFER) return false;
    return !base_are_distinct(k->unit, &to, &from);
}

static bool is_same(LLVMValueRef a, LLVMValueRef b) {
    return LLVMIsALoadInst(a) && address_of(a) == address_of(b) && LLVMTypeOf(a) == LLVMTypeOf(b);
}

/* The earlier load whose value this one has, too; or NULL. */
static LLVMValueRef find(struct known *k, LLVMValueRef load) {
    int same = k->count - 1;
    while (same >= 0 && !is_same(k->accesses[same], load)) same--;
    for (int n = k->count - 1; n > same && same >= 0; n--)
        if (LLVMIsAStoreInst(k->accesses[n]) && may_write(k, k->accesses[n], load)) return NULL;
    return same < 0 ? NULL : k->accesses[same];
}

static void add(struct known *k, LLVMValueRef access) {
    if (k->count == MOST_ACCESSES) {
        k->count /= 2;
        memmove(k->accesses, k->accesses + k->count, (size_t)k->count * sizeof(LLVMValueRef));
    }
    k->accesses[k->count++] = access;
}

/* Whether the instruction, other than a plain access, leaves memory as it is. */
static bool is_harmless(LLVMValueRef i) {
    if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i)) return false;
    if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i)) return false;
    if (!LLVMIsACallInst(i)) return true;
    if (intrinsic_called(i)) return intrinsic_traits(intrinsic_of(i))->purity != ORDERED;
    const char *name = called_name(i);
    return strncmp(name, "llvm.", 5) == 0 && strncmp(name, "llvm.mem", 8) != 0 &&
           strncmp(name, "llvm.masked", 11) != 0;
}

static void visit(struct known *k, LLVMValueRef i) {
    bool load = LLVMIsALoadInst(i) != NULL, access = load || LLVMIsAStoreInst(i);
    if (!access || !is_plain(i)) {
        if (!is_harmless(i)) k->count = 0;
        return;
    }
    LLVMValueRef before = load ? find(k, i) : NULL;
    if (!before) {
        add(k, i);
        return;
    }
    LLVMReplaceAllUsesWith(i, before);
    LLVMInstructionEraseFromParent(i);
}

smelt_status pass_simd_reloads(struct unit *unit) {
    if (!unit->request->shape.distinct) return SMELT_OK;
    struct known known = {.unit = unit};
    FOR_EACH_BLOCK(block, unit->entry) {
        known.count = 0;
        FOR_EACH_INSTRUCTION(i, block) visit(&known, i);
    }
    return SMELT_OK;
}
