/* Work on a device through the public interface: arrays that are moved there and back, launches that depend
 * on each other, streams, events, recordings. On the device of SMELT_TEST_DEVICE; tests without a counterpart
 * on CPUs are skipped there. */
#include "unit.h"

#include "../device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                         \
    do {                                                                                                    \
        smelt_status status_ = (call);                                                                      \
        if (status_ != SMELT_OK) FAIL_TEST("%s: %s: %s", #call, smelt_status_name(status_), smelt_error()); \
    } while (0)

#define LINE(count) ((smelt_shape){1, {count}})

/* ---- Kernels. */

/* The in-place functions of `library`: `x` and their other arguments. */
static const char text[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void add(device int *x [[buffer(0)]], constant int &by [[buffer(1)]],\n"
    "                uint i [[thread_position_in_grid]]) { x[i] += by; }\n"
    "kernel void twice(device int *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; }\n"
    "kernel void long_way(device uint *x [[buffer(0)]], constant uint &rounds [[buffer(1)]],\n"
    "                     uint i [[thread_position_in_grid]]) {\n"
    "  uint v = x[i]; for (uint k = 0; k < rounds; k++) v = v * 1664525u + 1013904223u; x[i] = v; }\n"
    "kernel void add_fours(device int4 *x [[buffer(0)]], constant int &by [[buffer(1)]],\n"
    "                      uint i [[thread_position_in_grid]]) { if (i < 64) x[i] += by; }\n"
    "kernel void mark(device uchar *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
    "  x[i] = uchar(i ^ (i >> 8) ^ (i >> 16) ^ (i >> 24)); }\n"
    "kernel void count_wrong(device const uchar *x [[buffer(0)]], device atomic_uint *wrong [[buffer(1)]],\n"
    "                        uint i [[thread_position_in_grid]]) {\n"
    "  if (x[i] != uchar(i ^ (i >> 8) ^ (i >> 16) ^ (i >> 24)))\n"
    "    atomic_fetch_add_explicit(wrong, 1u, memory_order_relaxed); }\n";

static smelt_library *library;

static int open_library(void **state) {
    (void)state;
    CHECK(smelt_library_create(&(smelt_library_desc){.source = text, .path = "work.metal"}, &library));
    return 0;
}
static int close_library(void **state) {
    (void)state;
    smelt_library_release(library);
    return 0;
}

/* Runs `name` over all of `x`; a number for buffer 1 unless NULL. */
static void run(const char *name, smelt_array *x, const uint32_t *number, smelt_stream *stream) {
    smelt_function *function;
    CHECK(smelt_library_function(library, &(smelt_function_desc){.name = name}, &function));
    CHECK(smelt_function_run(
        function, &(smelt_dispatch_desc){.buffers = {{.array = x}, {.bytes = number, .size = number ? 4 : 0}},
                                         .grid = {smelt_array_size(x)},
                                         .threadgroup = {256},
                                         .device = test_device(),
                                         .stream = stream}));
    smelt_function_release(function);
}

static smelt_array *moved(smelt_array *array, const char *device, smelt_stream *stream) {
    smelt_array *there;
    CHECK(smelt_array_to(array, device, stream, &there));
    return there;
}

/* 0, 1, 2 … on the device. */
static smelt_array *counted(int64_t count, smelt_stream *stream) {
    smelt_array *here, *there;
    CHECK(smelt_array_arange(SMELT_INT32, LINE(count), &here));
    there = moved(here, test_device(), stream);
    smelt_array_release(here);
    return there;
}

/* Elements are by · i + add. Releases the array. */
static void expect(const char *what, smelt_array *array, int64_t by, int64_t add) {
    CHECK(test_to_host(&array));
    const int32_t *value = smelt_array_data(array);
    for (int64_t i = 0; i < smelt_array_size(array); i++)
        if (value[i] != (int32_t)(by * i + add))
            FAIL_TEST("%s: element %lld is %d, expected %d", what, (long long)i, value[i],
                      (int32_t)(by * i + add));
    smelt_array_release(array);
}

/* ---- Arrays. */

static void arrays_come_back_as_they_went(void **state) {
    (void)state;
    static const struct {
        const char *what;
        smelt_shape shape;
        int64_t strides[3], offset;
    } views[] = {{"all", {3, {5, 6, 7}}, {42, 7, 1}, 0},
                 {"transposed", {3, {7, 6, 5}}, {1, 7, 42}, 0},
                 {"every other row", {3, {5, 3, 7}}, {42, 14, 1}, 7},
                 {"backwards", {2, {30, 7}}, {-7, -1}, 209},
                 {"one element everywhere", {2, {4, 9}}, {0, 0}, 100},
                 {"a scalar", {0, {0}}, {0}, 17},
                 {"nothing", {2, {0, 7}}, {7, 1}, 0}};
#define DTYPE(upper, lower, bytes, name) SMELT_##upper,
    static const smelt_dtype dtypes[] = {SMELT_DTYPE_TABLE(DTYPE)};
#undef DTYPE
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        smelt_array *base, *wide;
        CHECK(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){3, {5, 6, 7}}, &wide));
        CHECK(smelt_array_convert(wide, dtypes[d], &base));
        for (size_t v = 0; v < sizeof views / sizeof *views; v++) {
            smelt_array *view, *there, *back, *plain, *expected;
            CHECK(smelt_array_view(base, views[v].shape, views[v].strides, views[v].offset, &view));
            there = moved(view, test_device(), NULL);
            if (strncmp(smelt_array_device(there), test_device(), strlen(test_device())) != 0)
                FAIL_TEST("an array on %s says that it lies on %s", test_device(), smelt_array_device(there));
            back = moved(there, "cpu", NULL);
            CHECK(smelt_array_contiguous(back, &plain));
            CHECK(smelt_array_contiguous(view, &expected));
            assert_int_equal(smelt_array_dtype(plain), dtypes[d]);
            size_t bytes = (size_t)smelt_array_size(view) * smelt_dtype_bytes(dtypes[d]);
            if (memcmp(smelt_array_data(plain), smelt_array_data(expected), bytes) != 0)
                FAIL_TEST("%s, %s: other elements came back", smelt_dtype_name(dtypes[d]), views[v].what);
            smelt_array *all[] = {view, there, back, plain, expected};
            for (size_t i = 0; i < 5; i++) smelt_array_release(all[i]);
        }
        smelt_array_release(base);
        smelt_array_release(wide);
    }
}

