/* Interrupts: launches that are in progress end when their caller says so, whatever their threads do, and
 * nothing else does. On both engines of the CPU; a test's state is the name of the engine. */
#include "unit.h"

#include "base/clock.h"
#include "smelt/smelt.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Longest that an interrupted run may go on. Usually it is under a millisecond; but machines are busy, and
 * sanitizers slow. */
#define SOON 60.0

#define OK(call)                                                                                     \
    do {                                                                                             \
        smelt_status ok_status = (call);                                                             \
        if (ok_status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(ok_status), smelt_error()); \
    } while (0)

static void pause_for(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {
    }
}

static smelt_array *filled(int64_t n, double value) {
    smelt_array *array;
    OK(smelt_array_create(SMELT_FLOAT32, (smelt_shape){1, {n}}, &array));
    OK(smelt_array_fill(array, value));
    return array;
}

/* ---- Kernels that never end, as long as a[0] is 0. */

struct endless {
    const char *name, *body, *header;
    bool atomic;
};

static const struct endless endless[] = {
    {.name = "loops",
     .body = "uint i = thread_position_in_grid.x; float x = a[i];"
             "while (x >= 0 && a[0] == 0) x = x * 0.5f + 1.0f;"
             "out[i] = x;"},
    {.name = "diverges",
     .body = "uint i = thread_position_in_grid.x; float x = a[i]; uint n = i;"
             "while (a[0] == 0) { if (n % 7 == 3) x += 1; else if (x > 5) x = x / 3; n = n * 5 + 1; }"
             "out[i] = x;"},
    {.name = "writes",
     .body = "uint i = thread_position_in_grid.x;"
             "for (uint n = 0; a[0] == 0; n++) out[i] = float(n);"},
    {.name = "synchronises",
     .body = "threadgroup float s[256]; uint t = thread_position_in_threadgroup.x; s[t] = t;"
             "while (a[0] == 0) { threadgroup_barrier(mem_flags::mem_threadgroup);"
             "float x = s[(t + 1) % 256]; threadgroup_barrier(mem_flags::mem_threadgroup); s[t] = x; }"
             "out[thread_position_in_grid.x] = s[t];"},
    {.name = "keeps_others_waiting",
     .body = "threadgroup float s[256]; uint t = thread_position_in_threadgroup.x; s[t] = t;"
             "if (simdgroup_index_in_threadgroup == 5) while (s[t] >= 0 && a[0] == 0) s[t] += 1;"
             "threadgroup_barrier(mem_flags::mem_threadgroup);"
             "out[thread_position_in_grid.x] = s[(t + 1) % 256];"},
    {.name = "calls_the_math_library",
     .body = "uint i = thread_position_in_grid.x; float x = a[i];"
             "while (x >= 0 && a[0] == 0) x = fmod(x + 1e38f, 1e-38f * float(i + 3)) + 1;"
             "out[i] = x;"},
    {.name = "sums_simdgroups",
     .body = "uint i = thread_position_in_grid.x; float x = a[i];"
             "while (a[0] == 0 && simd_sum(x) >= 0) x = x * 0.5f + simd_shuffle_xor(x, 1);"
             "out[i] = x;"},
    {.name = "spins_on_a_flag",
     .body = "uint i = thread_position_in_grid.x;"
             "while (atomic_load_explicit(&out[0], memory_order_relaxed) == 0) {}"
             "atomic_store_explicit(&out[i], 1.0f + a[i], memory_order_relaxed);",
     .atomic = true},
    {.name = "copies",
     .body = "uint i = thread_position_in_grid.x; block x, y;"
             "for (int k = 0; k < 4000; k++) x.v[k] = k + i;"
             "while (a[0] == 0) { y = x; y.v[int(y.v[i % 4000]) % 4000] += 1; x = y; }"
             "out[i] = x.v[i % 4000];",
     .header = "struct block { float v[4000]; };"},
    {.name = "recurses",
     .body = "uint i = thread_position_in_grid.x; out[i] = float(grow(a[i] == 0 ? 200 : 5));",
     .header =
         "[[clang::noinline]] inline int grow(int n) { return n < 2 ? n : grow(n - 1) + grow(n - 2); }"},
    {.name = "logs",
     .body = "for (uint n = 0; a[0] == 0; n++) os_log_default.log(\"%u\", n);"
             "out[thread_position_in_grid.x] = 0;",
     .header = "#include <metal_logging>"},
};
#define ENDLESS (sizeof endless / sizeof *endless)

struct run {
    const struct endless *kernel;
    const char *device;
    int64_t groups;
    double value; /* of all inputs: 0, and it has no end */
    smelt_interrupt *interrupt;
    double timeout;
    smelt_status status;
    char message[200];
    double ended;
};

