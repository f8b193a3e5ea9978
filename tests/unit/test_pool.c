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
    if (setting && strcmp(setting, "0") == 0) skip();
    if (CPU_COUNT(&all) < 2 || pool_size() > CPU_COUNT(&all)) skip();
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
        cmocka_unit_test(test_no_pool_thread_shares_the_callers_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
