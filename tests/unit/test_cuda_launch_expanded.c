/* Copies of matrices with scales that launches make before a kernel multiplies them, on the fake driver:
 * which launches make them, what the kernel is given, and that their memory is returned. */
#include "cuda/launches.h"
#include "cuda/lender.h"

#include "array/array.h"
#include "device/cuda/context.h"
#include "device/cuda/expand_code.h"
#include "device/stream.h"
#include "smelt/tensor.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 8 /* data and layouts of three tensors, two of them with scales */

#define SOURCE                                                                                            \
    "#include <metal_stdlib>\n"                                                                           \
    "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"                                \
    "using namespace metal; using namespace mpp::tensor_ops;\n"                                           \
    "using scales = tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>;\n"       \
    "using codes = tensor<device metal_fp8_e4m3_format, dextents<int, 2>, tensor_handle, scales>;\n"      \
    "template <bool tr> kernel void product(codes A [[buffer(0)]], codes B [[buffer(1)]],\n"              \
    "    tensor<device float, dextents<int, 2>> C [[buffer(2)]],\n"                                       \
    "    uint2 group [[threadgroup_position_in_grid]]) {\n"                                               \
    "  matmul2d<matmul2d_descriptor(128, 128, dynamic_extent, false, tr), execution_simdgroups<4>> op;\n" \
    "  auto rows = A.slice(0, group.y * 128);\n"                                                          \
    "  auto columns = tr ? B.slice(0, group.x * 128) : B.slice(group.x * 128, 0);\n"                      \
    "  auto tile = C.slice(group.x * 128, group.y * 128);\n"                                              \
    "  op.run(rows, columns, tile);\n"                                                                    \
    "}\n"                                                                                                 \
    "template [[host_name(\"nt\")]] kernel void product<true>(codes, codes,\n"                            \
    "    tensor<device float, dextents<int, 2>>, uint2);\n"

struct problem {
    smelt_function *function;
    smelt_tensor *tensors[3];
    smelt_array *out;
    int64_t side;
};

static smelt_tensor *codes(int64_t side) {
    smelt_tensor *tensor;
    smelt_tensor_desc desc = {.element = SMELT_FP8_E4M3,
                              .ndim = 2,
                              .dimensions = {side, side},
                              .scales = {.element = SMELT_UE8M0, .block = {32, 1}},
                              .device = "cuda"};
    OK(smelt_tensor_create(&desc, &tensor));
    return tensor;
}

static struct problem open_problem(int64_t side) {
    struct problem p = {.function = function_of(SOURCE, "nt"), .side = side};
    p.tensors[0] = codes(side), p.tensors[1] = codes(side);
    p.out = floats("cuda", side * side, 0, 0);
    smelt_array *matrix;
    OK(smelt_array_view(p.out, (smelt_shape){2, {side, side}}, NULL, 0, &matrix));
    OK(smelt_tensor_from_array(matrix, 0, &p.tensors[2]));
    smelt_array_release(matrix);
    return p;
}

static void close_problem(struct problem *p) {
    for (int i = 0; i < 3; i++) smelt_tensor_release(p->tensors[i]);
    smelt_array_release(p->out);
    smelt_function_release(p->function);
}

static smelt_status launch_on(struct problem *p, smelt_stream *stream) {
    int64_t groups = (p->side + 127) / 128;
    return smelt_function_run(p->function, &(smelt_dispatch_desc){.buffers = {{.tensor = p->tensors[0]},
                                                                              {.tensor = p->tensors[1]},
                                                                              {.tensor = p->tensors[2]}},
                                                                  .groups = {groups, groups, 1},
                                                                  .threadgroup = {128, 1, 1},
                                                                  .device = "cuda",
                                                                  .stream = stream});
}

/* What was launched. */
struct log {
    int conversions, products;
    struct expand_parameters last[2];
    uint64_t copies[2]; /* of the last product */
    bool none;          /* it had no copies */
};

static CUresult note(const struct fake_launch *launch, void *context) {
    struct log *log = context;
    if (launch->parameter_bytes == sizeof(struct expand_parameters)) {
        struct expand_parameters *p = &log->last[log->conversions++ % 2];
        memcpy(p, launch->parameter, sizeof *p);
        fake->touch(p->codes, false);
        fake->touch(p->scales, false);
        fake->touch(p->copy, true);
        return CUDA_SUCCESS;
    }
    const char *copies = (const char *)launch->parameter + sizeof(struct cuda_parameters) + SLOTS * 8;
    memcpy(log->copies, copies, sizeof log->copies);
    log->none = !log->copies[0] && !log->copies[1];
    for (int i = 0; i < 2; i++)
        if (log->copies[i]) fake->touch(log->copies[i], false);
    log->products++;
    return CUDA_SUCCESS;
}

