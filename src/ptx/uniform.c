/* A fixpoint on the safe side: a value that depends on the lane differs; a branch on such a value goes
 * different ways, and every block on the way to where all of them have met is run by some lanes only. What is
 * computed in such blocks, and the phis where lanes meet, are taken to differ. */
#include "ptx/uniform.h"
#include "ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

/* ---- The set of values. */

static size_t slot_of(const struct uniformity *u, LLVMValueRef value) {
    size_t at = (size_t)((uintptr_t)value >> 4) * 0x9e3779b97f4a7c15u & (u->capacity - 1);
    while (u->differing[at] && u->differing[at] != value) at = (at + 1) & (u->capacity - 1);
    return at;
}

static bool differs(const struct uniformity *u, LLVMValueRef value) {
    return u->differing[slot_of(u, value)] == value;
}

static void mark(struct uniformity *u, LLVMValueRef value) {
    u->differing[slot_of(u, value)] = value;
}

bool is_uniform(const struct uniformity *u, LLVMValueRef value) {
    return !differs(u, value);
}

bool is_uniform_block(const struct uniformity *u, LLVMBasicBlockRef block) {
    int index = flow_index(&u->flow, block);
    return index >= 0 && !u->partial[index];
}

bool has_whole_simdgroups(const struct code_shape *shape) {
    uint32_t threads = shape->size[0] * shape->size[1] * shape->size[2];
    return threads && threads % 32 == 0 && !shape->masked;
}

/* ---- Which blocks every way to the end passes. */

static uint64_t *after_of(const struct uniformity *u, int block) {
    return u->after + (size_t)block * (size_t)u->words;
}
static bool has_bit(const uint64_t *set, int bit) {
    return set[bit / 64] >> (bit % 64) & 1;
}

/* From all blocks down to those that are found on every way; the bit behind the last block's stays where no
 * way ends. */
static void find_after(struct uniformity *u) {
    const int count = u->flow.block_count;
    memset(u->after, 0xff, (size_t)count * (size_t)u->words * sizeof *u->after);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = count - 1; i >= 0; i--) {
            LLVMValueRef terminator = LLVMGetBasicBlockTerminator(u->flow.blocks[i].block);
            unsigned successors = LLVMGetNumSuccessors(terminator);
            for (int w = 0; w < u->words; w++) {
                uint64_t all = successors ? UINT64_MAX : 0;
                for (unsigned s = 0; s < successors; s++)
                    all &= after_of(u, flow_index(&u->flow, LLVMGetSuccessor(terminator, s)))[w];
                if (i / 64 == w) all |= UINT64_C(1) << (i % 64);
                changed |= all != after_of(u, i)[w];
                after_of(u, i)[w] = all;
            }
        }
    }
}

/* Follows a branch that lanes take different ways, up to the first block that all ways pass. */
static void follow(struct uniformity *u, int branch) {
    const size_t count = (size_t)u->flow.block_count;
    int *waiting = arena_alloc(&u->arena, (count + 1) * sizeof *waiting), waiting_count = 1;
    bool *seen = arena_alloc(&u->arena, count);
    if (u->arena.failed) return;
    u->followed[branch] = true;
    waiting[0] = branch;
    while (waiting_count) {
        LLVMBasicBlockRef from = u->flow.blocks[waiting[--waiting_count]].block;
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(from);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
            int block = flow_index(&u->flow, LLVMGetSuccessor(terminator, s));
            if (seen[block]) continue;
            seen[block] = u->joining[block] = true;
            bool meeting = block != branch && has_bit(after_of(u, branch), block);
            if (meeting) continue;
            u->partial[block] = true;
            if (block != branch) waiting[waiting_count++] = block;
        }
    }
}

/* ---- Values. */

/* Numbers of the thread of which 32 neighbours lie in one simdgroup: equal there once their lowest five bits
 * are gone. */
static bool counts_lanes(const struct code_shape *shape, LLVMValueRef value) {
    const char *name = called_name(value);
    uint64_t dimension;
    if (strcmp(name, "__smelt_thread_index") == 0) return true;
    if (strcmp(name, "__smelt_position_in_threadgroup") != 0) return false;
    return is_constant_integer(LLVMGetOperand(value, 0), &dimension) && dimension == 0 &&
           shape->size[0] % 32 == 0 && shape->size[0];
}

static bool drops_lanes(const struct code_shape *shape, LLVMValueRef instruction) {
    uint64_t by;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    if (opcode != LLVMLShr && opcode != LLVMAnd && opcode != LLVMUDiv) return false;
    if (!is_constant_integer(LLVMGetOperand(instruction, 1), &by)) return false;
    LLVMValueRef of = LLVMGetOperand(instruction, 0);
    if (LLVMIsAZExtInst(of) || LLVMIsATruncInst(of)) of = LLVMGetOperand(of, 0);
    if (!counts_lanes(shape, of)) return false;
    return opcode == LLVMLShr ? by >= 5 : opcode == LLVMAnd ? by % 32 == 0 : by && by % 32 == 0;
}

/* Rows as long as a multiple of 32: a simdgroup lies in one. */
static bool is_position_of_row(const struct code_shape *shape, uint64_t dimension) {
    if (dimension == 0 || shape->masked) return false;
    uint32_t row = shape->size[0] * (dimension == 2 ? shape->size[1] : 1);
    return row && row % 32 == 0;
}

