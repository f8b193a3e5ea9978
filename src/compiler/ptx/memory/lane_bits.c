/* How the bits of an address follow from those of the lane's number (lane_bits.h). Sums are followed bit by
 * bit: nothing is carried out of a place where at most one summand can have a 1. */
#include "compiler/ptx/memory/lane_bits.h"

#include "compiler/ptx/ptx.h"

#include <string.h>

#define DEEPEST 24
#define MOST_VALUES 256 /* visits of one address's operands: a value that is used twice is visited twice */
#define ALL_LANES 31u
#define BANKS 32

static const struct lane_bit zero = {.kind = BIT_ZERO};

static struct lane_bit other(unsigned lanes) {
    return (struct lane_bit){.kind = BIT_OTHER, .lanes = (uint8_t)lanes};
}

static struct lane_number constant(uint64_t value) {
    struct lane_number n;
    for (unsigned i = 0; i < 64; i++)
        n.bits[i] = (struct lane_bit){.kind = value >> i & 1 ? BIT_ONE : BIT_ZERO};
    return n;
}

static void cut(struct lane_number *n, unsigned width) {
    for (unsigned i = width; i < 64; i++) n->bits[i] = zero;
}

/* If two of three summands are the same bit of the lane's number, that bit is carried, and the third summand
 * is the sum's bit. Returns the third one's index; -1: no two are the same. */
static int find_twice(const struct lane_bit three[3]) {
    for (int k = 0; k < 3; k++) {
        const struct lane_bit *a = &three[(k + 1) % 3], *b = &three[(k + 2) % 3];
        if (a->kind == BIT_OF_LANE && b->kind == BIT_OF_LANE && a->lanes == b->lanes) return k;
    }
    return -1;
}

static void add(struct lane_number *a, const struct lane_number *b) {
    struct lane_number out;
    struct lane_bit carry = zero;
    for (unsigned i = 0; i < 64; i++) {
        const struct lane_bit three[3] = {a->bits[i], b->bits[i], carry};
        unsigned lanes = 0, ones = 0;
        struct lane_bit one = zero;
        int twice = find_twice(three);
        if (twice >= 0) {
            out.bits[i] = three[twice];
            carry = three[(twice + 1) % 3];
            continue;
        }
        for (int k = 0; k < 3; k++) {
            if (three[k].kind == BIT_ZERO) continue;
            ones++;
            one = three[k];
            lanes |= three[k].lanes;
        }
        out.bits[i] = ones < 2 ? one : other(lanes);
        carry = ones < 2 ? zero : other(lanes);
    }
    *a = out;
}

static struct lane_number shifted(const struct lane_number *a, int left) {
    struct lane_number out = constant(0);
    for (int i = 0; i < 64; i++)
        if (i - left >= 0 && i - left < 64) out.bits[i] = a->bits[i - left];
    return out;
}

static struct lane_bit bit_and(struct lane_bit a, struct lane_bit b) {
    if (a.kind == BIT_ZERO || b.kind == BIT_ONE) return a;
    if (b.kind == BIT_ZERO || a.kind == BIT_ONE) return b;
    return other(a.lanes | b.lanes);
}

static struct lane_bit bit_or(struct lane_bit a, struct lane_bit b) {
    if (a.kind == BIT_ZERO || b.kind == BIT_ONE) return b;
    if (b.kind == BIT_ZERO || a.kind == BIT_ONE) return a;
    return other(a.lanes | b.lanes);
}

struct finder {
    const struct divergence *d;
    int place, values; /* `values`: visited so far */
};

static unsigned width_of(LLVMValueRef value) {
    return LLVMGetIntTypeWidth(LLVMTypeOf(value));
}

static void name_bit(struct lane_bit *bit, LLVMValueRef source, unsigned place) {
    bit->source = source;
    bit->place = (uint8_t)place;
}

/* What is known of any value. */
static struct lane_number leaf(const struct finder *f, LLVMValueRef value) {
    struct lane_number n;
    uint64_t differ = divergence_in_operand(f->d, value, f->place);
    unsigned zeros = ptx_known_zeros(f->d->unit, value);
    for (unsigned i = 0; i < 64; i++) {
        n.bits[i] = i < zeros ? zero : other(differ >> i & 1 ? ALL_LANES : 0);
        if (i >= zeros) name_bit(&n.bits[i], value, i);
    }
    return n;
}

