/* Products on tensor cores: of half or bfloat by their own instructions; as TF32 if the code allows inexact
 * arithmetic, or if the operands lose nothing by it.
 *
 * The instruction multiplies a left matrix of 16 rows: two products with the same right matrix. The two
 * halves of a product, which share a left matrix, are its even and odd columns. For half and bfloat, two
 * consecutive products of a sum become one of twice the depth.
 *
 * Sums round differently from a CPU's: the cores truncate below the largest of the terms. */
#include "compiler/ptx/matrix_tensor.h"

#include <stdio.h>
#include <string.h>

/* One instruction, of up to four calls: rows above with even and odd columns, rows below. */
struct tensor_product {
    struct tensor_product *next;
    LLVMBasicBlockRef block;
    enum kind kind;
    struct fragment *above, *below, *right; /* below may be NULL: zeros */
    struct product *products[4];            /* during planning; NULL: none */
    LLVMValueRef sums[4], results[4];       /* results NULL: not used */
    struct tensor_product *before;          /* the product that it includes: it has twice the depth */
    bool replaced;                          /* by one of twice the depth */
    LLVMValueRef call;
};

/* ---- The kind of an operand's numbers. */

/* The half, or the 16 bits of a bfloat, that is exactly this float; NULL: there may be none. */
static LLVMValueRef narrow_constant(struct unit *unit, LLVMValueRef value, enum kind kind) {
    LLVMBool inexact;
    double number = LLVMConstRealGetDouble(value, &inexact);
    if (kind == KIND_HALF) {
        LLVMValueRef half = LLVMConstReal(LLVMHalfTypeInContext(unit->context), number);
        return LLVMConstRealGetDouble(half, &inexact) == number ? half : NULL;
    }
    float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits & 0xffff ? NULL : LLVMConstInt(LLVMInt16TypeInContext(unit->context), bits >> 16, false);
}

static LLVMValueRef narrow_of(struct unit *unit, LLVMValueRef value, enum kind kind) {
    LLVMTypeRef i16 = LLVMInt16TypeInContext(unit->context), half = LLVMHalfTypeInContext(unit->context);
    uint64_t by;
    if (LLVMIsUndef(value)) return LLVMConstNull(kind == KIND_HALF ? half : i16);
    if (LLVMIsAConstantFP(value)) return narrow_constant(unit, value, kind);
    if (!LLVMIsAInstruction(value)) return NULL;
    LLVMValueRef from = LLVMGetNumOperands(value) ? LLVMGetOperand(value, 0) : NULL;
    if (kind == KIND_HALF) return LLVMIsAFPExtInst(value) && LLVMTypeOf(from) == half ? from : NULL;
    /* bfloat.c */
    if (!LLVMIsABitCastInst(value) || !LLVMIsAInstruction(from)) return NULL;
    if (LLVMGetInstructionOpcode(from) != LLVMShl) return NULL;
    if (!is_constant_integer(LLVMGetOperand(from, 1), &by) || by != 16) return NULL;
    LLVMValueRef bits = LLVMGetOperand(from, 0);
    if (!LLVMIsAZExtInst(bits)) return NULL;
    return LLVMTypeOf(LLVMGetOperand(bits, 0)) == i16 ? LLVMGetOperand(bits, 0) : NULL;
}

static bool loses_nothing(struct unit *unit, LLVMValueRef value) {
    return narrow_of(unit, value, KIND_HALF) || narrow_of(unit, value, KIND_BFLOAT);
}

static enum kind kind_of(struct unit *unit, const struct product *p) {
    const LLVMValueRef operands[3] = {p->even, p->odd, p->right};
    for (enum kind kind = KIND_HALF; kind <= KIND_BFLOAT; kind++) {
        bool all = true;
        for (int i = 0; i < 3; i++) all &= narrow_of(unit, operands[i], kind) != NULL;
        if (all) return kind;
    }
    /* Relaxed and fast math set this flag on every operation. */
    if (LLVMGetFastMathFlags(p->call) & LLVMFastMathAllowReassoc) return KIND_TF32;
    for (int i = 0; i < 3; i++)
        if (!loses_nothing(unit, operands[i])) return KIND_NONE;
    return KIND_TF32;
}

