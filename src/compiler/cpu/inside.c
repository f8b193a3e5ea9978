#include "compiler/cpu/inside.h"
#include "compiler/engine.h"

#include <stddef.h>

LLVMValueRef inside_count(struct unit *unit, LLVMValueRef extent, LLVMValueRef bytes) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = type_i64(unit);
    uint64_t there, needed;
    if (is_constant_integer(extent, &there) && is_constant_integer(bytes, &needed))
        return LLVMConstInt(type, there < needed ? 0 : there - needed + 1, false);
    LLVMValueRef operands[2] = {LLVMBuildAdd(b, extent, LLVMConstInt(type, 1, false), ""), bytes};
    return build_intrinsic(unit, "llvm.usub.sat", type, operands, 2);
}

void inside_branch(struct unit *unit, LLVMValueRef condition, LLVMBasicBlockRef rare,
                   LLVMBasicBlockRef usual) {
    LLVMContextRef context = unit->context;
    LLVMValueRef branch = LLVMBuildCondBr(unit->builder, condition, rare, usual);
    LLVMMetadataRef weights[3] = {LLVMMDStringInContext2(context, "branch_weights", 14),
                                  LLVMValueAsMetadata(constant_i32(unit, 1)),
                                  LLVMValueAsMetadata(constant_i32(unit, 1 << 20))};
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(context, "prof", 4),
                    LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, weights, 3)));
}

void inside_fail(struct unit *unit, LLVMValueRef sites, LLVMValueRef start, LLVMValueRef extent,
                 LLVMValueRef address) {
    LLVMTypeRef i64 = type_i64(unit), types[4] = {type_pointer(unit), i64, i64, i64};
    LLVMValueRef arguments[4] = {sites, start, extent, address};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(unit->context), types, 4, false);
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, "smelt_runtime_outside");
    if (!function) {
        static const char *const attributes[] = {"noreturn", "cold", "nounwind"};
        function = LLVMAddFunction(unit->module, "smelt_runtime_outside", type);
        for (int i = 0; i < 3; i++) {
            unsigned kind = LLVMGetEnumAttributeKindForName(attributes[i], __builtin_strlen(attributes[i]));
            LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                    LLVMCreateEnumAttribute(unit->context, kind, 0));
        }
    }
    LLVMBuildCall2(unit->builder, type, function, arguments, 4, "");
    LLVMBuildUnreachable(unit->builder);
}

/* Generated code only reads these fields: loads may move and merge freely. */
static LLVMValueRef read_field(struct unit *unit, LLVMTypeRef type, LLVMValueRef base, size_t offset) {
    LLVMValueRef index = LLVMConstInt(type_i64(unit), offset, false);
    LLVMValueRef address =
        LLVMBuildGEP2(unit->builder, LLVMInt8TypeInContext(unit->context), base, &index, 1, "");
    LLVMValueRef load = LLVMBuildLoad2(unit->builder, type, address, "");
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(unit->context, "invariant.load", 14),
                    LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, NULL, 0)));
    return load;
}

LLVMValueRef inside_table(struct unit *unit, LLVMValueRef group) {
    return read_field(unit, type_pointer(unit), group, offsetof(struct group_context, extents));
}

LLVMValueRef inside_buffer(struct unit *unit, LLVMValueRef table, uint64_t slot, size_t field) {
    return read_field(unit, type_i64(unit), table, slot * sizeof(struct buffer_extent) + field);
}

LLVMValueRef inside_extent(struct unit *unit, LLVMValueRef group, enum intrinsic intrinsic, uint64_t slot) {
    LLVMTypeRef i64 = type_i64(unit);
    if (intrinsic == INTRINSIC_THREADGROUP_START)
        return read_field(unit, i64, group,
                          offsetof(struct group_context, threadgroup_slots) + slot * sizeof(void *));
    if (intrinsic == INTRINSIC_THREADGROUP_EXTENT)
        return read_field(unit, i64, group,
                          offsetof(struct group_context, threadgroup_slot_bytes) + slot * sizeof(uint64_t));
    return inside_buffer(unit, inside_table(unit, group), slot,
                         intrinsic == INTRINSIC_BUFFER_START ? offsetof(struct buffer_extent, start)
                                                             : offsetof(struct buffer_extent, bytes));
}

