/* What messages about accesses say, as constants of the code. */
#include "compiler/bounds/bounds.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

static LLVMValueRef file_of(struct bounds *b, LLVMMetadataRef location) {
    LLVMMetadataRef file = location ? LLVMDIScopeGetFile(LLVMDILocationGetScope(location)) : NULL;
    unsigned length = 0;
    if (b->file_text && file == b->file) return b->file_text;
    const char *name = file ? LLVMDIFileGetFilename(file, &length) : "?";
    b->file = file;
    b->file_text = constant_text(b->unit, name, file ? length : 1);
    return b->file_text;
}

static LLVMValueRef name_of(struct bounds *b, LLVMValueRef variable) {
    char name[200];
    if (!variable) return LLVMConstNull(type_pointer(b->unit));
    if (variable == b->named) return b->name_text;
    if (!LLVMIsAAllocaInst(variable))
        unit_plain_name(b->unit, variable, name);
    else if (!unit_private_name(b->unit, variable, name))
        return LLVMConstNull(type_pointer(b->unit));
    b->named = variable;
    b->name_text = constant_text(b->unit, name, strlen(name));
    return b->name_text;
}

static uint64_t element_bytes(struct bounds *b, LLVMValueRef variable) {
    if (!variable) return 0;
    LLVMTypeRef type =
        LLVMIsAAllocaInst(variable) ? LLVMGetAllocatedType(variable) : LLVMGlobalGetValueType(variable);
    while (LLVMGetTypeKind(type) == LLVMArrayTypeKind) type = LLVMGetElementType(type);
    return LLVMABISizeOfType(b->unit->layout, type);
}

/* Whether elements are counted from the address. A computed one may lie below: from there, an index that has
 * not wrapped around may be that of an element before the first. */
static bool is_start(LLVMValueRef address) {
    enum intrinsic intrinsic = intrinsic_of(address);
    return LLVMIsAGlobalVariable(address) || LLVMIsAAllocaInst(address) ||
           intrinsic == INTRINSIC_BUFFER_ADDRESS || intrinsic == INTRINSIC_THREADGROUP_ADDRESS;
}

/* Of a load or store by an unsigned index of 32 bits: the bytes of 2^32 elements. In small launches, code may
 * take such an index as signed (simd/analysis/transfer.c), or several a constant apart as one. */
static uint64_t wrap_of(struct bounds *b, LLVMValueRef instruction) {
    LLVMValueRef address = LLVMIsALoadInst(instruction)    ? LLVMGetOperand(instruction, 0)
                           : LLVMIsAStoreInst(instruction) ? LLVMGetOperand(instruction, 1)
                                                           : NULL;
    if (!address) return 0;
    struct place place = bounds_steps(b->unit, address);
    if (!place.index || !LLVMIsAZExtInst(place.index) || !is_start(place.root)) return 0;
    if (place.constant < 0 || place.scale <= 0) return 0;
    LLVMTypeRef from = LLVMTypeOf(LLVMGetOperand(place.index, 0));
    return LLVMGetTypeKind(from) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(from) == 32
               ? (uint64_t)place.scale << 32
               : 0;
}

static LLVMValueRef site(struct bounds *b, const struct array_object *object,
                         const struct tested_access *access, int64_t low, uint32_t left) {
    LLVMMetadataRef location = lines_of_user(access->instruction);
    struct unit *unit = b->unit;
    LLVMValueRef fields[] = {file_of(b, location),
                             name_of(b, object->variable),
                             bounds_i64(b, (uint64_t)(access->offset - low)),
                             bounds_i64(b, access->bytes),
                             bounds_i64(b, wrap_of(b, access->instruction)),
                             constant_i32(unit, location ? LLVMDILocationGetLine(location) : 0),
                             constant_i32(unit, object->kind),
                             constant_i32(unit, object->slot),
                             constant_i32(unit, (uint32_t)element_bytes(b, object->variable)),
                             constant_i32(unit, access->writes),
                             constant_i32(unit, left)};
    return LLVMConstStructInContext(unit->context, fields, sizeof fields / sizeof *fields, false);
}

LLVMValueRef bounds_sites(struct bounds *b, const struct array_object *object,
                          const struct tested_access *accesses, int64_t low) {
    unsigned count = 0, i = 0;
    for (const struct tested_access *a = accesses; a; a = a->next) count++;
    LLVMValueRef *list = arena_alloc(&b->arena, count * sizeof *list);
    if (!list) return LLVMConstNull(type_pointer(b->unit));
    for (const struct tested_access *a = accesses; a; a = a->next, i++)
        list[i] = site(b, object, a, low, count - 1 - i);
    return constant_in_memory(b->unit, LLVMConstArray2(LLVMTypeOf(list[0]), list, count));
}
