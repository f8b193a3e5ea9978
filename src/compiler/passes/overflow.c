/* Integer arithmetic wraps around (docs/semantics.md). clang's promises about signed numbers (nsw, exact, an
 * undefined abs(INT_MIN)) are removed before the optimiser can use them: a comparison with 0 that guards a
 * division, or ends a loop, must see the actual number.
 *
 * Addresses keep the promise, because a[i + 1] is next to a[i] only if i + 1 does not wrap; an index that
 * wraps would lie outside any array. An operation keeps it if its result is used only in the addresses of
 * accesses and, where it counts a loop up or down, in the comparison with the loop's bound: on overflow, the
 * loop then ends there instead of continuing from the other end of the range.
 *
 * pass_wrap requires: the module as clang wrote it; it leaves a note on each operation. pass_indexes
 * requires: functions inlined, variables in registers; it leaves no notes. */
#include "compiler/pass.h"

#include <string.h>

/* Metadata of operations: clang promised that this one does not overflow; whether it only reaches addresses.
 */
struct notes {
    unsigned promised, index;
    LLVMValueRef mark;
};

static struct notes notes_of(struct unit *unit) {
    return (struct notes){
        LLVMGetMDKindIDInContext(unit->context, "smelt.promised", 14),
        LLVMGetMDKindIDInContext(unit->context, "smelt.index", 11),
        LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, NULL, 0)),
    };
}

static bool has(LLVMValueRef instruction, unsigned note) {
    return LLVMIsAInstruction(instruction) && LLVMGetMetadata(instruction, note) != NULL;
}

static bool counts(LLVMOpcode opcode) {
    return opcode == LLVMAdd || opcode == LLVMSub || opcode == LLVMMul || opcode == LLVMShl;
}

/* ---- Without promises. */

static void wrap_sum(const struct notes *notes, LLVMValueRef sum) {
    if (LLVMGetNSW(sum)) LLVMSetMetadata(sum, notes->promised, notes->mark);
    LLVMSetNSW(sum, false);
    LLVMSetNUW(sum, false);
}

/* The last argument makes the result for INT_MIN poison. */
static void define_absolute(struct unit *unit, LLVMValueRef call) {
    if (strncmp(called_name(call), "llvm.abs.", 9) == 0)
        LLVMSetOperand(call, 1, LLVMConstInt(LLVMInt1TypeInContext(unit->context), 0, false));
}

static void wrap(struct unit *unit, const struct notes *notes, LLVMValueRef instruction) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    if (counts(opcode)) wrap_sum(notes, instruction);
    if (opcode == LLVMSDiv) LLVMSetExact(instruction, false); /* a difference of addresses */
    if (opcode == LLVMCall) define_absolute(unit, instruction);
}

smelt_status pass_wrap(struct unit *unit) {
    struct notes notes = notes_of(unit);
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        FOR_EACH_BLOCK(block, f)
    FOR_EACH_INSTRUCTION(instruction, block) wrap(unit, &notes, instruction);
    return SMELT_OK;
}

/* ---- Values that only reach addresses. */

static bool may_reach_addresses(const struct notes *notes, LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMPHI:
    case LLVMSelect:
    case LLVMSExt:
    case LLVMGetElementPtr:
    case LLVMAddrSpaceCast:
        return true;
    default:
        return has(instruction, notes->promised);
    }
}

/* An upper bound of an unsigned value; UINT64_MAX if none is known. */
static uint64_t most_of(LLVMValueRef value, int depth) {
    enum intrinsic intrinsic = intrinsic_of(value);
    uint64_t number;
    if (is_constant_integer(value, &number)) return number;
    if (intrinsic == INTRINSIC_THREADGROUP_SIZE || intrinsic == INTRINSIC_DISPATCH_THREADGROUP_SIZE ||
        intrinsic == INTRINSIC_SIMDGROUP_COUNT)
        return 1024;
    if (!LLVMIsAInstruction(value) || depth == 0) return UINT64_MAX;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMTrunc) return most_of(LLVMGetOperand(value, 0), depth - 1);
    if (opcode == LLVMZExt) {
        unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(value, 0)));
        uint64_t most = most_of(LLVMGetOperand(value, 0), depth - 1);
        return width < 64 && most >> width ? (UINT64_C(1) << width) - 1 : most;
    }
    if (opcode != LLVMMul && opcode != LLVMShl) return UINT64_MAX;
    uint64_t a = most_of(LLVMGetOperand(value, 0), depth - 1),
             b = most_of(LLVMGetOperand(value, 1), depth - 1);
    if (opcode == LLVMShl) b = b < 31 ? UINT64_C(1) << b : UINT64_MAX;
    return a <= INT32_MAX && b <= INT32_MAX && a * b <= INT32_MAX ? a * b : UINT64_MAX;
}

