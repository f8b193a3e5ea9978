/* Loads operands of products from device memory, 16 bytes per lane.
 *
 * Where four steps of half or bfloat products continue the same sums, their 32 terms may be added in any
 * order, as long as both operands use the same one. Each lane loads a whole row of 8 numbers from one of the
 * four left matrices. Pair `j` of that row becomes the lane's part of the left matrix of product `j`: pair
 * `p` of that matrix is pair `j` of step `p`. Transposed right matrices are loaded in the same way.
 *
 * Other right matrices are loaded in sets of four that are multiplied by the same left one. A lane loads a
 * row of 8 numbers from one of the four, and the warp transposes the matrices that the pairs `j` form. Each
 * of these has columns of all four matrices. Therefore the sums lie in other lanes while the loop runs, and
 * are exchanged before and after it. */
#include "compiler/ptx/matrix/matrix_placed.h"

#include <string.h>

#define STEPS 4
#define ROW_BYTES 16
#define MOST_CHAINS 64
#define MOST_BUNDLES 32
#define MOST_USES 512

/* One operand of four steps. */
struct bundle {
    struct fragment *steps[STEPS];
    struct placed *placed[STEPS];
    bool right;
    int four; /* the set of four that a right operand across its rows belongs to; -1: none */
};

/* Two instructions of twice the depth that continue the same sums. */
struct chain {
    struct tensor_product *products[2];
    struct bundle *above, *below, *right; /* `below` may be NULL */
};

struct wide {
    struct matrices *m;
    LLVMBasicBlockRef block;
    LLVMValueRef last; /* the last load of an operand */
    struct chain chains[MOST_CHAINS];
    struct bundle bundles[MOST_BUNDLES];
    int chain_count, bundle_count, fours;
    LLVMValueRef bits[5], quarter; /* of the lane's number: each bit (i1); the lowest two (i64) */
};

/* ---- Chains. */

#define FIRST_SUM 6 /* operand of an instruction of twice the depth */

/* Whether the sums of `p` are the results of `before`, in the same places, which nothing else uses: with wide
 * loads, results of `before` have other terms than those of its own two steps. */
static bool continues(const struct tensor_product *p, const struct tensor_product *before) {
    for (unsigned i = 0; i < (p->below ? 4 : 2); i++) {
        LLVMValueRef sum = LLVMGetOperand(p->call, FIRST_SUM + i);
        if (!LLVMIsAExtractValueInst(sum) || LLVMGetOperand(sum, 0) != before->call) return false;
        if (LLVMGetIndices(sum)[0] != i || LLVMGetNextUse(LLVMGetFirstUse(sum))) return false;
    }
    return !p->below == !before->below;
}

static bool is_deep(const struct wide *w, const struct tensor_product *p) {
    return p->block == w->block && p->before && !p->replaced && p->kinds.left == p->kinds.right &&
           (p->kinds.left == KIND_HALF || p->kinds.left == KIND_BFLOAT);
}

static struct bundle *bundle_of(struct wide *w, struct fragment *const *steps, bool right) {
    for (int i = 0; i < w->bundle_count; i++) {
        struct bundle *b = &w->bundles[i];
        if (b->right == right && memcmp(b->steps, steps, sizeof b->steps) == 0) return b;
    }
    if (w->bundle_count == MOST_BUNDLES) return NULL;
    struct bundle *b = &w->bundles[w->bundle_count];
    *b = (struct bundle){.right = right, .four = -1};
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i <= w->bundle_count; i++)
            for (int t = 0; t < STEPS; t++)
                if (w->bundles[i].steps[t] == steps[s]) return NULL;
        b->steps[s] = steps[s];
        b->placed[s] = steps[s] ? matrix_placed_of(w->m, steps[s]) : NULL;
        const struct placed *p = b->placed[s];
        if (!p || !p->device || p->alignment < ROW_BYTES || (p->across && !right)) return NULL;
        if (p->across != b->placed[0]->across) return NULL;
        if (LLVMGetInstructionParent(p->behind) != w->block) return NULL;
    }
    w->bundle_count++;
    return b;
}

