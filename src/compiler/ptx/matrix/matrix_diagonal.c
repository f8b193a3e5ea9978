/* Products whose left matrix is diagonal when the code runs, as where attention rescales its sums: each row
 * is multiplied with one number.
 *
 * Nothing says beforehand that a matrix is diagonal, so both ways are there. The lanes vote for the short one
 * if all other elements of the left matrix are zeros, the right ones are finite, and no result is -0: then
 * the long way's further terms, which are zeros, change no bit.
 *
 * The two ways are separate blocks. Blocks must not change while products are made; marks stand for the
 * results until all are. */
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/matrix/matrix.h"

#include <string.h>

#define MARK "smelt.diagonal"
#define FEWEST 4 /* products of one left matrix that are worth a vote */

/* Products of one left matrix; `marks` stand for their results. */
struct diagonal {
    struct diagonal *next;
    int count;
    LLVMValueRef is_diagonal; /* i1, the same in all lanes */
    struct product *products;
    LLVMValueRef *scaled, *marks;
};

static bool is_wanted(const struct product *p, const struct product *like) {
    if (p->result || (like && (p->even != like->even || p->odd != like->odd))) return false;
    if (LLVMIsAConstant(p->even) || LLVMIsAConstant(p->odd) || !LLVMIsAConstantFP(p->sum)) return false;
    LLVMTypeRef type = LLVMTypeOf(p->sum);
    return LLVMGetTypeKind(type) == LLVMFloatTypeKind && LLVMIsNull(p->sum); /* +0 */
}

/* ---- The short way, and the vote. */

static LLVMValueRef lane_bits_equal(struct unit *unit, LLVMValueRef lane, uint32_t a, uint32_t b) {
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef first = LLVMBuildAnd(builder, LLVMBuildLShr(builder, lane, constant_i32(unit, a), ""),
                                      constant_i32(unit, 1), "");
    LLVMValueRef second = LLVMBuildAnd(builder, LLVMBuildLShr(builder, lane, constant_i32(unit, b), ""),
                                       constant_i32(unit, 1), "");
    return LLVMBuildICmp(builder, LLVMIntEQ, first, second, "");
}

static LLVMValueRef is_zero(struct unit *unit, LLVMValueRef value) {
    return LLVMBuildFCmp(unit->builder, LLVMRealOEQ, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

static LLVMValueRef metal_lane_of(struct matrices *m) {
    if (!m->ordered) return matrix_lane(m);
    return matrix_call(m->unit, intrinsic_traits(INTRINSIC_LANE)->name, type_i32(m->unit), NULL, 0, false);
}

/* i1: what this lane has of the left matrix is zero beside the diagonal. *factor: its row's element there. In
 * Metal's layout bits 4 2 1 of a lane are the row, bits 3 0 the pair of columns. */
static LLVMValueRef look_at_left(struct matrices *m, const struct product *p, LLVMValueRef *factor) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef i32 = type_i32(unit), number = LLVMTypeOf(p->even);
    LLVMValueRef lane = metal_lane_of(m), one = constant_i32(unit, 1);
    LLVMValueRef odd_row = LLVMBuildAnd(b, LLVMBuildLShr(b, lane, one, ""), one, "");
    odd_row = LLVMBuildICmp(b, LLVMIntEQ, odd_row, one, "");
    LLVMValueRef on = LLVMBuildSelect(b, odd_row, p->odd, p->even, "");
    LLVMValueRef beside = LLVMBuildSelect(b, odd_row, p->even, p->odd, "");
    LLVMValueRef here =
        LLVMBuildAnd(b, lane_bits_equal(unit, lane, 4, 3), lane_bits_equal(unit, lane, 2, 0), "");
    LLVMValueRef from = LLVMBuildAnd(b, lane, constant_i32(unit, METAL_ROW_BITS), "");
    LLVMValueRef high = LLVMBuildAnd(b, LLVMBuildLShr(b, lane, one, ""), constant_i32(unit, 8), "");
    LLVMValueRef low = LLVMBuildAnd(b, LLVMBuildLShr(b, lane, constant_i32(unit, 2), ""), one, "");
    from = LLVMBuildOr(b, LLVMBuildOr(b, from, high, ""), low, "");
    from = ptx_hardware_lane(unit, from);
    static const char name[] = "llvm.nvvm.shfl.sync.idx.i32";
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(unit->module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
    LLVMValueRef arguments[4] = {constant_i32(unit, UINT32_MAX), LLVMBuildBitCast(b, on, i32, ""), from,
                                 constant_i32(unit, 31)};
    LLVMValueRef moved = LLVMBuildCall2(b, LLVMGlobalGetValueType(function), function, arguments, 4, "");
    *factor = LLVMBuildBitCast(b, moved, number, "");
    return LLVMBuildAnd(b, is_zero(unit, beside), LLVMBuildOr(b, here, is_zero(unit, on), ""), "");
}

static LLVMValueRef extreme(struct unit *unit, const char *name, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef both[2] = {a, b};
    return a ? build_intrinsic(unit, name, type_i32(unit), both, 2) : b;
}

static void multiply_rows(struct matrices *m, struct diagonal *d) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef i32 = type_i32(unit);
    LLVMValueRef factor, largest = NULL, smallest = NULL;
    LLVMValueRef good = look_at_left(m, &d->products[0], &factor);
    for (int i = 0; i < d->count; i++) {
        const struct product *p = &d->products[i];
        LLVMValueRef factors[3] = {factor, p->right, p->sum};
        d->scaled[i] = build_intrinsic(unit, "llvm.fma", LLVMTypeOf(factor), factors, 3);
        LLVMValueRef size =
            LLVMBuildAnd(b, LLVMBuildBitCast(b, p->right, i32, ""), constant_i32(unit, INT32_MAX), "");
        largest = extreme(unit, "llvm.umax", largest, size);
        smallest = extreme(unit, "llvm.smin", smallest, LLVMBuildBitCast(b, d->scaled[i], i32, ""));
    }
    LLVMValueRef finite = LLVMBuildICmp(b, LLVMIntULT, largest, constant_i32(unit, 0x7f800000), "");
    LLVMValueRef signs = LLVMBuildICmp(b, LLVMIntNE, smallest, constant_i32(unit, 1u << 31), ""); /* of -0 */
    good = LLVMBuildAnd(b, good, LLVMBuildAnd(b, finite, signs, ""), "");
    LLVMValueRef votes =
        matrix_call(unit, intrinsic_traits(INTRINSIC_SIMD_BALLOT)->name, i32, &good, 1, true);
    d->is_diagonal = LLVMBuildICmp(b, LLVMIntEQ, votes, constant_i32(unit, UINT32_MAX), "");
}

/* ---- Marks. */

static struct diagonal *add_diagonal(struct matrices *m, int count) {
    struct diagonal *d = arena_alloc(&m->arena, sizeof *d);
    if (!d) return NULL;
    *d = (struct diagonal){.next = m->diagonals, .count = count};
    d->products = arena_alloc(&m->arena, (size_t)count * sizeof *d->products);
    d->scaled = arena_alloc(&m->arena, (size_t)count * sizeof(LLVMValueRef));
    d->marks = arena_alloc(&m->arena, (size_t)count * sizeof(LLVMValueRef));
    if (!d->products || !d->scaled || !d->marks) return NULL;
    return m->diagonals = d;
}

/* It keeps its operands; nothing else is known to be used behind it. */
static LLVMValueRef mark(struct unit *unit, const struct product *p, LLVMValueRef scaled) {
    LLVMTypeRef number = LLVMTypeOf(scaled), types[4] = {number, number, number, number};
    LLVMTypeRef type = LLVMFunctionType(number, types, 4, false);
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, MARK);
    if (!function) {
        function = LLVMAddFunction(unit->module, MARK, type);
        declare_pure(unit, function);
    }
    LLVMValueRef arguments[4] = {scaled, p->even, p->odd, p->right};
    return LLVMBuildCall2(unit->builder, type, function, arguments, 4, "");
}

