/* Finds the base of an address: follows its steps and casts, and the phis of loops that advance it. */
#include "compiler/analysis/base.h"

static bool parameter_offset(struct unit *unit, LLVMValueRef place, uint64_t *offset) {
    LLVMValueRef parameter = LLVMGetParam(unit->entry, 0);
    *offset = 0;
    if (place == parameter) return true;
    bool simple = LLVMIsAGetElementPtrInst(place) && LLVMGetNumOperands(place) == 2 &&
                  LLVMGetOperand(place, 0) == parameter &&
                  LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(place)) == 1;
    return simple && is_constant_integer(LLVMGetOperand(place, 1), offset);
}

#define MOST_PHIS 8

struct visited {
    LLVMValueRef phis[MOST_PHIS];
    int count;
};

static struct base find_base(struct unit *unit, LLVMValueRef address, struct visited *visited);

/* An address that a loop advances has the base of its first value. Incoming values must agree. */
static struct base base_of_phi(struct unit *unit, LLVMValueRef phi, struct visited *visited) {
    struct base base = {BASE_VISITED, 0, NULL};
    for (int i = 0; i < visited->count; i++)
        if (visited->phis[i] == phi) return base;
    if (visited->count == MOST_PHIS) return (struct base){BASE_UNKNOWN, 0, NULL};
    visited->phis[visited->count++] = phi;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        struct base next = find_base(unit, LLVMGetIncomingValue(phi, i), visited);
        if (next.kind == BASE_VISITED) continue;
        bool same = next.kind == base.kind && next.buffer == base.buffer && next.variable == base.variable;
        if (base.kind != BASE_VISITED && !same) return (struct base){BASE_UNKNOWN, 0, NULL};
        base = next;
    }
    return base;
}

static struct base find_base(struct unit *unit, LLVMValueRef address, struct visited *visited) {
    struct base base = {BASE_UNKNOWN, 0, NULL};
    for (int depth = 0; depth < 32; depth++) {
        if (!LLVMIsAGetElementPtrInst(address) && !LLVMIsAAddrSpaceCastInst(address)) break;
        address = LLVMGetOperand(address, 0);
    }
    if (LLVMIsAPHINode(address)) return base_of_phi(unit, address, visited);
    bool passed = intrinsic_of(address) == INTRINSIC_BUFFER_ADDRESS &&
                  is_constant_integer(LLVMGetOperand(address, 0), &base.buffer);
    bool loaded =
        LLVMIsALoadInst(address) && parameter_offset(unit, LLVMGetOperand(address, 0), &base.buffer);
    if (passed || loaded)
        base.kind = BASE_BUFFER;
    else if (address == LLVMGetParam(unit->entry, 0) ||
             (LLVMIsAGlobalVariable(address) && LLVMIsGlobalConstant(address)))
        base.kind = BASE_CONSTANT;
    else if (LLVMIsAAllocaInst(address)) {
        base.kind = BASE_PRIVATE;
        base.variable = address;
    }
    return base;
}

struct base base_of(struct unit *unit, LLVMValueRef address) {
    struct visited visited = {.count = 0};
    struct base base = find_base(unit, address, &visited);
    if (base.kind == BASE_VISITED) base.kind = BASE_UNKNOWN;
    return base;
}

bool base_are_distinct(struct unit *unit, const struct base *a, const struct base *b) {
    bool distinct = unit->request->shape.distinct && a->kind == BASE_BUFFER && b->kind == BASE_BUFFER &&
                    a->buffer != b->buffer;
    unit->result->image.distinct |= distinct;
    return distinct;
}
