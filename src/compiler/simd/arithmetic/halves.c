/* CPUs without arithmetic of halves compute with vectors of float instead. LLVM 19 does so for sums and
 * products, but computes other operations (fma, floor, sqrt, minimum, …) lane by lane: a convolution with
 * thousands of calls of fma becomes very large, and takes long to compile.
 *
 *   %r = fma half %a, %b, %c    →    %r = fptrunc (fma float (fpext %a), (fpext %b), (fpext %c))
 *
 * LLVM does the same for a single half, so the bits are the same. An operand is extended once per block.
 *
 * Requires: the gang's code. Establishes: only CPUs with instructions for it compute with vectors of half. */
#include "compiler/simd/simd.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

#define MOST_OPERANDS 3

static bool is_half_vector(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind &&
           LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMHalfTypeKind;
}

static LLVMTypeRef float_vector(struct unit *unit, LLVMTypeRef halves) {
    return LLVMVectorType(LLVMFloatTypeInContext(unit->context), LLVMGetVectorSize(halves));
}

/* The intrinsic's name without its type, or NULL: another call. */
static const char *computed_intrinsic(LLVMValueRef call) {
    static const char *const names[] = {"llvm.fma",       "llvm.fmuladd",   "llvm.sqrt",   "llvm.floor",
                                        "llvm.ceil",      "llvm.trunc",     "llvm.rint",   "llvm.round",
                                        "llvm.roundeven", "llvm.nearbyint", "llvm.minnum", "llvm.maxnum",
                                        "llvm.minimum",   "llvm.maximum"};
    const char *called = called_name(call);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(called, names[i], length) == 0 && called[length] == '.') return names[i];
    }
    return NULL;
}

/* How many operands are halves to compute with; 0: none. */
static unsigned operands_of(LLVMValueRef i) {
    if (!is_half_vector(LLVMTypeOf(i))) return 0;
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
        return 2;
    case LLVMCall:
        return computed_intrinsic(i) ? LLVMGetNumArgOperands(i) : 0;
    default:
        return 0;
    }
}

/* The first instruction of the block before which the value can be used. */
static LLVMValueRef place_of(LLVMValueRef value, LLVMBasicBlockRef block) {
    bool here = LLVMIsAInstruction(value) && LLVMGetInstructionParent(value) == block;
    LLVMValueRef place = here ? LLVMGetNextInstruction(value) : LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(place)) place = LLVMGetNextInstruction(place);
    return place;
}

static LLVMValueRef extended_in(LLVMValueRef value, LLVMBasicBlockRef block, LLVMTypeRef type) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAFPExtInst(user) && LLVMGetInstructionParent(user) == block && LLVMTypeOf(user) == type)
            return user;
    }
    return NULL;
}

static LLVMValueRef extended(struct unit *unit, LLVMValueRef value, LLVMBasicBlockRef block) {
    LLVMTypeRef type = float_vector(unit, LLVMTypeOf(value));
    LLVMValueRef found = LLVMIsConstant(value) ? NULL : extended_in(value, block, type);
    LLVMValueRef place = place_of(value, block);
    if (found == place) return found;
    LLVMPositionBuilderBefore(unit->builder, place);
    if (!found) return LLVMBuildFPExt(unit->builder, value, type, "");
    LLVMInstructionRemoveFromParent(found); /* it may come after the use */
    build_kept(unit->builder, found);
    return found;
}

static void compute_in_float(struct unit *unit, LLVMValueRef i, unsigned count) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef wide[MOST_OPERANDS], result;
    LLVMTypeRef half = LLVMTypeOf(i);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(i));
    for (unsigned o = 0; o < count; o++)
        wide[o] = extended(unit, LLVMGetOperand(i, o), LLVMGetInstructionParent(i));
    LLVMPositionBuilderBefore(b, i);
    if (LLVMIsACallInst(i))
        result = build_intrinsic(unit, computed_intrinsic(i), float_vector(unit, half), wide, count);
    else
        result = LLVMBuildBinOp(b, LLVMGetInstructionOpcode(i), wide[0], wide[1], "");
    copy_flags(i, result);
    LLVMReplaceAllUsesWith(i, LLVMBuildFPTrunc(b, result, half, ""));
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMInstructionEraseFromParent(i);
}

smelt_status pass_simd_halves(struct unit *unit) {
    if (simd_computes_halves(unit->request->cpu, unit->request->features)) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        unsigned count = operands_of(i);
        if (count && count <= MOST_OPERANDS) compute_in_float(unit, i, count);
    }
    return SMELT_OK;
}
