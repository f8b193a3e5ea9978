/* Conversion of a float to an integer, clamped to the integer's range, with NaN as 0: comparisons and selects
 * that every engine runs on vectors. LLVM 19 splits its own llvm.fptosi.sat into scalars. */
#include "compiler/pass.h"

#include <string.h>

static LLVMValueRef number(LLVMValueRef like, double value) {
    return LLVMConstReal(LLVMTypeOf(like), value);
}

/* A GPU's own instruction (compiler/ptx/arithmetic/convert.c). */
static LLVMValueRef own_conversion(struct unit *unit, LLVMValueRef value, LLVMTypeRef type, bool is_signed) {
    LLVMTypeRef types[2] = {type, LLVMTypeOf(value)};
    const char *name = is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(unit->module, id, types, 2);
    return LLVMBuildCall2(unit->builder, LLVMGlobalGetValueType(function), function, &value, 1, "");
}

LLVMValueRef build_saturated(struct unit *unit, LLVMValueRef value, LLVMTypeRef type, bool is_signed) {
    LLVMBuilderRef b = unit->builder;
    unsigned bits = LLVMGetIntTypeWidth(type);
    /* For 64 bits, a GPU's own conversion does not turn NaN into 0. */
    if (unit->target->saturates && bits == 32 && LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMFloatTypeKind)
        return own_conversion(unit, value, type, is_signed);
    LLVMValueRef zero = number(value, 0);
    /* Powers of two: exact as floats. The range is [least, past). */
    double past = 1;
    for (unsigned i = 0; i < bits - is_signed; i++) past *= 2;
    double least = is_signed ? -past : 0;
    LLVMTypeRef wide = bits < 32 ? type_i32(unit) : type;
    if (bits < 32) {
        /* The limits are exact as floats: clamp, then convert to 32 bits. */
        LLVMValueRef low = number(value, least), high = number(value, past - 1);
        LLVMValueRef is_number = LLVMBuildFCmp(b, LLVMRealORD, value, zero, "");
        value = LLVMBuildSelect(b, is_number, value, zero, "");
        value = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOGT, value, low, ""), value, low, "");
        value = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOLT, value, high, ""), value, high, "");
        return LLVMBuildTrunc(b, LLVMBuildFPToSI(b, value, wide, ""), type, "");
    }
    /* Values outside the range, and NaN, are replaced by 0 before the conversion; the limit is selected
     * afterwards. */
    LLVMValueRef above = LLVMBuildFCmp(b, LLVMRealOGE, value, number(value, past), "");
    LLVMValueRef below = LLVMBuildFCmp(b, LLVMRealOLT, value, number(value, least), "");
    LLVMValueRef inside = LLVMBuildAnd(b, LLVMBuildFCmp(b, LLVMRealOGE, value, number(value, least), ""),
                                       LLVMBuildFCmp(b, LLVMRealOLT, value, number(value, past), ""), "");
    LLVMValueRef safe = LLVMBuildSelect(b, inside, value, zero, "");
    LLVMValueRef whole = is_signed ? LLVMBuildFPToSI(b, safe, type, "") : LLVMBuildFPToUI(b, safe, type, "");
    LLVMValueRef most = LLVMConstAllOnes(type);
    if (is_signed) {
        LLVMValueRef lowest = LLVMConstInt(type, 1ull << (bits - 1), false);
        most = LLVMConstNot(lowest);
        whole = LLVMBuildSelect(b, below, lowest, whole, "");
    }
    return LLVMBuildSelect(b, above, most, whole, "");
}
