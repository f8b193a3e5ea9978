/* Operands that were loaded from memory only to be multiplied are loaded again in the layout of the tensor
 * cores. From threadgroup memory ldmatrix loads up to four matrices, whose rows of 16 bytes the lanes
 * address. From device memory each lane loads two neighbours of a row (matrix_device.c).
 *
 * Two conditions apply: the addresses of all lanes are known to form such rows, and the lanes' own stores
 * cannot have changed what the others see, because nothing was written since the last barrier. */
#include "compiler/ptx/matrix/matrix_placed.h"

#include <stdio.h>
#include <string.h>

#define ROW_BYTES 16
#define PAIR_BYTES 4 /* a lane's in device memory */
#define MATRICES_MOST 4

/* ---- Writes since lanes last waited for each other. */

bool matrix_is_barrier(LLVMValueRef instruction) {
    enum intrinsic intrinsic = intrinsic_of(instruction);
    uint64_t line = 0;
    if (intrinsic != INTRINSIC_THREADGROUP_BARRIER && intrinsic != INTRINSIC_SIMDGROUP_BARRIER) return false;
    bool known =
        LLVMGetNumArgOperands(instruction) && is_constant_integer(LLVMGetOperand(instruction, 0), &line);
    return !known || !(line & BARRIER_ORDERS_NOTHING);
}

/* simdgroup_barrier(mem_flags::mem_none): loads may pass it. */
static bool orders_nothing(LLVMValueRef instruction) {
    uint64_t flags = 1;
    return intrinsic_of(instruction) == INTRINSIC_SIMDGROUP_BARRIER && LLVMGetNumArgOperands(instruction) &&
           is_constant_integer(LLVMGetOperand(instruction, 0), &flags) && flags == 0;
}

bool matrix_may_write(LLVMValueRef instruction, unsigned space) {
    if (LLVMIsAStoreInst(instruction)) {
        unsigned stored = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(instruction, 1)));
        return stored == space || (stored != PTX_GLOBAL && stored != PTX_SHARED);
    }
    if (LLVMIsAAtomicRMWInst(instruction) || LLVMIsAAtomicCmpXchgInst(instruction) ||
        LLVMIsAFenceInst(instruction))
        return true;
    if (!LLVMIsACallInst(instruction)) return false;
    if (LLVMIsAInlineAsm(LLVMGetCalledValue(instruction)))
        return LLVMGetInlineAsmHasSideEffects(LLVMGetCalledValue(instruction));
    if (intrinsic_called(instruction)) return false;
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    if (!LLVMIsAFunction(callee)) return true;
    unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
    LLVMAttributeRef memory =
        LLVMGetEnumAttributeAtIndex(callee, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
    /* Bits 1, 3, 5: it writes memory of its arguments, inaccessible memory, or other memory. */
    return !memory || LLVMGetEnumAttributeValue(memory) & 0x22;
}

/* Up to `end`, or to the end of the block; `written`: before that. */
static bool written_behind(LLVMBasicBlockRef block, LLVMValueRef end, bool written, unsigned space) {
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (instruction == end) break;
        if (matrix_is_barrier(instruction)) written = false;
        written |= matrix_may_write(instruction, space);
    }
    return written;
}

static void find_written(struct matrices *m, unsigned space) {
    const struct flow *flow = &m->flow;
    bool *all = m->written[space == PTX_GLOBAL] = arena_alloc(&m->arena, (size_t)flow->block_count);
    for (bool changed = all != NULL; changed;) {
        changed = false;
        for (int i = 0; i < flow->block_count; i++) {
            if (all[i]) continue;
            for (int p = 0; p < flow->blocks[i].predecessor_count; p++) {
                int from = flow->blocks[i].predecessors[p];
                if (!written_behind(flow->blocks[from].block, NULL, all[from], space)) continue;
                all[i] = changed = true;
                break;
            }
        }
    }
}

static bool is_written(struct matrices *m, LLVMValueRef at, unsigned space) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(at);
    bool **all = &m->written[space == PTX_GLOBAL];
    if (!*all) find_written(m, space);
    return !*all || written_behind(block, at, (*all)[flow_index(&m->flow, block)], space);
}

