/* bfloat arithmetic becomes float arithmetic with exact rounding back, in integer instructions that every
 * target has: native conversions differ between CPUs (some flush subnormals), and others call a library.
 * Floats become integers as described in saturate.c; half goes through float. Values that are only moved are
 * moved as bits (bits.c).
 *
 * Requires: the optimised entry. Establishes: no instruction computes with bfloats, and only arguments,
 * results of calls and parts of structures have the type, so that later passes cannot create bfloat
 * arithmetic. */
#include "compiler/pass.h"

#include <math.h>
#include <string.h>

static LLVMTypeRef bfloat_type(struct unit *unit) {
    return LLVMBFloatTypeInContext(unit->context);
}
static LLVMTypeRef float_type(struct unit *unit) {
    return LLVMFloatTypeInContext(unit->context);
}
static bool is_bfloat(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMBFloatTypeKind;
}

/* The integer of 32 bits whose upper half upper_half() took; NULL: the value has another source. */
static LLVMValueRef taken_from(LLVMValueRef value) {
    static const LLVMOpcode steps[] = {LLVMBitCast, LLVMTrunc, LLVMLShr};
    LLVMValueRef by = NULL;
    for (int i = 0; i < 3; i++) {
        if (!LLVMIsAInstruction(value) || LLVMGetInstructionOpcode(value) != steps[i]) return NULL;
        if (steps[i] == LLVMLShr) by = LLVMGetOperand(value, 1);
        value = LLVMGetOperand(value, 0);
    }
    bool whole = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind &&
                 LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 32;
    return whole && LLVMIsAConstantInt(by) && LLVMConstIntGetZExtValue(by) == 16 ? value : NULL;
}

static LLVMValueRef upper_half(struct unit *unit, LLVMValueRef bits) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef high = LLVMBuildLShr(b, bits, constant_i32(unit, 16), "");
    return LLVMBuildBitCast(b, LLVMBuildTrunc(b, high, LLVMInt16TypeInContext(unit->context), ""),
                            bfloat_type(unit), "");
}

/* ---- What is known of a float's lower half. */

/* Operands of operands that are looked at. */
#define DEEPEST 6

enum lower_half {
    ANY_LOWER_HALF,
    CLEAN_NAN, /* 0 if the float is a NaN: an operation passes an operand's NaN on, or gives one of its own */
    NO_LOWER_HALF /* 0: the float is a bfloat */
};

static enum lower_half lower_half_of(LLVMValueRef value, int depth);

static enum lower_half of_constant(LLVMValueRef value) {
    LLVMBool loses;
    double number = LLVMConstRealGetDouble(value, &loses);
    float single = (float)number;
    uint32_t bits;
    if (number != number) return ANY_LOWER_HALF;
    memcpy(&bits, &single, sizeof bits);
    return bits & 0xffff ? CLEAN_NAN : NO_LOWER_HALF;
}

/* Of integers that are taken as floats: what widen() makes. */
static enum lower_half of_bits(LLVMValueRef bits) {
    if (!LLVMIsAInstruction(bits)) return ANY_LOWER_HALF;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(bits);
    if (opcode != LLVMShl && opcode != LLVMAnd) return ANY_LOWER_HALF;
    LLVMValueRef by = LLVMGetOperand(bits, 1);
    uint64_t number = opcode == LLVMShl ? 16 : 0xffff0000;
    return LLVMIsAConstantInt(by) && LLVMConstIntGetZExtValue(by) == number ? NO_LOWER_HALF : ANY_LOWER_HALF;
}

/* A constant by which a product is exact or infinite: a power of two, at least 1. */
static bool is_exact_factor(LLVMValueRef value) {
    LLVMBool loses;
    int exponent;
    if (!LLVMIsAConstantFP(value)) return false;
    double size = fabs(LLVMConstRealGetDouble(value, &loses));
    return size >= 1 && isfinite(size) && frexp(size, &exponent) == 0.5;
}

