/* A loop whose length depends on the data, with branches inside and an early return. */
#include "bench/cpu/cpu.h"
#include "bench/kernel_text.h"
#include "bench/cpu/threads.h"

#define GROUP 256
#define PIECE 1024

struct divergent_job {
    smelt_array *in, *out, *expected;
};

/* The kernel's own arithmetic: whether a loop ends may hang on the last bit. */
static float expect_one(float c) {
    float a = 0;
    int k = 0;
    for (; a < 4.0f && k < 100; k++) {
        if (c > 0.5f) {
            a = __builtin_fmaf(a, a, c);
            if (a > 2.0f) a = __builtin_fmaf(c, 0.5f, a);
        } else {
            a = __builtin_fmaf(a, 0.5f, 0.1f * (float)k);
            if (k > 20 && c < -0.5f) return -a;
        }
    }
    return a + (float)k;
}

static void expect_piece(void *context, int64_t index) {
    const struct divergent_job *job = context;
    for (int64_t i = index * PIECE; i < (index + 1) * PIECE; i++)
        floats(job->expected)[i] = expect_one(floats(job->in)[i]);
}

static smelt_status measure(struct bench *bench, const char *name, struct divergent_job *job) {
    uint32_t count = (uint32_t)smelt_array_size(job->in);
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .output = job->out,
                              .expected = job->expected,
                              .tolerance = 1e-5};
    smelt_dispatch_desc desc = {
        .buffers = {{.array = job->in}, {.array = job->out}, {.bytes = &count, .size = sizeof count}},
        .grid = {count},
        .threadgroup = {GROUP}};
    struct standard standard;
    team_run(expect_piece, job, count / PIECE);
    standard_enter(&contest, &standard, "divergent.metal", kernel_text_divergent, "divergent", &desc,
                   SMELT_CPU_SCALAR, (struct bench_bar){BENCH_SPEED_AT_LEAST, 3});
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

smelt_status bench_cpu_divergent(struct bench *bench, const char *name) {
    int64_t count = bench->quick ? 1 << 12 : 1 << 20;
    struct divergent_job job = {0};
    smelt_status status = random_floats(SHAPE_OF(count), 13, -1, 1, &job.in);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(count), &job.out);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(count), &job.expected);
    if (status == SMELT_OK) status = measure(bench, name, &job);
    smelt_array_release(job.in);
    smelt_array_release(job.out);
    smelt_array_release(job.expected);
    return status;
}
