/* Products of fragments by the tensor cores of one simdgroup, which the prelude calls by name
 * (smelt_dialect.h): __smelt_fragment_NAME becomes inline assembly without side effects, so that LLVM and the
 * assembler may move it. Lanes are in the fragments' order (lanes.h).
 *
 * Requires: the retargeted module, warps that are whole. Establishes: no such intrinsic is left.
 *
 * Layouts of operands: PTX ISA, "Matrix fragments for mma.m16n8k16" and its neighbours. */
#include "base/text.h"
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/ptx.h"

#include <string.h>

#define RESULTS_MOST 4

static const struct fragment_operation {
    const char *name, *text;
    unsigned results; /* numbers of a vector that replaces the last operand's; 1: one register */
    bool whole;       /* they are integers */
} operations[] = {
    {"product_half",
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
     "{$10, $11, $12, $13};",
     4, false},
    {"product_bfloat",
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
     "{$10, $11, $12, $13};",
     4, false},
    {"product_tf32",
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
     "{$10, $11, $12, $13};",
     4, false},
    {"product_bytes",
     "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};",
     4, true},
    {"product_ubytes",
     "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};",
     4, true},
    {"transposed", "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", 1, true},
    {"tf32", "cvt.rna.tf32.f32 $0, $1;", 1, true},
};

/* The call's arguments, vectors number by number. */
static unsigned spread_arguments(struct unit *unit, LLVMValueRef call, LLVMValueRef *arguments) {
    LLVMBuilderRef b = unit->builder;
    unsigned count = 0;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
        LLVMValueRef argument = LLVMGetOperand(call, i);
        if (LLVMGetTypeKind(LLVMTypeOf(argument)) != LLVMVectorTypeKind) {
            arguments[count++] = argument;
            continue;
        }
        for (unsigned n = 0; n < LLVMGetVectorSize(LLVMTypeOf(argument)); n++)
            arguments[count++] = LLVMBuildExtractElement(b, argument, constant_i32(unit, n), "");
    }
    return count;
}

static const char *constraints_of(struct text *text, const struct fragment_operation *operation,
                                  const LLVMValueRef *arguments, unsigned count) {
    for (unsigned i = 0; i < operation->results; i++)
        text_addf(text, "%s%s", i ? "," : "", operation->whole ? "=r" : "=f");
    for (unsigned i = 0; i < count; i++)
        text_addf(text, ",%c", LLVMGetTypeKind(LLVMTypeOf(arguments[i])) == LLVMFloatTypeKind ? 'f' : 'r');
    return text_string(text);
}

static void lower_operation(struct unit *unit, LLVMValueRef call,
                            const struct fragment_operation *operation) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef number = operation->whole ? type_i32(unit) : LLVMFloatTypeInContext(unit->context);
    LLVMTypeRef numbers[RESULTS_MOST] = {number, number, number, number}, type = number;
    LLVMValueRef arguments[ASSEMBLY_MAX_OPERANDS];
    struct text constraints = {0};
    LLVMPositionBuilderBefore(b, call);
    unsigned count = spread_arguments(unit, call, arguments);
    const char *list = constraints_of(&constraints, operation, arguments, count);
    if (operation->results > 1)
        type = LLVMStructTypeInContext(unit->context, numbers, operation->results, false);
    LLVMValueRef result = build_assembly(unit, operation->text, list, type, arguments, count, false);
    unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(result, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(unit->context, convergent, 0));
    text_free(&constraints);
    if (operation->results > 1) {
        LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(number, operation->results));
        for (unsigned i = 0; i < operation->results; i++)
            vector = LLVMBuildInsertElement(b, vector, LLVMBuildExtractValue(b, result, i, ""),
                                            constant_i32(unit, i), "");
        result = vector;
    }
    LLVMReplaceAllUsesWith(call, result);
    LLVMInstructionEraseFromParent(call);
}

smelt_status pass_ptx_fragments(struct unit *unit) {
    size_t prefix = strlen(intrinsic_traits(INTRINSIC_FRAGMENT)->name);
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        if (intrinsic_of(call) != INTRINSIC_FRAGMENT) continue;
        const struct fragment_operation *operation = NULL;
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
            if (strcmp(called_name(call) + prefix, operations[i].name) == 0) operation = &operations[i];
        if (!operation)
            return unit_fail(unit, SMELT_ERROR_INTERNAL, "the PTX engine does not support the intrinsic %s",
                             called_name(call));
        ptx_order_lanes(unit);
        lower_operation(unit, call, operation);
    }
    return SMELT_OK;
}
