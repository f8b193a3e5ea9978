/* Positions of the threads whose work one thread of the hardware does. Its number in the block and the
 * block's in the grid give the first one's position in the grid; the others follow in one dimension. Groups
 * are not blocks: a thread's group, and its place there, follow from its position in the grid. */
#include "abi/cuda_parameters.h"
#include "compiler/ptx/coarsen/coarse.h"

#include <stddef.h>

static LLVMValueRef number(struct coarsening *c, uint32_t value) {
    return constant_i32(c->unit, value);
}

static LLVMValueRef plus(struct coarsening *c, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildNUWAdd(c->unit->builder, a, b, "");
}

static LLVMValueRef scaled(struct coarsening *c, LLVMValueRef value, uint32_t factor) {
    return factor == 1 ? value : LLVMBuildNUWMul(c->unit->builder, value, number(c, factor), "");
}

static bool is_one(LLVMValueRef value) {
    uint64_t constant;
    return is_constant_integer(value, &constant) && constant == 1;
}

static LLVMValueRef quotient(struct coarsening *c, LLVMValueRef a, LLVMValueRef b) {
    return is_one(b) ? a : LLVMBuildUDiv(c->unit->builder, a, b, "");
}

static LLVMValueRef remainder_of(struct coarsening *c, LLVMValueRef a, LLVMValueRef b) {
    return is_one(b) ? number(c, 0) : LLVMBuildURem(c->unit->builder, a, b, "");
}

void coarse_begin(struct coarsening *c) {
    static const char *const blocks[] = {"ctaid.x", "ctaid.y", "ctaid.z"};
    struct unit *unit = c->unit;
    const struct code_shape *shape = &unit->request->shape;
    const struct coarse_form *form = &c->form;
    LLVMValueRef rest = ptx_register(unit, "tid.x");
    for (size_t d = 0; d < 3; d++) {
        bool last = d == 2 || (form->block[2] == 1 && (d == 1 || form->block[1] == 1));
        LLVMValueRef width = number(c, form->block[d]);
        LLVMValueRef own = last ? rest : remainder_of(c, rest, width);
        rest = last ? number(c, 0) : quotient(c, rest, width);
        bool line = shape->coarse & COARSE_LINE && d > 0;
        LLVMValueRef block = line ? number(c, 0) : ptx_register(unit, blocks[d]);
        if ((int)d == form->dimension) {
            c->tile = scaled(c, block, form->block[d] * coarse_threads(form));
            c->own = own;
        } else {
            c->first[d] = plus(c, scaled(c, block, form->block[d]), own);
        }
        c->grid[d] = ptx_parameter(unit, type_i32(unit), offsetof(struct cuda_parameters, grid) + 4 * d);
        c->size[d] = shape->size[d] ? number(c, shape->size[d])
                                    : ptx_parameter(unit, type_i32(unit),
                                                    offsetof(struct cuda_parameters, group_size) + 4 * d);
    }
}

/* The position in the grid of thread number `t`. */
static LLVMValueRef place(struct coarsening *c, int d, LLVMValueRef t) {
    const struct coarse_form *form = &c->form;
    LLVMBuilderRef b = c->unit->builder;
    if (d != form->dimension) return c->first[d];
    LLVMValueRef begin = c->first[d];
    if (form->rounds > 1) {
        LLVMValueRef round = quotient(c, t, number(c, form->threads));
        begin = plus(c, begin, scaled(c, round, form->block[d] * form->threads));
        t = remainder_of(c, t, number(c, form->threads));
    }
    return plus(c, begin, LLVMBuildNUWMul(b, t, c->step, ""));
}

static void find_groups(struct coarsening *c, bool neighbours) {
    int d = c->form.dimension;
    uint32_t size = c->unit->request->shape.size[d];
    c->one_group = neighbours && size && size % c->form.threads == 0;
    for (uint32_t r = 0; c->one_group && r < c->form.rounds; r++) {
        LLVMValueRef first = place(c, d, number(c, r * c->form.threads));
        c->begin_group[r] = quotient(c, first, c->size[d]);
        c->within[r] = remainder_of(c, first, c->size[d]);
    }
}

void coarse_start(struct coarsening *c, bool neighbours) {
    int d = c->form.dimension;
    c->first[d] = plus(c, c->tile, neighbours ? scaled(c, c->own, c->form.threads) : c->own);
    c->step = number(c, neighbours ? 1 : c->form.block[d]);
    find_groups(c, neighbours);
}

