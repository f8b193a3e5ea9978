/* Whether lanes take the fragments' order (warp/lanes.h), in which elements of left matrices and of sums need
 * not move between Metal's layout and that of the tensor cores.
 *
 * They do if elements would otherwise move in a loop: a left matrix that the loop computes, as attention's
 * weights, or sums that it looks at, as attention's scores. Kernels that move sums only behind their loops,
 * as products of tiles do, keep threads and lanes in one order. */
#include "compiler/ptx/matrix/matrix.h"
#include "compiler/ptx/warp/lanes.h"

#define MOST_STEPS 8 /* conversions and phis between a sum and its use */

static bool is_in_loop(const struct matrices *m, LLVMValueRef instruction) {
    int index = flow_index(&m->flow, LLVMGetInstructionParent(instruction));
    return index >= 0 && m->flow.blocks[index].loop >= 0;
}

static bool is_conversion(LLVMValueRef value) {
    LLVMOpcode opcode = LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : (LLVMOpcode)0;
    return opcode == LLVMFPExt || opcode == LLVMBitCast || opcode == LLVMShl || opcode == LLVMZExt;
}

/* Halfs and bfloats that were loaded to be multiplied are loaded again in the cores' layout. */
static bool is_computed(const struct matrices *m, LLVMValueRef value) {
    bool converted = is_conversion(value);
    while (is_conversion(value)) value = LLVMGetOperand(value, 0);
    if (!LLVMIsAInstruction(value) || !is_in_loop(m, value)) return false;
    return !LLVMIsALoadInst(value) || !converted;
}

/* Whether the loop does something else with a sum than adding products to it. */
static bool is_looked_at(const struct matrices *m, LLVMValueRef sum, int steps) {
    for (LLVMUseRef use = LLVMGetFirstUse(sum); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAInstruction(user) || !is_in_loop(m, user)) continue;
        bool product = intrinsic_of(user) == INTRINSIC_SIMD_MATRIX_PRODUCT;
        if (product && LLVMGetOperand(user, 3) == sum) continue;
        if (!LLVMIsAPHINode(user)) return true;
        if (steps && is_looked_at(m, user, steps - 1)) return true;
    }
    return false;
}

static bool would_move(const struct matrices *m, LLVMValueRef call) {
    struct product p = matrix_product_of(call);
    if (!is_in_loop(m, call) || !matrix_suits_tensor_cores(m->unit, &p)) return false;
    return is_computed(m, p.even) || is_computed(m, p.odd) || is_looked_at(m, call, MOST_STEPS);
}

void matrix_order_lanes(struct matrices *m) {
    if (!divergence_whole_warps(&m->unit->request->shape)) return;
    for (int i = 0; i < m->flow.block_count; i++) {
        LLVMBasicBlockRef block = m->flow.blocks[i].block;
        if (!matrix_is_together(m, block)) continue;
        FOR_EACH_INSTRUCTION(call, block) {
            if (intrinsic_of(call) != INTRINSIC_SIMD_MATRIX_PRODUCT || !would_move(m, call)) continue;
            ptx_order_lanes(m->unit);
            m->ordered = true;
            return;
        }
    }
}
