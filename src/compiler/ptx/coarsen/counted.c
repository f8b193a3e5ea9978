/* Loops around matrix products, and loops that fill the tiles of such products, are unrolled fully if every
 * thread runs the same few rounds.
 *
 *   for (uint i = thread; i < 64 * 32 / 4; i += 128) tile[i] = a[…];     four rounds if there are 128 threads
 *   for (uint k = 0; k < 32; k += 8) { simdgroup_load(…); … }            four steps of products
 *
 * In the first, LLVM does not see that the number of rounds is a constant, since the counter starts at the
 * thread's number; a second counter shows it. All loads of a tile are then begun together. In the second,
 * LLVM leaves the rounds alone because each is long; two of them can share a product of twice the depth.
 *
 * Requires: the optimised code, inlined. Maintains: what the code does. */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#define MOST_ROUNDS 16
#define MOST_FILLING 1024 /* instructions of all rounds of a loop that fills a tile */
#define MOST_STEPS 4096   /* … and of one of products */
#define MOST_DEPTH 8      /* of the computation of a counter's start */
#define MOST_START 65536

struct interval {
    uint64_t low, high;
};

struct loop_counter {
    LLVMValueRef start, step, tested, test; /* the comparison that ends a round is of `tested` with `end` */
    LLVMValueRef end, branch;
    bool after; /* `tested` is the counter of the next round */
    bool stays; /* what the comparison is if there is another round */
};

static bool note_range(LLVMValueRef call, struct interval *out) {
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(call));
    LLVMValueRef node = LLVMGetMetadata(call, LLVMGetMDKindIDInContext(context, "range", 5)), ends[2];
    if (!node || LLVMGetMDNodeNumOperands(node) != 2) return false;
    LLVMGetMDNodeOperands(node, ends);
    out->low = LLVMConstIntGetZExtValue(ends[0]);
    out->high = LLVMConstIntGetZExtValue(ends[1]) - 1;
    return out->low <= out->high && out->high < MOST_START;
}

static bool find_interval(LLVMValueRef value, struct interval *out, int depth);

static bool find_of_instruction(LLVMValueRef value, struct interval *out, int depth) {
    uint64_t by = 0;
    if (depth == 0 || !LLVMIsAInstruction(value)) return false;
    if (LLVMIsACallInst(value)) return note_range(value, out);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMZExt || opcode == LLVMTrunc)
        return find_interval(LLVMGetOperand(value, 0), out, depth - 1);
    if (!LLVMIsABinaryOperator(value) || !is_constant_integer(LLVMGetOperand(value, 1), &by) ||
        !find_interval(LLVMGetOperand(value, 0), out, depth - 1))
        return false;
    switch (opcode) {
    case LLVMLShr:
        out->low >>= by & 63;
        out->high >>= by & 63;
        return true;
    case LLVMAnd:
        if ((by & (by + 1)) != 0) return false; /* of the lowest bits */
        if (out->high > by) *out = (struct interval){0, by};
        return true;
    case LLVMAdd:
    case LLVMMul:
        if (by >= MOST_START) return false;
        out->low = opcode == LLVMAdd ? out->low + by : out->low * by;
        out->high = opcode == LLVMAdd ? out->high + by : out->high * by;
        return true;
    case LLVMShl:
        if (by > 16) return false;
        out->low <<= by;
        out->high <<= by;
        return true;
    default:
        return false;
    }
}

/* Of an unsigned number without wrapping. */
static bool find_interval(LLVMValueRef value, struct interval *out, int depth) {
    uint64_t number = 0;
    if (is_constant_integer(value, &number))
        *out = (struct interval){number, number};
    else if (!find_of_instruction(value, out, depth))
        return false;
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
    return out->high < MOST_START && (width >= 16 || out->high < UINT64_C(1) << width);
}

/* A loop that is entered at its header from one block and ends its rounds in one, by a comparison of its
 * counter with a constant. */
