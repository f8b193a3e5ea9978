/* The NVPTX target machine: LLVM's passes that query it, and the final PTX. */
#include "base/text.h"
#include "abi/cuda_parameters.h"
#include "compiler/budget.h"
#include "compiler/ptx/ptx.h"

#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

/* At the highest level, NVPTX's code generator runs global value numbering twice. For each load, that
 * searches the blocks for the last write to memory, which takes long if there are many blocks or
 * instructions. At lower levels it eliminates common subexpressions instead. Without optimisation, it also
 * omits the search for sums that differ by constants, which takes half of the time for the longest code. */
static LLVMCodeGenOptLevel choose_level(struct unit *unit) {
    uint64_t blocks, instructions = budget_count_all(unit->module);
    (void)budget_count(unit->entry, &blocks);
    if (instructions > LONGEST_OPTIMISED && unit->result->image.private_bytes <= MOST_UNSHARED)
        return LLVMCodeGenLevelNone;
    return blocks > MANY_BLOCKS || instructions > LONG_THREAD ? LLVMCodeGenLevelDefault
                                                              : LLVMCodeGenLevelAggressive;
}

static smelt_status open_machine(struct unit *unit, LLVMTargetMachineRef *machine) {
    const char *triple = LLVMGetTarget(unit->module);
    LLVMTargetRef target = NULL;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        smelt_status status =
            unit_fail(unit, SMELT_ERROR_INTERNAL, "no code generator for GPUs: %s", message);
        LLVMDisposeMessage(message);
        return status;
    }
    /* In the small model, LLVM 19 makes tables of pointers relative, and the pointers it loads from them have
     * no address space. */
    *machine = LLVMCreateTargetMachine(target, triple, unit->request->cpu, unit->request->features,
                                       choose_level(unit), LLVMRelocDefault, LLVMCodeModelLarge);
    return *machine ? SMELT_OK
                    : unit_fail(unit, SMELT_ERROR_INTERNAL, "no code generator for %s", unit->request->cpu);
}

smelt_status ptx_run_passes(struct unit *unit, const char *passes) {
    LLVMTargetMachineRef machine = NULL;
    TRY(open_machine(unit, &machine));
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(options, false);
    LLVMPassBuilderOptionsSetSLPVectorization(options, false);
    LLVMPassBuilderOptionsSetLoopInterleaving(options, false);
    /* Not before unroll.c, which ptx.c runs by name. */
    LLVMPassBuilderOptionsSetLoopUnrolling(options, false);
    LLVMErrorRef error = LLVMRunPasses(unit->module, passes, machine, options);
    LLVMDisposePassBuilderOptions(options);
    LLVMDisposeTargetMachine(machine);
    if (!error) return SMELT_OK;
    char *message = LLVMGetErrorMessage(error);
    smelt_status status = unit_fail(unit, SMELT_ERROR_INTERNAL, "LLVM passes '%s': %s", passes, message);
    LLVMDisposeErrorMessage(message);
    return status;
}

smelt_status ptx_join_accesses(struct unit *unit) {
    ptx_part_indexes(unit);
    return ptx_run_passes(unit, "function(load-store-vectorizer)");
}

void ptx_annotate(struct unit *unit, const char *what, uint32_t value) {
    LLVMMetadataRef parts[3] = {LLVMValueAsMetadata(unit->entry),
                                LLVMMDStringInContext2(unit->context, what, strlen(what)),
                                LLVMValueAsMetadata(constant_i32(unit, value))};
    LLVMAddNamedMetadataOperand(
        unit->module, "nvvm.annotations",
        LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, parts, 3)));
}

bool ptx_is_annotated(struct unit *unit, const char *what) {
    static const char list[] = "nvvm.annotations";
    LLVMValueRef nodes[16], parts[3];
    unsigned count = LLVMGetNamedMetadataNumOperands(unit->module, list), length;
    if (count > 16) return true; /* a kernel has four */
    LLVMGetNamedMetadataOperands(unit->module, list, nodes);
    for (unsigned i = 0; i < count; i++) {
        if (LLVMGetMDNodeNumOperands(nodes[i]) != 3) continue;
        LLVMGetMDNodeOperands(nodes[i], parts);
        const char *name = LLVMGetMDString(parts[1], &length);
        if (length == strlen(what) && memcmp(name, what, length) == 0) return true;
    }
    return false;
}