/* Vectors need only the alignment of their elements. */
static void views_begin_anywhere(void **state) {
    (void)state;
    for (int64_t offset = 0; offset < 6; offset++) {
        smelt_array *base = counted(262, NULL), *view;
        const uint32_t by = 1000;
        CHECK(smelt_array_view(base, LINE(256), NULL, offset, &view));
        run("add_fours", view, &by, NULL);
        smelt_array_release(view);
        CHECK(test_to_host(&base));
        const int32_t *value = smelt_array_data(base);
        for (int64_t i = 0; i < 262; i++) {
            int32_t wanted = (int32_t)(i + (i >= offset && i < offset + 256 ? 1000 : 0));
            if (value[i] != wanted)
                FAIL_TEST("a view from %lld: element %lld is %d, expected %d", (long long)offset,
                          (long long)i, value[i], wanted);
        }
        smelt_array_release(base);
    }
}

static void an_array_that_is_there_stays(void **state) {
    (void)state;
    smelt_array *there = counted(100, NULL), *again = moved(there, test_device(), NULL);
    assert_ptr_equal(smelt_array_data(there), smelt_array_data(again));
    smelt_array_release(again);
    expect("unchanged", there, 1, 0);
}

/* The copy to the device has the array's contents at the call. */
static void the_source_of_a_copy_may_change_at_once(void **state) {
    (void)state;
    if (!test_device_has_memory()) SKIP_TEST("for devices with memory of their own");
    smelt_stream *stream;
    CHECK(smelt_stream_create(test_device(), &stream));
    const int64_t count = 1 << 22;
    for (int round = 0; round < 5; round++) {
        smelt_array *here, *there;
        CHECK(smelt_array_arange(SMELT_INT32, LINE(count), &here));
        there = moved(here, test_device(), stream);
        memset(smelt_array_data(here), 0xa5, (size_t)count * 4);
        smelt_array_release(here);
        expect("the copy", there, 1, 0);
    }
    smelt_stream_release(stream);
}

