/* The array that an address is computed from, and the sum that it is. */
#include "compiler/bounds/bounds.h"
#include "compiler/engine.h"

#include <string.h>

enum { MOST_WAYS = 64 };

/* A phi or a select of addresses. */
struct joined {
    LLVMValueRef value;
    struct array_object object;
    struct joined *next;
};

static const struct array_object unknown = {.kind = ACCESS_UNKNOWN};

/* ---- Arguments and variables. */

/* In the entry block: values of arguments serve all code. */
static LLVMValueRef call_at_entry(struct bounds *b, enum intrinsic intrinsic, uint32_t slot) {
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(b->unit->entry);
    LLVMValueRef argument = constant_i32(b->unit, slot), first = LLVMGetFirstInstruction(entry);
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(b->unit->builder, first);
    return bounds_intrinsic(b, intrinsic, type_i64(b->unit), &argument, 1);
}

static struct array_object of_argument(struct bounds *b, LLVMValueRef call, bool threadgroup) {
    uint64_t slot;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &slot) ||
        slot >= (threadgroup ? CPU_MAX_THREADGROUP_SLOTS : CPU_MAX_SLOTS))
        return unknown;
    struct array_object *object = threadgroup ? &b->slots[slot] : &b->arguments[slot];
    if (object->start) return *object;
    object->kind = threadgroup ? ACCESS_THREADGROUP_ARGUMENT : ACCESS_BUFFER;
    object->slot = (uint32_t)slot;
    object->extent =
        call_at_entry(b, threadgroup ? INTRINSIC_THREADGROUP_EXTENT : INTRINSIC_BUFFER_EXTENT, object->slot);
    object->start =
        call_at_entry(b, threadgroup ? INTRINSIC_THREADGROUP_START : INTRINSIC_BUFFER_START, object->slot);
    return *object;
}

static struct array_object of_global(struct bounds *b, LLVMValueRef global) {
    LLVMValueRef start = global;
    if (b->unit->target->has_spaces && LLVMGetPointerAddressSpace(LLVMTypeOf(global)))
        start = LLVMConstAddrSpaceCast(global, type_pointer(b->unit));
    return (struct array_object){
        .start = LLVMConstPtrToInt(start, type_i64(b->unit)),
        .extent = bounds_i64(b, LLVMABISizeOfType(b->unit->layout, LLVMGlobalGetValueType(global))),
        .kind = ACCESS_VARIABLE,
        .variable = global};
}

/* Engines lay private arrays out as they like: tests are of the offsets in them. */
static struct array_object of_private(struct bounds *b, LLVMValueRef variable) {
    if (!LLVMIsAConstantInt(LLVMGetOperand(variable, 0))) return unknown;
    uint64_t count = LLVMConstIntGetZExtValue(LLVMGetOperand(variable, 0));
    uint64_t bytes = LLVMABISizeOfType(b->unit->layout, LLVMGetAllocatedType(variable));
    return (struct array_object){.start = bounds_i64(b, 0),
                                 .extent = bounds_i64(b, count * bytes),
                                 .kind = ACCESS_PRIVATE,
                                 .variable = variable};
}

/* ---- Several ways. */

static LLVMOpcode opcode_of(LLVMValueRef value) {
    return LLVMIsAConstantExpr(value)  ? LLVMGetConstOpcode(value)
           : LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value)
                                       : LLVMRet;
}

bool bounds_is_step(LLVMValueRef value) {
    LLVMOpcode opcode = opcode_of(value);
    return opcode == LLVMGetElementPtr || opcode == LLVMBitCast || opcode == LLVMAddrSpaceCast;
}

static LLVMValueRef base_of(LLVMValueRef address) {
    while (bounds_is_step(address)) address = LLVMGetOperand(address, 0);
    return address;
}

/* The sources of an address through phis and selects, at most MOST_WAYS; -1: there are more. */
static int sources_of(LLVMValueRef address, LLVMValueRef *seen, int seen_count, LLVMValueRef *source) {
    address = base_of(address);
    bool phi = LLVMIsAPHINode(address) != NULL, select = LLVMIsASelectInst(address) != NULL;
    if (LLVMIsAUndefValue(address)) return seen_count;
    if (!phi && !select) {
        if (*source && *source != address) return -1;
        *source = address;
        return seen_count;
    }
    for (int i = 0; i < seen_count; i++)
        if (seen[i] == address) return seen_count;
    if (seen_count == MOST_WAYS) return -1;
    seen[seen_count++] = address;
    unsigned count = phi ? LLVMCountIncoming(address) : 2;
    for (unsigned i = 0; i < count && seen_count >= 0; i++)
        seen_count = sources_of(phi ? LLVMGetIncomingValue(address, i) : LLVMGetOperand(address, i + 1), seen,
                                seen_count, source);
    return seen_count;
}

