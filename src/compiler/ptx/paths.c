/* The paths of one divergent branch or loop, followed to where all lanes have met again.
 *
 * Masks rest on this: of the lanes that an operation names, each comes to it or ends, and none waits for
 * another before. So a lane that will wait at a barrier for the others must be together with them, or in no
 * mask of theirs. In a kernel that is allowed, lanes that stand at a barrier are all that have not ended and
 * are not on their way out. Hence three kinds of paths:
 *
 * - A path to the thread's end is none: the hardware waits for no lane that has ended.
 * - Nor is one that leaves for good: from where a barrier may still come, to a way apart. Its lanes perform
 *   what they do there with each other alone, under masks of the branch where they left, and end. Those who
 *   go on meet without them, perhaps behind a barrier, and may name them. Lanes that leave in one phase by
 *   several branches, or in several rounds, first meet with all others (meet.c) and leave from there.
 * - Paths that go on, with barriers or without, meet where they join. But where a path ended that had
 *   barriers, and never joined another, its lanes may be waiting for those of the path that is left: these
 *   must not wait for them. Nor must those that left a path for a way they share with others, while the rest
 *   of it went on to a barrier and never came there. */
#include "compiler/ptx/divergence.h"

#define NO_LABEL (-1)
#define MOST_STARTS 64

struct paths {
    struct divergence *d;
    int level;      /* the loop they run in, -1: the function */
    int *label;     /* by place: which path comes here; its own place where several do */
    bool *leaving;  /* by place: nobody comes here but who leaves for good */
    bool *waited;   /* by place: at a barrier, on some path to here */
    uint64_t *from; /* by place: a set, the beginnings of the paths that come here */
    uint64_t *gone; /* and of those, by which lanes come here that left others to a barrier */
    uint64_t lost;  /* the beginnings of paths that ended behind a barrier */
    int waiting;    /* labelled places not yet visited, */
    int meeting;    /* and those of them that nobody leaves by */
    int starts;
    bool left;     /* a path left the loop, */
    bool repeated; /* went back to its header, */
    bool ended;    /* or came to the thread's end */
};

