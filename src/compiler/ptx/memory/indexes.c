/* Works around an error of LLVM 19's load-store-vectorizer. Of two addresses with the same base whose last
 * indexes are extended integers, it takes the difference of the indexes times the first one's element size,
 * although the second one may index larger elements: bytes[i + 1] and vectors[i], of four bytes, would be
 * neighbours. (LLVM's issue 186327, mended in 2026.)
 *
 * Where elements of several sizes are indexed from one base, all but the smallest ones get an offset in
 * bytes, which is a product and no extended integer.
 *
 * Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

static bool is_extension(LLVMValueRef value) {
    return LLVMIsAZExtInst(value) || LLVMIsASExtInst(value);
}

static LLVMValueRef last_index(LLVMValueRef address) {
    return LLVMGetOperand(address, (unsigned)LLVMGetNumOperands(address) - 1);
}

static bool is_indexed(LLVMValueRef value) {
    return LLVMIsAGetElementPtrInst(value) && LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind &&
           is_extension(last_index(value));
}

/* The type that an index steps over, and what it steps into. */
static LLVMTypeRef stepped_type(LLVMValueRef address, int index) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
    for (int i = 2; i <= index; i++) {
        bool structure = LLVMGetTypeKind(type) == LLVMStructTypeKind;
        LLVMValueRef at = LLVMGetOperand(address, (unsigned)i);
        type = structure ? LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(at))
                         : LLVMGetElementType(type);
    }
    return type;
}

/* Bytes per step of the last index. Only a constant can be the index of a structure's member. */
static uint64_t element_bytes(struct unit *unit, LLVMValueRef address) {
    return LLVMABISizeOfType(unit->layout, stepped_type(address, LLVMGetNumOperands(address) - 1));
}

/* Of all addresses with this base that end in an extended index; 0: there are none. */
static uint64_t smallest_element(struct unit *unit, LLVMValueRef base) {
    uint64_t smallest = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(base); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!is_indexed(user) || LLVMGetOperand(user, 0) != base) continue;
        uint64_t bytes = element_bytes(unit, user);
        if (!smallest || bytes < smallest) smallest = bytes;
    }
    return smallest;
}

/* What index number `index` adds to the address. */
static LLVMValueRef offset_of(struct unit *unit, LLVMValueRef address, int index, LLVMTypeRef type) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef at = LLVMGetOperand(address, (unsigned)index);
    if (index > 1) {
        LLVMTypeRef around = stepped_type(address, index - 1);
        if (LLVMGetTypeKind(around) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(at);
            return LLVMConstInt(type, LLVMOffsetOfElement(unit->layout, around, member), false);
        }
    }
    uint64_t bytes = LLVMABISizeOfType(unit->layout, stepped_type(address, index));
    at = LLVMBuildIntCast2(b, at, type, true, "");
    return LLVMBuildMul(b, at, LLVMConstInt(type, bytes, false), "");
}

static void use_bytes(struct unit *unit, LLVMValueRef address) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(last_index(address)), byte = LLVMInt8TypeInContext(unit->context);
    LLVMValueRef offset = LLVMConstNull(type);
    LLVMPositionBuilderBefore(b, address);
    for (int i = 1; i < LLVMGetNumOperands(address); i++)
        offset = LLVMBuildAdd(b, offset, offset_of(unit, address, i, type), "");
    LLVMValueRef changed = LLVMBuildGEP2(b, byte, LLVMGetOperand(address, 0), &offset, 1, "");
    LLVMSetIsInBounds(changed, LLVMIsInBounds(address));
    LLVMReplaceAllUsesWith(address, changed);
    LLVMInstructionEraseFromParent(address);
}

/* Long threads have thousands of addresses of a few bases, whose smallest elements are remembered. */
#define REMEMBERED 64
struct base {
    LLVMValueRef value;
    uint64_t smallest;
};

static uint64_t remember_smallest(struct unit *unit, struct base *bases, LLVMValueRef value) {
    struct base *base = &bases[(uintptr_t)value / sizeof(void *) % REMEMBERED];
    if (base->value != value) *base = (struct base){value, smallest_element(unit, value)};
    return base->smallest;
}

void ptx_part_indexes(struct unit *unit) {
    struct base bases[REMEMBERED] = {{NULL, 0}};
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!is_indexed(instruction)) continue;
        uint64_t smallest = remember_smallest(unit, bases, LLVMGetOperand(instruction, 0));
        if (element_bytes(unit, instruction) > smallest) use_bytes(unit, instruction);
    }
}
