/* Operands of products on tensor cores: the kind of their numbers, and registers in the cores' layout. */
#include "compiler/ptx/matrix/matrix_tensor.h"

#include <string.h>

#define TF32_BITS UINT32_C(0xffffe000)

/* ---- The kind of an operand's numbers. */

/* The half, or the 16 bits of a bfloat, that is exactly this float; NULL: there may be none. */
static LLVMValueRef narrow_constant(struct unit *unit, LLVMValueRef value, enum kind kind) {
    LLVMBool inexact;
    double number = LLVMConstRealGetDouble(value, &inexact);
    if (kind == KIND_HALF) {
        LLVMValueRef half = LLVMConstReal(LLVMHalfTypeInContext(unit->context), number);
        return LLVMConstRealGetDouble(half, &inexact) == number ? half : NULL;
    }
    float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits & 0xffff ? NULL : LLVMConstInt(LLVMInt16TypeInContext(unit->context), bits >> 16, false);
}

static LLVMValueRef narrow_of(struct unit *unit, LLVMValueRef value, enum kind kind) {
    LLVMTypeRef i16 = LLVMInt16TypeInContext(unit->context), half = LLVMHalfTypeInContext(unit->context);
    uint64_t by;
    if (LLVMIsUndef(value)) return LLVMConstNull(kind == KIND_HALF ? half : i16);
    if (LLVMIsAConstantFP(value)) return narrow_constant(unit, value, kind);
    if (!LLVMIsAInstruction(value)) return NULL;
    LLVMValueRef from = LLVMGetNumOperands(value) ? LLVMGetOperand(value, 0) : NULL;
    if (kind == KIND_HALF) return LLVMIsAFPExtInst(value) && LLVMTypeOf(from) == half ? from : NULL;
    /* bfloat.c */
    if (!LLVMIsABitCastInst(value) || !LLVMIsAInstruction(from)) return NULL;
    if (LLVMGetInstructionOpcode(from) != LLVMShl) return NULL;
    if (!is_constant_integer(LLVMGetOperand(from, 1), &by) || by != 16) return NULL;
    LLVMValueRef bits = LLVMGetOperand(from, 0);
    if (!LLVMIsAZExtInst(bits)) return NULL;
    return LLVMTypeOf(LLVMGetOperand(bits, 0)) == i16 ? LLVMGetOperand(bits, 0) : NULL;
}

static bool loses_nothing(struct unit *unit, LLVMValueRef value) {
    return narrow_of(unit, value, KIND_HALF) || narrow_of(unit, value, KIND_BFLOAT);
}

/* The narrow kind that holds both values exactly; KIND_NONE: neither does. */
static enum kind narrow_kind(struct unit *unit, LLVMValueRef a, LLVMValueRef b) {
    for (enum kind kind = KIND_HALF; kind <= KIND_BFLOAT; kind++)
        if (narrow_of(unit, a, kind) && narrow_of(unit, b, kind)) return kind;
    return KIND_NONE;
}

static bool is_loaded(struct unit *unit, LLVMValueRef value, enum kind kind) {
    LLVMValueRef narrow = narrow_of(unit, value, kind);
    return narrow && LLVMIsALoadInst(narrow);
}

/* Of a float matrix times one of half or bfloat, in either order. A float left matrix may be the diagonal one
 * that rescales attention's sums, if the product starts at 0 (matrix_diagonal.c). */
static struct kinds mixed_kinds(struct unit *unit, const struct product *p) {
    struct kinds kinds = {narrow_kind(unit, p->even, p->odd), narrow_kind(unit, p->right, p->right)};
    bool starts = LLVMIsAConstantFP(p->sum) && LLVMIsNull(p->sum);
    if (!kinds.left == !kinds.right) return (struct kinds){KIND_NONE, KIND_NONE};
    if (!kinds.left && starts && !is_loaded(unit, p->right, kinds.right))
        return (struct kinds){KIND_NONE, KIND_NONE};
    if (!kinds.left) kinds.left = KIND_FLOAT;
    if (!kinds.right) kinds.right = KIND_FLOAT;
    return kinds;
}

struct kinds matrix_kinds_of(struct unit *unit, const struct product *p) {
    const LLVMValueRef operands[3] = {p->even, p->odd, p->right};
    for (enum kind kind = KIND_HALF; kind <= KIND_BFLOAT; kind++) {
        bool all = true;
        for (int i = 0; i < 3; i++) all &= narrow_of(unit, operands[i], kind) != NULL;
        if (all) return (struct kinds){kind, kind};
    }
    const struct kinds inexact = {KIND_TF32, KIND_TF32};
    /* Relaxed and fast math set this flag on every operation. */
    if (LLVMGetFastMathFlags(p->call) & LLVMFastMathAllowReassoc) return inexact;
    for (int i = 0; i < 3; i++)
        if (!loses_nothing(unit, operands[i])) return mixed_kinds(unit, p);
    return inexact;
}

