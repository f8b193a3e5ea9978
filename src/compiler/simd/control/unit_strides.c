/* Strides that are known only at run time and mostly 1: `w[stride * (4 * thread + i)]`, where the host passes
 * the stride. With stride 1, a thread's accesses are neighbours (neighbours.c), otherwise they are gathered.
 * Blocks that contain such accesses get a second form, in which the strides are the constant 1, and a test in
 * front of them:
 *
 *   w[stride * i], w[stride * (i + 1)], …    becomes    if (stride == 1) w[i], w[i + 1], …
 *                                                       else w[stride * i], w[stride * (i + 1)], …
 *
 * A stride in bytes is tested for the size of the element. Lengths of rows are strides, too, but hardly ever
 * 1. A value is taken for a length if an access is at a constant distance from a multiple of it.
 *
 * Requires: the optimised entry. Maintains: what a thread does. */
#include "compiler/analysis/flow.h"
#include "compiler/fold.h"
#include "compiler/simd/simd.h"
#include "compiler/analysis/uniform.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

enum { MOST_INSTRUCTIONS = 400, MOST_ADDRESS = 200, MOST_STRIDES = 4, MOST_DEPTH = 8 };

struct unit_stride {
    LLVMValueRef value; /* a load */
    uint64_t unit;      /* what makes the accesses neighbours */
};

struct copied {
    LLVMValueRef value, copy;
};

struct stride_block {
    struct unit *unit;
    const struct flow *flow;
    LLVMBasicBlockRef block;
    LLVMValueRef first; /* the two forms have all instructions from this one to the terminator */
    struct unit_stride strides[MOST_STRIDES];
    int stride_count;
    struct copied copies[MOST_INSTRUCTIONS + MOST_ADDRESS];
    int copy_count;
    int address_count; /* of the copies: values from before the block */
};

/* ---- Which strides. */

static LLVMValueRef address_of(LLVMValueRef i) {
    return LLVMIsALoadInst(i) ? LLVMGetOperand(i, 0) : LLVMIsAStoreInst(i) ? LLVMGetOperand(i, 1) : NULL;
}

static LLVMTypeRef type_of(LLVMValueRef access) {
    return LLVMTypeOf(LLVMIsALoadInst(access) ? access : LLVMGetOperand(access, 0));
}

/* Whether the integer is a product with the stride, or a sum of such products. */
static bool is_multiple(LLVMValueRef value, LLVMValueRef stride, int depth) {
    if (value == stride) return true;
    if (!LLVMIsAInstruction(value) || depth == 0) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    bool left = is_multiple(LLVMGetOperand(value, 0), stride, depth - 1);
    switch (opcode) {
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMShl:
        return left;
    case LLVMMul:
        return left || is_multiple(LLVMGetOperand(value, 1), stride, depth - 1);
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
        return left && (opcode != LLVMOr || LLVMGetIsDisjoint(value)) &&
               is_multiple(LLVMGetOperand(value, 1), stride, depth - 1);
    default:
        return false;
    }
}

/* The only index of an address; NULL: it has another form. */
static LLVMValueRef index_of(LLVMValueRef address) {
    bool plain = LLVMIsAGetElementPtrInst(address) && LLVMGetNumOperands(address) == 2;
    return plain ? LLVMGetOperand(address, 1) : NULL;
}

/* A load from which `value`, a part of the index, is computed, and of which the index is a multiple; NULL:
 * none. */
static LLVMValueRef stride_in(LLVMValueRef index, LLVMValueRef value, int depth) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (!LLVMIsAInstruction(value) || depth == 0 || LLVMGetTypeKind(type) != LLVMIntegerTypeKind) return NULL;
    if (LLVMIsALoadInst(value))
        return LLVMGetIntTypeWidth(type) >= 32 && is_multiple(index, value, MOST_DEPTH) ? value : NULL;
    if (!fold_is_arithmetic(value)) return NULL;
    for (int o = 0; o < LLVMGetNumOperands(value); o++) {
        LLVMValueRef found = stride_in(index, LLVMGetOperand(value, (unsigned)o), depth - 1);
        if (found) return found;
    }
    return NULL;
}

