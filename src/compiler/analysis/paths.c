/* The paths of one divergent branch or loop, followed to where all lanes have met again.
 *
 * Masks of warps rest on this invariant: of the lanes that an operation names, each reaches it or ends, and
 * none waits for another one before. A lane that will wait for the others at a barrier must therefore be
 * together with them, or in none of their masks. In a valid kernel, the lanes at a barrier are all lanes that
 * have not ended and are not on their way out. Hence three kinds of paths:
 *
 * - A path to the thread's end is not followed: the hardware does not wait for lanes that have ended.
 * - Nor is a path that leaves for good, from where a barrier may follow to code *apart*. Its lanes perform
 *   that code with each other alone, under masks of the branch where they left, and end. The other lanes meet
 *   without them, perhaps after a barrier, and may name them. Lanes that leave in one phase by several
 *   branches, or in several rounds, first meet with all others (ptx/warp/meet.c) and leave from there.
 * - All other paths meet where they join. If a path with barriers ended and never joined another one, its
 *   lanes may be waiting for those of the remaining path, which must not wait for them. Nor must lanes that
 *   left a path for code that they share with others, while the rest of the path went on to a barrier. */
#include "compiler/analysis/paths.h"
#include "compiler/analysis/phases.h"

#include <string.h>

#define NO_LABEL (-1)
#define MOST_STARTS 64

/* ---- The order. */

static int successors_of(const struct flow *flow, int index) {
    return (int)LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(flow->blocks[index].block));
}

struct placing {
    struct path_graph *g;
    const struct flow *flow;
    int *place; /* by flow index, -1: none yet */
};

/* The blocks of `loop` (-1: all), from the flow index `first` on: headers come first in reverse post-order.
 */
static void put_in_order(struct placing *p, int first, int loop) {
    const struct flow *flow = p->flow;
    for (int i = first; i < flow->block_count; i++) {
        int own = flow->blocks[i].loop;
        if (p->place[i] >= 0 || !flow_loop_within(flow, own, loop)) continue;
        if (own != loop) {
            while (flow->loops[own].parent != loop) own = flow->loops[own].parent;
            p->g->loops[own].header = p->g->block_count;
            put_in_order(p, i, own);
            p->g->loops[own].last = p->g->block_count - 1;
            continue;
        }
        p->place[i] = p->g->block_count;
        p->g->blocks[p->g->block_count++] =
            (struct path_block){.block = flow->blocks[i].block, .flow = i, .loop = own};
    }
}

static bool is_never(const struct flow *flow, int from, int to) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[from].block);
    return phases_is_never(end, 0) && LLVMGetSuccessor(end, 0) == flow->blocks[to].block;
}

/* By flow index: blocks that are reached only by edges that no thread takes. Such edges made paths parts of
 * loops, and are not paths themselves. */
static bool *find_nobody(struct arena *arena, const struct flow *flow) {
    bool *nobody = arena_alloc(arena, (size_t)flow->block_count);
    for (int i = 1; nobody && i < flow->block_count; i++) {
        nobody[i] = true;
        for (int p = 0; p < flow->blocks[i].predecessor_count; p++) {
            int from = flow->blocks[i].predecessors[p];
            nobody[i] &= from >= i || nobody[from] || is_never(flow, from, i);
        }
    }
    return nobody;
}

static void copy_edges(struct path_graph *g, const struct flow *flow, const int *places, bool never) {
    const bool *nobody = find_nobody(g->arena, flow);
    for (int i = 0; i < flow->block_count && !g->arena->failed; i++) {
        struct path_block *block = &g->blocks[places[i]];
        block->dominator = places[flow->blocks[i].dominator];
        block->regions = arena_alloc(g->arena, (size_t)g->region_words * sizeof *block->regions);
        block->predecessors =
            arena_alloc(g->arena, (size_t)(flow->blocks[i].predecessor_count + 1) * sizeof(int));
        block->successors = arena_alloc(g->arena, (size_t)(successors_of(flow, i) + 1) * sizeof(int));
    }
    /* Flow lists one edge per successor of its block. */
    for (int i = 0; i < flow->block_count && !g->arena->failed; i++) {
        for (int p = 0; p < flow->blocks[i].predecessor_count; p++) {
            int before = flow->blocks[i].predecessors[p], from = places[before], to = places[i];
            if (!never && (nobody[before] || is_never(flow, before, i))) continue;
            g->blocks[to].predecessors[g->blocks[to].predecessor_count++] = from;
            g->blocks[from].successors[g->blocks[from].successor_count++] = to;
        }
    }
}

