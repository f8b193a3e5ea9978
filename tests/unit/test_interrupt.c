/* Interrupts: launches in progress end when their caller requests it, whatever their threads do, and nothing
 * else does. On both engines of the CPU; a test's state is the name of the engine. */
#include "interrupts.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void endless_kernels_end(void **state) {
    double latency;
    for (size_t k = 0; k < ENDLESS; k++)
        for (int64_t groups = 1; groups <= 40; groups += 39)
            interrupt_endless(&endless[k], *state, groups, 0, &latency);
}

/* ---- From a signal handler. */

static smelt_interrupt *_Atomic handlers;
static atomic_int handled;

static void on_alarm(int signal) {
    int before = errno;
    (void)signal;
    errno = 77;
    smelt_interrupt_raise(handlers);
    if (errno == 77) handled++;
    errno = before;
}

/* ThreadSanitizer calls a handler when the thread next calls an intercepted function, which an endless kernel
 * never does. There the signal is sent to another thread; otherwise to the one that runs the kernel. */
#if defined(__SANITIZE_THREAD__)
static const bool alarm_elsewhere = true;
#else
static const bool alarm_elsewhere = false;
#endif

static void *sleep_on(void *argument) {
    atomic_bool *stop = argument;
    while (!*stop) pause_for(0.005);
    return NULL;
}

