/* Traces of the work of GPUs, over the fake driver: slices on the tracks of streams, read when the trace is
 * stopped. */
#include "trace_file.h"

#include "device/cuda/context.h"
#include "cuda/launches.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define COUNT 64

static char file[128];
static int events, streams;
static struct seen seen;

/* The library's own events, of streams and of copies, are few. The events and streams of a trace are
 * destroyed with it; deferred work happens when something waits. */
static int setup(void **state) {
    (void)state;
    fake->launch(run_axpy, &seen);
    fake->deferred(true);
    OK(smelt_device_wait("cuda"));
    events = fake->alive("event");
    streams = fake->alive("stream");
    return 0;
}

static int teardown(void **state) {
    int left = check_fake(state);
    assert_int_equal(fake->alive("stream"), streams);
    assert_int_equal(fake->alive("graph"), 0);
    (void)unlink(file);
    return left;
}

static smelt_function *axpy;
static smelt_array *x, *y;

static void open_arrays(void) {
    axpy = function_of(AXPY_FILE, "axpy");
    x = floats("cuda", COUNT, 1, 1);
    y = floats("cuda", COUNT, 0, 0);
}

static void close_arrays(void) {
    smelt_function_release(axpy);
    smelt_array_release(x);
    smelt_array_release(y);
}

static smelt_status launch(smelt_stream *stream, smelt_array *to) {
    static const float a = 2;
    return smelt_function_run(
        axpy, &(smelt_dispatch_desc){.buffers = {{.array = to}, {.array = x}, {.bytes = &a, .size = 4}},
                                     .grid = {COUNT},
                                     .threadgroup = {32},
                                     .device = "cuda",
                                     .stream = stream});
}

static struct text stop_and_read(void) {
    OK(smelt_trace_stop());
    return read_trace(file);
}

/* ---- */

static void a_machine_without_use_of_its_gpu_is_left_alone(void **state) {
    (void)state;
    fake->forget_calls();
    ok(smelt_trace_start(file));
    struct text text = stop_and_read();
    assert_int_equal(fake->calls(NULL), 0);
    assert_int_equal(count_of(&text, "cuda"), 0);
    text_free(&text);
}

static void nothing_is_recorded_without_a_trace(void **state) {
    (void)state;
    open_arrays();
    ok(launch(NULL, y));
    ok(smelt_device_wait("cuda"));
    fake->forget_calls();
    for (int i = 0; i < 5; i++) ok(launch(NULL, y));
    assert_int_equal(fake->calls("cuEventRecord"), 0);
    assert_int_equal(fake->calls("cuLaunchKernelEx"), 5);
    close_arrays();
}

static void launches_stand_on_their_streams(void **state) {
    (void)state;
    smelt_stream *stream;
    ok(smelt_stream_create("cuda", &stream));
    open_arrays();
    smelt_array *z = floats("cuda", COUNT, 0, 0);
    ok(launch(NULL, y));
    ok(smelt_trace_start(file));
    for (int i = 0; i < 3; i++) {
        ok(launch(NULL, y));
        ok(launch(stream, z));
    }
    struct text text = stop_and_read();
    assert_int_equal(count_of(&text, "\"cat\":\"kernel\",\"name\":\"axpy\""), 6);
    assert_int_equal(count_of(&text, "\"cat\":\"enqueue\",\"name\":\"enqueue axpy\""), 6);
    assert_int_equal(count_of(&text, "\"flow_in\":true"), 6);
    assert_int_equal(count_of(&text, "\"flow_out\":true"), 6);
    expect_in(&text, "\"args\":{\"name\":\"cuda:0\"}");
    expect_in(&text, "\"args\":{\"name\":\"default stream\"}");
    assert_int_equal(count_of(&text, "\"name\":\"thread_name\""), 3);
    assert_int_equal(count_of(&text, "\"grid\":[64,1,1],\"threadgroup\":[32,1,1],\"blocks\":[2,1,1]"), 6);
    expect_in(&text, "{\"index\":0,\"name\":\"y\",\"bytes\":256,\"access\":\"write\"}");
    text_free(&text);
    /* All that the trace created on the GPU is destroyed. */
    assert_true(fake->alive("event") <= events + 6);
    assert_int_equal(fake->alive("stream"), streams + 1);
    z = on_host(z);
    if (value_of(z, 3) != 3 * 2 * 4.0f) FAIL_TEST("z[3] is %g", (double)value_of(z, 3));
    smelt_array_release(z);
    close_arrays();
    smelt_stream_release(stream);
}

static void slices_of_a_stream_do_not_overlap(void **state) {
    (void)state;
    open_arrays();
    ok(smelt_trace_start(file));
    /* Deferred, they run one right after the other, closer together than the resolution of their times. */
    for (int i = 0; i < 200; i++) ok(launch(NULL, y));
    ok(smelt_device_wait("cuda"));
    struct text text = stop_and_read();
    long long end = -1;
    int count = 0;
    for (const char *at = text_string(&text); (at = strstr(at, "\"cat\":\"kernel\"")); at++, count++) {
        long long start = (long long)(1000 * strtod(strstr(at, "\"ts\":") + 5, NULL) + 0.5);
        long long taken = (long long)(1000 * strtod(strstr(at, "\"dur\":") + 6, NULL) + 0.5);
        if (start < end || taken < 0)
            FAIL_TEST("slice %d begins at %lld, that before ends at %lld", count, start, end);
        end = start + taken;
    }
    assert_int_equal(count, 200);
    assert_true((double)end <= number_at(&text, "\"duration_ns\"", "\"duration_ns\":"));
    text_free(&text);
    close_arrays();
}

