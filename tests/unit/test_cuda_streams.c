/* Streams and events over the fake driver, which delays work as long as it can and detects missing order; and
 * the same calls on a CPU. */
#include "streams.h"

#include "cuda/lender.h"

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
    /* Nor does one that reads the same array repeatedly. */
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
    smelt_stream_release(a); /* its work is still pending */
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
    /* The handle is released before the stream; enqueued work stays in order. */
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

static void a_captured_stream_has_memory_of_its_owner(void **state) {
    (void)state;
    CUcontext previous;
    CUstream mine;
    CUgraph graph;
    smelt_stream *stream, *own = new_stream("cuda");
    struct lender lender = {.size = 4096};
    const smelt_stream_memory memory = {lender_take, lender_give, &lender};
    const struct cuda_driver *driver = gpu()->driver;
    ok(cuda_enter(gpu(), &previous));
    assert_int_equal(driver->stream_create(&mine, CUDA_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(driver->allocate(&lender.block, lender.size, mine), CUDA_SUCCESS);
    ok(smelt_stream_from_native("cuda", mine, &stream));
    ok(smelt_stream_set_memory(stream, &memory));
    smelt_array *before, *x, *host = new_array("cpu", 3), *copied = NULL;
    ok(gpu()->space.create(&gpu()->space, stream, SMELT_INT32, &LINE(COUNT), &before));
    assert_int_equal(lender.taken, 0);
    assert_int_equal(driver->capture_begin(mine, CUDA_CAPTURE_RELAXED), CUDA_SUCCESS);
    ok(gpu()->space.create(&gpu()->space, stream, SMELT_INT32, &LINE(COUNT), &x));
    assert_int_equal((uintptr_t)x->data, lender.block);
    assert_int_equal(smelt_array_to(host, "cuda", stream, &copied), SMELT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(smelt_error(), "on a stream that its owner captures; copy them before"));
    assert_int_equal(driver->capture_end(mine, &graph), CUDA_SUCCESS);
    int taken = lender.taken;
    assert_int_equal(lender.given, taken - 1); /* that of the copy */
    smelt_array_release(x);
    assert_int_equal(lender.given, taken);
    smelt_array_release(before);
    assert_int_equal(lender.given, taken);
    driver->graph_destroy(graph);
    refused(smelt_stream_set_memory(own, &memory), SMELT_ERROR_INVALID_ARGUMENT,
            "memory of a stream: the stream is smelt's own; expected one from smelt_stream_from_native");
    refused(smelt_stream_set_memory(NULL, &memory), SMELT_ERROR_INVALID_ARGUMENT,
            "memory of a stream: stream is NULL");
    refused(smelt_stream_set_memory(stream, &(smelt_stream_memory){.take = lender_take}),
            SMELT_ERROR_INVALID_ARGUMENT, "memory of a stream: give is NULL; expected a function");
    ok(smelt_stream_set_memory(stream, NULL));
    smelt_array_release(host);
    smelt_stream_release(own);
    smelt_stream_release(stream);
    assert_int_equal(driver->release(lender.block, mine), CUDA_SUCCESS);
    assert_int_equal(driver->stream_destroy(mine), CUDA_SUCCESS);
    cuda_leave(gpu(), previous);
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
    assert_int_equal(*(int32_t *)x->data, 1); /* the fake's memory is host memory */
    assert_int_not_equal(*(int32_t *)y->data, 2);
    ok(smelt_device_wait("cuda"));
    assert_int_equal(*(int32_t *)y->data, 2);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_stream_release(a);
    smelt_stream_release(b);
}

/* A query does not wait: enqueued work is still pending after the first one. */
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
    /* The stream may be closed: the array still depends on it. */
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
    /* The host waits for a GPU's event on behalf of a CPU's stream. */
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

int main(void) {
    if (!open_two_gpus()) return 1;
    const struct CMUnitTest tests[] = {
        TEST(another_stream_sees_what_one_wrote),
        TEST(a_writer_waits_for_readers),
        TEST(one_stream_asks_for_no_order),
        TEST(released_streams_keep_their_place),
        TEST(memory_is_given_back_after_all_streams),
        TEST(streams_of_two_gpus_are_ordered),
        TEST(blocks_for_a_launch_come_and_go_in_its_order),
        TEST(a_stream_of_the_callers),
        TEST(a_captured_stream_has_memory_of_its_owner),
        TEST(waiting_waits_for_the_stream_alone),
        TEST(who_asks_does_not_wait),
        TEST(wrong_streams_are_refused),
        TEST(events_order_streams),
        TEST(events_tell_time),
        TEST(wrong_events_are_refused),
        TEST(the_same_program_runs_on_a_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
