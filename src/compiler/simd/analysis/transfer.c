/* The shape of an instruction's result, from the shapes of its operands. */
#include "compiler/simd/simd.h"

/* From this bit on, a constant's bits are all the same. */
static unsigned even_from(int64_t constant, unsigned width) {
    unsigned bit = 0;
    while (bit < width && bit < 62 && constant >> bit != 0 && constant >> bit != -1) bit++;
    return bit;
}

/* Adding a multiple of the power of two from which the constant's bits are all the same: it stays, or, where
 * the constant decides these bits, disappears. False: neither. */
static bool high_bits_stay(LLVMOpcode opcode, int64_t constant, bool *stay) {
    *stay = (constant < 0) == (opcode == LLVMAnd);
    return opcode == LLVMAnd || opcode == LLVMOr || (opcode == LLVMXor && *stay);
}

/* Bit operations with a constant act on the offsets alone if these do not reach the bits of lane 0, or only
 * those bits that the constant treats alike. */
static int bit_operation(struct simd *s, LLVMValueRef i, LLVMOpcode opcode, int shape, int64_t constant) {
    int64_t offsets[GANG_MAX_LANES];
    unsigned free_bits = range_zero_bits(s, LLVMGetOperand(i, 0));
    unsigned width = shape_width(i), even = even_from(constant, width);
    const int64_t *x = shape_offsets(s, shape);
    bool stay = false, splits = even < width && even < 62 && high_bits_stay(opcode, constant, &stay);
    if (free_bits > 62) free_bits = 62;
    for (int l = 0; l < s->lanes; l++) {
        uint64_t low = splits ? (uint64_t)x[l] & ((UINT64_C(1) << even) - 1) : (uint64_t)x[l];
        uint64_t value = low, c = (uint64_t)constant;
        if (low >= UINT64_C(1) << free_bits) return SHAPE_VARYING;
        switch (opcode) {
        case LLVMAnd:
            value &= c;
            break;
        case LLVMLShr:
        case LLVMAShr:
            if (c > 62 || (opcode == LLVMAShr && width == free_bits)) return SHAPE_VARYING;
            value >>= c;
            break;
        case LLVMOr:
            value =
                (value | c) - c; /* (base | x | c) - (base | c), as base and c may overlap in higher bits */
            break;
        case LLVMXor:
            c &= (UINT64_C(1) << free_bits) - 1; /* the other bits change all lanes alike */
            value = (value ^ c) - c;
            break;
        case LLVMUDiv:
        case LLVMURem: {
            if (!c || (c & (c - 1)) != 0) return SHAPE_VARYING;
            value = opcode == LLVMUDiv ? value / c : value % c;
            break;
        }
        default:
            return SHAPE_VARYING;
        }
        if (stay) value += (uint64_t)x[l] - low;
        offsets[l] = shape_wrap(value, width);
    }
    return shape_intern(s, offsets);
}

/* Widening keeps the offsets if no lane wraps. */
static int widen(struct simd *s, LLVMValueRef operand, int shape, bool is_signed) {
    unsigned width = shape_width(operand);
    const int64_t *x = shape_offsets(s, shape);
    int64_t low = 0, high = 0;
    if (width < 2) return SHAPE_VARYING;
    for (int i = 0; i < s->lanes; i++) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    /* Offsets that only fill bits that are zero in lane 0. */
    unsigned zeros = range_zero_bits(s, operand);
    if (low == 0 && zeros < (is_signed ? width : width + 1) && zeros < 63 && high >> zeros == 0) return shape;
    struct range range = range_unsigned(s, operand);
    uint64_t limit = (width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1) >> (is_signed ? 1 : 0);
    bool fits = range.high <= limit && (uint64_t)high <= limit - range.high && (uint64_t)-low <= range.low;
    return fits ? shape : SHAPE_VARYING;
}

/* Widening an index. In small launches (struct code_shape), every index in use is below 2^31 - SMALL_REACH.
 * If lane 0's is not, lane 0 is off, and lanes whose indexes are in use have wrapped around from it: their
 * offsets are relative to its index as a signed number. */
static int widen_index(struct simd *s, LLVMValueRef i, int shape, bool is_signed) {
    int proven = widen(s, LLVMGetOperand(i, 0), shape, is_signed);
    if (proven != SHAPE_VARYING) return proven;
    if (!s->code->small || shape_width(LLVMGetOperand(i, 0)) != 32 || !shape_is_near(s, shape) ||
        !shape_is_index(i))
        return SHAPE_VARYING;
    value_of(s, i)->signed_index = true;
    return shape;
}

static int element_shape(struct simd *s, LLVMValueRef gep) {
    int shape = shape_of(s, LLVMGetOperand(gep, 0));
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    for (int i = 1; i < LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, (unsigned)i);
        int own = shape_of(s, index);
        if (own == SHAPE_UNKNOWN || shape == SHAPE_UNKNOWN) return SHAPE_UNKNOWN;
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            type = LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(index));
            continue;
        }
        if (i > 1) type = LLVMGetElementType(type);
        /* Indexes are signed: one of 32 bits may wrap between lanes. */
        if (own > 0 && shape_width(index) < 64 &&
            !(s->code->small && shape_width(index) == 32 && shape_is_near(s, own)))
            own = widen(s, index, own, true);
        shape = shape_combine(s, shape, 1, own, (int64_t)LLVMABISizeOfType(s->unit->layout, type), 64);
    }
    return shape;
}

