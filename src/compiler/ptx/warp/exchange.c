/* Values from other lanes: the warp's shuffles and votes, with smelt's semantics. */
#include "compiler/ptx/warp/warp.h"

#include <string.h>

LLVMValueRef ptx_intrinsic(struct unit *unit, const char *name, LLVMValueRef *arguments, unsigned count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(unit->module, id, NULL, 0);
    return LLVMBuildCall2(unit->builder, LLVMGlobalGetValueType(function), function, arguments, count, "");
}

LLVMValueRef ptx_lane(struct unit *unit) {
    LLVMTypeRef type = LLVMFunctionType(type_i32(unit), NULL, 0, false);
    LLVMValueRef function = intrinsic_declare(unit->module, INTRINSIC_LANE, type);
    return LLVMBuildCall2(unit->builder, type, function, NULL, 0, "");
}

static LLVMValueRef take_word(struct ptx_operation *o, LLVMValueRef word, LLVMValueRef source) {
    LLVMValueRef arguments[4] = {o->lanes.mask, word, NULL, constant_i32(o->unit, 31)};
    uint64_t flipped;
    if (ptx_flips_own(source, &flipped)) { /* no number of a lane is needed */
        arguments[2] = constant_i32(o->unit, ptx_hardware_bits(o->unit, (unsigned)flipped));
        return ptx_intrinsic(o->unit, "llvm.nvvm.shfl.sync.bfly.i32", arguments, 4);
    }
    arguments[2] = ptx_hardware_lane(o->unit, source);
    return ptx_intrinsic(o->unit, "llvm.nvvm.shfl.sync.idx.i32", arguments, 4);
}

LLVMValueRef ptx_take(struct ptx_operation *o, LLVMValueRef value, LLVMValueRef source) {
    LLVMBuilderRef b = o->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(value), word = type_i32(o->unit), wide = type_i64(o->unit);
    if (type == word) return take_word(o, value, source);
    if (type != wide)
        return LLVMBuildBitCast(b, take_word(o, LLVMBuildBitCast(b, value, word, ""), source), type, "");
    LLVMValueRef half = LLVMConstInt(wide, 32, false);
    LLVMValueRef low = take_word(o, LLVMBuildTrunc(b, value, word, ""), source);
    LLVMValueRef high = take_word(o, LLVMBuildTrunc(b, LLVMBuildLShr(b, value, half, ""), word, ""), source);
    high = LLVMBuildShl(b, LLVMBuildZExt(b, high, wide, ""), half, "");
    return LLVMBuildOr(b, high, LLVMBuildZExt(b, low, wide, ""), "");
}

LLVMValueRef ptx_is_active(struct ptx_operation *o, LLVMValueRef index) {
    LLVMBuilderRef b = o->unit->builder;
    uint64_t flipped;
    if (!o->lanes.active && ptx_flips_own(index, &flipped)) return NULL;
    LLVMValueRef lanes = constant_i32(o->unit, SIMDGROUP_LANES);
    LLVMValueRef exists = LLVMBuildICmp(b, LLVMIntULT, index, lanes, "");
    if (!o->lanes.active) {
        return LLVMIsAConstantInt(exists) && LLVMConstIntGetZExtValue(exists) ? NULL : exists;
    }
    LLVMValueRef low = LLVMBuildAnd(b, index, constant_i32(o->unit, SIMDGROUP_LANES - 1), "");
    LLVMValueRef bit = LLVMBuildShl(b, constant_i32(o->unit, 1), low, "");
    LLVMValueRef taken = LLVMBuildAnd(b, o->lanes.active, bit, "");
    LLVMValueRef on = LLVMBuildICmp(b, LLVMIntNE, taken, constant_i32(o->unit, 0), "");
    return LLVMBuildAnd(b, exists, on, "");
}

/* A lane whose source is inactive reads itself. Selecting between the read value and its own afterwards would
 * be the same, but ptxas (12.9, 13.0) then confuses halves: of h = select(read, own), h - 1 and own - 1
 * become equal. */
LLVMValueRef ptx_shuffle(struct ptx_operation *o, LLVMValueRef value, LLVMValueRef index) {
    LLVMValueRef active = ptx_is_active(o, index);
    if (active) index = LLVMBuildSelect(o->unit->builder, active, index, o->lane, "");
    return ptx_take(o, value, index);
}

LLVMValueRef ptx_vote(struct unit *unit, LLVMValueRef mask, LLVMValueRef vote) {
    LLVMValueRef arguments[2] = {mask, vote};
    return ptx_intrinsic(unit, "llvm.nvvm.vote.ballot.sync", arguments, 2);
}

LLVMValueRef ptx_ballot(struct ptx_operation *o, LLVMValueRef vote) {
    return ptx_metal_vote(o->unit, ptx_vote(o->unit, o->lanes.mask, vote));
}
