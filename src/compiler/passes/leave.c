/* Exits from loops, and from the kernel. A `return` or `goto` out of several loops, or a flag that ends one
 * (`done = true`), is at first a number that later blocks test: clang's cleanup blocks, and the test at the
 * end of a round. The predecessor of such a block determines where it goes. Threads that leave the loop
 * there, return, or pass the last barrier that may follow get a copy of the code in between, so that nothing
 * leads from their exit back into the loop or to a barrier.
 *
 * The same holds for threads that bypass a barrier at which all others that come later wait. What they do
 * from there to their exit, they do alone: simdgroup functions are copied for them, too.
 *
 * This decides which lanes act together: a simdgroup function on the way out of a loop counts as standing
 * behind it. LLVM threads such jumps on CPUs but not on GPUs; here it is done for all engines alike, before
 * LLVM's passes transform the numbers and blocks.
 *
 * Requires: variables in registers (sroa). Maintains: all else. Nothing happens to kernels without
 * simdgroup operations, and barriers that some threads miss by a return. */
#include "compiler/pass.h"
#include "compiler/analysis/phases.h"

#include <string.h>

/* Instructions and blocks on such a way: more than that is not a mere test. */
#define MOST_INSTRUCTIONS 24
#define MOST_STEPS 32
#define MOST_KNOWN 64
#define MOST_DEPTH 8
#define MOST_COPIES 512

/* A way from block to block, and the values it has decided so far. */
struct way {
    struct unit *unit;
    const struct flow *flow;
    const struct phases *phases;
    LLVMBasicBlockRef blocks[MOST_STEPS], target; /* what is passed; where the loop is left to */
    int count;
    int instructions; /* in these blocks */
    bool alone;       /* others who come there have waited at a barrier meanwhile */
    struct known {
        LLVMValueRef value, constant;
    } known[MOST_KNOWN];
    int known_count;
    bool *seen; /* by block */
};

/* ---- What is known of values. */

static void learn(struct way *w, LLVMValueRef value, LLVMValueRef constant) {
    for (int i = 0; i < w->known_count; i++)
        if (w->known[i].value == value) w->known[i].value = NULL;
    if (constant && w->known_count < MOST_KNOWN) w->known[w->known_count++] = (struct known){value, constant};
}

static bool is_number(LLVMValueRef value) {
    return LLVMIsAConstantInt(value) != NULL;
}

static LLVMValueRef evaluate(struct way *w, LLVMValueRef value, int depth);

/* And, or: one operand may decide. */
static LLVMValueRef decide(LLVMOpcode opcode, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef either[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        if (!either[i]) continue;
        LLVMTypeRef type = LLVMTypeOf(either[i]);
        if (either[i] == (opcode == LLVMAnd ? LLVMConstNull(type) : LLVMConstAllOnes(type))) return either[i];
    }
    return NULL;
}

/* A constant integer, or NULL. */
static LLVMValueRef evaluate_operation(struct way *w, LLVMValueRef i, int depth) {
    LLVMBuilderRef b = w->unit->builder;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    LLVMValueRef operands[3] = {NULL};
    int count = LLVMGetNumOperands(i);
    if (count < 1 || count > 3) return NULL;
    for (int o = 0; o < count; o++) operands[o] = evaluate(w, LLVMGetOperand(i, (unsigned)o), depth - 1);
    switch (opcode) {
    case LLVMSelect:
        return operands[0] ? operands[LLVMConstIntGetZExtValue(operands[0]) ? 1 : 2] : NULL;
    case LLVMICmp:
        return operands[0] && operands[1]
                   ? LLVMBuildICmp(b, LLVMGetICmpPredicate(i), operands[0], operands[1], "")
                   : NULL;
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
        return operands[0] ? LLVMBuildCast(b, opcode, operands[0], LLVMTypeOf(i), "") : NULL;
    case LLVMFreeze:
        return operands[0];
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
        if (operands[0] && operands[1]) return LLVMBuildBinOp(b, opcode, operands[0], operands[1], "");
        return opcode == LLVMXor ? NULL : decide(opcode, operands[0], operands[1]);
    default:
        return NULL;
    }
}

