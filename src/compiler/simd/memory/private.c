/* Private arrays: each lane has its own copy of an alloca.
 *
 * If all accesses have elements of one size, the copies are interleaved: element e of lane l is at (e × lanes
 * + l) × size, so that lanes that read the same index read neighbours. Otherwise, or if an address is used
 * for anything except loads and stores, the copies follow one another. */
#include "compiler/simd/memory/access.h"
#include "compiler/analysis/zeros.h"

#include <string.h>

static LLVMValueRef alloca_of(LLVMValueRef address) {
    while (LLVMIsAGetElementPtrInst(address)) address = LLVMGetOperand(address, 0);
    return LLVMIsAAllocaInst(address) ? address : NULL;
}

bool private_is(struct simd *s, LLVMValueRef address) {
    LLVMValueRef alloca = alloca_of(address);
    return alloca && value_of(s, alloca)->element > 0;
}

/* ---- Layout. */

/* The size of an access that an interleaved array supports; otherwise 0. */
static int access_bytes(struct simd *s, LLVMValueRef user, LLVMValueRef address) {
    bool load = LLVMIsALoadInst(user) != NULL;
    if (!load && !(LLVMIsAStoreInst(user) && LLVMGetOperand(user, 1) == address)) return 0;
    if (!load && LLVMGetOperand(user, 0) == address) return 0;
    if (LLVMGetVolatile(user) || LLVMGetOrdering(user) != LLVMAtomicOrderingNotAtomic) return 0;
    LLVMTypeRef type = load ? LLVMTypeOf(user) : LLVMTypeOf(LLVMGetOperand(user, 0));
    uint64_t bytes = LLVMABISizeOfType(s->unit->layout, type);
    bool power = bytes && (bytes & (bytes - 1)) == 0 && bytes <= 8;
    return power && LLVMGetAlignment(user) >= bytes && LLVMStoreSizeOfType(s->unit->layout, type) == bytes
               ? (int)bytes
               : 0;
}

struct step {
    LLVMValueRef index; /* NULL: a constant number of bytes */
    int64_t bytes;      /* per step of the index, or in total */
};

/* What a getelementptr adds to its address. Returns the number of steps, at most `limit`; -1: there are more.
 */
static int steps_of(struct simd *s, LLVMValueRef gep, struct step *steps, int limit) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    int count = 0;
    for (int i = 1; i < LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, (unsigned)i);
        struct step step = {.index = index};
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned field = (unsigned)LLVMConstIntGetZExtValue(index);
            step = (struct step){NULL, (int64_t)LLVMOffsetOfElement(s->unit->layout, type, field)};
            type = LLVMStructGetTypeAtIndex(type, field);
        } else {
            if (i > 1) type = LLVMGetElementType(type);
            step.bytes = (int64_t)LLVMABISizeOfType(s->unit->layout, type);
            if (LLVMIsAConstantInt(index))
                step = (struct step){NULL, step.bytes * LLVMConstIntGetSExtValue(index)};
        }
        if (count == limit) return -1;
        steps[count++] = step;
    }
    return count;
}

#define MAX_STEPS 16

static unsigned nothing_known(void *context, LLVMValueRef source) {
    (void)context;
    (void)source;
    return 0;
}

/* Bits that what the step adds may have, the lowest among them. An index of bytes may be a multiple of more.
 */
static int64_t bits_of_step(const struct step *step) {
    const struct zeros_rules rules = {.of_source = nothing_known};
    unsigned zeros = step->index ? zeros_of_value(&rules, step->index) : 0;
    return (int64_t)((uint64_t)step->bytes << zeros);
}

static bool is_ignored(LLVMValueRef user) {
    const char *name = called_name(user);
    return strncmp(name, "llvm.lifetime.", 14) == 0 || strncmp(name, "llvm.dbg.", 9) == 0;
}

/* Whether all uses of the address suit interleaved elements of *bytes (0: not known yet). */
static bool uses_suit(struct simd *s, LLVMValueRef address, int *bytes, int64_t *step_bits) {
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (is_ignored(user)) continue;
        if (LLVMIsAGetElementPtrInst(user)) {
            struct step steps[MAX_STEPS];
            int count = steps_of(s, user, steps, MAX_STEPS);
            if (count < 0 || LLVMGetOperand(user, 0) != address) return false;
            for (int i = 0; i < count; i++) *step_bits |= bits_of_step(&steps[i]);
            if (!uses_suit(s, user, bytes, step_bits)) return false;
            continue;
        }
        int own = access_bytes(s, user, address);
        if (!own || (*bytes && *bytes != own)) return false;
        *bytes = own;
    }
    return true;
}

void private_find_layouts(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!LLVMIsAAllocaInst(instruction)) continue;
        int bytes = 0;
        int64_t step_bits = 0;
        /* In a gang of one lane per chunk, neighbours of one array stay neighbours. */
        bool suits = s->chunk_lanes > 1 && uses_suit(s, instruction, &bytes, &step_bits) && bytes;
        value_of(s, instruction)->element = suits && step_bits % bytes == 0 ? bytes : 0;
    }
}

static uint64_t bytes_of(struct simd *s, LLVMValueRef alloca) {
    uint64_t count = 1;
    (void)is_constant_integer(LLVMGetOperand(alloca, 0), &count);
    uint64_t bytes = count * LLVMABISizeOfType(s->unit->layout, LLVMGetAllocatedType(alloca));
    return (bytes + 15) / 16 * 16;
}

