/* Launches on a GPU that are waited for: time-outs, measurement, log lines; and the consequences of kernels
 * that fail. */
#include "cuda/launches.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static smelt_dispatch_desc axpy_desc(smelt_array *y, smelt_array *x, const float *a) {
    return (smelt_dispatch_desc){.buffers = {{.array = y}, {.array = x}, {.bytes = a, .size = sizeof *a}},
                                 .grid = {8},
                                 .threadgroup = {8},
                                 .device = "cuda"};
}

/* ---- Time-outs. */

/* Runs until its flag is set, as polled code does. */
static CUresult run_until_stopped(const struct fake_launch *launch, void *context) {
    struct seen *seen = context;
    see(seen, launch, 3);
    volatile const uint32_t *stop = (const uint32_t *)(uintptr_t)seen->head.stop;
    if (!stop || *stop) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < 10000 && !*stop; i++) fake->pause();
    return *stop ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void test_endless_kernel_is_stopped(void **state) {
    (void)state;
    struct seen seen = {0};
    float a = 1;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1), *y = floats("cuda", 8, 0, 0);
    smelt_dispatch_desc desc = axpy_desc(y, x, &a);
    desc.timeout = 0.05;
    fake->launch(run_until_stopped, &seen);
    expect_failure(smelt_function_run(axpy, &desc), SMELT_ERROR_TIMEOUT,
                   "kernel 'axpy' ran longer than the time-out of 0.05 seconds and was stopped");
    /* The device continues, and a launch that ends in time succeeds. */
    fake->launch(run_axpy, &seen);
    desc.timeout = 100;
    OK(smelt_function_run(axpy, &desc));
    assert_true(seen.head.stop != 0);
    desc.timeout = 0;
    OK(smelt_function_run(axpy, &desc));
    assert_true(seen.head.stop == 0);
    y = on_host(y);
    assert_true(value_of(y, 7) == 16);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_function_release(axpy);
}

/* ---- Interrupts: of a launch with a time-out while it runs, and of one that waits for others before it. */

static void *raise_soon(void *interrupt) {
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    smelt_interrupt_raise(interrupt);
    return NULL;
}

static void test_endless_kernel_is_interrupted(void **state) {
    (void)state;
    static const char message[] = "kernel 'axpy' was interrupted by the caller";
    struct seen seen = {0};
    float a = 1;
    smelt_interrupt *interrupt;
    pthread_t thread;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1), *y = floats("cuda", 8, 0, 0);
    smelt_dispatch_desc desc = axpy_desc(y, x, &a);
    OK(smelt_interrupt_create(&interrupt));
    desc.timeout = 100;
    desc.interrupt = interrupt;
    for (int i = 0; i < 2; i++) {
        fake->launch(run_until_stopped, &seen);
        assert_int_equal(pthread_create(&thread, NULL, raise_soon, interrupt), 0);
        expect_failure(smelt_function_run(axpy, &desc), SMELT_ERROR_INTERRUPTED, message);
        pthread_join(thread, NULL);
        /* Still raised: nothing is launched. */
        seen.launches = 0;
        fake->launch(run_axpy, &seen);
        expect_failure(smelt_function_run(axpy, &desc), SMELT_ERROR_INTERRUPTED, message);
        assert_int_equal(seen.launches, 0);
        smelt_interrupt_clear(interrupt);
        OK(smelt_function_run(axpy, &desc));
        assert_int_equal(seen.launches, 1);
    }
    /* Without a time-out it is enqueued, and code that does not poll runs to its end. */
    desc.timeout = 0;
    OK(smelt_function_run(axpy, &desc));
    assert_true(seen.head.stop == 0);
    y = on_host(y);
    assert_true(value_of(y, 7) == 3 * 8);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_interrupt_release(interrupt);
    smelt_function_release(axpy);
}

