/* Recordings over the fake driver, which delays work as long as it can and detects missing order. */
#include "streams.h"

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
    /* Uses on other streams in between are ordered with the replays. */
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
    /* An output that a launch allocates; a fill that copies bytes of the host; a block of a launch. */
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

/* Even if nothing else requires an order with the stream on which it was allocated. */
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
    /* x was used on the stream before it recorded; the device as a whole can be waited for. */
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
            "stream: it is recording, so there is nothing to wait for; expected a stream whose recording has "
            "ended");
    refused(
        smelt_array_to(x, "cpu", a, &result), SMELT_ERROR_INVALID_ARGUMENT,
        "stream: it is recording, so it has no results to read; expected a stream whose recording has ended");
    refused(smelt_array_to(host, "cuda", a, &result), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it is recording, and a replay could not copy from the host again; expected arrays on "
            "the device");
    refused(smelt_event_record(event, a), SMELT_ERROR_INVALID_ARGUMENT,
            "event: the stream is recording, and takes launches only until smelt_stream_record_end");
    refused(smelt_stream_wait_event(a, event), SMELT_ERROR_INVALID_ARGUMENT,
            "event: the stream is recording, and takes launches only until smelt_stream_record_end");
    ok(set(a, x, 3));
    /* None of these calls affected the recording. */
    ok(smelt_stream_record_end(a, &recording));
    ok(smelt_stream_record_begin(a));
    refused(smelt_recording_replay(recording, a), SMELT_ERROR_INVALID_ARGUMENT,
            "recording replay: the stream is recording; recordings cannot be nested");
    refused(smelt_recording_replay(NULL, a), SMELT_ERROR_INVALID_ARGUMENT,
            "recording replay: recording is NULL");
    refused(smelt_recording_replay(recording, one), SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it belongs to device 'cuda:1', expected one of 'cuda:0'");
    /* A stream may be released while it records. */
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
    /* A program that waits for the stream through the driver ends the recording. */
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
    /* The other device still works. */
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
    if (!open_two_gpus()) return 1;
    const struct CMUnitTest tests[] = {
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
