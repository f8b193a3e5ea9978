/* NaN and infinity that come up in the kernel: the result of an operation on floats is not a number though no
 * operand is, or infinite though all operands are finite. Values that are read, and constants such as
 * -INFINITY, did not come up there.
 *
 * Of the user's code, each operation is marked, and each call of a function of the library: within those
 * functions, infinities may come and go. Of the library, only what applies an operation or a function to each
 * component of a vector is marked. Functions that bring values from elsewhere (of other lanes, of memory) are
 * left out. Marks and tests are those of arithmetic.c. */
#include "compiler/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 3 };

static bool is_real(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind || kind == LLVMFloatTypeKind;
}

/* ---- Marks. */

static void mark_real(struct unit *unit, LLVMValueRef instruction, enum check_real real, const char *name,
                      LLVMValueRef *operands, unsigned count) {
    char detail[240];
    snprintf(detail, sizeof detail, "%d.%s", (int)real, name);
    check_mark_result(unit, instruction, CHECK_FINITE, operands, count, detail);
}

/* Its result depends on its operands alone. */
static bool only_computes(const char *name) {
    static const char *const others[] = {"simd_", "quad_", "atomic_", "simdgroup_", "select", "as_type"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0) return false;
    return true;
}

/* Of an intrinsic of LLVM, the word behind the prefix. */
static bool name_of_called(struct unit *unit, LLVMValueRef callee, char name[200]) {
    static const char prefix[] = "llvm.";
    size_t length;
    const char *symbol = LLVMGetValueName2(callee, &length);
    if (strncmp(symbol, prefix, sizeof prefix - 1) == 0) {
        const char *word = symbol + sizeof prefix - 1;
        snprintf(name, 200, "%.*s", (int)strcspn(word, "."), word);
        return strcmp(name, "copysign") != 0 && strcmp(name, "fabs") != 0;
    }
    if (lines_of_function_are_of_user(callee)) return false;
    unit_plain_name(unit, callee, name);
    return !strchr(name, '.') && only_computes(name);
}

static void mark_call(struct unit *unit, LLVMValueRef call) {
    LLVMValueRef callee = LLVMGetCalledValue(call), operands[MOST_NAMED];
    char name[200];
    unsigned count = 0;
    if (!LLVMIsAFunction(callee) || !name_of_called(unit, callee, name)) return;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
        LLVMValueRef operand = LLVMGetOperand(call, i);
        if (LLVMTypeOf(operand) != LLVMTypeOf(call)) continue;
        if (count == MOST_NAMED) return;
        operands[count++] = operand;
    }
    enum check_real real = count == 1   ? CHECK_REAL_CALL_OF_ONE
                           : count == 2 ? CHECK_REAL_CALL_OF_TWO
                                        : CHECK_REAL_CALL;
    if (count) mark_real(unit, call, real, name, operands, count);
}

static void mark_operation(struct unit *unit, LLVMValueRef operation, enum check_real real) {
    LLVMValueRef operands[2] = {LLVMGetOperand(operation, 0), LLVMGetOperand(operation, 1)};
    mark_real(unit, operation, real, "", operands, 2);
}

static void mark_instruction(struct unit *unit, LLVMValueRef instruction) {
    LLVMValueRef operand;
    if (!is_real(LLVMTypeOf(instruction))) return;
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMFAdd:
        mark_operation(unit, instruction, CHECK_REAL_ADD);
        break;
    case LLVMFSub:
        mark_operation(unit, instruction, CHECK_REAL_SUBTRACT);
        break;
    case LLVMFMul:
        mark_operation(unit, instruction, CHECK_REAL_MULTIPLY);
        break;
    case LLVMFDiv:
        mark_operation(unit, instruction, CHECK_REAL_DIVIDE);
        break;
    case LLVMFRem:
        mark_operation(unit, instruction, CHECK_REAL_REMAINDER);
        break;
    case LLVMFPTrunc:
        operand = LLVMGetOperand(instruction, 0);
        mark_real(unit, instruction, CHECK_REAL_CONVERT, "", &operand, 1);
        break;
    case LLVMCall:
        mark_call(unit, instruction);
        break;
    default:
        break;
    }
}

/* Operators on vectors (metal::__vector::operator*, …), and what applies a function to their components
 * (in the namespace __smelt_float). */
static bool goes_through_components(LLVMValueRef function) {
    static const char vector[] = "_ZN5metal8__vector", *const operators[] = {"pl", "mi", "ml", "dv",
                                                                             "pL", "mI", "mL", "dV"};
    size_t length;
    const char *symbol = LLVMGetValueName2(function, &length);
    if (strstr(symbol, "13__smelt_float") && strstr(symbol, "apply")) return true;
    if (strncmp(symbol, vector, sizeof vector - 1) != 0) return false;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(symbol + sizeof vector - 1, operators[i], 2) == 0) return true;
    return false;
}

smelt_status check_mark_reals(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        bool components = goes_through_components(f);
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (components || lines_are_of_user(instruction)) mark_instruction(unit, instruction);
        }
    }
    return SMELT_OK;
}

/* ---- Tests, of the bits: in fast math, LLVM takes comparisons of such floats for settled. */

struct bits {
    LLVMValueRef exponent_is_full, is_nan;
};

