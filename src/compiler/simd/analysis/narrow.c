/* How many lanes a chunk has in code that computes only with bytes, or only with bytes and 16-bit numbers: as
 * many as fill a register. Otherwise a chunk has as many lanes as a register has 32-bit elements, and bytes
 * would leave three quarters of each register empty.
 *
 * The lanes' elements must be neighbours in memory. A chunk has at most the lanes of one simdgroup. */
#include "compiler/fold.h"
#include "compiler/simd/simd.h"

#include <string.h>

#define MOST_BITS 16

static bool is_number_or_half(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind;
}

/* Bits of an element in a register; more than MOST_BITS for other types. */
static unsigned bits_of(struct simd *s, LLVMTypeRef type) {
    return is_number_or_half(type) ? (unsigned)LLVMSizeOfTypeInBits(s->unit->layout, type) : MOST_BITS + 1;
}

/* Before the analysis, as most kernels store wider elements. */
static bool stores_narrow(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsAStoreInst(i) && bits_of(s, LLVMTypeOf(LLVMGetOperand(i, 0))) > MOST_BITS) return false;
    }
    return true;
}

/* Whether lanes access elements that follow one another, all load the same one, or store bytes two apart,
 * which dense.c combines. */
static bool is_simple_access(struct simd *s, LLVMValueRef access) {
    bool load = LLVMIsALoadInst(access) != NULL;
    LLVMValueRef address = LLVMGetOperand(access, load ? 0 : 1);
    LLVMTypeRef type = load ? LLVMTypeOf(access) : LLVMTypeOf(LLVMGetOperand(access, 0));
    int shape = shape_of(s, address);
    int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, type);
    if (shape < 0 || LLVMGetVolatile(access) || LLVMGetOrdering(access) != LLVMAtomicOrderingNotAtomic)
        return false;
    return (load && shape == SHAPE_UNIFORM) || shape == shape_stride(s, size) ||
           (!load && size == 1 && shape == shape_stride(s, 2));
}

static bool is_simple_call(LLVMValueRef call) {
    static const char *const names[] = {"llvm.umin.",     "llvm.umax.",     "llvm.smin.",
                                        "llvm.smax.",     "llvm.uadd.sat.", "llvm.usub.sat.",
                                        "llvm.sadd.sat.", "llvm.ssub.sat.", "llvm.abs."};
    const char *name = called_name(call);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (strncmp(name, names[n], strlen(names[n])) == 0) return true;
    return false;
}

/* Operations on integers that take as many instructions for a full register as for a part of one. */
static bool is_simple(LLVMValueRef i) {
    if (fold_is_arithmetic(i)) return true;
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMLoad:
    case LLVMBitCast:
    case LLVMICmp:
    case LLVMSelect:
    case LLVMFreeze:
    case LLVMPHI:
        return true;
    case LLVMCall:
        return is_simple_call(i);
    default:
        return false;
    }
}

/* *most: the widest element of a varying value so far. */
static bool suits(struct simd *s, LLVMValueRef i, unsigned *most) {
    bool access = LLVMIsALoadInst(i) || LLVMIsAStoreInst(i);
    if (access && !is_simple_access(s, i)) return false;
    bool store = LLVMIsAStoreInst(i) != NULL;
    if (!store && shape_of(s, i) != SHAPE_VARYING) return true;
    if (!store && !is_simple(i)) return false;
    unsigned bits = bits_of(s, store ? LLVMTypeOf(LLVMGetOperand(i, 0)) : LLVMTypeOf(i));
    if (bits > *most) *most = bits;
    for (int o = 0; !access && o < LLVMGetNumOperands(i) - (LLVMIsACallInst(i) != NULL); o++) {
        bits = bits_of(s, LLVMTypeOf(LLVMGetOperand(i, (unsigned)o)));
        if (bits > *most) *most = bits;
    }
    return *most <= MOST_BITS;
}

bool simd_may_be_narrow(struct simd *s) {
    return s->chunk_lanes == s->vector_bits / 32 && stores_narrow(s);
}

int simd_narrow_lanes(struct simd *s) {
    unsigned most = 8;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (!suits(s, i, &most)) return s->chunk_lanes;
    }
    int lanes = s->vector_bits / (most > 8 ? 16 : 8);
    return lanes > SIMDGROUP_LANES ? SIMDGROUP_LANES : lanes;
}
