/* The run time on this machine's own GPU, for which its other tests have a fake one: properties that the
 * driver itself must have. Skipped, with the reason, on machines without one. */
#include "unit.h"

#include "machine_gpu.h"
#include "array/array.h"
#include "base/clock.h"
#include "device/cuda/memory.h"
#include "device/cuda/staging.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE(count) ((smelt_shape){1, {count}})

static void ok(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
}

static bool there_is_one;

#define NEED_GPU()                 \
    do {                           \
        (void)state;               \
        if (!there_is_one) skip(); \
    } while (0)

static smelt_array *bytes(size_t count, uint64_t seed) {
    smelt_array *array;
    ok(smelt_array_create(SMELT_UINT8, LINE((int64_t)count), &array));
    for (size_t at = 0; at + sizeof seed <= count; at += sizeof seed) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(array->data + at, &seed, sizeof seed);
    }
    for (size_t at = count / 8 * 8; at < count; at++) array->data[at] = (char)at;
    return array;
}

static void expect_same(smelt_array *there, const smelt_array *host) {
    smelt_array *back;
    ok(smelt_array_to(there, "cpu", NULL, &back));
    assert_int_equal(back->size, host->size);
    assert_memory_equal(back->data, host->data, (size_t)host->size);
    smelt_array_release(back);
}

static void arrays_of_all_sizes_come_back(void **state) {
    NEED_GPU();
    static const size_t sizes[] = {0, 1, 1000003, CUDA_STAGING_BYTES, 37 * CUDA_STAGING_BYTES + 5};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        smelt_array *host = bytes(sizes[i], i), *there;
        double start = clock_seconds();
        ok(smelt_array_to(host, "cuda", NULL, &there));
        ok(smelt_device_wait("cuda"));
        double up = clock_seconds() - start;
        start = clock_seconds();
        expect_same(there, host);
        if (sizes[i] > CUDA_STAGING_BYTES)
            print_message("%zu bytes: to the GPU %.1f GB/s, back and compared %.1f GB/s\n", sizes[i],
                          (double)sizes[i] / up * 1e-9, (double)sizes[i] / (clock_seconds() - start) * 1e-9);
        smelt_array_release(there);
        smelt_array_release(host);
    }
}

static void fills_and_copies_are_the_hosts(void **state) {
    NEED_GPU();
    for (int dtype = SMELT_BOOL; dtype <= SMELT_FLOAT64; dtype++) {
        smelt_array *host, *there, *copy, *back;
        ok(smelt_array_create((smelt_dtype)dtype, LINE(100003), &host));
        ok(smelt_array_create_on("cuda", (smelt_dtype)dtype, LINE(100003), &there));
        ok(smelt_array_fill(host, 3));
        ok(smelt_array_fill(there, 3));
        ok(smelt_array_convert(there, (smelt_dtype)dtype, &copy));
        ok(smelt_array_to(copy, "cpu", NULL, &back));
        assert_memory_equal(back->data, host->data,
                            (size_t)host->size * smelt_dtype_bytes((smelt_dtype)dtype));
        smelt_array *all[] = {host, there, copy, back};
        for (int i = 0; i < 4; i++) smelt_array_release(all[i]);
    }
}

/* Many alternations between two streams and the default one: a missing order shows as a wrong value. */
static void streams_are_ordered_by_the_memory_they_share(void **state) {
    NEED_GPU();
    enum { COUNT = 4 << 20, TURNS = 200 };
    smelt_stream *a, *b;
    smelt_array *x, *y;
    ok(smelt_stream_create("cuda", &a));
    ok(smelt_stream_create("cuda", &b));
    ok(smelt_array_create_on("cuda", SMELT_INT32, LINE(COUNT), &x));
    ok(smelt_array_create_on("cuda", SMELT_INT32, LINE(COUNT), &y));
    for (int i = 1; i <= TURNS; i++) {
        ok(array_fill_on(x, a, i));
        ok(y->memory->space->copy_within(y->memory, b, y->data, x->memory, x->data, COUNT * sizeof(int32_t)));
    }
    ok(array_fill_on(x, a, 0));
    smelt_stream_release(a);
    smelt_stream_release(b);
    smelt_array *host;
    ok(smelt_array_to(y, "cpu", NULL, &host));
    for (int i = 0; i < COUNT; i++) assert_int_equal(((int32_t *)host->data)[i], TURNS);
    smelt_array_release(host);
    smelt_array_release(x);
    smelt_array_release(y);
}

