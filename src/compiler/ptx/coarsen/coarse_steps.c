/* By how much values differ between threads that are neighbours in a dimension.
 *
 * Sums of 32 bits may wrap between two neighbours. Where a wrapped sum reaches an address, one of the two
 * would access memory outside any buffer, as all have fewer than 2^31 bytes (the shape is `small`). */
#include "compiler/ptx/coarsen/coarse.h"

static struct step known(int64_t amount) {
    return (struct step){STEP_KNOWN, amount};
}

static const struct step unknown = {STEP_UNKNOWN, 0};

static bool is_zero(struct step s) {
    return s.kind == STEP_KNOWN && s.amount == 0;
}

static struct step sum(struct step a, struct step b, int sign) {
    if (a.kind == STEP_UNKNOWN || b.kind == STEP_UNKNOWN) return unknown;
    if (a.kind == STEP_ALIKE || b.kind == STEP_ALIKE) return (struct step){STEP_ALIKE, 0};
    bool near = a.kind == STEP_NEAR || b.kind == STEP_NEAR;
    return (struct step){near ? STEP_NEAR : STEP_KNOWN, a.amount + sign * b.amount};
}

/* `factor`: what the step is multiplied by, alike for all threads. */
static struct step times(struct step s, LLVMValueRef factor, struct step of_factor) {
    if (is_zero(s) && is_zero(of_factor)) return s;
    if (!is_zero(of_factor) || s.kind == STEP_UNKNOWN) return unknown;
    if (!LLVMIsAConstantInt(factor) || s.kind == STEP_ALIKE) return (struct step){STEP_ALIKE, 0};
    return (struct step){s.kind, s.amount * LLVMConstIntGetSExtValue(factor)};
}

static bool is_near(struct step s) {
    return s.kind == STEP_KNOWN || s.kind == STEP_NEAR;
}

static struct step near(struct step s, int64_t amount) {
    return is_near(s) ? (struct step){STEP_NEAR, amount} : unknown;
}

/* Chunks of neighbours lie in one group. */
static bool chunks_in_groups(const struct coarsening *c, int dimension) {
    uint32_t size = c->unit->request->shape.size[dimension];
    return size && size % c->form.threads == 0;
}

static struct step step_of_intrinsic(struct coarsening *c, LLVMValueRef call, int dimension) {
    const struct code_shape *shape = &c->unit->request->shape;
    enum intrinsic intrinsic = intrinsic_of(call);
    uint64_t d = 0;
    if (LLVMGetNumArgOperands(call) == 1 && !is_constant_integer(LLVMGetOperand(call, 0), &d)) return unknown;
    bool same = (int)d == dimension, near = c->form.neighbours;
    switch (intrinsic) {
    case INTRINSIC_THREAD_POSITION:
        return known(same);
    case INTRINSIC_POSITION_IN_THREADGROUP:
        return !same ? known(0) : near && chunks_in_groups(c, dimension) ? known(1) : unknown;
    case INTRINSIC_THREADGROUP_POSITION:
    case INTRINSIC_THREADGROUP_SIZE:
        return !same || (near && chunks_in_groups(c, dimension)) ? known(0) : unknown;
    case INTRINSIC_THREAD_INDEX: {
        bool line = shape->size[1] == 1 && shape->size[2] == 1;
        return line && dimension == 0 && near && chunks_in_groups(c, 0) ? known(1) : unknown;
    }
    case INTRINSIC_DISPATCH_THREADGROUP_SIZE:
    case INTRINSIC_GRID_THREADS:
    case INTRINSIC_GRID_GROUPS:
        return known(0);
    default:
        return unknown;
    }
}

static struct step step_of_address(struct coarsening *c, LLVMValueRef gep, int dimension) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    struct step total = coarse_step(c, LLVMGetOperand(gep, 0), dimension);
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            type = LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(index));
            continue;
        }
        if (i > 1) type = LLVMGetElementType(type);
        struct step step = coarse_step(c, index, dimension);
        if (step.kind == STEP_KNOWN || step.kind == STEP_NEAR)
            step.amount *= (int64_t)LLVMABISizeOfType(c->unit->layout, type);
        total = sum(total, step, 1);
    }
    return total;
}

static bool operands_alike(struct coarsening *c, LLVMValueRef value, int dimension) {
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!is_zero(coarse_step(c, LLVMGetOperand(value, (unsigned)i), dimension))) return false;
    return true;
}

static bool is_word(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) >= 32;
}

/* A remainder is chosen by whether its divisor is 0. */
static struct step step_of_choice(struct coarsening *c, LLVMValueRef choice, int dimension) {
    struct step a = coarse_step(c, LLVMGetOperand(choice, 1), dimension),
                b = coarse_step(c, LLVMGetOperand(choice, 2), dimension);
    if (!is_near(a) || !is_near(b) || a.amount != b.amount) return unknown;
    bool exact = a.kind == STEP_KNOWN && b.kind == STEP_KNOWN &&
                 is_zero(coarse_step(c, LLVMGetOperand(choice, 0), dimension));
    return (struct step){exact ? STEP_KNOWN : STEP_NEAR, a.amount};
}

/* Steps that cancel in more than 32 bits: a sum of 32 bits that wraps between two neighbours, and is then
 * extended, has another one there. Such a number need not reach an address. */
