/* Building graphs in C: values infer as arrays do; what a graph refuses; registered operations; gradients. */
#include "graph.h"

#include <stdio.h>

static smelt_array *input(smelt_graph *graph, const char *name, smelt_dtype dtype, smelt_shape shape) {
    smelt_array *value;
    OK(smelt_graph_input(graph, name, dtype, shape, &value));
    return value;
}

static smelt_array *apply(const smelt_apply_desc *desc) {
    smelt_array *result;
    OK(smelt_apply(desc, &result));
    return result;
}

#define VALUE(...) apply(&(smelt_apply_desc){__VA_ARGS__})

static smelt_array *vector(int count, const float *numbers) {
    smelt_array *array;
    OK(smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){1, {count}}, numbers, &array));
    return array;
}

static void values_have_types_and_no_elements(void **state) {
    (void)state;
    smelt_graph *graph;
    OK(smelt_graph_create("types", &graph));
    smelt_array *x = input(graph, "x", SMELT_FLOAT16, (smelt_shape){2, {3, 4}});
    smelt_array *n = input(graph, NULL, SMELT_INT32, (smelt_shape){1, {4}});
    smelt_array *sum = VALUE(.operation = OP(ADD), .inputs = {x, n});
    smelt_array *least = VALUE(.operation = OP(ARGMIN), .inputs = {sum}, .axes = {1}, .axis_count = 1);
    smelt_array *turned = VALUE(.operation = OP(TRANSPOSE), .inputs = {x});
    smelt_array *product = VALUE(.operation = OP(MATMUL), .inputs = {x, turned});
    assert_string_equal(smelt_array_device(sum), "graph");
    assert_int_equal(sum->dtype, SMELT_FLOAT16);
    assert_true(shape_equal(&sum->shape, &x->shape));
    assert_int_equal(least->dtype, SMELT_INT32);
    assert_true(shape_equal(&least->shape, &(smelt_shape){1, {3}}));
    assert_true(shape_equal(&product->shape, &(smelt_shape){2, {3, 3}}));
    assert_true(smelt_array_is_contiguous(turned));
    smelt_array *host;
    assert_int_equal(smelt_array_to(sum, "cpu", NULL, &host), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "the array is a value of a graph: it has no elements before the graph is executed");
    char *text;
    OK(smelt_graph_show(graph, &text));
    assert_non_null(strstr(text, "%2 = add(%0, %1) : float16 3x4\n"));
    smelt_free(text);
    smelt_graph_release(graph); /* values keep it */
    smelt_array *arrays[] = {x, n, sum, least, turned, product};
    for (int i = 0; i < 6; i++) smelt_array_release(arrays[i]);
}

#define REFUSED(call, message)                                \
    do {                                                      \
        assert_int_equal(call, SMELT_ERROR_INVALID_ARGUMENT); \
        assert_string_equal(smelt_error(), message);          \
    } while (0)

static void mistakes_are_sentences(void **state) {
    (void)state;
    smelt_graph *graph, *other;
    OK(smelt_graph_create("one", &graph));
    OK(smelt_graph_create("two", &other));
    smelt_array *x = input(graph, "x", SMELT_FLOAT32, (smelt_shape){1, {3}});
    smelt_array *y = input(other, "y", SMELT_FLOAT32, (smelt_shape){1, {4}});
    smelt_array *z = input(other, "z", SMELT_FLOAT32, (smelt_shape){1, {3}}), *made, *view;
    smelt_shape shape = {1, {3}};
    REFUSED(smelt_apply(&(smelt_apply_desc){.operation = OP(ADD), .inputs = {x, y}}, &made),
            "add: shapes 3 and 4 cannot be broadcast: sizes 3 and 4 of dimension -1 differ");
    REFUSED(smelt_apply(&(smelt_apply_desc){.operation = OP(ADD), .inputs = {x, z}}, &made),
            "graph 'one': an array is a value of graph 'two'; the values of one computation must belong to "
            "one graph");
    REFUSED(smelt_graph_input(graph, "x", SMELT_FLOAT32, shape, &made),
            "graph: there is an input named 'x' already");
    REFUSED(smelt_graph_output(graph, NULL, z), "graph 'one': an array is a value of graph 'two'; the values "
                                                "of one computation must belong to one graph");
    OK(smelt_array_view(x, (smelt_shape){1, {2}}, NULL, 1, &view));
    REFUSED(smelt_graph_output(graph, NULL, view),
            "graph 'one': an array is a view of a value of shape 3; views of values are made by operations "
            "(smelt_apply)");
    int count;
    REFUSED(
        smelt_custom(&(smelt_custom_desc){.name = "matrix_multiplication", .inputs = &x, .input_count = 1}, 1,
                     &made, &count),
        "matrix_multiplication: 1 inputs are given, expected 2");
    assert_int_equal(smelt_custom(&(smelt_custom_desc){.name = "nothing"}, 1, &made, &count),
                     SMELT_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(smelt_error(), "custom: operation 'nothing' is not registered; registered are: "));
    smelt_array *arrays[] = {x, y, z, view};
    for (int i = 0; i < 4; i++) smelt_array_release(arrays[i]);
    smelt_graph_release(graph);
    smelt_graph_release(other);
}

