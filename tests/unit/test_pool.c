/* The thread pool: each piece of a job runs once, and no pool thread shares the caller's CPU. */
#include "unit.h"

#include "device/cpu/pool.h"

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_PIECES 64

static smelt_status count_pieces(void *job, uint64_t first, uint64_t last) {
    atomic_int *runs = job;
    for (uint64_t i = first; i < last; i++) atomic_fetch_add(&runs[i], 1);
    return SMELT_OK;
}

/* Returns how many pieces did not run exactly once. */
static int run_and_count(int pieces) {
    atomic_int runs[MOST_PIECES] = {0};
    int wrong = pool_run(count_pieces, runs, (uint64_t)pieces, "count") != SMELT_OK;
    for (int i = 0; i < MOST_PIECES; i++) wrong += runs[i] != (i < pieces);
    return wrong;
}

static void *call_often(void *seed) {
    unsigned state = *(unsigned *)seed;
    intptr_t wrong = 0;
    for (int round = 0; round < 2000; round++) {
        wrong += run_and_count(1 + rand_r(&state) % MOST_PIECES);
        /* Lets pool threads fall asleep, or almost. */
        struct timespec pause = {.tv_nsec = rand_r(&state) % 100000};
        if (rand_r(&state) % 8 == 0) nanosleep(&pause, NULL);
    }
    return (void *)wrong;
}