static LLVMValueRef evaluate(struct way *w, LLVMValueRef value, int depth) {
    if (is_number(value)) return value;
    for (int i = 0; i < w->known_count; i++)
        if (w->known[i].value == value) return w->known[i].constant;
    if (!LLVMIsAInstruction(value) || LLVMIsAPHINode(value) || depth == 0) return NULL;
    LLVMValueRef result = evaluate_operation(w, value, depth);
    return result && is_number(result) ? result : NULL;
}

/* ---- Where the way goes. */

/* Values that were known of an earlier round of a block are those of this one again, or not known. */
static void enter(struct way *w, LLVMBasicBlockRef from, LLVMBasicBlockRef block) {
    LLVMValueRef found[MOST_KNOWN];
    int count = 0;
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi) || count == MOST_KNOWN) break;
        LLVMValueRef value = phi_incoming(phi, from);
        found[count++] = value ? evaluate(w, value, MOST_DEPTH) : NULL;
    }
    int next = 0;
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        learn(w, phi, next < count ? found[next] : NULL);
        next++;
    }
}

/* NULL: not known. */
static LLVMBasicBlockRef find_target(struct way *w, LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block), condition, number;
    bool branch = LLVMIsABranchInst(end) != NULL;
    if (branch && !LLVMIsConditional(end)) return LLVMGetSuccessor(end, 0);
    if (!branch && !LLVMIsASwitchInst(end)) return NULL;
    condition = branch ? LLVMGetCondition(end) : LLVMGetOperand(end, 0);
    number = evaluate(w, condition, MOST_DEPTH);
    if (!number) return NULL;
    if (branch) return LLVMGetSuccessor(end, LLVMConstIntGetZExtValue(number) ? 0 : 1);
    for (unsigned s = 1; s < LLVMGetNumSuccessors(end); s++)
        if (LLVMGetOperand(end, 2 * s) == number) return LLVMGetSuccessor(end, s);
    return LLVMGetSuccessor(end, 0);
}

/* A call that a copy of the block may have, too: of nothing that brings lanes together. */
static bool is_plain_call(LLVMValueRef call) {
    static const char *const plain[] = {"llvm.lifetime.", "llvm.dbg.",  "llvm.assume", "llvm.umin.",
                                        "llvm.umax",      "llvm.smin.", "llvm.smax.",  "llvm.fma.",
                                        "llvm.fmuladd.",  CHECK_MARK};
    const char *name = called_name(call);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strncmp(name, plain[i], strlen(plain[i])) == 0) return true;
    return false;
}

/* A copy of an operation is another: right where nobody else can perform it at the same time. */
static bool may_copy(const struct way *w, LLVMValueRef call) {
    return is_plain_call(call) || (w->alone && intrinsic_traits(intrinsic_of(call))->kind == OF_SIMDGROUP);
}

/* Adds the block to the way. */
static bool pass(struct way *w, LLVMBasicBlockRef block) {
    if (w->count == MOST_STEPS) return false;
    for (int i = 0; i < w->count; i++)
        if (w->blocks[i] == block) return false;
    w->blocks[w->count++] = block;
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsAAllocaInst(i) || (LLVMIsACallInst(i) && !may_copy(w, i))) return false;
        const char *name = called_name(i);
        w->instructions += !LLVMIsAPHINode(i) && strncmp(name, "llvm.lifetime.", 14) != 0 &&
                           strncmp(name, CHECK_MARK, sizeof CHECK_MARK - 1) != 0;
    }
    return w->instructions <= MOST_INSTRUCTIONS;
}

static bool starts_loop(const struct flow *flow, int index) {
    int loop = flow->blocks[index].loop;
    return loop >= 0 && flow->loops[loop].header == index;
}

static bool is_return(LLVMBasicBlockRef block) {
    return LLVMIsAReturnInst(LLVMGetBasicBlockTerminator(block)) != NULL;
}

/* ---- Who passes by a barrier at which others wait. */

/* Must who comes from `above` to `block` wait at a barrier on the way there? */
static bool waits_between(const struct way *w, int above, int block, bool *seen) {
    if (w->phases->stands[block]) return true;
    if (block <= above || seen[block]) return seen[block];
    seen[block] = true;
    const struct flow_block *b = &w->flow->blocks[block];
    for (int p = 0; p < b->predecessor_count; p++)
        if (!waits_between(w, above, b->predecessors[p], seen)) return false;
    return true;
}

