/* A loop over the depth of products stays a loop on CPUs, also if its rounds are few and the source asks to
 * unroll it. All rounds of a loop are run for as many sums as the registers hold, then for the next ones
 * (simd/matrix/matrix_loop.c, simd/control/parts.c). Code of all rounds loads and stores the sums for each:
 * products of simdgroup matrices, 1024 x 1024 floats, staged in tiles 16 or 32 deep, took 1.4 and 1.8 times
 * as long; with one element of a tile 16 deep for each thread, and AVX2, 2.7 times.
 *
 * Such a loop multiplies several matrices, or numbers, in each round, which it loads from other places of
 * threadgroup memory than the round before. Loops over arrays of matrices, which only choose elements of the
 * thread's own arrays, are unrolled as before, so that these are registers.
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

/* ---- Products of simdgroup matrices. */

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

/* ---- Products of numbers: each thread adds them to sums of its own. Their factors are elements of tiles in
 * threadgroup memory. Threads side by side have neighbours of one factor and share the other one. If both
 * follow one another from round to round, a thread's own elements are neighbours instead: those of several
 * rounds are loaded together, which needs the code of all rounds. */

#define FEWEST_ROUNDS 8
#define DEEPEST 16

static bool is_inside(const struct depth *d, int loop, LLVMValueRef value) {
    return LLVMIsAInstruction(value) &&
           flow_block_within(&d->flow, flow_index(&d->flow, LLVMGetInstructionParent(value)), loop);
}

/* How much an integer or an address grows from round to round. False: not by a constant, as far as can be
 * seen. */
static bool find_step(const struct depth *d, int loop, LLVMValueRef value, int depth, int64_t *step);

static bool find_step_of_phi(const struct depth *d, int loop, LLVMValueRef phi, int64_t *step) {
    LLVMBasicBlockRef header = d->flow.blocks[d->flow.loops[loop].header].block;
    if (LLVMGetInstructionParent(phi) != header || LLVMCountIncoming(phi) != 2) return false;
    for (unsigned n = 0; n < 2; n++) {
        LLVMValueRef next = LLVMGetIncomingValue(phi, n);
        if (is_inside(d, loop, next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
            LLVMGetOperand(next, 0) == phi && LLVMIsAConstantInt(LLVMGetOperand(next, 1))) {
            *step = LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
            return true;
        }
    }
    return false;
}

static bool find_step_of_address(const struct depth *d, int loop, LLVMValueRef gep, int depth,
                                 int64_t *step) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    if (!find_step(d, loop, LLVMGetOperand(gep, 0), depth, step)) return false;
    for (int n = 1; n < LLVMGetNumOperands(gep); n++) {
        int64_t own;
        if (n > 1 && LLVMGetTypeKind(type) != LLVMArrayTypeKind) return false;
        if (n > 1) type = LLVMGetElementType(type);
        if (!find_step(d, loop, LLVMGetOperand(gep, (unsigned)n), depth, &own)) return false;
        *step += own * (int64_t)LLVMABISizeOfType(d->unit->layout, type);
    }
    return true;
}

static bool find_step(const struct depth *d, int loop, LLVMValueRef value, int depth, int64_t *step) {
    int64_t other;
    *step = 0;
    if (!is_inside(d, loop, value)) return true;
    if (depth == 0) return false;
    if (LLVMIsAPHINode(value)) return find_step_of_phi(d, loop, value, step);
    if (LLVMIsAGetElementPtrInst(value)) return find_step_of_address(d, loop, value, depth - 1, step);
    if (LLVMIsACastInst(value)) return find_step(d, loop, LLVMGetOperand(value, 0), depth - 1, step);
    if (!LLVMIsABinaryOperator(value) || !find_step(d, loop, LLVMGetOperand(value, 0), depth - 1, step) ||
        !find_step(d, loop, LLVMGetOperand(value, 1), depth - 1, &other))
        return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMOr: /* of numbers that have no bits in common, else a product's step is misjudged */
        *step += other;
        return true;
    case LLVMMul:
    case LLVMShl:
        if (!LLVMIsAConstantInt(LLVMGetOperand(value, 1))) return *step == 0 && other == 0;
        other = LLVMConstIntGetSExtValue(LLVMGetOperand(value, 1));
        *step *= LLVMGetInstructionOpcode(value) == LLVMMul ? other : (int64_t)1 << (other & 31);
        return true;
    default:
        return *step == 0 && other == 0;
    }
}

/* With rows of fewer threads, a vector of lanes has parts of several rows, so that neither factor is shared
 * by its lanes. */
#define SHORTEST_ROW 16

/* A mask that leaves the number of a thread's row, times the length of a row. */
static bool clears_row(LLVMValueRef mask) {
    uint64_t bits = 0;
    return is_constant_integer(mask, &bits) && bits != 0 && bits % SHORTEST_ROW == 0;
}

/* Whether the value differs between threads side by side: it follows from their number other than by a
 * division, which gives the number of a row. */