/* Whether the value comes from outside of the loop around the block, if there is a loop. */
static bool is_from_before(const struct stride_block *b, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return true;
    const struct flow *flow = b->flow;
    int loop = flow->blocks[flow_index(flow, b->block)].loop;
    int from = flow_index(flow, LLVMGetInstructionParent(value));
    return from >= 0 && (loop < 0 || !flow_block_within(flow, from, loop));
}

/* Whether the rest of an address is the same for all threads and rounds, except for multiples of the stride.
 * *varies: set if some of these differ between threads. */
static bool is_strided(const struct stride_block *b, LLVMValueRef address, LLVMValueRef stride,
                       bool *varies) {
    for (int depth = 0; depth < MOST_DEPTH && !uniform_is(b->flow, address); depth++) {
        LLVMValueRef index = index_of(address);
        if (!index) return false;
        bool uniform = uniform_is(b->flow, index);
        bool multiple = !LLVMIsAConstant(index) && is_multiple(index, stride, MOST_DEPTH);
        if (!multiple && !(uniform && is_from_before(b, index))) return false;
        *varies |= multiple && !uniform;
        address = LLVMGetOperand(address, 0);
    }
    return uniform_is(b->flow, address) && is_from_before(b, address);
}

/* The stride of an access that is a multiple of it away from a uniform address; NULL: none. *unit: see
 * unit_stride. */
static LLVMValueRef stride_of(const struct stride_block *b, LLVMValueRef access, uint64_t *unit) {
    LLVMValueRef address = address_of(access), index = address ? index_of(address) : NULL;
    bool varies = false;
    if (!index || LLVMGetVolatile(access) || LLVMGetOrdering(access) != LLVMAtomicOrderingNotAtomic)
        return NULL;
    LLVMValueRef stride = stride_in(index, index, MOST_DEPTH);
    if (!stride || !uniform_is(b->flow, stride) || !is_strided(b, address, stride, &varies) || !varies)
        return NULL;
    uint64_t size = LLVMABISizeOfType(b->unit->layout, type_of(access));
    uint64_t step = LLVMABISizeOfType(b->unit->layout, LLVMGetGEPSourceElementType(address));
    *unit = step ? size / step : 0;
    return *unit && *unit * step == size ? stride : NULL;
}

/* Whether another access of the block has the same base and stride, but another index. */
static bool has_neighbour(const struct stride_block *b, LLVMValueRef access, LLVMValueRef stride) {
    LLVMValueRef address = address_of(access);
    FOR_EACH_INSTRUCTION(i, b->block) {
        LLVMValueRef other = address_of(i);
        if (!other || other == address || !index_of(other) || type_of(i) != type_of(access)) continue;
        if (LLVMGetOperand(other, 0) != LLVMGetOperand(address, 0)) continue;
        if (is_multiple(index_of(other), stride, MOST_DEPTH)) return true;
    }
    return false;
}

/* An access at a constant distance from a multiple of the value shows that the value is a length. */
static bool is_length(const struct stride_block *b, LLVMValueRef stride) {
    FOR_EACH_INSTRUCTION(i, b->block) {
        LLVMValueRef address = address_of(i), index = address ? index_of(address) : NULL;
        if (!index || !LLVMIsAConstantInt(index)) continue;
        LLVMValueRef inner = index_of(LLVMGetOperand(address, 0));
        if (inner && !LLVMIsAConstantInt(inner) && is_multiple(inner, stride, MOST_DEPTH)) return true;
    }
    return false;
}

static struct unit_stride *find_stride(struct stride_block *b, LLVMValueRef value) {
    for (int n = 0; n < b->stride_count; n++)
        if (b->strides[n].value == value) return &b->strides[n];
    return NULL;
}

/* Whether the instruction may be in both forms: no alloca, atomic, fence or operation with other threads. */
static bool is_plain(LLVMValueRef i) {
    if (LLVMIsACallInst(i)) {
        const char *name = called_name(i);
        enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(i))->kind;
        if (kind == OF_THREAD || kind == OF_BINDING) return true;
        return strncmp(name, "llvm.", 5) == 0 && strncmp(name, "llvm.mem", 8) != 0;
    }
    return !LLVMIsAAllocaInst(i) && !LLVMIsAFenceInst(i) && !LLVMIsAAtomicRMWInst(i) &&
           !LLVMIsAAtomicCmpXchgInst(i);
}