static uint64_t infinity_of(LLVMTypeRef type) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMHalfTypeKind:
        return 0x7c00;
    case LLVMBFloatTypeKind:
        return 0x7f80;
    default:
        return 0x7f800000;
    }
}

static struct bits bits_of(struct unit *unit, LLVMValueRef value) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(value);
    unsigned width = (unsigned)LLVMSizeOfTypeInBits(unit->layout, type);
    LLVMTypeRef word = LLVMIntTypeInContext(unit->context, width);
    LLVMValueRef infinity = LLVMConstInt(word, infinity_of(type), false),
                 all = LLVMConstInt(word, (UINT64_C(1) << (width - 1)) - 1, false);
    LLVMValueRef size =
        check_apart(unit, LLVMBuildAnd(b, check_apart(unit, LLVMBuildBitCast(b, value, word, "")), all, ""));
    return (struct bits){check_apart(unit, LLVMBuildICmp(b, LLVMIntUGE, size, infinity, "")),
                         check_apart(unit, LLVMBuildICmp(b, LLVMIntUGT, size, infinity, ""))};
}

static LLVMValueRef nothing_of(LLVMValueRef flag) {
    return LLVMConstNull(LLVMTypeOf(flag));
}

/* Whether the result is not finite, and its operands are not to blame. */
static LLVMValueRef comes_up(struct unit *unit, struct bits result, const LLVMValueRef *operands,
                             unsigned count) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef any_full = nothing_of(result.is_nan), any_nan = any_full;
    for (unsigned i = 0; i < count; i++) {
        struct bits operand = bits_of(unit, operands[i]);
        any_full = check_apart(unit, LLVMBuildOr(b, any_full, operand.exponent_is_full, ""));
        any_nan = check_apart(unit, LLVMBuildOr(b, any_nan, operand.is_nan, ""));
    }
    LLVMValueRef new_nan = check_apart(
        unit, LLVMBuildAnd(b, result.is_nan, check_apart(unit, LLVMBuildNot(b, any_nan, "")), ""));
    LLVMValueRef new_infinity = check_apart(
        unit, LLVMBuildAnd(b, result.exponent_is_full, check_apart(unit, LLVMBuildNot(b, any_full, "")), ""));
    return check_apart(unit, LLVMBuildOr(b, new_nan, new_infinity, ""));
}

/* What the mark's name ends in: the operation, and the function's name ("" if there is none). */
static enum check_real read_detail(LLVMValueRef mark, const char **name) {
    const char *whole = called_name(mark), *at = strrchr(whole, '.');
    *name = at ? at + 1 : "";
    while (at && at > whole && at[-1] != '.') at--;
    return at ? (enum check_real)atoi(at) : CHECK_REAL_CALL;
}

/* The builder stands where the value is not finite: the checker is told, and returns it. */
static LLVMValueRef hold(struct unit *unit, LLVMValueRef mark, LLVMValueRef is_nan) {
    LLVMBuilderRef b = unit->builder;
    const char *name;
    enum check_real real = read_detail(mark, &name);
    LLVMTypeRef type = LLVMTypeOf(mark),
                word =
                    LLVMIntTypeInContext(unit->context, (unsigned)LLVMSizeOfTypeInBits(unit->layout, type));
    LLVMValueRef x = LLVMGetOperand(mark, 1),
                 y = LLVMGetNumArgOperands(mark) > 2 ? LLVMGetOperand(mark, 2) : x;
    LLVMValueRef what = LLVMBuildSelect(b, is_nan, constant_i32(unit, (uint32_t)real | CHECK_REAL_NAN),
                                        constant_i32(unit, (uint32_t)real), "");
    LLVMValueRef bits = LLVMBuildBitCast(b, LLVMGetOperand(mark, 0), word, "");
    LLVMValueRef arguments[5] = {LLVMBuildZExt(b, bits, type_i64(unit), ""), check_told(unit, x),
                                 check_told(unit, y), what, check_site(unit, mark, *name ? name : NULL)};
    LLVMValueRef held = check_call(unit, "smelt_check_real", type_i64(unit), arguments, 5, false);
    return LLVMBuildBitCast(b, LLVMBuildTrunc(b, held, word, ""), type, "");
}

void check_test_real(struct unit *unit, LLVMValueRef mark) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef value = LLVMGetOperand(mark, 0), operands[MOST_NAMED];
    unsigned count = LLVMGetNumArgOperands(mark) - 1;
    struct bits result = bits_of(unit, value);
    for (unsigned i = 0; i < count; i++) operands[i] = LLVMGetOperand(mark, i + 1);
    LLVMBasicBlockRef before = LLVMGetInstructionParent(mark);
    check_branch(unit, mark, comes_up(unit, result, operands, count));
    LLVMBasicBlockRef wrong = LLVMGetInsertBlock(b);
    LLVMValueRef held = hold(unit, mark, result.is_nan);
    LLVMPositionBuilderBefore(b, mark);
    LLVMValueRef either = LLVMBuildPhi(b, LLVMTypeOf(mark), "");
    LLVMAddIncoming(either, (LLVMValueRef[]){value, held}, (LLVMBasicBlockRef[]){before, wrong}, 2);
    LLVMSetOperand(mark, 0, either);
}
