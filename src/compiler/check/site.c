/* Places in the user's source as constants of the code, and calls of the checker. */
#include "compiler/check/check.h"

#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <string.h>

#define SITE_PREFIX "smelt_check_site"

/* Sites are numbered by the module's own count, which the last one's name ends in. */
static uint32_t next_number(struct unit *unit) {
    uint32_t number = 0;
    for (LLVMValueRef g = LLVMGetLastGlobal(unit->module); g && !number; g = LLVMGetPreviousGlobal(g)) {
        size_t length;
        (void)sscanf(LLVMGetValueName2(g, &length), SITE_PREFIX "%u", &number);
    }
    return number + 1;
}

LLVMValueRef check_site(struct unit *unit, LLVMValueRef instruction, const char *name) {
    LLVMMetadataRef location = lines_of_user(instruction);
    LLVMMetadataRef file = location ? LLVMDIScopeGetFile(LLVMDILocationGetScope(location)) : NULL;
    unsigned length = 0, line = location ? LLVMDILocationGetLine(location) : 0,
             column = location ? LLVMDILocationGetColumn(location) : 0;
    const char *file_name = file ? LLVMDIFileGetFilename(file, &length) : "";
    char own[64];
    uint32_t number = next_number(unit);
    LLVMTypeRef i32 = type_i32(unit);
    LLVMValueRef fields[] = {
        constant_text(unit, file_name, length),
        name ? constant_text(unit, name, strlen(name)) : LLVMConstNull(type_pointer(unit)),
        LLVMConstInt(i32, line, false), LLVMConstInt(i32, column, false), LLVMConstInt(i32, number, false)};
    LLVMValueRef record = LLVMConstStructInContext(unit->context, fields, 5, false);
    snprintf(own, sizeof own, SITE_PREFIX "%u", number);
    LLVMValueRef site = LLVMAddGlobal(unit->module, LLVMTypeOf(record), own);
    LLVMSetInitializer(site, record);
    LLVMSetGlobalConstant(site, true);
    LLVMSetLinkage(site, LLVMInternalLinkage);
    return site;
}

LLVMValueRef check_call(struct unit *unit, const char *function, LLVMTypeRef result, LLVMValueRef *arguments,
                        unsigned count, bool pure) {
    LLVMTypeRef types[8];
    for (unsigned i = 0; i < count; i++) types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
    LLVMValueRef callee = LLVMGetNamedFunction(unit->module, function);
    if (!callee) {
        callee = LLVMAddFunction(unit->module, function, type);
        if (pure)
            declare_pure(unit, callee);
        else
            declare_apart(unit, callee);
    }
    return LLVMBuildCall2(unit->builder, type, callee, arguments, count, "");
}

LLVMValueRef check_pointer(struct unit *unit, LLVMValueRef pointer) {
    return LLVMBuildPointerCast(unit->builder, pointer, type_pointer(unit), "");
}
