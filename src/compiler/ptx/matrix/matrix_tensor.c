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

static bool are_same(struct kinds a, struct kinds b) {
    return a.left == b.left && a.right == b.right;
}

static bool is_mixed(struct kinds kinds) {
    return kinds.left != kinds.right;
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
    if (is_mixed(p->kinds) && f->kind != KIND_FLOAT) return matrix_widened(unit, f, part);
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
    p->above = matrix_fragment_of(m, products[0]->even, products[0]->odd, kinds.left, false);
    p->below =
        products[2] ? matrix_fragment_of(m, products[2]->even, products[2]->odd, kinds.left, false) : NULL;
    p->right = matrix_fragment_of(m, products[0]->right, odd_columns, kinds.right, true);
    for (int i = 0; i < 4; i++) p->sums[i] = products[i] ? products[i]->sum : NULL;
    return m->arena.failed ? no_memory(m) : SMELT_OK;
}

static void make_one(struct matrices *m, struct tensor_product *p) {
    struct unit *unit = m->unit;
    LLVMValueRef sums[4], zero = LLVMConstNull(LLVMFloatTypeInContext(unit->context));
    matrix_make_fragment(m, p->above);
    if (p->below) matrix_make_fragment(m, p->below);
    matrix_make_fragment(m, p->right);
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
        struct kinds kinds = matrix_kinds_of(unit, p);
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
