/* Graphs whose independent steps run at once: they meet, give the bits of an execution in order, and fail
 * like one. */
#include "graph.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define COUNT 1000
#define CHAINS 6
#define LENGTH 9

static smelt_array *new_input(smelt_graph *graph) {
    smelt_array *value;
    OK(smelt_graph_input(graph, NULL, SMELT_FLOAT32, (smelt_shape){1, {COUNT}}, &value));
    return value;
}

static smelt_session *new_session(smelt_graph *graph, int streams, smelt_compiled_info *info) {
    smelt_compiled *compiled;
    smelt_session *session;
    OK(smelt_graph_compile(graph, &(smelt_compile_desc){.unfused = true, .streams = streams}, &compiled));
    if (info) OK(smelt_compiled_describe(compiled, info));
    OK(smelt_session_create(compiled, NULL, &session));
    smelt_compiled_release(compiled);
    return session;
}

/* ---- Operations that wait for each other. */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int arrived;
} meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

/* Returns once two of them are within: an execution in order would wait for minutes, and fail. */
static smelt_status meet(void *context, const smelt_operation_call *call, smelt_array **outputs) {
    struct timespec end;
    int error = 0;
    (void)context;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 300;
    pthread_mutex_lock(&meeting.lock);
    meeting.arrived++;
    pthread_cond_broadcast(&meeting.changed);
    while (meeting.arrived < 2 && !error)
        error = pthread_cond_timedwait(&meeting.changed, &meeting.lock, &end);
    bool met = meeting.arrived >= 2;
    pthread_mutex_unlock(&meeting.lock);
    if (!met) return fail(SMELT_ERROR_HEALTH, "nobody came");
    outputs[0] = smelt_array_retain(call->inputs[0]);
    return SMELT_OK;
}

static smelt_status refuse(void *context, const smelt_operation_call *call, smelt_array **outputs) {
    (void)context, (void)call, (void)outputs;
    return fail(SMELT_ERROR_HEALTH, "this step refuses");
}

static smelt_array *call_of(const char *name, smelt_array *x) {
    smelt_array *made;
    smelt_type type = {.dtype = SMELT_FLOAT32, .shape = {1, {COUNT}}};
    int count;
    OK(smelt_custom(
        &(smelt_custom_desc){.name = name, .inputs = &x, .input_count = 1, .types = &type, .output_count = 1},
        1, &made, &count));
    return made;
}

static smelt_array *next(smelt_array *x, smelt_operation operation, smelt_array *y) {
    smelt_array *made;
    OK(smelt_apply(&(smelt_apply_desc){.operation = operation, .inputs = {x, y}}, &made));
    smelt_array_release(x);
    return made;
}

static void independent_steps_run_at_once(void **state) {
    (void)state;
    OK(smelt_operation_register(&(smelt_operation_desc){.name = "test_meet", .run = meet, .opaque = true}));
    smelt_graph *graph;
    OK(smelt_graph_create("meeting", &graph));
    smelt_array *x = new_input(graph), *a = call_of("test_meet", x), *b = call_of("test_meet", x), *given,
                *out;
    a = next(a, OP(ADD), b);
    OK(smelt_graph_output(graph, NULL, a));
    smelt_session *session = new_session(graph, 2, NULL);
    given = random_array(SMELT_FLOAT32, (smelt_shape){1, {COUNT}}, CONTIGUOUS, -1, 1);
    for (int run = 0; run < 3; run++) {
        meeting.arrived = 0;
        OK(smelt_session_execute(session, &(smelt_execute_desc){.inputs = &given, .input_count = 1}, &out));
        for (int i = 0; i < COUNT; i++) assert_true(((float *)out->data)[i] == 2 * ((float *)given->data)[i]);
        smelt_array_release(out);
    }
    smelt_session_release(session);
    smelt_array_release(given), smelt_array_release(x), smelt_array_release(a), smelt_array_release(b);
    smelt_graph_release(graph);
}

static void the_failure_of_a_step_is_the_executions(void **state) {
    (void)state;
    OK(smelt_operation_register(
        &(smelt_operation_desc){.name = "test_refuse", .run = refuse, .opaque = true}));
    smelt_graph *graph;
    OK(smelt_graph_create("refusing", &graph));
    smelt_array *x = new_input(graph), *a = call_of("test_refuse", x),
                *b = next(smelt_array_retain(x), OP(EXP), NULL), *given, *out = NULL;
    a = next(a, OP(ADD), b);
    OK(smelt_graph_output(graph, NULL, a));
    smelt_session *session = new_session(graph, 3, NULL);
    given = random_array(SMELT_FLOAT32, (smelt_shape){1, {COUNT}}, CONTIGUOUS, -1, 1);
    assert_int_equal(
        smelt_session_execute(session, &(smelt_execute_desc){.inputs = &given, .input_count = 1}, &out),
        SMELT_ERROR_HEALTH);
    assert_non_null(strstr(smelt_error(), "this step refuses"));
    assert_null(out);
    smelt_session_release(session);
    smelt_compiled *compiled;
    assert_int_equal(smelt_graph_compile(graph, &(smelt_compile_desc){.streams = 65}, &compiled),
                     SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), "graph compile: streams is 65, expected 0 to 64");
    smelt_array_release(given), smelt_array_release(x), smelt_array_release(a), smelt_array_release(b);
    smelt_graph_release(graph);
}

