/* From lowered IR to an object file, or to assembler text. */
#include "ir/pass.h"

#include <llvm-c/TargetMachine.h>
#include <stdlib.h>
#include <string.h>

static void set_function_target(struct unit *unit, const char *cpu, const char *features) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        /* What clang put there names the baseline it was run for, and would win over the target machine's. */
        LLVMAddTargetDependentFunctionAttr(f, "target-cpu", cpu);
        LLVMAddTargetDependentFunctionAttr(f, "target-features", features);
        LLVMRemoveStringAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                         "min-legal-vector-width", 22);
        /* Else fast division is an estimate in vectors and exact in scalars. */
        LLVMAddTargetDependentFunctionAttr(f, "reciprocal-estimates", "none");
        if (unit->engine != ENGINE_SIMD) continue;
        /* Left to itself LLVM prefers half registers on many CPUs. */
        LLVMAddTargetDependentFunctionAttr(f, "prefer-vector-width", "512");
        LLVMAddTargetDependentFunctionAttr(f, "min-legal-vector-width", "512");
    }
}

smelt_status pass_codegen(struct unit *unit) {
    char *host_cpu = LLVMGetHostCPUName(), *host_features = LLVMGetHostCPUFeatures();
    const char *cpu = unit->request->cpu ? unit->request->cpu : host_cpu;
    const char *features = unit->request->features ? unit->request->features
                           : unit->request->cpu    ? ""
                                                   : host_features;
    char *message = NULL;
    LLVMTargetRef target = NULL;
    LLVMTargetMachineRef machine = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    smelt_status status = SMELT_OK;
    bool assembler = unit->request->output == COMPILE_ASM;
    set_function_target(unit, cpu, features);
    if (LLVMGetTargetFromTriple(LLVMGetTarget(unit->module), &target, &message) == 0)
        machine = LLVMCreateTargetMachine(target, LLVMGetTarget(unit->module), cpu, features,
                                          LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
    if (!machine) {
        status = unit_fail(unit, SMELT_ERROR_INTERNAL, "no code generator: %s",
                           message ? message : "unknown reason");
    } else if (LLVMTargetMachineEmitToMemoryBuffer(
                   machine, unit->module, assembler ? LLVMAssemblyFile : LLVMObjectFile, &message, &buffer)) {
        status = unit_fail(unit, SMELT_ERROR_INTERNAL, "code generation: %s", message);
    } else {
        size_t size = LLVMGetBufferSize(buffer);
        char *copy = malloc(size + 1);
        if (!copy) {
            status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes of code", size);
        } else {
            memcpy(copy, LLVMGetBufferStart(buffer), size);
            copy[size] = 0;
            if (assembler) {
                unit->result->text = copy;
            } else {
                unit->result->image.object = copy;
                unit->result->image.object_size = size;
            }
        }
    }
    if (buffer) LLVMDisposeMemoryBuffer(buffer);
    if (machine) LLVMDisposeTargetMachine(machine);
    if (message) LLVMDisposeMessage(message);
    LLVMDisposeMessage(host_cpu);
    LLVMDisposeMessage(host_features);
    return status;
}
