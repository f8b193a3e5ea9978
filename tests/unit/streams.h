/* What the tests of streams and recordings share: arrays on two fake GPUs, work on them, and the checks after
 * each test. */
#ifndef SMELT_TESTS_STREAMS_H
#define SMELT_TESTS_STREAMS_H

#include "unit.h"

#include "array/array.h"
#include "cuda/fake_driver.h"
#include "device/cuda/memory.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 1000
#define LINE(count) ((smelt_shape){1, {count}})

static const struct fake_cuda *fake;

static inline void ok(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
}

static inline void refused(smelt_status found, smelt_status wanted, const char *message) {
    assert_string_equal(smelt_error(), message);
    assert_int_equal(found, wanted);
}

static inline struct cuda_gpu *gpu(void) {
    const struct device *device;
    ok(device_find("cuda", &device));
    return cuda_gpu_of(device);
}

static inline int setup(void **state) {
    (void)state;
    fake->deferred(true);
    return 0;
}

static inline int teardown(void **state) {
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

static inline smelt_stream *new_stream(const char *device) {
    smelt_stream *stream;
    ok(smelt_stream_create(device, &stream));
    return stream;
}

static inline smelt_array *new_array(const char *device, double value) {
    smelt_array *array;
    ok(smelt_array_create_on(device, SMELT_INT32, LINE(COUNT), &array));
    ok(smelt_array_fill(array, value));
    return array;
}

/* What a launch does, as a copy: `to` = `from`, on the stream. */
static inline smelt_status launch(smelt_stream *stream, smelt_array *to, smelt_array *from) {
    return to->memory->space->copy_within(to->memory, stream, to->data, from->memory, from->data,
                                          (size_t)to->size * smelt_dtype_bytes(to->dtype));
}

static inline smelt_status set(smelt_stream *stream, smelt_array *array, double value) {
    return array_fill_on(array, stream, value);
}

static inline void expect(smelt_array *array, int32_t value) {
    smelt_array *host;
    ok(smelt_array_to(array, "cpu", NULL, &host));
    for (int64_t i = 0; i < host->size; i++)
        if (((int32_t *)host->data)[i] != value)
            FAIL_TEST("element %lld is %d, expected %d", (long long)i, ((int32_t *)host->data)[i], value);
    smelt_array_release(host);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* At the start of each program. */
static inline bool open_two_gpus(void) {
    fake = fake_cuda_open(FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    return fake != NULL;
}

#endif
