/* Loops that step through private arrays are unrolled fully: a GPU's registers cannot be indexed, so an
 * element with a variable index is in memory. LLVM has unrolled loops of up to 16 rounds; this pass unrolls
 * others, for arrays that fit the registers.
 *
 * A loop is unrolled if its counter is part of an index into an array and unrolling makes all indexes into
 * that array constant. The number of rounds must be a small constant, or become one when a loop around it is
 * unrolled (triangular loops).
 *
 * Requires: the optimised code. Maintains: what the code does. */
#include "base/arena.h"
#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

#define MOST_ROUNDS 256
#define MOST_ARRAY_BYTES 1024   /* a thread has 255 registers */
#define MOST_INSTRUCTIONS 16384 /* more than there were */
#define MOST_DEPTH 8            /* of an index's computation, and of nested loops */

struct unrolling {
    struct unit *unit;
    struct arena arena;
    struct flow flow;
    int *rounds;  /* by loop: the maximal number; 0: not a small constant */
    bool *wanted; /* by loop */
};

static int loop_around(const struct unrolling *u, LLVMBasicBlockRef block) {
    int index = flow_index(&u->flow, block);
    return index < 0 ? -1 : u->flow.blocks[index].loop;
}

/* The loop whose header has this phi, or -1. */
static int loop_of_phi(const struct unrolling *u, LLVMValueRef value) {
    if (!LLVMIsAPHINode(value)) return -1;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(value);
    int loop = loop_around(u, block);
    return loop >= 0 && u->flow.blocks[u->flow.loops[loop].header].block == block ? loop : -1;
}

/* Whether both compute the same from the same values. */
static bool is_same(LLVMValueRef a, LLVMValueRef b, int depth) {
    if (a == b) return true;
    bool both =
        (LLVMIsABinaryOperator(a) && LLVMIsABinaryOperator(b)) || (LLVMIsACastInst(a) && LLVMIsACastInst(b));
    if (!both || depth == 0 || LLVMGetInstructionOpcode(a) != LLVMGetInstructionOpcode(b) ||
        LLVMTypeOf(a) != LLVMTypeOf(b))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(a); i++)
        if (!is_same(LLVMGetOperand(a, (unsigned)i), LLVMGetOperand(b, (unsigned)i), depth - 1)) return false;
    return true;
}

/* What LLVM inferred of a result on one path need not hold on the other. */
static void forget_promises(LLVMValueRef copy) {
    switch (LLVMGetInstructionOpcode(copy)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMTrunc:
        LLVMSetNSW(copy, false);
        LLVMSetNUW(copy, false);
        break;
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
        LLVMSetExact(copy, false);
        break;
    case LLVMOr:
        LLVMSetIsDisjoint(copy, false);
        break;
    case LLVMZExt:
        LLVMSetNNeg(copy, false);
        break;
    default:
        break;
    }
}

static LLVMValueRef copy_of(struct unit *unit, LLVMValueRef value, LLVMValueRef other) {
    if (value == other) return value;
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(value); i++)
        LLVMSetOperand(copy, i, copy_of(unit, LLVMGetOperand(value, i), LLVMGetOperand(other, i)));
    forget_promises(copy);
    LLVMInsertIntoBuilder(unit->builder, copy);
    return copy;
}

/* LLVM moves a computation to the ends of several paths if it was on one of them (partial redundancy). After
 * the phi it is a counter again, of which LLVM finds the number of rounds. */
static void join_computations(const struct unrolling *u) {
    FOR_EACH_BLOCK(block, u->unit->entry) {
        LLVMValueRef first = LLVMGetFirstInstruction(block);
        while (first && LLVMIsAPHINode(first)) first = LLVMGetNextInstruction(first);
        FOR_EACH_INSTRUCTION(phi, block) {
            if (!LLVMIsAPHINode(phi)) break;
            if (LLVMCountIncoming(phi) != 2 || loop_of_phi(u, phi) >= 0) continue;
            LLVMValueRef one = LLVMGetIncomingValue(phi, 0), other = LLVMGetIncomingValue(phi, 1);
            if (LLVMGetTypeKind(LLVMTypeOf(phi)) != LLVMIntegerTypeKind || one == other ||
                !is_same(one, other, MOST_DEPTH))
                continue;
            LLVMPositionBuilderBefore(u->unit->builder, first);
            LLVMReplaceAllUsesWith(phi, copy_of(u->unit, one, other));
            LLVMInstructionEraseFromParent(phi);
        }
    }
}

