/* Jobs on the threads of GNU's OpenMP, where the process has it. */
#ifndef SMELT_DEVICE_CPU_TEAM_H
#define SMELT_DEVICE_CPU_TEAM_H

#include <stdbool.h>

/* Calls work(NULL) on that many threads, the caller included, and returns when all calls have. False: nothing
 * was done, as OpenMP is not loaded, has another number of threads, or this is not the main thread. */
bool pool_team_run(void (*work)(void *), int threads);

/* In a forked child, where OpenMP's threads are missing. */
void pool_team_after_fork(void);

#endif
