/* DLPack tensors on GPUs, over the fake driver, which detects missing order: the streams of producer, smelt
 * and consumer are ordered, and no wait is unnecessary. */
#include "unit.h"

#include "array/array.h"
#include "device/dlpack_layout.h"
#include "cuda/fake_driver.h"
#include "device/cuda/memory.h"
#include "smelt/dlpack.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 1000
#define LINE(count) ((smelt_shape){1, {count}})

static const struct fake_cuda *fake;

static void ok(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
}

static struct cuda_gpu *gpu(void) {
    const struct device *device;
    ok(device_find("cuda", &device));
    return cuda_gpu_of(device);
}

/* Another library: it has its own stream, and a tensor in its own memory, which it frees in that stream's
 * order. */
struct library {
    CUstream stream;
    CUdeviceptr block;
    struct DLManagedTensorVersioned tensor;
    int64_t shape[1];
    int deletes;
};

/* Its calls to the driver; the test's context is current. */
#define DRIVER(call) assert_int_equal(gpu()->driver->call, CUDA_SUCCESS)

static CUcontext previous;

static void give_back(struct DLManagedTensorVersioned *self) {
    struct library *library = self->manager_ctx;
    library->deletes++;
    DRIVER(fill_32(library->block, 9, COUNT, library->stream)); /* as its next owner may */
    DRIVER(release(library->block, library->stream));
}

static struct library *new_library(uint32_t value) {
    struct library *library = calloc(1, sizeof *library);
    DRIVER(stream_create(&library->stream, CUDA_STREAM_NON_BLOCKING));
    DRIVER(allocate(&library->block, COUNT * 4, library->stream));
    DRIVER(fill_32(library->block, value, COUNT, library->stream));
    library->shape[0] = COUNT;
    library->tensor =
        (struct DLManagedTensorVersioned){.version = {1, 0},
                                          .manager_ctx = library,
                                          .deleter = give_back,
                                          .dl_tensor = {.data = (void *)(uintptr_t)library->block,
                                                        .device = {kDLCUDA, 0},
                                                        .ndim = 1,
                                                        .dtype = {kDLInt, 32, 1},
                                                        .shape = library->shape}};
    return library;
}

static void end_library(struct library *library) {
    DRIVER(stream_wait(library->stream));
    DRIVER(stream_destroy(library->stream));
    free(library);
}

static int setup(void **state) {
    (void)state;
    fake->deferred(true);
    ok(cuda_enter(gpu(), &previous));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    cuda_leave(gpu(), previous);
    ok(smelt_device_wait("cuda"));
    if (fake->violation()) FAIL_TEST("%s", fake->violation());
    assert_int_equal(fake->alive("block"), 0);
    assert_int_equal(fake->alive("stream"), 1);
    return 0;
}

static void expect(smelt_array *array, int32_t value) {
    smelt_array *host;
    ok(smelt_array_to(array, "cpu", NULL, &host));
    for (int i = 0; i < COUNT; i++) assert_int_equal(((int32_t *)host->data)[i], value);
    smelt_array_release(host);
}

static smelt_array *new_array(void) {
    smelt_array *array;
    ok(smelt_array_create_on("cuda", SMELT_INT32, LINE(COUNT), &array));
    return array;
}

/* The producer's stream is named: other streams follow it, it continues after them, and nothing waits on the
 * host. */
static void streams_of_producers_are_ordered_with_others(void **state) {
    (void)state;
    struct library *library = new_library(7);
    smelt_stream *theirs, *readers[CUDA_READERS + 2];
    smelt_array *array, *copies[CUDA_READERS + 2];
    ok(smelt_stream_from_native("cuda", library->stream, &theirs));
    for (int i = 0; i < CUDA_READERS + 2; i++) {
        ok(smelt_stream_create("cuda", &readers[i]));
        copies[i] = new_array();
    }
    ok(smelt_array_from_dlpack(&library->tensor, theirs, NULL, &array));
    assert_string_equal(smelt_array_device(array), "cuda:0");
    fake->forget_calls();
    for (int i = 0; i < CUDA_READERS + 2; i++)
        ok(array->memory->space->copy_within(copies[i]->memory, readers[i], copies[i]->data, array->memory,
                                             array->data, COUNT * 4));
    smelt_array_release(array);
    assert_int_equal(library->deletes, 1);
    assert_int_equal(fake->calls("cuStreamSynchronize") + fake->calls("cuEventSynchronize"), 0);
    for (int i = 0; i < CUDA_READERS + 2; i++) {
        expect(copies[i], 7);
        smelt_array_release(copies[i]);
        smelt_stream_release(readers[i]);
    }
    smelt_stream_release(theirs);
    end_library(library);
}

