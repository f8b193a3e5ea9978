/* In the plain form, loops are not unrolled because the source asks for it (`#pragma unroll`): the notes on
 * their branches are removed, and LLVM decides by its own limits. On CPUs, the same is done in every form for
 * long loops of the prelude. They process a thread's part of a tile, which is in memory there, so unrolling
 * would only multiply the code by ten.
 *
 * Requires: the module as clang wrote it. Establishes: unit->unrolls in the best form, whether there are such
 * notes. */
#include "compiler/pass.h"

#include <string.h>

/* Notes on loops are lists, whose first operand is the list itself; a request's first is its name. */
static bool is_request(LLVMValueRef note) {
    LLVMValueRef words[8] = {NULL};
    int count = note && LLVMIsAMDNode(note) ? LLVMGetMDNodeNumOperands(note) : 0;
    if (count < 1 || count > (int)(sizeof words / sizeof *words)) return count > 0;
    LLVMGetMDNodeOperands(note, words);
    unsigned length = 0;
    const char *name = words[0] && LLVMIsAMDString(words[0]) ? LLVMGetMDString(words[0], &length) : "";
    return length > 9 && strncmp(name, "llvm.loop", 9) == 0 && strncmp(name, "llvm.loop.must", 14) != 0;
}

static bool has_requests(LLVMValueRef end, unsigned kind) {
    LLVMValueRef list = end ? LLVMGetMetadata(end, kind) : NULL, notes[16];
    int count = list ? LLVMGetMDNodeNumOperands(list) : 0;
    if (count > (int)(sizeof notes / sizeof *notes)) return true;
    if (count) LLVMGetMDNodeOperands(list, notes);
    for (int n = 1; n < count; n++)
        if (is_request(notes[n])) return true;
    return false;
}

/* Most values of each thread that may be in registers. With AVX-512, 32 of a simdgroup take 64 registers, and
 * there are 32. */
#define MANY_VALUES 32

/* Whether the branch ends a round of a loop of the prelude, `for (int i = 0; i < many; i++)`. */
static bool is_long_in_prelude(LLVMValueRef end) {
    if (!LLVMIsABranchInst(end) || LLVMIsConditional(end) || lines_are_of_user(end)) return false;
    LLVMValueRef head = LLVMGetBasicBlockTerminator(LLVMGetSuccessor(end, 0));
    if (!LLVMIsABranchInst(head) || !LLVMIsConditional(head)) return false;
    LLVMValueRef condition = LLVMGetCondition(head);
    uint64_t bound = 0;
    return LLVMIsAICmpInst(condition) && is_constant_integer(LLVMGetOperand(condition, 1), &bound) &&
           bound > MANY_VALUES;
}

static bool asks_for_unrolling(struct unit *unit) {
    unsigned kind = LLVMGetMDKindIDInContext(unit->context, "llvm.loop", 9);
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        FOR_EACH_BLOCK(block, f)
    if (has_requests(LLVMGetBasicBlockTerminator(block), kind)) return true;
    return false;
}

static void forget_requests(struct unit *unit, LLVMValueRef function, bool all) {
    unsigned kind = LLVMGetMDKindIDInContext(unit->context, "llvm.loop", 9);
    FOR_EACH_BLOCK(block, function) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        if (end && (all || is_long_in_prelude(end))) LLVMSetMetadata(end, kind, NULL);
    }
}

smelt_status pass_rolled(struct unit *unit) {
    bool best = unit->form == FORM_BEST, cpu = unit->target->calls_runtime;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        if (cpu || !best) forget_requests(unit, f, !best);
    unit->unrolls = best && asks_for_unrolling(unit);
    return SMELT_OK;
}
