/* Launches on a GPU, from the public calls down to the driver's: the arguments of kernels, which data is
 * copied, and which code is compiled, assembled and loaded. */
#include "cuda/launches.h"

#include "device/cuda/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Bodies. */

/* out[i] = a * inp[i] + inp_shape[0], from the launch's parameter: slots inp, inp_shape, a, out. */
static CUresult run_scale(const struct fake_launch *launch, void *context) {
    struct seen *seen = context;
    float a;
    int32_t size;
    see(seen, launch, 4);
    memcpy(&size, seen->bytes, sizeof size);
    memcpy(&a, seen->bytes + 64, sizeof a);
    const float *inp = (const float *)(uintptr_t)seen->slots[0];
    float *out = (float *)(uintptr_t)seen->slots[3];
    fake->touch(seen->slots[0], false);
    fake->touch(seen->slots[3], true);
    for (uint32_t i = 0; i < seen->head.grid[0]; i++) out[i] = a * inp[i] + (float)size;
    return CUDA_SUCCESS;
}

static const smelt_kernel_desc scale = {
    .name = "scale",
    .source = "uint i = thread_position_in_grid.x; out[i] = a * inp[i] + inp_shape[0];",
    .inputs = {"inp", "a"},
    .outputs = {"out"}};

static smelt_array *run_body(smelt_kernel *kernel, smelt_array *inp, smelt_array *a, int64_t count,
                             smelt_run_info *info) {
    smelt_array *out;
    smelt_run_desc desc = {.inputs = {inp, a},
                           .grid = {count},
                           .threadgroup = {64},
                           .output_shapes = {{1, {count}}},
                           .output_dtypes = {SMELT_FLOAT32},
                           .device = "cuda",
                           .info = info};
    OK(smelt_kernel_run(kernel, &desc, &out));
    return out;
}

static smelt_array *scalar(float value) {
    smelt_array *array;
    OK(smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){0}, &value, &array));
    return array;
}