/* ---- The code of one thread. */

LLVMValueRef inside_number(struct unit *unit, LLVMValueRef address) {
    if (unit->target->has_spaces && LLVMGetPointerAddressSpace(LLVMTypeOf(address)))
        address = LLVMBuildAddrSpaceCast(unit->builder, address, type_pointer(unit), "");
    return LLVMBuildPtrToInt(unit->builder, address, type_i64(unit), "");
}

static LLVMValueRef lowest(struct unit *unit, LLVMValueRef address, LLVMValueRef low) {
    return LLVMBuildAdd(unit->builder, inside_number(unit, address), low, "");
}

static LLVMValueRef is_outside(struct unit *unit, LLVMValueRef address, LLVMValueRef start,
                               LLVMValueRef count) {
    LLVMBuilderRef b = unit->builder;
    return LLVMBuildICmp(b, LLVMIntUGE, LLVMBuildSub(b, address, start, ""), count, "");
}

void inside_lower_leaves(struct unit *unit, LLVMValueRef call) {
    LLVMBuilderRef b = unit->builder;
    LLVMPositionBuilderBefore(b, call);
    LLVMValueRef start = LLVMGetOperand(call, LEAVES_START),
                 count = inside_count(unit, LLVMGetOperand(call, LEAVES_EXTENT),
                                      LLVMGetOperand(call, LEAVES_BYTES)),
                 result = LLVMGetOperand(call, LEAVES_ALSO);
    for (unsigned i = LEAVES_FIRST; i <= LEAVES_LAST; i++) {
        LLVMValueRef address = lowest(unit, LLVMGetOperand(call, i), LLVMGetOperand(call, LEAVES_LOW));
        result = LLVMBuildOr(b, result, is_outside(unit, address, start, count), "");
    }
    LLVMReplaceAllUsesWith(call, result);
    LLVMInstructionEraseFromParent(call);
}

LLVMValueRef inside_misses(struct unit *unit, LLVMValueRef call, LLVMValueRef *address) {
    LLVMValueRef when = LLVMGetOperand(call, INSIDE_WHEN),
                 count = inside_count(unit, LLVMGetOperand(call, INSIDE_EXTENT),
                                      LLVMGetOperand(call, INSIDE_BYTES));
    *address = lowest(unit, LLVMGetOperand(call, INSIDE_ADDRESS), LLVMGetOperand(call, INSIDE_LOW));
    LLVMValueRef misses = is_outside(unit, *address, LLVMGetOperand(call, INSIDE_START), count);
    return LLVMIsConstant(when) ? misses : LLVMBuildAnd(unit->builder, when, misses, "");
}

/* ---- The scalar engine. */

static void lower_inside(struct unit *unit, LLVMValueRef call) {
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef before = LLVMGetInstructionParent(call), after = flow_split_block(unit, call);
    LLVMBasicBlockRef outside = LLVMAppendBasicBlockInContext(unit->context, unit->entry, "outside");
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(before));
    LLVMPositionBuilderAtEnd(b, before);
    LLVMValueRef address, misses = inside_misses(unit, call, &address);
    inside_branch(unit, misses, outside, after);
    LLVMPositionBuilderAtEnd(b, outside);
    inside_fail(unit, LLVMGetOperand(call, INSIDE_SITES), LLVMGetOperand(call, INSIDE_START),
                LLVMGetOperand(call, INSIDE_EXTENT), address);
    LLVMInstructionEraseFromParent(call);
}

void inside_lower(struct unit *unit, LLVMValueRef function) {
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
            next = LLVMGetNextInstruction(i);
            enum intrinsic intrinsic = intrinsic_of(i);
            if (intrinsic == INTRINSIC_LEAVES) inside_lower_leaves(unit, i);
            if (intrinsic != INTRINSIC_INSIDE) continue;
            lower_inside(unit, i);
            break; /* the rest of the block is the next to visit, or comes later */
        }
}