/* Finds the chains of the block; false: some product is not in a chain of four steps. */
static bool find_chains(struct wide *w) {
    int deep = 0;
    for (struct tensor_product *p = w->m->products; p; p = p->next) {
        if (p->block == w->block && !p->replaced) deep++;
        if (!is_deep(w, p)) continue;
        for (struct tensor_product *q = w->m->products; q; q = q->next) {
            if (q == p || !is_deep(w, q) || !continues(p, q)) continue;
            if (w->chain_count == MOST_CHAINS) return false;
            struct fragment *above[] = {q->before->above, q->above, p->before->above, p->above},
                            *below[] = {q->before->below, q->below, p->before->below, p->below},
                            *right[] = {q->before->right, q->right, p->before->right, p->right};
            struct chain *c = &w->chains[w->chain_count++];
            *c = (struct chain){.products = {q, p},
                                .above = bundle_of(w, above, false),
                                .below = p->below ? bundle_of(w, below, false) : NULL,
                                .right = bundle_of(w, right, true)};
            if (!c->above || !c->right || (p->below && !c->below)) return false;
        }
    }
    return w->chain_count && 2 * w->chain_count == deep;
}

static bool is_call_of_chain(const struct wide *w, LLVMValueRef user) {
    for (int i = 0; i < 2 * w->chain_count; i++)
        if (w->chains[i / 2].products[i % 2]->call == user) return true;
    return false;
}

/* Finds the last load of an operand. Whether only chains use the operands, all after that load. */
static bool find_last(struct wide *w) {
    w->last = w->bundles[0].placed[0]->behind;
    for (int i = 0; w->last && i < STEPS * w->bundle_count; i++)
        w->last =
            matrix_later_unwritten(w->last, w->bundles[i / STEPS].placed[i % STEPS]->behind, PTX_GLOBAL);
    if (!w->last) return false;
    for (int i = 0; i < STEPS * w->bundle_count; i++) {
        LLVMValueRef loaded = w->bundles[i / STEPS].steps[i % STEPS]->registers[0];
        if (!matrix_is_used_behind(loaded, w->last)) return false;
        for (LLVMUseRef use = LLVMGetFirstUse(loaded); use; use = LLVMGetNextUse(use))
            if (!is_call_of_chain(w, LLVMGetUser(use))) return false;
    }
    return true;
}

/* Whether rows lie equally far apart. */
static bool same_pitch(const struct placed *a, const struct placed *b) {
    if (a->pitch != b->pitch) return false;
    for (int i = 0; i < 2; i++) {
        const struct placed *p = i ? b : a, *q = i ? a : b;
        for (int t = 0; t < p->first.count; t++) {
            if (!p->pitch_times[t]) continue;
            int u = 0;
            while (u < q->first.count && (q->first.terms[u].value != p->first.terms[t].value ||
                                          q->first.terms[u].extension != p->first.terms[t].extension))
                u++;
            if (u == q->first.count || q->pitch_times[u] != p->pitch_times[t]) return false;
        }
    }
    return true;
}

/* ---- Sets of four right matrices, whose sums are exchanged. */

static struct chain *chain_with(struct wide *w, const struct chain *like, const struct bundle *right) {
    for (int i = 0; i < w->chain_count; i++) {
        struct chain *c = &w->chains[i];
        if (c->above == like->above && c->below == like->below && c->right == right) return c;
    }
    return NULL;
}

/* Groups right operands in the order in which they were found; false: their number is not a multiple of four.
 */
static bool find_fours(struct wide *w) {
    int found = 0;
    for (int i = 0; i < w->bundle_count; i++) {
        struct bundle *b = &w->bundles[i];
        if (b->right && b->placed[0]->across) b->four = found++ / STEPS;
    }
    w->fours = found / STEPS;
    return found % STEPS == 0;
}

static void bundles_of_four(struct wide *w, int four, struct bundle **out) {
    int count = 0;
    for (int i = 0; i < w->bundle_count; i++)
        if (w->bundles[i].four == four) out[count++] = &w->bundles[i];
}

/* Finds the four chains of which `c` is the first, in the order of their right matrices. */
static bool find_row(struct wide *w, const struct chain *c, struct chain **row) {
    struct bundle *four[STEPS];
    bundles_of_four(w, c->right->four, four);
    if (c->right != four[0]) return false;
    for (int i = 0; i < STEPS; i++)
        if (!(row[i] = chain_with(w, c, four[i]))) return false;
    return true;
}

static bool in_loop(const struct wide *w, LLVMValueRef phi, LLVMBasicBlockRef block) {
    return block == w->block || block == LLVMGetInstructionParent(phi);
}

/* Whether the users of a value are the loop's sum, its product, and phis after the loop whose edges begin
 * outside of it. */
static bool leaves_by_phis(const struct wide *w, LLVMValueRef value, LLVMValueRef sum, LLVMValueRef product) {
    int uses = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (++uses > MOST_USES) return false;
        if (user == sum || user == product) continue;
        if (!LLVMIsAPHINode(user) || in_loop(w, sum, LLVMGetInstructionParent(user))) return false;
        for (unsigned i = 0; i < LLVMCountIncoming(user); i++) {
            LLVMBasicBlockRef from = LLVMGetIncomingBlock(user, i);
            if (LLVMGetIncomingValue(user, i) == value &&
                (in_loop(w, sum, from) || !matrix_is_together(w->m, from)))
                return false;
        }
    }
    return true;
}

