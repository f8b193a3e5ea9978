/* Loads move ahead of earlier stores of their block that go to other memory. In
 * `for (i = 0; i < 4; i++) out[i] = in[i] * 2`, unrolled, each load would otherwise wait for the store before
 * it. Loads of neighbours can then become one access.
 *
 * NVIDIA's assembler does not know which buffers are apart. It does know that device memory and threadgroup
 * memory are apart, so a run of instructions that loads pass begins at a store to device memory.
 *
 * Requires: the retargeted module. Maintains: what the code does, and the order of a thread's accesses except
 * for these loads. */
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/ptx.h"

#define MOST_LOADS 16         /* of a run: their values take registers until they are used */
#define MOST_INSTRUCTIONS 512 /* of a run */
#define MOST_DEPTH 16         /* of the chain of values that an address is computed from */
#define MOST_VISITS 256       /* to these values, per load: a shared operand is visited once per user */

/* A store to device memory and the instructions after it, except for those that have moved before it. */
struct run {
    struct unit *unit;
    LLVMValueRef behind[MOST_INSTRUCTIONS];
    int count, loads;
};

static bool is_behind(const struct run *r, LLVMValueRef value) {
    for (int i = r->count - 1; i >= 0; i--)
        if (r->behind[i] == value) return true;
    return false;
}

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

static bool is_device(LLVMValueRef access) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address_of(access))) == PTX_GLOBAL;
}

/* A load of what the launch passed, which nothing stores to. */
static bool is_invariant_load(const struct run *r, LLVMValueRef value) {
    unsigned kind = LLVMGetMDKindIDInContext(r->unit->context, "invariant.load", 14);
    return LLVMIsALoadInst(value) && LLVMGetMetadata(value, kind);
}

/* Whether a value is computed before the run, or can be. *visits: how many values of the run may still be
 * visited. */
static bool can_move(const struct run *r, LLVMValueRef value, int depth, int *visits) {
    if (!LLVMIsAInstruction(value) || !is_behind(r, value)) return true;
    if (depth == 0 || *visits == 0) return false;
    --*visits;
    if (!is_invariant_load(r, value) && !coarse_is_pure(r->unit, value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!can_move(r, LLVMGetOperand(value, (unsigned)i), depth - 1, visits)) return false;
    return true;
}

/* Moves a value, and what it is computed from, before the run, after what moved there earlier. */
static void move(struct run *r, LLVMValueRef value) {
    int place = 0;
    if (!LLVMIsAInstruction(value) || !is_behind(r, value)) return;
    for (int i = 0; i < LLVMGetNumOperands(value); i++) move(r, LLVMGetOperand(value, (unsigned)i));
    while (r->behind[place] != value) place++;
    for (r->count--; place < r->count; place++) r->behind[place] = r->behind[place + 1];
    LLVMPositionBuilderBefore(r->unit->builder, r->behind[0]);
    LLVMInstructionRemoveFromParent(value);
    LLVMInsertIntoBuilder(r->unit->builder, value);
}

static bool may_pass(const struct run *r, LLVMValueRef load) {
    int visits = MOST_VISITS;
    if (r->loads == MOST_LOADS || !is_device(load)) return false;
    for (int i = 0; i < r->count; i++)
        if (LLVMIsAStoreInst(r->behind[i]) &&
            !ptx_are_apart(r->unit, address_of(load), address_of(r->behind[i])))
            return false;
    return can_move(r, address_of(load), MOST_DEPTH, &visits);
}

static int block_loads(struct run *r, LLVMBasicBlockRef block) {
    int moved = 0;
    r->count = r->loads = 0;
    FOR_EACH_INSTRUCTION(i, block) {
        bool access = coarse_is_plain_access(i);
        if (r->count == MOST_INSTRUCTIONS || (!access && !coarse_is_pure(r->unit, i))) {
            r->count = r->loads = 0;
            continue;
        }
        if (r->count == 0 && !(access && LLVMIsAStoreInst(i) && is_device(i))) continue;
        r->behind[r->count++] = i;
        if (!access || !LLVMIsALoadInst(i) || !may_pass(r, i)) continue;
        move(r, i);
        r->loads++;
        moved++;
    }
    return moved;
}

/* Kernels with products of matrices stay as they are: whether an operand can be loaded again depends on where
 * it is loaded (matrix_load.c). */
static bool has_matrices(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) if (intrinsic_of(i) == INTRINSIC_SIMD_MATRIX_PRODUCT) return true;
    return false;
}

smelt_status pass_ptx_early(struct unit *unit) {
    if (!unit->request->shape.distinct || has_matrices(unit)) return SMELT_OK;
    struct arena arena = {0};
    struct run *r = arena_alloc(&arena, sizeof *r);
    int moved = 0;
    if (!r) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for loads");
    r->unit = unit;
    FOR_EACH_BLOCK(block, unit->entry) moved += block_loads(r, block);
    arena_free(&arena);
    return moved ? ptx_note(unit, "%d load%s ahead of stores to other buffers", moved, moved == 1 ? "" : "s")
                 : SMELT_OK;
}