/* Have all waited who come to the block by other edges than this, since its dominator? */
static bool comes_alone(const struct way *w, int from, int first) {
    const struct flow_block *block = &w->flow->blocks[first];
    const int *level = w->phases->level;
    if (w->phases->stands[first] || !w->phases->waits[first] || !w->seen) return false;
    int edges = 0;
    for (int p = 0; p < block->predecessor_count; p++) {
        edges += block->predecessors[p] == from;
        if (block->predecessors[p] != from && level[block->predecessors[p]] <= level[block->dominator])
            return false;
    }
    if (edges == block->predecessor_count || edges > 1) return false;
    memset(w->seen, 0, (size_t)w->flow->block_count);
    w->seen[first] = true;
    for (int p = 0; p < block->predecessor_count; p++)
        if (block->predecessors[p] != from &&
            (block->predecessors[p] > first ||
             !waits_between(w, block->dominator, block->predecessors[p], w->seen)))
            return false;
    return true;
}

static void learn_branch(struct way *w, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(from);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) return;
    LLVMValueRef condition = LLVMGetCondition(end);
    bool taken = LLVMGetSuccessor(end, 0) == to;
    if (taken != (LLVMGetSuccessor(end, 1) == to))
        learn(w, condition, LLVMConstInt(LLVMTypeOf(condition), taken, false));
}

/* What holds on the edge, by its branch and those before, up to the block's dominator. */
static void learn_branches(struct way *w, int from, int first) {
    const struct flow_block *blocks = w->flow->blocks;
    learn_branch(w, blocks[from].block, blocks[first].block);
    while (from > blocks[first].dominator && blocks[from].predecessor_count == 1) {
        learn_branch(w, blocks[blocks[from].predecessors[0]].block, blocks[from].block);
        from = blocks[from].predecessors[0];
    }
}

/* Does who comes from `from` to `first` leave the loop around it, the last barrier that may come, or the
 * function, without a look at anything that is not known there? */
static bool leaves(struct way *w, LLVMBasicBlockRef from, int first) {
    LLVMBasicBlockRef block = w->flow->blocks[first].block;
    int loop = w->flow->blocks[first].loop;
    bool asked = false; /* something was decided on the way */
    w->count = w->instructions = w->known_count = 0;
    int before = flow_index(w->flow, from);
    w->alone = comes_alone(w, before, first);
    if (w->alone) learn_branches(w, before, first);
    while (pass(w, block)) {
        enter(w, from, block);
        LLVMBasicBlockRef next = find_target(w, block);
        if (!next) return false;
        asked |= LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(block)) > 1;
        from = block;
        w->target = block = next;
        int at = flow_index(w->flow, block);
        if (is_return(block) || !flow_block_within(w->flow, at, loop)) return asked;
        if (w->phases->waits[first] && !w->phases->waits[at]) return asked;
        if (starts_loop(w->flow, at) && w->flow->blocks[at].loop != loop) return false;
    }
    return false;
}

/* ---- A copy. */

/* A value of the block that others use lies in memory from here on; mem2reg ends that. */
static void put_in_memory(struct unit *unit, LLVMValueRef value, LLVMBasicBlockRef block, LLVMValueRef slot) {
    LLVMBuilderRef b = unit->builder;
    for (LLVMUseRef use = LLVMGetFirstUse(value), next; use; use = next) {
        LLVMValueRef user = LLVMGetUser(use);
        next = LLVMGetNextUse(use);
        LLVMBasicBlockRef reader = LLVMGetInstructionParent(user);
        bool phi = LLVMIsAPHINode(user) != NULL;
        if (!phi && reader != block) {
            LLVMPositionBuilderBefore(b, user);
            LLVMValueRef load = LLVMBuildLoad2(b, LLVMTypeOf(value), slot, "");
            for (int o = 0; o < LLVMGetNumOperands(user); o++)
                if (LLVMGetOperand(user, (unsigned)o) == value) LLVMSetOperand(user, (unsigned)o, load);
            next = LLVMGetFirstUse(value);
        }
        for (unsigned i = 0; phi && i < LLVMCountIncoming(user); i++) {
            LLVMBasicBlockRef way = LLVMGetIncomingBlock(user, i);
            if (LLVMGetIncomingValue(user, i) != value || way == block) continue;
            LLVMValueRef load = phi_incoming(user, way); /* of an equal edge, perhaps */
            if (load == value) {
                LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(way));
                load = LLVMBuildLoad2(b, LLVMTypeOf(value), slot, "");
            }
            LLVMSetOperand(user, i, load);
            next = LLVMGetFirstUse(value);
        }
    }
}

