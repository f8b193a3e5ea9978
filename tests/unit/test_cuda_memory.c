/* Arrays on GPUs, over the fake driver: data survives the transfer there and back, with as few copies as
 * possible, in the order of its uses; and out-of-memory cases. */
#include "outcome.h"

#include "array/array.h"
#include "array/dtype.h"
#include "cuda/fake_driver.h"
#include "device/cuda/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE(count) ((smelt_shape){1, {count}})
#define MEMORY ((size_t)256 << 20)

static const struct fake_cuda *fake;

static void ok(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
}

/* Every test leaves only the default streams and the staging buffers of copies. */
static int setup(void **state) {
    (void)state;
    fake->deferred(true);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        if (smelt_device_wait(i ? "cuda:1" : "cuda:0") != SMELT_OK) FAIL_TEST("%s", smelt_error());
    if (fake->violation()) FAIL_TEST("%s", fake->violation());
    assert_int_equal(fake->alive("block"), 0);
    assert_int_equal(fake->used(0) + fake->used(1), 0);
    assert_true(fake->alive("pinned") <= 2 * CUDA_STAGING_SLOTS);
    assert_true(fake->alive("stream") <= 2);
    assert_int_equal(fake->alive("graph"), 0);
    return 0;
}

static smelt_array *uniform(smelt_dtype dtype, smelt_shape shape) {
    smelt_array *array;
    ok(smelt_array_uniform(dtype, shape, 42, &array));
    return array;
}

/* Bytes that quickly differ from each other and from piece to piece. */
static smelt_array *bytes(size_t count, uint64_t seed) {
    smelt_array *array;
    ok(smelt_array_create(SMELT_UINT8, LINE((int64_t)count), &array));
    uint64_t word = seed;
    for (size_t at = 0; at < count; at += sizeof word) {
        word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(array->data + at, &word, count - at < sizeof word ? count - at : sizeof word);
    }
    return array;
}

static smelt_array *on(const char *device, smelt_array *array) {
    smelt_array *moved;
    ok(smelt_array_to(array, device, NULL, &moved));
    assert_string_equal(smelt_array_device(moved), strcmp(device, "cuda") == 0 ? "cuda:0" : device);
    return moved;
}

/* Both arrays have equal elements, wherever they are; releases `a`. */
static void expect_same(smelt_array *a, smelt_array *b) {
    smelt_array *x, *y;
    assert_int_equal(a->dtype, b->dtype);
    assert_memory_equal(&a->shape, &b->shape, sizeof(int64_t) * (1 + (size_t)a->shape.ndim));
    smelt_array *host_a = on("cpu", a), *host_b = on("cpu", b);
    ok(smelt_array_contiguous(host_a, &x));
    ok(smelt_array_contiguous(host_b, &y));
    if (x->size) assert_memory_equal(x->data, y->data, (size_t)x->size * smelt_dtype_bytes(x->dtype));
    smelt_array_release(host_a);
    smelt_array_release(host_b);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_array_release(a);
}

/* ---- There and back. */

static void every_dtype_comes_back(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 3, 257, 65537};
    for (int deferred = 0; deferred < 2; deferred++) {
        fake->deferred(deferred);
        for (int dtype = SMELT_BOOL; dtype <= SMELT_FLOAT64; dtype++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                smelt_array *host = uniform((smelt_dtype)dtype, LINE(sizes[i]));
                smelt_array *there = on("cuda", host);
                assert_non_null(smelt_array_data(there));
                expect_same(there, host);
                smelt_array_release(host);
            }
    }
}

static void scalars_come_back(void **state) {
    (void)state;
    smelt_array *host = uniform(SMELT_COMPLEX64, (smelt_shape){.ndim = 0});
    expect_same(on("cuda", host), host);
    smelt_array_release(host);
}

static void arrays_larger_than_the_staging_memory_come_back(void **state) {
    (void)state;
    static const size_t sizes[] = {CUDA_STAGING_BYTES - 1, CUDA_STAGING_BYTES, CUDA_STAGING_BYTES + 1,
                                   CUDA_STAGING_SLOTS * CUDA_STAGING_BYTES,
                                   (2 * CUDA_STAGING_SLOTS + 1) * CUDA_STAGING_BYTES + 12345};
    for (int deferred = 0; deferred < 2; deferred++) {
        fake->deferred(deferred);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            smelt_array *host = bytes(sizes[i], i), *copy;
            ok(smelt_array_convert(host, SMELT_UINT8, &copy));
            smelt_array *there = on("cuda", copy);
            /* The source may change at once. */
            ok(smelt_array_fill(copy, 0));
            smelt_array_release(copy);
            expect_same(there, host);
            smelt_array_release(host);
        }
    }
}

