/* Moves the elements of threadgroup memory so that lanes that load the rows of a matrix use different banks.
 *
 * A tile whose rows are a multiple of 64 bytes apart, such as `threadgroup half tile[64][32]`, has the same
 * columns of several rows in the same banks: to load eight rows of 16 bytes then takes four or eight passes
 * of the memory instead of one. Rows with padding, as many kernels have them, do not. Here, the 16-byte parts
 * of each 128 bytes change places: part `p` of the 128 bytes `n` goes to part `p ^ (n & 7)`. The same is done
 * with the address of every access, each of which lies within one such part, so that none sees a difference.
 *
 * Requires: the module lowered, accesses joined and aligned; unit->rows_share_banks, whether it is useful.
 * Maintains: what the code does. image.threadgroup_bytes becomes a multiple of 128. */
#include "compiler/ptx/matrix/matrix.h"
#include "compiler/ptx/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART 16 /* bytes */
#define LINE 128
#define PERIOD 1024 /* a distance that moves nothing else */
#define MOST_DEPTH 16

struct swizzle {
    struct unit *unit;
    int accesses;
};

/* ---- Whether every access can follow. */

static bool is_shared(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMPointerTypeKind && LLVMGetPointerAddressSpace(type) == PTX_SHARED;
}

static bool loads_matrices(LLVMValueRef call) {
    const char *text = ptx_assembly_text(call);
    return text && strncmp(text, "ldmatrix.", 9) == 0;
}

/* An access that lies within one part. */
static bool lies_within_part(struct unit *unit, LLVMValueRef access) {
    LLVMTypeRef type = LLVMTypeOf(LLVMIsAStoreInst(access) ? LLVMGetOperand(access, 0) : access);
    uint64_t bytes = LLVMABISizeOfType(unit->layout, type);
    return bytes <= PART && LLVMGetAlignment(access) >= bytes && !LLVMGetVolatile(access) &&
           LLVMGetOrdering(access) == LLVMAtomicOrderingNotAtomic;
}

static bool has_shared_operand(LLVMValueRef i) {
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        if (is_shared(LLVMGetOperand(i, (unsigned)o))) return true;
    return false;
}

/* An address as a number is used to load matrices, and to compute such addresses, alone. */
static bool number_may_follow(LLVMValueRef number, int depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(number); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (loads_matrices(user)) continue;
        bool counts = LLVMIsABinaryOperator(user) || LLVMIsAPHINode(user) || LLVMIsAConstantExpr(user);
        if (!counts || depth == 0 || !number_may_follow(user, depth - 1)) return false;
    }
    return true;
}

static bool may_follow(struct unit *unit, LLVMValueRef i) {
    if (LLVMIsALoadInst(i)) return !is_shared(LLVMGetOperand(i, 0)) || lies_within_part(unit, i);
    if (LLVMIsAStoreInst(i))
        return !is_shared(LLVMGetOperand(i, 0)) &&
               (!is_shared(LLVMGetOperand(i, 1)) || lies_within_part(unit, i));
    if (loads_matrices(i)) return true;
    const char *text = ptx_assembly_text(i);
    if (text) return !strstr(text, "shared") && !has_shared_operand(i);
    if (LLVMIsAGetElementPtrInst(i) || LLVMIsAPHINode(i) || LLVMIsASelectInst(i) || LLVMIsAICmpInst(i))
        return true;
    if (LLVMIsAPtrToIntInst(i)) return !has_shared_operand(i) || number_may_follow(i, MOST_DEPTH);
    return !has_shared_operand(i);
}

static bool constant_may_follow(LLVMValueRef constant, int depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(constant); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAConstantExpr(user)) continue; /* instructions are looked at one by one */
        LLVMOpcode opcode = LLVMGetConstOpcode(user);
        if (opcode == LLVMPtrToInt
                ? !number_may_follow(user, MOST_DEPTH)
                : opcode != LLVMGetElementPtr || depth == 0 || !constant_may_follow(user, depth - 1))
            return false;
    }
    return true;
}

static bool all_may_follow(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        if (f != unit->entry && !LLVMIsDeclaration(f)) return false;
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g))
        if (is_shared(g) && !constant_may_follow(g, MOST_DEPTH)) return false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (!may_follow(unit, i)) return false;
    }
    return true;
}

/* ---- Addresses. */

/* Takes constants out of an address, as far as they are multiples of PERIOD in all: what remains, as a
 * number. Built at the builder's place. */