/* A number below `most` that `call` returns: `count` bits of the lane's number from bit `from` on, then bits
 * that are the same in all lanes. */
static struct lane_number lane_number(LLVMValueRef call, unsigned from, unsigned count, uint32_t most) {
    struct lane_number n = constant(0);
    for (unsigned i = 0; i < count; i++)
        n.bits[i] = (struct lane_bit){.kind = BIT_OF_LANE, .lanes = (uint8_t)(1u << (from + i))};
    for (unsigned i = count; i < 32 && most > 1u << i; i++) {
        n.bits[i] = other(0);
        name_bit(&n.bits[i], call, i);
    }
    return n;
}

static bool find_position(const struct finder *f, LLVMValueRef call, struct lane_number *out) {
    const uint32_t *size = f->d->unit->request->shape.size;
    uint64_t dimension;
    switch (intrinsic_of(call)) {
    case INTRINSIC_LANE:
        *out = lane_number(call, 0, LANE_BITS, 0);
        return true;
    case INTRINSIC_THREAD_INDEX:
        *out = lane_number(call, 0, LANE_BITS, size[0] * size[1] * size[2]);
        return true;
    case INTRINSIC_POSITION_IN_THREADGROUP: {
        if (!is_constant_integer(LLVMGetOperand(call, 0), &dimension) || dimension > 1) return false;
        unsigned bits = 0;
        while (bits < LANE_BITS && size[0] % (2u << bits) == 0) bits++;
        if (bits < LANE_BITS && size[0] != 1u << bits) return false;
        if (dimension == 0) {
            *out = lane_number(call, 0, bits, size[0]);
            return true;
        }
        if (bits < LANE_BITS && size[1] % (32u >> bits)) return false;
        *out = lane_number(call, bits, LANE_BITS - bits, size[1]);
        return true;
    }
    default:
        return false;
    }
}

static struct lane_number find(struct finder *f, LLVMValueRef value, int depth);

static bool find_with_constant(LLVMOpcode opcode, const struct lane_number *a, uint64_t c,
                               struct lane_number *out) {
    bool power = c && !(c & (c - 1));
    int log = power ? __builtin_ctzll(c) : 0;
    switch (opcode) {
    case LLVMShl:
        *out = shifted(a, c < 64 ? (int)c : 64);
        return true;
    case LLVMLShr:
        *out = shifted(a, c < 64 ? -(int)c : -64);
        return true;
    case LLVMUDiv:
        if (power) *out = shifted(a, -log);
        return power;
    case LLVMURem:
        *out = *a;
        if (power) cut(out, (unsigned)log);
        return power;
    case LLVMMul:
        *out = constant(0);
        for (int i = 0; i < 64; i++) {
            if (!(c >> i & 1)) continue;
            struct lane_number part = shifted(a, i);
            add(out, &part);
        }
        return true;
    default:
        return false;
    }
}

static bool find_operation(struct finder *f, LLVMValueRef value, int depth, struct lane_number *out) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    LLVMValueRef right = LLVMGetOperand(value, 1);
    struct lane_number a = find(f, LLVMGetOperand(value, 0), depth), b;
    uint64_t c;
    if (is_constant_integer(right, &c) && find_with_constant(opcode, &a, c, out)) return true;
    if (opcode != LLVMAdd && opcode != LLVMOr && opcode != LLVMAnd) return false;
    b = find(f, right, depth);
    if (opcode == LLVMAdd) {
        *out = a;
        add(out, &b);
    }
    for (unsigned i = 0; i < 64 && opcode == LLVMAnd; i++) out->bits[i] = bit_and(a.bits[i], b.bits[i]);
    for (unsigned i = 0; i < 64 && opcode == LLVMOr; i++) out->bits[i] = bit_or(a.bits[i], b.bits[i]);
    return true;
}