static void arrays_go_from_gpu_to_gpu(void **state) {
    (void)state;
    smelt_array *host = uniform(SMELT_FLOAT32, (smelt_shape){2, {300, 1000}});
    smelt_array *first = on("cuda:0", host);
    fake->forget_calls();
    smelt_array *second = on("cuda:1", first);
    assert_int_equal(fake->calls("cuMemcpyPeerAsync"), 1);
    assert_int_equal(fake->calls("cuMemcpyDtoHAsync_v2"), 0);
    /* Written again before the copy had to take place. */
    ok(smelt_array_fill(first, 0));
    smelt_array_release(first);
    smelt_array *back = on("cuda:0", second);
    smelt_array_release(second);
    expect_same(back, host);
    smelt_array_release(host);
}

/* ---- As few copies as need be. */

static void what_is_there_is_not_copied(void **state) {
    (void)state;
    smelt_array *host = uniform(SMELT_FLOAT32, (smelt_shape){2, {30, 40}}), *same;
    smelt_array *there = on("cuda", host);
    fake->forget_calls();
    ok(smelt_array_to(there, "cuda:0", NULL, &same));
    assert_ptr_equal(same, there);
    smelt_array_release(same);
    ok(smelt_array_to(host, "cpu-scalar", NULL, &same));
    assert_ptr_equal(same, host);
    smelt_array_release(same);
    ok(smelt_array_contiguous(there, &same));
    assert_ptr_equal(same, there);
    smelt_array_release(same);
    ok(smelt_array_view(there, LINE(40), (int64_t[]){30}, 7, &same));
    assert_string_equal(smelt_array_device(same), "cuda:0");
    assert_ptr_equal(smelt_array_data(same), (char *)smelt_array_data(there) + 28);
    smelt_array_release(same);
    assert_int_equal(fake->calls(NULL), 0);
    smelt_array_release(there);
    smelt_array_release(host);
}

static void copies_are_counted(void **state) {
    (void)state;
    smelt_array *a, *b, *host;
    ok(smelt_array_create_on("cuda", SMELT_INT32, LINE(3 * (int64_t)CUDA_STAGING_BYTES / 4), &a));
    ok(smelt_array_create_on("cuda", SMELT_INT32, LINE(3 * (int64_t)CUDA_STAGING_BYTES / 4), &b));
    fake->forget_calls();
    ok(smelt_array_fill(a, 5));
    assert_int_equal(fake->calls("cuMemsetD32Async"), 1);
    ok(smelt_array_copy(b, a));
    assert_int_equal(fake->calls("cuMemcpyDtoDAsync_v2"), 1);
    /* One stream: nothing has to wait for another, and the host for nothing. */
    assert_int_equal(fake->calls("cuStreamWaitEvent") + fake->calls("cuEventRecord"), 0);
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2") + fake->calls("cuMemcpyDtoHAsync_v2"), 0);
    ok(smelt_array_to(b, "cpu", NULL, &host));
    assert_int_equal(fake->calls("cuMemcpyDtoHAsync_v2"), 3);
    assert_int_equal(((int32_t *)smelt_array_data(host))[host->size - 1], 5);
    ok(smelt_array_copy(a, host));
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2"), 3);
    assert_int_equal(fake->calls("cuMemcpyDtoHAsync_v2"), 3);
    smelt_array_release(a);
    smelt_array_release(b);
    smelt_array_release(host);
}

/* ---- Strides. */

static smelt_array *view(smelt_array *base, smelt_shape shape, const int64_t *strides, int64_t offset) {
    smelt_array *made;
    ok(smelt_array_view(base, shape, strides, offset, &made));
    return made;
}

static const struct {
    smelt_shape shape;
    int64_t strides[3], offset;
    bool dense;
} layouts[] = {
    {{2, {6, 4}}, {1, 6}, 0, true},         /* transposed */
    {{3, {2, 3, 4}}, {4, 8, 1}, 0, true},   /* permuted */
    {{3, {4, 1, 6}}, {1, -77, 4}, 0, true}, /* a dimension of one may have any stride */
    {{2, {3, 4}}, {8, 2}, 1, false},        /* every second */
    {{2, {6, 4}}, {-4, -1}, 23, false},     /* backwards */
    {{2, {5, 4}}, {0, 1}, 3, false},        /* repeated rows */
    {{2, {4, 3}}, {6, 1}, 2, false},        /* a part of each row */
    {{1, {0}}, {3}, 5, true},               /* nothing */
};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

