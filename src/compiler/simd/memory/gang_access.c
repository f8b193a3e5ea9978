/* Accesses and their tests in quick code (compiler/quick.h): one call for all lanes of a gang. Code for each
 * chunk would run as fast, but takes several times as long to compile.
 *
 * Quick code writes the chunks of an instruction one after another (instructions.c), so a call for the first
 * chunk serves the others. */
#include "abi/lane_access.h"
#include "compiler/cpu/inside.h"
#include "compiler/simd/memory/gang_access.h"

#include <stdio.h>

bool gang_access_suits(const struct simd *s) {
    return s->brief && !s->turns && s->lanes <= NO_LANE && s->first_chunk == 0 &&
           s->end_chunk == s->chunk_count;
}

bool gang_access_is_call(struct simd *s, LLVMTypeRef element) {
    bool one = s->vector_bits == 512 && LLVMABISizeOfType(s->unit->layout, element) >= 4;
    return gang_access_suits(s) && !one;
}

/* The part of a chunk in a slot of all lanes. */
static LLVMValueRef chunk_in(struct simd *s, LLVMValueRef slot, LLVMTypeRef element, int chunk) {
    uint64_t bytes = LLVMABISizeOfType(s->unit->layout, element) * (uint64_t)(chunk * s->chunk_lanes);
    return chunk ? simd_field(s, slot, bytes) : slot;
}

static LLVMValueRef slot_of_lanes(struct simd *s, LLVMTypeRef element) {
    LLVMValueRef slot = simd_slot(s, LLVMArrayType2(element, (uint64_t)s->lanes));
    LLVMSetAlignment(slot, LLVMABIAlignmentOfType(s->unit->layout, chunk_type(s, element)));
    return slot;
}

static LLVMValueRef keep_addresses(struct simd *s, LLVMValueRef const *addresses) {
    struct gang_access *a = &s->gang_access;
    if (!a->addresses) a->addresses = slot_of_lanes(s, type_i64(s->unit));
    LLVMValueRef slot = a->addresses;
    for (int c = 0; c < s->chunk_count; c++)
        LLVMBuildStore(s->unit->builder, addresses[c], chunk_in(s, slot, type_i64(s->unit), c));
    return slot;
}

/* The mask of the active lanes, i32. */
static LLVMValueRef active_lanes(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef lanes = NULL;
    for (int c = 0; c < s->chunk_count; c++) {
        LLVMValueRef mask = mask_chunk(s, c), bits = mask_as_i32(s, mask);
        if (c) bits = LLVMBuildShl(b, bits, simd_i32(s, c * s->chunk_lanes), "");
        lanes = lanes ? LLVMBuildOr(b, lanes, bits, "") : bits;
    }
    return lanes;
}

static LLVMValueRef call_keeping(struct simd *s, const char *name, LLVMTypeRef result,
                                 LLVMValueRef *arguments, unsigned count) {
    static const char preserves[] = "no_caller_saved_registers";
    LLVMValueRef call = simd_call_runtime(s, name, result, arguments, count);
    LLVMAddCallSiteAttribute(
        call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(s->unit->context, preserves, sizeof preserves - 1, "", 0));
    return call;
}

void gang_access_test(struct simd *s, LLVMValueRef sites, LLVMValueRef const *addresses, LLVMValueRef start,
                      LLVMValueRef count, LLVMValueRef extent, LLVMBasicBlockRef inside) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef outside = simd_block(s, "outside");
    LLVMValueRef slot = keep_addresses(s, addresses);
    LLVMValueRef arguments[4] = {slot, active_lanes(s), start, count};
    LLVMValueRef lane = call_keeping(s, "smelt_runtime_lane_outside", type_i32(s->unit), arguments, 4);
    LLVMValueRef none = LLVMBuildICmp(b, LLVMIntNE, lane, simd_i32(s, NO_LANE), "");
    inside_branch(s->unit, none, outside, inside);
    LLVMPositionBuilderAtEnd(b, outside);
    LLVMValueRef at = LLVMBuildGEP2(b, type_i64(s->unit), slot, &lane, 1, "");
    inside_fail(s->unit, sites, start, extent, LLVMBuildLoad2(b, type_i64(s->unit), at, ""));
}

/* Accesses of one type share the slot of values: it is in use only from before a call to after it. */
static LLVMValueRef values_slot(struct simd *s, LLVMTypeRef element) {
    struct gang_access *a = &s->gang_access;
    if (a->element != element) a->values = slot_of_lanes(s, element);
    a->element = element;
    return a->values;
}

static bool is_done(struct simd *s, LLVMValueRef access) {
    struct gang_access *a = &s->gang_access;
    bool done = a->access == access && a->serial == s->serial;
    a->access = access;
    a->serial = s->serial;
    return done;
}

static void call_access(struct simd *s, const char *access, LLVMTypeRef element, LLVMValueRef address,
                        LLVMValueRef values) {
    char name[40];
    LLVMValueRef addresses[GANG_MAX_LANES];
    LLVMTypeRef numbers = chunk_type(s, type_i64(s->unit));
    for (int c = 0; c < s->chunk_count; c++)
        addresses[c] = LLVMBuildPtrToInt(s->unit->builder, chunk_of(s, address, c), numbers, "");
    snprintf(name, sizeof name, "smelt_runtime_%s_lanes_%d", access,
             (int)LLVMABISizeOfType(s->unit->layout, element));
    LLVMValueRef arguments[3] = {keep_addresses(s, addresses), values, active_lanes(s)};
    LLVMValueRef call = simd_call_runtime(s, name, LLVMVoidTypeInContext(s->unit->context), arguments, 3);
    LLVMSetInstructionCallConv(call, LLVMPreserveAllCallConv);
    LLVMSetFunctionCallConv(LLVMGetCalledValue(call), LLVMPreserveAllCallConv);
}

LLVMValueRef gang_access_load(struct simd *s, LLVMValueRef load, int chunk) {
    LLVMTypeRef element = LLVMTypeOf(load);
    LLVMValueRef values = values_slot(s, element);
    if (!is_done(s, load)) call_access(s, "load", element, LLVMGetOperand(load, 0), values);
    return LLVMBuildLoad2(s->unit->builder, chunk_type(s, element), chunk_in(s, values, element, chunk), "");
}

void gang_access_store(struct simd *s, LLVMValueRef store) {
    LLVMTypeRef element = LLVMTypeOf(LLVMGetOperand(store, 0));
    if (is_done(s, store)) return;
    LLVMValueRef values = values_slot(s, element);
    for (int c = 0; c < s->chunk_count; c++)
        LLVMBuildStore(s->unit->builder, chunk_of(s, LLVMGetOperand(store, 0), c),
                       chunk_in(s, values, element, c));
    call_access(s, "store", element, LLVMGetOperand(store, 1), values);
}
