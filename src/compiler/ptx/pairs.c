/* Pairs of lanes that each store halfs of the same words of threadgroup memory exchange them and store words.
 *
 * Kernels that stage tiles often store a row's elements down a column of the tile: in each store of 2 bytes,
 * two lanes share a word, and many share a bank. Of two such stores, the lower lane of each pair takes the
 * first, with its partner's half, and the higher lane the second: one exchange, and one store with fewer
 * lanes per bank.
 *
 * Requires: the retargeted module, threads in the order of lanes, simdgroup operations not yet lowered. What
 * is stored, and between which accesses of the same thread and which barriers, stays the same. */
#include "compiler/ptx/lane_bits.h"
#include "compiler/ptx/lanes.h"
#include "compiler/ptx/matrix.h"

#include <stdlib.h>
#include <string.h>

#define MOST_STORES 64 /* that may wait for a partner */
#define HALF_BYTES 2
#define WORD_ZEROS 2

struct half_store {
    LLVMValueRef store;
    struct lane_address address;
    unsigned k; /* the bit of the lane's number in which partners differ */
};

struct pairing {
    struct unit *unit;
    struct divergence divergence;
    struct half_store
        stores[MOST_STORES]; /* of one block, with nothing between them that they may not pass */
    int count;
    LLVMValueRef lane; /* in the entry block */
    /* The address of the last word with one of its own, its first store, the distance of the two, its block.
     */
    LLVMValueRef base;
    struct half_store based;
    int64_t between;
    LLVMBasicBlockRef block;
};

/* ---- Which stores. */

static bool is_shared(LLVMValueRef pointer) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == PTX_SHARED;
}

/* Lanes that differ in bit k of their numbers alone store the two halfs of a word. */
static bool find_partner(struct half_store *s) {
    const struct lane_bit *bits = s->address.offset.bits;
    if (s->address.zeros < WORD_ZEROS || bits[0].kind != BIT_ZERO || bits[1].kind != BIT_OF_LANE)
        return false;
    for (unsigned i = 2; i < 64; i++)
        if (bits[i].lanes & bits[1].lanes) return false;
    s->k = (unsigned)__builtin_ctz(bits[1].lanes);
    return true;
}

static bool find_store(struct pairing *p, LLVMValueRef instruction, int place, struct half_store *s) {
    if (!LLVMIsAStoreInst(instruction) || LLVMGetVolatile(instruction) ||
        LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic)
        return false;
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(instruction, 0));
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind != LLVMHalfTypeKind && kind != LLVMIntegerTypeKind) return false;
    if (LLVMSizeOfTypeInBits(p->unit->layout, type) != 8 * HALF_BYTES) return false;
    LLVMValueRef pointer = LLVMGetOperand(instruction, 1);
    s->store = instruction;
    return is_shared(pointer) && ptx_lane_address(&p->divergence, pointer, place, &s->address) &&
           find_partner(s);
}

/* Stores that wait may not pass it. */
static bool ends_waiting(LLVMValueRef i) {
    if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i)) {
        LLVMValueRef pointer = LLVMGetOperand(i, LLVMIsALoadInst(i) ? 0 : 1);
        return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) != PTX_GLOBAL ||
               LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic;
    }
    if (LLVMIsACallInst(i))
        return intrinsic_traits(intrinsic_of(i))->kind != OF_THREAD && !matrix_is_assembly(i) &&
               strncmp(called_name(i), "llvm.fma", 8) != 0;
    return LLVMIsATerminatorInst(i) || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) ||
           LLVMIsAFenceInst(i);
}

/* ---- One word. */

static void find_lane(struct pairing *p) {
    struct unit *unit = p->unit;
    if (p->lane) return;
    LLVMPositionBuilderBefore(unit->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(unit->entry)));
    p->lane = matrix_call(unit, intrinsic_traits(INTRINSIC_LANE)->name, type_i32(unit), NULL, 0, false);
}

static LLVMValueRef lane_bit(struct pairing *p, unsigned k) {
    struct unit *unit = p->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef set = LLVMBuildAnd(b, p->lane, constant_i32(unit, 1u << k), "");
    return LLVMBuildICmp(b, LLVMIntNE, set, constant_i32(unit, 0), "");
}

static LLVMValueRef as_bits(struct unit *unit, LLVMValueRef value) {
    return LLVMBuildBitCast(unit->builder, value, LLVMInt16TypeInContext(unit->context), "");
}

static LLVMValueRef call_known(struct unit *unit, const char *name, LLVMValueRef *arguments, unsigned count) {
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(unit->module, LLVMLookupIntrinsicID(name, strlen(name)), NULL, 0);
    return LLVMBuildCall2(unit->builder, LLVMGlobalGetValueType(function), function, arguments, count, "");
}

static LLVMValueRef at_bytes(struct unit *unit, LLVMValueRef pointer, int64_t bytes) {
    LLVMValueRef offset = LLVMConstInt(type_i32(unit), (uint64_t)bytes, true);
    if (!bytes) return pointer;
    return LLVMBuildGEP2(unit->builder, LLVMInt8TypeInContext(unit->context), pointer, &offset, 1, "");
}

/* The lower lane's is that of the first store, the higher lane's the other half's of the second. Words at
 * constant distances from the one before share its register. */
