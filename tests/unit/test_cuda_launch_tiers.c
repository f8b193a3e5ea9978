/* Quick code on a GPU: it runs until the best is compiled, assembled and loaded in the background;
 * recordings, captures and launches that need it run the best. */
#include "cuda/launches.h"

#include "device/cuda/stream.h"
#include "device/executable.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- An entry whose codes are given, not compiled. */

static const char quick_code[] = "quick .entry __smelt_entry(.param [64])",
                  best_code[] = "best .entry __smelt_entry(.param [64])",
                  wrong_code[] = "FAKE LINK ERROR: no such instruction";

struct entry {
    const char *best, *quick; /* the codes' texts; quick NULL: quick_code */
    bool alone;
    int compiles;
    atomic_int holds;
};

static smelt_status give_image(void *context, const char *target, const struct code_shape *shape,
                               const struct known_values *values, enum compile_effort effort,
                               struct image *image, bool *cache_hit) {
    struct entry *entry = context;
    bool quick = effort != COMPILE_BEST;
    (void)target, (void)shape, (void)values;
    entry->compiles++;
    *image = (struct image){.engine = ENGINE_PTX, .quick = quick, .alone = entry->alone};
    image->bindings = calloc(1, 1);
    image->object = strdup(!quick ? entry->best : entry->quick ? entry->quick : quick_code);
    image->object_size = strlen(image->object) + 1;
    *cache_hit = false;
    return SMELT_OK;
}

static void hold(void *context) {
    atomic_fetch_add(&((struct entry *)context)->holds, 1);
}

static void let_go(void *context) {
    atomic_fetch_sub(&((struct entry *)context)->holds, 1);
}

/* Unloads it after the background's jobs, which use it. */
static void unload(struct entry *entry, struct executable *executable) {
    while (atomic_load(&entry->holds)) sched_yield();
    executable_unload(executable);
}

static struct executable *load(struct entry *entry) {
    const struct device *device;
    struct executable *executable;
    struct code_source source = {.compile = give_image, .hold = hold, .let_go = let_go, .context = entry};
    OK(device_find("cuda", &device));
    OK(executable_load(device, &source, "entry", &executable));
    return executable;
}

/* ---- Launches. */

static CUresult keep_code(const struct fake_launch *launch, void *context) {
    snprintf(context, 8, "%s", launch->image);
    return CUDA_SUCCESS;
}

/* Runs it; returns the first word of the code that ran. */
static const char *code_of(struct executable *executable, struct launch *launch) {
    static char word[8];
    fake->launch(keep_code, word);
    launch->executable = executable;
    memcpy(launch->group_size, (uint32_t[3]){32, 1, 1}, sizeof launch->group_size);
    for (int d = 0; d < 3; d++)
        if (!launch->grid[d]) launch->grid[d] = 1;
    launch_count_groups(launch);
    *word = 0;
    OK(executable->device->run(launch));
    OK(smelt_device_wait("cuda"));
    word[strcspn(word, " ")] = 0;
    return word;
}

/* ---- Tests. */

static void test_quick_code_runs_until_the_best_is_loaded(void **state) {
    (void)state;
    /* Texts whose machine code is not in the disk cache. */
    char quick[80], best[80];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(quick, sizeof quick, "%s // %ld.%09ld", quick_code, (long)now.tv_sec, now.tv_nsec);
    snprintf(best, sizeof best, "%s // %ld.%09ld", best_code, (long)now.tv_sec, now.tv_nsec);
    struct entry entry = {.best = best, .quick = quick};
    struct executable *executable = load(&entry);
    smelt_run_info info = {0};
    struct launch launch = {.info = &info};
    assert_string_equal(code_of(executable, &launch), "quick");
    assert_true(info.quick);
    OK(executable_wait(executable));
    fake->forget_calls();
    assert_string_equal(code_of(executable, &launch), "best");
    assert_false(info.quick);
    assert_int_equal(fake->calls("cuLinkCreate_v2"), 0);
    assert_int_equal(fake->calls("cuModuleLoadDataEx"), 0);
    assert_int_equal(entry.compiles, 2);
    unload(&entry, executable);
}

static void test_quick_code_serves_grids_of_other_sizes(void **state) {
    (void)state;
    struct entry entry = {.best = wrong_code, .alone = true};
    struct executable *executable = load(&entry);
    assert_string_equal(code_of(executable, &(struct launch){.grid = {32}}), "quick");
    (void)executable_wait(executable);
    assert_string_equal(code_of(executable, &(struct launch){.grid = {1 << 20, 64}}), "quick");
    (void)executable_wait(executable);
    assert_int_equal(entry.compiles, 3); /* quick code once; the best, which fails, for each size */
    unload(&entry, executable);
}

