/* The clock of smelt bench linalg. */
#include "bench/cpu/threads.h"
#include "bench/linalg/linalg.h"

#include <time.h>

double linalg_now(void) {
    struct timespec time;
    if (team_size() > 1) return bench_now();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
