/* The helpers of pass.h: failures, types and constants, intrinsics, LLVM's own passes by name. */
#include "compiler/pass.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

smelt_status unit_fail(struct unit *unit, smelt_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(unit->result->message, sizeof unit->result->message, format, arguments);
    va_end(arguments);
    return status;
}

const char *called_name(LLVMValueRef instruction) {
    if (!LLVMIsACallInst(instruction)) return "";
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    if (!LLVMIsAFunction(callee)) return "";
    size_t length;
    return LLVMGetValueName2(callee, &length);
}

bool is_constant_integer(LLVMValueRef value, uint64_t *out) {
    if (!LLVMIsAConstantInt(value)) return false;
    *out = LLVMConstIntGetZExtValue(value);
    return true;
}

LLVMValueRef phi_incoming(LLVMValueRef phi, LLVMBasicBlockRef from) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingBlock(phi, i) == from) return LLVMGetIncomingValue(phi, i);
    return NULL;
}

LLVMTypeRef type_i32(struct unit *unit) {
    return LLVMInt32TypeInContext(unit->context);
}
LLVMTypeRef type_i64(struct unit *unit) {
    return LLVMInt64TypeInContext(unit->context);
}
LLVMTypeRef type_pointer(struct unit *unit) {
    return LLVMPointerTypeInContext(unit->context, 0);
}
LLVMValueRef constant_i32(struct unit *unit, uint32_t value) {
    return LLVMConstInt(type_i32(unit), value, false);
}

LLVMValueRef constant_in_memory(struct unit *unit, LLVMValueRef value) {
    LLVMValueRef global = LLVMAddGlobal(unit->module, LLVMTypeOf(value), "");
    LLVMSetInitializer(global, value);
    LLVMSetGlobalConstant(global, true);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
    return global;
}

LLVMValueRef constant_text(struct unit *unit, const char *text, size_t length) {
    return constant_in_memory(unit, LLVMConstStringInContext2(unit->context, text, length, false));
}

void build_kept(LLVMBuilderRef builder, LLVMValueRef instruction) {
    LLVMSetCurrentDebugLocation2(builder, NULL);
    LLVMInsertIntoBuilder(builder, instruction);
}

LLVMValueRef build_intrinsic(struct unit *unit, const char *name, LLVMTypeRef type, LLVMValueRef *arguments,
                             unsigned count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(unit->module, id, &type, 1);
    return LLVMBuildCall2(unit->builder, LLVMGlobalGetValueType(function), function, arguments, count, "");
}

LLVMValueRef build_function(struct unit *unit, const char *name, LLVMValueRef *arguments, unsigned count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(unit->module, id, NULL, 0);
    return LLVMBuildCall2(unit->builder, LLVMGlobalGetValueType(function), function, arguments, count, "");
}

LLVMValueRef build_assembly(struct unit *unit, const char *text, const char *constraints, LLVMTypeRef result,
                            LLVMValueRef *arguments, unsigned count, bool effects) {
    LLVMTypeRef types[ASSEMBLY_MAX_OPERANDS];
    for (unsigned i = 0; i < count; i++) types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef type =
        LLVMFunctionType(result ? result : LLVMVoidTypeInContext(unit->context), types, count, false);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), effects,
                                         false, LLVMInlineAsmDialectATT, false);
    LLVMValueRef call = LLVMBuildCall2(unit->builder, type, code, arguments, count, "");
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(unit->context, nounwind, 0));
    return call;
}

smelt_status unit_keep_code(struct unit *unit, const char *code, size_t size) {
    char *copy = malloc(size + 1);
    if (!copy) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes of code", size);
    memcpy(copy, code, size);
    copy[size] = 0;
    if (unit->request->output == COMPILE_ASM) {
        unit->result->text = copy;
    } else {
        unit->result->image.object = copy;
        unit->result->image.object_size = size;
    }
    return SMELT_OK;
}

smelt_status unit_verify(struct unit *unit) {
#ifndef NDEBUG
    char *message = NULL;
    if (LLVMVerifyModule(unit->module, LLVMReturnStatusAction, &message)) {
        smelt_status status = unit_fail(unit, SMELT_ERROR_INTERNAL, "invalid IR: %s", message);
        LLVMDisposeMessage(message);
        return status;
    }
    LLVMDisposeMessage(message);
#endif
    (void)unit;
    return SMELT_OK;
}

smelt_status run_passes(struct unit *unit, const char *passes) {
    return unit->target->run_passes(unit, passes);
}

smelt_status run_plain_passes(struct unit *unit, const char *passes) {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    /* A thread's code stays scalar; vectors come from the lanes of a simdgroup. */
    LLVMPassBuilderOptionsSetLoopVectorization(options, false);
    LLVMPassBuilderOptionsSetSLPVectorization(options, false);
    LLVMPassBuilderOptionsSetLoopInterleaving(options, false);
    LLVMErrorRef error = LLVMRunPasses(unit->module, passes, NULL, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error) return SMELT_OK;
    char *message = LLVMGetErrorMessage(error);
    smelt_status status = unit_fail(unit, SMELT_ERROR_INTERNAL, "LLVM passes '%s': %s", passes, message);
    LLVMDisposeErrorMessage(message);
    return status;
}
