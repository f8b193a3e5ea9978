/* Functions of packages on GPUs without a compiler: which code runs, and its arguments. */
#include "cuda/launches.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One argument by reference, one behind a pointer. */
static const char source[] =
    "kernel void wave(device float *y [[buffer(0)]], constant float &a [[buffer(1)]],\n"
    "                 constant float *b [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n"
    "    for (uint k = 0; k < 2; k++) y[i] += a * b[k] * y[(i + k) & 7];\n"
    "}\n";

static char folder[] = "/tmp/smelt-test-cuda-package-XXXXXX", path[64];

static void allow_compiling(bool allow) {
    if (allow) {
        unsetenv("SMELT_COMPILE");
        unsetenv("SMELT_CLANG");
    } else {
        setenv("SMELT_COMPILE", "0", 1);
        setenv("SMELT_CLANG", "/no/such/clang", 1);
    }
}

static smelt_function *packaged(const char *first, const char *second) {
    smelt_library *text, *library;
    smelt_function *function;
    allow_compiling(true);
    OK(smelt_library_create(&(smelt_library_desc){.source = source, .path = "wave.metal"}, &text));
    OK(smelt_library_build(text, &(smelt_build_desc){.path = path, .targets = {first, second}}));
    allow_compiling(false);
    OK(smelt_library_create(&(smelt_library_desc){.path = path}, &library));
    OK(smelt_library_function(library, &(smelt_function_desc){.name = "wave"}, &function));
    smelt_library_release(text);
    smelt_library_release(library);
    return function;
}

/* The arguments as a launch received them. */
struct found {
    struct seen seen;
    float a, b[2];
    bool a_inlined;
};

/* Contents that travel with the launch follow the slots, 16 bytes each; their slots are 0. */
static const void *argument(struct found *found, int slot, int before) {
    if (!found->seen.slots[slot]) return found->seen.bytes + 16 * before;
    fake->touch(found->seen.slots[slot], false);
    return (const void *)(uintptr_t)found->seen.slots[slot];
}

static CUresult look(const struct fake_launch *launch, void *context) {
    struct found *found = context;
    see(&found->seen, launch, 3);
    fake->touch(found->seen.slots[0], true);
    found->a_inlined = !found->seen.slots[1];
    memcpy(&found->a, argument(found, 1, 0), sizeof found->a);
    memcpy(found->b, argument(found, 2, found->a_inlined), sizeof found->b);
    return CUDA_SUCCESS;
}

static bool code_has(const struct found *found, const char *words) {
    return strstr(found->seen.launch.image, words) != NULL;
}

static const float a = 2.5f, b[2] = {3, 4};

/* Launches, waits, and checks that the arguments arrived. */
static void launch(smelt_function *function, smelt_dispatch_desc desc, struct found *found) {
    smelt_array *y = floats(desc.device, 8, 0, 1);
    desc.buffers[0].array = y;
    if (!desc.buffers[1].array) desc.buffers[1] = (smelt_buffer){.bytes = &a, .size = sizeof a};
    desc.buffers[2] = (smelt_buffer){.bytes = b, .size = sizeof b};
    memset(found, 0, sizeof *found);
    fake->launch(look, found);
    OK(smelt_function_run(function, &desc));
    OK(smelt_device_wait(desc.device));
    fake->launch(NULL, NULL);
    assert_int_equal(found->seen.launches, 1);
    assert_true(found->a == a && found->b[0] == b[0] && found->b[1] == b[1]);
    smelt_array_release(y);
}

/* cuda:0 has capability 9.0, cuda:1 8.0, cuda:2 12.0. */
static void each_gpu_runs_its_code(void **state) {
    (void)state;
    static const struct {
        const char *device, *target;
    } cases[] = {
        {"cuda:0", "\n.target sm_90a\n"}, {"cuda:1", "\n.target sm_80\n"}, {"cuda:2", "\n.target sm_80\n"}};
    smelt_function *function = packaged("sm_80", "sm_90a");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct found found;
        smelt_run_info info;
        launch(function,
               (smelt_dispatch_desc){
                   .device = cases[i].device, .grid = {1024}, .threadgroup = {256}, .info = &info},
               &found);
        assert_true(code_has(&found, cases[i].target) && code_has(&found, ".maxntid 256, 1, 1"));
        assert_true(found.a_inlined && info.cache_hit);
        assert_int_equal(found.seen.launch.device, i);
        assert_int_equal(found.seen.launch.block[0], 256);
        assert_int_equal(found.seen.launch.grid[0], 4);
        OK(smelt_device_wait(cases[i].device));
    }
    smelt_function_release(function);
}