/* All addresses are inside an object that is not known, and one whose addresses are no numbers. */
static struct array_object as_numbers(struct bounds *b, struct array_object object) {
    if (object.start && object.kind != ACCESS_PRIVATE) return object;
    return (struct array_object){bounds_i64(b, 0), bounds_i64(b, UINT64_MAX - 1), ACCESS_UNKNOWN, 0, NULL};
}

static struct array_object join_select(struct bounds *b, LLVMValueRef select) {
    struct array_object yes = as_numbers(b, bounds_object(b, LLVMGetOperand(select, 1))),
                        no = as_numbers(b, bounds_object(b, LLVMGetOperand(select, 2)));
    LLVMValueRef condition = LLVMGetOperand(select, 0);
    LLVMPositionBuilderBefore(b->unit->builder, LLVMGetNextInstruction(select));
    return (struct array_object){
        .start = LLVMBuildSelect(b->unit->builder, condition, yes.start, no.start, ""),
        .extent = LLVMBuildSelect(b->unit->builder, condition, yes.extent, no.extent, ""),
        .kind = ACCESS_UNKNOWN};
}

static void join_phi(struct bounds *b, LLVMValueRef phi, struct joined *joined) {
    LLVMPositionBuilderBefore(b->unit->builder, phi);
    joined->object = (struct array_object){.start = LLVMBuildPhi(b->unit->builder, type_i64(b->unit), ""),
                                           .extent = LLVMBuildPhi(b->unit->builder, type_i64(b->unit), ""),
                                           .kind = ACCESS_UNKNOWN};
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        struct array_object one = as_numbers(b, bounds_object(b, LLVMGetIncomingValue(phi, i)));
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        LLVMAddIncoming(joined->object.start, &one.start, &from, 1);
        LLVMAddIncoming(joined->object.extent, &one.extent, &from, 1);
    }
}

/* Extents of several arrays take the ways that their addresses take. */
static struct array_object of_several(struct bounds *b, LLVMValueRef address) {
    for (struct joined *j = b->joined; j; j = j->next)
        if (j->value == address) return j->object;
    struct joined *joined = arena_alloc(&b->arena, sizeof *joined);
    if (!joined) return unknown;
    *joined = (struct joined){.value = address, .next = b->joined};
    b->joined = joined;
    if (LLVMIsAPHINode(address))
        join_phi(b, address, joined);
    else
        joined->object = join_select(b, address);
    return joined->object;
}

struct array_object bounds_object(struct bounds *b, LLVMValueRef address) {
    LLVMValueRef seen[MOST_WAYS], source = NULL;
    bool one = sources_of(address, seen, 0, &source) >= 0;
    if (!one) return of_several(b, base_of(address));
    if (!source) return unknown;
    if (LLVMIsAGlobalVariable(source)) return of_global(b, source);
    if (LLVMIsAAllocaInst(source)) return of_private(b, source);
    enum intrinsic intrinsic = intrinsic_of(source);
    if (intrinsic == INTRINSIC_BUFFER_ADDRESS) return of_argument(b, source, false);
    if (intrinsic == INTRINSIC_THREADGROUP_ADDRESS) return of_argument(b, source, true);
    return unknown;
}

/* ---- Sums. */

/* What a step with at most one index that is not constant adds; false if there are more. */
static bool add_step(struct unit *unit, LLVMValueRef step, struct place *place) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(step);
    LLVMValueRef index = NULL;
    int64_t scale = 0, constant = 0;
    for (int i = 1; i < LLVMGetNumOperands(step); i++) {
        LLVMValueRef operand = LLVMGetOperand(step, (unsigned)i);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned field = (unsigned)LLVMConstIntGetZExtValue(operand);
            constant += (int64_t)LLVMOffsetOfElement(unit->layout, type, field);
            type = LLVMStructGetTypeAtIndex(type, field);
            continue;
        }
        if (i > 1) type = LLVMGetElementType(type);
        int64_t bytes = (int64_t)LLVMABISizeOfType(unit->layout, type);
        if (LLVMIsAConstantInt(operand)) {
            constant += bytes * LLVMConstIntGetSExtValue(operand);
        } else if (index || LLVMGetTypeKind(LLVMTypeOf(operand)) != LLVMIntegerTypeKind) {
            return false;
        } else {
            index = operand;
            scale = bytes;
        }
    }
    if (index && place->index) return false;
    place->constant += constant;
    if (index) {
        place->index = index;
        place->scale = scale;
    }
    return true;
}

/* Whether the extended index counts elements from the start of the array. */
static bool counts_from_start(const struct place *place) {
    LLVMValueRef root = place->root;
    return (LLVMIsAGlobalVariable(root) || intrinsic_of(root) == INTRINSIC_BUFFER_ADDRESS) && !place->wide;
}

