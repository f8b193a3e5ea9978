/* Marks loads from threadgroup arrays that hold copies of constant tables:
 *
 *     threadgroup float table[16];
 *     if (t < 16) table[t] = levels[t];
 *     threadgroup_barrier(…); … table[x & 15] …
 *
 * Kernels copy a table because lanes that look up different elements of constant memory wait for each other
 * on other GPUs. If every store to the array is such a copy, an element that was set is the constant table's,
 * so that a look-up need not load at all (nibbles.c).
 *
 * Requires: the retargeted module, with a global for each threadgroup variable. Maintains: results. */
#include "compiler/ptx/ptx.h"

#include <string.h>

#define MOST_LOADS 512

struct copied {
    struct unit *unit;
    LLVMValueRef array, table; /* threadgroup array; constant one, once known */
    LLVMTypeRef type;          /* of both */
    LLVMValueRef loads[MOST_LOADS];
    int count;
};

static unsigned kind_of_mark(struct unit *unit) {
    static const char name[] = "smelt.copied";
    return LLVMGetMDKindIDInContext(unit->context, name, sizeof name - 1);
}

LLVMValueRef ptx_copied_table(struct unit *unit, LLVMValueRef load, LLVMValueRef *copy) {
    LLVMValueRef mark = LLVMGetMetadata(load, kind_of_mark(unit)), parts[2];
    if (!mark || LLVMGetMDNodeNumOperands(mark) != 2) return NULL;
    LLVMGetMDNodeOperands(mark, parts);
    *copy = parts[1];
    return parts[0];
}

static bool is_gep(LLVMValueRef value) {
    return LLVMIsAGetElementPtrInst(value) ||
           (LLVMIsAConstantExpr(value) && LLVMGetConstOpcode(value) == LLVMGetElementPtr);
}

LLVMValueRef ptx_index_in(LLVMTypeRef array, LLVMValueRef gep) {
    LLVMTypeRef from = LLVMGetGEPSourceElementType(gep);
    int operands = LLVMGetNumOperands(gep);
    bool element = operands == 2 ? from == LLVMGetElementType(array)
                                 : operands == 3 && from == array && LLVMIsNull(LLVMGetOperand(gep, 1));
    return element ? LLVMGetOperand(gep, (unsigned)operands - 1) : NULL;
}

bool ptx_element_of(struct unit *unit, LLVMValueRef address, LLVMValueRef *array, LLVMValueRef *index) {
    *array = is_gep(address) ? LLVMGetOperand(address, 0) : address;
    *index = constant_i32(unit, 0);
    if (!LLVMIsAGlobalVariable(*array)) return false;
    LLVMTypeRef type = LLVMGlobalGetValueType(*array);
    if (LLVMGetTypeKind(type) != LLVMArrayTypeKind) return false;
    if (address != *array) *index = ptx_index_in(type, address);
    return *index;
}

static bool same_index(LLVMValueRef a, LLVMValueRef b) {
    uint64_t first, second;
    while (LLVMIsAZExtInst(a)) a = LLVMGetOperand(a, 0);
    while (LLVMIsAZExtInst(b)) b = LLVMGetOperand(b, 0);
    return a == b || (is_constant_integer(a, &first) && is_constant_integer(b, &second) && first == second);
}

/* A store of the constant table's element of the same index. */
static bool is_copy(struct copied *c, LLVMValueRef store) {
    LLVMValueRef value = LLVMGetOperand(store, 0), array, index, table, from;
    if (!LLVMIsALoadInst(value) || LLVMTypeOf(value) != LLVMGetElementType(c->type)) return false;
    if (!ptx_element_of(c->unit, LLVMGetOperand(store, 1), &array, &index)) return false;
    if (!ptx_element_of(c->unit, LLVMGetOperand(value, 0), &table, &from)) return false;
    if (!LLVMIsGlobalConstant(table) || !LLVMGetInitializer(table) || !same_index(index, from)) return false;
    if (LLVMGetElementType(LLVMGlobalGetValueType(table)) != LLVMTypeOf(value)) return false;
    if (c->table && c->table != table) return false;
    c->table = table;
    return true;
}

/* Whether the array is only loaded from by elements and filled with copies. */
static bool only_copies(struct copied *c, LLVMValueRef address) {
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use), array, index;
        if (address == c->array && is_gep(user)) {
            if (!ptx_element_of(c->unit, user, &array, &index) || !only_copies(c, user)) return false;
        } else if (LLVMIsALoadInst(user)) {
            if (LLVMTypeOf(user) != LLVMGetElementType(c->type) || LLVMGetVolatile(user)) return false;
            if (c->count == MOST_LOADS) return false;
            c->loads[c->count++] = user;
        } else if (!LLVMIsAStoreInst(user) || LLVMGetOperand(user, 0) == address || !is_copy(c, user)) {
            return false;
        }
    }
    return true;
}

/* The mark names the array, too, whose address then follows where it is placed. */
static void mark(struct copied *c) {
    LLVMMetadataRef parts[2] = {LLVMValueAsMetadata(c->table), LLVMValueAsMetadata(c->array)};
    LLVMValueRef node =
        LLVMMetadataAsValue(c->unit->context, LLVMMDNodeInContext2(c->unit->context, parts, 2));
    for (int i = 0; i < c->count; i++) LLVMSetMetadata(c->loads[i], kind_of_mark(c->unit), node);
}

smelt_status pass_ptx_copied(struct unit *unit) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        struct copied c = {.unit = unit, .array = g, .type = LLVMGlobalGetValueType(g)};
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) != PTX_SHARED) continue;
        if (LLVMGetTypeKind(c.type) != LLVMArrayTypeKind) continue;
        if (only_copies(&c, g) && c.table) mark(&c);
    }
    return SMELT_OK;
}
