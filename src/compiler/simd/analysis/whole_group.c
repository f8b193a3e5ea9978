/* Estimates the size of the code of a gang that is a whole threadgroup, and finds loops of which some threads
 * run more rounds than others.
 *
 * The gang's barriers need no code, and its lanes' numbers are constants: in a reduction in steps,
 * `if (l < 16) part[l] += part[l + 16];` needs two vectors of eight lanes, however many lanes the gang has.
 *
 * The estimate precedes the analysis and goes instruction by instruction. Integers computed from lanes'
 * numbers and constants need no code. Values that all lanes share, and sums of these and such integers,
 * are computed once. All others are computed once per vector whose lanes may be active. */
#include "compiler/simd/lanes/packed.h"

#include <string.h>

/* KIND_PACKED: shared by the lanes of each simdgroup (packed.c). */
enum kind { KIND_SHARED, KIND_PACKED, KIND_NUMBER, KIND_POSITION, KIND_VARYING };

static bool has_kind(LLVMValueRef value) {
    return LLVMIsAInstruction(value) != NULL;
}

/* Until the analysis begins, the shapes of values hold their kinds. */
static enum kind kind_of(struct simd *s, LLVMValueRef value) {
    int kind = has_kind(value) ? value_of(s, value)->shape : KIND_SHARED;
    return kind == SHAPE_UNKNOWN ? KIND_SHARED : (enum kind)kind;
}

static bool is_integer(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind;
}

/* The kind of all operands together. A number and something shared that is not a constant give a position. */
static enum kind kind_of_operands(struct simd *s, LLVMValueRef i) {
    enum kind most = KIND_SHARED;
    bool shared = false, packed = false;
    for (int n = 0; n < LLVMGetNumOperands(i); n++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)n);
        enum kind kind = kind_of(s, operand);
        shared |= kind == KIND_SHARED && (has_kind(operand) || LLVMIsAArgument(operand));
        packed |= kind == KIND_PACKED;
        if (kind > most) most = kind;
    }
    if (packed && most > KIND_PACKED) return KIND_VARYING;
    return most == KIND_NUMBER && shared ? KIND_POSITION : most;
}

static enum kind find_kind_of_call(struct simd *s, LLVMValueRef call) {
    switch (intrinsic_of(call)) {
    case INTRINSIC_POSITION_IN_THREADGROUP:
    case INTRINSIC_THREAD_INDEX:
    case INTRINSIC_LANE:
    case INTRINSIC_SIMDGROUP:
        return KIND_NUMBER;
    case INTRINSIC_THREAD_POSITION:
        return KIND_POSITION;
    case INTRINSIC_SIMD_REDUCE_F32:
        return packed_is_reduction(call) ? KIND_PACKED : KIND_VARYING;
    case INTRINSIC_NONE:
        return kind_of_operands(s, call) <= KIND_PACKED ? kind_of_operands(s, call) : KIND_VARYING;
    default:
        return intrinsic_traits(intrinsic_of(call))->kind == OF_SIMDGROUP ? KIND_VARYING : KIND_SHARED;
    }
}

static enum kind find_kind(struct simd *s, LLVMValueRef i) {
    enum kind kind = kind_of_operands(s, i);
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMCall:
        return find_kind_of_call(s, i);
    case LLVMGetElementPtr:
        return kind == KIND_NUMBER ? KIND_POSITION : kind == KIND_PACKED ? KIND_VARYING : kind;
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
        return kind;
    case LLVMAlloca:
        return KIND_POSITION;
    default:
        if (kind == KIND_PACKED && !LLVMIsALoadInst(i)) return kind;
        return kind == KIND_SHARED || (kind == KIND_NUMBER && is_integer(i)) ? kind : KIND_VARYING;
    }
}

static bool find_kinds(struct simd *s, const struct flow *flow) {
    bool changed = false;
    for (int b = 0; b < flow->block_count; b++) {
        FOR_EACH_INSTRUCTION(i, flow->blocks[b].block) {
            struct value *value = value_of(s, i);
            enum kind kind = find_kind(s, i);
            if (!value || kind_of(s, i) >= kind) continue;
            value->shape = (int)kind;
            changed = true;
        }
    }
    return changed;
}

/* ---- Lanes that may be active in a block. */

struct lanes {
    int64_t first, end;
};

/* The thread's number in the group, through conversions. */
static bool is_own_number(struct simd *s, LLVMValueRef value) {
    while (LLVMIsAZExtInst(value) || LLVMIsASExtInst(value) || LLVMIsATruncInst(value))
        value = LLVMGetOperand(value, 0);
    uint64_t dimension;
    enum intrinsic intrinsic = intrinsic_of(value);
    return intrinsic == INTRINSIC_THREAD_INDEX ||
           (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP &&
            is_constant_integer(LLVMGetOperand(value, 0), &dimension) && dimension == 0 &&
            s->code->size[1] == 1 && s->code->size[2] == 1);
}