static void copies_and_fills_are_told(void **state) {
    (void)state;
    ok(smelt_trace_start(file));
    smelt_array *array = floats("cuda", 1000, 0, 1), *other;
    ok(smelt_array_fill(array, 3));
    ok(smelt_array_convert(array, SMELT_FLOAT32, &other));
    array = on_host(array);
    struct text text = stop_and_read();
    static const char *const on_the_gpu[] = {"copy from host", "fill", "copy", "copy to host"};
    static const char *const on_the_host[] = {"copy to cuda:0", "fill on cuda:0", "copy within cuda:0",
                                              "copy from cuda:0"};
    for (int i = 0; i < 4; i++) {
        char words[100];
        snprintf(words, sizeof words, "\"cat\":\"copy\",\"name\":\"%s\"", on_the_gpu[i]);
        assert_int_equal(count_of(&text, words), 1);
        assert_int_equal((int)number_at(&text, words, "\"bytes\":"), 4000);
        assert_int_equal((int)number_at(&text, words, "\"pid\":"), 10000000);
        snprintf(words, sizeof words, "\"cat\":\"copy\",\"name\":\"%s\"", on_the_host[i]);
        assert_int_equal(count_of(&text, words), 1);
        assert_int_equal((int)number_at(&text, words, "\"bytes\":"), 4000);
        assert_int_equal((int)number_at(&text, words, "\"pid\":"), getpid());
    }
    text_free(&text);
    smelt_array_release(array);
    smelt_array_release(other);
}

static void recordings_are_told_when_they_are_replayed(void **state) {
    (void)state;
    smelt_stream *stream;
    smelt_recording *recording;
    ok(smelt_stream_create("cuda", &stream));
    open_arrays();
    ok(launch(NULL, y));
    ok(smelt_trace_start(file));
    ok(smelt_stream_record_begin(stream));
    for (int i = 0; i < 3; i++) ok(launch(stream, y));
    ok(smelt_stream_record_end(stream, &recording));
    for (int i = 0; i < 2; i++) ok(smelt_recording_replay(recording, NULL));
    struct text text = stop_and_read();
    assert_int_equal(count_of(&text, "\"cat\":\"enqueue\",\"name\":\"enqueue axpy\""), 3);
    assert_int_equal(count_of(&text, "\"cat\":\"kernel\",\"name\":\"axpy\""), 0);
    assert_int_equal(count_of(&text, "\"cat\":\"enqueue\",\"name\":\"enqueue replay\""), 2);
    assert_int_equal(count_of(&text, "\"cat\":\"kernel\",\"name\":\"replay\""), 2);
    assert_int_equal(count_of(&text, "\"args\":{\"kernels\":\"axpy\",\"launches\":3}"), 2);
    assert_int_equal((int)number_at(&text, "dropped_events", "\"dropped_events\":"), 0);
    text_free(&text);
    smelt_recording_release(recording);
    smelt_stream_release(stream);
    close_arrays();
    if (fake->violation()) FAIL_TEST("%s", fake->violation());
}

static const struct cuda_driver *enter(struct cuda_gpu **gpu, CUcontext *previous) {
    const struct device *device;
    ok(device_find("cuda", &device));
    *gpu = cuda_gpu_of(device);
    ok(cuda_enter(*gpu, previous));
    return (*gpu)->driver;
}

/* An event there could not be read, and would become part of the owner's capture. */
static void a_stream_that_its_owner_captures_is_not_marked(void **state) {
    (void)state;
    smelt_stream *owned, *stream;
    struct cuda_gpu *gpu;
    CUcontext previous;
    CUgraph graph;
    ok(smelt_stream_create("cuda", &owned));
    ok(smelt_stream_from_native("cuda", smelt_stream_native(owned), &stream));
    open_arrays();
    ok(launch(stream, y));
    ok(smelt_trace_start(file));
    const struct cuda_driver *driver = enter(&gpu, &previous);
    assert_int_equal(driver->capture_begin(smelt_stream_native(owned), CUDA_CAPTURE_RELAXED), CUDA_SUCCESS);
    fake->forget_calls();
    ok(launch(stream, y));
    assert_int_equal(fake->calls("cuLaunchKernelEx"), 0); /* graphs keep to plain dependencies */
    assert_int_equal(driver->capture_end(smelt_stream_native(owned), &graph), CUDA_SUCCESS);
    assert_int_equal(driver->graph_destroy(graph), CUDA_SUCCESS);
    cuda_leave(gpu, previous);
    ok(launch(stream, y));
    struct text text = stop_and_read();
    assert_int_equal(count_of(&text, "\"cat\":\"enqueue\""), 2);
    assert_int_equal(count_of(&text, "\"cat\":\"kernel\""), 1);
    expect_in(&text, " of the caller\"");
    text_free(&text);
    close_arrays();
    ok(smelt_device_reset("cuda")); /* captured code stays loaded */
    smelt_stream_release(stream);
    smelt_stream_release(owned);
}

