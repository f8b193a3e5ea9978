/* Shared by the tests of interrupts: kernels that never end, one that does, and threads that interrupt. A
 * test's state is the name of the engine. */
#ifndef SMELT_TESTS_INTERRUPTS_H
#define SMELT_TESTS_INTERRUPTS_H

#include "unit.h"

#include "base/clock.h"
#include "smelt/smelt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The longest time that an interrupted run may continue. It is usually under a millisecond, but machines are
 * busy and sanitizers slow. */
#define SOON 60.0

static inline void pause_for(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {
    }
}

static inline smelt_array *filled(int64_t n, double value) {
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
    double value; /* of all inputs; 0: the kernel never ends */
    smelt_interrupt *interrupt;
    double timeout;
    smelt_status status;
    char message[200];
    double ended;
};

static inline void run_it(struct run *run, smelt_kernel *kernel) {
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

static inline smelt_kernel *kernel_of(const struct endless *endless) {
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

static inline void expect_interrupted(const struct run *run) {
    char expected[200];
    snprintf(expected, sizeof expected, "kernel '%s' was interrupted by the caller", run->kernel->name);
    if (run->status != SMELT_ERROR_INTERRUPTED)
        FAIL_TEST("%s on %s, %d groups: %s: %s", run->kernel->name, run->device, (int)run->groups,
                  smelt_status_name(run->status), run->message);
    assert_string_equal(run->message, expected);
}

/* ---- An ordinary kernel, which shows that everything still works. */

static smelt_kernel *square;

static inline smelt_status run_square(const char *device, int64_t n, smelt_interrupt *interrupt) {
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

static inline int open_square(void **state) {
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

static inline void drop_line(const smelt_kernel_line *line, void *context) {
    (void)line;
    (void)context;
}

static inline void drop_log(smelt_log_level level, const char *line, void *context) {
    (void)level;
    (void)line;
    (void)context;
}

/* ---- From another thread. */

struct raiser {
    smelt_interrupt *interrupt;
    double after, raised;
    const char *once; /* not NULL: not before this file is there and has a line; waits 20 s at most */
};

static inline bool has_line(const char *path) {
    char line[64];
    FILE *file = fopen(path, "r");
    bool has = file && fgets(line, sizeof line, file) && strchr(line, '\n');
    if (file) fclose(file);
    return has;
}

static inline void *raise_later(void *argument) {
    struct raiser *raiser = argument;
    for (int i = 0; raiser->once && !has_line(raiser->once) && i < 2000; i++) pause_for(0.01);
    pause_for(raiser->after);
    raiser->raised = clock_seconds();
    smelt_interrupt_raise(raiser->interrupt);
    return NULL;
}

static inline void interrupt_endless(const struct endless *endless, const char *device, int64_t groups,
                                     double timeout, double *latency) {
    struct run run = {.kernel = endless, .device = device, .groups = groups, .timeout = timeout};
    struct raiser raiser = {.after = 0.02};
    pthread_t thread;
    smelt_kernel *kernel = kernel_of(endless);
    OK(smelt_interrupt_create(&run.interrupt));
    raiser.interrupt = run.interrupt;
    /* Compiles beforehand. */
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

static inline void *run_on_thread(void *argument) {
    struct run *run = argument;
    smelt_kernel *kernel = kernel_of(run->kernel);
    run_it(run, kernel);
    smelt_kernel_release(kernel);
    return NULL;
}

/* A test on both engines of the CPU. */
static char simd_engine[] = "cpu", scalar_engine[] = "cpu-scalar";
#define BOTH(test)                                               \
    {#test ", SIMD engine", test, NULL, NULL, simd_engine}, {    \
        #test ", scalar engine", test, NULL, NULL, scalar_engine \
    }

#endif
