/* Loops that multiply matrices in device memory run four rounds at once, so that a lane can load the operands
 * of four steps 16 bytes at a time (matrix_wide.c). The remaining rounds run one by one. */
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/memory/guarded.h"
#include "compiler/ptx/matrix/matrix_address.h"
#include "compiler/ptx/coarsen/rounds.h"

#define STEPS 4
#define REGISTERS 65536 /* of a multiprocessor */
#define MOST_REGISTERS 255
#define OTHERS 40 /* registers for addresses and counters */
#define WIDE_BYTES 16
#define DEPTH 8       /* of the expression of a loop's condition, at most */
#define CONVERSIONS 4 /* users from a load to a product, the product included, at most */

/* A load of 16 bits from device memory. */
static bool is_operand(LLVMValueRef load) {
    LLVMTypeRef type = LLVMTypeOf(load);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (!LLVMIsALoadInst(load) || !coarse_is_plain_access(load)) return false;
    if (kind != LLVMHalfTypeKind && (kind != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) != 16))
        return false;
    return LLVMGetPointerAddressSpace(LLVMTypeOf(rounds_address(load))) == PTX_GLOBAL;
}

/* Whether a load has the first elements of all rows of a matrix, or of a transposed one, and these rows are
 * aligned. */
struct rows {
    bool plain, turned;
};
static struct rows rows_of(struct matrices *m, LLVMValueRef load, LLVMBasicBlockRef reader) {
    struct address address;
    struct rows rows = {true, true};
    if (!address_find(m, rounds_address(load), reader, &address)) return (struct rows){false, false};
    for (unsigned i = 0; i < MATRIX_SIZE; i++) {
        rows.plain &= address_alignment(m, &address, (int)metal_lane(i, 0)) >= WIDE_BYTES;
        rows.turned &= address_alignment(m, &address, (int)metal_lane(0, i / 2)) >= WIDE_BYTES;
    }
    return rows;
}

/* Which operands of products a value becomes. */
struct roles {
    bool left, right;
};
static void find_roles(LLVMValueRef value, int depth, struct roles *roles) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); depth && use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (intrinsic_of(user) != INTRINSIC_SIMD_MATRIX_PRODUCT) {
            find_roles(user, depth - 1, roles);
            continue;
        }
        roles->left |= LLVMGetOperand(user, 0) == value || LLVMGetOperand(user, 1) == value;
        roles->right |= LLVMGetOperand(user, 2) == value;
    }
}

/* Whether a value is computed only from counters and from values known before the loop. */
static bool is_counted(struct rounds *r, LLVMValueRef value, int depth) {
    if (!rounds_item(r, value)) return true;
    if (LLVMIsAPHINode(value)) {
        LLVMValueRef next = rounds_next(r, value);
        if (!rounds_item(r, next) || next == value) return true;
        for (int o = 0; o < LLVMGetNumOperands(next); o++) {
            LLVMValueRef operand = LLVMGetOperand(next, (unsigned)o);
            if (operand != value && rounds_item(r, operand)) return false;
        }
        return coarse_is_pure(r->unit, next) && !guarded_divides(next);
    }
    /* A later round's condition is computed early: it must not divide by what an earlier one rules out. */
    if (depth == 0 || !coarse_is_pure(r->unit, value) || guarded_divides(value)) return false;
    for (int o = 0; o < LLVMGetNumOperands(value); o++)
        if (!is_counted(r, LLVMGetOperand(value, (unsigned)o), depth - 1)) return false;
    return true;
}

/* Whether a lane has enough registers for the sums and the operands of four rounds. A load takes half a
 * register per round. */
static bool has_registers(const struct rounds *r, int loads) {
    const struct code_shape *shape = &r->unit->request->shape;
    uint32_t threads = shape->size[0] * shape->size[1] * shape->size[2];
    if (!threads) threads = shape->most_threads;
    int most = threads ? (int)(REGISTERS / threads) : 0;
    if (most > MOST_REGISTERS) most = MOST_REGISTERS;
    return r->phis + STEPS * loads / 2 + OTHERS <= most;
}