static void strided_arrays_come_back(void **state) {
    (void)state;
    smelt_array *base = uniform(SMELT_UINT16, LINE(24)), *there_base = on("cuda", base);
    for (size_t i = 0; i < LAYOUTS; i++) {
        smelt_array *host = view(base, layouts[i].shape, layouts[i].strides, layouts[i].offset);
        smelt_array *there = on("cuda", host);
        if (layouts[i].dense && host->size)
            assert_memory_equal(smelt_array_strides(there), smelt_array_strides(host),
                                (size_t)host->shape.ndim * sizeof(int64_t));
        else
            assert_true(smelt_array_is_contiguous(there));
        expect_same(there, host);
        /* And as a view of what is there. */
        there = view(there_base, layouts[i].shape, layouts[i].strides, layouts[i].offset);
        smelt_array *packed, *moved = on("cuda:1", there);
        ok(smelt_array_contiguous(there, &packed));
        assert_string_equal(smelt_array_device(packed), "cuda:0");
        assert_true(smelt_array_is_contiguous(packed));
        expect_same(packed, host);
        expect_same(moved, host);
        expect_same(there, host);
        smelt_array_release(host);
    }
    smelt_array_release(there_base);
    smelt_array_release(base);
}

/* ---- Fills. */

static void fills_are_the_hosts(void **state) {
    (void)state;
    static const double values[] = {0, 1, -2.5, 1e30};
    static const int64_t sizes[] = {0, 1, 5, 1000, 123457};
    for (int dtype = SMELT_BOOL; dtype <= SMELT_FLOAT64; dtype++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                smelt_array *there, *host;
                ok(smelt_array_create_on("cuda", (smelt_dtype)dtype, LINE(sizes[i]), &there));
                ok(smelt_array_create((smelt_dtype)dtype, LINE(sizes[i]), &host));
                ok(smelt_array_fill(there, values[v]));
                ok(smelt_array_fill(host, values[v]));
                expect_same(there, host);
                smelt_array_release(host);
            }
}

static void fills_stay_within_their_view(void **state) {
    (void)state;
    for (int dtype = SMELT_UINT8; dtype <= SMELT_UINT64; dtype++)
        for (size_t i = 0; i < LAYOUTS; i++) {
            smelt_array *host = uniform((smelt_dtype)dtype, LINE(24)), *there = on("cuda", host);
            smelt_array *a = view(host, layouts[i].shape, layouts[i].strides, layouts[i].offset);
            smelt_array *b = view(there, layouts[i].shape, layouts[i].strides, layouts[i].offset);
            ok(smelt_array_fill(a, 9));
            ok(smelt_array_fill(b, 9));
            smelt_array_release(a);
            smelt_array_release(b);
            expect_same(there, host);
            smelt_array_release(host);
        }
}

/* ---- Copies and conversions: whatever lies where, the result is the host's. */

static void copies_and_conversions_are_the_hosts(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_BFLOAT16, SMELT_INT8, SMELT_COMPLEX64};
    static const char *const places[] = {"cpu", "cuda:0", "cuda:1"};
    for (size_t f = 0; f < 4; f++)
        for (size_t t = 0; t < 4; t++)
            for (size_t l = 0; l < LAYOUTS; l++)
                for (int p = 1; p < 9; p++) {
                    if (layouts[l].shape.ndim == 2 && layouts[l].strides[0] == 0) continue;
                    smelt_array *from = uniform(dtypes[f], LINE(24)), *to = uniform(dtypes[t], LINE(24));
                    smelt_array *from_base = on(places[p % 3], from), *to_base = on(places[p / 3], to);
                    smelt_shape shape = layouts[l].shape;
                    const int64_t *strides = layouts[l].strides;
                    smelt_array *a = view(from, shape, strides, layouts[l].offset),
                                *b = view(to, shape, NULL, 0);
                    smelt_array *c = view(from_base, shape, strides, layouts[l].offset),
                                *d = view(to_base, shape, NULL, 0);
                    ok(smelt_array_copy(b, a));
                    ok(smelt_array_copy(d, c));
                    expect_same(on("cpu", to_base), to);
                    /* The other way round, into what is strided. */
                    ok(smelt_array_copy(a, b));
                    ok(smelt_array_copy(c, d));
                    expect_same(on("cpu", from_base), from);
                    smelt_array *x, *y;
                    ok(smelt_array_convert(a, dtypes[t], &x));
                    ok(smelt_array_convert(c, dtypes[t], &y));
                    assert_string_equal(smelt_array_device(y), places[p % 3]);
                    expect_same(y, x);
                    smelt_array *all[] = {from, to, from_base, to_base, a, b, c, d, x};
                    for (size_t i = 0; i < sizeof all / sizeof *all; i++) smelt_array_release(all[i]);
                }
}

