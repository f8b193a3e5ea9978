/* Code of packages for GPUs, as a device requests it for a launch, on machines without a GPU. */
#include "outcome.h"

#include "device/gpu_shape.h"
#include "kernel/library.h"
#include "smelt/smelt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "constant bool negative [[function_constant(1)]];\n"
    "kernel void scale(device float *x [[buffer(0)]], constant float &by [[buffer(1)]],\n"
    "                  constant uint *some [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n"
    "    x[i] = negative ? -x[i] * by : x[i] * by + some[i % 3];\n"
    "}\n";

static char folder[] = "/tmp/smelt-test-gpu-package-XXXXXX", path[64];

/* A package of the kernel for these targets, loaded without a compiler. */
static smelt_function *packaged(const char *const *targets) {
    smelt_library *library = NULL, *loaded = NULL;
    smelt_function *function = NULL;
    smelt_build_desc desc = {
        .path = path, .constants = {{.index = 1, .dtype = SMELT_BOOL}}, .threadgroups = {{64, 1, 1}}};
    for (int i = 0; targets[i]; i++) desc.targets[i] = targets[i];
    unsetenv("SMELT_COMPILE");
    succeed(smelt_library_create(&(smelt_library_desc){.source = source, .path = "scale.metal"}, &library));
    succeed(smelt_library_build(library, &desc));
    succeed(smelt_library_create(&(smelt_library_desc){.path = path}, &loaded));
    succeed(smelt_library_function(loaded, &(smelt_function_desc){.name = "scale"}, &function));
    smelt_library_release(library);
    smelt_library_release(loaded);
    setenv("SMELT_COMPILE", "0", 1);
    return function;
}

static struct code_shape shape_of(uint32_t grid, uint32_t group, double timeout) {
    struct launch launch = {.grid = {grid, 1, 1}, .group_size = {group, 1, 1}, .timeout = timeout};
    struct code_shape shape;
    launch_count_groups(&launch);
    gpu_shape(&launch, false, &shape);
    return shape;
}

/* The code that the device's executable would get. */
static smelt_status ask(const smelt_function *function, const char *target, struct code_shape shape,
                        struct image *image, bool *ready, char **note) {
    struct code_options options = {
        .name = "scale", .constants = function->constants, .shape = shape, .target = target};
    *note = NULL;
    return package_code(&function->library->package, function->packaged, &options,
                        function->constants_changed, image, ready, note);
}

/* The text in the image contains all these words; NULL ends them. */
static void expect_words(const struct image *image, const char *const *words) {
    assert_int_equal(image->engine, ENGINE_PTX);
    for (; *words; words++)
        if (!strstr(image->object, *words)) FAIL_TEST("'%s' is missing in\n%s", *words, image->object);
}

static void each_device_gets_the_code_it_runs(void **state) {
    (void)state;
    static const struct {
        const char *device, *target;
    } cases[] = {{"sm_80", "\n.target sm_80\n"},
                 {"sm_86", "\n.target sm_86\n"},
                 {"sm_89", "\n.target sm_86\n"},
                 {"sm_90", "\n.target sm_86\n"},
                 {"sm_90a", "\n.target sm_90a\n"}};
    smelt_function *function = packaged((const char *[]){"sm_90a", "sm_80", "cpu", "sm_86", NULL});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image image;
        bool ready = false;
        char *note;
        struct code_shape shape = shape_of(640, 64, 0);
        shape.inlined[1] = 1;
        succeed(ask(function, cases[i].device, shape, &image, &ready, &note));
        assert_true(ready);
        expect_words(&image, (const char *[]){cases[i].target, ".maxntid 64, 1, 1", NULL});
        image_free(&image);
        free(note);
    }
    smelt_function_release(function);
}

static void code_and_note(smelt_function *function, struct code_shape shape, const char *const *words,
                          int inlined, const char *wanted) {
    struct image image;
    bool ready = false;
    char *note;
    int found = 0;
    succeed(ask(function, "sm_90a", shape, &image, &ready, &note));
    assert_true(ready);
    expect_words(&image, words);
    for (int i = 0; i < image.binding_count; i++) found += image.bindings[i].inlined != 0;
    assert_int_equal(found, inlined);
    assert_int_equal(note != NULL, wanted != NULL);
    if (note) assert_string_equal(note, wanted);
    image_free(&image);
    free(note);
}

