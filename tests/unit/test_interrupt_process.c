/* Interrupts and the rest of the process: the host's own signals, the compiler's child and thread, and forked
 * children. On both engines of the CPU. */
#include "interrupts.h"

#include "base/alarm.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The host's signals. */

static atomic_int urgent;

static void on_urgent(int signal) {
    urgent += signal == SIGURG;
}

/* A host that blocks all signals, as threads of servers do, and one that uses the same signal. */
static void hosts_keep_their_signals(void **state) {
    struct sigaction action = {.sa_handler = on_urgent}, before;
    sigset_t all, mask, now;
    double latency;
    sigaction(SIGURG, &action, &before);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mask);
    interrupt_endless(&endless[0], *state, 1, 0, &latency);
    interrupt_endless(&endless[0], *state, 40, 0, &latency);
    pthread_sigmask(SIG_SETMASK, &mask, &now);
    assert_true(sigismember(&now, SIGURG) && sigismember(&now, SIGINT));
    assert_int_equal(urgent, 0);
    interrupt_endless(&endless[0], *state, 1, 0, &latency);
    assert_int_equal(urgent, 0);
    raise(SIGURG);
    assert_int_equal(urgent, 1);
    urgent = 0;
    sigaction(SIGURG, &before, NULL);
}

static atomic_int handled;

static void on_signal(int signal) {
    (void)signal;
    handled++;
}

static void ignore(void *context) {
    (void)context;
}

/* The thread that watches time-outs is started while the signal is not blocked. */
static void background_threads_take_no_signals(void **state) {
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigset_t users, mask, pending;
    struct alarm *alarm;
    (void)state;
    OK(alarm_arm(60, ignore, NULL, &alarm));
    sigaction(SIGUSR1, &action, &before);
    sigemptyset(&users);
    sigaddset(&users, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &users, &mask);
    kill(getpid(), SIGUSR1);
    pause_for(0.05);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGUSR1));
    assert_int_equal(handled, 0);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    assert_int_equal(handled, 1);
    handled = 0;
    sigaction(SIGUSR1, &before, NULL);
    alarm_disarm(alarm);
}

/* ---- Compiling. */

static void compilers_are_interrupted(void **state) {
    char script[] = "/tmp/smelt-clang-XXXXXX", mark[64], text[400];
    int fd = mkstemp(script);
    struct run run = {.kernel = &endless[0], .device = *state, .groups = 1};
    struct raiser raiser = {.after = 0.05, .once = mark};
    pthread_t thread;
    long child = 0;
    snprintf(mark, sizeof mark, "%s.pid", script);
    snprintf(text, sizeof text,
             "#!/bin/sh\nif [ \"$1\" = --version ]; then echo clang version 19.1.7; exit; fi\n"
             "echo $$ > %s; exec sleep 100\n",
             mark);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    fchmod(fd, 0700);
    close(fd);
    setenv("SMELT_CLANG", script, 1);
    OK(smelt_interrupt_create(&run.interrupt));
    raiser.interrupt = run.interrupt;
    assert_int_equal(pthread_create(&thread, NULL, raise_later, &raiser), 0);
    run_on_thread(&run);
    pthread_join(thread, NULL);
    unsetenv("SMELT_CLANG");
    expect_interrupted(&run);
    assert_true(run.ended - raiser.raised < SOON);
    FILE *file = fopen(mark, "r");
    assert_true(file && fscanf(file, "%ld", &child) == 1 && child > 0);
    fclose(file);
    assert_true(kill((pid_t)child, 0) != 0);
    unlink(mark);
    unlink(script);
    /* With the interrupt cleared and the real compiler, it compiles and runs. */
    smelt_interrupt_clear(run.interrupt);
    run.value = 1;
    run_on_thread(&run);
    OK(run.status);
    smelt_interrupt_release(run.interrupt);
}

/* Not too large to be unrolled on request, alone. */
#define LOOP                                                             \
    "\n#pragma clang loop unroll(full)\nfor (int k = 0; k < 300; k++) {" \
    "x = precise::sin(x) + precise::pow(x, float(k)); if (x > 3) x -= a[k % 4]; }\n"
#define LOOPS LOOP LOOP LOOP LOOP LOOP

/* LLVM cannot be stopped, and is not waited for. Little for clang to read, much for LLVM to unroll. */
static void llvm_is_left_alone(void **state) {
    static const struct endless large = {.name = "large",
                                         .body = "float x = a[0];\n" LOOPS LOOPS LOOPS LOOPS "out[0] = x;"};
    struct run run = {.kernel = &large, .device = *state, .groups = 1};
    struct raiser raiser = {.after = 1};
    pthread_t thread;
    OK(smelt_interrupt_create(&run.interrupt));
    raiser.interrupt = run.interrupt;
    assert_int_equal(pthread_create(&thread, NULL, raise_later, &raiser), 0);
    run_on_thread(&run);
    pthread_join(thread, NULL);
    expect_interrupted(&run);
    assert_true(run.ended - raiser.raised < SOON);
    OK(run_square(*state, 640, NULL));
    smelt_interrupt_release(run.interrupt);
}

/* ---- Forked children. */

static int in_child(const char *device) {
    double latency;
    alarm(60);
    OK(run_square(device, 6400, NULL));
    interrupt_endless(&endless[0], device, 1, 0, &latency);
    interrupt_endless(&endless[0], device, 40, 0, &latency);
    struct run run = {.kernel = &endless[0], .device = device, .groups = 40, .timeout = 0.05};
    run_on_thread(&run);
    return run.status == SMELT_ERROR_TIMEOUT ? 0 : 1;
}

static void forked_children_launch(void **state) {
#if defined(__SANITIZE_THREAD__)
    print_message("ThreadSanitizer cannot follow a forked child that starts threads: skipped\n");
    skip();
#endif
    struct run run = {.kernel = &endless[3], .device = *state, .groups = 40};
    struct run timed = {.kernel = &endless[0], .device = *state, .groups = 1, .timeout = 0.01};
    pthread_t thread;
    OK(smelt_interrupt_create(&run.interrupt));
    run_on_thread(&timed);
    assert_int_equal(timed.status, SMELT_ERROR_TIMEOUT);
    assert_int_equal(pthread_create(&thread, NULL, run_on_thread, &run), 0);
    pause_for(0.2);
    for (int i = 0; i < 3; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) _exit(in_child(*state));
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status)) FAIL_TEST("the child ended with status %x", status);
    }
    smelt_interrupt_raise(run.interrupt);
    pthread_join(thread, NULL);
    expect_interrupted(&run);
    smelt_interrupt_release(run.interrupt);
}

int main(void) {
    smelt_set_kernel_log(drop_line, NULL);
    smelt_set_log(drop_log, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(background_threads_take_no_signals),
        BOTH(hosts_keep_their_signals),
        BOTH(compilers_are_interrupted),
        BOTH(forked_children_launch),
        {"llvm_is_left_alone", llvm_is_left_alone, NULL, NULL, simd_engine},
    };
    return cmocka_run_group_tests_name("interrupts and the process", tests, open_square, NULL);
}