static bool is_used_outside(LLVMValueRef value, LLVMBasicBlockRef block) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAPHINode(user)) {
            if (LLVMGetInstructionParent(user) != block) return true;
            continue;
        }
        for (unsigned i = 0; i < LLVMCountIncoming(user); i++)
            if (LLVMGetIncomingValue(user, i) == value && LLVMGetIncomingBlock(user, i) != block) return true;
    }
    return false;
}

/* LLVM-C cannot take an incoming edge from a phi: those of the block are built again. */
static void forget_edge(struct unit *unit, LLVMBasicBlockRef block, LLVMBasicBlockRef from) {
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMPositionBuilderBefore(unit->builder, phi);
        LLVMValueRef rest = LLVMBuildPhi(unit->builder, LLVMTypeOf(phi), "");
        for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
            LLVMBasicBlockRef incoming = LLVMGetIncomingBlock(phi, i);
            LLVMValueRef value = LLVMGetIncomingValue(phi, i);
            if (value == phi) value = rest;
            if (incoming != from) LLVMAddIncoming(rest, &value, &incoming, 1);
        }
        LLVMReplaceAllUsesWith(phi, rest);
        LLVMInstructionEraseFromParent(phi);
    }
}

struct copies {
    LLVMValueRef *from, *to;
    int count;
};

static LLVMValueRef copy_of(const struct copies *c, LLVMValueRef value) {
    for (int i = 0; i < c->count; i++)
        if (c->from[i] == value) return c->to[i];
    return value;
}

static LLVMValueRef make_slot(struct unit *unit, LLVMValueRef function, LLVMValueRef value) {
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetFirstInstruction(entry));
    return LLVMBuildAlloca(unit->builder, LLVMTypeOf(value), "");
}

static void store_value(struct unit *unit, LLVMValueRef value, LLVMValueRef slot) {
    LLVMValueRef next = LLVMGetNextInstruction(value);
    while (LLVMIsAPHINode(next)) next = LLVMGetNextInstruction(next);
    LLVMPositionBuilderBefore(unit->builder, next);
    LLVMBuildStore(unit->builder, value, slot);
}

static void add_copy(struct copies *c, LLVMValueRef from, LLVMValueRef to) {
    c->from[c->count] = from;
    c->to[c->count++] = to;
}

/* The block's values as who came from `from` has them; `edge` stands for all of the way so far. */
static void copy_block(struct unit *unit, LLVMBasicBlockRef block, LLVMBasicBlockRef from,
                       LLVMBasicBlockRef edge, struct copies *c) {
    LLVMBuilderRef b = unit->builder;
    int before = c->count, phi = before;
    FOR_EACH_INSTRUCTION(i, block) {
        if (!LLVMIsAPHINode(i)) break;
        c->to[phi++] = copy_of(c, phi_incoming(i, from));
    }
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsATerminatorInst(i)) break;
        if (LLVMIsAPHINode(i)) {
            c->from[c->count++] = i;
            continue;
        }
        LLVMValueRef copy = LLVMInstructionClone(i);
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(edge));
        build_kept(b, copy);
        for (int o = 0; o < LLVMGetNumOperands(copy); o++)
            LLVMSetOperand(copy, (unsigned)o, copy_of(c, LLVMGetOperand(copy, (unsigned)o)));
        add_copy(c, i, copy);
    }
}

/* The loop is left to `target` from `edge` as it was from `last`. */
static void lead_to(LLVMBasicBlockRef edge, LLVMBasicBlockRef target, LLVMBasicBlockRef last,
                    const struct copies *c) {
    FOR_EACH_INSTRUCTION(phi, target) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef value = copy_of(c, phi_incoming(phi, last));
        LLVMAddIncoming(phi, &value, &edge, 1);
    }
    LLVMSetSuccessor(LLVMGetBasicBlockTerminator(edge), 0, target);
}