/* Events that are read while the trace runs, and more of them than may wait. */
static void many_launches_are_read_on_the_way(void **state) {
    (void)state;
    enum { MANY = 1200 };
    open_arrays();
    fake->deferred(false);
    ok(smelt_trace_start(file));
    for (int i = 0; i < MANY; i++) ok(launch(NULL, y));
    assert_true(fake->alive("event") < 2 * MANY);
    struct text text = stop_and_read();
    assert_int_equal(count_of(&text, "\"cat\":\"kernel\""), MANY);
    text_free(&text);
    assert_true(fake->alive("event") <= events + 6);
    close_arrays();
}

static void what_cannot_be_marked_is_counted(void **state) {
    (void)state;
    open_arrays();
    ok(smelt_trace_start(file));
    ok(launch(NULL, y));
    fake->fail_call("cuEventRecord", 1, CUDA_ERROR_OUT_OF_MEMORY);
    ok(launch(NULL, y));
    fake->fail_call("cuEventRecord", 2, CUDA_ERROR_OUT_OF_MEMORY);
    ok(launch(NULL, y));
    ok(launch(NULL, y));
    struct text text = stop_and_read();
    assert_int_equal(count_of(&text, "\"cat\":\"kernel\""), 2);
    assert_int_equal((int)number_at(&text, "dropped_events", "\"dropped_events\":"), 2);
    text_free(&text);
    close_arrays();
}

static void a_reset_ends_what_waits_to_be_read(void **state) {
    (void)state;
    open_arrays();
    ok(smelt_trace_start(file));
    for (int i = 0; i < 3; i++) ok(launch(NULL, y));
    ok(smelt_device_reset("cuda"));
    close_arrays();
    open_arrays();
    ok(launch(NULL, y));
    struct text text = stop_and_read();
    assert_int_equal(count_of(&text, "\"cat\":\"kernel\",\"name\":\"axpy\""), 1);
    assert_true(number_at(&text, "dropped_events", "\"dropped_events\":") >= 3);
    text_free(&text);
    close_arrays();
    streams = 1;
}

static void a_lost_gpu_does_not_keep_the_trace(void **state) {
    (void)state;
    open_arrays();
    ok(launch(NULL, y));
    ok(smelt_trace_start(file));
    ok(launch(NULL, y));
    fake->fault(CUDA_ERROR_ILLEGAL_ADDRESS);
    struct text text = stop_and_read();
    assert_int_equal(count_of(&text, "\"cat\":\"enqueue\""), 1);
    assert_true(number_at(&text, "dropped_events", "\"dropped_events\":") >= 1);
    text_free(&text);
    assert_int_equal(smelt_device_wait("cuda"), SMELT_ERROR_DEVICE_LOST);
    ok(smelt_device_reset("cuda"));
    close_arrays();
    ok(smelt_device_wait("cuda"));
    streams = 1;
}

/* ---- Threads. */

enum { THREADS = 4, LAUNCHES = 300 };

static void *launch_often(void *status) {
    for (int i = 0; i < LAUNCHES && *(smelt_status *)status == SMELT_OK; i++)
        *(smelt_status *)status = launch(NULL, y);
    return NULL;
}

static void captures_come_and_go_among_launches(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    smelt_status statuses[THREADS] = {SMELT_OK};
    open_arrays();
    fake->deferred(false);
    ok(launch(NULL, y));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &statuses[i]), 0);
    for (int i = 0; i < 15; i++) {
        ok(smelt_trace_start(file));
        usleep(700);
        struct text text = stop_and_read();
        text_free(&text);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(statuses[i], SMELT_OK);
    }
    assert_true(fake->alive("event") <= events + 6);
    close_arrays();
}

static int open_all(void **state) {
    snprintf(file, sizeof file, "/tmp/smelt-trace-%d.json", (int)getpid());
    setenv("FAKE_CUDA_CLOCK", "1", 1);
    return open_fake(state);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_without_use_of_its_gpu_is_left_alone),
        TEST(nothing_is_recorded_without_a_trace),
        TEST(launches_stand_on_their_streams),
        TEST(slices_of_a_stream_do_not_overlap),
        TEST(copies_and_fills_are_told),
        TEST(a_stream_that_its_owner_captures_is_not_marked),
        TEST(many_launches_are_read_on_the_way),
        TEST(what_cannot_be_marked_is_counted),
        TEST(a_reset_ends_what_waits_to_be_read),
        TEST(a_lost_gpu_does_not_keep_the_trace),
        TEST(captures_come_and_go_among_launches),
        /* Last, since the code of recorded launches stays loaded. */
        cmocka_unit_test_setup(recordings_are_told_when_they_are_replayed, setup),
    };
    return cmocka_run_group_tests(tests, open_all, NULL);
}
