/* Checked launches on a GPU: the extents that their code gets, and the finding that the host makes of the
 * access that the code describes. tests/ptx/test_inside.py tests the code itself. */
#include "abi/cpu_context.h"
#include "cuda/launches.h"
#include "smelt/check.h"

#include <string.h>

enum { COUNT = 8, ROOM = 256 };

/* The access that `axpy` is to describe. */
struct planted {
    enum cuda_found found;
    uint32_t object, slot; /* of the access */
    uint64_t start, extent, address;
    struct seen seen;
    struct cuda_extent extents[3];
};

/* The constants of the code, in x: the first of the two sites is inside. */
struct constants {
    struct access_site sites[2];
    char file[16], name[8];
};

static void lay_out(const struct planted *planted, struct constants *constants) {
    *constants = (struct constants){.file = "axpy.metal", .name = "tile"};
    for (uint32_t i = 0; i < 2; i++)
        constants->sites[i] = (struct access_site){.file = constants->file,
                                                   .offset = 4 * i,
                                                   .bytes = 4,
                                                   .line = 7 + i,
                                                   .object = planted->object,
                                                   .slot = planted->slot,
                                                   .writes = i == 1,
                                                   .left = 1 - i};
    if (planted->object == ACCESS_PRIVATE) constants->sites[1].element = 4;
    if (planted->object != ACCESS_VARIABLE) return;
    constants->sites[1].name = constants->name;
    constants->sites[1].element = 2;
}

static CUresult run_planted(const struct fake_launch *launch, void *context) {
    struct planted *planted = context;
    see(&planted->seen, launch, 3);
    const char *parameter = launch->parameter;
    memcpy(planted->extents, parameter + sizeof(struct cuda_parameters) + 3 * sizeof(uint64_t),
           sizeof planted->extents);
    struct cuda_stop *stop = (struct cuda_stop *)(uintptr_t)planted->seen.head.stop;
    if (!stop || stop->flag || stop->found) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!planted->found) return CUDA_SUCCESS;
    lay_out(planted, (struct constants *)(uintptr_t)planted->seen.slots[1]);
    fake->touch(planted->seen.slots[1], true);
    fake->touch(planted->seen.head.stop, true);
    *stop = (struct cuda_stop){.flag = 1,
                               .found = planted->found,
                               .sites = planted->seen.slots[1],
                               .address = planted->address,
                               .start = planted->start,
                               .extent = planted->extent,
                               .group = 1,
                               .thread = 3};
    if (planted->object == ACCESS_VARIABLE || planted->object == ACCESS_PRIVATE) return CUDA_SUCCESS;
    if (planted->found == CUDA_FOUND_MISALIGNED) {
        stop->start = 0;
        stop->extent = 4;
        stop->address = planted->seen.slots[0] + planted->address;
        return CUDA_SUCCESS;
    }
    stop->start = planted->extents[0].start;
    stop->extent = planted->extents[0].bytes;
    stop->address = stop->start + planted->address;
    return CUDA_SUCCESS;
}

/* Runs axpy, checked, on threads in groups of 4. */
static smelt_status run(struct planted *planted, smelt_dispatch_desc *more) {
    float a = 1;
    smelt_function *axpy = function_of(AXPY_FILE, "axpy");
    smelt_array *x = floats("cuda", ROOM, 1, 1), *y = floats("cuda", COUNT, 0, 0);
    smelt_dispatch_desc desc = *more;
    desc.buffers[0].array = y;
    desc.buffers[1].array = x;
    desc.buffers[2] = (smelt_buffer){.bytes = &a, .size = sizeof a};
    desc.grid[0] = COUNT;
    desc.threadgroup[0] = 4;
    desc.device = "cuda";
    desc.check = true;
    fake->launch(run_planted, planted);
    smelt_status status = smelt_function_run(axpy, &desc);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_function_release(axpy);
    return status;
}

static void code_gets_the_extents_of_its_arguments(void **state) {
    (void)state;
    struct planted planted = {0};
    OK(run(&planted, &(smelt_dispatch_desc){0}));
    assert_int_equal(smelt_findings_count(), 0);
    const uint64_t bytes[] = {COUNT * sizeof(float), ROOM * sizeof(float), sizeof(float)};
    for (int i = 0; i < 3; i++) {
        assert_true(planted.extents[i].start == planted.seen.slots[i]);
        assert_true(planted.extents[i].bytes == bytes[i]);
    }
}

