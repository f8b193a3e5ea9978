/* Masks of AVX2 code as vectors of 32-bit words. AVX2 has no mask registers: a comparison sets all bits of an
 * element, and a blend or a masked access tests the highest one. LLVM keeps a vector of eight bits that
 * passes from block to block, or is combined with others, in 16-bit elements. It would pack each comparison
 * of 32-bit elements to these, and widen them again for each use. Here such masks become words of 0 or -1,
 * and each use tests their signs, which is no instruction.
 *
 * Requires: the complete code. Maintains: what it does. */
#include "base/arena.h"
#include "compiler/pass.h"

#include <stdint.h>

enum { LANES = 8 }; /* of a mask: those of a register of words */

struct word {
    LLVMValueRef mask, words;
    struct word *next;
};

struct masks {
    struct unit *unit;
    struct arena arena;
    struct word **table;
    size_t table_size;
    LLVMValueRef *kept; /* masks that become words */
    size_t kept_count;
};

static bool is_mask(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind && LLVMGetVectorSize(type) == LANES &&
           LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMIntegerTypeKind &&
           LLVMGetIntTypeWidth(LLVMGetElementType(type)) == 1;
}

static LLVMTypeRef words_type(struct masks *m) {
    return LLVMVectorType(LLVMInt32TypeInContext(m->unit->context), LANES);
}

/* An operation whose operands are masks, too. */
static bool is_logic(LLVMValueRef i) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    return opcode == LLVMAnd || opcode == LLVMOr || opcode == LLVMXor || LLVMIsASelectInst(i) ||
           LLVMIsAFreezeInst(i);
}

static bool is_used_elsewhere(LLVMValueRef i) {
    for (LLVMUseRef use = LLVMGetFirstUse(i); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAPHINode(user) || LLVMGetInstructionParent(user) != LLVMGetInstructionParent(i))
            return true;
    }
    return false;
}

/* ---- Which masks become words. */

static struct word *entry_of(struct masks *m, LLVMValueRef mask, bool add) {
    struct word **head = &m->table[((uintptr_t)mask >> 4) * UINT64_C(0x9E3779B97F4A7C15) % m->table_size];
    for (struct word *w = *head; w; w = w->next)
        if (w->mask == mask) return w;
    struct word *w = add ? arena_alloc(&m->arena, sizeof *w) : NULL;
    if (!w) return NULL;
    *w = (struct word){.mask = mask, .next = *head};
    return *head = w;
}

static void keep(struct masks *m, LLVMValueRef i) {
    if (entry_of(m, i, false) || !entry_of(m, i, true)) return;
    m->kept[m->kept_count++] = i;
}

static bool has_word(struct masks *m, LLVMValueRef value) {
    if (entry_of(m, value, false)) return true;
    if (!LLVMIsACmpInst(value)) return false;
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(LLVMGetOperand(value, 0)));
    return LLVMGetTypeKind(element) == LLVMFloatTypeKind ||
           (LLVMGetTypeKind(element) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(element) == 32);
}

static void keep_if_worth(struct masks *m, LLVMValueRef i) {
    bool worth = LLVMIsAPHINode(i) || is_used_elsewhere(i);
    for (int o = 0; !worth && is_logic(i) && o < LLVMGetNumOperands(i); o++)
        worth = has_word(m, LLVMGetOperand(i, (unsigned)o));
    if (worth) keep(m, i);
}

/* ---- Words. */

static void position_after(struct unit *unit, LLVMValueRef i) {
    LLVMValueRef next = LLVMGetNextInstruction(i);
    while (LLVMIsAPHINode(next)) next = LLVMGetNextInstruction(next);
    LLVMPositionBuilderBefore(unit->builder, next);
}

static LLVMValueRef test_signs(struct masks *m, LLVMValueRef words) {
    return LLVMBuildICmp(m->unit->builder, LLVMIntSLT, words, LLVMConstNull(LLVMTypeOf(words)), "");
}

static LLVMValueRef words_of(struct masks *m, LLVMValueRef mask);

static LLVMValueRef build_logic(struct masks *m, LLVMValueRef i) {
    LLVMBuilderRef b = m->unit->builder;
    LLVMValueRef operands[3] = {NULL};
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        operands[o] = LLVMGetOperand(i, (unsigned)o);
        if (is_mask(operands[o])) operands[o] = words_of(m, operands[o]);
    }
    LLVMPositionBuilderBefore(b, i);
    if (LLVMIsAFreezeInst(i)) return LLVMBuildFreeze(b, operands[0], "");
    if (LLVMIsASelectInst(i)) {
        LLVMValueRef when = LLVMGetOperand(i, 0);
        if (is_mask(when)) when = test_signs(m, operands[0]);
        return LLVMBuildSelect(b, when, operands[1], operands[2], "");
    }
    return LLVMBuildBinOp(b, LLVMGetInstructionOpcode(i), operands[0], operands[1], "");
}

