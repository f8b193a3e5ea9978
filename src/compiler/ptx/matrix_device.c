/* Operands in device memory, in the layout of the tensor cores: a lane loads two neighbours of a row at once.
 * Where the cores want neighbours of a column, the warp then transposes the matrix. */
#include "compiler/ptx/matrix_placed.h"

static LLVMValueRef wide_term(struct unit *unit, const struct term *term) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(term->value), i64 = type_i64(unit);
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) return LLVMBuildPtrToInt(b, term->value, i64, "");
    LLVMValueRef value = term->value;
    if (intrinsic_of(value) == INTRINSIC_THREAD_INDEX)
        value = LLVMBuildAnd(b, value, LLVMConstInt(type, ~UINT64_C(31), true), "");
    return LLVMBuildIntCast2(b, value, i64, term->extension != EXTENSION_ZERO, "");
}

static LLVMValueRef number64(struct unit *unit, int64_t number) {
    return LLVMConstInt(type_i64(unit), (uint64_t)number, true);
}

/* The block in which the last of the pitch's values is known; NULL: in any. */
static LLVMBasicBlockRef home_of_pitch(struct matrices *m, const struct placed *p) {
    LLVMBasicBlockRef home = NULL;
    for (int t = 0; t < p->first.count; t++) {
        LLVMValueRef value = p->first.terms[t].value;
        if (!p->pitch_times[t] || !LLVMIsAInstruction(value)) continue;
        LLVMBasicBlockRef block = LLVMGetInstructionParent(value);
        const struct flow *flow = &m->flow;
        if (!home || flow_dominates(flow, flow_index(flow, home), flow_index(flow, block))) home = block;
    }
    return home;
}

/* i64: from the first row's beginning to what the lane loads. It stands outside of loops that do not change
 * it. */
static LLVMValueRef lane_offset(struct matrices *m, const struct placed *p) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef lane = matrix_lane(m);
    LLVMBasicBlockRef home = home_of_pitch(m, p), here = LLVMGetInstructionParent(p->behind);
    LLVMValueRef place = LLVMGetNextInstruction(p->behind);
    if (!home) home = LLVMGetInstructionParent(lane);
    if (home != here) LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(home));
    LLVMValueRef row =
        LLVMBuildZExt(b, LLVMBuildLShr(b, lane, constant_i32(unit, 2), ""), type_i64(unit), "");
    LLVMValueRef pair = LLVMBuildAnd(b, lane, constant_i32(unit, 3), "");
    LLVMValueRef pitch = number64(unit, p->pitch);
    for (int t = 0; t < p->first.count; t++) {
        if (!p->pitch_times[t]) continue;
        LLVMValueRef term = wide_term(unit, &p->first.terms[t]);
        pitch = LLVMBuildAdd(b, pitch, LLVMBuildMul(b, term, number64(unit, p->pitch_times[t]), ""), "");
    }
    LLVMValueRef offset = LLVMBuildMul(b, row, pitch, "");
    pair = LLVMBuildZExt(b, LLVMBuildShl(b, pair, constant_i32(unit, 2), ""), type_i64(unit), "");
    offset = LLVMBuildAdd(b, offset, pair, "");
    LLVMPositionBuilderBefore(b, place);
    return offset;
}

/* Of the first row; the same in all lanes. */
static LLVMValueRef uniform_address(struct unit *unit, const struct address *first) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(unit->context, PTX_GLOBAL);
    LLVMValueRef base = NULL, offset = NULL;
    for (int t = 0; t < first->count; t++) {
        const struct term *term = &first->terms[t];
        if (!base && LLVMTypeOf(term->value) == pointer && term->times[0] == 1) {
            base = term->value;
            continue;
        }
        LLVMValueRef part = wide_term(unit, term);
        if (term->times[0] != 1) part = LLVMBuildMul(b, part, number64(unit, term->times[0]), "");
        offset = offset ? LLVMBuildAdd(b, offset, part, "") : part;
    }
    if (!base) base = LLVMConstIntToPtr(number64(unit, 0), pointer);
    return offset ? LLVMBuildGEP2(b, byte, base, &offset, 1, "") : base;
}

LLVMValueRef matrix_load_device(struct matrices *m, const struct placed *p) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(p->behind));
    LLVMValueRef of_lane = lane_offset(m, p), address = uniform_address(unit, &p->first);
    LLVMValueRef number = number64(unit, p->first.number[0]);
    address = LLVMBuildGEP2(b, byte, address, &of_lane, 1, "");
    address = LLVMBuildGEP2(b, byte, address, &number, 1, "");
    LLVMValueRef pair = LLVMBuildLoad2(b, type_i32(unit), address, "");
    LLVMSetAlignment(pair, 4);
    if (!p->across) return pair;
    LLVMValueRef turned = ptx_assembly(unit, "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
                                       type_i32(unit), &pair, 1, false);
    matrix_set_together(unit, turned, MEMORY_NONE);
    return turned;
}
