#include "compiler/analysis/uniform.h"

#include <string.h>

#define MOST_DEPTH 16

/* Phis assumed to be uniform while their incoming values are examined. */
struct assumed {
    LLVMValueRef phi;
    const struct assumed *next;
};

static bool is_uniform(const struct flow *flow, LLVMValueRef value, const struct assumed *assumed, int depth);

/* The condition of a branch or switch. */
static LLVMValueRef decided_by(LLVMValueRef terminator) {
    return LLVMGetOperand(terminator, 0);
}

/* Whether all threads that enter the loop leave it in the same round. */
static bool is_left_together(const struct flow *flow, int loop, const struct assumed *assumed, int depth) {
    for (int to = 0; to < flow->block_count; to++)
        for (int p = 0; p < flow->blocks[to].predecessor_count; p++) {
            int from = flow->blocks[to].predecessors[p];
            if (flow_block_within(flow, to, loop) || !flow_block_within(flow, from, loop)) continue;
            LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[from].block);
            if (!is_uniform(flow, decided_by(end), assumed, depth)) return false;
        }
    return true;
}

/* After a loop, a thread has the loop's values of the round in which it left. */
static bool is_uniform_at(const struct flow *flow, LLVMValueRef value, LLVMBasicBlockRef place,
                          const struct assumed *assumed, int depth) {
    if (!is_uniform(flow, value, assumed, depth)) return false;
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionParent(value) == place) return true;
    int block = flow_index(flow, LLVMGetInstructionParent(value));
    int loop = block < 0 ? -1 : flow->blocks[block].loop;
    int at = loop < 0 ? -1 : flow_index(flow, place);
    for (; loop >= 0 && !flow_block_within(flow, at, loop); loop = flow->loops[loop].parent)
        if (depth < 1 || !is_left_together(flow, loop, assumed, depth - 1)) return false;
    return true;
}

static bool has_uniform_operands(const struct flow *flow, LLVMValueRef i, int count,
                                 const struct assumed *assumed, int depth) {
    LLVMBasicBlockRef place = LLVMGetInstructionParent(i);
    for (int o = 0; o < count; o++)
        if (!is_uniform_at(flow, LLVMGetOperand(i, (unsigned)o), place, assumed, depth - 1)) return false;
    return true;
}

bool uniform_is_of_group(enum intrinsic intrinsic) {
    switch (intrinsic) {
    case INTRINSIC_BUFFER_ADDRESS:
    case INTRINSIC_THREADGROUP_ADDRESS:
    case INTRINSIC_THREADGROUP_POSITION:
    case INTRINSIC_THREADGROUP_SIZE:
    case INTRINSIC_DISPATCH_THREADGROUP_SIZE:
    case INTRINSIC_GRID_THREADS:
    case INTRINSIC_GRID_GROUPS:
    case INTRINSIC_SIMDGROUP_COUNT:
        return true;
    default:
        return false;
    }
}

static bool is_uniform_call(const struct flow *flow, LLVMValueRef call, const struct assumed *assumed,
                            int depth) {
    static const char *const same[] = {"llvm.umin.", "llvm.umax.", "llvm.smin.", "llvm.smax."};
    bool is = uniform_is_of_group(intrinsic_of(call));
    for (size_t n = 0; !is && n < sizeof same / sizeof *same; n++)
        is = strncmp(called_name(call), same[n], strlen(same[n])) == 0;
    return is && has_uniform_operands(flow, call, (int)LLVMGetNumArgOperands(call), assumed, depth);
}

/* The only value that comes from inside the loop, or from before it; NULL: there are several. */
static LLVMValueRef one_incoming(const struct flow *flow, LLVMValueRef phi, int loop, bool inside) {
    LLVMValueRef one = NULL;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, i);
        int from = flow_index(flow, LLVMGetIncomingBlock(phi, i));
        if (from < 0 || flow_block_within(flow, from, loop) != inside) continue;
        if (one && one != value) return NULL;
        one = value;
    }
    return one;
}

/* A loop's counter is uniform if it starts uniform and each round's value follows from the one before. */
static bool is_uniform_phi(const struct flow *flow, LLVMValueRef phi, const struct assumed *assumed,
                           int depth) {
    struct assumed more = {phi, assumed};
    for (const struct assumed *a = assumed; a; a = a->next)
        if (a->phi == phi) return true;
    int block = flow_index(flow, LLVMGetInstructionParent(phi));
    int loop = block < 0 ? -1 : flow->blocks[block].loop;
    if (loop < 0 || flow->loops[loop].header != block) return false;
    for (int inside = 0; inside < 2; inside++) {
        LLVMValueRef value = one_incoming(flow, phi, loop, inside);
        if (!value || !is_uniform_at(flow, value, LLVMGetInstructionParent(phi), &more, depth - 1))
            return false;
    }
    return true;
}

static bool is_uniform(const struct flow *flow, LLVMValueRef value, const struct assumed *assumed,
                       int depth) {
    if (!LLVMIsAInstruction(value)) return true;
    if (depth == 0 || LLVMIsAAllocaInst(value)) return false;
    if (LLVMIsAPHINode(value)) return is_uniform_phi(flow, value, assumed, depth);
    if (LLVMIsACallInst(value)) return is_uniform_call(flow, value, assumed, depth);
    bool plain = LLVMIsABinaryOperator(value) || LLVMIsACastInst(value) || LLVMIsACmpInst(value) ||
                 LLVMIsASelectInst(value) || LLVMIsAGetElementPtrInst(value) || LLVMIsAFreezeInst(value) ||
                 (LLVMIsALoadInst(value) && LLVMGetOrdering(value) == LLVMAtomicOrderingNotAtomic);
    return plain && has_uniform_operands(flow, value, LLVMGetNumOperands(value), assumed, depth);
}

bool uniform_splits_threads(const struct flow *flow, LLVMValueRef terminator) {
    if (LLVMGetNumSuccessors(terminator) < 2) return false;
    return !is_uniform_at(flow, decided_by(terminator), LLVMGetInstructionParent(terminator), NULL,
                          MOST_DEPTH);
}

bool uniform_is(const struct flow *flow, LLVMValueRef value) {
    return is_uniform(flow, value, NULL, MOST_DEPTH);
}
