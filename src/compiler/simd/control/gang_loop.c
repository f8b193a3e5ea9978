/* One call of short code runs all gangs of a threadgroup, one after another, rather than one gang.
 *
 *   gang(context) { body; }
 *
 *   gang(context) { fields; do { group->running = context; body; context = context->next; } while (context);
 * }
 *
 * A gang of 32 threads may need only a dozen instructions of its own. Entering the code, saving registers and
 * finding the group, its arguments and its sizes took twice as many. What is the same for all gangs of a
 * group is read once.
 *
 * Code with loops stays as it is: its calls matter less than the registers that fields would take.
 *
 * Requires: the gang's code, whose reads of contexts are marked as invariant. Establishes: image.runs_group,
 * if the code has this form. Gangs that wait at barriers take turns, so code with barriers stays as it is. */
#include "abi/cpu_context.h"
#include "compiler/analysis/flow.h"

#include <llvm-c/DebugInfo.h>
#include <stddef.h>

/* The most instructions of a gang. In longer code the call does not matter, and what is read once would have
 * to be kept on the stack. */
#define MOST_INSTRUCTIONS 1500

struct gang_loop {
    struct unit *unit;
    LLVMValueRef context; /* the parameter */
    LLVMBasicBlockRef start, header, latch;
    LLVMValueRef current; /* the gang that is running */
};

static bool is_short(LLVMValueRef entry) {
    int count = 0;
    FOR_EACH_BLOCK(block, entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (++count > MOST_INSTRUCTIONS) return false;
    }
    return true;
}

/* Whether full groups of this shape have more than one gang. If their size is not known, they may. */
static bool has_gangs(const struct code_shape *shape, uint32_t lanes) {
    uint64_t threads = (uint64_t)shape->size[0] * shape->size[1] * shape->size[2];
    return !threads || threads > lanes;
}

/* ---- What is the same for all gangs. */

static bool is_invariant_load(LLVMValueRef i) {
    return LLVMIsALoadInst(i) && LLVMGetMetadata(i, LLVMGetMDKindID("invariant.load", 14));
}

/* An address without its constant offset; *offset: that offset, in bytes. NULL: the offset is not constant.
 */
static LLVMValueRef base_of(const struct gang_loop *l, LLVMValueRef address, uint64_t *offset) {
    *offset = 0;
    if (!LLVMIsAGetElementPtrInst(address)) return address;
    if (LLVMGetNumOperands(address) != 2 || !is_constant_integer(LLVMGetOperand(address, 1), offset))
        return NULL;
    *offset *= LLVMABISizeOfType(l->unit->layout, LLVMGetGEPSourceElementType(address));
    return LLVMGetOperand(address, 0);
}

static bool is_group(const struct gang_loop *l, LLVMValueRef value) {
    uint64_t offset;
    return is_invariant_load(value) && base_of(l, LLVMGetOperand(value, 0), &offset) == l->current &&
           offset == offsetof(struct gang_context, group);
}

static bool is_table_of_buffers(const struct gang_loop *l, LLVMValueRef value) {
    uint64_t offset;
    LLVMValueRef base = is_invariant_load(value) ? base_of(l, LLVMGetOperand(value, 0), &offset) : NULL;
    return base && is_group(l, base) && offset == offsetof(struct group_context, buffers);
}

/* A field of the group's context, or a buffer's address. They may be read before the code that reads them. */
static bool is_field(const struct gang_loop *l, LLVMValueRef i) {
    uint64_t offset;
    LLVMValueRef base = is_invariant_load(i) ? base_of(l, LLVMGetOperand(i, 0), &offset) : NULL;
    return base && (is_group(l, i) || is_group(l, base) || is_table_of_buffers(l, base));
}

#define MOST_FIELDS 64

/* Moves the instruction to the start, before its end. */
static void move(const struct gang_loop *l, LLVMValueRef i) {
    LLVMInstructionRemoveFromParent(i);
    LLVMPositionBuilderBefore(l->unit->builder, LLVMGetBasicBlockTerminator(l->start));
    build_kept(l->unit->builder, i);
}