/* The work before does not end: the driver says so at every query. */
static void test_waiting_for_others_is_interrupted(void **state) {
    (void)state;
    struct seen seen = {0};
    float a = 1;
    smelt_interrupt *interrupt;
    pthread_t thread;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1), *y = floats("cuda", 8, 0, 0);
    smelt_dispatch_desc desc = axpy_desc(y, x, &a);
    OK(smelt_interrupt_create(&interrupt));
    desc.timeout = 100;
    fake->launch(run_axpy, &seen);
    OK(smelt_function_run(axpy, &desc));
    fake->deferred(true);
    desc.interrupt = interrupt;
    desc.timeout = 0;
    OK(smelt_function_run(axpy, &desc));
    desc.timeout = 100;
    /* While the interrupt is not raised, it queries until all work has ended. */
    fake->forget_calls();
    OK(smelt_function_run(axpy, &desc));
    assert_int_equal(seen.launches, 3);
    assert_int_equal(fake->calls("cuStreamQuery"), 3);
    /* If it is raised meanwhile, the launch is not enqueued; the work before it still runs. */
    fake->patience(1000000);
    desc.timeout = 0;
    OK(smelt_function_run(axpy, &desc));
    desc.timeout = 100;
    assert_int_equal(pthread_create(&thread, NULL, raise_soon, interrupt), 0);
    expect_failure(smelt_function_run(axpy, &desc), SMELT_ERROR_INTERRUPTED,
                   "kernel 'axpy' was interrupted by the caller");
    pthread_join(thread, NULL);
    assert_int_equal(seen.launches, 3);
    fake->patience(2);
    fake->deferred(false);
    y = on_host(y);
    assert_int_equal(seen.launches, 4);
    assert_true(value_of(y, 7) == 4 * 8);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_interrupt_release(interrupt);
    smelt_function_release(axpy);
}

/* ---- Measurement. */

static void test_info_is_measured_on_the_device(void **state) {
    (void)state;
    struct seen seen = {0};
    smelt_run_info info;
    float a = 1;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1), *y = floats("cuda", 8, 0, 0);
    smelt_dispatch_desc desc = axpy_desc(y, x, &a);
    desc.info = &info;
    fake->deferred(true);
    fake->launch(run_axpy, &seen);
    OK(smelt_function_run(axpy, &desc));
    fake->deferred(false);
    assert_int_equal(seen.launches, 1);
    assert_string_equal(info.device, "cuda:0");
    assert_int_equal(info.threads[0], 8);
    /* The fake's clock counts pieces of work as milliseconds: the launch, and the event after it. */
    assert_true(info.seconds >= 0.001 && info.seconds <= 0.0021);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_function_release(axpy);
    if (fake->alive("event") > 8) FAIL_TEST("%d events are left", fake->alive("event"));
}

/* ---- Faults. */

static CUresult run_astray(const struct fake_launch *launch, void *context) {
    (void)launch;
    (void)context;
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void test_fault_names_the_kernel_and_reset_helps(void **state) {
    (void)state;
    struct seen seen = {0};
    float a = 1;
    static const char fault[] = "kernel 'axpy' on device 'cuda:0' accessed invalid memory: "
                                "CUDA_ERROR_ILLEGAL_ADDRESS";
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1), *y = floats("cuda", 8, 0, 0), *out = NULL;
    smelt_dispatch_desc desc = axpy_desc(y, x, &a);
    fake->deferred(true);
    fake->launch(run_astray, NULL);
    OK(smelt_function_run(axpy, &desc));
    smelt_status status = smelt_device_wait("cuda");
    fake->deferred(false);
    if (status != SMELT_ERROR_FAULT || strncmp(smelt_error(), fault, sizeof fault - 1) != 0)
        FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
    status = smelt_function_run(axpy, &desc);
    if (status != SMELT_ERROR_DEVICE_LOST ||
        !strstr(smelt_error(), "kernel 'axpy' on device 'cuda:0' accessed"))
        FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
    assert_int_equal(smelt_array_to(y, "cpu", NULL, &out), SMELT_ERROR_DEVICE_LOST);
    OK(smelt_device_reset("cuda"));
    /* Earlier arrays are lost; the function's code is loaded again. */
    expect_failure(smelt_function_run(axpy, &desc), SMELT_ERROR_INVALID_ARGUMENT,
                   "array: it was created before device 'cuda:0' was reset, and can only be released");
    smelt_array_release(x);
    smelt_array_release(y);
    x = floats("cuda", 8, 1, 1);
    y = floats("cuda", 8, 0, 0);
    desc = axpy_desc(y, x, &a);
    fake->launch(run_axpy, &seen);
    OK(smelt_function_run(axpy, &desc));
    y = on_host(y);
    assert_true(value_of(y, 7) == 8);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_function_release(axpy);
}

/* As at the end of a process, when the driver is unloaded before other parts are released. */
static void test_release_when_the_driver_is_gone(void **state) {
    (void)state;
    struct seen seen = {0};
    float a = 1;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1), *y = floats("cuda", 8, 0, 0);
    smelt_dispatch_desc desc = axpy_desc(y, x, &a);
    fake->launch(run_axpy, &seen);
    OK(smelt_function_run(axpy, &desc));
    assert_int_equal(smelt_array_create_on("cuda", SMELT_NO_DTYPE, (smelt_shape){0}, &y),
                     SMELT_ERROR_INVALID_ARGUMENT);
    char *message = strdup(smelt_error());
    fake->fault(CUDA_ERROR_DEINITIALIZED);
    smelt_function_release(axpy);
    smelt_array_release(x);
    smelt_array_release(y);
    /* Releasing leaves the message unchanged. */
    assert_string_equal(smelt_error(), message);
    free(message);
    assert_int_equal(smelt_device_wait("cuda"), SMELT_ERROR_DEVICE_LOST);
    OK(smelt_device_reset("cuda"));
}

