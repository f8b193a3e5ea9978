/* Look-ups of a word's 4-bit parts in a constant table of bfloats, the levels of a 4-bit format, become
 * permutations of bytes.
 *
 *     sum += table[word & 15] * x[0] + table[word >> 4 & 15] * x[1] …
 *
 * One instruction chooses four of eight bytes by the parts of half a word. Floats whose lower halves are 0
 * need two bytes, so a few instructions look up four of them, if elements 8 to 15 are elements 0 to 7 with
 * the other sign. Loads would take a pass of the shared memory each: they were half of all passes in a
 * product of mxfp4, which took 25.1 us with permutations instead of 26.6 (on an H200).
 *
 * Requires: the module in its final form except for narrow conversions; copies of tables marked (copied.c).
 * Maintains: what the code does; beyond the table, a look-up gives any number. */
#include "compiler/ptx/ptx.h"

#define PARTS 8  /* of a word */
#define CHOSEN 4 /* by one instruction */
#define PERMUTED 8
#define MOST_ELEMENTS 16
#define MOST_LOOKUPS 512
#define FEWEST_LOOKUPS 3 /* of a word */
#define FEWEST_TO_KEEP 32
#define MOST_KEPT 4
#define SIGN UINT32_C(0x80000000)
#define SIGNS UINT32_C(0x80808080) /* of four bytes */

struct lookup {
    LLVMValueRef load, table, word;
    unsigned part;
};

struct kept {
    uint32_t value;
    LLVMValueRef in_register;
};

struct nibbles {
    struct unit *unit;
    struct lookup lookups[MOST_LOOKUPS];
    int count;
    bool keeps; /* enough look-ups for constants that stay in registers */
    struct kept kept[MOST_KEPT];
    int kept_count;
    LLVMValueRef zero; /* NULL: not yet built */
};

/* ---- Which look-ups. */

static uint32_t bits_of(struct unit *unit, LLVMValueRef element) {
    LLVMValueRef bits = LLVMConstBitCast(element, type_i32(unit));
    return LLVMIsAConstantInt(bits) ? (uint32_t)LLVMConstIntGetZExtValue(bits) : 0;
}

/* Whether it has at most 16 floats, which are bfloats, too; those from the ninth on are negated ones. */
static bool is_table(struct unit *unit, LLVMValueRef table) {
    LLVMTypeRef type = LLVMGlobalGetValueType(table);
    LLVMValueRef values = LLVMGetInitializer(table);
    if (!LLVMIsGlobalConstant(table) || !values || LLVMIsUndef(values)) return false;
    if (LLVMGetTypeKind(LLVMGetElementType(type)) != LLVMFloatTypeKind) return false;
    if (LLVMGetArrayLength2(type) > MOST_ELEMENTS) return false;
    for (unsigned i = 0; i < LLVMGetArrayLength2(type); i++) {
        uint32_t bits = bits_of(unit, LLVMGetAggregateElement(values, i));
        if (bits & 0xffff) return false;
        if (i < PERMUTED) continue;
        if ((bits ^ bits_of(unit, LLVMGetAggregateElement(values, i - PERMUTED))) != SIGN) return false;
    }
    return true;
}

/* Takes an index for a part of a word. */
static bool find_part(struct unit *unit, LLVMValueRef index, struct lookup *l) {
    uint64_t mask, shift = 0;
    if (LLVMIsAZExtInst(index)) index = LLVMGetOperand(index, 0);
    if (LLVMTypeOf(index) != type_i32(unit) || !LLVMIsABinaryOperator(index)) return false;
    LLVMValueRef word = index;
    bool masked = LLVMGetInstructionOpcode(index) == LLVMAnd &&
                  is_constant_integer(LLVMGetOperand(index, 1), &mask) && mask == 15;
    if (masked) word = LLVMGetOperand(index, 0);
    if (LLVMIsABinaryOperator(word) && LLVMGetInstructionOpcode(word) == LLVMLShr &&
        is_constant_integer(LLVMGetOperand(word, 1), &shift))
        word = LLVMGetOperand(word, 0);
    if (shift % 4 || shift >= 4 * PARTS || (!masked && shift != 28)) return false;
    l->word = word;
    l->part = (unsigned)shift / 4;
    return true;
}

