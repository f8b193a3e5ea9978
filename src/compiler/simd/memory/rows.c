/* Rows of a varying value: which lanes are constants apart, where others are not (base + row × n + column,
 * with n known only at run time), as in the addresses of tiles and matrices. row_access.c loads and stores
 * them.
 *
 * It follows from the value's expression when it is used: for each value, which lanes of the chunk have the
 * value of an earlier lane (their leader) plus a constant. */
#include "compiler/simd/lanes/lanes.h"

#include <string.h>

#define VIEW_DEPTH 16
#define MAX_STEPS 100 /* values examined per load: shared parts of expressions are walked repeatedly */
#define MAX_ASSUMED 8

/* Whose view is looked for: the lanes of a chunk, or the first lanes of all chunks. */
struct finder {
    struct simd *s;
    bool chunks;
    int first, step, lanes; /* lanes of the gang */
    /* Phis whose view is being computed: what is assumed of them within their loops. */
    LLVMValueRef assumed[MAX_ASSUMED];
    struct row_view views[MAX_ASSUMED];
    int assumed_count;
    int steps;
};

static unsigned width_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 64;
}

static int64_t wrap(uint64_t value, unsigned width) {
    unsigned unused = width >= 64 ? 0 : 64 - width;
    return (int64_t)(value << unused) >> unused;
}

static void each_alone(const struct finder *f, struct row_view *view) {
    for (int i = 0; i < f->lanes; i++) {
        view->leader[i] = i;
        view->offset[i] = 0;
    }
}

/* One row, with the offsets of a shape. */
static void from_shape(const struct finder *f, int shape, struct row_view *view) {
    const int64_t *offsets = shape_offsets(f->s, shape) + f->first;
    for (int i = 0; i < f->lanes; i++) {
        view->leader[i] = 0;
        view->offset[i] = (int64_t)((uint64_t)offsets[i * f->step] - (uint64_t)offsets[0]);
    }
}

/* Lanes stay together if they are together in both; a p + b q is relative to the first of them. */
static void combine(const struct finder *f, const struct row_view *a, uint64_t p, const struct row_view *b,
                    uint64_t q, unsigned width, struct row_view *out) {
    struct row_view result = {.leader = {0}};
    for (int i = 0; i < f->lanes; i++) {
        int first = 0;
        while (a->leader[first] != a->leader[i] || b->leader[first] != b->leader[i]) first++;
        uint64_t x = (uint64_t)a->offset[i] - (uint64_t)a->offset[first];
        uint64_t y = (uint64_t)b->offset[i] - (uint64_t)b->offset[first];
        result.leader[i] = first;
        result.offset[i] = wrap(x * p + y * q, width);
    }
    *out = result;
}

/* Lanes stay together if both have them together at the same offset. */
static void intersect(const struct finder *f, const struct row_view *a, const struct row_view *b,
                      struct row_view *out) {
    struct row_view result = {.leader = {0}};
    for (int i = 0; i < f->lanes; i++) {
        int first = 0;
        while (a->leader[first] != a->leader[i] || b->leader[first] != b->leader[i] ||
               a->offset[i] - a->offset[first] != b->offset[i] - b->offset[first])
            first++;
        result.leader[i] = first;
        result.offset[i] = a->offset[i] - a->offset[first];
    }
    *out = result;
}

/* Lanes stay together if they have the same value. */
static void keep_equal(const struct finder *f, const struct row_view *a, struct row_view *out) {
    struct row_view none = {.leader = {0}};
    intersect(f, a, &none, out);
}

static bool is_same(const struct finder *f, const struct row_view *a, const struct row_view *b) {
    size_t lanes = (size_t)f->lanes;
    return memcmp(a->leader, b->leader, lanes * sizeof *a->leader) == 0 &&
           memcmp(a->offset, b->offset, lanes * sizeof *a->offset) == 0;
}

/* A 32-bit index may wrap between two lanes, unless the launch is small: see widen_index in transfer.c. */
static void keep_near(const struct finder *f, LLVMValueRef index, const struct row_view *a,
                      struct row_view *out) {
    bool near = f->s->code->small && width_of(index) == 32;
    for (int i = 0; i < f->lanes; i++) near &= a->offset[i] >= -SMALL_REACH && a->offset[i] <= SMALL_REACH;
    if (near)
        *out = *a;
    else
        keep_equal(f, a, out);
}

static bool constant_of(LLVMValueRef value, int64_t *out) {
    if (!LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64) return false;
    *out = LLVMConstIntGetSExtValue(value);
    return true;
}

static void find_view(struct finder *f, LLVMValueRef value, int depth, struct row_view *out);

