/* Shapes: how the lanes' values differ from lane 0's. Offsets are numbers modulo the width of the value's
 * type, kept as signed ones; addresses count bytes. */
#include "compiler/simd/simd.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SHAPES 4096

int shape_intern(struct simd *s, const int64_t *offsets) {
    size_t bytes = (size_t)s->lanes * sizeof *offsets;
    for (int i = 0; i < s->shape_count; i++)
        if (memcmp(s->shapes[i], offsets, bytes) == 0) return i;
    if (s->shape_count == MAX_SHAPES || offsets[0] != 0) return SHAPE_VARYING;
    if (s->shape_count == s->shape_capacity) {
        int capacity = s->shape_capacity ? 2 * s->shape_capacity : 64;
        const int64_t **shapes = arena_alloc(&s->arena, (size_t)capacity * sizeof *shapes);
        if (!shapes) return SHAPE_VARYING;
        if (s->shape_count) memcpy(shapes, s->shapes, (size_t)s->shape_count * sizeof *shapes);
        s->shapes = shapes;
        s->shape_capacity = capacity;
    }
    int64_t *copy = arena_alloc(&s->arena, bytes);
    if (!copy) return SHAPE_VARYING;
    memcpy(copy, offsets, bytes);
    s->shapes[s->shape_count] = copy;
    return s->shape_count++;
}

const int64_t *shape_offsets(struct simd *s, int shape) {
    return s->shapes[shape];
}

int shape_stride(struct simd *s, int64_t stride) {
    int64_t offsets[GANG_MAX_LANES];
    for (int i = 0; i < s->lanes; i++) offsets[i] = i * stride;
    return shape_intern(s, offsets);
}

int shape_join(int a, int b) {
    if (a == SHAPE_UNKNOWN) return b;
    if (b == SHAPE_UNKNOWN) return a;
    return a == b ? a : SHAPE_VARYING;
}

/* ---- Arithmetic on offsets. */

static int64_t wrap(uint64_t value, unsigned width) {
    if (width >= 64) return (int64_t)value;
    uint64_t low = value & ((UINT64_C(1) << width) - 1), sign = UINT64_C(1) << (width - 1);
    return (int64_t)((low ^ sign) - sign);
}

/* Width of an integer or address; 0 of anything else. */
static unsigned width_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type) <= 64 ? LLVMGetIntTypeWidth(type) : 0;
    case LLVMPointerTypeKind:
        return 64;
    default:
        return 0;
    }
}

/* a × p + b × q. */
static int combine(struct simd *s, int a, int64_t p, int b, int64_t q, unsigned width) {
    int64_t offsets[GANG_MAX_LANES];
    if (a < 0 || b < 0 || width < 2) return SHAPE_VARYING;
    const int64_t *x = shape_offsets(s, a), *y = shape_offsets(s, b);
    for (int i = 0; i < s->lanes; i++)
        offsets[i] = wrap((uint64_t)x[i] * (uint64_t)p + (uint64_t)y[i] * (uint64_t)q, width);
    return shape_intern(s, offsets);
}

static bool constant_of(LLVMValueRef value, int64_t *out) {
    if (!LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64) return false;
    *out = LLVMConstIntGetSExtValue(value);
    return true;
}

