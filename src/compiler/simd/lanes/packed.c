/* Values that all lanes of a simdgroup share, in gangs of several simdgroups: results of reductions, and what
 * is computed from these. Attention by simdgroups computes two exponentials from each sum. Such a value is
 * kept in one short vector with an element per simdgroup, in the place of a scalar, and computed once for all
 * chunks. Chunks that use it get copies of their simdgroup's element.
 *
 * Establishes: `packed` of varying values. */
#include "compiler/simd/lanes/packed.h"
#include "compiler/simd/arithmetic/arithmetic.h"
#include "compiler/combine.h"

#include <string.h>

/* ---- The analysis. */

bool packed_are_possible(const struct simd *s) {
    return s->chunk_lanes > 1 && s->lanes > SIMDGROUP_LANES && s->lanes % SIMDGROUP_LANES == 0;
}

enum sameness {
    SAME_IN_GANG, /* or a constant for each simdgroup */
    SAME_IN_SIMDGROUP,
    DIFFERENT
};

static enum sameness sameness_of(struct simd *s, LLVMValueRef value) {
    int shape = shape_of(s, value);
    if (shape == SHAPE_UNIFORM) return SAME_IN_GANG;
    if (shape == SHAPE_UNKNOWN || packed_is(s, value)) return SAME_IN_SIMDGROUP;
    if (shape == SHAPE_VARYING || LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind) return DIFFERENT;
    const int64_t *offsets = shape_offsets(s, shape);
    for (int l = 0; l < s->lanes; l++)
        if (offsets[l] != offsets[l / SIMDGROUP_LANES * SIMDGROUP_LANES]) return DIFFERENT;
    return SAME_IN_GANG;
}

static bool is_number(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMFloatTypeKind;
}

/* Instructions for which arithmetic.c needs no masks. */
static bool suits(LLVMValueRef i) {
    if (!is_number(LLVMTypeOf(i))) return false;
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)o);
        if (!is_number(LLVMTypeOf(operand)) && !LLVMIsAFunction(operand)) return false;
    }
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
    case LLVMFRem:
        return false;
    case LLVMCall:
        return strncmp(called_name(i), "llvm.", 5) == 0;
    default:
        return LLVMIsABinaryOperator(i) || LLVMIsAUnaryOperator(i) || LLVMIsACmpInst(i) ||
               LLVMIsASelectInst(i) || LLVMIsACastInst(i) || LLVMIsAFreezeInst(i);
    }
}

bool packed_is_reduction(LLVMValueRef i) {
    uint64_t operation, width;
    return intrinsic_of(i) == INTRINSIC_SIMD_REDUCE_F32 && simdgroup_arguments(i, &operation, &width) &&
           width == SIMDGROUP_LANES;
}

static bool phi_stays(struct simd *s, LLVMValueRef phi) {
    if (!is_number(LLVMTypeOf(phi))) return false;
    for (unsigned n = 0; n < LLVMCountIncoming(phi); n++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, n);
        if (value != phi && sameness_of(s, value) == DIFFERENT) return false;
    }
    return true;
}

bool packed_stays(struct simd *s, LLVMValueRef i, bool join) {
    if (LLVMIsAPHINode(i)) return !join && phi_stays(s, i);
    if (packed_is_reduction(i)) return true;
    if (!suits(i)) return false;
    bool shared = false;
    int count = LLVMIsACallInst(i) ? (int)LLVMGetNumArgOperands(i) : LLVMGetNumOperands(i);
    for (int o = 0; o < count; o++) {
        enum sameness sameness = sameness_of(s, LLVMGetOperand(i, (unsigned)o));
        if (sameness == DIFFERENT) return false;
        shared |= sameness == SAME_IN_SIMDGROUP;
    }
    return shared;
}

/* ---- Emission. */

void packed_set_reduction(struct simd *s, LLVMValueRef call, enum simd_operation operation,
                          LLVMValueRef const *chunks) {
    LLVMBuilderRef b = s->unit->builder;
    int count = chunks_of_simdgroup(s), groups = packed_count(s);
    if ((groups & (groups - 1)) == 0) {
        LLVMValueRef each = lanes_reduce_each(s, operation, chunks, count, groups);
        ahead_mark(s->unit, each);
        scalar_set(s, call, each);
        return;
    }
    LLVMValueRef packed = LLVMGetPoison(packed_type(s, LLVMTypeOf(call)));
    for (int g = 0; g < groups; g++) {
        LLVMValueRef one = lanes_reduce(s, operation, chunks + g * count, count);
        packed = LLVMBuildInsertElement(b, packed, one, simd_i32(s, g), "");
    }
    ahead_mark(s->unit, packed);
    scalar_set(s, call, packed);
}

/* As one chunk of as many lanes as there are simdgroups. */
bool packed_emit(struct simd *s, LLVMValueRef i) {
    int lanes = s->chunk_lanes;
    s->chunk_lanes = packed_count(s);
    s->packing = true;
    bool done = emit_arithmetic(s, i, 0);
    s->packing = false;
    s->chunk_lanes = lanes;
    return done;
}
