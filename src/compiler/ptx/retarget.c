/* The module becomes an NVPTX module.
 *
 * clang compiled it for x86-64 with SYCL's address spaces, which both back ends must read: device memory 5,
 * constant memory 6 or 1 and 2, threadgroup memory 3. LLVM's types cannot be changed in place, so the module
 * is printed, the numbers in its text are replaced, and it is parsed again. */
#include "compiler/ptx/ptx.h"

#include <llvm-c/Comdat.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIPLE "nvptx64-nvidia-cuda"
/* Addresses in threadgroup memory have 32 bits, and so has their arithmetic (-nvptx-short-ptr). */
#define LAYOUT "e-p3:32:32-p4:32:32-p5:32:32-" COMMON_LAYOUT
/* While numbers of address spaces are clang's (5 is device memory), and pointers in structures have the eight
 * bytes that clang gave them. */
#define EARLY_LAYOUT "e-" COMMON_LAYOUT
#define COMMON_LAYOUT "i64:64-i128:128-v16:16-v32:32-n16:32:64"

static void clean_attributes(LLVMValueRef function) {
    static const char *const kinds[] = {"target-cpu", "tune-cpu", "target-features", "min-legal-vector-width",
                                        "no-trapping-math", "stack-protector-buffer-size", "frame-pointer",
                                        "sycl-module-id",
                                        /* Contraction is fixed in the code; the rest is on instructions. */
                                        "unsafe-fp-math", "no-infs-fp-math", "no-nans-fp-math",
                                        "approx-func-fp-math", "no-signed-zeros-fp-math"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        LLVMRemoveStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kinds[i],
                                         (unsigned)strlen(kinds[i]));
}

/* Neighbouring stores are not merged into a fill, which would not tell the elements' alignment. */
static void keep_stores(struct unit *unit, LLVMValueRef function) {
    static const char kind[] = "no-builtin-memset";
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(unit->context, kind, sizeof kind - 1, "", 0));
}

static void clean_function(LLVMValueRef function, bool entry) {
    LLVMSetComdat(function, NULL);
    if (!entry && !LLVMIsDeclaration(function)) LLVMSetLinkage(function, LLVMInternalLinkage);
}

/* Lists of globals that a linker must keep: only the entry uses a kernel's globals. */
static void forget_used(struct unit *unit) {
    static const char *const lists[] = {"llvm.used", "llvm.compiler.used"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        LLVMValueRef list = LLVMGetNamedGlobal(unit->module, lists[i]);
        if (list) LLVMDeleteGlobal(list);
    }
}

static void clean(struct unit *unit) {
    LLVMStripModuleDebugInfo(unit->module);
    forget_used(unit);
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        clean_function(f, f == unit->entry);
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        LLVMSetComdat(g, NULL);
        if (!LLVMIsDeclaration(g)) LLVMSetLinkage(g, LLVMInternalLinkage);
    }
    LLVMSetDataLayout(unit->module, LAYOUT);
}

smelt_status pass_ptx_target(struct unit *unit) {
    LLVMSetTarget(unit->module, TRIPLE);
    LLVMSetDataLayout(unit->module, EARLY_LAYOUT);
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        clean_attributes(f);
        if (!LLVMIsDeclaration(f)) keep_stores(unit, f);
    }
    return SMELT_OK;
}

/* ---- Addresses in threadgroup memory that are stored in memory occupy eight bytes there, as the code so far
 * assumes. */

static bool is_threadgroup_pointer(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) == LLVMPointerTypeKind && LLVMGetPointerAddressSpace(type) == PTX_SHARED;
}

static void widen_load(struct unit *unit, LLVMValueRef load) {
    LLVMTypeRef type = LLVMTypeOf(load);
    LLVMPositionBuilderBefore(unit->builder, load);
    LLVMValueRef word = LLVMBuildLoad2(unit->builder, type_i64(unit), LLVMGetOperand(load, 0), "");
    LLVMSetAlignment(word, LLVMGetAlignment(load));
    LLVMReplaceAllUsesWith(load, LLVMBuildIntToPtr(unit->builder, word, type, ""));
    LLVMInstructionEraseFromParent(load);
}