/* The least that is known of the operands first … */
static enum lower_half of_operands(LLVMValueRef instruction, unsigned first, unsigned count, int depth) {
    enum lower_half least = NO_LOWER_HALF;
    for (unsigned i = first; i < first + count && least != ANY_LOWER_HALF; i++) {
        enum lower_half own = lower_half_of(LLVMGetOperand(instruction, i), depth + 1);
        if (own < least) least = own;
    }
    return least;
}

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strncmp(name, *names, strlen(*names)) == 0) return true;
    return false;
}

static enum lower_half of_call(LLVMValueRef call, int depth) {
    static const char *const selects[] = {
        "llvm.fabs.", "llvm.minnum.", "llvm.maxnum.", "llvm.minimum.", "llvm.maximum.", "llvm.copysign.",
        NULL};
    static const char *const computes[] = {"llvm.fma.",  "llvm.fmuladd.", "llvm.sqrt.", "llvm.floor.",
                                           "llvm.ceil.", "llvm.trunc.",   "llvm.rint.", NULL};
    const char *name = called_name(call);
    bool selected = is_one_of(name, selects);
    if (!selected && !is_one_of(name, computes)) return ANY_LOWER_HALF;
    enum lower_half known = of_operands(call, 0, LLVMGetNumArgOperands(call), depth);
    return known && !selected ? CLEAN_NAN : known;
}

static enum lower_half lower_half_of(LLVMValueRef value, int depth) {
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMFloatTypeKind || depth > DEEPEST) return ANY_LOWER_HALF;
    if (LLVMIsAConstantFP(value)) return of_constant(value);
    if (!LLVMIsAInstruction(value)) return ANY_LOWER_HALF;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMBitCast:
        return of_bits(LLVMGetOperand(value, 0));
    case LLVMFNeg:
        return of_operands(value, 0, 1, depth);
    case LLVMSelect:
        return of_operands(value, 1, 2, depth);
    case LLVMFMul:
        for (unsigned i = 0; i < 2; i++)
            if (is_exact_factor(LLVMGetOperand(value, i))) return of_operands(value, 1 - i, 1, depth);
        return of_operands(value, 0, 2, depth) ? CLEAN_NAN : ANY_LOWER_HALF;
    case LLVMFAdd:
        if (LLVMGetOperand(value, 0) == LLVMGetOperand(value, 1)) return of_operands(value, 0, 1, depth);
        return of_operands(value, 0, 2, depth) ? CLEAN_NAN : ANY_LOWER_HALF;
    case LLVMFSub:
    case LLVMFDiv:
        return of_operands(value, 0, 2, depth) ? CLEAN_NAN : ANY_LOWER_HALF;
    case LLVMSIToFP:
    case LLVMUIToFP:
        return CLEAN_NAN;
    case LLVMCall:
        return of_call(value, depth);
    default:
        return ANY_LOWER_HALF;
    }
}

/* bfloat is the upper half of a float. A computed one is taken from the 32 bits it was computed in. */
static LLVMValueRef widen(struct unit *unit, LLVMValueRef value) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef whole = taken_from(value);
    if (whole && LLVMIsAInstruction(whole) && LLVMGetInstructionOpcode(whole) == LLVMBitCast &&
        lower_half_of(LLVMGetOperand(whole, 0), 0) == NO_LOWER_HALF)
        return LLVMGetOperand(whole, 0);
    if (whole)
        return LLVMBuildBitCast(b, LLVMBuildAnd(b, whole, constant_i32(unit, 0xffff0000), ""),
                                float_type(unit), "");
    LLVMValueRef bits = LLVMBuildBitCast(b, value, LLVMInt16TypeInContext(unit->context), "");
    LLVMValueRef high =
        LLVMBuildShl(b, LLVMBuildZExt(b, bits, type_i32(unit), ""), constant_i32(unit, 16), "");
    return LLVMBuildBitCast(b, high, float_type(unit), "");
}

