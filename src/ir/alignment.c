/* Vectors may lie less aligned than their types say, down to the alignment of their elements: kernels cast
 * pointers to elements into pointers to vectors, and Metal's hardware takes them.
 *
 * Vectors of the prelude are structs, so that an access moves one element, and a copy several. What clang
 * claims of their alignment becomes what is true: that of the elements. Where an address is known LLVM finds
 * out the rest (infer-alignment). CPUs take any address, in instructions of 16 bytes too when they are told.
 * On GPUs the claims of loads and stores stay until ptx/align.c settles them.
 *
 * Maintains: what the code does. */
#include "ir/pass.h"

#include <string.h>

#define WIDEST_ELEMENT 8 /* bytes */

static unsigned smaller(unsigned a, unsigned b) {
    return a < b ? a : b;
}

static unsigned larger(unsigned a, unsigned b) {
    return a > b ? a : b;
}

unsigned element_alignment(struct unit *unit, LLVMTypeRef type) {
    unsigned least = WIDEST_ELEMENT;
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            least = smaller(least, element_alignment(unit, LLVMStructGetTypeAtIndex(type, i)));
        return least;
    case LLVMArrayTypeKind:
    case LLVMVectorTypeKind:
        return element_alignment(unit, LLVMGetElementType(type));
    default:
        return smaller(least, LLVMABIAlignmentOfType(unit->layout, type));
    }
}

LLVMTypeRef type_at_address(LLVMValueRef pointer) {
    if (LLVMIsAAllocaInst(pointer)) return LLVMGetAllocatedType(pointer);
    if (LLVMIsAGlobalVariable(pointer)) return LLVMGlobalGetValueType(pointer);
    if (LLVMIsAAddrSpaceCastInst(pointer)) return type_at_address(LLVMGetOperand(pointer, 0));
    if (LLVMIsAGetElementPtrInst(pointer) && LLVMGetNumIndices(pointer) == 1)
        return LLVMGetGEPSourceElementType(pointer);
    return NULL;
}

/* ---- What references and `this` promise. */

/* Objects that are passed by value lie where the caller put them. */
static bool is_object(LLVMAttributeRef (*get)(LLVMValueRef, LLVMAttributeIndex, unsigned), LLVMValueRef of,
                      unsigned index) {
    return get(of, index, LLVMGetEnumAttributeKindForName("sret", 4)) ||
           get(of, index, LLVMGetEnumAttributeKindForName("byval", 5));
}

static void forget_parameters(LLVMValueRef function) {
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
    for (unsigned i = 0; i <= LLVMCountParams(function); i++)
        if (!is_object(LLVMGetEnumAttributeAtIndex, function, i))
            LLVMRemoveEnumAttributeAtIndex(function, i, kind);
}

static bool is_memory_call(LLVMValueRef instruction) {
    const char *name = called_name(instruction);
    return strncmp(name, "llvm.memcpy.", 12) == 0 || strncmp(name, "llvm.memmove.", 13) == 0 ||
           strncmp(name, "llvm.memset.", 12) == 0;
}

static void forget_arguments(LLVMValueRef call) {
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
    for (unsigned i = 0; i <= LLVMGetNumArgOperands(call); i++)
        if (!is_object(LLVMGetCallSiteEnumAttribute, call, i)) LLVMRemoveCallSiteEnumAttribute(call, i, kind);
}

/* ---- Loads and stores. */

static void settle_access(struct unit *unit, LLVMValueRef access, LLVMTypeRef type) {
    if (LLVMGetOrdering(access) != LLVMAtomicOrderingNotAtomic) return;
    unsigned element = element_alignment(unit, type);
    if (LLVMGetAlignment(access) > element) LLVMSetAlignment(access, element);
}

/* ---- Copies and fills. */

static unsigned claimed_by(LLVMValueRef call, unsigned argument) {
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAttributeRef attribute = LLVMGetCallSiteEnumAttribute(call, argument + 1, kind);
    return attribute ? (unsigned)LLVMGetEnumAttributeValue(attribute) : 1;
}

static void set_claim(struct unit *unit, LLVMValueRef call, unsigned argument, unsigned bytes) {
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMRemoveCallSiteEnumAttribute(call, argument + 1, kind);
    LLVMAddCallSiteAttribute(call, argument + 1, LLVMCreateEnumAttribute(unit->context, kind, bytes));
}

/* What a vector that claims so much has for elements at least: four of them, or two of eight bytes. */
static unsigned least_element(unsigned claimed) {
    return claimed >= 16 ? 4 : claimed >= 8 ? 2 : 1;
}

/* Of the objects that are copied or filled, as far as a type is known on either side. */
unsigned copied_alignment(struct unit *unit, LLVMValueRef call) {
    bool copy = strncmp(called_name(call), "llvm.memset.", 12) != 0;
    unsigned known = least_element(claimed_by(call, 0));
    for (unsigned i = 0; i <= copy; i++) {
        LLVMTypeRef type = type_at_address(LLVMGetOperand(call, i));
        if (type && LLVMTypeIsSized(type)) known = larger(known, element_alignment(unit, type));
    }
    return known;
}

static void settle_copy(struct unit *unit, LLVMValueRef call) {
    bool copy = strncmp(called_name(call), "llvm.memset.", 12) != 0;
    unsigned known = copied_alignment(unit, call);
    for (unsigned i = 0; i <= copy; i++) {
        bool object = LLVMIsAAllocaInst(LLVMGetOperand(call, i)) != NULL;
        if (!object && claimed_by(call, i) > known) set_claim(unit, call, i, known);
    }
}

/* ---- The pass. */

static void settle_call(struct unit *unit, LLVMValueRef call) {
    if (!is_memory_call(call))
        forget_arguments(call);
    else if (unit->engine != ENGINE_PTX)
        settle_copy(unit, call);
}

static void settle(struct unit *unit, LLVMValueRef instruction) {
    if (LLVMIsACallInst(instruction))
        settle_call(unit, instruction);
    else if (unit->engine == ENGINE_PTX)
        return;
    else if (LLVMIsALoadInst(instruction))
        settle_access(unit, instruction, LLVMTypeOf(instruction));
    else if (LLVMIsAStoreInst(instruction))
        settle_access(unit, instruction, LLVMTypeOf(LLVMGetOperand(instruction, 0)));
}

smelt_status pass_alignment(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        forget_parameters(f);
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) settle(unit, instruction);
    }
    return SMELT_OK;
}
