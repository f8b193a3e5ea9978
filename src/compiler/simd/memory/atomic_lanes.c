/* An atomic operation lane by lane: a loop over the bits of the mask; operands and results lie in memory. */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/simd/memory/atomic.h"

#include <llvm-c/DebugInfo.h>

#define WORD_LANES 64
#define SLOT_ALIGNMENT 64

LLVMValueRef atomic_copy(struct simd *s, LLVMValueRef instruction, LLVMValueRef const *operands) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef copy = LLVMInstructionClone(instruction);
    int count = LLVMGetNumOperands(instruction);
    for (int i = 0; operands && i < count; i++) LLVMSetOperand(copy, (unsigned)i, operands[i]);
    copy_drop_metadata(copy);
    LLVMInstructionSetDebugLoc(copy, LLVMGetCurrentDebugLocation2(b));
    LLVMInsertIntoBuilder(b, copy);
    return copy;
}

/* The masks of some chunks as one integer, one bit per lane. */
static LLVMValueRef word_of_masks(struct simd *s, int first, int count) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMIntTypeInContext(s->unit->context, (unsigned)(count * s->chunk_lanes));
    LLVMValueRef word = LLVMConstNull(type);
    for (int k = 0; k < count; k++) {
        LLVMValueRef bits = LLVMBuildZExtOrBitCast(b, mask_bits(s, mask_or_ones(s, first + k)), type, "");
        LLVMValueRef place = LLVMConstInt(type, (unsigned long long)k * (unsigned)s->chunk_lanes, false);
        word = LLVMBuildOr(b, word, LLVMBuildShl(b, bits, place, ""), "");
    }
    return word;
}

/* One element per lane of the gang. */
static LLVMValueRef make_lanes(struct simd *s, LLVMTypeRef element) {
    LLVMValueRef slot = simd_slot(s, LLVMArrayType2(element, (unsigned)s->lanes));
    LLVMSetAlignment(slot, SLOT_ALIGNMENT);
    return slot;
}

static LLVMValueRef lane_address(struct simd *s, LLVMTypeRef element, LLVMValueRef slot, LLVMValueRef lane) {
    return LLVMBuildInBoundsGEP2(s->unit->builder, element, slot, &lane, 1, "");
}

static LLVMValueRef chunk_address(struct simd *s, LLVMTypeRef element, LLVMValueRef slot, int chunk,
                                  unsigned *alignment) {
    LLVMValueRef lane =
        LLVMConstInt(type_i64(s->unit), (unsigned long long)chunk * (unsigned)s->chunk_lanes, false);
    *alignment = (unsigned)LLVMABISizeOfType(s->unit->layout, element);
    return lane_address(s, element, slot, lane);
}

static void store_chunk(struct simd *s, LLVMTypeRef element, LLVMValueRef slot, int chunk,
                        LLVMValueRef vector) {
    unsigned alignment;
    LLVMValueRef address = chunk_address(s, element, slot, chunk, &alignment);
    LLVMSetAlignment(LLVMBuildStore(s->unit->builder, vector, address), alignment);
}

LLVMValueRef atomic_load_chunk(struct simd *s, LLVMTypeRef element, LLVMValueRef slot, int chunk) {
    unsigned alignment;
    LLVMValueRef address = chunk_address(s, element, slot, chunk, &alignment);
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, chunk_type(s, element), address, "");
    LLVMSetAlignment(load, alignment);
    return load;
}

static void prepare_operands(struct simd *s, struct lane_loop *loop) {
    for (int i = 0; i < loop->count; i++) {
        LLVMValueRef operand = LLVMGetOperand(loop->instruction, (unsigned)i);
        if (shape_of(s, operand) == SHAPE_UNIFORM) {
            loop->scalars[i] = scalar_of(s, operand);
            continue;
        }
        LLVMTypeRef type = LLVMTypeOf(operand);
        loop->slots[i] = make_lanes(s, type);
        for (int k = 0; k < s->chunk_count; k++)
            store_chunk(s, type, loop->slots[i], k, chunk_of(s, operand, k));
    }
    for (int i = 0; i < 2; i++)
        if (loop->results[i]) loop->result_slots[i] = make_lanes(s, loop->results[i]);
}

