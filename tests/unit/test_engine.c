/* What both CPU engines guarantee: thrown-away loads, faults, time-outs, barriers, reuse after errors; and
 * what a GPU guarantees of these, if SMELT_TEST_DEVICE is one. A test's state is the name of its device. */
#include "unit.h"

#include "../device.h"

#include "smelt/smelt.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static smelt_shape shape1(int64_t n) {
    return (smelt_shape){.ndim = 1, .size = {n}};
}

/* Runs a body with inputs "a", "b" (b may be NULL) and one float32 output "out" of n elements. */
struct job {
    const char *name, *body;
    smelt_array *a, *b;
    int64_t n, grid, threadgroup;
    double timeout;
    bool unchecked;
};

/* The device of the current test. */
static const char *device = "cpu";

static bool on_scalar_engine(void) {
    return strcmp(device, "cpu-scalar") == 0;
}

static int choose_device(void **state) {
    device = *state;
    return 0;
}

static smelt_status run_job(const struct job *job, smelt_array **out) {
    smelt_kernel *kernel;
    smelt_kernel_desc desc = {
        .name = job->name, .source = job->body, .inputs = {"a", job->b ? "b" : NULL}, .outputs = {"out"}};
    smelt_status status = smelt_kernel_create(&desc, &kernel);
    if (status != SMELT_OK) return status;
    smelt_run_desc run = {.inputs = {job->a, job->b},
                          .grid = {job->grid},
                          .threadgroup = {job->threadgroup},
                          .output_shapes = {shape1(job->n)},
                          .output_dtypes = {SMELT_FLOAT32},
                          .initialise = true,
                          .init_value = NAN,
                          .device = device,
                          .timeout = job->timeout,
                          .unchecked = job->unchecked};
    smelt_array *made = NULL;
    status = smelt_kernel_run(kernel, &run, &made);
    if (status == SMELT_OK) status = test_to_host(&made);
    if (status == SMELT_OK)
        *out = made;
    else
        smelt_array_release(made);
    smelt_kernel_release(kernel);
    return status;
}

static smelt_array *arange(smelt_dtype dtype, int64_t n) {
    smelt_array *array;
    assert_int_equal(smelt_array_arange(dtype, shape1(n), &array), SMELT_OK);
    return array;
}

static float value_at(const smelt_array *array, int64_t i) {
    return ((const float *)smelt_array_data(array))[i];
}

/* After every error the process must be able to run the next kernel. */
static void assert_still_usable(void) {
    smelt_array *a = arange(SMELT_FLOAT32, 100), *out = NULL;
    struct job job = {.name = "usable",
                      .body = "uint i = thread_position_in_grid.x; out[i] = a[i] + 1;",
                      .a = a,
                      .n = 100,
                      .grid = 100,
                      .threadgroup = 10};
    assert_int_equal(run_job(&job, &out), SMELT_OK);
    for (int i = 0; i < 100; i++) assert_true(value_at(out, i) == (float)i + 1);
    smelt_array_release(out);
    smelt_array_release(a);
}

/* ---- An array between two inaccessible pages: one element before or after it faults. */

struct fenced {
    char *pages;
    size_t bytes;
    smelt_array *array;
};

static void unmap(void *context) {
    struct fenced *fenced = context;
    munmap(fenced->pages, fenced->bytes);
}

/* `at_end`: the last element touches the page after it; otherwise the first touches the page before it. */
static void fenced_create(struct fenced *fenced, smelt_dtype dtype, int64_t n, bool at_end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), width = smelt_dtype_bytes(dtype);
    size_t inside = ((size_t)n * width + page - 1) / page * page;
    fenced->bytes = inside + 2 * page;
    fenced->pages = mmap(NULL, fenced->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(fenced->pages != MAP_FAILED);
    assert_int_equal(mprotect(fenced->pages + page, inside, PROT_READ | PROT_WRITE), 0);
    char *start = fenced->pages + page + (at_end ? inside - (size_t)n * width : 0);
    assert_int_equal(smelt_array_from_memory(dtype, shape1(n), NULL, start, unmap, fenced, &fenced->array),
                     SMELT_OK);
    smelt_array *values = arange(dtype, n);
    assert_int_equal(smelt_array_copy(fenced->array, values), SMELT_OK);
    smelt_array_release(values);
}

