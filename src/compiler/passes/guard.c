/* Defines what C++ leaves undefined, before the optimiser may use it (docs/semantics.md): x / 0 = 0, x % 0 =
 * x, INT_MIN / -1 = INT_MIN, INT_MIN % -1 = 0; shift counts are taken modulo the width; a function that ends
 * without returning a value returns 0. Also fixes contraction: what clang allows to be fused within a
 * statement becomes fma on every engine. */
#include "compiler/pass.h"

#include <string.h>

static LLVMValueRef all_ones(LLVMTypeRef type) {
    return LLVMConstAllOnes(type);
}

static LLVMValueRef smallest(LLVMTypeRef type) {
    return LLVMConstInt(type, 1ull << (LLVMGetIntTypeWidth(type) - 1), false);
}

static void guard_division(struct unit *unit, LLVMValueRef division, LLVMOpcode opcode) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef x = LLVMGetOperand(division, 0), y = LLVMGetOperand(division, 1);
    LLVMTypeRef type = LLVMTypeOf(division);
    bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem;
    bool remainder = opcode == LLVMSRem || opcode == LLVMURem;
    uint64_t constant;
    bool known = is_constant_integer(y, &constant);
    if (known && constant != 0 && (!is_signed || y != all_ones(type))) return;
    LLVMPositionBuilderBefore(b, division);
    LLVMValueRef zero = LLVMConstNull(type), one = LLVMConstInt(type, 1, false);
    LLVMValueRef by_zero = LLVMBuildICmp(b, LLVMIntEQ, y, zero, "by_zero");
    LLVMValueRef unsafe = by_zero;
    if (is_signed) {
        LLVMValueRef overflow = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntEQ, x, smallest(type), ""),
                                             LLVMBuildICmp(b, LLVMIntEQ, y, all_ones(type), ""), "overflow");
        unsafe = LLVMBuildOr(b, by_zero, overflow, "unsafe");
    }
    LLVMValueRef divisor = LLVMBuildSelect(b, unsafe, one, y, "divisor");
    LLVMValueRef safe = LLVMBuildBinOp(b, opcode, x, divisor, "");
    LLVMValueRef result = LLVMBuildSelect(b, by_zero, remainder ? x : zero, safe, "");
    LLVMReplaceAllUsesWith(division, result);
    LLVMInstructionEraseFromParent(division);
}

static void guard_shift(struct unit *unit, LLVMValueRef shift) {
    LLVMTypeRef type = LLVMTypeOf(shift);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind) return;
    unsigned width = LLVMGetIntTypeWidth(type);
    uint64_t constant;
    LLVMValueRef count = LLVMGetOperand(shift, 1);
    if (is_constant_integer(count, &constant) && constant < width) return;
    LLVMPositionBuilderBefore(unit->builder, shift);
    LLVMValueRef masked = LLVMBuildAnd(unit->builder, count, LLVMConstInt(type, width - 1, false), "count");
    LLVMSetOperand(shift, 1, masked);
}

#define MOST_RETURNED 32 /* bytes; vectors are structures */

/* Where a function has several returns, clang stores their values to a slot, from which the only return takes
 * them: that of a function whose end is reached, too (-fno-strict-return). */
static void guard_return(struct unit *unit, LLVMValueRef end) {
    LLVMValueRef value = LLVMGetNumOperands(end) ? LLVMGetOperand(end, 0) : NULL;
    if (!value || !LLVMIsALoadInst(value) || !LLVMIsAAllocaInst(LLVMGetOperand(value, 0))) return;
    LLVMValueRef slot = LLVMGetOperand(value, 0);
    if (LLVMABISizeOfType(unit->layout, LLVMTypeOf(value)) > MOST_RETURNED) return;
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(slot));
    LLVMBuildStore(unit->builder, LLVMConstNull(LLVMTypeOf(value)), slot);
}

/* Scalars and vectors that functions return are defined, as C++ requires; clang does not say so with
 * -fno-strict-return. LLVM would otherwise freeze what is computed from them, which hides strides. Structures
 * that are returned as numbers, from memory of another type, may have undefined bits between their members.
 */
static void mark_defined(struct unit *unit, LLVMValueRef function, LLVMValueRef end) {
    LLVMValueRef value = LLVMGetNumOperands(end) ? LLVMGetOperand(end, 0) : NULL;
    LLVMTypeKind kind = value ? LLVMGetTypeKind(LLVMTypeOf(value)) : LLVMVoidTypeKind;
    if (!value || kind == LLVMStructTypeKind || kind == LLVMArrayTypeKind) return;
    if (LLVMIsALoadInst(value)) {
        LLVMValueRef slot = LLVMGetOperand(value, 0);
        if (!LLVMIsAAllocaInst(slot) || LLVMGetAllocatedType(slot) != LLVMTypeOf(value)) return;
    }
    LLVMAttributeRef defined = LLVMCreateEnumAttribute(
        unit->context, LLVMGetEnumAttributeKindForName("noundef", strlen("noundef")), 0);
    LLVMAddAttributeAtIndex(function, LLVMAttributeReturnIndex, defined);
}

static void fix_contraction(struct unit *unit, LLVMValueRef call) {
    LLVMTypeRef type = LLVMTypeOf(call);
    LLVMValueRef arguments[3] = {LLVMGetOperand(call, 0), LLVMGetOperand(call, 1), LLVMGetOperand(call, 2)};
    LLVMPositionBuilderBefore(unit->builder, call);
    LLVMValueRef fused = build_intrinsic(unit, "llvm.fma", type, arguments, 3);
    LLVMSetFastMathFlags(fused, LLVMGetFastMathFlags(call));
    LLVMReplaceAllUsesWith(call, fused);
    LLVMInstructionEraseFromParent(call);
}

/* clang folds undefined operations on literals (`1 << 40`) to poison, which could become anything: both
 * engines use 0. Vectors under construction start as poison, and stay. */
static void drop_poison(LLVMValueRef instruction) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    if (opcode == LLVMInsertElement || opcode == LLVMInsertValue || opcode == LLVMShuffleVector) return;
    for (int o = 0; o < LLVMGetNumOperands(instruction); o++) {
        LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)o);
        if (LLVMIsPoison(operand))
            LLVMSetOperand(instruction, (unsigned)o, LLVMConstNull(LLVMTypeOf(operand)));
    }
}

smelt_status pass_guard(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
            drop_poison(instruction);
            switch (opcode) {
            case LLVMSDiv:
            case LLVMUDiv:
            case LLVMSRem:
            case LLVMURem:
                guard_division(unit, instruction, opcode);
                break;
            case LLVMShl:
            case LLVMLShr:
            case LLVMAShr:
                guard_shift(unit, instruction);
                break;
            case LLVMRet:
                guard_return(unit, instruction);
                mark_defined(unit, f, instruction);
                break;
            case LLVMCall:
                if (strncmp(called_name(instruction), "llvm.fmuladd.", 13) == 0)
                    fix_contraction(unit, instruction);
                break;
            default:
                break;
            }
        }
    }
    return SMELT_OK;
}
