/* smelt bench cpu: what its jobs share. A job is a contest: several variants do the same work into the same
 * output. Each is checked against one expectation before any is timed. */
#ifndef SMELT_BENCH_CPU_CONTEST_H
#define SMELT_BENCH_CPU_CONTEST_H

#include "bench/harness.h"

#define MAX_VARIANTS 12

#define SMELT_CPU "smelt cpu"
#define SMELT_CPU_SCALAR "smelt cpu-scalar"
#define HAND_WRITTEN "hand-written"
#define MAX_LAUNCHES 4

/* Launches that together do the job, one after another, through the public API. */
struct launches {
    smelt_function *functions[MAX_LAUNCHES];
    smelt_dispatch_desc descs[MAX_LAUNCHES];
    int count;
};

struct contest;

struct variant {
    const char *name;
    /* Does the job once; fails like a call of the library. */
    smelt_status (*run)(void *context);
    void *context;
    const char *anchor; /* the variant it is compared with; NULL: none */
    struct bench_bar bar;
    int most_rounds; /* 0: all */
};

struct contest {
    struct bench *bench;
    const char *job;
    double work; /* as in struct bench_case */
    const char *work_unit;
    smelt_array *output;         /* float32: where every variant puts its result */
    const smelt_array *expected; /* float32, the same shape */
    double tolerance;            /* relative … */
    double smallest;             /* … to values of at least this size; 0: 1 */
    int repeats;
    /* Filled by the functions below. */
    smelt_status status; /* of what the contest itself needs */
    struct variant variants[MAX_VARIANTS];
    struct bench_case cases[2 * MAX_VARIANTS];
    int count, case_count;
};

/* Runs the variant into poisoned output and compares; if it is right, it takes part, else it is recorded as
 * failed. `variant.context` must live until contest_run. */
void contest_enter(struct contest *contest, struct variant variant);

/* Enters hand-written code, where this CPU has AVX-512; else a row says that it has not. */
void contest_enter_hand(struct contest *contest, const char *name, smelt_status (*run)(void *context),
                        void *context, const char *anchor);

/* The figures of the variant entered last once more, compared with another one. Nothing if it failed. */
void contest_compare(struct contest *contest, const char *variant, const char *anchor, struct bench_bar bar);

/* A case that is no rival: it is timed in the same rounds, but has no output. */
void contest_add(struct contest *contest, struct bench_case one);

/* Records why a variant does not take part. */
void contest_absent(struct contest *contest, const char *variant, const char *why);

/* Times all that were entered. */
smelt_status contest_run(struct contest *contest);

/* ---- What jobs are made of. */

/* The text's kernel functions of these names (ended by NULL), launched in order on `device` with the
 * descriptors at `descs`. launches_release is due in any case. */
smelt_status launches_create(const char *file, const char *text, const char *const *names,
                             const smelt_dispatch_desc *descs, const char *device, struct launches *launches);
void launches_release(struct launches *launches);
smelt_status launches_run(void *launches); /* a variant's run */

/* A kernel text that is compiled anew at each call, launched with its descriptor. */
struct cold_kernel {
    const char *file, *text, *name;
    smelt_dispatch_desc desc;
    unsigned made;
    /* Of the last compile. */
    double code_seconds;
    smelt_status status;
};

/* A case's measure: the seconds from text no cache has seen to code (clang, passes, code generation,
 * loading). */
smelt_status cold_kernel_measure(void *cold_kernel, double *seconds);

/* The part of the compile measured last that is not clang's: its seconds less the processor time of child
 * processes. So it holds what starting and waiting for clang takes beside, and is more on busy machines. */
smelt_status cold_kernel_code_measure(void *cold_kernel, double *seconds);

/* The usual rivals of one kernel: smelt's engines, entered as "smelt cpu" and "smelt cpu-scalar", and its
 * cold compile. `standard` must live until contest_run; it is released with standard_release. */
struct standard {
    struct launches simd, scalar;
    struct cold_kernel cold;
};
void standard_enter(struct contest *contest, struct standard *standard, const char *file, const char *text,
                    const char *name, const smelt_dispatch_desc *desc, const char *anchor,
                    struct bench_bar bar);
void standard_release(struct standard *standard);

/* float32 arrays of this shape: undefined; uniform in [low, high). */
smelt_status new_floats(smelt_shape shape, smelt_array **array);
smelt_status random_floats(smelt_shape shape, uint64_t seed, double low, double high, smelt_array **array);

static inline float *floats(const smelt_array *array) {
    return smelt_array_data(array);
}

#define NO_AVX512 "this CPU has no AVX-512"

/* ---- The jobs, each in a file of its kind. */
smelt_status bench_cpu_exp(struct bench *bench, const char *job);
smelt_status bench_cpu_chain(struct bench *bench, const char *job);
smelt_status bench_cpu_machine(struct bench *bench, const char *job);
smelt_status bench_cpu_softmax_tree(struct bench *bench, const char *job);
smelt_status bench_cpu_softmax_simd(struct bench *bench, const char *job);
smelt_status bench_cpu_matmul_tiled(struct bench *bench, const char *job);
smelt_status bench_cpu_matmul_register(struct bench *bench, const char *job);
smelt_status bench_cpu_matmul_simdgroup(struct bench *bench, const char *job);
smelt_status bench_cpu_inverse(struct bench *bench, const char *job);
smelt_status bench_cpu_grid_sample(struct bench *bench, const char *job);
smelt_status bench_cpu_divergent(struct bench *bench, const char *job);
smelt_status bench_cpu_launch(struct bench *bench, const char *job);

#endif
