/* rsqrt begins with the CPU's estimate of 1 / sqrt(x), where registers have 512 bits: the instructions for a
 * square root and a division of 16 floats take longer than all the rest of it (18 cycles on a Xeon of the
 * fourth generation, the estimate 11 with all the rest). Those of 8 floats overlap with other instructions.
 *
 * The prelude's rsqrt begins with rough_rsqrt(x), which may return a neighbour of the nearest float: the
 * result of rsqrt is the same. Before functions are inlined, pass_simd_mark_estimates lets rough_rsqrt return
 * its quotient through llvm.arithmetic.fence, which is vectorised like arithmetic, and which clang does not
 * emit in math mode safe. pass_simd_estimates replaces these calls in the gang's code.
 *
 * Requires: pass_declare; the gang's code. Establishes: the entry calls no llvm.arithmetic.fence. */
#include "compiler/float_function.h"
#include "compiler/simd/simd.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

#define FENCE "llvm.arithmetic.fence"

/* ---- Before functions are inlined. */

smelt_status pass_simd_mark_estimates(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (!is_float_function(f, "rough_rsqrt", 1)) continue;
        FOR_EACH_BLOCK(block, f) {
            LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
            if (!LLVMIsAReturnInst(end)) continue;
            LLVMValueRef value = LLVMGetOperand(end, 0);
            LLVMPositionBuilderBefore(unit->builder, end);
            LLVMSetOperand(end, 0, build_intrinsic(unit, FENCE, LLVMTypeOf(value), &value, 1));
        }
    }
    return SMELT_OK;
}

/* ---- In the gang's code. */

static bool is_one(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef ones[GANG_MAX_LANES];
    unsigned lanes = LLVMGetVectorSize(type);
    for (unsigned l = 0; l < lanes; l++) ones[l] = LLVMConstReal(LLVMGetElementType(type), 1);
    return value == LLVMConstVector(ones, lanes);
}

/* The x of a vector 1 / sqrt(x), or NULL. */
static LLVMValueRef rooted(LLVMValueRef value) {
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionOpcode(value) != LLVMFDiv ||
        LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMVectorTypeKind || !is_one(LLVMGetOperand(value, 0)))
        return NULL;
    LLVMValueRef root = LLVMGetOperand(value, 1);
    bool is_root = LLVMIsACallInst(root) && strncmp(called_name(root), "llvm.sqrt.", 10) == 0;
    return is_root ? LLVMGetOperand(root, 0) : NULL;
}

static LLVMValueRef splat(LLVMTypeRef type, double value) {
    LLVMValueRef lanes[GANG_MAX_LANES];
    unsigned count = LLVMGetVectorSize(type);
    for (unsigned l = 0; l < count; l++) lanes[l] = LLVMConstReal(LLVMGetElementType(type), value);
    return LLVMConstVector(lanes, count);
}

static LLVMValueRef fused(struct unit *unit, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z) {
    return build_intrinsic(unit, "llvm.fma", LLVMTypeOf(x), (LLVMValueRef[]){x, y, z}, 3);
}

/* Off by at most 2^-14 of itself. */
static LLVMValueRef estimate(struct unit *unit, LLVMValueRef x) {
    LLVMTypeRef bits = LLVMInt16TypeInContext(unit->context);
    LLVMValueRef arguments[3] = {x, LLVMGetUndef(LLVMTypeOf(x)), LLVMConstAllOnes(bits)};
    return build_function(unit, "llvm.x86.avx512.rsqrt14.ps.512", arguments, 3);
}

/* y (1 + e / 2 + 3/8 e^2), where e = 1 - x y^2: terms of the third order are below 2^-39. If x is 0, infinite
 * or NaN, e is NaN, and y is right. */
static LLVMValueRef refine(struct unit *unit, LLVMValueRef x, LLVMValueRef y) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef product = LLVMBuildFNeg(b, LLVMBuildFMul(b, x, y, ""), "");
    LLVMValueRef e = fused(unit, product, y, splat(type, 1));
    LLVMValueRef terms = fused(unit, e, splat(type, 0.375), splat(type, 0.5));
    LLVMValueRef better = fused(unit, LLVMBuildFMul(b, y, e, ""), terms, y);
    return LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealORD, e, e, ""), better, y, "");
}

static LLVMValueRef estimated(struct unit *unit, LLVMValueRef value, int bits) {
    LLVMValueRef x = rooted(value);
    if (!x || LLVMGetTypeKind(LLVMGetElementType(LLVMTypeOf(x))) != LLVMFloatTypeKind) return value;
    bool whole = bits == 512 && LLVMGetVectorSize(LLVMTypeOf(x)) == 16;
    return whole ? refine(unit, x, estimate(unit, x)) : value;
}

smelt_status pass_simd_estimates(struct unit *unit) {
    int bits = simd_vector_bits(unit->request->cpu, unit->request->features);
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(fence, block) {
        if (!LLVMIsACallInst(fence) || strncmp(called_name(fence), FENCE, strlen(FENCE)) != 0) continue;
        LLVMPositionBuilderBefore(unit->builder, fence);
        LLVMSetCurrentDebugLocation2(unit->builder, LLVMInstructionGetDebugLoc(fence));
        LLVMReplaceAllUsesWith(fence, estimated(unit, LLVMGetOperand(fence, 0), bits));
        LLVMInstructionEraseFromParent(fence);
    }
    LLVMSetCurrentDebugLocation2(unit->builder, NULL);
    return SMELT_OK;
}
