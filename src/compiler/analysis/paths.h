/* Divergent branches and loops: their paths, followed to where all lanes have met again. The analysis of
 * vectors (simd/analysis/divergence.c) and that of warps (ptx/warp/divergence.c) find which branches diverge,
 * and have the paths followed here.
 *
 * Blocks are numbered by *place*: a topological order of forward edges, in which each loop is in one piece.
 */
#ifndef SMELT_COMPILER_ANALYSIS_PATHS_H
#define SMELT_COMPILER_ANALYSIS_PATHS_H

#include "compiler/analysis/flow.h"

struct path_block {
    LLVMBasicBlockRef block;
    int flow; /* its index in struct flow */
    int dominator;
    int loop; /* the innermost around it, or -1 */
    int successor_count, predecessor_count;
    int *successors, *predecessors;
    /* Set by an engine whose lanes wait for each other, and otherwise false: */
    bool leaf; /* only the thread's end, or a path there without meeting others: lanes that go there are not
                  waited for */
    bool barrier; /* contains a threadgroup barrier */
    bool waits;   /* contains one, or one may follow */
    bool apart;   /* no operation comes from here to the thread's end; or no barrier, and lanes come from one
                     block, in the same round, and are alone as long as operations may come */
    /* Found: */
    bool divergent; /* its branch sends lanes different ways */
    bool join;      /* lanes meet that came different ways, or left a loop in different rounds */
    bool short_of;  /* lanes may have ended before, while others went on, */
    bool trails;    /* or may be about to, by operations that they perform without the others */
    /* A set: branches (by place) and loops (block_count + loop) whose lanes have not all met again. */
    uint64_t *regions;
};

/* Blocks header … last are the loop's. */
struct path_loop {
    int header, last, parent;
    bool divergent; /* lanes leave it in different rounds */
};

struct path_graph {
    struct arena *arena;
    struct path_block *blocks;
    struct path_loop *loops;
    int block_count, loop_count, region_words;
    bool rounds_differ; /* some loop is divergent */
};

/* The blocks in order, and nothing found. Everything lives in `arena`. `never`: edges that no thread takes
 * (__smelt_never) count, too. Requires: reducible control flow. */
smelt_status paths_open(struct unit *unit, const struct flow *flow, bool never, struct arena *arena,
                        struct path_graph *graph);
/* As after paths_open. */
void paths_forget(struct path_graph *graph);

/* loop -1: the function. */
bool paths_within(const struct path_graph *graph, int place, int loop);

/* The branch at `place` sends lanes different ways. Sets what follows from this for blocks and loops; a
 * failure is the arena's. */
void paths_part(struct path_graph *graph, int place);

/* Whether the block sends lanes to a path apart, and others to where a barrier may come. */
bool paths_leave_for_good(const struct path_graph *graph, int from, int target);

#endif
