#include "bench/compile/many.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 200
#define KERNELS 200
#define KERNEL_THREADS 16
#define ROUNDS 5

struct crowd {
    int threads, loads; /* threads share this many loads */
    unsigned made;
    char text[1000];
    atomic_int next;
    atomic_int failed;        /* a status */
    double processor_seconds; /* of the last run of kernels, divided by the CPUs */
};

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Processor time of this process and of its children that have ended. */
static double processor_time(void) {
    double sum = 0;
    for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
        struct rusage usage;
        getrusage(who, &usage);
        sum += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    }
    return sum;
}

static int cpu_count(void) {
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

/* `work` until it has been called `loads` times. */
static smelt_status run_threads(struct crowd *crowd, void *(*work)(void *), double *seconds) {
    pthread_t threads[MOST_THREADS];
    int started = 0;
    atomic_store(&crowd->next, 0);
    atomic_store(&crowd->failed, SMELT_OK);
    double start = bench_now();
    while (started < crowd->threads && pthread_create(&threads[started], NULL, work, crowd) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    *seconds = bench_now() - start;
    return started == crowd->threads ? (smelt_status)atomic_load(&crowd->failed) : SMELT_ERROR_OUT_OF_MEMORY;
}

/* ---- One library. */

/* #if makes clang preprocess the text, so loading starts a compiler, too. */
static void new_library(struct crowd *crowd) {
    snprintf(crowd->text, sizeof crowd->text,
             "typedef int made_%ld_%lld_%u;\n#include <metal_stdlib>\n#if 1\nusing namespace metal;\n#endif\n"
             "kernel void scale(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
             "    y[i] = exp(y[i]);\n}\n",
             (long)getpid(), (long long)time(NULL), crowd->made++);
}

static smelt_status load(const struct crowd *crowd) {
    smelt_library *library = NULL;
    smelt_function *function = NULL;
    smelt_array *array = NULL;
    smelt_status status = smelt_library_create(&(smelt_library_desc){.source = crowd->text}, &library);
    if (status == SMELT_OK)
        status = smelt_library_function(library, &(smelt_function_desc){.name = "scale"}, &function);
    if (status == SMELT_OK)
        status = smelt_array_uniform(SMELT_FLOAT32, (smelt_shape){.ndim = 1, .size = {64}}, 1, &array);
    if (status == SMELT_OK)
        status = smelt_function_run(
            function,
            &(smelt_dispatch_desc){.buffers = {{.array = array}}, .groups = {2}, .threadgroup = {32}});
    smelt_array_release(array);
    smelt_function_release(function);
    smelt_library_release(library);
    return status;
}

static void *load_all(void *argument) {
    struct crowd *crowd = argument;
    while (atomic_fetch_add(&crowd->next, 1) < crowd->loads) {
        smelt_status status = load(crowd);
        if (status != SMELT_OK) atomic_store(&crowd->failed, status);
    }
    return NULL;
}

static smelt_status time_loads(void *context, double *seconds) {
    struct crowd *crowd = context;
    new_library(crowd);
    return run_threads(crowd, load_all, seconds);
}

/* ---- Many kernels. */

static smelt_status compile_kernel(const struct crowd *crowd, int number) {
    char name[96], source[200];
    smelt_kernel *kernel;
    smelt_array *output = NULL;
    snprintf(name, sizeof name, "many_%ld_%lld_%u_%d", (long)getpid(), (long long)time(NULL), crowd->made,
             number);
    snprintf(source, sizeof source,
             "uint i = thread_position_in_grid.x;\nout[i] = metal::exp(float(i) * %d.5f);\n", number);
    smelt_status status = smelt_kernel_create(
        &(smelt_kernel_desc){.name = name, .source = source, .outputs = {"out"}}, &kernel);
    if (status != SMELT_OK) return status;
    status = smelt_kernel_run(kernel,
                              &(smelt_run_desc){.grid = {64},
                                                .threadgroup = {64},
                                                .output_shapes = {{.ndim = 1, .size = {64}}},
                                                .output_dtypes = {SMELT_FLOAT32}},
                              &output);
    smelt_array_release(output);
    smelt_kernel_release(kernel);
    return status;
}

static void *compile_all(void *argument) {
    struct crowd *crowd = argument;
    for (int i; (i = atomic_fetch_add(&crowd->next, 1)) < crowd->loads;) {
        smelt_status status = compile_kernel(crowd, i);
        if (status != SMELT_OK) atomic_store(&crowd->failed, status);
    }
    return NULL;
}

static smelt_status time_kernels(void *context, double *seconds) {
    struct crowd *crowd = context;
    double before = processor_time();
    crowd->made++;
    smelt_status status = run_threads(crowd, compile_all, seconds);
    crowd->processor_seconds = (processor_time() - before) / cpu_count();
    return status;
}

static smelt_status processor_share(void *context, double *seconds) {
    *seconds = ((struct crowd *)context)->processor_seconds;
    return SMELT_OK;
}

/* ---- */

smelt_status bench_compile_many(struct bench *bench) {
    const int kernels = bench->quick ? KERNEL_THREADS : KERNELS;
    struct crowd one = {.threads = 1, .loads = 1}, fifty = {.threads = MOST_THREADS, .loads = 50},
                 all = {.threads = MOST_THREADS, .loads = MOST_THREADS},
                 many = {.threads = KERNEL_THREADS, .loads = kernels};
    /* Each case has a text of its own. */
    fifty.made = 1u << 20;
    all.made = 2u << 20;
    const struct bench_bar twice = {BENCH_TIME_AT_MOST, 2};
    const struct bench_case cases[] = {
        {.job = "a new library", .variant = "one load", .measure = time_loads, .context = &one},
        {.job = "a new library",
         .variant = "50 loads, 200 threads",
         .anchor = "one load",
         .measure = time_loads,
         .context = &fifty,
         .bar = twice},
        /* No bar: 150 more loads, which find the code on the disk. */
        {.job = "a new library",
         .variant = "200 loads, 200 threads",
         .anchor = "one load",
         .measure = time_loads,
         .context = &all},
        {.job = "200 new kernels",
         .variant = "16 threads",
         .anchor = "processor time / CPUs",
         .measure = time_kernels,
         .context = &many,
         .most_rounds = ROUNDS,
         .bar = {BENCH_TIME_AT_MOST, 1.1}},
        {.job = "200 new kernels",
         .variant = "processor time / CPUs",
         .measure = processor_share,
         .context = &many,
         .most_rounds = ROUNDS},
    };
    return bench_measure(bench, cases, sizeof cases / sizeof *cases, 0);
}