static LLVMValueRef operand_of_lane(struct simd *s, const struct lane_loop *loop, int i, LLVMValueRef lane) {
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(loop->instruction, (unsigned)i));
    if (loop->scalars[i]) return loop->scalars[i];
    return LLVMBuildLoad2(s->unit->builder, type, lane_address(s, type, loop->slots[i], lane), "");
}

static void run_lane(struct simd *s, const struct lane_loop *loop, LLVMValueRef const *operands,
                     LLVMValueRef lane) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef result = atomic_copy(s, loop->instruction, operands);
    bool pair = LLVMIsAAtomicCmpXchgInst(loop->instruction) != NULL;
    for (unsigned i = 0; i < 2; i++) {
        if (!loop->results[i]) continue;
        LLVMValueRef part = pair ? LLVMBuildExtractValue(b, result, i, "") : result;
        part = LLVMTypeOf(part) == loop->results[i] ? part : LLVMBuildZExt(b, part, loop->results[i], "");
        LLVMBuildStore(b, part, lane_address(s, loop->results[i], loop->result_slots[i], lane));
    }
}

/* The lane of the lowest bit of `word`, whose bit 0 is lane `first` of the gang. */
static LLVMValueRef lowest_lane(struct simd *s, LLVMValueRef word, int first) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(word);
    LLVMValueRef arguments[2] = {word, LLVMConstInt(simd_i1(s), 1, false)};
    LLVMValueRef lane = simd_intrinsic(s, "llvm.cttz", &type, 1, arguments, 2);
    lane = LLVMBuildZExtOrBitCast(b, lane, type_i64(s->unit), "");
    return LLVMBuildAdd(b, lane, LLVMConstInt(type_i64(s->unit), (unsigned)first, false), "");
}

static LLVMValueRef without_lowest(struct simd *s, LLVMValueRef word) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef one = LLVMConstInt(LLVMTypeOf(word), 1, false);
    return LLVMBuildAnd(b, word, LLVMBuildSub(b, word, one, ""), "");
}

/* Takes from the lanes of `rest` the first ones that have the address, too, and combines their values with
 * *value. Returns the other lanes. */
static LLVMValueRef join_lanes(struct simd *s, const struct lane_loop *loop, LLVMValueRef rest, int first,
                               LLVMValueRef address, LLVMValueRef *value) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(rest);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = simd_block(s, "atomic_next");
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMBasicBlockRef look = simd_block(s, "atomic_look");
    LLVMPositionBuilderAtEnd(b, look);
    LLVMBasicBlockRef join = simd_block(s, "atomic_join");
    LLVMPositionBuilderAtEnd(b, join);
    LLVMBasicBlockRef after = simd_block(s, "atomic_joined");
    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef left = LLVMBuildPhi(b, type, ""), total = LLVMBuildPhi(b, LLVMTypeOf(*value), "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, left, LLVMConstNull(type), ""), look, after);
    LLVMPositionBuilderAtEnd(b, look);
    LLVMValueRef lane = lowest_lane(s, left, first);
    LLVMValueRef same = LLVMBuildICmp(b, LLVMIntEQ, operand_of_lane(s, loop, 0, lane), address, "");
    LLVMBuildCondBr(b, same, join, after);
    LLVMPositionBuilderAtEnd(b, join);
    LLVMValueRef more = lanes_combine(s, loop->operation, total, operand_of_lane(s, loop, 1, lane));
    LLVMValueRef others = without_lowest(s, left);
    LLVMBuildBr(b, head);
    LLVMAddIncoming(left, (LLVMValueRef[]){rest, others}, (LLVMBasicBlockRef[]){before, join}, 2);
    LLVMAddIncoming(total, (LLVMValueRef[]){*value, more}, (LLVMBasicBlockRef[]){before, join}, 2);
    LLVMPositionBuilderAtEnd(b, after);
    *value = total;
    return left;
}

