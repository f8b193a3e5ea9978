/* Measurements wait for threads that still spin. */
#include "unit.h"

#include "bench/quiet.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define TRIALS 100 /* on a busy machine, a thread that spins may not run for some milliseconds */

static double seconds_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct spinner {
    double seconds; /* of processor time */
    atomic_bool stop, ended;
};

static void *spin(void *context) {
    struct spinner *spinner = context;
    double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + spinner->seconds;
    while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end && !atomic_load(&spinner->stop)) continue;
    atomic_store(&spinner->ended, true);
    return NULL;
}

/* The seconds that the wait took; *ended: whether the thread had ended by then. */
static double wait_beside(double seconds, bool *ended) {
    struct spinner spinner = {.seconds = seconds};
    double before = seconds_of(CLOCK_MONOTONIC);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, spin, &spinner), 0);
    bench_wait_quiet(CLOCK_PROCESS_CPUTIME_ID);
    double waited = seconds_of(CLOCK_MONOTONIC) - before;
    *ended = atomic_load(&spinner.ended);
    atomic_store(&spinner.stop, true);
    pthread_join(thread, NULL);
    return waited;
}

static void a_thread_that_spins_is_waited_for(void **state) {
    (void)state;
    bool ended = false;
    for (int i = 0; i < TRIALS && !ended; i++) wait_beside(0.02, &ended);
    assert_true(ended);
}

static void the_wait_ends_though_a_thread_goes_on(void **state) {
    (void)state;
    bool ended;
    assert_true(wait_beside(30, &ended) < 20);
    assert_false(ended);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_spins_is_waited_for),
        cmocka_unit_test(the_wait_ends_though_a_thread_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