/* A choice between two constants by one bit of the lane's number. */
static bool find_choice(struct finder *f, LLVMValueRef select, int depth, struct lane_number *out) {
    LLVMValueRef test = LLVMGetOperand(select, 0), masked;
    uint64_t set, clear, bit, none;
    if (!LLVMIsAICmpInst(test) || !is_constant_integer(LLVMGetOperand(select, 1), &set) ||
        !is_constant_integer(LLVMGetOperand(select, 2), &clear) ||
        !is_constant_integer(LLVMGetOperand(test, 1), &none) || none)
        return false;
    masked = LLVMGetOperand(test, 0);
    bool equal = LLVMGetICmpPredicate(test) == LLVMIntEQ;
    if ((!equal && LLVMGetICmpPredicate(test) != LLVMIntNE) || !LLVMIsABinaryOperator(masked) ||
        LLVMGetInstructionOpcode(masked) != LLVMAnd ||
        !is_constant_integer(LLVMGetOperand(masked, 1), &bit) || !bit || (bit & (bit - 1)))
        return false;
    struct lane_bit chosen = find(f, LLVMGetOperand(masked, 0), depth).bits[__builtin_ctzll(bit)];
    if (chosen.kind != BIT_OF_LANE) return false;
    uint64_t high = equal ? clear : set, low = equal ? set : clear;
    *out = constant(high & low);
    for (unsigned i = 0; i < 64; i++)
        if ((high ^ low) >> i & 1) out->bits[i] = high >> i & 1 ? chosen : other(chosen.lanes);
    return true;
}

static bool find_parts(struct finder *f, LLVMValueRef value, int depth, struct lane_number *out) {
    uint64_t number;
    if (is_constant_integer(value, &number)) {
        *out = constant(number);
        return true;
    }
    if (!LLVMIsAInstruction(value) || depth == 0) return false;
    if (LLVMIsACallInst(value)) return find_position(f, value, out);
    if (LLVMIsABinaryOperator(value)) return find_operation(f, value, depth - 1, out);
    if (LLVMIsASelectInst(value)) return find_choice(f, value, depth - 1, out);
    bool widens = LLVMIsAZExtInst(value) || LLVMIsASExtInst(value);
    if (!widens && !LLVMIsATruncInst(value)) return false;
    LLVMValueRef from = LLVMGetOperand(value, 0);
    *out = find(f, from, depth - 1);
    unsigned width = width_of(from);
    for (unsigned i = width; LLVMIsASExtInst(value) && i < 64; i++)
        out->bits[i] = out->bits[width - 1].kind == BIT_OF_LANE ? other(out->bits[width - 1].lanes)
                                                                : out->bits[width - 1];
    return true;
}

static struct lane_number find(struct finder *f, LLVMValueRef value, int depth) {
    struct lane_number out, known = leaf(f, value);
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind || width_of(value) > 64) return known;
    if (f->values++ >= MOST_VALUES || !find_parts(f, value, depth, &out)) out = known;
    /* Bits may be the same in all lanes although their operands' are not. */
    for (unsigned i = 0; i < 64; i++)
        if (out.bits[i].kind == BIT_OTHER) out.bits[i].lanes &= known.bits[i].lanes;
    cut(&out, width_of(value));
    return out;
}

static bool is_element(LLVMValueRef value) {
    if (LLVMIsAGetElementPtrInst(value)) return true;
    return LLVMIsAConstantExpr(value) && LLVMGetConstOpcode(value) == LLVMGetElementPtr;
}

static bool add_element(struct finder *f, LLVMValueRef gep, unsigned width, struct lane_number *out) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        struct lane_number number, part;
        if (i > 1 && LLVMGetTypeKind(type) != LLVMArrayTypeKind) return false;
        if (i > 1) type = LLVMGetElementType(type);
        number = find(f, index, DEEPEST);
        unsigned own = width_of(index);
        for (unsigned k = own; k < width; k++)
            number.bits[k] = number.bits[own - 1].kind == BIT_OF_LANE ? other(number.bits[own - 1].lanes)
                                                                      : number.bits[own - 1];
        if (!find_with_constant(LLVMMul, &number, LLVMABISizeOfType(f->d->unit->layout, type), &part))
            return false;
        add(out, &part);
    }
    cut(out, width);
    return true;
}