static void test_body_with_host_arrays(void **state) {
    (void)state;
    struct seen seen = {0};
    smelt_kernel *kernel;
    OK(smelt_kernel_create(&scale, &kernel));
    smelt_array *inp = floats("cpu", 100, 0, 1), *a = scalar(2.5f);
    fake->launch(run_scale, &seen);
    smelt_array *first = run_body(kernel, inp, a, 100, NULL);
    assert_string_equal(smelt_array_device(first), "cuda:0");
    smelt_array_release(on_host(first));
    /* The code is there: the input is uploaded, the output downloaded, and nothing else. */
    fake->forget_calls();
    smelt_array *out = on_host(run_body(kernel, inp, a, 100, NULL));
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2"), 1);
    assert_int_equal(fake->calls("cuMemcpyDtoHAsync_v2"), 1);
    assert_int_equal(fake->calls("cuMemAllocAsync"), 2);
    assert_int_equal(fake->calls("cuModuleLoadDataEx"), 0);
    assert_int_equal(fake->calls("cuLaunchKernelEx"), 1);
    for (int i = 0; i < 100; i++) assert_true(value_of(out, i) == 2.5f * (float)i + 100);
    assert_int_equal(seen.launches, 2);
    assert_int_equal(seen.launch.grid[0], 2);
    assert_int_equal(seen.launch.grid[1], 1);
    assert_int_equal(seen.launch.block[0], 64);
    assert_int_equal(seen.launch.block[1] * seen.launch.block[2], 1);
    assert_int_equal(seen.launch.shared_bytes, 0);
    assert_int_equal(seen.head.grid[0], 100);
    assert_int_equal(seen.head.group_size[0], 64);
    assert_int_equal(seen.head.groups[0], 2);
    assert_true(seen.head.stop == 0 && seen.head.log == 0);
    smelt_array_release(out);
    smelt_array_release(inp);
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

static void test_body_with_device_arrays_copies_nothing(void **state) {
    (void)state;
    struct seen seen = {0};
    smelt_kernel *kernel;
    OK(smelt_kernel_create(&scale, &kernel));
    smelt_array *inp = floats("cuda", 100, 0, 1), *a = scalar(3);
    fake->launch(run_scale, &seen);
    smelt_array_release(run_body(kernel, inp, a, 100, NULL));
    fake->forget_calls();
    smelt_array *out = run_body(kernel, inp, a, 100, NULL);
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2"), 0);
    assert_int_equal(fake->calls("cuMemcpyDtoHAsync_v2"), 0);
    assert_int_equal(fake->calls("cuMemcpyDtoDAsync_v2"), 0);
    assert_int_equal(fake->calls("cuStreamSynchronize"), 0);
    assert_true(seen.slots[0] == (uint64_t)(uintptr_t)smelt_array_data(inp));
    assert_true(seen.slots[3] == (uint64_t)(uintptr_t)smelt_array_data(out));
    out = on_host(out);
    assert_true(value_of(out, 99) == 3 * 99.0f + 100);
    smelt_array_release(out);
    smelt_array_release(inp);
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

static CUresult add_one(const struct fake_launch *launch, void *context) {
    see(context, launch, 1);
    float *out = (float *)(uintptr_t)((struct seen *)context)->slots[0];
    fake->touch((uintptr_t)out, true);
    out[3] += 1;
    return CUDA_SUCCESS;
}

static void test_outputs_begin_with_their_value(void **state) {
    (void)state;
    struct seen seen = {0};
    smelt_kernel *kernel;
    smelt_array *out;
    smelt_stream *stream;
    OK(smelt_kernel_create(&(smelt_kernel_desc){.name = "one", .source = "out[3] += 1;", .outputs = {"out"}},
                           &kernel));
    OK(smelt_stream_create("cuda", &stream));
    smelt_run_desc desc = {.grid = {1},
                           .threadgroup = {1},
                           .output_shapes = {{1, {8}}},
                           .output_dtypes = {SMELT_FLOAT32},
                           .initialise = true,
                           .init_value = 7.5,
                           .device = "cuda",
                           .stream = stream};
    fake->launch(add_one, &seen);
    OK(smelt_kernel_run(kernel, &desc, &out));
    out = on_host(out);
    assert_true(value_of(out, 0) == 7.5f && value_of(out, 3) == 8.5f && value_of(out, 7) == 7.5f);
    smelt_array_release(out);
    smelt_stream_release(stream);
    smelt_kernel_release(kernel);
}

/* Strided inputs reach the kernel with strides; a transposed array is uploaded as it is. */
static CUresult see_strided(const struct fake_launch *launch, void *context) {
    struct seen *seen = context;
    see(seen, launch, 3);
    int64_t strides[2];
    memcpy(strides, seen->bytes, sizeof strides);
    if (strides[0] != 1 || strides[1] != 4) return 1;
    const float *inp = (const float *)(uintptr_t)seen->slots[0];
    float *out = (float *)(uintptr_t)seen->slots[2];
    fake->touch(seen->slots[0], false);
    fake->touch(seen->slots[2], true);
    for (int64_t r = 0; r < 4; r++)
        for (int64_t c = 0; c < 5; c++) out[5 * r + c] = inp[r * strides[0] + c * strides[1]];
    return CUDA_SUCCESS;
}

static void test_strided_input_from_the_host(void **state) {
    (void)state;
    struct seen seen = {0};
    smelt_kernel *kernel;
    smelt_array *base = floats("cpu", 20, 0, 1), *inp, *out;
    OK(smelt_array_view(base, (smelt_shape){2, {4, 5}}, (int64_t[]){1, 4}, 0, &inp));
    OK(smelt_kernel_create(
        &(smelt_kernel_desc){.name = "rows",
                             .source = "uint i = thread_position_in_grid.x; "
                                       "out[i] = inp[i / 5 * inp_strides[0] + i % 5 * inp_strides[1]];",
                             .inputs = {"inp"},
                             .outputs = {"out"},
                             .strided = true},
        &kernel));
    smelt_run_desc desc = {.inputs = {inp},
                           .grid = {20},
                           .threadgroup = {20},
                           .output_shapes = {{1, {20}}},
                           .output_dtypes = {SMELT_FLOAT32},
                           .device = "cuda"};
    fake->launch(see_strided, &seen);
    OK(smelt_kernel_run(kernel, &desc, &out));
    out = on_host(out);
    for (int i = 0; i < 20; i++) assert_true(value_of(out, i) == (float)(i / 5 + i % 5 * 4));
    smelt_array_release(out);
    smelt_array_release(inp);
    smelt_array_release(base);
    smelt_kernel_release(kernel);
}

/* ---- Functions of libraries. */

static void test_function_with_host_arrays(void **state) {
    (void)state;
    struct seen seen = {0};
    float a = 2;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cpu", 50, 1, 1), *y = floats("cpu", 50, 100, 0);
    smelt_dispatch_desc desc = {.buffers = {{.array = y}, {.array = x}, {.bytes = &a, .size = sizeof a}},
                                .grid = {50},
                                .threadgroup = {32},
                                .device = "cuda"};
    fake->launch(run_axpy, &seen);
    OK(smelt_function_run(axpy, &desc));
    assert_true(value_of(y, 0) == 102 && value_of(y, 49) == 200);
    fake->forget_calls();
    OK(smelt_function_run(axpy, &desc));
    assert_true(value_of(y, 49) == 300);
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2"), 2);
    assert_int_equal(fake->calls("cuMemcpyDtoHAsync_v2"), 1);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_function_release(axpy);
}

static void test_function_with_device_arrays_is_not_waited_for(void **state) {
    (void)state;
    struct seen seen = {0};
    float a = 2;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 50, 1, 1), *y = floats("cuda", 50, 100, 0);
    smelt_dispatch_desc desc = {.buffers = {{.array = y}, {.array = x}, {.bytes = &a, .size = sizeof a}},
                                .grid = {50},
                                .threadgroup = {32},
                                .device = "cuda"};
    fake->deferred(true);
    fake->launch(run_axpy, &seen);
    OK(smelt_function_run(axpy, &desc));
    fake->forget_calls();
    a = 10; /* bytes are taken at the call */
    OK(smelt_function_run(axpy, &desc));
    a = 0;
    assert_int_equal(seen.launches, 0);
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2"), 0);
    assert_int_equal(fake->calls("cuStreamSynchronize"), 0);
    assert_int_equal(fake->calls("cuMemAllocAsync"), 0);
    smelt_array_release(x); /* in flight */
    y = on_host(y);
    fake->deferred(false);
    assert_int_equal(seen.launches, 2);
    assert_true(value_of(y, 49) == 100 + 2 * 50 + 10 * 50);
    smelt_array_release(y);
    smelt_function_release(axpy);
}

/* One stream's writes and another's reads are in the order of the calls. */
static void test_streams_follow_each_other(void **state) {
    (void)state;
    struct seen seen = {0};
    float a = 2;
    smelt_stream *first, *second;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 50, 1, 1), *y = floats("cuda", 50, 0, 0), *z = floats("cuda", 50, 0, 0);
    OK(smelt_stream_create("cuda", &first));
    OK(smelt_stream_create("cuda", &second));
    fake->deferred(true);
    fake->launch(run_axpy, &seen);
    for (int i = 0; i < 2; i++) {
        smelt_dispatch_desc desc = {
            .buffers = {{.array = i ? z : y}, {.array = i ? y : x}, {.bytes = &a, .size = sizeof a}},
            .grid = {50},
            .threadgroup = {32},
            .stream = i ? second : first,
            .device = "cuda"};
        OK(smelt_function_run(axpy, &desc));
    }
    z = on_host(z);
    fake->deferred(false);
    assert_true(value_of(z, 49) == 200);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_array_release(z);
    smelt_stream_release(first);
    smelt_stream_release(second);
    smelt_function_release(axpy);
}