static void files_are_written_from_there(void **state) {
    (void)state;
    char path[] = "/tmp/smelt-cuda-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    smelt_array *host = uniform(SMELT_BFLOAT16, (smelt_shape){2, {7, 9}}), *there = on("cuda", host), *read;
    smelt_array *turned = view(there, (smelt_shape){2, {9, 7}}, (int64_t[]){1, 9}, 0);
    ok(smelt_array_write_npy(turned, path));
    ok(smelt_array_read_npy(path, SMELT_BFLOAT16, &read));
    expect_same(read, turned);
    unlink(path);
    smelt_array_release(turned);
    smelt_array_release(there);
    smelt_array_release(host);
}

/* ---- Memory that ends. */

static void no_room_is_an_error_that_says_how_much_there_is(void **state) {
    (void)state;
    smelt_array *half, *array = NULL;
    ok(smelt_array_create_on("cuda", SMELT_UINT8, LINE((int64_t)MEMORY / 2), &half));
    refused(smelt_array_create_on("cuda", SMELT_FLOAT32, (smelt_shape){2, {1 << 10, 1 << 17}}, &array),
            SMELT_ERROR_OUT_OF_MEMORY,
            "an array of shape 1024x131072 of float32 needs 536870912 bytes on device 'cuda:0': out of "
            "memory, 134217728 of 268435456 bytes are free");
    assert_null(array);
    /* It was no fault: the device goes on. */
    ok(smelt_array_fill(half, 1));
    smelt_array_release(half);
    refused(smelt_array_create_on("cuda", SMELT_INT8, LINE(INT64_MAX), &array), SMELT_ERROR_OUT_OF_MEMORY,
            "an array of shape 9223372036854775807 of int8 needs 9223372036854775807 bytes on device "
            "'cuda:0': out of memory, 268435456 of 268435456 bytes are free");
}

static void the_pool_is_emptied_before_memory_is_said_to_be_out(void **state) {
    (void)state;
    smelt_array *arrays[8];
    for (int round = 0; round < 3; round++) {
        int count = 3 + round;
        /* Blocks of other sizes than those the pool holds; given back without anybody's having waited. */
        for (int i = 0; i < count; i++)
            ok(smelt_array_create_on("cuda", SMELT_UINT8, LINE((int64_t)MEMORY / count), &arrays[i]));
        for (int i = 0; i < count; i++) ok(smelt_array_fill(arrays[i], i));
        for (int i = 0; i < count; i++) smelt_array_release(arrays[i]);
    }
}

static void what_is_in_flight_is_kept(void **state) {
    (void)state;
    smelt_array *a, *b;
    ok(smelt_array_create_on("cuda", SMELT_INT16, LINE(1000), &a));
    ok(smelt_array_fill(a, 7));
    ok(smelt_array_convert(a, SMELT_INT16, &b));
    smelt_array_release(a); /* nothing of it has taken place */
    smelt_array *wanted;
    ok(smelt_array_create(SMELT_INT16, LINE(1000), &wanted));
    ok(smelt_array_fill(wanted, 7));
    expect_same(b, wanted);
    smelt_array_release(wanted);
}

static void views_keep_the_memory(void **state) {
    (void)state;
    smelt_array *a, *b, *five;
    ok(smelt_array_create_on("cuda", SMELT_INT32, LINE(100), &a));
    ok(smelt_array_view(a, LINE(10), NULL, 90, &b));
    smelt_array_release(a);
    assert_int_equal(fake->alive("block"), 1);
    ok(smelt_array_fill(b, 5));
    ok(smelt_array_create(SMELT_INT32, LINE(10), &five));
    ok(smelt_array_fill(five, 5));
    expect_same(b, five);
    smelt_array_release(five);
    assert_int_equal(fake->alive("block"), 0);
}