/* Each body reads a[i - 1] and a[i + 1] first and throws the outer ones away: the compiler transforms the
 * select differently, but the result is the same. */
static void loads_that_are_thrown_away_may_lie_outside(void **state) {
    (void)state;
    static const char *const bodies[] = {
        /* A plain select. */
        "int i = thread_position_in_grid.x; int n = a_shape[0];"
        "float l = a[i - 1], r = a[i + 1]; l = i > 0 ? l : 0; r = i < n - 1 ? r : 0; out[i] = l + r;",
        /* The condition is written before the load. */
        "int i = thread_position_in_grid.x; int n = a_shape[0]; bool left = i > 0, right = i + 1 < n;"
        "float l = a[i - 1], r = a[i + 1]; out[i] = (left ? l : 0.0f) + (right ? r : 0.0f);",
        /* A product with the chosen value, and the other arm. */
        "int i = thread_position_in_grid.x; int n = a_shape[0]; float l = a[i - 1], r = a[i + 1];"
        "out[i] = (i > 0 ? l : 0.0f) * 1.0f + (i >= n - 1 ? 0.0f : r);",
        /* Several conditions joined, used twice. */
        "int i = thread_position_in_grid.x; int n = a_shape[0]; float l = a[i - 1], r = a[i + 1];"
        "l = i - 1 >= 0 && i - 1 <= n - 1 ? l : 0; r = i + 1 >= 0 && i + 1 <= n - 1 ? r : 0;"
        "out[i] = 0.5f * l + 0.5f * l + 0.25f * r + 0.75f * r;",
        /* In a loop. */
        "int i = thread_position_in_grid.x; int n = a_shape[0]; float sum = 0;"
        "for (int d = -1; d <= 1; d += 2) { float v = a[i + d]; bool in = i + d >= 0 && i + d < n; v = in ? "
        "v : 0; sum += v; }"
        "out[i] = sum;",
        /* A store between the load and the select. */
        "int i = thread_position_in_grid.x; int n = a_shape[0]; float l = a[i - 1]; out[i] = -1; float r = "
        "a[i + 1];"
        "l = i > 0 ? l : 0; r = i < n - 1 ? r : 0; out[i] = l + r;",
        /* Through a conversion, and an if instead of a select. */
        "int i = thread_position_in_grid.x; int n = a_shape[0]; float l = float(a[i - 1]); float r = "
        "float(a[i + 1]);"
        "if (i == 0) l = 0; if (i == n - 1) r = 0; out[i] = l + r;",
        /* The select is in another block, to which the optimiser moves it; the array may be written before
         * that. */
        "int i = thread_position_in_grid.x; int n = a_shape[0]; float l = a[i - 1], r = a[i + 1];"
        "l = (i > 0 ? l : 0.0f) + 1.0f; r = i < n - 1 ? r : 0; out[i] = -1; if (a[0] < 3) out[i] = l + r - "
        "1.0f;",
    };
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_INT32, SMELT_BFLOAT16,
                                         SMELT_UINT8};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++)
            for (int at_end = 0; at_end < 2; at_end++) {
                struct fenced fenced;
                const int64_t n = 37;
                fenced_create(&fenced, dtypes[d], n, at_end);
                smelt_array *out = NULL;
                struct job job = {.name = "thrown_away",
                                  .body = bodies[k],
                                  .a = fenced.array,
                                  .n = n,
                                  .grid = n,
                                  .threadgroup = 8};
                smelt_status status = run_job(&job, &out);
                if (status != SMELT_OK)
                    print_error("body %zu on %s: %s\n", k, smelt_dtype_name(dtypes[d]), smelt_error());
                assert_int_equal(status, SMELT_OK);
                for (int64_t i = 0; i < n; i++) {
                    float expected = (i > 0 ? (float)(i - 1) : 0) + (i < n - 1 ? (float)(i + 1) : 0);
                    assert_true(value_at(out, i) == expected);
                }
                smelt_array_release(out);
                smelt_array_release(fenced.array);
            }
}

