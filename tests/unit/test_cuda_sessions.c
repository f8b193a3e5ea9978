/* Sessions of graphs over the fake driver: executions with the same arrays are recorded, and replayed. */
#include "streams.h"

#include "smelt/graph.h"

static smelt_graph *new_graph(const char *name, int64_t count, smelt_array **x) {
    smelt_graph *graph;
    ok(smelt_graph_create(name, &graph));
    ok(smelt_graph_input(graph, NULL, SMELT_FLOAT32, LINE(count), x));
    return graph;
}

/* A session of the graph with the output y, without fusion: one launch per operation. Releases both. */
static smelt_session *session_of(smelt_graph *graph, smelt_array *y, int64_t streams, bool no_recording) {
    smelt_compiled *compiled;
    smelt_session *session;
    ok(smelt_graph_output(graph, NULL, y));
    ok(smelt_graph_compile(
        graph, &(smelt_compile_desc){.device = "cuda", .unfused = true, .streams = streams}, &compiled));
    ok(smelt_session_create(compiled, &(smelt_session_desc){.no_recording = no_recording}, &session));
    smelt_array_release(y);
    smelt_compiled_release(compiled);
    smelt_graph_release(graph);
    return session;
}

/* b: NULL for operations of one input. */
static smelt_array *apply(smelt_operation operation, smelt_array *a, smelt_array *b) {
    smelt_array *result;
    ok(smelt_apply(&(smelt_apply_desc){.operation = operation, .inputs = {a, b}}, &result));
    return result;
}

/* y = exp(x) - 1.5 over `count` elements: two launches. */
static smelt_session *new_session(int64_t count, bool no_recording) {
    smelt_array *x, *exps, *number, *y;
    double value = 1.5;
    smelt_graph *graph = new_graph("recorded", count, &x);
    ok(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){.ndim = 0}, &value, &number));
    exps = apply(SMELT_OPERATION_EXP, x, NULL);
    ok(smelt_apply(
        &(smelt_apply_desc){.operation = SMELT_OPERATION_SUBTRACT, .inputs = {exps, number}, .weak = 2}, &y));
    smelt_array *arrays[] = {x, exps, number};
    for (int i = 0; i < 3; i++) smelt_array_release(arrays[i]);
    return session_of(graph, y, 0, no_recording);
}

static smelt_array *new_floats(int64_t count) {
    smelt_array *array;
    ok(smelt_array_create_on("cuda", SMELT_FLOAT32, (smelt_shape){1, {count}}, &array));
    return array;
}

static void execute(smelt_session *session, smelt_array *x, smelt_array *into) {
    smelt_array *y;
    ok(smelt_session_execute(
        session, &(smelt_execute_desc){.inputs = &x, .input_count = 1, .into = into ? &into : NULL}, &y));
    if (into) assert_true(y->data == into->data);
    smelt_array_release(y);
}

static void the_second_execution_with_the_same_arrays_is_recorded(void **state) {
    (void)state;
    smelt_session *session = new_session(64, false), *plain = new_session(64, true);
    smelt_array *x = new_floats(64), *y = new_floats(64), *other = new_floats(64);
    fake->forget_calls();
    execute(session, x, y);
    assert_int_equal(fake->calls("cuGraphLaunch"), 0);
    execute(session, x, y);
    execute(session, x, y);
    assert_int_equal(fake->calls("cuGraphLaunch"), 2);
    assert_int_equal(fake->calls("cuGraphInstantiateWithFlags"), 1);
    /* Another input: an execution of its own, then a recording of its own. */
    for (int i = 0; i < 3; i++) execute(session, other, y);
    assert_int_equal(fake->calls("cuGraphLaunch"), 4);
    assert_int_equal(fake->calls("cuGraphInstantiateWithFlags"), 2);
    execute(session, x, y);
    assert_int_equal(fake->calls("cuGraphLaunch"), 5);
    /* New outputs: small ones are copied from the recording's. */
    for (int i = 0; i < 3; i++) execute(session, x, NULL);
    assert_int_equal(fake->calls("cuGraphLaunch"), 7);
    for (int i = 0; i < 3; i++) execute(plain, x, y);
    assert_int_equal(fake->calls("cuGraphLaunch"), 7);
    smelt_session_release(session);
    smelt_session_release(plain);
    smelt_array_release(x);
    smelt_array_release(y);
    smelt_array_release(other);
}

