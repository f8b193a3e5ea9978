/* Addresses as sums (sums.h). */
#include "compiler/ptx/coarsen/sums.h"

static void add_leaf(struct address_sum *sum, LLVMValueRef leaf, uint64_t times) {
    for (int i = 0; i < sum->count; i++)
        if (sum->leaves[i] == leaf) {
            sum->times[i] += times;
            return;
        }
    if (sum->count == SUM_MOST_LEAVES) {
        sum->fails = true;
        return;
    }
    sum->leaves[sum->count] = leaf;
    sum->times[sum->count++] = times;
}

/* Whether a value is a number, or is taken to be one. */
static bool is_number(LLVMValueRef value, const struct assumptions *assumed, int64_t *number) {
    while (LLVMIsAZExtInst(value) || LLVMIsASExtInst(value) || LLVMIsATruncInst(value))
        value = LLVMGetOperand(value, 0);
    for (int i = 0; i < assumed->count; i++)
        if (assumed->list[i].argument == value) {
            *number = (int64_t)assumed->list[i].number;
            return true;
        }
    if (!LLVMIsAConstantInt(value)) return false;
    *number = LLVMConstIntGetSExtValue(value);
    return true;
}

void ptx_add_to_sum(struct unit *unit, struct address_sum *sum, LLVMValueRef value, uint64_t times,
                    const struct assumptions *assumed, int depth) {
    uint64_t constant;
    int64_t number;
    if (is_number(value, assumed, &number)) {
        sum->number += (int64_t)times * number;
        return;
    }
    LLVMOpcode opcode = LLVMIsAInstruction(value) && depth ? LLVMGetInstructionOpcode(value) : LLVMRet;
    LLVMValueRef first = opcode == LLVMRet ? NULL : LLVMGetOperand(value, 0);
    bool sums = opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(value));
    if (sums || (opcode == LLVMGetElementPtr && LLVMGetNumOperands(value) == 2)) {
        uint64_t step = sums ? 1 : LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(value));
        ptx_add_to_sum(unit, sum, first, times, assumed, depth - 1);
        ptx_add_to_sum(unit, sum, LLVMGetOperand(value, 1), times * step, assumed, depth - 1);
    } else if (opcode == LLVMZExt || opcode == LLVMSExt) {
        ptx_add_to_sum(unit, sum, first, times, assumed, depth - 1);
    } else if (opcode == LLVMShl && is_constant_integer(LLVMGetOperand(value, 1), &constant) &&
               constant < 32) {
        ptx_add_to_sum(unit, sum, first, times << constant, assumed, depth - 1);
    } else if (opcode == LLVMMul && assumed->count && is_number(first, assumed, &number)) {
        ptx_add_to_sum(unit, sum, LLVMGetOperand(value, 1), times * (uint64_t)number, assumed, depth - 1);
    } else if (opcode == LLVMMul && assumed->count && is_number(LLVMGetOperand(value, 1), assumed, &number)) {
        ptx_add_to_sum(unit, sum, first, times * (uint64_t)number, assumed, depth - 1);
    } else {
        add_leaf(sum, value, times);
    }
}

bool ptx_differ_by_number(const struct address_sum *a, const struct address_sum *b) {
    if (a->fails || b->fails || a->count != b->count) return false;
    for (int i = 0; i < a->count; i++) {
        int k = 0;
        while (k < b->count && b->leaves[k] != a->leaves[i]) k++;
        if (k == b->count || a->times[i] != b->times[k]) return false;
    }
    return true;
}
