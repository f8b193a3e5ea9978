/* Kernels that would become too large by inlining, such as thousands of calls of precise functions. The SIMD
 * engine needs everything inlined and refuses them. In scalar code, functions without intrinsics and
 * threadgroup variables stay functions; all others are inlined as always.
 *
 * Requires: declare.c. Maintains: what the code does. */
#include "base/arena.h"
#include "compiler/budget.h"

#include <string.h>

#define MOST_DEPTH 64
#define FEW_INSTRUCTIONS 24 /* smaller functions cost less than their calls */

static bool is_called(LLVMValueRef instruction, LLVMValueRef *callee) {
    if (!LLVMIsACallInst(instruction)) return false;
    *callee = LLVMGetCalledValue(instruction);
    return LLVMIsAFunction(*callee) != NULL;
}

struct sized {
    LLVMValueRef function;
    uint64_t instructions; /* with those of the functions it calls */
    bool stays;            /* it uses no intrinsics and no threadgroup variables, which only the entry has */
    struct sized *next;
};

struct sizes {
    struct arena arena;
    struct sized *first;
};

static struct sized *size_of(struct sizes *sizes, LLVMValueRef function, int depth);

#define THREADGROUP_SPACE 3

/* A variable of the threadgroup, whose address only the entry has, or an expression over one. */
static bool names_threadgroup(LLVMValueRef operand) {
    if (LLVMIsAGlobalVariable(operand))
        return LLVMGetPointerAddressSpace(LLVMTypeOf(operand)) == THREADGROUP_SPACE;
    if (!LLVMIsAConstantExpr(operand)) return false;
    for (int o = 0; o < LLVMGetNumOperands(operand); o++)
        if (names_threadgroup(LLVMGetOperand(operand, (unsigned)o))) return true;
    return false;
}

static bool may_stay(LLVMValueRef i) {
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        if (names_threadgroup(LLVMGetOperand(i, (unsigned)o))) return false;
    return !LLVMIsAFenceInst(i) && !LLVMIsAAtomicRMWInst(i) && !LLVMIsAAtomicCmpXchgInst(i);
}

static void add_instruction(struct sizes *sizes, struct sized *sized, LLVMValueRef i, int depth) {
    LLVMValueRef callee = NULL;
    sized->instructions++;
    if (!is_called(i, &callee)) {
        sized->stays &= may_stay(i) && !LLVMIsACallInst(i);
    } else if (LLVMIsDeclaration(callee)) {
        sized->stays &= strncmp(called_name(i), "llvm.", 5) == 0;
    } else {
        struct sized *inner = depth < MOST_DEPTH ? size_of(sizes, callee, depth + 1) : NULL;
        sized->stays &= inner && inner->stays;
        sized->instructions += inner ? inner->instructions : 0;
    }
}

static struct sized *size_of(struct sizes *sizes, LLVMValueRef function, int depth) {
    for (struct sized *s = sizes->first; s; s = s->next)
        if (s->function == function) return s;
    struct sized *sized = arena_alloc(&sizes->arena, sizeof *sized);
    if (!sized) return NULL;
    *sized = (struct sized){function, 0, true, sizes->first};
    sizes->first = sized;
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(i, block) add_instruction(sizes, sized, i, depth);
    return sized;
}

static void keep_as_function(struct unit *unit, LLVMValueRef function) {
    LLVMAttributeIndex index = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMRemoveEnumAttributeAtIndex(function, index, LLVMGetEnumAttributeKindForName("alwaysinline", 12));
    unsigned noinline = LLVMGetEnumAttributeKindForName("noinline", 8);
    LLVMAddAttributeAtIndex(function, index, LLVMCreateEnumAttribute(unit->context, noinline, 0));
}

static smelt_status outline(struct unit *unit, struct sizes *sizes) {
    struct sized *entry = size_of(sizes, unit->entry, 0);
    if (!entry) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory to measure functions");
    smelt_status status = budget_check(unit, BUDGET_INLINED, entry->instructions);
    if (status == SMELT_OK || unit->target->may_refuse) return status;
    unit->smaller = unit->refused = false;
    for (struct sized *s = sizes->first; s; s = s->next)
        if (s->stays && s->function != unit->entry && s->instructions > FEW_INSTRUCTIONS)
            keep_as_function(unit, s->function);
    return SMELT_OK;
}

smelt_status pass_outlined(struct unit *unit) {
    if (!unit->target->calls_runtime) return SMELT_OK;
    struct sizes sizes = {0};
    smelt_status status = outline(unit, &sizes);
    arena_free(&sizes.arena);
    return status;
}