static void test_launch_that_needs_too_much(void **state) {
    (void)state;
    float a = 1;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1);
    smelt_dispatch_desc desc = axpy_desc(x, x, &a);
    fake->fail_call("cuLaunchKernelEx", 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_int_equal(smelt_function_run(axpy, &desc), SMELT_ERROR_LIMIT);
    assert_non_null(strstr(smelt_error(), "kernel 'axpy' on device 'cuda:0': the driver returns "));
    OK(smelt_function_run(axpy, &desc));
    smelt_array_release(x);
    smelt_function_release(axpy);
}

/* ---- Log lines. */

#define LOG_FILE                                                                          \
    "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n"         \
    "kernel void f(device int *out [[buffer(0)]], uint2 p [[thread_position_in_grid]]) {" \
    "os_log_default.log(\"at %u\", p.x); out[0] = 1; }"

/* The lines that a hook writes: groups of 4 x 2 threads on a grid of 6 x 3, cut off at the edge. */
struct logger {
    struct seen seen;
    char *texts; /* in the device's memory: "at %u", then "sub" */
    int extra;   /* lines of thread 0 beyond the six */
};

static void write_line(struct logger *logger, uint64_t group, uint64_t index, uint64_t value) {
    struct cuda_log *log = (struct cuda_log *)(uintptr_t)logger->seen.head.log;
    uint64_t text = (uintptr_t)logger->texts;
    uint64_t words[] = {10, group, index, SMELT_KERNEL_LOG_ERROR, 1,    text + 6, 4, 0,
                        0,  text,  1000,  2 | 4 << 8 | 1 << 16,   value};
    uint64_t count = sizeof words / sizeof *words, at = log->used;
    log->lines++;
    log->used += count;
    if (at + count <= log->capacity) memcpy(log->words + at, words, sizeof words);
}

static CUresult run_logger(const struct fake_launch *launch, void *context) {
    struct logger *logger = context;
    see(&logger->seen, launch, 1);
    struct cuda_log *log = (struct cuda_log *)(uintptr_t)logger->seen.head.log;
    fake->touch(logger->seen.head.log, true);
    if (!log || log->used || log->lines || log->capacity != 13 * SMELT_MAX_LOG_LINES) return 1;
    for (uint64_t i = 0; i < log->capacity; i++)
        if (log->words[i]) return 1;
    write_line(logger, 3, 1, 31); /* the last group, 2 x 1 */
    write_line(logger, 1, 3, 13); /* 2 x 2 */
    write_line(logger, 1, 2, 12);
    write_line(logger, 0, 7, 7);
    write_line(logger, 0, 4, 4);
    write_line(logger, 0, 4, 5);
    for (int i = 0; i < logger->extra; i++) write_line(logger, 0, 0, 0);
    return CUDA_SUCCESS;
}

struct receiver {
    char lines[6][100];
    int count, warnings;
    bool resets; /* calls smelt, although it must not */
    char warning[200];
};

static void receive(const smelt_kernel_line *line, void *context) {
    struct receiver *receiver = context;
    if (receiver->count < 6)
        snprintf(receiver->lines[receiver->count], sizeof receiver->lines[0], "%s %d (%u, %u, %u) %s|%s: %s",
                 line->kernel, (int)line->level, line->thread[0], line->thread[1], line->thread[2],
                 line->subsystem, line->category, line->text);
    receiver->count++;
    if (receiver->resets) OK(smelt_device_reset("cuda"));
}

static void receive_warning(smelt_log_level level, const char *line, void *context) {
    struct receiver *receiver = context;
    if (level != SMELT_LOG_WARNING) return;
    receiver->warnings++;
    snprintf(receiver->warning, sizeof receiver->warning, "%s", line);
}

