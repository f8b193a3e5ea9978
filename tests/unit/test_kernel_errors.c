/* Wrong use of kernels and libraries through the C API: the status, the exact message, and unchanged outputs.
 * What the command line can express is tested there (tests/errors); most of this never reaches the compiler.
 */
#include "outcome.h"

#include "smelt/smelt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE(count) ((smelt_shape){1, {count}})

static const smelt_status wrong = SMELT_ERROR_INVALID_ARGUMENT;

/* ---- Creating kernels. */

static void kernels_need_name_source_and_outputs(void **state) {
    (void)state;
    smelt_kernel *kernel = NULL;
    smelt_kernel_desc good = {.name = "k", .source = "out[0] = 1;", .outputs = {"out"}}, desc = good;
    refused(smelt_kernel_create(NULL, &kernel), wrong, "kernel: source is NULL");
    refused(smelt_kernel_create(&good, NULL), wrong, "kernel: the address for the new kernel is NULL");
    desc.source = NULL;
    refused(smelt_kernel_create(&desc, &kernel), wrong, "kernel: source is NULL");
    desc = good;
    desc.name = NULL;
    refused(smelt_kernel_create(&desc, &kernel), wrong, "kernel: name '(null)' is not an identifier");
    desc.name = "";
    refused(smelt_kernel_create(&desc, &kernel), wrong, "kernel: name '' is not an identifier");
    desc = good;
    desc.outputs[0] = NULL;
    refused(smelt_kernel_create(&desc, &kernel), wrong, "kernel 'k' has no outputs; at least one is needed");
    desc = good;
    desc.math = (smelt_math_mode)7;
    refused(smelt_kernel_create(&desc, &kernel), wrong,
            "kernel 'k': math mode 7 is not one of safe, relaxed, fast");
    desc = good;
    desc.outputs[1] = "out";
    refused(smelt_kernel_create(&desc, &kernel), wrong, "kernel 'k': the name 'out' is used twice");
    assert_null(kernel);
}

static void kernels_have_at_most_64_arguments(void **state) {
    (void)state;
    static char names[65][8];
    smelt_kernel *kernel = NULL;
    smelt_kernel_desc desc = {.name = "k", .source = "a0[0] = 1;"};
    for (int i = 0; i < 65; i++) snprintf(names[i], sizeof names[i], "a%d", i);
    desc.outputs[0] = names[0];
    for (int i = 0; i < 64; i++) desc.inputs[i] = names[i + 1];
    refused(smelt_kernel_create(&desc, &kernel), SMELT_ERROR_LIMIT,
            "kernel 'k' has 65 arguments; at most 64 are allowed");
    assert_null(kernel);
    desc.inputs[63] = NULL;
    assert_int_equal(smelt_kernel_create(&desc, &kernel), SMELT_OK);
    smelt_kernel_release(kernel);
}

/* ---- Running kernels. */

struct fixture {
    smelt_kernel *kernel;
    smelt_array *input, *wide, *outputs[2];
    smelt_run_desc desc;
};

/* A kernel k(inp) -> a, b and a valid descriptor: each test breaks one thing. */
static int set_up(void **state) {
    static struct fixture f;
    memset(&f, 0, sizeof f);
    smelt_kernel_desc desc = {.name = "k",
                              .source = "uint i = thread_position_in_grid.x; a[i] = inp[i]; b[i] = 2;",
                              .inputs = {"inp"},
                              .outputs = {"a", "b"}};
    if (smelt_kernel_create(&desc, &f.kernel) != SMELT_OK) return -1;
    if (smelt_array_arange(SMELT_FLOAT32, LINE(4), &f.input) != SMELT_OK) return -1;
    if (smelt_array_arange(SMELT_FLOAT64, LINE(4), &f.wide) != SMELT_OK) return -1;
    f.desc = (smelt_run_desc){.inputs = {f.input},
                              .grid = {4},
                              .threadgroup = {4},
                              .output_shapes = {LINE(4), LINE(4)},
                              .output_dtypes = {SMELT_FLOAT32, SMELT_FLOAT32}};
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    smelt_kernel_release(f->kernel);
    smelt_array_release(f->input);
    smelt_array_release(f->wide);
    return f->outputs[0] || f->outputs[1]; /* no failed run may have touched them */
}

