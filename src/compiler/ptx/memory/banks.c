/* Changes the order of some lanes' stores to threadgroup memory, so that fewer lanes share a bank.
 *
 * A thread often stores several elements at constant distances, as down the columns of a tile. If lanes whose
 * numbers differ in one bit then use the same bank, those with the bit set exchange two of their stores: they
 * first do the second one, while the others do the first. Each lane still stores the same values to the same
 * places. An estimate of the passes of the memory decides which stores are exchanged, and by which bit: an
 * exchange costs a selection per word.
 *
 * Stores of a thread to neighbouring places, which LLVM would join, and stores of vectors are split into
 * words if these take fewer passes one by one, in such an order.
 *
 * Requires: the retargeted module, simdgroup operations not yet lowered.
 * Maintains: what each lane stores, and the order of its stores among barriers and its other accesses of
 * threadgroup memory. */
#include "compiler/ptx/memory/lane_bits.h"
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/matrix/matrix.h"

#include <stdlib.h>
#include <string.h>

#define MOST_STORES 32 /* that wait */
#define MOST_TURNS 3   /* bits of the lane's number that choose the order */
#define MOST_ORDERS (1 << MOST_TURNS)
#define MOST_WORDS 4 /* of an access */
#define PASS_COST 2  /* of a pass of the memory, in selections of a word */

struct waiting {
    LLVMValueRef store;
    struct lane_address address;
    unsigned bytes;
    struct lane_words words;
};

/* Stores of one type whose places have constant distances. */
struct group {
    const struct waiting *stores[MOST_STORES];
    int64_t distance[MOST_STORES]; /* from the first one's place */
    struct lane_words words[MOST_STORES];
    int count;
    /* Exchange `t`: in lanes with bit `bits[t]` set, each store changes places with its partner. */
    unsigned bits[MOST_TURNS];
    int partner[MOST_TURNS][MOST_STORES];
    int turns;
};

struct banks {
    struct unit *unit;
    struct divergence divergence;
    struct waiting stores[MOST_STORES];
    int count, reordered;
    LLVMValueRef lane; /* in the entry block */
};

/* ---- Which order. */

/* Pairs stores that are `distance` apart; false: some have no partner. */
static bool pair_by(const struct group *g, int64_t distance, int partner[MOST_STORES]) {
    for (int i = 0; i < g->count; i++) partner[i] = -1;
    for (int done = 0; done < g->count; done += 2) {
        int low = -1, high = -1;
        for (int i = 0; i < g->count; i++)
            if (partner[i] < 0 && (low < 0 || g->distance[i] < g->distance[low])) low = i;
        for (int i = 0; i < g->count && low >= 0; i++)
            if (partner[i] < 0 && g->distance[i] == g->distance[low] + distance) high = i;
        if (high < 0) return false;
        partner[low] = high;
        partner[high] = low;
    }
    return true;
}

static void exchange(struct group *g, const int partner[MOST_STORES], unsigned bit) {
    for (int i = 0; i < g->count; i++) {
        struct lane_words *a = &g->words[i], *b = &g->words[partner[i]];
        for (unsigned lane = 0; lane < 32 && i < partner[i]; lane++) {
            uint64_t word = a->of[lane];
            if (!(lane >> bit & 1)) continue;
            a->of[lane] = b->of[lane];
            b->of[lane] = word;
        }
    }
}

static unsigned count_passes(const struct group *g) {
    unsigned passes = 0;
    for (int i = 0; i < g->count; i++) passes += ptx_lane_passes(&g->words[i], (g->stores[0]->bytes + 3) / 4);
    return passes;
}

static bool is_used(const struct group *g, unsigned bit) {
    for (int t = 0; t < g->turns; t++)
        if (g->bits[t] == bit) return true;
    return false;
}