/* Rounds to nearest even: adds half a unit, minus one if the kept part is even. A NaN stays a NaN: quiet, or
 * as it is where its lower half is known to be 0, so that nothing is carried out of it. */
static LLVMValueRef narrow(struct unit *unit, LLVMValueRef value) {
    LLVMBuilderRef b = unit->builder;
    /* GPUs have one exact instruction for it. LLVM 19 also has an intrinsic, but then cannot reuse its result
     * as another 16-bit type. */
    if (unit->target->converts_bfloat) {
        LLVMTypeRef half = LLVMInt16TypeInContext(unit->context);
        LLVMValueRef own = build_assembly(unit, "cvt.rn.bf16.f32 $0, $1;", "=h,f", half, &value, 1, false);
        return LLVMBuildBitCast(b, own, bfloat_type(unit), "");
    }
    LLVMValueRef bits = LLVMBuildBitCast(b, value, type_i32(unit), "");
    LLVMValueRef sixteen = constant_i32(unit, 16);
    enum lower_half known = lower_half_of(value, 0);
    if (known == NO_LOWER_HALF) return upper_half(unit, bits);
    LLVMValueRef odd = LLVMBuildAnd(b, LLVMBuildLShr(b, bits, sixteen, ""), constant_i32(unit, 1), "");
    LLVMValueRef rounded = LLVMBuildAdd(b, LLVMBuildAdd(b, bits, constant_i32(unit, 0x7fff), ""), odd, "");
    if (known == CLEAN_NAN) return upper_half(unit, rounded);
    LLVMValueRef quiet = LLVMBuildOr(b, bits, constant_i32(unit, 0x400000), "");
    LLVMValueRef nan = LLVMBuildFCmp(b, LLVMRealUNO, value, value, "");
    return upper_half(unit, LLVMBuildSelect(b, nan, quiet, rounded, ""));
}

/* An integer as a float that narrow() rounds as if from the integer itself. Up to 24 bits, the float is
 * exact. Wider integers pass through double and are rounded to odd first: the lost bits set the last bit. */
static LLVMValueRef integer_as_float(struct unit *unit, LLVMValueRef value, bool is_signed) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(value), real = LLVMDoubleTypeInContext(unit->context);
    unsigned width = LLVMGetIntTypeWidth(type);
    if (width <= 24)
        return is_signed ? LLVMBuildSIToFP(b, value, float_type(unit), "")
                         : LLVMBuildUIToFP(b, value, float_type(unit), "");
    if (width > 32) {
        /* Twelve bits fewer fit in a double's 53; the lowest bit kept records whether any of them was set. */
        LLVMValueRef zero = LLVMConstNull(type);
        LLVMValueRef low = LLVMBuildAnd(b, value, LLVMConstInt(type, 0xfff, false), "");
        LLVMValueRef high = LLVMBuildAnd(b, value, LLVMConstInt(type, ~0xfffull, true), "");
        LLVMValueRef mark = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntNE, low, zero, ""),
                                            LLVMConstInt(type, 0x1000, false), zero, "");
        LLVMValueRef marked = LLVMBuildOr(b, high, mark, "");
        /* Small values keep all their bits. */
        LLVMValueRef sign = is_signed ? LLVMBuildAShr(b, value, LLVMConstInt(type, 63, false), "") : zero;
        LLVMValueRef magnitude = LLVMBuildXor(b, value, sign, "");
        LLVMValueRef large =
            LLVMBuildICmp(b, LLVMIntUGE, magnitude, LLVMConstInt(type, 1ull << 52, false), "");
        value = LLVMBuildSelect(b, large, marked, value, "");
    }
    LLVMValueRef exact =
        is_signed ? LLVMBuildSIToFP(b, value, real, "") : LLVMBuildUIToFP(b, value, real, "");
    LLVMValueRef nearest = LLVMBuildFPTrunc(b, exact, float_type(unit), "");
    LLVMValueRef back = LLVMBuildFPExt(b, nearest, real, "");
    LLVMValueRef bits = LLVMBuildBitCast(b, nearest, type_i32(unit), "");
    LLVMValueRef above = LLVMBuildFCmp(b, LLVMRealOGT, build_intrinsic(unit, "llvm.fabs", real, &back, 1),
                                       build_intrinsic(unit, "llvm.fabs", real, &exact, 1), "");
    LLVMValueRef toward_zero = LLVMBuildSub(b, bits, LLVMBuildZExt(b, above, type_i32(unit), ""), "");
    LLVMValueRef odd = LLVMBuildOr(b, toward_zero, constant_i32(unit, 1), "");
    LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, back, exact, "");
    return LLVMBuildBitCast(b, LLVMBuildSelect(b, inexact, odd, bits, ""), float_type(unit), "");
}