static void run_refused(struct fixture *f, smelt_status wanted, const char *message) {
    refused(smelt_kernel_run(f->kernel, &f->desc, f->outputs), wanted, message);
}

static void runs_need_their_arguments(void **state) {
    struct fixture *f = *state;
    refused(smelt_kernel_run(NULL, &f->desc, f->outputs), wrong, "kernel run: kernel is NULL");
    refused(smelt_kernel_run(f->kernel, NULL, f->outputs), wrong, "kernel run: desc is NULL");
    refused(smelt_kernel_run(f->kernel, &f->desc, NULL), wrong, "kernel run: outputs is NULL");
    refused(smelt_kernel_wait(NULL, NULL), wrong, "kernel wait: kernel is NULL");
    refused(smelt_function_wait(NULL, NULL), wrong, "function wait: function is NULL");
    smelt_kernel_release(NULL);
    assert_null(smelt_kernel_retain(NULL));
}

static void inputs_must_be_there_and_no_more(void **state) {
    struct fixture *f = *state;
    f->desc.inputs[0] = NULL;
    run_refused(f, wrong, "kernel 'k': input 'inp' is missing: inputs[0] is NULL");
    f->desc.inputs[0] = f->desc.inputs[1] = f->input;
    run_refused(f, wrong, "kernel 'k': more inputs are given than its 1 names");
    f->desc.inputs[1] = NULL;
    f->desc.inputs[0] = f->wide;
    run_refused(
        f, wrong,
        "kernel 'k': input 'inp' is float64, which kernels do not support; convert it to float32 first");
}

static void output_shapes_and_dtypes_must_match_the_outputs(void **state) {
    struct fixture *f = *state;
    f->desc.output_dtypes[1] = SMELT_NO_DTYPE;
    run_refused(f, wrong, "kernel 'k' has 2 outputs, but shapes and dtypes for 1 are given");
    f->desc.output_count = 2;
    run_refused(f, wrong, "kernel 'k': output 'b': dtype 0 is not one of smelt_dtype");
    f->desc.output_count = 3;
    run_refused(f, wrong, "kernel 'k' has 2 outputs, but shapes and dtypes for 3 are given");
    f->desc.output_count = -1;
    run_refused(f, wrong, "kernel 'k' has 2 outputs, but shapes and dtypes for -1 are given");
    f->desc.output_count = 0;
    f->desc.output_dtypes[1] = (smelt_dtype)99;
    run_refused(f, wrong, "kernel 'k': output 'b': dtype 99 is not one of smelt_dtype");
    f->desc.output_dtypes[1] = SMELT_FLOAT64;
    run_refused(f, wrong, "kernel 'k': output 'b' is float64, which kernels do not support; use float32");
    f->desc.output_dtypes[1] = f->desc.output_dtypes[2] = SMELT_INT8;
    run_refused(f, wrong, "kernel 'k' has 2 outputs, but shapes and dtypes for 3 are given");
}

static void output_shapes_must_be_shapes(void **state) {
    struct fixture *f = *state;
    f->desc.output_shapes[1] = LINE(-1);
    run_refused(f, wrong, "kernel 'k': output 'b': array: size -1 of dimension 0 is negative");
    f->desc.output_shapes[1].ndim = 17;
    run_refused(f, wrong, "kernel 'k': output 'b': array: ndim is 17, expected 0 to 16");
    f->desc.output_shapes[1] = LINE(INT64_MAX);
    run_refused(
        f, SMELT_ERROR_LIMIT,
        "kernel 'k': output 'b': array: shape 9223372036854775807 of float32 needs more than 2^63 - 1 bytes");
}