static void launches_of_every_kind_find_code(void **state) {
    (void)state;
    smelt_function *function = packaged("sm_80", NULL);
    struct found found;
    launch(function, (smelt_dispatch_desc){.device = "cuda", .grid = {1000}, .threadgroup = {96}}, &found);
    assert_true(found.a_inlined && code_has(&found, ".maxntid 1024, 1, 1"));
    assert_int_equal(found.seen.launch.block[0], 96);
    assert_int_equal(found.seen.head.grid[0], 1000);
    assert_int_equal(found.seen.head.stop, 0);
    launch(function, (smelt_dispatch_desc){.device = "cuda", .grid = {70, 9, 3}, .threadgroup = {7, 5, 2}},
           &found);
    assert_true(found.a_inlined && code_has(&found, ".maxntid 256, 1, 1"));
    assert_int_equal(found.seen.launch.block[0], 70);
    assert_int_equal(found.seen.launch.grid[1], 2);
    launch(function, (smelt_dispatch_desc){.device = "cuda", .grid = {64, 1000}, .threadgroup = {32, 32}},
           &found);
    assert_true(!found.a_inlined && code_has(&found, ".maxntid 1024, 1, 1"));
    assert_int_equal(found.seen.launch.block[0], 1024);
    /* With a time-out, the code polls a flag, whose address it gets. */
    launch(function,
           (smelt_dispatch_desc){.device = "cuda", .grid = {512}, .threadgroup = {256}, .timeout = 100},
           &found);
    assert_true(found.seen.head.stop != 0 && code_has(&found, "ld.volatile.global.u32"));
    /* More groups than the hardware supports. */
    launch(function, (smelt_dispatch_desc){.device = "cuda", .grid = {64, 100000}, .threadgroup = {32}},
           &found);
    assert_true(code_has(&found, "%nctaid.x"));
    assert_int_equal(found.seen.launch.grid[0], 200000);
    assert_int_equal(found.seen.launch.grid[1], 1);
    /* An array although the code expects bytes. */
    smelt_array *array = floats("cuda", 1, a, 0);
    launch(function,
           (smelt_dispatch_desc){
               .device = "cuda", .grid = {512}, .threadgroup = {256}, .buffers = {[1] = {.array = array}}},
           &found);
    assert_false(found.a_inlined);
    assert_int_equal(found.seen.launch.parameter_bytes, sizeof(struct cuda_parameters) + 3 * 8);
    assert_int_equal(found.seen.slots[1], (uintptr_t)smelt_array_data(array));
    smelt_array_release(array);
    /* A small array of the host travels as bytes do. */
    array = floats("cpu", 1, a, 0);
    launch(function,
           (smelt_dispatch_desc){
               .device = "cuda", .grid = {512}, .threadgroup = {256}, .buffers = {[1] = {.array = array}}},
           &found);
    assert_true(found.a_inlined);
    smelt_array_release(array);
    /* Many threads: one of the hardware does the work of four, in blocks that are not groups. */
    launch(function, (smelt_dispatch_desc){.device = "cuda", .grid = {1 << 20}, .threadgroup = {96}}, &found);
    assert_true(found.a_inlined && code_has(&found, ".maxntid 256, 1, 1"));
    assert_int_equal(found.seen.launch.block[0], 256);
    assert_int_equal(found.seen.launch.grid[0], (1 << 20) / 4 / 256);
    assert_int_equal(found.seen.head.groups[0], ((1 << 20) + 95) / 96);
    smelt_function_release(function);
}

static void missing_code_is_named(void **state) {
    (void)state;
    static const struct {
        const char *first, *second, *message;
    } cases[] = {{"cpu", NULL,
                  "kernel 'wave': the package has no code that runs on a GPU of sm_80; it has code for cpu: "
                  "SMELT_COMPILE is 0: nothing is compiled"},
                 {"sm_90a", "sm_86",
                  "kernel 'wave': the package has no code that runs on a GPU of sm_80; it has code for "
                  "sm_90a, sm_86: SMELT_COMPILE is 0: nothing is compiled"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        smelt_function *function = packaged(cases[i].first, cases[i].second);
        smelt_array *y = floats("cuda:1", 8, 0, 1);
        smelt_dispatch_desc desc = {
            .buffers = {{.array = y}, {.bytes = &a, .size = sizeof a}, {.bytes = b, .size = sizeof b}},
            .grid = {8},
            .threadgroup = {8},
            .device = "cuda:1"};
        expect_failure(smelt_function_run(function, &desc), SMELT_ERROR_NO_COMPILER, cases[i].message);
        smelt_array_release(y);
        smelt_function_release(function);
        OK(smelt_device_wait("cuda:1"));
    }
}

/* What the compiler library compiled from the bitcode, and from text, is found again without it. */
static void what_was_compiled_runs_from_the_cache(void **state) {
    (void)state;
    for (int text = 0; text < 2; text++) {
        for (int again = 0; again < 2; again++) {
            smelt_function *function = packaged("cpu", NULL);
            struct found found;
            smelt_run_info info;
            if (text) {
                smelt_function_release(function);
                function = function_of(source, "wave");
            }
            allow_compiling(!again);
            launch(
                function,
                (smelt_dispatch_desc){.device = "cuda", .grid = {1600}, .threadgroup = {160}, .info = &info},
                &found);
            assert_true(code_has(&found, "\n.target sm_90a\n") && code_has(&found, ".maxntid 160, 1, 1"));
            assert_int_equal(info.cache_hit, again);
            smelt_function_release(function);
        }
    }
}

static int set_up(void **state) {
    static char cache[64];
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/p.smeltlib", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("SMELT_CACHE_DIR", cache, 1);
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("FAKE_CUDA_CAPABILITY", "90,80,120", 1);
    return open_fake(state);
}

static int clear_up(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_gpu_runs_its_code, check_fake),
        cmocka_unit_test_teardown(launches_of_every_kind_find_code, check_fake),
        cmocka_unit_test_teardown(missing_code_is_named, check_fake),
        cmocka_unit_test_teardown(what_was_compiled_runs_from_the_cache, check_fake),
    };
    return cmocka_run_group_tests(tests, set_up, clear_up);
}
