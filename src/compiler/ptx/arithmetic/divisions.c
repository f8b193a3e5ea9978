/* Divisions of neighbours by the same number become one division and comparisons. A thread of the hardware
 * that does the work of four computes
 *
 *     i / w, i % w, (i + 1) / w, (i + 1) % w …
 *
 * A division takes some 17 instructions. Of i + 1, the remainder is one more than that of i, or 0 if it would
 * reach w; then the quotient is one more. The same holds if a quotient, which is as great as the one before
 * it or one more, is divided again, as the row of a position by an image's height.
 *
 * Requires: the module lowered and cleaned; no divisor is 0. Maintains: what the code does. */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#define MOST_DIVISIONS 64
#define DEEPEST 8

struct division {
    LLVMValueRef instruction; /* NULL: its results have been replaced */
    LLVMValueRef dividend, divisor, quotient, rest;
    int block;
};

/* One quotient exceeds another one by `carry`, of one bit. */
struct step {
    LLVMValueRef less, more, carry;
};

struct divisions {
    struct unit *unit;
    struct flow flow;
    struct division list[MOST_DIVISIONS];
    struct step steps[MOST_DIVISIONS];
    int count, step_count, replaced;
};

/* ---- By how much a dividend exceeds another one. */

/* The number without a constant that is added to it. */
static LLVMValueRef split(struct unit *unit, LLVMValueRef number, uint64_t *constant, bool *wraps) {
    uint64_t added;
    *constant = 0;
    *wraps = false;
    if (!LLVMIsABinaryOperator(number) || !is_constant_integer(LLVMGetOperand(number, 1), &added))
        return number;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(number);
    LLVMValueRef base = LLVMGetOperand(number, 0);
    unsigned zeros = ptx_known_zeros(unit, base);
    bool below = zeros < 32 && added < UINT64_C(1) << zeros;
    if (opcode != LLVMAdd && !(opcode == LLVMOr && (below || LLVMGetIsDisjoint(number)))) return number;
    *wraps = !below && !(opcode == LLVMAdd ? LLVMGetNUW(number) : LLVMGetIsDisjoint(number));
    *constant = added;
    return base;
}

/* Whether it is one more, without wrapping. */
static bool is_next(struct unit *unit, LLVMValueRef number, LLVMValueRef next) {
    uint64_t first, second;
    bool first_wraps, second_wraps;
    return split(unit, number, &first, &first_wraps) == split(unit, next, &second, &second_wraps) &&
           second == first + 1 && !first_wraps && !second_wraps;
}

/* 0 or 1, of one bit, built at the builder's place: by how much `next` exceeds `number`; NULL: unknown. */
static LLVMValueRef step_between(struct divisions *d, LLVMValueRef number, LLVMValueRef next, int depth) {
    LLVMBuilderRef b = d->unit->builder;
    LLVMTypeRef bit = LLVMInt1TypeInContext(d->unit->context);
    if (number == next) return LLVMConstNull(bit);
    if (is_next(d->unit, number, next)) return LLVMConstAllOnes(bit);
    for (int i = 0; i < d->step_count; i++)
        if (d->steps[i].less == number && d->steps[i].more == next) return d->steps[i].carry;
    if (depth == 0) return NULL;
    if ((LLVMIsAFreezeInst(number) && LLVMIsAFreezeInst(next)) ||
        (LLVMIsAZExtInst(number) && LLVMIsAZExtInst(next)))
        return step_between(d, LLVMGetOperand(number, 0), LLVMGetOperand(next, 0), depth - 1);
    if (!LLVMIsASelectInst(number) || !LLVMIsASelectInst(next)) return NULL;
    /* Of a divisor that may be 0: the quotient is 0 then. */
    LLVMValueRef zero = LLVMGetOperand(number, 0), constant = LLVMGetOperand(number, 1);
    if (LLVMGetOperand(next, 0) != zero || LLVMGetOperand(next, 1) != constant || !LLVMIsConstant(constant))
        return NULL;
    LLVMValueRef step = step_between(d, LLVMGetOperand(number, 2), LLVMGetOperand(next, 2), depth - 1);
    return step ? LLVMBuildSelect(b, zero, LLVMConstNull(bit), step, "") : NULL;
}

/* ---- Replacing. */

