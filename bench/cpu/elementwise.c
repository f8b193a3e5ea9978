/* Elementwise jobs, which memory bounds: exp, and a chain of operations fused into one kernel. */
#include "bench/cpu/cpu.h"
#include "bench/hand/handwritten.h"
#include "bench/kernel_text.h"
#include "bench/cpu/memory.h"
#include "bench/cpu/threads.h"

#include <math.h>

#define GROUP 256

/* ---- exp. */

#define REFERENCE_PIECE 4096

struct exp_job {
    smelt_array *in, *out, *expected;
    smelt_kernel *body;
};

static void expect_exp(void *context, int64_t index) {
    const struct exp_job *job = context;
    int64_t past = (index + 1) * REFERENCE_PIECE;
    for (int64_t i = index * REFERENCE_PIECE; i < past; i++)
        floats(job->expected)[i] = (float)exp((double)floats(job->in)[i]);
}

static smelt_status hand_exp(void *context) {
    const struct exp_job *job = context;
    handwritten()->exp(floats(job->in), floats(job->out), smelt_array_size(job->in));
    return SMELT_OK;
}

static smelt_status measure_copy(void *context, double *seconds) {
    const struct exp_job *job = context;
    double start = bench_now();
    machine_copy(floats(job->in), floats(job->out), smelt_array_size(job->in));
    *seconds = bench_now() - start;
    return SMELT_OK;
}

/* As a kernel body: the output is a new array each time, whose pages are allocated while it is written. */
static smelt_status measure_body(void *context, double *seconds) {
    const struct exp_job *job = context;
    smelt_array *out;
    int64_t count = smelt_array_size(job->in);
    double start = bench_now();
    smelt_status status = smelt_kernel_run(job->body,
                                           &(smelt_run_desc){.inputs = {job->in},
                                                             .grid = {count},
                                                             .threadgroup = {GROUP},
                                                             .output_shapes = {SHAPE_OF(count)},
                                                             .output_dtypes = {SMELT_FLOAT32}},
                                           &out);
    *seconds = bench_now() - start;
    if (status == SMELT_OK) smelt_array_release(out);
    return status;
}

static smelt_status measure_exp(struct bench *bench, const char *name, struct exp_job *job) {
    int64_t count = smelt_array_size(job->in);
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = 8.0 * (double)count,
                              .work_unit = "B",
                              .output = job->out,
                              .expected = job->expected,
                              .tolerance = 1e-6};
    struct standard standard;
    smelt_dispatch_desc desc = {
        .buffers = {{.array = job->in}, {.array = job->out}}, .grid = {count}, .threadgroup = {GROUP}};
    team_run(expect_exp, job, count / REFERENCE_PIECE);
    contest_enter_hand(&contest, HAND_WRITTEN, hand_exp, job, "copy");
    standard_enter(&contest, &standard, "elementwise_exp.metal", kernel_text_elementwise_exp,
                   "elementwise_exp", &desc, "copy", (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.85});
    contest_compare(&contest, SMELT_CPU, HAND_WRITTEN, NO_BAR);
    contest_add(&contest, (struct bench_case){.variant = "smelt cpu, new output",
                                              .anchor = "copy",
                                              .measure = measure_body,
                                              .context = job,
                                              .work = contest.work,
                                              .work_unit = contest.work_unit,
                                              .bar = {BENCH_SPEED_AT_LEAST, 0.85}});
    contest_add(&contest, (struct bench_case){.variant = "copy",
                                              .measure = measure_copy,
                                              .context = job,
                                              .work = contest.work,
                                              .work_unit = contest.work_unit});
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

smelt_status bench_cpu_exp(struct bench *bench, const char *name) {
    int64_t count = bench->quick ? 1 << 16 : 1 << 26;
    struct exp_job job = {0};
    smelt_status status = random_floats(SHAPE_OF(count), 2, -10, 2, &job.in);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(count), &job.out);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(count), &job.expected);
    if (status == SMELT_OK)
        status = smelt_kernel_create(
            &(smelt_kernel_desc){.name = "exp_body",
                                 .source =
                                     "uint i = thread_position_in_grid.x;\nout[i] = metal::exp(inp[i]);\n",
                                 .inputs = {"inp"},
                                 .outputs = {"out"}},
            &job.body);
    if (status == SMELT_OK) status = measure_exp(bench, name, &job);
    smelt_kernel_release(job.body);
    smelt_array_release(job.in);
    smelt_array_release(job.out);
    smelt_array_release(job.expected);
    return status;
}

