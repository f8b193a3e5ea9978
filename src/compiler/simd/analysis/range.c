/* Facts about integers in all lanes: intervals, and low bits of lane 0 that are zero. Both examine
 * expressions of the original entry, a few operations deep.
 *
 * Facts that hold for active lanes only must not be used here: flags (nsw, nuw, nneg, disjoint), metadata,
 * attributes of calls, divisors that are never 0. A result must also hold in inactive lanes, as far as they
 * compute it from positions and constants. */
#include "compiler/simd/simd.h"
#include "compiler/analysis/zeros.h"

#include <string.h>

enum { DEPTH = 12, BUDGET = 200 };

/* A grid is called small (struct code_shape) if no dimension exceeds this: positions of lanes without a
 * thread are then below 2^31, too. */
#define SMALL_GRID ((1ull << 31) - 1024)
#define GROUP_THREADS 1024

static unsigned width_of(LLVMValueRef value) {
    return LLVMGetIntTypeWidth(LLVMTypeOf(value));
}

static uint64_t largest(unsigned width) {
    return width >= 64 ? UINT64_MAX : (1ull << width) - 1;
}

static bool is_intrinsic(const char *name, const char *base) {
    size_t length = strlen(base);
    return strncmp(name, base, length) == 0 && name[length] == '.';
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
static uint64_t greater(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* ---- Intervals. */

struct walk {
    struct simd *s;
    int budget;
};

static struct range range_of(struct walk *w, LLVMValueRef value, int depth);

static struct range full(unsigned width) {
    return (struct range){0, largest(width)};
}

static struct range range_sum(struct range a, struct range b, unsigned width) {
    if (b.high > largest(width) - a.high) return full(width);
    return (struct range){a.low + b.low, a.high + b.high};
}

static struct range range_difference(struct range a, struct range b, unsigned width) {
    if (a.low < b.high) return full(width);
    return (struct range){a.low - b.high, a.high - b.low};
}

static struct range range_product(struct range a, struct range b, unsigned width) {
    if (a.high != 0 && b.high > largest(width) / a.high) return full(width);
    return (struct range){a.low * b.low, a.high * b.high};
}

/* A shift by the width or more is poison. */
static struct range range_shift(LLVMOpcode opcode, struct range a, struct range count, unsigned width) {
    if (count.high >= width) return full(width);
    if (opcode == LLVMShl) {
        if (a.high > largest(width) >> count.high) return full(width);
        return (struct range){a.low << count.low, a.high << count.high};
    }
    if (opcode == LLVMAShr && a.high > largest(width) >> 1) return full(width);
    return (struct range){a.low >> count.high, a.high >> count.low};
}

/* All bits up to the highest that may be set. */
static uint64_t bits_below(uint64_t value) {
    return value ? UINT64_MAX >> __builtin_clzll(value) : 0;
}

static struct range range_bits(LLVMOpcode opcode, struct range a, struct range b) {
    if (opcode == LLVMAnd) return (struct range){0, smaller(a.high, b.high)};
    uint64_t high = bits_below(a.high | b.high);
    return (struct range){opcode == LLVMOr ? greater(a.low, b.low) : 0, high};
}

static struct range range_division(LLVMOpcode opcode, struct range a, struct range b, unsigned width) {
    bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem;
    uint64_t half = largest(width) >> 1;
    if (b.low == 0 || (is_signed && (a.high > half || b.high > half))) return full(width);
    if (opcode == LLVMUDiv || opcode == LLVMSDiv) return (struct range){a.low / b.high, a.high / b.low};
    return a.high < b.low ? a : (struct range){0, smaller(a.high, b.high - 1)};
}

static struct range range_binary(struct walk *w, LLVMValueRef value, LLVMOpcode opcode, int depth) {
    unsigned width = width_of(value);
    struct range a = range_of(w, LLVMGetOperand(value, 0), depth);
    struct range b = range_of(w, LLVMGetOperand(value, 1), depth);
    switch (opcode) {
    case LLVMAdd:
        return range_sum(a, b, width);
    case LLVMSub:
        return range_difference(a, b, width);
    case LLVMMul:
        return range_product(a, b, width);
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
        return range_shift(opcode, a, b, width);
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
        return range_bits(opcode, a, b);
    default:
        return range_division(opcode, a, b, width);
    }
}

/* Lanes without a thread continue the numbers of the last one. */
static uint64_t surplus(struct simd *s) {
    return s->code->masked ? GANG_MAX_LANES - 1 : 0;
}

static uint64_t last_index(struct simd *s) {
    const uint32_t *size = s->code->size;
    bool known = size[0] && size[1] && size[2];
    return (known ? (uint64_t)size[0] * size[1] * size[2] : GROUP_THREADS) - 1 + surplus(s);
}

static bool range_position(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic, struct range *range) {
    uint64_t dimension;
    if (LLVMGetNumArgOperands(call) != 1 || !is_constant_integer(LLVMGetOperand(call, 0), &dimension) ||
        dimension > 2)
        return false;
    uint64_t size = s->code->size[dimension], most = SMALL_GRID;
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP) {
        *range = (struct range){0, (size ? size : GROUP_THREADS) - 1 + surplus(s)};
        return true;
    }
    if (intrinsic == INTRINSIC_THREADGROUP_SIZE || intrinsic == INTRINSIC_DISPATCH_THREADGROUP_SIZE) {
        *range = size ? (struct range){size, size} : (struct range){1, GROUP_THREADS};
        return true;
    }
    if (!s->code->small) return false;
    if (intrinsic == INTRINSIC_THREAD_POSITION)
        *range = (struct range){0, most - 1 + surplus(s)};
    else if (intrinsic == INTRINSIC_THREADGROUP_POSITION)
        *range = (struct range){0, most - 1};
    else if (intrinsic == INTRINSIC_GRID_THREADS || intrinsic == INTRINSIC_GRID_GROUPS)
        *range = (struct range){1, most};
    else
        return false;
    return true;
}

static bool range_context(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic, struct range *range) {
    if (intrinsic == INTRINSIC_THREAD_INDEX)
        *range = (struct range){0, last_index(s)};
    else if (intrinsic == INTRINSIC_LANE)
        *range = (struct range){0, SIMDGROUP_LANES - 1};
    else if (intrinsic == INTRINSIC_SIMDGROUP)
        *range = (struct range){0, last_index(s) / SIMDGROUP_LANES};
    else if (intrinsic == INTRINSIC_SIMDGROUP_COUNT)
        *range = (struct range){1, GROUP_THREADS / SIMDGROUP_LANES};
    else
        return range_position(s, call, intrinsic, range);
    return true;
}

/* As signed numbers, in [0, half]: where both are not negative they compare as unsigned ones. */
static struct range range_signed_choice(struct range a, struct range b, bool greatest, unsigned width) {
    uint64_t half = largest(width) >> 1;
    bool a_positive = a.high <= half, b_positive = b.high <= half;
    if (a_positive && b_positive)
        return greatest ? (struct range){greater(a.low, b.low), greater(a.high, b.high)}
                        : (struct range){smaller(a.low, b.low), smaller(a.high, b.high)};
    /* A negative number is never the greater one. */
    if (greatest && (a_positive || b_positive)) return (struct range){a_positive ? a.low : b.low, half};
    return full(width);
}

static struct range range_call(struct walk *w, LLVMValueRef call, int depth) {
    const char *name = called_name(call);
    unsigned width = width_of(call);
    struct range range;
    enum intrinsic intrinsic = intrinsic_of(call);
    if (intrinsic != INTRINSIC_NONE)
        return range_context(w->s, call, intrinsic, &range) ? range : full(width);
    if (is_intrinsic(name, "llvm.ctpop")) return (struct range){0, smaller(width, largest(width))};
    bool smin = is_intrinsic(name, "llvm.smin"), smax = is_intrinsic(name, "llvm.smax");
    bool umin = is_intrinsic(name, "llvm.umin"), umax = is_intrinsic(name, "llvm.umax");
    bool minus = is_intrinsic(name, "llvm.usub.sat");
    if (!smin && !smax && !umin && !umax && !minus) return full(width);
    struct range a = range_of(w, LLVMGetOperand(call, 0), depth);
    struct range b = range_of(w, LLVMGetOperand(call, 1), depth);
    if (smin || smax) return range_signed_choice(a, b, smax, width);
    if (umin) return (struct range){smaller(a.low, b.low), smaller(a.high, b.high)};
    if (umax) return (struct range){greater(a.low, b.low), greater(a.high, b.high)};
    return (struct range){a.low > b.high ? a.low - b.high : 0, a.high > b.low ? a.high - b.low : 0};
}

static struct range range_cast(struct walk *w, LLVMValueRef value, LLVMOpcode opcode, int depth) {
    LLVMValueRef operand = LLVMGetOperand(value, 0);
    struct range range = range_of(w, operand, depth);
    bool fits = opcode == LLVMZExt || opcode == LLVMFreeze ||
                (opcode == LLVMTrunc && range.high <= largest(width_of(value))) ||
                (opcode == LLVMSExt && range.high <= largest(width_of(operand)) >> 1);
    return fits ? range : full(width_of(value));
}

static struct range range_of(struct walk *w, LLVMValueRef value, int depth) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || width_of(value) > 64) return full(64);
    uint64_t constant;
    if (is_constant_integer(value, &constant)) return (struct range){constant, constant};
    unsigned width = width_of(value);
    if (!LLVMIsAInstruction(value) || depth == 0 || w->budget-- <= 0) return full(width);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        return range_binary(w, value, opcode, depth - 1);
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMFreeze:
        return range_cast(w, value, opcode, depth - 1);
    case LLVMSelect: {
        struct range a = range_of(w, LLVMGetOperand(value, 1), depth - 1);
        struct range b = range_of(w, LLVMGetOperand(value, 2), depth - 1);
        return (struct range){smaller(a.low, b.low), greater(a.high, b.high)};
    }
    case LLVMCall:
        return range_call(w, value, depth - 1);
    default:
        return full(width);
    }
}