/* ---- Fragments. */

/* Two numbers in one register. */
static LLVMValueRef pack(struct unit *unit, LLVMValueRef low, LLVMValueRef high) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef pair = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(low), 2));
    pair = LLVMBuildInsertElement(b, pair, low, constant_i32(unit, 0), "");
    pair = LLVMBuildInsertElement(b, pair, high, constant_i32(unit, 1), "");
    return LLVMBuildBitCast(b, pair, type_i32(unit), "");
}

static LLVMValueRef as_tf32(struct unit *unit, LLVMValueRef value) {
    LLVMBuilderRef b = unit->builder;
    if (loses_nothing(unit, value) || LLVMIsAConstant(value))
        return LLVMBuildBitCast(b, value, type_i32(unit), "");
    return ptx_assembly(unit, "cvt.rna.tf32.f32 $0, $1;", "=r,f", type_i32(unit), &value, 1, false);
}

static LLVMValueRef lane_bit(struct matrices *m, unsigned bit) {
    LLVMBuilderRef b = m->unit->builder;
    LLVMValueRef set = LLVMBuildAnd(b, matrix_lane(m), constant_i32(m->unit, 1u << bit), "");
    return LLVMBuildICmp(b, LLVMIntNE, set, constant_i32(m->unit, 0), "");
}

/* From each of two registers, the half that holds this lane's column. */
static LLVMValueRef join_halves(struct matrices *m, LLVMValueRef even_row, LLVMValueRef odd_row) {
    static const char name[] = "llvm.nvvm.prmt";
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(unit->module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
    LLVMValueRef halves = LLVMBuildSelect(b, lane_bit(m, RIGHT_COLUMN_BIT), constant_i32(unit, 0x7632),
                                          constant_i32(unit, 0x5410), "");
    LLVMValueRef arguments[3] = {even_row, odd_row, halves};
    return LLVMBuildCall2(b, LLVMGlobalGetValueType(function), function, arguments, 3, "");
}

static void make_left(struct matrices *m, struct fragment *f) {
    struct unit *unit = m->unit;
    if (f->kind == KIND_TF32) {
        f->registers[0] = matrix_take_lanes(m, SOURCE_ROW, as_tf32(unit, f->first));
        f->registers[1] = matrix_take_lanes(m, SOURCE_ROW, as_tf32(unit, f->second));
    } else {
        LLVMValueRef both = pack(unit, f->numbers[0], f->numbers[1]);
        f->registers[0] = matrix_take_lanes(m, SOURCE_ROW, both);
    }
}

/* A column of pairs of rows, from lanes with a row's pairs of columns. TF32 takes two moves for two numbers:
 * in the first, a lane of an even column gets its even row's number, and one of an odd column its odd row's.
 * The sending lanes derive this from their row. */
static void make_right(struct matrices *m, struct fragment *f) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    if (f->kind != KIND_TF32) {
        LLVMValueRef both = pack(unit, f->numbers[0], f->numbers[1]);
        LLVMValueRef even_row = matrix_take_lanes(m, SOURCE_RIGHT_EVEN, both);
        f->registers[0] = join_halves(m, even_row, matrix_take_lanes(m, SOURCE_RIGHT_ODD, both));
        return;
    }
    LLVMValueRef even = as_tf32(unit, f->first), odd = as_tf32(unit, f->second);
    LLVMValueRef of_odd_row = lane_bit(m, METAL_ROW_BIT), for_odd = lane_bit(m, RIGHT_COLUMN_BIT);
    LLVMValueRef first =
        matrix_take_lanes(m, SOURCE_RIGHT_SAME, LLVMBuildSelect(b, of_odd_row, odd, even, ""));
    LLVMValueRef second =
        matrix_take_lanes(m, SOURCE_RIGHT_OTHER, LLVMBuildSelect(b, of_odd_row, even, odd, ""));
    f->registers[0] = LLVMBuildSelect(b, for_odd, second, first, "");
    f->registers[1] = LLVMBuildSelect(b, for_odd, first, second, "");
}

