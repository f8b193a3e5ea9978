/* Codes of entries on a GPU, from images written by hand: machine code, the shapes that launches request, and
 * images that are invalid. */
#include "cuda/launches.h"

#include "array/array.h"
#include "device/cuda/context.h"
#include "device/executable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- An entry that is not compiled. */

struct entry {
    const char *object; /* ended by zero */
    struct image image; /* without the object; its bindings are borrowed */
    struct code_shape asked;
    char target[16];
    int compiles;
    const char *name; /* NULL: "entry" */
};

static smelt_status give_image(void *context, const char *target, const struct code_shape *shape,
                               const struct known_values *values, enum compile_effort effort,
                               struct image *image, bool *cache_hit) {
    struct entry *entry = context;
    (void)values;
    (void)effort;
    size_t bindings = (size_t)entry->image.binding_count * sizeof(struct binding);
    entry->asked = *shape;
    entry->compiles++;
    snprintf(entry->target, sizeof entry->target, "%s", target);
    *image = entry->image;
    image->bindings = malloc(bindings + 1);
    if (bindings) memcpy(image->bindings, entry->image.bindings, bindings);
    image->object = strdup(entry->object);
    image->object_size = strlen(entry->object) + 1;
    *cache_hit = false;
    return SMELT_OK;
}

/* Prepares a launch of the entry, and runs it if that succeeds. */
static smelt_status launch(struct entry *entry, struct launch *launch) {
    const struct device *device;
    struct preparation preparation;
    struct code_source source = {.compile = give_image, .context = entry};
    OK(device_find("cuda", &device));
    const char *name = entry->name ? entry->name : "entry";
    OK(executable_load(device, &source, name, &launch->executable));
    launch_count_groups(launch);
    smelt_status status = device->prepare(launch, &preparation);
    if (status == SMELT_OK) {
        assert_true(preparation.compiled && !preparation.cache_hit);
        OK(device->prepare(launch, &preparation));
        assert_false(preparation.compiled);
        status = device->run(launch);
    }
    executable_unload(launch->executable);
    return status;
}

/* ---- Tests. */

static CUresult keep_launch(const struct fake_launch *launch, void *context) {
    see(context, launch, 3);
    return CUDA_SUCCESS;
}

static CUresult keep_slot(const struct fake_launch *launch, void *context) {
    see(context, launch, 1);
    return CUDA_SUCCESS;
}

static void test_machine_code_is_loaded_as_it_is(void **state) {
    (void)state;
    struct seen seen = {0};
    struct binding bindings[] = {{.kind = BINDING_BUFFER, .index = 7},
                                 {.kind = BINDING_ATTRIBUTE, .index = 0},
                                 {.kind = BINDING_BUFFER, .index = 2, .inlined = 32},
                                 {.kind = BINDING_ABSENT, .index = 3},
                                 {.kind = BINDING_THREADGROUP, .index = 1}};
    struct entry entry = {.object = "\177ELF .entry __smelt_entry(.param [112])",
                          .image = {.engine = ENGINE_PTX, .bindings = bindings, .binding_count = 5}};
    smelt_array *array = floats("cuda", 4, 0, 0);
    char bytes[20] = "nineteen characters";
    struct launch_buffer buffers[8] = {
        [2] = {.start = bytes, .bytes = sizeof bytes}, [7] = {array->memory, array->data, 0, 16}};
    size_t threadgroup_memory[SMELT_MAX_BUFFERS] = {[1] = 10};
    struct launch request = {.buffers = buffers,
                             .inlined = {[2] = inlined_class(sizeof bytes)},
                             .threadgroup_memory = threadgroup_memory,
                             .grid = {100, 1, 1},
                             .group_size = {48, 1, 1}};
    fake->launch(keep_launch, &seen);
    fake->forget_calls();
    OK(launch(&entry, &request));
    assert_int_equal(entry.compiles, 1);
    assert_string_equal(entry.target, "sm_90a");
    assert_int_equal(entry.asked.engine, ENGINE_PTX);
    assert_int_equal(entry.asked.inlined[2], 2);
    assert_int_equal(entry.asked.masked, 1);
    assert_int_equal(entry.asked.most_threads, 64);
    assert_int_equal(fake->calls("cuLinkCreate_v2"), 0);
    assert_int_equal(fake->calls("cuModuleLoadDataEx"), 1);
    assert_int_equal(fake->calls("cuModuleUnload"), 1);
    /* Attributes and absent arguments have no slots. */
    assert_int_equal(seen.launches, 1);
    assert_int_equal(seen.launch.parameter_bytes, 112);
    assert_true(seen.slots[0] == (uint64_t)(uintptr_t)smelt_array_data(array));
    assert_int_equal(seen.slots[2], 0);
    assert_int_equal(seen.launch.shared_bytes, 128);
    assert_memory_equal(seen.bytes, bytes, sizeof bytes);
    smelt_array_release(array);
}

