/* Instructions that touch neither memory nor other lanes: each becomes the same instruction on a chunk, so
 * that every lane has the bits the scalar engine computes. Integer division is in division.c, calls in
 * calls.c.
 *
 * A chunk of a structure (what llvm.*.with.overflow returns, say) is a structure of chunks. */
#include "compiler/simd/arithmetic/arithmetic.h"
#include "compiler/simd/memory/neighbours.h"

#define STRUCTURE_MEMBERS 16

static LLVMValueRef operand(struct simd *s, LLVMValueRef instruction, unsigned index, int chunk) {
    return chunk_of(s, LLVMGetOperand(instruction, index), chunk);
}

/* LLVM would call the library for every lane; this calls it for active lanes only. */
static LLVMValueRef lane_remainder(struct simd *s, LLVMValueRef origin, LLVMValueRef *arguments) {
    LLVMValueRef remainder = LLVMBuildFRem(s->unit->builder, arguments[0], arguments[1], "");
    copy_flags(origin, remainder);
    return remainder;
}

static LLVMValueRef float_remainder(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMValueRef mask = mask_chunk(s, chunk);
    LLVMValueRef vectors[2] = {operand(s, i, 0, chunk), operand(s, i, 1, chunk)};
    return lanes_each(s, i, mask, vectors, 2, LLVMTypeOf(i), lane_remainder);
}

static LLVMValueRef select_lanes(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMValueRef condition = LLVMGetOperand(i, 0);
    bool uniform = shape_of(s, condition) == SHAPE_UNIFORM;
    LLVMValueRef which = uniform ? scalar_of(s, condition) : chunk_of(s, condition, chunk);
    return LLVMBuildSelect(s->unit->builder, which, operand(s, i, 1, chunk), operand(s, i, 2, chunk), "");
}

/* ---- Structures: of chunks. */

static LLVMTypeRef chunk_structure(struct simd *s, LLVMTypeRef structure) {
    LLVMTypeRef members[STRUCTURE_MEMBERS];
    unsigned count = LLVMCountStructElementTypes(structure);
    for (unsigned i = 0; i < count; i++) members[i] = chunk_type(s, LLVMStructGetTypeAtIndex(structure, i));
    return LLVMStructTypeInContext(s->unit->context, members, count, false);
}

static bool is_flat_structure(LLVMTypeRef type) {
    if (LLVMGetTypeKind(type) != LLVMStructTypeKind || LLVMCountStructElementTypes(type) > STRUCTURE_MEMBERS)
        return false;
    for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++) {
        LLVMTypeKind kind = LLVMGetTypeKind(LLVMStructGetTypeAtIndex(type, i));
        if (kind == LLVMStructTypeKind || kind == LLVMArrayTypeKind) return false;
    }
    return true;
}

/* Constants and uniform structures are splatted member by member. */
static LLVMValueRef structure_chunk(struct simd *s, LLVMValueRef structure, int chunk) {
    if (shape_of(s, structure) == SHAPE_VARYING) return chunk_of(s, structure, chunk);
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef scalar = scalar_of(s, structure);
    LLVMValueRef spread = LLVMGetPoison(chunk_structure(s, LLVMTypeOf(structure)));
    for (unsigned i = 0; i < LLVMCountStructElementTypes(LLVMTypeOf(structure)); i++)
        spread =
            LLVMBuildInsertValue(b, spread, chunk_splat(s, LLVMBuildExtractValue(b, scalar, i, "")), i, "");
    return spread;
}

/* Results of atomic instructions are handled elsewhere. */
static LLVMValueRef extract_member(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMValueRef structure = LLVMGetOperand(i, 0);
    if (LLVMGetNumIndices(i) != 1 || !is_flat_structure(LLVMTypeOf(structure))) return NULL;
    if (LLVMIsAAtomicCmpXchgInst(structure)) return NULL;
    return LLVMBuildExtractValue(s->unit->builder, structure_chunk(s, structure, chunk), LLVMGetIndices(i)[0],
                                 "");
}

static LLVMValueRef insert_member(struct simd *s, LLVMValueRef i, int chunk) {
    if (LLVMGetNumIndices(i) != 1 || !is_flat_structure(LLVMTypeOf(i))) return NULL;
    LLVMValueRef structure = structure_chunk(s, LLVMGetOperand(i, 0), chunk);
    return LLVMBuildInsertValue(s->unit->builder, structure, operand(s, i, 1, chunk), LLVMGetIndices(i)[0],
                                "");
}

/* ---- Comparisons. */

/* For each lane, the left value's offset from lane 0 less the right value's, as 32-bit integers; NULL: one
 * does not fit. */