static void run_it(struct run *run, smelt_kernel *kernel) {
    smelt_array *a = filled(256 * run->groups, run->value), *out = NULL;
    smelt_run_desc desc = {.inputs = {a},
                           .grid = {256 * run->groups},
                           .threadgroup = {256},
                           .output_shapes = {{1, {256 * run->groups}}},
                           .output_dtypes = {SMELT_FLOAT32},
                           .initialise = true,
                           .init_value = run->value,
                           .device = run->device,
                           .timeout = run->timeout,
                           .interrupt = run->interrupt};
    run->status = smelt_kernel_run(kernel, &desc, &out);
    run->ended = clock_seconds();
    snprintf(run->message, sizeof run->message, "%s", smelt_error());
    if (run->status != SMELT_OK) assert_null(out);
    smelt_array_release(out);
    smelt_array_release(a);
}

static smelt_kernel *kernel_of(const struct endless *endless) {
    smelt_kernel *kernel;
    OK(smelt_kernel_create(&(smelt_kernel_desc){.name = endless->name,
                                                .source = endless->body,
                                                .header = endless->header,
                                                .inputs = {"a"},
                                                .outputs = {"out"},
                                                .atomic_outputs = endless->atomic},
                           &kernel));
    return kernel;
}

static void expect_interrupted(const struct run *run) {
    char expected[200];
    snprintf(expected, sizeof expected,
             "kernel '%s' was interrupted: the caller asked for the run to be ended", run->kernel->name);
    if (run->status != SMELT_ERROR_INTERRUPTED)
        FAIL_TEST("%s on %s, %d groups: %s: %s", run->kernel->name, run->device, (int)run->groups,
                  smelt_status_name(run->status), run->message);
    assert_string_equal(run->message, expected);
}

/* ---- An ordinary kernel, that shows that everything is as it was. */

static smelt_kernel *square;

static smelt_status run_square(const char *device, int64_t n, smelt_interrupt *interrupt) {
    smelt_array *a, *out = NULL;
    OK(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){1, {n}}, &a));
    smelt_status status = smelt_kernel_run(square,
                                           &(smelt_run_desc){.inputs = {a},
                                                             .grid = {n},
                                                             .threadgroup = {64},
                                                             .output_shapes = {{1, {n}}},
                                                             .output_dtypes = {SMELT_FLOAT32},
                                                             .device = device,
                                                             .interrupt = interrupt},
                                           &out);
    for (int64_t i = 0; i < n && out; i++) {
        float x = (float)(i % 1000), found = ((float *)smelt_array_data(out))[i];
        float sum = 0;
        for (int k = 0; k < 8; k++) sum += x;
        if (found != x * sum) FAIL_TEST("element %lld is %g, expected %g", (long long)i, found, x * sum);
    }
    assert_int_equal(out != NULL, status == SMELT_OK);
    smelt_array_release(a);
    smelt_array_release(out);
    return status;
}

static int open_square(void **state) {
    (void)state;
    smelt_kernel_desc desc = {.name = "square",
                              .source =
                                  "uint i = thread_position_in_grid.x; float x = float(i % 1000), s = 0;"
                                  "for (int k = 0; k < 8; k++) {"
                                  "threadgroup_barrier(mem_flags::mem_threadgroup); s += x; }"
                                  "out[i] = a[i] < 0 ? 0 : x * s;",
                              .inputs = {"a"},
                              .outputs = {"out"}};
    return smelt_kernel_create(&desc, &square) != SMELT_OK;
}

static void drop_line(const smelt_kernel_line *line, void *context) {
    (void)line;
    (void)context;
}

static void drop_log(smelt_log_level level, const char *line, void *context) {
    (void)level;
    (void)line;
    (void)context;
}

/* ---- From another thread. */

struct raiser {
    smelt_interrupt *interrupt;
    double after, raised;
};

static void *raise_later(void *argument) {
    struct raiser *raiser = argument;
    pause_for(raiser->after);
    raiser->raised = clock_seconds();
    smelt_interrupt_raise(raiser->interrupt);
    return NULL;
}

