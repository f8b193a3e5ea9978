/* Values that are uniform or affine within each chunk, but not over the gang: a row's address if a gang spans
 * several rows of unknown length. Elsewhere they count as varying; here, and in memory.c, each chunk has one
 * scalar, that of its first lane, and constant offsets from it.
 *
 * `piece` of a value is the shape with the offsets within chunks (0 at the first lane of each), or NO_PIECE.
 */
#include "compiler/simd/memory/access.h"
#include "compiler/analysis/zeros.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* The shape's offsets, relative to the first lane of each chunk. */
static int within_chunks(struct simd *s, int shape) {
    int64_t offsets[GANG_MAX_LANES];
    const int64_t *whole = shape_offsets(s, shape);
    for (int l = 0; l < s->lanes; l++)
        offsets[l] = (int64_t)((uint64_t)whole[l] - (uint64_t)whole[l / s->chunk_lanes * s->chunk_lanes]);
    return shape_intern(s, offsets);
}

int piece_view(struct simd *s, LLVMValueRef original) {
    int shape = shape_of(s, original);
    if (shape == SHAPE_UNKNOWN) return PIECE_UNKNOWN;
    if (shape == SHAPE_UNIFORM) return SHAPE_UNIFORM;
    if (shape > SHAPE_UNIFORM) return within_chunks(s, shape);
    return value_of(s, original)->piece;
}

/* ---- The analysis. */

static bool is_copyable(LLVMValueRef i) {
    if (LLVMIsACallInst(i)) {
        const char *name = called_name(i);
        return strncmp(name, "llvm.", 5) == 0 && LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMStructTypeKind;
    }
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAlloca:
    case LLVMStore:
    case LLVMFence:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
    case LLVMExtractValue:
    case LLVMInsertValue:
        return false;
    case LLVMSDiv:
    case LLVMSRem:
        return LLVMIsAConstantInt(LLVMGetOperand(i, 1)) != NULL;
    case LLVMLoad:
        return LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic && !LLVMGetVolatile(i);
    default:
        return true;
    }
}

/* ---- Quotients and remainders. A chunk whose first lane has a multiple of 2^n, and whose offsets are below
 * 2^n, does not straddle a multiple of a divisor that 2^n divides: i / 24 and i % 24 of 8 consecutive i. */

#define MOST_LOW_BITS 62

/* Low bits that are zero in the first lane of each chunk. */
static unsigned first_lane_zeros(struct simd *s, LLVMValueRef value) {
    int shape = shape_of(s, value);
    if (shape < 0) return 0;
    unsigned zeros = range_zero_bits(s, value);
    const int64_t *offsets = shape_offsets(s, shape);
    for (int l = 0; l < s->lanes; l += s->chunk_lanes) {
        unsigned own = zeros_of_number((uint64_t)offsets[l]);
        if (own < zeros) zeros = own;
    }
    return zeros < MOST_LOW_BITS ? zeros : MOST_LOW_BITS;
}

/* Whether no chunk of the value straddles a multiple of the divisor. */
static bool is_undivided(struct simd *s, LLVMValueRef value, uint64_t divisor) {
    int view = piece_view(s, value);
    if (view < 0 || !divisor) return false;
    unsigned zeros = first_lane_zeros(s, value), of_divisor = zeros_of_number(divisor);
    uint64_t least = UINT64_C(1) << (zeros < of_divisor ? zeros : of_divisor);
    const int64_t *offsets = shape_offsets(s, view);
    for (int l = 0; l < s->lanes; l++)
        if (offsets[l] < 0 || (uint64_t)offsets[l] >= least) return false;
    return true;
}

/* The constant by which an unsigned division, or what is written for one, divides; 0: something else. Bits of
 * numbers that may be negative are not divided as they are. */
static uint64_t divisor_of(struct simd *s, LLVMValueRef i, bool remainder) {
    int64_t constant = 0;
    if (!LLVMIsABinaryOperator(i) || !shape_constant(LLVMGetOperand(i, 1), &constant) || constant <= 0)
        return 0;
    uint64_t c = (uint64_t)constant;
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMSDiv:
    case LLVMSRem:
        if (remainder != (LLVMGetInstructionOpcode(i) == LLVMSRem)) return 0;
        return range_unsigned(s, LLVMGetOperand(i, 0)).high >> (shape_width(i) - 1) ? 0 : c;
    case LLVMUDiv:
        return remainder ? 0 : c;
    case LLVMURem:
        return remainder ? c : 0;
    case LLVMLShr:
        return remainder || c >= MOST_LOW_BITS ? 0 : UINT64_C(1) << c;
    case LLVMAnd:
        return remainder && (c & (c + 1)) == 0 ? c + 1 : 0;
    default:
        return 0;
    }
}

