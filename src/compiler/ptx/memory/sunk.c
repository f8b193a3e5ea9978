/* Stores that LLVM moved from the ends of several blocks into the block after them go back.
 *
 *     if (whole) for (i = 0; i < 4; i++) out[i] = …; else for (i = 0; i < rest; i++) out[i] = …;
 *
 * Both ways may end in a store of the same kind. LLVM makes one of them, of a value and an address that the
 * way decides: three neighbours are then stored before it and the fourth one after it. Only together they are
 * one access. The memory writes parts of a line about as slowly as the whole line.
 *
 * Requires: the retargeted module. Maintains: what the code does, and the order of a thread's accesses. */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/coarsen/sums.h"

#define MOST_WAYS 8
#define MOST_BEFORE 8   /* instructions before the store */
#define MOST_LOOKED 256 /* instructions of a way's end */
#define MOST_MOVED 64   /* stores of a kernel */
#define DEPTH 12

struct sunk {
    struct unit *unit;
    LLVMBasicBlockRef block, ways[MOST_WAYS];
    unsigned successors[MOST_WAYS]; /* which successor of a way the block is */
    LLVMValueRef before[MOST_BEFORE], store;
    int way_count, before_count;
};

static bool is_narrow_store(struct unit *unit, LLVMValueRef i) {
    return LLVMIsAStoreInst(i) && coarse_is_plain_access(i) &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 1))) == PTX_GLOBAL &&
           LLVMABISizeOfType(unit->layout, LLVMTypeOf(LLVMGetOperand(i, 0))) <= 8;
}

/* Whether the block begins with a store, and with what only that needs. */
static bool find_store(struct sunk *s) {
    s->before_count = 0;
    FOR_EACH_INSTRUCTION(i, s->block) {
        if (LLVMIsAPHINode(i)) continue;
        s->store = i;
        if (is_narrow_store(s->unit, i)) return true;
        if (s->before_count == MOST_BEFORE || !coarse_is_pure(s->unit, i)) return false;
        s->before[s->before_count++] = i;
    }
    return false;
}

static bool find_ways(struct sunk *s, const struct flow *flow, int place) {
    const struct flow_block *b = &flow->blocks[place];
    s->way_count = 0;
    if (b->predecessor_count < 2 || b->predecessor_count > MOST_WAYS) return false;
    for (int i = 0; i < b->predecessor_count; i++) {
        LLVMBasicBlockRef way = flow->blocks[b->predecessors[i]].block;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(way);
        if (!LLVMIsABranchInst(end) || b->predecessors[i] >= place) return false;
        unsigned successor = LLVMGetSuccessor(end, 0) == s->block ? 0 : 1;
        if (LLVMGetNumSuccessors(end) == 2 && LLVMGetSuccessor(end, 0) == LLVMGetSuccessor(end, 1))
            return false;
        s->ways[s->way_count] = way;
        s->successors[s->way_count++] = successor;
    }
    return true;
}

/* What a value of the block is if it is reached by a way; the copies are built at the builder's place. */
static LLVMValueRef value_by(struct sunk *s, LLVMValueRef *copies, LLVMValueRef value,
                             LLVMBasicBlockRef way) {
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionParent(value) != s->block) return value;
    if (LLVMIsAPHINode(value)) return phi_incoming(value, way);
    for (int i = 0; i < s->before_count; i++)
        if (s->before[i] == value) return copies[i];
    return value;
}

static LLVMValueRef copy_by(struct sunk *s, LLVMValueRef *copies, LLVMValueRef value, LLVMBasicBlockRef way) {
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int o = 0; o < LLVMGetNumOperands(copy); o++)
        LLVMSetOperand(copy, (unsigned)o, value_by(s, copies, LLVMGetOperand(copy, (unsigned)o), way));
    LLVMInsertIntoBuilder(s->unit->builder, copy);
    return copy;
}

