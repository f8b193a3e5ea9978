/* Whether two accesses can touch the same memory, by what their addresses are based on. */
#include "compiler/ptx/ptx.h"

/* What an address is based on. */
enum base_kind {
    BASE_UNKNOWN,
    BASE_BUFFER,   /* the buffer whose address is at `offset` in the parameter */
    BASE_CONSTANT, /* memory that nothing writes */
    BASE_PRIVATE,  /* a variable of the thread */
    BASE_VISITED   /* that of a phi whose base is being found */
};

struct base {
    enum base_kind kind;
    uint64_t offset;
    LLVMValueRef variable;
};

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
        bool same = next.kind == base.kind && next.offset == base.offset && next.variable == base.variable;
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
    if (LLVMIsALoadInst(address) && parameter_offset(unit, LLVMGetOperand(address, 0), &base.offset))
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

static struct base base_of(struct unit *unit, LLVMValueRef address) {
    struct visited visited = {.count = 0};
    struct base base = find_base(unit, address, &visited);
    if (base.kind == BASE_VISITED) base.kind = BASE_UNKNOWN;
    return base;
}

static unsigned space_of(LLVMValueRef address) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address));
}

bool ptx_are_apart(struct unit *unit, LLVMValueRef loaded, LLVMValueRef stored) {
    struct base a = base_of(unit, loaded), b = base_of(unit, stored);
    unsigned from = space_of(loaded), to = space_of(stored);
    if (from && to && from != to) return true;
    if (a.kind == BASE_CONSTANT) return true;
    if (a.kind == BASE_PRIVATE || b.kind == BASE_PRIVATE)
        return a.kind != BASE_UNKNOWN && b.kind != BASE_UNKNOWN && a.variable != b.variable;
    return unit->request->shape.distinct && a.kind == BASE_BUFFER && b.kind == BASE_BUFFER &&
           a.offset != b.offset;
}