static void launches_get_the_best_code_there_is(void **state) {
    (void)state;
    smelt_function *function = packaged((const char *[]){"sm_90a", NULL});
    struct code_shape shape = shape_of(640, 64, 0);
    /* One argument by reference given as bytes; one that is not. */
    shape.inlined[1] = 1;
    code_and_note(function, shape, (const char *[]){".maxntid 64, 1, 1", NULL}, 1, NULL);
    shape = shape_of(650, 64, 0);
    shape.inlined[1] = 1;
    code_and_note(function, shape, (const char *[]){".maxntid 64, 1, 1", "exit", NULL}, 1, NULL);
    shape.inlined[2] = 2;
    code_and_note(
        function, shape, (const char *[]){".maxntid 64, 1, 1", NULL}, 1,
        "runs the package's code for sm_90a, generated for 1 argument as bytes, threadgroups of 64 x 1 x "
        "1; code for 2 arguments as bytes, threadgroups of 64 x 1 x 1 would be faster, and needs the "
        "compiler library, or --threadgroup when the package is built");
    code_and_note(
        function, shape_of(640, 64, 0), (const char *[]){".maxntid 256, 1, 1", NULL}, 0,
        "runs the package's code for sm_90a, generated for buffers of any size, any threadgroups of up to "
        "256 threads; code for threadgroups of 64 x 1 x 1 would be faster, and needs the compiler "
        "library, or --threadgroup when the package is built");
    shape = shape_of(640, 96, 3);
    shape.inlined[1] = 1;
    code_and_note(function, shape, (const char *[]){".maxntid 1024, 1, 1", NULL}, 1,
                  "runs the package's code for sm_90a, generated for time-outs, 1 argument as bytes, any "
                  "threadgroups in a line of up to 1024 threads; code for time-outs, 1 argument as bytes, "
                  "threadgroups of 96 x 1 x 1 would be faster, and needs the compiler library, or "
                  "--threadgroup when the package is built");
    smelt_function_release(function);
    function = packaged((const char *[]){"sm_86", NULL});
    shape = shape_of(640, 64, 0);
    shape.inlined[1] = 1;
    code_and_note(function, shape, (const char *[]){".target sm_86", ".maxntid 64, 1, 1", NULL}, 1,
                  "runs the package's code for sm_86, which leaves newer features of this GPU unused");
    smelt_function_release(function);
}

static void expect_refused(const smelt_function *function, const char *target, const char *message) {
    struct image image;
    bool ready;
    char *note;
    assert_int_equal(ask(function, target, shape_of(64, 64, 0), &image, &ready, &note),
                     SMELT_ERROR_NO_COMPILER);
    assert_string_equal(smelt_error(), message);
}

static void code_that_is_missing_is_named(void **state) {
    (void)state;
    smelt_function *function = packaged((const char *[]){"cpu", "x86-64", NULL});
    expect_refused(
        function, "sm_90a",
        "kernel 'scale': the package has no code that runs on a GPU of sm_90a; it has code for cpu, "
        "x86-64: SMELT_COMPILE is 0: nothing is compiled");
    smelt_function_release(function);
    function = packaged((const char *[]){"sm_90a", "sm_89", NULL});
    expect_refused(function, "sm_80",
                   "kernel 'scale': the package has no code that runs on a GPU of sm_80; it has code for "
                   "sm_90a, sm_89: SMELT_COMPILE is 0: nothing is compiled");
    function->constants_changed = true;
    expect_refused(function, "sm_90a",
                   "kernel 'scale': the package's code was compiled with other values of function constants: "
                   "SMELT_COMPILE is 0: nothing is compiled");
    smelt_function_release(function);
}

static void what_is_missing_is_made_of_the_bitcode(void **state) {
    (void)state;
    smelt_function *newer = packaged((const char *[]){"sm_90", NULL});
    smelt_function *function = packaged((const char *[]){"cpu", "sm_80", NULL});
    struct image image;
    bool ready = false;
    char *note;
    unsetenv("SMELT_COMPILE");
    setenv("SMELT_CLANG", "/no/such/clang", 1);
    /* A threadgroup size that the package lacks; the code is cached for the next time. */
    for (int again = 0; again < 2; again++) {
        if (again) setenv("SMELT_COMPILE", "0", 1);
        succeed(ask(function, "sm_80", shape_of(8 * 160, 160, 0), &image, &ready, &note));
        assert_int_equal(ready, again);
        assert_null(note);
        expect_words(&image, (const char *[]){".target sm_80", ".maxntid 160, 1, 1", NULL});
        image_free(&image);
    }
    /* And a target that is older than its code. */
    unsetenv("SMELT_COMPILE");
    succeed(ask(newer, "sm_87", shape_of(64, 64, 0), &image, &ready, &note));
    assert_false(ready);
    expect_words(&image, (const char *[]){".target sm_87", NULL});
    image_free(&image);
    unsetenv("SMELT_CLANG");
    smelt_function_release(newer);
    smelt_function_release(function);
}

