/* Atomic operations: lane by lane from lane 0 on, as the scalar engine runs them. If all lanes have one
 * address, their values are combined first, and memory is accessed once. So are those of neighbouring lanes
 * that turn out to have the same address, as in sums over sorted indexes. Sums of floats are then rounded
 * in another order than in the scalar engine (docs/semantics.md).
 *
 * Each operation is a copy of the original instruction with other operands; ordering, scope, alignment and
 * volatile stay. A compare-exchange returns a pair, which is not a value of a lane: its parts are in 2 ×
 * chunk_count stack slots (old values, then i1 successes), kept in `chunks` of the compare-exchange's value.
 * emit_atomic turns each extractvalue of it into loads of these. chunk_of and chunk_set are never used for
 * the pair itself; both its parts are varying. */
#include "compiler/combine.h"
#include "compiler/simd/lanes/lanes.h"

#include <llvm-c/DebugInfo.h>

#define WORD_LANES 64
#define SLOT_ALIGNMENT 64

/* ---- Copies of the original. */

static int address_operand(LLVMValueRef instruction) {
    return LLVMGetInstructionOpcode(instruction) == LLVMStore ? 1 : 0;
}

/* `operands` has as many entries as the instruction has operands; NULL for an instruction without. */
static LLVMValueRef build_copy(struct simd *s, LLVMValueRef instruction, LLVMValueRef const *operands) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef copy = LLVMInstructionClone(instruction);
    int count = LLVMGetNumOperands(instruction);
    for (int i = 0; operands && i < count; i++) LLVMSetOperand(copy, (unsigned)i, operands[i]);
    copy_drop_metadata(copy);
    LLVMInstructionSetDebugLoc(copy, LLVMGetCurrentDebugLocation2(b));
    LLVMInsertIntoBuilder(b, copy);
    return copy;
}

static bool is_used(LLVMValueRef instruction) {
    return LLVMGetFirstUse(instruction) != NULL;
}

/* ---- Masks. */

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

static LLVMValueRef count_lanes(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef total = simd_i32(s, 0);
    for (int k = 0; k < s->chunk_count; k++) {
        LLVMValueRef bits = mask_bits(s, mask_or_ones(s, k));
        LLVMTypeRef type = LLVMTypeOf(bits);
        bits = LLVMBuildZExtOrBitCast(b, simd_intrinsic(s, "llvm.ctpop", &type, 1, &bits, 1),
                                      type_i32(s->unit), "");
        total = LLVMBuildAdd(b, total, bits, "");
    }
    return total;
}

/* ---- What is done only if any lane is on: a guarded block may be gone through without. */

struct when_any {
    LLVMBasicBlockRef before, after; /* NULL: always done */
};

static struct when_any begin_when_any(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    struct when_any when = {NULL, NULL};
    LLVMValueRef masks[GANG_MAX_LANES];
    for (int k = 0; k < s->chunk_count; k++) {
        masks[k] = mask_chunk(s, k);
        if (!masks[k]) return when;
    }
    LLVMValueRef any = mask_any(s, masks, s->chunk_count);
    when.before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef body = simd_block(s, "atomic");
    LLVMPositionBuilderAtEnd(b, body);
    when.after = simd_block(s, "atomic_done");
    LLVMPositionBuilderAtEnd(b, when.before);
    LLVMBuildCondBr(b, any, body, when.after);
    LLVMPositionBuilderAtEnd(b, body);
    return when;
}

/* The value after the guarded block; result may be NULL. */
static LLVMValueRef end_when_any(struct simd *s, const struct when_any *when, LLVMValueRef result) {
    LLVMBuilderRef b = s->unit->builder;
    if (!when->after) return result;
    LLVMBasicBlockRef body = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, when->after);
    LLVMPositionBuilderAtEnd(b, when->after);
    if (!result) return NULL;
    LLVMTypeRef type = LLVMTypeOf(result);
    LLVMValueRef phi = LLVMBuildPhi(b, type, ""), nothing = LLVMConstNull(type);
    LLVMAddIncoming(phi, &result, &body, 1);
    LLVMAddIncoming(phi, &nothing, (LLVMBasicBlockRef *)&when->before, 1);
    return phi;
}

