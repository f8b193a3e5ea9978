#include "compiler/analysis/zeros.h"

#include <string.h>

enum { DEPTH = 20, MOST_STEPS = 1200, PHI_ROUNDS = 64 };

/* Phis whose zeros are assumed while their incoming values are examined. */
struct assumed {
    const struct assumed *outer;
    LLVMValueRef phi;
    unsigned zeros;
};

struct search {
    const struct zeros_rules *rules;
    int steps; /* bounds the time for sums of sums */
};

static unsigned zeros_of(struct search *s, LLVMValueRef value, int depth, const struct assumed *assumed);

unsigned zeros_of_number(uint64_t number) {
    return number ? (unsigned)__builtin_ctzll(number) : 63;
}

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Of integers and addresses, at most 63; 0 of anything else. */
static unsigned width_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) return 63;
    unsigned width = LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
    return width > 64 ? 0 : least(width, 63);
}

/* The most zeros for which "the phi has them" follows from itself: start with all, and go down until the
 * incoming values have as many as were assumed. */
static unsigned zeros_of_phi(struct search *s, LLVMValueRef phi, int depth, const struct assumed *assumed) {
    for (const struct assumed *a = assumed; a; a = a->outer)
        if (a->phi == phi) return a->zeros;
    struct assumed own = {.outer = assumed, .phi = phi, .zeros = width_of(phi)};
    for (int round = 0; round < PHI_ROUNDS && own.zeros; round++) {
        unsigned found = own.zeros;
        for (unsigned i = 0; found && i < LLVMCountIncoming(phi); i++)
            found = least(found, zeros_of(s, LLVMGetIncomingValue(phi, i), depth, &own));
        if (found == own.zeros) return found;
        own.zeros = found;
    }
    return 0;
}

static unsigned zeros_of_element(struct search *s, LLVMValueRef gep, int depth,
                                 const struct assumed *assumed) {
    LLVMTargetDataRef layout = s->rules->addresses;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    unsigned zeros = zeros_of(s, LLVMGetOperand(gep, 0), depth, assumed);
    for (unsigned i = 1; zeros && i < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
            zeros = least(zeros, zeros_of_number(LLVMOffsetOfElement(layout, type, member)));
            type = LLVMStructGetTypeAtIndex(type, member);
            continue;
        }
        if (i > 1) type = LLVMGetElementType(type);
        unsigned step = zeros_of_number(LLVMABISizeOfType(layout, type));
        zeros = least(zeros, step + zeros_of(s, index, depth, assumed));
    }
    return zeros;
}

static unsigned zeros_of_cast(struct search *s, LLVMValueRef cast, int depth, const struct assumed *assumed) {
    LLVMValueRef operand = LLVMGetOperand(cast, 0);
    unsigned zeros = zeros_of(s, operand, depth, assumed);
    return zeros && zeros == width_of(operand) ? 63 : zeros;
}

/* A shift to the right, or a division by a power of two. */
static unsigned zeros_of_shifted(struct search *s, LLVMValueRef value, uint64_t count, int depth,
                                 const struct assumed *assumed) {
    unsigned zeros = zeros_of(s, LLVMGetOperand(value, 0), depth, assumed);
    if (zeros == width_of(value)) return zeros;
    return zeros > count ? zeros - (unsigned)count : 0;
}

static unsigned zeros_of_operation(struct search *s, LLVMValueRef value, LLVMOpcode opcode, int depth,
                                   const struct assumed *assumed) {
    uint64_t number;
    bool constant = is_constant_integer(LLVMGetOperand(value, 1), &number);
    if (opcode == LLVMLShr || opcode == LLVMAShr)
        return constant && number < width_of(value) ? zeros_of_shifted(s, value, number, depth, assumed) : 0;
    if (opcode == LLVMUDiv)
        return constant && number && (number & (number - 1)) == 0
                   ? zeros_of_shifted(s, value, zeros_of_number(number), depth, assumed)
                   : 0;
    unsigned first = zeros_of(s, LLVMGetOperand(value, 0), depth, assumed);
    if (opcode == LLVMShl) return constant && number < 64 ? first + (unsigned)number : first;
    unsigned second = zeros_of(s, LLVMGetOperand(value, 1), depth, assumed);
    if (opcode == LLVMMul) return first + second;
    if (opcode == LLVMAnd) return first > second ? first : second;
    return least(first, second); /* add, sub, or, xor; a remainder, of what both are multiples of */
}

static bool is_choice(LLVMValueRef call) {
    static const char *const names[] = {"llvm.umin.", "llvm.umax.", "llvm.smin.", "llvm.smax."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(called_name(call), names[i], strlen(names[i])) == 0) return true;
    return false;
}

static unsigned zeros_of_either(struct search *s, LLVMValueRef value, unsigned first, int depth,
                                const struct assumed *assumed) {
    unsigned zeros = zeros_of(s, LLVMGetOperand(value, first), depth, assumed);
    return zeros ? least(zeros, zeros_of(s, LLVMGetOperand(value, first + 1), depth, assumed)) : 0;
}

static unsigned zeros_of_instruction(struct search *s, LLVMValueRef value, LLVMOpcode opcode, int depth,
                                     const struct assumed *assumed) {
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
    case LLVMXor:
    case LLVMAnd:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMUDiv:
    case LLVMURem:
        return zeros_of_operation(s, value, opcode, depth, assumed);
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMFreeze:
    case LLVMIntToPtr:
    case LLVMPtrToInt:
    case LLVMAddrSpaceCast:
        return zeros_of_cast(s, value, depth, assumed);
    case LLVMGetElementPtr:
        return zeros_of_element(s, value, depth, assumed);
    case LLVMSelect:
        return zeros_of_either(s, value, 1, depth, assumed);
    case LLVMCall:
        return is_choice(value) ? zeros_of_either(s, value, 0, depth, assumed) : 0;
    case LLVMPHI:
        return zeros_of_phi(s, value, depth, assumed);
    default:
        return 0;
    }
}

static unsigned zeros_of(struct search *s, LLVMValueRef value, int depth, const struct assumed *assumed) {
    const struct zeros_rules *rules = s->rules;
    unsigned width = width_of(value);
    uint64_t number;
    if (!width || (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind && !rules->addresses)) return 0;
    if (is_constant_integer(value, &number)) return least(zeros_of_number(number), width);
    unsigned source = rules->of_source(rules->context, value);
    if (source) return least(source, width);
    bool constant = LLVMIsAConstantExpr(value);
    if ((!constant && !LLVMIsAInstruction(value)) || depth == 0 || ++s->steps > MOST_STEPS) return 0;
    LLVMOpcode opcode = constant ? LLVMGetConstOpcode(value) : LLVMGetInstructionOpcode(value);
    return least(zeros_of_instruction(s, value, opcode, depth - 1, assumed), width);
}

unsigned zeros_of_value(const struct zeros_rules *rules, LLVMValueRef value) {
    struct search search = {.rules = rules};
    return zeros_of(&search, value, DEPTH, NULL);
}