static bool is_of_column(LLVMValueRef value, int depth) {
    if (!LLVMIsAInstruction(value) || depth == 0) return false;
    switch (intrinsic_of(value)) {
    case INTRINSIC_THREAD_POSITION:
    case INTRINSIC_POSITION_IN_THREADGROUP:
        return !LLVMIsAConstantInt(LLVMGetOperand(value, 0)) ||
               LLVMConstIntGetZExtValue(LLVMGetOperand(value, 0)) == 0;
    case INTRINSIC_THREAD_INDEX:
    case INTRINSIC_LANE:
        return true;
    default:
        break;
    }
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMAnd && clears_row(LLVMGetOperand(value, 1))) return false;
    if (opcode == LLVMUDiv || opcode == LLVMSDiv || opcode == LLVMLShr || opcode == LLVMCall ||
        opcode == LLVMLoad || opcode == LLVMPHI)
        return false;
    for (int n = 0; n < LLVMGetNumOperands(value); n++)
        if (is_of_column(LLVMGetOperand(value, (unsigned)n), depth - 1)) return true;
    return false;
}

static bool is_of_floats(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMFloatTypeKind || kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind;
}

static bool is_float_product(LLVMValueRef i) {
    return is_of_floats(i) &&
           (LLVMGetInstructionOpcode(i) == LLVMFMul || strncmp(called_name(i), "llvm.fma.", 9) == 0 ||
            strncmp(called_name(i), "llvm.fmuladd.", 13) == 0);
}

static bool is_staged(LLVMValueRef access) {
    LLVMValueRef address = LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == THREADGROUP_SPACE;
}

/* Whether a comparison of a counter with a constant ends the loop after at least so many rounds. */
static bool has_rounds(const struct depth *d, int loop, int fewest) {
    LLVMBasicBlockRef header = d->flow.blocks[d->flow.loops[loop].header].block;
    LLVMBasicBlockRef latch = d->flow.blocks[d->flow.loops[loop].latches[0]].block;
    for (int n = 0; n < 2; n++) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(n ? latch : header);
        uint64_t bound = 0;
        int64_t step = 0;
        if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) continue;
        LLVMValueRef test = LLVMGetCondition(end);
        if (LLVMIsAICmpInst(test) && is_constant_integer(LLVMGetOperand(test, 1), &bound) &&
            find_step(d, loop, LLVMGetOperand(test, 0), DEEPEST, &step) && step > 0)
            return bound / (uint64_t)step >= (uint64_t)fewest;
    }
    return false;
}

/* Loads of a loop's rounds from tiles. */
struct staged_loads {
    int count, far; /* all; those that do not follow one another from round to round */
    bool own;       /* others that threads side by side do not share */
};

static void note_load(const struct depth *d, int loop, LLVMValueRef load, struct staged_loads *loads) {
    int64_t step, size = (int64_t)LLVMABISizeOfType(d->unit->layout, LLVMTypeOf(load));
    bool known = find_step(d, loop, LLVMGetOperand(load, 0), DEEPEST, &step);
    if (known && step == 0) return;
    bool next = known && (step == size || step == -size);
    loads->count++;
    loads->far += !next;
    loads->own |= next && is_of_column(LLVMGetOperand(load, 0), DEEPEST);
}

static bool multiplies_staged_numbers(const struct depth *d, int loop) {
    struct staged_loads loads = {0};
    bool products = false;
    for (int block = 0; block < d->flow.block_count; block++) {
        if (!flow_block_within(&d->flow, block, loop)) continue;
        FOR_EACH_INSTRUCTION(i, d->flow.blocks[block].block) {
            if (LLVMIsACallInst(i) && strncmp(called_name(i), "llvm.", 5) != 0) return false;
            if (LLVMIsAStoreInst(i) && is_staged(i)) return false;
            products |= is_float_product(i);
            if (LLVMIsALoadInst(i) && is_staged(i) && is_of_floats(i)) note_load(d, loop, i, &loads);
        }
    }
    return products && loads.count > 1 && loads.far > 0 && !loads.own;
}

static bool suits_numbers(const struct depth *d, int loop) {
    return d->unit->request->shape.size[0] >= SHORTEST_ROW && has_rounds(d, loop, FEWEST_ROUNDS) &&
           multiplies_staged_numbers(d, loop);
}

/* ---- All loops. */

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
    if (!unit->target->calls_runtime || unit->form != FORM_BEST) return SMELT_OK;
    smelt_status status = flow_find(unit, unit->entry, &d.arena, &d.flow);
    for (int loop = 0; status == SMELT_OK && loop < d.flow.loop_count; loop++) {
        if (count_products(&d, loop) < FEW_PRODUCTS && !suits_numbers(&d, loop)) continue;
        find_values(&d, loop);
        if (d.staged && !d.indexes) keep(&d, &d.flow.loops[loop]);
    }
    if (status == SMELT_OK && d.arena.failed)
        status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for loops over products");
    arena_free(&d.arena);
    return status;
}