/* ---- Executing. */

static smelt_array *execute_one(smelt_graph *graph, smelt_array **inputs, int count, smelt_array *into) {
    smelt_compiled *compiled;
    smelt_session *session;
    smelt_array *result;
    OK(smelt_graph_compile(graph, &(smelt_compile_desc){.device = test_device()}, &compiled));
    OK(smelt_session_create(compiled, NULL, &session));
    OK(smelt_session_execute(
        session, &(smelt_execute_desc){.inputs = inputs, .input_count = count, .into = into ? &into : NULL},
        &result));
    OK(test_to_host(&result));
    smelt_session_release(session);
    smelt_compiled_release(compiled);
    return result;
}

static void inputs_and_outputs_are_checked(void **state) {
    (void)state;
    smelt_graph *graph;
    smelt_compiled *compiled;
    smelt_session *session;
    OK(smelt_graph_create("sum", &graph));
    smelt_array *x = input(graph, "x", SMELT_FLOAT32, (smelt_shape){1, {3}});
    smelt_array *y = input(graph, "y", SMELT_FLOAT32, (smelt_shape){1, {3}});
    smelt_array *sum = VALUE(.operation = OP(SUBTRACT), .inputs = {x, y});
    OK(smelt_graph_output(graph, "difference", sum));
    OK(smelt_graph_compile(graph, &(smelt_compile_desc){.device = test_device()}, &compiled));
    OK(smelt_session_create(compiled, NULL, &session));
    smelt_type type;
    assert_string_equal(smelt_compiled_input(compiled, 1, &type), "y");
    assert_string_equal(smelt_compiled_output(compiled, 0, &type), "difference");
    assert_true(type.dtype == SMELT_FLOAT32 && shape_equal(&type.shape, &(smelt_shape){1, {3}}));
    assert_null(smelt_compiled_output(compiled, 1, NULL));
    smelt_array *a = vector(3, (float[]){5, 6, 7}), *b = vector(3, (float[]){1, 2, 3}), *made;
    smelt_array *short_one = vector(2, (float[]){1, 2});
    const char *names[] = {"y", "x"}, *wrong[] = {"y", "w"}, *twice[] = {"y", "y"};
    OK(smelt_session_execute(
        session,
        &(smelt_execute_desc){.inputs = (smelt_array *[]){b, a}, .input_count = 2, .input_names = names},
        &made));
    OK(test_to_host(&made));
    assert_numbers(made, (double[]){4, 4, 4}, 0, 0);
    smelt_array_release(made);
    smelt_execute_desc desc = {.inputs = (smelt_array *[]){a, short_one}, .input_count = 2};
    REFUSED(smelt_session_execute(session, &desc, &made),
            "graph 'sum': input 'y' is float32 2, expected float32 3");
    desc.input_count = 1;
    REFUSED(smelt_session_execute(session, &desc, &made), "graph 'sum': 1 inputs are given, expected 2");
    desc = (smelt_execute_desc){.inputs = (smelt_array *[]){b, a}, .input_count = 2, .input_names = wrong};
    REFUSED(smelt_session_execute(session, &desc, &made), "graph 'sum': there is no input 'w'");
    desc.input_names = twice;
    REFUSED(smelt_session_execute(session, &desc, &made), "graph 'sum': input 'y' is given twice");
    smelt_array *arrays[] = {x, y, sum, a, b, short_one};
    for (int i = 0; i < 6; i++) smelt_array_release(arrays[i]);
    smelt_session_release(session);
    smelt_compiled_release(compiled);
    smelt_graph_release(graph);
}