static void fills_are_in_order_with_kernels(void **state) {
    (void)state;
    smelt_array *x;
    CHECK(smelt_array_create_on(test_device(), SMELT_INT32, LINE(100000), &x));
    for (int round = 0; round < 20; round++) {
        CHECK(smelt_array_fill(x, round));
        run("add", x, &(uint32_t){5}, NULL);
        run("twice", x, NULL, NULL);
    }
    expect("filled, then 2 (x + 5)", x, 0, 2 * (19 + 5));
}

static void too_much_memory_is_an_error_that_says_so(void **state) {
    (void)state;
    if (!test_device_has_memory()) SKIP_TEST("for devices with memory of their own");
    uint64_t free_bytes, total;
    CHECK(smelt_device_memory(test_device(), &free_bytes, &total));
    assert_true(free_bytes <= total && total > 0);
    smelt_array *x = NULL;
    smelt_status status = smelt_array_create_on(test_device(), SMELT_UINT8, LINE((int64_t)total * 2), &x);
    char asked[32];
    snprintf(asked, sizeof asked, "%llu bytes", (unsigned long long)total * 2);
    assert_int_equal(status, SMELT_ERROR_OUT_OF_MEMORY);
    assert_null(x);
    if (!strstr(smelt_error(), asked)) FAIL_TEST("%s bytes are not named: %s", asked, smelt_error());
    expect("a small array afterwards", counted(1000, NULL), 1, 0);
}

/* Released memory is reused: far more than the device has, one array at a time. */
static void released_memory_is_used_again(void **state) {
    (void)state;
    if (!test_device_has_memory()) SKIP_TEST("for devices with memory of their own");
    uint64_t free_bytes, total;
    CHECK(smelt_device_memory(test_device(), &free_bytes, &total));
    for (int i = 0; i < 12; i++) {
        smelt_array *x;
        CHECK(smelt_array_create_on(test_device(), SMELT_UINT8, LINE((int64_t)(free_bytes / 4)), &x));
        smelt_array_release(x);
    }
}

/* Elements beyond 2^32 bytes, and a grid of more threads than 31 bits can number. */
static void arrays_beyond_4_gibibytes(void **state) {
    (void)state;
    if (!test_device_has_memory()) SKIP_TEST("for devices with memory of their own");
    const int64_t count = (int64_t)UINT32_MAX, before = 1 << 20;
    uint64_t free_bytes, total;
    CHECK(smelt_device_memory(test_device(), &free_bytes, &total));
    if (free_bytes < (uint64_t)count * 2) SKIP_TEST("the device has too little free memory");
    smelt_array *all, *x, *wrong;
    smelt_function *function;
    CHECK(smelt_array_create_on(test_device(), SMELT_UINT8, LINE(count + before), &all));
    CHECK(smelt_array_view(all, LINE(count), (int64_t[]){1}, before, &x));
    CHECK(smelt_array_create_on(test_device(), SMELT_UINT32, LINE(1), &wrong));
    CHECK(smelt_array_fill(all, 7));
    CHECK(smelt_array_fill(wrong, 0));
    run("mark", x, NULL, NULL);
    CHECK(smelt_library_function(library, &(smelt_function_desc){.name = "count_wrong"}, &function));
    CHECK(smelt_function_run(function, &(smelt_dispatch_desc){.buffers = {{.array = x}, {.array = wrong}},
                                                              .grid = {count},
                                                              .threadgroup = {1024},
                                                              .device = test_device()}));
    smelt_function_release(function);
    smelt_array_release(x);
    smelt_array_release(all);
    expect("elements that are wrong", wrong, 0, 0);
}

