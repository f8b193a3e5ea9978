/* smelt bench cpu: shared by its jobs. Its contests are checked against a reference computed on the host. */
#ifndef SMELT_BENCH_CPU_CPU_H
#define SMELT_BENCH_CPU_CPU_H

#include "bench/contest.h"

#define SMELT_CPU "smelt cpu"
#define SMELT_CPU_SCALAR "smelt cpu-scalar"
#define HAND_WRITTEN "hand-written"

extern const struct contest_device cpu_contest;

/* Enters hand-written code if this CPU has AVX-512; otherwise a row says that it lacks it. */
void contest_enter_hand(struct contest *contest, const char *name, smelt_status (*run)(void *context),
                        void *context, const char *anchor);

/* ---- Parts of jobs. */

/* A kernel text that is compiled anew at each call, launched with its descriptor. */
struct cold_kernel {
    const char *file, *text, *name;
    smelt_dispatch_desc desc;
    unsigned made;
    /* Of the last compile. */
    double code_seconds;
    smelt_status status;
};

/* A case's measure: the seconds from text that is in no cache to code (clang, passes, code generation,
 * loading). */
smelt_status cold_kernel_measure(void *cold_kernel, double *seconds);

/* The last measured compile without clang: its seconds minus the processor time of child processes. This
 * includes the time to start and wait for clang, and grows on busy machines. */
smelt_status cold_kernel_code_measure(void *cold_kernel, double *seconds);

/* The usual rivals of one kernel: smelt's engines, entered as "smelt cpu" and "smelt cpu-scalar", the first
 * with and without tests of accesses, and its cold compile. `standard` must live until contest_run; it is
 * released with standard_release. */
struct standard {
    struct launches simd, scalar, unchecked;
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

#define NOT_BY_HAND "this CPU lacks AVX2 or fused multiply-adds"

/* Starts the threads of all that is measured on the CPU, and keeps this one from moving. */
void cpu_start_threads(void);

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
