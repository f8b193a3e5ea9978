/* In the plain form, loops are not unrolled because the source asks for it (`#pragma unroll`): the notes on
 * their branches are removed, and LLVM decides by its own limits. On CPUs, the same is done in every form for
 * long loops of the prelude. They process a thread's part of a tile, which is in memory there, so unrolling
 * would only multiply the code by ten.
 *
 * In the best form, loops that initialise the elements of small arrays of objects are unrolled in any case.
 *
 * Requires: the module as clang wrote it. Establishes: unit->unrolls in the best form, whether there are such
 * notes. */
#include "compiler/pass.h"

#include <llvm-c/DebugInfo.h>
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

/* ---- Arrays of objects. */

/* The most elements whose initial values are written one by one: those of 8 x 8 matrices of a simdgroup. */
#define MOST_INITIAL 64

/* The number of the element of an array that the address is; *array: its first element. */
static uint64_t element_number(LLVMValueRef address, LLVMTypeRef type, LLVMValueRef *array) {
    uint64_t number = 0;
    *array = address;
    if (!LLVMIsAGetElementPtrInst(address) || LLVMGetNumOperands(address) != 2 ||
        LLVMGetGEPSourceElementType(address) != type ||
        !is_constant_integer(LLVMGetOperand(address, 1), &number))
        return 0;
    *array = LLVMGetOperand(address, 0);
    return number;
}

/* Whether the block is clang's loop over the elements of an array of objects, of which not too many have to
 * be initialised. In code that is not optimised, no loop of the source is one block. */
static bool initialises_array(LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block), at = LLVMGetFirstInstruction(block), from, to;
    if (!LLVMIsAPHINode(at) || LLVMCountIncoming(at) != 2 || !LLVMIsABranchInst(end) ||
        !LLVMIsConditional(end) || LLVMGetSuccessor(end, 1) != block)
        return false;
    LLVMValueRef done = LLVMGetCondition(end);
    LLVMValueRef next = LLVMIsAICmpInst(done) ? LLVMGetOperand(done, 0) : NULL;
    if (!next || !LLVMIsAGetElementPtrInst(next) || LLVMGetOperand(next, 0) != at) return false;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(next);
    unsigned outside = LLVMGetIncomingBlock(at, 0) == block;
    uint64_t first = element_number(LLVMGetIncomingValue(at, outside), type, &from);
    uint64_t last = element_number(LLVMGetOperand(done, 1), type, &to);
    return from == to && last > first && last - first <= MOST_INITIAL;
}

/* Such a loop is unrolled, whatever LLVM's limit is: an array that it indexes stays in memory. */
static void request_initial_values(struct unit *unit, LLVMValueRef function) {
    static const char word[] = "llvm.loop.unroll.full";
    LLVMContextRef context = unit->context;
    unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
    FOR_EACH_BLOCK(block, function) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        if (!end || !initialises_array(block) || LLVMGetMetadata(end, kind)) continue;
        LLVMMetadataRef text = LLVMMDStringInContext2(context, word, sizeof word - 1);
        LLVMMetadataRef list[2] = {LLVMTemporaryMDNode(context, NULL, 0),
                                   LLVMMDNodeInContext2(context, &text, 1)};
        LLVMMetadataRef node = LLVMMDNodeInContext2(context, list, 2);
        LLVMMetadataReplaceAllUsesWith(list[0], node);
        LLVMSetMetadata(end, kind, LLVMMetadataAsValue(context, node));
    }
}

smelt_status pass_rolled(struct unit *unit) {
    bool best = unit->form == FORM_BEST, cpu = unit->target->calls_runtime;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        if (cpu || !best) forget_requests(unit, f, !best);
    unit->unrolls = best && asks_for_unrolling(unit);
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); best && f; f = LLVMGetNextFunction(f))
        request_initial_values(unit, f);
    return SMELT_OK;
}