static LLVMValueRef operand_as_float(struct unit *unit, LLVMValueRef instruction, unsigned index) {
    return widen(unit, LLVMGetOperand(instruction, index));
}

static LLVMValueRef lower_call(struct unit *unit, LLVMValueRef call) {
    /* Intrinsics on bfloat, such as llvm.fabs.bf16: the float intrinsic, rounded. */
    const char *name = called_name(call);
    const char *suffix = strstr(name, ".bf16");
    if (strncmp(name, "llvm.", 5) != 0 || !suffix) return NULL;
    char base[64];
    size_t length = (size_t)(suffix - name);
    if (length >= sizeof base) return NULL;
    memcpy(base, name, length);
    base[length] = 0;
    LLVMValueRef arguments[3];
    unsigned count = LLVMGetNumArgOperands(call);
    if (count > 3) return NULL;
    for (unsigned i = 0; i < count; i++) {
        if (!is_bfloat(LLVMGetOperand(call, i))) return NULL;
        arguments[i] = operand_as_float(unit, call, i);
    }
    return narrow(unit, build_intrinsic(unit, base, float_type(unit), arguments, count));
}

/* double to bfloat would need rounding to odd in float first; kernels have no double. */
static LLVMValueRef lower(struct unit *unit, LLVMValueRef i) {
    LLVMBuilderRef b = unit->builder;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    bool result = is_bfloat(i);
    bool operand = LLVMGetNumOperands(i) > 0 && is_bfloat(LLVMGetOperand(i, 0));
    switch (opcode) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMFRem:
        if (!result) return NULL;
        return narrow(
            unit, LLVMBuildBinOp(b, opcode, operand_as_float(unit, i, 0), operand_as_float(unit, i, 1), ""));
    case LLVMSelect:
        if (!result || (!taken_from(LLVMGetOperand(i, 1)) && !taken_from(LLVMGetOperand(i, 2)))) return NULL;
        return upper_half(
            unit, LLVMBuildBitCast(b,
                                   LLVMBuildSelect(b, LLVMGetOperand(i, 0), operand_as_float(unit, i, 1),
                                                   operand_as_float(unit, i, 2), ""),
                                   type_i32(unit), ""));
    case LLVMFNeg: {
        if (!result) return NULL;
        LLVMTypeRef i16 = LLVMInt16TypeInContext(unit->context);
        LLVMValueRef bits = LLVMBuildBitCast(b, LLVMGetOperand(i, 0), i16, "");
        return LLVMBuildBitCast(b, LLVMBuildXor(b, bits, LLVMConstInt(i16, 0x8000, false), ""),
                                bfloat_type(unit), "");
    }
    case LLVMFCmp:
        if (!operand) return NULL;
        return LLVMBuildFCmp(b, LLVMGetFCmpPredicate(i), operand_as_float(unit, i, 0),
                             operand_as_float(unit, i, 1), "");
    case LLVMFPExt:
        if (!operand) return NULL;
        return LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMFloatTypeKind
                   ? operand_as_float(unit, i, 0)
                   : LLVMBuildFPExt(b, operand_as_float(unit, i, 0), LLVMTypeOf(i), "");
    case LLVMFPTrunc:
        if (!result) return NULL;
        return narrow(unit, LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, 0))) == LLVMFloatTypeKind
                                ? LLVMGetOperand(i, 0)
                                : LLVMBuildFPTrunc(b, LLVMGetOperand(i, 0), float_type(unit), ""));
    case LLVMSIToFP:
    case LLVMUIToFP:
        if (!result) return NULL;
        return narrow(unit, integer_as_float(unit, LLVMGetOperand(i, 0), opcode == LLVMSIToFP));
    case LLVMCall: {
        if (result) return lower_call(unit, i);
        /* The class is the same in float: exponent, subnormals and the quiet bit have the same positions. */
        if (operand && strncmp(called_name(i), "llvm.is.fpclass.", 16) == 0) {
            LLVMTypeRef type = float_type(unit);
            unsigned id = LLVMLookupIntrinsicID("llvm.is.fpclass", 15);
            LLVMValueRef function = LLVMGetIntrinsicDeclaration(unit->module, id, &type, 1);
            LLVMValueRef arguments[2] = {widen(unit, LLVMGetOperand(i, 0)), LLVMGetOperand(i, 1)};
            return LLVMBuildCall2(b, LLVMGlobalGetValueType(function), function, arguments, 2, "");
        }
        /* llvm.fptosi.sat.i32.bf16 and similar, also of half and float. */
        const char *name = called_name(i);
        bool to_signed = strncmp(name, "llvm.fptosi.sat.", 16) == 0;
        if (!to_signed && strncmp(name, "llvm.fptoui.sat.", 16) != 0) return NULL;
        LLVMValueRef value = LLVMGetOperand(i, 0);
        if (operand)
            value = operand_as_float(unit, i, 0);
        else if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMHalfTypeKind)
            value = LLVMBuildFPExt(b, value, float_type(unit), "");
        return build_saturated(unit, value, LLVMTypeOf(i), to_signed);
    }
    default:
        return NULL;
    }
}

