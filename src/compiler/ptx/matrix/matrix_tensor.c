/* Products on tensor cores: of half or bfloat by their own instructions; as TF32 if the code allows inexact
 * arithmetic, or if the operands lose nothing by it. If only one operand loses nothing, as in attention's
 * probabilities times halfs, each float of the other one is split in two TF32 numbers, which are multiplied
 * separately: at most 2^-22 of the float is lost, if it is at least 2^-104.
 *
 * The instruction multiplies a left matrix of 16 rows: two products with the same right matrix, or both parts
 * of a left matrix of floats. The two halves of a product, which share a left matrix, are its even and odd
 * columns. For half and bfloat, two consecutive products of a sum become one of twice the depth.
 *
 * Sums round differently from a CPU's: the cores truncate below the largest of the terms. */
#include "compiler/ptx/matrix/matrix_tensor.h"

#include <stdio.h>
#include <string.h>

#define TF32_BITS UINT32_C(0xffffe000)

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

/* The narrow kind that holds both values exactly; KIND_NONE: neither does. */
static enum kind narrow_kind(struct unit *unit, LLVMValueRef a, LLVMValueRef b) {
    for (enum kind kind = KIND_HALF; kind <= KIND_BFLOAT; kind++)
        if (narrow_of(unit, a, kind) && narrow_of(unit, b, kind)) return kind;
    return KIND_NONE;
}

static bool is_loaded(struct unit *unit, LLVMValueRef value, enum kind kind) {
    LLVMValueRef narrow = narrow_of(unit, value, kind);
    return narrow && LLVMIsALoadInst(narrow);
}

/* Of a float matrix times one of half or bfloat, in either order. A float left matrix may be the diagonal one
 * that rescales attention's sums, if the product starts at 0 (matrix_diagonal.c). */
static struct kinds mixed_kinds(struct unit *unit, const struct product *p) {
    struct kinds kinds = {narrow_kind(unit, p->even, p->odd), narrow_kind(unit, p->right, p->right)};
    bool starts = LLVMIsAConstantFP(p->sum) && LLVMIsNull(p->sum);
    if (!kinds.left == !kinds.right) return (struct kinds){KIND_NONE, KIND_NONE};
    if (!kinds.left && starts && !is_loaded(unit, p->right, kinds.right))
        return (struct kinds){KIND_NONE, KIND_NONE};
    if (!kinds.left) kinds.left = KIND_FLOAT;
    if (!kinds.right) kinds.right = KIND_FLOAT;
    return kinds;
}

static struct kinds kinds_of(struct unit *unit, const struct product *p) {
    const LLVMValueRef operands[3] = {p->even, p->odd, p->right};
    for (enum kind kind = KIND_HALF; kind <= KIND_BFLOAT; kind++) {
        bool all = true;
        for (int i = 0; i < 3; i++) all &= narrow_of(unit, operands[i], kind) != NULL;
        if (all) return (struct kinds){kind, kind};
    }
    const struct kinds inexact = {KIND_TF32, KIND_TF32};
    /* Relaxed and fast math set this flag on every operation. */
    if (LLVMGetFastMathFlags(p->call) & LLVMFastMathAllowReassoc) return inexact;
    for (int i = 0; i < 3; i++)
        if (!loses_nothing(unit, operands[i])) return mixed_kinds(unit, p);
    return inexact;
}

bool matrix_suits_tensor_cores(struct unit *unit, const struct product *p) {
    return kinds_of(unit, p).left != KIND_NONE;
}

static bool are_same(struct kinds a, struct kinds b) {
    return a.left == b.left && a.right == b.right;
}

