/* Tests that run only if a question of the launch (launch.c) is answered with yes are moved to blocks of
 * their own, which compute the addresses again: otherwise the usual path would keep the addresses in
 * registers. In loops, whose blocks other passes count, tests stay in the block of their accesses. */
#include "compiler/bounds/bounds.h"
#include "compiler/cpu/inside.h"

#include <llvm-c/DebugInfo.h>

enum { MOST_STEPS = 48 };

struct apart_test {
    LLVMValueRef arguments[INSIDE_OPERANDS];
    LLVMMetadataRef location;
    bool again; /* the address is computed at the test */
    struct apart_test *next;
};

/* Tests before one instruction of a block. */
struct apart {
    LLVMValueRef place, when, begin, end; /* begin, end: the first and the last instruction of the tests */
    int block;
    struct apart_test *tests, **last;
    struct apart *next;
};

static bool comes_before(LLVMValueRef x, LLVMValueRef y) {
    do x = LLVMGetNextInstruction(x);
    while (x && x != y);
    return x != NULL;
}

static bool is_arithmetic(LLVMValueRef value) {
    return LLVMIsABinaryOperator(value) || LLVMIsACastInst(value) || LLVMIsAGetElementPtrInst(value);
}

/* Moves the place in its block behind what the value is computed from by arithmetic. False: that takes more
 * than `left` steps. */
static bool move_behind(LLVMValueRef value, LLVMValueRef *place, int *left) {
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionParent(value) != LLVMGetInstructionParent(*place))
        return true;
    if (is_arithmetic(value)) {
        for (int i = 0; i < LLVMGetNumOperands(value); i++)
            if (--*left < 0 || !move_behind(LLVMGetOperand(value, (unsigned)i), place, left)) return false;
        return true;
    }
    if (!LLVMIsAPHINode(value) && !comes_before(value, *place)) *place = LLVMGetNextInstruction(value);
    return true;
}

static LLVMValueRef first_place(LLVMBasicBlockRef block) {
    LLVMValueRef i = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(i) || LLVMIsAAllocaInst(i)) i = LLVMGetNextInstruction(i);
    return i;
}

void bounds_apart_add(struct bounds *b, int block, LLVMValueRef place,
                      const LLVMValueRef arguments[INSIDE_OPERANDS]) {
    int left = MOST_STEPS;
    struct apart *apart = b->apart;
    struct apart_test *test = arena_alloc(&b->arena, sizeof *test);
    if (!test) return;
    bool has = apart && apart->block == block;
    LLVMValueRef own = has ? apart->place : first_place(LLVMGetInstructionParent(place));
    bool moves = move_behind(arguments[INSIDE_ADDRESS], &own, &left);
    if (!has || !moves || own != apart->place) {
        apart = arena_alloc(&b->arena, sizeof *apart);
        if (!apart) return;
        *apart = (struct apart){.place = moves ? own : place,
                                .when = arguments[INSIDE_WHEN],
                                .block = block,
                                .last = &apart->tests,
                                .next = b->apart};
        b->apart = apart;
    }
    *test = (struct apart_test){.location = LLVMInstructionGetDebugLoc(place), .again = moves};
    for (int i = 0; i < INSIDE_OPERANDS; i++) test->arguments[i] = arguments[i];
    test->arguments[INSIDE_WHEN] = LLVMConstInt(LLVMTypeOf(arguments[INSIDE_WHEN]), 1, false);
    *apart->last = test;
    apart->last = &test->next;
}

/* Computes the value once more at the builder's place, in its block: in at most MOST_STEPS steps. */
static LLVMValueRef again(struct bounds *b, LLVMValueRef value, LLVMBasicBlockRef block) {
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionParent(value) != block || !is_arithmetic(value))
        return value;
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        LLVMSetOperand(copy, (unsigned)i, again(b, LLVMGetOperand(value, (unsigned)i), block));
    LLVMInsertIntoBuilder(b->unit->builder, copy);
    return copy;
}

/* The tests at their place, one after another. */
static void write_tests(struct bounds *b, struct apart *apart) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(apart->place);
    LLVMValueRef before = LLVMGetPreviousInstruction(apart->place);
    LLVMPositionBuilderBefore(builder, apart->place);
    for (struct apart_test *t = apart->tests; t; t = t->next) {
        LLVMSetCurrentDebugLocation2(builder, t->location);
        if (t->again) t->arguments[INSIDE_ADDRESS] = again(b, t->arguments[INSIDE_ADDRESS], block);
        apart->end = bounds_intrinsic(b, INTRINSIC_INSIDE, LLVMVoidTypeInContext(b->unit->context),
                                      t->arguments, INSIDE_OPERANDS);
    }
    LLVMSetCurrentDebugLocation2(builder, NULL);
    apart->begin = before ? LLVMGetNextInstruction(before) : LLVMGetFirstInstruction(block);
}

static void split(struct bounds *b, const struct apart *apart) {
    struct unit *unit = b->unit;
    LLVMBasicBlockRef head = LLVMGetInstructionParent(apart->begin);
    LLVMBasicBlockRef rest = flow_split_block(unit, LLVMGetNextInstruction(apart->end));
    LLVMBasicBlockRef tests = flow_split_block(unit, apart->begin);
    LLVMSetValueName2(LLVMBasicBlockAsValue(tests), "tests", 5);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(head));
    LLVMPositionBuilderAtEnd(unit->builder, head);
    inside_branch(unit, apart->when, tests, rest);
}

void bounds_apart_end(struct bounds *b) {
    for (struct apart *apart = b->apart; apart; apart = apart->next) write_tests(b, apart);
    for (const struct apart *apart = b->apart; apart; apart = apart->next) split(b, apart);
}