static void widen_store(struct unit *unit, LLVMValueRef store) {
    LLVMPositionBuilderBefore(unit->builder, store);
    LLVMValueRef word = LLVMBuildPtrToInt(unit->builder, LLVMGetOperand(store, 0), type_i64(unit), "");
    LLVMSetOperand(store, 0, word);
}

static void widen_pointers(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        FOR_EACH_BLOCK(block, f)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (LLVMIsALoadInst(instruction) && is_threadgroup_pointer(LLVMTypeOf(instruction)))
            widen_load(unit, instruction);
        else if (LLVMIsAStoreInst(instruction) &&
                 is_threadgroup_pointer(LLVMTypeOf(LLVMGetOperand(instruction, 0))))
            widen_store(unit, instruction);
    }
}

/* ---- The text. */

/* The next occurrence of `word` outside quotes. */
static char *find_word(char *text, const char *word) {
    bool quoted = false;
    for (char *c = text; *c; c++) {
        if (*c == '"') quoted = !quoted; /* quotes in a string are written as \22 */
        if (!quoted && *c == *word && strncmp(c, word, strlen(word)) == 0) return c;
    }
    return NULL;
}

/* Replaces numbers of address spaces in place: they have one digit each. */
static void replace_spaces(char *text) {
    static const char word[] = "addrspace(";
    while ((text = find_word(text, word))) {
        text += sizeof word - 1;
        if (text[1] == ')' && strchr("2456", *text)) *text = '0' + PTX_GLOBAL;
    }
}

/* A cast that now leads from a space to itself becomes a bitcast. */
static void replace_casts(char *text) {
    static const char word[] = "addrspacecast ", global[] = "ptr addrspace(1)", plain[] = "bitcast       ";
    while ((text = find_word(text, word))) {
        char *type = text + sizeof word - 1;
        bool constant = *type == '(';
        int depth = 0;
        char *to = type += constant;
        bool from_global = strncmp(type, global, sizeof global - 1) == 0;
        while (*to && *to != '\n' && (depth || strncmp(to, " to ", 4) != 0)) {
            depth += (*to == '(') - (*to == ')');
            to++;
        }
        if (from_global && strncmp(to, " to ", 4) == 0 && strncmp(to + 4, global, sizeof global - 1) == 0)
            memcpy(text, plain, sizeof plain - 1);
        text = type;
    }
}

/* Members of structs and elements of arrays that are addresses in threadgroup memory become words, in place.
 */
static void replace_members(char *text) {
    static const char word[] = "ptr addrspace(3)", wide[] = "i64             ", type[] = " = type ";
    for (char *at = text; (at = find_word(at, word)); at += sizeof word - 1) {
        char *line = at;
        while (line > text && line[-1] != '\n') line--;
        const char *definition = *line == '%' ? strstr(line, type) : NULL;
        bool member = definition && definition < at;
        bool element = at - text >= 3 && strncmp(at - 3, " x ", 3) == 0;
        if (member || element) memcpy(at, wide, sizeof wide - 1);
    }
}

static smelt_status read_again(struct unit *unit, const char *text) {
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "kernel");
    char *message = NULL;
    LLVMModuleRef module = NULL;
    LLVMContextSetDiscardValueNames(unit->context, false); /* it refuses to read text otherwise */
    if (LLVMParseIRInContext(unit->context, buffer, &module, &message)) {
        smelt_status status = unit_fail(unit, SMELT_ERROR_INTERNAL, "the retargeted module: %s", message);
        LLVMDisposeMessage(message);
        return status;
    }
    LLVMDisposeModule(unit->module);
    unit->module = module;
    unit->layout = LLVMGetModuleDataLayout(module);
    unit->entry = LLVMGetNamedFunction(module, ENTRY_NAME);
    return SMELT_OK;
}

smelt_status pass_ptx_retarget(struct unit *unit) {
    clean(unit);
    widen_pointers(unit);
    char *text = LLVMPrintModuleToString(unit->module);
    replace_members(text);
    replace_spaces(text);
    replace_casts(text);
    smelt_status status = read_again(unit, text);
    LLVMDisposeMessage(text);
    return status;
}
