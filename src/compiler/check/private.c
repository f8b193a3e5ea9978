/* Private variables, before the optimiser turns them into registers.
 *
 * It may assume that an access lies within its variable, and that a variable which is read before it is
 * written has any value, a convenient one. So an array that an access may miss (an index that is not
 * constant, or a wrong one; an address that goes elsewhere) stays in memory: the code gets its address from
 * the checker. Other variables, whose accesses are all known to lie inside, begin with a value of the
 * checker, which disappears where it is never used.
 *
 * Requires: functions inlined, variables in memory as clang put them there. */
#include "compiler/check/check.h"

#include <string.h>

#define MOST_SEEDS 64 /* of a variable; larger ones stay in memory */

/* ---- Which accesses are known to lie inside. */

struct extent {
    struct unit *unit;
    uint64_t bytes;
};

static bool is_inside(const struct extent *extent, uint64_t offset, uint64_t bytes) {
    return offset <= extent->bytes && bytes <= extent->bytes - offset;
}

static bool copies_inside(const struct extent *extent, LLVMValueRef call, uint64_t offset) {
    const char *name = called_name(call);
    uint64_t bytes;
    if (strncmp(name, "llvm.memcpy.", 12) != 0 && strncmp(name, "llvm.memset.", 12) != 0 &&
        strncmp(name, "llvm.memmove.", 13) != 0)
        return false;
    return is_constant_integer(LLVMGetOperand(call, 2), &bytes) && is_inside(extent, offset, bytes);
}

static uint64_t bytes_of(struct unit *unit, LLVMTypeRef type) {
    return LLVMStoreSizeOfType(unit->layout, type);
}

static bool all_inside(const struct extent *extent, LLVMValueRef pointer, uint64_t offset);

static bool use_inside(const struct extent *extent, LLVMValueRef user, LLVMValueRef pointer,
                       uint64_t offset) {
    switch (LLVMGetInstructionOpcode(user)) {
    case LLVMLoad:
        return is_inside(extent, offset, bytes_of(extent->unit, LLVMTypeOf(user)));
    case LLVMStore:
        return LLVMGetOperand(user, 0) != pointer &&
               is_inside(extent, offset, bytes_of(extent->unit, LLVMTypeOf(LLVMGetOperand(user, 0))));
    case LLVMGetElementPtr:
        return check_constant_offset(extent->unit, user, &offset) && all_inside(extent, user, offset);
    case LLVMBitCast:
    case LLVMAddrSpaceCast:
        return all_inside(extent, user, offset);
    case LLVMCall:
        return check_is_lifetime(user) || copies_inside(extent, user, offset);
    default:
        return false;
    }
}

static bool all_inside(const struct extent *extent, LLVMValueRef pointer, uint64_t offset) {
    for (LLVMUseRef use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use))
        if (!use_inside(extent, LLVMGetUser(use), pointer, offset)) return false;
    return true;
}

/* ---- Values to begin with. */

struct seeding {
    struct unit *unit;
    LLVMValueRef variable, site;
    int count;
};

static void seed(struct seeding *s, LLVMTypeRef type, uint64_t offset) {
    struct unit *unit = s->unit;
    LLVMBuilderRef b = unit->builder;
    s->count++;
    LLVMTypeRef word = LLVMIntTypeInContext(unit->context, (unsigned)(8 * bytes_of(unit, type)));
    LLVMValueRef value = check_call(unit, "smelt_check_undefined", type_i64(unit), &s->site, 1, true);
    value = LLVMBuildTruncOrBitCast(b, value, word, "");
    LLVMValueRef index = LLVMConstInt(type_i64(unit), offset, false);
    LLVMValueRef address = LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context), s->variable, &index, 1, "");
    LLVMBuildStore(b, value, address);
}