static void work_on_the_producers_own_stream_asks_for_no_order(void **state) {
    (void)state;
    struct library *library = new_library(7);
    smelt_stream *theirs;
    smelt_array *array, *copy;
    ok(smelt_stream_from_native("cuda", library->stream, &theirs));
    ok(gpu()->space.create(&gpu()->space, theirs, SMELT_INT32, &LINE(COUNT), &copy));
    fake->forget_calls();
    ok(smelt_array_from_dlpack(&library->tensor, theirs, NULL, &array));
    ok(array->memory->space->copy_within(copy->memory, theirs, copy->data, array->memory, array->data,
                                         COUNT * 4));
    smelt_array_release(array);
    assert_int_equal(library->deletes, 1);
    assert_int_equal(fake->calls("cuEventRecord") + fake->calls("cuStreamWaitEvent"), 0);
    assert_int_equal(fake->calls("cuStreamSynchronize") + fake->calls("cuEventSynchronize"), 0);
    expect(copy, 7);
    smelt_array_release(copy);
    smelt_stream_release(theirs);
    end_library(library);
}

/* Written on another stream alone: the producer reuses its memory only after that. */
static void a_write_on_another_stream_is_followed_by_the_producer(void **state) {
    (void)state;
    struct library *library = new_library(7);
    smelt_stream *theirs, *other;
    smelt_array *array;
    ok(smelt_stream_from_native("cuda", library->stream, &theirs));
    ok(smelt_stream_create("cuda", &other));
    ok(smelt_array_from_dlpack(&library->tensor, theirs, NULL, &array));
    ok(array_fill_on(array, other, 5));
    smelt_array_release(array);
    assert_int_equal(library->deletes, 1);
    smelt_stream_release(theirs);
    end_library(library);
    smelt_stream_release(other);
}

/* Its stream wrote the array, but others read it: the consumer, who may write, comes after them. */
static void consumers_on_the_writers_stream_follow_its_readers(void **state) {
    (void)state;
    struct library *library = new_library(1);
    struct DLManagedTensorVersioned *tensor;
    smelt_stream *theirs, *other;
    smelt_array *array, *copy = new_array();
    ok(smelt_stream_from_native("cuda", library->stream, &theirs));
    ok(smelt_stream_create("cuda", &other));
    ok(gpu()->space.create(&gpu()->space, theirs, SMELT_INT32, &LINE(COUNT), &array));
    ok(array_fill_on(array, theirs, 5));
    ok(array->memory->space->copy_within(copy->memory, other, copy->data, array->memory, array->data,
                                         COUNT * 4));
    ok(smelt_array_to_dlpack(array, theirs, 0, &tensor));
    DRIVER(fill_32((CUdeviceptr)(uintptr_t)tensor->dl_tensor.data, 6, COUNT, library->stream));
    expect(copy, 5);
    smelt_array_release(copy);
    smelt_array_release(array);
    tensor->deleter(tensor);
    give_back(&library->tensor);
    smelt_stream_release(theirs);
    smelt_stream_release(other);
    end_library(library);
}

/* No stream is named: the producer has made the default stream wait, and gets its memory back when all work
 * is done. */