/* Bit operations with a constant act on the offsets alone where these do not reach the bits of lane 0. */
static int bit_operation(struct simd *s, LLVMValueRef i, LLVMOpcode opcode, int shape, int64_t constant) {
    int64_t offsets[GANG_MAX_LANES];
    int free_bits = known_zero_bits(s, LLVMGetOperand(i, 0));
    unsigned width = width_of(i);
    const int64_t *x = shape_offsets(s, shape);
    if (free_bits > 62) free_bits = 62;
    for (int l = 0; l < s->lanes; l++) {
        if (x[l] < 0 || x[l] >= INT64_C(1) << free_bits) return SHAPE_VARYING;
        uint64_t value = (uint64_t)x[l], c = (uint64_t)constant;
        switch (opcode) {
        case LLVMAnd:
            value &= c;
            break;
        case LLVMLShr:
        case LLVMAShr:
            if (c > 62 || (opcode == LLVMAShr && width == (unsigned)free_bits)) return SHAPE_VARYING;
            value >>= c;
            break;
        case LLVMOr:
            value = (value | c) - c; /* (base | x | c) - (base | c) where base and c may overlap above */
            break;
        case LLVMXor:
            c &= (UINT64_C(1) << free_bits) - 1; /* the other bits change lane 0 and all lanes alike */
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
        offsets[l] = wrap(value, width);
    }
    return shape_intern(s, offsets);
}

/* Widening keeps the offsets if no lane wraps. */
static int widen(struct simd *s, LLVMValueRef operand, int shape, bool is_signed) {
    unsigned width = width_of(operand);
    const int64_t *x = shape_offsets(s, shape);
    int64_t low = 0, high = 0;
    if (width < 2) return SHAPE_VARYING;
    for (int i = 0; i < s->lanes; i++) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    struct range range = unsigned_range(s, operand);
    uint64_t limit = (width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1) >> (is_signed ? 1 : 0);
    bool fits = range.high <= limit && (uint64_t)high <= limit - range.high && (uint64_t)-low <= range.low;
    return fits ? shape : SHAPE_VARYING;
}

/* Indexes of several paths that meet are one. */
static bool reaches_indexes_only(LLVMValueRef value, int depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAPHINode(user) && depth > 0 && reaches_indexes_only(user, depth - 1)) continue;
        if (!LLVMIsAGetElementPtrInst(user) || LLVMGetOperand(user, 0) == value) return false;
    }
    return true;
}

bool is_index_only(LLVMValueRef widened) {
    return LLVMGetIntTypeWidth(LLVMTypeOf(widened)) == 64 && reaches_indexes_only(widened, 2);
}

/* Offsets that cannot carry an index from one end of the 32-bit numbers to another one that is used. */
static bool is_near(struct simd *s, int shape) {
    if (shape < 0) return false;
    const int64_t *x = shape_offsets(s, shape);
    for (int i = 0; i < s->lanes; i++)
        if (x[i] < -SMALL_REACH || x[i] > SMALL_REACH) return false;
    return true;
}

/* Widening an index. In small launches (struct code_shape) an index that is used lies below
 * 2^31 - SMALL_REACH, of whatever lane. If lane 0's is not, lane 0 is off, and lanes whose indexes are used
 * have wrapped around from it: its index, taken as a signed number, is the one their offsets count from. */
static int widen_index(struct simd *s, LLVMValueRef i, int shape, bool is_signed) {
    int proven = widen(s, LLVMGetOperand(i, 0), shape, is_signed);
    if (proven != SHAPE_VARYING) return proven;
    if (!s->code->small || width_of(LLVMGetOperand(i, 0)) != 32 || !is_near(s, shape) || !is_index_only(i))
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
        /* Indexes are signed numbers: one of 32 bits may wrap between lanes. */
        if (own > 0 && width_of(index) < 64 && !(s->code->small && width_of(index) == 32 && is_near(s, own)))
            own = widen(s, index, own, true);
        shape = combine(s, shape, 1, own, (int64_t)LLVMABISizeOfType(s->unit->layout, type), 64);
    }
    return shape;
}

/* ---- Within chunks (piece.c): the same rules, as far as they need no knowledge of lane 0. */

static bool constant_of(LLVMValueRef value, int64_t *out);

