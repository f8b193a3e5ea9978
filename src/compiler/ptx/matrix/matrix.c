/* Products of simdgroup matrices: tensor cores, or shuffles and fused multiply-adds with the same bits as on
 * the CPU engines.
 *
 * Requires: the retargeted module, simdgroup operations not yet lowered. Establishes: no matrix product is
 * left.
 *
 * Products of a block that do not need each other are a group, and are made at one place. */
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/matrix/matrix.h"

#include <stdlib.h>

/* ---- Groups. */

/* A group being collected. Instructions that only compute with its results wait for it, so that they do not
 * end it. */
#define WAITING_MOST (8 * GROUP_MOST)
struct collection {
    struct matrices m;
    struct product_group group;
    bool whole; /* in this block all 32 lanes are together */
    LLVMValueRef waiting[WAITING_MOST];
    int waiting_count;
};

static bool needs(const struct collection *c, LLVMValueRef instruction) {
    for (int o = 0; o < LLVMGetNumOperands(instruction); o++) {
        LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)o);
        if (!LLVMIsAInstruction(operand)) continue;
        for (int i = 0; i < c->group.count; i++)
            if (c->group.products[i].call == operand) return true;
        for (int i = 0; i < c->waiting_count; i++)
            if (c->waiting[i] == operand) return true;
    }
    return false;
}

/* ---- Facts about lanes. */

/* Whether it may be moved down in its block. */
static bool only_computes(LLVMValueRef instruction) {
    return matrix_is_assembly(instruction) || LLVMIsABinaryOperator(instruction) ||
           LLVMIsACastInst(instruction) || LLVMIsACmpInst(instruction) || LLVMIsASelectInst(instruction) ||
           LLVMGetInstructionOpcode(instruction) == LLVMFNeg;
}

/* Whether other lanes may be waited for there, or left behind. */
static bool brings_lanes_together(LLVMValueRef instruction) {
    if (!LLVMIsACallInst(instruction) || matrix_is_assembly(instruction)) return false;
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    if (!LLVMIsAFunction(callee)) return true;
    unsigned kind = LLVMGetEnumAttributeKindForName("convergent", 10);
    return LLVMGetEnumAttributeAtIndex(callee, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind) ||
           intrinsic_of(instruction) == INTRINSIC_THREAD_RETURN;
}

/* Emits the products before `end`; instructions that waited follow them. */
static smelt_status finish(struct collection *c, LLVMValueRef end) {
    LLVMBuilderRef b = c->m.unit->builder;
    if (!c->group.count) return SMELT_OK;
    c->m.place = end;
    LLVMPositionBuilderBefore(b, end);
    if (c->whole && c->m.on_cores) TRY(matrix_tensor_products(&c->m, &c->group));
    if (c->whole && c->m.on_cores) TRY(matrix_mark_diagonals(&c->m, &c->group));
    TRY(matrix_make_rest(&c->m, &c->group, c->whole));
    for (int i = 0; i < c->waiting_count; i++) {
        LLVMInstructionRemoveFromParent(c->waiting[i]);
        LLVMPositionBuilderBefore(b, end);
        LLVMInsertIntoBuilder(b, c->waiting[i]);
    }
    for (int i = 0; i < c->group.count; i++) {
        LLVMReplaceAllUsesWith(c->group.products[i].call, c->group.products[i].result);
        LLVMInstructionEraseFromParent(c->group.products[i].call);
    }
    c->group.count = c->waiting_count = 0;
    return SMELT_OK;
}

static smelt_status collect(struct collection *c, LLVMValueRef instruction) {
    bool product = intrinsic_of(instruction) == INTRINSIC_SIMD_MATRIX_PRODUCT;
    bool full = c->group.count == GROUP_MOST || c->waiting_count == WAITING_MOST;
    bool needed = needs(c, instruction);
    if (needed && !full && only_computes(instruction)) {
        c->waiting[c->waiting_count++] = instruction;
        return SMELT_OK;
    }
    if (needed || full || LLVMIsATerminatorInst(instruction) ||
        (!product && brings_lanes_together(instruction)))
        TRY(finish(c, instruction));
    if (product) c->group.products[c->group.count++] = matrix_product_of(instruction);
    return SMELT_OK;
}

static smelt_status lower_products(struct collection *c) {
    struct matrices *m = &c->m;
    for (int i = 0; i < m->flow.block_count; i++) {
        m->block = m->flow.blocks[i].block;
        c->whole = matrix_is_together(m, m->block);
        FOR_EACH_INSTRUCTION(instruction, m->block) {
            TRY(collect(c, instruction));
        }
    }
    matrix_load_operands(m);
    TRY(matrix_resolve_sums(m));
    TRY(matrix_load_wide(m));
    return matrix_part_diagonals(m);
}

smelt_status pass_ptx_matrix(struct unit *unit) {
    if (!intrinsic_function(unit->module, INTRINSIC_SIMD_MATRIX_PRODUCT)) return SMELT_OK;
    struct collection *c = calloc(1, sizeof *c);
    if (!c) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
    c->m.unit = unit;
    bool changed = false;
    c->m.on_cores = !ptx_lanes_ordered(unit);
    smelt_status status = matrix_survey(&c->m);
    if (status == SMELT_OK) status = matrix_drop_barriers(&c->m);
    if (status == SMELT_OK && c->m.on_cores) matrix_order_lanes(&c->m);
    if (status == SMELT_OK) status = matrix_join_rounds(&c->m, &changed);
    if (status == SMELT_OK && changed) status = matrix_survey(&c->m);
    if (status == SMELT_OK) status = matrix_choose_outlined(&c->m);
    if (status == SMELT_OK) status = lower_products(c);
    divergence_free(&c->m.divergence);
    arena_free(&c->m.arena);
    free(c);
    return status;
}
