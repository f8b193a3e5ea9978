/* Waits for other libraries' threads, which spin for a while after a call: those of OpenMP, in PyTorch, for
 * about 10 ms. What is measured next would share its CPUs with them. */
#ifndef SMELT_BENCH_QUIET_H
#define SMELT_BENCH_QUIET_H

#include <time.h>

/* Returns when the process of this clock (CLOCK_PROCESS_CPUTIME_ID: the caller's) hardly runs any more, or
 * after half a second. If it is quiet from the start, returns after a millisecond, as GPUs that idle for
 * longer lower their clock. */
void bench_wait_quiet(clockid_t process);

#endif
