/* Values of other lanes: the warp's shuffles between the layouts of matrices. */
#include "compiler/ptx/matrix.h"

#include <string.h>

LLVMValueRef lane_number(struct matrices *m) {
    if (m->lane) return m->lane;
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(m->unit->entry));
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->unit->context);
    LLVMPositionBuilderBefore(b, first);
    struct unit unit = *m->unit;
    unit.builder = b;
    m->lane = call_own(&unit, intrinsic_traits(INTRINSIC_LANE)->name, type_i32(&unit), NULL, 0, false);
    LLVMDisposeBuilder(b);
    return m->lane;
}

/* Behind the lane's own number, so that it is there wherever that is. */
static LLVMValueRef source_lane(struct matrices *m, enum lane_source source) {
    if (m->sources[source]) return m->sources[source];
    struct unit *unit = m->unit;
    LLVMValueRef lane = lane_number(m), result = NULL;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(lane));
    /* Bits that move equally far move together. */
    for (int by = -4; by <= 4; by++) {
        uint32_t bits = 0;
        for (int i = 0; i < 5; i++) {
            int from = lane_sources[source].bit[i];
            if (from != BIT_OFF && from - i == by) bits |= 1u << i;
        }
        if (!bits) continue;
        LLVMValueRef count = constant_i32(unit, (uint32_t)(by < 0 ? -by : by));
        LLVMValueRef moved = by < 0 ? LLVMBuildShl(b, lane, count, "") : LLVMBuildLShr(b, lane, count, "");
        moved = LLVMBuildAnd(b, moved, constant_i32(unit, bits), "");
        result = result ? LLVMBuildOr(b, result, moved, "") : moved;
    }
    m->sources[source] = LLVMBuildXor(b, result, constant_i32(unit, lane_sources[source].flipped), "");
    LLVMDisposeBuilder(b);
    return m->sources[source];
}

LLVMValueRef take_lanes(struct matrices *m, enum lane_source source, LLVMValueRef value) {
    static const char name[] = "llvm.nvvm.shfl.sync.idx.i32";
    struct unit *unit = m->unit;
    if (LLVMIsConstant(value)) return value;
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(unit->module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
    LLVMValueRef arguments[4] = {constant_i32(unit, UINT32_MAX), value, source_lane(m, source),
                                 constant_i32(unit, 31)};
    return LLVMBuildCall2(unit->builder, LLVMGlobalGetValueType(function), function, arguments, 4, "");
}

void set_together(struct unit *unit, LLVMValueRef call, uint64_t memory) {
    static const char *const names[] = {"convergent", "willreturn", "nounwind", "memory"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
        LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(unit->context, kind, i == 3 ? memory : 0));
    }
}
