/* Operands in device memory, in the layout of the tensor cores: a lane loads two neighbours of a row at once.
 * Where the cores want neighbours of a column, the warp then transposes the matrix. */
#include "compiler/ptx/matrix/matrix_placed.h"

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

LLVMValueRef matrix_row_offset(struct matrices *m, const struct placed *p, LLVMValueRef place, int of_pair) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef lane = matrix_lane(m);
    LLVMBasicBlockRef here = LLVMGetInstructionParent(place), home = home_of_pitch(m, p);
    if (!home) home = LLVMGetInstructionParent(lane);
    LLVMPositionBuilderBefore(b, home == here ? place : LLVMGetBasicBlockTerminator(home));
    LLVMValueRef row = LLVMBuildLShr(b, lane, constant_i32(unit, 2), "");
    if (of_pair >= 0) {
        row = LLVMBuildAnd(b, row, constant_i32(unit, 1), "");
        row = LLVMBuildAdd(b, row, constant_i32(unit, 2 * (uint32_t)of_pair), "");
    }
    row = LLVMBuildZExt(b, row, type_i64(unit), "");
    LLVMValueRef pitch = number64(unit, p->pitch);
    for (int t = 0; t < p->first.count; t++) {
        if (!p->pitch_times[t]) continue;
        LLVMValueRef term = wide_term(unit, &p->first.terms[t]);
        pitch = LLVMBuildAdd(b, pitch, LLVMBuildMul(b, term, number64(unit, p->pitch_times[t]), ""), "");
    }
    LLVMValueRef offset = LLVMBuildMul(b, row, pitch, "");
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

LLVMValueRef matrix_first_row(struct unit *unit, const struct placed *p) {
    LLVMValueRef address = uniform_address(unit, &p->first), number = number64(unit, p->first.number[0]);
    return LLVMBuildGEP2(unit->builder, LLVMInt8TypeInContext(unit->context), address, &number, 1, "");
}

LLVMValueRef matrix_load_device(struct matrices *m, const struct placed *p) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
    LLVMValueRef place = LLVMGetNextInstruction(p->behind), of_row = matrix_row_offset(m, p, place, -1);
    LLVMValueRef pair = LLVMBuildAnd(b, matrix_lane(m), constant_i32(unit, 3), "");
    pair = LLVMBuildZExt(b, LLVMBuildShl(b, pair, constant_i32(unit, 2), ""), type_i64(unit), "");
    LLVMValueRef of_lane = LLVMBuildAdd(b, of_row, pair, "");
    LLVMValueRef address = matrix_first_row(unit, p);
    address = LLVMBuildGEP2(b, byte, address, &of_lane, 1, "");
    pair = LLVMBuildLoad2(b, type_i32(unit), address, "");
    LLVMSetAlignment(pair, 4);
    if (!p->across) return pair;
    return matrix_transposed(m, pair);
}

LLVMValueRef matrix_transposed(struct matrices *m, LLVMValueRef pair) {
    LLVMValueRef turned = ptx_assembly(m->unit, "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
                                       type_i32(m->unit), &pair, 1, false);
    matrix_set_together(m->unit, turned, MEMORY_NONE);
    return turned;
}