/* Threads launch one function at the same time, from its first compile on. */
struct launcher {
    pthread_t thread;
    smelt_function *axpy;
    smelt_array *x, *y;
    bool failed;
};

#define LAUNCHES 200

static CUresult count_launch(const struct fake_launch *launch, void *context) {
    (void)launch;
    atomic_fetch_add((atomic_int *)context, 1);
    return CUDA_SUCCESS;
}

static void *launch_often(void *context) {
    struct launcher *l = context;
    for (int i = 0; i < LAUNCHES; i++) {
        float a = (float)i;
        smelt_dispatch_desc desc = {
            .buffers = {{.array = l->y}, {.array = l->x}, {.bytes = &a, .size = sizeof a}},
            .grid = {50},
            .threadgroup = {i % 2 ? 32 : 64},
            .device = "cuda"};
        l->failed |= smelt_function_run(l->axpy, &desc) != SMELT_OK;
    }
    return NULL;
}

static void test_threads_launch_together(void **state) {
    (void)state;
    struct launcher launchers[4];
    atomic_int launches = 0;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 50, 1, 1);
    fake->launch(count_launch, &launches);
    fake->forget_calls();
    for (int i = 0; i < 4; i++) {
        launchers[i] = (struct launcher){.axpy = axpy, .x = x, .y = floats("cuda", 50, 0, 0)};
        assert_int_equal(pthread_create(&launchers[i].thread, NULL, launch_often, &launchers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(launchers[i].thread, NULL);
        assert_false(launchers[i].failed);
        smelt_array_release(launchers[i].y);
    }
    assert_int_equal(launches, 4 * LAUNCHES);
    assert_int_equal(fake->calls("cuModuleLoadDataEx"), 2);
    smelt_array_release(x);
    smelt_function_release(axpy);
}

/* A kernel that gets one array twice sees it as one, and views of one memory keep their distance. */
static void test_host_arrays_that_share_memory(void **state) {
    (void)state;
    struct seen seen = {0};
    float a = 1;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *whole = floats("cpu", 64, 1, 1), *low, *high;
    OK(smelt_array_view(whole, (smelt_shape){1, {40}}, NULL, 3, &low));
    OK(smelt_array_view(whole, (smelt_shape){1, {40}}, NULL, 11, &high));
    smelt_dispatch_desc desc = {.buffers = {{.array = high}, {.array = low}, {.bytes = &a, .size = sizeof a}},
                                .grid = {8},
                                .threadgroup = {8},
                                .device = "cuda"};
    fake->launch(run_axpy, &seen);
    OK(smelt_function_run(axpy, &desc));
    assert_true(seen.slots[0] - seen.slots[1] == 8 * sizeof(float));
    for (int i = 0; i < 64; i++) {
        float before = (float)i + 1;
        assert_true(value_of(whole, i) == (i >= 11 && i < 19 ? before + before - 8 : before));
    }
    smelt_array_release(low);
    smelt_array_release(high);
    smelt_array_release(whole);
    smelt_function_release(axpy);
}

/* ---- Bytes that the code reads behind an address. */

#define TABLE_FILE                                                                        \
    "struct table { float values[1000]; };"                                               \
    "kernel void pick(device float *out [[buffer(0)]], constant table &t [[buffer(1)]], " \
    "constant int &k [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = t.values[i * k]; }"

static CUresult run_pick(const struct fake_launch *launch, void *context) {
    struct seen *seen = context;
    int32_t k;
    see(seen, launch, 3);
    memcpy(&k, seen->bytes, sizeof k);
    float *out = (float *)(uintptr_t)seen->slots[0];
    const float *table = (const float *)(uintptr_t)seen->slots[1];
    fake->touch(seen->slots[0], true);
    fake->touch(seen->slots[1], false);
    for (uint32_t i = 0; i < seen->head.grid[0]; i++) out[i] = table[(int32_t)i * k];
    return CUDA_SUCCESS;
}

static void test_many_bytes_lie_behind_an_address(void **state) {
    (void)state;
    struct seen seen = {0};
    float table[1000];
    int32_t k = 37;
    for (int i = 0; i < 1000; i++) table[i] = (float)i;
    smelt_function *pick = function_of(TABLE_FILE, "pick");
    smelt_array *out = floats("cuda", 16, 0, 0);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = out}, {.bytes = table, .size = sizeof table}, {.bytes = &k, .size = sizeof k}},
        .grid = {16},
        .threadgroup = {16},
        .device = "cuda"};
    fake->deferred(true);
    fake->launch(run_pick, &seen);
    OK(smelt_function_run(pick, &desc));
    memset(table, 0, sizeof table);
    out = on_host(out);
    fake->deferred(false);
    for (int i = 0; i < 16; i++) assert_true(value_of(out, i) == (float)(37 * i));
    smelt_array_release(out);
    smelt_function_release(pick);
}