static void grids_must_be_positive_and_countable(void **state) {
    struct fixture *f = *state;
    f->desc.grid[0] = 0;
    run_refused(f, wrong, "kernel 'k': grid.x is 0, expected at least 1");
    f->desc.grid[0] = -4;
    run_refused(f, wrong, "kernel 'k': grid.x is -4, expected at least 1");
    f->desc.grid[0] = 4;
    f->desc.grid[2] = -1;
    run_refused(f, wrong, "kernel 'k': grid.z is -1, expected at least 1");
    f->desc.grid[2] = (int64_t)UINT32_MAX + 1;
    run_refused(f, SMELT_ERROR_LIMIT, "kernel 'k': grid.z is 4294967296, expected at most 4294967295");
    for (int d = 0; d < 3; d++) f->desc.grid[d] = UINT32_MAX;
    run_refused(f, SMELT_ERROR_LIMIT,
                "kernel 'k': grid 4294967295 x 4294967295 x 4294967295 has more than 2^63 - 1 threads");
}

static void threadgroups_have_1_to_1024_threads(void **state) {
    struct fixture *f = *state;
    f->desc.threadgroup[0] = 0;
    run_refused(f, wrong, "kernel 'k': threadgroup.x is 0, expected at least 1");
    f->desc.threadgroup[0] = 4;
    f->desc.threadgroup[1] = -2;
    run_refused(f, wrong, "kernel 'k': threadgroup.y is -2, expected at least 1");
    /* Before the group is clamped to the grid of 4. */
    f->desc.threadgroup[0] = 1025;
    f->desc.threadgroup[1] = 0;
    run_refused(f, SMELT_ERROR_LIMIT,
                "kernel 'k': threadgroup 1025 x 1 x 1 has 1025 threads; device 'cpu' allows at most 1024");
    f->desc.threadgroup[0] = f->desc.threadgroup[1] = f->desc.threadgroup[2] = INT64_MAX;
    run_refused(f, SMELT_ERROR_LIMIT,
                "kernel 'k': threadgroup 9223372036854775807 x 9223372036854775807 x 9223372036854775807 has "
                "more than "
                "9223372036854775807 threads; device 'cpu' allows at most 1024");
}

static void templates_have_a_name_once_and_a_value_of_their_kind(void **state) {
    struct fixture *f = *state;
    smelt_template *t = f->desc.templates;
    t[0] = (smelt_template){.name = "T"};
    run_refused(f, wrong,
                "kernel 'k': template 'T' has kind 0; expected SMELT_TEMPLATE_DTYPE, _INT or _BOOL");
    t[0].kind = (smelt_template_kind)9;
    run_refused(f, wrong,
                "kernel 'k': template 'T' has kind 9; expected SMELT_TEMPLATE_DTYPE, _INT or _BOOL");
    t[0].kind = SMELT_TEMPLATE_DTYPE;
    run_refused(f, wrong,
                "kernel 'k': template 'T' has dtype none, which kernels do not support; use float32");
    t[0].dtype = SMELT_FLOAT64;
    run_refused(f, wrong,
                "kernel 'k': template 'T' has dtype float64, which kernels do not support; use float32");
    t[0] = (smelt_template){.name = "N", .kind = SMELT_TEMPLATE_INT, .integer = INT64_C(1) << 31};
    run_refused(f, wrong, "kernel 'k': template 'N' is 2147483648, which does not fit in an int");
    t[0].integer = 3;
    t[1] = (smelt_template){.name = "N", .kind = SMELT_TEMPLATE_BOOL, .boolean = true};
    run_refused(f, wrong, "kernel 'k': template 'N' is given twice");
    t[1].name = "a b";
    run_refused(f, wrong, "kernel 'k': template name 'a b' is not an identifier");
}

