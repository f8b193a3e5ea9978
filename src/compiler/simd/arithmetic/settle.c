/* Avoids two errors of LLVM 19's code generator in the finished code.
 *
 * If a constant alone determines some lanes of a result (x & 0, x * 0, x | -1), the code generator treats the
 * other operand's lanes as undefined; if a shuffle then uses only these lanes of the result, it treats the
 * shuffle as undefined. Such constants are hidden: the code loads them, as it does with most vector constants
 * anyway, from memory whose contents the code generator does not examine.
 *
 * Of a choice between two constants by a constant mask, bytes may become undefined in lanes where only the
 * constant that is not chosen is. Such choices are made here. */
#include "compiler/simd/simd.h"

static bool decides_some_lanes(LLVMOpcode opcode, LLVMValueRef constant) {
    if (!LLVMIsConstant(constant)) return false;
    unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(constant)), decided = 0;
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef lane = LLVMGetAggregateElement(constant, i);
        if (!lane || !LLVMIsAConstantInt(lane)) continue;
        decided += opcode == LLVMOr ? LLVMConstIntGetSExtValue(lane) == -1 : LLVMIsNull(lane);
    }
    return decided > 0 && decided < lanes;
}

static LLVMValueRef hide(struct unit *unit, LLVMValueRef constant) {
    LLVMTypeRef type = LLVMTypeOf(constant);
    LLVMValueRef place = LLVMAddGlobal(unit->module, type, "lanes");
    LLVMSetInitializer(place, constant);
    LLVMSetLinkage(place, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(place, true);
    LLVMSetExternallyInitialized(place, true);
    return LLVMBuildLoad2(unit->builder, type, place, "");
}

/* The lanes that a constant mask chooses from two constants; NULL: something else. */
static LLVMValueRef chosen_lanes(LLVMValueRef select) {
    LLVMValueRef lanes[GANG_MAX_LANES], mask = LLVMGetOperand(select, 0);
    if (LLVMGetTypeKind(LLVMTypeOf(mask)) != LLVMVectorTypeKind) return NULL;
    unsigned count = LLVMGetVectorSize(LLVMTypeOf(mask));
    for (unsigned o = 0; o < 3; o++)
        if (!LLVMIsConstant(LLVMGetOperand(select, o))) return NULL;
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef on = LLVMGetAggregateElement(mask, i);
        if (!on || !LLVMIsAConstantInt(on)) return NULL;
        lanes[i] = LLVMGetAggregateElement(LLVMGetOperand(select, LLVMIsNull(on) ? 2 : 1), i);
        if (!lanes[i]) return NULL;
    }
    return LLVMConstVector(lanes, count);
}

static bool choose(struct unit *unit) {
    bool changed = false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        LLVMValueRef chosen = LLVMIsASelectInst(i) && LLVMGetFirstUse(i) ? chosen_lanes(i) : NULL;
        if (chosen) LLVMReplaceAllUsesWith(i, chosen);
        changed |= chosen != NULL;
    }
    return changed;
}

smelt_status pass_simd_settle(struct unit *unit) {
    while (choose(unit)) continue; /* a choice may be an operand of one in an earlier block */
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
        bool absorbs = opcode == LLVMAnd || opcode == LLVMMul || opcode == LLVMOr;
        LLVMTypeRef type = LLVMTypeOf(i);
        if (!absorbs || LLVMGetTypeKind(type) != LLVMVectorTypeKind ||
            LLVMGetIntTypeWidth(LLVMGetElementType(type)) < 8)
            continue;
        for (unsigned o = 0; o < 2; o++) {
            if (!decides_some_lanes(opcode, LLVMGetOperand(i, o))) continue;
            LLVMPositionBuilderBefore(unit->builder, i);
            LLVMSetOperand(i, o, hide(unit, LLVMGetOperand(i, o)));
        }
    }
    if (unit->request->output == COMPILE_SIMD) report_gang(unit);
    return SMELT_OK;
}