/* ---- Sizes. */

#define TILES_FILE                                                                                          \
    "kernel void tiles(device float *out [[buffer(0)]], threadgroup float *a [[threadgroup(0)]], "          \
    "threadgroup float *b [[threadgroup(3)]], uint i [[thread_position_in_grid]], "                         \
    "uint t [[thread_index_in_threadgroup]]) { threadgroup float own[10]; a[t] = i; b[t] = 1; own[t % 10] " \
    "= 2; "                                                                                                 \
    "metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup); out[i] = a[t ^ 1] + b[t ^ 1] + own[(t " \
    "+ 1) % 10]; }"

static CUresult see_tiles(const struct fake_launch *launch, void *context) {
    see(context, launch, 3);
    fake->touch(((struct seen *)context)->slots[0], true);
    return CUDA_SUCCESS;
}

static void test_threadgroup_memory(void **state) {
    (void)state;
    struct seen seen = {0};
    smelt_function *tiles = function_of(TILES_FILE, "tiles");
    smelt_array *out = floats("cuda", 64, 0, 0);
    smelt_dispatch_desc desc = {.buffers = {{.array = out}},
                                .threadgroup_memory = {[0] = 300, [3] = 1000},
                                .grid = {64},
                                .threadgroup = {64},
                                .device = "cuda"};
    fake->launch(see_tiles, &seen);
    OK(smelt_function_run(tiles, &desc));
    /* Its own variable, 40 bytes, then each in multiples of 128. */
    assert_int_equal(seen.slots[1], 128);
    assert_int_equal(seen.slots[2], 128 + 384);
    assert_int_equal(seen.launch.shared_bytes, 128 + 384 + 1024);
    assert_int_equal(fake->calls("cuFuncSetAttribute"), 0);
    /* Above 48 KiB it is requested, once. */
    desc.threadgroup_memory[3] = 100000;
    for (int i = 0; i < 3; i++) OK(smelt_function_run(tiles, &desc));
    assert_int_equal(fake->calls("cuFuncSetAttribute"), 1);
    assert_int_equal(seen.launch.shared_bytes, 128 + 384 + 100096);
    /* Up to the GPU's limit, which the rounded sizes may exceed if the bytes do not. */
    desc.threadgroup_memory[3] = 227 * 1024 - 128 - 384;
    OK(smelt_function_run(tiles, &desc));
    assert_int_equal(seen.launch.shared_bytes, 227 * 1024);
    desc.threadgroup_memory[3] = 227 * 1024 - 40 - 300;
    expect_failure(smelt_function_run(tiles, &desc), SMELT_ERROR_LIMIT,
                   "kernel 'tiles': a threadgroup uses 232704 bytes of threadgroup memory, in steps of 128; "
                   "device 'cuda:0' allows 232448");
    smelt_array_release(out);
    smelt_function_release(tiles);
}