static void devices_profiles_and_timeouts_must_exist(void **state) {
    struct fixture *f = *state;
    f->desc.device = "gpu";
    refused(smelt_kernel_run(f->kernel, &f->desc, f->outputs), SMELT_ERROR_NO_DEVICE,
            "device 'gpu' does not exist on this machine; expected one of: cpu, cpu-scalar");
    f->desc.device = "cuda:0";
    assert_int_equal(smelt_kernel_run(f->kernel, &f->desc, f->outputs), SMELT_ERROR_NO_DEVICE);
    assert_non_null(strstr(smelt_error(),
                           "device 'cuda:0' cannot be used on this machine: the driver library "
                           "'/nowhere/libcuda.so.1' cannot be opened: "));
    f->desc.device = NULL;
    f->desc.profile = "sony";
    run_refused(f, wrong, "profile 'sony' is unknown; expected apple");
    f->desc.profile = "apple";
    f->desc.timeout = -1;
    run_refused(f, wrong, "kernel 'k': timeout is -1, expected 0 (none) to 1e+09 seconds");
    f->desc.timeout = (double)NAN;
    run_refused(f, wrong, "kernel 'k': timeout is nan, expected 0 (none) to 1e+09 seconds");
    f->desc.timeout = 1e300;
    run_refused(f, wrong, "kernel 'k': timeout is 1e+300, expected 0 (none) to 1e+09 seconds");
    assert_null(smelt_device_description("gpu"));
    assert_null(smelt_device_description(NULL));
    assert_null(smelt_device_name(-1, NULL));
    assert_null(smelt_device_name(1000, NULL));
    assert_int_equal(smelt_device_threads("gpu"), 0);
    assert_int_equal(smelt_device_threads(NULL), 0);
    assert_true(smelt_device_threads("cpu") >= 1);
}

/* A size that only fits the host is checked without memory for it: all strides are 0. */
static void input_sizes_must_fit_the_ints_of_the_kernel(void **state) {
    struct fixture *f = *state;
    float value = 1;
    int64_t still = 0;
    smelt_array *large;
    assert_int_equal(
        smelt_array_from_memory(SMELT_FLOAT32, LINE(INT64_C(1) << 32), &still, &value, NULL, NULL, &large),
        SMELT_OK);
    smelt_kernel *strided;
    smelt_kernel_desc desc = {.name = "s",
                              .source = "a[0] = inp[0] + inp_shape[0];",
                              .inputs = {"inp"},
                              .outputs = {"a"},
                              .strided = true};
    assert_int_equal(smelt_kernel_create(&desc, &strided), SMELT_OK);
    f->desc.inputs[0] = large;
    f->desc.output_dtypes[1] = SMELT_NO_DTYPE;
    refused(smelt_kernel_run(strided, &f->desc, f->outputs), SMELT_ERROR_LIMIT,
            "kernel 's': size 4294967296 of dimension 0 of input 'inp' does not fit in the int of inp_shape");
    smelt_kernel_release(strided);
    smelt_array_release(large);
}

static void show_needs_a_stage(void **state) {
    struct fixture *f = *state;
    char *text = NULL;
    refused(smelt_kernel_show(f->kernel, &f->desc, (smelt_stage)9, &text), wrong,
            "kernel 'k': stage 9 is not one of smelt_stage");
    refused(smelt_kernel_show(f->kernel, &f->desc, SMELT_STAGE_IR, NULL), wrong, "kernel show: text is NULL");
    f->desc.after = "sink";
    refused(smelt_kernel_show(f->kernel, &f->desc, SMELT_STAGE_ASM, &text), wrong,
            "kernel 'k': after requires stage ir");
    f->desc.after = NULL;
    assert_null(text);
    smelt_free(NULL);
}

/* The fixture's descriptor is valid, so the tests above fail for the stated reason. */
static void a_run_with_all_of_it_succeeds(void **state) {
    struct fixture *f = *state;
    f->desc.templates[0] = (smelt_template){.name = "N", .kind = SMELT_TEMPLATE_INT, .integer = 3};
    f->desc.output_count = 2;
    f->desc.profile = "apple";
    f->desc.timeout = 60;
    if (smelt_kernel_run(f->kernel, &f->desc, f->outputs) != SMELT_OK) print_error("%s\n", smelt_error());
    assert_non_null(f->outputs[0]);
    assert_memory_equal(smelt_array_data(f->outputs[0]), ((float[]){0, 1, 2, 3}), 16);
    for (int i = 0; i < 2; i++) {
        smelt_array_release(f->outputs[i]);
        f->outputs[i] = NULL;
    }
}

/* ---- Libraries. */

static const char metal[] =
    "kernel void one(device float *x [[buffer(0)]], constant int &n [[buffer(2)]], "
    "uint i [[thread_position_in_grid]]) { x[i] = n; }\n"
    "kernel void two(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = 2; }\n";