static void a_signal_handler_may_raise(void **state) {
    struct run run = {.kernel = &endless[0], .device = *state};
    struct sigaction action = {.sa_handler = on_alarm}, before;
    atomic_bool stop = false;
    pthread_t sleeper;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    if (!alarm_elsewhere) pthread_sigmask(SIG_BLOCK, &set, NULL);
    assert_int_equal(pthread_create(&sleeper, NULL, sleep_on, &stop), 0);
    pthread_sigmask(alarm_elsewhere ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
    smelt_kernel *kernel = kernel_of(run.kernel);
    OK(smelt_interrupt_create(&run.interrupt));
    handlers = run.interrupt;
    handled = 0;
    sigaction(SIGALRM, &action, &before);
    for (run.groups = 1; run.groups <= 40; run.groups += 39) {
        struct itimerval timer = {.it_value = {.tv_usec = 50000}};
        run.value = 1;
        run_it(&run, kernel);
        OK(run.status);
        run.value = 0;
        setitimer(ITIMER_REAL, &timer, NULL);
        run_it(&run, kernel);
        expect_interrupted(&run);
        smelt_interrupt_clear(run.interrupt);
    }
    assert_int_equal(handled, 2);
    sigaction(SIGALRM, &before, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    stop = true;
    pthread_join(sleeper, NULL);
    smelt_interrupt_release(run.interrupt);
    smelt_kernel_release(kernel);
}

/* ---- At random times, during other launches. */

/* The raiser's orders: wait for a time, then raise. A pipe, so that it needs no lock. */
static void *raise_on_demand(void *argument) {
    int *pipes = argument;
    double after;
    while (read(pipes[0], &after, sizeof after) == sizeof after) {
        if (after < 0) return NULL;
        double until = clock_seconds() + after;
        while (clock_seconds() < until) sched_yield();
        smelt_interrupt_raise(handlers);
        if (write(pipes[3], &after, 1) != 1) return NULL;
    }
    return NULL;
}

struct bystander {
    const char *device;
    int64_t n;
    bool with_interrupt;
    atomic_bool stop;
    int runs, broken_sleeps;
};

/* Runs kernels that are not interrupted, and sleeps in between: no signal may end that early. */
static void *stand_by(void *argument) {
    struct bystander *bystander = argument;
    smelt_interrupt *interrupt = NULL;
    if (bystander->with_interrupt) OK(smelt_interrupt_create(&interrupt));
    while (!bystander->stop) {
        struct timespec time = {0, 300000};
        OK(run_square(bystander->device, bystander->n, interrupt));
        bystander->runs++;
        if (nanosleep(&time, NULL) != 0) bystander->broken_sleeps++;
    }
    smelt_interrupt_release(interrupt);
    return NULL;
}

#define STEPS                                                                         \
    "uint i = thread_position_in_grid.x; float x = float(i % 97); int n = int(a[0]);" \
    "for (int k = 0; k < n; k++) x = x * 0.75f + float(k % 5);"
#define STEPS_TOGETHER                                                                     \
    "threadgroup float s[128]; uint i = thread_position_in_grid.x; int n = int(a[0]) / 8;" \
    "uint t = thread_position_in_threadgroup.x; s[t] = float(i % 97);"                     \
    "for (int k = 0; k < n; k++) { threadgroup_barrier(mem_flags::mem_threadgroup);"       \
    "float x = s[(t + 1) % 128]; threadgroup_barrier(mem_flags::mem_threadgroup);"         \
    "s[t] = x * 0.75f + float(k % 5); } float x = s[t];"
#define STEPS_LOGGED                                                                       \
    "uint i = thread_position_in_grid.x; float x = float(i % 97); int n = int(a[0]) / 64;" \
    "for (int k = 0; k < n; k++) { x = x * 0.75f + float(k % 5);"                          \
    "if (k % 4 == int(i % 4)) os_log_default.log(\"step %d of %u: %f\", k, i, x); }"
#define STEPS_SUMMED                                                                      \
    "uint i = thread_position_in_grid.x; float x = float(i % 97); int n = int(a[0]) / 8;" \
    "for (int k = 0; k < n; k++) x = simd_sum(x) * 0.03125f + fmod(x, float(k % 5 + 3));"

struct steps {
    smelt_kernel *kernel;
    smelt_array *a;
    const char *device;
    int64_t groups;
    smelt_interrupt *interrupt;
};

static smelt_status run_steps(const struct steps *steps, smelt_array **out) {
    *out = NULL;
    return smelt_kernel_run(steps->kernel,
                            &(smelt_run_desc){.inputs = {steps->a},
                                              .grid = {128 * steps->groups},
                                              .threadgroup = {128},
                                              .output_shapes = {{1, {128 * steps->groups}}},
                                              .output_dtypes = {SMELT_FLOAT32},
                                              .device = steps->device,
                                              .interrupt = steps->interrupt},
                            out);
}

/* The number of steps that take about this long. */
static double calibrate(struct steps *steps, double seconds) {
    for (double count = 64;; count *= 2) {
        smelt_array *out;
        OK(smelt_array_fill(steps->a, count));
        double start = clock_seconds();
        OK(run_steps(steps, &out));
        double took = clock_seconds() - start;
        smelt_array_release(out);
        if (took >= seconds || count > 1e7) return count;
    }
}

static void interrupt_at_random(const char *body, const char *device, int64_t groups, int rounds,
                                int interrupted[2]) {
    static unsigned seed = 1;
    struct steps steps = {.device = device, .groups = groups, .a = filled(1, 0)};
    smelt_array *expected, *out;
    pthread_t thread;
    int pipes[4];
    OK(smelt_kernel_create(&(smelt_kernel_desc){.name = "steps",
                                                .source = body,
                                                .header = "#include <metal_logging>",
                                                .inputs = {"a"},
                                                .outputs = {"out"}},
                           &steps.kernel));
    OK(smelt_interrupt_create(&steps.interrupt));
    handlers = steps.interrupt;
    assert_true(pipe(pipes) == 0 && pipe(pipes + 2) == 0);
    assert_int_equal(pthread_create(&thread, NULL, raise_on_demand, pipes), 0);
    double longest = 0.005;
    OK(run_steps(&steps, &out));
    smelt_array_release(out);
    calibrate(&steps, longest / 2);
    OK(run_steps(&steps, &expected));
    size_t bytes = (size_t)smelt_array_size(expected) * sizeof(float);
    for (int round = 0; round < rounds; round++) {
        char answer;
        double after = longest * (double)(rand_r(&seed) % 1000) / 1000;
        assert_int_equal(write(pipes[1], &after, sizeof after), sizeof after);
        smelt_status status = run_steps(&steps, &out);
        assert_int_equal(read(pipes[2], &answer, 1), 1);
        if (status == SMELT_OK)
            assert_memory_equal(smelt_array_data(out), smelt_array_data(expected), bytes);
        else if (status != SMELT_ERROR_INTERRUPTED || out)
            FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
        interrupted[status == SMELT_OK]++;
        /* However fast the machine is at the moment, about half of them are interrupted. */
        longest *= status == SMELT_OK ? 0.95 : 1.05;
        smelt_array_release(out);
        smelt_interrupt_clear(steps.interrupt);
        /* And immediately again: the state that remains must be usable. */
        if (round % 16) continue;
        OK(run_steps(&steps, &out));
        assert_memory_equal(smelt_array_data(out), smelt_array_data(expected), bytes);
        smelt_array_release(out);
    }
    assert_int_equal(write(pipes[1], &(double){-1}, sizeof(double)), sizeof(double));
    pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++) close(pipes[i]);
    smelt_array_release(expected);
    smelt_array_release(steps.a);
    smelt_interrupt_release(steps.interrupt);
    smelt_kernel_release(steps.kernel);
}

static void random_interrupts_disturb_nobody(void **state) {
    static const char finish[] = "out[i] = x;";
    static const char *const bodies[] = {STEPS, STEPS_TOGETHER, STEPS_SUMMED, STEPS_LOGGED};
    enum { BYSTANDERS = 2 };
    struct bystander bystanders[BYSTANDERS] = {{.device = *state, .n = 64},
                                               {.device = *state, .n = 64 * 30, .with_interrupt = true}};
    pthread_t threads[BYSTANDERS];
    int interrupted[2] = {0, 0};
    for (int i = 0; i < BYSTANDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, stand_by, &bystanders[i]), 0);
    for (int b = 0; b < 4; b++) {
        char body[1000];
        snprintf(body, sizeof body, "%s%s", bodies[b], finish);
        interrupt_at_random(body, *state, b == 0 ? 1 : 20, 70, interrupted);
        interrupt_at_random(body, *state, b == 0 ? 40 : 1, 60, interrupted);
    }
    for (int i = 0; i < BYSTANDERS; i++) {
        bystanders[i].stop = true;
        pthread_join(threads[i], NULL);
        assert_true(bystanders[i].runs > 10);
        assert_int_equal(bystanders[i].broken_sleeps, 0);
    }
    if (getenv("SMELT_TEST_VERBOSE"))
        print_message("%d interrupted, %d complete\n", interrupted[0], interrupted[1]);
    assert_true(interrupted[0] > 20 && interrupted[1] > 20);
}