static void fills_are_recorded_and_replayed(void **state) {
    NEED_GPU();
    smelt_stream *a;
    smelt_array *x, *wide, *host;
    smelt_recording *recording;
    ok(smelt_stream_create("cuda", &a));
    ok(smelt_array_create_on("cuda", SMELT_INT32, LINE(1000), &x));
    ok(smelt_array_fill(x, 1));
    ok(smelt_stream_record_begin(a));
    ok(array_fill_on(x, a, 5));
    const struct memory_space *space = x->memory->space;
    ok(space->create(space, a, SMELT_INT64, &LINE(30000), &wide));
    ok(array_fill_on(wide, a, 0x100000007));
    ok(smelt_device_wait("cuda")); /* of all streams except the recording one */
    ok(smelt_stream_record_end(a, &recording));
    ok(smelt_array_to(x, "cpu", NULL, &host));
    assert_int_equal(*(int32_t *)host->data, 1);
    smelt_array_release(host);
    for (int i = 0; i < 3; i++) {
        ok(smelt_array_fill(x, 2));
        ok(smelt_recording_replay(recording, i == 1 ? NULL : a));
    }
    ok(smelt_array_to(x, "cpu", NULL, &host));
    assert_int_equal(((int32_t *)host->data)[999], 5);
    smelt_array_release(host);
    ok(smelt_array_to(wide, "cpu", NULL, &host));
    assert_int_equal(((int64_t *)host->data)[29999], 0x100000007);
    smelt_array_release(host);
    smelt_array_release(x);
    smelt_array_release(wide);
    ok(smelt_recording_replay(recording, a)); /* in flight when it is released */
    smelt_recording_release(recording);
    smelt_stream_release(a);
    ok(smelt_device_wait("cuda"));
}

static void memory_runs_out_and_comes_back(void **state) {
    NEED_GPU();
    uint64_t before, after, total;
    smelt_array *array = NULL, *most;
    ok(smelt_device_memory("cuda", &before, &total));
    print_message("%.1f of %.1f GiB are free\n", (double)before / (1 << 30), (double)total / (1 << 30));
    assert_int_equal(smelt_array_create_on("cuda", SMELT_UINT8, LINE((int64_t)total + 1), &array),
                     SMELT_ERROR_OUT_OF_MEMORY);
    print_message("%s\n", smelt_error());
    assert_null(array);
    /* Blocks of other sizes than those that the pool holds. */
    for (int64_t part = 3; part < 6; part++) {
        ok(smelt_array_create_on("cuda", SMELT_UINT8, LINE((int64_t)before / part * 2), &most));
        ok(smelt_array_fill(most, 1));
        smelt_array_release(most);
    }
    ok(smelt_device_wait("cuda"));
    ok(smelt_device_memory("cuda", &after, NULL));
    assert_true(after >= before - before / 50);
}

static void a_forked_child_gets_an_error(void **state) {
    NEED_GPU();
    smelt_array *array;
    ok(smelt_array_create_on("cuda", SMELT_UINT8, LINE(10), &array));
    pid_t child = fork();
    if (!child) {
        alarm(20);
        smelt_status status = smelt_array_fill(array, 1);
        smelt_array_release(array);
        _exit(status == SMELT_ERROR_NO_DEVICE ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ok(smelt_array_fill(array, 1));
    smelt_array_release(array);
}

/* Last, since it destroys what the others created. */
static void a_reset_gives_all_memory_back(void **state) {
    NEED_GPU();
    uint64_t before, after;
    smelt_array *array, *again;
    ok(smelt_device_wait("cuda"));
    ok(smelt_device_memory("cuda", &before, NULL));
    ok(smelt_array_create_on("cuda", SMELT_UINT8, LINE((int64_t)1 << 30), &array));
    ok(smelt_array_fill(array, 1));
    ok(smelt_device_reset("cuda"));
    assert_int_equal(smelt_array_fill(array, 2), SMELT_ERROR_INVALID_ARGUMENT);
    smelt_array_release(array);
    ok(smelt_device_memory("cuda", &after, NULL));
    print_message("free before %.2f GiB, after the reset %.2f GiB\n", (double)before / (1 << 30),
                  (double)after / (1 << 30));
    assert_true(after + (UINT64_C(256) << 20) >= before);
    smelt_array *host = bytes(12345678, 9);
    ok(smelt_array_to(host, "cuda", NULL, &again));
    expect_same(again, host);
    smelt_array_release(again);
    smelt_array_release(host);
}

int main(void) {
    there_is_one = machine_has_gpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_of_all_sizes_come_back),
        cmocka_unit_test(fills_and_copies_are_the_hosts),
        cmocka_unit_test(streams_are_ordered_by_the_memory_they_share),
        cmocka_unit_test(fills_are_recorded_and_replayed),
        cmocka_unit_test(memory_runs_out_and_comes_back),
        cmocka_unit_test(a_forked_child_gets_an_error),
        cmocka_unit_test(a_reset_gives_all_memory_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
