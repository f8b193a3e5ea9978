/* Loads from small tables: an array of the kernel's own, indexed by a number that is below 16 or so, like the
 * levels of a 4-bit weight. Vectors of the whole table are permuted by the indices, which takes three or four
 * instructions; a gather takes one load for each lane.
 *
 * Reads the table where lanes are off, too, and all of it: it is a variable of known size. */
#include "compiler/simd/simd.h"

struct table {
    LLVMValueRef base;    /* the address of element 0, uniform */
    LLVMValueRef index;   /* an integer of the thread, … */
    unsigned elements;    /* … which is below this */
    int64_t element_size; /* bytes: 4 or 1 */
};

/* Bytes of the variable from `constant` on; 0: it is no variable of known size. */
static int64_t bytes_behind(struct simd *s, LLVMValueRef root, int64_t constant) {
    if (!LLVMIsAGlobalVariable(root)) return 0;
    int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, LLVMGlobalGetValueType(root));
    return constant < 0 || constant > size ? 0 : size - constant;
}

/* The constant offset of an address from the variable that it lies in. */
static LLVMValueRef variable_of(struct simd *s, LLVMValueRef address, int64_t *bytes) {
    LLVMTypeRef type = NULL;
    *bytes = 0;
    while (LLVMIsAConstantExpr(address) || LLVMIsAGetElementPtrInst(address)) {
        bool expression = LLVMIsAConstantExpr(address) != NULL;
        LLVMOpcode opcode = expression ? LLVMGetConstOpcode(address) : LLVMGetInstructionOpcode(address);
        if (opcode != LLVMGetElementPtr) return NULL;
        type = LLVMGetGEPSourceElementType(address);
        for (int i = 1; i < LLVMGetNumOperands(address); i++) {
            LLVMValueRef index = LLVMGetOperand(address, (unsigned)i);
            if (!LLVMIsAConstantInt(index)) return NULL;
            int64_t number = LLVMConstIntGetSExtValue(index);
            if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) return NULL;
            if (i > 1) type = LLVMGetElementType(type);
            *bytes += number * (int64_t)LLVMABISizeOfType(s->unit->layout, type);
        }
        address = LLVMGetOperand(address, 0);
    }
    return address;
}

/* As many elements as permutes of the target reach. */
static unsigned most_elements(const struct simd *s, int64_t element_size) {
    if (element_size == 1) return 16;
    return 2 * (unsigned)s->chunk_lanes;
}

static bool find_table(struct simd *s, LLVMValueRef load, struct table *t) {
    LLVMValueRef address = LLVMGetOperand(load, 0);
    int64_t constant;
    t->element_size = (int64_t)LLVMABISizeOfType(s->unit->layout, LLVMTypeOf(load));
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(load));
    bool suits = kind == LLVMFloatTypeKind;
    if (kind == LLVMIntegerTypeKind)
        suits = LLVMGetIntTypeWidth(LLVMTypeOf(load)) == 32 || LLVMGetIntTypeWidth(LLVMTypeOf(load)) == 8;
    if (s->vector_bits < 256 || s->chunk_lanes != s->vector_bits / 32 || !suits || LLVMGetVolatile(load) ||
        LLVMGetOrdering(load) != LLVMAtomicOrderingNotAtomic || !LLVMIsAGetElementPtrInst(address))
        return false;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
    int last = LLVMGetNumOperands(address) - 1;
    for (int i = 1; i < last; i++) { /* [N x T]: 0, index */
        LLVMValueRef zero = LLVMGetOperand(address, (unsigned)i);
        if (!LLVMIsAConstantInt(zero) || LLVMConstIntGetSExtValue(zero)) return false;
        if (LLVMGetTypeKind(type) != LLVMArrayTypeKind) return false;
        type = LLVMGetElementType(type);
    }
    if ((int64_t)LLVMABISizeOfType(s->unit->layout, type) != t->element_size) return false;
    t->base = LLVMGetOperand(address, 0);
    t->index = LLVMGetOperand(address, (unsigned)last);
    LLVMValueRef root = variable_of(s, t->base, &constant);
    if (!root) return false;
    int64_t bytes = bytes_behind(s, root, constant);
    struct range range = range_unsigned(s, t->index);
    if (range.high >= most_elements(s, t->element_size)) return false;
    t->elements = (unsigned)range.high + 1;
    int64_t vector = t->element_size == 1 ? 16 : s->chunk_lanes * t->element_size;
    int64_t read = ((int64_t)t->elements * t->element_size + vector - 1) / vector * vector;
    return read <= bytes;
}