static void test_each_piece_runs_once(void **state) {
    (void)state;
    pthread_t threads[3];
    unsigned seeds[3] = {1, 2, 3};
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_often, &seeds[i]), 0);
    for (int i = 0; i < 3; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

static smelt_status fail_at_five(void *job, uint64_t first, uint64_t last) {
    (void)job;
    return first <= 5 && last > 5 ? fail(SMELT_ERROR_FAULT, "piece five") : SMELT_OK;
}

static void test_a_failure_is_returned_with_its_message(void **state) {
    (void)state;
    assert_int_equal(pool_run(fail_at_five, NULL, MOST_PIECES, "fail"), SMELT_ERROR_FAULT);
    assert_string_equal(smelt_error(), "piece five");
    assert_int_equal(run_and_count(MOST_PIECES), 0);
}

/* ---- One CPU is left to another process while it is busy. */

static bool pool_uses_all_cpus(void) {
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    return CPU_COUNT(&all) >= 2 && pool_size() == CPU_COUNT(&all);
}

struct beside {
    atomic_bool busy;
    atomic_int runs[MOST_PIECES], inside, most_inside; /* threads in pieces while it is busy */
    atomic_int after;                                  /* threads that have begun a piece since */
};

static bool is_busy(void *job) {
    return atomic_load(&((struct beside *)job)->busy);
}

static _Thread_local struct beside *counted;

static void sleep_a_millisecond(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* A piece of the second half, after the process has ended: waits until two threads are in such pieces. */
static void meet(struct beside *b) {
    atomic_store(&b->busy, false);
    if (counted != b) atomic_fetch_add(&b->after, 1);
    counted = b;
    for (int i = 0; i < 10000 && atomic_load(&b->after) < 2; i++) sleep_a_millisecond();
}

static smelt_status run_beside(void *job, uint64_t first, uint64_t last) {
    struct beside *b = job;
    for (uint64_t i = first; i < last; i++) {
        atomic_fetch_add(&b->runs[i], 1);
        int inside = atomic_fetch_add(&b->inside, 1) + 1, most = atomic_load(&b->most_inside);
        while (atomic_load(&b->busy) && inside > most &&
               !atomic_compare_exchange_weak(&b->most_inside, &most, inside)) {
        }
        sleep_a_millisecond();
        atomic_fetch_sub(&b->inside, 1);
        if (i >= MOST_PIECES / 2) meet(b);
    }
    return SMELT_OK;
}

static void test_a_cpu_is_left_to_another_process_while_it_is_busy(void **state) {
    (void)state;
    if (!pool_uses_all_cpus()) SKIP_TEST("the pool does not use all CPUs, or there is only one");
    struct beside b = {.busy = true};
    assert_int_equal(pool_run_beside(run_beside, &b, MOST_PIECES, "beside", is_busy), SMELT_OK);
    for (int i = 0; i < MOST_PIECES; i++) assert_int_equal(b.runs[i], 1);
    assert_in_range(b.most_inside, 1, pool_size() - 1);
    assert_true(b.after >= 2);
    assert_int_equal(run_and_count(MOST_PIECES), 0);
}

/* The thread that has left its CPU looks at the process in short steps at first: a job's end waits for it. */

#define LOOKS 5
#define MOST_LOOKING 3e-3 /* seconds; steps of a millisecond would take 4e-3 */

struct looks {
    atomic_int count;
    struct timespec first, last;
};

static bool look(void *job) {
    struct looks *looks = job;
    int before = atomic_load(&looks->count);
    if (before == 0) clock_gettime(CLOCK_MONOTONIC, &looks->first);
    if (before == LOOKS - 1) clock_gettime(CLOCK_MONOTONIC, &looks->last);
    atomic_store(&looks->count, before + 1);
    return before < LOOKS - 1;
}

static smelt_status run_while_looked_at(void *job, uint64_t first, uint64_t last) {
    struct looks *looks = job;
    (void)first, (void)last;
    for (int i = 0; i < 10000 && atomic_load(&looks->count) < LOOKS; i++) sleep_a_millisecond();
    return SMELT_OK;
}

static void test_the_first_looks_at_the_other_process_follow_quickly(void **state) {
    (void)state;
    if (!pool_uses_all_cpus()) SKIP_TEST("the pool does not use all CPUs, or there is only one");
    double least = 1;
    uint64_t pieces = 64 * (uint64_t)pool_size(); /* enough that some are left at the last look */
    for (int i = 0; i < 30 && least > MOST_LOOKING; i++) {
        struct looks looks = {0};
        assert_int_equal(pool_run_beside(run_while_looked_at, &looks, pieces, "looks", look), SMELT_OK);
        assert_int_equal(looks.count, LOOKS);
        double seconds = (double)(looks.last.tv_sec - looks.first.tv_sec) +
                         1e-9 * (double)(looks.last.tv_nsec - looks.first.tv_nsec);
        if (seconds < least) least = seconds;
    }
    assert_true(least <= MOST_LOOKING);
}

/* ---- CPUs. */

static bool is_pool_thread(const char *task) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool read = fgets(name, sizeof name, file);
    fclose(file);
    return read && strncmp(name, "smelt pool", 10) == 0;
}

static int pool_threads_on(int cpu) {
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        cpu_set_t set;
        if (!is_pool_thread(task->d_name)) continue;
        CPU_ZERO(&set);
        assert_int_equal(sched_getaffinity((pid_t)strtol(task->d_name, NULL, 10), sizeof set, &set), 0);
        count += CPU_ISSET(cpu, &set);
    }
    closedir(tasks);
    return count;
}

static void test_no_pool_thread_shares_the_callers_cpu(void **state) {
    (void)state;
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    const char *setting = getenv("SMELT_PIN");
    if (setting && strcmp(setting, "0") == 0) SKIP_TEST("SMELT_PIN=0");
    if (CPU_COUNT(&all) < 2 || pool_size() > CPU_COUNT(&all))
        SKIP_TEST("fewer CPUs than threads, or only one");
    assert_int_equal(run_and_count(MOST_PIECES), 0);
    for (int turn = 0; turn < 2; turn++)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            cpu_set_t one;
            if (!CPU_ISSET(cpu, &all)) continue;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
            /* Longer than SECONDS_BETWEEN_MOVES of pool.c. */
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
            assert_int_equal(run_and_count(MOST_PIECES), 0);
            assert_int_equal(pool_threads_on(cpu), 0);
        }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_piece_runs_once),
        cmocka_unit_test(test_a_failure_is_returned_with_its_message),
        cmocka_unit_test(test_a_cpu_is_left_to_another_process_while_it_is_busy),
        cmocka_unit_test(test_the_first_looks_at_the_other_process_follow_quickly),
        cmocka_unit_test(test_no_pool_thread_shares_the_callers_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
