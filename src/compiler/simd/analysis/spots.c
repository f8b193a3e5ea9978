/* Addresses as base + (sum of terms) + bytes, to find constant distances between them. */
#include "compiler/simd/analysis/spots.h"
#include "compiler/analysis/base.h"
#include "compiler/bounds/bounds.h"

#define MOST_DEPTH 4

struct sum {
    struct term terms[MOST_TERMS];
    int count;
    int64_t constant;
    bool full; /* it has more than MOST_TERMS terms */
};

static int term_order(const struct term *a, const struct term *b) {
    if (a->value != b->value) return (uintptr_t)a->value < (uintptr_t)b->value ? -1 : 1;
    if (a->widened != b->widened) return a->widened < b->widened ? -1 : 1;
    return (a->scale > b->scale) - (a->scale < b->scale);
}

/* Into a sorted list with room for it. */
static void insert_term(struct term *terms, int count, struct term term) {
    for (; count > 0 && term_order(&terms[count - 1], &term) > 0; count--) terms[count] = terms[count - 1];
    terms[count] = term;
}

static void add_term(struct sum *sum, LLVMValueRef value, LLVMOpcode widened) {
    sum->full |= sum->count == MOST_TERMS;
    if (!sum->full) insert_term(sum->terms, sum->count++, (struct term){value, widened, 1});
}

static bool is_sum(LLVMValueRef value) {
    if (!LLVMIsABinaryOperator(value)) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    return opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(value));
}

/* Whether the widened sum is the sum of its widened operands. */
static bool is_exact(LLVMValueRef sum, LLVMOpcode widened) {
    if (!widened || LLVMGetInstructionOpcode(sum) == LLVMOr) return true;
    return widened == LLVMSExt ? LLVMGetNSW(sum) : LLVMGetNUW(sum);
}

/* near: takes apart sums that may wrap around, too. */
static void add_terms(struct sum *sum, LLVMValueRef value, LLVMOpcode widened, bool near, int depth) {
    if (depth == MOST_DEPTH || !is_sum(value) || (!near && !is_exact(value, widened))) {
        add_term(sum, value, widened);
        return;
    }
    LLVMValueRef right = LLVMGetOperand(value, 1);
    add_terms(sum, LLVMGetOperand(value, 0), widened, near, depth + 1);
    if (!LLVMIsAConstantInt(right))
        add_terms(sum, right, widened, near, depth + 1);
    else if (widened == LLVMZExt && is_exact(value, widened))
        sum->constant += (int64_t)LLVMConstIntGetZExtValue(right);
    else
        sum->constant += LLVMConstIntGetSExtValue(right);
}

static LLVMOpcode extension_of(LLVMValueRef value) {
    return LLVMIsAZExtInst(value) ? LLVMZExt : LLVMIsASExtInst(value) ? LLVMSExt : 0;
}

/* An index as a sum; false: of too many terms, or with a large constant. In a small launch (struct
 * code_shape), no array has 2^31 bytes. Two 32-bit indexes that are used with one base, and are a small
 * constant apart modulo 2^32, are therefore exactly that far apart. */
static bool sum_of_index(struct simd *s, LLVMValueRef index, struct sum *sum) {
    struct sum wide = {.count = 0};
    add_terms(&wide, index, 0, false, 0);
    *sum = (struct sum){.constant = wide.constant, .full = wide.full};
    for (int i = 0; i < wide.count; i++) {
        LLVMValueRef value = wide.terms[i].value;
        LLVMOpcode widened = extension_of(value);
        if (widened) value = LLVMGetOperand(value, 0);
        bool near =
            widened && wide.count == 1 && s->code->small && LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 32;
        add_terms(sum, value, widened, near, 0);
    }
    return !sum->full && sum->constant >= -SMALL_REACH && sum->constant <= SMALL_REACH;
}

/* Adds one step of an address. Returns false if the address then has more than `indexes` variable indexes. */
static bool add_step(struct simd *s, LLVMValueRef gep, int indexes, struct spot *place) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    struct spot sum = *place;
    for (int o = 1; o < LLVMGetNumOperands(gep); o++) {
        LLVMValueRef index = LLVMGetOperand(gep, (unsigned)o);
        if (o > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
            sum.bytes += (int64_t)LLVMOffsetOfElement(s->unit->layout, type, member);
            type = LLVMStructGetTypeAtIndex(type, member);
            continue;
        }
        if (o > 1) type = LLVMGetElementType(type);
        int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, type);
        struct sum own;
        if (LLVMIsAConstantInt(index)) {
            sum.bytes += LLVMConstIntGetSExtValue(index) * size;
            continue;
        }
        if (sum.indexes++ == indexes) return false;
        if (!sum_of_index(s, index, &own)) {
            own = (struct sum){.count = 0};
            add_term(&own, index, 0);
        }
        if (sum.count + own.count > MOST_TERMS) return false;
        for (int t = 0; t < own.count; t++)
            insert_term(sum.terms, sum.count++,
                        (struct term){own.terms[t].value, own.terms[t].widened, size});
        sum.bytes += own.constant * size;
    }
    sum.base = LLVMGetOperand(gep, 0);
    *place = sum;
    return true;
}

struct spot spot_of(struct simd *s, LLVMValueRef address, int indexes) {
    struct spot place = {.base = address};
    while (LLVMIsAGetElementPtrInst(place.base) && add_step(s, place.base, indexes, &place)) continue;
    return place;
}

bool spot_is_same(const struct spot *a, const struct spot *b) {
    if (a->base != b->base || a->count != b->count) return false;
    for (int t = 0; t < a->count; t++)
        if (term_order(&a->terms[t], &b->terms[t]) != 0) return false;
    return true;
}

bool spot_distance(struct simd *s, LLVMValueRef from, LLVMValueRef to, int64_t *bytes) {
    struct spot a = spot_of(s, from, 1), b = spot_of(s, to, 1);
    *bytes = b.bytes - a.bytes;
    return spot_is_same(&a, &b);
}
