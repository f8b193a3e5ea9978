/* Locks that the lanes of a gang take in turns.
 *
 * A thread that takes a lock by compare-and-exchange or exchange leaves the loop of its attempts, and
 * releases the lock later. LLVM moves what a thread does under the lock behind that loop, also where the
 * source has it inside (`while (!done) if (taken) { …; release; done = true; }`). A gang's lanes leave a loop
 * together: the lane with the lock would wait for those that try to take it, for ever. Such kernels are
 * refused: the scalar engine runs one thread until it waits. Where each lane has a lock of its own, or only
 * one lane of the gang gets that far, as in `if (lane == 0)`, there is nobody to wait for.
 *
 * Requires: simd_analyse. */
#include "compiler/simd/simd.h"

#define MOST_DEPTH 8

static LLVMValueRef address_of(LLVMValueRef i) {
    if (LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAAtomicRMWInst(i)) return LLVMGetOperand(i, 0);
    bool store = LLVMIsAStoreInst(i) && LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic;
    return store ? LLVMGetOperand(i, 1) : NULL;
}

/* Without casts of the address space and phis of one value. */
static LLVMValueRef plain(LLVMValueRef value) {
    for (int depth = 0; depth < MOST_DEPTH; depth++) {
        bool single = LLVMIsAPHINode(value) && LLVMCountIncoming(value) == 1;
        if (!single && !LLVMIsAAddrSpaceCastInst(value)) break;
        value = LLVMGetOperand(value, 0);
    }
    return value;
}

static bool is_same(LLVMValueRef a, LLVMValueRef b, int depth) {
    a = plain(a), b = plain(b);
    if (a == b) return true;
    bool steps = LLVMIsAGetElementPtrInst(a) && LLVMIsAGetElementPtrInst(b) && depth < MOST_DEPTH &&
                 LLVMGetNumOperands(a) == LLVMGetNumOperands(b) &&
                 LLVMGetGEPSourceElementType(a) == LLVMGetGEPSourceElementType(b);
    for (unsigned o = 0; steps && o < (unsigned)LLVMGetNumOperands(a); o++)
        steps = is_same(LLVMGetOperand(a, o), LLVMGetOperand(b, o), depth + 1);
    return steps;
}

/* Whether the value is the same in all rounds of the loop. */
static bool is_invariant(struct simd *s, LLVMValueRef value, int loop, int depth) {
    if (!LLVMIsAInstruction(value)) return true;
    int block = flow_index(&s->flow, LLVMGetInstructionParent(value));
    if (!flow_block_within(&s->flow, block, loop)) return true;
    bool follows = (LLVMIsAGetElementPtrInst(value) || LLVMIsACastInst(value)) && depth < MOST_DEPTH;
    for (unsigned o = 0; follows && o < (unsigned)LLVMGetNumOperands(value); o++)
        follows = is_invariant(s, LLVMGetOperand(value, o), loop, depth + 1);
    return follows;
}

/* An operation that may be repeated until another thread changes the value: with the same address and
 * operands in each round. In a loop that expects what the last attempt found, some thread succeeds in each
 * round. */
static bool is_attempt(struct simd *s, LLVMValueRef i, int loop) {
    bool swaps = LLVMIsAAtomicRMWInst(i) && (LLVMGetAtomicRMWBinOp(i) == LLVMAtomicRMWBinOpXchg ||
                                             LLVMGetAtomicRMWBinOp(i) == LLVMAtomicRMWBinOpOr);
    return (swaps || LLVMIsAAtomicCmpXchgInst(i)) && is_invariant(s, LLVMGetOperand(i, 0), loop, 0) &&
           is_invariant(s, LLVMGetOperand(i, 1), loop, 0);
}