static void view_of_address(struct finder *f, LLVMValueRef gep, int depth, struct row_view *out) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    find_view(f, LLVMGetOperand(gep, 0), depth, out);
    for (int o = 1; o < LLVMGetNumOperands(gep); o++) {
        LLVMValueRef index = LLVMGetOperand(gep, (unsigned)o);
        if (o > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            type = LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(index));
            continue;
        }
        if (o > 1) type = LLVMGetElementType(type);
        struct row_view view;
        find_view(f, index, depth, &view);
        if (width_of(index) < 64) keep_near(f, index, &view, &view);
        combine(f, out, 1, &view, LLVMABISizeOfType(f->s->unit->layout, type), 64, out);
    }
}

/* The view of the value from outside the loop is assumed within it; if the value from the loop contradicts
 * it, each lane is alone. */
static void view_of_phi(struct finder *f, LLVMValueRef phi, int depth, struct row_view *out) {
    for (int n = 0; n < f->assumed_count; n++) {
        if (f->assumed[n] != phi) continue;
        *out = f->views[n];
        return;
    }
    if (f->assumed_count == MAX_ASSUMED) {
        each_alone(f, out);
        return;
    }
    unsigned count = LLVMCountIncoming(phi);
    int place = simd_place(f->s, LLVMGetInstructionParent(phi));
    if (f->s->paths.blocks[place].join) { /* the lanes came by different paths */
        each_alone(f, out);
        return;
    }
    bool found = false;
    for (int round = 0; round < 2; round++) { /* from outside, then around the loop */
        for (unsigned n = 0; n < count; n++) {
            bool around = simd_place(f->s, LLVMGetIncomingBlock(phi, n)) >= place;
            if (around != (round == 1)) continue;
            struct row_view view;
            find_view(f, LLVMGetIncomingValue(phi, n), depth, &view);
            if (round == 0 && found) intersect(f, out, &view, out);
            if (round == 0 && !found) *out = view;
            if (round == 1 && !is_same(f, out, &view)) found = false;
            if (round == 0) found = true;
        }
        if (round == 0 && found) {
            f->assumed[f->assumed_count] = phi;
            f->views[f->assumed_count++] = *out;
        }
        if (!found) break;
        if (round == 1) f->assumed_count--;
    }
    if (!found) {
        if (f->assumed_count && f->assumed[f->assumed_count - 1] == phi) f->assumed_count--;
        each_alone(f, out);
    }
}

/* Arithmetic without a rule of its own: lanes with the same operands have the same result. */
static bool is_plain(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMICmp:
    case LLVMSelect:
        return true;
    default:
        return false;
    }
}

static void view_of_plain(struct finder *f, LLVMValueRef i, int depth, struct row_view *out) {
    memset(out, 0, sizeof *out);
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        struct row_view view;
        find_view(f, LLVMGetOperand(i, (unsigned)o), depth, &view);
        intersect(f, out, &view, out);
    }
}

static void view_of_instruction(struct finder *f, LLVMValueRef i, int depth, struct row_view *out) {
    struct row_view a, b;
    int64_t constant = 0;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    switch (opcode) {
    case LLVMGetElementPtr:
        view_of_address(f, i, depth, out);
        return;
    case LLVMPHI:
        view_of_phi(f, i, depth, out);
        return;
    case LLVMFreeze:
    case LLVMAddrSpaceCast:
        find_view(f, LLVMGetOperand(i, 0), depth, out);
        return;
    case LLVMTrunc:
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        combine(f, &a, 1, &a, 0, width_of(i), out);
        return;
    case LLVMZExt:
    case LLVMSExt:
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        if (shape_is_index(i))
            keep_near(f, LLVMGetOperand(i, 0), &a, out);
        else
            keep_equal(f, &a, out);
        return;
    default:
        break;
    }
    bool adds = opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(i)),
         subtracts = opcode == LLVMSub;
    if (adds || subtracts) {
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        find_view(f, LLVMGetOperand(i, 1), depth, &b);
        combine(f, &a, 1, &b, adds ? 1 : UINT64_MAX, width_of(i), out);
    } else if (opcode == LLVMMul && constant_of(LLVMGetOperand(i, 1), &constant)) {
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        combine(f, &a, (uint64_t)constant, &a, 0, width_of(i), out);
    } else if (opcode == LLVMShl && constant_of(LLVMGetOperand(i, 1), &constant) && constant >= 0 &&
               constant < 63) {
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        combine(f, &a, UINT64_C(1) << constant, &a, 0, width_of(i), out);
    } else if (is_plain(i)) {
        view_of_plain(f, i, depth, out);
    } else {
        each_alone(f, out);
    }
}

