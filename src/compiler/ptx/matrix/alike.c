/* Finds tensor operations of single simdgroups that a whole threadgroup executes alike: at the same time and
 * with the same right operand. One copy of that operand in threadgroup memory then serves all simdgroups, and
 * warpgroups multiply by it (mpp_alike.h).
 *
 * The prelude calls __smelt_alike(bytes, …) for each operation. The call becomes
 *
 *   0   unless all threads of the threadgroup run it together, with the same values of all arguments, and no
 *       thread may wait for another in a loop of its own
 *   1   if there is threadgroup memory for one copy of `bytes` bytes, which all such operations share
 *   2   if, in addition, the operation is in a loop, device memory cannot have changed since the kernel's
 *       start, and there is room for two copies of its own: the next one is then copied ahead
 *
 * Requires: functions inlined, values in registers. Establishes: no such call is left. */
#include "compiler/ptx/warp/divergence.h"
#include "compiler/ptx/ptx.h"

#include <string.h>

/* Of a kernel's threadgroup memory: two threadgroups then fit into a multiprocessor of compute capability
 * 9.0, which has 228 KiB and reserves 1 KiB for each of them. */
#define MOST_BYTES (113 * 1024)
#define STATE_NUMBERS 7 /* of struct ahead in mpp_alike.h */

static uint64_t bytes_of_variables(struct unit *unit) {
    uint64_t bytes = 0;
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(unit->module);
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g))
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) == THREADGROUP_SPACE)
            bytes += LLVMABISizeOfType(layout, LLVMGlobalGetValueType(g));
    return bytes;
}

/* The sizes of threadgroup arguments are not known here. */
static bool has_arguments(struct unit *unit) {
    LLVMValueRef address = intrinsic_function(unit->module, INTRINSIC_THREADGROUP_ADDRESS);
    return address && LLVMGetFirstUse(address);
}

static bool is_alike(const struct divergence *d, LLVMValueRef call) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(call);
    if (!divergence_all_run(d, block)) return false;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++)
        if (divergence_in_operand(d, LLVMGetOperand(call, i), divergence_place(d, block))) return false;
    return true;
}

/* ---- Whether device memory may have changed since the kernel's start. */

static bool is_private(LLVMValueRef address) {
    for (;;) {
        enum intrinsic intrinsic = intrinsic_of(address);
        if (LLVMIsAAllocaInst(address) || intrinsic == INTRINSIC_ALIKE_STATE) return true;
        if (!LLVMIsAGetElementPtrInst(address) && !LLVMIsAAddrSpaceCastInst(address)) return false;
        address = LLVMGetOperand(address, 0);
    }
}

static bool may_write(LLVMValueRef address) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address)) != THREADGROUP_SPACE && !is_private(address);
}

/* Of the instructions that the prelude calls, only two write to device memory. */
static bool call_may_write(LLVMValueRef call) {
    enum intrinsic intrinsic = intrinsic_of(call);
    const char *name = called_name(call);
    if (intrinsic == INTRINSIC_PTX) return strstr(name, "add_four") || strstr(name, "tensor_store");
    if (intrinsic == INTRINSIC_THREADGROUP_BARRIER || intrinsic == INTRINSIC_SIMDGROUP_BARRIER) return false;
    if (intrinsic != INTRINSIC_NONE) return intrinsic_traits(intrinsic)->purity == ORDERED;
    if (strncmp(name, "llvm.memcpy.", 12) == 0 || strncmp(name, "llvm.memset.", 12) == 0 ||
        strncmp(name, "llvm.memmove.", 13) == 0)
        return may_write(LLVMGetOperand(call, 0));
    return strncmp(name, "llvm.", 5) != 0;
}

/* Whether an instruction writes to device memory, or may observe that other threads have. */
static bool may_change(LLVMValueRef i) {
    if (LLVMIsAStoreInst(i))
        return LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic || may_write(LLVMGetOperand(i, 1));
    if (LLVMIsALoadInst(i)) return LLVMGetVolatile(i) || LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic;
    if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i)) return true;
    return LLVMIsACallInst(i) && call_may_write(i);
}

/* By block: whether memory may have changed by its end. */
static void find_changes(const struct divergence *d, bool *changed) {
    for (int place = 0; place < d->graph.block_count; place++)
        FOR_EACH_INSTRUCTION(i, d->graph.blocks[place].block) changed[place] |= may_change(i);
    for (bool more = true; more;) {
        more = false;
        for (int place = 0; place < d->graph.block_count; place++) {
            const struct path_block *block = &d->graph.blocks[place];
            bool before = changed[place];
            for (int p = 0; p < block->predecessor_count; p++)
                changed[place] |= changed[block->predecessors[p]];
            more |= changed[place] != before;
        }
    }
}

/* ---- Whether threads may wait for each other, other than at barriers: in a loop that reads what others
 * write. A simdgroup that others wait for in this way must not wait for them in a product. */

static bool reads_others(LLVMValueRef i) {
    if (LLVMIsALoadInst(i))
        return (LLVMGetVolatile(i) || LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic) &&
               !is_private(LLVMGetOperand(i, 0));
    return LLVMIsAAtomicCmpXchgInst(i) || (LLVMIsAAtomicRMWInst(i) && LLVMGetFirstUse(i));
}

static bool has_barrier(const struct path_graph *graph, int loop) {
    for (int place = 0; place < graph->block_count; place++) {
        if (!paths_within(graph, place, loop)) continue;
        FOR_EACH_INSTRUCTION(i, graph->blocks[place].block)
        if (intrinsic_of(i) == INTRINSIC_THREADGROUP_BARRIER) return true;
    }
    return false;
}

