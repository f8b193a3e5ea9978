#include "compiler/ptx/warp/lanes.h"

#include "abi/intrinsics.h"

/* Metadata of the module. */
#define MARK INTRINSIC_PREFIX "ordered_lanes"

void ptx_order_lanes(struct unit *unit) {
    LLVMGetOrInsertNamedMetadata(unit->module, MARK, sizeof MARK - 1);
}

bool ptx_lanes_ordered(const struct unit *unit) {
    return LLVMGetNamedMetadata(unit->module, MARK, sizeof MARK - 1) != NULL;
}

/* Bits that move by the same distance move together. */
struct move {
    unsigned bits;
    int left;
};

static unsigned moved_number(const struct move *moves, unsigned number) {
    unsigned result = 0;
    for (; moves->bits; moves++)
        result |=
            moves->left < 0 ? (number & moves->bits) >> -moves->left : (number & moves->bits) << moves->left;
    return result;
}

static LLVMValueRef moved(struct unit *unit, const struct move *moves, LLVMValueRef number) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef result = NULL;
    for (; moves->bits; moves++) {
        LLVMValueRef part = LLVMBuildAnd(b, number, constant_i32(unit, moves->bits), "");
        LLVMValueRef by = constant_i32(unit, (uint32_t)(moves->left < 0 ? -moves->left : moves->left));
        if (moves->left > 0) part = LLVMBuildShl(b, part, by, "");
        if (moves->left < 0) part = LLVMBuildLShr(b, part, by, "");
        result = result ? LLVMBuildOr(b, result, part, "") : part;
    }
    return result;
}

/* Metal's bits 4 2 1 3 0 are the hardware's 4 3 2 1 0. Bits above a lane's stay. */
static const struct move to_hardware[] = {{~14u, 0}, {6, 1}, {8, -2}, {0, 0}};
static const struct move to_metal[] = {{~14u, 0}, {12, -1}, {2, 2}, {0, 0}};

unsigned ptx_hardware_bits(const struct unit *unit, unsigned lane) {
    return ptx_lanes_ordered(unit) ? moved_number(to_hardware, lane) : lane;
}

LLVMValueRef ptx_hardware_lane(struct unit *unit, LLVMValueRef lane) {
    return ptx_lanes_ordered(unit) ? moved(unit, to_hardware, lane) : lane;
}

bool ptx_flips_own(LLVMValueRef lane, uint64_t *flipped) {
    if (!LLVMIsAInstruction(lane) || LLVMGetInstructionOpcode(lane) != LLVMXor) return false;
    if (!is_constant_integer(LLVMGetOperand(lane, 1), flipped) || *flipped >= 32) return false;
    LLVMValueRef own = LLVMGetOperand(lane, 0);
    return LLVMIsAInstruction(own) && intrinsic_of(own) == INTRINSIC_LANE;
}

LLVMValueRef ptx_metal_thread(struct unit *unit, LLVMValueRef thread) {
    return ptx_lanes_ordered(unit) ? moved(unit, to_metal, thread) : thread;
}

/* Exchanges the bits of `vote` whose numbers have the bits 1 of one and 0 of the other of two bits of a
 * number: `lower` are the places with 1 in the lower one alone, `distance` leads to the others. */
static LLVMValueRef exchange(struct unit *unit, LLVMValueRef vote, uint32_t lower, uint32_t distance) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef by = constant_i32(unit, distance);
    LLVMValueRef differ = LLVMBuildXor(b, LLVMBuildLShr(b, vote, by, ""), vote, "");
    differ = LLVMBuildAnd(b, differ, constant_i32(unit, lower), "");
    return LLVMBuildXor(b, vote, LLVMBuildOr(b, differ, LLVMBuildShl(b, differ, by, ""), ""), "");
}

LLVMValueRef ptx_metal_vote(struct unit *unit, LLVMValueRef vote) {
    if (!ptx_lanes_ordered(unit)) return vote;
    vote = exchange(unit, vote, 0x00CC00CC, 6); /* bits 1 and 3 of numbers */
    return exchange(unit, vote, 0x0C0C0C0C, 2); /* 1 and 2 */
}
