/* Launches prepared once and run many times; outputs that are arrays of the caller. */
#include "unit.h"

#include "smelt/smelt.h"

#include <string.h>

#define COUNT 200

static smelt_kernel *scale_kernel(bool strided) {
    smelt_kernel *kernel;
    smelt_kernel_desc desc = {.name = "scale",
                              .source = "uint i = thread_position_in_grid.x; if (i >= 100) return;\n"
                                        "out[i] += a * inp[i * inp_strides[0]] + T(inp_shape[0]);",
                              .inputs = {"inp", "a"},
                              .outputs = {"out"},
                              .strided = strided};
    if (smelt_kernel_create(&desc, &kernel) != SMELT_OK) FAIL_TEST("%s", smelt_error());
    return kernel;
}

static smelt_array *over(float *values, int64_t count, int64_t stride) {
    smelt_array *array;
    if (smelt_array_from_memory(SMELT_FLOAT32, (smelt_shape){1, {count}}, &stride, values, NULL, NULL,
                                &array) != SMELT_OK)
        FAIL_TEST("%s", smelt_error());
    return array;
}

static smelt_array *number(float value) {
    smelt_array *array;
    if (smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){0}, &value, &array) != SMELT_OK)
        FAIL_TEST("%s", smelt_error());
    return array;
}

static smelt_run_desc desc_of(smelt_array *inp, smelt_array *a) {
    return (smelt_run_desc){
        .inputs = {inp, a},
        .grid = {128},
        .threadgroup = {32},
        .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = SMELT_FLOAT32}},
        .output_shapes = {{1, {100}}},
        .output_dtypes = {SMELT_FLOAT32}};
}

static void count_release(void *context) {
    ++*(int64_t *)context;
}

static void expect(const smelt_array *out, float first, float step) {
    const float *values = smelt_array_data(out);
    for (int i = 0; i < 100; i++)
        if (values[i] != first + (float)i * step)
            FAIL_TEST("out[%d] is %g, expected %g", i, values[i], first + (float)i * step);
}

static void refused(smelt_status status, const char *message) {
    assert_int_equal(status, SMELT_ERROR_INVALID_ARGUMENT);
    if (!strstr(smelt_error(), message)) FAIL_TEST("'%s' does not say '%s'", smelt_error(), message);
}

/* A run writes into the caller's array; elements that the kernel does not write stay. */
static void a_run_writes_into_given_arrays(void **state) {
    (void)state;
    float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) x[i] = (float)i, y[i] = 1000;
    smelt_kernel *kernel = scale_kernel(false);
    smelt_array *inp = over(x, 100, 1), *a = number(2), *into = over(y, 100, 1), *out;
    smelt_run_desc desc = desc_of(inp, a);
    desc.into[0] = into;
    if (smelt_kernel_run(kernel, &desc, &out) != SMELT_OK) FAIL_TEST("%s", smelt_error());
    assert_ptr_equal(out, into);
    expect(out, 1100, 2);
    assert_true(y[100] == 1000);
    smelt_array_release(out);
    desc.initialise = true;
    if (smelt_kernel_run(kernel, &desc, &out) != SMELT_OK) FAIL_TEST("%s", smelt_error());
    expect(out, 100, 2);
    smelt_array_release(out);
    smelt_array_release(into);

    desc.into[0] = into = over(y, 99, 1);
    refused(smelt_kernel_run(kernel, &desc, &out), "has shape 99, expected 100");
    smelt_array_release(into);
    desc.into[0] = into = over(y, 100, 2);
    refused(smelt_kernel_run(kernel, &desc, &out), "not row-contiguous");
    smelt_array_release(into);
    assert_int_equal(smelt_array_create(SMELT_INT32, (smelt_shape){1, {100}}, &into), SMELT_OK);
    desc.into[0] = into;
    refused(smelt_kernel_run(kernel, &desc, &out),
            "kernel 'scale': output 'out': the array to write into is int32, expected float32");
    smelt_array_release(into);
    smelt_array_release(inp);
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