LLVMValueRef matrix_later_unwritten(LLVMValueRef a, LLVMValueRef b, unsigned space) {
    if (LLVMGetInstructionParent(a) != LLVMGetInstructionParent(b)) return NULL;
    for (int turn = 0; turn < 2; turn++) {
        LLVMValueRef from = turn ? b : a, to = turn ? a : b, i = from;
        while (i && i != to && !matrix_may_write(i, space) && (!matrix_is_barrier(i) || orders_nothing(i)))
            i = LLVMGetNextInstruction(i);
        if (i == to) return to;
    }
    return NULL;
}

/* ---- Whether lanes load a matrix in the required form. */

static unsigned space_of(LLVMValueRef load) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(load, 0)));
}

static bool is_plain_load(LLVMValueRef value) {
    return LLVMIsALoadInst(value) && !LLVMGetVolatile(value) &&
           LLVMGetOrdering(value) == LLVMAtomicOrderingNotAtomic &&
           (space_of(value) == PTX_SHARED || space_of(value) == PTX_GLOBAL);
}

/* The address of the element in a row and column: which of the two addresses, of which lane. */
struct element {
    const struct address *address;
    int lane;
};
static struct element element_at(const struct address *pair, unsigned row, unsigned column, bool turned) {
    unsigned r = turned ? column : row, c = turned ? row : column;
    return (struct element){&pair[c % 2], (int)metal_lane(r, c / 2)};
}

/* Whether every row's 8 elements are adjacent, and the rows begin at equal distances. */
static bool find_rows(struct matrices *m, const struct address *pair, bool turned, struct placed *placed) {
    struct element first = element_at(pair, 0, 0, turned), second = element_at(pair, 1, 0, turned);
    const struct address *a = first.address, *b = second.address;
    placed->first = *a;
    if (a->count != b->count) return false;
    for (int t = 0; t < a->count; t++) {
        if (a->terms[t].value != b->terms[t].value || a->terms[t].extension != b->terms[t].extension)
            return false;
        placed->pitch_times[t] = b->terms[t].times[second.lane] - a->terms[t].times[first.lane];
    }
    placed->pitch = b->number[second.lane] - a->number[first.lane];
    for (unsigned row = 0; row < MATRIX_SIZE; row++) {
        struct element start = element_at(pair, row, 0, turned);
        const struct address *s = start.address;
        int64_t distance;
        uint64_t alignment = address_alignment(m, s, start.lane);
        if (alignment < (placed->device ? PAIR_BYTES : ROW_BYTES)) return false;
        if (row == 0 || alignment < placed->alignment) placed->alignment = alignment;
        if (s->number[start.lane] != a->number[first.lane] + (int64_t)row * placed->pitch) return false;
        for (int t = 0; t < a->count; t++)
            if (s->count != a->count || s->terms[t].value != a->terms[t].value ||
                s->terms[t].extension != a->terms[t].extension ||
                s->terms[t].times[start.lane] !=
                    a->terms[t].times[first.lane] + (int64_t)row * placed->pitch_times[t])
                return false;
        for (unsigned column = 1; column < MATRIX_SIZE; column++) {
            struct element e = element_at(pair, row, column, turned);
            if (!address_distance(s, start.lane, e.address, e.lane, &distance) || distance != 2 * column)
                return false;
        }
    }
    return true;
}

static bool find_placed(struct matrices *m, struct fragment *fragment, struct placed *placed) {
    LLVMValueRef even = fragment->numbers[0], odd = fragment->numbers[1];
    struct address pair[2];
    if (!is_plain_load(even) || !is_plain_load(odd)) return false;
    unsigned space = space_of(even);
    if (space_of(odd) != space) return false;
    LLVMValueRef behind = matrix_later_unwritten(even, odd, space);
    if (!behind || !matrix_is_together(m, LLVMGetInstructionParent(behind))) return false;
    if (is_written(m, behind, space)) return false;
    LLVMBasicBlockRef reader = LLVMGetInstructionParent(behind);
    if (!address_find(m, LLVMGetOperand(even, 0), reader, &pair[0])) return false;
    if (!address_find(m, LLVMGetOperand(odd, 0), reader, &pair[1])) return false;
    *placed = (struct placed){.fragment = fragment, .behind = behind, .device = space == PTX_GLOBAL};
    for (int turned = 0; turned < 2; turned++) {
        if (!find_rows(m, pair, turned, placed)) continue;
        /* Pairs of a left matrix are in its rows, those of a right one in its columns. */
        placed->across = fragment->right != (bool)turned;
        return true;
    }
    return false;
}

/* ---- The loads. */