/* ---- Chains that read each other now and then: any wrong order, or buffer given away too early, shows. */

static smelt_graph *new_chains(void) {
    static const smelt_operation operations[] = {OP(SIN), OP(TANH), OP(ADD), OP(MULTIPLY), OP(SUBTRACT)};
    smelt_graph *graph;
    OK(smelt_graph_create("chains", &graph));
    smelt_array *x = new_input(graph), *chains[CHAINS];
    for (int c = 0; c < CHAINS; c++) chains[c] = next(smelt_array_retain(x), operations[c % 2], NULL);
    for (int i = 0; i < LENGTH; i++)
        for (int c = 0; c < CHAINS; c++) {
            smelt_operation operation = operations[random_bits() % 5];
            bool binary = smelt_operation_inputs(operation) == 2;
            chains[c] = next(chains[c], operation,
                             !binary             ? NULL
                             : random_bits() % 4 ? x
                                                 : chains[random_bits() % CHAINS]);
        }
    for (int c = 0; c < CHAINS; c++) {
        OK(smelt_graph_output(graph, NULL, chains[c]));
        smelt_array_release(chains[c]);
    }
    smelt_array_release(x);
    return graph;
}

static void results_have_the_bits_of_an_execution_in_order(void **state) {
    (void)state;
    for (int trial = 0; trial < 10; trial++) {
        smelt_graph *graph = new_chains();
        smelt_compiled_info in_order, at_once;
        smelt_session *one = new_session(graph, 1, &in_order),
                      *many = new_session(graph, 2 + trial % 3, &at_once);
        assert_true(at_once.steps == in_order.steps && at_once.peak_bytes >= in_order.peak_bytes);
        assert_true(at_once.peak_bytes < at_once.total_bytes);
        for (int run = 0; run < 5; run++) {
            smelt_array *given = random_array(SMELT_FLOAT32, (smelt_shape){1, {COUNT}}, CONTIGUOUS, -2, 2);
            smelt_array *want[CHAINS], *got[CHAINS];
            smelt_execute_desc desc = {.inputs = &given, .input_count = 1};
            OK(smelt_session_execute(one, &desc, want));
            OK(smelt_session_execute(many, &desc, got));
            for (int c = 0; c < CHAINS; c++) {
                assert_memory_equal(got[c]->data, want[c]->data, COUNT * sizeof(float));
                smelt_array_release(got[c]), smelt_array_release(want[c]);
            }
            smelt_array_release(given);
        }
        smelt_session_release(one), smelt_session_release(many);
        smelt_graph_release(graph);
    }
}

/* The kernels of all steps are in the file, whatever thread would run them. */
static void it_is_saved_with_all_kernels(void **state) {
    (void)state;
    char path[] = "/tmp/smelt-streams-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    smelt_graph *graph = new_chains();
    smelt_compiled *compiled, *loaded;
    smelt_session *session, *again;
    OK(smelt_graph_compile(graph, &(smelt_compile_desc){.unfused = true, .streams = 3}, &compiled));
    OK(smelt_compiled_save(compiled, path));
    OK(smelt_compiled_load(path, &loaded));
    OK(smelt_session_create(compiled, NULL, &session));
    OK(smelt_session_create(loaded, NULL, &again));
    smelt_array *given = random_array(SMELT_FLOAT32, (smelt_shape){1, {COUNT}}, CONTIGUOUS, -2, 2);
    smelt_array *want[CHAINS], *got[CHAINS];
    OK(smelt_session_execute(session, &(smelt_execute_desc){.inputs = &given, .input_count = 1}, want));
    OK(smelt_session_execute(again, &(smelt_execute_desc){.inputs = &given, .input_count = 1}, got));
    for (int c = 0; c < CHAINS; c++) {
        assert_memory_equal(got[c]->data, want[c]->data, COUNT * sizeof(float));
        smelt_array_release(got[c]), smelt_array_release(want[c]);
    }
    smelt_array_release(given);
    smelt_session_release(session), smelt_session_release(again);
    smelt_compiled_release(compiled), smelt_compiled_release(loaded);
    smelt_graph_release(graph);
    (void)remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(independent_steps_run_at_once),
        cmocka_unit_test(the_failure_of_a_step_is_the_executions),
        cmocka_unit_test(results_have_the_bits_of_an_execution_in_order),
        cmocka_unit_test(it_is_saved_with_all_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