static LLVMValueRef word_address(struct pairing *p, const struct half_store *first,
                                 const struct half_store *second, LLVMValueRef high) {
    struct unit *unit = p->unit;
    LLVMBuilderRef b = unit->builder;
    int64_t between, further;
    if (!ptx_lane_distance(&first->address, &second->address, &between))
        return LLVMBuildSelect(b, high, at_bytes(unit, LLVMGetOperand(second->store, 1), -HALF_BYTES),
                               LLVMGetOperand(first->store, 1), "");
    if (p->base && p->between == between && p->block == LLVMGetInstructionParent(second->store) &&
        p->based.k == first->k && ptx_lane_distance(&p->based.address, &first->address, &further))
        return at_bytes(unit, p->base, further);
    LLVMValueRef more =
        LLVMBuildSelect(b, high, LLVMConstInt(type_i32(unit), (uint64_t)(between - HALF_BYTES), true),
                        constant_i32(unit, 0), "");
    p->base =
        LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context), LLVMGetOperand(first->store, 1), &more, 1, "");
    p->between = between;
    p->based = *first;
    p->block = LLVMGetInstructionParent(second->store);
    return p->base;
}

/* The second store stands behind the first. */
static void join(struct pairing *p, const struct half_store *first, const struct half_store *second) {
    struct unit *unit = p->unit;
    LLVMBuilderRef b = unit->builder;
    find_lane(p);
    LLVMPositionBuilderBefore(b, second->store);
    LLVMValueRef high = lane_bit(p, first->k);
    LLVMValueRef own = LLVMGetPoison(LLVMVectorType(LLVMInt16TypeInContext(unit->context), 2));
    const LLVMValueRef both[2] = {first->store, second->store};
    for (unsigned i = 0; i < 2; i++)
        own = LLVMBuildInsertElement(b, own, as_bits(unit, LLVMGetOperand(both[i], 0)), constant_i32(unit, i),
                                     "");
    own = LLVMBuildBitCast(b, own, type_i32(unit), "");
    LLVMValueRef exchange[4] = {constant_i32(unit, UINT32_MAX), own, constant_i32(unit, 1u << first->k),
                                constant_i32(unit, 31)};
    LLVMValueRef taken = call_known(unit, "llvm.nvvm.shfl.sync.bfly.i32", exchange, 4);
    /* The lower lane: both first halfs, its own below; the higher one: both second halfs, its own above. */
    LLVMValueRef halves[3] = {
        own, taken, LLVMBuildSelect(b, high, constant_i32(unit, 0x3276), constant_i32(unit, 0x5410), "")};
    LLVMValueRef word = call_known(unit, "llvm.nvvm.prmt", halves, 3);
    LLVMSetAlignment(LLVMBuildStore(b, word, word_address(p, first, second, high)), 4);
    LLVMInstructionEraseFromParent(first->store);
    LLVMInstructionEraseFromParent(second->store);
}

/* Whether an exchange, its instructions, and a store of words take fewer passes of the memory than two
 * stores. */
static bool gains(const struct half_store *first, const struct half_store *second) {
    const struct lane_address *a = &first->address, *b = &second->address;
    unsigned of_first = ptx_lane_bank_words(a, a, 0), of_second = ptx_lane_bank_words(b, b, 0),
             of_words = ptx_lane_bank_words(a, b, first->k);
    return of_first && of_second && of_words && of_words + 2 < of_first + of_second;
}

static void join_waiting(struct pairing *p) {
    bool joined[MOST_STORES] = {false};
    for (int i = 0; i < p->count; i++) {
        for (int j = i + 1; j < p->count && !joined[i]; j++) {
            const struct half_store *first = &p->stores[i], *second = &p->stores[j];
            if (joined[j] || first->k != second->k || first->address.root != second->address.root ||
                !gains(first, second))
                continue;
            join(p, first, second);
            joined[i] = joined[j] = true;
        }
    }
    p->count = 0;
}

/* Stores of one thread to the same place keep their order. */
static bool may_wait(const struct pairing *p, const struct half_store *s) {
    if (p->count == MOST_STORES) return false;
    for (int i = 0; i < p->count; i++)
        if (!ptx_lane_addresses_differ(&p->stores[i].address, &s->address)) return false;
    return true;
}

static void look_at(struct pairing *p, LLVMValueRef instruction, int place) {
    struct half_store s;
    if (!find_store(p, instruction, place, &s)) {
        if (ends_waiting(instruction)) join_waiting(p);
        return;
    }
    if (!may_wait(p, &s)) join_waiting(p);
    p->stores[p->count++] = s;
}

smelt_status pass_ptx_pairs(struct unit *unit) {
    if (ptx_lanes_ordered(unit) || !divergence_whole_warps(&unit->request->shape)) return SMELT_OK;
    struct pairing *p = calloc(1, sizeof *p);
    if (!p) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for stores");
    p->unit = unit;
    smelt_status status = divergence_find(unit, &p->divergence);
    FOR_EACH_BLOCK(block, unit->entry) {
        if (status != SMELT_OK || !divergence_all_run(&p->divergence, block)) continue;
        FOR_EACH_INSTRUCTION(instruction, block) {
            look_at(p, instruction, divergence_place(&p->divergence, block));
        }
    }
    divergence_free(&p->divergence);
    free(p);
    return status;
}