/* Whether one instruction can load both: equal pitch, and a constant number of bytes between them. */
static bool go_together(const struct placed *a, const struct placed *b) {
    int64_t distance;
    if (a->device || b->device) return false;
    for (int t = 0; t < a->first.count && t < b->first.count; t++)
        if (a->first.terms[t].value != b->first.terms[t].value) return false;
    return a->across == b->across && a->pitch == b->pitch &&
           memcmp(a->pitch_times, b->pitch_times, sizeof a->pitch_times) == 0 &&
           address_distance(&a->first, 0, &b->first, 0, &distance) &&
           matrix_later_unwritten(a->behind, b->behind, PTX_SHARED);
}

static int64_t apart(const struct placed *a, const struct placed *b) {
    int64_t distance = 0;
    (void)address_distance(&a->first, 0, &b->first, 0, &distance);
    return distance;
}

static LLVMValueRef times(struct unit *unit, LLVMValueRef value, int64_t number) {
    return LLVMBuildMul(unit->builder, value, constant_i32(unit, (uint32_t)number), "");
}

/* Lane 8 m + r has the address of row r of matrix m. The constant that all have in common is left to the
 * instruction. */
static LLVMValueRef row_address(struct matrices *m, struct placed *const *set, int count) {
    struct unit *unit = m->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef lane = matrix_lane(m);
    LLVMValueRef row = LLVMBuildAnd(b, lane, constant_i32(unit, MATRIX_SIZE - 1), "");
    LLVMValueRef address = times(unit, row, set[0]->pitch);
    for (int t = 0; t < set[0]->first.count; t++) {
        LLVMValueRef value = address_term(unit, &set[0]->first.terms[t]);
        LLVMValueRef number = times(unit, row, set[0]->pitch_times[t]);
        number = LLVMBuildAdd(b, number, constant_i32(unit, (uint32_t)set[0]->first.terms[t].times[0]), "");
        address = LLVMBuildAdd(b, address, LLVMBuildMul(b, value, number, ""), "");
    }
    for (int bit = 0; 1 << bit < count; bit++) {
        LLVMValueRef of_matrix = LLVMBuildLShr(b, lane, constant_i32(unit, 3 + (uint32_t)bit), "");
        of_matrix = LLVMBuildAnd(b, of_matrix, constant_i32(unit, 1), "");
        address = LLVMBuildAdd(b, address, times(unit, of_matrix, apart(set[0], set[1 << bit])), "");
    }
    return address;
}

static void put_register(struct placed *placed, LLVMValueRef loaded) {
    LLVMValueRef *mark = &placed->fragment->registers[0];
    LLVMReplaceAllUsesWith(*mark, loaded);
    LLVMInstructionEraseFromParent(*mark);
    *mark = loaded;
    placed->loaded = true;
}

/* Rows that are a multiple of 64 bytes apart share banks. Those of a matrix of its own, 16 bytes apart, do
 * not, wherever their parts are moved together. */
static void note_rows(struct unit *unit, const struct placed *placed) {
    bool known = true;
    for (int t = 0; t < placed->first.count; t++) known &= placed->pitch_times[t] == 0;
    if (known && placed->pitch != 0 && placed->pitch % (4 * ROW_BYTES) == 0)
        unit->rows_share_banks = true;
    else if (!known || placed->pitch != ROW_BYTES)
        unit->rows_are_apart = true;
}

static void load_set(struct matrices *m, struct placed *const *set, int count) {
    if (set[0]->device) {
        put_register(set[0], matrix_load_device(m, set[0]));
        return;
    }
    static const char *const results[] = {
        [1] = "{$0}, [$1", [2] = "{$0,$1}, [$2", [4] = "{$0,$1,$2,$3}, [$4"};
    static const char *const constraints[] = {[1] = "=r,r", [2] = "=r,=r,r", [4] = "=r,=r,=r,=r,r"};
    struct unit *unit = m->unit;
    note_rows(unit, set[0]);
    LLVMTypeRef word = type_i32(unit), words[MATRICES_MOST] = {word, word, word, word};
    LLVMValueRef last = set[0]->behind;
    for (int i = 1; i < count; i++) last = matrix_later_unwritten(last, set[i]->behind, PTX_SHARED);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(last));
    char text[128];
    snprintf(text, sizeof text, "ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s+%lld];", count,
             set[0]->across ? ".trans" : "", results[count], (long long)set[0]->first.number[0]);
    LLVMValueRef address = row_address(m, set, count);
    LLVMTypeRef type =
        count == 1 ? word : LLVMStructTypeInContext(unit->context, words, (unsigned)count, false);
    LLVMValueRef call = ptx_assembly(unit, text, constraints[count], type, &address, 1, false);
    matrix_set_together(unit, call, MEMORY_READ);
    LLVMValueRef registers[MATRICES_MOST] = {call};
    for (unsigned i = 0; count > 1 && i < (unsigned)count; i++)
        registers[i] = LLVMBuildExtractValue(unit->builder, call, i, "");
    for (int i = 0; i < count; i++) put_register(set[i], registers[i]);
}