static void find_view(struct finder *f, LLVMValueRef value, int depth, struct row_view *out) {
    int view = f->chunks ? shape_of(f->s, value) : piece_view(f->s, value);
    if (view >= 0)
        from_shape(f, view, out);
    else if (depth == 0 || ++f->steps > MAX_STEPS || !LLVMIsAInstruction(value) || private_is(f->s, value))
        each_alone(f, out);
    else
        view_of_instruction(f, value, depth - 1, out);
}

/* ---- The value of one lane, as the thread itself would compute it. */

static LLVMValueRef lane_value(struct simd *s, LLVMValueRef value, int chunk, int lane, int depth);

static bool is_cheap(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMGetElementPtr:
    case LLVMAdd:
    case LLVMSub:
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
        return true;
    default:
        return is_plain(i);
    }
}

static LLVMValueRef clone_for_lane(struct simd *s, LLVMValueRef i, int chunk, int lane, int depth) {
    LLVMBuilderRef b = s->unit->builder;
    /* Rows may rely on used indexes not being large: see widen_index in transfer.c. */
    if (LLVMIsAZExtInst(i) && s->code->small && width_of(LLVMGetOperand(i, 0)) == 32 && shape_is_index(i))
        return LLVMBuildSExt(b, lane_value(s, LLVMGetOperand(i, 0), chunk, lane, depth), LLVMTypeOf(i), "");
    LLVMValueRef operands[8];
    int count = LLVMGetNumOperands(i);
    for (int o = 0; o < count; o++)
        operands[o] = lane_value(s, LLVMGetOperand(i, (unsigned)o), chunk, lane, depth);
    LLVMValueRef copy = LLVMInstructionClone(i);
    for (int o = 0; o < count; o++) LLVMSetOperand(copy, (unsigned)o, operands[o]);
    copy_drop_metadata(copy);
    copy_drop_promises(copy);
    LLVMInsertIntoBuilder(b, copy);
    return copy;
}

static LLVMValueRef lane_value(struct simd *s, LLVMValueRef value, int chunk, int lane, int depth) {
    LLVMBuilderRef b = s->unit->builder;
    if (!LLVMIsAInstruction(value)) return value;
    int shape = shape_of(s, value), view = piece_view(s, value);
    if (shape == SHAPE_UNIFORM) return scalar_of(s, value);
    if (view >= 0) {
        LLVMValueRef first = piece_first_lane(s, value, chunk);
        const int64_t *offsets = shape_offsets(s, view) + chunk * s->chunk_lanes;
        int64_t offset = offsets[lane] - offsets[0];
        if (!offset) return first;
        bool address = LLVMGetTypeKind(LLVMTypeOf(first)) == LLVMPointerTypeKind;
        LLVMTypeRef type = address ? type_i64(s->unit) : LLVMTypeOf(first);
        LLVMValueRef step = LLVMConstInt(type, (unsigned long long)offset, true);
        if (!address) return LLVMBuildAdd(b, first, step, "");
        return LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), first, &step, 1, "");
    }
    if (depth > 0 && is_cheap(value) && LLVMGetNumOperands(value) <= 8)
        return clone_for_lane(s, value, chunk, lane, depth - 1);
    return LLVMBuildExtractElement(b, chunk_of(s, value, chunk), simd_i32(s, lane), "");
}

int rows_find(struct simd *s, LLVMValueRef value, int chunk, struct row_view *out) {
    struct finder finder = {.s = s, .first = chunk * s->chunk_lanes, .step = 1, .lanes = s->chunk_lanes};
    int leaders = 0;
    find_view(&finder, value, VIEW_DEPTH, out);
    for (int i = 0; i < s->chunk_lanes; i++) leaders += out->leader[i] == i;
    return leaders;
}

void rows_find_chunks(struct simd *s, LLVMValueRef value, struct row_view *out) {
    struct finder finder = {.s = s, .chunks = true, .step = s->chunk_lanes, .lanes = s->chunk_count};
    find_view(&finder, value, VIEW_DEPTH, out);
}

struct span rows_span(struct simd *s, int piece, const struct row_view *chunks, int leader) {
    struct span span = {0, 0};
    for (int c = leader; c < s->chunk_count; c++) {
        if (chunks->leader[c] != leader) continue;
        struct span own = shape_span(s, piece, c * s->chunk_lanes, s->chunk_lanes);
        if (chunks->offset[c] + own.least < span.least) span.least = chunks->offset[c] + own.least;
        if (chunks->offset[c] + own.most > span.most) span.most = chunks->offset[c] + own.most;
    }
    return span;
}

LLVMValueRef rows_lane(struct simd *s, LLVMValueRef value, int chunk, int lane) {
    return lane_value(s, value, chunk, lane, VIEW_DEPTH);
}