bool matrix_suits_tensor_cores(struct unit *unit, const struct product *p) {
    return matrix_kinds_of(unit, p).left != KIND_NONE;
}

/* ---- Fragments. */

/* Two numbers in one register. */
static LLVMValueRef pack(struct unit *unit, LLVMValueRef low, LLVMValueRef high) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef pair = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(low), 2));
    pair = LLVMBuildInsertElement(b, pair, low, constant_i32(unit, 0), "");
    pair = LLVMBuildInsertElement(b, pair, high, constant_i32(unit, 1), "");
    return LLVMBuildBitCast(b, pair, type_i32(unit), "");
}

static LLVMValueRef rounded(struct unit *unit, LLVMValueRef value) {
    return ptx_assembly(unit, "cvt.rna.tf32.f32 $0, $1;", "=r,f", type_i32(unit), &value, 1, false);
}

/* A number for one register. A float that is split later stays as it is. */
static LLVMValueRef as_register(struct unit *unit, LLVMValueRef value, enum kind kind) {
    if (kind == KIND_FLOAT || loses_nothing(unit, value) || LLVMIsAConstant(value))
        return LLVMBuildBitCast(unit->builder, value, type_i32(unit), "");
    return rounded(unit, value);
}

/* Splits floats into their highest bits, which TF32 holds, and the rest, rounded to TF32. Where the rest
 * would be 0, an infinity or a NaN, it is the float times 2^-64: too small to change a sum, and not 0, whose
 * product with an infinity would be NaN. */
static void split(struct unit *unit, struct fragment *f) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef number = LLVMFloatTypeInContext(unit->context);
    for (int i = 0; i < 2; i++) {
        LLVMValueRef whole = LLVMBuildBitCast(b, f->registers[i], number, "");
        f->registers[i] = LLVMBuildAnd(b, f->registers[i], constant_i32(unit, TF32_BITS), "");
        LLVMValueRef rest = LLVMBuildFSub(b, whole, LLVMBuildBitCast(b, f->registers[i], number, ""), "");
        LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, rest, LLVMConstNull(number), "");
        LLVMValueRef tiny = LLVMBuildFMul(b, whole, LLVMConstReal(number, 0x1p-64), "");
        f->low[i] = rounded(unit, LLVMBuildSelect(b, inexact, rest, tiny, ""));
    }
}

LLVMValueRef matrix_widened(struct unit *unit, const struct fragment *f, unsigned i) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef half = LLVMHalfTypeInContext(unit->context), i16 = LLVMInt16TypeInContext(unit->context);
    LLVMValueRef both = f->registers[0];
    if (f->kind == KIND_BFLOAT)
        return i ? LLVMBuildAnd(b, both, constant_i32(unit, UINT32_C(0xffff0000)), "")
                 : LLVMBuildShl(b, both, constant_i32(unit, 16), "");
    if (i) both = LLVMBuildLShr(b, both, constant_i32(unit, 16), "");
    LLVMValueRef one = LLVMBuildBitCast(b, LLVMBuildTrunc(b, both, i16, ""), half, "");
    one = LLVMBuildFPExt(b, one, LLVMFloatTypeInContext(unit->context), "");
    return LLVMBuildBitCast(b, one, type_i32(unit), "");
}

static LLVMValueRef lane_bit(struct matrices *m, unsigned bit) {
    LLVMBuilderRef b = m->unit->builder;
    LLVMValueRef set = LLVMBuildAnd(b, matrix_lane(m), constant_i32(m->unit, 1u << bit), "");
    return LLVMBuildICmp(b, LLVMIntNE, set, constant_i32(m->unit, 0), "");
}