/* ---- Before, after, and again. */

static void raised_before_and_cleared(void **state) {
    smelt_interrupt *interrupt;
    smelt_interrupt_raise(NULL);
    smelt_interrupt_clear(NULL);
    smelt_interrupt_release(NULL);
    assert_false(smelt_interrupt_is_raised(NULL));
    assert_int_equal(smelt_interrupt_create(NULL), SMELT_ERROR_INVALID_ARGUMENT);
    OK(smelt_interrupt_create(&interrupt));
    assert_false(smelt_interrupt_is_raised(interrupt));
    for (int64_t n = 64; n <= 6400; n += 6336) {
        OK(run_square(*state, n, interrupt));
        smelt_interrupt_raise(interrupt);
        smelt_interrupt_raise(interrupt);
        assert_true(smelt_interrupt_is_raised(interrupt));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(run_square(*state, n, interrupt), SMELT_ERROR_INTERRUPTED);
            assert_string_equal(smelt_error(), "kernel 'square' was interrupted by the caller");
            OK(run_square(*state, n, NULL));
        }
        smelt_interrupt_clear(interrupt);
        OK(run_square(*state, n, interrupt));
    }
    smelt_interrupt_release(smelt_interrupt_retain(interrupt));
    OK(run_square(*state, 64, interrupt));
    smelt_interrupt_release(interrupt);
}

/* A function of a library, which writes arrays in place; also with a time-out that comes first, or does not.
 */
static void functions_are_interrupted(void **state) {
    smelt_library *library;
    smelt_function *function;
    struct raiser raiser = {.after = 0.05};
    pthread_t thread;
    smelt_library_desc desc = {.source = "kernel void f(device float *out [[buffer(0)]], constant int &go "
                                         "[[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = 1; "
                                         "while (go) out[i] += 1; }"};
    int go = 0;
    smelt_array *out = filled(1000, 0);
    OK(smelt_library_create(&desc, &library));
    OK(smelt_library_function(library, &(smelt_function_desc){.name = "f"}, &function));
    OK(smelt_interrupt_create(&raiser.interrupt));
    smelt_dispatch_desc dispatch = {.buffers = {{.array = out}, {.bytes = &go, .size = sizeof go}},
                                    .grid = {1000},
                                    .threadgroup = {100},
                                    .device = *state,
                                    .interrupt = raiser.interrupt};
    for (int i = 0; i < 2; i++) {
        dispatch.timeout = i ? 100 : 0;
        go = 0;
        OK(smelt_function_run(function, &dispatch));
        go = 1;
        assert_int_equal(pthread_create(&thread, NULL, raise_later, &raiser), 0);
        assert_int_equal(smelt_function_run(function, &dispatch), SMELT_ERROR_INTERRUPTED);
        assert_string_equal(smelt_error(), "kernel 'f' was interrupted by the caller");
        pthread_join(thread, NULL);
        smelt_interrupt_clear(raiser.interrupt);
    }
    dispatch.timeout = 0.02;
    assert_int_equal(smelt_function_run(function, &dispatch), SMELT_ERROR_TIMEOUT);
    smelt_array_release(out);
    smelt_interrupt_release(raiser.interrupt);
    smelt_function_release(function);
    smelt_library_release(library);
}

