/* How many bits at the end of a number or an address are known to be 0: what it is a multiple of.
 *
 * What kernels get from outside is aligned as far as the launch says: buffers begin at multiples of 16 where
 * the shape is `aligned` (lower.c marks the loads of their addresses), threadgroup memory does always. */
#include "compiler/ptx/ptx.h"

#include <string.h>

#define DEEPEST 20
#define MOST_STEPS 600 /* long sums of sums would be looked at again and again */

struct search {
    struct unit *unit;
    int steps;
};

unsigned ptx_zeros_of(uint64_t number) {
    return number ? (unsigned)__builtin_ctzll(number) : 63;
}

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

uint64_t ptx_bytes_of_index(struct unit *unit, unsigned index, LLVMTypeRef *type) {
    if (index > 1) *type = LLVMGetElementType(*type);
    return LLVMABISizeOfType(unit->layout, *type);
}

/* A phi that is met again says nothing. */
struct phis {
    LLVMValueRef phi;
    const struct phis *outer;
};

static unsigned zeros_of(struct search *s, LLVMValueRef value, int depth, const struct phis *outer);

static unsigned zeros_of_phi(struct search *s, LLVMValueRef phi, int depth, const struct phis *outer) {
    struct phis here = {phi, outer};
    unsigned all = 63;
    for (const struct phis *p = outer; p; p = p->outer)
        if (p->phi == phi) return 63;
    for (unsigned i = 0; all && i < LLVMCountIncoming(phi); i++)
        all = least(all, zeros_of(s, LLVMGetIncomingValue(phi, i), depth - 1, &here));
    return all;
}

static unsigned zeros_of_element(struct search *s, LLVMValueRef gep, int depth, const struct phis *outer) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    unsigned zeros = zeros_of(s, LLVMGetOperand(gep, 0), depth - 1, outer);
    for (unsigned i = 1; zeros && i < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
            zeros = least(zeros, ptx_zeros_of(LLVMOffsetOfElement(s->unit->layout, type, member)));
            type = LLVMStructGetTypeAtIndex(type, member);
            continue;
        }
        unsigned step = ptx_zeros_of(ptx_bytes_of_index(s->unit, i, &type));
        zeros = least(zeros, step + zeros_of(s, index, depth - 1, outer));
    }
    return zeros;
}

/* What a load of a pointer promises (!align). */
static unsigned zeros_of_loaded(struct search *s, LLVMValueRef load) {
    LLVMValueRef node = LLVMGetMetadata(load, LLVMGetMDKindIDInContext(s->unit->context, "align", 5)), number;
    uint64_t align;
    if (!node || LLVMGetMDNodeNumOperands(node) != 1) return 0;
    LLVMGetMDNodeOperands(node, &number);
    return is_constant_integer(number, &align) ? ptx_zeros_of(align) : 0;
}

/* Objects, and what has no operands that would tell. */
static unsigned zeros_of_object(struct search *s, LLVMValueRef value) {
    if (value == LLVMGetParam(s->unit->entry, 0)) return 4; /* code.c */
    if (LLVMIsAAllocaInst(value)) return ptx_zeros_of(LLVMGetAlignment(value));
    if (LLVMIsALoadInst(value)) return zeros_of_loaded(s, value);
    if (!LLVMIsAGlobalVariable(value)) return 0;
    unsigned own = LLVMGetAlignment(value) ? ptx_zeros_of(LLVMGetAlignment(value)) : 0;
    bool shared = LLVMGetPointerAddressSpace(LLVMTypeOf(value)) == PTX_SHARED; /* lower.c */
    return shared && own < 4 ? 4 : own;
}

static unsigned zeros_of(struct search *s, LLVMValueRef value, int depth, const struct phis *outer) {
    uint64_t number;
    if (is_constant_integer(value, &number)) return ptx_zeros_of(number);
    unsigned object = zeros_of_object(s, value);
    if (object || depth == 0 || ++s->steps > MOST_STEPS) return object;
    if (!LLVMIsAInstruction(value) && !LLVMIsAConstantExpr(value)) return 0;
    if (LLVMIsAPHINode(value)) return zeros_of_phi(s, value, depth, outer);
    LLVMOpcode opcode =
        LLVMIsAConstantExpr(value) ? LLVMGetConstOpcode(value) : LLVMGetInstructionOpcode(value);
    if (opcode == LLVMGetElementPtr) return zeros_of_element(s, value, depth, outer);
    unsigned operands = (unsigned)LLVMGetNumOperands(value);
    unsigned first = operands ? zeros_of(s, LLVMGetOperand(value, 0), depth - 1, outer) : 0;
    unsigned second = operands > 1 ? zeros_of(s, LLVMGetOperand(value, 1), depth - 1, outer) : 0;
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
    case LLVMXor:
        return least(first, second);
    case LLVMAnd:
        return first > second ? first : second;
    case LLVMMul:
        return least(first + second, 63);
    case LLVMShl:
        return is_constant_integer(LLVMGetOperand(value, 1), &number) ? least(first + (unsigned)number, 63)
                                                                      : first;
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMFreeze:
    case LLVMBitCast:
    case LLVMIntToPtr:
    case LLVMPtrToInt:
    case LLVMAddrSpaceCast:
        return first;
    case LLVMSelect:
        return least(second, zeros_of(s, LLVMGetOperand(value, 2), depth - 1, outer));
    default:
        return 0;
    }
}

unsigned ptx_known_zeros(struct unit *unit, LLVMValueRef value) {
    struct search search = {.unit = unit};
    return zeros_of(&search, value, DEEPEST, NULL);
}
