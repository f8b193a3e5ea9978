/* smelt bench graph: compiled graphs. A chain of elementwise nodes that is one kernel, next to a copy of its
 * bytes; executions of many small nodes, next to the same launches in a recording. */
#include "bench/cpu/cpu.h"
#include "bench/cpu/memory.h"
#include "bench/graph/graph.h"
#include "smelt/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is timed: by the device's clock where it has one. */

struct timed {
    const char *device;
    smelt_event *start, *end; /* NULL: on a CPU */
    int count;                /* runs of one measurement */
    smelt_status (*run)(void *context);
    void *context;
};

static smelt_status measure(void *context, double *seconds) {
    const struct timed *t = context;
    double begin = bench_now(), all = 0;
    smelt_status status = t->start ? smelt_event_record(t->start, NULL) : SMELT_OK;
    for (int i = 0; i < t->count && status == SMELT_OK; i++) status = t->run(t->context);
    if (status == SMELT_OK && t->end) status = smelt_event_record(t->end, NULL);
    if (status == SMELT_OK && t->end) status = smelt_event_seconds(t->start, t->end, &all);
    *seconds = (t->start ? all : bench_now() - begin) / t->count;
    return status;
}

/* ---- Graphs. */

struct run {
    smelt_session *session;
    smelt_array *input, *into;
};

static smelt_status run_session(void *context) {
    const struct run *run = context;
    smelt_array *output;
    smelt_execute_desc desc = {.inputs = (smelt_array *const *)&run->input,
                               .input_count = 1,
                               .into = (smelt_array *const *)&run->into};
    smelt_status status = smelt_session_execute(run->session, &desc, &output);
    if (status == SMELT_OK) smelt_array_release(output);
    return status;
}

/* value = operation(value, number). */
static smelt_status step(smelt_array **value, smelt_operation operation, double number) {
    smelt_apply_desc desc = {.operation = operation, .inputs = {*value}, .weak = 2};
    smelt_array *next, *scalar = NULL;
    smelt_status status = SMELT_OK;
    if (smelt_operation_inputs(operation) == 2)
        status = smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){.ndim = 0}, &number, &scalar);
    desc.inputs[1] = scalar;
    if (status == SMELT_OK) status = smelt_apply(&desc, &next);
    smelt_array_release(scalar);
    if (status != SMELT_OK) return status;
    smelt_array_release(*value);
    *value = next;
    return SMELT_OK;
}

/* |max(2 x + 1, 0.5) 3 - 4| */
static const struct {
    smelt_operation operation;
    double number;
} chain[] = {{SMELT_OPERATION_MULTIPLY, 2}, {SMELT_OPERATION_ADD, 1},      {SMELT_OPERATION_MAXIMUM, 0.5},
             {SMELT_OPERATION_MULTIPLY, 3}, {SMELT_OPERATION_SUBTRACT, 4}, {SMELT_OPERATION_ABS, 0}};
#define CHAIN (int)(sizeof chain / sizeof *chain)

/* `steps` of the chain, again and again. */
static smelt_status create_session(const char *device, int64_t count, int steps, bool unfused,
                                   bool no_recording, smelt_session **session) {
    smelt_graph *graph = NULL;
    smelt_array *value = NULL;
    smelt_compiled *compiled = NULL;
    smelt_status status = smelt_graph_create("chain", &graph);
    if (status == SMELT_OK) status = smelt_graph_input(graph, "x", SMELT_FLOAT32, SHAPE_OF(count), &value);
    for (int i = 0; i < steps && status == SMELT_OK; i++)
        status = step(&value, chain[i % CHAIN].operation, chain[i % CHAIN].number);
    if (status == SMELT_OK) status = smelt_graph_output(graph, "y", value);
    if (status == SMELT_OK)
        status = smelt_graph_compile(graph, &(smelt_compile_desc){.device = device, .unfused = unfused},
                                     &compiled);
    if (status == SMELT_OK)
        status = smelt_session_create(compiled, &(smelt_session_desc){.no_recording = no_recording}, session);
    smelt_array_release(value);
    smelt_compiled_release(compiled);
    smelt_graph_release(graph);
    return status;
}

static float expect(float x, int steps) {
    for (int i = 0; i < steps; i++) {
        float number = (float)chain[i % CHAIN].number;
        switch (chain[i % CHAIN].operation) {
        case SMELT_OPERATION_MULTIPLY:
            x = x * number;
            break;
        case SMELT_OPERATION_ADD:
            x = x + number;
            break;
        case SMELT_OPERATION_SUBTRACT:
            x = x - number;
            break;
        case SMELT_OPERATION_MAXIMUM:
            x = x > number ? x : number;
            break;
        default:
            x = fabsf(x);
        }
    }
    return x;
}

