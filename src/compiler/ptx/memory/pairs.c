/* Pairs of lanes that each store one half of the same words of threadgroup memory exchange the halves, and
 * each stores whole words.
 *
 * Kernels that stage tiles often store a row's elements down a column of the tile: in each store of 2 bytes,
 * two lanes share a word, and many share a bank. Two such stores become one exchange and one store: the lower
 * lane of each pair stores the word of the first, and the higher lane the word of the second. Fewer lanes
 * then share a bank.
 *
 * Requires: the retargeted module, simdgroup operations not yet lowered.
 * Maintains: what each store writes, and its order among barriers and the thread's other accesses of
 * threadgroup memory. */
#include "compiler/ptx/memory/lane_bits.h"
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/matrix/matrix.h"

#include <stdlib.h>
#include <string.h>

#define MOST_STORES 64 /* that wait to be joined */
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
    /* Stores of one block that wait, with nothing between them that they may not pass. */
    struct half_store stores[MOST_STORES];
    int count, joined; /* `joined`: pairs of stores so far */
    LLVMValueRef lane; /* in the entry block */
    /* The last address that is a choice between lanes; later words of its block are computed from it. With
     * the first of its two stores, and their distance. */
    LLVMValueRef base;
    struct half_store based;
    int64_t between;
};

/* Whether a function of this name only computes a value from values of lanes. */
static bool is_value_of_lanes(const char *name) {
    static const char *const starts[] = {"llvm.fma", "llvm.nvvm.shfl.", "llvm.nvvm.prmt"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

bool ptx_ends_stores(LLVMValueRef i) {
    if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i)) {
        LLVMValueRef pointer = LLVMGetOperand(i, LLVMIsALoadInst(i) ? 0 : 1);
        return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) != PTX_GLOBAL ||
               LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic;
    }
    if (LLVMIsACallInst(i))
        return intrinsic_traits(intrinsic_of(i))->kind != OF_THREAD && !matrix_is_assembly(i) &&
               !is_value_of_lanes(called_name(i));
    return LLVMIsATerminatorInst(i) || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) ||
           LLVMIsAFenceInst(i);
}

/* ---- Which stores. */

static bool is_shared(LLVMValueRef pointer) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == PTX_SHARED;
}

/* Whether lanes whose numbers differ in bit k alone store the two halves of a word; sets k. */
static bool find_partner(struct half_store *s) {
    const struct lane_bit *bits = s->address.offset.bits;
    if (s->address.zeros < WORD_ZEROS || bits[0].kind != BIT_ZERO || bits[1].kind != BIT_OF_LANE)
        return false;
    for (unsigned i = 2; i < 64; i++)
        if (bits[i].lanes & bits[1].lanes) return false;
    s->k = (unsigned)__builtin_ctz(bits[1].lanes);
    return true;
}

/* A store of 2 bytes to threadgroup memory. */
static bool is_half_store(struct unit *unit, LLVMValueRef instruction) {
    if (!LLVMIsAStoreInst(instruction) || LLVMGetVolatile(instruction) ||
        LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic)
        return false;
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(instruction, 0));
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind != LLVMHalfTypeKind && kind != LLVMIntegerTypeKind) return false;
    return LLVMSizeOfTypeInBits(unit->layout, type) == 8 * HALF_BYTES &&
           is_shared(LLVMGetOperand(instruction, 1));
}

static bool find_store(struct pairing *p, LLVMValueRef instruction, int place, struct half_store *s) {
    s->store = instruction;
    return is_half_store(p->unit, instruction) &&
           ptx_lane_address(&p->divergence, LLVMGetOperand(instruction, 1), place, &s->address) &&
           find_partner(s);
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

/* The lower lane stores to the address of its first half; the higher lane to that of its partner's second
 * half, which is 2 bytes below its own. A word at a constant distance from p->base shares its register. */
static LLVMValueRef word_address(struct pairing *p, const struct half_store *first,
                                 const struct half_store *second, LLVMValueRef high) {
    struct unit *unit = p->unit;
    LLVMBuilderRef b = unit->builder;
    int64_t between, further;
    if (!ptx_lane_distance(&first->address, &second->address, &between))
        return LLVMBuildSelect(b, high, at_bytes(unit, LLVMGetOperand(second->store, 1), -HALF_BYTES),
                               LLVMGetOperand(first->store, 1), "");
    /* p->base stands before `second`: for stores at constant distances, gains() depends on the banks alone.
     * So each first store was joined with the next store to another bank, and these have the same order. */
    bool in_block = p->base && LLVMGetInstructionParent(p->base) == LLVMGetInstructionParent(second->store);
    if (in_block && p->between == between && p->based.k == first->k &&
        ptx_lane_distance(&p->based.address, &first->address, &further))
        return at_bytes(unit, p->base, further);
    LLVMValueRef more =
        LLVMBuildSelect(b, high, LLVMConstInt(type_i32(unit), (uint64_t)(between - HALF_BYTES), true),
                        constant_i32(unit, 0), "");
    p->base =
        LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context), LLVMGetOperand(first->store, 1), &more, 1, "");
    p->between = between;
    p->based = *first;
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
    LLVMValueRef exchange[4] = {constant_i32(unit, UINT32_MAX), own,
                                constant_i32(unit, ptx_hardware_bits(unit, 1u << first->k)),
                                constant_i32(unit, 31)};
    LLVMValueRef taken = call_known(unit, "llvm.nvvm.shfl.sync.bfly.i32", exchange, 4);
    /* The lower lane: its own first half below its partner's. The higher one: its own second half above. */
    LLVMValueRef halves[3] = {
        own, taken, LLVMBuildSelect(b, high, constant_i32(unit, 0x3276), constant_i32(unit, 0x5410), "")};
    LLVMValueRef word = call_known(unit, "llvm.nvvm.prmt", halves, 3);
    LLVMSetAlignment(LLVMBuildStore(b, word, word_address(p, first, second, high)), 4);
    LLVMInstructionEraseFromParent(first->store);
    LLVMInstructionEraseFromParent(second->store);
}

/* Whether a store of words takes fewer passes of the memory than the two stores, by more than what the
 * exchange and its instructions cost. */
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
            p->joined++;
        }
    }
    p->count = 0;
}

/* Stores of one thread that may go to the same place keep their order. */
static bool may_wait(const struct pairing *p, const struct half_store *s) {
    if (p->count == MOST_STORES) return false;
    for (int i = 0; i < p->count; i++)
        if (!ptx_lane_addresses_differ(&p->stores[i].address, &s->address)) return false;
    return true;
}

static void look_at(struct pairing *p, LLVMValueRef instruction, int place) {
    struct half_store s;
    if (!find_store(p, instruction, place, &s)) {
        if (ptx_ends_stores(instruction)) join_waiting(p);
        return;
    }
    if (!may_wait(p, &s)) join_waiting(p);
    p->stores[p->count++] = s;
}

static bool has_half_stores(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (is_half_store(unit, instruction)) return true;
    }
    return false;
}

smelt_status pass_ptx_pairs(struct unit *unit) {
    if (!divergence_whole_warps(&unit->request->shape)) return SMELT_OK;
    if (!has_half_stores(unit)) return SMELT_OK;
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
    if (status == SMELT_OK && p->joined)
        status = ptx_note(unit, "pairs of lanes exchange halves and store words: %d times", p->joined);
    free(p);
    return status;
}