/* ---- gelu(x * scale + bias) * residual, rows by columns. */

struct chain_job {
    smelt_array *x, *scale, *bias, *residual, *between, *out, *expected;
    int64_t rows, columns;
};

static void expect_chain_row(void *context, int64_t row) {
    const struct chain_job *job = context;
    for (int64_t c = 0, i = row * job->columns; c < job->columns; c++, i++) {
        double x = (double)floats(job->x)[i] * floats(job->scale)[c] + floats(job->bias)[c];
        double gelu = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        floats(job->expected)[i] = (float)(gelu * floats(job->residual)[i]);
    }
}

static smelt_status hand_chain(void *context) {
    const struct chain_job *job = context;
    handwritten()->gelu_chain(floats(job->x), floats(job->scale), floats(job->bias), floats(job->residual),
                              floats(job->out), job->rows, job->columns);
    return SMELT_OK;
}

#define SEPARATE "smelt cpu, four launches"

static smelt_status measure_chain(struct bench *bench, const char *name, struct chain_job *job) {
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = 12.0 * (double)(job->rows * job->columns),
                              .work_unit = "B",
                              .output = job->out,
                              .expected = job->expected,
                              .tolerance = 2e-6};
    smelt_buffer x = {.array = job->x}, scale = {.array = job->scale}, bias = {.array = job->bias},
                 residual = {.array = job->residual}, between = {.array = job->between},
                 out = {.array = job->out};
    smelt_dispatch_desc fused = {.buffers = {x, scale, bias, residual, out}};
    smelt_dispatch_desc steps[4] = {{.buffers = {x, scale, between}},
                                    {.buffers = {between, bias, out}},
                                    {.buffers = {out, between}},
                                    {.buffers = {between, residual, out}}};
    smelt_dispatch_desc *all[5] = {&fused, &steps[0], &steps[1], &steps[2], &steps[3]};
    for (int i = 0; i < 5; i++) {
        all[i]->grid[0] = job->columns;
        all[i]->grid[1] = job->rows;
        all[i]->threadgroup[0] = GROUP;
        all[i]->device = "cpu";
    }
    static const char *const names[] = {"multiply_columns", "add_columns", "gelu_each", "multiply_each"};
    struct standard standard;
    struct launches separate = {0};
    team_run(expect_chain_row, job, job->rows);
    contest_enter_hand(&contest, HAND_WRITTEN, hand_chain, job, NULL);
    standard_enter(&contest, &standard, "gelu_chain.metal", kernel_text_gelu_chain, "gelu_chain", &fused,
                   SEPARATE, NO_BAR);
    contest_compare(&contest, SMELT_CPU, HAND_WRITTEN, NO_BAR);
    for (int i = 0; i < 4 && contest.status == SMELT_OK; i++)
        contest.status =
            launches_add(&separate, "gelu_chain.metal", kernel_text_gelu_chain, names[i], &steps[i]);
    contest_enter(&contest, (struct variant){.name = SEPARATE, .run = launches_run, .context = &separate});
    smelt_status status = contest_run(&contest);
    launches_release(&separate);
    standard_release(&standard);
    return status;
}

smelt_status bench_cpu_chain(struct bench *bench, const char *name) {
    struct chain_job job = {.rows = bench->quick ? 16 : 4096, .columns = 4096};
    smelt_shape shape = SHAPE_OF(job.rows, job.columns), row = SHAPE_OF(job.columns);
    smelt_status status = random_floats(shape, 3, -2, 2, &job.x);
    if (status == SMELT_OK) status = random_floats(row, 4, 0.5, 1.5, &job.scale);
    if (status == SMELT_OK) status = random_floats(row, 5, -1, 1, &job.bias);
    if (status == SMELT_OK) status = random_floats(shape, 6, -1, 1, &job.residual);
    if (status == SMELT_OK) status = new_floats(shape, &job.between);
    if (status == SMELT_OK) status = new_floats(shape, &job.out);
    if (status == SMELT_OK) status = new_floats(shape, &job.expected);
    if (status == SMELT_OK) status = measure_chain(bench, name, &job);
    smelt_array *all[] = {job.x, job.scale, job.bias, job.residual, job.between, job.out, job.expected};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) smelt_array_release(all[i]);
    return status;
}