/* Fills b->strides and b->first; false: the block has no strides, or cannot have two forms. */
static bool find_strides(struct stride_block *b) {
    int count = 0;
    b->stride_count = 0;
    b->first = NULL;
    FOR_EACH_INSTRUCTION(i, b->block) count++;
    if (count > 2 * MOST_INSTRUCTIONS) return false;
    FOR_EACH_INSTRUCTION(i, b->block) {
        uint64_t unit;
        LLVMValueRef stride = stride_of(b, i, &unit);
        if (!stride || find_stride(b, stride) || b->stride_count == MOST_STRIDES) continue;
        if (!has_neighbour(b, i, stride) || is_length(b, stride)) continue;
        b->strides[b->stride_count++] = (struct unit_stride){stride, unit};
    }
    if (!b->stride_count) return false;
    count = 0;
    FOR_EACH_INSTRUCTION(i, b->block) {
        bool restart = LLVMIsAPHINode(i) || find_stride(b, i);
        if (restart) count = 0, b->first = NULL;
        if (restart || LLVMIsATerminatorInst(i)) continue;
        if (!b->first) b->first = i;
        if (!is_plain(i) || ++count > MOST_INSTRUCTIONS) return false;
    }
    return b->first != NULL;
}

/* ---- The second form. */

static void keep_copy(struct stride_block *b, LLVMValueRef value, LLVMValueRef copy) {
    b->copies[b->copy_count++] = (struct copied){value, copy};
}

static LLVMValueRef copy_of(const struct stride_block *b, LLVMValueRef value) {
    for (int n = 0; n < b->copy_count; n++)
        if (b->copies[n].value == value) return b->copies[n].copy;
    return NULL;
}

/* The value in the form for unit strides. Arithmetic before the block, such as a part of an address, is
 * computed anew if it depends on a stride. */
static LLVMValueRef value_in(struct stride_block *b, LLVMValueRef value, int depth) {
    const struct unit_stride *stride = find_stride(b, value);
    if (stride) return LLVMConstInt(LLVMTypeOf(value), stride->unit, false);
    if (!LLVMIsAInstruction(value)) return value;
    LLVMValueRef copy = copy_of(b, value), operands[2];
    if (copy) return copy;
    bool part = fold_is_arithmetic(value) || index_of(value);
    /* Up to MOST_DEPTH values under way are not counted yet. The block's instructions have their own room. */
    if (!part || depth == 0 || b->address_count >= MOST_ADDRESS - MOST_DEPTH) return value;
    bool same = true;
    int count = LLVMGetNumOperands(value);
    for (int o = 0; o < count; o++) {
        operands[o] = value_in(b, LLVMGetOperand(value, (unsigned)o), depth - 1);
        same &= operands[o] == LLVMGetOperand(value, (unsigned)o);
    }
    copy = same ? value : LLVMInstructionClone(value);
    for (int o = 0; o < count && !same; o++) LLVMSetOperand(copy, (unsigned)o, operands[o]);
    if (!same) LLVMInsertIntoBuilder(b->unit->builder, copy);
    b->address_count++;
    keep_copy(b, value, copy);
    return copy;
}

static void copy_instruction(struct stride_block *b, LLVMValueRef i) {
    LLVMValueRef copy = LLVMInstructionClone(i);
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)o);
        if (LLVMIsAInstruction(operand)) LLVMSetOperand(copy, (unsigned)o, value_in(b, operand, MOST_DEPTH));
    }
    LLVMInsertIntoBuilder(b->unit->builder, copy);
    keep_copy(b, i, copy);
}

static LLVMValueRef all_are_units(struct stride_block *b) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMValueRef all = NULL;
    for (int n = 0; n < b->stride_count; n++) {
        LLVMValueRef value = b->strides[n].value;
        LLVMValueRef constant = LLVMConstInt(LLVMTypeOf(value), b->strides[n].unit, false);
        LLVMValueRef one = LLVMBuildICmp(builder, LLVMIntEQ, value, constant, "");
        all = all ? LLVMBuildAnd(builder, all, one, "") : one;
    }
    return all;
}