/* ---- Faults. */

static void a_load_outside_is_an_error_naming_kernel_and_line(void **state) {
    (void)state;
    struct fenced fenced;
    smelt_array *out = NULL;
    fenced_create(&fenced, SMELT_FLOAT32, 16, true);
    struct job job = {.name = "reader",
                      .body =
                          "uint i = thread_position_in_grid.x;\nfloat x = 1;\nx += a[i + 1];\nout[i] = x;",
                      .a = fenced.array,
                      .n = 16,
                      .grid = 16,
                      .threadgroup = 16};
    assert_int_equal(run_job(&job, &out), SMELT_ERROR_FAULT);
    assert_null(out);
    char expected[256];
    const char *threads = on_scalar_engine() ? "thread 15" : "threads 0 to 15";
    snprintf(expected, sizeof expected,
             "kernel 'reader' reads a[16] at reader.body:3, but 'a' has 16 elements and shape 16 (%s of "
             "threadgroup (0, 0, 0))",
             threads);
    assert_string_equal(smelt_error(), expected);
    /* Without the test, the page behind the array shows it. */
    job.unchecked = true;
    assert_int_equal(run_job(&job, &out), SMELT_ERROR_FAULT);
    assert_null(out);
    snprintf(expected, sizeof expected,
             "kernel 'reader' accessed invalid address %p at reader.body:3 (%s of "
             "threadgroup (0, 0, 0))",
             (void *)((float *)smelt_array_data(fenced.array) + 16), threads);
    assert_string_equal(smelt_error(), expected);
    smelt_array_release(fenced.array);
    assert_still_usable();
}

static void a_store_through_null_is_a_fault(void **state) {
    (void)state;
    smelt_array *a = arange(SMELT_FLOAT32, 64), *out = NULL;
    struct job job = {.name = "writer",
                      .body =
                          "uint i = thread_position_in_grid.x;\nthreadgroup_barrier(mem_flags::mem_none);\n"
                          "device float* p = (device float*)(size_t(a[i]) * 0);\n"
                          "p[i] = 1;\nout[i] = 0;",
                      .a = a,
                      .n = 64,
                      .grid = 64,
                      .threadgroup = 16};
    assert_int_equal(run_job(&job, &out), SMELT_ERROR_FAULT);
    assert_non_null(strstr(smelt_error(), "kernel 'writer' accessed invalid address"));
    assert_non_null(strstr(smelt_error(), "writer.body:4"));
    smelt_array_release(a);
    assert_still_usable();
}

/* The number of threads that run together depends on the CPU: one simdgroup, or several. */
static bool names_the_threads(const char *message) {
    static const char start[] = "kernel 'past' ran past its private arrays at past.body:2 (";
    if (strncmp(message, start, strlen(start)) != 0) return false;
    int last = 0, length = -1;
    message += strlen(start);
    if (on_scalar_engine()) return strcmp(message, "thread 0 of threadgroup (0, 0, 0))") == 0;
    if (sscanf(message, "threads 0 to %d of threadgroup (0, 0, 0))%n", &last, &length) != 1) return false;
    return (last == 31 || last == 63) && length == (int)strlen(message);
}

/* Stacks have an inaccessible page at either end. */
static void running_past_a_private_array_is_a_fault(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "uint i = thread_position_in_grid.x; float t[64]; for (int k = 0; k < 64; k++) t[k] = a[k];\n"
        "for (int k = 63; k > -60000; k -= 8) t[k] = 1;\nout[i] = t[i];",
        "uint i = thread_position_in_grid.x; float t[64]; for (int k = 0; k < 64; k++) t[k] = a[k];\n"
        "for (int k = 0; k < int(a[1]) * 60000; k += 8) t[k] = 1;\nout[i] = t[i];",
    };
    smelt_array *a = arange(SMELT_FLOAT32, 64), *out = NULL;
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
        struct job job = {.name = "past",
                          .body = bodies[k],
                          .a = a,
                          .n = 64,
                          .grid = 64,
                          .threadgroup = 64,
                          .unchecked = true};
        assert_int_equal(run_job(&job, &out), SMELT_ERROR_FAULT);
        assert_true(names_the_threads(smelt_error()));
        assert_still_usable();
    }
    smelt_array_release(a);
}

