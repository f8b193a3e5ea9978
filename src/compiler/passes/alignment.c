/* Vectors may be less aligned than their types claim, down to the alignment of their elements: kernels cast
 * pointers to elements into pointers to vectors, which Metal's hardware accepts.
 *
 * Vectors of the prelude are structs, so an access moves one element and a copy moves several. Their
 * alignment, as clang claims it, is reduced to that of the elements. Where an address is known, LLVM infers
 * the actual alignment (infer-alignment). CPUs accept any address, also in 16-byte instructions if the code
 * says so. On GPUs the claims stay until compiler/ptx/memory/align.c resolves them.
 *
 * Maintains: what the code does. */
#include "compiler/pass.h"

#include <string.h>

#define WIDEST_ELEMENT 8 /* bytes */

static unsigned smaller(unsigned a, unsigned b) {
    return a < b ? a : b;
}

static unsigned larger(unsigned a, unsigned b) {
    return a > b ? a : b;
}

unsigned alignment_of_element(struct unit *unit, LLVMTypeRef type) {
    unsigned least = WIDEST_ELEMENT;
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            least = smaller(least, alignment_of_element(unit, LLVMStructGetTypeAtIndex(type, i)));
        return least;
    case LLVMArrayTypeKind:
    case LLVMVectorTypeKind:
        return alignment_of_element(unit, LLVMGetElementType(type));
    default:
        return smaller(least, LLVMABIAlignmentOfType(unit->layout, type));
    }
}

LLVMTypeRef alignment_type_at(LLVMValueRef pointer) {
    if (LLVMIsAAllocaInst(pointer)) return LLVMGetAllocatedType(pointer);
    if (LLVMIsAGlobalVariable(pointer)) return LLVMGlobalGetValueType(pointer);
    if (LLVMIsAAddrSpaceCastInst(pointer)) return alignment_type_at(LLVMGetOperand(pointer, 0));
    if (LLVMIsAGetElementPtrInst(pointer) && LLVMGetNumIndices(pointer) == 1)
        return LLVMGetGEPSourceElementType(pointer);
    return NULL;
}

static bool is_memory_call(LLVMValueRef instruction) {
    const char *name = called_name(instruction);
    return strncmp(name, "llvm.memcpy.", 12) == 0 || strncmp(name, "llvm.memmove.", 13) == 0 ||
           strncmp(name, "llvm.memset.", 12) == 0;
}

/* ---- Attributes of references and `this`. That words can be loaded from there is useful; the rest is not
 * true. */

static LLVMAttributeRef align_of(struct unit *unit, unsigned bytes) {
    return LLVMCreateEnumAttribute(unit->context, LLVMGetEnumAttributeKindForName("align", 5), bytes);
}

/* Objects passed by value lie where the caller put them. */
static bool promises_too_much(LLVMAttributeRef (*get)(LLVMValueRef, LLVMAttributeIndex, unsigned),
                              LLVMValueRef of, unsigned index) {
    LLVMAttributeRef align = get(of, index, LLVMGetEnumAttributeKindForName("align", 5));
    return align && LLVMGetEnumAttributeValue(align) > WIDEST_ELEMENT &&
           !get(of, index, LLVMGetEnumAttributeKindForName("sret", 4)) &&
           !get(of, index, LLVMGetEnumAttributeKindForName("byval", 5));
}

static void settle_parameters(struct unit *unit, LLVMValueRef function) {
    for (unsigned i = 0; i <= LLVMCountParams(function); i++)
        if (promises_too_much(LLVMGetEnumAttributeAtIndex, function, i)) {
            LLVMRemoveEnumAttributeAtIndex(function, i, LLVMGetEnumAttributeKindForName("align", 5));
            LLVMAddAttributeAtIndex(function, i, align_of(unit, WIDEST_ELEMENT));
        }
}

static void settle_arguments(struct unit *unit, LLVMValueRef call) {
    for (unsigned i = 0; i <= LLVMGetNumArgOperands(call); i++)
        if (promises_too_much(LLVMGetCallSiteEnumAttribute, call, i)) {
            LLVMRemoveCallSiteEnumAttribute(call, i, LLVMGetEnumAttributeKindForName("align", 5));
            LLVMAddCallSiteAttribute(call, i, align_of(unit, WIDEST_ELEMENT));
        }
}

/* ---- Loads and stores. */

static void settle_access(struct unit *unit, LLVMValueRef access, LLVMTypeRef type) {
    if (LLVMGetOrdering(access) != LLVMAtomicOrderingNotAtomic) return;
    unsigned element = alignment_of_element(unit, type);
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
    LLVMAddCallSiteAttribute(call, argument + 1, align_of(unit, bytes));
}

/* The least alignment of the elements of a vector that claims this much: it has at least four elements, or
 * two of eight bytes. */
static unsigned least_element(unsigned claimed) {
    return claimed >= 16 ? 4 : claimed >= 8 ? 2 : 1;
}

/* The alignment of the copied or filled objects, as far as a type is known on either side. */
unsigned alignment_of_copy(struct unit *unit, LLVMValueRef call) {
    bool copy = strncmp(called_name(call), "llvm.memset.", 12) != 0;
    unsigned known = least_element(claimed_by(call, 0));
    for (unsigned i = 0; i <= copy; i++) {
        LLVMTypeRef type = alignment_type_at(LLVMGetOperand(call, i));
        if (type && LLVMTypeIsSized(type)) known = larger(known, alignment_of_element(unit, type));
    }
    return known;
}

void alignment_settle_copy(struct unit *unit, LLVMValueRef call) {
    if (!is_memory_call(call)) return;
    bool copy = strncmp(called_name(call), "llvm.memset.", 12) != 0;
    unsigned known = alignment_of_copy(unit, call);
    for (unsigned i = 0; i <= copy; i++) {
        bool object = LLVMIsAAllocaInst(LLVMGetOperand(call, i)) != NULL;
        if (!object && claimed_by(call, i) > known) set_claim(unit, call, i, known);
    }
}

/* ---- The pass. */

static void settle(struct unit *unit, LLVMValueRef instruction) {
    if (is_memory_call(instruction))
        alignment_settle_copy(unit, instruction);
    else if (LLVMIsACallInst(instruction))
        settle_arguments(unit, instruction);
    else if (LLVMIsALoadInst(instruction))
        settle_access(unit, instruction, LLVMTypeOf(instruction));
    else if (LLVMIsAStoreInst(instruction))
        settle_access(unit, instruction, LLVMTypeOf(LLVMGetOperand(instruction, 0)));
}

smelt_status pass_alignment(struct unit *unit) {
    if (unit->target->claims_alignment) return SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        settle_parameters(unit, f);
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) settle(unit, instruction);
    }
    return SMELT_OK;
}

/* ---- Null. */

/* LLVM-C returns the alignment as 32 bits, of which 2^32 leaves none: passes divide by it. */
smelt_status pass_null_alignment(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        LLVMTypeRef type = LLVMIsALoadInst(i)    ? LLVMTypeOf(i)
                           : LLVMIsAStoreInst(i) ? LLVMTypeOf(LLVMGetOperand(i, 0))
                                                 : NULL;
        if (type && !LLVMGetAlignment(i)) LLVMSetAlignment(i, alignment_of_element(unit, type));
    }
    return SMELT_OK;
}
