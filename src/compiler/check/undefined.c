/* Undefined values are followed by LLVM's MemorySanitizer in the form it has for kernels: it asks functions
 * for the shadow of memory. They are the checker's here, and the place in the user's source is added where a
 * branch or an address depends on an undefined value.
 *
 * The values that private.c lets variables begin with are undefined, too: the checker's function says so of
 * its result. */
#include "compiler/check/check.h"

#include <string.h>

#define WARNING "__msan_warning"

static const char *const renamed[][2] = {
    {"__msan_get_context_state", "smelt_check_parameters"},
    {"__msan_metadata_ptr_for_load_1", "smelt_check_load_1"},
    {"__msan_metadata_ptr_for_load_2", "smelt_check_load_2"},
    {"__msan_metadata_ptr_for_load_4", "smelt_check_load_4"},
    {"__msan_metadata_ptr_for_load_8", "smelt_check_load_8"},
    {"__msan_metadata_ptr_for_load_n", "smelt_check_load_n"},
    {"__msan_metadata_ptr_for_store_1", "smelt_check_store_1"},
    {"__msan_metadata_ptr_for_store_2", "smelt_check_store_2"},
    {"__msan_metadata_ptr_for_store_4", "smelt_check_store_4"},
    {"__msan_metadata_ptr_for_store_8", "smelt_check_store_8"},
    {"__msan_metadata_ptr_for_store_n", "smelt_check_store_n"},
    {"__msan_poison_alloca", "smelt_check_poison"},
    {"__msan_unpoison_alloca", "smelt_check_unpoison"},
    {"__msan_chain_origin", "smelt_check_chain"},
    {"__msan_memcpy", "smelt_check_copy"},
    {"__msan_memmove", "smelt_check_move"},
    {"__msan_memset", "smelt_check_set"},
};

static void ask_for_shadow(struct unit *unit, LLVMValueRef function) {
    static const char name[] = "sanitize_memory";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    if (LLVMIsDeclaration(function)) return;
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(unit->context, kind, 0));
}

/* Later passes need not follow it again. */
static void forget_shadow(LLVMValueRef function) {
    static const char name[] = "sanitize_memory";
    LLVMRemoveEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                   LLVMGetEnumAttributeKindForName(name, sizeof name - 1));
}

static void place_warnings(struct unit *unit, LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(call, block) {
        if (strcmp(called_name(call), WARNING) != 0) continue;
        LLVMPositionBuilderBefore(unit->builder, call);
        LLVMValueRef arguments[2] = {LLVMGetOperand(call, 0), check_site(unit, call, NULL)};
        check_call(unit, "smelt_check_used", LLVMVoidTypeInContext(unit->context), arguments, 2, false);
        LLVMInstructionEraseFromParent(call);
    }
}

smelt_status pass_check_undefined(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        ask_for_shadow(unit, f);
    TRY(run_passes(unit, "msan<recover;kernel;track-origins=1>"));
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        forget_shadow(f);
        place_warnings(unit, f);
    }
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        LLVMValueRef function = LLVMGetNamedFunction(unit->module, renamed[i][0]);
        if (function) LLVMSetValueName2(function, renamed[i][1], strlen(renamed[i][1]));
    }
    return SMELT_OK;
}