int piece_of_affine(struct simd *s, LLVMValueRef i) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    LLVMTypeRef type;
    int a = piece_view(s, LLVMGetOperand(i, 0)), b, shape;
    int64_t constant = 0;
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
        b = piece_view(s, LLVMGetOperand(i, 1));
        return combine(s, a, 1, b, opcode == LLVMAdd ? 1 : -1, width_of(i));
    case LLVMOr:
        b = piece_view(s, LLVMGetOperand(i, 1));
        return LLVMGetIsDisjoint(i) ? combine(s, a, 1, b, 1, width_of(i)) : NO_PIECE;
    case LLVMMul:
        return constant_of(LLVMGetOperand(i, 1), &constant) ? combine(s, a, constant, 0, 0, width_of(i))
                                                            : NO_PIECE;
    case LLVMShl:
        if (!constant_of(LLVMGetOperand(i, 1), &constant) || constant < 0 || constant > 62) return NO_PIECE;
        return combine(s, a, (int64_t)1 << constant, 0, 0, width_of(i));
    case LLVMTrunc:
        return combine(s, a, 1, 0, 0, width_of(i));
    case LLVMSExt:
    case LLVMZExt:
        if (!s->code->small || width_of(LLVMGetOperand(i, 0)) != 32 || !is_near(s, a) || !is_index_only(i))
            return NO_PIECE;
        value_of(s, i)->signed_index = true;
        return a;
    case LLVMFreeze:
    case LLVMAddrSpaceCast:
        return a;
    case LLVMSelect:
        b = piece_view(s, LLVMGetOperand(i, 1));
        return a == SHAPE_UNIFORM && b == piece_view(s, LLVMGetOperand(i, 2)) ? b : NO_PIECE;
    case LLVMGetElementPtr:
        type = LLVMGetGEPSourceElementType(i);
        shape = a;
        for (int o = 1; o < LLVMGetNumOperands(i); o++) {
            LLVMValueRef index = LLVMGetOperand(i, (unsigned)o);
            if (o > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
                type = LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(index));
                continue;
            }
            if (o > 1) type = LLVMGetElementType(type);
            b = piece_view(s, index);
            if (b > SHAPE_UNIFORM && width_of(index) < 64 &&
                !(s->code->small && width_of(index) == 32 && is_near(s, b)))
                return NO_PIECE;
            shape = combine(s, shape, 1, b, (int64_t)LLVMABISizeOfType(s->unit->layout, type), 64);
        }
        return shape;
    default:
        return NO_PIECE;
    }
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
    unsigned width = width_of(i);
    bool by_constant = constant_of(LLVMGetOperand(i, 1), &constant);
    switch (opcode) {
    case LLVMAdd:
        return combine(s, a, 1, b, 1, width);
    case LLVMSub:
        return combine(s, a, 1, b, -1, width);
    case LLVMMul:
        return by_constant ? combine(s, a, constant, b, 0, width) : SHAPE_VARYING;
    case LLVMShl:
        return by_constant && constant >= 0 && constant < (int64_t)width
                   ? combine(s, a, (int64_t)(UINT64_C(1) << constant), b, 0, width)
                   : SHAPE_VARYING;
    case LLVMOr:
        if (LLVMGetIsDisjoint(i)) return combine(s, a, 1, b, 1, width);
        break;
    case LLVMXor: /* ~x = -1 - x */
        if (by_constant && constant == -1) return combine(s, a, -1, b, 0, width);
        break;
    default:
        break;
    }
    int shape = by_constant && a > 0 && width > 1 ? bit_operation(s, i, opcode, a, constant) : SHAPE_VARYING;
    return shape == SHAPE_VARYING ? speculated_shape(s, i) : shape;
}

int shape_transfer(struct simd *s, LLVMValueRef i) {
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
        return combine(s, shapes[0], 1, SHAPE_UNIFORM, 0, width_of(i));
    case LLVMPtrToInt:
    case LLVMIntToPtr:
        return width_of(i) == 64 && width_of(LLVMGetOperand(i, 0)) == 64 ? shapes[0] : SHAPE_VARYING;
    case LLVMAddrSpaceCast:
    case LLVMFreeze:
        return shapes[0];
    case LLVMSelect:
        return shapes[0] == SHAPE_UNIFORM ? shape_join(shapes[1], shapes[2]) : SHAPE_VARYING;
    default:
        return count == 2 ? shape_of_binary(s, i, opcode, shapes[0], shapes[1]) : SHAPE_VARYING;
    }
}