smelt_status paths_open(struct unit *unit, const struct flow *flow, bool never, struct arena *arena,
                        struct path_graph *g) {
    size_t count = (size_t)flow->block_count;
    *g = (struct path_graph){.arena = arena, .loop_count = flow->loop_count};
    struct placing placing = {.g = g, .flow = flow, .place = arena_alloc(arena, count * sizeof(int))};
    g->blocks = arena_alloc(arena, count * sizeof *g->blocks);
    g->loops = arena_alloc(arena, (size_t)(flow->loop_count + 1) * sizeof *g->loops);
    if (!arena->failed) {
        g->region_words = (flow->block_count + flow->loop_count + 63) / 64;
        for (size_t i = 0; i < count; i++) placing.place[i] = -1;
        for (int i = 0; i < flow->loop_count; i++) g->loops[i].parent = flow->loops[i].parent;
        put_in_order(&placing, 0, -1);
        copy_edges(g, flow, placing.place, never);
    }
    return arena->failed ? unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu blocks", count)
                         : SMELT_OK;
}

void paths_forget(struct path_graph *g) {
    for (int i = 0; i < g->block_count; i++) {
        struct path_block *block = &g->blocks[i];
        block->divergent = block->join = block->short_of = block->trails = false;
        memset(block->regions, 0, (size_t)g->region_words * sizeof *block->regions);
    }
    for (int i = 0; i < g->loop_count; i++) g->loops[i].divergent = false;
    g->rounds_differ = false;
}

bool paths_within(const struct path_graph *g, int place, int loop) {
    return loop < 0 || (place >= g->loops[loop].header && place <= g->loops[loop].last);
}

/* ---- Paths. */

struct paths {
    struct path_graph *g;
    int level;      /* the loop they run in, -1: the function */
    int *label;     /* by place: the path that reaches it; its own place if several do */
    bool *leaving;  /* by place: only lanes that leave for good reach it */
    bool *waited;   /* by place: some path to it contains a barrier */
    uint64_t *from; /* by place: a set, the beginnings of the paths that reach it */
    uint64_t *gone; /* and those of them whose lanes left others behind at a barrier */
    uint64_t lost;  /* the beginnings of paths that ended after a barrier */
    int waiting;    /* labelled places not yet visited, */
    int meeting;    /* and those of them that are not on a path that leaves for good */
    unsigned starts;
    bool left;     /* a path left the loop, */
    bool repeated; /* went back to its header, */
    bool ended;    /* or came to the thread's end */
};