static bool is_mixed(struct kinds kinds) {
    return kinds.left != kinds.right;
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

static LLVMValueRef rounded(struct unit *unit, LLVMValueRef value) {
    return ptx_assembly(unit, "cvt.rna.tf32.f32 $0, $1;", "=r,f", type_i32(unit), &value, 1, false);
}

/* A number for one register. A float that is split later stays as it is. */
static LLVMValueRef as_register(struct unit *unit, LLVMValueRef value, enum kind kind) {
    if (kind == KIND_FLOAT || loses_nothing(unit, value) || LLVMIsAConstant(value))
        return LLVMBuildBitCast(unit->builder, value, type_i32(unit), "");
    return rounded(unit, value);
}

/* Splits floats into their highest bits, which TF32 holds, and the rest, rounded to TF32. Where the rest
 * would be 0, an infinity or a NaN, it is the float times 2^-64: too small to change a sum, and not 0, whose
 * product with an infinity would be NaN. */
static void split(struct unit *unit, struct fragment *f) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef number = LLVMFloatTypeInContext(unit->context);
    for (int i = 0; i < 2; i++) {
        LLVMValueRef whole = LLVMBuildBitCast(b, f->registers[i], number, "");
        f->registers[i] = LLVMBuildAnd(b, f->registers[i], constant_i32(unit, TF32_BITS), "");
        LLVMValueRef rest = LLVMBuildFSub(b, whole, LLVMBuildBitCast(b, f->registers[i], number, ""), "");
        LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, rest, LLVMConstNull(number), "");
        LLVMValueRef tiny = LLVMBuildFMul(b, whole, LLVMConstReal(number, 0x1p-64), "");
        f->low[i] = rounded(unit, LLVMBuildSelect(b, inexact, rest, tiny, ""));
    }
}

/* Number `i` of the two in a register, as the bits of a float. */
static LLVMValueRef widened(struct unit *unit, const struct fragment *f, unsigned i) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef half = LLVMHalfTypeInContext(unit->context), i16 = LLVMInt16TypeInContext(unit->context);
    LLVMValueRef both = f->registers[0];
    if (f->kind == KIND_BFLOAT)
        return i ? LLVMBuildAnd(b, both, constant_i32(unit, UINT32_C(0xffff0000)), "")
                 : LLVMBuildShl(b, both, constant_i32(unit, 16), "");
    if (i) both = LLVMBuildLShr(b, both, constant_i32(unit, 16), "");
    LLVMValueRef one = LLVMBuildBitCast(b, LLVMBuildTrunc(b, both, i16, ""), half, "");
    one = LLVMBuildFPExt(b, one, LLVMFloatTypeInContext(unit->context), "");
    return LLVMBuildBitCast(b, one, type_i32(unit), "");
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
    if (f->kind >= KIND_TF32) {
        f->registers[0] = matrix_take_lanes(m, SOURCE_ROW, as_register(unit, f->first, f->kind));
        f->registers[1] = matrix_take_lanes(m, SOURCE_ROW, as_register(unit, f->second, f->kind));
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
    if (f->kind < KIND_TF32) {
        LLVMValueRef both = pack(unit, f->numbers[0], f->numbers[1]);
        if (m->ordered) {
            f->registers[0] = matrix_transposed(m, both);
            return;
        }
        LLVMValueRef even_row = matrix_take_lanes(m, SOURCE_RIGHT_EVEN, both);
        f->registers[0] = join_halves(m, even_row, matrix_take_lanes(m, SOURCE_RIGHT_ODD, both));
        return;
    }
    LLVMValueRef even = as_register(unit, f->first, f->kind), odd = as_register(unit, f->second, f->kind);
    LLVMValueRef of_odd_row = lane_bit(m, m->ordered ? ORDERED_ROW_BIT : METAL_ROW_BIT),
                 for_odd = lane_bit(m, RIGHT_COLUMN_BIT);
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
    for (int i = 0; i < 2 && kind < KIND_TF32; i++)
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
    if (f->kind == KIND_FLOAT) split(m->unit, f);
    LLVMPositionBuilderBefore(m->unit->builder, m->place);
}

/* ---- One instruction. */

/* Whether the first `count` results of `q` are the sums of `p` and are not used otherwise. */
static bool results_are_sums(const struct tensor_product *q, const struct tensor_product *p, int count) {
    for (int i = 0; i < count; i++) {
        if (!p->sums[i] && !q->results[i]) continue;
        if (q->results[i] != p->sums[i]) return false;
        LLVMUseRef use = LLVMGetFirstUse(q->results[i]);
        if (!use || LLVMGetNextUse(use)) return false;
    }
    return true;
}

/* The product of the same shape in this block whose results are this one's sums and are not used otherwise:
 * both become one. */
