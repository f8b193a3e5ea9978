#include "compiler/combine.h"

bool simdgroup_kind(enum intrinsic intrinsic, enum simd_kind *kind) {
    static const struct {
        enum intrinsic intrinsic;
        enum simd_kind kind;
    } kinds[] = {
        {INTRINSIC_SIMD_SHUFFLE_I32, SIMD_SHUFFLE},   {INTRINSIC_SIMD_SHUFFLE_I64, SIMD_SHUFFLE},
        {INTRINSIC_SIMD_BALLOT, SIMD_BALLOT},         {INTRINSIC_SIMDGROUP_BARRIER, SIMD_BARRIER},
        {INTRINSIC_SIMD_REDUCE_I32, SIMD_REDUCE},     {INTRINSIC_SIMD_REDUCE_I64, SIMD_REDUCE},
        {INTRINSIC_SIMD_REDUCE_F32, SIMD_REDUCE},     {INTRINSIC_SIMD_SCAN_I32, SIMD_SCAN},
        {INTRINSIC_SIMD_SCAN_I64, SIMD_SCAN},         {INTRINSIC_SIMD_SCAN_F32, SIMD_SCAN},
        {INTRINSIC_SIMD_MATRIX_PRODUCT, SIMD_MATRIX},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (intrinsic != kinds[i].intrinsic) continue;
        *kind = kinds[i].kind;
        return true;
    }
    return false;
}

bool simdgroup_arguments(LLVMValueRef call, uint64_t *operation, uint64_t *width) {
    return is_constant_integer(LLVMGetOperand(call, 0), operation) &&
           (*operation & ~(uint64_t)SIMD_EXCLUSIVE) <= SIMD_XOR &&
           is_constant_integer(LLVMGetOperand(call, 1), width) && *width >= 1 && *width <= SIMDGROUP_LANES &&
           (*width & (*width - 1)) == 0;
}

static bool is_floating(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) != LLVMIntegerTypeKind;
}

static LLVMValueRef pick(LLVMBuilderRef builder, LLVMIntPredicate predicate, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(builder, LLVMBuildICmp(builder, predicate, a, b, ""), a, b, "");
}

static LLVMValueRef pick_number(LLVMBuilderRef builder, LLVMRealPredicate predicate, LLVMValueRef a,
                                LLVMValueRef b) {
    LLVMValueRef picked = LLVMBuildSelect(builder, LLVMBuildFCmp(builder, predicate, a, b, ""), a, b, "");
    return LLVMBuildSelect(builder, LLVMBuildFCmp(builder, LLVMRealUNO, b, b, ""), a, picked, "");
}

LLVMValueRef simdgroup_combine(LLVMBuilderRef builder, enum simd_operation operation, LLVMValueRef a,
                               LLVMValueRef b) {
    bool floating = is_floating(a);
    switch (operation) {
    case SIMD_SUM:
        return floating ? LLVMBuildFAdd(builder, a, b, "") : LLVMBuildAdd(builder, a, b, "");
    case SIMD_PRODUCT:
        return floating ? LLVMBuildFMul(builder, a, b, "") : LLVMBuildMul(builder, a, b, "");
    case SIMD_MIN_SIGNED:
        return pick(builder, LLVMIntSLT, a, b);
    case SIMD_MAX_SIGNED:
        return pick(builder, LLVMIntSGT, a, b);
    case SIMD_MIN_UNSIGNED:
        return pick(builder, LLVMIntULT, a, b);
    case SIMD_MAX_UNSIGNED:
        return pick(builder, LLVMIntUGT, a, b);
    case SIMD_MIN_FLOAT:
        return pick_number(builder, LLVMRealOLT, a, b);
    case SIMD_MAX_FLOAT:
        return pick_number(builder, LLVMRealOGT, a, b);
    case SIMD_AND:
        return LLVMBuildAnd(builder, a, b, "");
    case SIMD_OR:
        return LLVMBuildOr(builder, a, b, "");
    case SIMD_XOR:
    case SIMD_EXCLUSIVE:
        break;
    }
    return LLVMBuildXor(builder, a, b, "");
}

enum simd_operation simdgroup_of_updates(LLVMAtomicRMWBinOp operation) {
    switch (operation) {
    case LLVMAtomicRMWBinOpAdd:
    case LLVMAtomicRMWBinOpSub:
    case LLVMAtomicRMWBinOpFAdd:
    case LLVMAtomicRMWBinOpFSub:
        return SIMD_SUM;
    case LLVMAtomicRMWBinOpAnd:
        return SIMD_AND;
    case LLVMAtomicRMWBinOpOr:
        return SIMD_OR;
    case LLVMAtomicRMWBinOpXor:
        return SIMD_XOR;
    case LLVMAtomicRMWBinOpMin:
        return SIMD_MIN_SIGNED;
    case LLVMAtomicRMWBinOpMax:
        return SIMD_MAX_SIGNED;
    case LLVMAtomicRMWBinOpUMin:
        return SIMD_MIN_UNSIGNED;
    case LLVMAtomicRMWBinOpUMax:
        return SIMD_MAX_UNSIGNED;
    default:
        return SIMD_EXCLUSIVE;
    }
}
