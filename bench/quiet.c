#include "bench/quiet.h"

#define STEP 8e-3     /* seconds of one look */
#define QUIET 8e-4    /* processor time in a step; a spinning thread takes ten times as much … */
#define QUIET_STEPS 3 /* … unless the machine is busy: then it may wait for its turn as long as this */
#define MOST_STEPS 64

static double seconds_of(clockid_t clock) {
    struct timespec time;
    return clock_gettime(clock, &time) == 0 ? (double)time.tv_sec + 1e-9 * (double)time.tv_nsec : 0;
}

void bench_wait_quiet(clockid_t process) {
    const struct timespec step = {.tv_nsec = (long)(STEP * 1e9)};
    double before = seconds_of(process);
    for (int i = 0, quiet = 0; i < MOST_STEPS && quiet < QUIET_STEPS; i++) {
        (void)nanosleep(&step, NULL);
        double now = seconds_of(process);
        quiet = now - before < QUIET ? quiet + 1 : 0;
        before = now;
    }
}