/* ---- Rounds. */

/* The loop whose counter a value is, or is a constant away from; -1: none. */
static int counter_of(const struct unrolling *u, LLVMValueRef value) {
    for (int depth = 0; depth < MOST_DEPTH && LLVMIsAInstruction(value); depth++) {
        int loop = loop_of_phi(u, value);
        if (loop >= 0) return loop;
        bool step = LLVMIsABinaryOperator(value) && LLVMIsAConstantInt(LLVMGetOperand(value, 1));
        if (!step && !LLVMIsACastInst(value)) return -1;
        value = LLVMGetOperand(value, 0);
    }
    return -1;
}

/* By how much a counter grows in a round: 1 unless it says otherwise, as one of bytes does. */
static long long step_of(LLVMValueRef counter) {
    if (!LLVMIsAInstruction(counter) || LLVMGetInstructionOpcode(counter) != LLVMAdd) return 1;
    LLVMValueRef step = LLVMGetOperand(counter, 1);
    long long value = LLVMIsAConstantInt(step) ? LLVMConstIntGetSExtValue(step) : 1;
    return value > 1 ? value : 1;
}

/* Whether the loop ends by a condition that is one constant in the first round and another in all others:
 * LLVM turns the counter of two rounds into that. */
static bool is_first_round(const struct unrolling *u, LLVMValueRef test, int loop) {
    if (loop_of_phi(u, test) != loop) return false;
    for (unsigned i = 0; i < LLVMCountIncoming(test); i++)
        if (!LLVMIsAConstantInt(LLVMGetIncomingValue(test, i))) return false;
    return true;
}

/* From the comparison that ends the loop: of its counter with a constant, or with the counter of a loop
 * around it. */
static int find_rounds(const struct unrolling *u, int loop) {
    const struct flow_loop *l = &u->flow.loops[loop];
    if (l->latch_count != 1) return 0;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(u->flow.blocks[l->latches[0]].block);
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) return 0;
    LLVMValueRef test = LLVMGetCondition(branch);
    if (is_first_round(u, test, loop)) return 2;
    if (!LLVMIsAICmpInst(test) || counter_of(u, LLVMGetOperand(test, 0)) != loop) return 0;
    LLVMValueRef end = LLVMGetOperand(test, 1);
    if (LLVMIsAConstantInt(end)) {
        long long value = LLVMConstIntGetSExtValue(end) / step_of(LLVMGetOperand(test, 0));
        /* Counting down ends at a small number; either it began at one as small, or LLVM finds out. */
        return value >= -MOST_ROUNDS && value <= MOST_ROUNDS ? (value > 1 ? (int)value : MOST_ROUNDS / 4) : 0;
    }
    int other = counter_of(u, end);
    for (int parent = l->parent; parent >= 0; parent = u->flow.loops[parent].parent)
        if (parent == other) return u->rounds[parent];
    return 0;
}

/* ---- Indexes. */

static bool settles(struct unrolling *u, LLVMValueRef value, bool want, int depth);

/* The block from which alone a block is reached; NULL: there are several, or none. */
static LLVMBasicBlockRef only_predecessor(LLVMBasicBlockRef block) {
    LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block));
    bool alone = use && !LLVMGetNextUse(use) && LLVMIsATerminatorInst(LLVMGetUser(use));
    return alone ? LLVMGetInstructionParent(LLVMGetUser(use)) : NULL;
}

/* The block whose branch chooses whether the phi's block is reached from `from`. */
static LLVMBasicBlockRef chooser_of(LLVMBasicBlockRef from) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(from);
    bool chooses = LLVMIsABranchInst(end) && LLVMIsConditional(end);
    return chooses ? from : only_predecessor(from);
}