static void test_lines_of_a_launch(void **state) {
    (void)state;
    static const char *const expected[] = {"f 3 (0, 1, 0) sub|: at 4",  "f 3 (0, 1, 0) sub|: at 5",
                                           "f 3 (3, 1, 0) sub|: at 7",  "f 3 (4, 1, 0) sub|: at 12",
                                           "f 3 (5, 1, 0) sub|: at 13", "f 3 (5, 2, 0) sub|: at 31"};
    struct logger logger = {.extra = 0};
    struct receiver receiver = {.count = 0};
    smelt_run_info info;
    smelt_function *f = function_of(LOG_FILE, "f");
    smelt_array *out = floats("cuda", 1, 0, 0), *host, *texts;
    OK(smelt_array_from_values(SMELT_UINT8, (smelt_shape){1, {10}}, "at %u\0sub", &host));
    OK(smelt_array_to(host, "cuda", NULL, &texts));
    logger.texts = smelt_array_data(texts);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = out}}, .grid = {6, 3}, .threadgroup = {4, 2}, .device = "cuda", .info = &info};
    smelt_set_kernel_log(receive, &receiver);
    smelt_set_log(receive_warning, &receiver);
    fake->launch(run_logger, &logger);
    OK(smelt_function_run(f, &desc));
    assert_int_equal(receiver.count, 6);
    for (int i = 0; i < 6; i++) assert_string_equal(receiver.lines[i], expected[i]);
    assert_int_equal(info.log_lines, 6);
    assert_int_equal(info.dropped_log_lines, 0);
    assert_int_equal(receiver.warnings, 0);
    /* More lines than are kept, and more than there is room for. */
    logger.extra = 2 * SMELT_MAX_LOG_LINES;
    receiver = (struct receiver){.count = 0};
    OK(smelt_function_run(f, &desc));
    smelt_set_log(NULL, NULL);
    assert_int_equal(receiver.count, SMELT_MAX_LOG_LINES);
    assert_int_equal(info.log_lines, SMELT_MAX_LOG_LINES);
    assert_int_equal(info.dropped_log_lines, SMELT_MAX_LOG_LINES + 6);
    assert_string_equal(receiver.warning,
                        "kernel 'f' logged 10006 lines more than the 10000 kept per launch; they are lost");
    logger.extra = 0;
    receiver = (struct receiver){.resets = true};
    OK(smelt_function_run(f, &desc));
    smelt_set_kernel_log(NULL, NULL);
    assert_int_equal(receiver.count, 6);
    smelt_array_release(host);
    smelt_array_release(texts);
    smelt_array_release(out);
    smelt_function_release(f);
}

/* ---- Recordings. */

static void test_what_must_be_waited_for_is_not_recorded(void **state) {
    (void)state;
    float a = 1;
    smelt_stream *stream;
    smelt_recording *recording;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1), *y = floats("cuda", 8, 0, 0);
    smelt_dispatch_desc desc = axpy_desc(y, x, &a);
    struct seen seen = {0};
    fake->launch(run_axpy, &seen);
    OK(smelt_stream_create("cuda", &stream));
    OK(smelt_function_run(axpy, &desc));
    desc.timeout = 10;
    OK(smelt_function_run(axpy, &desc));
    desc.stream = stream;
    OK(smelt_stream_record_begin(stream));
    expect_failure(
        smelt_function_run(axpy, &desc), SMELT_ERROR_INVALID_ARGUMENT,
        "kernel 'axpy': the stream is recording; a launch with a time-out must be waited for and cannot "
        "be recorded");
    desc.timeout = 0;
    OK(smelt_function_run(axpy, &desc));
    assert_int_equal(seen.launches, 2);
    OK(smelt_stream_record_end(stream, &recording));
    /* The function may be released: its code stays with what can replay it. */
    smelt_function_release(axpy);
    assert_int_equal(fake->alive("module"), 1);
    for (int i = 0; i < 3; i++) OK(smelt_recording_replay(recording, stream));
    y = on_host(y);
    assert_int_equal(seen.launches, 5);
    assert_true(value_of(y, 7) == 5 * 8);
    smelt_recording_release(recording);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_stream_release(stream);
    OK(smelt_device_reset("cuda"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_endless_kernel_is_stopped, check_fake),
        cmocka_unit_test_teardown(test_endless_kernel_is_interrupted, check_fake),
        cmocka_unit_test_teardown(test_waiting_for_others_is_interrupted, check_fake),
        cmocka_unit_test_teardown(test_info_is_measured_on_the_device, check_fake),
        cmocka_unit_test_teardown(test_fault_names_the_kernel_and_reset_helps, check_fake),
        cmocka_unit_test_teardown(test_release_when_the_driver_is_gone, check_fake),
        cmocka_unit_test_teardown(test_launch_that_needs_too_much, check_fake),
        cmocka_unit_test_teardown(test_lines_of_a_launch, check_fake),
        cmocka_unit_test_teardown(test_what_must_be_waited_for_is_not_recorded, check_fake),
    };
    return cmocka_run_group_tests_name("launches that are waited for, on the fake driver", tests, open_fake,
                                       NULL);
}