/* Uses of a value after the two forms get a phi of both values. */
static void merge(struct stride_block *b, const struct copied *c, LLVMBasicBlockRef general,
                  LLVMBasicBlockRef units, LLVMBasicBlockRef after) {
    LLVMValueRef merged = NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(c->value), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef user = LLVMGetUser(use);
        if (user == merged || LLVMGetInstructionParent(user) == general) continue;
        if (!merged) {
            LLVMValueRef values[2] = {c->value, c->copy};
            LLVMBasicBlockRef blocks[2] = {general, units};
            LLVMPositionBuilderBefore(b->unit->builder, LLVMGetFirstInstruction(after));
            merged = LLVMBuildPhi(b->unit->builder, LLVMTypeOf(c->value), "");
            LLVMAddIncoming(merged, values, blocks, 2);
        }
        for (int o = 0; o < LLVMGetNumOperands(user); o++)
            if (LLVMGetOperand(user, (unsigned)o) == c->value) LLVMSetOperand(user, (unsigned)o, merged);
        next = LLVMGetFirstUse(c->value); /* the list has changed */
    }
}

static void write_forms(struct stride_block *b) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMBasicBlockRef general = flow_split_block(b->unit, b->first);
    LLVMBasicBlockRef after = flow_split_block(b->unit, LLVMGetBasicBlockTerminator(general));
    LLVMBasicBlockRef units = LLVMInsertBasicBlockInContext(b->unit->context, general, "unit_strides");
    LLVMValueRef jump = LLVMGetBasicBlockTerminator(b->block);
    LLVMSetCurrentDebugLocation2(builder, LLVMInstructionGetDebugLoc(b->first));
    LLVMPositionBuilderBefore(builder, jump);
    LLVMBuildCondBr(builder, all_are_units(b), units, general);
    LLVMInstructionEraseFromParent(jump);
    LLVMPositionBuilderAtEnd(builder, units);
    b->copy_count = b->address_count = 0;
    FOR_EACH_INSTRUCTION(i, general) {
        if (!LLVMIsATerminatorInst(i)) copy_instruction(b, i);
    }
    LLVMBuildBr(builder, after);
    for (int n = 0; n < b->copy_count; n++)
        if (LLVMGetInstructionParent(b->copies[n].value) == general)
            merge(b, &b->copies[n], general, units, after);
    LLVMSetCurrentDebugLocation2(builder, NULL);
}

/* ---- All blocks. */

enum { MOST_BLOCKS = 16 };

struct block_list {
    LLVMBasicBlockRef blocks[MOST_BLOCKS];
    int count;
};

/* Lists the blocks that get a second form. With `write`, writes the second form of that block instead. Each
 * call finds the flow, since writing changes the blocks. */
static smelt_status visit(struct unit *unit, struct block_list *list, LLVMBasicBlockRef write) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    struct stride_block *b = status == SMELT_OK ? arena_alloc(&arena, sizeof *b) : NULL;
    if (status == SMELT_OK && !b)
        status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a block");
    for (int n = 0; status == SMELT_OK && !flow.irreducible && n < flow.block_count; n++) {
        *b = (struct stride_block){.unit = unit, .flow = &flow, .block = flow.blocks[n].block};
        if ((write && b->block != write) || !find_strides(b)) continue;
        if (write) {
            write_forms(b);
            break;
        }
        if (list->count < MOST_BLOCKS) list->blocks[list->count++] = b->block;
    }
    arena_free(&arena);
    return status;
}

smelt_status pass_simd_unit_strides(struct unit *unit) {
    struct block_list list = {.count = 0};
    if (unit->form != FORM_BEST) return SMELT_OK;
    TRY(visit(unit, &list, NULL));
    for (int n = 0; n < list.count; n++) TRY(visit(unit, &list, list.blocks[n]));
    return list.count ? run_passes(unit, "function(early-cse)") : SMELT_OK;
}