/* An output that is an input, a constant, a view, or the same value twice is an array of its own. */
static void outputs_are_arrays_of_their_own(void **state) {
    (void)state;
    smelt_graph *graph;
    smelt_compiled *compiled;
    smelt_session *session;
    OK(smelt_graph_create("outputs", &graph));
    smelt_array *x = input(graph, "x", SMELT_FLOAT32, (smelt_shape){2, {2, 2}});
    smelt_array *constant = vector(2, (float[]){8, 9});
    smelt_array *turned = VALUE(.operation = OP(TRANSPOSE), .inputs = {x});
    smelt_array *exact = VALUE(.operation = OP(NEGATIVE), .inputs = {x});
    smelt_array *given[] = {x, constant, turned, exact, exact}, *made[5];
    for (int i = 0; i < 5; i++) OK(smelt_graph_output(graph, NULL, given[i]));
    OK(smelt_graph_compile(graph, &(smelt_compile_desc){.device = test_device()}, &compiled));
    OK(smelt_session_create(compiled, NULL, &session));
    smelt_array *flat = vector(4, (float[]){1, 2, 3, 4}), *a;
    OK(smelt_array_view(flat, (smelt_shape){2, {2, 2}}, NULL, 0, &a));
    OK(smelt_session_execute(session, &(smelt_execute_desc){.inputs = &a, .input_count = 1}, made));
    for (int i = 0; i < 5; i++) {
        OK(test_to_host(&made[i]));
        for (int j = 0; j < i; j++) assert_true(made[i]->data != made[j]->data);
        assert_true(made[i]->data != a->data && smelt_array_is_contiguous(made[i]));
    }
    assert_numbers(made[0], (double[]){1, 2, 3, 4}, 0, 0);
    assert_numbers(made[1], (double[]){8, 9}, 0, 0);
    assert_numbers(made[2], (double[]){1, 3, 2, 4}, 0, 0);
    assert_numbers(made[3], (double[]){-1, -2, -3, -4}, 0, 0);
    assert_numbers(made[4], (double[]){-1, -2, -3, -4}, 0, 0);
    smelt_array *arrays[] = {x, constant, turned, exact, flat, a};
    for (int i = 0; i < 6; i++) smelt_array_release(arrays[i]);
    for (int i = 0; i < 5; i++) smelt_array_release(made[i]);
    smelt_session_release(session);
    smelt_compiled_release(compiled);
    smelt_graph_release(graph);
}

/* ---- Registered operations: one that has a variant for each device. */

struct counts {
    int runs, releases;
    char device[32];
};

static smelt_status infer_same(void *context, const smelt_operation_call *call, smelt_type *types,
                               int *count) {
    (void)context;
    types[0] = (smelt_type){.dtype = smelt_array_dtype(call->inputs[0]),
                            .shape = smelt_array_shape(call->inputs[0])};
    *count = 1;
    return SMELT_OK;
}

static smelt_status run_scale(void *context, const smelt_operation_call *call, smelt_array **outputs) {
    struct counts *counts = context;
    double factor = 1;
    smelt_array *number;
    counts->runs++;
    snprintf(counts->device, sizeof counts->device, "%s", call->device);
    for (const smelt_attribute *a = call->attributes; a->name; a++)
        if (strcmp(a->name, "factor") == 0) factor = a->real;
    OK(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){.ndim = 0}, &factor, &number));
    smelt_status status = smelt_apply(
        &(smelt_apply_desc){.operation = OP(MULTIPLY), .inputs = {call->inputs[0], number}, .weak = 2},
        outputs);
    smelt_array_release(number);
    return status;
}

