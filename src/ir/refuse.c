/* What the optimised kernel still has and no engine can run, refused by name with the user's line.
 *
 * Requires: the entry optimised, with lines of the user's. Maintains: the module is only read. */
#include "ir/pass.h"

#include <ctype.h>
#include <llvm-c/DebugInfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Threadgroup variables of the dialect: prelude/smelt_dialect.h. */
#define THREADGROUP_SPACE 3

static const char *file_of(LLVMMetadataRef location) {
    unsigned length;
    LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
    return file ? LLVMDIFileGetFilename(file, &length) : NULL;
}

/* With the place of the user's that the instruction comes from in front. */
static smelt_status fail_at(struct unit *unit, LLVMValueRef instruction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static smelt_status fail_at(struct unit *unit, LLVMValueRef instruction, const char *format, ...) {
    char text[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    LLVMMetadataRef location = LLVMInstructionGetDebugLoc(instruction);
    /* The prelude's places have < > around their names. */
    while (location && (!file_of(location) || strchr(file_of(location), '<')))
        location = LLVMDILocationGetInlinedAt(location);
    if (!location || !file_of(location)) return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "%s", text);
    return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "%s:%u: %s", file_of(location),
                     LLVMDILocationGetLine(location), text);
}

void plain_name(LLVMValueRef value, char name[200]) {
    size_t length;
    const char *symbol = LLVMGetValueName2(value, &length);
    snprintf(name, 200, "%s", symbol);
    if (strncmp(symbol, "_Z", 2) != 0) return;
    /* Of a variable in a function what stands behind the function's own name and arguments. */
    const char *start = symbol + 2;
    for (const char *at = strchr(symbol, 'E'); strstr(symbol, "ZZ") && at; at = strchr(at + 1, 'E'))
        if (isdigit((unsigned char)at[1])) start = at + 1;
    for (const char *at = start; *at;) {
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        char *text;
        unsigned long count = strtoul(at, &text, 10);
        if (!count || count > strlen(text)) break;
        if (strncmp(text, "_GLOBAL__N_", 11) != 0) snprintf(name, 200, "%.*s", (int)count, text);
        at = text + count;
        /* What follows are a function's arguments, or template arguments. */
        if (*at && !isdigit((unsigned char)*at) && *at != 'E') break;
        if (*at == 'E' && !isdigit((unsigned char)at[1])) break;
        if (*at == 'E') at++;
    }
}

/* The variable a pointer leads into, or NULL. */
static LLVMValueRef variable_of(LLVMValueRef pointer) {
    for (int steps = 0; steps < 16; steps++) {
        if (LLVMIsAGlobalVariable(pointer)) return pointer;
        bool derived = LLVMIsAConstantExpr(pointer) || LLVMIsAGetElementPtrInst(pointer) ||
                       LLVMIsAAddrSpaceCastInst(pointer);
        if (!derived) return NULL;
        pointer = LLVMGetOperand(pointer, 0);
    }
    return NULL;
}

static unsigned space_of(LLVMValueRef variable) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(variable));
}

static smelt_status check_written(struct unit *unit, LLVMValueRef instruction) {
    LLVMValueRef pointer = LLVMIsAStoreInst(instruction)           ? LLVMGetOperand(instruction, 1)
                           : LLVMIsAAtomicRMWInst(instruction)     ? LLVMGetOperand(instruction, 0)
                           : LLVMIsAAtomicCmpXchgInst(instruction) ? LLVMGetOperand(instruction, 0)
                           : strncmp(called_name(instruction), "llvm.mem", 8) == 0
                               ? LLVMGetOperand(instruction, 0)
                               : NULL;
    LLVMValueRef variable = pointer ? variable_of(pointer) : NULL;
    char name[200];
    if (!variable || space_of(variable) == THREADGROUP_SPACE) return SMELT_OK;
    plain_name(variable, name);
    return fail_at(unit, instruction,
                   "the kernel writes to '%s', which all threads share: such a variable must be constant",
                   name);
}

static smelt_status check_call(struct unit *unit, LLVMValueRef call) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    const char *name = called_name(call);
    if (LLVMIsAInlineAsm(callee)) return fail_at(unit, call, "inline assembly is not supported");
    if (strncmp(name, "__smelt_unsupported_", 20) == 0) {
        char words[200];
        snprintf(words, sizeof words, "%s", name + 20);
        for (char *c = words; *c; c++)
            if (*c == '_') *c = ' ';
        return fail_at(unit, call, "%s are not supported", words);
    }
    if (strncmp(name + (*name == 1), "air.", 4) == 0)
        return fail_at(unit, call, "'%s', a function below Metal's library, is not supported",
                       name + (*name == 1));
    if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) || strncmp(name, "_Z", 2) != 0)
        return SMELT_OK;
    char word[200];
    plain_name(callee, word);
    return fail_at(unit, call, "function '%s' is called, and is declared but not defined", word);
}

/* Engines replace intrinsics in the entry only. */
static smelt_status check_outside_entry(struct unit *unit, LLVMValueRef function, LLVMValueRef instruction) {
    bool bound = strncmp(called_name(instruction), "__smelt_", 8) == 0;
    for (int i = 0; i < LLVMGetNumOperands(instruction) && !bound; i++) {
        LLVMValueRef variable = variable_of(LLVMGetOperand(instruction, (unsigned)i));
        bound = variable && space_of(variable) == THREADGROUP_SPACE;
    }
    if (!bound) return SMELT_OK;
    char name[200];
    plain_name(function, name);
    return fail_at(
        unit, instruction,
        "function '%s' calls itself or is called through a pointer: it cannot use barriers, simdgroup "
        "functions, positions or threadgroup variables",
        name);
}

static smelt_status check_instruction(struct unit *unit, LLVMValueRef function, LLVMValueRef instruction) {
    if (LLVMIsAAllocaInst(instruction) && !LLVMIsAConstantInt(LLVMGetOperand(instruction, 0)))
        return fail_at(unit, instruction, "an array whose size is not constant is not supported");
    if (LLVMIsACallInst(instruction)) TRY(check_call(unit, instruction));
    TRY(check_written(unit, instruction));
    return function == unit->entry ? SMELT_OK : check_outside_entry(unit, function, instruction);
}

/* What the SIMD engine leaves to the scalar engine. */
static smelt_status check_indirect(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!LLVMIsACallInst(instruction)) continue;
        LLVMValueRef callee = LLVMGetCalledValue(instruction);
        if (LLVMIsAFunction(callee) || LLVMIsAInlineAsm(callee)) continue;
        unit->refused = true;
        return fail_at(unit, instruction, "it calls a function through a pointer");
    }
    return SMELT_OK;
}

smelt_status pass_refuse(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            TRY(check_instruction(unit, f, instruction));
        }
    }
    return unit->engine == ENGINE_SIMD ? check_indirect(unit) : SMELT_OK;
}
