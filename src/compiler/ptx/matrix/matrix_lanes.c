/* Values of other lanes: the warp's shuffles between the layouts of matrices. */
#include "compiler/ptx/matrix/matrix.h"
#include "compiler/ptx/warp/lanes.h"

#include <string.h>

LLVMValueRef matrix_lane(struct matrices *m) {
    if (m->lane) return m->lane;
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(m->unit->entry));
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->unit->context);
    LLVMPositionBuilderBefore(b, first);
    struct unit unit = *m->unit;
    unit.builder = b;
    m->lane = matrix_call(&unit, intrinsic_traits(INTRINSIC_LANE)->name, type_i32(&unit), NULL, 0, false);
    m->lane = ptx_hardware_lane(&unit, m->lane);
    LLVMDisposeBuilder(b);
    return m->lane;
}

/* After the lane's own number, so that it is available wherever that is. */
static LLVMValueRef source_lane(struct matrices *m, enum lane_source source) {
    if (m->sources[source]) return m->sources[source];
    struct unit *unit = m->unit;
    const struct lane_map *map = m->ordered ? &ordered_sources[source] : &lane_sources[source];
    LLVMValueRef lane = matrix_lane(m), result = NULL;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(lane));
    /* Bits that move by the same distance move together. */
    for (int by = -4; by <= 4; by++) {
        uint32_t bits = 0;
        for (int i = 0; i < 5; i++) {
            int from = map->bit[i];
            if (from != BIT_OFF && from - i == by) bits |= 1u << i;
        }
        if (!bits) continue;
        LLVMValueRef count = constant_i32(unit, (uint32_t)(by < 0 ? -by : by));
        LLVMValueRef moved = by < 0 ? LLVMBuildShl(b, lane, count, "") : LLVMBuildLShr(b, lane, count, "");
        moved = LLVMBuildAnd(b, moved, constant_i32(unit, bits), "");
        result = result ? LLVMBuildOr(b, result, moved, "") : moved;
    }
    m->sources[source] = LLVMBuildXor(b, result, constant_i32(unit, map->flipped), "");
    LLVMDisposeBuilder(b);
    return m->sources[source];
}

LLVMValueRef matrix_take_lanes(struct matrices *m, enum lane_source source, LLVMValueRef value) {
    static const char name[] = "llvm.nvvm.shfl.sync.idx.i32";
    struct unit *unit = m->unit;
    if (LLVMIsConstant(value)) return value;
    if (m->ordered && (source == SOURCE_ROW || source == SOURCE_BACK)) return value;
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(unit->module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
    LLVMValueRef arguments[4] = {constant_i32(unit, UINT32_MAX), value, source_lane(m, source),
                                 constant_i32(unit, 31)};
    return LLVMBuildCall2(unit->builder, LLVMGlobalGetValueType(function), function, arguments, 4, "");
}

void matrix_set_together(struct unit *unit, LLVMValueRef call, uint64_t memory) {
    static const char *const names[] = {"convergent", "willreturn", "nounwind", "memory"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
        LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(unit->context, kind, i == 3 ? memory : 0));
    }
}

/* ---- What the matrix passes share. */

smelt_status matrix_survey(struct matrices *m) {
    divergence_free(&m->divergence);
    m->divergence = (struct divergence){0};
    TRY(divergence_find(m->unit, &m->divergence));
    return flow_find(m->unit, m->unit->entry, &m->arena, &m->flow);
}

LLVMValueRef matrix_call(struct unit *unit, const char *name, LLVMTypeRef result, LLVMValueRef *arguments,
                         unsigned count, bool together) {
    LLVMTypeRef types[2];
    for (unsigned i = 0; i < count; i++) types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, name);
    if (!function) {
        function = LLVMAddFunction(unit->module, name, type);
        if (together)
            LLVMAddAttributeAtIndex(
                function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                LLVMCreateEnumAttribute(unit->context, LLVMGetEnumAttributeKindForName("convergent", 10), 0));
    }
    return LLVMBuildCall2(unit->builder, type, function, arguments, count, "");
}

bool matrix_is_together(const struct matrices *m, LLVMBasicBlockRef block) {
    return divergence_all_run(&m->divergence, block);
}

bool matrix_is_same(const struct matrices *m, LLVMValueRef value, LLVMBasicBlockRef block) {
    const struct divergence *d = &m->divergence;
    return !d->irreducible && !divergence_in_operand(d, value, divergence_place(d, block));
}

bool matrix_is_assembly(LLVMValueRef instruction) {
    if (!LLVMIsACallInst(instruction) || !LLVMIsAInlineAsm(LLVMGetCalledValue(instruction))) return false;
    return !LLVMGetInlineAsmHasSideEffects(LLVMGetCalledValue(instruction)) &&
           !ptx_is_convergent(instruction);
}