/* Sum `i` of a chain at the start of a round: the loop's phi. */
static LLVMValueRef sum_of(const struct chain *c, unsigned i) {
    return LLVMGetOperand(c->products[0]->call, FIRST_SUM + i);
}

/* … at the end of a round. */
static LLVMValueRef result_of(const struct chain *c, unsigned i) {
    LLVMValueRef call = c->products[1]->call, result = NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(call); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef part = LLVMGetUser(use);
        if (!LLVMIsAExtractValueInst(part)) return NULL;
        if (LLVMGetIndices(part)[0] != i) continue;
        if (result) return NULL;
        result = part;
    }
    return result;
}

static unsigned sums_of(const struct chain *c) {
    return c->below ? 4 : 2;
}

static bool is_loops_sum(const struct wide *w, const struct chain *c, unsigned i) {
    LLVMValueRef sum = sum_of(c, i), result = result_of(c, i);
    if (!result || !LLVMIsAPHINode(sum) || LLVMCountIncoming(sum) != 2) return false;
    for (unsigned e = 0; e < 2; e++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(sum, e);
        LLVMValueRef value = LLVMGetIncomingValue(sum, e);
        if ((from == w->block) != (value == result) || !matrix_is_together(w->m, from)) return false;
    }
    return leaves_by_phis(w, sum, sum, c->products[0]->call) && leaves_by_phis(w, result, sum, NULL);
}

/* Whether all sums of the sets of four can be exchanged. */
static bool sums_can_move(struct wide *w) {
    LLVMBasicBlockRef header = NULL;
    int moved = 0, whole = 0;
    for (int i = 0; i < w->chain_count; i++) {
        struct chain *c = &w->chains[i], *row[STEPS];
        if (c->right->four < 0) continue;
        whole++;
        if (find_row(w, c, row)) moved += STEPS;
        for (unsigned s = 0; s < sums_of(c); s++) {
            if (!is_loops_sum(w, c, s)) return false;
            LLVMBasicBlockRef of_sum = LLVMGetInstructionParent(sum_of(c, s));
            if (header && header != of_sum) return false;
            header = of_sum;
        }
    }
    return moved == whole;
}

static bool pitches_are_equal(struct wide *w) {
    for (int i = 0; i < STEPS * w->bundle_count; i++) {
        struct bundle *b = &w->bundles[i / STEPS], *first = b;
        for (int k = 0; b->four >= 0 && k < w->bundle_count; k++)
            if (w->bundles[k].four == b->four) {
                first = &w->bundles[k];
                break;
            }
        if (!same_pitch(first->placed[0], b->placed[i % STEPS])) return false;
    }
    return true;
}

/* ---- Exchange of sums. */

/* In a lane whose bits 1 and 0 are `q`, value `t` becomes value `q` of the lane whose bits are `t`. */
static void exchange(struct wide *w, LLVMValueRef place, LLVMValueRef *values) {
    static const enum lane_source sources[2] = {SOURCE_PAIR, SOURCE_PAIR_OF_FOUR};
    struct unit *unit = w->m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef number = LLVMFloatTypeInContext(unit->context);
    LLVMPositionBuilderBefore(b, place);
    for (int i = 0; i < STEPS; i++) values[i] = LLVMBuildBitCast(b, values[i], type_i32(unit), "");
    for (int bit = 0; bit < 2; bit++)
        for (int i = 0; i < STEPS; i++) {
            int other = i | 1 << bit;
            if (other == i) continue;
            LLVMValueRef set = w->bits[bit], low = values[i], high = values[other];
            LLVMValueRef given =
                matrix_take_lanes(w->m, sources[bit], LLVMBuildSelect(b, set, low, high, ""));
            values[i] = LLVMBuildSelect(b, set, given, low, "");
            values[other] = LLVMBuildSelect(b, set, high, given, "");
        }
    for (int i = 0; i < STEPS; i++) values[i] = LLVMBuildBitCast(b, values[i], number, "");
}

