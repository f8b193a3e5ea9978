/* Loads that are a constant number of bytes apart share one address where LLVM cannot see it: behind
 * different guards, and where the constants are added to an index of 32 bits that may wrap before it is
 * extended.
 *
 *     if (x > 0) sum += in[y * w + x - 1];
 *     if (x + 1 < w) sum += in[y * w + x + 1];
 *
 * Behind each guard, LLVM knows other facts of the index, so its forms differ, and each load computes an
 * address of its own, of four or five instructions. Here the address of in[y * w + x] is computed once, in
 * the block that dominates them, and the accesses add constants, which cost nothing.
 *
 * A sum of 32 bits may wrap before it is extended. That of an access that is executed has not: the access
 * would be outside its buffer, which has fewer than 2^31 - SMALL_REACH bytes (the shape is `small`). The
 * shared sum has not wrapped either, since its address is less than SMALL_REACH bytes from that access.
 *
 * Stores keep their own addresses: the few at the end of a kernel would cost registers and save little. In a
 * quantised matrix-vector product, whose speed depends on how many warps fit, they took 8 of 56 registers.
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#define MOST_ACCESSES 256
#define MOST_TERMS 6
#define MOST_SHARED 16 /* addresses: two registers each, for as long as they are used */
#define DEEPEST 8

struct term {
    LLVMValueRef value;
    uint32_t factor;
};

/* The address base + bytes + element × (the sum of the terms, in 32 bits, extended). */
struct access {
    LLVMValueRef instruction, base;
    int block; /* index */
    uint64_t element;
    int64_t bytes;
    uint32_t constant; /* of `bytes`, in elements: what is added in 32 bits */
    bool hidden;       /* from LLVM */
    struct term terms[MOST_TERMS];
    int count;
    bool done;
};

struct nearby {
    struct unit *unit;
    struct flow flow;
    struct access accesses[MOST_ACCESSES];
    int count;
    unsigned invariant; /* metadata */
};

/* ---- Values that are the same, or can be computed again elsewhere. */

static bool is_parameter_load(const struct nearby *n, LLVMValueRef value) {
    return LLVMIsALoadInst(value) && LLVMGetMetadata(value, n->invariant) &&
           ptx_is_in_parameter(n->unit, LLVMGetOperand(value, 0), true);
}

static bool is_arithmetic(LLVMValueRef value) {
    switch (LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : LLVMUnreachable) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
        return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind;
    default:
        return false;
    }
}

static bool is_constant_address(LLVMValueRef value) {
    return LLVMIsAGetElementPtrInst(value) && LLVMGetNumOperands(value) == 2 &&
           LLVMIsAConstantInt(LLVMGetOperand(value, 1));
}

/* Whether two values are computed in the same way, whatever is promised of them. */
static bool are_same(const struct nearby *n, LLVMValueRef a, LLVMValueRef b, int depth) {
    if (a == b) return true;
    if (depth == 0 || LLVMTypeOf(a) != LLVMTypeOf(b) || !LLVMIsAInstruction(a) || !LLVMIsAInstruction(b) ||
        LLVMGetInstructionOpcode(a) != LLVMGetInstructionOpcode(b))
        return false;
    bool loads = is_parameter_load(n, a) && is_parameter_load(n, b);
    bool addresses = is_constant_address(a) && is_constant_address(b) &&
                     LLVMGetGEPSourceElementType(a) == LLVMGetGEPSourceElementType(b);
    if (!loads && !addresses && !(is_arithmetic(a) && is_arithmetic(b))) return false;
    int operands = LLVMGetNumOperands(a);
    if (operands != LLVMGetNumOperands(b)) return false;
    bool same = true;
    for (unsigned i = 0; same && i < (unsigned)operands; i++)
        same = are_same(n, LLVMGetOperand(a, i), LLVMGetOperand(b, i), depth - 1);
    if (same || operands != 2 || !is_arithmetic(a)) return same;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(a);
    return opcode != LLVMSub && opcode != LLVMShl &&
           are_same(n, LLVMGetOperand(a, 0), LLVMGetOperand(b, 1), depth - 1) &&
           are_same(n, LLVMGetOperand(a, 1), LLVMGetOperand(b, 0), depth - 1);
}

