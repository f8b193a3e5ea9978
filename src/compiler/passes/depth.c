/* A loop over the depth of products of simdgroup matrices stays a loop on CPUs, also if its rounds are few
 * and the source asks to unroll it. All rounds of a loop are run for as many sums as the registers hold, then
 * for the next ones (simd/matrix/matrix_loop.c). Code of all rounds loads and stores the sums for each:
 * products of 1024 x 1024 floats, staged in tiles 16 or 32 deep, took 1.4 and 1.8 times as long.
 *
 * Such a loop multiplies several matrices in each round, which it loads from other places of threadgroup
 * memory than the round before. Loops over arrays of matrices, which only choose elements of the thread's own
 * arrays, are unrolled as before, so that these are registers.
 *
 * Requires: everything inlined, variables in registers. Maintains: everything. */
#include "compiler/analysis/flow.h"
#include "compiler/intrinsic.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

#define FEW_PRODUCTS 4 /* in a round, as far as can be seen */

struct depth {
    struct unit *unit;
    struct arena arena;
    struct flow flow;
    LLVMValueRef *values; /* that follow from the number of the round, */
    int count, capacity;
    bool staged, indexes; /* which choose elements of threadgroup memory, of the thread's own arrays */
};

static void add(struct depth *d, LLVMValueRef value) {
    for (int n = 0; n < d->count; n++)
        if (d->values[n] == value) return;
    if (d->count == d->capacity) {
        int capacity = d->capacity ? 2 * d->capacity : 64;
        LLVMValueRef *values = arena_alloc(&d->arena, (size_t)capacity * sizeof *values);
        if (!values) return;
        if (d->count) memcpy(values, d->values, (size_t)d->count * sizeof *values);
        d->values = values;
        d->capacity = capacity;
    }
    d->values[d->count++] = value;
}

static bool is_number(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind || LLVMGetTypeKind(type) == LLVMPointerTypeKind;
}

/* Whether the pointer may be into an array of the thread. */
static bool is_own(LLVMValueRef pointer) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == 0;
}

/* `user` is of the loop, and uses a number that follows from that of the round. */
static void follow(struct depth *d, LLVMValueRef user, LLVMValueRef number) {
    switch (LLVMGetInstructionOpcode(user)) {
    case LLVMLoad:
        d->staged |= LLVMGetPointerAddressSpace(LLVMTypeOf(number)) == THREADGROUP_SPACE;
        return;
    case LLVMStore:
        d->indexes |= LLVMGetOperand(user, 0) == number && is_own(LLVMGetOperand(user, 1));
        return;
    case LLVMGetElementPtr:
        d->indexes |= is_own(user);
        break;
    case LLVMCall:
    case LLVMICmp:
        return;
    default:
        break;
    }
    if (is_number(user)) add(d, user);
}

static void find_values(struct depth *d, int loop) {
    d->count = 0;
    d->staged = d->indexes = false;
    FOR_EACH_INSTRUCTION(phi, d->flow.blocks[d->flow.loops[loop].header].block) {
        if (!LLVMIsAPHINode(phi)) break;
        if (is_number(phi)) add(d, phi);
    }
    for (int n = 0; n < d->count && !d->indexes; n++)
        for (LLVMUseRef use = LLVMGetFirstUse(d->values[n]); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef user = LLVMGetUser(use);
            int block = flow_index(&d->flow, LLVMGetInstructionParent(user));
            if (flow_block_within(&d->flow, block, loop)) follow(d, user, d->values[n]);
        }
}

/* Those in loops within count twice. Each is two calls. 0: lanes meet others in the loop. */
static int count_products(struct depth *d, int loop) {
    int calls = 0;
    for (int block = 0; block < d->flow.block_count; block++) {
        if (!flow_block_within(&d->flow, block, loop)) continue;
        int own = d->flow.blocks[block].loop;
        int weight = own == loop ? 1 : d->flow.loops[own].parent == loop ? 2 : 4;
        FOR_EACH_INSTRUCTION(i, d->flow.blocks[block].block) {
            if (intrinsic_of(i) == INTRINSIC_THREADGROUP_BARRIER) return 0;
            if (intrinsic_of(i) == INTRINSIC_SIMD_MATRIX_PRODUCT) calls += weight;
        }
    }
    return calls / 2;
}

static void keep(struct depth *d, const struct flow_loop *loop) {
    LLVMContextRef context = d->unit->context;
    static const char word[] = "llvm.loop.unroll.disable";
    LLVMMetadataRef list[2] = {LLVMTemporaryMDNode(context, NULL, 0)};
    LLVMMetadataRef text = LLVMMDStringInContext2(context, word, sizeof word - 1);
    list[1] = LLVMMDNodeInContext2(context, &text, 1);
    LLVMMetadataRef node = LLVMMDNodeInContext2(context, list, 2);
    LLVMMetadataReplaceAllUsesWith(list[0], node);
    unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
    for (int i = 0; i < loop->latch_count; i++)
        LLVMSetMetadata(LLVMGetBasicBlockTerminator(d->flow.blocks[loop->latches[i]].block), kind,
                        LLVMMetadataAsValue(context, node));
}

smelt_status pass_depth(struct unit *unit) {
    struct depth d = {.unit = unit};
    LLVMValueRef product = intrinsic_function(unit->module, INTRINSIC_SIMD_MATRIX_PRODUCT);
    if (!unit->target->calls_runtime || unit->form != FORM_BEST || !product || !LLVMGetFirstUse(product))
        return SMELT_OK;
    smelt_status status = flow_find(unit, unit->entry, &d.arena, &d.flow);
    for (int loop = 0; status == SMELT_OK && loop < d.flow.loop_count; loop++) {
        if (count_products(&d, loop) < FEW_PRODUCTS) continue;
        find_values(&d, loop);
        if (d.staged && !d.indexes) keep(&d, &d.flow.loops[loop]);
    }
    if (status == SMELT_OK && d.arena.failed)
        status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for loops over products");
    arena_free(&d.arena);
    return status;
}