static void exchange_before(struct wide *w, struct chain *const *row, unsigned s) {
    LLVMValueRef values[STEPS];
    unsigned edge = LLVMGetIncomingBlock(sum_of(row[0], s), 0) == w->block ? 1 : 0;
    bool same = true;
    for (int i = 0; i < STEPS; i++) {
        LLVMValueRef sum = sum_of(row[i], s);
        unsigned own = LLVMGetIncomingBlock(sum, 0) == w->block ? 1 : 0;
        values[i] = LLVMGetIncomingValue(sum, own);
        same &= LLVMIsAConstant(values[i]) && values[i] == values[0];
    }
    if (same) return;
    LLVMBasicBlockRef before = LLVMGetIncomingBlock(sum_of(row[0], s), edge);
    exchange(w, LLVMGetBasicBlockTerminator(before), values);
    for (int i = 0; i < STEPS; i++) {
        LLVMValueRef sum = sum_of(row[i], s);
        unsigned own = LLVMGetIncomingBlock(sum, 0) == w->block ? 1 : 0;
        LLVMSetOperand(sum, own, values[i]);
    }
}

/* On each edge by which the loop's values leave it. */
static void exchange_behind(struct wide *w, const LLVMValueRef *own, LLVMValueRef sum) {
    const struct flow *flow = &w->m->flow;
    for (int f = 0; f < flow->block_count; f++) {
        LLVMBasicBlockRef from = flow->blocks[f].block;
        LLVMValueRef values[STEPS];
        bool built = false;
        if (in_loop(w, sum, from)) continue;
        for (int i = 0; i < STEPS; i++) {
            LLVMValueRef users[MOST_USES];
            int count = 0;
            for (LLVMUseRef use = LLVMGetFirstUse(own[i]); use && count < MOST_USES;
                 use = LLVMGetNextUse(use))
                if (LLVMIsAPHINode(LLVMGetUser(use))) users[count++] = LLVMGetUser(use);
            for (int u = 0; u < count; u++)
                for (unsigned e = 0; e < LLVMCountIncoming(users[u]); e++) {
                    if (LLVMGetIncomingBlock(users[u], e) != from ||
                        LLVMGetIncomingValue(users[u], e) != own[i])
                        continue;
                    if (!built) {
                        memcpy(values, own, sizeof values);
                        exchange(w, LLVMGetBasicBlockTerminator(from), values);
                        built = true;
                    }
                    LLVMSetOperand(users[u], e, values[i]);
                }
        }
    }
}

static void move_sums(struct wide *w) {
    for (int i = 0; i < w->chain_count; i++) {
        struct chain *row[STEPS];
        if (w->chains[i].right->four < 0 || !find_row(w, &w->chains[i], row)) continue;
        for (unsigned s = 0; s < sums_of(row[0]); s++) {
            LLVMValueRef sums[STEPS], results[STEPS];
            for (int c = 0; c < STEPS; c++) {
                sums[c] = sum_of(row[c], s);
                results[c] = result_of(row[c], s);
            }
            exchange_before(w, row, s);
            exchange_behind(w, sums, sums[0]);
            exchange_behind(w, results, sums[0]);
        }
    }
}

/* ---- The loads. */

static LLVMValueRef wide_number(struct unit *unit, int64_t number) {
    return LLVMConstInt(type_i64(unit), (uint64_t)number, true);
}

static void find_bits(struct wide *w) {
    struct unit *unit = w->m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef lane = matrix_lane(w->m);
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(lane));
    for (uint32_t i = 0; i < 5; i++) {
        LLVMValueRef bit = LLVMBuildAnd(b, lane, constant_i32(unit, UINT32_C(1) << i), "");
        w->bits[i] = LLVMBuildICmp(b, LLVMIntNE, bit, constant_i32(unit, 0), "");
    }
    w->quarter = LLVMBuildAnd(b, lane, constant_i32(unit, 3), "");
    w->quarter = LLVMBuildZExt(b, w->quarter, type_i64(unit), "");
}

/* Address number `n`, if lane bits `low` and `low + 1` are `n`. */
static LLVMValueRef choose(struct wide *w, const LLVMValueRef *addresses, int low) {
    LLVMBuilderRef b = w->m->unit->builder;
    LLVMValueRef lower = LLVMBuildSelect(b, w->bits[low], addresses[1], addresses[0], ""),
                 upper = LLVMBuildSelect(b, w->bits[low], addresses[3], addresses[2], "");
    return LLVMBuildSelect(b, w->bits[low + 1], upper, lower, "");
}

/* Whether the matrices begin at equal, constant distances. */
static bool find_distance(struct placed *const *matrices, int64_t *distance) {
    for (int i = 1; i < STEPS; i++) {
        int64_t here;
        if (!address_distance(&matrices[0]->first, 0, &matrices[i]->first, 0, &here)) return false;
        if (i == 1) *distance = here;
        if (here != i * *distance) return false;
    }
    return true;
}