/* ---- Memory of the caller's. */

static struct cuda_gpu *gpu(void) {
    const struct device *device;
    ok(device_find("cuda", &device));
    return cuda_gpu_of(device);
}

struct borrowed {
    CUdeviceptr address;
    int releases;
};

/* As an owner does who believes that nothing uses the memory any more. */
static void give_back(void *context) {
    struct borrowed *borrowed = context;
    CUcontext previous;
    borrowed->releases++;
    ok(cuda_enter(gpu(), &previous));
    CUstream mine;
    assert_int_equal(gpu()->driver->stream_create(&mine, 0), CUDA_SUCCESS);
    assert_int_equal(gpu()->driver->release(borrowed->address, mine), CUDA_SUCCESS);
    gpu()->driver->stream_destroy(mine);
    cuda_leave(gpu(), previous);
}

static void memory_of_the_callers_is_used_and_given_back(void **state) {
    (void)state;
    struct borrowed borrowed = {0};
    CUcontext previous;
    ok(cuda_enter(gpu(), &previous));
    assert_int_equal(gpu()->driver->allocate(&borrowed.address, 400, NULL), CUDA_SUCCESS);
    assert_int_equal(gpu()->driver->stream_wait(NULL), CUDA_SUCCESS);
    cuda_leave(gpu(), previous);
    smelt_array *array, *host = uniform(SMELT_FLOAT32, (smelt_shape){2, {10, 10}}), *part;
    char *data = (char *)(uintptr_t)borrowed.address;
    ok(smelt_array_from_device_memory("cuda", SMELT_FLOAT32, (smelt_shape){2, {10, 10}}, (int64_t[]){-10, 1},
                                      data + 360, give_back, &borrowed, &array));
    assert_string_equal(smelt_array_device(array), "cuda:0");
    assert_ptr_equal(smelt_array_data(array), data + 360);
    ok(smelt_array_copy(array, host));
    ok(smelt_array_view(array, LINE(10), NULL, 0, &part));
    expect_same(smelt_array_retain(array), host);
    ok(smelt_array_fill(part, 2)); /* in flight when the owner has it back */
    smelt_array_release(part);
    assert_int_equal(borrowed.releases, 0);
    smelt_array_release(array);
    assert_int_equal(borrowed.releases, 1);
    smelt_array_release(host);
}

