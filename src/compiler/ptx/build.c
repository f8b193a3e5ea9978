/* What passes share: builders of PTX instructions and special registers, and notes for --why. */
#include "base/text.h"
#include "compiler/ptx/ptx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

LLVMValueRef ptx_assembly(struct unit *unit, const char *text, const char *constraints, LLVMTypeRef result,
                          LLVMValueRef *arguments, unsigned count, bool effects) {
    LLVMValueRef call = build_assembly(unit, text, constraints, result, arguments, count, effects);
    if (!effects) return call;
    unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(unit->context, convergent, 0));
    return call;
}

const char *ptx_assembly_text(LLVMValueRef instruction) {
    size_t length = 0;
    LLVMValueRef callee = LLVMIsACallInst(instruction) ? LLVMGetCalledValue(instruction) : NULL;
    return callee && LLVMIsAInlineAsm(callee) ? LLVMGetInlineAsmAsmString(callee, &length) : NULL;
}

bool ptx_is_product(LLVMValueRef instruction) {
    const char *text = ptx_assembly_text(instruction);
    return text && strncmp(text, "mma.sync", 8) == 0;
}

bool ptx_is_convergent(LLVMValueRef call) {
    LLVMAttributeIndex function = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMValueRef callee = LLVMGetCalledValue(call);
    unsigned kind = LLVMGetEnumAttributeKindForName("convergent", 10);
    return LLVMGetCallSiteEnumAttribute(call, function, kind) ||
           (LLVMIsAFunction(callee) && LLVMGetEnumAttributeAtIndex(callee, function, kind));
}

LLVMValueRef ptx_register(struct unit *unit, const char *name) {
    char full[80];
    snprintf(full, sizeof full, "llvm.nvvm.read.ptx.sreg.%s", name);
    return build_function(unit, full, NULL, 0);
}

smelt_status ptx_note(struct unit *unit, const char *format, ...) {
    char line[256];
    struct text text = {0};
    va_list arguments;
    if (unit->request->output != COMPILE_WHY) return SMELT_OK;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (unit->result->text) text_addf(&text, "%s", unit->result->text);
    text_addf(&text, "%s\n", line);
    free(unit->result->text);
    unit->result->text = text.failed ? NULL : strdup(text_string(&text));
    text_free(&text);
    return unit->result->text ? SMELT_OK
                              : unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a report");
}