static void a_prepared_launch_runs_again_and_again(void **state) {
    (void)state;
    float x[COUNT], y[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) x[i] = (float)i;
    smelt_kernel *kernel = scale_kernel(false);
    smelt_array *inp = over(x, 100, 1), *a = number(2), *into = over(y, 100, 1), *out;
    smelt_run_desc desc = desc_of(inp, a);
    smelt_launch *launch;
    smelt_run_info info = {.seconds = -7, .compile_seconds = -7};
    desc.initialise = true;
    desc.init_value = 5;
    desc.info = &info;
    if (smelt_kernel_prepare(kernel, &desc, &launch) != SMELT_OK) FAIL_TEST("%s", smelt_error());
    assert_true(info.seconds == -7 && info.compile_seconds == -7);
    /* It keeps what it needs. */
    memset(&desc, 0xff, sizeof desc);
    smelt_array_release(a);
    smelt_array_release(inp);
    smelt_kernel_release(kernel);
    for (int round = 0; round < 3; round++) {
        if (smelt_launch_run(launch, NULL, &out) != SMELT_OK) FAIL_TEST("%s", smelt_error());
        expect(out, 105 + (float)(2 * round), 2);
        smelt_array_release(out);
        for (int i = 0; i < COUNT; i++) x[i] += 1; /* inputs have their present contents */
    }
    smelt_launch_desc other = {.into = &into, .info = &info};
    if (smelt_launch_run(launch, &other, NULL) != SMELT_OK) FAIL_TEST("%s", smelt_error());
    expect(into, 111, 2);
    assert_int_equal(info.groups[0], 4);
    assert_true(info.compile_seconds == 0);

    refused(smelt_launch_run(launch, NULL, NULL), "output 'out' has no destination");
    smelt_array *wrong[2] = {into, into}, *less = over(x, 99, 1), *b = number(3);
    refused(smelt_launch_run(launch, &(smelt_launch_desc){.inputs = wrong}, &out),
            "input 'a' is float32 of shape 100; the launch was prepared for float32 of shape scalar");
    wrong[0] = less;
    refused(smelt_launch_run(launch, &(smelt_launch_desc){.inputs = wrong}, &out),
            "input 'inp' is float32 of shape 99");

    /* Other inputs of the same kind, one of them not contiguous: it is copied. */
    smelt_array *spread = over(x, 100, 2), *right[2] = {spread, b};
    if (smelt_launch_run(launch, &(smelt_launch_desc){.inputs = right}, &out) != SMELT_OK)
        FAIL_TEST("%s", smelt_error());
    expect(out, 105 + 9, 6);
    smelt_array_release(out);
    smelt_launch_retain(launch);
    smelt_launch_release(launch);
    smelt_array_release(b);
    smelt_array_release(less);
    smelt_array_release(spread);
    smelt_array_release(into);
    smelt_launch_release(launch);
}

/* Inputs that must be copied are copied at each run; strided ones never. */
static void copies_are_made_anew(void **state) {
    (void)state;
    for (int strided = 0; strided < 2; strided++) {
        float x[COUNT], y[COUNT] = {0};
        for (int i = 0; i < COUNT; i++) x[i] = (float)i;
        smelt_kernel *kernel = scale_kernel(strided);
        smelt_array *inp = over(x, 100, 2), *a = number(1), *into = over(y, 100, 1), *out;
        smelt_run_desc desc = desc_of(inp, a);
        desc.into[0] = into;
        smelt_launch *launch;
        if (smelt_kernel_prepare(kernel, &desc, &launch) != SMELT_OK) FAIL_TEST("%s", smelt_error());
        if (smelt_launch_run(launch, NULL, NULL) != SMELT_OK) FAIL_TEST("%s", smelt_error());
        expect(into, 100, 2);
        for (int i = 0; i < COUNT; i++) x[i] = -x[i];
        if (smelt_launch_run(launch, NULL, &out) != SMELT_OK) FAIL_TEST("%s", smelt_error());
        assert_ptr_equal(out, into);
        expect(into, 200, 0);
        smelt_array_release(out);
        smelt_launch_release(launch);
        smelt_array_release(into);
        smelt_array_release(inp);
        smelt_array_release(a);
        smelt_kernel_release(kernel);
    }
}