static struct log run(struct problem *p, const char *setting) {
    struct log log = {0};
    setenv("SMELT_GPU_EXPAND", setting, 1);
    fake->launch(note, &log);
    OK(launch_on(p, NULL));
    OK(smelt_device_wait("cuda"));
    fake->launch(NULL, NULL);
    assert_int_equal(log.products, 1);
    return log;
}

static uint64_t address_of(smelt_tensor *tensor, smelt_tensor_plane plane) {
    smelt_array *array;
    OK(smelt_tensor_array(tensor, plane, &array));
    uint64_t address = (uintptr_t)smelt_array_data(array);
    smelt_array_release(array);
    return address;
}

static void a_launch_copies_both_operands(void **state) {
    (void)state;
    struct problem p = open_problem(256);
    struct log log = run(&p, "always");
    assert_int_equal(log.conversions, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(log.copies[i], log.last[i].copy);
        assert_int_equal(log.last[i].codes, address_of(p.tensors[i], SMELT_PLANE_DATA));
        assert_int_equal(log.last[i].scales, address_of(p.tensors[i], SMELT_PLANE_SCALES));
        assert_int_equal(log.last[i].rows, 256);
        assert_int_equal(log.last[i].chunks, 256 / EXPAND_CHUNK);
        assert_int_equal(log.last[i].copy_bytes, 512);
        assert_int_equal(log.last[i].line_bytes, 256);
        assert_int_equal(log.last[i].scale_step, 256 / 32);
        assert_int_equal(log.last[i].across, 2);
        assert_int_equal(log.last[i].down, 0);
    }
    close_problem(&p);
}

static void small_products_have_no_copies(void **state) {
    (void)state;
    struct problem small = open_problem(2048), large = open_problem(3072);
    assert_int_equal(run(&small, "").conversions, 0);
    assert_int_equal(run(&large, "").conversions, 2);
    struct log log = run(&large, "never");
    assert_true(log.none && !log.conversions);
    close_problem(&small);
    close_problem(&large);
}

static void operands_that_share_the_results_memory_have_no_copies(void **state) {
    (void)state;
    struct problem p = open_problem(128);
    smelt_tensor_desc desc;
    smelt_tensor_release(p.tensors[1]);
    p.tensors[1] = codes(128);
    assert_int_equal(run(&p, "always").conversions, 2);
    OK(smelt_tensor_describe(p.tensors[1], &desc));
    desc.memory = p.out;
    desc.scales.memory = NULL;
    smelt_tensor *over;
    OK(smelt_tensor_create(&desc, &over));
    smelt_tensor_release(p.tensors[1]);
    p.tensors[1] = over;
    assert_true(run(&p, "always").none);
    close_problem(&p);
}