/* Keeps the lanes for which a comparison with a constant gives `wanted`: those below a number, or the
 * rest. */
static void keep_lanes(struct simd *s, LLVMValueRef condition, bool wanted, struct lanes *lanes) {
    uint64_t limit;
    if (!LLVMIsAICmpInst(condition) || !is_own_number(s, LLVMGetOperand(condition, 0)) ||
        !is_constant_integer(LLVMGetOperand(condition, 1), &limit) || limit >= GANG_MAX_LANES)
        return;
    int64_t from = (int64_t)limit;
    bool before;
    switch (LLVMGetICmpPredicate(condition)) {
    case LLVMIntULT:
    case LLVMIntSLT:
        before = wanted;
        break;
    case LLVMIntUGT:
    case LLVMIntSGT:
        from++;
        before = !wanted;
        break;
    case LLVMIntEQ:
        if (!wanted) return;
        lanes->first = lanes->first > from ? lanes->first : from;
        from++;
        before = true;
        break;
    default:
        return;
    }
    if (before && from < lanes->end) lanes->end = from;
    if (!before && from > lanes->first) lanes->first = from;
}

static struct lanes lanes_of_block(struct simd *s, const struct flow *flow, int b,
                                   const struct lanes *known) {
    const struct flow_block *block = &flow->blocks[b];
    struct lanes lanes = known[block->dominator];
    if (block->predecessor_count != 1 || block->predecessors[0] != block->dominator) return lanes;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[block->dominator].block);
    if (LLVMIsABranchInst(end) && LLVMIsConditional(end))
        keep_lanes(s, LLVMGetCondition(end), LLVMGetSuccessor(end, 0) == block->block, &lanes);
    return lanes;
}

static int64_t vectors_of(const struct lanes *lanes, int chunk_lanes) {
    if (lanes->end <= lanes->first) return 0;
    return (lanes->end - 1) / chunk_lanes - lanes->first / chunk_lanes + 1;
}

/* ---- The size. */

/* A reduction takes about six instructions per vector: one half of them shuffles. */
static int size_of_operation(enum intrinsic intrinsic) {
    switch (intrinsic) {
    case INTRINSIC_SIMD_REDUCE_I32:
    case INTRINSIC_SIMD_REDUCE_I64:
    case INTRINSIC_SIMD_REDUCE_F32:
        return 6;
    default:
        return intrinsic_traits(intrinsic)->kind == OF_SIMDGROUP ? 12 : 1;
    }
}

static int64_t size_of_instruction(struct simd *s, LLVMValueRef i, int64_t vectors) {
    enum kind kind = kind_of(s, i);
    if (LLVMIsAGetElementPtrInst(i) || LLVMIsABranchInst(i) || kind == KIND_NUMBER) return 0;
    bool store = LLVMIsAStoreInst(i) && kind_of(s, LLVMGetOperand(i, 1)) != KIND_SHARED;
    if (kind != KIND_VARYING && !store && !packed_is_reduction(i)) return 1;
    return vectors * size_of_operation(intrinsic_of(i));
}

#define DEVICE_SPACE 5

/* Loads from device memory in each round of a loop, which differ between lanes; without those of inner loops.
 * None in loops with simdgroup operations: what these give is the same in a whole gang of one simdgroup. */
static int count_device_loads(struct simd *s, const struct flow *flow, int loop) {
    int count = 0;
    for (int b = 0; b < flow->block_count; b++) {
        if (!flow_block_within(flow, b, loop)) continue;
        FOR_EACH_INSTRUCTION(i, flow->blocks[b].block) {
            if (intrinsic_traits(intrinsic_of(i))->kind == OF_SIMDGROUP) return 0;
            if (flow->blocks[b].loop != loop) continue;
            if (!LLVMIsALoadInst(i)) continue;
            LLVMValueRef address = LLVMGetOperand(i, 0);
            count += LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == DEVICE_SPACE &&
                     kind_of(s, address) != KIND_SHARED;
        }
    }
    return count;
}

/* Vectors of values other than integers that a loop carries and that must stay in registers. A sum in memory
 * costs a load and a store, which hardly matters where each round loads a vector from device memory for it.
 */
static int carried_by_loops(struct simd *s, const struct flow *flow, int chunks) {
    int most = 0;
    for (int l = 0; l < flow->loop_count; l++) {
        int count = 0, packed = 0;
        FOR_EACH_INSTRUCTION(phi, flow->blocks[flow->loops[l].header].block) {
            if (!LLVMIsAPHINode(phi)) break;
            if (kind_of(s, phi) == KIND_PACKED)
                packed++;
            else
                count += !is_integer(phi);
        }
        int vectors = packed ? packed : count * chunks;
        if (vectors > most && count + packed > count_device_loads(s, flow, l)) most = vectors;
    }
    return most;
}