static void libraries_need_a_text(void **state) {
    (void)state;
    smelt_library *library = NULL;
    refused(smelt_library_create(NULL, &library), wrong,
            "library: neither path nor source nor package is given");
    refused(smelt_library_create(&(smelt_library_desc){.path = NULL}, &library), wrong,
            "library: neither path nor source nor package is given");
    refused(smelt_library_create(&(smelt_library_desc){.source = metal}, NULL), wrong,
            "library: the address for the new library is NULL");
    refused(smelt_library_create(&(smelt_library_desc){.path = "/no/such.metal"}, &library), SMELT_ERROR_IO,
            "file '/no/such.metal' cannot be opened: No such file or directory");
    assert_null(library);
    assert_int_equal(smelt_library_function_count(NULL), 0);
    assert_null(smelt_library_function_name(NULL, 0));
    smelt_library_release(NULL);
    smelt_function_release(NULL);
    assert_null(smelt_library_retain(NULL));
    assert_null(smelt_function_retain(NULL));
}

static void functions_are_found_by_name(void **state) {
    (void)state;
    smelt_library *library;
    smelt_function *function = NULL;
    assert_int_equal(smelt_library_create(&(smelt_library_desc){.source = metal}, &library), SMELT_OK);
    assert_int_equal(smelt_library_function_count(library), 2);
    assert_string_equal(smelt_library_function_name(library, 1), "two");
    assert_null(smelt_library_function_name(library, 2));
    assert_null(smelt_library_function_name(library, -1));
    refused(smelt_library_function(library, &(smelt_function_desc){.name = "three"}, &function), wrong,
            "library.metal has no kernel function 'three'; expected one of: one, two");
    refused(smelt_library_function(library, &(smelt_function_desc){.name = NULL}, &function), wrong,
            "library.metal has 2 kernel functions; name one of: one, two");
    refused(smelt_library_function(NULL, &(smelt_function_desc){.name = "one"}, &function), wrong,
            "library function: library is NULL");
    refused(smelt_library_function(library, NULL, &function), wrong, "library function: desc is NULL");
    refused(smelt_library_function(library, &(smelt_function_desc){.name = "one"}, NULL), wrong,
            "library function: the address for the function is NULL");
    assert_null(function);
    smelt_library_release(library);
}

