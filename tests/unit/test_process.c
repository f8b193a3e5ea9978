/* The child process: its input, outputs, end and limits, in every kind of host. */
#include "unit.h"

#include "base/clock.h"
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct process_result run(const char *script, const char *input, double seconds) {
    const char *const arguments[] = {"sh", "-c", script, NULL};
    struct process_request request = {
        .arguments = arguments, .input = input, .input_size = strlen(input), .seconds = seconds};
    struct process_result result;
    assert_int_equal(process_run(&request, &result), SMELT_OK);
    return result;
}

static int open_descriptors(void) {
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count;
}

static void input_and_both_outputs_arrive_whole(void **state) {
    (void)state;
    size_t size = 3 << 20;
    char *input = malloc(size + 1);
    for (size_t i = 0; i < size; i++) input[i] = (char)('a' + i % 23);
    input[size] = 0;
    struct process_result result = run("cat; echo problem >&2; exit 7", input, 60);
    assert_int_equal(result.output.length, size);
    assert_memory_equal(result.output.data, input, size);
    assert_string_equal(text_string(&result.messages), "problem\n");
    assert_int_equal(result.exit_code, 7);
    assert_int_equal(result.signal, 0);
    process_result_free(&result);
    free(input);
}

static void an_ending_by_signal_is_told(void **state) {
    (void)state;
    struct process_result result = run("kill -SEGV $$", "", 60);
    assert_int_equal(result.signal, SIGSEGV);
    assert_int_equal(result.exit_code, -1);
    assert_false(result.timed_out);
    process_result_free(&result);
}

static void a_child_that_reads_nothing_is_no_problem(void **state) {
    (void)state;
    size_t size = 1 << 20;
    char *input = malloc(size + 1);
    memset(input, 'x', size);
    input[size] = 0;
    struct process_result result = run("exit 0", input, 60);
    assert_int_equal(result.exit_code, 0);
    process_result_free(&result);
    free(input);
}