static void wrong_device_arrays_are_refused(void **state) {
    (void)state;
    smelt_array *array = NULL, *host = uniform(SMELT_INT8, LINE(4));
    int releases = 0;
    refused(smelt_array_create_on("cuda", (smelt_dtype)99, LINE(1), &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array: dtype 99 is not one of smelt_dtype");
    refused(smelt_array_create_on("cuda", SMELT_INT8, LINE(1), NULL), SMELT_ERROR_INVALID_ARGUMENT,
            "array: the address for the new array is NULL");
    refused(smelt_array_from_device_memory("cuda", SMELT_INT8, LINE(1), NULL, NULL, NULL, &releases, &array),
            SMELT_ERROR_INVALID_ARGUMENT, "array from device memory: data is NULL");
    refused(smelt_array_to(NULL, "cuda", NULL, &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array to: array is NULL");
    refused(
        smelt_array_to(host, "cuda:5", NULL, &array), SMELT_ERROR_NO_DEVICE,
        "device 'cuda:5' does not exist on this machine; expected one of: cpu, cpu-scalar, cuda:0, cuda:1");
    smelt_array *there = on("cuda", host), *other;
    ok(smelt_array_create_on("cuda", SMELT_INT8, LINE(5), &other));
    refused(smelt_array_copy(other, there), SMELT_ERROR_INVALID_ARGUMENT,
            "copy: shape 4 cannot be copied into shape 5");
    refused(smelt_array_convert(there, (smelt_dtype)77, &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array: dtype 77 is not one of smelt_dtype");
    assert_null(array);
    smelt_array_release(other);
    smelt_array_release(there);
    smelt_array_release(host);
}

/* ---- Errors at every call: each is told, nothing leaks, and the device goes on. */

static smelt_status all_kinds_of_work(void) {
    smelt_array *host = NULL, *there = NULL, *back = NULL, *part = NULL, *converted = NULL, *moved = NULL;
    smelt_status status = smelt_array_create(SMELT_INT64, LINE(600000), &host);
    if (status == SMELT_OK) status = smelt_array_fill(host, 1);
    if (status == SMELT_OK) status = smelt_array_to(host, "cuda", NULL, &there);
    if (status == SMELT_OK) status = smelt_array_fill(there, 3);
    if (status == SMELT_OK) status = smelt_array_view(there, LINE(1000), (int64_t[]){2}, 5, &part);
    if (status == SMELT_OK) status = smelt_array_convert(part, SMELT_FLOAT32, &converted);
    if (status == SMELT_OK) status = smelt_array_fill(converted, 3);
    if (status == SMELT_OK) status = smelt_array_to(converted, "cuda:1", NULL, &moved);
    if (status == SMELT_OK) status = smelt_array_to(moved, "cpu", NULL, &back);
    smelt_array_release(host);
    smelt_array_release(there);
    smelt_array_release(back);
    smelt_array_release(part);
    smelt_array_release(converted);
    smelt_array_release(moved);
    return status;
}

static void errors_of_any_call_are_told_and_lose_nothing(void **state) {
    (void)state;
    static const char *const calls[] = {
        "cuMemAllocAsync",      "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
        "cuMemcpyDtoDAsync_v2", "cuMemcpyPeerAsync",    "cuMemsetD32Async",
        "cuEventRecord",        "cuEventSynchronize",   "cuStreamWaitEvent"};
    int failures = 0;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (int n = 1; n < 30; n++) {
            fake->fail_call(calls[c], n, CUDA_ERROR_INVALID_VALUE);
            smelt_status status = all_kinds_of_work();
            failures += status != SMELT_OK;
            if (status != SMELT_OK) {
                assert_int_equal(status, SMELT_ERROR_INTERNAL);
                assert_non_null(strstr(smelt_error(), "the driver returns CUDA_ERROR_INVALID_VALUE"));
            }
            fake->fail_call(calls[c], 1000000, CUDA_SUCCESS);
            ok(smelt_device_wait("cuda:0"));
            ok(smelt_device_wait("cuda:1"));
            assert_int_equal(fake->alive("block"), 0);
            if (fake->violation()) FAIL_TEST("%s, call %d: %s", calls[c], n, fake->violation());
        }
    assert_true(failures >= 20);
}

/* ---- Threads. */

static void *round_trips(void *context) {
    uint64_t seed = (uint64_t)(uintptr_t)context;
    for (int i = 0; i < 12; i++) {
        smelt_array *host, *there, *back;
        int64_t count = (int64_t)(seed * 1000003 + (uint64_t)i * 1700017) % 5000000;
        host = bytes((size_t)count, seed);
        bool good = smelt_array_to(host, seed & 1 ? "cuda:1" : "cuda:0", NULL, &there) == SMELT_OK;
        good = good && smelt_array_to(there, "cpu", NULL, &back) == SMELT_OK;
        good = good && memcmp(smelt_array_data(back), smelt_array_data(host), (size_t)count) == 0;
        if (!good) return (void *)1;
        smelt_array_release(host);
        smelt_array_release(there);
        smelt_array_release(back);
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state) {
    (void)state;
    pthread_t threads[6];
    for (uintptr_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, round_trips, (void *)(i + 1)), 0);
    for (int i = 0; i < 6; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

int main(void) {
    fake = fake_cuda_open(FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    if (!fake) return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_dtype_comes_back),
        TEST(scalars_come_back),
        TEST(arrays_larger_than_the_staging_memory_come_back),
        TEST(arrays_go_from_gpu_to_gpu),
        TEST(what_is_there_is_not_copied),
        TEST(copies_are_counted),
        TEST(strided_arrays_come_back),
        TEST(fills_are_the_hosts),
        TEST(fills_stay_within_their_view),
        TEST(copies_and_conversions_are_the_hosts),
        TEST(files_are_written_from_there),
        TEST(no_room_is_an_error_that_says_how_much_there_is),
        TEST(the_pool_is_emptied_before_memory_is_said_to_be_out),
        TEST(what_is_in_flight_is_kept),
        TEST(views_keep_the_memory),
        TEST(memory_of_the_callers_is_used_and_given_back),
        TEST(wrong_device_arrays_are_refused),
        TEST(errors_of_any_call_are_told_and_lose_nothing),
        TEST(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
