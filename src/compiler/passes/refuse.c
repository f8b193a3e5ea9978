/* Refuses by name, with the user's line, what the optimised kernel still contains and no engine can run.
 *
 * Requires: the optimised entry, with the user's lines. Maintains: the module is only read. */
#include "abi/runtime_names.h"
#include "compiler/pass.h"

#include <stdio.h>
#include <string.h>

/* Threadgroup variables of the dialect: prelude/smelt_dialect.h. */
/* The variable that a pointer refers to, or NULL. */
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
    unit_plain_name(unit, variable, name);
    return unit_fail_at(
        unit, instruction,
        "the kernel writes to '%s', which all threads share: such a variable must be constant", name);
}

/* Operations for which LLVM would call the C library: it has no vector or GPU form of these, and results
 * differ between machines. Builtins of clang lead here; Metal's own functions do not. */
static bool is_of_c_library(const char *name, char function[32]) {
    static const char *const functions[] = {
        "sin",   "cos", "tan",  "asin",  "acos", "atan", "sinh",  "cosh",   "tanh",    "exp",   "exp2",
        "exp10", "log", "log2", "log10", "pow",  "powi", "frexp", "lround", "llround", "lrint", "llrint"};
    if (strncmp(name, "llvm.", 5) != 0) return false;
    snprintf(function, 32, "%.*s", (int)strcspn(name + 5, "."), name + 5);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(function, functions[i]) == 0) return true;
    return false;
}

/* A declaration that LLVM, the engine and the runtime do not define. */
static bool is_missing(struct unit *unit, LLVMValueRef value) {
    static const char *const offered[] = {RUNTIME_OF_MEMORY(RUNTIME_NAME) RUNTIME_OF_NUMBERS(RUNTIME_NAME)
                                              RUNTIME_OF_CHECKS(RUNTIME_NAME)};
    bool function = LLVMIsAFunction(value), variable = LLVMIsAGlobalVariable(value);
    if ((!function && !variable) || !LLVMIsDeclaration(value)) return false;
    size_t length;
    const char *name = LLVMGetValueName2(value, &length);
    if (strncmp(name, "llvm.", 5) == 0 || intrinsic_of_function(value) != INTRINSIC_NONE) return false;
    /* Function constants have no values yet. */
    if (variable && unit->request->output == COMPILE_CONSTANTS) return false;
    for (size_t i = 0; unit->target->calls_runtime && i < sizeof offered / sizeof *offered; i++)
        if (strcmp(name, offered[i]) == 0) return false;
    return true;
}

/* A missing function or variable in a value; NULL: nothing is missing. */
static LLVMValueRef missing_in(struct unit *unit, LLVMValueRef value) {
    if (is_missing(unit, value)) return value;
    LLVMValueRef missing = NULL;
    int count = LLVMIsAConstantExpr(value) ? LLVMGetNumOperands(value) : 0;
    for (int i = 0; i < count && !missing; i++)
        missing = missing_in(unit, LLVMGetOperand(value, (unsigned)i));
    return missing;
}

static smelt_status check_defined(struct unit *unit, LLVMValueRef instruction) {
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++) {
        LLVMValueRef missing = missing_in(unit, LLVMGetOperand(instruction, (unsigned)i));
        if (!missing) continue;
        char name[200];
        unit_plain_name(unit, missing, name);
        bool called = LLVMIsACallInst(instruction) && LLVMGetCalledValue(instruction) == missing;
        return unit_fail_at(
            unit, instruction, "%s '%s' is %s but not defined; if another file defines it, include that file",
            LLVMIsAFunction(missing) ? "function" : "variable", name, called ? "called" : "used");
    }
    return SMELT_OK;
}

/* clang builtins that access the host's stack, threads, registers or floating-point environment, by the
 * prefix of their intrinsics. */
static const struct {
    const char *intrinsic, *builtin;
} host_builtins[] = {
    {"llvm.returnaddress", "__builtin_return_address"},
    {"llvm.addressofreturnaddress", "_AddressOfReturnAddress"},
    {"llvm.frameaddress", "__builtin_frame_address"},
    {"llvm.sponentry", "__builtin_sponentry"},
    {"llvm.localaddress", "__builtin_localaddress"},
    {"llvm.thread.pointer", "__builtin_thread_pointer"},
    {"llvm.eh.sjlj.setjmp", "__builtin_setjmp"},
    {"llvm.eh.sjlj.longjmp", "__builtin_longjmp"},
    {"llvm.eh.", "__builtin_unwind_init"},
    {"llvm.read_", "a variable in a register"},
    {"llvm.write_", "a variable in a register"},
    {"llvm.debugtrap", "__builtin_debugtrap"},
    {"llvm.init.trampoline", "__builtin_init_trampoline"},
    {"llvm.clear_cache", "__builtin___clear_cache"},
    {"llvm.set.", "__builtin_set_flt_rounds"},
    {"llvm.reset.", "__builtin_set_flt_rounds"},
    {"llvm.x86.", "a builtin of x86"},
    {"llvm.nvvm.", "a builtin of NVIDIA's"},
};