/* ptxas gives a thread as many registers as the largest block allows. */
static void declare_kernel(struct unit *unit) {
    const struct code_shape *shape = &unit->request->shape;
    const struct image *image = &unit->result->image;
    uint32_t threads = shape->size[0] * shape->size[1] * shape->size[2];
    if (image->coarse[0]) threads = image->block[0] * image->block[1] * image->block[2];
    LLVMTypeRef bytes = LLVMArrayType2(LLVMInt8TypeInContext(unit->context), ptx_parameter_bytes(unit));
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5),
             align = LLVMGetEnumAttributeKindForName("align", 5);
    unsigned readnone = LLVMGetEnumAttributeKindForName("readnone", 8);
    LLVMRemoveEnumAttributeAtIndex(unit->entry, 1, readnone);
    LLVMAddAttributeAtIndex(unit->entry, 1, LLVMCreateTypeAttribute(unit->context, byval, bytes));
    LLVMAddAttributeAtIndex(unit->entry, 1, LLVMCreateEnumAttribute(unit->context, align, 16));
    ptx_annotate(unit, "kernel", 1);
    if (!threads) threads = shape->most_threads;
    if (threads) ptx_annotate(unit, "maxntidx", threads);
}

/* A function that LLVM calls and no GPU has: loading the code would fail in the driver. */
static smelt_status check_outside_functions(struct unit *unit, const char *text) {
    static const char start[] = "\n.extern .func";
    const char *at = strstr(text, start);
    if (!at) return SMELT_OK;
    at += strlen(start) + strspn(at + strlen(start), " ");
    if (*at == '(') at += strcspn(at, ")") + 1;
    at += strspn(at, " ");
    return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "generated code needs '%.*s', which GPUs lack",
                     (int)strcspn(at, " \n("), at);
}

/* For old targets, LLVM declares PTX 7.4, which old drivers accept; movmatrix needs 7.8. */
static void declare_version(struct text *ptx) {
    static const char declared[] = ".version 7.4";
    char *version = ptx->failed || !ptx->data ? NULL : strstr(ptx->data, declared);
    if (version && strstr(version, "movmatrix")) version[sizeof declared - 2] = '8';
}

/* ---- Clusters of threadgroups. LLVM lacks an annotation for their size. */

static const char cluster_name[] = "smelt.cluster";

void ptx_set_cluster(struct unit *unit, uint32_t groups) {
    LLVMMetadataRef size = LLVMValueAsMetadata(constant_i32(unit, groups));
    if (LLVMGetNamedMetadataNumOperands(unit->module, cluster_name)) return;
    LLVMAddNamedMetadataOperand(
        unit->module, cluster_name,
        LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, &size, 1)));
}

/* 0: the kernel does not run in clusters. */
static uint32_t cluster_of(struct unit *unit) {
    LLVMValueRef node, size;
    if (!LLVMGetNamedMetadataNumOperands(unit->module, cluster_name)) return 0;
    LLVMGetNamedMetadataOperands(unit->module, cluster_name, &node);
    LLVMGetMDNodeOperands(node, &size);
    return (uint32_t)LLVMConstIntGetZExtValue(size);
}

/* Writes the directive before the body of the entry. */
static void declare_cluster(struct text *ptx, uint32_t groups) {
    const char *entry = ptx->failed || !ptx->data ? NULL : strstr(ptx->data, ".entry ");
    const char *body = entry ? strstr(entry, "\n{\n") : NULL;
    if (groups < 2 || !body) return;
    struct text whole = {0};
    text_addf(&whole, "%.*s\n.reqnctapercluster %u, 1, 1%s", (int)(body - ptx->data), ptx->data, groups,
              body);
    text_free(ptx);
    *ptx = whole;
}

static smelt_status keep_ptx(struct unit *unit, const char *made) {
    struct text marked = {0}, ptx = {0};
    TRY(check_outside_functions(unit, made));
    ptx_mark_uniform(&marked, made);
    if (!marked.failed) ptx_widen_narrow(&ptx, text_string(&marked));
    ptx.failed |= marked.failed;
    text_free(&marked);
    declare_version(&ptx);
    declare_cluster(&ptx, cluster_of(unit));
    /* PTX is text; its terminator counts. */
    size_t size = ptx.length + (unit->request->output != COMPILE_ASM);
    smelt_status status = ptx.failed ? unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for PTX")
                                     : unit_keep_code(unit, text_string(&ptx), size);
    text_free(&ptx);
    return status;
}

smelt_status pass_ptx_code(struct unit *unit) {
    LLVMTargetMachineRef machine = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    declare_kernel(unit);
    ptx_part_indexes(unit);
    TRY(ptx_order_globals(unit));
    if (choose_level(unit) == LLVMCodeGenLevelNone)
        TRY(budget_reduce(unit, "its PTX is generated without optimisation", "instructions",
                          budget_count_all(unit->module), LONGEST_OPTIMISED));
    TRY(open_machine(unit, &machine));
    smelt_status status = SMELT_OK;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, unit->module, LLVMAssemblyFile, &message, &buffer)) {
        status = unit_fail(unit, SMELT_ERROR_INTERNAL, "code generation: %s", message);
        LLVMDisposeMessage(message);
    } else {
        status = keep_ptx(unit, LLVMGetBufferStart(buffer));
        LLVMDisposeMemoryBuffer(buffer);
    }
    LLVMDisposeTargetMachine(machine);
    return status;
}