/* What is divided where x - x / c * c stands for x % c, as LLVM writes it if it has the quotient. */
static LLVMValueRef divided_by_difference(struct simd *s, LLVMValueRef i, uint64_t *divisor) {
    if (!LLVMIsABinaryOperator(i) || LLVMGetInstructionOpcode(i) != LLVMAdd) return NULL;
    for (unsigned o = 0; o < 2; o++) {
        LLVMValueRef product = LLVMGetOperand(i, o), x = LLVMGetOperand(i, 1 - o);
        int64_t factor = 0;
        if (!LLVMIsABinaryOperator(product) || LLVMGetInstructionOpcode(product) != LLVMMul ||
            !shape_constant(LLVMGetOperand(product, 1), &factor))
            continue;
        LLVMValueRef quotient = LLVMGetOperand(product, 0);
        *divisor = divisor_of(s, quotient, false);
        if (*divisor && (uint64_t)factor == -*divisor && LLVMGetOperand(quotient, 0) == x) return x;
    }
    return NULL;
}

/* A remainder that, widened, does not wrap between the lanes of a chunk. */
static bool is_small_remainder(struct simd *s, LLVMValueRef i) {
    uint64_t divisor = divisor_of(s, i, true);
    LLVMValueRef divided = divisor ? LLVMGetOperand(i, 0) : divided_by_difference(s, i, &divisor);
    return divided && divisor <= UINT64_C(1) << (shape_width(i) - 1) && is_undivided(s, divided, divisor);
}

static int piece_of_division(struct simd *s, LLVMValueRef i, int view) {
    LLVMValueRef divided = LLVMGetOperand(i, 0);
    uint64_t divisor = divisor_of(s, i, false);
    if (divisor) return is_undivided(s, divided, divisor) ? SHAPE_UNIFORM : NO_PIECE;
    divisor = divisor_of(s, i, true);
    return divisor && is_undivided(s, divided, divisor) ? view : NO_PIECE;
}

/* The rules of transfer.c that do not depend on lane 0, and those for divisions. */
static int piece_of_affine(struct simd *s, LLVMValueRef i) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    LLVMTypeRef type;
    int a = piece_view(s, LLVMGetOperand(i, 0)), b, shape;
    int64_t constant = 0;
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
        b = piece_view(s, LLVMGetOperand(i, 1));
        return shape_combine(s, a, 1, b, opcode == LLVMAdd ? 1 : -1, shape_width(i));
    case LLVMOr:
        b = piece_view(s, LLVMGetOperand(i, 1));
        return LLVMGetIsDisjoint(i) ? shape_combine(s, a, 1, b, 1, shape_width(i)) : NO_PIECE;
    case LLVMMul:
        return shape_constant(LLVMGetOperand(i, 1), &constant)
                   ? shape_combine(s, a, constant, 0, 0, shape_width(i))
                   : NO_PIECE;
    case LLVMShl:
        if (!shape_constant(LLVMGetOperand(i, 1), &constant) || constant < 0 || constant > 62)
            return NO_PIECE;
        return shape_combine(s, a, (int64_t)1 << constant, 0, 0, shape_width(i));
    case LLVMTrunc:
        return shape_combine(s, a, 1, 0, 0, shape_width(i));
    case LLVMUDiv:
    case LLVMURem:
    case LLVMSDiv:
    case LLVMSRem:
    case LLVMLShr:
    case LLVMAnd:
        return piece_of_division(s, i, a);
    case LLVMSExt:
    case LLVMZExt:
        if (is_small_remainder(s, LLVMGetOperand(i, 0))) return a;
        if (!s->code->small || shape_width(LLVMGetOperand(i, 0)) != 32 || !shape_is_near(s, a) ||
            !shape_is_index(i))
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
            if (b > SHAPE_UNIFORM && shape_width(index) < 64 &&
                !(s->code->small && shape_width(index) == 32 && shape_is_near(s, b)))
                return NO_PIECE;
            shape = shape_combine(s, shape, 1, b, (int64_t)LLVMABISizeOfType(s->unit->layout, type), 64);
        }
        return shape;
    default:
        return NO_PIECE;
    }
}

