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

void ptx_add_to_sum(struct unit *unit, struct address_sum *sum, LLVMValueRef value, uint64_t times,
                    int depth) {
    uint64_t number;
    if (LLVMIsAConstantInt(value)) {
        sum->number += (int64_t)times * LLVMConstIntGetSExtValue(value);
        return;
    }
    LLVMOpcode opcode = LLVMIsAInstruction(value) && depth ? LLVMGetInstructionOpcode(value) : LLVMRet;
    LLVMValueRef first = opcode == LLVMRet ? NULL : LLVMGetOperand(value, 0);
    bool sums = opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(value));
    if (sums || (opcode == LLVMGetElementPtr && LLVMGetNumOperands(value) == 2)) {
        uint64_t step = sums ? 1 : LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(value));
        ptx_add_to_sum(unit, sum, first, times, depth - 1);
        ptx_add_to_sum(unit, sum, LLVMGetOperand(value, 1), times * step, depth - 1);
    } else if (opcode == LLVMZExt || opcode == LLVMSExt) {
        ptx_add_to_sum(unit, sum, first, times, depth - 1);
    } else if (opcode == LLVMShl && is_constant_integer(LLVMGetOperand(value, 1), &number) && number < 32) {
        ptx_add_to_sum(unit, sum, first, times << number, depth - 1);
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