/* The last block in which one of the two is computed; NULL: they are constants. */
static LLVMBasicBlockRef block_of_operands(const struct matrices *m, LLVMValueRef first,
                                           LLVMValueRef second) {
    const LLVMValueRef both[2] = {first, second};
    LLVMBasicBlockRef last = NULL;
    for (int i = 0; i < 2; i++) {
        if (!LLVMIsAInstruction(both[i])) continue;
        LLVMBasicBlockRef block = LLVMGetInstructionParent(both[i]);
        const struct flow *flow = &m->flow;
        if (!last || flow_dominates(flow, flow_index(flow, last), flow_index(flow, block))) last = block;
    }
    return last;
}

/* Finds it, or adds it without registers. It is built once; for operands from another block, at the end of
 * that block, so that loop-invariant operands are not moved in each round. */
static struct fragment *fragment_of(struct matrices *m, LLVMValueRef first, LLVMValueRef second,
                                    enum kind kind, bool right) {
    const struct flow *flow = &m->flow;
    int here = flow_index(flow, m->block);
    for (struct fragment *f = m->fragments; f; f = f->next)
        if (f->first == first && f->second == second && f->kind == kind && f->right == right &&
            flow_dominates(flow, flow_index(flow, f->block), here))
            return f;
    struct fragment *f = arena_alloc(&m->arena, sizeof *f);
    if (!f) return NULL;
    LLVMBasicBlockRef home = block_of_operands(m, first, second);
    if (!home || !matrix_is_together(m, home)) home = m->block;
    *f = (struct fragment){
        .next = m->fragments, .first = first, .second = second, .kind = kind, .right = right, .block = home};
    for (int i = 0; i < 2 && kind != KIND_TF32; i++)
        f->numbers[i] = narrow_of(m->unit, i ? second : first, kind);
    m->fragments = f;
    return f;
}

static void make_fragment(struct matrices *m, struct fragment *f) {
    if (f->registers[0]) return;
    if (f->block != m->block)
        LLVMPositionBuilderBefore(m->unit->builder, LLVMGetBasicBlockTerminator(f->block));
    if (f->right)
        make_right(m, f);
    else
        make_left(m, f);
    LLVMPositionBuilderBefore(m->unit->builder, m->place);
}

/* ---- One instruction. */

/* The product of the same shape in this block whose results are this one's sums and are not used otherwise:
 * both become one. */
static struct tensor_product *product_before(struct matrices *m, const struct tensor_product *p) {
    if (p->kind == KIND_TF32) return NULL;
    for (struct tensor_product *q = m->products; q; q = q->next) {
        if (q->block != p->block || q->kind != p->kind || q->before || q->replaced || !q->below != !p->below)
            continue;
        bool same = true;
        for (int i = 0; i < 4 && same; i++) {
            if (!p->sums[i] || !q->results[i]) {
                same = !p->sums[i] && !q->results[i];
                continue;
            }
            LLVMUseRef use = LLVMGetFirstUse(q->results[i]);
            same = q->results[i] == p->sums[i] && use && !LLVMGetNextUse(use);
        }
        if (same) return q;
    }
    return NULL;
}

/* With operands of one depth, or with `before` of two: four registers of the left matrix's rows above, below,
 * above, below; two of the right one's. */