static struct tensor_product *product_before(struct matrices *m, const struct tensor_product *p) {
    if (p->kinds.left >= KIND_TF32 || is_mixed(p->kinds)) return NULL;
    for (struct tensor_product *q = m->products; q; q = q->next) {
        if (q->block != p->block || !are_same(q->kinds, p->kinds) || q->before || q->replaced ||
            !q->below != !p->below)
            continue;
        if (results_are_sums(q, p, 4)) return q;
    }
    return NULL;
}

/* Whether one instruction multiplies both parts of the floats, in its upper rows and its lower ones. */
static bool has_both_parts(const struct tensor_product *p) {
    return p->kinds.left == KIND_FLOAT && !p->below;
}

/* The product of both parts in this block whose results are this one's sums, and are not used otherwise. */
static struct tensor_product *sums_before(struct matrices *m, const struct tensor_product *p) {
    for (struct tensor_product *q = m->products; q && has_both_parts(p); q = q->next) {
        if (q->block != p->block || !are_same(q->kinds, p->kinds) || !has_both_parts(q)) continue;
        if (results_are_sums(q, p, 2)) return q;
    }
    return NULL;
}

/* Register `part` of an operand; `low`: of the second of a float's two parts. */
static LLVMValueRef register_of(struct unit *unit, const struct tensor_product *p, const struct fragment *f,
                                unsigned part, bool low) {
    if (!f) return constant_i32(unit, 0);
    if (is_mixed(p->kinds) && f->kind != KIND_FLOAT) return widened(unit, f, part);
    return low && f->kind == KIND_FLOAT ? f->low[part] : f->registers[part];
}

/* With operands of one depth, or with `before` of two: four registers of the left matrix's rows above, below,
 * above, below; two of the right one's. */