/* ---- Lane by lane: a loop over the bits of the mask; operands and results lie in memory. */

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

static LLVMValueRef load_chunk(struct simd *s, LLVMTypeRef element, LLVMValueRef slot, int chunk) {
    unsigned alignment;
    LLVMValueRef address = chunk_address(s, element, slot, chunk, &alignment);
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, chunk_type(s, element), address, "");
    LLVMSetAlignment(load, alignment);
    return load;
}

#define MAX_OPERANDS 3

struct lane_loop {
    LLVMValueRef instruction;
    int count;                          /* operands */
    LLVMValueRef scalars[MAX_OPERANDS]; /* uniform operands, or NULL: */
    LLVMValueRef slots[MAX_OPERANDS];   /* all others, by lane */
    LLVMTypeRef results[2];             /* of one lane; NULL: not used */
    enum simd_operation operation;      /* combines values for one address; SIMD_EXCLUSIVE: none does */
    LLVMValueRef result_slots[2];
};

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
    LLVMValueRef result = build_copy(s, loop->instruction, operands);
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

static void run_lanes(struct simd *s, struct lane_loop *loop) {
    loop->count = LLVMGetNumOperands(loop->instruction);
    prepare_operands(s, loop);
    int chunks = WORD_LANES / s->chunk_lanes;
    for (int k = 0; k < s->chunk_count; k += chunks) {
        int left = s->chunk_count - k;
        run_chunks(s, loop, k, left < chunks ? left : chunks);
    }
}

/* The general case, for instructions with at most one result. operation: as in struct lane_loop. */
static void emit_by_lane(struct simd *s, LLVMValueRef instruction, enum simd_operation operation) {
    struct lane_loop loop = {.instruction = instruction, .operation = operation};
    LLVMTypeRef type = LLVMTypeOf(instruction);
    if (is_used(instruction)) loop.results[0] = type;
    run_lanes(s, &loop);
    if (!loop.results[0]) return;
    for (int k = 0; k < s->chunk_count; k++)
        chunk_set(s, instruction, k, load_chunk(s, type, loop.result_slots[0], k));
}

/* ---- Read-modify-write at one address. */

static bool is_integer(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind;
}

/* All active lanes have the same integer: their number suffices. */
static LLVMValueRef total_of_uniform(struct simd *s, enum simd_operation operation, LLVMValueRef value) {
    LLVMBuilderRef b = s->unit->builder;
    if (operation != SIMD_SUM && operation != SIMD_XOR) return value;
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef count = count_lanes(s);
    if (operation == SIMD_XOR) count = LLVMBuildAnd(b, count, simd_i32(s, 1), "");
    return LLVMBuildMul(b, value, LLVMBuildIntCast2(b, count, type, false, ""), "");
}

/* What each lane would have read: the old value combined with the operands of the lanes before it. */
static void set_old_values(struct simd *s, LLVMValueRef instruction, enum simd_operation operation,
                           LLVMValueRef old, LLVMValueRef *chunks) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef masks[GANG_MAX_LANES];
    for (int k = 0; k < s->chunk_count; k++) masks[k] = mask_chunk(s, k);
    struct scan scan = {.operation = operation, .exclusive = true, .width = s->lanes, .masks = masks};
    lanes_scan(s, &scan, chunks, s->chunk_count);
    bool minus = LLVMGetAtomicRMWBinOp(instruction) == LLVMAtomicRMWBinOpSub;
    for (int k = 0; k < s->chunk_count; k++) {
        LLVMValueRef before = chunk_splat(s, old);
        LLVMValueRef vector =
            minus ? LLVMBuildSub(b, before, chunks[k], "") : lanes_combine(s, operation, before, chunks[k]);
        chunk_set(s, instruction, k, vector);
    }
}