static void without_a_stream_the_default_one_is_meant(void **state) {
    (void)state;
    struct library *library = new_library(7);
    smelt_stream *usual, *other;
    smelt_array *array, *copy = new_array();
    CUevent event;
    ok(smelt_stream_default("cuda", &usual));
    ok(smelt_stream_create("cuda", &other));
    DRIVER(event_create(&event, CUDA_EVENT_DISABLE_TIMING));
    DRIVER(event_record(event, library->stream));
    DRIVER(stream_wait_event((CUstream)smelt_stream_native(usual), event, 0));
    ok(smelt_array_from_dlpack(&library->tensor, NULL, NULL, &array));
    ok(array->memory->space->copy_within(copy->memory, other, copy->data, array->memory, array->data,
                                         COUNT * 4));
    fake->forget_calls();
    smelt_array_release(array);
    assert_int_equal(library->deletes, 1);
    assert_true(fake->calls("cuStreamSynchronize") > 0);
    DRIVER(event_destroy(event));
    expect(copy, 7);
    smelt_array_release(copy);
    smelt_stream_release(usual);
    smelt_stream_release(other);
    end_library(library);
}

/* A stream that is closed before the array is released: what cannot be ordered is waited for. */
static void a_producers_stream_that_is_gone_is_waited_for(void **state) {
    (void)state;
    struct library *library = new_library(7);
    smelt_stream *theirs;
    smelt_array *array, *copy = new_array();
    ok(smelt_stream_from_native("cuda", library->stream, &theirs));
    ok(smelt_array_from_dlpack(&library->tensor, theirs, NULL, &array));
    smelt_stream_release(theirs);
    ok(smelt_array_copy(copy, array));
    smelt_array_release(array);
    assert_int_equal(library->deletes, 1);
    expect(copy, 7);
    smelt_array_release(copy);
    end_library(library);
}

/* A consumer that uses smelt's results on its own stream, and smelt after it. */
static void consumers_streams_are_ordered_with_ours(void **state) {
    (void)state;
    struct library *library = new_library(1);
    struct DLManagedTensorVersioned *tensor;
    smelt_stream *theirs, *ours;
    smelt_array *array = new_array();
    ok(smelt_stream_from_native("cuda", library->stream, &theirs));
    ok(smelt_stream_create("cuda", &ours));
    ok(array_fill_on(array, ours, 5));
    ok(smelt_array_to_dlpack(array, theirs, 0, &tensor));
    assert_int_equal(tensor->dl_tensor.device.device_type, kDLCUDA);
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)tensor->dl_tensor.data;
    DRIVER(copy_within(library->block, address, COUNT * 4, library->stream));
    DRIVER(fill_32(address, 6, COUNT, library->stream));
    expect(array, 6);
    smelt_array_release(array);
    tensor->deleter(tensor);
    uint32_t back[COUNT];
    DRIVER(copy_out(back, library->block, sizeof back, library->stream));
    DRIVER(stream_wait(library->stream));
    assert_int_equal(back[COUNT - 1], 5);
    give_back(&library->tensor);
    smelt_stream_release(theirs);
    smelt_stream_release(ours);
    end_library(library);
}

static void default_streams_cannot_record_and_survive_their_handles(void **state) {
    (void)state;
    smelt_stream *usual, *host;
    ok(smelt_stream_default("cuda", &usual));
    assert_int_equal(smelt_stream_record_begin(usual), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "stream record: stream is the device's default; a default stream cannot record");
    smelt_stream_release(usual);
    smelt_array *array = new_array();
    ok(smelt_array_fill(array, 3));
    expect(array, 3);
    smelt_array_release(array);
    ok(smelt_stream_default("cpu", &host));
    assert_null(smelt_stream_native(host));
    smelt_stream_release(host);
}

int main(void) {
    fake = fake_cuda_open(FAKE_CUDA);
    if (!fake) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(streams_of_producers_are_ordered_with_others, setup, teardown),
        cmocka_unit_test_setup_teardown(work_on_the_producers_own_stream_asks_for_no_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_write_on_another_stream_is_followed_by_the_producer, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(consumers_on_the_writers_stream_follow_its_readers, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_stream_the_default_one_is_meant, setup, teardown),
        cmocka_unit_test_setup_teardown(a_producers_stream_that_is_gone_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(consumers_streams_are_ordered_with_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(default_streams_cannot_record_and_survive_their_handles, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("cuda dlpack", tests, NULL, NULL);
}