#define PLACE_FILE                                                                            \
    "kernel void place(device uint *out [[buffer(0)]], uint3 p [[thread_position_in_grid]]) " \
    "{ out[0] = p.x + p.y + p.z; }"

static CUresult see_place(const struct fake_launch *launch, void *context) {
    see(context, launch, 1);
    return CUDA_SUCCESS;
}

static void test_more_groups_than_a_hardware_grid_has(void **state) {
    (void)state;
    struct seen seen = {0};
    smelt_function *place = function_of(PLACE_FILE, "place");
    smelt_array *out = floats("cuda", 1, 0, 0);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = out}}, .grid = {10, 70000, 3}, .threadgroup = {4, 1, 1}, .device = "cuda"};
    fake->launch(see_place, &seen);
    OK(smelt_function_run(place, &desc));
    assert_int_equal(seen.head.groups[0], 3);
    assert_int_equal(seen.head.groups[1], 70000);
    assert_int_equal(seen.launch.grid[0], 3 * 70000 * 3);
    assert_int_equal(seen.launch.grid[1], 1);
    assert_int_equal(seen.launch.grid[2], 1);
    /* 2^31 groups in two rows, … */
    desc = (smelt_dispatch_desc){
        .buffers = {{.array = out}}, .grid = {1, 65536, 32768}, .threadgroup = {1}, .device = "cuda"};
    OK(smelt_function_run(place, &desc));
    assert_int_equal(seen.launch.grid[0], 1 << 30);
    assert_int_equal(seen.launch.grid[1], 2);
    /* … and 2^46 in too many. */
    desc.grid[0] = 32768;
    expect_failure(smelt_function_run(place, &desc), SMELT_ERROR_LIMIT,
                   "kernel 'place': the grid has 70368744177664 threadgroups; device 'cuda:0' allows at most "
                   "70367670435840");
    smelt_array_release(out);
    smelt_function_release(place);
}