smelt_status matrix_mark_diagonals(struct matrices *m, struct product_group *group) {
    for (int i = 0; i < group->count; i++) {
        const struct product *first = &group->products[i];
        if (!is_wanted(first, NULL)) continue;
        int count = 0, place = 0;
        for (int k = i; k < group->count; k++) count += is_wanted(&group->products[k], first);
        if (count < FEWEST) continue;
        struct diagonal *d = add_diagonal(m, count);
        if (!d) return unit_fail(m->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
        LLVMValueRef even = first->even, odd = first->odd;
        for (int k = i; k < group->count; k++)
            if (is_wanted(&group->products[k], &(struct product){.even = even, .odd = odd}))
                d->products[place++] = group->products[k];
        multiply_rows(m, d);
        for (int k = i, n = 0; k < group->count; k++)
            if (is_wanted(&group->products[k], &(struct product){.even = even, .odd = odd})) {
                d->marks[n] = mark(m->unit, &d->products[n], d->scaled[n]);
                group->products[k].result = d->marks[n++];
            }
    }
    return SMELT_OK;
}

/* ---- The two ways. */

/* The marks' operands may have been replaced since. */
static void read_marks(struct diagonal *d) {
    for (int i = 0; i < d->count; i++) {
        d->scaled[i] = LLVMGetOperand(d->marks[i], 0);
        d->products[i].even = LLVMGetOperand(d->marks[i], 1);
        d->products[i].odd = LLVMGetOperand(d->marks[i], 2);
        d->products[i].right = LLVMGetOperand(d->marks[i], 3);
        d->products[i].result = NULL;
    }
}

static smelt_status part_ways(struct matrices *m, struct diagonal *d) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    struct product_group *group = arena_alloc(&m->arena, sizeof *group);
    if (!group) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
    read_marks(d);
    memcpy(group->products, d->products, (size_t)d->count * sizeof *d->products);
    group->count = d->count;
    LLVMBasicBlockRef before = LLVMGetInstructionParent(d->marks[0]);
    LLVMBasicBlockRef rest = flow_split_block(unit, d->marks[0]);
    LLVMBasicBlockRef full = LLVMInsertBasicBlockInContext(unit->context, rest, "");
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(before));
    LLVMPositionBuilderAtEnd(b, before);
    LLVMBuildCondBr(b, d->is_diagonal, rest, full);
    LLVMPositionBuilderAtEnd(b, full);
    TRY(matrix_make_rest(m, group, true));
    LLVMBuildBr(b, rest);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(rest));
    LLVMBasicBlockRef from[2] = {before, full};
    for (int i = 0; i < d->count; i++) {
        LLVMValueRef values[2] = {d->scaled[i], group->products[i].result};
        LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(values[0]), "");
        LLVMAddIncoming(phi, values, from, 2);
        LLVMReplaceAllUsesWith(d->marks[i], phi);
    }
    for (int i = 0; i < d->count; i++) LLVMInstructionEraseFromParent(d->marks[i]);
    return SMELT_OK;
}

smelt_status matrix_part_diagonals(struct matrices *m) {
    for (struct diagonal *d = m->diagonals; d; d = d->next) TRY(part_ways(m, d));
    return SMELT_OK;
}
