/* What the machine can do: memory and arithmetic, on all threads. */
#include "bench/cpu/cpu.h"
#include "bench/hand/handwritten.h"
#include "bench/cpu/memory.h"

struct copy {
    void (*run)(const float *from, float *to, int64_t count);
    smelt_array *from, *to;
};

static smelt_status run_copy(void *context) {
    const struct copy *copy = context;
    copy->run(floats(copy->from), floats(copy->to), smelt_array_size(copy->from));
    return SMELT_OK;
}

/* Seconds a billion multiply-adds take, two operations each. */
static smelt_status measure_multiply_adds(void *context, double *seconds) {
    (void)context;
    double start = bench_now(), done = handwritten()->multiply_adds();
    *seconds = (bench_now() - start) * 1e9 / done;
    return SMELT_OK;
}

static smelt_status measure(struct bench *bench, const char *job, smelt_array *from, smelt_array *to) {
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = job,
                              .work = 8.0 * (double)smelt_array_size(from),
                              .work_unit = "B",
                              .output = to,
                              .expected = from};
    struct copy plain = {machine_copy, from, to}, bypassing = {machine_copy_bypassing, from, to};
    contest_enter(&contest, (struct variant){.name = "copy", .run = run_copy, .context = &plain});
    contest_enter(&contest, (struct variant){.name = "copy, non-temporal",
                                             .run = run_copy,
                                             .context = &bypassing,
                                             .anchor = "copy"});
    if (handwritten_supported())
        contest_add(&contest, (struct bench_case){.variant = "10^9 multiply-adds",
                                                  .measure = measure_multiply_adds,
                                                  .work = 2e9,
                                                  .work_unit = "FLOP"});
    else
        contest_absent(&contest, "10^9 multiply-adds", NOT_BY_HAND);
    return contest_run(&contest);
}

smelt_status bench_cpu_machine(struct bench *bench, const char *job) {
    int64_t count = bench->quick ? 1 << 16 : 1 << 26;
    smelt_array *from = NULL, *to = NULL;
    smelt_status status = random_floats(SHAPE_OF(count), 1, -1, 1, &from);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(count), &to);
    if (status == SMELT_OK) status = measure(bench, job, from, to);
    smelt_array_release(from);
    smelt_array_release(to);
    return status;
}