/* ---- Loops of which some threads run more rounds than others. */

#define MAX_DEPTH 8 /* of sums of sums */

/* Whether the value is the phi plus something that all lanes share. */
static bool is_step(struct simd *s, LLVMValueRef value, LLVMValueRef phi, int depth) {
    if (value == phi) return true;
    if (depth == MAX_DEPTH || !has_kind(value)) return false;
    LLVMValueRef left = LLVMGetOperand(value, 0);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
        if (kind_of(s, left) == KIND_SHARED) return is_step(s, LLVMGetOperand(value, 1), phi, depth + 1);
        /* fall through */
    case LLVMSub:
        return kind_of(s, LLVMGetOperand(value, 1)) == KIND_SHARED && is_step(s, left, phi, depth + 1);
    default:
        return false;
    }
}

/* Whether the value is shared, a number, a position, or a sum of these. `k` of `for (k = me; …; k +=
 * threads)` is one, too: one thread runs at most one round more than another. */
static bool is_even(struct simd *s, LLVMValueRef value, int depth) {
    if (kind_of(s, value) != KIND_VARYING) return true;
    if (depth == MAX_DEPTH) return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMPHI:
        for (unsigned n = 0; n < LLVMCountIncoming(value); n++) {
            LLVMValueRef incoming = LLVMGetIncomingValue(value, n);
            if (kind_of(s, incoming) == KIND_VARYING && !is_step(s, incoming, value, 0)) return false;
        }
        return true;
    case LLVMAdd:
    case LLVMSub:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMICmp:
        for (int n = 0; n < LLVMGetNumOperands(value); n++)
            if (!is_even(s, LLVMGetOperand(value, (unsigned)n), depth + 1)) return false;
        return true;
    default:
        return false;
    }
}

/* Whether control leaves the loop here. */
static bool leaves(const struct flow *flow, int block, int loop) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[block].block);
    for (unsigned n = 0; n < LLVMGetNumSuccessors(end); n++)
        if (!flow_block_within(flow, flow_index(flow, LLVMGetSuccessor(end, n)), loop)) return true;
    return false;
}

/* Whether the access is made lane by lane, since its address does not follow from the lane's number. */
static bool is_scattered(struct simd *s, LLVMValueRef i) {
    if (LLVMIsALoadInst(i)) return kind_of(s, LLVMGetOperand(i, 0)) == KIND_VARYING;
    if (LLVMIsAStoreInst(i)) return kind_of(s, LLVMGetOperand(i, 1)) == KIND_VARYING;
    return LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i);
}

static bool is_uneven(struct simd *s, const struct flow *flow, int loop) {
    bool even = true, scattered = false;
    for (int b = 0; b < flow->block_count; b++) {
        if (!flow_block_within(flow, b, loop)) continue;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[b].block);
        if (leaves(flow, b, loop) && LLVMGetNumOperands(end) > 0)
            even &=
                LLVMIsABranchInst(end) && (!LLVMIsConditional(end) || is_even(s, LLVMGetCondition(end), 0));
        FOR_EACH_INSTRUCTION(i, flow->blocks[b].block) scattered |= is_scattered(s, i);
    }
    return !even && scattered;
}

smelt_status simd_measure_whole_group(struct simd *s, int threads, int chunk_lanes,
                                      struct whole_group *group) {
    struct flow flow;
    memset(s->table, 0, s->table_size * sizeof *s->table); /* an earlier analysis left shapes */
    TRY(flow_find(s->unit, s->entry, &s->arena, &flow));
    struct lanes *lanes = arena_alloc(&s->arena, (size_t)flow.block_count * sizeof *lanes);
    if (!lanes) return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the analysis");
    for (int round = 0; round < 8 && find_kinds(s, &flow); round++) {
    }
    int64_t size = 0;
    for (int b = 0; b < flow.block_count; b++) {
        lanes[b] = b ? lanes_of_block(s, &flow, b, lanes) : (struct lanes){0, threads};
        int64_t vectors = vectors_of(&lanes[b], chunk_lanes);
        FOR_EACH_INSTRUCTION(i, flow.blocks[b].block) size += size_of_instruction(s, i, vectors);
    }
    size -= (int64_t)s->unit->test_instructions;
    *group = (struct whole_group){.instructions = size > INT32_MAX ? INT32_MAX : (int)size,
                                  .carried = carried_by_loops(s, &flow, threads / chunk_lanes)};
    for (int loop = 0; loop < flow.loop_count; loop++) group->uneven |= is_uneven(s, &flow, loop);
    return SMELT_OK;
}