static bool find_counter(const struct flow *flow, int loop, struct loop_counter *c) {
    const struct flow_loop *l = &flow->loops[loop];
    if (l->latch_count != 1) return false;
    LLVMBasicBlockRef latch = flow->blocks[l->latches[0]].block, header = flow->blocks[l->header].block;
    c->branch = LLVMGetBasicBlockTerminator(latch);
    if (!LLVMIsABranchInst(c->branch) || !LLVMIsConditional(c->branch)) return false;
    c->test = LLVMGetCondition(c->branch);
    if (!LLVMIsAICmpInst(c->test)) return false;
    c->stays = LLVMGetSuccessor(c->branch, 0) == header;
    c->tested = LLVMGetOperand(c->test, 0);
    c->end = LLVMGetOperand(c->test, 1);
    LLVMValueRef phi = LLVMIsABinaryOperator(c->tested) ? LLVMGetOperand(c->tested, 0) : c->tested;
    if (!LLVMIsAPHINode(phi) || LLVMCountIncoming(phi) != 2 || LLVMGetInstructionParent(phi) != header ||
        !LLVMIsAConstantInt(c->end))
        return false;
    bool second = LLVMGetIncomingBlock(phi, 1) == latch;
    LLVMValueRef next = LLVMGetIncomingValue(phi, second);
    c->start = LLVMGetIncomingValue(phi, !second);
    if (!LLVMIsABinaryOperator(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
        LLVMGetOperand(next, 0) != phi)
        return false;
    c->step = LLVMGetOperand(next, 1);
    c->after = c->tested == next;
    return c->after || c->tested == phi;
}

/* Of a counter that starts there; 0: more than MOST_ROUNDS, or it does not just grow. */
static int rounds_from(struct unit *unit, const struct loop_counter *c, uint64_t start) {
    LLVMTypeRef type = LLVMTypeOf(c->tested);
    uint64_t step = 0, limit = UINT64_C(1) << (LLVMGetIntTypeWidth(type) - 1);
    if (!is_constant_integer(c->step, &step) || !step || step >= MOST_START) return 0;
    for (int round = 1; round <= MOST_ROUNDS && start + step < limit; round++, start += step) {
        LLVMValueRef value = LLVMConstInt(type, c->after ? start + step : start, false);
        LLVMValueRef test = LLVMBuildICmp(unit->builder, LLVMGetICmpPredicate(c->test), value, c->end, "");
        if (!LLVMIsAConstantInt(test)) return 0;
        if ((LLVMConstIntGetZExtValue(test) != 0) != c->stays) return round;
    }
    return 0;
}

/* 0: unknown, different, or many. */
static int count_rounds(struct unit *unit, const struct loop_counter *c) {
    struct interval start;
    switch (LLVMGetICmpPredicate(c->test)) {
    case LLVMIntEQ:
    case LLVMIntNE: /* from a start in between, the counter may miss the end */
        if (!LLVMIsAConstantInt(c->start)) return 0;
        break;
    default:
        break;
    }
    if (!find_interval(c->start, &start, MOST_DEPTH)) return 0;
    LLVMPositionBuilderBefore(unit->builder, c->test);
    int most = rounds_from(unit, c, start.low);
    return most && most == rounds_from(unit, c, start.high) ? most : 0;
}

/* ---- What a round does. */

struct round {
    uint64_t instructions; /* with all rounds of inner loops */
    bool products;         /* … and no load from device memory (matrix_rounds.c) */
    bool waits;
    bool fills; /* loads from device memory, and stores to threadgroup memory */
};

static unsigned space_of(LLVMValueRef access) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(access, LLVMIsAStoreInst(access) ? 1 : 0)));
}

/* How often a block runs in a round of a loop that it lies in, whose inner loops are unrolled. */
static uint64_t times_of(const struct flow *flow, int block, int loop, const int *rounds) {
    uint64_t times = 1;
    for (int inner = flow->blocks[block].loop; inner != loop; inner = flow->loops[inner].parent)
        times *= (uint64_t)rounds[inner];
    return times;
}