static LLVMValueRef excess_of(struct simd *s, LLVMValueRef left, LLVMValueRef right, int chunk) {
    const int64_t *x = shape_offsets(s, shape_of(s, left)), *y = shape_offsets(s, shape_of(s, right));
    LLVMValueRef lanes[GANG_MAX_LANES];
    for (int l = 0; l < s->chunk_lanes; l++) {
        int at = chunk * s->chunk_lanes + l;
        int64_t excess = shape_wrap((uint64_t)x[at] - (uint64_t)y[at], 64);
        if (excess <= INT32_MIN || excess > INT32_MAX) return NULL;
        lanes[l] = LLVMConstInt(type_i32(s->unit), (uint64_t)excess, true);
    }
    return LLVMConstVector(lanes, (unsigned)s->chunk_lanes);
}

/* Equality of 64-bit integers whose offsets from lane 0 are constant: the difference is computed for lane 0
 * only, and 32 bits of it are compared with the lanes' offsets. LLVM widens the counters of loops to 64 bits,
 * so `i == j` is often such a comparison. NULL: this is another one. */
static LLVMValueRef compare_offsets(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(i);
    LLVMValueRef left = LLVMGetOperand(i, 0), right = LLVMGetOperand(i, 1);
    LLVMTypeRef type = LLVMTypeOf(left), i32 = type_i32(s->unit);
    if ((predicate != LLVMIntEQ && predicate != LLVMIntNE) || s->row_reader ||
        LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) != 64 ||
        shape_of(s, left) < 0 || shape_of(s, right) < 0)
        return NULL;
    LLVMValueRef excess = excess_of(s, left, right, chunk);
    if (!excess) return NULL;
    LLVMValueRef difference = LLVMBuildSub(b, scalar_of(s, right), scalar_of(s, left), "");
    LLVMValueRef low = LLVMBuildTrunc(b, difference, i32, "");
    LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildSExt(b, low, type, ""), difference, "");
    LLVMValueRef none = LLVMConstInt(i32, (uint64_t)INT32_MIN, true);
    return LLVMBuildICmp(b, predicate, excess, chunk_splat(s, LLVMBuildSelect(b, fits, low, none, "")), "");
}

static LLVMValueRef compare(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMValueRef equal = compare_offsets(s, i, chunk);
    return equal ? equal
                 : LLVMBuildICmp(s->unit->builder, LLVMGetICmpPredicate(i), operand(s, i, 0, chunk),
                                 operand(s, i, 1, chunk), "");
}

static LLVMValueRef extend_lanes(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMTypeRef type = chunk_type(s, LLVMTypeOf(i));
    LLVMValueRef from = operand(s, i, 0, chunk), floats = dense_floats(s, from);
    return floats && LLVMTypeOf(floats) == type ? floats : LLVMBuildFPExt(s->unit->builder, from, type, "");
}

/* ---- */

static LLVMValueRef lanes_of(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
        return LLVMBuildBinOp(b, opcode, operand(s, i, 0, chunk), operand(s, i, 1, chunk), "");
    case LLVMFRem:
        return float_remainder(s, i, chunk);
    case LLVMFNeg:
        return LLVMBuildFNeg(b, operand(s, i, 0, chunk), "");
    case LLVMICmp:
        return compare(s, i, chunk);
    case LLVMFCmp:
        return LLVMBuildFCmp(b, LLVMGetFCmpPredicate(i), operand(s, i, 0, chunk), operand(s, i, 1, chunk),
                             "");
    case LLVMSelect:
        return select_lanes(s, i, chunk);
    case LLVMFreeze:
        return LLVMBuildFreeze(b, operand(s, i, 0, chunk), "");
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMFPToUI:
    case LLVMFPToSI:
    case LLVMUIToFP:
    case LLVMSIToFP:
    case LLVMFPTrunc:
    case LLVMPtrToInt:
    case LLVMIntToPtr:
    case LLVMBitCast:
    case LLVMAddrSpaceCast:
        return LLVMBuildCast(b, opcode, operand(s, i, 0, chunk), chunk_type(s, LLVMTypeOf(i)), "");
    case LLVMFPExt:
        return extend_lanes(s, i, chunk);
    case LLVMExtractValue:
        return extract_member(s, i, chunk);
    case LLVMInsertValue:
        return insert_member(s, i, chunk);
    default:
        return NULL;
    }
}

bool emit_arithmetic(struct simd *s, LLVMValueRef instruction, int chunk) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        return emit_division(s, instruction, chunk);
    case LLVMCall:
        return emit_pure_call(s, instruction, chunk);
    default:
        break;
    }
    LLVMValueRef result = lanes_of(s, instruction, chunk);
    if (!result) return false;
    copy_flags(instruction, result);
    chunk_set(s, instruction, chunk, result);
    return true;
}