/* ---- Streams. */

static void launches_of_a_stream_follow_each_other(void **state) {
    (void)state;
    smelt_stream *stream;
    CHECK(smelt_stream_create(test_device(), &stream));
    smelt_array *x = counted(50000, stream);
    int64_t by = 1, add = 0;
    for (int i = 0; i < 20; i++) {
        run("add", x, &(uint32_t){3}, stream);
        add += 3;
        if (i % 4) continue;
        run("twice", x, NULL, stream);
        by *= 2, add *= 2;
    }
    CHECK(smelt_stream_wait(stream));
    expect("a chain of launches", x, by, add);
    smelt_stream_release(stream);
}

/* Uses of an array by two streams are in the order of the calls, without events. */
static void streams_that_share_an_array_take_turns(void **state) {
    (void)state;
    smelt_stream *streams[3];
    for (int s = 0; s < 3; s++) CHECK(smelt_stream_create(test_device(), &streams[s]));
    smelt_array *x = counted(1 << 20, streams[0]);
    int64_t by = 1, add = 0;
    for (int i = 0; i < 12; i++) {
        run("add", x, &(uint32_t){(uint32_t)i}, streams[i % 3]);
        run("twice", x, NULL, streams[(i + 1) % 3]);
        by *= 2, add = 2 * (add + i);
    }
    expect("shared by three streams", x, by, add);
    for (int s = 0; s < 3; s++) smelt_stream_release(streams[s]);
}

static void an_event_orders_streams_and_measures(void **state) {
    (void)state;
    smelt_stream *first, *second;
    smelt_event *begin, *end;
    CHECK(smelt_stream_create(test_device(), &first));
    CHECK(smelt_stream_create(test_device(), &second));
    CHECK(smelt_event_create(test_device(), &begin));
    CHECK(smelt_event_create(test_device(), &end));
    smelt_array *x = counted(1000, first);
    CHECK(smelt_event_record(begin, first));
    run("long_way", x, &(uint32_t){2000000}, first);
    CHECK(smelt_event_record(end, first));
    CHECK(smelt_stream_wait_event(second, end));
    double seconds = -1;
    CHECK(smelt_event_seconds(begin, end, &seconds));
    if (!(seconds > 1e-4 && seconds < 60)) FAIL_TEST("2000000 rounds take %g seconds", seconds);
    CHECK(smelt_event_wait(end));
    CHECK(smelt_stream_wait(second));
    CHECK(test_to_host(&x));
    uint32_t expected = 999;
    for (int k = 0; k < 2000000; k++) expected = expected * 1664525u + 1013904223u;
    assert_int_equal(((const uint32_t *)smelt_array_data(x))[999], expected);
    smelt_array_release(x);
    smelt_event_release(begin);
    smelt_event_release(end);
    smelt_stream_release(first);
    smelt_stream_release(second);
}

static void *work_alone(void *failed) {
    smelt_stream *stream;
    if (smelt_stream_create(test_device(), &stream) != SMELT_OK) return failed;
    for (int round = 0; round < 10; round++) {
        smelt_array *x = counted(30000 + round, stream);
        for (int i = 0; i < 5; i++) run("twice", x, NULL, stream);
        expect("a thread's own array", x, 32, 0);
    }
    smelt_stream_release(stream);
    return NULL;
}

static void threads_with_streams_of_their_own(void **state) {
    (void)state;
    pthread_t threads[6];
    int number;
    for (int t = 0; t < 6; t++) assert_int_equal(pthread_create(&threads[t], NULL, work_alone, &number), 0);
    for (int t = 0; t < 6; t++) {
        void *failed;
        pthread_join(threads[t], &failed);
        assert_null(failed);
    }
}