/* Whether a value is known at the end of a block, or before `before` in it, or can be computed there. */
static bool is_known(const struct nearby *n, LLVMValueRef value, int place, LLVMValueRef before, int depth) {
    if (!LLVMIsAInstruction(value)) return true;
    int block = flow_index(&n->flow, LLVMGetInstructionParent(value));
    if (block >= 0 && block != place && flow_dominates(&n->flow, block, place)) return true;
    if (block == place)
        for (LLVMValueRef i = LLVMGetFirstInstruction(n->flow.blocks[place].block); i && i != before;
             i = LLVMGetNextInstruction(i))
            if (i == value) return true;
    if (depth == 0 || (!is_arithmetic(value) && !is_parameter_load(n, value) && !is_constant_address(value)))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!is_known(n, LLVMGetOperand(value, (unsigned)i), place, before, depth - 1)) return false;
    return true;
}

/* The value at the builder's place: itself, or computed again without promises. */
static LLVMValueRef value_at(struct nearby *n, LLVMValueRef value, int place, LLVMValueRef before) {
    if (is_known(n, value, place, before, 0)) return value;
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        LLVMSetOperand(copy, (unsigned)i, value_at(n, LLVMGetOperand(value, (unsigned)i), place, before));
    if (is_arithmetic(copy) && LLVMGetInstructionOpcode(copy) == LLVMOr) {
        LLVMSetIsDisjoint(copy, false);
    } else if (is_arithmetic(copy) && LLVMGetInstructionOpcode(copy) != LLVMAnd &&
               LLVMGetInstructionOpcode(copy) != LLVMXor) {
        LLVMSetNSW(copy, false);
        LLVMSetNUW(copy, false);
    }
    LLVMInsertIntoBuilder(n->unit->builder, copy);
    return copy;
}

/* ---- Addresses. */

static bool add_term(const struct nearby *n, struct access *a, LLVMValueRef value, uint32_t factor) {
    for (int i = 0; i < a->count; i++) {
        if (!are_same(n, a->terms[i].value, value, DEEPEST)) continue;
        a->terms[i].factor += factor;
        return true;
    }
    if (a->count == MOST_TERMS) return false;
    a->terms[a->count++] = (struct term){value, factor};
    return true;
}

/* Adds factor × value, modulo 2^32: to *constant, and to the terms. */
static bool add_value(const struct nearby *n, struct access *a, LLVMValueRef value, uint32_t factor,
                      uint32_t *constant, int depth) {
    uint64_t number;
    if (is_constant_integer(value, &number)) {
        *constant += factor * (uint32_t)number;
        return true;
    }
    if (depth == 0 || !is_arithmetic(value)) return add_term(n, a, value, factor);
    LLVMValueRef first = LLVMGetOperand(value, 0), second = LLVMGetOperand(value, 1);
    bool by_number = is_constant_integer(second, &number);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMOr:
        if (!LLVMGetIsDisjoint(value)) return add_term(n, a, value, factor);
        return add_value(n, a, first, factor, constant, depth - 1) &&
               add_value(n, a, second, factor, constant, depth - 1);
    case LLVMAdd:
        return add_value(n, a, first, factor, constant, depth - 1) &&
               add_value(n, a, second, factor, constant, depth - 1);
    case LLVMSub:
        return add_value(n, a, first, factor, constant, depth - 1) &&
               add_value(n, a, second, 0 - factor, constant, depth - 1);
    case LLVMMul:
        if (!by_number) return add_term(n, a, value, factor);
        return add_value(n, a, first, factor * (uint32_t)number, constant, depth - 1);
    case LLVMShl:
        if (!by_number || number > 31) return add_term(n, a, value, factor);
        return add_value(n, a, first, factor << number, constant, depth - 1);
    default:
        return add_term(n, a, value, factor);
    }
}