static LLVMValueRef take_constants(struct unit *unit, LLVMValueRef pointer, int64_t *constant, int depth) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef i32 = type_i32(unit);
    uint64_t number = 0;
    LLVMOpcode opcode = LLVMIsAGetElementPtrInst(pointer) ? LLVMGetElementPtr
                        : LLVMIsAConstantExpr(pointer)    ? LLVMGetConstOpcode(pointer)
                                                          : LLVMRet;
    if (opcode != LLVMGetElementPtr || LLVMGetNumOperands(pointer) != 2 || depth == 0)
        return LLVMBuildPtrToInt(b, pointer, i32, "");
    LLVMValueRef index = LLVMGetOperand(pointer, 1);
    uint64_t bytes = LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(pointer));
    LLVMTypeRef type = LLVMTypeOf(index);
    if (LLVMIsAConstantInt(index)) {
        *constant += LLVMConstIntGetSExtValue(index) * (int64_t)bytes;
        return take_constants(unit, LLVMGetOperand(pointer, 0), constant, depth - 1);
    }
    if (LLVMGetIntTypeWidth(type) != 32) return LLVMBuildPtrToInt(b, pointer, i32, "");
    LLVMValueRef base = take_constants(unit, LLVMGetOperand(pointer, 0), constant, depth - 1);
    while (LLVMIsABinaryOperator(index) && LLVMGetInstructionOpcode(index) == LLVMAdd &&
           is_constant_integer(LLVMGetOperand(index, 1), &number)) {
        *constant += (int32_t)number * (int64_t)bytes;
        index = LLVMGetOperand(index, 0);
    }
    index = LLVMBuildMul(b, index, LLVMConstInt(i32, bytes, false), "");
    return LLVMBuildAdd(b, base, index, "");
}

/* Where a number moves to, a constant further. */
static LLVMValueRef moved(struct swizzle *s, LLVMValueRef number, int64_t constant) {
    struct unit *unit = s->unit;
    LLVMBuilderRef b = unit->builder;
    int64_t low = (constant % PERIOD + PERIOD) % PERIOD;
    if (low) number = LLVMBuildAdd(b, number, constant_i32(unit, (uint32_t)low), "");
    LLVMValueRef part = LLVMBuildLShr(b, number, constant_i32(unit, 3), "");
    part = LLVMBuildAnd(b, part, constant_i32(unit, LINE - PART), "");
    number = LLVMBuildXor(b, number, part, "");
    s->accesses++;
    return constant == low ? number
                           : LLVMBuildAdd(b, number, constant_i32(unit, (uint32_t)(constant - low)), "");
}

static void move_access(struct swizzle *s, LLVMValueRef access) {
    struct unit *unit = s->unit;
    unsigned place = LLVMIsAStoreInst(access) ? 1 : 0;
    LLVMValueRef pointer = LLVMGetOperand(access, place);
    int64_t constant = 0;
    if (!is_shared(pointer)) return;
    LLVMPositionBuilderBefore(unit->builder, access);
    LLVMValueRef number = take_constants(unit, pointer, &constant, MOST_DEPTH);
    number = moved(s, number, constant);
    LLVMSetOperand(access, place, LLVMBuildIntToPtr(unit->builder, number, LLVMTypeOf(pointer), ""));
}

/* The instruction's text adds a constant, which may stay there if it moves nothing else. */
static void move_matrices(struct swizzle *s, LLVMValueRef call) {
    struct unit *unit = s->unit;
    const char *text = ptx_assembly_text(call), *bracket = strchr(text, '['),
               *plus = bracket ? strchr(bracket, '+') : NULL;
    int64_t constant = plus ? strtoll(plus + 1, NULL, 10) : 0, low = (constant % PERIOD + PERIOD) % PERIOD;
    size_t length = 0;
    char changed[192];
    if (!plus) return;
    LLVMPositionBuilderBefore(unit->builder, call);
    LLVMValueRef address = moved(s, LLVMGetOperand(call, 0), low);
    snprintf(changed, sizeof changed, "%.*s+%lld];", (int)(plus - text), text, (long long)(constant - low));
    const char *constraints = LLVMGetInlineAsmConstraintString(LLVMGetCalledValue(call), &length);
    LLVMTypeRef type = LLVMTypeOf(call);
    LLVMValueRef code = ptx_assembly(unit, changed, constraints, type, &address, 1, false);
    matrix_set_together(unit, code, MEMORY_READ);
    LLVMReplaceAllUsesWith(call, code);
    LLVMInstructionEraseFromParent(call);
}

smelt_status pass_ptx_swizzle(struct unit *unit) {
    struct swizzle s = {.unit = unit};
    if (!unit->rows_share_banks || unit->rows_are_apart || !all_may_follow(unit)) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i))
            move_access(&s, i);
        else if (loads_matrices(i))
            move_matrices(&s, i);
    }
    uint64_t *bytes = &unit->result->image.threadgroup_bytes;
    *bytes = (*bytes + LINE - 1) / LINE * LINE;
    TRY(ptx_note(unit,
                 "parts of threadgroup memory change places, so that rows of tiles do not share banks"));
    return ptx_run_passes(unit, "function(early-cse,instsimplify,adce)");
}