/* Whether x + c may have wrapped around, in the sense in which it is extended. */
static bool may_wrap(LLVMValueRef sum, LLVMOpcode extension) {
    return (extension == LLVMSExt && !LLVMGetNSW(sum)) || (extension == LLVMZExt && !LLVMGetNUW(sum));
}

/* Whether a sum is x + c without overflow. `near`: in a small launch (struct code_shape), for indices that
 * count from the start of the array, a sum of 32 bits may wrap if c is small. If x + c and x + d are both
 * inside the array, with c and d small, no wrap lies between them: they are d - c elements apart. So one test
 * of x + c and of the element d - c further covers both. */
static bool adds_constant(LLVMValueRef sum, LLVMOpcode extension, bool near, int64_t *constant) {
    LLVMOpcode opcode = opcode_of(sum);
    if (!LLVMIsAInstruction(sum) || (opcode != LLVMAdd && opcode != LLVMOr)) return false;
    LLVMValueRef right = LLVMGetOperand(sum, 1);
    if (!LLVMIsAConstantInt(right) || LLVMGetIntTypeWidth(LLVMTypeOf(right)) > 64) return false;
    if (opcode == LLVMOr && !LLVMGetIsDisjoint(sum)) return false;
    *constant = LLVMConstIntGetSExtValue(right);
    if (opcode == LLVMAdd && may_wrap(sum, extension))
        return near && LLVMGetIntTypeWidth(LLVMTypeOf(sum)) == 32 && *constant >= -SMALL_REACH &&
               *constant <= SMALL_REACH;
    if (extension == LLVMZExt) *constant = (int64_t)LLVMConstIntGetZExtValue(right);
    return true;
}

LLVMValueRef bounds_private_offset(struct bounds *b, LLVMValueRef address) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMValueRef sum = NULL;
    int64_t constant = 0;
    for (; bounds_is_step(address); address = LLVMGetOperand(address, 0)) {
        if (opcode_of(address) != LLVMGetElementPtr) continue;
        LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
        for (int i = 1; i < LLVMGetNumOperands(address); i++) {
            LLVMValueRef operand = LLVMGetOperand(address, (unsigned)i);
            if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
                unsigned field = (unsigned)LLVMConstIntGetZExtValue(operand);
                constant += (int64_t)LLVMOffsetOfElement(b->unit->layout, type, field);
                type = LLVMStructGetTypeAtIndex(type, field);
                continue;
            }
            if (i > 1) type = LLVMGetElementType(type);
            int64_t bytes = (int64_t)LLVMABISizeOfType(b->unit->layout, type);
            if (LLVMIsAConstantInt(operand)) {
                constant += bytes * LLVMConstIntGetSExtValue(operand);
                continue;
            }
            LLVMValueRef step = LLVMBuildSExtOrBitCast(builder, operand, type_i64(b->unit), "");
            step = LLVMBuildMul(builder, step, bounds_i64(b, (uint64_t)bytes), "");
            sum = sum ? LLVMBuildAdd(builder, sum, step, "") : step;
        }
    }
    if (!LLVMIsAAllocaInst(address)) return NULL;
    if (!sum) return bounds_i64(b, (uint64_t)constant);
    return constant ? LLVMBuildAdd(builder, sum, bounds_i64(b, (uint64_t)constant), "") : sum;
}

struct place bounds_steps(struct unit *unit, LLVMValueRef address) {
    struct place place = {.root = address};
    while (bounds_is_step(place.root)) {
        if (opcode_of(place.root) == LLVMGetElementPtr && !add_step(unit, place.root, &place)) break;
        place.root = LLVMGetOperand(place.root, 0);
    }
    return place;
}

static void take_constants(struct place *place, bool near) {
    int64_t constant;
    while (adds_constant(place->index, place->extension, near, &constant)) {
        place->wraps |= opcode_of(place->index) == LLVMAdd && may_wrap(place->index, place->extension);
        place->constant += constant * place->scale;
        place->index = LLVMGetOperand(place->index, 0);
    }
}

struct place bounds_place(struct unit *unit, LLVMValueRef address) {
    struct place place = bounds_steps(unit, address);
    if (!place.index) return place;
    if (LLVMGetIntTypeWidth(LLVMTypeOf(place.index)) < 64)
        place.extension = LLVMSExt; /* narrow indexes of a step are signed */
    else
        take_constants(&place, false);
    LLVMOpcode opcode = opcode_of(place.index);
    if (!place.extension && (opcode == LLVMSExt || opcode == LLVMZExt)) {
        place.extension = opcode;
        place.index = LLVMGetOperand(place.index, 0);
    }
    place.wide = place.constant < 0 || place.constant >= place.scale;
    take_constants(&place, unit->request->shape.small && counts_from_start(&place));
    return place;
}