static LLVMValueRef skip_constants(struct unit *unit, LLVMValueRef address, int64_t *bytes) {
    while (is_constant_address(address)) {
        uint64_t size = LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(address));
        *bytes += LLVMConstIntGetSExtValue(LLVMGetOperand(address, 1)) * (int64_t)size;
        address = LLVMGetOperand(address, 0);
    }
    return address;
}

/* The launch knows the sizes of the buffers it passes, but not of those that an argument buffer points to. */
static bool is_in_buffer(const struct nearby *n, LLVMValueRef base) {
    while (LLVMIsAGetElementPtrInst(base)) base = LLVMGetOperand(base, 0);
    return is_parameter_load(n, base);
}

/* Whether LLVM sees what is added to an extended index: sum + 1, if the sum does not wrap. */
static bool is_seen(LLVMValueRef extension, LLVMValueRef index) {
    LLVMOpcode opcode = LLVMIsABinaryOperator(index) ? LLVMGetInstructionOpcode(index) : LLVMUnreachable;
    if (opcode != LLVMAdd && opcode != LLVMOr) return false;
    if (!LLVMIsAConstantInt(LLVMGetOperand(index, 1))) return false;
    if (opcode == LLVMOr) return true;
    return LLVMIsAZExtInst(extension) ? LLVMGetNUW(index) : LLVMGetNSW(index);
}

static bool find_address(struct nearby *n, struct access *a) {
    LLVMValueRef address = LLVMGetOperand(a->instruction, 0);
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(address)) != PTX_GLOBAL) return false;
    address = skip_constants(n->unit, address, &a->bytes);
    if (!LLVMIsAGetElementPtrInst(address) || LLVMGetNumOperands(address) != 2) return false;
    LLVMValueRef index = LLVMGetOperand(address, 1);
    if (!LLVMIsAZExtInst(index) && !LLVMIsASExtInst(index)) return false;
    LLVMValueRef extension = index;
    index = LLVMGetOperand(index, 0);
    if (LLVMTypeOf(index) != type_i32(n->unit)) return false;
    a->element = LLVMABISizeOfType(n->unit->layout, LLVMGetGEPSourceElementType(address));
    a->base = skip_constants(n->unit, LLVMGetOperand(address, 0), &a->bytes);
    if (!is_in_buffer(n, a->base)) return false;
    if (!add_value(n, a, index, 1, &a->constant, DEEPEST) || a->count == 0) return false;
    a->hidden = a->constant != 0 && !is_seen(extension, index);
    a->bytes += (int64_t)(int32_t)a->constant * (int64_t)a->element;
    return a->bytes < SMALL_REACH && a->bytes > -SMALL_REACH;
}

static void find_accesses(struct nearby *n) {
    for (int i = 0; i < n->flow.block_count; i++) {
        FOR_EACH_INSTRUCTION(instruction, n->flow.blocks[i].block) {
            if (!LLVMIsALoadInst(instruction)) continue;
            if (n->count == MOST_ACCESSES) return;
            n->accesses[n->count] = (struct access){.instruction = instruction, .block = i};
            n->count += find_address(n, &n->accesses[n->count]);
        }
    }
}

static bool are_nearby(const struct nearby *n, const struct access *a, const struct access *b) {
    if (a->base != b->base || a->element != b->element || a->count != b->count ||
        n->flow.blocks[a->block].loop != n->flow.blocks[b->block].loop)
        return false;
    for (int i = 0; i < a->count; i++) {
        bool found = false;
        for (int k = 0; k < b->count; k++)
            found |= a->terms[i].factor == b->terms[k].factor &&
                     are_same(n, a->terms[i].value, b->terms[k].value, DEEPEST);
        if (!found) return false;
    }
    return true;
}

/* ---- Sharing. */

static int common_dominator(const struct flow *flow, int a, int b) {
    while (a != b)
        if (a > b)
            a = flow->blocks[a].dominator;
        else
            b = flow->blocks[b].dominator;
    return a;
}