/* The indices of a chunk as 32-bit numbers. */
static LLVMValueRef indices_of(struct simd *s, LLVMValueRef index, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef words = chunk_type(s, type_i32(s->unit));
    bool extended = LLVMIsAInstruction(index) && LLVMGetInstructionOpcode(index) == LLVMZExt;
    if (extended && LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(index, 0))) <= 32)
        index = LLVMGetOperand(index, 0);
    LLVMValueRef own = chunk_of(s, index, chunk);
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(index));
    return width > 32 ? LLVMBuildTrunc(b, own, words, "") : LLVMBuildZExtOrBitCast(b, own, words, "");
}

static LLVMValueRef table_vector(struct simd *s, const struct table *t, LLVMTypeRef type, int number) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef at = LLVMConstInt(type_i64(s->unit), (uint64_t)number, false);
    LLVMValueRef base = scalar_of(s, t->base);
    LLVMValueRef vector = LLVMBuildLoad2(b, type, LLVMBuildGEP2(b, type, base, &at, 1, ""), "");
    LLVMSetAlignment(vector, (unsigned)t->element_size);
    return vector;
}

static LLVMValueRef look_up_words(struct simd *s, const struct table *t, LLVMValueRef indices) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef words = LLVMTypeOf(indices);
    bool two = t->elements > (unsigned)s->chunk_lanes;
    LLVMValueRef low = table_vector(s, t, words, 0), high = two ? table_vector(s, t, words, 1) : NULL;
    if (s->vector_bits == 512) {
        LLVMValueRef operands[3] = {low, indices, two ? high : low};
        return simd_intrinsic(s, "llvm.x86.avx512.vpermi2var.d.512", NULL, 0, operands, 3);
    }
    LLVMValueRef first[2] = {low, indices}, second[2] = {high, indices};
    LLVMValueRef result = simd_intrinsic(s, "llvm.x86.avx2.permd", NULL, 0, first, 2);
    if (!two) return result;
    /* Bit 3 as the sign, by which a blend chooses. */
    LLVMValueRef sign = LLVMBuildShl(b, indices, chunk_splat(s, simd_i32(s, 28)), "");
    LLVMValueRef upper = LLVMBuildICmp(b, LLVMIntSLT, sign, LLVMConstNull(words), "");
    LLVMValueRef other = simd_intrinsic(s, "llvm.x86.avx2.permd", NULL, 0, second, 2);
    return LLVMBuildSelect(b, upper, other, result, "");
}

static LLVMValueRef look_up_bytes(struct simd *s, const struct table *t, LLVMValueRef indices) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef byte = LLVMInt8TypeInContext(s->unit->context), bytes = LLVMVectorType(byte, 16);
    int64_t places[16];
    LLVMValueRef narrow = LLVMBuildTrunc(b, indices, chunk_type(s, byte), "");
    for (int i = 0; i < 16; i++) places[i] = i % s->chunk_lanes;
    LLVMValueRef all = lanes_constant(s, type_i32(s->unit), places, 16);
    LLVMValueRef operands[2] = {
        table_vector(s, t, bytes, 0),
        LLVMBuildShuffleVector(b, narrow, LLVMGetPoison(LLVMTypeOf(narrow)), all, "")};
    LLVMValueRef result = simd_intrinsic(s, "llvm.x86.ssse3.pshuf.b.128", NULL, 0, operands, 2);
    LLVMValueRef own = lanes_constant(s, type_i32(s->unit), places, s->chunk_lanes);
    return LLVMBuildShuffleVector(b, result, LLVMGetPoison(bytes), own, "");
}

bool access_look_up(struct simd *s, LLVMValueRef load, int chunk, LLVMValueRef *result) {
    struct table t;
    if (!find_table(s, load, &t)) return false;
    LLVMValueRef indices = indices_of(s, t.index, chunk);
    *result = t.element_size == 1 ? look_up_bytes(s, &t, indices) : look_up_words(s, &t, indices);
    LLVMTypeRef type = chunk_type(s, LLVMTypeOf(load));
    *result = LLVMBuildBitCast(s->unit->builder, *result, type, "");
    return true;
}