/* ---- Code. */

static void run_once(smelt_function *axpy) {
    float a = 1;
    smelt_array *x = floats("cuda", 8, 1, 1), *y = floats("cuda", 8, 0, 0);
    smelt_dispatch_desc desc = {.buffers = {{.array = y}, {.array = x}, {.bytes = &a, .size = sizeof a}},
                                .grid = {8},
                                .threadgroup = {8},
                                .device = "cuda"};
    OK(smelt_function_run(axpy, &desc));
    y = on_host(y);
    assert_true(value_of(y, 7) == 8);
    smelt_array_release(x);
    smelt_array_release(y);
}

/* A text that is in no cache. */
static char *new_text(void) {
    struct timespec now;
    char *text;
    clock_gettime(CLOCK_REALTIME, &now);
    assert_true(
        asprintf(&text,
                 "kernel void axpy(device float *y [[buffer(0)]], const device float *x [[buffer(1)]], "
                 "constant float &a [[buffer(2)]], uint i [[thread_position_in_grid]]) "
                 "{ if (i == %ldu) y[i] = %ldu; else y[i] += a * x[i]; }",
                 (long)now.tv_nsec + 1000, (long)(now.tv_sec & 0xffffff)) > 0);
    return text;
}

static void test_what_was_assembled_is_kept(void **state) {
    (void)state;
    struct seen seen = {0};
    char *text = new_text();
    fake->launch(run_axpy, &seen);
    for (int round = 0; round < 3; round++) {
        smelt_function *axpy = function_of(text, "axpy");
        fake->forget_calls();
        /* In the third round, the cache's copy turns out to be invalid: it is assembled again. */
        if (round == 2) fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
        run_once(axpy);
        assert_int_equal(fake->calls("cuLinkComplete"), round != 1);
        assert_int_equal(fake->calls("cuModuleLoadDataEx"), round == 2 ? 2 : 1);
        smelt_function_release(axpy);
        assert_int_equal(fake->calls("cuModuleUnload"), 1);
    }
    free(text);
}