static LLVMValueRef multiply(struct matrices *m, const struct tensor_product *p,
                             const struct tensor_product *before, LLVMValueRef *sums) {
    struct unit *unit = m->unit;
    LLVMTypeRef number = LLVMFloatTypeInContext(unit->context), four[4] = {number, number, number, number};
    const struct tensor_product *steps[2] = {before ? before : p, p};
    LLVMValueRef zero = constant_i32(unit, 0), arguments[10];
    unsigned depth = p->kind == KIND_TF32 || before ? 2 : 1;
    for (unsigned d = 0; d < depth; d++) {
        unsigned step = before ? d : 0, part = before ? 0 : d;
        arguments[2 * d] = steps[step]->above->registers[part];
        arguments[2 * d + 1] = steps[step]->below ? steps[step]->below->registers[part] : zero;
        arguments[2 * depth + d] = steps[step]->right->registers[part];
    }
    for (unsigned i = 0; i < 4; i++) arguments[3 * depth + i] = sums[i];
    static const char *const names[] = {
        [KIND_HALF] = "f16.f16", [KIND_BFLOAT] = "bf16.bf16", [KIND_TF32] = "tf32.tf32"};
    char text[160];
    snprintf(text, sizeof text, "mma.sync.aligned.m16n8k%d.row.col.f32.%s.f32 %s;",
             p->kind != KIND_TF32 && before ? 16 : 8, names[p->kind],
             depth == 2 ? "{$0,$1,$2,$3}, {$4,$5,$6,$7}, {$8,$9}, {$10,$11,$12,$13}"
                        : "{$0,$1,$2,$3}, {$4,$5}, {$6}, {$7,$8,$9,$10}");
    LLVMValueRef call =
        ptx_assembly(unit, text, depth == 2 ? "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f" : "=f,=f,=f,=f,r,r,r,f,f,f,f",
                     LLVMStructTypeInContext(unit->context, four, 4, false), arguments, 3 * depth + 4, false);
    matrix_set_together(unit, call, MEMORY_NONE);
    return call;
}

