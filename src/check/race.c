/* Data races: two accesses of the same bytes by different threads, at least one a write and not both atomic,
 * that no barrier puts in order.
 *
 * What counts is not the order in which the accesses happened, but which barriers lie between them. Each
 * thread counts the barriers it has passed, of the threadgroup and of its simdgroup, that order the memory's
 * kind. An earlier access is in order with a later one of the same threadgroup if its thread had passed fewer
 * barriers of the threadgroup then, or, in one simdgroup, fewer of the simdgroup. Accesses of different
 * threadgroups are never in order, unless the kernel calls fences that order device memory for the whole
 * device: those are trusted. Within a threadgroup, fences for the memory's kind are trusted if both threads
 * have called one since the earlier access, or one of them has and a barrier, for whatever memory, lies in
 * between. Two writes of the same value are not a finding.
 *
 * For every four bytes, a word, the last write and two reads by different threads since are kept: its cell.
 * Accesses of a part of a word, of elements of one or two bytes, are kept by the part's first byte, so that
 * neighbours in a word do not displace each other: each byte but the first has a plane of cells of its own,
 * mapped when it is needed. An access is packed into 64 bits: the interval between barriers in which it
 * happened, the thread, which of the four bytes, its site. */
#include "check/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Packed accesses. */

#define SITE_BITS 17

static uint64_t pack(uint32_t interval, uint32_t thread, unsigned mask, bool atomic, uint32_t site) {
    if (site >= 1u << SITE_BITS) site = 0;
    return (uint64_t)interval << 32 | (uint64_t)thread << 22 | (uint64_t)mask << 18 | (uint64_t)atomic << 17 |
           site;
}

static uint32_t interval_of(uint64_t access) {
    return (uint32_t)(access >> 32);
}
static uint32_t thread_of(uint64_t access) {
    return (uint32_t)(access >> 22) & 1023;
}
static unsigned mask_of(uint64_t access) {
    return (unsigned)(access >> 18) & 15;
}
static bool is_atomic(uint64_t access) {
    return access >> 17 & 1;
}
static uint32_t site_of(uint64_t access) {
    return (uint32_t)access & ((1u << SITE_BITS) - 1);
}

/* By the same thread since the same barrier: they differ in bytes and site at most. */
static bool is_same(uint64_t a, uint64_t b) {
    return a >> 22 == b >> 22;
}

/* ---- Intervals. */

static uint32_t add_interval(struct check *check, const struct interval *interval) {
    if (check->interval_count + 1 >= check->interval_room) {
        uint32_t room = check->interval_room ? 2 * check->interval_room : 1024;
        struct interval *grown = realloc(check->intervals, room * sizeof *grown);
        check->out_of_memory |= !grown;
        if (!grown) return check->interval_count;
        check->intervals = grown;
        check->interval_room = room;
    }
    check->intervals[++check->interval_count] = *interval;
    return check->interval_count;
}

static uint32_t current_interval(struct check *check, enum memory_kind kind) {
    struct thread_state *thread = &check->threads[check->thread];
    if (thread->interval[kind]) return thread->interval[kind];
    uint32_t simdgroup = check->thread / CHECK_LANES, *latest = &check->latest[simdgroup][kind];
    struct interval now = {.kind = kind,
                           .group = check->group.number,
                           .simdgroup = simdgroup,
                           .barriers = thread->barriers[kind],
                           .simdgroup_barriers = thread->simdgroup_barriers[kind],
                           .all_barriers = thread->all_barriers,
                           .fence = thread->fence[kind],
                           .fences = check->fences[kind]};
    const struct interval *known = *latest ? &check->intervals[*latest] : NULL;
    if (!known || known->group != now.group || known->barriers != now.barriers ||
        known->simdgroup_barriers != now.simdgroup_barriers || known->all_barriers != now.all_barriers ||
        known->fence != now.fence || known->fences != now.fences)
        *latest = add_interval(check, &now);
    return thread->interval[kind] = *latest;
}

void race_begin_group(struct check *check) {
    const uint32_t *size = check->group.size;
    uint32_t lanes = (size[0] * size[1] * size[2] + CHECK_LANES - 1) / CHECK_LANES * CHECK_LANES;
    memset(check->threads, 0,
           (lanes < CHECK_MOST_THREADS ? lanes : CHECK_MOST_THREADS) * sizeof *check->threads);
    for (int s = 0; s < CHECK_MOST_THREADS / CHECK_LANES; s++)
        for (int k = 0; k < MEMORY_KINDS; k++) check->latest[s][k] = 0;
}

