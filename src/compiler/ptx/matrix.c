/* Products of simdgroup matrices: as shuffles and fused multiply-adds, with the same bits as on the CPU
 * engines.
 *
 * Requires: the retargeted module, simdgroup operations not yet lowered. Establishes: no matrix product is
 * left.
 *
 * The sums stay in place. For each k, in order, the left matrix's column k, broadcast along the rows, is
 * multiplied with the right one's row k, broadcast down the columns. Products that share a matrix share its
 * broadcasts. To keep few of them live, independent products are computed together, k by k. Elements of
 * missing or inactive lanes count as 0. */
#include "compiler/ptx/lanes.h"
#include "compiler/ptx/matrix.h"

#include <stdlib.h>

/* ---- The plain form. */

/* One k of a group: the broadcasts that exist already. */
struct spread {
    LLVMValueRef from[2 * GROUP_MOST], to[2 * GROUP_MOST];
    bool along[2 * GROUP_MOST];
    int count;
};

struct plain {
    struct unit *unit;
    struct product_group *group;
    bool whole;                 /* all 32 lanes arrive together */
    LLVMValueRef lane, present; /* if not: this lane, and the lanes that are here */
    struct spread *spread;
};

/* The warp's own instruction keeps the lane's bits outside of `fixed`, and takes the others from it: no index
 * is computed. */
static LLVMValueRef shuffle_whole(struct unit *unit, LLVMValueRef value, unsigned kept, unsigned fixed) {
    static const char name[] = "llvm.nvvm.shfl.sync.idx.f32";
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(unit->module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
    LLVMValueRef arguments[4] = {constant_i32(unit, UINT32_MAX), value,
                                 constant_i32(unit, ptx_hardware_bits(unit, fixed)),
                                 constant_i32(unit, ptx_hardware_bits(unit, kept) << 8 | 31)};
    return LLVMBuildCall2(unit->builder, LLVMGlobalGetValueType(function), function, arguments, 4, "");
}

/* Any lanes, by the operations for which masks exist. */
static LLVMValueRef shuffle_some(const struct plain *plain, LLVMValueRef value, unsigned kept,
                                 unsigned fixed) {
    struct unit *unit = plain->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef bits = LLVMBuildBitCast(b, value, type_i32(unit), "");
    LLVMValueRef from = LLVMBuildOr(b, LLVMBuildAnd(b, plain->lane, constant_i32(unit, kept), ""),
                                    constant_i32(unit, fixed), "");
    LLVMValueRef arguments[2] = {bits, from};
    LLVMValueRef moved = matrix_call(unit, intrinsic_traits(INTRINSIC_SIMD_SHUFFLE_I32)->name, type_i32(unit),
                                     arguments, 2, true);
    LLVMValueRef there =
        LLVMBuildAnd(b, LLVMBuildLShr(b, plain->present, from, ""), constant_i32(unit, 1), "");
    LLVMValueRef is_there = LLVMBuildICmp(b, LLVMIntNE, there, constant_i32(unit, 0), "");
    LLVMValueRef chosen = LLVMBuildSelect(b, is_there, moved, constant_i32(unit, 0), "");
    return LLVMBuildBitCast(b, chosen, LLVMTypeOf(value), "");
}

/* Broadcasts column k of a left matrix along its rows, or row k of a right one down its columns. */
static LLVMValueRef spread_out(const struct plain *plain, LLVMValueRef value, bool along, unsigned k) {
    struct spread *s = plain->spread;
    for (int i = 0; i < s->count; i++)
        if (s->from[i] == value && s->along[i] == along) return s->to[i];
    unsigned kept = along ? METAL_ROW_BITS : METAL_PAIR_BITS;
    unsigned fixed = along ? metal_lane(0, k / 2) : metal_lane(k, 0);
    LLVMValueRef result = plain->whole ? shuffle_whole(plain->unit, value, kept, fixed)
                                       : shuffle_some(plain, value, kept, fixed);
    s->from[s->count] = value;
    s->along[s->count] = along;
    s->to[s->count++] = result;
    return result;
}

static smelt_status make_plain(struct matrices *m, struct product_group *group, bool whole) {
    struct unit *unit = m->unit;
    LLVMValueRef sums[GROUP_MOST] = {NULL};
    struct plain plain = {
        .unit = unit, .group = group, .whole = whole, .spread = malloc(sizeof *plain.spread)};
    if (!plain.spread) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
    for (int i = 0; i < group->count; i++) sums[i] = group->products[i].sum;
    for (unsigned k = 0; k < MATRIX_SIZE; k++) {
        plain.spread->count = 0;
        for (int i = 0; i < group->count; i++) {
            const struct product *p = &group->products[i];
            if (p->result) continue;
            if (!plain.whole && !plain.lane) {
                LLVMValueRef yes = LLVMConstInt(LLVMInt1TypeInContext(unit->context), 1, false);
                plain.lane =
                    matrix_call(unit, intrinsic_traits(INTRINSIC_LANE)->name, type_i32(unit), NULL, 0, false);
                plain.present = matrix_call(unit, intrinsic_traits(INTRINSIC_SIMD_BALLOT)->name,
                                            type_i32(unit), &yes, 1, true);
            }
            LLVMValueRef factors[3] = {spread_out(&plain, k % 2 ? p->odd : p->even, true, k),
                                       spread_out(&plain, p->right, false, k), sums[i]};
            sums[i] = build_intrinsic(unit, "llvm.fma", LLVMTypeOf(sums[i]), factors, 3);
        }
    }
    free(plain.spread);
    for (int i = 0; i < group->count; i++)
        if (!group->products[i].result) group->products[i].result = sums[i];
    return SMELT_OK;
}

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
    if (c->whole && !ptx_lanes_ordered(c->m.unit)) TRY(matrix_tensor_products(&c->m, &c->group));
    TRY(make_plain(&c->m, &c->group, c->whole));
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
    if (product)
        c->group.products[c->group.count++] = (struct product){.call = instruction,
                                                               .even = LLVMGetOperand(instruction, 0),
                                                               .odd = LLVMGetOperand(instruction, 1),
                                                               .right = LLVMGetOperand(instruction, 2),
                                                               .sum = LLVMGetOperand(instruction, 3)};
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
    return matrix_resolve_sums(m);
}

smelt_status pass_ptx_matrix(struct unit *unit) {
    if (!intrinsic_function(unit->module, INTRINSIC_SIMD_MATRIX_PRODUCT)) return SMELT_OK;
    struct collection *c = calloc(1, sizeof *c);
    if (!c) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
    c->m.unit = unit;
    smelt_status status = divergence_find(unit, &c->m.divergence);
    if (status == SMELT_OK) status = flow_find(unit, unit->entry, &c->m.arena, &c->m.flow);
    if (status == SMELT_OK) status = lower_products(c);
    divergence_free(&c->m.divergence);
    arena_free(&c->m.arena);
    free(c);
    return status;
}
