#include "compiler/ptx/matrix/matrix_address.h"
#include "compiler/analysis/zeros.h"

#define DEEPEST 40 /* nested operations of an address that are examined */

static bool find(struct matrices *m, LLVMValueRef value, int depth, struct address *out);

/* ---- Small parts. */

static unsigned width_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 64;
}

/* The lowest bits as a signed number. */
static int64_t wrapped(int64_t number, unsigned width) {
    return width >= 64 ? number : (int64_t)((uint64_t)number << (64 - width)) >> (64 - width);
}

static bool is_number(const struct address *a) {
    return a->count == 0;
}

/* Numbers are kept signed. */
static void settle_number(struct address *a, unsigned width) {
    a->is_signed = a->is_unsigned = true;
    for (int l = 0; l < ADDRESS_LANES; l++) {
        a->number[l] = wrapped(a->number[l], width);
        a->is_unsigned &= a->number[l] >= 0;
    }
}

static void set_number(struct address *out, int64_t number) {
    *out = (struct address){.is_signed = true, .is_unsigned = number >= 0};
    for (int l = 0; l < ADDRESS_LANES; l++) out->number[l] = number;
}

static void set_term(struct address *out, LLVMValueRef value) {
    *out = (struct address){.count = 1, .is_signed = true, .is_unsigned = true};
    out->terms[0].value = value;
    for (int l = 0; l < ADDRESS_LANES; l++) out->terms[0].times[l] = 1;
}

static bool add(struct address *a, const struct address *b, int sign) {
    for (int i = 0; i < b->count; i++) {
        int t = 0;
        while (t < a->count &&
               (a->terms[t].value != b->terms[i].value || a->terms[t].extension != b->terms[i].extension))
            t++;
        if (t == ADDRESS_TERMS) return false;
        if (t == a->count)
            a->terms[a->count++] =
                (struct term){.value = b->terms[i].value, .extension = b->terms[i].extension};
        for (int l = 0; l < ADDRESS_LANES; l++) a->terms[t].times[l] += sign * b->terms[i].times[l];
    }
    for (int l = 0; l < ADDRESS_LANES; l++) a->number[l] += sign * b->number[l];
    return true;
}

static void multiply(struct address *a, const int64_t *numbers) {
    for (int l = 0; l < ADDRESS_LANES; l++) {
        for (int t = 0; t < a->count; t++) a->terms[t].times[l] *= numbers[l];
        a->number[l] *= numbers[l];
    }
}

/* Sign and zero extension are then the same. */
static bool is_never_negative(LLVMValueRef value) {
    if (!LLVMIsABinaryOperator(value) || !LLVMIsAConstantInt(LLVMGetOperand(value, 1))) return false;
    int64_t number = LLVMConstIntGetSExtValue(LLVMGetOperand(value, 1));
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    return (opcode == LLVMAnd && number >= 0) || (opcode == LLVMLShr && number > 0);
}

/* To a wider type, or from an index to an address. */
static bool extend(struct address *a, unsigned from, bool sign) {
    if (from >= 64) return true;
    if (is_number(a)) {
        for (int l = 0; l < ADDRESS_LANES && !sign; l++)
            if (a->number[l] < 0) a->number[l] += INT64_C(1) << from;
        a->is_unsigned = true;
        for (int l = 0; l < ADDRESS_LANES; l++) a->is_unsigned &= a->number[l] >= 0;
        return true;
    }
    if (sign ? !a->is_signed : !a->is_unsigned) return false;
    for (int t = 0; t < a->count; t++) {
        if (a->terms[t].extension != EXTENSION_RAW) continue;
        bool same = is_never_negative(a->terms[t].value);
        a->terms[t].extension = sign && !same ? EXTENSION_SIGN : EXTENSION_ZERO;
    }
    a->is_signed = true;
    a->is_unsigned = !sign;
    return true;
}

/* ---- Known zero bits of uniform values. */

/* The thread's index represents that of its simdgroup's first lane. */
static unsigned zeros_of_term(struct matrices *m, LLVMValueRef value) {
    return intrinsic_of(value) == INTRINSIC_THREAD_INDEX ? 5 : ptx_known_zeros(m->unit, value);
}

uint64_t address_alignment(struct matrices *m, const struct address *address, int lane) {
    unsigned zeros = zeros_of_number((uint64_t)address->number[lane]);
    for (int t = 0; t < address->count; t++) {
        unsigned of_times = zeros_of_number((uint64_t)address->terms[t].times[lane]);
        unsigned of_value = zeros_of_term(m, address->terms[t].value);
        if (of_times + of_value < zeros) zeros = of_times + of_value;
    }
    return UINT64_C(1) << zeros;
}