/* Of mem_flags. */
static const uint32_t flag_of[MEMORY_KINDS] = {[DEVICE_MEMORY] = 1, [THREADGROUP_MEMORY] = 2};

void smelt_check_barrier(uint32_t flags, uint32_t of_simdgroup, const struct check_site *site) {
    struct check *check = check_this;
    struct thread_state *thread = &check->threads[check->thread];
    thread->barrier = site;
    thread->all_barriers += !of_simdgroup;
    for (int k = 0; k < MEMORY_KINDS; k++) {
        if (flags & flag_of[k]) ++*(of_simdgroup ? &thread->simdgroup_barriers[k] : &thread->barriers[k]);
        thread->interval[k] = 0;
    }
}

void smelt_check_fence(uint32_t flags, uint32_t for_groups) {
    struct check *check = check_this;
    struct thread_state *thread = &check->threads[check->thread];
    for (int k = 0; k < MEMORY_KINDS; k++) {
        if (!(flags & flag_of[k])) continue;
        thread->fence[k] = ++check->fences[k];
        thread->interval[k] = 0;
    }
    check->has_group_fences |= for_groups && flags & flag_of[DEVICE_MEMORY];
}

/* ---- Judging. */

static bool is_ordered(const struct check *check, uint64_t before, uint64_t now) {
    const struct interval *a = &check->intervals[interval_of(before)],
                          *b = &check->intervals[interval_of(now)];
    if (a->group != b->group) return check->has_group_fences;
    if (thread_of(before) == thread_of(now) || a->barriers < b->barriers) return true;
    bool first_fenced = check->threads[thread_of(before)].fence[a->kind] > a->fence;
    bool second_fenced = b->fence > a->fences, have_met = a->all_barriers < b->all_barriers;
    if (first_fenced + second_fenced + have_met >= 2) return true;
    return a->simdgroup == b->simdgroup && a->simdgroup_barriers < b->simdgroup_barriers;
}

static bool conflicts(const struct check *check, uint64_t before, uint64_t now) {
    return before && (mask_of(before) & mask_of(now)) && !(is_atomic(before) && is_atomic(now)) &&
           !is_ordered(check, before, now);
}

static const char *verb(bool write) {
    return write ? "writes" : "reads";
}

static void describe(struct check *check, struct finding *finding, uint64_t before, uint64_t now, bool wrote,
                     bool writes, const char *address) {
    smelt_finding *told = &finding->told;
    const struct interval *a = &check->intervals[interval_of(before)];
    check_place(check, told);
    check_name(check, address, told);
    check_position(check, thread_of(before), told->other_thread);
    uint32_t number = a->group;
    const uint32_t *groups = check->launch.groups;
    for (int d = 0; d < 3; d++) {
        told->other_threadgroup[d] = number % groups[d];
        number /= groups[d];
    }
    const char *who = finding->kind == FINDING_GROUP_RACE       ? "in another threadgroup"
                      : finding->kind == FINDING_SIMDGROUP_RACE ? "of the same simdgroup"
                                                                : "of the same threadgroup";
    const char *lacks = finding->kind == FINDING_GROUP_RACE
                            ? "nothing orders accesses of different threadgroups"
                        : finding->kind == FINDING_SIMDGROUP_RACE
                            ? "no barrier separates them, and lanes need not run in step"
                            : "no barrier for this memory separates them";
    char element[64] = "";
    if (told->has_index) snprintf(element, sizeof element, "[%lld]", (long long)told->index);
    told->message = findings_text(
        check->findings, "thread (%u, %u, %u) %s %s%s%s, which thread (%u, %u, %u) %s %s at line %d: %s",
        told->thread[0], told->thread[1], told->thread[2], verb(writes), told->argument, element,
        is_atomic(now) ? " atomically" : "", told->other_thread[0], told->other_thread[1],
        told->other_thread[2], who, wrote ? (is_atomic(before) ? "wrote atomically" : "wrote") : "read",
        told->other_line, lacks);
}

