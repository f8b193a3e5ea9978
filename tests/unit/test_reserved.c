/* Words reserved for later fields: each structure that calls read is refused if one of them is not zero. */
#include "unit.h"

#include "smelt/graph.h"
#include "smelt/smelt.h"

#include <stdio.h>
#include <string.h>

#define SOURCE                                                            \
    "#include <metal_stdlib>\nconstant int n [[function_constant(0)]];\n" \
    "kernel void f(device int *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = n; }"

/* Calls `call` with the last word of `structure` set: its name is in the message. */
#define refused(type, structure, call)                                                              \
    do {                                                                                            \
        size_t last = sizeof(structure).reserved / sizeof *(structure).reserved - 1;                \
        (structure).reserved[last] = 0x51;                                                          \
        assert_int_equal(call, SMELT_ERROR_INVALID_ARGUMENT);                                       \
        (structure).reserved[last] = 0;                                                             \
        char expected[96];                                                                          \
        snprintf(expected, sizeof expected, #type ": reserved[%zu] is 0x51; expected 0", last);     \
        if (!strstr(smelt_error(), expected)) FAIL_TEST("'%s', not '%s'", smelt_error(), expected); \
    } while (0)

static smelt_kernel_desc kernel_desc(void) {
    return (smelt_kernel_desc){.name = "k", .source = "out[0] = T(1);", .outputs = {"out"}};
}

static smelt_run_desc run_desc(void) {
    return (smelt_run_desc){
        .grid = {1},
        .threadgroup = {1},
        .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = SMELT_FLOAT32}},
        .output_shapes = {{1, {1}}},
        .output_dtypes = {SMELT_FLOAT32}};
}

static void descriptors_of_kernels_are_refused(void **state) {
    smelt_kernel_desc desc = kernel_desc();
    smelt_run_desc run = run_desc();
    smelt_launch_desc again = {0};
    smelt_kernel *kernel;
    smelt_launch *launch;
    smelt_array *out;
    char *text;
    (void)state;
    refused(smelt_kernel_desc, desc, smelt_kernel_create(&desc, &kernel));
    assert_int_equal(smelt_kernel_create(&desc, &kernel), SMELT_OK);
    refused(smelt_run_desc, run, smelt_kernel_run(kernel, &run, &out));
    refused(smelt_run_desc, run, smelt_kernel_prepare(kernel, &run, &launch));
    /* Of a structure that is not initialised, nothing else is read. */
    run.into[0] = (smelt_array *)8;
    refused(smelt_run_desc, run, smelt_kernel_prepare(kernel, &run, &launch));
    refused(smelt_run_desc, run, smelt_kernel_run(kernel, &run, &out));
    run.into[0] = NULL;
    refused(smelt_run_desc, run, smelt_kernel_show(kernel, &run, SMELT_STAGE_SOURCE, &text));
    refused(smelt_template, run.templates[0], smelt_kernel_run(kernel, &run, &out));
    assert_int_equal(smelt_kernel_prepare(kernel, &run, &launch), SMELT_OK);
    refused(smelt_launch_desc, again, smelt_launch_run(launch, &again, &out));
    smelt_launch_release(launch);
    smelt_kernel_release(kernel);
}

static void descriptors_of_libraries_are_refused(void **state) {
    smelt_library_desc desc = {.source = SOURCE};
    smelt_function_desc wanted = {.constants = {{.dtype = SMELT_INT32, .value.integer = 7}}};
    smelt_build_desc build = {.path = "/dev/null", .constants = {wanted.constants[0]}};
    smelt_library *library;
    smelt_function *function;
    (void)state;
    refused(smelt_library_desc, desc, smelt_library_create(&desc, &library));
    assert_int_equal(smelt_library_create(&desc, &library), SMELT_OK);
    refused(smelt_function_desc, wanted, smelt_library_function(library, &wanted, &function));
    refused(smelt_constant, wanted.constants[0], smelt_library_function(library, &wanted, &function));
    refused(smelt_build_desc, build, smelt_library_build(library, &build));
    refused(smelt_constant, build.constants[0], smelt_library_build(library, &build));
    smelt_library_release(library);
}

static void descriptors_of_functions_are_refused(void **state) {
    smelt_function_desc wanted = {.constants = {{.dtype = SMELT_INT32, .value.integer = 7}}};
    smelt_dispatch_desc run = {.grid = {1}, .threadgroup = {1}};
    smelt_parameter parameters[1] = {{.dtype = SMELT_INT32}};
    smelt_library *library;
    smelt_function *function;
    char *text;
    int count;
    (void)state;
    assert_int_equal(smelt_library_create(&(smelt_library_desc){.source = SOURCE}, &library), SMELT_OK);
    assert_int_equal(smelt_library_function(library, &wanted, &function), SMELT_OK);
    refused(smelt_dispatch_desc, run, smelt_function_run(function, &run));
    refused(smelt_dispatch_desc, run, smelt_function_parameters(function, &run, parameters, 1, &count));
    refused(smelt_dispatch_desc, run, smelt_function_show_run(function, &run, SMELT_STAGE_SOURCE, &text));
    refused(smelt_buffer, run.buffers[30], smelt_function_run(function, &run));
    refused(smelt_parameter, parameters[0], smelt_parameter_check(parameters, SMELT_INT32));
    smelt_function_release(function);
    smelt_library_release(library);
}

static void descriptors_of_operations_are_refused(void **state) {
    smelt_array *outputs[1], *result;
    smelt_apply_desc apply = {.operation = SMELT_OPERATION_FULL, .dtype = SMELT_FLOAT32};
    smelt_record_desc record = {.outputs = outputs, .output_count = 1};
    (void)state;
    assert_int_equal(smelt_array_create(SMELT_FLOAT32, (smelt_shape){0}, &outputs[0]), SMELT_OK);
    refused(smelt_apply_desc, apply, smelt_apply(&apply, &result));
    refused(smelt_record_desc, record, smelt_tape_record(&record));
    smelt_array_release(outputs[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_of_kernels_are_refused),
        cmocka_unit_test(descriptors_of_libraries_are_refused),
        cmocka_unit_test(descriptors_of_functions_are_refused),
        cmocka_unit_test(descriptors_of_operations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