struct range range_unsigned(struct simd *s, LLVMValueRef integer) {
    struct walk walk = {.s = s, .budget = BUDGET};
    return range_of(&walk, integer, DEPTH);
}

/* ---- Low bits that are zero, in lane 0 of every gang. */

/* Lane 0's index in the threadgroup, or in its row, is a multiple of the gang's lanes. In a group of one
 * dimension, it is the position. Otherwise the first dimension's position is that index modulo the group's
 * size; the second's is the index divided by the first size, modulo the second. */
static unsigned zeros_of_position(struct simd *s, int dimension) {
    const uint32_t *size = s->code->size;
    uint64_t step = (uint64_t)s->lanes;
    if (size[dimension] == 1) return 63;
    if (dimension == 0 && size[1] == 1 && size[2] == 1) return zeros_of_number(step);
    for (int d = 0; d < dimension; d++) {
        if (size[d] == 0 || step % size[d] != 0) return 0;
        step /= size[d];
    }
    if (size[dimension]) return zeros_of_number(step | size[dimension]);
    return dimension == 0 && s->code->rows ? zeros_of_number(step | SIMDGROUP_LANES) : 0;
}

/* Of a group's size. Where it is not known, full groups of one dimension, and rows, are whole numbers of
 * gangs. */
static unsigned zeros_of_size(const struct simd *s, int dimension) {
    const struct code_shape *code = s->code;
    if (code->size[dimension]) return zeros_of_number(code->size[dimension]);
    bool line = code->size[1] == 1 && code->size[2] == 1;
    if (dimension != 0 || code->masked || (!line && !code->rows)) return 0;
    return zeros_of_number(code->multiple ? code->multiple : SIMDGROUP_LANES);
}