/* Whether a launch of code that waits for earlier work itself is one by the call that says so. */
static bool starts_early(bool waits) {
    struct entry entry = {.object = "\177ELF .entry __smelt_entry(.param [64])",
                          .image = {.engine = ENGINE_PTX, .early = waits}};
    struct launch request = {.grid = {32, 1, 1}, .group_size = {32, 1, 1}};
    fake->forget_calls();
    OK(launch(&entry, &request));
    int early = fake->calls("cuLaunchKernelEx");
    assert_int_equal(fake->calls("cuLaunchKernel"), 1 - early);
    return early;
}

static void test_code_may_start_early(void **state) {
    (void)state;
    assert_true(starts_early(true));
    assert_false(starts_early(false));
}

/* SMELT_CUDA_EARLY=0. */
static void test_code_does_not_start_early_if_so_set(void **state) {
    (void)state;
    const struct device *device;
    OK(device_find("cuda", &device));
    cuda_gpu_of(device)->early = false;
    assert_false(starts_early(true));
    cuda_gpu_of(device)->early = true;
}

static CUresult keep_head(const struct fake_launch *launch, void *context) {
    memcpy(context, launch->parameter, sizeof(struct cuda_parameters));
    return CUDA_SUCCESS;
}

/* Whether the launch tells the code that so few threadgroups run that the next launch may start meanwhile. */
static bool has_few(uint32_t groups) {
    struct cuda_parameters head = {.few = 7};
    struct entry entry = {.object = "\177ELF .entry __smelt_entry(.param [64])",
                          .image = {.engine = ENGINE_PTX, .early = true}};
    struct launch request = {.grid = {32 * groups, 1, 1}, .group_size = {32, 1, 1}};
    fake->launch(keep_head, &head);
    OK(launch(&entry, &request));
    assert_true(head.few <= 1);
    return head.few;
}

static void test_code_is_told_of_few_groups(void **state) {
    (void)state;
    const struct device *device;
    OK(device_find("cuda", &device));
    uint32_t most = 2 * cuda_gpu_of(device)->device.multiprocessors;
    assert_true(has_few(1));
    assert_true(has_few(most));
    assert_false(has_few(most + 1));
    cuda_gpu_of(device)->early = false;
    assert_false(has_few(1));
    cuda_gpu_of(device)->early = true;
}

