/* The harness of `smelt bench`: a benchmark has a name and measures cases, which are repeated in turn, so
 * that a change of the machine's speed affects all of them alike. What is found out goes to the caller's
 * function, a result at a time; the harness prints nothing. */
#ifndef SMELT_BENCH_HARNESS_H
#define SMELT_BENCH_HARNESS_H

#include "smelt/smelt.h"

struct bench_result;

/* What the benchmark matmul measures, in words, lists with commas; NULL: the usual. linalg and ops have a
 * device, too. */
struct bench_products {
    const char *sizes, *dtype, *algorithm, *device;
};

/* False: `message` says what is wrong with a word. */
bool bench_matmul_check(const struct bench_products *wanted, char *message, size_t size);

/* One run of benchmarks: the request, and the destination of the results. */
struct bench {
    int repeats;               /* rounds; 0: as many as the job takes by itself */
    bool quick;                /* a trial is enough: small sizes, one round */
    const char *const *wanted; /* the jobs to run, ended by NULL; none: all */
    void (*report)(const struct bench_result *result, void *context);
    void *context;
    void *shared; /* of the benchmark: what its jobs have in common */
    struct bench_products products;
};

/* What a case must reach. */
struct bench_bar {
    enum {
        BENCH_NO_BAR = 0,
        BENCH_TIME_AT_MOST,  /* value times the anchor's time */
        BENCH_SPEED_AT_LEAST /* value times the anchor's speed */
    } kind;
    double value;
};

/* One thing that is timed. */
struct bench_case {
    const char *job;     /* what is done: "cold compile" */
    const char *variant; /* by what or how: "exp kernel" */
    const char
        *anchor; /* what it is compared with, in words: another variant of the same job, or a stated figure
                    ("target"); NULL: nothing */
    double anchor_seconds; /* the stated figure; 0: the median of the variant named by `anchor` */
    /* Does the job once and gives its time. The function times itself, so that preparing costs nothing; for
     * very short jobs it does many and divides. On failure smelt_error() tells. NULL: the figures are those
     * of the case before, compared with something else. */
    smelt_status (*measure)(void *context, double *seconds);
    const char *(*error)(void); /* tells of a failure in place of smelt_error; may be NULL */
    void *context;
    int most_rounds; /* slow cases need not take part in every round; 0: all; 1: one, and not the unrecorded
                        one */
    double work;     /* bytes or operations of the job, for the rate; 0: no rate is shown */
    const char *work_unit;        /* "B" or "FLOP" */
    double elements;              /* of the result; 0: the job has no such number */
    double bytes;                 /* that the job reads and writes at least; 0: unknown */
    const char *peak, *bandwidth; /* the variants whose rates bound this one's; NULL: none */
    struct bench_bar bar;
};

/* What became of a case. */
struct bench_result {
    const char *job, *variant, *anchor;
    double median, spread, anchor_seconds; /* anchor_seconds 0: there is none */
    double work;
    const char *work_unit;
    int rounds;
    double elements, bytes; /* as in bench_case */
    double peak, bandwidth; /* work of those variants per second; 0: there are none */
    struct bench_bar bar;
    const char *note; /* why there are no figures; NULL: there are. Lives as long as the call of `report` */
    smelt_status status; /* of a failure */
};

/* The status of a variant with a wrong result. */
#define BENCH_WRONG_RESULT SMELT_ERROR_FAULT

/* Measures the cases: one unrecorded round, then `repeats` rounds (0: the user's number) of every case in
 * turn, and reports the medians. The names must live until the program ends. A case that fails is reported as
 * failed; the others go on. Fails itself only where it cannot go on. */
smelt_status bench_measure(struct bench *bench, const struct bench_case *cases, int count, int repeats);

/* Reports why there are no figures: a failure, or an unavailable peer or device. */
void bench_fail(struct bench *bench, const char *job, const char *variant, smelt_status status,
                const char *message);
void bench_note(struct bench *bench, const char *job, const char *variant, const char *text);

/* The user's number of rounds; `usual` if not given. */
int bench_repeats(const struct bench *bench, int usual);

/* A job that may be named behind its benchmark. */
struct bench_job {
    const char *name;
    smelt_status (*run)(struct bench *bench, const char *name);
};

struct benchmark {
    const char *name;
    const char *help; /* one line for --help */
    smelt_status (*run)(struct bench *bench);
    const struct bench_job *jobs; /* ended by one without a name; NULL: none */
};

/* Runs those of the jobs that are wanted. One that cannot be set up is reported as failed, with what `error`
 * says; the others go on. */
void bench_run_jobs(struct bench *bench, const struct bench_job *jobs, const char *(*error)(void));

/* The benchmarks there are, each in the folder of its name. */
extern const struct benchmark bench_attention, bench_compile, bench_cpu, bench_gpu, bench_graph, bench_linalg,
    bench_matmul, bench_ml, bench_ops, bench_tensor_ops;

/* The name of the device that linalg and ops measure: "cpu", or the first GPU; NULL: there is none, which a
 * row then says. */
const char *bench_device(struct bench *bench);
bool bench_is_gpu(const char *device);

/* The interpolated quantile of the values, which it sorts. */
double bench_quantile(double *values, int count, double part);

/* The monotonic clock, in seconds. */
double bench_now(void);

#define SHAPE_OF(...) \
    ((smelt_shape){.ndim = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .size = {__VA_ARGS__}})
#define NO_BAR ((struct bench_bar){0})

#endif
