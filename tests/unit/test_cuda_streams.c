/* Streams, events and recordings over the fake driver, which does nothing before it must and notices work in
 * no order; and the same calls on a CPU. */
#include "unit.h"

#include "array/array.h"
#include "cuda/fake_driver.h"
#include "device/cuda/memory.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 1000
#define LINE(count) ((smelt_shape){1, {count}})

static const struct fake_cuda *fake;

static void ok(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
}

static void refused(smelt_status found, smelt_status wanted, const char *message) {
    assert_string_equal(smelt_error(), message);
    assert_int_equal(found, wanted);
}

static struct cuda_gpu *gpu(void) {
    const struct device *device;
    ok(device_find("cuda", &device));
    return cuda_gpu_of(device);
}

static int setup(void **state) {
    (void)state;
    fake->deferred(true);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) ok(smelt_device_wait(i ? "cuda:1" : "cuda:0"));
    if (fake->violation()) FAIL_TEST("%s", fake->violation());
    assert_int_equal(fake->alive("block"), 0);
    assert_int_equal(fake->used(0) + fake->used(1), 0);
    assert_true(fake->alive("pinned") <= 2 * CUDA_STAGING_SLOTS);
    assert_true(fake->alive("event") <= 2 * CUDA_STAGING_SLOTS + 2);
    assert_int_equal(fake->alive("stream"), 2);
    assert_int_equal(fake->alive("graph"), 0);
    return 0;
}

static smelt_stream *new_stream(const char *device) {
    smelt_stream *stream;
    ok(smelt_stream_create(device, &stream));
    return stream;
}

static smelt_array *new_array(const char *device, double value) {
    smelt_array *array;
    ok(smelt_array_create_on(device, SMELT_INT32, LINE(COUNT), &array));
    ok(smelt_array_fill(array, value));
    return array;
}

/* What a launch does, as a copy: `to` = `from`, on the stream. */
static smelt_status launch(smelt_stream *stream, smelt_array *to, smelt_array *from) {
    return to->memory->space->copy_within(to->memory, stream, to->data, from->memory, from->data,
                                          (size_t)to->size * smelt_dtype_bytes(to->dtype));
}

static smelt_status set(smelt_stream *stream, smelt_array *array, double value) {
    return array_fill_on(array, stream, value);
}

static void expect(smelt_array *array, int32_t value) {
    smelt_array *host;
    ok(smelt_array_to(array, "cpu", NULL, &host));
    for (int64_t i = 0; i < host->size; i++)
        if (((int32_t *)host->data)[i] != value)
            FAIL_TEST("element %lld is %d, expected %d", (long long)i, ((int32_t *)host->data)[i], value);
    smelt_array_release(host);
}

/* ---- The order of uses. */

static void another_stream_sees_what_one_wrote(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda"), *b = new_stream("cuda");
    smelt_array *x = new_array("cuda", 1), *y = new_array("cuda", 2);
    ok(set(a, x, 3));
    ok(launch(b, y, x));
    expect(y, 3);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_stream_release(a);
    smelt_stream_release(b);
}

static void a_writer_waits_for_readers(void **state) {
    (void)state;
    enum { READERS = CUDA_READERS + 3 };
    smelt_stream *streams[READERS], *writer = new_stream("cuda");
    smelt_array *x = new_array("cuda", 1), *copies[READERS];
    for (int i = 0; i < READERS; i++) {
        streams[i] = new_stream("cuda");
        copies[i] = new_array("cuda", 0);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < READERS; i++) ok(launch(streams[i], copies[i], x));
        ok(set(writer, x, round + 5));
    }
    for (int i = 0; i < READERS; i++) {
        expect(copies[i], 5);
        smelt_array_release(copies[i]);
        smelt_stream_release(streams[i]);
    }
    expect(x, 6);
    smelt_array_release(x);
    smelt_stream_release(writer);
}