/* ---- Operations. */

static bool on_numbers(LLVMOpcode opcode, unsigned width, const struct address *a, const struct address *b,
                       struct address *out) {
    uint64_t mask = width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    *out = (struct address){0};
    for (int l = 0; l < ADDRESS_LANES; l++) {
        int64_t x = a->number[l], y = b->number[l];
        uint64_t ux = (uint64_t)x & mask, uy = (uint64_t)y & mask, by = uy % width;
        switch (opcode) {
        case LLVMAnd:
            out->number[l] = x & y;
            break;
        case LLVMOr:
            out->number[l] = x | y;
            break;
        case LLVMXor:
            out->number[l] = x ^ y;
            break;
        case LLVMLShr:
            out->number[l] = (int64_t)(ux >> by);
            break;
        case LLVMAShr:
            out->number[l] = x >> by;
            break;
        case LLVMUDiv:
        case LLVMURem:
            if (!uy) return false;
            out->number[l] = (int64_t)(opcode == LLVMUDiv ? ux / uy : ux % uy);
            break;
        default:
            return false;
        }
    }
    settle_number(out, width);
    return true;
}

/* A sum of large parts and a small number, of which only the lowest bits are used. */
static bool keep_low_bits(struct matrices *m, struct address *a, uint64_t mask) {
    for (int t = 0; t < a->count; t++)
        for (int l = 0; l < ADDRESS_LANES; l++) {
            unsigned zeros =
                zeros_of_term(m, a->terms[t].value) + zeros_of_number((uint64_t)a->terms[t].times[l]);
            if (zeros < 63 && mask >> zeros) return false;
        }
    a->count = 0;
    for (int l = 0; l < ADDRESS_LANES; l++) a->number[l] &= (int64_t)mask;
    a->is_signed = a->is_unsigned = true;
    return true;
}

/* Numbers below the lowest bit of the sum. */
static bool fits_below(struct matrices *m, const struct address *sum, const struct address *numbers) {
    if (!is_number(numbers)) return false;
    for (int l = 0; l < ADDRESS_LANES; l++)
        if (numbers->number[l] < 0 || (uint64_t)numbers->number[l] >= address_alignment(m, sum, l))
            return false;
    return true;
}

static bool find_binary(struct matrices *m, LLVMValueRef value, int depth, struct address *out) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    unsigned width = width_of(value);
    struct address b;
    uint64_t mask;
    if (!find(m, LLVMGetOperand(value, 0), depth, out)) return false;
    if (!find(m, LLVMGetOperand(value, 1), depth, &b)) return false;
    bool numbers = is_number(out) && is_number(&b), both = out->is_signed && b.is_signed,
         both_unsigned = out->is_unsigned && b.is_unsigned;
    switch (opcode) {
    case LLVMOr:
        if (numbers) break;
        if ((!LLVMGetIsDisjoint(value) && !fits_below(m, out, &b)) || !add(out, &b, 1)) return false;
        out->is_signed = both, out->is_unsigned = both_unsigned;
        return true;
    case LLVMAdd:
    case LLVMSub:
        if (!add(out, &b, opcode == LLVMAdd ? 1 : -1)) return false;
        break;
    case LLVMMul:
        if (is_number(&b)) {
            multiply(out, b.number);
        } else if (is_number(out)) {
            struct address numbers_of = *out;
            *out = b;
            multiply(out, numbers_of.number);
        } else {
            return false;
        }
        break;
    case LLVMShl: {
        if (!is_number(&b)) return false;
        int64_t times[ADDRESS_LANES];
        for (int l = 0; l < ADDRESS_LANES; l++)
            times[l] = (int64_t)(UINT64_C(1) << ((uint64_t)b.number[l] % width));
        multiply(out, times);
        break;
    }
    case LLVMAnd:
        if (!numbers)
            return is_constant_integer(LLVMGetOperand(value, 1), &mask) && mask < 1024 &&
                   keep_low_bits(m, out, mask);
        break;
    default:
        if (!numbers) return false;
    }
    bool sums = opcode == LLVMAdd || opcode == LLVMSub || opcode == LLVMMul || opcode == LLVMShl;
    if (numbers && !sums) {
        struct address a = *out;
        return on_numbers(opcode, width, &a, &b, out);
    }
    if (numbers) {
        settle_number(out, width);
    } else {
        out->is_signed = both && LLVMGetNSW(value);
        out->is_unsigned = both_unsigned && LLVMGetNUW(value);
    }
    return true;
}