/* The test has its own cache: its messages about compiling must not depend on earlier runs. */
static void packages_know_which_kernels_wait(void **state) {
    (void)state;
    static const char waiting[] =
        "#include <metal_stdlib>\n"
        "using namespace metal;\n"
        "constant int shift [[function_constant(0)]];\n"
        "kernel void plain(device int *x, uint i [[thread_position_in_grid]]) { x[i] = 1; }\n"
        "kernel void waits(device int *x, uint i [[thread_index_in_threadgroup]]) {\n"
        "    threadgroup int t[64]; t[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "    x[i] = t[63 - i];\n}\n"
        /* No code is generated for these: the constant has no value. */
        "kernel void plain_later(device int *x, uint i [[thread_position_in_grid]]) { x[i] = shift; }\n"
        "kernel void waits_later(device int *x, uint i [[thread_index_in_threadgroup]]) {\n"
        "    threadgroup int t[64]; t[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "    x[i] = t[63 - i] << shift;\n}\n";
    smelt_library *library = NULL, *loaded = NULL;
    unsetenv("SMELT_COMPILE");
    succeed(smelt_library_create(&(smelt_library_desc){.source = waiting}, &library));
    succeed(smelt_library_build(library, &(smelt_build_desc){.path = path, .targets = {"sm_90a"}}));
    succeed(smelt_library_create(&(smelt_library_desc){.path = path}, &loaded));
    assert_int_equal(loaded->package.entry_count, 4);
    for (int i = 0; i < 4; i++) {
        const struct package_entry *entry = &loaded->package.entries[i];
        assert_int_equal(entry->has_barrier, i % 2);
        assert_int_equal(entry->code_count == 0, i >= 2);
    }
    smelt_library_release(library);
    smelt_library_release(loaded);
}

/* Products by all simdgroups of a threadgroup, on GPUs where they compile for no other threadgroups. */
static void kernels_for_one_size_have_code_for_that(void **state) {
    (void)state;
    static const char product[] =
        "#include <metal_stdlib>\n"
        "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
        "using namespace metal;\n"
        "using namespace mpp::tensor_ops;\n"
        "#define PRODUCT(name, required) required kernel void name(device half *a [[buffer(0)]],\\\n"
        "    device half *b [[buffer(1)]], device float *c [[buffer(2)]]) {\\\n"
        "  auto left = tensor(a, dextents<int, 2>(64, 64)), right = tensor(b, dextents<int, 2>(64, 64));\\\n"
        "  auto out = tensor(c, dextents<int, 2>(64, 64));\\\n"
        "  matmul2d<matmul2d_descriptor(64, 64, 64), execution_simdgroups<4>>{}.run(left, right, out);\\\n"
        "}\n"
        "PRODUCT(plain, )\n"
        "PRODUCT(square, [[required_threads_per_threadgroup(16, 8, 1)]])\n";
    static const char *const names[] = {"plain", "square"}, *const found[] = {"128, 1, 1", "16, 8, 1"};
    static const uint32_t sizes[2][3] = {{128, 1, 1}, {16, 8, 1}};
    smelt_library *library = NULL, *loaded = NULL;
    unsetenv("SMELT_COMPILE");
    succeed(smelt_library_create(&(smelt_library_desc){.source = product, .metal_version = 400}, &library));
    succeed(smelt_library_build(library, &(smelt_build_desc){.path = path,
                                                             .targets = {"sm_90a", "sm_80", "cpu"},
                                                             .threadgroups = {{256, 1, 1}}}));
    succeed(smelt_library_create(&(smelt_library_desc){.path = path}, &loaded));
    setenv("SMELT_COMPILE", "0", 1);
    for (int i = 0; i < 2; i++) {
        smelt_function *function = NULL;
        struct image image;
        bool ready = false;
        char *note, threads[64];
        struct code_shape shape = shape_of(1280, 128, 0);
        memcpy(shape.size, sizes[i], sizeof shape.size);
        snprintf(threads, sizeof threads, i ? ".maxntid 128" : ".maxntid %s", found[i]);
        succeed(smelt_library_function(loaded, &(smelt_function_desc){.name = names[i]}, &function));
        for (int timeout = 0; timeout < 2; timeout++) {
            shape.polled = (uint32_t)timeout;
            succeed(ask(function, "sm_90a", shape, &image, &ready, &note));
            assert_true(ready);
            assert_null(note);
            expect_words(&image, (const char *[]){".target sm_90a", threads, "wgmma", NULL});
            image_free(&image);
        }
        char message[300];
        snprintf(
            message, sizeof message,
            "kernel 'scale': the package has no code for sm_90a that serves this launch; it has code for "
            "whole threadgroups of %u x %u x 1: SMELT_COMPILE is 0: nothing is compiled",
            sizes[i][0], sizes[i][1]);
        expect_refused(function, "sm_90a", message);
        succeed(ask(function, "sm_80", shape_of(64, 64, 0), &image, &ready, &note));
        image_free(&image);
        free(note);
        smelt_function_release(function);
    }
    smelt_library_release(library);
    smelt_library_release(loaded);
}

static int make_folder(void **state) {
    (void)state;
    static char cache[64];
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/p.smeltlib", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    return setenv("SMELT_CACHE_DIR", cache, 1);
}

static int remove_folder(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_device_gets_the_code_it_runs),
        cmocka_unit_test(launches_get_the_best_code_there_is),
        cmocka_unit_test(code_that_is_missing_is_named),
        cmocka_unit_test(what_is_missing_is_made_of_the_bitcode),
        cmocka_unit_test(packages_know_which_kernels_wait),
        cmocka_unit_test(kernels_for_one_size_have_code_for_that),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