/* The driver's linker would have products of warpgroups wait for each other. */
static void test_products_of_warpgroups_are_not_linked(void **state) {
    (void)state;
    smelt_function *function =
        function_of("kernel void wait(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) { "
                    "if (__smelt_gpu_target() == 901) __smelt_ptx_wgmma_wait(0); y[i] = 1; }",
                    "wait");
    smelt_array *y = floats("cuda", 128, 0, 0);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = y}}, .grid = {128}, .threadgroup = {128}, .device = "cuda"};
    fake->forget_calls();
    fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_INVALID_PTX);
    expect_failure(smelt_function_run(function, &desc), SMELT_ERROR_COMPILE,
                   "kernel 'wait': the NVIDIA driver cannot assemble its PTX: it gives no reason");
    OK(smelt_function_run(function, &desc));
    assert_int_equal(fake->calls("cuModuleLoadDataEx"), 2);
    assert_int_equal(fake->calls("cuLinkCreate_v2"), 0);
    smelt_array_release(y);
    smelt_function_release(function);
}

/* It would give their threads more registers, so that fewer run at once. */
static void test_products_of_simdgroup_matrices_are_not_linked(void **state) {
    (void)state;
    smelt_function *function = function_of(
        "kernel void multiply(device float *y [[buffer(0)]], device half *x [[buffer(1)]]) { "
        "metal::simdgroup_half8x8 a; metal::simdgroup_float8x8 sum(0); metal::simdgroup_load(a, x, 8); "
        "metal::simdgroup_multiply_accumulate(sum, a, a, sum); metal::simdgroup_store(sum, y, 8); }",
        "multiply");
    smelt_array *y = floats("cuda", 64, 0, 0), *x = floats("cuda", 64, 0, 0);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = y}, {.array = x}}, .grid = {32}, .threadgroup = {32}, .device = "cuda"};
    fake->forget_calls();
    OK(smelt_function_run(function, &desc));
    assert_int_equal(fake->calls("cuLinkCreate_v2"), 0);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_function_release(function);
}

static void test_code_the_driver_does_not_take(void **state) {
    (void)state;
    float a = 1;
    char *text = new_text();
    smelt_function *axpy = function_of(text, "axpy");
    smelt_array *x = floats("cuda", 8, 1, 1);
    smelt_dispatch_desc desc = {.buffers = {{.array = x}, {.array = x}, {.bytes = &a, .size = sizeof a}},
                                .grid = {8},
                                .threadgroup = {8},
                                .device = "cuda"};
    fake->fail_call("cuLinkAddData_v2", 1, CUDA_ERROR_INVALID_PTX);
    expect_failure(smelt_function_run(axpy, &desc), SMELT_ERROR_COMPILE,
                   "kernel 'axpy': the NVIDIA driver cannot assemble its PTX: it gives no reason");
    fake->fail_call("cuLinkAddData_v2", 1, 222);
    expect_failure(smelt_function_run(axpy, &desc), SMELT_ERROR_UNSUPPORTED,
                   "kernel 'axpy': the NVIDIA driver is too old for the PTX that smelt generates: its "
                   "version is newer than the driver's");
    fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
    expect_failure(smelt_function_run(axpy, &desc), SMELT_ERROR_UNSUPPORTED,
                   "kernel 'axpy': its machine code is not for cuda:0, of compute capability 9.0");
    OK(smelt_function_run(axpy, &desc));
    smelt_array_release(x);
    smelt_function_release(axpy);
    free(text);
}