void coarse_start_at_tile(struct coarsening *c) {
    c->first[c->form.dimension] = c->tile;
    c->step = number(c, 1);
    find_groups(c, true);
}

static LLVMValueRef inside(struct coarsening *c, LLVMValueRef t) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMValueRef all = NULL;
    for (int d = 0; d < 3; d++) {
        if (c->unit->request->shape.coarse & COARSE_LINE && d > 0) break;
        LLVMValueRef one = LLVMBuildICmp(b, LLVMIntULT, place(c, d, t), c->grid[d], "");
        all = all ? LLVMBuildAnd(b, all, one, "") : one;
    }
    return all;
}

LLVMValueRef coarse_all_inside(struct coarsening *c) {
    return inside(c, number(c, coarse_threads(&c->form) - 1));
}

LLVMValueRef coarse_one_inside(struct coarsening *c, LLVMValueRef t) {
    return inside(c, t);
}

/* `t` is a constant if a round's threads lie in one group. */
static uint64_t round_of(const struct coarsening *c, LLVMValueRef t) {
    return LLVMConstIntGetZExtValue(t) / c->form.threads;
}

static LLVMValueRef group(struct coarsening *c, int d, LLVMValueRef t) {
    if (d == c->form.dimension && c->one_group) return c->begin_group[round_of(c, t)];
    return quotient(c, place(c, d, t), c->size[d]);
}

static LLVMValueRef within(struct coarsening *c, int d, LLVMValueRef t) {
    if (d == c->form.dimension && c->one_group)
        return plus(c, c->within[round_of(c, t)], remainder_of(c, t, number(c, c->form.threads)));
    return remainder_of(c, place(c, d, t), c->size[d]);
}

/* Groups at the grid's edge have fewer threads. */
static LLVMValueRef own_size(struct coarsening *c, int d, LLVMValueRef t) {
    LLVMBuilderRef b = c->unit->builder;
    const struct code_shape *shape = &c->unit->request->shape;
    if (!shape->masked || shape->size[d] == 1) return c->size[d];
    LLVMValueRef before = LLVMBuildMul(b, group(c, d, t), c->size[d], "");
    LLVMValueRef left = LLVMBuildSub(b, c->grid[d], before, "");
    LLVMValueRef full = LLVMBuildICmp(b, LLVMIntUGE, left, c->size[d], "");
    return LLVMBuildSelect(b, full, c->size[d], left, "");
}

static LLVMValueRef index_in_group(struct coarsening *c, LLVMValueRef t) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMValueRef index = within(c, 2, t);
    for (int d = 1; d >= 0; d--) {
        LLVMValueRef rows = LLVMBuildMul(b, index, own_size(c, d, t), "");
        index = LLVMBuildAdd(b, rows, within(c, d, t), "");
    }
    return index;
}

static LLVMValueRef threads_of_group(struct coarsening *c, LLVMValueRef t) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMValueRef rows = LLVMBuildMul(b, own_size(c, 0, t), own_size(c, 1, t), "");
    return LLVMBuildMul(b, rows, own_size(c, 2, t), "");
}

LLVMValueRef coarse_position(struct coarsening *c, LLVMValueRef call, LLVMValueRef t) {
    LLVMBuilderRef b = c->unit->builder;
    uint64_t d = 0;
    if (LLVMGetNumArgOperands(call) == 1 && (!is_constant_integer(LLVMGetOperand(call, 0), &d) || d > 2))
        return NULL;
    switch (intrinsic_of(call)) {
    case INTRINSIC_THREAD_POSITION:
        return place(c, (int)d, t);
    case INTRINSIC_THREADGROUP_POSITION:
        return group(c, (int)d, t);
    case INTRINSIC_POSITION_IN_THREADGROUP:
        return within(c, (int)d, t);
    case INTRINSIC_THREADGROUP_SIZE:
        return own_size(c, (int)d, t);
    case INTRINSIC_THREAD_INDEX:
        return index_in_group(c, t);
    case INTRINSIC_LANE:
        return LLVMBuildAnd(b, index_in_group(c, t), number(c, 31), "");
    case INTRINSIC_SIMDGROUP:
        return LLVMBuildLShr(b, index_in_group(c, t), number(c, 5), "");
    case INTRINSIC_SIMDGROUP_COUNT:
        return LLVMBuildLShr(b, LLVMBuildAdd(b, threads_of_group(c, t), number(c, 31), ""), number(c, 5), "");
    default:
        return NULL;
    }
}
