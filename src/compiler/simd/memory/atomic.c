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
#include "compiler/simd/memory/atomic.h"

static int address_operand(LLVMValueRef instruction) {
    return LLVMGetInstructionOpcode(instruction) == LLVMStore ? 1 : 0;
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

/* The general case, for instructions with at most one result. operation: as in struct lane_loop. */
static void emit_by_lane(struct simd *s, LLVMValueRef instruction, enum simd_operation operation) {
    struct lane_loop loop = {.instruction = instruction, .operation = operation};
    LLVMTypeRef type = LLVMTypeOf(instruction);
    if (atomic_is_used(instruction)) loop.results[0] = type;
    atomic_run_lanes(s, &loop);
    if (!loop.results[0]) return;
    for (int k = 0; k < s->chunk_count; k++)
        chunk_set(s, instruction, k, atomic_load_chunk(s, type, loop.result_slots[0], k));
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
    bool used = atomic_is_used(instruction), same = is_integer(value) && shape_of(s, value) == SHAPE_UNIFORM;
    if (used || !same)
        for (int k = 0; k < s->chunk_count; k++)
            chunks[k] = lanes_keep_active(s, operation, chunk_of(s, value, k), mask_chunk(s, k));
    LLVMValueRef address = scalar_of(s, LLVMGetOperand(instruction, 0));
    LLVMValueRef one = same ? scalar_of(s, value) : NULL;
    struct when_any when = begin_when_any(s);
    total = same ? total_of_uniform(s, operation, one) : lanes_reduce(s, operation, chunks, s->chunk_count);
    LLVMValueRef operands[2] = {address, total};
    LLVMValueRef old = atomic_copy(s, instruction, operands);
    old = end_when_any(s, &when, used ? old : NULL);
    if (used) set_old_values(s, instruction, operation, old, chunks);
}

static void emit_update(struct simd *s, LLVMValueRef instruction) {
    LLVMValueRef value = LLVMGetOperand(instruction, 1);
    enum simd_operation operation = simdgroup_of_updates(LLVMGetAtomicRMWBinOp(instruction));
    bool combines = operation != SIMD_EXCLUSIVE && (is_integer(value) || !atomic_is_used(instruction));
    if (combines && shape_of(s, LLVMGetOperand(instruction, 0)) == SHAPE_UNIFORM) {
        update_once(s, instruction, operation);
        return;
    }
    simd_remark(s, instruction, "atomic: one lane at a time, %s",
                combines ? "because the address differs by lane" : "because the operation does not combine");
    /* In threadgroup memory, an update costs no more than comparing two lanes' addresses. */
    bool joins = combines && !atomic_is_used(instruction) &&
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
    LLVMValueRef result = end_when_any(s, &when, atomic_copy(s, load, &operand));
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
    atomic_copy(s, store, operands);
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
    bool used = atomic_is_used(exchange);
    if (used) {
        loop.results[0] = part_type(exchange, 0);
        loop.results[1] = byte;
    }
    atomic_run_lanes(s, &loop);
    if (!used) return;
    for (int k = 0; k < s->chunk_count; k++) {
        LLVMValueRef old = atomic_load_chunk(s, loop.results[0], loop.result_slots[0], k);
        LLVMValueRef done = atomic_load_chunk(s, byte, loop.result_slots[1], k);
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
        atomic_copy(s, instruction, NULL);
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