static bool find_lookup(struct unit *unit, LLVMValueRef load, struct lookup *l) {
    LLVMValueRef array, copy, index;
    if (!LLVMIsALoadInst(load) || LLVMGetVolatile(load) ||
        LLVMGetTypeKind(LLVMTypeOf(load)) != LLVMFloatTypeKind)
        return false;
    *l = (struct lookup){.load = load, .table = ptx_copied_table(unit, load, &copy)};
    LLVMValueRef address = LLVMGetOperand(load, 0);
    if (l->table) {
        /* The copy is not a global of its own any more: threadgroup memory is one block by now. */
        if (!LLVMIsAGetElementPtrInst(address) || LLVMGetOperand(address, 0) != copy) return false;
        index = ptx_index_in(LLVMGlobalGetValueType(l->table), address);
    } else if (ptx_element_of(unit, address, &array, &index)) {
        l->table = array;
    } else {
        return false;
    }
    return index && is_table(unit, l->table) && find_part(unit, index, l);
}

/* ---- Permutations. */

/* A constant whose value is hidden from NVIDIA's assembler, so that it stays in a register. The assembler
 * would move a known one to a register before each permutation, which was one instruction in ten of mxfp4
 * times vector. The builder is before `place`. */
static LLVMValueRef keep(struct nibbles *n, uint32_t value, LLVMValueRef place) {
    LLVMBuilderRef b = n->unit->builder;
    if (!n->keeps) return constant_i32(n->unit, value);
    for (int i = 0; i < n->kept_count; i++)
        if (n->kept[i].value == value) return n->kept[i].in_register;
    if (n->kept_count == MOST_KEPT) return constant_i32(n->unit, value);
    /* No lane has lane 31 before it. */
    LLVMPositionBuilderBefore(b, n->zero ? LLVMGetNextInstruction(n->zero)
                                         : LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(n->unit->entry)));
    if (!n->zero)
        n->zero = LLVMBuildLShr(b, ptx_register(n->unit, "lanemask.lt"), constant_i32(n->unit, 31), "");
    LLVMValueRef sum = LLVMBuildAdd(b, n->zero, constant_i32(n->unit, value), "");
    n->kept[n->kept_count++] = (struct kept){value, sum};
    LLVMPositionBuilderBefore(b, place);
    return sum;
}

static LLVMValueRef permute(struct unit *unit, LLVMValueRef low, LLVMValueRef high, LLVMValueRef selection) {
    LLVMValueRef operands[3] = {low, high, selection};
    return build_function(unit, "llvm.nvvm.prmt", operands, 3);
}

/* Byte `byte` of the first eight elements, by four. `parts`: the parts' lower three bits. */
static LLVMValueRef look_up(struct nibbles *n, const struct lookup *of, unsigned byte, LLVMValueRef parts) {
    struct unit *unit = n->unit;
    LLVMValueRef table = of->table;
    uint32_t words[PERMUTED / 4] = {0};
    unsigned count = (unsigned)LLVMGetArrayLength2(LLVMGlobalGetValueType(table));
    for (unsigned i = 0; i < count && i < PERMUTED; i++) {
        uint32_t bits = bits_of(unit, LLVMGetAggregateElement(LLVMGetInitializer(table), i));
        words[i / 4] |= (bits >> 8 * byte & 0xff) << 8 * (i % 4);
    }
    return permute(unit, keep(n, words[0], of->load), constant_i32(unit, words[1]), parts);
}

/* The upper bits of the parts of a word's lower half, as signs of bytes. */
static LLVMValueRef signs_of(struct nibbles *n, const struct lookup *of, LLVMValueRef word) {
    struct unit *unit = n->unit;
    LLVMBuilderRef b = unit->builder;
    /* A part below 8 chooses the byte 0x80, another one the sign of such a byte, 0xff. */
    LLVMValueRef bytes = permute(unit, keep(n, SIGNS, of->load), constant_i32(unit, SIGNS), word);
    return LLVMBuildAnd(b, LLVMBuildShl(b, bytes, constant_i32(unit, 1), ""), constant_i32(unit, SIGNS), "");
}