static bool may_wait(const struct path_graph *graph) {
    for (int place = 0; place < graph->block_count; place++) {
        bool reads = false;
        int loop = graph->blocks[place].loop;
        if (loop < 0) continue;
        FOR_EACH_INSTRUCTION(i, graph->blocks[place].block) reads |= reads_others(i);
        /* At a barrier, all threads wait for each other in any case. */
        if (reads && !has_barrier(graph, loop)) return true;
    }
    return false;
}

/* ---- Answers. */

struct answers {
    struct unit *unit;
    struct divergence d;
    bool *changed;
    uint64_t shared, own; /* bytes */
};

/* A private array, zeroed where the kernel starts. */
static LLVMValueRef make_numbers(struct unit *unit, uint32_t count) {
    LLVMBuilderRef b = unit->builder;
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(unit->entry)));
    LLVMTypeRef type = LLVMArrayType2(type_i64(unit), count);
    LLVMValueRef numbers = LLVMBuildAlloca(b, type, "");
    LLVMBuildStore(b, LLVMConstNull(type), numbers);
    return numbers;
}

static LLVMValueRef make_memory(struct unit *unit, uint64_t bytes) {
    return staging_variable(unit, INTRINSIC_PREFIX "alike_variable", bytes);
}

static LLVMValueRef value_for(struct answers *a, enum intrinsic intrinsic, LLVMValueRef *state,
                              LLVMValueRef *memory, uint64_t bytes) {
    if (intrinsic == INTRINSIC_ALIKE_STATE)
        return *state ? *state : (*state = make_numbers(a->unit, STATE_NUMBERS));
    if (intrinsic == INTRINSIC_ALIKE_MEMORY)
        return *memory ? *memory : (*memory = make_memory(a->unit, bytes));
    return NULL;
}

/* Replaces the calls that take the memory and the state of `call`. */
static void replace_parts(struct answers *a, LLVMValueRef call, LLVMValueRef shared, uint64_t bytes) {
    LLVMValueRef state = NULL, memory = shared;
    for (LLVMUseRef use = LLVMGetFirstUse(call), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef user = LLVMGetUser(use);
        LLVMValueRef value = value_for(a, intrinsic_of(user), &state, &memory, bytes);
        if (!value) continue;
        LLVMReplaceAllUsesWith(user, value);
        LLVMInstructionEraseFromParent(user);
    }
}

/* Two copies, and their barriers (barrier_of_left in mpp_alike.h). */
static uint64_t own_bytes(uint64_t bytes) {
    return 2 * bytes + 64;
}

static smelt_status decide(struct answers *a, LLVMValueRef call, uint32_t *answer) {
    uint64_t bytes, others = bytes_of_variables(a->unit) + a->own;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &bytes))
        return unit_fail(a->unit, SMELT_ERROR_INTERNAL, "the size of a shared operand is not a constant");
    *answer = 0;
    if (!is_alike(&a->d, call)) return SMELT_OK;
    int place = divergence_place(&a->d, LLVMGetInstructionParent(call));
    uint64_t shared = bytes > a->shared ? bytes : a->shared;
    if (!a->changed[place] && a->d.graph.blocks[place].loop >= 0 &&
        others + a->shared + own_bytes(bytes) <= MOST_BYTES) {
        *answer = 2;
        a->own += own_bytes(bytes);
    } else if (others + shared <= MOST_BYTES) {
        *answer = 1;
        a->shared = shared;
    }
    return SMELT_OK;
}

static smelt_status answer_all(struct answers *a, LLVMValueRef query) {
    struct asked {
        LLVMValueRef call;
        uint32_t answer;
    } *asked;
    int count = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(query); use; use = LLVMGetNextUse(use)) count++;
    asked = arena_alloc(&a->d.arena, (size_t)count * sizeof *asked);
    a->changed = arena_alloc(&a->d.arena, (size_t)a->d.graph.block_count);
    if (a->d.arena.failed)
        return unit_fail(a->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d questions", count);
    bool may = !has_arguments(a->unit) && !a->d.irreducible && !a->unit->request->shape.tested &&
               !may_wait(&a->d.graph);
    if (may) find_changes(&a->d, a->changed);
    count = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(query); use; use = LLVMGetNextUse(use), count++) {
        asked[count] = (struct asked){LLVMGetUser(use), 0};
        if (may) TRY(decide(a, asked[count].call, &asked[count].answer));
    }
    LLVMValueRef shared = a->shared ? make_memory(a->unit, a->shared) : NULL;
    for (int i = 0; i < count; i++) {
        uint64_t bytes;
        (void)is_constant_integer(LLVMGetOperand(asked[i].call, 0), &bytes);
        replace_parts(a, asked[i].call, asked[i].answer == 1 ? shared : NULL, own_bytes(bytes));
        a->unit->alike |= asked[i].answer > 0;
        LLVMReplaceAllUsesWith(asked[i].call, constant_i32(a->unit, asked[i].answer));
        LLVMInstructionEraseFromParent(asked[i].call);
    }
    return SMELT_OK;
}

smelt_status pass_alike(struct unit *unit) {
    LLVMValueRef query = intrinsic_function(unit->module, INTRINSIC_ALIKE);
    if (!query || !LLVMGetFirstUse(query)) return SMELT_OK;
    struct answers a = {.unit = unit};
    smelt_status status = divergence_find_in_group(unit, &a.d);
    if (status == SMELT_OK) status = answer_all(&a, query);
    divergence_free(&a.d);
    TRY(status);
    return run_passes(unit, "function(sccp,simplifycfg),globaldce");
}