bool is_plain_assembly(LLVMValueRef instruction) {
    if (!LLVMIsACallInst(instruction) || !LLVMIsAInlineAsm(LLVMGetCalledValue(instruction))) return false;
    unsigned kind = LLVMGetEnumAttributeKindForName("convergent", 10);
    return !LLVMGetInlineAsmHasSideEffects(LLVMGetCalledValue(instruction)) &&
           !LLVMGetCallSiteEnumAttribute(instruction, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
}

static bool call_differs(const struct uniformity *u, LLVMValueRef call) {
    static const char *const same[] = {
        "__smelt_threadgroup_position", "__smelt_threadgroup_size", "__smelt_dispatch_threadgroup_size",
        "__smelt_grid_threads",         "__smelt_grid_groups",      "__smelt_simdgroup",
        "__smelt_simdgroup_count",      "__smelt_buffer_address",   "__smelt_threadgroup_address",
        "__smelt_simd_ballot",
    };
    const char *name = called_name(call);
    uint64_t number;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(name, same[i]) == 0) return false;
    if (strncmp(name, "__smelt_simd_reduce_", 20) == 0)
        return !is_constant_integer(LLVMGetOperand(call, 1), &number) || number != 32;
    if (strcmp(name, "__smelt_position_in_threadgroup") == 0 || strcmp(name, "__smelt_thread_position") == 0)
        return !is_constant_integer(LLVMGetOperand(call, 0), &number) ||
               !is_position_of_row(&u->unit->request->shape, number);
    if (is_plain_assembly(call)) return false;
    if (strncmp(name, "llvm.", 5) != 0) return true;
    LLVMValueRef callee = LLVMGetCalledValue(call);
    unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
    LLVMAttributeRef memory =
        LLVMGetEnumAttributeAtIndex(callee, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
    return !memory || LLVMGetEnumAttributeValue(memory) != 0 || strncmp(name, "llvm.nvvm.", 10) == 0;
}

/* Private memory has one address in all lanes, and not one content. */
static bool is_shared_memory(const struct uniformity *u, LLVMValueRef address) {
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(address));
    while (LLVMIsAGetElementPtrInst(address)) address = LLVMGetOperand(address, 0);
    return space == PTX_GLOBAL || space == PTX_SHARED || address == LLVMGetParam(u->unit->entry, 0);
}

/* By what the instruction itself is. */
static bool differs_by_nature(const struct uniformity *u, LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMCall:
        return call_differs(u, instruction);
    case LLVMLoad:
        return !is_shared_memory(u, LLVMGetOperand(instruction, 0)) || LLVMGetVolatile(instruction) ||
               LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic;
    case LLVMAlloca:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return true;
    default:
        return false;
    }
}

static bool phi_differs(LLVMValueRef phi) {
    for (unsigned i = 1; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingValue(phi, i) != LLVMGetIncomingValue(phi, 0)) return true;
    return false;
}

static bool must_differ(const struct uniformity *u, LLVMValueRef instruction, int block) {
    if (u->partial[block] || differs_by_nature(u, instruction)) return true;
    if (LLVMIsAPHINode(instruction) && u->joining[block] && phi_differs(instruction)) return true;
    if (drops_lanes(&u->unit->request->shape, instruction)) return false;
    bool own_call = strncmp(called_name(instruction), "__smelt_", 8) == 0;
    int operands = own_call ? 0 : LLVMGetNumOperands(instruction);
    for (int i = 0; i < operands; i++)
        if (differs(u, LLVMGetOperand(instruction, (unsigned)i))) return true;
    return false;
}

static bool analyse_block(struct uniformity *u, int block) {
    bool changed = false;
    FOR_EACH_INSTRUCTION(instruction, u->flow.blocks[block].block) {
        if (differs(u, instruction)) continue;
        if (LLVMIsATerminatorInst(instruction)) {
            bool branches = LLVMGetNumSuccessors(instruction) > 1;
            if (!branches || u->followed[block] || !differs(u, LLVMGetOperand(instruction, 0))) continue;
            follow(u, block);
            changed = true;
        } else if (must_differ(u, instruction, block)) {
            mark(u, instruction);
            changed = true;
        }
    }
    return changed;
}

/* A block from which no way leads to the end spoils what is known of others. */
static void give_up_without_end(struct uniformity *u) {
    for (int i = 0; i < u->flow.block_count; i++)
        if (has_bit(after_of(u, i), u->flow.block_count))
            for (int k = 0; k < u->flow.block_count; k++) u->partial[k] = true;
}

smelt_status uniformity_find(struct unit *unit, struct uniformity *u) {
    *u = (struct uniformity){.unit = unit};
    TRY(flow_find(unit, unit->entry, &u->arena, &u->flow));
    size_t blocks = (size_t)u->flow.block_count, values = 64;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block)
    values++;
    for (u->capacity = 64; u->capacity < 4 * values;) u->capacity *= 2;
    u->words = (int)(blocks / 64 + 1);
    u->differing = arena_alloc(&u->arena, u->capacity * sizeof *u->differing);
    u->after = arena_alloc(&u->arena, blocks * (size_t)u->words * sizeof *u->after);
    u->partial = arena_alloc(&u->arena, blocks);
    u->joining = arena_alloc(&u->arena, blocks);
    u->followed = arena_alloc(&u->arena, blocks);
    if (!u->arena.failed) {
        find_after(u);
        give_up_without_end(u);
    }
    for (bool changed = true; changed && !u->arena.failed;) {
        changed = false;
        for (int block = 0; block < u->flow.block_count; block++) changed |= analyse_block(u, block);
    }
    if (u->arena.failed) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the analysis");
    return SMELT_OK;
}

void uniformity_free(struct uniformity *u) {
    arena_free(&u->arena);
}