/* ---- Recordings. */

static void a_recording_replays_its_launches(void **state) {
    (void)state;
    if (!test_device_has_memory()) SKIP_TEST("for devices with memory of their own");
    smelt_stream *stream;
    smelt_recording *recording;
    CHECK(smelt_stream_create(test_device(), &stream));
    smelt_array *x = counted(10000, stream);
    /* Compiled beforehand: launches that are recorded must not compile. */
    run("add", x, &(uint32_t){0}, stream);
    CHECK(smelt_array_fill(x, 0));
    run("twice", x, NULL, stream);
    CHECK(smelt_stream_wait(stream));
    CHECK(smelt_stream_record_begin(stream));
    run("add", x, &(uint32_t){1}, stream);
    run("twice", x, NULL, stream);
    CHECK(smelt_stream_record_end(stream, &recording));
    int64_t value = 0;
    for (int i = 0; i < 7; i++) {
        CHECK(smelt_recording_replay(recording, stream));
        value = 2 * (value + 1);
    }
    CHECK(smelt_stream_wait(stream));
    smelt_recording_release(recording);
    expect("7 replays of 2 (x + 1)", x, 0, value);
    smelt_stream_release(stream);
}

/* ---- The same bits in every run. */

static void results_do_not_change_from_run_to_run(void **state) {
    (void)state;
    static const char body[] =
        "uint i = thread_position_in_grid.x; float v = x[i]; float s = simd_sum(exp(v)); threadgroup float "
        "part[8];\n"
        "part[simdgroup_index_in_threadgroup] = s; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "float all = 0; for (int k = 0; k < 8; k++) all += part[k];\n"
        "out[i] = sin(v) / all + simd_prefix_inclusive_sum(v);";
    smelt_kernel *kernel;
    smelt_array *x, *first = NULL;
    CHECK(smelt_kernel_create(
        &(smelt_kernel_desc){.name = "mixed", .source = body, .inputs = {"x"}, .outputs = {"out"}}, &kernel));
    CHECK(smelt_array_normal(SMELT_FLOAT32, LINE(1 << 16), 3, &x));
    for (int round = 0; round < 8; round++) {
        smelt_array *out;
        CHECK(smelt_kernel_run(kernel,
                               &(smelt_run_desc){.inputs = {x},
                                                 .grid = {1 << 16},
                                                 .threadgroup = {256},
                                                 .output_shapes = {LINE(1 << 16)},
                                                 .output_dtypes = {SMELT_FLOAT32},
                                                 .device = test_device()},
                               &out));
        CHECK(test_to_host(&out));
        if (first && memcmp(smelt_array_data(first), smelt_array_data(out), (size_t)4 << 16) != 0)
            FAIL_TEST("round %d gives other bits than the first", round);
        if (first)
            smelt_array_release(out);
        else
            first = out;
    }
    smelt_array_release(first);
    smelt_array_release(x);
    smelt_kernel_release(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_come_back_as_they_went),
        cmocka_unit_test(views_begin_anywhere),
        cmocka_unit_test(an_array_that_is_there_stays),
        cmocka_unit_test(the_source_of_a_copy_may_change_at_once),
        cmocka_unit_test(fills_are_in_order_with_kernels),
        cmocka_unit_test(too_much_memory_is_an_error_that_says_so),
        cmocka_unit_test(released_memory_is_used_again),
        cmocka_unit_test(arrays_beyond_4_gibibytes),
        cmocka_unit_test(launches_of_a_stream_follow_each_other),
        cmocka_unit_test(streams_that_share_an_array_take_turns),
        cmocka_unit_test(an_event_orders_streams_and_measures),
        cmocka_unit_test(threads_with_streams_of_their_own),
        cmocka_unit_test(a_recording_replays_its_launches),
        cmocka_unit_test(results_do_not_change_from_run_to_run),
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
