/* Loops that load for several rows in each round get as many registers as the loaded values need, and loops
 * of many blocks with products on tensor cores no more than leave room for several threadgroups.
 *
 * For a kernel of small threadgroups, NVIDIA's assembler prefers few registers, so that many warps fit. Where
 * a round loads for several rows, it then begins a row's loads after the sum of the row before, and each row
 * waits for memory. If the kernel states how many threads a multiprocessor is to hold, the assembler uses
 * what that leaves, and a round's loads begin together.
 *
 * Requires: the module in its final form. Establishes: minctasm, unless another pass has. */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#include <string.h>

#define RESIDENT 896     /* threads: 72 registers for each, 80 in groups of 256 */
#define MOST_THREADS 256 /* of a group */
#define FEWEST_LOADS 8   /* of a round */
/* Registers that hold values at once, by the estimate below; the assembler needs some more. */
#define MOST_REGISTERS 60
#define MOST_VALUES 256
/* Where a thread loads from one or two places, as for a row of its own, more registers gained nothing. */
#define FEWEST_BASES 4
#define MOST_BASES 16

struct part {
    struct unit *unit;
    LLVMBasicBlockRef block;
    LLVMValueRef outer[MOST_VALUES]; /* what the block uses and does not compute */
    int outer_count;
    unsigned registers; /* an estimate, once all its loads have begun: what it carries, uses and loads */
    unsigned loads;
    LLVMValueRef bases[MOST_BASES]; /* of the loads: their addresses without constant offsets */
    unsigned base_count;
    bool waits; /* … for other things than loads: it stores, or waits for other threads */
};

/* ---- Products behind branches. */

/* Where a round with products has many branches, as where each access to a table of pages is guarded, the
 * assembler begins much before them, and takes registers until two threadgroups are all that fits. */
#define RESIDENT_MULTIPLIERS 512 /* threads: 128 registers for each */
#define MANY_BLOCKS 48           /* of a loop */

static bool multiplies(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(call, block) {
        if (ptx_is_product(call)) return true;
    }
    return false;
}

static bool has_long_products(const struct flow *flow) {
    for (int loop = 0; loop < flow->loop_count; loop++) {
        int blocks = 0;
        bool found = false;
        for (int i = flow->loops[loop].header; i < flow->block_count; i++) {
            if (!flow_loop_within(flow, flow->blocks[i].loop, loop)) continue;
            blocks++;
            found |= multiplies(flow->blocks[i].block);
        }
        if (found && blocks >= MANY_BLOCKS) return true;
    }
    return false;
}

/* ---- Rows. */

/* Of 32 bits. Elements of vectors are converted, one by one. */
static unsigned registers_of(struct unit *unit, LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMVectorTypeKind)
        return LLVMGetVectorSize(type) * registers_of(unit, LLVMGetElementType(type));
    if (kind == LLVMVoidTypeKind || kind == LLVMLabelTypeKind || kind == LLVMMetadataTypeKind) return 0;
    uint64_t bits = LLVMSizeOfTypeInBits(unit->layout, type);
    return bits == 1 ? 0 : (unsigned)((bits + 31) / 32);
}

static bool may_have_effects(LLVMValueRef call) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    return LLVMIsAInlineAsm(callee) && LLVMGetInlineAsmHasSideEffects(callee);
}

static void add_outer(struct part *p, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionParent(value) == p->block) return;
    for (int i = 0; i < p->outer_count; i++)
        if (p->outer[i] == value) return;
    if (p->outer_count < MOST_VALUES) p->outer[p->outer_count++] = value;
    p->registers += registers_of(p->unit, LLVMTypeOf(value));
}

static LLVMValueRef base_of(LLVMValueRef address) {
    while (LLVMIsAInstruction(address)) {
        bool constant =
            LLVMIsAGetElementPtrInst(address) || LLVMIsAIntToPtrInst(address) || LLVMIsAPtrToIntInst(address);
        for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(address); i++)
            constant &= LLVMIsAConstant(LLVMGetOperand(address, i)) != NULL;
        if (!constant) break;
        address = LLVMGetOperand(address, 0);
    }
    return address;
}

static void add_base(struct part *p, LLVMValueRef load) {
    LLVMValueRef base = base_of(LLVMGetOperand(load, 0));
    for (unsigned i = 0; i < p->base_count; i++)
        if (p->bases[i] == base) return;
    if (p->base_count < MOST_BASES) p->bases[p->base_count++] = base;
}

static bool may_wait(LLVMValueRef i) {
    if (LLVMIsAStoreInst(i) || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i))
        return true;
    return LLVMIsACallInst(i) && !ptx_is_load(i) && (ptx_is_convergent(i) || may_have_effects(i));
}

static void look_at(struct part *p) {
    FOR_EACH_INSTRUCTION(i, p->block) {
        bool load = ptx_is_load(i);
        p->loads += load;
        if (load) add_base(p, i);
        p->waits |= may_wait(i);
        if (load || LLVMIsAPHINode(i)) p->registers += registers_of(p->unit, LLVMTypeOf(i));
        for (int o = 0; !LLVMIsAPHINode(i) && o < LLVMGetNumOperands(i); o++)
            add_outer(p, LLVMGetOperand(i, (unsigned)o));
    }
}

static bool is_round(const struct flow *flow, int block) {
    int loop = flow->blocks[block].loop;
    return loop >= 0 && flow->loops[loop].header == block && flow->loops[loop].latch_count == 1 &&
           flow->loops[loop].latches[0] == block;
}

/* Whether a round of some loop loads a lot, and no part of the kernel needs more than MOST_REGISTERS. */
static bool is_wanted(struct unit *unit, const struct flow *flow, struct part *p) {
    bool found = false;
    for (int i = 0; i < flow->block_count; i++) {
        *p = (struct part){.unit = unit, .block = flow->blocks[i].block};
        look_at(p);
        if (p->registers > MOST_REGISTERS) return false;
        found |= is_round(flow, i) && !p->waits && p->loads >= FEWEST_LOADS && p->base_count >= FEWEST_BASES;
    }
    return found;
}

smelt_status pass_ptx_registers(struct unit *unit) {
    const struct code_shape *shape = &unit->request->shape;
    uint32_t threads = shape->size[0] * shape->size[1] * shape->size[2];
    struct arena arena = {0};
    struct flow flow;
    bool wanted = false;
    if (!threads || threads > MOST_THREADS || unit->result->image.coarse[0] ||
        ptx_is_annotated(unit, "minctasm"))
        return SMELT_OK;
    smelt_status status;
    struct part *part = flow_begin(unit, &arena, &flow, sizeof *part, &status);
    bool products = part && threads <= RESIDENT_MULTIPLIERS / 4 && has_long_products(&flow);
    if (part && !products) wanted = is_wanted(unit, &flow, part);
    arena_free(&arena);
    if (products) {
        ptx_annotate(unit, "minctasm", RESIDENT_MULTIPLIERS / threads);
        return ptx_note(unit, "a thread may use 128 registers, so that several threadgroups fit");
    }
    if (status != SMELT_OK || !wanted) return status;
    ptx_annotate(unit, "minctasm", RESIDENT / threads);
    return ptx_note(unit, "the loads of a round may begin together: a thread may use 72 registers");
}