int piece_transfer(struct simd *s, LLVMValueRef i) {
    if (s->chunk_lanes == 1 || s->chunk_count == 1 || !is_copyable(i)) return NO_PIECE;
    int count = LLVMIsACallInst(i) ? (int)LLVMGetNumArgOperands(i) : LLVMGetNumOperands(i);
    bool flat = true, unknown = false;
    for (int o = 0; o < count; o++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)o);
        if (private_is(s, operand)) return NO_PIECE;
        int view = piece_view(s, operand);
        if (view == NO_PIECE) return NO_PIECE;
        unknown |= view == PIECE_UNKNOWN;
        flat &= view == SHAPE_UNIFORM;
    }
    if (unknown) return PIECE_UNKNOWN;
    if (flat) return SHAPE_UNIFORM; /* the same in all lanes of a chunk */
    return piece_of_affine(s, i);
}

int piece_of_phi(struct simd *s, LLVMValueRef phi) {
    int piece = PIECE_UNKNOWN;
    for (unsigned n = 0; n < LLVMCountIncoming(phi); n++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, n);
        if (value == phi || LLVMIsUndef(value) || LLVMIsPoison(value)) continue;
        int view = piece_view(s, value);
        if (view == PIECE_UNKNOWN) continue;
        if (view == NO_PIECE || (piece != PIECE_UNKNOWN && piece != view)) return NO_PIECE;
        piece = view;
    }
    return piece;
}

/* ---- Emission. */

bool piece_is(struct simd *s, LLVMValueRef original) {
    return LLVMIsAInstruction(original) && shape_of(s, original) == SHAPE_VARYING &&
           value_of(s, original)->piece >= 0;
}

LLVMValueRef piece_first_lane(struct simd *s, LLVMValueRef original, int chunk) {
    int shape = shape_of(s, original);
    if (shape == SHAPE_VARYING) return chunk_scalar(s, original, chunk);
    LLVMValueRef scalar = scalar_of(s, original);
    if (shape <= SHAPE_UNIFORM) return scalar;
    LLVMBuilderRef b = s->unit->builder;
    int64_t offset = shape_offsets(s, shape)[chunk * s->chunk_lanes];
    if (offset == 0) return scalar;
    bool address = LLVMGetTypeKind(LLVMTypeOf(scalar)) == LLVMPointerTypeKind;
    LLVMTypeRef type = address ? type_i64(s->unit) : LLVMTypeOf(scalar);
    LLVMValueRef step = LLVMConstInt(type, (unsigned long long)offset, true);
    if (!address) return LLVMBuildAdd(b, scalar, step, "");
    return LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), scalar, &step, 1, "");
}

/* All lanes of a chunk may be off, and its divisor 0. */
static void make_divisor_safe(struct simd *s, LLVMValueRef division) {
    LLVMTypeRef type = LLVMTypeOf(division);
    LLVMValueRef divisor = LLVMBuildFreeze(s->unit->builder, LLVMGetOperand(division, 1), "");
    LLVMValueRef arguments[2] = {divisor, LLVMConstInt(type, 1, false)};
    LLVMSetOperand(division, 1, simd_intrinsic(s, "llvm.umax", &type, 1, arguments, 2));
}

/* A scalar instruction for the chunk's first lane. */
bool emit_piece(struct simd *s, LLVMValueRef i, int chunk) {
    if (!piece_is(s, i)) return false;
    LLVMBuilderRef b = s->unit->builder;
    if (LLVMIsALoadInst(i)) {
        LLVMValueRef address = piece_first_lane(s, LLVMGetOperand(i, 0), chunk);
        int align = (int)LLVMGetAlignment(i);
        chunk_set(s, i, chunk, access_load_one(s, LLVMTypeOf(i), address, mask_chunk(s, chunk), align));
        return true;
    }
    if (value_of(s, i)->signed_index) {
        LLVMValueRef index = piece_first_lane(s, LLVMGetOperand(i, 0), chunk);
        chunk_set(s, i, chunk, LLVMBuildSExt(b, index, LLVMTypeOf(i), ""));
        return true;
    }
    LLVMValueRef copy = LLVMInstructionClone(i);
    int count = LLVMIsACallInst(i) ? (int)LLVMGetNumArgOperands(i) : LLVMGetNumOperands(i);
    for (int o = 0; o < count; o++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)o);
        if (LLVMIsAInstruction(operand))
            LLVMSetOperand(copy, (unsigned)o, piece_first_lane(s, operand, chunk));
    }
    copy_drop_metadata(copy);
    copy_drop_promises(copy);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    bool divides = opcode == LLVMUDiv || opcode == LLVMURem;
    if (divides && shape_of(s, LLVMGetOperand(i, 1)) != SHAPE_UNIFORM) make_divisor_safe(s, copy);
    LLVMInsertIntoBuilder(b, copy);
    LLVMInstructionSetDebugLoc(copy, LLVMInstructionGetDebugLoc(i));
    chunk_set(s, i, chunk, copy);
    return true;
}