int private_shape(struct simd *s, LLVMValueRef alloca) {
    return value_of(s, alloca)->element ? SHAPE_VARYING : shape_stride(s, (int64_t)bytes_of(s, alloca));
}

/* ---- Emission. */

/* The memory of all lanes, allocated once. */
static LLVMValueRef memory_of(struct simd *s, LLVMValueRef alloca) {
    struct value *v = value_of(s, alloca);
    if (!v->memory) {
        LLVMTypeRef bytes = LLVMInt8TypeInContext(s->unit->context);
        v->memory = simd_slot(s, LLVMArrayType2(bytes, bytes_of(s, alloca) * (uint64_t)s->lanes));
        LLVMSetAlignment(v->memory, 64);
    }
    return v->memory;
}

static LLVMValueRef as_i64(struct simd *s, LLVMValueRef index, LLVMTypeRef type) {
    return LLVMTypeOf(index) == type ? index : LLVMBuildSExtOrBitCast(s->unit->builder, index, type, "");
}

/* The offset from the alloca's start, in bytes as the thread computes them: a scalar part and, if indexes
 * vary, a chunk. */
static void offset_of(struct simd *s, LLVMValueRef address, int chunk, LLVMValueRef *uniform,
                      LLVMValueRef *varying) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i64 = type_i64(s->unit);
    *uniform = LLVMConstInt(i64, 0, false);
    *varying = NULL;
    for (; LLVMIsAGetElementPtrInst(address); address = LLVMGetOperand(address, 0)) {
        struct step steps[MAX_STEPS];
        int count = steps_of(s, address, steps, MAX_STEPS);
        for (int i = 0; i < count; i++) {
            LLVMValueRef factor = LLVMConstInt(i64, (unsigned long long)steps[i].bytes, true);
            if (!steps[i].index) {
                *uniform = LLVMBuildAdd(b, *uniform, factor, "");
            } else if (shape_of(s, steps[i].index) == SHAPE_UNIFORM) {
                LLVMValueRef index = as_i64(s, scalar_of(s, steps[i].index), i64);
                *uniform = LLVMBuildAdd(b, *uniform, LLVMBuildMul(b, index, factor, ""), "");
            } else {
                LLVMValueRef index = as_i64(s, chunk_of(s, steps[i].index, chunk), chunk_type(s, i64));
                LLVMValueRef bytes = LLVMBuildMul(b, index, chunk_splat(s, factor), "");
                *varying = *varying ? LLVMBuildAdd(b, *varying, bytes, "") : bytes;
            }
        }
    }
}

static LLVMValueRef at(struct simd *s, LLVMValueRef base, LLVMValueRef bytes) {
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &bytes, 1, "");
}

static void access_array(struct simd *s, LLVMValueRef access, LLVMValueRef address, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef alloca = alloca_of(address), memory = memory_of(s, alloca), uniform, varying;
    LLVMTypeRef i64 = type_i64(s->unit);
    bool load = LLVMIsALoadInst(access) != NULL;
    int element = value_of(s, alloca)->element;
    LLVMTypeRef type = load ? LLVMTypeOf(access) : LLVMTypeOf(LLVMGetOperand(access, 0));
    LLVMValueRef lanes = LLVMConstInt(i64, (unsigned long long)s->lanes, false);
    LLVMValueRef mask = mask_chunk(s, chunk);
    offset_of(s, address, chunk, &uniform, &varying);
    LLVMValueRef row = at(s, memory, LLVMBuildMul(b, uniform, lanes, ""));
    if (!varying) {
        LLVMValueRef place =
            at(s, row, LLVMConstInt(i64, (unsigned long long)chunk * s->chunk_lanes * element, false));
        if (load)
            chunk_set(s, access, chunk, access_load(s, type, place, mask, element));
        else
            access_store(s, chunk_of(s, LLVMGetOperand(access, 0), chunk), place, mask, element);
        return;
    }
    int64_t own[GANG_MAX_LANES];
    for (int i = 0; i < s->chunk_lanes; i++) own[i] = (int64_t)(chunk * s->chunk_lanes + i) * element;
    LLVMValueRef bytes = LLVMBuildAdd(b, LLVMBuildMul(b, varying, chunk_splat(s, lanes), ""),
                                      lanes_constant(s, i64, own, s->chunk_lanes), "");
    LLVMValueRef places = at(s, row, bytes);
    if (load)
        chunk_set(s, access, chunk, access_gather(s, type, places, mask, element));
    else
        access_scatter(s, chunk_of(s, LLVMGetOperand(access, 0), chunk), places, mask, element);
}

bool emit_private(struct simd *s, LLVMValueRef i, int chunk) {
    if (LLVMIsAAllocaInst(i)) {
        if (chunk == 0 && !value_of(s, i)->element) scalar_set(s, i, memory_of(s, i));
        return true;
    }
    if (LLVMIsAGetElementPtrInst(i)) return private_is(s, i);
    bool load = LLVMIsALoadInst(i) != NULL;
    if (!load && !LLVMIsAStoreInst(i)) return false;
    LLVMValueRef address = LLVMGetOperand(i, load ? 0 : 1);
    if (!private_is(s, address)) return false;
    access_array(s, i, address, chunk);
    return true;
}