static void without_memory_there_are_none(void **state) {
    (void)state;
    struct problem p = open_problem(256);
    run(&p, "always");
    fake->fail_call("cuMemAllocAsync", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_true(run(&p, "always").none);
    assert_int_equal(run(&p, "always").conversions, 2);
    close_problem(&p);
}

static void recorded_launches_share_a_block(void **state) {
    (void)state;
    struct problem p = open_problem(256), wide = open_problem(512);
    struct log log = {0};
    smelt_stream *stream;
    smelt_recording *recording;
    setenv("SMELT_GPU_EXPAND", "always", 1);
    OK(launch_on(&p, NULL));
    OK(launch_on(&wide, NULL));
    OK(smelt_device_wait("cuda"));
    int blocks = fake->alive("block");
    OK(smelt_stream_create("cuda", &stream));
    OK(smelt_stream_record_begin(stream));
    for (int i = 0; i < 3; i++) OK(launch_on(&p, stream));
    for (int i = 0; i < 3; i++) OK(launch_on(&wide, stream));
    OK(smelt_stream_record_end(stream, &recording));
    assert_int_equal(fake->alive("block"), blocks + 2);
    fake->launch(note, &log);
    for (int i = 0; i < 2; i++) OK(smelt_recording_replay(recording, NULL));
    OK(smelt_device_wait("cuda"));
    assert_int_equal(log.conversions, 24);
    assert_int_equal(log.products, 12);
    fake->launch(NULL, NULL);
    smelt_recording_release(recording);
    smelt_stream_release(stream);
    close_problem(&p);
    close_problem(&wide);
}

/* The GPU may run them at the same time. */
static void branches_of_recordings_have_no_copies(void **state) {
    (void)state;
    struct problem p = open_problem(256);
    struct log log = {0};
    struct recording_ends begin;
    const struct device *device;
    smelt_stream *stream;
    smelt_recording *recording;
    setenv("SMELT_GPU_EXPAND", "always", 1);
    OK(device_find("cuda", &device));
    OK(launch_on(&p, NULL));
    OK(smelt_device_wait("cuda"));
    OK(smelt_stream_create("cuda", &stream));
    OK(smelt_stream_record_begin(stream));
    OK(device->recordings->ends(stream, &begin));
    for (int i = 0; i < 2; i++) {
        OK(device->recordings->wait_for(stream, &begin));
        OK(launch_on(&p, stream));
    }
    OK(smelt_stream_record_end(stream, &recording));
    fake->launch(note, &log);
    OK(smelt_recording_replay(recording, NULL));
    OK(smelt_device_wait("cuda"));
    assert_int_equal(log.conversions, 0);
    assert_int_equal(log.products, 2);
    fake->launch(NULL, NULL);
    free(begin.nodes);
    smelt_recording_release(recording);
    smelt_stream_release(stream);
    close_problem(&p);
}

static void a_captured_stream_has_copies_in_memory_of_its_owner(void **state) {
    (void)state;
    struct problem p = open_problem(256);
    struct log log = {0};
    struct lender lender = {.size = 1 << 20};
    const smelt_stream_memory memory = {lender_take, lender_give, &lender};
    CUcontext previous;
    CUstream mine;
    CUgraph graphs[2];
    CUgraphExec executable;
    smelt_stream *stream;
    const struct device *device;
    OK(device_find("cuda", &device));
    struct cuda_gpu *gpu = cuda_gpu_of(device);
    const struct cuda_driver *driver = gpu->driver;
    run(&p, "always");
    OK(cuda_enter(gpu, &previous));
    assert_int_equal(driver->stream_create(&mine, CUDA_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(driver->allocate(&lender.block, lender.size, mine), CUDA_SUCCESS);
    OK(smelt_stream_from_native("cuda", mine, &stream));
    OK(launch_on(&p, stream));
    OK(smelt_stream_wait(stream));
    fake->launch(note, &log);
    for (int lends = 0; lends < 2; lends++) {
        if (lends) OK(smelt_stream_set_memory(stream, &memory));
        assert_int_equal(driver->capture_begin(mine, CUDA_CAPTURE_RELAXED), CUDA_SUCCESS);
        OK(launch_on(&p, stream));
        assert_int_equal(driver->capture_end(mine, &graphs[lends]), CUDA_SUCCESS);
        assert_int_equal(lender.taken, lends);
        assert_int_equal(lender.given, lends);
        assert_int_equal(driver->graph_instantiate(&executable, graphs[lends], 0), CUDA_SUCCESS);
        assert_int_equal(driver->graph_launch(executable, mine), CUDA_SUCCESS);
        assert_int_equal(driver->stream_wait(mine), CUDA_SUCCESS);
        assert_int_equal(log.products, 1 + lends);
        assert_int_equal(log.conversions, 2 * lends);
        assert_int_equal(log.none, !lends);
        driver->graph_executable_destroy(executable);
        driver->graph_destroy(graphs[lends]);
    }
    fake->launch(NULL, NULL);
    OK(smelt_stream_set_memory(stream, NULL));
    smelt_stream_release(stream);
    assert_int_equal(driver->release(lender.block, mine), CUDA_SUCCESS);
    assert_int_equal(driver->stream_destroy(mine), CUDA_SUCCESS);
    cuda_leave(gpu, previous);
    close_problem(&p);
}

/* The code that makes copies stays loaded, and so do kernels of recordings and captures. */
static int check(void **state) {
    (void)state;
    OK(smelt_device_wait("cuda"));
    if (fake->violation()) FAIL_TEST("%s", fake->violation());
    assert_int_equal(fake->alive("block"), 0);
    return fake->alive("module") <= 5 ? 0 : 1;
}

#define TEST(name) cmocka_unit_test_teardown(name, check)

static int open_large(void **state) {
    setenv("FAKE_CUDA_MEMORY", "1073741824", 1);
    return open_fake(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_launch_copies_both_operands),
        TEST(small_products_have_no_copies),
        TEST(operands_that_share_the_results_memory_have_no_copies),
        TEST(without_memory_there_are_none),
        TEST(recorded_launches_share_a_block),
        TEST(branches_of_recordings_have_no_copies),
        TEST(a_captured_stream_has_copies_in_memory_of_its_owner),
    };
    return cmocka_run_group_tests(tests, open_large, NULL);
}