/* The result of each variant, computed into poisoned memory. */
static smelt_status check(const struct run *run, int steps, const char *device) {
    smelt_array *x = NULL, *y = NULL;
    smelt_status status = smelt_array_fill(run->into, NAN);
    /* Twice more than it takes until an execution is a replay. */
    for (int i = 0; i < 4 && status == SMELT_OK; i++) status = run_session((void *)run);
    if (status == SMELT_OK) status = smelt_array_to(run->input, "cpu", NULL, &x);
    if (status == SMELT_OK) status = smelt_array_to(run->into, "cpu", NULL, &y);
    bool right = status == SMELT_OK;
    for (int64_t i = 0; right && i < smelt_array_size(x); i++)
        right = floats(y)[i] == expect(floats(x)[i], steps);
    (void)device;
    smelt_array_release(x);
    smelt_array_release(y);
    return status == SMELT_OK && !right ? BENCH_WRONG_RESULT : status;
}

/* ---- Peers. */

struct copies {
    smelt_array *from, *to;
};

static smelt_status run_copy(void *context) {
    const struct copies *copies = context;
    if (strcmp(smelt_array_device(copies->from), "cpu") != 0)
        return smelt_array_copy(copies->to, copies->from);
    machine_copy(floats(copies->from), floats(copies->to), smelt_array_size(copies->from));
    return SMELT_OK;
}

static smelt_status run_recording(void *context) {
    return smelt_recording_replay(context, NULL);
}

/* The same steps as launches of smelt_apply, recorded without a graph. */
static smelt_status record_steps(const char *device, smelt_array *input, int steps,
                                 smelt_recording **recording) {
    smelt_stream *stream;
    smelt_array *value = smelt_array_retain(input);
    smelt_status status = smelt_stream_create(device, &stream);
    if (status == SMELT_OK) status = smelt_stream_record_begin(stream);
    for (int i = 0; i < steps && status == SMELT_OK; i++) {
        double number = chain[i % CHAIN].number;
        smelt_array *scalar, *next = NULL;
        status = smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){.ndim = 0}, &number, &scalar);
        smelt_apply_desc desc = {
            .operation = chain[i % CHAIN].operation, .inputs = {value}, .weak = 2, .stream = stream};
        if (smelt_operation_inputs(desc.operation) == 2) desc.inputs[1] = scalar;
        if (status == SMELT_OK) status = smelt_apply(&desc, &next);
        if (status == SMELT_OK) smelt_array_release(value);
        if (status == SMELT_OK) value = next;
        smelt_array_release(scalar);
    }
    if (status == SMELT_OK) status = smelt_stream_record_end(stream, recording);
    smelt_array_release(value);
    smelt_stream_release(stream);
    return status;
}

/* ---- Jobs. */

static const char *gpu(void) {
    const char *name, *reason;
    for (int i = 0; (name = smelt_device_name(i, &reason)); i++)
        if (strncmp(name, "cuda", 4) == 0 && !*reason) return name;
    return NULL;
}

static smelt_status create_arrays(const char *device, int64_t count, struct run *run) {
    smelt_array *host = NULL;
    smelt_status status = smelt_array_normal(SMELT_FLOAT32, SHAPE_OF(count), 1, &host);
    if (status == SMELT_OK) status = smelt_array_to(host, device, NULL, &run->input);
    if (status == SMELT_OK)
        status = smelt_array_create_on(device, SMELT_FLOAT32, SHAPE_OF(count), &run->into);
    smelt_array_release(host);
    return status;
}

static smelt_status create_events(const char *device, struct timed *timed, int count) {
    timed->device = device;
    timed->count = count;
    if (strncmp(device, "cpu", 3) == 0) return SMELT_OK;
    smelt_status status = smelt_event_create(device, &timed->start);
    return status == SMELT_OK ? smelt_event_create(device, &timed->end) : status;
}