static void an_access_outside_an_argument_is_found(void **state) {
    (void)state;
    smelt_finding found;
    struct planted planted = {
        .found = CUDA_FOUND_OUTSIDE, .object = ACCESS_BUFFER, .address = 4 * (COUNT - 1)};
    expect_failure(
        run(&planted, &(smelt_dispatch_desc){0}), SMELT_ERROR_CHECK,
        "kernel 'axpy': axpy.metal:8: thread (3, 0, 0) of threadgroup (1, 0, 0) writes y[8], but 'y' "
        "has 8 elements (SM001)");
    assert_int_equal(smelt_findings_count(), 1);
    assert_true(smelt_findings_get(0, &found));
    assert_string_equal(found.code, "SM001");
    assert_string_equal(found.kind, "out-of-bounds");
    assert_string_equal(found.argument, "y");
    assert_true(found.has_index && found.index == COUNT && found.line == 8 && found.count == 1);
    assert_true(found.thread[0] == 3 && found.threadgroup[0] == 1);
    /* In front of the first element; then through a pointer that may lead to several arrays. */
    planted.address = (uint64_t)-9;
    (void)run(&planted, &(smelt_dispatch_desc){0});
    assert_true(smelt_findings_get(0, &found) && found.index == -3 && found.line == 7);
    planted.object = ACCESS_UNKNOWN;
    planted.address = 4 * (COUNT - 1);
    (void)run(&planted, &(smelt_dispatch_desc){0});
    assert_true(smelt_findings_get(0, &found));
    assert_string_equal(found.argument, "y");
    /* The device continues. */
    planted.found = CUDA_FOUND_NOTHING;
    OK(run(&planted, &(smelt_dispatch_desc){0}));
    assert_int_equal(smelt_findings_count(), 0);
}

static void a_misaligned_access_is_found(void **state) {
    (void)state;
    smelt_finding found;
    struct planted planted = {.found = CUDA_FOUND_MISALIGNED, .object = ACCESS_UNKNOWN, .address = 5};
    expect_failure(
        run(&planted, &(smelt_dispatch_desc){0}), SMELT_ERROR_CHECK,
        "kernel 'axpy': axpy.metal:7: thread (3, 0, 0) of threadgroup (1, 0, 0) reads 'y' at an address "
        "that is not a multiple of 4 bytes (SM012)");
    assert_true(smelt_findings_get(0, &found) && found.index == 1);
}

static void an_access_outside_a_variable_is_found(void **state) {
    (void)state;
    struct planted planted = {.found = CUDA_FOUND_OUTSIDE,
                              .object = ACCESS_VARIABLE,
                              .start = 1024,
                              .extent = 64,
                              .address = 1024 + 60};
    expect_failure(
        run(&planted, &(smelt_dispatch_desc){0}), SMELT_ERROR_CHECK,
        "kernel 'axpy': axpy.metal:8: thread (3, 0, 0) of threadgroup (1, 0, 0) writes 4 bytes from "
        "tile[32] on, but 'tile' has 32 elements (SM001)");
}

static void an_access_outside_a_private_array_is_found(void **state) {
    (void)state;
    struct planted planted = {
        .found = CUDA_FOUND_OUTSIDE, .object = ACCESS_PRIVATE, .start = 0, .extent = 16, .address = 12};
    expect_failure(
        run(&planted, &(smelt_dispatch_desc){0}), SMELT_ERROR_CHECK,
        "kernel 'axpy': axpy.metal:8: thread (3, 0, 0) of threadgroup (1, 0, 0) writes private array[4], but "
        "'private array' has 4 elements (SM001)");
}

static void advice_and_recordings_are_refused(void **state) {
    (void)state;
    struct planted planted = {0};
    smelt_stream *stream;
    smelt_recording *recording;
    expect_failure(run(&planted, &(smelt_dispatch_desc){.also = "advice"}), SMELT_ERROR_UNSUPPORTED,
                   "kernel 'axpy': also is 'advice'; device 'cuda:0' only tests addresses, expected none, or "
                   "device cpu");
    OK(smelt_stream_create("cuda", &stream));
    OK(smelt_stream_record_begin(stream));
    expect_failure(run(&planted, &(smelt_dispatch_desc){.stream = stream}), SMELT_ERROR_INVALID_ARGUMENT,
                   "kernel 'axpy': the stream is recording; a launch that is checked must be waited for and "
                   "cannot be recorded");
    OK(smelt_stream_record_end(stream, &recording));
    smelt_recording_release(recording);
    smelt_stream_release(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(code_gets_the_extents_of_its_arguments, check_fake),
        cmocka_unit_test_teardown(an_access_outside_an_argument_is_found, check_fake),
        cmocka_unit_test_teardown(a_misaligned_access_is_found, check_fake),
        cmocka_unit_test_teardown(an_access_outside_a_variable_is_found, check_fake),
        cmocka_unit_test_teardown(an_access_outside_a_private_array_is_found, check_fake),
        cmocka_unit_test_teardown(advice_and_recordings_are_refused, check_fake),
    };
    return cmocka_run_group_tests_name("checked launches on a GPU, on the fake driver", tests, open_fake,
                                       NULL);
}