/* Three times the true one, so that a test sees whose it is. */
static smelt_status differentiate_scale(void *context, const smelt_operation_call *call,
                                        smelt_array *const *outputs, smelt_array *const *cotangents,
                                        smelt_array **gradients) {
    double factor = 3;
    smelt_array *number;
    (void)context;
    (void)outputs;
    for (const smelt_attribute *a = call->attributes; a->name; a++)
        if (strcmp(a->name, "factor") == 0) factor = 3 * a->real;
    OK(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){.ndim = 0}, &factor, &number));
    smelt_status status = smelt_apply(
        &(smelt_apply_desc){.operation = OP(MULTIPLY), .inputs = {cotangents[0], number}, .weak = 2},
        gradients);
    smelt_array_release(number);
    return status;
}

static void count_release(void *context) {
    ((struct counts *)context)->releases++;
}

static void registered_operations_are_expanded_for_the_device(void **state) {
    (void)state;
    struct counts counts = {0};
    smelt_graph *graph, *gradient;
    smelt_array *value, *made[2], *wrong;
    int count;
    smelt_operation_desc operation = {.name = "test_scale",
                                      .infer = infer_same,
                                      .run = run_scale,
                                      .vjp = differentiate_scale,
                                      .release = count_release,
                                      .context = &counts};
    OK(smelt_operation_register(&operation));
    OK(smelt_graph_create("scaled", &graph));
    smelt_array *x = input(graph, "x", SMELT_FLOAT32, (smelt_shape){1, {3}});
    smelt_custom_desc use = {.name = "test_scale",
                             .inputs = &x,
                             .input_count = 1,
                             .attributes = {{.name = "factor", .kind = SMELT_ATTRIBUTE_REAL, .real = 2.5}}};
    OK(smelt_custom(&use, 1, &value, &count));
    assert_int_equal(counts.runs, 0); /* only when it is compiled */
    assert_int_equal(count, 1);
    OK(smelt_graph_output(graph, NULL, value));
    smelt_type type = {.dtype = SMELT_INT32, .shape = {1, {3}}};
    smelt_custom_desc mistyped = use;
    mistyped.types = &type;
    mistyped.output_count = 1;
    REFUSED(smelt_custom(&mistyped, 1, &wrong, &count),
            "test_scale: output 0 is given as int32 3, but it is float32 3 for these inputs");
    smelt_array *a = vector(3, (float[]){1, 2, 4});
    smelt_array *y = execute_one(graph, &a, 1, NULL);
    assert_numbers(y, (double[]){2.5, 5, 10}, 0, 0);
    assert_int_equal(counts.runs, 1);
    assert_memory_equal(counts.device, test_device(), strlen(test_device())); /* "cuda:0" is "cuda" */
    OK(smelt_graph_gradient(graph, 0, (int[]){0}, 1, &gradient));
    smelt_compiled *compiled;
    smelt_session *session;
    OK(smelt_graph_compile(gradient, &(smelt_compile_desc){.device = test_device()}, &compiled));
    assert_string_equal(smelt_compiled_output(compiled, 1, NULL), "gradient of x");
    OK(smelt_session_create(compiled, NULL, &session));
    OK(smelt_session_execute(session, &(smelt_execute_desc){.inputs = &a, .input_count = 1}, made));
    for (int i = 0; i < 2; i++) OK(test_to_host(&made[i]));
    assert_numbers(made[0], (double[]){2.5, 5, 10}, 0, 0);
    assert_numbers(made[1], (double[]){7.5, 7.5, 7.5}, 0, 0);
    smelt_session_release(session);
    smelt_compiled_release(compiled);
    smelt_graph_release(gradient);
    /* Replaced: graphs that use the former one keep it. */
    operation.release = NULL;
    OK(smelt_operation_register(&operation));
    assert_int_equal(counts.releases, 0);
    smelt_array *arrays[] = {x, value, a, y, made[0], made[1]};
    for (int i = 0; i < 6; i++) smelt_array_release(arrays[i]);
    smelt_graph_release(graph);
    assert_int_equal(counts.releases, 1);
}

/* ---- What the passes do. */