static smelt_status time_chain(struct bench *bench, const char *name, const char *device) {
    bool host = strcmp(device, "cpu") == 0;
    int64_t count = bench->quick ? 1 << 16 : 1 << 26;
    struct run fused = {0}, unfused = {0};
    struct timed base = {0};
    smelt_status status = create_events(device, &base, host ? 1 : 10);
    if (status == SMELT_OK) status = create_arrays(device, count, &fused);
    unfused = fused;
    if (status == SMELT_OK) status = create_session(device, count, CHAIN, false, false, &fused.session);
    if (status == SMELT_OK) status = create_session(device, count, CHAIN, true, false, &unfused.session);
    if (status == SMELT_OK) status = check(&fused, CHAIN, device);
    if (status == SMELT_OK) status = check(&unfused, CHAIN, device);
    struct copies copies = {fused.input, fused.into};
    struct timed sides[3] = {base, base, base};
    sides[0].run = run_copy;
    sides[0].context = &copies;
    sides[1].run = sides[2].run = run_session;
    sides[1].context = &fused;
    sides[2].context = &unfused;
    double bytes = 8.0 * (double)count;
    struct bench_case cases[] = {
        {.job = name, .variant = host ? "copy" : "copy on the GPU", .measure = measure, .context = &sides[0]},
        {.job = name,
         .variant = host ? "fused" : "fused on the GPU",
         .anchor = host ? "copy" : "copy on the GPU",
         .measure = measure,
         .context = &sides[1],
         .bar = {BENCH_SPEED_AT_LEAST, host ? 0.85 : 0.9}},
        {.job = name,
         .variant = host ? "unfused" : "unfused on the GPU",
         .anchor = host ? "fused" : "fused on the GPU",
         .measure = measure,
         .context = &sides[2]}};
    for (int i = 0; i < 3; i++) {
        cases[i].work = bytes;
        cases[i].work_unit = "B";
    }
    if (status == SMELT_OK) status = bench_measure(bench, cases, 3, bench_repeats(bench, 11));
    smelt_session_release(fused.session);
    smelt_session_release(unfused.session);
    smelt_array_release(fused.input);
    smelt_array_release(fused.into);
    smelt_event_release(base.start);
    smelt_event_release(base.end);
    return status;
}

static smelt_status bench_chain(struct bench *bench, const char *name) {
    smelt_status status = time_chain(bench, name, "cpu");
    if (status != SMELT_OK) return status;
    const char *device = gpu();
    if (device) return time_chain(bench, name, device);
    bench_note(bench, name, "fused on the GPU", "there is no GPU");
    return SMELT_OK;
}

#define SMALL_NODES 100
#define SMALL_SIZE 4096

static smelt_status time_nodes(struct bench *bench, const char *name, const char *device) {
    struct run replayed = {0}, enqueued = {0};
    struct timed base = {0};
    smelt_recording *recording = NULL;
    smelt_status status = create_events(device, &base, bench->quick ? 2 : 50);
    if (status == SMELT_OK) status = create_arrays(device, SMALL_SIZE, &replayed);
    enqueued = replayed;
    if (status == SMELT_OK)
        status = create_session(device, SMALL_SIZE, SMALL_NODES, true, false, &replayed.session);
    if (status == SMELT_OK)
        status = create_session(device, SMALL_SIZE, SMALL_NODES, true, true, &enqueued.session);
    if (status == SMELT_OK) status = check(&replayed, SMALL_NODES, device);
    if (status == SMELT_OK) status = check(&enqueued, SMALL_NODES, device);
    if (status == SMELT_OK) status = record_steps(device, replayed.input, SMALL_NODES, &recording);
    struct timed sides[3] = {base, base, base};
    sides[0].run = run_recording;
    sides[0].context = recording;
    sides[1].run = sides[2].run = run_session;
    sides[1].context = &replayed;
    sides[2].context = &enqueued;
    struct bench_case cases[] = {
        {.job = name, .variant = "bare recording", .measure = measure, .context = &sides[0]},
        {.job = name,
         .variant = "session",
         .anchor = "bare recording",
         .measure = measure,
         .context = &sides[1],
         .bar = {BENCH_TIME_AT_MOST, 1.1}},
        {.job = name,
         .variant = "session, not recorded",
         .anchor = "session",
         .measure = measure,
         .context = &sides[2]}};
    if (status == SMELT_OK) status = bench_measure(bench, cases, 3, bench_repeats(bench, 11));
    smelt_recording_release(recording);
    smelt_session_release(replayed.session);
    smelt_session_release(enqueued.session);
    smelt_array_release(replayed.input);
    smelt_array_release(replayed.into);
    smelt_event_release(base.start);
    smelt_event_release(base.end);
    return status;
}

static smelt_status bench_nodes(struct bench *bench, const char *name) {
    const char *device = gpu();
    if (device) return time_nodes(bench, name, device);
    bench_note(bench, name, "session", "there is no GPU");
    return SMELT_OK;
}

static const struct bench_job jobs[] = {{"elementwise-chain", bench_chain},
                                        {"chain-small", bench_graph_chain},
                                        {"chain-middle", bench_graph_chain},
                                        {"chain-float16", bench_graph_chain},
                                        {"chain-bfloat16", bench_graph_chain},
                                        {"chain-row", bench_graph_chain},
                                        {"chain-column", bench_graph_chain},
                                        {"small-nodes", bench_nodes},
                                        {0}};

static smelt_status run(struct bench *bench) {
    cpu_start_threads();
    bench_run_jobs(bench, jobs, smelt_error);
    return SMELT_OK;
}

const struct benchmark bench_graph = {
    .name = "graph",
    .help = "compiled graphs: a fused chain next to a copy, small nodes next to a bare recording",
    .run = run,
    .jobs = jobs,
};