static volatile sig_atomic_t seen_signal;

static void note_and_leave(int signal) {
    seen_signal = signal;
    _exit(signal == SIGSEGV ? 42 : 1);
}

/* In a fresh process, so that the order is: the program's handler, smelt's first run, the program's own
 * fault. */
static void faults_outside_kernels_reach_the_previous_handler(void **state) {
    (void)state;
    int result = 0;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "unit_engine", "--own-fault", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 42);
}

static int own_fault(void) {
    struct sigaction action = {.sa_handler = note_and_leave};
    sigaction(SIGSEGV, &action, NULL);
    assert_still_usable();
    *(volatile int *)(uintptr_t)(seen_signal + 8) = 1;
    return 1;
}

/* ---- Time-outs. */

static void a_kernel_that_never_ends_is_stopped(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "uint i = thread_position_in_grid.x; out[i] = 0; while (true) {}",
        "uint i = thread_position_in_grid.x; volatile int x = 0; for (int k = 0; k >= 0; k = (k + 1) & 7) x "
        "+= k; out[i] = x;",
        "uint i = thread_position_in_grid.x; while (true) { threadgroup_barrier(mem_flags::mem_none); } "
        "out[i] = 0;",
        "uint i = thread_position_in_grid.x; float s = 0; while (a[0] == 0) s += simd_sum(1.0f); out[i] = s;",
    };
    smelt_array *a = arange(SMELT_FLOAT32, 64);
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++)
        for (int64_t group = 8; group <= 64; group *= 8) {
            smelt_array *out = NULL;
            struct job job = {.name = "forever",
                              .body = bodies[k],
                              .a = a,
                              .n = 64,
                              .grid = 64,
                              .threadgroup = group,
                              .timeout = 0.1};
            assert_int_equal(run_job(&job, &out), SMELT_ERROR_TIMEOUT);
            assert_string_equal(
                smelt_error(),
                "kernel 'forever' ran longer than the time-out of 0.1 seconds and was stopped");
            assert_null(out);
        }
    smelt_array_release(a);
    assert_still_usable();
}

/* ---- Barriers. */

static void a_barrier_some_threads_miss_names_both(void **state) {
    (void)state;
    smelt_array *a = arange(SMELT_FLOAT32, 64), *out = NULL;
    struct job missed = {.name = "missed",
                         .body = "uint i = thread_position_in_grid.x;\nif (i != 9) {\n"
                                 "    threadgroup_barrier(mem_flags::mem_none);\n}\nout[i] = a[i];",
                         .a = a,
                         .n = 64,
                         .grid = 64,
                         .threadgroup = 32};
    assert_int_equal(run_job(&missed, &out), SMELT_ERROR_BARRIER);
    assert_string_equal(smelt_error(), "kernel 'missed': thread 0 of threadgroup (0, 0, 0) waits at the "
                                       "barrier in missed.body:3, but thread 9 "
                                       "reached the end of the kernel without passing it; all threads of a "
                                       "threadgroup must meet at a barrier "
                                       "or leave by return");
    struct job mixed = {.name = "mixed",
                        .body = "uint i = thread_position_in_grid.x;\nif (i < 40)\n"
                                "    threadgroup_barrier(mem_flags::mem_none);\nelse\n"
                                "    threadgroup_barrier(mem_flags::mem_none);\nout[i] = a[i];",
                        .a = a,
                        .n = 64,
                        .grid = 64,
                        .threadgroup = 64};
    assert_int_equal(run_job(&mixed, &out), SMELT_ERROR_BARRIER);
    assert_string_equal(
        smelt_error(),
        "kernel 'mixed': thread 0 of threadgroup (0, 0, 0) waits at the barrier in mixed.body:3, but thread "
        "40 "
        "waits at the one in mixed.body:5; all threads of a threadgroup must meet at the same barrier");
    assert_null(out);
    smelt_array_release(a);
    assert_still_usable();
}