static void interrupt_endless(const struct endless *endless, const char *device, int64_t groups,
                              double timeout, double *latency) {
    struct run run = {.kernel = endless, .device = device, .groups = groups, .timeout = timeout};
    struct raiser raiser = {.after = 0.02};
    pthread_t thread;
    smelt_kernel *kernel = kernel_of(endless);
    OK(smelt_interrupt_create(&run.interrupt));
    raiser.interrupt = run.interrupt;
    /* Compiled before. */
    run.value = 1;
    run_it(&run, kernel);
    OK(run.status);
    run.value = 0;
    assert_int_equal(pthread_create(&thread, NULL, raise_later, &raiser), 0);
    run_it(&run, kernel);
    pthread_join(thread, NULL);
    expect_interrupted(&run);
    *latency = run.ended - raiser.raised;
    if (getenv("SMELT_TEST_VERBOSE"))
        print_message("%s, %s, %d groups: %.3f ms\n", endless->name, device, (int)groups, 1e3 * *latency);
    if (*latency > SOON) FAIL_TEST("%s on %s went on for %g seconds", endless->name, device, *latency);
    OK(run_square(device, 64 * groups, NULL));
    smelt_interrupt_release(run.interrupt);
    smelt_kernel_release(kernel);
}

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

/* ThreadSanitizer calls a handler when the thread next calls a function it knows: one in an endless kernel
 * never does. There the signal goes to another thread; elsewhere to the one that runs the kernel. */
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

/* ---- At random times, beside other launches. */

/* The raiser's orders: wait so long, then raise. A pipe, so that it needs no lock of ours. */
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

/* Runs kernels that nobody interrupts, and sleeps in between: no signal may end that early. */
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

/* How many steps take about so long. */
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
        /* However fast the machine is at the moment, about half of them. */
        longest *= status == SMELT_OK ? 0.95 : 1.05;
        smelt_array_release(out);
        smelt_interrupt_clear(steps.interrupt);
        /* And at once again: what was left is fit for use. */
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

/* ---- Before, behind, and again. */

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
            assert_string_equal(smelt_error(),
                                "kernel 'square' was interrupted: the caller asked for the run "
                                "to be ended");
            OK(run_square(*state, n, NULL));
        }
        smelt_interrupt_clear(interrupt);
        OK(run_square(*state, n, interrupt));
    }
    smelt_interrupt_release(smelt_interrupt_retain(interrupt));
    OK(run_square(*state, 64, interrupt));
    smelt_interrupt_release(interrupt);
}

/* A function of a library, whose arrays are written in place; and with a time-out too, which comes first or
 * does not. */
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
        assert_string_equal(smelt_error(),
                            "kernel 'f' was interrupted: the caller asked for the run to be ended");
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

/* A launch that waits for another one's end, which does not come, need not wait. */
static void *run_on_thread(void *argument) {
    struct run *run = argument;
    smelt_kernel *kernel = kernel_of(run->kernel);
    run_it(run, kernel);
    smelt_kernel_release(kernel);
    return NULL;
}

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

/* ---- The host's signals. */

static atomic_int urgent;

static void on_urgent(int signal) {
    urgent += signal == SIGURG;
}

/* A host that blocks all signals, as threads of servers do, and one that has a use for ours. */
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

/* ---- Compiling. */

static void compilers_are_interrupted(void **state) {
    char script[] = "/tmp/smelt-clang-XXXXXX", mark[64], text[400];
    int fd = mkstemp(script);
    struct run run = {.kernel = &endless[0], .device = *state, .groups = 1};
    struct raiser raiser = {.after = 0.3};
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
    /* Cleared, with the real one, it compiles and runs. */
    smelt_interrupt_clear(run.interrupt);
    run.value = 1;
    run_on_thread(&run);
    OK(run.status);
    smelt_interrupt_release(run.interrupt);
}

/* LLVM cannot be stopped; it is not waited for. Little for clang to read, much for LLVM to unroll. */
static void llvm_is_left_alone(void **state) {
    static const struct endless large = {
        .name = "large",
        .body = "float x = a[0];\n#pragma clang loop unroll(full)\nfor (int k = 0; k < 3000; k++) {"
                "x = precise::sin(x) + precise::pow(x, float(k)); if (x > 3) x -= a[k % 4]; } out[0] = x;"};
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
    static char simd[] = "cpu", scalar[] = "cpu-scalar";
    smelt_set_kernel_log(drop_line, NULL);
    smelt_set_log(drop_log, NULL);
#define BOTH(test)                                        \
    {#test ", SIMD engine", test, NULL, NULL, simd}, {    \
#test ", scalar engine", test, NULL, NULL, scalar \
    }
    const struct CMUnitTest tests[] = {
        BOTH(endless_kernels_end),
        BOTH(a_signal_handler_may_raise),
        BOTH(random_interrupts_disturb_nobody),
        BOTH(raised_before_and_cleared),
        BOTH(functions_are_interrupted),
        BOTH(who_waits_for_his_turn_is_interrupted),
        BOTH(hosts_keep_their_signals),
        BOTH(compilers_are_interrupted),
        BOTH(forked_children_launch),
        {"llvm_is_left_alone", llvm_is_left_alone, NULL, NULL, simd},
    };
    return cmocka_run_group_tests_name("interrupts", tests, open_square, NULL);
}