static void passes_share_fold_and_remove(void **state) {
    (void)state;
    smelt_graph *graph;
    smelt_compiled *compiled;
    smelt_compiled_info info;
    OK(smelt_graph_create("passes", &graph));
    smelt_array *x = input(graph, "x", SMELT_FLOAT32, (smelt_shape){1, {3}});
    smelt_array *first = VALUE(.operation = OP(EXP), .inputs = {x});
    smelt_array *again = VALUE(.operation = OP(EXP), .inputs = {x});
    smelt_array *dead = VALUE(.operation = OP(SIN), .inputs = {x});
    smelt_array *same = VALUE(.operation = OP(RESHAPE), .inputs = {first}, .shape = {1, {3}});
    smelt_array *sum = VALUE(.operation = OP(ADD), .inputs = {same, again});
    OK(smelt_graph_output(graph, NULL, sum));
    OK(smelt_graph_compile(graph, NULL, &compiled));
    OK(smelt_compiled_describe(compiled, &info));
    assert_int_equal(info.nodes, 5);
    assert_int_equal(info.shared, 2);
    assert_int_equal(info.dead, 1);
    assert_int_equal(info.steps, 1);
    assert_int_equal(info.fused_nodes, 2);
    char *text;
    OK(smelt_compiled_show(compiled, 0, &text));
    assert_non_null(strstr(text, "kernel void smelt_fused("));
    smelt_free(text);
    REFUSED(smelt_compiled_show(compiled, 1, &text),
            "compiled show: step 1 does not exist; graph 'passes' has 1 steps");
    smelt_compiled_release(compiled);
    smelt_array *arrays[] = {x, first, again, dead, same, sum};
    for (int i = 0; i < 6; i++) smelt_array_release(arrays[i]);
    smelt_graph_release(graph);
}

/* A chain of steps that cannot be fused needs two buffers, however long it is. */
static void memory_is_reused(void **state) {
    (void)state;
    smelt_graph *graph;
    smelt_compiled *compiled;
    smelt_compiled_info info;
    smelt_array *values[12];
    OK(smelt_graph_create("memory", &graph));
    values[0] = input(graph, "x", SMELT_FLOAT32, (smelt_shape){1, {1024}});
    for (int i = 1; i < 12; i++) values[i] = VALUE(.operation = OP(CUMSUM), .inputs = {values[i - 1]});
    OK(smelt_graph_output(graph, NULL, values[11]));
    for (int unplanned = 0; unplanned < 2; unplanned++) {
        OK(smelt_graph_compile(graph, &(smelt_compile_desc){.unplanned = unplanned}, &compiled));
        OK(smelt_compiled_describe(compiled, &info));
        assert_int_equal(info.total_bytes, 10 * 4096);
        assert_int_equal(info.peak_bytes, unplanned ? 10 * 4096 : 2 * 4096);
        smelt_compiled_release(compiled);
    }
    for (int i = 0; i < 12; i++) smelt_array_release(values[i]);
    smelt_graph_release(graph);
}

/* A result goes where the caller says. */
static void outputs_go_into_given_arrays(void **state) {
    (void)state;
    smelt_graph *graph;
    smelt_array *into, *made;
    OK(smelt_graph_create("into", &graph));
    smelt_array *x = input(graph, "x", SMELT_FLOAT32, (smelt_shape){1, {3}});
    smelt_array *square = VALUE(.operation = OP(SQUARE), .inputs = {x});
    OK(smelt_graph_output(graph, NULL, square));
    smelt_array *a = vector(3, (float[]){1, 2, 3});
    OK(smelt_array_create_on(test_device(), SMELT_FLOAT32, (smelt_shape){1, {3}}, &into));
    made = execute_one(graph, &a, 1, into);
    OK(test_to_host(&into));
    assert_numbers(into, (double[]){1, 4, 9}, 0, 0);
    smelt_array *arrays[] = {x, square, a, into, made};
    for (int i = 0; i < 5; i++) smelt_array_release(arrays[i]);
    smelt_graph_release(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_types_and_no_elements),
        cmocka_unit_test(mistakes_are_sentences),
        cmocka_unit_test(inputs_and_outputs_are_checked),
        cmocka_unit_test(outputs_are_arrays_of_their_own),
        cmocka_unit_test(registered_operations_are_expanded_for_the_device),
        cmocka_unit_test(passes_share_fold_and_remove),
        cmocka_unit_test(memory_is_reused),
        cmocka_unit_test(outputs_go_into_given_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