static void one_stream_asks_for_no_order(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda");
    smelt_array *x, *y;
    ok(gpu()->space.create(&gpu()->space, a, SMELT_INT32, &LINE(COUNT), &x));
    ok(gpu()->space.create(&gpu()->space, a, SMELT_INT32, &LINE(COUNT), &y));
    fake->forget_calls();
    for (int i = 0; i < 10; i++) {
        smelt_array *passing;
        ok(set(a, x, i));
        ok(gpu()->space.create(&gpu()->space, a, SMELT_INT32, &LINE(COUNT), &passing));
        ok(launch(a, passing, x));
        ok(launch(a, y, passing));
        smelt_array_release(passing);
    }
    assert_int_equal(fake->calls("cuEventRecord"), 0);
    assert_int_equal(fake->calls("cuStreamWaitEvent"), 0);
    assert_int_equal(fake->calls("cuStreamSynchronize"), 0);
    /* Nor does one that reads the same again and again. */
    smelt_stream *b = new_stream("cuda");
    smelt_array *z;
    ok(gpu()->space.create(&gpu()->space, b, SMELT_INT32, &LINE(COUNT), &z));
    for (int i = 0; i < 10; i++) ok(launch(b, z, x));
    assert_int_equal(fake->calls("cuStreamWaitEvent"), 1);
    expect(z, 9);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_array_release(z);
    smelt_stream_release(a);
    smelt_stream_release(b);
}

static void released_streams_keep_their_place(void **state) {
    (void)state;
    smelt_array *x = new_array("cuda", 1), *y = new_array("cuda", 2);
    smelt_stream *a = new_stream("cuda");
    ok(set(a, x, 4));
    ok(launch(a, y, x));
    smelt_stream_release(a); /* nothing of it has taken place */
    smelt_stream *b = new_stream("cuda");
    ok(set(b, x, 5));
    expect(y, 4);
    expect(x, 5);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_stream_release(b);
}

static void memory_is_given_back_after_all_streams(void **state) {
    (void)state;
    smelt_stream *streams[3];
    smelt_array *x = new_array("cuda", 1), *copies[3];
    for (int i = 0; i < 3; i++) {
        streams[i] = new_stream("cuda");
        copies[i] = new_array("cuda", 0);
        ok(launch(streams[i], copies[i], x));
    }
    smelt_array_release(x);
    for (int i = 0; i < 3; i++) {
        smelt_stream_release(streams[i]);
        expect(copies[i], 1);
        smelt_array_release(copies[i]);
    }
}

static void streams_of_two_gpus_are_ordered(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda:0"), *b = new_stream("cuda:1");
    smelt_array *x = new_array("cuda:0", 1), *y = new_array("cuda:1", 2);
    for (int i = 0; i < 3; i++) {
        ok(set(a, x, 10 + i));
        ok(launch(b, y, x));
        ok(launch(a, x, y));
    }
    ok(set(a, x, 0));
    expect(y, 12);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_stream_release(a);
    smelt_stream_release(b);
}

static void blocks_for_a_launch_come_and_go_in_its_order(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda");
    CUdeviceptr block;
    CUcontext previous;
    int32_t sent = 77, received = 0;
    ok(cuda_enter(gpu(), &previous));
    ok(cuda_scratch_take(cuda_stream_of(a), sizeof sent, &block));
    ok(cuda_copy_in(cuda_stream_of(a), block, &sent, sizeof sent));
    sent = 0;
    ok(cuda_copy_out(cuda_stream_of(a), &received, block, sizeof received));
    cuda_scratch_give(cuda_stream_of(a), block);
    refused(cuda_scratch_take(cuda_stream_of(a), (size_t)1 << 40, &block), SMELT_ERROR_OUT_OF_MEMORY,
            "a launch on device 'cuda:0' needs a block of 1099511627776 bytes: out of memory, "
            "268435456 of 268435456 bytes are free");
    cuda_leave(gpu(), previous);
    assert_int_equal(received, 77);
    smelt_stream_release(a);
}

/* ---- Streams. */