static void preparing_checks_what_running_does(void **state) {
    (void)state;
    float x[COUNT] = {0}, y[COUNT] = {0};
    smelt_kernel *kernel = scale_kernel(false);
    smelt_array *inp = over(x, 100, 1), *a = number(1), *into = over(y, 98, 1);
    smelt_launch *launch = NULL;
    smelt_run_desc desc = desc_of(inp, NULL);
    refused(smelt_kernel_prepare(kernel, &desc, &launch), "input 'a' is missing");
    desc = desc_of(inp, a);
    desc.grid[0] = 0;
    refused(smelt_kernel_prepare(kernel, &desc, &launch), "grid.x is 0");
    desc = desc_of(inp, a);
    desc.into[0] = into;
    refused(smelt_kernel_prepare(kernel, &desc, &launch), "has shape 98, expected 100");
    desc = desc_of(inp, a);
    desc.profile = "pear";
    refused(smelt_kernel_prepare(kernel, &desc, &launch), "profile 'pear' is unknown");
    desc = desc_of(inp, a);
    desc.templates[0] = (smelt_template){0}; /* T is then no type */
    assert_int_equal(smelt_kernel_prepare(kernel, &desc, &launch), SMELT_ERROR_COMPILE);
    refused(smelt_launch_run(NULL, NULL, NULL), "launch is NULL");
    assert_null(launch);
    smelt_array_release(into);
    smelt_array_release(inp);
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

/* Inputs are released, and each run gives its own. */
static void a_launch_forgets_its_inputs(void **state) {
    static float values[COUNT], others[COUNT];
    int64_t released = 0;
    smelt_launch *launch;
    smelt_array *inp, *other = over(others, 100, 1), *a = number(2), *out = NULL;
    smelt_kernel *kernel = scale_kernel(false);
    (void)state;
    for (int i = 0; i < COUNT; i++) values[i] = 1, others[i] = (float)i;
    assert_int_equal(smelt_array_from_memory(SMELT_FLOAT32, (smelt_shape){1, {100}}, NULL, values,
                                             count_release, &released, &inp),
                     SMELT_OK);
    smelt_run_desc desc = desc_of(inp, a);
    desc.initialise = true;
    assert_int_equal(smelt_kernel_prepare(kernel, &desc, &launch), SMELT_OK);
    smelt_array_release(inp);
    assert_int_equal(released, 0);
    assert_int_equal(smelt_launch_forget(launch), SMELT_OK);
    assert_int_equal(released, 1);
    refused(smelt_launch_run(launch, NULL, &out),
            "kernel 'scale': inputs is NULL; expected an array per input");
    smelt_launch_desc run = {.inputs = (smelt_array *[]){other, a}};
    assert_int_equal(smelt_launch_run(launch, &run, &out), SMELT_OK);
    expect(out, 100, 2);
    smelt_array_release(out);
    run.inputs = (smelt_array *[]){a, a};
    refused(smelt_launch_run(launch, &run, &out), "the launch was prepared for float32 of shape 100");
    refused(smelt_launch_forget(NULL), "launch forget: launch is NULL");
    smelt_launch_release(launch);
    smelt_array_release(a), smelt_array_release(other);
    smelt_kernel_release(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_writes_into_given_arrays),
        cmocka_unit_test(a_prepared_launch_runs_again_and_again),
        cmocka_unit_test(copies_are_made_anew),
        cmocka_unit_test(a_launch_forgets_its_inputs),
        cmocka_unit_test(preparing_checks_what_running_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