/* ---- Vectors. */

static bool holds_vector_of_bfloat(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind &&
           LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMBFloatTypeKind;
}

static bool computes_with_vectors(LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMFRem:
    case LLVMFNeg:
    case LLVMFPTrunc:
    case LLVMSIToFP:
    case LLVMUIToFP:
        return holds_vector_of_bfloat(instruction);
    case LLVMFCmp:
    case LLVMFPExt:
        return holds_vector_of_bfloat(LLVMGetOperand(instruction, 0));
    case LLVMCall:
        return strncmp(called_name(instruction), "llvm.", 5) == 0 && LLVMGetNumArgOperands(instruction) > 0 &&
               (holds_vector_of_bfloat(instruction) ||
                holds_vector_of_bfloat(LLVMGetOperand(instruction, 0)));
    default:
        return false;
    }
}

static bool has_vector_arithmetic(LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (computes_with_vectors(instruction)) return true;
    }
    return false;
}

/* The optimiser joins the members of a structure into vectors and adds two at a time. */
static smelt_status split_vectors(struct unit *unit) {
    bool found = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        found |= has_vector_arithmetic(f);
    return found ? run_passes(unit, "function(scalarizer,early-cse,adce)") : SMELT_OK;
}

static void lower_arithmetic(struct unit *unit, LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block) {
        LLVMPositionBuilderBefore(unit->builder, instruction);
        LLVMValueRef lowered = lower(unit, instruction);
        if (!lowered) continue;
        LLVMReplaceAllUsesWith(instruction, lowered);
        LLVMInstructionEraseFromParent(instruction);
    }
}

smelt_status pass_bfloat(struct unit *unit) {
    TRY(split_vectors(unit));
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        lower_arithmetic(unit, f);
        bits_move_bfloats(unit, f);
    }
    return SMELT_OK;
}
