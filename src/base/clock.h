/* The monotonic clock. */
#ifndef SMELT_BASE_CLOCK_H
#define SMELT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int64_t clock_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The time `seconds` (at most one) from now by one of the system's clocks, for waits until then. */
static inline struct timespec clock_after(clockid_t clock, double seconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += (long)(seconds * 1e9);
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

#endif