static void judge(struct check *check, uint64_t before, uint64_t now, bool wrote, bool writes,
                  char *address) {
    if (!conflicts(check, before, now)) return;
    const struct interval *a = &check->intervals[interval_of(before)],
                          *b = &check->intervals[interval_of(now)];
    enum finding_kind kind = a->group != b->group           ? FINDING_GROUP_RACE
                             : a->simdgroup == b->simdgroup ? FINDING_SIMDGROUP_RACE
                                                            : FINDING_RACE;
    bool is_new;
    struct finding *finding = findings_add(check->findings, kind, check->sites[site_of(now)],
                                           check->sites[site_of(before)], NULL, &is_new);
    if (is_new) describe(check, finding, before, now, wrote, writes, address);
}

/* ---- Writes of the same value. */

static void doubt_write(struct check *check, uint64_t before, uint64_t now, char *address, uint64_t bytes) {
    struct doubt *doubt = &check->doubt;
    if (doubt->address || !conflicts(check, before, now)) return;
    *doubt = (struct doubt){.address = address,
                            .bytes = bytes < MOST_WRITTEN ? bytes : MOST_WRITTEN,
                            .before = before,
                            .now = now,
                            .access = check->now};
    memcpy(doubt->old, address, doubt->bytes);
}

void race_settle(struct check *check) {
    struct doubt *doubt = &check->doubt;
    if (!doubt->address) return;
    char *address = doubt->address;
    doubt->address = NULL;
    if (memcmp(address, doubt->old, doubt->bytes) == 0) return;
    check->now = doubt->access;
    judge(check, doubt->before, doubt->now, true, true, address);
}

/* ---- Accesses. */

static void note_reader(struct check *check, struct cell *cell, uint64_t now) {
    uint64_t *readers = cell->readers;
    for (int i = 0; i < 2; i++) {
        if (is_same(readers[i], now)) {
            readers[i] |= (uint64_t)mask_of(now) << 18;
            return;
        }
    }
    int place = !readers[0] || is_ordered(check, readers[0], now) ? 0 : 1;
    readers[place] = now;
}

static void judge_write(struct check *check, const struct cell *cell, uint64_t now, char *address,
                        uint64_t bytes) {
    if (is_atomic(now))
        judge(check, cell->writer, now, true, true, address);
    else
        doubt_write(check, cell->writer, now, address, bytes);
    for (int i = 0; i < 2; i++) judge(check, cell->readers[i], now, false, true, address);
}

/* Of a word, in memory of which no part of a word was accessed before. */
static void access_word(struct check *check, struct cell *cell, uint64_t now, bool reads, char *address,
                        uint64_t bytes) {
    if (reads) {
        judge(check, cell->writer, now, true, false, address);
        note_reader(check, cell, now);
    } else {
        judge_write(check, cell, now, address, bytes);
        *cell = (struct cell){.writer = now};
    }
}

/* ---- Parts of words. */

static int first_byte(unsigned mask) {
    return mask & 1 ? 0 : mask & 2 ? 1 : mask & 4 ? 2 : 3;
}

static struct cell *plane_of(struct region *region, int byte) {
    return byte ? region->planes[byte - 1] : region->cells;
}

/* The cell of a byte of a word; that of the word where there is no memory for more. */
static struct cell *cell_of(struct check *check, struct region *region, uint64_t word, int byte) {
    if (byte && !region->planes[byte - 1]) {
        region->planes[byte - 1] = memories_cells(region);
        check->out_of_memory |= !region->planes[byte - 1];
    }
    struct cell *plane = plane_of(region, byte);
    return &(plane ? plane : region->cells)[word];
}

static uint64_t without(uint64_t access, unsigned mask) {
    return mask_of(access) & ~mask ? access & ~((uint64_t)mask << 18) : 0;
}

/* Forgets what was known of the bytes of a mask. */
static void clear_bytes(struct cell *cell, unsigned mask) {
    cell->writer = without(cell->writer, mask);
    for (int i = 0; i < 2; i++) cell->readers[i] = without(cell->readers[i], mask);
}