/* A barrier in a loop whose trip count differs by thread (a known bug of other implementations). */
static void a_barrier_in_a_loop_of_different_trips_is_an_error_or_met(void **state) {
    (void)state;
    smelt_array *a = arange(SMELT_FLOAT32, 32), *out = NULL;
    struct job job = {.name = "trips",
                      .body = "uint i = thread_position_in_grid.x;\nfor (uint k = 0; k <= i % 3; k++)\n"
                              "    threadgroup_barrier(mem_flags::mem_none);\nout[i] = a[i];",
                      .a = a,
                      .n = 32,
                      .grid = 32,
                      .threadgroup = 32};
    assert_int_equal(run_job(&job, &out), SMELT_ERROR_BARRIER);
    assert_non_null(strstr(smelt_error(), "trips.body:3"));
    smelt_array_release(a);
    assert_still_usable();
}

/* ---- Faults on a GPU. */

static void a_fault_loses_the_gpu_and_is_said_at_every_call(void **state) {
    (void)state;
    smelt_array *a = arange(SMELT_FLOAT32, 64), *out = NULL;
    struct job job = {.name = "writer",
                      .body = "uint i = thread_position_in_grid.x; device float* p = (device "
                              "float*)(size_t(a[i]) * 0); p[i] = 1; out[i] = 0;",
                      .a = a,
                      .n = 64,
                      .grid = 64,
                      .threadgroup = 64};
    assert_int_equal(run_job(&job, &out), SMELT_ERROR_FAULT);
    if (!strstr(smelt_error(), "kernel 'writer'")) FAIL_TEST("no kernel is named: %s", smelt_error());
    assert_int_equal(run_job(&job, &out), SMELT_ERROR_DEVICE_LOST);
    assert_null(out);
    smelt_array_release(a);
    if (smelt_device_reset(device) == SMELT_OK)
        assert_still_usable();
    else if (!strstr(smelt_error(), "start a new process"))
        FAIL_TEST("no new process is asked for: %s", smelt_error());
}

/* ---- Several at once. */

static void *run_many(void *context) {
    (void)context;
    for (int i = 0; i < 20; i++) assert_still_usable();
    return NULL;
}

static void launches_from_several_threads_do_not_disturb_each_other(void **state) {
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_many, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

#define ON(device_name, test) {#test " on " device_name, test, choose_device, NULL, (void *)(device_name)}
#define ON_GPU(test) {#test, test, choose_device, NULL, (void *)(uintptr_t)test_device()}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--own-fault") == 0) return own_fault();
    if (test_device_has_memory()) {
        const struct CMUnitTest tests[] = {
            ON_GPU(loads_that_are_thrown_away_may_lie_outside),
            ON_GPU(a_kernel_that_never_ends_is_stopped),
            ON_GPU(launches_from_several_threads_do_not_disturb_each_other),
            ON_GPU(a_fault_loses_the_gpu_and_is_said_at_every_call),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        ON("cpu", loads_that_are_thrown_away_may_lie_outside),
        ON("cpu-scalar", loads_that_are_thrown_away_may_lie_outside),
        ON("cpu", a_load_outside_is_an_error_naming_kernel_and_line),
        ON("cpu-scalar", a_load_outside_is_an_error_naming_kernel_and_line),
        ON("cpu", a_store_through_null_is_a_fault),
        ON("cpu-scalar", a_store_through_null_is_a_fault),
        ON("cpu", running_past_a_private_array_is_a_fault),
        ON("cpu-scalar", running_past_a_private_array_is_a_fault),
        ON("cpu", faults_outside_kernels_reach_the_previous_handler),
        ON("cpu-scalar", faults_outside_kernels_reach_the_previous_handler),
        ON("cpu", a_kernel_that_never_ends_is_stopped),
        ON("cpu-scalar", a_kernel_that_never_ends_is_stopped),
        ON("cpu", a_barrier_some_threads_miss_names_both),
        ON("cpu-scalar", a_barrier_some_threads_miss_names_both),
        ON("cpu", a_barrier_in_a_loop_of_different_trips_is_an_error_or_met),
        ON("cpu-scalar", a_barrier_in_a_loop_of_different_trips_is_an_error_or_met),
        ON("cpu", launches_from_several_threads_do_not_disturb_each_other),
        ON("cpu-scalar", launches_from_several_threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
