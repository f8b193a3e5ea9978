/* Replaces pointers that are written once to private variables, such as `this`, reference parameters of
 * inlined functions and what lambdas capture by reference, by the pointer that is written. Otherwise any code
 * might access the variable that it points to, and the checker would be asked about each access, without
 * knowing which array a pointer in that variable belongs to.
 *
 * The store dominates every load, so that no load finds an undefined pointer. */
#include "compiler/check/check.h"
#include "compiler/analysis/flow.h"

#include <llvm-c/DebugInfo.h>

#include <string.h>

bool check_is_lifetime(LLVMValueRef call) {
    return strncmp(called_name(call), "llvm.lifetime.", 14) == 0;
}

bool check_constant_offset(struct unit *unit, LLVMValueRef gep, uint64_t *offset) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    unsigned count = (unsigned)LLVMGetNumOperands(gep);
    for (unsigned i = 1; i < count; i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        if (!LLVMIsAConstantInt(index)) return false;
        int64_t value = LLVMConstIntGetSExtValue(index);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            *offset += LLVMOffsetOfElement(unit->layout, type, (unsigned)value);
            type = LLVMStructGetTypeAtIndex(type, (unsigned)value);
            continue;
        }
        if (i > 1) type = LLVMGetElementType(type);
        *offset += (uint64_t)value * LLVMABISizeOfType(unit->layout, type);
    }
    return true;
}

static bool is_before(LLVMValueRef first, LLVMValueRef second) {
    for (LLVMValueRef i = first; i; i = LLVMGetNextInstruction(i))
        if (i == second) return true;
    return false;
}

static bool dominates(const struct flow *flow, LLVMValueRef above, LLVMValueRef below) {
    LLVMBasicBlockRef from = LLVMGetInstructionParent(above), to = LLVMGetInstructionParent(below);
    if (from == to) return is_before(above, below);
    int a = flow_index(flow, from), b = flow_index(flow, to);
    return a >= 0 && b >= 0 && flow_dominates(flow, a, b);
}

/* ---- Copies of structures with pointers, such as lambdas that are passed by value. */

enum { MOST_MEMBERS = 64 };

/* The scalars of a structure, without arrays. */
struct members {
    LLVMTypeRef type[MOST_MEMBERS];
    uint64_t offset[MOST_MEMBERS], end;
    int count;
    bool points;
};

static bool find_members(struct unit *unit, LLVMTypeRef type, uint64_t offset, struct members *members) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMStructTypeKind) {
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            if (!find_members(unit, LLVMStructGetTypeAtIndex(type, i),
                              offset + LLVMOffsetOfElement(unit->layout, type, i), members))
                return false;
        return true;
    }
    if (kind == LLVMArrayTypeKind || members->count == MOST_MEMBERS) return false;
    members->type[members->count] = type;
    members->offset[members->count++] = offset;
    members->end = offset + LLVMStoreSizeOfType(unit->layout, type);
    members->points |= kind == LLVMPointerTypeKind;
    return true;
}

static LLVMValueRef member_address(struct unit *unit, LLVMValueRef variable, uint64_t offset) {
    LLVMValueRef index = LLVMConstInt(type_i64(unit), offset, false);
    return LLVMBuildGEP2(unit->builder, LLVMInt8TypeInContext(unit->context), variable, &index, 1, "");
}

/* A copy of a whole variable to another one becomes a load and a store of each member. */
static void split_copy(struct unit *unit, LLVMValueRef call) {
    LLVMBuilderRef b = unit->builder;
    struct members members = {.count = 0};
    uint64_t length;
    if (strncmp(called_name(call), "llvm.memcpy.", 12) != 0) return;
    LLVMValueRef to = LLVMGetOperand(call, 0), from = LLVMGetOperand(call, 1);
    if (!LLVMIsAAllocaInst(to) || !LLVMIsAAllocaInst(from)) return;
    LLVMTypeRef type = LLVMGetAllocatedType(from);
    if (LLVMGetAllocatedType(to) != type || LLVMGetTypeKind(type) != LLVMStructTypeKind) return;
    if (!find_members(unit, type, 0, &members) || !members.points) return;
    if (!is_constant_integer(LLVMGetOperand(call, 2), &length) || length < members.end ||
        length > LLVMABISizeOfType(unit->layout, type))
        return;
    LLVMPositionBuilderBefore(b, call);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(call));
    for (int i = 0; i < members.count; i++) {
        LLVMValueRef value =
            LLVMBuildLoad2(b, members.type[i], member_address(unit, from, members.offset[i]), "");
        LLVMBuildStore(b, value, member_address(unit, to, members.offset[i]));
    }
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMInstructionEraseFromParent(call);
}

/* ---- Pointers that are written once. */

/* Loads and stores of a variable, each of so many bytes at a constant offset. */
enum { MOST_PARTS = 256 };

struct part {
    LLVMValueRef instruction;
    uint64_t offset, bytes;
};

struct parts {
    struct unit *unit;
    uint64_t extent; /* of the variable */
    struct part part[MOST_PARTS];
    int count;
};

static LLVMTypeRef type_of_access(LLVMValueRef access) {
    return LLVMTypeOf(LLVMIsAStoreInst(access) ? LLVMGetOperand(access, 0) : access);
}