static void update_once(struct simd *s, LLVMValueRef instruction, enum simd_operation operation) {
    LLVMValueRef value = LLVMGetOperand(instruction, 1), chunks[GANG_MAX_LANES], total;
    bool used = is_used(instruction), same = is_integer(value) && shape_of(s, value) == SHAPE_UNIFORM;
    if (used || !same)
        for (int k = 0; k < s->chunk_count; k++)
            chunks[k] = lanes_keep_active(s, operation, chunk_of(s, value, k), mask_chunk(s, k));
    LLVMValueRef address = scalar_of(s, LLVMGetOperand(instruction, 0));
    LLVMValueRef one = same ? scalar_of(s, value) : NULL;
    struct when_any when = begin_when_any(s);
    total = same ? total_of_uniform(s, operation, one) : lanes_reduce(s, operation, chunks, s->chunk_count);
    LLVMValueRef operands[2] = {address, total};
    LLVMValueRef old = build_copy(s, instruction, operands);
    old = end_when_any(s, &when, used ? old : NULL);
    if (used) set_old_values(s, instruction, operation, old, chunks);
}

static void emit_update(struct simd *s, LLVMValueRef instruction) {
    LLVMValueRef value = LLVMGetOperand(instruction, 1);
    enum simd_operation operation = simdgroup_of_updates(LLVMGetAtomicRMWBinOp(instruction));
    bool combines = operation != SIMD_EXCLUSIVE && (is_integer(value) || !is_used(instruction));
    if (combines && shape_of(s, LLVMGetOperand(instruction, 0)) == SHAPE_UNIFORM) {
        update_once(s, instruction, operation);
        return;
    }
    simd_remark(s, instruction, "atomic: one lane at a time, %s",
                combines ? "because the address differs by lane" : "because the operation does not combine");
    /* In threadgroup memory, an update costs no more than comparing two lanes' addresses. */
    bool joins = combines && !is_used(instruction) &&
                 LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(instruction, 0))) != THREADGROUP_SPACE;
    emit_by_lane(s, instruction, joins ? operation : SIMD_EXCLUSIVE);
}

/* ---- Loads and stores. */

static void emit_load(struct simd *s, LLVMValueRef load) {
    LLVMValueRef address = LLVMGetOperand(load, 0);
    if (shape_of(s, address) != SHAPE_UNIFORM) {
        simd_remark(s, load, "atomic: one lane at a time, because the address differs by lane");
        emit_by_lane(s, load, SIMD_EXCLUSIVE);
        return;
    }
    LLVMValueRef operand = scalar_of(s, address);
    struct when_any when = begin_when_any(s);
    LLVMValueRef result = end_when_any(s, &when, build_copy(s, load, &operand));
    if (shape_of(s, load) == SHAPE_UNIFORM)
        scalar_set(s, load, result);
    else
        for (int k = 0; k < s->chunk_count; k++) chunk_set(s, load, k, chunk_splat(s, result));
}

static void emit_store(struct simd *s, LLVMValueRef store) {
    LLVMValueRef value = LLVMGetOperand(store, 0), address = LLVMGetOperand(store, 1);
    if (shape_of(s, address) != SHAPE_UNIFORM || shape_of(s, value) != SHAPE_UNIFORM) {
        simd_remark(s, store, "atomic: one lane at a time, because the %s differs by lane",
                    shape_of(s, address) != SHAPE_UNIFORM ? "address" : "value");
        emit_by_lane(s, store, SIMD_EXCLUSIVE);
        return;
    }
    LLVMValueRef operands[2] = {scalar_of(s, value), scalar_of(s, address)};
    struct when_any when = begin_when_any(s);
    build_copy(s, store, operands);
    end_when_any(s, &when, NULL);
}