/* The quotient and the remainder of a division that stays, both from one. */
static void complete(struct divisions *d, struct division *first) {
    LLVMBuilderRef b = d->unit->builder;
    if (first->rest) return;
    bool quotient = LLVMGetInstructionOpcode(first->instruction) == LLVMUDiv;
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(first->instruction));
    first->quotient = quotient ? first->instruction : LLVMBuildUDiv(b, first->dividend, first->divisor, "");
    first->rest = LLVMBuildSub(b, first->dividend, LLVMBuildMul(b, first->quotient, first->divisor, ""), "");
    if (quotient) return;
    LLVMReplaceAllUsesWith(first->instruction, first->rest);
    for (int i = 0; i < d->count; i++) {
        if (d->list[i].dividend == first->instruction) d->list[i].dividend = first->rest;
        if (d->list[i].divisor == first->instruction) d->list[i].divisor = first->rest;
    }
    LLVMInstructionEraseFromParent(first->instruction);
    first->instruction = NULL;
}

static void replace(struct divisions *d, LLVMValueRef instruction, const struct division *by) {
    bool quotient = LLVMGetInstructionOpcode(instruction) == LLVMUDiv;
    LLVMReplaceAllUsesWith(instruction, quotient ? by->quotient : by->rest);
    LLVMInstructionEraseFromParent(instruction);
    d->replaced++;
}

/* Computes a division from that of a number that is `step` less, or more. */
static void derive(struct divisions *d, struct division *new, const struct division *from, LLVMValueRef step,
                   bool less) {
    LLVMBuilderRef b = d->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(new->dividend);
    LLVMValueRef zero = LLVMConstNull(type), one = LLVMConstInt(type, 1, false), carry, past;
    LLVMValueRef distance = LLVMBuildZExt(b, step, type, "");
    if (less) {
        new->rest = LLVMBuildAdd(b, from->rest, distance, "");
        carry = LLVMBuildICmp(b, LLVMIntUGE, new->rest, new->divisor, "");
        past = zero;
    } else {
        new->rest = LLVMBuildSub(b, from->rest, distance, "");
        carry = LLVMBuildICmp(b, LLVMIntULT, from->rest, distance, "");
        past = LLVMBuildSub(b, new->divisor, one, "");
    }
    new->rest = LLVMBuildSelect(b, carry, past, new->rest, "");
    LLVMValueRef more = LLVMBuildZExt(b, carry, type, "");
    new->quotient =
        less ? LLVMBuildAdd(b, from->quotient, more, "") : LLVMBuildSub(b, from->quotient, more, "");
    d->steps[d->step_count++] = (struct step){.less = less ? from->quotient : new->quotient,
                                              .more = less ? new->quotient : from->quotient,
                                              .carry = carry};
    replace(d, new->instruction, new);
    new->instruction = NULL;
}

static void look_at(struct divisions *d, LLVMValueRef instruction, int block) {
    struct division new = {.instruction = instruction,
                           .dividend = LLVMGetOperand(instruction, 0),
                           .divisor = LLVMGetOperand(instruction, 1),
                           .block = block};
    if (d->count == MOST_DIVISIONS) return;
    for (int i = d->count - 1; i >= 0; i--) {
        struct division *from = &d->list[i];
        if (from->divisor != new.divisor || !flow_dominates(&d->flow, from->block, block)) continue;
        LLVMPositionBuilderBefore(d->unit->builder, instruction);
        LLVMValueRef step = step_between(d, from->dividend, new.dividend, DEEPEST);
        bool less = step != NULL;
        if (!step) step = step_between(d, new.dividend, from->dividend, DEEPEST);
        if (!step) continue;
        complete(d, from);
        if (from->dividend == new.dividend) {
            replace(d, instruction, from);
            return;
        }
        LLVMPositionBuilderBefore(d->unit->builder, instruction);
        derive(d, &new, from, step, less);
        break;
    }
    d->list[d->count++] = new;
}

static bool is_division(LLVMValueRef instruction) {
    if (!LLVMIsABinaryOperator(instruction)) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    return (opcode == LLVMUDiv || opcode == LLVMURem) && !LLVMIsConstant(LLVMGetOperand(instruction, 1)) &&
           LLVMGetTypeKind(LLVMTypeOf(instruction)) == LLVMIntegerTypeKind;
}

smelt_status pass_ptx_divisions(struct unit *unit) {
    struct arena arena = {0};
    struct divisions *d = arena_alloc(&arena, sizeof *d);
    if (!d) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for divisions");
    *d = (struct divisions){.unit = unit};
    smelt_status status = flow_find(unit, unit->entry, &arena, &d->flow);
    for (int i = 0; status == SMELT_OK && i < d->flow.block_count; i++) {
        FOR_EACH_INSTRUCTION(instruction, d->flow.blocks[i].block)
        if (is_division(instruction)) look_at(d, instruction, i);
    }
    int replaced = d->replaced;
    arena_free(&arena);
    if (status != SMELT_OK || !replaced) return status;
    TRY(ptx_run_passes(unit, "function(early-cse,instcombine<no-verify-fixpoint>,adce)"));
    return ptx_note(unit, "%d division%s of neighbours by comparisons", replaced, replaced == 1 ? "" : "s");
}