static void read_once(const struct gang_loop *l) {
    LLVMValueRef fields[MOST_FIELDS];
    int count = 0;
    FOR_EACH_BLOCK(block, l->unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (count < MOST_FIELDS && is_field(l, i)) fields[count++] = i;
    }
    for (int n = 0; n < count; n++) {
        LLVMValueRef address = LLVMGetOperand(fields[n], 0);
        bool moves = LLVMIsAGetElementPtrInst(address) && LLVMGetInstructionParent(address) != l->start;
        if (moves) move(l, address);
        move(l, fields[n]);
    }
    /* Those of the first gang. */
    FOR_EACH_INSTRUCTION(i, l->start) {
        for (unsigned o = 0; o < (unsigned)LLVMGetNumOperands(i); o++)
            if (LLVMGetOperand(i, o) == l->current) LLVMSetOperand(i, o, l->context);
    }
}

/* ---- The loop. */

/* The code's first block, without its stack slots, becomes the header. */
static void add_start(struct gang_loop *l) {
    LLVMBuilderRef b = l->unit->builder;
    l->header = LLVMGetEntryBasicBlock(l->unit->entry);
    l->start = LLVMInsertBasicBlockInContext(l->unit->context, l->header, "gangs");
    LLVMPositionBuilderAtEnd(b, l->start);
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMBuildBr(b, l->header);
    FOR_EACH_INSTRUCTION(i, l->header) {
        if (LLVMIsAAllocaInst(i)) move(l, i);
    }
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(l->header));
    LLVMSetCurrentDebugLocation2(b, NULL);
    l->current = LLVMBuildPhi(b, type_pointer(l->unit), "gang");
    LLVMReplaceAllUsesWith(l->context, l->current);
}

static LLVMValueRef field_of(const struct gang_loop *l, LLVMValueRef base, size_t offset) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(l->unit->context);
    LLVMValueRef index = LLVMConstInt(type_i64(l->unit), offset, false);
    return LLVMBuildGEP2(l->unit->builder, byte, base, &index, 1, "");
}

/* All ends of the body lead to the next gang. */
static void add_latch(struct gang_loop *l) {
    LLVMBuilderRef b = l->unit->builder;
    LLVMTypeRef pointer = type_pointer(l->unit);
    l->latch = LLVMAppendBasicBlockInContext(l->unit->context, l->unit->entry, "next_gang");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(l->unit->context, l->unit->entry, "end");
    FOR_EACH_BLOCK(block, l->unit->entry) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(block);
        if (!last || !LLVMIsAReturnInst(last)) continue;
        LLVMInstructionEraseFromParent(last);
        LLVMPositionBuilderAtEnd(b, block);
        LLVMBuildBr(b, l->latch);
    }
    LLVMPositionBuilderAtEnd(b, l->latch);
    LLVMValueRef next =
        LLVMBuildLoad2(b, pointer, field_of(l, l->current, offsetof(struct gang_context, next)), "next");
    LLVMBuildCondBr(b, LLVMBuildIsNull(b, next, ""), end, l->header);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMBuildRetVoid(b);
    LLVMAddIncoming(l->current, (LLVMValueRef[]){l->context, next}, (LLVMBasicBlockRef[]){l->start, l->latch},
                    2);
}

/* For reports of faults. */
static void note_running(struct gang_loop *l) {
    LLVMBuilderRef b = l->unit->builder;
    LLVMValueRef group = NULL;
    FOR_EACH_INSTRUCTION(i, l->start) {
        if (LLVMIsALoadInst(i) && LLVMGetOperand(i, 0) == l->context) group = i;
    }
    if (!group) {
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(l->start));
        group = LLVMBuildLoad2(b, type_pointer(l->unit), l->context, "");
    }
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(l->current));
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMBuildStore(b, l->current, field_of(l, group, offsetof(struct group_context, running)));
}

_Static_assert(offsetof(struct gang_context, group) == 0, "note_running finds the group there");

smelt_status pass_simd_gang_loop(struct unit *unit) {
    struct image *image = &unit->result->image;
    int loops;
    if (unit->form != FORM_BEST || image->quick || image->has_barrier ||
        !has_gangs(&unit->request->shape, image->lanes) || !is_short(unit->entry))
        return SMELT_OK;
    TRY(flow_count_loops(unit, &loops));
    if (loops) return SMELT_OK;
    struct gang_loop loop = {.unit = unit, .context = LLVMGetParam(unit->entry, 0)};
    add_start(&loop);
    add_latch(&loop);
    read_once(&loop);
    note_running(&loop);
    image->runs_group = true;
    return SMELT_OK;
}