static struct round look_at(const struct flow *flow, int loop, const int *rounds) {
    struct round r = {0};
    bool loads = false, stores = false;
    for (int i = 0; i < flow->block_count; i++) {
        if (!flow_block_within(flow, i, loop)) continue;
        uint64_t times = times_of(flow, i, loop, rounds);
        FOR_EACH_INSTRUCTION(instruction, flow->blocks[i].block) {
            enum intrinsic intrinsic = intrinsic_of(instruction);
            r.instructions += times;
            r.products |= intrinsic == INTRINSIC_SIMD_MATRIX_PRODUCT;
            r.waits |= intrinsic == INTRINSIC_THREADGROUP_BARRIER;
            if (LLVMIsALoadInst(instruction)) loads |= space_of(instruction) == PTX_GLOBAL;
            if (LLVMIsAStoreInst(instruction)) stores |= space_of(instruction) == THREADGROUP_SPACE;
        }
    }
    r.fills = loads && stores;
    r.products &= !loads;
    return r;
}

static bool inner_are_unrolled(const struct flow *flow, int loop, const bool *unrolled) {
    for (int i = 0; i < flow->loop_count; i++)
        if (flow->loops[i].parent == loop && !unrolled[i]) return false;
    return true;
}

/* ---- A second counter: 0, 1, … */

static void add_counter(struct unit *unit, const struct flow *flow, int loop, const struct loop_counter *c,
                        int rounds) {
    const struct flow_loop *l = &flow->loops[loop];
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef latch = flow->blocks[l->latches[0]].block, header = flow->blocks[l->header].block;
    LLVMValueRef first = LLVMGetFirstInstruction(header); /* the counter is a phi */
    bool second = LLVMGetIncomingBlock(first, 1) == latch;
    LLVMBasicBlockRef from = LLVMGetIncomingBlock(first, !second);
    LLVMPositionBuilderBefore(b, first);
    LLVMValueRef counter = LLVMBuildPhi(b, type_i32(unit), "");
    LLVMPositionBuilderBefore(b, c->branch);
    LLVMValueRef next = LLVMBuildAdd(b, counter, constant_i32(unit, 1), "");
    LLVMValueRef values[2] = {constant_i32(unit, 0), next};
    LLVMBasicBlockRef blocks[2] = {from, latch};
    LLVMAddIncoming(counter, values, blocks, 2);
    LLVMIntPredicate predicate = c->stays ? LLVMIntULT : LLVMIntUGE;
    LLVMSetCondition(c->branch, LLVMBuildICmp(b, predicate, next, constant_i32(unit, (uint32_t)rounds), ""));
}

/* The number of rounds if the loop is to be unrolled, which is then constant for LLVM; or 0. */
static int consider(struct unit *unit, const struct flow *flow, int loop, const int *inner) {
    struct loop_counter c;
    if (!find_counter(flow, loop, &c)) return 0;
    struct round round = look_at(flow, loop, inner);
    if (round.waits || (!round.products && !round.fills)) return 0;
    int rounds = count_rounds(unit, &c);
    uint64_t most = round.products ? MOST_STEPS : MOST_FILLING;
    if (rounds < 1 || (uint64_t)rounds * round.instructions > most) return 0;
    if (!LLVMIsAConstantInt(c.start)) add_counter(unit, flow, loop, &c, rounds);
    return rounds;
}

static bool has_products(struct unit *unit) {
    LLVMValueRef product = intrinsic_function(unit->module, INTRINSIC_SIMD_MATRIX_PRODUCT);
    return product && LLVMGetFirstUse(product);
}

void ptx_want_counted(struct unit *unit, const struct flow *flow, bool *wanted, int *rounds) {
    if (!has_products(unit)) return;
    for (int i = flow->loop_count - 1; i >= 0; i--) { /* inner loops first */
        if (wanted[i] || !inner_are_unrolled(flow, i, wanted)) continue;
        int count = consider(unit, flow, i, rounds);
        if (count) rounds[i] = count;
        wanted[i] = count > 0;
    }
}