static bool collect(struct matrices *m, struct rounds *r) {
    int loads = 0, wide = 0, across = 0, products = 0;
    r->count = r->phis = 0;
    FOR_EACH_INSTRUCTION(i, r->body) {
        if (LLVMIsATerminatorInst(i)) break;
        if (r->count == ROUNDS_MOST_INSTRUCTIONS) return false;
        bool product = intrinsic_of(i) == INTRINSIC_SIMD_MATRIX_PRODUCT, load = LLVMIsALoadInst(i) != NULL;
        if (load ? !is_operand(i) : !product && !LLVMIsAPHINode(i) && !coarse_is_pure(r->unit, i))
            return false;
        products += product;
        loads += load;
        r->phis += LLVMIsAPHINode(i) != NULL;
        r->items[r->count++] = (struct round_item){.value = i, .ahead = load};
        if (!load) continue;
        struct rows rows = rows_of(m, i, r->body);
        struct roles roles = {false, false};
        find_roles(i, CONVERSIONS, &roles);
        if (roles.left && rows.turned && !rows.plain) return false;
        across += roles.right && rows.plain && !rows.turned;
        wide += rows.plain || rows.turned;
    }
    /* matrix_wide.c loads no transposed left matrices, and other right ones only in sets of four. One of a
     * lane's two loads of a matrix that is not transposed has the first elements of rows. */
    return products && loads && 2 * wide >= loads && across % STEPS == 0 && has_registers(r, loads) &&
           is_counted(r, LLVMGetCondition(r->branch), DEPTH);
}

static bool is_wanted(struct matrices *m, struct rounds *r, int loop) {
    const struct flow_loop *l = &m->flow.loops[loop];
    if (l->latch_count != 1 || l->latches[0] != l->header) return false;
    r->body = r->last = m->flow.blocks[l->header].block;
    r->branch = LLVMGetBasicBlockTerminator(r->body);
    if (!LLVMIsABranchInst(r->branch) || !LLVMIsConditional(r->branch)) return false;
    if (!matrix_is_together(m, r->body)) return false;
    r->stays = LLVMGetSuccessor(r->branch, 0) == r->body ? 0 : 1;
    r->after = LLVMGetSuccessor(r->branch, 1 - r->stays);
    return collect(m, r);
}

static smelt_status join_rounds(struct matrices *m, struct rounds *r) {
    struct unit *unit = m->unit;
    rounds_build(r);
    (void)flow_split_edge(unit, r->test, 1);
    (void)flow_split_edge(unit, r->together, 1 - r->stays);
    return ptx_note(unit, "%d rounds of a loop of matrix products run at once, loads first", STEPS);
}

/* Counts the loops that are wanted; with `change`, joins their rounds. */
static smelt_status each_loop(struct matrices *m, bool change, int *wanted) {
    struct rounds *r = arena_alloc(&m->arena, sizeof *r);
    if (!r) return unit_fail(m->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a loop");
    *wanted = 0;
    for (int loop = 0; !m->flow.irreducible && loop < m->flow.loop_count; loop++) {
        *r = (struct rounds){.unit = m->unit, .rounds = STEPS};
        if (!is_wanted(m, r, loop)) continue;
        if (change && !rounds_stand_alone(r, &m->flow, loop)) continue;
        ++*wanted;
        if (change) TRY(join_rounds(m, r));
    }
    return SMELT_OK;
}

smelt_status matrix_join_rounds(struct matrices *m, bool *changed) {
    int wanted = 0;
    TRY(each_loop(m, false, &wanted));
    *changed = wanted > 0;
    if (!wanted) return SMELT_OK;
    TRY(ptx_run_passes(m->unit, "function(loop-simplify,lcssa)"));
    TRY(matrix_survey(m));
    return each_loop(m, true, &wanted);
}
