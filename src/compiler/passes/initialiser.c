/* Evaluates initialisers that only store constants but that globalopt cannot evaluate: it does not store into
 * a structure whose type differs from the type of the store, such as a vector stored as a whole.
 *
 * Requires: an optimised initialiser. Maintains: what the variables hold when the kernel starts. */
#include "base/arena.h"
#include "compiler/pass.h"

#include <string.h>

#define MOST_VARIABLES 64
#define MOST_BYTES 4096

struct contents {
    LLVMValueRef variable;
    uint64_t size;
    unsigned char bytes[MOST_BYTES];
};

static bool find_place(struct unit *unit, LLVMValueRef pointer, LLVMValueRef *variable, uint64_t *offset) {
    *offset = 0;
    for (int steps = 0; steps < 8 && LLVMIsAConstantExpr(pointer); steps++) {
        bool element = LLVMGetConstOpcode(pointer) == LLVMGetElementPtr;
        if (element) {
            uint64_t index;
            if (LLVMGetNumOperands(pointer) != 2 || !is_constant_integer(LLVMGetOperand(pointer, 1), &index))
                return false;
            *offset += index * LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(pointer));
        } else if (LLVMGetConstOpcode(pointer) != LLVMAddrSpaceCast) {
            return false;
        }
        pointer = LLVMGetOperand(pointer, 0);
    }
    *variable = pointer;
    return LLVMIsAGlobalVariable(pointer) != NULL && LLVMGetInitializer(pointer) != NULL;
}

/* The bits of a scalar or small vector constant. */
static bool bits_of(struct unit *unit, LLVMValueRef value, uint64_t *bits, uint64_t *size) {
    LLVMTypeRef type = LLVMTypeOf(value);
    *size = LLVMStoreSizeOfType(unit->layout, type);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    bool scalar = kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind ||
                  kind == LLVMFloatTypeKind || kind == LLVMVectorTypeKind;
    if (!LLVMIsConstant(value) || !scalar || *size > 8) return false;
    if (kind != LLVMIntegerTypeKind)
        value = LLVMConstBitCast(value, LLVMIntTypeInContext(unit->context, (unsigned)(8 * *size)));
    return is_constant_integer(value, bits);
}

static struct contents *contents_of(struct arena *arena, struct contents *list[MOST_VARIABLES], int *count,
                                    LLVMValueRef variable, uint64_t size) {
    for (int i = 0; i < *count; i++)
        if (list[i]->variable == variable) return list[i];
    if (*count == MOST_VARIABLES || size > MOST_BYTES) return NULL;
    if (!LLVMIsNull(LLVMGetInitializer(variable))) return NULL;
    struct contents *one = arena_alloc(arena, sizeof *one);
    if (!one) return NULL;
    one->variable = variable;
    one->size = size;
    return list[(*count)++] = one;
}

static bool take_store(struct unit *unit, struct arena *arena, LLVMValueRef store,
                       struct contents *list[MOST_VARIABLES], int *count) {
    LLVMValueRef variable;
    uint64_t offset, bits, size;
    if (!find_place(unit, LLVMGetOperand(store, 1), &variable, &offset)) return false;
    if (!bits_of(unit, LLVMGetOperand(store, 0), &bits, &size)) return false;
    struct contents *one = contents_of(arena, list, count, variable,
                                       LLVMABISizeOfType(unit->layout, LLVMGlobalGetValueType(variable)));
    if (!one || offset + size > one->size) return false;
    memcpy(one->bytes + offset, &bits, size);
    return true;
}

/* The bytes of a constant; undefined ones are unchanged. */
static bool bytes_of(struct unit *unit, LLVMValueRef value, unsigned char *bytes, uint64_t room) {
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    uint64_t bits, size;
    if (LLVMABISizeOfType(unit->layout, type) > room) return false;
    if (LLVMIsUndef(value)) return true;
    if (LLVMIsNull(value)) return memset(bytes, 0, LLVMABISizeOfType(unit->layout, type)) != NULL;
    if (kind != LLVMStructTypeKind && kind != LLVMArrayTypeKind) {
        if (!bits_of(unit, value, &bits, &size)) return false;
        memcpy(bytes, &bits, size);
        return true;
    }
    bool structure = kind == LLVMStructTypeKind;
    unsigned count = structure ? LLVMCountStructElementTypes(type) : (unsigned)LLVMGetArrayLength2(type);
    for (unsigned i = 0; i < count; i++) {
        LLVMTypeRef part = structure ? LLVMStructGetTypeAtIndex(type, i) : LLVMGetElementType(type);
        uint64_t offset = structure ? LLVMOffsetOfElement(unit->layout, type, i)
                                    : i * LLVMABISizeOfType(unit->layout, part);
        LLVMValueRef element = LLVMGetAggregateElement(value, i);
        if (!element || !bytes_of(unit, element, bytes + offset, room - offset)) return false;
    }
    return true;
}

