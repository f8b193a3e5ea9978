/* Questions about all threads of a launch. If the lanes' addresses are not a constant apart, a test takes a
 * comparison per row or per lane. Often the code shows between which two addresses those of all threads lie:
 * positions end with the grid; a condition, a minimum or a mask limits an index; a byte is at most 255. Where
 * these two follow from sizes of the launch and from constant memory, a function computes them:
 *
 *   i64 __smelt_questions(ptr group)   struct group_context; bit n: an access of question n may be outside
 *
 * The runtime calls it before the groups. `inside` is done only if the bit is set (launch_leaves). The
 * accesses of a block share a question. */
#include "compiler/bounds/launch.h"

#include <stddef.h>

/* Limits the time to compile: further accesses of a long kernel are tested in each thread. */
enum { MOST_ASKED = 256 };

/* The root, and where the address lies from there in bytes. NULL: not known. */
static LLVMValueRef root_of(struct look *l, LLVMValueRef address, struct ends *offset) {
    LLVMBuilderRef b = bounds_launch_builder(l);
    struct unit *unit = l->b->unit;
    *offset = bounds_launch_both(bounds_i64(l->b, 0));
    for (; bounds_is_step(address); address = LLVMGetOperand(address, 0)) {
        if (!LLVMIsAGetElementPtrInst(address)) {
            if (LLVMIsAConstantExpr(address) && LLVMGetConstOpcode(address) == LLVMGetElementPtr) return NULL;
            continue;
        }
        if (LLVMGetNumOperands(address) != 2) return NULL;
        LLVMValueRef index = LLVMGetOperand(address, 1);
        int64_t bytes = (int64_t)LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(address));
        struct ends e = bounds_launch_ends(l, index, 0);
        if (!e.low || !e.high || bytes > INT32_MAX) return NULL;
        if (!LLVMIsAConstantInt(index)) bounds_launch_require(l, e);
        LLVMValueRef scale = bounds_i64(l->b, (uint64_t)bytes);
        offset->low = LLVMBuildAdd(b, offset->low, LLVMBuildMul(b, e.low, scale, ""), "");
        offset->high = LLVMBuildAdd(b, offset->high, LLVMBuildMul(b, e.high, scale, ""), "");
    }
    return address;
}

static LLVMValueRef either(struct bounds *b, LLVMValueRef x, LLVMValueRef y) {
    return LLVMBuildOr(b->unit->builder, x, y, "");
}

/* i1: one of the numbers is not narrow. */
static LLVMValueRef any_is_wide(struct look *l) {
    LLVMValueRef bits = bounds_i64(l->b, 0);
    for (int i = 0; i < l->narrow_count; i++) bits = either(l->b, bits, l->narrow[i]);
    return LLVMBuildICmp(bounds_launch_builder(l), LLVMIntUGT, bits, bounds_i64(l->b, MOST_NARROW), "");
}

/* i1: the bytes from `first` to before `last`, counted from the root, are not all inside the object. Both are
 * small numbers. NULL: the object is another one than the root. */
static LLVMValueRef reaches_out(struct bounds *b, LLVMValueRef root, const struct array_object *object,
                                LLVMValueRef first, LLVMValueRef last) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMValueRef extent = object->extent;
    uint64_t slot;
    if (object->kind == ACCESS_BUFFER) {
        if (intrinsic_of(root) != INTRINSIC_BUFFER_ADDRESS ||
            !is_constant_integer(LLVMGetOperand(root, 0), &slot) || slot != object->slot)
            return NULL;
        LLVMValueRef start =
            LLVMBuildPtrToInt(builder, bounds_launch_argument_address(b, slot), type_i64(b->unit), "");
        start = LLVMBuildSub(builder, start, bounds_launch_extent(b, INTRINSIC_BUFFER_START, slot), "");
        first = LLVMBuildAdd(builder, first, start, "");
        last = LLVMBuildAdd(builder, last, start, "");
        extent = bounds_launch_extent(b, INTRINSIC_BUFFER_EXTENT, slot);
    } else if (root != object->variable || !LLVMIsAConstantInt(extent)) {
        return NULL;
    }
    LLVMValueRef before = LLVMBuildICmp(builder, LLVMIntSLT, first, bounds_i64(b, 0), "");
    return either(b, before, LLVMBuildICmp(builder, LLVMIntSGT, last, extent, ""));
}

/* The question of the block; more than MOST_QUESTIONS share the last one. */
static int question_of(struct bounds *b, int block) {
    struct questions *q = b->questions;
    if (q->count && (q->block == block || q->count == MOST_QUESTIONS)) return q->count - 1;
    LLVMTypeRef i1 = LLVMInt1TypeInContext(b->unit->context);
    LLVMValueRef number = constant_i32(b->unit, (uint32_t)q->count);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(b->unit->entry);
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(b->unit->builder, first);
    q->block = block;
    q->answers[q->count] = LLVMConstInt(i1, 0, false);
    q->calls[q->count] = bounds_intrinsic(b, INTRINSIC_LAUNCH_LEAVES, i1, &number, 1);
    bounds_launch_continue_function(b);
    return q->count++;
}

LLVMValueRef bounds_launch_ask(struct bounds *b, int block, LLVMValueRef address, int64_t low, uint64_t bytes,
                               const struct array_object *object) {
    struct look l = {.b = b, .block = block, .left = MOST_VALUES};
    LLVMBuilderRef builder = b->unit->builder;
    struct ends offset;
    if (b->flow.irreducible || (object->kind != ACCESS_BUFFER && object->kind != ACCESS_VARIABLE))
        return NULL;
    if (!b->questions) b->questions = bounds_launch_begin_function(b);
    if (!b->questions || b->questions->asked >= MOST_ASKED) return NULL;
    b->questions->asked++;
    bounds_launch_continue_function(b);
    LLVMValueRef root = root_of(&l, address, &offset);
    /* With another question of the block, a simple one costs nothing. */
    bool has_question = b->questions->count && b->questions->block == block;
    if (!root || l.fails || (!l.scattered && !has_question)) return NULL;
    LLVMValueRef first = LLVMBuildAdd(builder, offset.low, bounds_i64(b, (uint64_t)low), "");
    LLVMValueRef last = LLVMBuildAdd(builder, offset.high, bounds_i64(b, (uint64_t)low + bytes), "");
    LLVMValueRef out = reaches_out(b, root, object, first, last);
    if (!out) return NULL;
    out = either(b, out, any_is_wide(&l));
    int question = question_of(b, block);
    b->questions->answers[question] = either(b, b->questions->answers[question], out);
    return b->questions->calls[question];
}

void bounds_launch_end(struct bounds *b) {
    struct questions *q = b->questions;
    if (!q) return;
    if (!q->count) {
        LLVMDeleteFunction(q->function);
        return;
    }
    b->unit->result->image.distinct |= q->loads;
    bounds_launch_continue_function(b);
    LLVMBuilderRef builder = b->unit->builder;
    LLVMTypeRef i64 = type_i64(b->unit);
    LLVMValueRef answers = LLVMBuildSExt(builder, q->wrong, i64, "");
    for (int i = 0; i < q->count; i++) {
        LLVMValueRef bit = LLVMBuildZExt(builder, q->answers[i], i64, "");
        bit = LLVMBuildShl(builder, bit, bounds_i64(b, (uint64_t)i), "");
        answers = either(b, answers, bit);
    }
    LLVMBuildRet(builder, answers);
}
