#include "bench/quiet.h"

#include <stdbool.h>
#include <stddef.h>

/* Seconds. The first step decides whether there is anything to wait for. */
#define FIRST_STEP 1e-3
#define STEP 8e-3
/* Processor time per second below which a process is quiet. A spinning thread takes 1. */
#define QUIET 0.1
/* More than one: on a busy machine, a spinning thread may not run during a whole step. */
#define QUIET_STEPS 3
#define MOST_STEPS 64

static double seconds_of(clockid_t clock) {
    struct timespec time;
    return clock_gettime(clock, &time) == 0 ? (double)time.tv_sec + 1e-9 * (double)time.tv_nsec : 0;
}

/* Whether the process is quiet for this number of seconds. */
static bool is_quiet(clockid_t process, double seconds) {
    const struct timespec step = {.tv_nsec = (long)(seconds * 1e9)};
    double before = seconds_of(process);
    (void)nanosleep(&step, NULL);
    return seconds_of(process) - before < QUIET * seconds;
}

void bench_wait_quiet(clockid_t process) {
    if (is_quiet(process, FIRST_STEP)) return;
    for (int i = 0, quiet = 0; i < MOST_STEPS && quiet < QUIET_STEPS; i++)
        quiet = is_quiet(process, STEP) ? quiet + 1 : 0;
}