/* A copy of a variable with a known value, or of a part of one. */
static bool take_copy(struct unit *unit, struct arena *arena, LLVMValueRef call,
                      struct contents *list[MOST_VARIABLES], int *count) {
    unsigned char bytes[MOST_BYTES] = {0};
    LLVMValueRef to, from;
    uint64_t to_offset, from_offset, size;
    if (!find_place(unit, LLVMGetOperand(call, 0), &to, &to_offset) ||
        !find_place(unit, LLVMGetOperand(call, 1), &from, &from_offset) ||
        !is_constant_integer(LLVMGetOperand(call, 2), &size) || !LLVMIsGlobalConstant(from))
        return false;
    struct contents *one =
        contents_of(arena, list, count, to, LLVMABISizeOfType(unit->layout, LLVMGlobalGetValueType(to)));
    if (!one || to_offset + size > one->size || from_offset + size > MOST_BYTES) return false;
    if (!bytes_of(unit, LLVMGetInitializer(from), bytes, MOST_BYTES)) return false;
    memcpy(one->bytes + to_offset, bytes + from_offset, size);
    return true;
}

/* A constant of `type` with these bytes, or NULL. */
static LLVMValueRef constant_of(struct unit *unit, LLVMTypeRef type, const unsigned char *bytes) {
    uint64_t bits = 0, size = LLVMStoreSizeOfType(unit->layout, type);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    LLVMValueRef parts[256];
    if (kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind ||
        kind == LLVMFloatTypeKind) {
        if (size > 8) return NULL;
        memcpy(&bits, bytes, size);
        LLVMValueRef value =
            LLVMConstInt(LLVMIntTypeInContext(unit->context, (unsigned)(8 * size)), bits, false);
        if (kind == LLVMIntegerTypeKind) return LLVMConstInt(type, bits, false);
        return LLVMConstBitCast(value, type);
    }
    if (kind != LLVMStructTypeKind && kind != LLVMArrayTypeKind) return NULL;
    bool structure = kind == LLVMStructTypeKind;
    unsigned count = structure ? LLVMCountStructElementTypes(type) : (unsigned)LLVMGetArrayLength2(type);
    if (count > 256) return NULL;
    for (unsigned i = 0; i < count; i++) {
        LLVMTypeRef part = structure ? LLVMStructGetTypeAtIndex(type, i) : LLVMGetElementType(type);
        uint64_t offset = structure ? LLVMOffsetOfElement(unit->layout, type, i)
                                    : i * LLVMABISizeOfType(unit->layout, part);
        parts[i] = constant_of(unit, part, bytes + offset);
        if (!parts[i]) return NULL;
    }
    if (!structure) return LLVMConstArray2(LLVMGetElementType(type), parts, count);
    return LLVMGetStructName(type)
               ? LLVMConstNamedStruct(type, parts, count)
               : LLVMConstStructInContext(unit->context, parts, count, LLVMIsPackedStruct(type));
}

bool initialiser_apply(struct unit *unit, LLVMValueRef function) {
    struct arena arena = {0};
    struct contents *list[MOST_VARIABLES];
    int count = 0;
    bool plain = LLVMCountBasicBlocks(function) == 1;
    if (!plain) return false;
    FOR_EACH_INSTRUCTION(instruction, LLVMGetEntryBasicBlock(function)) {
        if (LLVMIsAStoreInst(instruction))
            plain &= take_store(unit, &arena, instruction, list, &count);
        else if (strncmp(called_name(instruction), "llvm.memcpy", 11) == 0)
            plain &= take_copy(unit, &arena, instruction, list, &count);
        else
            plain &= LLVMIsAReturnInst(instruction) != NULL ||
                     strncmp(called_name(instruction), "llvm.invariant", 14) == 0 ||
                     strncmp(called_name(instruction), "llvm.lifetime", 13) == 0;
    }
    LLVMValueRef values[MOST_VARIABLES];
    for (int i = 0; i < count && plain; i++) {
        values[i] = constant_of(unit, LLVMGlobalGetValueType(list[i]->variable), list[i]->bytes);
        plain &= values[i] != NULL;
    }
    for (int i = 0; i < count && plain; i++) {
        LLVMSetInitializer(list[i]->variable, values[i]);
        LLVMSetGlobalConstant(list[i]->variable, true);
    }
    arena_free(&arena);
    return plain;
}