static bool depends(LLVMValueRef value, LLVMValueRef on, int depth) {
    if (value == on) return true;
    bool passes = LLVMIsAICmpInst(value) || LLVMIsAExtractValueInst(value) || LLVMIsABinaryOperator(value) ||
                  LLVMIsASelectInst(value) || LLVMIsAPHINode(value) || LLVMIsACastInst(value) ||
                  LLVMIsAFreezeInst(value);
    for (unsigned o = 0; passes && depth < MOST_DEPTH && o < (unsigned)LLVMGetNumOperands(value); o++)
        if (depends(LLVMGetOperand(value, o), on, depth + 1)) return true;
    return false;
}

/* Whether the result of `attempt` decides if a thread leaves the loop. */
static bool ends_loop(struct simd *s, LLVMValueRef attempt, int loop) {
    for (int b = 0; b < s->flow.block_count; b++) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(s->flow.blocks[b].block);
        bool leaves = false;
        if (!flow_block_within(&s->flow, b, loop) || LLVMGetNumSuccessors(last) < 2) continue;
        for (unsigned n = 0; n < LLVMGetNumSuccessors(last); n++)
            leaves |= !flow_block_within(&s->flow, flow_index(&s->flow, LLVMGetSuccessor(last, n)), loop);
        if (leaves && depends(LLVMGetOperand(last, 0), attempt, 0)) return true;
    }
    return false;
}

/* Where the address is written after the loop: the lock's release, or NULL. */
static LLVMValueRef release_of(struct simd *s, LLVMValueRef attempt, int from, int loop) {
    for (int b = from + 1; b < s->flow.block_count; b++) {
        if (flow_block_within(&s->flow, b, loop) || !flow_dominates(&s->flow, from, b)) continue;
        FOR_EACH_INSTRUCTION(i, s->flow.blocks[b].block) {
            LLVMValueRef address = address_of(i);
            if (address && is_same(address, address_of(attempt), 0)) return i;
        }
    }
    return NULL;
}

/* Whether no two lanes have the same. */
static bool differs_by_lane(struct simd *s, int shape) {
    if (shape <= SHAPE_UNIFORM) return false;
    const int64_t *offsets = shape_offsets(s, shape);
    for (int i = 1; i < s->lanes; i++)
        for (int j = 0; j < i; j++)
            if (offsets[i] == offsets[j]) return false;
    return true;
}

/* `x == y` with another x for every lane, and the same y. */
static bool holds_for_one(struct simd *s, LLVMValueRef condition) {
    if (!LLVMIsAICmpInst(condition) || LLVMGetICmpPredicate(condition) != LLVMIntEQ) return false;
    int a = shape_of(s, LLVMGetOperand(condition, 0)), b = shape_of(s, LLVMGetOperand(condition, 1));
    return (a == SHAPE_UNIFORM && differs_by_lane(s, b)) || (b == SHAPE_UNIFORM && differs_by_lane(s, a));
}

/* Whether at most one lane of the gang comes to the block. */
static bool has_one_lane(struct simd *s, int block) {
    while (block) {
        int above = s->flow.blocks[block].dominator;
        LLVMValueRef last = LLVMGetBasicBlockTerminator(s->flow.blocks[above].block);
        bool decided = s->flow.blocks[block].predecessor_count == 1 && LLVMIsABranchInst(last) &&
                       LLVMIsConditional(last) && LLVMGetSuccessor(last, 0) == s->flow.blocks[block].block;
        if (decided && holds_for_one(s, LLVMGetCondition(last))) return true;
        block = above;
    }
    return false;
}

void simd_refuse_locks(struct simd *s) {
    for (int b = 0; b < s->flow.block_count && !s->refused; b++) {
        int loop = s->flow.blocks[b].loop;
        if (loop < 0) continue;
        FOR_EACH_INSTRUCTION(i, s->flow.blocks[b].block) {
            if (!is_attempt(s, i, loop) || !ends_loop(s, i, loop) || !release_of(s, i, b, loop)) continue;
            if (differs_by_lane(s, shape_of(s, address_of(i))) || has_one_lane(s, b)) continue;
            simd_refuse(s, i, "the threads of a simdgroup take a lock in turns");
            break;
        }
    }
}