static void set_bit(uint64_t *set, int bit) {
    set[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* Whether the edge leads to where no barrier can follow, while other lanes may go on to one. */
static bool leaves_others(const struct path_graph *g, int from, int target) {
    const struct path_block *block = &g->blocks[from];
    bool others_wait = false;
    for (int s = 0; s < block->successor_count; s++) others_wait |= g->blocks[block->successors[s]].waits;
    return others_wait && !g->blocks[target].waits;
}

bool paths_leave_for_good(const struct path_graph *g, int from, int target) {
    return g->blocks[target].apart && leaves_others(g, from, target);
}

static void end(struct paths *p, int from) {
    p->ended = true;
    if (p->waited[from]) p->lost |= p->from[from];
}

static void come(struct paths *p, int from, int target, int label, bool leaving) {
    struct path_graph *g = p->g;
    if (p->label[target] == NO_LABEL) {
        p->label[target] = label;
        p->leaving[target] = leaving;
        p->waiting++;
        p->meeting += !leaving;
    } else if (p->label[target] != label) {
        p->label[target] = target;
        g->blocks[target].join = true;
    }
    if (p->leaving[target] && !leaving) {
        p->leaving[target] = false;
        p->meeting++;
    }
    p->waited[target] |= p->waited[from];
    p->from[target] |= p->from[from];
    p->gone[target] |= leaves_others(g, from, target) ? p->from[from] : p->gone[from];
}

static void reach(struct paths *p, int from, int target, int label) {
    struct path_graph *g = p->g;
    bool leaving = p->leaving[from] || paths_leave_for_good(g, from, target);
    if (leaving || g->blocks[target].leaf) end(p, from);
    if (g->blocks[target].leaf) return;
    if (!paths_within(g, target, p->level)) {
        p->left = true;
    } else if (p->level >= 0 && target == g->loops[p->level].header) {
        p->repeated = true;
        if (p->label[target] == NO_LABEL) p->label[target] = label;
        if (p->label[target] != label) g->blocks[target].join = true;
    } else if (target > from) { /* otherwise the next round of an inner loop, whose header has its label */
        come(p, from, target, label, leaving);
    }
}

/* The first block of a path, whose lanes have been nowhere else. */
static void begin(struct paths *p, int from, int target) {
    p->from[from] = UINT64_C(1) << (p->starts < MOST_STARTS ? p->starts : MOST_STARTS - 1);
    p->starts++;
    reach(p, from, target, target);
    p->from[from] = 0;
}

static bool have_met(const struct paths *p, int place) {
    uint64_t here = p->from[place] & ~p->gone[place];
    return p->meeting == 1 && !p->leaving[place] && !p->left && !p->repeated && !(p->lost & ~here);
}

/* Lanes that have met go on and may reach a barrier, also in the next round, before the lanes that left have
 * ended. */
static void trail(struct path_graph *g, int place, int level) {
    int last = level < 0 ? g->block_count - 1 : g->loops[level].last;
    for (int i = level < 0 ? place : g->loops[level].header; i <= last; i++) g->blocks[i].trails = true;
}

/* Whether the block, or a loop that begins there, contains a barrier: a lane in it may have waited in an
 * earlier round. */
static bool waits_around(const struct path_graph *g, int place) {
    int loop = g->blocks[place].loop, last = place;
    if (loop >= 0 && g->loops[loop].header == place) last = g->loops[loop].last;
    for (; place <= last; place++)
        if (g->blocks[place].barrier) return true;
    return false;
}

static void follow(struct paths *p, int first, int region) {
    struct path_graph *g = p->g;
    int last = p->level < 0 ? g->block_count - 1 : g->loops[p->level].last;
    for (int place = first; place <= last && p->waiting; place++) {
        if (p->label[place] == NO_LABEL) continue;
        p->waiting--;
        if (have_met(p, place)) {
            p->meeting = 0;
            if (p->waiting) trail(g, place, p->level);
            continue;
        }
        p->meeting -= !p->leaving[place];
        struct path_block *block = &g->blocks[place];
        p->waited[place] |= waits_around(g, place);
        set_bit(block->regions, region);
        for (int s = 0; s < block->successor_count; s++)
            reach(p, place, block->successors[s], p->label[place]);
    }
}

static bool start(struct path_graph *g, struct paths *p, int level) {
    size_t count = (size_t)g->block_count;
    *p = (struct paths){.g = g, .level = level};
    p->label = arena_alloc(g->arena, count * sizeof *p->label);
    p->leaving = arena_alloc(g->arena, count);
    p->waited = arena_alloc(g->arena, count);
    p->from = arena_alloc(g->arena, count * sizeof *p->from);
    p->gone = arena_alloc(g->arena, count * sizeof *p->gone);
    for (int i = 0; p->label && i < g->block_count; i++) p->label[i] = NO_LABEL;
    return !g->arena->failed;
}

/* In all code that may follow, lanes may have ended. */
static void lose_lanes(struct path_graph *g, int place) {
    int *waiting = arena_alloc(g->arena, (size_t)(g->block_count + 1) * sizeof *waiting), count = 0;
    if (!waiting) return;
    waiting[count++] = place;
    while (count) {
        const struct path_block *block = &g->blocks[waiting[--count]];
        for (int s = 0; s < block->successor_count; s++) {
            struct path_block *next = &g->blocks[block->successors[s]];
            if (next->short_of) continue;
            next->short_of = true;
            waiting[count++] = block->successors[s];
        }
    }
}

static void part_rounds(struct path_graph *g, int loop) {
    struct path_loop *l = &g->loops[loop];
    struct paths p;
    if (l->divergent || !start(g, &p, l->parent)) return;
    l->divergent = g->rounds_differ = true;
    for (int place = l->header; place <= l->last; place++) {
        const struct path_block *block = &g->blocks[place];
        for (int s = 0; s < block->successor_count; s++) {
            int target = block->successors[s];
            if (paths_within(g, target, loop)) continue;
            g->blocks[target].join = true; /* the lanes come from different rounds */
            begin(&p, place, target);
        }
    }
    follow(&p, l->last + 1, g->block_count + loop);
    if (p.ended) lose_lanes(g, l->header);
    if (p.left && p.level >= 0) part_rounds(g, p.level);
}

void paths_part(struct path_graph *g, int place) {
    struct path_block *block = &g->blocks[place];
    struct paths p;
    if (block->divergent || !start(g, &p, block->loop)) return;
    block->divergent = true;
    for (int s = 0; s < block->successor_count; s++) begin(&p, place, block->successors[s]);
    follow(&p, place + 1, place);
    if (p.ended) lose_lanes(g, place);
    if (p.left && p.level >= 0) part_rounds(g, p.level);
}
