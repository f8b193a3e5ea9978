/* Copies of small objects, as clang emits for assignments of vectors and structs, become loads and stores of
 * their parts. LLVM keeps those in registers, whatever their address spaces, and its code generator joins
 * neighbouring ones to accesses of 16 bytes if the alignment allows it.
 *
 * Requires: nothing. Maintains: what the code does. All parts are loaded before the first is stored. */
#include "compiler/ptx/ptx.h"

#include <string.h>

#define MOST_PARTS 64

struct parts {
    struct part {
        LLVMTypeRef type;
        uint64_t offset;
    } list[MOST_PARTS];
    int count;
    uint64_t end;     /* of the last part; they follow one another without gaps */
    uint64_t element; /* the alignment of all parts */
    bool good;
};

static void append(struct unit *unit, struct parts *parts, LLVMTypeRef type) {
    if (parts->count == MOST_PARTS) {
        parts->good = false;
        return;
    }
    parts->list[parts->count++] = (struct part){type, parts->end};
    parts->end += LLVMABISizeOfType(unit->layout, type);
}

/* Words up to `end`, as wide as their offsets and `align` allow. */
static void append_words(struct unit *unit, struct parts *parts, uint64_t align, uint64_t end) {
    while (parts->good && parts->end < end) {
        unsigned bytes = 4;
        while (bytes > 1 && (align % bytes || end - parts->end < bytes || parts->end % bytes)) bytes /= 2;
        append(unit, parts, LLVMIntTypeInContext(unit->context, 8 * bytes));
    }
}

/* The bytes between two members may belong to another member of a union. */
static void add_part(struct unit *unit, struct parts *parts, LLVMTypeRef type, uint64_t offset) {
    append_words(unit, parts, parts->element, offset);
    if (parts->end != offset) parts->good = false;
    if (parts->good) append(unit, parts, type);
}

static void take_apart(struct unit *unit, struct parts *parts, LLVMTypeRef type, uint64_t offset) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type) && parts->good; i++)
            take_apart(unit, parts, LLVMStructGetTypeAtIndex(type, i),
                       offset + LLVMOffsetOfElement(unit->layout, type, i));
        break;
    case LLVMArrayTypeKind: {
        LLVMTypeRef element = LLVMGetElementType(type);
        uint64_t size = LLVMABISizeOfType(unit->layout, element), count = LLVMGetArrayLength2(type);
        if (count > MOST_PARTS) parts->good = false;
        for (uint64_t i = 0; i < count && parts->good; i++)
            take_apart(unit, parts, element, offset + i * size);
        break;
    }
    case LLVMIntegerTypeKind:
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
    case LLVMPointerTypeKind:
        add_part(unit, parts, type, offset);
        break;
    default:
        parts->good = false;
    }
}

/* The parts of the object at `pointer`, if it has `size` bytes. */
static bool parts_of_type(struct unit *unit, LLVMValueRef pointer, uint64_t size, struct parts *parts) {
    LLVMTypeRef type = alignment_type_at(pointer);
    if (!type || !LLVMTypeIsSized(type) || LLVMABISizeOfType(unit->layout, type) != size) return false;
    *parts = (struct parts){.good = true, .element = alignment_of_element(unit, type)};
    take_apart(unit, parts, type, 0);
    append_words(unit, parts, parts->element, size);
    return parts->good;
}

static bool parts_of_words(struct unit *unit, uint64_t align, uint64_t size, struct parts *parts) {
    *parts = (struct parts){.good = true};
    append_words(unit, parts, align, size);
    return parts->good;
}

static uint64_t alignment_of(LLVMValueRef call, unsigned argument) {
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAttributeRef attribute = LLVMGetCallSiteEnumAttribute(call, argument + 1, kind);
    return attribute ? LLVMGetEnumAttributeValue(attribute) : 1;
}

static unsigned alignment_at(uint64_t align, uint64_t offset) {
    while (offset % align) align /= 2;
    return (unsigned)align;
}

static LLVMValueRef address_of(struct unit *unit, LLVMValueRef base, uint64_t offset) {
    LLVMValueRef index = LLVMConstInt(type_i64(unit), offset, false);
    return LLVMBuildInBoundsGEP2(unit->builder, LLVMInt8TypeInContext(unit->context), base, &index, 1, "");
}

static bool is_copy(LLVMValueRef call) {
    const char *name = called_name(call);
    return strncmp(name, "llvm.memcpy.", 12) == 0 || strncmp(name, "llvm.memmove.", 13) == 0;
}

static void expand(struct unit *unit, LLVMValueRef call) {
    uint64_t size, is_volatile;
    struct parts parts;
    LLVMValueRef to = LLVMGetOperand(call, 0), from = LLVMGetOperand(call, 1), values[MOST_PARTS];
    if (!is_constant_integer(LLVMGetOperand(call, 2), &size) || size == 0 || size > 8 * MOST_PARTS) return;
    if (!is_constant_integer(LLVMGetOperand(call, 3), &is_volatile) || is_volatile) return;
    uint64_t to_align = alignment_of(call, 0), from_align = alignment_of(call, 1);
    if (!parts_of_type(unit, from, size, &parts) && !parts_of_type(unit, to, size, &parts) &&
        !parts_of_words(unit, alignment_of_copy(unit, call), size, &parts))
        return;
    LLVMPositionBuilderBefore(unit->builder, call);
    for (int i = 0; i < parts.count; i++) {
        values[i] = LLVMBuildLoad2(unit->builder, parts.list[i].type,
                                   address_of(unit, from, parts.list[i].offset), "");
        LLVMSetAlignment(values[i], alignment_at(from_align, parts.list[i].offset));
    }
    for (int i = 0; i < parts.count; i++) {
        LLVMValueRef store =
            LLVMBuildStore(unit->builder, values[i], address_of(unit, to, parts.list[i].offset));
        LLVMSetAlignment(store, alignment_at(to_align, parts.list[i].offset));
    }
    LLVMInstructionEraseFromParent(call);
}

smelt_status pass_ptx_memory(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (is_copy(instruction)) expand(unit, instruction);
        }
    }
    return SMELT_OK;
}
