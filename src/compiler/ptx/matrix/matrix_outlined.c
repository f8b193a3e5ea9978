/* Quick code of a GPU (compiler/quick.c): products of float matrices are calls of one function.
 *
 * In the plain form (matrix_plain.c) a product takes 24 shuffles and 16 fused multiply-adds. Where the kernel
 * unrolls its loops over matrices, these are most of its code, and the driver takes about 0.1 ms to assemble
 * an instruction, at every level of optimisation. The function has the plain form's instructions in the same
 * order, so the bits are the same. */
#include "compiler/ptx/matrix/matrix.h"
#include "compiler/quick.h"

#include <string.h>

#define NAME "product_of_matrices"

/* Products, both halves counted as one. The best code of an attention kernel with 72 takes 0.26 seconds of a
 * 3 GHz processor longer to generate and to assemble than quick code; that of a product of tiles with 32,
 * which share their operands' shuffles, 0.04 seconds. */
#define MANY 64

static LLVMValueRef declare(struct unit *unit) {
    LLVMTypeRef number = LLVMFloatTypeInContext(unit->context);
    LLVMTypeRef six[6] = {number, number, number, number, number, number};
    LLVMTypeRef both = LLVMStructTypeInContext(unit->context, six, 2, false);
    LLVMValueRef function = LLVMAddFunction(unit->module, NAME, LLVMFunctionType(both, six, 6, false));
    LLVMSetLinkage(function, LLVMInternalLinkage);
    static const char *const attributes[] = {"convergent", "noinline", "nounwind", "willreturn"};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(attributes[i], strlen(attributes[i]));
        LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(unit->context, kind, 0));
    }
    return function;
}

/* The function's parameters: even and odd columns of the left matrix, of the right one, and of the sums. */
static smelt_status define(struct matrices *m, LLVMValueRef function) {
    struct unit *unit = m->unit;
    struct product_group *group = arena_alloc(&m->arena, sizeof *group);
    if (!group) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
    group->count = 2;
    for (unsigned half = 0; half < 2; half++)
        group->products[half] = (struct product){.even = LLVMGetParam(function, 0),
                                                 .odd = LLVMGetParam(function, 1),
                                                 .right = LLVMGetParam(function, 2 + half),
                                                 .sum = LLVMGetParam(function, 4 + half)};
    LLVMPositionBuilderAtEnd(unit->builder, LLVMAppendBasicBlockInContext(unit->context, function, ""));
    TRY(matrix_make_plain(m, group, true));
    LLVMValueRef results[2] = {group->products[0].result, group->products[1].result};
    LLVMBuildAggregateRet(unit->builder, results, 2);
    return SMELT_OK;
}

/* Halves of products that would have the plain form. */
static int count_plain(struct matrices *m) {
    int count = 0;
    for (int i = 0; i < m->flow.block_count; i++) {
        LLVMBasicBlockRef block = m->flow.blocks[i].block;
        if (!matrix_is_together(m, block)) continue;
        FOR_EACH_INSTRUCTION(call, block) {
            if (intrinsic_of(call) != INTRINSIC_SIMD_MATRIX_PRODUCT) continue;
            struct product p = matrix_product_of(call);
            count += !matrix_suits_tensor_cores(m->unit, &p);
        }
    }
    return count;
}

smelt_status matrix_choose_outlined(struct matrices *m) {
    struct unit *unit = m->unit;
    const struct compile_request *request = unit->request;
    if (request->effort == COMPILE_BEST ||
        (request->output != COMPILE_OBJECT && request->output != COMPILE_ASM))
        return SMELT_OK;
    if (count_plain(m) < (request->effort == COMPILE_QUICK ? 2 : 2 * MANY)) return SMELT_OK;
    if (!quick_gives_same_bits(unit)) return SMELT_OK;
    LLVMValueRef function = declare(unit);
    TRY(define(m, function));
    m->outlined = function;
    unit->result->image.quick = true;
    return SMELT_OK;
}

static void call(struct matrices *m, struct product *even, struct product *odd) {
    LLVMBuilderRef b = m->unit->builder;
    LLVMValueRef arguments[6] = {even->even, even->odd, even->right, odd->right, even->sum, odd->sum};
    LLVMValueRef both = LLVMBuildCall2(b, LLVMGlobalGetValueType(m->outlined), m->outlined, arguments, 6, "");
    even->result = LLVMBuildExtractValue(b, both, 0, "");
    odd->result = LLVMBuildExtractValue(b, both, 1, "");
}

/* Calls for the products whose halves are both in the group. */
static void make_calls(struct matrices *m, struct product_group *group) {
    for (int i = 0; i < group->count; i++) {
        struct product *p = &group->products[i];
        for (int k = i + 1; k < group->count && !p->result; k++) {
            struct product *q = &group->products[k];
            if (!q->result && q->even == p->even && q->odd == p->odd) call(m, p, q);
        }
    }
}

smelt_status matrix_make_rest(struct matrices *m, struct product_group *group, bool whole) {
    if (whole && m->outlined) make_calls(m, group);
    return matrix_make_plain(m, group, whole);
}