static void test_stream_of_another_device(void **state) {
    (void)state;
    smelt_kernel *kernel;
    smelt_stream *stream;
    smelt_array *out = NULL;
    OK(smelt_kernel_create(&(smelt_kernel_desc){.name = "one", .source = "out[0] = 1;", .outputs = {"out"}},
                           &kernel));
    smelt_run_desc desc = {
        .grid = {1}, .threadgroup = {1}, .output_shapes = {{1, {8}}}, .output_dtypes = {SMELT_FLOAT32}};
    OK(smelt_stream_create("cpu", &stream));
    desc.stream = stream;
    OK(smelt_kernel_run(kernel, &desc, &out));
    smelt_array_release(out);
    desc.device = "cuda";
    expect_failure(smelt_kernel_run(kernel, &desc, &out), SMELT_ERROR_INVALID_ARGUMENT,
                   "kernel 'one': the stream belongs to device 'cpu', expected one of device 'cuda:0', where "
                   "the kernel runs");
    smelt_stream_release(stream);
    smelt_kernel_release(kernel);
}

/* Arrays on a GPU are moved to the CPU if a kernel runs there, and its results are moved back. */
static void test_device_arrays_on_the_cpu(void **state) {
    (void)state;
    float a = 4;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_kernel *kernel;
    smelt_array *x = floats("cuda", 50, 1, 1), *y = floats("cuda", 50, 100, 0), *out, *two = scalar(2);
    smelt_dispatch_desc desc = {.buffers = {{.array = y}, {.array = x}, {.bytes = &a, .size = sizeof a}},
                                .grid = {50},
                                .threadgroup = {32}};
    OK(smelt_function_run(axpy, &desc));
    y = on_host(y);
    assert_true(value_of(y, 49) == 300);
    OK(smelt_kernel_create(&scale, &kernel));
    smelt_run_desc run = {.inputs = {x, two},
                          .grid = {50},
                          .threadgroup = {32},
                          .output_shapes = {{1, {50}}},
                          .output_dtypes = {SMELT_FLOAT32}};
    OK(smelt_kernel_run(kernel, &run, &out));
    assert_string_equal(smelt_array_device(out), "cpu");
    assert_true(value_of(out, 49) == 2 * 50 + 50);
    smelt_array_release(out);
    smelt_array_release(two);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_kernel_release(kernel);
    smelt_function_release(axpy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_body_with_host_arrays, check_fake),
        cmocka_unit_test_teardown(test_body_with_device_arrays_copies_nothing, check_fake),
        cmocka_unit_test_teardown(test_outputs_begin_with_their_value, check_fake),
        cmocka_unit_test_teardown(test_strided_input_from_the_host, check_fake),
        cmocka_unit_test_teardown(test_function_with_host_arrays, check_fake),
        cmocka_unit_test_teardown(test_function_with_device_arrays_is_not_waited_for, check_fake),
        cmocka_unit_test_teardown(test_streams_follow_each_other, check_fake),
        cmocka_unit_test_teardown(test_threads_launch_together, check_fake),
        cmocka_unit_test_teardown(test_host_arrays_that_share_memory, check_fake),
        cmocka_unit_test_teardown(test_many_bytes_lie_behind_an_address, check_fake),
        cmocka_unit_test_teardown(test_threadgroup_memory, check_fake),
        cmocka_unit_test_teardown(test_more_groups_than_a_hardware_grid_has, check_fake),
        cmocka_unit_test_teardown(test_what_was_assembled_is_kept, check_fake),
        cmocka_unit_test_teardown(test_products_of_warpgroups_are_not_linked, check_fake),
        cmocka_unit_test_teardown(test_products_of_simdgroup_matrices_are_not_linked, check_fake),
        cmocka_unit_test_teardown(test_code_the_driver_does_not_take, check_fake),
        cmocka_unit_test_teardown(test_stream_of_another_device, check_fake),
        cmocka_unit_test_teardown(test_device_arrays_on_the_cpu, check_fake),
    };
    return cmocka_run_group_tests_name("launches on the fake driver", tests, open_fake, NULL);
}
