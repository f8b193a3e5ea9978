/* Launches on a stream that another library captures into a graph, on the fake driver: what would end the
 * capture is not done, and the graph can be launched. */
#include "cuda/launches.h"

#include "device/cuda/context.h"

/* Another library captures a stream: arguments were written on other streams, and a function is released
 * before the capture ends. Its code stays loaded for the graph. */
static void test_a_capture_survives(void **state) {
    (void)state;
    CUcontext previous;
    CUstream mine;
    CUgraph graph;
    CUgraphExec executable;
    smelt_stream *stream, *beside;
    const struct device *device;
    const float a = 2;
    OK(device_find("cuda", &device));
    struct cuda_gpu *gpu = cuda_gpu_of(device);
    const struct cuda_driver *driver = gpu->driver;
    OK(cuda_enter(gpu, &previous));
    assert_int_equal(driver->stream_create(&mine, CUDA_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    OK(smelt_stream_from_native("cuda", mine, &stream));
    OK(smelt_stream_create("cuda", &beside));
    fake->deferred(true);
    fake->launch(run_axpy, &(struct seen){0});
    smelt_function *captured = function_of(AXPY_FILE, "axpy"), *other = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", 64, 1, 1), *y = floats("cuda", 64, 0, 0), *z = floats("cuda", 64, 0, 0);
    smelt_dispatch_desc desc = {.device = "cuda",
                                .buffers = {{.array = x}, {.array = z}, {.bytes = &a, .size = sizeof a}},
                                .grid = {64, 1, 1},
                                .threadgroup = {64, 1, 1},
                                .stream = beside};
    OK(smelt_function_run(other, &desc)); /* writes x; still running when the capture begins */
    assert_int_equal(driver->capture_begin(mine, CUDA_CAPTURE_RELAXED), CUDA_SUCCESS);
    desc.stream = stream;
    desc.buffers[0].array = y;
    desc.buffers[1].array = x;
    OK(smelt_function_run(captured, &desc));
    smelt_function_release(captured);
    smelt_function_release(other);
    bool ready = false;
    OK(smelt_array_is_ready(y, &ready));
    assert_true(ready);
    expect_failure(smelt_stream_wait(stream), SMELT_ERROR_INVALID_ARGUMENT,
                   "stream: its owner captures it, so there is nothing to wait for; expected a stream whose "
                   "capture has ended");
    expect_failure(
        smelt_stream_is_done(stream, &ready), SMELT_ERROR_INVALID_ARGUMENT,
        "stream: its owner captures it, so nothing runs on it; expected a stream whose capture has "
        "ended");
    OK(smelt_device_wait("cuda"));
    assert_int_equal(driver->capture_end(mine, &graph), CUDA_SUCCESS);
    assert_int_equal(driver->graph_instantiate(&executable, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) assert_int_equal(driver->graph_launch(executable, mine), CUDA_SUCCESS);
    OK(smelt_stream_wait(stream));
    assert_true(value_of(y, 3) == 16); /* twice 2 * 4 */
    /* The next release unloads the one of the capture, too; the captured code stays. */
    assert_int_equal(fake->alive("module"), 2);
    smelt_function *later = function_of(AXPY_FILE, "axpy");
    desc.stream = beside;
    OK(smelt_function_run(later, &desc));
    smelt_function_release(later);
    assert_int_equal(fake->alive("module"), 1);
    driver->graph_executable_destroy(executable);
    driver->graph_destroy(graph);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_array_release(z);
    smelt_stream_release(stream);
    smelt_stream_release(beside);
    assert_int_equal(driver->stream_destroy(mine), CUDA_SUCCESS);
    cuda_leave(gpu, previous);
    fake->deferred(false);
    OK(smelt_device_reset("cuda")); /* which unloads the graph's code */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_capture_survives, check_fake),
    };
    return cmocka_run_group_tests_name("launches on the fake driver", tests, open_fake, NULL);
}