static smelt_status check_builtin(struct unit *unit, LLVMValueRef call, const char *name) {
    const char *own = unit->target->intrinsics;
    for (size_t i = 0; i < sizeof host_builtins / sizeof *host_builtins; i++) {
        const char *builtin = host_builtins[i].builtin;
        size_t length = strlen(host_builtins[i].intrinsic);
        if (strncmp(name, host_builtins[i].intrinsic, length) != 0) continue;
        /* An engine may use the intrinsics of its own target. */
        if (own && strncmp(name, own, strlen(own)) == 0) continue;
        const char *quote = strncmp(builtin, "a ", 2) == 0 ? "" : "'";
        return unit_fail_at(unit, call, "%s%s%s is not supported: kernels have no access to the host", quote,
                            builtin, quote);
    }
    return SMELT_OK;
}

static smelt_status check_call(struct unit *unit, LLVMValueRef call) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    const char *name = called_name(call);
    TRY(check_builtin(unit, call, name));
    if (LLVMIsAInlineAsm(callee)) return unit_fail_at(unit, call, "inline assembly is not supported");
    if (intrinsic_of(call) == INTRINSIC_UNSUPPORTED) {
        char words[200];
        snprintf(words, sizeof words, "%s", name + strlen(intrinsic_traits(INTRINSIC_UNSUPPORTED)->name));
        for (char *c = words; *c; c++)
            if (*c == '_') *c = ' ';
        bool texels = strcmp(words, "textures") == 0;
        return unit_fail_at(unit, call, "%s are not supported%s", words,
                            texels ? "; pass the texels in a buffer, as device float4 *" : "");
    }
    if (strncmp(name + (*name == 1), "air.", 4) == 0)
        return unit_fail_at(unit, call,
                            "'%s' is an internal function of Metal's library and is not supported",
                            name + (*name == 1));
    char function[32];
    if (is_of_c_library(name, function))
        return unit_fail_at(unit, call, "'%s' of the C library is not supported; use Metal's functions",
                            function);
    return SMELT_OK;
}

/* Engines replace intrinsics only in the entry. */
static smelt_status check_outside_entry(struct unit *unit, LLVMValueRef function, LLVMValueRef instruction) {
    bool bound = intrinsic_called(instruction);
    for (int i = 0; i < LLVMGetNumOperands(instruction) && !bound; i++) {
        LLVMValueRef variable = variable_of(LLVMGetOperand(instruction, (unsigned)i));
        bound = variable && space_of(variable) == THREADGROUP_SPACE;
    }
    if (!bound) return SMELT_OK;
    char name[200];
    unit_plain_name(unit, function, name);
    return unit_fail_at(
        unit, instruction,
        "function '%s' calls itself or is called through a pointer: it cannot use barriers, simdgroup "
        "functions, positions or threadgroup variables",
        name);
}

static smelt_status check_instruction(struct unit *unit, LLVMValueRef function, LLVMValueRef instruction) {
    if (LLVMIsAAllocaInst(instruction) && !LLVMIsAConstantInt(LLVMGetOperand(instruction, 0)))
        return unit_fail_at(unit, instruction, "an array whose size is not constant is not supported");
    if (LLVMIsACallInst(instruction)) TRY(check_call(unit, instruction));
    TRY(check_defined(unit, instruction));
    TRY(check_written(unit, instruction));
    return function == unit->entry ? SMELT_OK : check_outside_entry(unit, function, instruction);
}

/* ---- Refusals of the SIMD engine; the scalar engine runs these. */

/* Two bits per kind of memory, the upper one for writes, as in LLVM's encoding of the attribute. */
#define MEMORY_WRITES UINT64_C(0xaaaaaaaaaaaaaaaa)

static bool may_write(LLVMValueRef function) {
    unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
    LLVMAttributeRef attribute =
        LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
    return !attribute || (LLVMGetEnumAttributeValue(attribute) & MEMORY_WRITES) != 0;
}

/* A call that writes nothing may stay: the engine executes it once if it is uniform. */
static smelt_status check_for_lanes(struct unit *unit, LLVMValueRef call) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    char name[200];
    if (LLVMIsAInlineAsm(callee)) return SMELT_OK;
    if (LLVMIsAFunction(callee) && !(unit_calls_itself(unit, call, name) && may_write(callee)))
        return SMELT_OK;
    unit->refused = true;
    return LLVMIsAFunction(callee) ? unit_fail_at(unit, call, CALLS_ITSELF, name)
                                   : unit_fail_at(unit, call, "it calls a function through a pointer");
}

static smelt_status check_calls(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (LLVMIsACallInst(instruction)) TRY(check_for_lanes(unit, instruction));
    }
    return SMELT_OK;
}

smelt_status pass_refuse(struct unit *unit) {
    size_t length;
    if (*LLVMGetModuleInlineAsm(unit->module, &length))
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "assembly is not supported");
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            TRY(check_instruction(unit, f, instruction));
        }
    }
    return unit->target->may_refuse ? check_calls(unit) : SMELT_OK;
}