static void test_images_that_cannot_be_right(void **state) {
    (void)state;
    struct binding bindings[3] = {{.kind = BINDING_BUFFER, .index = 0, .inlined = 2048},
                                  {.kind = BINDING_BUFFER, .index = 1, .inlined = 2048},
                                  {.kind = BINDING_BUFFER, .index = LAUNCH_MAX_BUFFERS}};
    const struct {
        struct image image;
        const char *message;
    } cases[] = {
        {{.engine = ENGINE_SCALAR}, "the compiled entry 'entry' is not for a GPU"},
        {{.engine = ENGINE_PTX, .bindings = bindings, .binding_count = 2},
         "the compiled entry 'entry' has more arguments than a GPU accepts"},
        {{.engine = ENGINE_PTX, .bindings = bindings + 2, .binding_count = 1},
         "the compiled entry 'entry' has an impossible argument"},
    };
    struct launch request = {.grid = {1, 1, 1}, .group_size = {1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct entry entry = {.object = ".entry __smelt_entry(.param [64])", .image = cases[i].image};
        expect_failure(launch(&entry, &request), SMELT_ERROR_FORMAT, cases[i].message);
    }
}

/* A launch with one buffer of floats that begins this many bytes into an array. */
static smelt_status launch_at(struct entry *entry, smelt_array *array, size_t bytes) {
    struct launch_buffer buffer = {
        .memory = array->memory, .start = array->data, .offset = bytes, .bytes = 16};
    struct launch request = {.buffers = &buffer, .grid = {32, 1, 1}, .group_size = {32, 1, 1}};
    return launch(entry, &request);
}

static void test_views_that_begin_anywhere_have_code_of_their_own(void **state) {
    (void)state;
    struct seen seen = {0};
    struct binding binding = {.kind = BINDING_BUFFER, .index = 0, .type = SMELT_FLOAT32};
    struct entry entry = {.object = "\177ELF .entry __smelt_entry(.param [64])",
                          .image = {.engine = ENGINE_PTX, .bindings = &binding, .binding_count = 1}};
    smelt_array *array = floats("cuda", 16, 0, 0);
    fake->launch(keep_slot, &seen);
    OK(launch_at(&entry, array, 16));
    assert_int_equal(entry.compiles, 1);
    assert_int_equal(entry.asked.aligned, 1);
    OK(launch_at(&entry, array, 4));
    assert_int_equal(entry.compiles, 3);
    assert_int_equal(entry.asked.aligned, 0);
    assert_true(seen.slots[0] == (uint64_t)(uintptr_t)smelt_array_data(array) + 4);
    assert_int_equal(launch_at(&entry, array, 6), SMELT_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(smelt_error(), "kernel 'entry': buffer 0 begins at address 0x"));
    assert_non_null(strstr(smelt_error(), "; device 'cuda:0' needs a multiple of 4, the size of the kernel's "
                                          "elements"));
    assert_int_equal(seen.launches, 2);
    smelt_array_release(array);
}

static void test_code_without_the_entry(void **state) {
    (void)state;
    struct entry entry = {.object = ".entry other(.param [64])", .image = {.engine = ENGINE_PTX}};
    struct launch request = {.grid = {1, 1, 1}, .group_size = {1, 1, 1}};
    assert_int_equal(launch(&entry, &request), SMELT_ERROR_INTERNAL);
    assert_non_null(strstr(smelt_error(), "the code of kernel 'entry' on device 'cuda:0'"));
}

static CUresult keep_name(const struct fake_launch *launch, void *context) {
    snprintf(context, 200, "%s", launch->function);
    return CUDA_SUCCESS;
}

/* On the GPU, a kernel has its own name if PTX allows it and the code does not use it. */
static void test_kernels_have_their_names(void **state) {
    static const char code[] = "\t// .globl __smelt_entry\n.global .align 4 .b8 table[8];\n.entry "
                               "__smelt_entry(.param [64])\n\tadd.s32 %r1, %r2, 4;\n\tmov.u64 %rd1, table;\n";
    static const struct {
        const char *kernel, *code, *name;
    } cases[] = {
        {"gelu_bf16", code, "gelu_bf16"},
        {"add", code, "add"},
        {"s32", code, "s32"},
        {"scale<float, 4>", code, "scale_float__4_"},
        {"4x4", code, "_4x4"},
        {"k", code, "k"},
        {"tables", code, "tables"},
        {"table", code, "__smelt_entry"},
        {"", code, "__smelt_entry"},
        {"_", code, "__"},
        {"WARP_SZ", code, "__smelt_entry"},
        {"gelu_bf16", "\177ELF .entry __smelt_entry(.param [64])", "__smelt_entry"},
        {"gelu_bf16", "wgmma. .entry __smelt_entry(.param [64])", "gelu_bf16"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[200] = "";
        struct entry entry = {
            .object = cases[i].code, .image = {.engine = ENGINE_PTX}, .name = cases[i].kernel};
        struct launch request = {.grid = {32, 1, 1}, .group_size = {32, 1, 1}};
        fake->launch(keep_name, name);
        OK(launch(&entry, &request));
        assert_string_equal(name, cases[i].name);
    }
    char longest[300], name[200] = "";
    memset(longest, 'k', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    struct entry entry = {.object = (char *)code, .image = {.engine = ENGINE_PTX}, .name = longest};
    struct launch request = {.grid = {32, 1, 1}, .group_size = {32, 1, 1}};
    fake->launch(keep_name, name);
    OK(launch(&entry, &request));
    assert_int_equal(strlen(name), 127);
}

/* Code for which ptxas calls functions, or with products of warpgroups, is assembled as a whole program. */
static void test_code_that_calls_functions_is_not_linked(void **state) {
    static const struct {
        const char *instruction;
        bool linked;
    } cases[] = {
        {"div.full.f32 %f1, %f2, %f3;", true}, {"div.u32 %r1, %r2, %r3;", true},
        {"rem.s32 %r1, %r2, %r3;", true},      {"rcp.approx.ftz.f32 %f1, %f2;", true},
        {"sqrt.approx.f32 %f1, %f2;", true},   {"div.rn.f32 %f1, %f2, %f3;", false},
        {"rcp.rn.f32 %f1, %f2;", false},       {"sqrt.rn.f32 %f1, %f2;", false},
        {"div.s64 %rd1, %rd2, %rd3;", false},  {"div.u64 %rd1, %rd2, %rd3;", false},
        {"rem.s64 %rd1, %rd2, %rd3;", false},  {"rem.u64 %rd1, %rd2, %rd3;", false},
        {"wgmma.fence.sync.aligned;", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char code[200], name[40];
        snprintf(code, sizeof code, ".entry __smelt_entry(.param [64])\n\t%s\n", cases[i].instruction);
        /* A kernel that is not in the cache yet. */
        snprintf(name, sizeof name, "linked_%zu_%d", i, (int)getpid());
        struct entry entry = {.object = code, .image = {.engine = ENGINE_PTX}, .name = name};
        struct launch request = {.grid = {32, 1, 1}, .group_size = {32, 1, 1}};
        fake->forget_calls();
        OK(launch(&entry, &request));
        if (fake->calls("cuLinkCreate_v2") != cases[i].linked)
            FAIL_TEST("%s: expected %s", cases[i].instruction,
                      cases[i].linked ? "linked code" : "a whole program");
        assert_int_equal(fake->calls("cuModuleLoadDataEx"), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_machine_code_is_loaded_as_it_is, check_fake),
        cmocka_unit_test_teardown(test_code_may_start_early, check_fake),
        cmocka_unit_test_teardown(test_code_does_not_start_early_if_so_set, check_fake),
        cmocka_unit_test_teardown(test_code_is_told_of_few_groups, check_fake),
        cmocka_unit_test_teardown(test_images_that_cannot_be_right, check_fake),
        cmocka_unit_test_teardown(test_views_that_begin_anywhere_have_code_of_their_own, check_fake),
        cmocka_unit_test_teardown(test_code_without_the_entry, check_fake),
        cmocka_unit_test_teardown(test_kernels_have_their_names, check_fake),
        cmocka_unit_test_teardown(test_code_that_calls_functions_is_not_linked, check_fake),
    };
    return cmocka_run_group_tests_name("codes on the fake driver", tests, open_fake, NULL);
}