static LLVMValueRef words_of(struct masks *m, LLVMValueRef mask) {
    LLVMBuilderRef b = m->unit->builder;
    if (!LLVMIsAInstruction(mask)) return LLVMBuildSExt(b, mask, words_type(m), "");
    struct word *w = entry_of(m, mask, true);
    if (w->words) return w->words;
    LLVMValueRef words;
    if (LLVMIsAPHINode(mask)) {
        LLVMPositionBuilderBefore(b, mask);
        words = LLVMBuildPhi(b, words_type(m), "");
    } else if (is_logic(mask)) {
        words = build_logic(m, mask);
    } else {
        position_after(m->unit, mask);
        words = LLVMBuildSExt(b, mask, words_type(m), "");
    }
    return entry_of(m, mask, true)->words = words;
}

static void fill_phi(struct masks *m, LLVMValueRef phi) {
    LLVMValueRef words = words_of(m, phi);
    for (unsigned n = 0; n < LLVMCountIncoming(phi); n++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, n);
        LLVMPositionBuilderBefore(m->unit->builder, LLVMGetBasicBlockTerminator(from));
        LLVMValueRef value = words_of(m, LLVMGetIncomingValue(phi, n));
        LLVMAddIncoming(words, &value, &from, 1);
    }
}

/* ---- Uses. */

static bool is_replaced(struct masks *m, LLVMValueRef i) {
    return (LLVMIsAPHINode(i) || is_logic(i)) && is_mask(i) && entry_of(m, i, false);
}

/* Has the user test the signs of words, but where a comparison is next to it. */
static void replace_operands(struct masks *m, LLVMValueRef user) {
    for (int o = 0; o < LLVMGetNumOperands(user); o++) {
        LLVMValueRef mask = LLVMGetOperand(user, (unsigned)o);
        if (!LLVMIsAInstruction(mask) || !is_mask(mask) || !entry_of(m, mask, false)) continue;
        bool near = LLVMGetInstructionParent(user) == LLVMGetInstructionParent(mask);
        if (near && !is_replaced(m, mask)) continue;
        LLVMPositionBuilderBefore(m->unit->builder, user);
        LLVMSetOperand(user, (unsigned)o, test_signs(m, words_of(m, mask)));
    }
}

static void remove_masks(struct masks *m) {
    for (size_t n = 0; n < m->kept_count; n++)
        if (is_replaced(m, m->kept[n]))
            LLVMReplaceAllUsesWith(m->kept[n], LLVMGetPoison(LLVMTypeOf(m->kept[n])));
    for (size_t n = 0; n < m->kept_count; n++)
        if (is_replaced(m, m->kept[n])) LLVMInstructionEraseFromParent(m->kept[n]);
}

static size_t count_masks(struct unit *unit) {
    size_t count = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) count += is_mask(i);
    return count;
}

static void convert(struct masks *m) {
    LLVMValueRef entry = m->unit->entry;
    FOR_EACH_BLOCK(block, entry)
    FOR_EACH_INSTRUCTION(i, block) if (is_mask(i) && LLVMIsAPHINode(i)) keep(m, i);
    FOR_EACH_BLOCK(block, entry)
    FOR_EACH_INSTRUCTION(i, block) if (is_mask(i)) keep_if_worth(m, i);
    size_t count = m->kept_count;
    for (size_t n = 0; n < count; n++) (void)words_of(m, m->kept[n]);
    for (size_t n = 0; n < count; n++)
        if (LLVMIsAPHINode(m->kept[n])) fill_phi(m, m->kept[n]);
    FOR_EACH_BLOCK(block, entry)
    FOR_EACH_INSTRUCTION(i, block) if (!is_replaced(m, i)) replace_operands(m, i);
    remove_masks(m);
}

smelt_status pass_simd_mask_words(struct unit *unit) {
    if (simd_vector_bits(unit->request->cpu, unit->request->features) != 256) return SMELT_OK;
    size_t count = count_masks(unit);
    struct masks m = {.unit = unit, .table_size = 2 * count + 1};
    m.table = arena_alloc(&m.arena, m.table_size * sizeof *m.table);
    m.kept = arena_alloc(&m.arena, (count + 1) * sizeof *m.kept);
    if (!m.arena.failed && count) convert(&m);
    arena_free(&m.arena);
    return SMELT_OK;
}