static struct step step_of_sum(struct coarsening *c, LLVMValueRef value, int sign, int dimension) {
    struct step a = coarse_step(c, LLVMGetOperand(value, 0), dimension),
                b = coarse_step(c, LLVMGetOperand(value, 1), dimension), s = sum(a, b, sign);
    LLVMTypeRef type = LLVMTypeOf(value);
    bool wide = LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) > 32;
    return wide && is_zero(s) && !is_zero(a) ? near(s, 0) : s;
}

static struct step step_of_operation(struct coarsening *c, LLVMValueRef value, int dimension) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    LLVMValueRef a = LLVMGetOperand(value, 0),
                 b = LLVMGetNumOperands(value) > 1 ? LLVMGetOperand(value, 1) : a;
    struct step first = coarse_step(c, a, dimension);
    switch (opcode) {
    case LLVMAdd:
        return step_of_sum(c, value, 1, dimension);
    case LLVMSub:
        return step_of_sum(c, value, -1, dimension);
    case LLVMOr:
        return LLVMGetIsDisjoint(value) ? step_of_sum(c, value, 1, dimension) : unknown;
    case LLVMMul: {
        struct step second = coarse_step(c, b, dimension);
        return is_zero(first) ? times(second, a, first) : times(first, b, second);
    }
    case LLVMShl: {
        uint64_t count;
        bool constant = is_constant_integer(b, &count) && count < 32;
        if (first.kind == STEP_UNKNOWN || !constant) return unknown;
        return (struct step){first.kind, first.amount * (INT64_C(1) << count)};
    }
    case LLVMURem:
    case LLVMSRem:
    case LLVMAnd:
        return is_zero(coarse_step(c, b, dimension)) ? near(first, first.amount) : unknown;
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
        return is_zero(coarse_step(c, b, dimension)) ? near(first, 0) : unknown;
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
        return is_word(a) && is_word(value) && c->unit->request->shape.small ? first : unknown;
    case LLVMSelect:
        return step_of_choice(c, value, dimension);
    case LLVMFreeze:
    case LLVMAddrSpaceCast:
        return first;
    case LLVMGetElementPtr:
        return step_of_address(c, value, dimension);
    default:
        return unknown;
    }
}

/* A counter that grows by the same number in all threads. */
static struct step step_of_phi(struct coarsening *c, LLVMValueRef phi, int dimension) {
    LLVMValueRef next = phi_incoming(phi, coarse_loop_block(c)), start = NULL;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingBlock(phi, i) != coarse_loop_block(c)) start = LLVMGetIncomingValue(phi, i);
    if (!start || !LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd) return unknown;
    LLVMValueRef a = LLVMGetOperand(next, 0), b = LLVMGetOperand(next, 1), by = a == phi ? b : a;
    if (a != phi && b != phi) return unknown;
    struct step growth = coarse_step(c, by, dimension);
    return growth.kind == STEP_KNOWN && growth.amount == 0 ? coarse_step(c, start, dimension) : unknown;
}

struct step coarse_step(struct coarsening *c, LLVMValueRef value, int dimension) {
    struct coarse_item *item = coarse_item_of(c, value);
    if (!item) return known(0);
    struct step *step = &item->steps[dimension];
    if (step->kind != STEP_NONE) return *step;
    *step = unknown; /* a phi's, should it lead back here */
    enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(value))->kind;
    if (kind == OF_THREAD)
        *step = step_of_intrinsic(c, value, dimension);
    else if (item->block == c->loop && LLVMIsAPHINode(value))
        *step = step_of_phi(c, value, dimension);
    else if (!item->first)
        *step = unknown;
    else if (operands_alike(c, value, dimension))
        *step = known(0);
    else
        *step = step_of_operation(c, value, dimension);
    return *step;
}

uint64_t coarse_access_bytes(struct coarsening *c, LLVMValueRef access) {
    LLVMTypeRef type = LLVMTypeOf(LLVMIsALoadInst(access) ? access : LLVMGetOperand(access, 0));
    return LLVMStoreSizeOfType(c->unit->layout, type);
}

static bool is_joinable_type(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMVectorTypeKind) kind = LLVMGetTypeKind(LLVMGetElementType(type));
    return kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMFloatTypeKind ||
           kind == LLVMDoubleTypeKind;
}

bool coarse_joins(struct coarsening *c, LLVMValueRef access, int dimension) {
    bool load = LLVMIsALoadInst(access) != NULL;
    LLVMValueRef address = LLVMGetOperand(access, load ? 0 : 1);
    LLVMTypeRef type = LLVMTypeOf(load ? access : LLVMGetOperand(access, 0));
    uint64_t bytes = coarse_access_bytes(c, access);
    if (!c->form.neighbours || LLVMGetPointerAddressSpace(LLVMTypeOf(address)) != PTX_GLOBAL) return false;
    if (!is_joinable_type(type) || bytes != LLVMABISizeOfType(c->unit->layout, type)) return false;
    if (bytes > 8 || (bytes & (bytes - 1)) || bytes * 8 != LLVMSizeOfTypeInBits(c->unit->layout, type))
        return false;
    struct step step = coarse_step(c, address, dimension);
    return step.kind == STEP_KNOWN && step.amount == (int64_t)bytes;
}