static void a_stream_of_the_callers(void **state) {
    (void)state;
    CUcontext previous;
    CUstream mine;
    smelt_stream *stream, *usual;
    ok(cuda_enter(gpu(), &previous));
    assert_int_equal(gpu()->driver->stream_create(&mine, 0), CUDA_SUCCESS);
    cuda_leave(gpu(), previous);
    ok(smelt_stream_from_native("cuda", mine, &stream));
    ok(smelt_stream_from_native("cuda", NULL, &usual));
    assert_ptr_equal(smelt_stream_native(stream), mine);
    assert_null(smelt_stream_native(usual));
    smelt_array *x = new_array("cuda", 1), *y = new_array("cuda", 2);
    ok(set(stream, x, 8));
    ok(launch(usual, y, x));
    ok(set(stream, x, 9));
    /* The handle goes before the stream; what was enqueued stays in order. */
    smelt_stream_release(stream);
    smelt_stream_release(usual);
    ok(cuda_enter(gpu(), &previous));
    assert_int_equal(gpu()->driver->stream_destroy(mine), CUDA_SUCCESS);
    cuda_leave(gpu(), previous);
    expect(y, 8);
    expect(x, 9);
    smelt_array_release(x);
    smelt_array_release(y);
}

static void waiting_waits_for_the_stream_alone(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda"), *b = new_stream("cuda");
    smelt_array *x, *y;
    ok(gpu()->space.create(&gpu()->space, a, SMELT_INT32, &LINE(COUNT), &x));
    ok(gpu()->space.create(&gpu()->space, b, SMELT_INT32, &LINE(COUNT), &y));
    ok(set(a, x, 1));
    ok(set(b, y, 2));
    ok(smelt_stream_wait(a));
    assert_int_equal(*(int32_t *)x->data, 1); /* the fake's memory is the host's */
    assert_int_not_equal(*(int32_t *)y->data, 2);
    ok(smelt_device_wait("cuda"));
    assert_int_equal(*(int32_t *)y->data, 2);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_stream_release(a);
    smelt_stream_release(b);
}

/* Asking does not wait: what is enqueued stays enqueued at the first question. */
static void who_asks_does_not_wait(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda"), *b = new_stream("cuda");
    smelt_array *x = new_array("cuda", 1), *y = new_array("cuda", 2), *host = NULL;
    smelt_event *event;
    bool done = true;
    ok(smelt_event_create("cuda", &event));
    ok(smelt_event_is_done(event, &done));
    assert_true(done);
    ok(smelt_stream_wait(a));
    ok(set(a, x, 3));
    ok(smelt_event_record(event, a));
    ok(smelt_array_is_ready(x, &done));
    assert_false(done);
    ok(smelt_stream_is_done(a, &done));
    assert_false(done);
    ok(smelt_event_is_done(event, &done));
    assert_false(done);
    ok(smelt_stream_is_done(b, &done));
    assert_true(done);
    for (done = false; !done;) ok(smelt_array_is_ready(x, &done));
    ok(smelt_stream_is_done(a, &done));
    assert_true(done);
    ok(smelt_event_is_done(event, &done));
    assert_true(done);
    ok(set(a, x, 4));
    for (done = false; !done;) ok(smelt_stream_is_done(a, &done));
    ok(set(a, x, 5));
    ok(smelt_event_record(event, a));
    for (done = false; !done;) ok(smelt_event_is_done(event, &done));
    /* The stream may be closed: the array remembers it. */
    ok(set(a, x, 6));
    smelt_stream_release(a);
    ok(smelt_array_is_ready(x, &done));
    assert_false(done);
    for (done = false; !done;) ok(smelt_array_is_ready(x, &done));
    expect(x, 6);
    ok(smelt_array_to(x, "cpu", NULL, &host));
    done = false;
    ok(smelt_array_is_ready(host, &done));
    assert_true(done);
    refused(smelt_stream_is_done(NULL, &done), SMELT_ERROR_INVALID_ARGUMENT,
            "stream is done: stream is NULL");
    refused(smelt_event_is_done(event, NULL), SMELT_ERROR_INVALID_ARGUMENT, "event is done: done is NULL");
    refused(smelt_array_is_ready(NULL, &done), SMELT_ERROR_INVALID_ARGUMENT, "array is ready: array is NULL");
    smelt_array_release(host);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_event_release(event);
    smelt_stream_release(b);
}

