/* The plain form of products of matrices: shuffles and fused multiply-adds, with the same bits as on the CPU
 * engines.
 *
 * The sums stay in place. For each k, in order, the left matrix's column k, broadcast along the rows, is
 * multiplied with the right one's row k, broadcast down the columns. Products that share a matrix share its
 * broadcasts. To keep few of them live, independent products are computed together, k by k. Elements of
 * missing or inactive lanes count as 0. */
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/matrix/matrix.h"

#include <stdlib.h>

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

smelt_status matrix_make_plain(struct matrices *m, struct product_group *group, bool whole) {
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