static LLVMValueRef copy_all(struct sunk *s, LLVMValueRef *copies, LLVMBasicBlockRef way) {
    for (int i = 0; i < s->before_count; i++) copies[i] = copy_by(s, copies, s->before[i], way);
    return copy_by(s, copies, s->store, way);
}

static bool are_neighbours(struct unit *unit, LLVMValueRef a, LLVMValueRef b) {
    struct address_sum of_a = {0}, of_b = {0};
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(a, 0));
    if (type != LLVMTypeOf(LLVMGetOperand(b, 0))) return false;
    int64_t bytes = (int64_t)LLVMABISizeOfType(unit->layout, type);
    ptx_add_to_sum(unit, &of_a, LLVMGetOperand(a, 1), 1, DEPTH);
    ptx_add_to_sum(unit, &of_b, LLVMGetOperand(b, 1), 1, DEPTH);
    int64_t apart = of_a.number - of_b.number;
    return (apart == bytes || apart == -bytes) && ptx_differ_by_number(&of_a, &of_b);
}

/* Whether a way ends with a store to a neighbour. The store is built there for the comparison. */
static bool has_neighbour(struct sunk *s, LLVMBasicBlockRef way) {
    LLVMValueRef copies[MOST_BEFORE], end = LLVMGetBasicBlockTerminator(way);
    LLVMValueRef last = LLVMGetPreviousInstruction(end);
    bool found = false;
    LLVMPositionBuilderBefore(s->unit->builder, end);
    LLVMValueRef store = copy_all(s, copies, way);
    for (int i = 0; last && i < MOST_LOOKED && !found; i++) {
        if (!coarse_is_plain_access(last) && !coarse_is_pure(s->unit, last)) break;
        found = is_narrow_store(s->unit, last) && are_neighbours(s->unit, store, last);
        last = LLVMGetPreviousInstruction(last);
    }
    LLVMInstructionEraseFromParent(store);
    for (int i = s->before_count - 1; i >= 0; i--) LLVMInstructionEraseFromParent(copies[i]);
    return found;
}

/* Only stores within a way count: one before the branch could not be joined with a store behind it. */
static bool is_wanted(struct sunk *s) {
    for (int i = 0; i < s->way_count; i++)
        if (LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(s->ways[i])) == 1 &&
            has_neighbour(s, s->ways[i]))
            return true;
    return false;
}

static void move_back(struct sunk *s) {
    LLVMValueRef copies[MOST_BEFORE];
    for (int i = 0; i < s->way_count; i++) {
        LLVMBasicBlockRef way = s->ways[i];
        if (LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(way)) > 1)
            way = flow_split_edge(s->unit, way, s->successors[i]);
        LLVMPositionBuilderBefore(s->unit->builder, LLVMGetBasicBlockTerminator(way));
        (void)copy_all(s, copies, way);
    }
    LLVMInstructionEraseFromParent(s->store);
}

/* Moves the next such store; the graph of blocks may then be another one. */
static bool move_next(struct unit *unit, const struct flow *flow) {
    struct sunk s = {.unit = unit};
    for (int place = 0; place < flow->block_count; place++) {
        s.block = flow->blocks[place].block;
        if (!find_ways(&s, flow, place) || !find_store(&s) || !is_wanted(&s)) continue;
        move_back(&s);
        return true;
    }
    return false;
}

smelt_status pass_ptx_sunk(struct unit *unit) {
    smelt_status status = SMELT_OK;
    int moved = 0;
    for (bool more = true; status == SMELT_OK && more && moved < MOST_MOVED;) {
        struct arena arena = {0};
        struct flow flow;
        status = flow_find(unit, unit->entry, &arena, &flow);
        more = status == SMELT_OK && move_next(unit, &flow);
        moved += more;
        arena_free(&arena);
    }
    return status == SMELT_OK && moved ? ptx_run_passes(unit, "function(adce)") : status;
}