bool ptx_lane_address(const struct divergence *d, LLVMValueRef pointer, int place, struct lane_address *out) {
    struct finder f = {.d = d, .place = place};
    unsigned width =
        8 * LLVMPointerSizeForAS(d->unit->layout, LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)));
    out->offset = constant(0);
    /* Stops at an instruction that is the same in all lanes, such as the address of an argument's memory. */
    for (int steps = 0; is_element(pointer); steps++) {
        if (LLVMIsAInstruction(pointer) && divergence_in_operand(d, pointer, place) == 0) break;
        if (steps == DEEPEST || !add_element(&f, pointer, width, &out->offset)) return false;
        pointer = LLVMGetOperand(pointer, 0);
    }
    out->root = pointer;
    out->zeros = ptx_known_zeros(d->unit, pointer);
    return divergence_in_operand(d, pointer, place) == 0;
}

/* ---- Two addresses. */

static unsigned bit_in(struct lane_bit bit, unsigned lane) {
    return bit.kind == BIT_ONE || (bit.kind == BIT_OF_LANE && lane & bit.lanes);
}

bool ptx_lane_words(const struct lane_address *address, struct lane_words *out) {
    const struct lane_bit *bits = address->offset.bits;
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned lanes = 0;
        uint64_t word = 0;
        for (unsigned i = 2; i < 32; i++) {
            bool differs = bits[i].kind == BIT_OTHER && bits[i].lanes;
            if (differs && i < 7) return false;
            if (differs) lanes |= bits[i].lanes;
            word |= (uint64_t)bit_in(bits[i], lane) << (i - 2);
        }
        /* Unknown bits may depend on some bits of the lane's number: lanes that differ in these count as
         * accessing different words. */
        out->of[lane] = word | (uint64_t)(lane & lanes) << 32;
    }
    return true;
}

unsigned ptx_lane_passes(const struct lane_words *words, unsigned each) {
    unsigned passes = 0;
    for (unsigned first = 0; first < 32; first += 32 / each) {
        uint64_t served[BANKS][32];
        unsigned counts[BANKS] = {0}, most = 0;
        for (unsigned k = 0; k < 32; k++) {
            uint64_t word = words->of[first + k / each] + k % each;
            unsigned bank = (unsigned)word % BANKS, i = 0;
            while (i < counts[bank] && served[bank][i] != word) i++;
            if (i == counts[bank]) served[bank][counts[bank]++] = word;
            if (counts[bank] > most) most = counts[bank];
        }
        passes += most;
    }
    return passes;
}

unsigned ptx_lane_bank_words(const struct lane_address *low, const struct lane_address *high, unsigned k) {
    struct lane_words words, of_high;
    if (!ptx_lane_words(low, &words) || !ptx_lane_words(high, &of_high)) return 0;
    for (unsigned lane = 0; lane < 32; lane++)
        if (lane >> k & 1) words.of[lane] = of_high.of[lane];
    return ptx_lane_passes(&words, 1);
}

bool ptx_lane_distance(const struct lane_address *a, const struct lane_address *b, int64_t *distance) {
    *distance = 0;
    if (a->root != b->root) return false;
    for (unsigned i = 0; i < 32; i++) {
        const struct lane_bit *p = &a->offset.bits[i], *q = &b->offset.bits[i];
        bool constant = p->kind <= BIT_ONE && q->kind <= BIT_ONE;
        bool same = p->kind == q->kind &&
                    (p->kind == BIT_OF_LANE ? p->lanes == q->lanes
                                            : p->source && p->source == q->source && p->place == q->place);
        if (!constant && !same) return false;
        if (constant) *distance += ((int64_t)q->kind - (int64_t)p->kind) * (INT64_C(1) << i);
    }
    *distance = (int32_t)(uint32_t)*distance; /* offsets wrap */
    return true;
}

bool ptx_lane_addresses_differ(const struct lane_address *a, const struct lane_address *b) {
    if (a->root != b->root) return LLVMIsAGlobalVariable(a->root) && LLVMIsAGlobalVariable(b->root);
    for (unsigned i = 0; i < 32; i++) {
        unsigned p = a->offset.bits[i].kind, q = b->offset.bits[i].kind;
        if ((p == BIT_ZERO && q == BIT_ONE) || (p == BIT_ONE && q == BIT_ZERO)) return true;
    }
    return false;
}