static void dispatches_need_a_grid_and_their_buffers(void **state) {
    (void)state;
    smelt_library *library;
    smelt_function *function;
    smelt_array *array, *turned;
    assert_int_equal(smelt_library_create(&(smelt_library_desc){.source = metal}, &library), SMELT_OK);
    assert_int_equal(smelt_library_function(library, &(smelt_function_desc){.name = "one"}, &function),
                     SMELT_OK);
    smelt_library_release(library);
    assert_int_equal(smelt_array_arange(SMELT_FLOAT32, LINE(4), &array), SMELT_OK);
    assert_int_equal(smelt_array_view(array, LINE(4), (int64_t[]){-1}, 3, &turned), SMELT_OK);
    int32_t n = 3;
    smelt_dispatch_desc good = {.buffers = {[0] = {.array = array}, [2] = {.bytes = &n, .size = sizeof n}},
                                .grid = {4},
                                .threadgroup = {4}};
    smelt_dispatch_desc desc = good;
    refused(smelt_function_run(NULL, &desc), wrong, "function run: function is NULL");
    refused(smelt_function_run(function, NULL), wrong, "function run: desc is NULL");
    desc.groups[0] = 1;
    refused(smelt_function_run(function, &desc), wrong,
            "kernel 'one': only one of grid (threads) and groups must be given");
    desc.grid[0] = 0;
    desc.groups[1] = -1;
    refused(smelt_function_run(function, &desc), wrong, "kernel 'one': groups.y is -1, expected at least 1");
    desc.groups[0] = desc.groups[1] = 0;
    refused(smelt_function_run(function, &desc), wrong,
            "kernel 'one': one of grid (threads) and groups must be given");
    desc = good;
    desc.threadgroup[0] = 0;
    refused(smelt_function_run(function, &desc), wrong,
            "kernel 'one': threadgroup.x is 0, expected at least 1");
    desc = good;
    desc.buffers[0].array = NULL;
    refused(smelt_function_run(function, &desc), wrong, "kernel 'one': buffer 0 ('x') is missing");
    desc.buffers[0].array = turned;
    refused(smelt_function_run(function, &desc), wrong,
            "kernel 'one': the array of buffer 0 ('x') is not row-contiguous");
    desc.buffers[0] = (smelt_buffer){.bytes = &n, .size = sizeof n};
    refused(smelt_function_run(function, &desc), wrong,
            "kernel 'one': buffer 0 ('x') is written by the kernel; expected an array, not bytes");
    desc = good;
    desc.buffers[2].array = array;
    refused(smelt_function_run(function, &desc), wrong,
            "kernel 'one': buffer 2 ('n') is given both an array and bytes");
    desc = good;
    desc.buffers[2].size = 3;
    refused(smelt_function_run(function, &desc), wrong,
            "kernel 'one': buffer 2 ('n') has 3 bytes, expected at least 4, the size of its type");
    desc = good;
    desc.timeout = -2;
    refused(smelt_function_run(function, &desc), wrong,
            "kernel 'one': timeout is -2, expected 0 (none) to 1e+09 seconds");
    assert_memory_equal(smelt_array_data(array), ((float[]){0, 1, 2, 3}), 16);
    assert_int_equal(smelt_function_run(function, &good), SMELT_OK);
    assert_memory_equal(smelt_array_data(array), ((float[]){3, 3, 3, 3}), 16);
    char *text = NULL;
    refused(smelt_function_show(function, NULL, (smelt_stage)-1, &text), wrong,
            "kernel 'one': stage -1 is not one of smelt_stage");
    refused(smelt_function_show(NULL, NULL, SMELT_STAGE_IR, &text), wrong, "function show: function is NULL");
    refused(smelt_function_show(function, NULL, SMELT_STAGE_IR, NULL), wrong, "function show: text is NULL");
    smelt_function_release(function);
    smelt_array_release(array);
    smelt_array_release(turned);
}

/* ---- Statuses and the cache. */

static void statuses_have_names_and_meanings(void **state) {
    (void)state;
    assert_string_equal(smelt_status_name(SMELT_ERROR_COMPILE), "SMELT_ERROR_COMPILE");
    assert_string_equal(smelt_status_name((smelt_status)99), "SMELT_UNKNOWN");
    assert_string_equal(smelt_status_meaning(SMELT_OK), "success");
    assert_string_equal(smelt_status_meaning((smelt_status)-1), "not a status of this version");
    uint64_t count = 0;
    refused(smelt_cache_usage(NULL, &count), wrong, "cache usage: entries is NULL");
    refused(smelt_cache_usage(&count, NULL), wrong, "cache usage: bytes is NULL");
}

#define RUN_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    setenv("SMELT_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1); /* the names of devices are compared */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_need_name_source_and_outputs),
        cmocka_unit_test(kernels_have_at_most_64_arguments),
        RUN_TEST(runs_need_their_arguments),
        RUN_TEST(inputs_must_be_there_and_no_more),
        RUN_TEST(output_shapes_and_dtypes_must_match_the_outputs),
        RUN_TEST(output_shapes_must_be_shapes),
        RUN_TEST(grids_must_be_positive_and_countable),
        RUN_TEST(threadgroups_have_1_to_1024_threads),
        RUN_TEST(templates_have_a_name_once_and_a_value_of_their_kind),
        RUN_TEST(devices_profiles_and_timeouts_must_exist),
        RUN_TEST(input_sizes_must_fit_the_ints_of_the_kernel),
        RUN_TEST(show_needs_a_stage),
        RUN_TEST(a_run_with_all_of_it_succeeds),
        cmocka_unit_test(libraries_need_a_text),
        cmocka_unit_test(functions_are_found_by_name),
        cmocka_unit_test(dispatches_need_a_grid_and_their_buffers),
        cmocka_unit_test(statuses_have_names_and_meanings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