/* Adds the exchange that saves most; false: none saves more than it costs. */
static bool add_turn(struct group *g) {
    unsigned now = count_passes(g), best = now;
    unsigned cost = (unsigned)g->count * ((g->stores[0]->bytes + 3) / 4);
    int partner[MOST_STORES], *chosen = g->partner[g->turns];
    /* Each store takes at least one pass per word. */
    if ((now - cost) * PASS_COST <= cost) return false;
    for (int i = 0; i < g->count; i++) {
        int64_t distance = g->distance[i] < 0 ? -g->distance[i] : g->distance[i];
        if (!distance || !pair_by(g, distance, partner)) continue;
        for (unsigned bit = 0; bit < LANE_BITS; bit++) {
            if (is_used(g, bit)) continue;
            exchange(g, partner, bit);
            unsigned passes = count_passes(g);
            exchange(g, partner, bit);
            if (passes >= best || (now - passes) * PASS_COST <= cost) continue;
            best = passes;
            g->bits[g->turns] = bit;
            memcpy(chosen, partner, sizeof partner);
        }
    }
    if (best == now) return false;
    exchange(g, chosen, g->bits[g->turns]);
    g->turns++;
    return true;
}

/* ---- The code. */

static LLVMValueRef lane_bit(struct banks *s, unsigned bit) {
    struct unit *unit = s->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef set = LLVMBuildAnd(b, s->lane, constant_i32(unit, 1u << bit), "");
    return LLVMBuildICmp(b, LLVMIntNE, set, constant_i32(unit, 0), "");
}

/* The shift for this lane's order, a number of which set[t] is bit t. */
static LLVMValueRef choose_shift(struct banks *s, const int64_t shifts[MOST_ORDERS],
                                 const LLVMValueRef set[MOST_TURNS], int turns) {
    struct unit *unit = s->unit;
    LLVMValueRef values[MOST_ORDERS];
    for (int order = 0; order < 1 << turns; order++)
        values[order] = LLVMConstInt(type_i32(unit), (uint64_t)shifts[order], true);
    for (int t = 0; t < turns; t++)
        for (int order = 0; order < 1 << (turns - t - 1); order++)
            values[order] =
                LLVMBuildSelect(unit->builder, set[t], values[2 * order + 1], values[2 * order], "");
    return values[0];
}

/* parts[order][i]: the store whose value and place store `i` has in lanes of that order. */
static void find_parts(const struct group *g, int parts[MOST_ORDERS][MOST_STORES]) {
    for (int order = 0; order < 1 << g->turns; order++) {
        for (int i = 0; i < g->count; i++) parts[order][i] = i;
        for (int t = 0; t < g->turns; t++) {
            for (int i = 0; i < g->count; i++) {
                int k = g->partner[t][i], part = parts[order][i];
                if (!(order >> t & 1) || k < i) continue;
                parts[order][i] = parts[order][k];
                parts[order][k] = part;
            }
        }
    }
}

/* The address of store `i`. Stores with the same shifts share a register, which has the first store's
 * address, shifted. */
static LLVMValueRef find_address(struct banks *s, const struct group *g, int i,
                                 int parts[MOST_ORDERS][MOST_STORES], const LLVMValueRef set[MOST_TURNS],
                                 LLVMValueRef shifted[MOST_STORES]) {
    struct unit *unit = s->unit;
    LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
    int64_t shifts[MOST_ORDERS], distance = g->distance[i];
    for (int order = 0; order < 1 << g->turns; order++)
        shifts[order] = g->distance[parts[order][i]] - distance;
    for (int k = 0; k < i && !shifted[i]; k++) {
        bool same = true;
        for (int order = 0; order < 1 << g->turns; order++)
            same = same && g->distance[parts[order][k]] - g->distance[k] == shifts[order];
        if (same) shifted[i] = shifted[k];
    }
    LLVMValueRef first = g->stores[0]->store, offset = LLVMConstInt(type_i32(unit), (uint64_t)distance, true);
    if (!shifted[i]) {
        LLVMPositionBuilderBefore(unit->builder,
                                  LLVMGetBasicBlockTerminator(LLVMGetEntryBasicBlock(unit->entry)));
        if (LLVMGetInstructionParent(first) == LLVMGetEntryBasicBlock(unit->entry))
            LLVMPositionBuilderBefore(unit->builder, first);
        LLVMValueRef shift = choose_shift(s, shifts, set, g->turns);
        LLVMPositionBuilderBefore(unit->builder, first);
        shifted[i] = LLVMBuildGEP2(unit->builder, byte, LLVMGetOperand(first, 1), &shift, 1, "");
    }
    return LLVMBuildGEP2(unit->builder, byte, shifted[i], &offset, 1, "");
}

/* Stores that exchange with each other, directly or not, are done where the last of them was. An exchange can
 * link all stores in a row, so that `last` needs as many rounds to spread. */