static bool find_element(struct matrices *m, LLVMValueRef gep, int depth, struct address *out) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    unsigned width = 8 * LLVMPointerSizeForAS(m->unit->layout, LLVMGetPointerAddressSpace(LLVMTypeOf(gep)));
    if (!find(m, LLVMGetOperand(gep, 0), depth, out)) return false;
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        struct address index;
        int64_t steps[ADDRESS_LANES];
        if (i > 1 && LLVMGetTypeKind(type) != LLVMArrayTypeKind) return false;
        if (i > 1) type = LLVMGetElementType(type);
        uint64_t step = LLVMABISizeOfType(m->unit->layout, type);
        if (!find(m, LLVMGetOperand(gep, i), depth, &index)) return false;
        unsigned index_width = width_of(LLVMGetOperand(gep, i));
        if (index_width < width && !extend(&index, index_width, true)) return false;
        for (int l = 0; l < ADDRESS_LANES; l++) steps[l] = (int64_t)step;
        multiply(&index, steps);
        if (!add(out, &index, 1)) return false;
    }
    return true;
}

static bool find_cast(struct matrices *m, LLVMValueRef value, int depth, struct address *out) {
    LLVMValueRef from = LLVMGetOperand(value, 0);
    if (!find(m, from, depth, out)) return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMSExt:
        return extend(out, width_of(from), true);
    case LLVMZExt:
        if (LLVMGetNNeg(value) && !is_number(out) && out->is_signed)
            return extend(out, width_of(from), true) && (out->is_unsigned = true);
        return extend(out, width_of(from), false);
    case LLVMTrunc:
        if (is_number(out))
            settle_number(out, width_of(value));
        else
            out->is_signed = out->is_unsigned = false;
        return true;
    default:
        return false;
    }
}

static bool find_parts(struct matrices *m, LLVMValueRef value, int depth, struct address *out) {
    if (LLVMIsAConstantExpr(value))
        return LLVMGetConstOpcode(value) == LLVMGetElementPtr && find_element(m, value, depth, out);
    if (!LLVMIsAInstruction(value)) return false;
    if (LLVMIsABinaryOperator(value)) return find_binary(m, value, depth, out);
    if (LLVMIsACastInst(value)) return find_cast(m, value, depth, out);
    if (LLVMIsAGetElementPtrInst(value)) return find_element(m, value, depth, out);
    bool lane = intrinsic_of(value) == INTRINSIC_LANE;
    if (!lane && intrinsic_of(value) != INTRINSIC_THREAD_INDEX) return false;
    set_number(out, 0);
    if (!lane) set_term(out, value);
    for (int l = 0; l < ADDRESS_LANES; l++) out->number[l] = l;
    return true;
}

static bool find(struct matrices *m, LLVMValueRef value, int depth, struct address *out) {
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(value));
    if (depth == 0 || (kind != LLVMIntegerTypeKind && kind != LLVMPointerTypeKind)) return false;
    if (LLVMIsAConstantInt(value)) {
        if (width_of(value) > 64) return false;
        set_number(out, LLVMConstIntGetSExtValue(value));
        return true;
    }
    if (find_parts(m, value, depth - 1, out)) return true;
    if (!matrix_is_same(m, value, m->reader)) return false;
    set_term(out, value);
    return true;
}

bool address_find(struct matrices *m, LLVMValueRef value, LLVMBasicBlockRef reader, struct address *address) {
    m->reader = reader;
    return find(m, value, DEEPEST, address);
}

bool address_distance(const struct address *a, int lane_a, const struct address *b, int lane_b,
                      int64_t *distance) {
    if (a->count != b->count) return false;
    for (int t = 0; t < a->count; t++) {
        int u = 0;
        while (u < b->count &&
               (b->terms[u].value != a->terms[t].value || b->terms[u].extension != a->terms[t].extension))
            u++;
        if (u == b->count || a->terms[t].times[lane_a] != b->terms[u].times[lane_b]) return false;
    }
    *distance = b->number[lane_b] - a->number[lane_a];
    return true;
}

LLVMValueRef address_term(struct unit *unit, const struct term *term) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(term->value), i32 = type_i32(unit);
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) return LLVMBuildPtrToInt(b, term->value, i32, "");
    if (intrinsic_of(term->value) == INTRINSIC_THREAD_INDEX)
        return LLVMBuildAnd(b, term->value, constant_i32(unit, ~31u), "");
    if (LLVMGetIntTypeWidth(type) >= 32) return LLVMBuildTrunc(b, term->value, i32, "");
    return term->extension == EXTENSION_ZERO ? LLVMBuildZExt(b, term->value, i32, "")
                                             : LLVMBuildSExt(b, term->value, i32, "");
}