static void test_launches_go_on_with_quick_code_if_the_best_cannot_be_assembled(void **state) {
    (void)state;
    struct entry entry = {.best = wrong_code};
    struct executable *executable = load(&entry);
    struct launch launch = {0};
    assert_string_equal(code_of(executable, &launch), "quick");
    expect_failure(executable_wait(executable), SMELT_ERROR_COMPILE,
                   "kernel 'entry': the NVIDIA driver cannot assemble its PTX: "
                   "FAKE LINK ERROR: no such instruction");
    assert_string_equal(code_of(executable, &launch), "quick");
    assert_int_equal(entry.compiles, 2);
    unload(&entry, executable);
}

static void test_a_launch_that_asks_for_the_best_waits_for_it(void **state) {
    (void)state;
    struct entry entry = {.best = best_code};
    struct executable *executable = load(&entry);
    assert_string_equal(code_of(executable, &(struct launch){.best = true}), "best");
    assert_int_equal(entry.compiles, 1);
    unload(&entry, executable);
    executable = load(&entry);
    assert_string_equal(code_of(executable, &(struct launch){.timeout = 5}), "best");
    unload(&entry, executable);
}

static void test_recordings_hold_the_best(void **state) {
    (void)state;
    struct entry entry = {.best = best_code};
    struct executable *executable = load(&entry);
    smelt_stream *stream;
    smelt_recording *recording;
    char word[8] = "";
    OK(smelt_stream_create("cuda", &stream));
    struct launch launch = {
        .executable = executable, .grid = {1, 1, 1}, .group_size = {1, 1, 1}, .stream = stream};
    launch_count_groups(&launch);
    fake->launch(keep_code, word);
    OK(smelt_stream_record_begin(stream));
    OK(executable->device->run(&launch));
    OK(smelt_stream_record_end(stream, &recording));
    OK(smelt_recording_replay(recording, stream));
    OK(smelt_device_wait("cuda"));
    assert_string_equal(word, "best .e");
    assert_int_equal(entry.compiles, 1);
    smelt_recording_release(recording);
    smelt_stream_release(stream);
    unload(&entry, executable);
}

/* A program that captures its own stream, as PyTorch's CUDA graphs do. */
static void test_captures_of_the_caller_hold_the_best(void **state) {
    (void)state;
    struct entry entry = {.best = best_code};
    struct executable *executable = load(&entry);
    const struct cuda_gpu *gpu = cuda_gpu_of(executable->device);
    const struct cuda_driver *driver = gpu->driver;
    smelt_stream *stream;
    CUstream native;
    CUgraph graph;
    OK(smelt_device_wait("cuda"));
    assert_int_equal(driver->context_set(gpu->context), CUDA_SUCCESS);
    assert_int_equal(driver->stream_create(&native, CUDA_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    OK(smelt_stream_from_native("cuda", native, &stream));
    struct launch launch = {
        .executable = executable, .grid = {1, 1, 1}, .group_size = {1, 1, 1}, .stream = stream};
    launch_count_groups(&launch);
    assert_int_equal(driver->capture_begin(native, CUDA_CAPTURE_RELAXED), CUDA_SUCCESS);
    OK(executable->device->run(&launch));
    assert_int_equal(driver->capture_end(native, &graph), CUDA_SUCCESS);
    assert_int_equal(entry.compiles, 1);
    assert_false(atomic_load(&executable->first)->image.quick);
    driver->graph_destroy(graph);
    smelt_stream_release(stream);
    driver->stream_destroy(native);
    unload(&entry, executable);
}

int main(void) {
    setenv("SMELT_TIERS", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_quick_code_runs_until_the_best_is_loaded, check_fake),
        cmocka_unit_test_teardown(test_quick_code_serves_grids_of_other_sizes, check_fake),
        cmocka_unit_test_teardown(test_launches_go_on_with_quick_code_if_the_best_cannot_be_assembled,
                                  check_fake),
        cmocka_unit_test_teardown(test_a_launch_that_asks_for_the_best_waits_for_it, check_fake),
        /* Last: captured and recorded code stays loaded. */
        cmocka_unit_test(test_captures_of_the_caller_hold_the_best),
        cmocka_unit_test(test_recordings_hold_the_best),
    };
    return cmocka_run_group_tests_name("quick code on the fake driver", tests, open_fake, NULL);
}