/* Runs the lanes whose bits are set in `word`. */
static void loop_over_word(struct simd *s, const struct lane_loop *loop, LLVMValueRef word, int first,
                           bool joins) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(word);
    LLVMValueRef zero = LLVMConstNull(type);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), body = simd_block(s, "atomic_lane");
    LLVMPositionBuilderAtEnd(b, body);
    LLVMBasicBlockRef after = simd_block(s, "atomic_lanes_done");
    LLVMPositionBuilderAtEnd(b, before);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, word, zero, ""), body, after);

    LLVMPositionBuilderAtEnd(b, body);
    LLVMValueRef left = LLVMBuildPhi(b, type, "lanes_left");
    LLVMAddIncoming(left, &word, &before, 1);
    LLVMValueRef lane = lowest_lane(s, left, first), rest = without_lowest(s, left);
    LLVMValueRef operands[MAX_OPERANDS];
    for (int i = 0; i < loop->count; i++) operands[i] = operand_of_lane(s, loop, i, lane);
    if (joins) rest = join_lanes(s, loop, rest, first, operands[0], &operands[1]);
    run_lane(s, loop, operands, lane);
    LLVMBasicBlockRef end = LLVMGetInsertBlock(b);
    LLVMAddIncoming(left, &rest, &end, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, rest, zero, ""), body, after);
    LLVMPositionBuilderAtEnd(b, after);
}

/* Lanes are joined if at least a quarter of them have the address of the next lane. */
#define ALIKE_SHARE 4

/* Whether many lanes of these chunks have the same address as their neighbour. */
static LLVMValueRef many_alike(struct simd *s, const struct lane_loop *loop, int first, int count) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef bits = LLVMIntTypeInContext(s->unit->context, (unsigned)s->chunk_lanes);
    int next[GANG_MAX_LANES];
    LLVMValueRef total = simd_i32(s, 0);
    for (int l = 0; l < s->chunk_lanes; l++) next[l] = l + 1 < s->chunk_lanes ? l + 1 : 0;
    for (int k = first; k < first + count; k++) {
        /* Lanes that are off may have any address. */
        LLVMValueRef own = LLVMBuildFreeze(b, chunk_of(s, LLVMGetOperand(loop->instruction, 0), k), "");
        LLVMValueRef same =
            LLVMBuildICmp(b, LLVMIntEQ, own, lanes_shuffle(s, own, NULL, next, s->chunk_lanes), "");
        LLVMValueRef word = mask_bits(s, same);
        word = simd_intrinsic(s, "llvm.ctpop", &bits, 1, &word, 1);
        total = LLVMBuildAdd(b, total, LLVMBuildIntCast2(b, word, type_i32(s->unit), false, ""), "");
    }
    return LLVMBuildICmp(b, LLVMIntUGE, total, simd_i32(s, count * s->chunk_lanes / ALIKE_SHARE), "");
}

static void run_chunks(struct simd *s, const struct lane_loop *loop, int first, int count) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef word = word_of_masks(s, first, count);
    if (loop->operation == SIMD_EXCLUSIVE) {
        loop_over_word(s, loop, word, first * s->chunk_lanes, false);
        return;
    }
    LLVMValueRef alike = many_alike(s, loop, first, count);
    LLVMBasicBlockRef joined = simd_block(s, "atomic_alike"), apart = simd_block(s, "atomic_apart");
    LLVMBuildCondBr(b, alike, joined, apart);
    LLVMPositionBuilderAtEnd(b, joined);
    loop_over_word(s, loop, word, first * s->chunk_lanes, true);
    LLVMBasicBlockRef last = LLVMGetInsertBlock(b);
    LLVMPositionBuilderAtEnd(b, apart);
    loop_over_word(s, loop, word, first * s->chunk_lanes, false);
    LLVMBasicBlockRef after = simd_block(s, "atomic_done");
    LLVMBuildBr(b, after);
    LLVMPositionBuilderAtEnd(b, last);
    LLVMBuildBr(b, after);
    LLVMPositionBuilderAtEnd(b, after);
}

void atomic_run_lanes(struct simd *s, struct lane_loop *loop) {
    loop->count = LLVMGetNumOperands(loop->instruction);
    prepare_operands(s, loop);
    int chunks = WORD_LANES / s->chunk_lanes;
    for (int k = 0; k < s->chunk_count; k += chunks) {
        int left = s->chunk_count - k;
        run_chunks(s, loop, k, left < chunks ? left : chunks);
    }
}