static void large_outputs_are_not_copied(void **state) {
    (void)state;
    int64_t count = 1 << 19;
    smelt_session *session = new_session(count, false);
    smelt_array *x = new_floats(count);
    fake->forget_calls();
    for (int i = 0; i < 3; i++) execute(session, x, NULL);
    assert_int_equal(fake->calls("cuGraphLaunch"), 0);
    smelt_session_release(session);
    smelt_array_release(x);
}

/* Each combination is recorded once: so many that the oldest are forgotten do not make more recordings. */
static void recordings_are_few(void **state) {
    (void)state;
    smelt_session *session = new_session(64, false);
    smelt_array *x[20], *y = new_floats(64);
    fake->forget_calls();
    for (int i = 0; i < 20; i++) x[i] = new_floats(64);
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 3; k++) execute(session, x[i], y);
    assert_int_equal(fake->calls("cuGraphInstantiateWithFlags"), 8);
    for (int i = 0; i < 20; i++) smelt_array_release(x[i]);
    smelt_array_release(y);
    smelt_session_release(session);
}

/* y is the sum of four functions of exp(x), which need exp(x) but not one another: eight launches. */
static smelt_session *new_branches(int64_t streams) {
    const smelt_operation operations[] = {SMELT_OPERATION_SQUARE, SMELT_OPERATION_SQRT,
                                          SMELT_OPERATION_NEGATIVE, SMELT_OPERATION_SIN};
    smelt_array *x, *sum = NULL;
    smelt_graph *graph = new_graph("branches", 64, &x);
    smelt_array *exps = apply(SMELT_OPERATION_EXP, x, NULL);
    for (int i = 0; i < 4; i++) {
        smelt_array *part = apply(operations[i], exps, NULL), *before = sum;
        sum = before ? apply(SMELT_OPERATION_ADD, before, part) : smelt_array_retain(part);
        smelt_array_release(part);
        smelt_array_release(before);
    }
    smelt_array_release(x);
    smelt_array_release(exps);
    return session_of(graph, sum, streams, false);
}

/* The launch of each step waits for those of the steps that it needs, and the end of the recording for all.
 */
static void independent_steps_are_branches_of_a_recording(void **state) {
    (void)state;
    smelt_array *x = new_floats(64), *y = new_floats(64);
    for (int64_t streams = 0; streams < 5; streams += 4) {
        smelt_session *session = new_branches(streams);
        fake->forget_calls();
        for (int i = 0; i < 3; i++) execute(session, x, y);
        assert_int_equal(fake->calls("cuGraphLaunch"), 2);
        assert_int_equal(fake->calls("cuStreamUpdateCaptureDependencies"), streams ? 8 + 1 : 0);
        smelt_session_release(session);
    }
    smelt_array_release(x);
    smelt_array_release(y);
}

/* Two steps without elements launch nothing, so both end with exp(x). The step that needs both waits for it
 * once. */
static void branches_may_launch_nothing(void **state) {
    (void)state;
    smelt_array *x, *none, *y;
    smelt_graph *graph = new_graph("empty", 64, &x);
    smelt_array *exps = apply(SMELT_OPERATION_EXP, x, NULL);
    ok(smelt_apply(
        &(smelt_apply_desc){
            .operation = SMELT_OPERATION_SLICE, .inputs = {exps}, .starts = {0}, .stops = {0}, .steps = {1}},
        &none));
    smelt_array *square = apply(SMELT_OPERATION_SQUARE, none, NULL),
                *sine = apply(SMELT_OPERATION_SIN, none, NULL);
    ok(smelt_apply(
        &(smelt_apply_desc){.operation = SMELT_OPERATION_CONCATENATE, .inputs = {square, sine, exps}}, &y));
    smelt_array *arrays[] = {x, exps, none, square, sine};
    for (int i = 0; i < 5; i++) smelt_array_release(arrays[i]);
    smelt_session *session = session_of(graph, y, 4, false);
    smelt_array *from = new_floats(64), *into = new_floats(64);
    fake->forget_calls();
    for (int i = 0; i < 3; i++) execute(session, from, into);
    assert_int_equal(fake->calls("cuGraphLaunch"), 2);
    smelt_session_release(session);
    smelt_array_release(from);
    smelt_array_release(into);
}

int main(void) {
    if (!open_two_gpus()) return 1;
    const struct CMUnitTest tests[] = {
        TEST(the_second_execution_with_the_same_arrays_is_recorded),
        TEST(large_outputs_are_not_copied),
        TEST(recordings_are_few),
        TEST(independent_steps_are_branches_of_a_recording),
        TEST(branches_may_launch_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