static void find_last(const struct group *g, int last[MOST_STORES]) {
    for (int i = 0; i < g->count; i++) last[i] = i;
    for (int round = 0; round < g->count; round++)
        for (int t = 0; t < g->turns; t++)
            for (int i = 0; i < g->count; i++)
                if (last[g->partner[t][i]] > last[i]) last[i] = last[g->partner[t][i]];
}

static void write_group(struct banks *s, const struct group *g) {
    struct unit *unit = s->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef set[MOST_TURNS], values[MOST_STORES], addresses[MOST_STORES], shifted[MOST_STORES] = {NULL};
    int parts[MOST_ORDERS][MOST_STORES], last[MOST_STORES];
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(unit->entry)));
    if (s->lane)
        LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(s->lane));
    else
        s->lane = matrix_call(unit, intrinsic_traits(INTRINSIC_LANE)->name, type_i32(unit), NULL, 0, false);
    for (int t = 0; t < g->turns; t++) set[t] = lane_bit(s, g->bits[t]);
    find_parts(g, parts);
    find_last(g, last);
    for (int i = 0; i < g->count; i++) {
        values[i] = LLVMGetOperand(g->stores[i]->store, 0);
        addresses[i] = find_address(s, g, i, parts, set, shifted);
    }
    for (int i = 0; i < g->count; i++) {
        if (last[i] != i) continue;
        LLVMPositionBuilderBefore(b, g->stores[i]->store);
        for (int t = 0; t < g->turns; t++) {
            for (int k = 0; k < g->count; k++) {
                int other = g->partner[t][k];
                LLVMValueRef low = values[k], high = values[other];
                if (last[k] != i || other < k) continue;
                values[k] = LLVMBuildSelect(b, set[t], high, low, "");
                values[other] = LLVMBuildSelect(b, set[t], low, high, "");
            }
        }
        for (int k = 0; k < g->count; k++)
            if (last[k] == i)
                LLVMSetAlignment(LLVMBuildStore(b, values[k], addresses[k]),
                                 LLVMGetAlignment(g->stores[k]->store));
    }
    for (int i = 0; i < g->count; i++) LLVMInstructionEraseFromParent(g->stores[i]->store);
    s->reordered += g->count;
}

/* ---- Which stores. */

/* Stores to neighbouring places are left for LLVM to join. */
static bool has_neighbour(const struct banks *s, const struct waiting *w) {
    for (int i = 0; i < s->count; i++) {
        int64_t distance;
        if (ptx_lane_distance(&s->stores[i].address, &w->address, &distance) &&
            (distance == (int64_t)s->stores[i].bytes || distance == -(int64_t)w->bytes))
            return true;
    }
    return false;
}

/* ---- Runs: stores to neighbouring places, together 8 bytes or more, as words. */

struct run {
    struct waiting *stores[MOST_STORES]; /* from the lowest place on; of one type */
    int count, words;
    struct waiting of_words[MOST_STORES];
};

/* The bits of an address below 2^`zeros` are 0. */
static bool is_multiple(const struct lane_address *address, unsigned zeros) {
    for (unsigned i = 0; i < zeros; i++)
        if (address->offset.bits[i].kind != BIT_ZERO) return false;
    return address->zeros >= zeros;
}

static LLVMTypeRef stored_type(const struct waiting *w) {
    return LLVMTypeOf(LLVMGetOperand(w->store, 0));
}

/* Numbers of 2 or 4 bytes, or vectors whose elements are parts of words. */
static bool can_split(LLVMTypeRef type, unsigned bytes) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMVectorTypeKind) {
        kind = LLVMGetTypeKind(LLVMGetElementType(type));
        if (bytes < 8) return false;
    } else if (bytes != 2 && bytes != 4) {
        return false;
    }
    return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind || kind == LLVMFloatTypeKind ||
           kind == LLVMIntegerTypeKind;
}

