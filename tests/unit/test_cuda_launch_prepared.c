/* Prepared launches on a GPU: the driver calls of a run. */
#include "cuda/launches.h"

#include <string.h>

/* out[i] = a * inp[i]: slots inp, a, out. */
static CUresult run_scale(const struct fake_launch *launch, void *context) {
    struct seen *seen = context;
    float a;
    see(seen, launch, 3);
    memcpy(&a, seen->bytes, sizeof a);
    const float *inp = (const float *)(uintptr_t)seen->slots[0];
    float *out = (float *)(uintptr_t)seen->slots[2];
    fake->touch(seen->slots[0], false);
    fake->touch(seen->slots[2], true);
    for (uint32_t i = 0; i < seen->head.grid[0]; i++) out[i] = a * inp[i];
    return CUDA_SUCCESS;
}

static smelt_array *scalar(float value) {
    smelt_array *array;
    OK(smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){0}, &value, &array));
    return array;
}

static void test_prepared_launch_only_launches(void **state) {
    (void)state;
    struct seen seen = {0};
    smelt_kernel *kernel;
    OK(smelt_kernel_create(
        &(smelt_kernel_desc){.name = "scale",
                             .source = "uint i = thread_position_in_grid.x; out[i] = a * inp[i];",
                             .inputs = {"inp", "a"},
                             .outputs = {"out"}},
        &kernel));
    smelt_array *inp = floats("cuda", 100, 0, 1), *host = floats("cpu", 100, 7, 0), *a = scalar(2.5f);
    smelt_array *into = floats("cuda", 100, 0, 0), *out;
    fake->launch(run_scale, &seen);
    smelt_run_desc desc = {.inputs = {inp, a},
                           .grid = {100},
                           .threadgroup = {64},
                           .output_shapes = {{1, {100}}},
                           .output_dtypes = {SMELT_FLOAT32},
                           .into = {into},
                           .device = "cuda"};
    smelt_launch *launch;
    OK(smelt_kernel_prepare(kernel, &desc, &launch));
    assert_int_equal(seen.launches, 0);
    OK(smelt_launch_run(launch, NULL, NULL));
    fake->forget_calls();
    for (int i = 0; i < 3; i++) OK(smelt_launch_run(launch, NULL, NULL));
    assert_int_equal(fake->calls("cuLaunchKernelEx"), 3);
    assert_int_equal(fake->calls("cuMemAllocAsync"), 0);
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2"), 0);
    assert_int_equal(fake->calls("cuStreamSynchronize"), 0);
    out = on_host(smelt_array_retain(into));
    assert_true(value_of(out, 99) == 2.5f * 99);
    smelt_array_release(out);

    /* Other inputs: one from the host, which is uploaded. */
    smelt_array *b = scalar(3), *inputs[2] = {host, b};
    fake->forget_calls();
    OK(smelt_launch_run(launch, &(smelt_launch_desc){.inputs = inputs}, &out));
    assert_ptr_equal(out, into);
    assert_int_equal(fake->calls("cuMemcpyHtoDAsync_v2"), 1);
    out = on_host(out);
    assert_true(value_of(out, 5) == 21);
    smelt_array_release(out);

    desc.into[0] = host;
    expect_failure(smelt_kernel_prepare(kernel, &desc, &launch), SMELT_ERROR_INVALID_ARGUMENT,
                   "kernel 'scale': output 'out': the array to write into is on 'cpu'; the kernel runs on "
                   "'cuda:0'");
    smelt_launch_release(launch);
    smelt_array_release(b);
    smelt_array_release(host);
    smelt_array_release(into);
    smelt_array_release(inp);
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_prepared_launch_only_launches, check_fake),
    };
    return cmocka_run_group_tests(tests, open_fake, NULL);
}