static LLVMValueRef multiply(struct matrices *m, const struct tensor_product *p,
                             const struct tensor_product *before, LLVMValueRef *sums, bool low) {
    struct unit *unit = m->unit;
    LLVMTypeRef number = LLVMFloatTypeInContext(unit->context), four[4] = {number, number, number, number};
    const struct tensor_product *steps[2] = {before ? before : p, p};
    LLVMValueRef arguments[10];
    enum kind kind = is_mixed(p->kinds) ? KIND_TF32 : p->kinds.left;
    unsigned depth = kind == KIND_TF32 || before ? 2 : 1;
    for (unsigned d = 0; d < depth; d++) {
        const struct tensor_product *step = steps[before ? d : 0];
        unsigned part = before ? 0 : d;
        arguments[2 * d] = register_of(unit, p, step->above, part, low);
        arguments[2 * d + 1] = has_both_parts(p) ? register_of(unit, p, step->above, part, true)
                                                 : register_of(unit, p, step->below, part, low);
        arguments[2 * depth + d] = register_of(unit, p, step->right, part, low);
    }
    for (unsigned i = 0; i < 4; i++) arguments[3 * depth + i] = sums[i];
    static const char *const names[] = {
        [KIND_HALF] = "f16.f16", [KIND_BFLOAT] = "bf16.bf16", [KIND_TF32] = "tf32.tf32"};
    char text[160];
    snprintf(text, sizeof text, "mma.sync.aligned.m16n8k%d.row.col.f32.%s.f32 %s;",
             kind != KIND_TF32 && before ? 16 : 8, names[kind],
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
static smelt_status plan_one(struct matrices *m, struct product *products[4], struct kinds kinds,
                             struct tensor_product **out) {
    struct tensor_product *p = *out = arena_alloc(&m->arena, sizeof *p);
    if (!p) return no_memory(m);
    LLVMValueRef none = LLVMGetUndef(LLVMFloatTypeInContext(m->unit->context));
    LLVMValueRef odd_columns = products[1] ? products[1]->right : none;
    *p = (struct tensor_product){.block = m->block, .kinds = kinds};
    memcpy(p->products, products, sizeof p->products);
    p->above = fragment_of(m, products[0]->even, products[0]->odd, kinds.left, false);
    p->below = products[2] ? fragment_of(m, products[2]->even, products[2]->odd, kinds.left, false) : NULL;
    p->right = fragment_of(m, products[0]->right, odd_columns, kinds.right, true);
    for (int i = 0; i < 4; i++) p->sums[i] = products[i] ? products[i]->sum : NULL;
    return m->arena.failed ? no_memory(m) : SMELT_OK;
}

static void make_one(struct matrices *m, struct tensor_product *p) {
    struct unit *unit = m->unit;
    LLVMValueRef sums[4], zero = LLVMConstNull(LLVMFloatTypeInContext(unit->context));
    make_fragment(m, p->above);
    if (p->below) make_fragment(m, p->below);
    make_fragment(m, p->right);
    struct tensor_product *before = product_before(m, p), *start = sums_before(m, p);
    for (int i = 0; i < 4; i++) {
        if (before) p->sums[i] = before->sums[i];
        sums[i] = p->sums[i] ? matrix_mark_to_tensor(m, p->sums[i]) : zero;
        if (start) sums[i] = LLVMBuildExtractValue(unit->builder, start->call, (unsigned)i, "");
    }
    if (start) start->continued = true;
    if (is_mixed(p->kinds) && !has_both_parts(p)) {
        LLVMValueRef of_low = multiply(m, p, NULL, sums, true);
        for (unsigned i = 0; i < 4; i++) sums[i] = LLVMBuildExtractValue(unit->builder, of_low, i, "");
    }
    LLVMValueRef call = multiply(m, p, before, sums, false);
    p->call = call;
    p->before = before;
    if (before) before->replaced = true;
    for (unsigned i = 0; i < 4; i++) {
        if (!p->products[i]) continue;
        LLVMValueRef result = LLVMBuildExtractValue(unit->builder, call, i, "");
        if (has_both_parts(p))
            result = LLVMBuildFAdd(unit->builder, result,
                                   LLVMBuildExtractValue(unit->builder, call, i + 2, ""), "");
        p->results[i] = matrix_mark_from_tensor(m, result);
        p->products[i]->result = p->results[i];
    }
    p->next = m->products;
    m->products = p;
}

/* ---- Grouping of products. */

/* The two halves of one product, which share a left matrix; or one alone. */
struct square {
    struct product *even, *odd;
    struct kinds kinds;
};

static int find_squares(struct unit *unit, struct product_group *group, struct square *squares) {
    int count = 0;
    for (int i = 0; i < group->count; i++) {
        struct product *p = &group->products[i];
        struct kinds kinds = kinds_of(unit, p);
        if (kinds.left == KIND_NONE) continue;
        int s = 0;
        while (s < count && (squares[s].odd || !are_same(squares[s].kinds, kinds) ||
                             squares[s].even->even != p->even || squares[s].even->odd != p->odd))
            s++;
        if (s < count)
            squares[s].odd = p;
        else
            squares[count++] = (struct square){p, NULL, kinds};
    }
    return count;
}

static bool share_right(const struct square *a, const struct square *b) {
    return are_same(a->kinds, b->kinds) && a->even->right == b->even->right && !a->odd == !b->odd &&
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
        TRY(plan_one(m, four, squares[i].kinds, &plans[(*plan_count)++]));
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
        if (f->kind < KIND_TF32) wanted[wanted_count++] = f;
    TRY(matrix_place_fragments(m, wanted, wanted_count));
    LLVMPositionBuilderBefore(m->unit->builder, m->place);
    for (int i = 0; i < plan_count; i++) make_one(m, plans[i]);
    return SMELT_OK;
}

/* They are unused: their only user was the product that replaces this one, or that continues its sums. */
static void remove_results(struct tensor_product *p) {
    for (int i = 0; i < 4; i++) {
        if (!p->results[i]) continue;
        LLVMValueRef part = LLVMGetOperand(p->results[i], 0);
        LLVMInstructionEraseFromParent(p->results[i]);
        LLVMInstructionEraseFromParent(part);
        p->results[i] = NULL;
    }
    if (p->replaced) LLVMInstructionEraseFromParent(p->call);
}

/* The operands of one instruction are in adjacent registers, and are loaded so if possible. */
void matrix_load_operands(struct matrices *m) {
    struct tensor_product *other = NULL;
    for (struct tensor_product *p = m->products; p; p = p->next)
        if (p->replaced || p->continued) remove_results(p);
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