/* From each of two registers, the half that holds this lane's column. */
static LLVMValueRef join_halves(struct matrices *m, LLVMValueRef even_row, LLVMValueRef odd_row) {
    static const char name[] = "llvm.nvvm.prmt";
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(unit->module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
    LLVMValueRef halves = LLVMBuildSelect(b, lane_bit(m, RIGHT_COLUMN_BIT), constant_i32(unit, 0x7632),
                                          constant_i32(unit, 0x5410), "");
    LLVMValueRef arguments[3] = {even_row, odd_row, halves};
    return LLVMBuildCall2(b, LLVMGlobalGetValueType(function), function, arguments, 3, "");
}

static void make_left(struct matrices *m, struct fragment *f) {
    struct unit *unit = m->unit;
    if (f->kind >= KIND_TF32) {
        f->registers[0] = matrix_take_lanes(m, SOURCE_ROW, as_register(unit, f->first, f->kind));
        f->registers[1] = matrix_take_lanes(m, SOURCE_ROW, as_register(unit, f->second, f->kind));
    } else {
        LLVMValueRef both = pack(unit, f->numbers[0], f->numbers[1]);
        f->registers[0] = matrix_take_lanes(m, SOURCE_ROW, both);
    }
}

/* A column of pairs of rows, from lanes with a row's pairs of columns. TF32 takes two moves for two numbers:
 * in the first, a lane of an even column gets its even row's number, and one of an odd column its odd row's.
 * The sending lanes derive this from their row. */
static void make_right(struct matrices *m, struct fragment *f) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    if (f->kind < KIND_TF32) {
        LLVMValueRef both = pack(unit, f->numbers[0], f->numbers[1]);
        if (m->ordered) {
            f->registers[0] = matrix_transposed(m, both);
            return;
        }
        LLVMValueRef even_row = matrix_take_lanes(m, SOURCE_RIGHT_EVEN, both);
        f->registers[0] = join_halves(m, even_row, matrix_take_lanes(m, SOURCE_RIGHT_ODD, both));
        return;
    }
    LLVMValueRef even = as_register(unit, f->first, f->kind), odd = as_register(unit, f->second, f->kind);
    LLVMValueRef of_odd_row = lane_bit(m, m->ordered ? ORDERED_ROW_BIT : METAL_ROW_BIT),
                 for_odd = lane_bit(m, RIGHT_COLUMN_BIT);
    LLVMValueRef first =
        matrix_take_lanes(m, SOURCE_RIGHT_SAME, LLVMBuildSelect(b, of_odd_row, odd, even, ""));
    LLVMValueRef second =
        matrix_take_lanes(m, SOURCE_RIGHT_OTHER, LLVMBuildSelect(b, of_odd_row, even, odd, ""));
    f->registers[0] = LLVMBuildSelect(b, for_odd, second, first, "");
    f->registers[1] = LLVMBuildSelect(b, for_odd, first, second, "");
}

/* The last block in which one of the two is computed; NULL: they are constants. */
static LLVMBasicBlockRef block_of_operands(const struct matrices *m, LLVMValueRef first,
                                           LLVMValueRef second) {
    const LLVMValueRef both[2] = {first, second};
    LLVMBasicBlockRef last = NULL;
    for (int i = 0; i < 2; i++) {
        if (!LLVMIsAInstruction(both[i])) continue;
        LLVMBasicBlockRef block = LLVMGetInstructionParent(both[i]);
        const struct flow *flow = &m->flow;
        if (!last || flow_dominates(flow, flow_index(flow, last), flow_index(flow, block))) last = block;
    }
    return last;
}

struct fragment *matrix_fragment_of(struct matrices *m, LLVMValueRef first, LLVMValueRef second,
                                    enum kind kind, bool right) {
    const struct flow *flow = &m->flow;
    int here = flow_index(flow, m->block);
    for (struct fragment *f = m->fragments; f; f = f->next)
        if (f->first == first && f->second == second && f->kind == kind && f->right == right &&
            flow_dominates(flow, flow_index(flow, f->block), here))
            return f;
    struct fragment *f = arena_alloc(&m->arena, sizeof *f);
    if (!f) return NULL;
    LLVMBasicBlockRef home = block_of_operands(m, first, second);
    if (!home || !matrix_is_together(m, home)) home = m->block;
    *f = (struct fragment){
        .next = m->fragments, .first = first, .second = second, .kind = kind, .right = right, .block = home};
    for (int i = 0; i < 2 && kind < KIND_TF32; i++)
        f->numbers[i] = narrow_of(m->unit, i ? second : first, kind);
    m->fragments = f;
    return f;
}

void matrix_make_fragment(struct matrices *m, struct fragment *f) {
    if (f->registers[0]) return;
    if (f->block != m->block)
        LLVMPositionBuilderBefore(m->unit->builder, LLVMGetBasicBlockTerminator(f->block));
    if (f->right)
        make_right(m, f);
    else
        make_left(m, f);
    if (f->kind == KIND_FLOAT) split(m->unit, f);
    LLVMPositionBuilderBefore(m->unit->builder, m->place);
}
