/* Fused chains of elementwise nodes on the CPU, of several sizes, dtypes and broadcasts, beside copies of as
 * many bytes: |max(2 x + b, 0.5) 3 - b|, where b is a number, or an array of one row or one column. */
#include "bench/cpu/cpu.h"
#include "bench/cpu/memory.h"
#include "bench/graph/graph.h"
#include "smelt/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS 1024

static const struct job {
    const char *name;
    smelt_dtype dtype;
    int64_t rows;
    enum { NUMBER, ROW, COLUMN } b;
} jobs[] = {
    {"chain-small", SMELT_FLOAT32, 1 << 8, NUMBER},    {"chain-middle", SMELT_FLOAT32, 1 << 12, NUMBER},
    {"chain-float16", SMELT_FLOAT16, 1 << 14, NUMBER}, {"chain-bfloat16", SMELT_BFLOAT16, 1 << 14, NUMBER},
    {"chain-row", SMELT_FLOAT32, 1 << 14, ROW},        {"chain-column", SMELT_FLOAT32, 1 << 14, COLUMN},
};

struct chain {
    const struct job *job;
    smelt_array *inputs[2], *into;
    smelt_array *from, *to; /* of the copy */
    smelt_session *session;
};

static int inputs_of(const struct job *job) {
    return job->b == NUMBER
    ? 1 : 2;
}

/* ---- The graph. */

static smelt_status apply(smelt_operation operation, smelt_array *x, smelt_array *y, double number,
                          smelt_array **out) {
    smelt_array *scalar = NULL;
    smelt_apply_desc desc = {.operation = operation, .inputs = {x, y}};
    smelt_status status = SMELT_OK;
    if (!y && smelt_operation_inputs(operation) == 2) {
        status = smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){.ndim = 0}, &number, &scalar);
        desc.inputs[1] = scalar;
        desc.weak = 2;
    }
    if (status == SMELT_OK) status = smelt_apply(&desc, out);
    smelt_array_release(scalar);
    return status;
}

static smelt_status build(smelt_array *x, smelt_array *b, smelt_array **result) {
    const struct {
        smelt_operation operation;
        bool with_b;
        double number;
    } nodes[] = {{SMELT_OPERATION_MULTIPLY, false, 2},  {SMELT_OPERATION_ADD, true, 1},
                 {SMELT_OPERATION_MAXIMUM, false, 0.5}, {SMELT_OPERATION_MULTIPLY, false, 3},
                 {SMELT_OPERATION_SUBTRACT, true, 1},   {SMELT_OPERATION_ABS, false, 0}};
    smelt_array *value = smelt_array_retain(x);
    smelt_status status = SMELT_OK;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes && status == SMELT_OK; i++) {
        smelt_array *next = NULL;
        status = apply(nodes[i].operation, value, nodes[i].with_b ? b : NULL, nodes[i].number, &next);
        smelt_array_release(value);
        value = next;
    }
    *result = value;
    return status;
}

static smelt_status create_session(struct chain *chain) {
    smelt_graph *graph = NULL;
    smelt_array *values[2] = {0}, *result = NULL;
    smelt_compiled *compiled = NULL;
    smelt_status status = smelt_graph_create("chain", &graph);
    for (int i = 0; i < inputs_of(chain->job) && status == SMELT_OK; i++)
        status = smelt_graph_input(graph, NULL, chain->job->dtype, smelt_array_shape(chain->inputs[i]),
                                   &values[i]);
    if (status == SMELT_OK) status = build(values[0], values[1], &result);
    if (status == SMELT_OK) status = smelt_graph_output(graph, NULL, result);
    if (status == SMELT_OK) status = smelt_graph_compile(graph, NULL, &compiled);
    if (status == SMELT_OK) status = smelt_session_create(compiled, NULL, &chain->session);
    smelt_array_release(result);
    smelt_array_release(values[0]);
    smelt_array_release(values[1]);
    smelt_compiled_release(compiled);
    smelt_graph_release(graph);
    return status;
}

/* ---- Arrays, check, times. */

static smelt_status create_input(const struct job *job, smelt_shape shape, uint64_t seed, smelt_array **out) {
    smelt_array *wide;
    smelt_status status = random_floats(shape, seed, -2, 2, &wide);
    if (status != SMELT_OK) return status;
    status = smelt_array_convert(wide, job->dtype, out);
    smelt_array_release(wide);
    return status;
}