static smelt_status copy_way(struct way *w, struct arena *arena, LLVMBasicBlockRef from) {
    struct unit *unit = w->unit;
    LLVMBasicBlockRef first = w->blocks[0], last = w->blocks[w->count - 1];
    LLVMValueRef end = LLVMGetBasicBlockTerminator(from);
    unsigned successor = 0;
    size_t count = 0;
    while (LLVMGetSuccessor(end, successor) != first) successor++;
    for (int i = 0; i < w->count; i++) FOR_EACH_INSTRUCTION(instruction, w->blocks[i]) count++;
    struct copies c = {.from = arena_alloc(arena, count * sizeof *c.from),
                       .to = arena_alloc(arena, count * sizeof *c.to)};
    if (!c.from || !c.to)
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu instructions", count);
    LLVMBasicBlockRef edge = flow_split_edge(unit, from, successor);
    for (int i = 0; i < w->count; i++) copy_block(unit, w->blocks[i], i ? w->blocks[i - 1] : edge, edge, &c);
    lead_to(edge, w->target, last, &c);
    for (int i = 0; i < c.count; i++) {
        LLVMBasicBlockRef block = LLVMGetInstructionParent(c.from[i]);
        if (!is_used_outside(c.from[i], block)) continue;
        LLVMValueRef slot = make_slot(unit, LLVMGetBasicBlockParent(block), c.from[i]);
        put_in_memory(unit, c.from[i], block, slot);
        LLVMPositionBuilderBefore(unit->builder, LLVMGetBasicBlockTerminator(edge));
        LLVMBuildStore(unit->builder, c.to[i], slot);
        store_value(unit, c.from[i], slot);
    }
    forget_edge(unit, first, edge);
    return SMELT_OK;
}

/* ---- The pass. */

/* *found: there was one, and a copy was made. */
static smelt_status leave_once(struct unit *unit, LLVMValueRef function, bool *found) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, function, &arena, &flow);
    struct phases phases;
    struct way way = {.unit = unit, .flow = &flow, .phases = &phases};
    *found = false;
    if (status == SMELT_OK && !phases_find(&flow, &arena, &phases))
        status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", flow.block_count);
    if (status == SMELT_OK && flow.irreducible) flow.block_count = 0;
    if (status == SMELT_OK) way.seen = arena_alloc(&arena, (size_t)flow.block_count + 1);
    for (int i = 0; status == SMELT_OK && i < flow.block_count && !*found; i++) {
        const struct flow_block *block = &flow.blocks[i];
        for (int p = 0; p < block->predecessor_count && !*found; p++) {
            LLVMBasicBlockRef from = flow.blocks[block->predecessors[p]].block;
            if (block->predecessor_count < 2 || !leaves(&way, from, i)) continue;
            status = copy_way(&way, &arena, from);
            *found = true;
        }
    }
    arena_free(&arena);
    return status;
}

static bool is_called(struct unit *unit, enum intrinsic intrinsic) {
    LLVMValueRef function = intrinsic_function(unit->module, intrinsic);
    return function && LLVMGetFirstUse(function);
}

/* A kernel that asks for its simdgroup may mean to do what its operations do by other means. */
static bool concerns_simdgroups(enum intrinsic intrinsic) {
    return intrinsic_is_of_simdgroup(intrinsic) || intrinsic == INTRINSIC_SIMDGROUP ||
           intrinsic == INTRINSIC_SIMDGROUP_COUNT;
}

/* Does it matter which way a thread takes, apart from what it does there? */
static bool brings_threads_together(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMGetFirstUse(f) && concerns_simdgroups(intrinsic_of_function(f))) return true;
    }
    return is_called(unit, INTRINSIC_THREADGROUP_BARRIER) &&
           (is_called(unit, INTRINSIC_THREAD_RETURN) || is_called(unit, INTRINSIC_FUNCTION_RETURN));
}

smelt_status pass_leave(struct unit *unit) {
    bool any = false;
    if (!brings_threads_together(unit)) return SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        bool found = LLVMGetFirstBasicBlock(f) != NULL;
        for (int copies = 0; found && copies < MOST_COPIES; copies++) {
            TRY(leave_once(unit, f, &found));
            any |= found;
        }
    }
    return any ? run_passes(unit, "function(mem2reg,simplifycfg)") : SMELT_OK;
}
