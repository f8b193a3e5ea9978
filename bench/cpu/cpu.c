#include "bench/cpu/cpu.h"
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- Checking. */

#define PIECE (1 << 20)

struct comparison {
    float *actual; /* poisoned by poison_piece */
    const float *expected;
    int64_t count;
    double tolerance, smallest;
    atomic_llong first_wrong; /* the lowest wrong index of a piece; -1: none */
};

static int64_t piece_end(const struct comparison *c, int64_t index) {
    return (index + 1) * PIECE < c->count ? (index + 1) * PIECE : c->count;
}

static void poison_piece(void *context, int64_t index) {
    const struct comparison *c = context;
    for (int64_t i = index * PIECE; i < piece_end(c, index); i++) c->actual[i] = NAN;
}

static void compare_piece(void *context, int64_t index) {
    struct comparison *c = context;
    for (int64_t i = index * PIECE; i < piece_end(c, index); i++) {
        double expected = c->expected[i], size = fmax(fabs(expected), c->smallest);
        if (fabs(c->actual[i] - expected) <= c->tolerance * size) continue; /* NaN is not */
        atomic_store(&c->first_wrong, i);
        return;
    }
}

/* A variant whose check takes longer is timed only once. */
#define SLOW_SECONDS 1.0

static smelt_status check(struct variant *variant, char *message, size_t size) {
    const struct contest *contest = variant->contest;
    double start = bench_now();
    struct comparison c = {.actual = floats(contest->output),
                           .expected = floats(contest->expected),
                           .count = smelt_array_size(contest->output),
                           .tolerance = contest->tolerance,
                           .smallest = contest->smallest > 0 ? contest->smallest : 1,
                           .first_wrong = -1};
    int64_t pieces = (c.count + PIECE - 1) / PIECE;
    team_run(poison_piece, &c, pieces);
    smelt_status status = variant->run(variant->context);
    if (status != SMELT_OK) return status;
    team_run(compare_piece, &c, pieces);
    if (bench_now() - start > SLOW_SECONDS) variant->most_rounds = 1;
    int64_t wrong = atomic_load(&c.first_wrong);
    if (wrong < 0) return SMELT_OK;
    snprintf(message, size, "wrong result: element %lld is %.9g, expected %.9g", (long long)wrong,
             (double)c.actual[wrong], (double)c.expected[wrong]);
    return BENCH_WRONG_RESULT;
}

static smelt_status measure(void *context, double *seconds) {
    const struct variant *variant = context;
    double start = bench_now();
    smelt_status status = variant->run(variant->context);
    *seconds = bench_now() - start;
    return status;
}

const struct contest_device cpu_contest = {
    .rounds = 11, .check = check, .measure = measure, .error = smelt_error};

void contest_enter_hand(struct contest *contest, const char *name, smelt_status (*run)(void *context),
                        void *context, const char *anchor) {
    if (handwritten_supported())
        contest_enter(contest,
                      (struct variant){.name = name, .run = run, .context = context, .anchor = anchor});
    else
        contest_absent(contest, name, NOT_BY_HAND);
}

/* ---- Cold compiles. */

/* Processor time of the child processes that have ended. */
static double children_seconds(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) != 0) return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

smelt_status cold_kernel_measure(void *context, double *seconds) {
    struct cold_kernel *cold = context;
    char text[16384];
    /* One more constant makes both the text and clang's input new. */
    int length = snprintf(text, sizeof text, "%s\nconstant constexpr long cold_%ld_%lld_%u = 0;\n",
                          cold->text, (long)getpid(), (long long)time(NULL), cold->made++);
    if (length < 0 || (size_t)length >= sizeof text) return SMELT_ERROR_LIMIT;
    struct launches launches = {0};
    smelt_run_info info = {0};
    smelt_dispatch_desc desc = cold->desc;
    desc.info = &info;
    desc.device = "cpu";
    smelt_status status = launches_add(&launches, cold->file, text, cold->name, &desc);
    double clang = children_seconds();
    if (status == SMELT_OK) status = launches_run(&launches);
    clang = children_seconds() - clang;
    launches_release(&launches);
    *seconds = info.compile_seconds;
    cold->code_seconds = info.compile_seconds - clang;
    cold->status = status;
    return status;
}

smelt_status cold_kernel_code_measure(void *context, double *seconds) {
    const struct cold_kernel *cold = context;
    *seconds = cold->code_seconds;
    return cold->status;
}

/* ---- What tests of accesses cost: the processor time of all threads, which other processes hardly change.
 */