/* Finds the run of waiting stores that begins at store `first`; false: there is none that can be split. */
static bool find_run(struct banks *s, int first, struct run *run) {
    struct waiting *w = &s->stores[first];
    int64_t distance, bytes = w->bytes;
    if (!can_split(stored_type(w), w->bytes) || !is_multiple(&w->address, 3)) return false;
    for (int i = 0; i < s->count; i++)
        if (ptx_lane_distance(&w->address, &s->stores[i].address, &distance) && distance < 0 &&
            -distance <= (int64_t)s->stores[i].bytes)
            return false;
    run->stores[0] = w;
    run->count = 1;
    for (int i = 0; i < s->count; i++) {
        if (!ptx_lane_distance(&w->address, &s->stores[i].address, &distance) || distance != bytes ||
            stored_type(&s->stores[i]) != stored_type(w) || run->count == MOST_STORES)
            continue;
        run->stores[run->count++] = &s->stores[i];
        bytes += w->bytes;
        i = -1;
    }
    run->words = (int)(bytes / 4);
    return bytes >= 8 && bytes % 8 == 0 && run->words <= MOST_STORES;
}

/* The passes that the stores take as LLVM joins them. */
static unsigned joined_passes(const struct run *run) {
    bool wide = is_multiple(&run->stores[0]->address, 4);
    unsigned passes = 0;
    for (int i = 0; i < run->words;) {
        unsigned each = wide && i + 4 <= run->words ? 4 : 2;
        passes += ptx_lane_passes(&run->of_words[i].words, each);
        i += (int)each;
    }
    return passes;
}

/* Replaces the run's stores with one store per word, where the last of them is. */
static void write_words(struct banks *s, struct run *run) {
    struct unit *unit = s->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef i32 = type_i32(unit), byte = LLVMInt8TypeInContext(unit->context),
                type = stored_type(run->stores[0]);
    unsigned bytes = run->stores[0]->bytes;
    struct waiting *last = run->stores[0];
    for (int i = 1; i < run->count; i++)
        if (run->stores[i] > last) last = run->stores[i]; /* they wait in the order of the code */
    LLVMPositionBuilderBefore(b, last->store);
    LLVMValueRef base = LLVMGetOperand(run->stores[0]->store, 1);
    for (int i = 0; i < run->words; i++) {
        unsigned at = (unsigned)i * 4 / bytes, within = (unsigned)i * 4 % bytes / 4;
        LLVMValueRef value = LLVMGetOperand(run->stores[at]->store, 0), word;
        if (bytes == 2) {
            LLVMValueRef pair = LLVMGetPoison(LLVMVectorType(type, 2));
            pair = LLVMBuildInsertElement(b, pair, value, constant_i32(unit, 0), "");
            value = LLVMGetOperand(run->stores[at + 1]->store, 0);
            pair = LLVMBuildInsertElement(b, pair, value, constant_i32(unit, 1), "");
            word = LLVMBuildBitCast(b, pair, i32, "");
        } else if (bytes == 4) {
            word = LLVMBuildBitCast(b, value, i32, "");
        } else {
            value = LLVMBuildBitCast(b, value, LLVMVectorType(i32, bytes / 4), "");
            word = LLVMBuildExtractElement(b, value, constant_i32(unit, within), "");
        }
        LLVMValueRef offset = LLVMConstInt(i32, (uint64_t)i * 4, false);
        LLVMValueRef place = LLVMBuildGEP2(b, byte, base, &offset, 1, "");
        run->of_words[i].store = LLVMBuildStore(b, word, place);
        LLVMSetAlignment(run->of_words[i].store, 4);
    }
    for (int i = 0; i < run->count; i++) {
        LLVMInstructionEraseFromParent(run->stores[i]->store);
        run->stores[i]->store = NULL;
    }
}

/* Splits the run that begins at store `first` if its words take fewer passes, and if these save more than the
 * selections and the additional stores cost. */
static void split_run(struct banks *s, int first) {
    struct run run = {.count = 0};
    struct group g = {.count = 0};
    if (!find_run(s, first, &run)) return;
    for (int i = 0; i < run.words; i++) {
        struct waiting *w = &run.of_words[i];
        *w = (struct waiting){.bytes = 4, .words = run.stores[0]->words};
        for (unsigned lane = 0; lane < 32; lane++) w->words.of[lane] += (unsigned)i;
        g.stores[i] = w;
        g.distance[i] = 4 * i;
        g.words[i] = w->words;
        g.count++;
    }
    unsigned joined = joined_passes(&run);
    while (g.turns < MOST_TURNS && add_turn(&g)) continue;
    unsigned passes = count_passes(&g), cost = (unsigned)(g.count * g.turns + g.count);
    if (!g.turns || passes >= joined || (joined - passes) * PASS_COST <= cost) return;
    write_words(s, &run);
    write_group(s, &g);
}