/* A phi that one branch chooses settles with its values and the branch's condition. */
static bool phi_settles(struct unrolling *u, LLVMValueRef phi, bool want, int depth) {
    if (LLVMCountIncoming(phi) != 2 || depth == 0) return false;
    LLVMBasicBlockRef chooser = chooser_of(LLVMGetIncomingBlock(phi, 0));
    LLVMValueRef branch = chooser ? LLVMGetBasicBlockTerminator(chooser) : NULL;
    return branch && chooser == chooser_of(LLVMGetIncomingBlock(phi, 1)) && LLVMIsABranchInst(branch) &&
           LLVMIsConditional(branch) && settles(u, LLVMGetCondition(branch), want, depth - 1) &&
           settles(u, LLVMGetIncomingValue(phi, 0), want, depth - 1) &&
           settles(u, LLVMGetIncomingValue(phi, 1), want, depth - 1);
}

/* Whether a value is constant once loops of few rounds are unrolled; `want`: marks these loops. */
static bool settles(struct unrolling *u, LLVMValueRef value, bool want, int depth) {
    if (LLVMIsAConstant(value)) return true;
    int loop = loop_of_phi(u, value);
    if (loop >= 0) {
        if (want) u->wanted[loop] = true;
        return u->rounds[loop] > 0;
    }
    if (LLVMIsAPHINode(value)) return phi_settles(u, value, want, depth);
    if (depth == 0 || !LLVMIsAInstruction(value) || LLVMIsALoadInst(value) || LLVMIsACallInst(value))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!settles(u, LLVMGetOperand(value, (unsigned)i), want, depth - 1)) return false;
    return true;
}

/* For all indexes into what a pointer points to. */
static bool all_settle(struct unrolling *u, LLVMValueRef pointer, bool want) {
    for (LLVMUseRef use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool address = LLVMIsAGetElementPtrInst(user) && LLVMGetOperand(user, 0) == pointer;
        for (int i = 1; address && i < LLVMGetNumOperands(user); i++)
            if (!settles(u, LLVMGetOperand(user, (unsigned)i), want, MOST_DEPTH)) return false;
        if ((address || LLVMIsAAddrSpaceCastInst(user)) && !all_settle(u, user, want)) return false;
    }
    return true;
}

/* Whether registers may hold it. */
static bool is_small_array(const struct unrolling *u, LLVMValueRef instruction) {
    return LLVMIsAAllocaInst(instruction) &&
           LLVMABISizeOfType(u->unit->layout, LLVMGetAllocatedType(instruction)) <= MOST_ARRAY_BYTES;
}

static bool has_small_array(const struct unrolling *u) {
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(u->unit->entry);
    FOR_EACH_INSTRUCTION(instruction, entry) {
        if (is_small_array(u, instruction)) return true;
    }
    return false;
}

static void mark_arrays(struct unrolling *u) {
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(u->unit->entry);
    FOR_EACH_INSTRUCTION(instruction, entry) {
        if (is_small_array(u, instruction) && all_settle(u, instruction, false))
            (void)all_settle(u, instruction, true);
    }
}

/* The number of instructions that unrolling adds. */
static uint64_t count_added(const struct unrolling *u) {
    uint64_t total = 0;
    for (int i = 0; i < u->flow.block_count; i++) {
        uint64_t times = 1;
        for (int loop = u->flow.blocks[i].loop; loop >= 0; loop = u->flow.loops[loop].parent)
            if (u->wanted[loop]) times *= (uint64_t)u->rounds[loop];
        FOR_EACH_INSTRUCTION(instruction, u->flow.blocks[i].block) total += times - 1;
        if (total > MOST_INSTRUCTIONS) break;
    }
    return total;
}

/* ---- Requesting it from LLVM: the back edge's branch gets a node that names itself and the request. */