bool matrix_is_used_behind(LLVMValueRef mark, LLVMValueRef place) {
    for (LLVMUseRef use = LLVMGetFirstUse(mark); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use), i = place;
        if (LLVMGetInstructionParent(user) != LLVMGetInstructionParent(place)) continue;
        while (i && i != user) i = LLVMGetNextInstruction(i);
        if (!i) return false;
    }
    return true;
}

/* Whether one instruction can load them all, before any is used. For four: the distance from the first to the
 * second equals that from the third to the fourth. */
static bool is_set(struct placed *const *set, int count) {
    LLVMValueRef last = set[0]->behind;
    for (int i = 0; i < count; i++) {
        if (set[i]->loaded) return false;
        for (int k = 0; k < i; k++)
            if (set[k] == set[i] || !go_together(set[k], set[i])) return false;
        last = matrix_later_unwritten(last, set[i]->behind, PTX_SHARED);
        if (!last) return false;
    }
    if (count == MATRICES_MOST && apart(set[0], set[1]) != apart(set[2], set[3])) return false;
    for (int i = 0; i < count; i++)
        if (!matrix_is_used_behind(set[i]->fragment->registers[0], last)) return false;
    return true;
}

struct placed *matrix_placed_of(struct matrices *m, const struct fragment *fragment) {
    struct placed *p = m->placed;
    while (p && p->fragment != fragment) p = p->next;
    return p;
}

bool matrix_load_together(struct matrices *m, struct fragment *const *fragments, int count) {
    struct placed *set[MATRICES_MOST];
    if (count != 1 && count != 2 && count != MATRICES_MOST) return false;
    for (int i = 0; i < count; i++)
        if (!(set[i] = matrix_placed_of(m, fragments[i]))) return false;
    if (!is_set(set, count)) return false;
    load_set(m, set, count);
    return true;
}

/* Loads the oldest that is not loaded, with those that fit. */
static bool load_next(struct matrices *m) {
    struct placed *set[MATRICES_MOST] = {NULL};
    int count = 1;
    for (struct placed *p = m->placed; p; p = p->next)
        if (!p->loaded) set[0] = p;
    if (!set[0]) return false;
    for (int want = 2; want <= MATRICES_MOST; want *= 2) {
        struct placed *tried[MATRICES_MOST];
        memcpy(tried, set, sizeof tried);
        for (int found = count; found < want;) {
            struct placed *next = NULL;
            for (struct placed *p = m->placed; p; p = p->next) {
                tried[found] = p;
                if (is_set(tried, found + 1)) next = p;
            }
            if (!next) break;
            tried[found++] = next;
            if (found < want) continue;
            memcpy(set, tried, sizeof set);
            count = want;
        }
        if (count < want) break;
    }
    load_set(m, set, count);
    return true;
}

void matrix_load_rest(struct matrices *m) {
    while (load_next(m)) {
    }
}

smelt_status matrix_place_fragments(struct matrices *m, struct fragment *const *fragments, int count) {
    /* The newest fragment is the first in the list. */
    for (int i = count - 1; i >= 0; i--) {
        struct placed *placed = arena_alloc(&m->arena, sizeof *placed);
        if (!placed) return unit_fail(m->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
        if (!find_placed(m, fragments[i], placed)) continue;
        LLVMPositionBuilderBefore(m->unit->builder, LLVMGetNextInstruction(placed->behind));
        fragments[i]->registers[0] = matrix_call(m->unit, intrinsic_traits(INTRINSIC_MATRIX_IN_MEMORY)->name,
                                                 type_i32(m->unit), NULL, 0, true);
        placed->next = m->placed;
        m->placed = placed;
    }
    return SMELT_OK;
}