/* ---- Compare and exchange. */

static LLVMTypeRef part_type(LLVMValueRef exchange, unsigned part) {
    return LLVMStructGetTypeAtIndex(LLVMTypeOf(exchange), part);
}

/* A block may be emitted more than once; all copies share the slots. */
static void keep_part(struct simd *s, LLVMValueRef exchange, int place, LLVMValueRef vector) {
    struct value *v = value_of(s, exchange);
    if (!v->chunks) v->chunks = arena_alloc(&s->arena, 2 * (size_t)s->chunk_count * sizeof(LLVMValueRef));
    if (!v->chunks) return;
    if (!v->chunks[place]) v->chunks[place] = simd_slot(s, LLVMTypeOf(vector));
    LLVMBuildStore(s->unit->builder, vector, v->chunks[place]);
}

static void emit_exchange(struct simd *s, LLVMValueRef exchange) {
    simd_remark(s, exchange, "atomic: one lane at a time, as always with a comparison");
    struct lane_loop loop = {.instruction = exchange, .operation = SIMD_EXCLUSIVE};
    LLVMTypeRef byte = LLVMInt8TypeInContext(s->unit->context);
    bool used = is_used(exchange);
    if (used) {
        loop.results[0] = part_type(exchange, 0);
        loop.results[1] = byte;
    }
    run_lanes(s, &loop);
    if (!used) return;
    for (int k = 0; k < s->chunk_count; k++) {
        LLVMValueRef old = load_chunk(s, loop.results[0], loop.result_slots[0], k);
        LLVMValueRef done = load_chunk(s, byte, loop.result_slots[1], k);
        done = LLVMBuildTrunc(s->unit->builder, done, mask_type(s), "");
        keep_part(s, exchange, k, old);
        keep_part(s, exchange, s->chunk_count + k, done);
    }
}

static void emit_part(struct simd *s, LLVMValueRef extract) {
    LLVMValueRef exchange = LLVMGetOperand(extract, 0);
    LLVMTypeRef type = chunk_type(s, LLVMTypeOf(extract));
    struct value *v = value_of(s, exchange);
    int first = LLVMGetIndices(extract)[0] ? s->chunk_count : 0;
    for (int k = 0; v->chunks && k < s->chunk_count; k++)
        chunk_set(s, extract, k, LLVMBuildLoad2(s->unit->builder, type, v->chunks[first + k], ""));
}

/* ---- */

static bool is_ordered(LLVMValueRef memory_access) {
    return LLVMGetOrdering(memory_access) != LLVMAtomicOrderingNotAtomic;
}

static bool is_part(LLVMValueRef instruction) {
    return LLVMIsAExtractValueInst(instruction) && LLVMIsAAtomicCmpXchgInst(LLVMGetOperand(instruction, 0));
}

static bool is_atomic(LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMLoad:
    case LLVMStore:
        return is_ordered(instruction);
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
    case LLVMFence:
        return true;
    default:
        return is_part(instruction);
    }
}

bool emit_atomic(struct simd *s, LLVMValueRef instruction) {
    if (!is_atomic(instruction)) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    if (opcode == LLVMFence) {
        build_copy(s, instruction, NULL);
        return true;
    }
    if (opcode == LLVMExtractValue) {
        emit_part(s, instruction);
        return true;
    }
    LLVMValueRef address = LLVMGetOperand(instruction, (unsigned)address_operand(instruction));
    if (private_is(s, address)) {
        simd_refuse(s, instruction, "an atomic operation on a private array");
        return true;
    }
    if (opcode == LLVMLoad)
        emit_load(s, instruction);
    else if (opcode == LLVMStore)
        emit_store(s, instruction);
    else if (opcode == LLVMAtomicRMW)
        emit_update(s, instruction);
    else
        emit_exchange(s, instruction);
    return true;
}