static void judge_part(struct check *check, struct region *region, uint64_t word, uint64_t now, bool reads,
                       char *address, uint64_t bytes) {
    for (int byte = 0; byte < 4; byte++) {
        const struct cell *plane = plane_of(region, byte);
        if (!plane) continue;
        if (reads)
            judge(check, plane[word].writer, now, true, false, address);
        else
            judge_write(check, &plane[word], now, address, bytes);
    }
}

static bool part_conflicts(const struct check *check, struct region *region, uint64_t word, uint64_t now,
                           bool reads) {
    for (int byte = 0; byte < 4; byte++) {
        const struct cell *plane = plane_of(region, byte);
        if (!plane) continue;
        const struct cell *cell = &plane[word];
        if (conflicts(check, cell->writer, now)) return true;
        if (!reads && (conflicts(check, cell->readers[0], now) || conflicts(check, cell->readers[1], now)))
            return true;
    }
    return false;
}

static void note_part(struct check *check, struct region *region, uint64_t word, uint64_t now, bool reads) {
    unsigned mask = mask_of(now);
    struct cell *own = cell_of(check, region, word, first_byte(mask));
    region->has_parts = true;
    for (int byte = 0; byte < 4 && !reads; byte++) {
        struct cell *plane = plane_of(region, byte);
        if (plane) clear_bytes(&plane[word], mask);
    }
    if (reads) {
        note_reader(check, own, now);
        return;
    }
    /* What is left of a wider write finds a place with its own first byte. */
    if (own->writer) {
        struct cell *other = cell_of(check, region, word, first_byte(mask_of(own->writer)));
        if (!other->writer) other->writer = own->writer;
    }
    own->writer = now;
}

bool race_changed_by_other(const struct check *check, const struct region *region, const char *address) {
    uint64_t writer = region->cells[(address - region->start) / 4].writer;
    return writer && (thread_of(writer) != check->thread ||
                      check->intervals[interval_of(writer)].group != check->group.number);
}

/* A mask of the bytes of the word at `at` that an access of [offset, end) covers. */
static unsigned mask_at(uint64_t at, uint64_t offset, uint64_t end) {
    unsigned mask = 15;
    if (at < offset) mask &= 15u << (offset - at);
    if (at + 4 > end) mask &= 15u >> (at + 4 - end);
    return mask & 15;
}

bool race_usual(struct check *check, struct region *region, enum memory_kind kind, char *address,
                uint64_t bytes, enum check_access access, const struct check_site *site) {
    bool reads = access == CHECK_READ;
    uint64_t offset = (uint64_t)(address - region->start), end = offset + bytes;
    uint64_t common =
        pack(current_interval(check, kind), check->thread, 0, access >= CHECK_ATOMIC, site->number);
    for (uint64_t at = offset & ~UINT64_C(3); at < end; at += 4) {
        unsigned mask = mask_at(at, offset, end);
        uint64_t now = common | (uint64_t)mask << 18;
        if (mask != 15 || region->has_parts) {
            if (part_conflicts(check, region, at / 4, now, reads)) return false;
            note_part(check, region, at / 4, now, reads);
            continue;
        }
        struct cell *cell = &region->cells[at / 4];
        if (conflicts(check, cell->writer, now)) return false;
        if (reads) {
            note_reader(check, cell, now);
            continue;
        }
        if (conflicts(check, cell->readers[0], now) || conflicts(check, cell->readers[1], now)) return false;
        *cell = (struct cell){.writer = now};
    }
    return true;
}

void race_access(struct check *check, struct region *region, enum memory_kind kind, char *address,
                 uint64_t bytes, enum check_access access, const struct check_site *site) {
    uint32_t interval = current_interval(check, kind);
    uint64_t offset = (uint64_t)(address - region->start), end = offset + bytes;
    for (uint64_t at = offset & ~UINT64_C(3); at < end; at += 4) {
        unsigned mask = mask_at(at, offset, end);
        uint64_t now = pack(interval, check->thread, mask, access >= CHECK_ATOMIC, site->number);
        char *where = region->start + (at < offset ? offset : at);
        uint64_t left = end - (uint64_t)(where - region->start);
        if (mask == 15 && !region->has_parts) {
            access_word(check, &region->cells[at / 4], now, access == CHECK_READ, where, left);
        } else {
            judge_part(check, region, at / 4, now, access == CHECK_READ, where, left);
            note_part(check, region, at / 4, now, access == CHECK_READ);
        }
    }
}