static void a_child_without_end_is_stopped_with_all_it_started(void **state) {
    (void)state;
    struct process_result result = run("sleep 1000 & echo $!; sleep 1000", "", 0.03);
    assert_true(result.timed_out);
    pid_t grandchild = (pid_t)atoi(text_string(&result.output));
    assert_true(grandchild > 1);
    process_result_free(&result);
    /* It dies with the group; the process that inherits it may take a moment to collect it. */
    bool gone = false;
    for (int i = 0; i < 200 && !gone; i++) {
        char path[64], line[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", grandchild);
        FILE *file = fopen(path, "r");
        gone = !file || !fgets(line, sizeof line, file) || strstr(line, ") Z");
        if (file) fclose(file);
        usleep(10000);
    }
    assert_true(gone);
}

/* If the limit did not hold, the child would allocate about 512 MiB and succeed. */
static void memory_beyond_the_limit_is_refused(void **state) {
    (void)state;
    const char *const arguments[] = {"sh", "-c",
                                     "x=aaaaaaaa; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
                                     "20 21 22 23 24 25; do x=$x$x; done",
                                     NULL};
    struct process_request request = {.arguments = arguments, .seconds = 60, .memory_bytes = 64 << 20};
    struct process_result result;
    assert_int_equal(process_run(&request, &result), SMELT_OK);
    assert_false(result.timed_out);
    assert_int_not_equal(result.exit_code, 0);
    process_result_free(&result);
}

static void output_beyond_the_limit_is_stopped(void **state) {
    (void)state;
    const char *const arguments[] = {"sh", "-c", "exec yes", NULL};
    struct process_request request = {.arguments = arguments, .seconds = 60, .output_bytes = 1 << 20};
    struct process_result result;
    assert_int_equal(process_run(&request, &result), SMELT_OK);
    assert_int_equal(result.signal, SIGXFSZ);
    assert_int_equal(result.output.length, 1 << 20);
    process_result_free(&result);
}

/* However early it writes, and however it ends: the limit may take effect only after that. */
static void output_a_little_beyond_the_limit_counts_as_stopped(void **state) {
    (void)state;
    const char *const commands[] = {"exec head -c 1048600 /dev/zero", "exec head -c 1048600 /dev/zero >&2"};
    for (int i = 0; i < 2; i++) {
        const char *const arguments[] = {"sh", "-c", commands[i], NULL};
        struct process_request request = {.arguments = arguments, .seconds = 60, .output_bytes = 1 << 20};
        struct process_result result;
        assert_int_equal(process_run(&request, &result), SMELT_OK);
        assert_int_equal(result.signal, SIGXFSZ);
        assert_int_equal(result.exit_code, -1);
        assert_int_equal((i ? result.messages : result.output).length, 1 << 20);
        process_result_free(&result);
    }
}

static void a_program_that_is_not_there(void **state) {
    (void)state;
    const char *const arguments[] = {"no-such-program", NULL};
    struct process_request request = {.arguments = arguments};
    struct process_result result;
    assert_int_equal(process_run(&request, &result), SMELT_ERROR_NO_COMPILER);
    assert_string_equal(smelt_error(),
                        "program 'no-such-program' cannot be started: No such file or directory");
}

struct turn {
    smelt_status refusal;
    int begun, ended;
};

static smelt_status begin_turn(void *turn) {
    struct turn *mine = turn;
    if (mine->refusal != SMELT_OK) return fail(mine->refusal, "not now");
    mine->begun++;
    return SMELT_OK;
}
static void end_turn(void *turn) {
    ((struct turn *)turn)->ended++;
}

static smelt_status run_in_turn(const char *program, struct turn *turn, struct process_result *result) {
    const char *const arguments[] = {program, NULL};
    return process_run(
        &(struct process_request){.arguments = arguments, .begin = begin_turn, .end = end_turn, .turn = turn},
        result);
}

static void a_turn_lasts_as_long_as_the_child(void **state) {
    (void)state;
    struct turn turn = {0}, refused = {.refusal = SMELT_ERROR_LIMIT};
    struct process_result result;
    assert_int_equal(run_in_turn("true", &turn, &result), SMELT_OK);
    assert_int_equal(turn.begun, 1);
    assert_int_equal(turn.ended, 1);
    process_result_free(&result);
    assert_int_equal(run_in_turn("/no/such/program", &turn, &result), SMELT_ERROR_NO_COMPILER);
    assert_int_equal(turn.begun, 2);
    assert_int_equal(turn.ended, 2);
    assert_int_equal(run_in_turn("true", &refused, &result), SMELT_ERROR_LIMIT);
    assert_string_equal(smelt_error(), "not now");
    assert_int_equal(refused.ended, 0);
}

static void no_descriptor_leaks_either_way(void **state) {
    (void)state;
    int before = open_descriptors();
    int secret = open("/dev/null", O_RDONLY); /* without close-on-exec, as many hosts have them */
    int high = dup2(secret, 50);              /* above those that a child can get */
    assert_true(secret >= 3 && high == 50);
    struct process_result result = run("ls /proc/self/fd", "", 60);
    /* Its own three, and the one through which ls reads the folder. */
    assert_string_equal(text_string(&result.output), "0\n1\n2\n3\n");
    process_result_free(&result);
    close(secret);
    close(high);
    assert_int_equal(open_descriptors(), before);
}

static void the_extra_file_is_descriptor_three(void **state) {
    (void)state;
    const char *const arguments[] = {"sh", "-c", "cat /dev/fd/3 -", NULL};
    struct process_request request = {.arguments = arguments,
                                      .input = "input",
                                      .input_size = 5,
                                      .extra = "extra ",
                                      .extra_size = 6,
                                      .seconds = 60};
    struct process_result result;
    assert_int_equal(process_run(&request, &result), SMELT_OK);
    assert_string_equal(text_string(&result.output), "extra input");
    process_result_free(&result);
}

/* In a process of its own, since these hosts change the state of the whole process. Returns its exit status.
 */
static int in_a_host(void (*host)(void)) {
    pid_t child = fork();
    if (child == 0) {
        host();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#define REQUIRE(condition) \
    if (!(condition)) _exit(__LINE__ % 250 + 1)

static void check_endings(void) {
    struct process_result result = run("echo fine; exit 0", "", 60);
    REQUIRE(result.exit_code == 0 && strcmp(text_string(&result.output), "fine\n") == 0);
    process_result_free(&result);
    result = run("exit 3", "", 60);
    REQUIRE(result.exit_code == 3);
    process_result_free(&result);
    result = run("kill -ABRT $$", "", 60);
    REQUIRE(result.signal == SIGABRT);
    process_result_free(&result);
    result = run("sleep 1000", "", 0.3);
    REQUIRE(result.timed_out);
    process_result_free(&result);
}

static void ignores_children(void) {
    signal(SIGCHLD, SIG_IGN);
    check_endings();
    REQUIRE(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
}

static void collect_all(int number) {
    int saved = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = saved;
}

static void collects_every_child(void) {
    signal(SIGCHLD, collect_all);
    check_endings();
}

static void has_no_standard_streams(void) {
    close(0);
    close(1);
    close(2);
    check_endings();
}

static void has_children_of_its_own(void) {
    pid_t own = fork();
    if (own == 0) {
        usleep(50000);
        _exit(42);
    }
    check_endings();
    int status;
    REQUIRE(waitpid(own, &status, 0) == own && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    /* No child is left. */
    REQUIRE(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
}

static void blocks_signals(void) {
    sigset_t all, now;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    check_endings();
    sigprocmask(SIG_SETMASK, NULL, &now);
    REQUIRE(sigismember(&now, SIGTERM) && sigismember(&now, SIGPIPE));
}

static void every_host_gets_the_right_ending(void **state) {
    (void)state;
    assert_int_equal(in_a_host(ignores_children), 0);
    assert_int_equal(in_a_host(collects_every_child), 0);
    assert_int_equal(in_a_host(has_no_standard_streams), 0);
    assert_int_equal(in_a_host(has_children_of_its_own), 0);
    assert_int_equal(in_a_host(blocks_signals), 0);
}

static void *many(void *failures) {
    for (int i = 0; i < 10; i++) {
        char script[64];
        snprintf(script, sizeof script, "cat; exit %d", i);
        struct process_result result = run(script, "text", 60);
        if (result.exit_code != i || strcmp(text_string(&result.output), "text") != 0)
            __atomic_fetch_add((int *)failures, 1, __ATOMIC_SEQ_CST);
        process_result_free(&result);
    }
    return NULL;
}

static void many_threads_at_once(void **state) {
    (void)state;
    pthread_t threads[8];
    int failures = 0, before = open_descriptors();
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, many, &failures), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    assert_int_equal(failures, 0);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
    assert_int_equal(errno, ECHILD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_and_both_outputs_arrive_whole),
        cmocka_unit_test(an_ending_by_signal_is_told),
        cmocka_unit_test(a_child_that_reads_nothing_is_no_problem),
        cmocka_unit_test(a_child_without_end_is_stopped_with_all_it_started),
        cmocka_unit_test(memory_beyond_the_limit_is_refused),
        cmocka_unit_test(output_beyond_the_limit_is_stopped),
        cmocka_unit_test(output_a_little_beyond_the_limit_counts_as_stopped),
        cmocka_unit_test(a_program_that_is_not_there),
        cmocka_unit_test(a_turn_lasts_as_long_as_the_child),
        cmocka_unit_test(no_descriptor_leaks_either_way),
        cmocka_unit_test(the_extra_file_is_descriptor_three),
        cmocka_unit_test(every_host_gets_the_right_ending),
        cmocka_unit_test(many_threads_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