static void split_runs(struct banks *s) {
    int kept = 0;
    for (int i = 0; i < s->count; i++)
        if (s->stores[i].store) split_run(s, i);
    for (int i = 0; i < s->count; i++)
        if (s->stores[i].store) s->stores[kept++] = s->stores[i];
    s->count = kept;
}

static void order_waiting(struct banks *s) {
    bool seen[MOST_STORES] = {false};
    split_runs(s);
    for (int i = 0; i < s->count; i++) {
        if (seen[i] || has_neighbour(s, &s->stores[i])) continue;
        struct group g = {.count = 0};
        unsigned alignment = LLVMGetAlignment(s->stores[i].store);
        LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(s->stores[i].store, 0));
        for (int k = i; k < s->count; k++) {
            const struct waiting *w = &s->stores[k];
            if (seen[k] || LLVMTypeOf(LLVMGetOperand(w->store, 0)) != type ||
                LLVMGetAlignment(w->store) != alignment || has_neighbour(s, w) ||
                !ptx_lane_distance(&s->stores[i].address, &w->address, &g.distance[g.count]))
                continue;
            seen[k] = true;
            g.words[g.count] = w->words;
            g.stores[g.count++] = w;
        }
        while (g.count > 1 && g.turns < MOST_TURNS && add_turn(&g)) continue;
        if (g.turns) write_group(s, &g);
    }
    s->count = 0;
}

static bool is_store(struct unit *unit, LLVMValueRef instruction, unsigned *bytes) {
    if (!LLVMIsAStoreInst(instruction) || LLVMGetVolatile(instruction) ||
        LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic ||
        LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(instruction, 1))) != PTX_SHARED)
        return false;
    *bytes = (unsigned)LLVMStoreSizeOfType(unit->layout, LLVMTypeOf(LLVMGetOperand(instruction, 0)));
    return (*bytes & (*bytes - 1)) == 0 && *bytes <= 4 * MOST_WORDS &&
           LLVMGetAlignment(instruction) >= *bytes;
}

/* Stores of one thread that may go to the same place keep their order. */
static bool may_wait(const struct banks *s, const struct waiting *w) {
    if (s->count == MOST_STORES) return false;
    for (int i = 0; i < s->count; i++) {
        int64_t distance;
        if (ptx_lane_distance(&s->stores[i].address, &w->address, &distance)) {
            if (distance >= (int64_t)s->stores[i].bytes || -distance >= (int64_t)w->bytes) continue;
            return false;
        }
        if (s->stores[i].bytes != w->bytes || !ptx_lane_addresses_differ(&s->stores[i].address, &w->address))
            return false;
    }
    return true;
}

static void look_at(struct banks *s, LLVMValueRef instruction, int place) {
    struct waiting w = {.store = instruction};
    if (!is_store(s->unit, instruction, &w.bytes) ||
        !ptx_lane_address(&s->divergence, LLVMGetOperand(instruction, 1), place, &w.address) ||
        !ptx_lane_words(&w.address, &w.words)) {
        if (ptx_ends_stores(instruction)) order_waiting(s);
        return;
    }
    if (!may_wait(s, &w)) order_waiting(s);
    s->stores[s->count++] = w;
}

static bool has_stores(struct unit *unit) {
    unsigned bytes;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (is_store(unit, instruction, &bytes)) return true;
    }
    return false;
}

smelt_status pass_ptx_banks(struct unit *unit) {
    if (!divergence_whole_warps(&unit->request->shape)) return SMELT_OK;
    if (!has_stores(unit)) return SMELT_OK;
    struct banks *s = calloc(1, sizeof *s);
    if (!s) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for stores");
    s->unit = unit;
    smelt_status status = divergence_find(unit, &s->divergence);
    FOR_EACH_BLOCK(block, unit->entry) {
        if (status != SMELT_OK || !divergence_all_run(&s->divergence, block)) continue;
        FOR_EACH_INSTRUCTION(instruction, block) {
            look_at(s, instruction, divergence_place(&s->divergence, block));
        }
    }
    divergence_free(&s->divergence);
    if (status == SMELT_OK && s->reordered)
        status = ptx_note(unit, "lanes that share banks take %d stores in another order", s->reordered);
    free(s);
    return status;
}
