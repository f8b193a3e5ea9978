/* Gives intrinsics their attributes, makes every function except the entry internal, outside of any comdat
 * and always inlined, and makes the initial contents of threadgroup variables undefined.
 *
 * Requires: the module as clang wrote it. Establishes: after always-inline, only intrinsics and library
 * functions are called. */
#include "compiler/pass.h"

#include <llvm-c/Comdat.h>
#include <stdio.h>
#include <string.h>

static LLVMAttributeRef enum_attribute(struct unit *unit, const char *name, uint64_t value) {
    return LLVMCreateEnumAttribute(unit->context, LLVMGetEnumAttributeKindForName(name, strlen(name)), value);
}

static void add(struct unit *unit, LLVMValueRef function, const char *name) {
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            enum_attribute(unit, name, 0));
}

static void drop(LLVMValueRef function, const char *name) {
    LLVMRemoveEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                   LLVMGetEnumAttributeKindForName(name, strlen(name)));
}

/* LLVM's encoding of the memory attribute: two bits (read 1, write 2) per location: arguments, inaccessible,
 * other. */
#define MEMORY_INACCESSIBLE (3u << 2)

static bool is_pure(LLVMValueRef function) {
    unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
    LLVMAttributeRef memory =
        LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
    return memory && LLVMGetEnumAttributeValue(memory) == 0;
}

static void declare_intrinsic(struct unit *unit, LLVMValueRef function, enum intrinsic intrinsic) {
    const struct intrinsic_traits *traits = intrinsic_traits(intrinsic);
    add(unit, function, "nounwind");
    if (is_pure(function)) {
        drop(function, "convergent");
        add(unit, function, "willreturn");
        add(unit, function, "speculatable");
        /* Engines need their arguments to be constants: two calls after a branch must not be merged into one
         * with a selected argument. */
        add(unit, function, "nomerge");
    } else if (traits->purity != ORDERED) {
        LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                enum_attribute(unit, "memory", MEMORY_INACCESSIBLE));
        if (traits->kind == OF_SIMDGROUP || traits->kind == OF_GPU) add(unit, function, "willreturn");
    }
}

void declare_convergent(struct unit *unit, LLVMValueRef function) {
    static const char *const attributes[] = {"nounwind", "willreturn", "convergent", "nomerge"};
    for (int i = 0; i < 4; i++) add(unit, function, attributes[i]);
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            enum_attribute(unit, "memory", MEMORY_INACCESSIBLE));
}

void declare_pure(struct unit *unit, LLVMValueRef function) {
    static const char *const attributes[] = {"nounwind", "willreturn", "speculatable", "memory"};
    for (int i = 0; i < 4; i++) add(unit, function, attributes[i]);
}

void declare_in_place(struct unit *unit, LLVMValueRef function) {
    static const char *const attributes[] = {"nounwind", "willreturn", "memory"};
    for (int i = 0; i < 3; i++) add(unit, function, attributes[i]);
}

void declare_apart(struct unit *unit, LLVMValueRef function) {
    static const char *const attributes[] = {"nounwind", "willreturn", "nomerge"};
    for (int i = 0; i < 3; i++) add(unit, function, attributes[i]);
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            enum_attribute(unit, "memory", MEMORY_INACCESSIBLE));
}

/* A function that a kernel declares as __asm("air.…") is one of prelude/smelt_air.h, if that has it. */
static void replace_air_function(struct unit *unit, LLVMValueRef declaration) {
    size_t length;
    const char *name = LLVMGetValueName2(declaration, &length);
    char own[128];
    name += *name == 1;
    if (strncmp(name, "air.", 4) != 0) return;
    snprintf(own, sizeof own, INTRINSIC_PREFIX "%s", name);
    for (char *c = own; *c; c++)
        if (*c == '.') *c = '_';
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, own);
    if (function && !LLVMIsDeclaration(function)) LLVMReplaceAllUsesWith(declaration, function);
}

static void clean_calls(LLVMValueRef function) {
    unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!LLVMIsACallInst(instruction)) continue;
        LLVMValueRef callee = LLVMGetCalledValue(instruction);
        if (LLVMIsAFunction(callee) && is_pure(callee))
            LLVMRemoveCallSiteEnumAttribute(instruction, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                            convergent);
    }
}

/* The address space of threadgroup variables: prelude/smelt_dialect.h. */
/* They contain 0xff at the start of a group, not the zeros of clang's initialiser, which must have no effect.
 * On GPUs the contents are undefined. */
static void forget_initial_zeros(struct unit *unit) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) != THREADGROUP_SPACE || LLVMIsDeclaration(g)) continue;
        LLVMSetComdat(g, NULL);
        LLVMSetLinkage(g, LLVMLinkOnceAnyLinkage);
    }
}

smelt_status pass_declare(struct unit *unit) {
    if (unit->target->fills_memory) forget_initial_zeros(unit);
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        enum intrinsic intrinsic = intrinsic_of_function(f);
        if (LLVMIsDeclaration(f)) {
            if (intrinsic != INTRINSIC_NONE) declare_intrinsic(unit, f, intrinsic);
            replace_air_function(unit, f);
            continue;
        }
        if (f != unit->entry) {
            drop(f, "noinline");
            drop(f, "optnone");
            add(unit, f, "alwaysinline");
            LLVMSetLinkage(f, LLVMInternalLinkage);
            /* always-inline removes functions of a comdat only when it ends. Until then it would inline into
             * functions that nothing calls any more: for each function of a chain of calls, the rest of the
             * chain. */
            LLVMSetComdat(f, NULL);
        }
    }
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) clean_calls(f);
    return SMELT_OK;
}
