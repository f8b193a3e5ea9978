/* Vectors may be less aligned than their types claim (compiler/passes/alignment.c). On a GPU, an access of
 * more than one element must be aligned to its size, or the device is lost.
 *
 * A claim beyond the element's size is proved (zeros.c). If it cannot be, LLVM's joining of neighbours is
 * done here, and the joined access is checked at run time: one wide access if the address allows it,
 * otherwise one per element, by predicates. The check depends only on the part of the address that is not
 * known to be a multiple, which loops often do not change.
 *
 * Requires: the module lowered and cleaned. Establishes: no access claims an alignment that it may lack. */
#include "compiler/ptx/memory/align.h"

#include <string.h>

#define MOST_TERMS 6 /* sums within sums of an address that are examined */

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

static LLVMTypeRef accessed_type(LLVMValueRef access) {
    return LLVMTypeOf(LLVMIsALoadInst(access) ? access : LLVMGetOperand(access, 0));
}

static bool is_access(LLVMValueRef instruction) {
    return (LLVMIsALoadInst(instruction) || LLVMIsAStoreInst(instruction)) &&
           LLVMGetOrdering(instruction) == LLVMAtomicOrderingNotAtomic;
}

static bool is_open(struct unit *unit, LLVMValueRef access) {
    unsigned claimed = LLVMGetAlignment(access);
    unsigned asked = LLVMGetMDKindIDInContext(unit->context, PTX_ALIGNED, sizeof PTX_ALIGNED - 1);
    if (LLVMGetMetadata(access, asked)) return false;
    if (claimed <= alignment_of_element(unit, accessed_type(access))) return false;
    return claimed >> 1 >> ptx_known_zeros(unit, address_of(access)) != 0;
}

/* ---- The check. */

struct question {
    struct unit *unit;
    unsigned zeros;     /* required of the address */
    LLVMValueRef terms; /* i32: the sum of the terms that may have fewer; NULL: there are none */
};

static void add_term(struct question *q, LLVMValueRef value, uint64_t step, int depth) {
    LLVMBuilderRef b = q->unit->builder;
    LLVMTypeRef i32 = type_i32(q->unit);
    unsigned of_step = step ? (unsigned)__builtin_ctzll(step) : 63;
    if (of_step + ptx_known_zeros(q->unit, value) >= q->zeros) return;
    LLVMOpcode opcode = LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : LLVMCall;
    bool sum = opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(value));
    bool cast = opcode == LLVMZExt || opcode == LLVMSExt || opcode == LLVMTrunc;
    if (depth && (sum || (cast && LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(value, 0))) >= q->zeros))) {
        for (unsigned i = 0; i <= sum; i++) add_term(q, LLVMGetOperand(value, i), step, depth - 1);
        return;
    }
    LLVMValueRef term = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind
                            ? LLVMBuildPtrToInt(b, value, i32, "")
                            : LLVMBuildIntCast2(b, value, i32, true, "");
    term = LLVMBuildMul(b, term, LLVMConstInt(i32, step, false), "");
    q->terms = q->terms ? LLVMBuildAdd(b, q->terms, term, "") : term;
}

static void add_element(struct question *q, LLVMValueRef gep) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
            uint64_t offset = LLVMOffsetOfElement(q->unit->layout, type, member);
            add_term(q, constant_i32(q->unit, (uint32_t)offset), 1, 0);
            type = LLVMStructGetTypeAtIndex(type, member);
            continue;
        }
        if (i > 1) type = LLVMGetElementType(type);
        add_term(q, index, LLVMABISizeOfType(q->unit->layout, type), MOST_TERMS);
    }
}

/* i1: whether the address is a multiple of this many bytes. Built at the builder's place. */
static LLVMValueRef ask(struct unit *unit, LLVMValueRef address, unsigned bytes) {
    struct question q = {.unit = unit, .zeros = (unsigned)__builtin_ctz(bytes)};
    for (; LLVMIsAGetElementPtrInst(address) && ptx_known_zeros(unit, address) < q.zeros;
         address = LLVMGetOperand(address, 0))
        add_element(&q, address);
    add_term(&q, address, 1, 0);
    LLVMValueRef zero = constant_i32(unit, 0), mask = constant_i32(unit, bytes - 1);
    LLVMValueRef rest = q.terms ? LLVMBuildAnd(unit->builder, q.terms, mask, "") : zero;
    return LLVMBuildICmp(unit->builder, LLVMIntEQ, rest, zero, "aligned");
}

/* ---- Wide accesses. */

/* The kernel's parameter is accessed by its own instruction, which LLVM emits. */
static bool can_ask(struct unit *unit, LLVMValueRef access) {
    LLVMValueRef address = address_of(access);
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(address));
    return LLVMGetTypeKind(accessed_type(access)) == LLVMVectorTypeKind && !LLVMGetVolatile(access) &&
           (space == 0 || space == PTX_GLOBAL || space == PTX_SHARED) &&
           !ptx_is_in_parameter(unit, address, false) && wide_access_exists(unit, accessed_type(access));
}

static void widen(struct unit *unit, LLVMValueRef access) {
    LLVMPositionBuilderBefore(unit->builder, access);
    unsigned bytes = (unsigned)LLVMABISizeOfType(unit->layout, accessed_type(access));
    LLVMValueRef aligned = ask(unit, address_of(access), bytes);
    if (LLVMIsALoadInst(access))
        LLVMReplaceAllUsesWith(access, wide_load(unit, accessed_type(access), address_of(access), aligned));
    else
        wide_store(unit, LLVMGetOperand(access, 0), address_of(access), aligned);
    LLVMInstructionEraseFromParent(access);
}

/* ---- The pass. */

static bool has_open(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (is_access(instruction) && is_open(unit, instruction)) return true;
    }
    return false;
}

/* Returns whether any access is now checked. */
static bool settle(struct unit *unit) {
    bool asks = false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!is_access(instruction) || !is_open(unit, instruction)) continue;
        if (can_ask(unit, instruction)) {
            widen(unit, instruction);
            asks = true;
        } else {
            LLVMSetAlignment(instruction, alignment_of_element(unit, accessed_type(instruction)));
        }
    }
    return asks;
}

smelt_status pass_ptx_align(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) alignment_settle_copy(unit, instruction);
    if (!has_open(unit)) return SMELT_OK;
    TRY(ptx_join_accesses(unit));
    if (!settle(unit)) return SMELT_OK;
    return ptx_run_passes(unit, "function(early-cse,instsimplify,loop-mssa(licm),early-cse,adce)");
}