static void set_bit(uint64_t *set, int bit) {
    set[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* To where no barrier can come, while others may go on to one? */
static bool leaves_others(const struct divergence *d, int from, int target) {
    const struct divergence_block *block = &d->blocks[from];
    bool others_wait = false;
    for (int s = 0; s < block->successor_count; s++) others_wait |= d->blocks[block->successors[s]].waits;
    return others_wait && !d->blocks[target].waits;
}

bool divergence_leaves_for_good(const struct divergence *d, int from, int target) {
    return d->blocks[target].apart && leaves_others(d, from, target);
}

static void end(struct paths *p, int from) {
    p->ended = true;
    if (p->waited[from]) p->lost |= p->from[from];
}

static void come(struct paths *p, int from, int target, int label, bool leaving) {
    struct divergence *d = p->d;
    if (p->label[target] == NO_LABEL) {
        p->label[target] = label;
        p->leaving[target] = leaving;
        p->waiting++;
        p->meeting += !leaving;
    } else if (p->label[target] != label) {
        p->label[target] = target;
        d->blocks[target].join = true;
    }
    if (p->leaving[target] && !leaving) {
        p->leaving[target] = false;
        p->meeting++;
    }
    p->waited[target] |= p->waited[from];
    p->from[target] |= p->from[from];
    p->gone[target] |= leaves_others(d, from, target) ? p->from[from] : p->gone[from];
}

static void reach(struct paths *p, int from, int target, int label) {
    struct divergence *d = p->d;
    bool leaving = p->leaving[from] || divergence_leaves_for_good(d, from, target);
    if (leaving || d->blocks[target].leaf) end(p, from);
    if (d->blocks[target].leaf) return;
    if (!divergence_is_within(d, target, p->level)) {
        p->left = true;
    } else if (p->level >= 0 && target == d->loops[p->level].header) {
        p->repeated = true;
        if (p->label[target] == NO_LABEL) p->label[target] = label;
        if (p->label[target] != label) d->blocks[target].join = true;
    } else if (target > from) { /* else an inner loop's next round: its header has its label */
        come(p, from, target, label, leaving);
    }
}

/* A path's first block: of which nobody has been anywhere else. */
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

/* Who has met goes on, and may come to a barrier, also in the next round, before those have ended who left.
 */
static void trail(struct divergence *d, int place, int level) {
    int last = level < 0 ? d->block_count - 1 : d->loops[level].last;
    for (int i = level < 0 ? place : d->loops[level].header; i <= last; i++) d->blocks[i].trails = true;
}

/* A barrier stands here, or in a loop that begins here: a lane in it may have waited in an earlier round. */
static bool waits_around(const struct divergence *d, int place) {
    int loop = d->blocks[place].loop, last = place;
    if (loop >= 0 && d->loops[loop].header == place) last = d->loops[loop].last;
    for (; place <= last; place++)
        if (divergence_has_barrier(d->blocks[place].block)) return true;
    return false;
}

static void follow(struct paths *p, int first, int region) {
    struct divergence *d = p->d;
    int last = p->level < 0 ? d->block_count - 1 : d->loops[p->level].last;
    for (int place = first; place <= last && p->waiting; place++) {
        if (p->label[place] == NO_LABEL) continue;
        p->waiting--;
        if (have_met(p, place)) {
            p->meeting = 0;
            if (p->waiting) trail(d, place, p->level);
            continue;
        }
        p->meeting -= !p->leaving[place];
        struct divergence_block *block = &d->blocks[place];
        p->waited[place] |= waits_around(d, place);
        set_bit(block->regions, region);
        for (int s = 0; s < block->successor_count; s++)
            reach(p, place, block->successors[s], p->label[place]);
    }
}

static bool start(struct divergence *d, struct paths *p, int level) {
    size_t count = (size_t)d->block_count;
    *p = (struct paths){.d = d, .level = level};
    p->label = arena_alloc(&d->arena, count * sizeof *p->label);
    p->leaving = arena_alloc(&d->arena, count);
    p->waited = arena_alloc(&d->arena, count);
    p->from = arena_alloc(&d->arena, count * sizeof *p->from);
    p->gone = arena_alloc(&d->arena, count * sizeof *p->gone);
    for (int i = 0; p->label && i < d->block_count; i++) p->label[i] = NO_LABEL;
    return !d->arena.failed;
}

/* Lanes may have ended in all that can come after these blocks. */
static void lose_lanes(struct divergence *d, int place) {
    int *waiting = arena_alloc(&d->arena, (size_t)(d->block_count + 1) * sizeof *waiting), count = 0;
    if (!waiting) return;
    waiting[count++] = place;
    while (count) {
        const struct divergence_block *block = &d->blocks[waiting[--count]];
        for (int s = 0; s < block->successor_count; s++) {
            struct divergence_block *next = &d->blocks[block->successors[s]];
            if (next->short_of) continue;
            next->short_of = true;
            waiting[count++] = block->successors[s];
        }
    }
}

static void part_rounds(struct divergence *d, int loop) {
    struct divergence_loop *l = &d->loops[loop];
    struct paths p;
    if (l->divergent || !start(d, &p, l->parent)) return;
    l->divergent = d->rounds_differ = true;
    for (int place = l->header; place <= l->last; place++) {
        const struct divergence_block *block = &d->blocks[place];
        for (int s = 0; s < block->successor_count; s++) {
            int target = block->successors[s];
            if (divergence_is_within(d, target, loop)) continue;
            d->blocks[target].join = true; /* the lanes come from different rounds */
            begin(&p, place, target);
        }
    }
    follow(&p, l->last + 1, d->block_count + loop);
    if (p.ended) lose_lanes(d, l->header);
    if (p.left && p.level >= 0) part_rounds(d, p.level);
}

void divergence_part(struct divergence *d, int place) {
    struct divergence_block *block = &d->blocks[place];
    struct paths p;
    if (block->divergent || !start(d, &p, block->loop)) return;
    block->divergent = true;
    for (int s = 0; s < block->successor_count; s++) begin(&p, place, block->successors[s]);
    follow(&p, place + 1, place);
    if (p.ended) lose_lanes(d, place);
    if (p.left && p.level >= 0) part_rounds(d, p.level);
}
