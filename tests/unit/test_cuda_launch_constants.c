/* Small host arrays that a function on a GPU reads as constants: they travel with the launch, and a recording
 * keeps their contents. */
#include "cuda/launches.h"

#include <string.h>

/* out[i] = from[i * step] for i below count, from the launch's parameter: slots out, size, from. */
#define PICK_FILE                                                                            \
    "struct sizes { uint count, step; }; "                                                   \
    "kernel void pick(device float *out [[buffer(0)]], constant sizes *size [[buffer(1)]], " \
    "device const float *from [[buffer(2)]], uint i [[thread_position_in_grid]]) { "         \
    "if (i < size->count) out[i] = from[i * size->step]; }"

static CUresult run_pick(const struct fake_launch *launch, void *context) {
    struct seen *seen = context;
    see(seen, launch, 3);
    uint32_t sizes[2];
    memcpy(sizes, seen->bytes, sizeof sizes);
    const float *from = (const float *)(uintptr_t)seen->slots[2];
    float *out = (float *)(uintptr_t)seen->slots[0];
    fake->touch(seen->slots[0], true);
    fake->touch(seen->slots[2], false);
    for (uint32_t i = 0; i < sizes[0]; i++) out[i] = from[i * sizes[1]];
    return CUDA_SUCCESS;
}

/* A host's structure behind a pointer to constant memory is not copied to the GPU by itself. */
static void test_small_arrays_behind_constant_pointers_travel_along(void **state) {
    (void)state;
    struct seen seen = {0};
    uint32_t sizes[2] = {16, 3};
    smelt_array *size, *out = floats("cuda", 16, 0, 0), *from = floats("cuda", 64, 0, 1);
    OK(smelt_array_from_values(SMELT_UINT32, (smelt_shape){1, {2}}, sizes, &size));
    smelt_function *pick = function_of(PICK_FILE, "pick");
    smelt_dispatch_desc desc = {.buffers = {{.array = out}, {.array = size}, {.array = from}},
                                .grid = {16},
                                .threadgroup = {16},
                                .device = "cuda"};
    fake->launch(run_pick, &seen);
    fake->forget_calls();
    OK(smelt_function_run(pick, &desc));
    assert_int_equal(seen.slots[1], 0);
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2"), 0);
    out = on_host(out);
    for (int i = 0; i < 16; i++) assert_true(value_of(out, i) == (float)(3 * i));
    smelt_array_release(out);
    smelt_array_release(from);
    smelt_array_release(size);
    smelt_function_release(pick);
}

/* … with the contents it had then, also when they change or it is released. */
static void test_a_recording_keeps_a_small_array_of_the_host(void **state) {
    (void)state;
    struct seen seen = {0};
    uint32_t sizes[2] = {16, 3};
    smelt_stream *stream;
    smelt_recording *recording;
    smelt_array *size, *out = floats("cuda", 16, 0, 0), *from = floats("cuda", 64, 0, 1);
    OK(smelt_array_from_values(SMELT_UINT32, (smelt_shape){1, {2}}, sizes, &size));
    smelt_function *pick = function_of(PICK_FILE, "pick");
    OK(smelt_stream_create("cuda", &stream));
    smelt_dispatch_desc desc = {.buffers = {{.array = out}, {.array = size}, {.array = from}},
                                .grid = {16},
                                .threadgroup = {16},
                                .stream = stream,
                                .device = "cuda"};
    fake->launch(run_pick, &seen);
    OK(smelt_function_run(pick, &desc));
    OK(smelt_array_fill(out, 0));
    OK(smelt_stream_record_begin(stream));
    OK(smelt_function_run(pick, &desc));
    OK(smelt_stream_record_end(stream, &recording));
    ((uint32_t *)smelt_array_data(size))[1] = 1;
    smelt_array_release(size);
    OK(smelt_recording_replay(recording, stream));
    out = on_host(out);
    for (int i = 0; i < 16; i++) assert_true(value_of(out, i) == (float)(3 * i));
    smelt_recording_release(recording);
    smelt_stream_release(stream);
    smelt_array_release(out);
    smelt_array_release(from);
    smelt_function_release(pick);
    OK(smelt_device_reset("cuda")); /* which unloads recorded code */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_small_arrays_behind_constant_pointers_travel_along, check_fake),
        cmocka_unit_test_teardown(test_a_recording_keeps_a_small_array_of_the_host, check_fake),
    };
    return cmocka_run_group_tests(tests, open_fake, NULL);
}
