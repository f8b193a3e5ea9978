/* Calls with words, lines of the log and products of tiles: the words of all lanes go to memory, shared ones
 * once, and one call of the runtime (device/cpu/log.c, tile_calls.c) serves the active lanes in order. */
#include "abi/log_words.h"
#include "compiler/simd/simd.h"

static LLVMValueRef word_address(struct simd *s, LLVMValueRef slot, uint64_t place) {
    LLVMTypeRef word = type_i64(s->unit);
    LLVMValueRef index = LLVMConstInt(word, place, false);
    return LLVMBuildInBoundsGEP2(s->unit->builder, word, slot, &index, 1, "");
}

static LLVMValueRef make_words(struct simd *s, unsigned count) {
    return simd_slot(s, LLVMArrayType2(type_i64(s->unit), count ? count : 1));
}

static void store_word(struct simd *s, LLVMValueRef value, LLVMValueRef slot, uint64_t place) {
    LLVMSetAlignment(LLVMBuildStore(s->unit->builder, value, word_address(s, slot, place)), 8);
}

static void emit_words(struct simd *s, LLVMValueRef call, const char *function) {
    unsigned count = LLVMGetNumArgOperands(call), varying = 0;
    uint64_t varies[LOG_MOST_WORDS / 64 + 1] = {0};
    if (count > LOG_MOST_WORDS) {
        simd_refuse(s, call, "a call has %u words", count);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        if (shape_of(s, LLVMGetOperand(call, i)) == SHAPE_UNIFORM) continue;
        varies[i / 64] |= UINT64_C(1) << i % 64;
        varying++;
    }
    LLVMValueRef bits = make_words(s, (count + 63) / 64), shared = make_words(s, count),
                 by_lane = make_words(s, varying * (unsigned)s->lanes);
    for (unsigned i = 0; i < (count + 63) / 64; i++)
        store_word(s, LLVMConstInt(type_i64(s->unit), varies[i], false), bits, i);
    uint64_t place = 0;
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef word = LLVMGetOperand(call, i);
        if (!(varies[i / 64] >> i % 64 & 1)) {
            store_word(s, scalar_of(s, word), shared, i);
            continue;
        }
        for (int k = 0; k < s->chunk_count; k++, place += (uint64_t)s->chunk_lanes)
            store_word(s, chunk_of(s, word, k), by_lane, place);
    }
    LLVMValueRef lanes = lanes_in_memory(s, s->blocks[s->current].mask);
    LLVMValueRef arguments[6] = {s->context, lanes, simd_i32(s, (int64_t)count), bits, shared, by_lane};
    simd_call_runtime(s, function, LLVMVoidTypeInContext(s->unit->context), arguments, 6);
}

void emit_log(struct simd *s, LLVMValueRef call) {
    simd_remark(s, call, "log: one line at a time");
    emit_words(s, call, "smelt_runtime_gang_log");
}

void emit_tile(struct simd *s, LLVMValueRef call) {
    emit_words(s, call, "smelt_runtime_gang_tile");
}