static LLVMValueRef add(struct wide *w, LLVMValueRef address, LLVMValueRef offset) {
    struct unit *unit = w->m->unit;
    return LLVMBuildGEP2(unit->builder, LLVMInt8TypeInContext(unit->context), address, &offset, 1, "");
}

/* The first row of matrix number `n`, if the lowest two bits of the lane are `n`. */
static LLVMValueRef first_row(struct wide *w, struct placed *const *matrices) {
    struct unit *unit = w->m->unit;
    LLVMValueRef addresses[STEPS];
    int64_t distance;
    if (find_distance(matrices, &distance)) {
        LLVMValueRef offset = LLVMBuildMul(unit->builder, w->quarter, wide_number(unit, distance), "");
        return add(w, matrix_first_row(unit, matrices[0]), offset);
    }
    for (int i = 0; i < STEPS; i++) addresses[i] = matrix_first_row(unit, matrices[i]);
    return choose(w, addresses, 0);
}

/* A row of 8 numbers, as four words. */
static void load_row(struct wide *w, LLVMValueRef address, LLVMValueRef *words) {
    struct unit *unit = w->m->unit;
    LLVMValueRef row = LLVMBuildLoad2(unit->builder, LLVMVectorType(type_i32(unit), STEPS), address, "");
    LLVMSetAlignment(row, ROW_BYTES);
    for (uint32_t i = 0; i < STEPS; i++)
        words[i] = LLVMBuildExtractElement(unit->builder, row, constant_i32(unit, i), "");
}

static void put(struct fragment *fragment, LLVMValueRef loaded) {
    LLVMReplaceAllUsesWith(fragment->registers[0], loaded);
    fragment->registers[0] = loaded;
}

static void load_bundle(struct wide *w, struct bundle *bundle, LLVMValueRef place) {
    LLVMValueRef words[STEPS];
    LLVMValueRef offset = matrix_row_offset(w->m, bundle->placed[0], place, -1);
    load_row(w, add(w, first_row(w, bundle->placed), offset), words);
    for (int s = 0; s < STEPS; s++) put(bundle->steps[s], words[s]);
}

/* Lane bits 4 and 3 are the step, bit 2 the row of a pair, bits 1 and 0 the matrix of the four. */
static void load_four(struct wide *w, int four, LLVMValueRef place) {
    struct bundle *bundles[STEPS];
    LLVMValueRef of_step[STEPS], words[STEPS];
    bundles_of_four(w, four, bundles);
    LLVMPositionBuilderBefore(w->m->unit->builder, place);
    for (int s = 0; s < STEPS; s++) {
        struct placed *matrices[STEPS];
        for (int i = 0; i < STEPS; i++) matrices[i] = bundles[i]->placed[s];
        of_step[s] = first_row(w, matrices);
    }
    LLVMValueRef start = choose(w, of_step, 3);
    for (int pair = 0; pair < STEPS; pair++) {
        LLVMValueRef offset = matrix_row_offset(w->m, bundles[0]->placed[0], place, pair);
        load_row(w, add(w, start, offset), words);
        for (int i = 0; i < STEPS; i++) put(bundles[i]->steps[pair], matrix_transposed(w->m, words[i]));
    }
}

/* ---- The pass. */

static smelt_status widen_block(struct wide *w, bool *widened) {
    if (!find_chains(w) || !find_last(w) || !find_fours(w) || !pitches_are_equal(w) || !sums_can_move(w))
        return SMELT_OK;
    LLVMValueRef place = LLVMGetNextInstruction(w->last);
    find_bits(w);
    move_sums(w);
    for (int i = 0; i < w->bundle_count; i++)
        if (w->bundles[i].four < 0) load_bundle(w, &w->bundles[i], place);
    for (int four = 0; four < w->fours; four++) load_four(w, four, place);
    *widened = true;
    return ptx_note(w->m->unit, "operands of four steps of matrix products are loaded 16 bytes per lane");
}

/* Told that one block per multiprocessor suffices, NVIDIA's assembler takes as many registers as it needs to
 * begin all loads of a round together. Otherwise it saves some, although no further block fits then, and
 * loads in three turns: on an H200, 4096^3 halfs took 1525 us instead of 853. */
smelt_status matrix_load_wide(struct matrices *m) {
    struct wide *w = arena_alloc(&m->arena, sizeof *w);
    bool widened = false;
    if (!w) return unit_fail(m->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
    for (int i = 0; m->placed && i < m->flow.block_count; i++) {
        *w = (struct wide){.m = m, .block = m->flow.blocks[i].block};
        TRY(widen_block(w, &widened));
    }
    if (widened) ptx_annotate(m->unit, "minctasm", 1);
    return SMELT_OK;
}