static void wrong_streams_are_refused(void **state) {
    (void)state;
    smelt_stream *zero = new_stream("cuda:0"), *one = new_stream("cuda:1"), *cpu = new_stream("cpu"), *none;
    smelt_array *x = new_array("cuda:0", 1), *result = NULL;
    refused(smelt_stream_create("cuda", NULL), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: the address for the new stream is NULL");
    refused(smelt_stream_create("tpu", &none), SMELT_ERROR_NO_DEVICE,
            "device 'tpu' does not exist on this machine; expected one of: cpu, cpu-scalar, cuda:0, cuda:1");
    refused(smelt_stream_wait(NULL), SMELT_ERROR_INVALID_ARGUMENT, "stream wait: stream is NULL");
    refused(set(one, x, 1), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it belongs to device 'cuda:1', expected one of 'cuda:0'");
    refused(set(cpu, x, 1), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it belongs to device 'cpu', expected one of 'cuda:0'");
    refused(smelt_array_to(x, "cpu", one, &result), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it belongs to device 'cuda:1', expected one of 'cuda:0'");
    refused(smelt_array_to(x, "cuda:1", zero, &result), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it belongs to device 'cuda:0', expected one of 'cuda:1'");
    assert_null(result);
    assert_int_equal(smelt_stream_from_native("cpu", &none, &none), SMELT_ERROR_INVALID_ARGUMENT);
    assert_memory_equal(smelt_error(), "stream: device 'cpu' has no native streams; expected NULL, not ", 63);
    smelt_array_release(x);
    smelt_stream_release(zero);
    smelt_stream_release(one);
    smelt_stream_release(cpu);
    smelt_stream_release(NULL);
}

/* ---- Events. */

static void events_order_streams(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda"), *b = new_stream("cuda:1");
    smelt_event *event, *later;
    ok(smelt_event_create("cuda", &event));
    ok(smelt_event_create("cuda:1", &later));
    ok(smelt_event_wait(event)); /* not recorded: there is nothing to wait for */
    smelt_array *x;
    ok(gpu()->space.create(&gpu()->space, a, SMELT_INT32, &LINE(COUNT), &x));
    ok(set(a, x, 5));
    ok(smelt_event_record(event, a));
    ok(set(a, x, 6));
    ok(smelt_stream_wait_event(b, event));
    ok(smelt_event_record(later, b));
    smelt_event_release(event);
    assert_int_not_equal(*(int32_t *)x->data, 5);
    ok(smelt_event_wait(later));
    assert_int_equal(*(int32_t *)x->data, 5);
    ok(smelt_stream_wait(a));
    assert_int_equal(*(int32_t *)x->data, 6);
    smelt_array_release(x);
    smelt_event_release(smelt_event_retain(later));
    smelt_event_release(later);
    smelt_stream_release(a);
    smelt_stream_release(b);
}

static void events_tell_time(void **state) {
    (void)state;
    smelt_event *start, *end, *other;
    double seconds = -1;
    ok(smelt_event_create("cuda", &start));
    ok(smelt_event_create("cuda", &end));
    ok(smelt_event_create("cuda:1", &other));
    ok(smelt_event_record(start, NULL));
    refused(smelt_event_seconds(start, end, &seconds), SMELT_ERROR_INVALID_ARGUMENT,
            "event seconds: end has not been recorded");
    refused(smelt_event_seconds(end, start, &seconds), SMELT_ERROR_INVALID_ARGUMENT,
            "event seconds: start has not been recorded");
    refused(
        smelt_event_seconds(start, other, &seconds), SMELT_ERROR_INVALID_ARGUMENT,
        "event seconds: start belongs to device 'cuda:0', end to 'cuda:1'; expected events of one device");
    smelt_array *x = new_array("cuda", 1);
    ok(smelt_event_record(end, NULL));
    ok(smelt_event_seconds(start, end, &seconds));
    assert_float_equal(seconds, 3e-3, 1e-9); /* the fake's pieces of work take a millisecond each */
    smelt_array_release(x);
    smelt_event_release(start);
    smelt_event_release(end);
    smelt_event_release(other);
}

static void wrong_events_are_refused(void **state) {
    (void)state;
    smelt_event *event;
    smelt_stream *one = new_stream("cuda:1");
    ok(smelt_event_create("cuda:0", &event));
    refused(smelt_event_record(NULL, one), SMELT_ERROR_INVALID_ARGUMENT, "event record: event is NULL");
    refused(smelt_event_record(event, one), SMELT_ERROR_INVALID_ARGUMENT,
            "event record: the event belongs to device 'cuda:0', the stream to 'cuda:1'");
    refused(smelt_event_wait(NULL), SMELT_ERROR_INVALID_ARGUMENT, "event wait: event is NULL");
    refused(smelt_stream_wait_event(one, NULL), SMELT_ERROR_INVALID_ARGUMENT,
            "stream wait event: event is NULL");
    refused(smelt_event_seconds(event, event, NULL), SMELT_ERROR_INVALID_ARGUMENT,
            "event seconds: seconds is NULL");
    smelt_event_release(event);
    smelt_stream_release(one);
}

static void the_same_program_runs_on_a_cpu(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cpu"), *b = new_stream("cuda");
    smelt_event *start, *end;
    double seconds = -1;
    fake->forget_calls();
    ok(smelt_event_create("cpu", &start));
    ok(smelt_event_create("cpu", &end));
    ok(smelt_event_record(start, a));
    ok(smelt_event_record(end, NULL));
    ok(smelt_event_wait(end));
    ok(smelt_stream_wait_event(a, end));
    ok(smelt_stream_wait_event(b, end)); /* it has happened */
    ok(smelt_event_seconds(start, end, &seconds));
    assert_true(seconds >= 0 && seconds < 10);
    ok(smelt_stream_wait(a));
    assert_null(smelt_stream_native(a));
    ok(smelt_device_wait("cpu"));
    bool done = false;
    ok(smelt_stream_is_done(a, &done));
    assert_true(done);
    done = false;
    ok(smelt_event_is_done(end, &done));
    assert_true(done);
    assert_int_equal(fake->calls(NULL), 0);
    /* A CPU's stream waits for a GPU's event by its caller. */
    smelt_array *x = new_array("cuda", 4);
    smelt_event *event;
    ok(smelt_event_create("cuda", &event));
    ok(smelt_event_record(event, NULL));
    ok(smelt_stream_wait_event(a, event));
    assert_int_equal(*(int32_t *)x->data, 4);
    smelt_array_release(x);
    smelt_event_release(event);
    smelt_event_release(start);
    smelt_event_release(end);
    smelt_stream_release(smelt_stream_retain(a));
    smelt_stream_release(a);
    smelt_stream_release(b);
}

/* ---- Recordings. */

static void a_recording_does_nothing_until_it_is_replayed(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda"), *b = new_stream("cuda");
    smelt_array *x = new_array("cuda", 1), *y = new_array("cuda", 2), *z = new_array("cuda", 3);
    smelt_recording *recording;
    ok(smelt_stream_record_begin(a));
    ok(launch(a, y, x));
    ok(launch(a, z, y));
    ok(set(a, x, 7));
    ok(smelt_stream_record_end(a, &recording));
    expect(x, 1);
    expect(z, 3);
    ok(smelt_recording_replay(recording, a));
    expect(z, 1);
    /* Uses by others in between are ordered with the replays, on whatever stream they are. */
    ok(set(b, x, 20));
    ok(smelt_recording_replay(recording, a));
    ok(launch(b, x, z));
    ok(smelt_recording_replay(recording, b));
    ok(smelt_recording_replay(recording, NULL));
    expect(y, 7);
    expect(z, 7);
    fake->forget_calls();
    for (int i = 0; i < 5; i++) ok(smelt_recording_replay(recording, NULL));
    assert_int_equal(fake->calls("cuGraphLaunch"), 5);
    assert_int_equal(fake->calls("cuStreamWaitEvent"), 0);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_array_release(z);
    smelt_stream_release(a);
    smelt_stream_release(b);
    smelt_recording_release(smelt_recording_retain(recording));
    smelt_recording_release(recording);
}

static void a_recording_keeps_what_it_uses(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda");
    smelt_array *x = new_array("cuda", 1), *wide, *host;
    smelt_recording *recording;
    CUdeviceptr block;
    CUcontext previous;
    int32_t sent = 31;
    ok(smelt_stream_record_begin(a));
    /* An output that a launch allocates; a fill that takes bytes of the host with it; a block of a launch. */
    ok(gpu()->space.create(&gpu()->space, a, SMELT_INT64, &LINE(20000), &wide));
    ok(array_fill_on(wide, a, 0x100000007));
    ok(cuda_enter(gpu(), &previous));
    ok(cuda_scratch_take(cuda_stream_of(a), sizeof sent, &block));
    ok(cuda_copy_in(cuda_stream_of(a), block, &sent, sizeof sent));
    sent = 0;
    ok(cuda_memory_use(x->memory, cuda_stream_of(a), true));
    assert_int_equal(gpu()->driver->copy_within((CUdeviceptr)(uintptr_t)x->data, block, sizeof sent,
                                                cuda_stream_of(a)->handle),
                     CUDA_SUCCESS);
    cuda_scratch_give(cuda_stream_of(a), block);
    cuda_leave(gpu(), previous);
    ok(smelt_stream_record_end(a, &recording));
    smelt_array *last = wide;
    ok(smelt_array_view(wide, LINE(1), NULL, 19999, &last));
    smelt_array_release(wide);
    for (int i = 0; i < 2; i++) {
        ok(smelt_array_fill(last, 0));
        ok(smelt_recording_replay(recording, a));
        ok(smelt_array_to(last, "cpu", NULL, &host));
        assert_int_equal(*(int64_t *)host->data, 0x100000007);
        smelt_array_release(host);
        ok(smelt_array_to(x, "cpu", NULL, &host));
        assert_int_equal(*(int32_t *)host->data, 31);
        smelt_array_release(host);
    }
    smelt_array_release(last);
    smelt_array_release(x);
    assert_int_equal(fake->alive("block"), 3);
    ok(smelt_recording_replay(recording, a)); /* in flight when it is released */
    smelt_stream_release(a);
    smelt_recording_release(recording);
}

/* Even where nothing else asks for an order with the stream it was allocated on. */
static void a_recordings_block_is_there_at_the_first_replay(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda");
    smelt_recording *recording;
    CUdeviceptr block;
    CUcontext previous;
    int32_t sent = 5, received = 0;
    ok(smelt_stream_record_begin(a));
    ok(cuda_enter(gpu(), &previous));
    ok(cuda_scratch_take(cuda_stream_of(a), sizeof sent, &block));
    ok(cuda_copy_in(cuda_stream_of(a), block, &sent, sizeof sent));
    cuda_leave(gpu(), previous);
    ok(smelt_stream_record_end(a, &recording));
    ok(smelt_recording_replay(recording, a));
    ok(cuda_enter(gpu(), &previous));
    ok(cuda_copy_out(cuda_stream_of(a), &received, block, sizeof received));
    cuda_leave(gpu(), previous);
    assert_int_equal(received, 5);
    smelt_recording_release(recording);
    smelt_stream_release(a);
}

static void others_go_on_while_a_stream_records(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda");
    smelt_array *x = new_array("cuda", 1), *y = new_array("cuda", 2);
    smelt_recording *recording;
    ok(set(a, x, 5));
    ok(smelt_stream_record_begin(a));
    ok(set(a, x, 6));
    /* x is used by what the stream did before it recorded; all of the device can be waited for. */
    ok(smelt_array_copy(y, x));
    expect(y, 5);
    ok(smelt_device_wait("cuda"));
    smelt_array *full = NULL;
    assert_int_equal(smelt_array_create_on("cuda", SMELT_INT8, LINE(INT64_C(1) << 40), &full),
                     SMELT_ERROR_OUT_OF_MEMORY);
    ok(smelt_stream_record_end(a, &recording));
    expect(x, 5);
    ok(smelt_recording_replay(recording, NULL));
    expect(x, 6);
    smelt_recording_release(recording);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_stream_release(a);
}

static void wrong_recordings_are_refused(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda"), *cpu = new_stream("cpu"), *one = new_stream("cuda:1"), *usual;
    smelt_array *x = new_array("cuda", 1), *result = NULL, *host;
    smelt_recording *recording = NULL;
    smelt_event *event;
    ok(smelt_event_create("cuda", &event));
    ok(smelt_stream_from_native("cuda", NULL, &usual));
    ok(smelt_array_create(SMELT_INT32, LINE(COUNT), &host));
    refused(smelt_stream_record_begin(NULL), SMELT_ERROR_INVALID_ARGUMENT,
            "stream record: stream is NULL; a default stream cannot record");
    refused(smelt_stream_record_begin(usual), SMELT_ERROR_INVALID_ARGUMENT,
            "stream record: CUDA's default stream cannot record; expected a stream of its own");
    refused(smelt_stream_record_end(a, &recording), SMELT_ERROR_INVALID_ARGUMENT,
            "stream record: the stream is not recording; call smelt_stream_record_begin first");
    refused(smelt_stream_record_begin(cpu), SMELT_ERROR_UNSUPPORTED,
            "stream record: device 'cpu' runs launches immediately and cannot record them");
    ok(smelt_stream_record_begin(a));
    refused(smelt_stream_record_begin(a), SMELT_ERROR_INVALID_ARGUMENT,
            "stream record: the stream is already recording");
    refused(smelt_stream_wait(a), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it is recording, so there is nothing to wait for");
    refused(smelt_array_to(x, "cpu", a, &result), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it is recording, so it has no results to read");
    refused(smelt_array_to(host, "cuda", a, &result), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it is recording, and a replay could not copy from the host again; expected arrays on "
            "the device");
    refused(smelt_event_record(event, a), SMELT_ERROR_INVALID_ARGUMENT,
            "event: the stream is recording, and takes launches only until smelt_stream_record_end");
    refused(smelt_stream_wait_event(a, event), SMELT_ERROR_INVALID_ARGUMENT,
            "event: the stream is recording, and takes launches only until smelt_stream_record_end");
    ok(set(a, x, 3));
    /* None of it did the recording any harm. */
    ok(smelt_stream_record_end(a, &recording));
    ok(smelt_stream_record_begin(a));
    refused(smelt_recording_replay(recording, a), SMELT_ERROR_INVALID_ARGUMENT,
            "recording replay: the stream is recording; recordings cannot be nested");
    refused(smelt_recording_replay(NULL, a), SMELT_ERROR_INVALID_ARGUMENT,
            "recording replay: recording is NULL");
    refused(smelt_recording_replay(recording, one), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it belongs to device 'cuda:1', expected one of 'cuda:0'");
    /* A stream may go while it records. */
    smelt_stream_release(a);
    ok(smelt_recording_replay(recording, NULL));
    expect(x, 3);
    assert_null(result);
    smelt_recording_release(recording);
    smelt_recording_release(NULL);
    smelt_event_release(event);
    smelt_array_release(x);
    smelt_array_release(host);
    smelt_stream_release(cpu);
    smelt_stream_release(one);
    smelt_stream_release(usual);
}

static void a_recording_that_fails_leaves_nothing(void **state) {
    (void)state;
    static const char *const calls[] = {"cuEventCreate", "cuEventRecord", "cuStreamBeginCapture_v2",
                                        "cuGraphInstantiateWithFlags"};
    smelt_stream *a = new_stream("cuda");
    smelt_array *x = new_array("cuda", 1);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        smelt_recording *recording = NULL;
        fake->fail_call(calls[i], 1, CUDA_ERROR_INVALID_VALUE);
        smelt_status status = smelt_stream_record_begin(a);
        if (status == SMELT_OK) {
            ok(set(a, x, 2));
            status = smelt_stream_record_end(a, &recording);
        }
        assert_int_equal(status, SMELT_ERROR_INTERNAL);
        assert_null(recording);
    }
    /* A program that waits for the stream behind smelt's back ends the recording. */
    smelt_recording *recording = NULL;
    CUcontext previous;
    ok(smelt_stream_record_begin(a));
    ok(set(a, x, 2));
    ok(cuda_enter(gpu(), &previous));
    gpu()->driver->stream_wait(cuda_stream_of(a)->handle);
    cuda_leave(gpu(), previous);
    refused(smelt_stream_record_end(a, &recording), SMELT_ERROR_INTERNAL,
            "the recorded launches on device 'cuda:0': the driver returns error 901");
    assert_null(recording);
    ok(set(a, x, 4));
    expect(x, 4);
    smelt_array_release(x);
    smelt_stream_release(a);
}

static void a_fault_in_a_recording_names_its_kernels(void **state) {
    (void)state;
    smelt_stream *a = new_stream("cuda:1");
    smelt_recording *recording;
    CUcontext previous;
    struct cuda_gpu *gpu = cuda_stream_of(a)->gpu;
    ok(smelt_stream_record_begin(a));
    ok(cuda_enter(gpu, &previous));
    cuda_stream_note(cuda_stream_of(a), "recorded");
    cuda_leave(gpu, previous);
    ok(smelt_stream_record_end(a, &recording));
    ok(smelt_recording_replay(recording, a));
    fake->fault(CUDA_ERROR_ILLEGAL_ADDRESS);
    refused(smelt_stream_wait(a), SMELT_ERROR_FAULT,
            "kernel 'recorded' on device 'cuda:1' accessed invalid memory: "
            "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered); the device is lost to "
            "this process unless smelt_device_reset restores it");
    /* The other device works. */
    smelt_array *x = new_array("cuda:0", 1);
    expect(x, 1);
    smelt_array_release(x);
    ok(smelt_device_reset("cuda:1"));
    refused(smelt_recording_replay(recording, NULL), SMELT_ERROR_INVALID_ARGUMENT,
            "recording: it was created before device 'cuda:1' was reset, and can only be released");
    smelt_recording_release(recording);
    smelt_stream_release(a);
}

int main(void) {
    fake = fake_cuda_open(FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    if (!fake) return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(another_stream_sees_what_one_wrote),
        TEST(a_writer_waits_for_readers),
        TEST(one_stream_asks_for_no_order),
        TEST(released_streams_keep_their_place),
        TEST(memory_is_given_back_after_all_streams),
        TEST(streams_of_two_gpus_are_ordered),
        TEST(blocks_for_a_launch_come_and_go_in_its_order),
        TEST(a_stream_of_the_callers),
        TEST(waiting_waits_for_the_stream_alone),
        TEST(who_asks_does_not_wait),
        TEST(wrong_streams_are_refused),
        TEST(events_order_streams),
        TEST(events_tell_time),
        TEST(wrong_events_are_refused),
        TEST(the_same_program_runs_on_a_cpu),
        TEST(a_recording_does_nothing_until_it_is_replayed),
        TEST(a_recording_keeps_what_it_uses),
        TEST(a_recordings_block_is_there_at_the_first_replay),
        TEST(others_go_on_while_a_stream_records),
        TEST(wrong_recordings_are_refused),
        TEST(a_recording_that_fails_leaves_nothing),
        TEST(a_fault_in_a_recording_names_its_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