/* The block in which accesses find their address, and what it is put before. */
static int place_of(struct nearby *n, int *members, int count, LLVMValueRef *before) {
    int place = n->accesses[members[0]].block;
    for (int i = 1; i < count; i++) place = common_dominator(&n->flow, place, n->accesses[members[i]].block);
    *before = LLVMGetBasicBlockTerminator(n->flow.blocks[place].block);
    for (int i = count - 1; i >= 0; i--) /* in the order of the code */
        if (n->accesses[members[i]].block == place) *before = n->accesses[members[i]].instruction;
    return place;
}

static bool terms_are_known(struct nearby *n, const struct access *a, int place, LLVMValueRef before) {
    for (int i = 0; i < a->count; i++)
        if (!is_known(n, a->terms[i].value, place, before, DEEPEST)) return false;
    return is_known(n, a->base, place, before, 0);
}

static LLVMValueRef build_address(struct nearby *n, struct access *a, int place, LLVMValueRef before) {
    LLVMBuilderRef b = n->unit->builder;
    LLVMTypeRef byte = LLVMInt8TypeInContext(n->unit->context), wide = type_i64(n->unit);
    LLVMValueRef sum = NULL;
    LLVMPositionBuilderBefore(b, before);
    for (int i = 0; i < a->count; i++) {
        LLVMValueRef term = value_at(n, a->terms[i].value, place, before);
        if (a->terms[i].factor != 1)
            term = LLVMBuildMul(b, term, constant_i32(n->unit, a->terms[i].factor), "");
        sum = sum ? LLVMBuildAdd(b, sum, term, "") : term;
    }
    sum = LLVMBuildSExt(b, sum, wide, "");
    sum = LLVMBuildMul(b, sum, LLVMConstInt(wide, a->element, false), "");
    return LLVMBuildGEP2(b, byte, a->base, &sum, 1, "near");
}

/* Gives accesses that are nearby one address. */
static bool share(struct nearby *n, int first) {
    int members[MOST_ACCESSES], count = 0;
    bool hidden = false, differ = false;
    for (int i = first; i < n->count; i++) {
        struct access *a = &n->accesses[i];
        if (a->done || !are_nearby(n, &n->accesses[first], a)) continue;
        a->done = true;
        hidden |= a->block != n->accesses[first].block;
        hidden |= a->constant != n->accesses[first].constant && (a->hidden || n->accesses[first].hidden);
        differ |= a->bytes != n->accesses[first].bytes;
        members[count++] = i;
    }
    if (!hidden || !differ) return false; /* LLVM shares the others */
    LLVMValueRef before;
    int place = place_of(n, members, count, &before);
    struct access *a = &n->accesses[members[0]];
    if (!terms_are_known(n, a, place, before)) return false;
    LLVMValueRef address = build_address(n, a, place, before);
    LLVMTypeRef byte = LLVMInt8TypeInContext(n->unit->context);
    for (int i = 0; i < count; i++) {
        a = &n->accesses[members[i]];
        LLVMValueRef bytes = LLVMConstInt(type_i64(n->unit), (uint64_t)a->bytes, true);
        LLVMPositionBuilderBefore(n->unit->builder, a->instruction);
        LLVMSetOperand(a->instruction, 0, LLVMBuildGEP2(n->unit->builder, byte, address, &bytes, 1, ""));
    }
    return true;
}

smelt_status pass_ptx_nearby(struct unit *unit) {
    if (!unit->request->shape.small || unit->long_thread) return SMELT_OK;
    struct arena arena = {0};
    struct nearby *n = arena_alloc(&arena, sizeof *n);
    if (!n) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for addresses");
    *n = (struct nearby){.unit = unit,
                         .invariant = LLVMGetMDKindIDInContext(unit->context, "invariant.load", 14)};
    smelt_status status = flow_find(unit, unit->entry, &arena, &n->flow);
    int shared = 0;
    if (status == SMELT_OK) find_accesses(n);
    for (int i = 0; status == SMELT_OK && i < n->count && shared < MOST_SHARED; i++)
        if (!n->accesses[i].done) shared += share(n, i);
    if (status == SMELT_OK && shared)
        status = ptx_note(unit, "%d addresses are shared by accesses a constant apart", shared);
    arena_free(&arena);
    return status;
}
