/* Integers of three, five, six or seven bytes (clang moves small structs as such) are loaded and stored as
 * several words: a vector of them would have no padding in memory.
 *
 * Requires: nothing. Establishes: every integer loaded or stored has the size of a word. */
#include "compiler/simd/simd.h"

static LLVMValueRef part_address(struct simd *s, LLVMValueRef base, uint64_t bytes) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), bytes, false);
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &index, 1, "");
}

static unsigned align_at(unsigned align, uint64_t offset) {
    while (offset % align) align /= 2;
    return align;
}

static unsigned odd_bytes(LLVMTypeRef type) {
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind) return 0;
    unsigned bits = LLVMGetIntTypeWidth(type);
    return bits % 8 == 0 && bits < 64 && (bits & (bits - 1)) ? bits / 8 : 0;
}

static unsigned largest_word(unsigned bytes) {
    return bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
}

static void split_load(struct simd *s, LLVMValueRef load, unsigned bytes) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(load);
    LLVMValueRef whole = NULL;
    for (unsigned at = 0, size; at < bytes; at += size) {
        size = largest_word(bytes - at);
        LLVMValueRef address = part_address(s, LLVMGetOperand(load, 0), at);
        LLVMValueRef word = LLVMBuildLoad2(b, LLVMIntTypeInContext(s->unit->context, 8 * size), address, "");
        LLVMSetAlignment(word, align_at(LLVMGetAlignment(load), at));
        LLVMSetVolatile(word, LLVMGetVolatile(load));
        word = LLVMBuildZExt(b, word, type, "");
        if (at) word = LLVMBuildShl(b, word, LLVMConstInt(type, 8 * at, false), "");
        whole = whole ? LLVMBuildOr(b, whole, word, "") : word;
    }
    LLVMReplaceAllUsesWith(load, whole);
}

static void split_store(struct simd *s, LLVMValueRef store, unsigned bytes) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef value = LLVMGetOperand(store, 0);
    for (unsigned at = 0, size; at < bytes; at += size) {
        size = largest_word(bytes - at);
        LLVMValueRef word = value;
        if (at) word = LLVMBuildLShr(b, word, LLVMConstInt(LLVMTypeOf(value), 8 * at, false), "");
        word = LLVMBuildTrunc(b, word, LLVMIntTypeInContext(s->unit->context, 8 * size), "");
        LLVMValueRef part = LLVMBuildStore(b, word, part_address(s, LLVMGetOperand(store, 1), at));
        LLVMSetAlignment(part, align_at(LLVMGetAlignment(store), at));
        LLVMSetVolatile(part, LLVMGetVolatile(store));
    }
}

void words_split_odd(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        bool load = LLVMIsALoadInst(i) != NULL;
        if (!load && !LLVMIsAStoreInst(i)) continue;
        unsigned bytes = odd_bytes(LLVMTypeOf(load ? i : LLVMGetOperand(i, 0)));
        if (!bytes) continue;
        LLVMPositionBuilderBefore(s->unit->builder, i);
        if (load)
            split_load(s, i, bytes);
        else
            split_store(s, i, bytes);
        LLVMInstructionEraseFromParent(i);
    }
}