static bool is_told(LLVMValueRef branch, unsigned kind) {
    LLVMValueRef node = LLVMGetMetadata(branch, kind), parts[16];
    if (!node || LLVMGetMDNodeNumOperands(node) > 16) return false;
    unsigned count = LLVMGetMDNodeNumOperands(node);
    LLVMGetMDNodeOperands(node, parts);
    for (unsigned i = 1; i < count; i++) {
        LLVMValueRef word;
        unsigned length;
        if (!parts[i] || !LLVMIsAMDNode(parts[i]) || LLVMGetMDNodeNumOperands(parts[i]) == 0) continue;
        LLVMGetMDNodeOperands(parts[i], &word);
        const char *text = word && LLVMIsAMDString(word) ? LLVMGetMDString(word, &length) : "";
        if (strncmp(text, "llvm.loop.unroll.disable", 24) == 0) return true;
    }
    return false;
}

/* Adds metadata to a loop's branch, unless it has some. number: of the wish; 0: it has none. */
static void tell(struct unit *unit, const struct flow *flow, int loop, const char *wish, uint32_t number) {
    LLVMContextRef context = unit->context;
    unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(flow->blocks[flow->loops[loop].latches[0]].block);
    if (is_told(branch, kind)) return;
    LLVMMetadataRef words[2] = {LLVMMDStringInContext2(context, wish, strlen(wish)),
                                LLVMValueAsMetadata(constant_i32(unit, number))};
    LLVMMetadataRef self = LLVMTemporaryMDNode(context, NULL, 0);
    LLVMMetadataRef parts[2] = {self, LLVMMDNodeInContext2(context, words, number ? 2 : 1)};
    LLVMMetadataRef node = LLVMMDNodeInContext2(context, parts, 2);
    LLVMMetadataReplaceAllUsesWith(self, node);
    LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(context, node));
}

void ptx_ask_to_unroll(struct unit *unit, const struct flow *flow, int loop) {
    tell(unit, flow, loop, "llvm.loop.unroll.full", 0);
}

void ptx_ask_for_rounds(struct unit *unit, const struct flow *flow, int loop, uint32_t rounds) {
    tell(unit, flow, loop, "llvm.loop.unroll.count", rounds);
}

static smelt_status unroll(struct unrolling *u, bool *any) {
    int count = u->flow.loop_count;
    bool arrays = has_small_array(u);
    if (arrays) join_computations(u);
    u->rounds = arena_alloc(&u->arena, (size_t)count * sizeof *u->rounds);
    u->wanted = arena_alloc(&u->arena, (size_t)count * sizeof *u->wanted);
    if (!u->rounds || !u->wanted)
        return unit_fail(u->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d loops", count);
    for (int i = 0; i < count; i++) {
        u->wanted[i] = false;
        u->rounds[i] = find_rounds(u, i); /* outer loops first */
    }
    if (arrays) mark_arrays(u);
    if (count_added(u) > MOST_INSTRUCTIONS) return SMELT_OK;
    ptx_want_counted(u->unit, &u->flow, u->wanted, u->rounds);
    for (int i = 0; i < count; i++) {
        if (!u->wanted[i]) continue;
        ptx_ask_to_unroll(u->unit, &u->flow, i);
        *any = true;
    }
    return SMELT_OK;
}

smelt_status pass_ptx_unroll(struct unit *unit) {
    struct unrolling u = {.unit = unit};
    bool any = false;
    smelt_status status = flow_find(unit, unit->entry, &u.arena, &u.flow);
    if (status == SMELT_OK && u.flow.loop_count && !u.flow.irreducible) status = unroll(&u, &any);
    arena_free(&u.arena);
    if (status != SMELT_OK || !any) return status;
    TRY(ptx_run_passes(unit, "function(loop(loop-unroll-full),sroa<modify-cfg>,early-cse<memssa>,"
                             "instcombine<no-verify-fixpoint>,simplifycfg,gvn,adce)"));
    /* The packing of a left matrix's slots into pairs moves out of the loop over right matrices. */
    return unit->alike ? ptx_run_passes(unit, "function(loop-mssa(licm))") : SMELT_OK;
}
