/* Integers that follow from a thread's place in its group: where the group's size is known, they are computed
 * for every thread of it. If the lanes of each gang then have the same offsets, the value is affine, however
 * it came about: t / 6 * 20 + t % 6, or ((t & 1) << 6 | t / 2) | 56. A comparison such as t < 64 may be
 * uniform.
 *
 * Flags of instructions are not used: the numbers hold in lanes that are off, too. */
#include "compiler/fold.h"
#include "compiler/simd/simd.h"

#include <string.h>

#define GROUP_THREADS 1024
#define MOST_VALUES 1024 /* of a kernel: 8 KiB each at most */
#define DEPTH 48

static bool group_is_known(const struct simd *s, uint64_t *threads) {
    const uint32_t *size = s->code->size;
    *threads = (uint64_t)size[0] * size[1] * size[2];
    return !s->code->masked && !s->code->joined && *threads && *threads <= GROUP_THREADS &&
           *threads % (uint64_t)s->lanes == 0;
}

static bool number_of_context(const struct simd *s, LLVMValueRef call, uint64_t thread, uint64_t *out) {
    const uint32_t *size = s->code->size;
    uint64_t dimension = 3;
    switch (intrinsic_of(call)) {
    case INTRINSIC_THREAD_INDEX:
        *out = thread;
        return true;
    case INTRINSIC_LANE:
        *out = thread % SIMDGROUP_LANES;
        return true;
    case INTRINSIC_SIMDGROUP:
        *out = thread / SIMDGROUP_LANES;
        return true;
    case INTRINSIC_POSITION_IN_THREADGROUP:
        if (!is_constant_integer(LLVMGetOperand(call, 0), &dimension) || dimension > 2) return false;
        *out = dimension == 0   ? thread % size[0]
               : dimension == 1 ? thread / size[0] % size[1]
                                : thread / size[0] / size[1];
        return true;
    default:
        return false;
    }
}

static const uint64_t *numbers_of(struct simd *s, LLVMValueRef value, uint64_t threads, int depth);

static bool is_calculated(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMUDiv:
    case LLVMURem:
    case LLVMICmp:
    case LLVMFreeze:
    case LLVMSelect:
        return true;
    default:
        return fold_is_arithmetic(i);
    }
}

static bool is_integer(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
}

/* The numbers of one thread's operands are in `own`. */
static bool number_of(LLVMValueRef i, const uint64_t *own, uint64_t *out) {
    unsigned from = LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(i, 0)));
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMSelect:
        *out = own[0] ? own[1] : own[2];
        return true;
    case LLVMSExt:
        *out = (uint64_t)shape_wrap(own[0], from);
        return true;
    case LLVMZExt:
    case LLVMTrunc:
    case LLVMFreeze:
        *out = own[0];
        return true;
    default:
        return fold_integers(i, own[0], own[1], out);
    }
}

static bool fill_in(struct simd *s, LLVMValueRef i, uint64_t threads, int depth, uint64_t *numbers) {
    const uint64_t *operands[3] = {NULL};
    bool call = LLVMIsACallInst(i) != NULL;
    int count = call ? 0 : LLVMGetNumOperands(i);
    if (!call && !is_calculated(i)) return false;
    for (int o = 0; o < count; o++) {
        operands[o] = numbers_of(s, LLVMGetOperand(i, (unsigned)o), threads, depth - 1);
        if (!operands[o]) return false;
    }
    for (uint64_t t = 0; t < threads; t++) {
        uint64_t own[3] = {0};
        for (int o = 0; o < count; o++) own[o] = operands[o][t];
        if (!(call ? number_of_context(s, i, t, &numbers[t]) : number_of(i, own, &numbers[t]))) return false;
        numbers[t] = fold_cut(LLVMTypeOf(i), numbers[t]);
    }
    return true;
}

static uint64_t *new_numbers(struct simd *s, uint64_t threads) {
    if (s->numbered_values >= MOST_VALUES) return NULL;
    s->numbered_values++;
    return arena_alloc(&s->arena, threads * sizeof(uint64_t));
}

/* Of every thread of the group; NULL: something else is involved. */
static const uint64_t *numbers_of(struct simd *s, LLVMValueRef value, uint64_t threads, int depth) {
    if (!is_integer(value) || depth == 0 || (!LLVMIsAInstruction(value) && !LLVMIsAConstantInt(value)))
        return NULL;
    struct value *v = value_of(s, value);
    if (v->numbers || v->unnumbered) return v->numbers;
    uint64_t *numbers = new_numbers(s, threads), constant;
    if (!numbers) return NULL;
    if (is_constant_integer(value, &constant)) {
        for (uint64_t t = 0; t < threads; t++) numbers[t] = constant;
        v->numbers = numbers;
    } else if (LLVMIsAInstruction(value) && fill_in(s, value, threads, depth, numbers)) {
        v->numbers = numbers;
    }
    v->unnumbered = !v->numbers;
    return v->numbers;
}

/* Lane 0's number is computed from lane 0's operands. */
static bool has_scalars(struct simd *s, LLVMValueRef i) {
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        if (shape_of(s, LLVMGetOperand(i, (unsigned)o)) == SHAPE_VARYING) return false;
    return true;
}

int shape_by_number(struct simd *s, LLVMValueRef i) {
    uint64_t threads;
    if (!is_integer(i) || !is_calculated(i) || !group_is_known(s, &threads) || !has_scalars(s, i))
        return SHAPE_VARYING;
    const uint64_t *numbers = numbers_of(s, i, threads, DEPTH);
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(i));
    int64_t offsets[GANG_MAX_LANES];
    bool same = true;
    if (!numbers) return SHAPE_VARYING;
    for (uint64_t t = 0; t < threads; t++) {
        uint64_t lane = t % (uint64_t)s->lanes, first = t - lane;
        int64_t offset = shape_wrap(numbers[t] - numbers[first], width);
        if (offset && width == 1) return SHAPE_VARYING; /* masks are chunks */
        if (first == 0) offsets[lane] = offset;
        if (offset != offsets[lane]) return SHAPE_VARYING;
        same &= offset == 0;
    }
    return same ? SHAPE_UNIFORM : shape_intern(s, offsets);
}