static int shape_of_call(struct simd *s, LLVMValueRef call) {
    enum intrinsic intrinsic = intrinsic_of(call);
    if (intrinsic_traits(intrinsic)->kind == OF_SIMDGROUP) return simdgroup_shape(s, call, intrinsic);
    if (intrinsic != INTRINSIC_NONE) return context_shape(s, call, intrinsic);
    bool unknown = false;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
        int shape = shape_of(s, LLVMGetOperand(call, i));
        if (shape == SHAPE_UNKNOWN)
            unknown = true;
        else if (shape != SHAPE_UNIFORM)
            return SHAPE_VARYING;
    }
    return unknown ? SHAPE_UNKNOWN : SHAPE_UNIFORM;
}

static int shape_of_binary(struct simd *s, LLVMValueRef i, LLVMOpcode opcode, int a, int b) {
    int64_t constant = 0;
    unsigned width = shape_width(i);
    bool by_constant = shape_constant(LLVMGetOperand(i, 1), &constant);
    switch (opcode) {
    case LLVMAdd:
        return shape_combine(s, a, 1, b, 1, width);
    case LLVMSub:
        return shape_combine(s, a, 1, b, -1, width);
    case LLVMMul:
        return by_constant ? shape_combine(s, a, constant, b, 0, width) : SHAPE_VARYING;
    case LLVMShl:
        return by_constant && constant >= 0 && constant < (int64_t)width
                   ? shape_combine(s, a, (int64_t)(UINT64_C(1) << constant), b, 0, width)
                   : SHAPE_VARYING;
    case LLVMOr:
        if (LLVMGetIsDisjoint(i)) return shape_combine(s, a, 1, b, 1, width);
        break;
    case LLVMXor: /* ~x = -1 - x */
        if (by_constant && constant == -1) return shape_combine(s, a, -1, b, 0, width);
        break;
    default:
        break;
    }
    int shape = by_constant && a > 0 && width > 1 ? bit_operation(s, i, opcode, a, constant) : SHAPE_VARYING;
    return shape == SHAPE_VARYING ? speculation_shape(s, i) : shape;
}

/* x < n, for lanes' numbers that fill the low bits: if n is a multiple of their count, as lane 0's number is,
 * all lanes are below it, or none. */
static int shape_of_comparison(struct simd *s, LLVMValueRef i, int left, int right) {
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(i);
    LLVMValueRef number = LLVMGetOperand(i, 0), bound = LLVMGetOperand(i, 1);
    bool suits = predicate == LLVMIntULT || predicate == LLVMIntUGE || predicate == LLVMIntSLT ||
                 predicate == LLVMIntSGE;
    if (!suits || left <= 0 || right != SHAPE_UNIFORM ||
        LLVMGetTypeKind(LLVMTypeOf(number)) != LLVMIntegerTypeKind)
        return SHAPE_VARYING;
    const int64_t *offsets = shape_offsets(s, left);
    unsigned bits = 0, number_zeros = range_zero_bits(s, number);
    for (int lane = 0; lane < s->lanes; lane++) {
        if (offsets[lane] < 0) return SHAPE_VARYING;
        while (bits < 32 && offsets[lane] >> bits) bits++;
    }
    if (bits >= 32 || bits >= shape_width(number) || number_zeros < bits) return SHAPE_VARYING;
    return range_zero_bits(s, bound) >= bits ? SHAPE_UNIFORM : SHAPE_VARYING;
}

static int shape_by_rules(struct simd *s, LLVMValueRef i) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    if (opcode == LLVMCall) return shape_of_call(s, i);
    if (opcode == LLVMAlloca) return private_shape(s, i);
    if (opcode == LLVMGetElementPtr) return private_is(s, i) ? SHAPE_VARYING : element_shape(s, i);
    if (opcode == LLVMAtomicRMW || opcode == LLVMAtomicCmpXchg) return SHAPE_VARYING;
    int shapes[3] = {SHAPE_UNIFORM, SHAPE_UNIFORM, SHAPE_UNIFORM}, count = LLVMGetNumOperands(i);
    bool uniform = true;
    if (count > 3) return SHAPE_VARYING;
    for (int o = 0; o < count; o++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)o);
        if (LLVMValueIsBasicBlock(operand)) continue;
        shapes[o] = shape_of(s, operand);
        if (shapes[o] == SHAPE_UNKNOWN) return SHAPE_UNKNOWN;
        uniform &= shapes[o] == SHAPE_UNIFORM;
    }
    if (uniform) return SHAPE_UNIFORM;
    switch (opcode) {
    case LLVMSExt:
    case LLVMZExt:
        return shapes[0] > 0 ? widen_index(s, i, shapes[0], opcode == LLVMSExt) : SHAPE_VARYING;
    case LLVMTrunc:
        return shape_combine(s, shapes[0], 1, SHAPE_UNIFORM, 0, shape_width(i));
    case LLVMPtrToInt:
    case LLVMIntToPtr:
        return shape_width(i) == 64 && shape_width(LLVMGetOperand(i, 0)) == 64 ? shapes[0] : SHAPE_VARYING;
    case LLVMAddrSpaceCast:
    case LLVMFreeze:
        return shapes[0];
    case LLVMICmp:
        return shape_of_comparison(s, i, shapes[0], shapes[1]);
    case LLVMSelect:
        return shapes[0] == SHAPE_UNIFORM ? shape_join(shapes[1], shapes[2]) : SHAPE_VARYING;
    default:
        return count == 2 ? shape_of_binary(s, i, opcode, shapes[0], shapes[1]) : SHAPE_VARYING;
    }
}

int shape_transfer(struct simd *s, LLVMValueRef i) {
    int shape = shape_by_rules(s, i);
    if (shape == SHAPE_VARYING) shape = shape_by_number(s, i);
    return shape == SHAPE_VARYING ? edges_shape(s, i) : shape;
}
