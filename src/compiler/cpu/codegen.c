/* From lowered IR to an object file, or to assembler text. */
#include "compiler/budget.h"

#include <llvm-c/DebugInfo.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Instructions that LLVM must not choose. SSE4A (insertq, extrq, movntsd) has no VEX form: among 256-bit
 * code, one such instruction costs an AMD CPU about 110 ns. Of the other instructions without a VEX form,
 * MMX, SHA and early AES are used only by name; XOP, FMA4 and TBM have forms that clear the upper halves. */
#define AVOIDED_FEATURES "-sse4a"

static void set_function_target(struct unit *unit, const char *cpu, const char *features) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        /* clang set it to the baseline that it compiled for; it would override the target machine's. */
        LLVMAddTargetDependentFunctionAttr(f, "target-cpu", cpu);
        LLVMAddTargetDependentFunctionAttr(f, "target-features", features);
        LLVMRemoveStringAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                         "min-legal-vector-width", 22);
        /* Otherwise fast division is an estimate in vectors and exact in scalars. */
        LLVMAddTargetDependentFunctionAttr(f, "reciprocal-estimates", "none");
        if (!unit->target->wants_vectors) continue;
        LLVMAddTargetDependentFunctionAttr(f, "warn-stack-size", "0"); /* counted in unit->frame_bytes */
        /* By default, LLVM uses half the register width on many CPUs. */
        LLVMAddTargetDependentFunctionAttr(f, "prefer-vector-width", "512");
        LLVMAddTargetDependentFunctionAttr(f, "min-legal-vector-width", "512");
    }
}

/* The CPU that machine code is generated for: that of the request, or this machine's. */
struct target {
    LLVMTargetMachineRef machine; /* NULL: `message` says why */
    char *message, *host_cpu, *features;
};

/* The requested features, or this machine's, without those to avoid. */
static char *choose_features(const struct compile_request *request) {
    const char *given = request->features ? request->features : request->cpu ? "" : simd_host_features();
    char *features = NULL;
    if (asprintf(&features, "%s%s" AVOIDED_FEATURES, given, *given ? "," : "") < 0) features = NULL;
    return features;
}

/* Of scalar code: most instructions whose machine code LLVM optimises. */
static uint64_t most_optimised(struct unit *unit) {
    return unit->engine == ENGINE_CHECK ? MOST_CHECKED_INSTRUCTIONS_OPTIMISED : MOST_INSTRUCTIONS_OPTIMISED;
}

/* Whether LLVM optimises the machine code. The size of vector code has a budget of its own. */
static bool is_optimised(struct unit *unit) {
    uint64_t blocks;
    if (unit->result->image.quick && unit->target->has_quick) return false;
    return unit->target->wants_vectors || budget_count(unit->entry, &blocks) <= most_optimised(unit);
}

static smelt_status note_size(struct unit *unit) {
    uint64_t blocks, size = budget_count(unit->entry, &blocks), most = most_optimised(unit);
    return size <= most || unit->target->wants_vectors
               ? SMELT_OK
               : budget_reduce(unit, "its machine code is generated without optimisation", "instructions",
                               size, most);
}

static struct target open_target(struct unit *unit) {
    struct target t = {.host_cpu = LLVMGetHostCPUName(), .features = choose_features(unit->request)};
    const char *cpu = unit->request->cpu ? unit->request->cpu : t.host_cpu;
    LLVMTargetRef target = NULL;
    if (!t.features) return t;
    set_function_target(unit, cpu, t.features);
    if (LLVMGetTargetFromTriple(LLVMGetTarget(unit->module), &target, &t.message) == 0)
        t.machine =
            LLVMCreateTargetMachine(target, LLVMGetTarget(unit->module), cpu, t.features,
                                    is_optimised(unit) ? LLVMCodeGenLevelDefault : LLVMCodeGenLevelNone,
                                    LLVMRelocPIC, LLVMCodeModelSmall);
    return t;
}

static void close_target(struct target *t) {
    if (t->machine) LLVMDisposeTargetMachine(t->machine);
    if (t->message) LLVMDisposeMessage(t->message);
    LLVMDisposeMessage(t->host_cpu);
    free(t->features);
}

smelt_status cpu_run_passes(struct unit *unit, const char *passes) {
    struct target t = open_target(unit);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    smelt_status status = SMELT_OK;
    LLVMErrorRef error = t.machine ? LLVMRunPasses(unit->module, passes, t.machine, options) : NULL;
    if (error) {
        char *message = LLVMGetErrorMessage(error);
        status = unit_fail(unit, SMELT_ERROR_INTERNAL, "LLVM passes '%s': %s", passes, message);
        LLVMDisposeErrorMessage(message);
    }
    LLVMDisposePassBuilderOptions(options);
    close_target(&t);
    return status;
}

/* LLVM 19 may swap the operands of a masked vcmpph and keep its condition (llvm-project issue 159723), so
 * vectors of half are compared as vectors of float, with the same result. */
static void widen_half_comparison(struct unit *unit, LLVMValueRef compare) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(compare, 0));
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return;
    if (LLVMGetTypeKind(LLVMGetElementType(type)) != LLVMHalfTypeKind) return;
    LLVMTypeRef wide = LLVMVectorType(LLVMFloatTypeInContext(unit->context), LLVMGetVectorSize(type));
    LLVMPositionBuilderBefore(b, compare);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(compare));
    LLVMValueRef left = LLVMBuildFPExt(b, LLVMGetOperand(compare, 0), wide, "");
    LLVMValueRef right = LLVMBuildFPExt(b, LLVMGetOperand(compare, 1), wide, "");
    LLVMValueRef result = LLVMBuildFCmp(b, LLVMGetFCmpPredicate(compare), left, right, "");
    LLVMSetCurrentDebugLocation2(b, NULL);
    if (LLVMIsAFCmpInst(result)) LLVMSetFastMathFlags(result, LLVMGetFastMathFlags(compare));
    LLVMReplaceAllUsesWith(compare, result);
    LLVMInstructionEraseFromParent(compare);
}

static void widen_half_comparisons(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (LLVMIsAFCmpInst(instruction)) widen_half_comparison(unit, instruction);
        }
    }
}

smelt_status pass_codegen(struct unit *unit) {
    if (!is_optimised(unit)) TRY(note_size(unit));
    widen_half_comparisons(unit);
    struct target t = open_target(unit);
    LLVMMemoryBufferRef buffer = NULL;
    smelt_status status = SMELT_OK;
    LLVMCodeGenFileType kind = unit->request->output == COMPILE_ASM ? LLVMAssemblyFile : LLVMObjectFile;
    if (!t.machine)
        status = unit_fail(unit, SMELT_ERROR_INTERNAL, "no code generator: %s",
                           t.message ? t.message : "out of memory");
    else if (LLVMTargetMachineEmitToMemoryBuffer(t.machine, unit->module, kind, &t.message, &buffer))
        status = unit_fail(unit, SMELT_ERROR_INTERNAL, "code generation: %s", t.message);
    else
        status = unit_keep_code(unit, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    if (status == SMELT_OK && kind == LLVMObjectFile) status = outside_check(unit);
    /* No call needs more stack than the frames of all functions together. The registers that a large gang
     * spills may exceed its arrays. */
    if (unit->result->image.stack_bytes < unit->frame_bytes)
        unit->result->image.stack_bytes = unit->frame_bytes;
    if (buffer) LLVMDisposeMemoryBuffer(buffer);
    close_target(&t);
    return status;
}