static double processor_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The minimum of several launches: on a busy machine, other processes evict cached data. */
#define MOST_LAUNCHES 20
#define LAUNCHES_SECONDS 0.2

static smelt_status measure_processor(void *launches, double *seconds) {
    smelt_status status = SMELT_OK;
    double first = processor_seconds();
    *seconds = HUGE_VAL;
    for (int i = 0; i < MOST_LAUNCHES && status == SMELT_OK; i++) {
        double start = processor_seconds();
        if (i && start - first > LAUNCHES_SECONDS) break;
        status = launches_run(launches);
        *seconds = fmin(*seconds, processor_seconds() - start);
    }
    return status;
}

#define UNCHECKED "smelt cpu, unchecked (processor time)"
#define CHECKED "smelt cpu, checked (processor time)"
#define MOST_FOR_CHECKS 1.05

static void enter_tests(struct contest *contest, struct standard *standard) {
    contest_add(contest, (struct bench_case){.variant = UNCHECKED,
                                             .measure = measure_processor,
                                             .context = &standard->unchecked});
    contest_add(contest, (struct bench_case){.variant = CHECKED,
                                             .anchor = UNCHECKED,
                                             .measure = measure_processor,
                                             .context = &standard->simd,
                                             .bar = {BENCH_TIME_AT_MOST, MOST_FOR_CHECKS}});
}

/* ---- The usual rivals. */

#define SCALAR_ROUNDS 3
#define COLD_ROUNDS 5

void standard_enter(struct contest *contest, struct standard *standard, const char *file, const char *text,
                    const char *name, const smelt_dispatch_desc *desc, const char *anchor,
                    struct bench_bar bar) {
    *standard = (struct standard){.cold = {.file = file, .text = text, .name = name, .desc = *desc}};
    smelt_dispatch_desc simd = *desc, scalar = *desc, unchecked = *desc;
    simd.device = unchecked.device = "cpu";
    scalar.device = "cpu-scalar";
    unchecked.unchecked = true;
    if (contest->status == SMELT_OK) contest->status = launches_add(&standard->simd, file, text, name, &simd);
    if (contest->status == SMELT_OK)
        contest->status = launches_add(&standard->scalar, file, text, name, &scalar);
    if (contest->status == SMELT_OK)
        contest->status = launches_add(&standard->unchecked, file, text, name, &unchecked);
    enter_tests(contest, standard);
    contest_enter(contest, (struct variant){.name = SMELT_CPU_SCALAR,
                                            .run = launches_run,
                                            .context = &standard->scalar,
                                            .most_rounds = SCALAR_ROUNDS});
    contest_add(contest, (struct bench_case){.variant = "cold compile, with clang",
                                             .measure = cold_kernel_measure,
                                             .context = &standard->cold,
                                             .most_rounds = COLD_ROUNDS});
    contest_add(contest, (struct bench_case){.variant = "cold compile, without",
                                             .anchor = "60 ms",
                                             .anchor_seconds = 0.06,
                                             .measure = cold_kernel_code_measure,
                                             .context = &standard->cold,
                                             .most_rounds = COLD_ROUNDS,
                                             .bar = {BENCH_TIME_AT_MOST, 1}});
    contest_enter(contest, (struct variant){.name = SMELT_CPU,
                                            .run = launches_run,
                                            .context = &standard->simd,
                                            .anchor = anchor,
                                            .bar = bar});
}

void standard_release(struct standard *standard) {
    launches_release(&standard->simd);
    launches_release(&standard->scalar);
    launches_release(&standard->unchecked);
}

/* ---- Arrays. */

smelt_status new_floats(smelt_shape shape, smelt_array **array) {
    return smelt_array_create(SMELT_FLOAT32, shape, array);
}

struct scaling {
    float *values;
    int64_t count;
    float low, range;
};

static void scale_piece(void *context, int64_t index) {
    const struct scaling *s = context;
    int64_t past = (index + 1) * PIECE < s->count ? (index + 1) * PIECE : s->count;
    for (int64_t i = index * PIECE; i < past; i++) s->values[i] = s->low + s->range * s->values[i];
}

smelt_status random_floats(smelt_shape shape, uint64_t seed, double low, double high, smelt_array **array) {
    smelt_status status = smelt_array_uniform(SMELT_FLOAT32, shape, seed, array);
    if (status != SMELT_OK) return status;
    struct scaling s = {floats(*array), smelt_array_size(*array), (float)low, (float)(high - low)};
    team_run(scale_piece, &s, (s.count + PIECE - 1) / PIECE);
    return SMELT_OK;
}