static int sign_of_step(LLVMValueRef step) {
    if (LLVMIsAConstantInt(step)) return LLVMConstIntGetSExtValue(step) < 0 ? -1 : 1;
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(step));
    return width >= 32 && most_of(step, 4) <= INT32_MAX ? 1 : 0;
}

/* Whether the loop of `phi` counts up by `sum` (1), down (-1), or neither is certain (0). */
static int direction_of(const struct notes *notes, LLVMValueRef phi, LLVMValueRef sum) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(sum);
    if (!has(sum, notes->promised) || (opcode != LLVMAdd && opcode != LLVMSub)) return 0;
    if (LLVMGetOperand(sum, 0) != phi) return 0;
    int sign = sign_of_step(LLVMGetOperand(sum, 1));
    return opcode == LLVMAdd ? sign : -sign;
}

/* The direction of a loop's counter, or of its next value. */
static int direction(const struct notes *notes, LLVMValueRef value) {
    LLVMValueRef phi = LLVMIsAPHINode(value) ? value : LLVMGetOperand(value, 0);
    if (!LLVMIsAPHINode(phi) || LLVMGetTypeKind(LLVMTypeOf(phi)) != LLVMIntegerTypeKind) return 0;
    int sign = 0;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef from = LLVMGetIncomingValue(phi, i);
        if (!LLVMIsAInstruction(from) || (phi != value && from != value)) continue;
        int found = direction_of(notes, phi, from);
        if (found && sign && found != sign) return 0;
        if (found) sign = found;
    }
    return sign;
}

/* i < n for a counter that goes up, i > n for one that goes down: only there could an overflow matter. */
static bool ends_a_loop(const struct notes *notes, LLVMValueRef comparison, LLVMValueRef counter) {
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(comparison);
    bool first = LLVMGetOperand(comparison, 0) == counter;
    if (first && LLVMGetOperand(comparison, 1) == counter) return false;
    if (predicate != LLVMIntSLT && predicate != LLVMIntSGT) return false;
    bool below = (predicate == LLVMIntSLT) == first;
    return direction(notes, counter) == (below ? 1 : -1);
}

/* Whether this use is only an address or a part of one. */
static bool is_address_in(const struct notes *notes, LLVMValueRef value, LLVMValueRef user) {
    switch (LLVMGetInstructionOpcode(user)) {
    case LLVMLoad:
        return true;
    case LLVMStore:
        return LLVMGetOperand(user, 0) != value;
    case LLVMAtomicRMW:
        return LLVMGetOperand(user, 1) != value;
    case LLVMAtomicCmpXchg:
        return LLVMGetOperand(user, 1) != value && LLVMGetOperand(user, 2) != value;
    case LLVMCall:
        return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind &&
               strncmp(called_name(user), "llvm.", 5) == 0;
    case LLVMICmp:
        return ends_a_loop(notes, user, value);
    case LLVMSelect:
        return LLVMGetOperand(user, 0) != value && has(user, notes->index);
    case LLVMShl:
        return LLVMGetOperand(user, 1) != value && has(user, notes->index);
    default:
        return has(user, notes->index);
    }
}

static bool reaches_addresses(const struct notes *notes, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use))
        if (!is_address_in(notes, value, LLVMGetUser(use))) return false;
    return true;
}

/* Assumes it of all candidates, and withdraws it where a use contradicts, users first. */
static bool take_back(const struct notes *notes, LLVMValueRef function) {
    bool changed = false;
    for (LLVMBasicBlockRef block = LLVMGetLastBasicBlock(function); block;
         block = LLVMGetPreviousBasicBlock(block))
        for (LLVMValueRef i = LLVMGetLastInstruction(block); i; i = LLVMGetPreviousInstruction(i)) {
            if (!has(i, notes->index) || reaches_addresses(notes, i)) continue;
            LLVMSetMetadata(i, notes->index, NULL);
            changed = true;
        }
    return changed;
}

/* The number of bytes between two addresses: promises about the addresses do not apply to it. */
static void wrap_difference(LLVMValueRef number) {
    for (LLVMValueRef from = LLVMGetOperand(number, 0); LLVMIsAGetElementPtrInst(from);
         from = LLVMGetOperand(from, 0))
        LLVMSetIsInBounds(from, false);
}

static void keep_indexes(const struct notes *notes, LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (LLVMGetInstructionOpcode(instruction) == LLVMPtrToInt) wrap_difference(instruction);
        if (has(instruction, notes->promised) && has(instruction, notes->index))
            LLVMSetNSW(instruction, true);
        LLVMSetMetadata(instruction, notes->promised, NULL);
        LLVMSetMetadata(instruction, notes->index, NULL);
    }
}

smelt_status pass_indexes(struct unit *unit) {
    struct notes notes = notes_of(unit);
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block)
        if (may_reach_addresses(&notes, instruction)) LLVMSetMetadata(instruction, notes.index, notes.mark);
        while (take_back(&notes, f)) continue;
        keep_indexes(&notes, f);
    }
    return SMELT_OK;
}