static smelt_status create_arrays(struct chain *chain, int64_t rows) {
    const struct job *job = chain->job;
    int64_t floats_copied = rows * COLUMNS * (int64_t)smelt_dtype_bytes(job->dtype) / 4;
    smelt_status status = create_input(job, SHAPE_OF(rows, COLUMNS), 1, &chain->inputs[0]);
    if (status == SMELT_OK && job->b == ROW)
        status = create_input(job, SHAPE_OF(COLUMNS), 2, &chain->inputs[1]);
    if (status == SMELT_OK && job->b == COLUMN)
        status = create_input(job, SHAPE_OF(rows, 1), 2, &chain->inputs[1]);
    if (status == SMELT_OK) status = smelt_array_create(job->dtype, SHAPE_OF(rows, COLUMNS), &chain->into);
    if (status == SMELT_OK) status = random_floats(SHAPE_OF(floats_copied), 3, -1, 1, &chain->from);
    return status == SMELT_OK ? random_floats(SHAPE_OF(floats_copied), 4, -1, 1, &chain->to) : status;
}

static void release(struct chain *chain) {
    smelt_array *const arrays[] = {chain->inputs[0], chain->inputs[1], chain->into, chain->from, chain->to};
    for (int i = 0; i < 5; i++) smelt_array_release(arrays[i]);
    smelt_session_release(chain->session);
}

static smelt_status run(const struct chain *chain) {
    smelt_array *out;
    smelt_status status =
        smelt_session_execute(chain->session,
                              &(smelt_execute_desc){.inputs = chain->inputs,
                                                    .input_count = inputs_of(chain->job),
                                                    .into = (smelt_array *const *)&chain->into},
                              &out);
    if (status == SMELT_OK) smelt_array_release(out);
    return status;
}

static smelt_status measure_chain(void *context, double *seconds) {
    double start = bench_now();
    smelt_status status = run(context);
    *seconds = bench_now() - start;
    return status;
}

static smelt_status measure_copy(void *context, double *seconds) {
    const struct chain *chain = context;
    double start = bench_now();
    machine_copy(floats(chain->from), floats(chain->to), smelt_array_size(chain->from));
    *seconds = bench_now() - start;
    return SMELT_OK;
}

/* Into poisoned memory, against the formula in double: four nodes round. */
static smelt_status check(struct bench *bench, const struct chain *chain) {
    smelt_array *wide[3] = {0};
    double epsilon = chain->job->dtype == SMELT_FLOAT16    ? 0x1p-11
                     : chain->job->dtype == SMELT_BFLOAT16 ? 0x1p-8
                                                           : 0x1p-24;
    smelt_status status = smelt_array_fill(chain->into, NAN);
    if (status == SMELT_OK) status = run(chain);
    if (status == SMELT_OK) status = smelt_array_convert(chain->into, SMELT_FLOAT64, &wide[2]);
    for (int i = 0; i < inputs_of(chain->job) && status == SMELT_OK; i++)
        status = smelt_array_convert(chain->inputs[i], SMELT_FLOAT64, &wide[i]);
    for (int64_t i = 0; status == SMELT_OK && i < smelt_array_size(wide[0]); i++) {
        const double *x = smelt_array_data(wide[0]), *b = wide[1] ? smelt_array_data(wide[1]) : NULL;
        double number = !b ? 1 : b[chain->job->b == ROW ? i % COLUMNS : i / COLUMNS];
        double want = fabs(fmax(2 * x[i] + number, 0.5) * 3 - number),
               got = ((double *)smelt_array_data(wide[2]))[i];
        if (fabs(got - want) <= 64 * epsilon) continue;
        bench_fail(bench, chain->job->name, "fused", BENCH_WRONG_RESULT, "the result differs from float64");
        status = BENCH_WRONG_RESULT;
    }
    for (int i = 0; i < 3; i++) smelt_array_release(wide[i]);
    return status;
}

smelt_status bench_graph_chain(struct bench *bench, const char *name) {
    struct chain chain = {.job = jobs};
    while (strcmp(chain.job->name, name) != 0) chain.job++;
    smelt_status status = create_arrays(&chain, bench->quick ? 16 : chain.job->rows);
    if (status == SMELT_OK) status = create_session(&chain);
    if (status == SMELT_OK) status = check(bench, &chain);
    double bytes = 8.0 * (double)smelt_array_size(chain.from);
    struct bench_case cases[] = {{.job = name,
                                  .variant = "copy",
                                  .measure = measure_copy,
                                  .context = &chain,
                                  .work = bytes,
                                  .work_unit = "B"},
                                 {.job = name,
                                  .variant = "fused",
                                  .anchor = "copy",
                                  .measure = measure_chain,
                                  .context = &chain,
                                  .bar = {BENCH_SPEED_AT_LEAST, 0.85},
                                  .work = bytes,
                                  .work_unit = "B"}};
    if (status == SMELT_OK) status = bench_measure(bench, cases, 2, bench_repeats(bench, 21));
    release(&chain);
    return status == BENCH_WRONG_RESULT ? SMELT_OK : status; /* it is reported */
}