/* A launch that waits for another one that does not end need not wait. */
static void who_waits_for_his_turn_is_interrupted(void **state) {
    struct run first = {.kernel = &endless[0], .device = *state, .groups = 40};
    struct raiser raiser = {.after = 0.1};
    pthread_t thread, other;
    OK(smelt_interrupt_create(&first.interrupt));
    OK(smelt_interrupt_create(&raiser.interrupt));
    assert_int_equal(pthread_create(&thread, NULL, run_on_thread, &first), 0);
    pause_for(0.3);
    assert_int_equal(pthread_create(&other, NULL, raise_later, &raiser), 0);
    assert_int_equal(run_square(*state, 6400, raiser.interrupt), SMELT_ERROR_INTERRUPTED);
    assert_true(clock_seconds() - raiser.raised < SOON);
    OK(run_square(*state, 64, NULL)); /* one group needs no pool */
    smelt_interrupt_raise(first.interrupt);
    pthread_join(thread, NULL);
    pthread_join(other, NULL);
    expect_interrupted(&first);
    OK(run_square(*state, 6400, NULL));
    smelt_interrupt_release(first.interrupt);
    smelt_interrupt_release(raiser.interrupt);
}

/* For callers that prepare for a long call only if code is missing. */
static void a_run_ends_before_it_compiles(void **state) {
    struct run run = {.kernel = &endless[0],
                      .device = *state,
                      .groups = 1,
                      .value = 1,
                      .interrupt = smelt_interrupt_before_compile()};
    smelt_kernel *kernel = kernel_of(run.kernel);
    run_it(&run, kernel);
    expect_interrupted(&run);
    assert_false(smelt_interrupt_is_raised(run.interrupt));
    run.interrupt = NULL;
    run_it(&run, kernel);
    OK(run.status);
    run.interrupt = smelt_interrupt_before_compile();
    run_it(&run, kernel); /* the code is there */
    OK(run.status);
    smelt_kernel_release(kernel);
}

static void a_run_ends_before_it_compiles_for_other_sizes(void **state) {
    smelt_library *library;
    smelt_function *function;
    smelt_array *out = filled(256, 0);
    smelt_interrupt *interrupt = smelt_interrupt_before_compile();
    smelt_library_desc text = {.source = "kernel void ones(device float *out, uint i "
                                         "[[thread_position_in_grid]]) { out[i] = 1; }"};
    OK(smelt_library_create(&text, &library));
    OK(smelt_library_function(library, &(smelt_function_desc){.name = "ones"}, &function));
    for (int64_t size = 32; size >= 16; size /= 2) {
        smelt_dispatch_desc desc = {.device = *state,
                                    .grid = {256},
                                    .threadgroup = {size == 32 ? 32 : 24},
                                    .buffers = {{.array = out}},
                                    .interrupt = interrupt};
        bool missing = size == 32 || strcmp(*state, "cpu") == 0; /* the scalar engine has one code */
        OK(smelt_array_fill(out, 0));
        assert_int_equal(smelt_function_run(function, &desc), missing ? SMELT_ERROR_INTERRUPTED : SMELT_OK);
        if (missing) assert_float_equal(((float *)smelt_array_data(out))[0], 0, 0);
        desc.interrupt = NULL;
        OK(smelt_function_run(function, &desc));
        desc.interrupt = interrupt;
        OK(smelt_array_fill(out, 0));
        OK(smelt_function_run(function, &desc));
        assert_float_equal(((float *)smelt_array_data(out))[255], 1, 0);
    }
    smelt_array_release(out);
    smelt_function_release(function);
    smelt_library_release(library);
}

int main(void) {
    smelt_set_kernel_log(drop_line, NULL);
    smelt_set_log(drop_log, NULL);
    const struct CMUnitTest tests[] = {
        BOTH(endless_kernels_end),
        BOTH(a_signal_handler_may_raise),
        BOTH(random_interrupts_disturb_nobody),
        BOTH(raised_before_and_cleared),
        BOTH(functions_are_interrupted),
        BOTH(who_waits_for_his_turn_is_interrupted),
        BOTH(a_run_ends_before_it_compiles),
        BOTH(a_run_ends_before_it_compiles_for_other_sizes),
    };
    return cmocka_run_group_tests_name("interrupts", tests, open_square, NULL);
}
