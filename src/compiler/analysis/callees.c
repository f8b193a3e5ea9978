#include "compiler/analysis/callees.h"

#include <string.h>

#define MOST_DEPTH 64
#define MOST_COUNTED ((uint64_t)1 << 40) /* functions that call each other twice, 40 deep */

static uint64_t sum(uint64_t a, uint64_t b) {
    return a + b < MOST_COUNTED ? a + b : MOST_COUNTED;
}

LLVMValueRef callees_called(LLVMValueRef instruction) {
    LLVMValueRef called = LLVMIsACallInst(instruction) ? LLVMGetCalledValue(instruction) : NULL;
    return called && LLVMIsAFunction(called) && !LLVMIsDeclaration(called) ? called : NULL;
}

struct callee *callees_of(const struct callees *callees, LLVMValueRef function) {
    struct callee *callee = callees->found;
    while (callee && callee->function != function) callee = callee->found_before;
    return callee;
}

/* A variable of the threadgroup, whose address only the entry has, or an expression over one. */
static bool names_threadgroup(LLVMValueRef operand) {
    if (LLVMIsAGlobalVariable(operand))
        return LLVMGetPointerAddressSpace(LLVMTypeOf(operand)) == THREADGROUP_SPACE;
    if (!LLVMIsAConstantExpr(operand)) return false;
    for (int o = 0; o < LLVMGetNumOperands(operand); o++)
        if (names_threadgroup(LLVMGetOperand(operand, (unsigned)o))) return true;
    return false;
}

static bool is_plain(LLVMValueRef i) {
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        if (names_threadgroup(LLVMGetOperand(i, (unsigned)o))) return false;
    if (LLVMIsACallInst(i) && !callees_called(i)) return strncmp(called_name(i), "llvm.", 5) == 0;
    return !LLVMIsAFenceInst(i) && !LLVMIsAAtomicRMWInst(i) && !LLVMIsAAtomicCmpXchgInst(i);
}

static struct callee *measure(struct callees *callees, LLVMValueRef function, int depth);

static void add_instruction(struct callees *callees, struct callee *callee, LLVMValueRef i, int depth) {
    LLVMValueRef called = callees_called(i);
    callee->instructions++;
    callee->plain &= is_plain(i);
    if (!called) return;
    struct callee *inner = depth < MOST_DEPTH ? measure(callees, called, depth + 1) : NULL;
    callee->plain &= inner && inner->plain;
    callee->instructions = sum(callee->instructions, inner ? inner->instructions : 0);
}

/* Functions that call themselves are refused elsewhere: here the second time counts what is known. */
static struct callee *measure(struct callees *callees, LLVMValueRef function, int depth) {
    struct callee *callee = callees_of(callees, function);
    if (callee) return callee;
    callee = arena_alloc(&callees->arena, sizeof *callee);
    if (!callee) return NULL;
    *callee = (struct callee){.function = function, .plain = true, .found_before = callees->found};
    callees->found = callee;
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(i, block) add_instruction(callees, callee, i, depth);
    callee->next = callees->first;
    callees->first = callee;
    return callee;
}

static void count_copies(struct callees *callees) {
    for (struct callee *c = callees->first; c; c = c->next) {
        FOR_EACH_BLOCK(block, c->function)
        FOR_EACH_INSTRUCTION(i, block) {
            LLVMValueRef called = callees_called(i);
            struct callee *inner = called ? callees_of(callees, called) : NULL;
            if (inner) inner->copies = sum(inner->copies, c->copies);
        }
    }
}

smelt_status callees_find(struct unit *unit, struct callees *callees) {
    struct callee *entry = measure(callees, unit->entry, 0);
    if (!entry) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory to measure functions");
    entry->copies = 1;
    count_copies(callees);
    return SMELT_OK;
}

void callees_keep(struct unit *unit, LLVMValueRef function) {
    LLVMAttributeIndex index = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMRemoveEnumAttributeAtIndex(function, index, LLVMGetEnumAttributeKindForName("alwaysinline", 12));
    unsigned noinline = LLVMGetEnumAttributeKindForName("noinline", 8);
    LLVMAddAttributeAtIndex(function, index, LLVMCreateEnumAttribute(unit->context, noinline, 0));
}