/* False: the variable has uses that are neither loads, stores nor marks of its life, or too many, or an
 * access misses it. */
static bool find_parts(struct parts *parts, LLVMValueRef pointer, uint64_t offset) {
    for (LLVMUseRef use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        uint64_t further = offset;
        if (check_is_lifetime(user)) continue;
        if (LLVMIsAGetElementPtrInst(user)) {
            if (!check_constant_offset(parts->unit, user, &further) || !find_parts(parts, user, further))
                return false;
            continue;
        }
        bool loads = LLVMIsALoadInst(user) != NULL, stores = LLVMIsAStoreInst(user) &&
                                                             LLVMGetOperand(user, 1) == pointer &&
                                                             LLVMGetOperand(user, 0) != pointer;
        if (!(loads || stores) || LLVMGetVolatile(user) || parts->count == MOST_PARTS) return false;
        uint64_t bytes = LLVMStoreSizeOfType(parts->unit->layout, type_of_access(user));
        if (offset > parts->extent || bytes > parts->extent - offset) return false;
        parts->part[parts->count++] = (struct part){user, offset, bytes};
    }
    return true;
}

/* Whether a store of a pointer is the only one to its bytes, and dominates all loads, of its type, there. */
static bool is_only_store(const struct flow *flow, const struct parts *parts, const struct part *store) {
    for (const struct part *p = parts->part; p < parts->part + parts->count; p++) {
        if (p == store || p->offset >= store->offset + store->bytes || store->offset >= p->offset + p->bytes)
            continue;
        if (!LLVMIsALoadInst(p->instruction) || p->offset != store->offset ||
            type_of_access(p->instruction) != type_of_access(store->instruction) ||
            !dominates(flow, store->instruction, p->instruction))
            return false;
    }
    return true;
}

static void forward_store(struct parts *parts, struct part *store) {
    LLVMValueRef pointer = LLVMGetOperand(store->instruction, 0);
    for (struct part *p = parts->part; p < parts->part + parts->count; p++) {
        if (p == store || p->offset != store->offset || !p->instruction) continue;
        LLVMReplaceAllUsesWith(p->instruction, pointer);
        LLVMInstructionEraseFromParent(p->instruction);
        *p = (struct part){0};
    }
    LLVMInstructionEraseFromParent(store->instruction);
    *store = (struct part){0};
}

/* Of a variable that nothing reads or writes any more. */
static void erase_uses(LLVMValueRef pointer) {
    for (LLVMUseRef use; (use = LLVMGetFirstUse(pointer));) {
        LLVMValueRef user = LLVMGetUser(use);
        erase_uses(user);
        LLVMInstructionEraseFromParent(user);
    }
}

/* Whether a pointer was forwarded. */
static bool forward(struct unit *unit, const struct flow *flow, LLVMValueRef variable, bool of_functions) {
    struct parts parts = {.unit = unit,
                          .extent = LLVMABISizeOfType(unit->layout, LLVMGetAllocatedType(variable))};
    bool found = false, used = false;
    if (!find_parts(&parts, variable, 0)) return false;
    for (struct part *p = parts.part; p < parts.part + parts.count; p++) {
        if (!p->instruction || !LLVMIsAStoreInst(p->instruction) ||
            LLVMGetTypeKind(type_of_access(p->instruction)) != LLVMPointerTypeKind)
            continue;
        if (of_functions && !LLVMIsAFunction(LLVMGetOperand(p->instruction, 0))) continue;
        if (!is_only_store(flow, &parts, p)) continue;
        forward_store(&parts, p);
        found = true;
    }
    for (int i = 0; i < parts.count; i++) used |= parts.part[i].instruction != NULL;
    if (found && !used) {
        erase_uses(variable);
        LLVMInstructionEraseFromParent(variable);
    }
    return found;
}

/* The next variable, which stays when others are forwarded. */
static LLVMValueRef variable_from(LLVMValueRef instruction) {
    while (instruction && !LLVMIsAAllocaInst(instruction)) instruction = LLVMGetNextInstruction(instruction);
    return instruction;
}

/* A pointer may lead to the next variable: until nothing changes. */
static smelt_status forward_all(struct unit *unit, LLVMValueRef function, bool of_functions) {
    struct arena arena = {0};
    struct flow flow;
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsACallInst(i)) split_copy(unit, i);
    }
    smelt_status status = flow_find(unit, function, &arena, &flow);
    for (bool found = status == SMELT_OK; found;) {
        found = false;
        LLVMValueRef next, variable = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
        for (variable = variable_from(variable); variable; variable = next) {
            next = variable_from(LLVMGetNextInstruction(variable));
            found |= forward(unit, &flow, variable, of_functions);
        }
    }
    arena_free(&arena);
    return status;
}

smelt_status check_forward_pointers(struct unit *unit, LLVMValueRef function) {
    return forward_all(unit, function, false);
}

smelt_status pass_check_functions(struct unit *unit) {
    smelt_status status = SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && status == SMELT_OK;
         f = LLVMGetNextFunction(f))
        if (LLVMCountBasicBlocks(f)) status = forward_all(unit, f, true);
    return status;
}