/* Every scalar of a type. */
static void seed_type(struct seeding *s, LLVMTypeRef type, uint64_t offset) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (s->count > MOST_SEEDS) return;
    if (kind == LLVMStructTypeKind) {
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            seed_type(s, LLVMStructGetTypeAtIndex(type, i),
                      offset + LLVMOffsetOfElement(s->unit->layout, type, i));
    } else if (kind == LLVMArrayTypeKind || kind == LLVMVectorTypeKind) {
        LLVMTypeRef element = LLVMGetElementType(type);
        uint64_t count = kind == LLVMArrayTypeKind ? LLVMGetArrayLength2(type) : LLVMGetVectorSize(type),
                 bytes = LLVMABISizeOfType(s->unit->layout, element);
        for (uint64_t i = 0; i < count && s->count <= MOST_SEEDS; i++)
            seed_type(s, element, offset + i * bytes);
    } else if (bytes_of(s->unit, type) <= 8) {
        seed(s, type, offset);
    }
}

/* How many scalars a type has, or more than MOST_SEEDS. */
static uint64_t count_scalars(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    uint64_t count = 0;
    if (kind == LLVMStructTypeKind) {
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type) && count <= MOST_SEEDS; i++)
            count += count_scalars(LLVMStructGetTypeAtIndex(type, i));
        return count;
    }
    if (kind != LLVMArrayTypeKind && kind != LLVMVectorTypeKind) return 1;
    count = kind == LLVMArrayTypeKind ? LLVMGetArrayLength2(type) : LLVMGetVectorSize(type);
    return count > MOST_SEEDS ? count : count * count_scalars(LLVMGetElementType(type));
}

/* Where the variable's life begins: at each mark, or at its declaration. */
static void begin_undefined(struct unit *unit, LLVMValueRef variable) {
    struct seeding s = {.unit = unit, .variable = variable};
    char name[200];
    bool marked = false;
    unit_variable_name(variable, name);
    for (LLVMUseRef use = LLVMGetFirstUse(variable), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef user = LLVMGetUser(use);
        if (strncmp(called_name(user), "llvm.lifetime.start.", 20) != 0) continue;
        marked = true;
        s.site = check_site(unit, user, name);
        LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(user));
        s.count = 0;
        seed_type(&s, LLVMGetAllocatedType(variable), 0);
    }
    if (marked) return;
    s.site = check_site(unit, variable, name);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(variable));
    seed_type(&s, LLVMGetAllocatedType(variable), 0);
}

/* ---- Arrays that stay in memory. */

static void hide(struct unit *unit, LLVMValueRef variable) {
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(variable));
    LLVMValueRef argument = check_pointer(unit, variable);
    LLVMValueRef hidden = check_call(unit, "smelt_check_object", type_pointer(unit), &argument, 1, true);
    for (LLVMUseRef use = LLVMGetFirstUse(variable), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef user = LLVMGetUser(use);
        if (user == hidden || check_is_lifetime(user)) continue;
        for (int o = 0; o < LLVMGetNumOperands(user); o++)
            if (LLVMGetOperand(user, (unsigned)o) == variable) LLVMSetOperand(user, (unsigned)o, hidden);
    }
}

static smelt_status keep_variable(struct unit *unit, LLVMValueRef variable) {
    uint64_t count;
    LLVMTypeRef type = LLVMGetAllocatedType(variable);
    struct extent extent = {unit, LLVMABISizeOfType(unit->layout, type)};
    if (!is_constant_integer(LLVMGetOperand(variable, 0), &count) || count != 1) return SMELT_OK;
    /* The origins of undefined values are kept by word, so no two variables may share one. */
    if (LLVMGetAlignment(variable) < 4) LLVMSetAlignment(variable, 4);
    bool small = count_scalars(type) <= MOST_SEEDS;
    if (small && all_inside(&extent, variable, 0))
        begin_undefined(unit, variable);
    else
        hide(unit, variable);
    return SMELT_OK;
}

/* Initialisers of constants are evaluated as they are (passes/initialisers.c). */
static bool is_initialiser(LLVMValueRef function) {
    size_t length;
    return strncmp(LLVMGetValueName2(function, &length), "smelt_initialiser_", 18) == 0;
}

smelt_status pass_check_private(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (is_initialiser(f) || LLVMIsDeclaration(f)) continue;
        TRY(check_forward_pointers(unit, f));
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (LLVMIsAAllocaInst(instruction)) TRY(keep_variable(unit, instruction));
        }
    }
    return SMELT_OK;
}
