/* Background jobs when a process exits. */
#include "unit.h"

#include "base/background.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int pipe_ends[2];

static void pause_for(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {
    }
}

static void tell(char event) {
    if (write(pipe_ends[1], &event, 1) != 1) _exit(9);
}

static char next_event(void) {
    char event = 0;
    return read(pipe_ends[0], &event, 1) == 1 ? event : 0;
}

static void handler_of_library(void) {
    tell('h');
}

/* A call into a library that registers an exit handler. */
static smelt_status call_library(struct background_job *job) {
    (void)job;
    smelt_status status = background_enter_library();
    if (status != SMELT_OK) return status;
    (void)atexit(handler_of_library);
    tell('b');
    pause_for(700); /* longer than an exit waits for a thread that is in no library */
    tell('e');
    background_leave_library();
    return SMELT_OK;
}

static void nothing(struct background_job *job) {
    (void)job;
}

static void run_and_exit(void) {
    static struct background_job job = {.run = call_library, .hold = nothing, .let_go = nothing};
    background_start(&job);
    if (next_event() != 'b') _exit(8);
    exit(0);
}

static void test_an_exit_waits_for_a_call_of_a_library_before_the_librarys_handlers(void **state) {
    (void)state;
    int status;
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) run_and_exit();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(pipe_ends[1]);
    assert_int_equal(next_event(), 'e');
    assert_int_equal(next_event(), 'h');
    assert_int_equal(next_event(), 0);
    close(pipe_ends[0]);
}

/* ---- Jobs that begin later. */

static smelt_status tell_a(struct background_job *job) {
    (void)job;
    tell('a');
    return SMELT_OK;
}

static smelt_status tell_b(struct background_job *job) {
    (void)job;
    tell('b');
    return SMELT_OK;
}

/* The order in which two jobs ran, of which `a` was queued first and for later. */
static void run_two(double seconds, bool hurry, char *events) {
    struct background_job a = {.run = tell_a, .hold = nothing, .let_go = nothing};
    struct background_job b = {.run = tell_b, .hold = nothing, .let_go = nothing};
    assert_int_equal(pipe(pipe_ends), 0);
    background_start_later(&a, seconds);
    if (hurry) background_start(&a);
    background_start(&b);
    for (int n = 0; n < 2; n++) events[n] = next_event();
    assert_int_equal(background_wait(&a), SMELT_OK);
    assert_int_equal(background_wait(&b), SMELT_OK);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void test_a_job_for_later_lets_others_go_first(void **state) {
    (void)state;
    char events[3] = "";
    run_two(0.3, false, events);
    assert_string_equal(events, "ba");
}

static void test_a_job_for_later_can_be_hurried(void **state) {
    (void)state;
    char events[3] = "";
    run_two(1, true, events);
    assert_string_equal(events, "ab");
}

static void test_waiting_for_a_job_for_later_runs_it_at_once(void **state) {
    (void)state;
    struct background_job a = {.run = tell_a, .hold = nothing, .let_go = nothing};
    assert_int_equal(pipe(pipe_ends), 0);
    background_start_later(&a, 1);
    assert_true(background_is_pending(&a));
    assert_int_equal(background_wait(&a), SMELT_OK);
    assert_int_equal(next_event(), 'a');
    assert_false(background_is_pending(&a));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_exit_waits_for_a_call_of_a_library_before_the_librarys_handlers),
        cmocka_unit_test(test_a_job_for_later_lets_others_go_first),
        cmocka_unit_test(test_a_job_for_later_can_be_hurried),
        cmocka_unit_test(test_waiting_for_a_job_for_later_runs_it_at_once),
    };
    return cmocka_run_group_tests_name("jobs in the background", tests, NULL, NULL);
}