static smelt_status no_memory(struct matrices *m) {
    return unit_fail(m->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
}

/* products[i] NULL: none. */
static smelt_status plan_one(struct matrices *m, struct product *products[4], enum kind kind,
                             struct tensor_product **out) {
    struct tensor_product *p = *out = arena_alloc(&m->arena, sizeof *p);
    if (!p) return no_memory(m);
    LLVMValueRef none = LLVMGetUndef(LLVMFloatTypeInContext(m->unit->context));
    LLVMValueRef odd_columns = products[1] ? products[1]->right : none;
    *p = (struct tensor_product){.block = m->block, .kind = kind};
    memcpy(p->products, products, sizeof p->products);
    p->above = fragment_of(m, products[0]->even, products[0]->odd, kind, false);
    p->below = products[2] ? fragment_of(m, products[2]->even, products[2]->odd, kind, false) : NULL;
    p->right = fragment_of(m, products[0]->right, odd_columns, kind, true);
    for (int i = 0; i < 4; i++) p->sums[i] = products[i] ? products[i]->sum : NULL;
    return m->arena.failed ? no_memory(m) : SMELT_OK;
}

static void make_one(struct matrices *m, struct tensor_product *p) {
    struct unit *unit = m->unit;
    LLVMValueRef sums[4], zero = LLVMConstNull(LLVMFloatTypeInContext(unit->context));
    make_fragment(m, p->above);
    if (p->below) make_fragment(m, p->below);
    make_fragment(m, p->right);
    struct tensor_product *before = product_before(m, p);
    for (int i = 0; i < 4; i++) {
        if (before) p->sums[i] = before->sums[i];
        sums[i] = p->sums[i] ? matrix_mark_to_tensor(m, p->sums[i]) : zero;
    }
    LLVMValueRef call = multiply(m, p, before, sums);
    p->call = call;
    p->before = before;
    if (before) before->replaced = true;
    for (unsigned i = 0; i < 4; i++) {
        if (!p->products[i]) continue;
        p->results[i] = matrix_mark_from_tensor(m, LLVMBuildExtractValue(unit->builder, call, i, ""));
        p->products[i]->result = p->results[i];
    }
    p->next = m->products;
    m->products = p;
}

/* ---- Grouping of products. */

/* The two halves of one product, which share a left matrix; or one alone. */
struct square {
    struct product *even, *odd;
    enum kind kind;
};

static int find_squares(struct unit *unit, struct product_group *group, struct square *squares) {
    int count = 0;
    for (int i = 0; i < group->count; i++) {
        struct product *p = &group->products[i];
        enum kind kind = kind_of(unit, p);
        if (kind == KIND_NONE) continue;
        int s = 0;
        while (s < count && (squares[s].odd || squares[s].kind != kind || squares[s].even->even != p->even ||
                             squares[s].even->odd != p->odd))
            s++;
        if (s < count)
            squares[s].odd = p;
        else
            squares[count++] = (struct square){p, NULL, kind};
    }
    return count;
}

static bool share_right(const struct square *a, const struct square *b) {
    return a->kind == b->kind && a->even->right == b->even->right && !a->odd == !b->odd &&
           (!a->odd || a->odd->right == b->odd->right);
}

static smelt_status plan_products(struct matrices *m, struct product_group *group,
                                  struct tensor_product **plans, int *plan_count) {
    struct square squares[GROUP_MOST];
    bool done[GROUP_MOST] = {false};
    int count = find_squares(m->unit, group, squares);
    for (int i = 0; i < count; i++) {
        if (done[i]) continue;
        int below = i + 1;
        while (below < count && (done[below] || !share_right(&squares[i], &squares[below]))) below++;
        struct product *four[4] = {squares[i].even, squares[i].odd, NULL, NULL};
        if (below < count) {
            done[below] = true;
            four[2] = squares[below].even;
            four[3] = squares[below].odd;
        }
        TRY(plan_one(m, four, squares[i].kind, &plans[(*plan_count)++]));
    }
    return SMELT_OK;
}

smelt_status matrix_tensor_products(struct matrices *m, struct product_group *group) {
    struct tensor_product *plans[GROUP_MOST];
    struct fragment *wanted[3 * GROUP_MOST];
    int plan_count = 0, wanted_count = 0;
    struct fragment *known = m->fragments;
    TRY(plan_products(m, group, plans, &plan_count));
    for (struct fragment *f = m->fragments; f != known; f = f->next)
        if (f->kind != KIND_TF32) wanted[wanted_count++] = f;
    TRY(matrix_place_fragments(m, wanted, wanted_count));
    LLVMPositionBuilderBefore(m->unit->builder, m->place);
    for (int i = 0; i < plan_count; i++) make_one(m, plans[i]);
    return SMELT_OK;
}

/* Its results are unused: its one user was the product that replaces it. */
static void remove_replaced(struct tensor_product *p) {
    for (int i = 0; i < 4; i++) {
        if (!p->results[i]) continue;
        LLVMValueRef part = LLVMGetOperand(p->results[i], 0);
        LLVMInstructionEraseFromParent(p->results[i]);
        LLVMInstructionEraseFromParent(part);
        p->results[i] = NULL;
    }
    LLVMInstructionEraseFromParent(p->call);
}

/* The operands of one instruction are in adjacent registers, and are loaded so if possible. */
void matrix_load_operands(struct matrices *m) {
    struct tensor_product *other = NULL;
    for (struct tensor_product *p = m->products; p; p = p->next)
        if (p->replaced) remove_replaced(p);
    for (struct tensor_product *p = m->products; p; p = p->next) {
        if (!p->before) continue;
        struct fragment *left[4] = {p->before->above, p->before->below, p->above, p->below};
        struct fragment *rows[2] = {p->before->above, p->above};
        if (p->below)
            (void)matrix_load_together(m, left, 4);
        else
            (void)matrix_load_together(m, rows, 2);
        if (!other || other->block != p->block || other->right == p->right) {
            other = p;
            continue;
        }
        struct fragment *right[4] = {p->before->right, p->right, other->before->right, other->right};
        if (matrix_load_together(m, right, 4)) other = NULL;
    }
    for (struct tensor_product *p = m->products; p; p = p->next) {
        if (!p->before) continue;
        struct fragment *right[2] = {p->before->right, p->right};
        (void)matrix_load_together(m, right, 2);
    }
    matrix_load_rest(m);
}