static unsigned zeros_of_source(void *context, LLVMValueRef call) {
    struct simd *s = context;
    enum intrinsic intrinsic = intrinsic_of(call);
    uint64_t lanes = (uint64_t)s->lanes, dimension = 3;
    if (intrinsic == INTRINSIC_NONE) return 0;
    if (intrinsic == INTRINSIC_THREAD_INDEX) return s->code->by_rows ? 0 : zeros_of_number(lanes);
    if (intrinsic == INTRINSIC_LANE) return zeros_of_number(lanes % SIMDGROUP_LANES);
    if (intrinsic == INTRINSIC_SIMDGROUP)
        return lanes % SIMDGROUP_LANES == 0 ? zeros_of_number(lanes / SIMDGROUP_LANES) : 0;
    if (LLVMGetNumArgOperands(call) != 1 || !is_constant_integer(LLVMGetOperand(call, 0), &dimension) ||
        dimension > 2)
        return 0;
    unsigned of_position = zeros_of_position(s, (int)dimension), of_size = zeros_of_size(s, (int)dimension);
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP) return of_position;
    if (intrinsic == INTRINSIC_THREADGROUP_SIZE || intrinsic == INTRINSIC_DISPATCH_THREADGROUP_SIZE)
        return of_size;
    if (intrinsic == INTRINSIC_THREAD_POSITION) return of_position < of_size ? of_position : of_size;
    return 0;
}

unsigned range_zero_bits(struct simd *s, LLVMValueRef lane0) {
    struct zeros_rules rules = {.of_source = zeros_of_source, .context = s};
    return zeros_of_value(&rules, lane0);
}
