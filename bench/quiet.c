#include "bench/quiet.h"

#include <stdbool.h>
#include <stddef.h>

/* Seconds of the first look, which decides whether there is anything to wait for, and of the others. */
#define FIRST_STEP 1e-3
#define STEP 8e-3
#define QUIET 0.1     /* processors that are in use; a spinning thread takes one … */
#define QUIET_STEPS 3 /* … unless the machine is busy: then it may wait for its turn as long as this */
#define MOST_STEPS 64

static double seconds_of(clockid_t clock) {
    struct timespec time;
    return clock_gettime(clock, &time) == 0 ? (double)time.tv_sec + 1e-9 * (double)time.tv_nsec : 0;
}

/* Whether the process hardly runs for so many seconds. */
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
