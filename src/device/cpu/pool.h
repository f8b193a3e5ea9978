/* The thread pool: runs the pieces of a job on every CPU the process may use.
 * Size: SMELT_THREADS, else the CPUs of the affinity mask. Unless SMELT_PIN is 0, its threads are pinned to
 * CPUs of that mask. If there are enough, each has its own, and none has the caller's. */
#ifndef SMELT_DEVICE_CPU_POOL_H
#define SMELT_DEVICE_CPU_POOL_H

#include "base/error.h"

#include <pthread.h>

/* Runs the pieces [first, last) of a job; ranges come in any order, on any thread. The first failure is kept
 * and the job continues: the job itself may decide to do nothing. */
typedef smelt_status pool_pieces(void *job, uint64_t first, uint64_t last);

/* Runs pieces 0 … count-1 on the pool and the calling thread and returns when all are done: OK or the first
 * failure with its message. One job runs at a time; further callers queue. `name`: the job's, in traces. */
smelt_status pool_run(pool_pieces *pieces, void *job, uint64_t count, const char *name);

/* The same while another process computes something that speeds the job up. If the pool uses all CPUs, one
 * of its threads sleeps as long as is_busy(job) is true, so that the process has a CPU; then it joins in. */
smelt_status pool_run_beside(pool_pieces *pieces, void *job, uint64_t count, const char *name,
                             bool (*is_busy)(void *job));

/* Threads that work on a job, the caller included. */
int pool_size(void);

/* Starts a thread that may run kernels: signals meant for the host's threads are blocked there. 0 or an
 * error. */
int pool_start_thread(pthread_t *thread, void *(*work)(void *), void *argument);

#endif