/* The floats of the four parts of a word's half. */
static void build_half(struct nibbles *n, const struct lookup *of, bool upper, LLVMValueRef *floats) {
    struct unit *unit = n->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef word = of->word;
    LLVMTypeRef type = LLVMFloatTypeInContext(unit->context);
    LLVMValueRef lower = LLVMBuildAnd(b, word, constant_i32(unit, 0x77777777), "");
    if (upper) {
        lower = LLVMBuildLShr(b, lower, constant_i32(unit, 16), "");
        word = LLVMBuildLShr(b, word, constant_i32(unit, 16), "");
    }
    LLVMValueRef third = look_up(n, of, 2, lower), fourth = look_up(n, of, 3, lower);
    if (LLVMGetArrayLength2(LLVMGlobalGetValueType(of->table)) > PERMUTED)
        fourth = LLVMBuildXor(b, fourth, signs_of(n, of, word), "");
    for (unsigned i = 0; i < CHOSEN; i++) {
        LLVMValueRef pair = permute(unit, third, fourth, constant_i32(unit, i < 2 ? 0x5140 : 0x7362));
        LLVMValueRef bits = i % 2 ? LLVMBuildAnd(b, pair, constant_i32(unit, UINT32_C(0xffff0000)), "")
                                  : LLVMBuildShl(b, pair, constant_i32(unit, 16), "");
        floats[i] = LLVMBuildBitCast(b, bits, type, "");
    }
}

static bool is_of(const struct lookup *l, const struct lookup *first) {
    return l->load && l->word == first->word && l->table == first->table;
}

/* The look-ups of the first one's word. They are built where the first one is. */
static bool build_word(struct nibbles *n, int first) {
    struct lookup *of = &n->lookups[first];
    LLVMValueRef floats[PARTS] = {NULL};
    int count = 0;
    bool halves[2] = {false, false};
    for (int i = first; i < n->count; i++) {
        if (!is_of(&n->lookups[i], of)) continue;
        count++;
        halves[n->lookups[i].part / CHOSEN] = true;
    }
    if (count < FEWEST_LOOKUPS) return false;
    LLVMPositionBuilderBefore(n->unit->builder, of->load);
    for (int half = 0; half < 2; half++)
        if (halves[half]) build_half(n, of, half, floats + half * CHOSEN);
    struct lookup same = *of;
    for (int i = first; i < n->count; i++) {
        struct lookup *l = &n->lookups[i];
        if (!is_of(l, &same)) continue;
        LLVMReplaceAllUsesWith(l->load, floats[l->part]);
        LLVMInstructionEraseFromParent(l->load);
        l->load = NULL;
    }
    return true;
}

static int build_block(struct nibbles *n, LLVMBasicBlockRef block) {
    int words = 0;
    n->count = 0;
    FOR_EACH_INSTRUCTION(i, block) {
        if (n->count == MOST_LOOKUPS) break;
        n->count += find_lookup(n->unit, i, &n->lookups[n->count]);
    }
    for (int i = 0; i < n->count; i++)
        if (n->lookups[i].load) words += build_word(n, i);
    return words;
}

smelt_status pass_ptx_nibbles(struct unit *unit) {
    struct nibbles n = {.unit = unit};
    struct lookup found;
    int words = 0, lookups = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) lookups += find_lookup(unit, i, &found);
    n.keeps = lookups >= FEWEST_TO_KEEP;
    FOR_EACH_BLOCK(block, unit->entry) words += build_block(&n, block);
    if (!words) return SMELT_OK;
    TRY(ptx_run_passes(unit, "function(early-cse,adce)"));
    return ptx_note(unit, "the 4-bit parts of %d words are looked up by permutations", words);
}
