/* The team: the threads hand-written code runs on. As many and pinned as smelt's own pool, so that what is
 * compared differs in the code alone. */
#ifndef SMELT_BENCH_CPU_THREADS_H
#define SMELT_BENCH_CPU_THREADS_H

#include <stdint.h>

/* One piece of a job; pieces of one job run at once on several threads. */
typedef void team_piece(void *job, int64_t index);

/* Starts the team, of `threads` threads with the caller. The first call decides; not from two threads. */
void team_start(int threads);

/* Binds the calling thread to the first CPU it may use, which no worker has unless there are more workers
 * than other CPUs. Threads it starts afterwards are bound alike: start those that shall not be before. */
void team_pin_caller(void);

/* The threads there are, the caller included; at least 1. */
int team_size(void);

/* Runs pieces 0 … count - 1, each once, and waits for them. One caller at a time. */
void team_run(team_piece *piece, void *job, int64_t count);

#endif
