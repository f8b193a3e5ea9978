/* Libraries keep their threads spinning for a while after a call: OpenMP's runtime, in PyTorch, for some 10
 * ms. Whatever is measured next would share its processors with them. */
#ifndef SMELT_BENCH_QUIET_H
#define SMELT_BENCH_QUIET_H

#include <time.h>

/* Returns when the process of the clock (CLOCK_PROCESS_CPUTIME_ID: this one) has all but stopped running, or
 * after half a second. If it does not run at all, that takes a millisecond: GPUs that idle for longer become
 * slower. */
void bench_wait_quiet(clockid_t process);

#endif
