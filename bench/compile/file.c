#include "bench/compile/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WIDTHS 50
#define ROW_KERNELS 4
#define ENTRIES (WIDTHS * ROW_KERNELS)

/* In the manner of kernel collections: templates for a few jobs on rows, instantiated by a macro. */
static const char head[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "\n"
    "struct Sum { template <typename T> static T join(T a, T b) { return a + b; }\n"
    "  static float start() { return 0; } static float all(float x) { return simd_sum(x); } };\n"
    "struct Max { template <typename T> static T join(T a, T b) { return max(a, b); }\n"
    "  static float start() { return -INFINITY; } static float all(float x) { return simd_max(x); } };\n"
    "\n"
    "template <typename T, typename Op, int N>\n"
    "kernel void reduce_rows(device const T *x [[buffer(0)]], device T *y [[buffer(1)]], constant uint &n "
    "[[buffer(2)]],\n"
    "                        uint row [[threadgroup_position_in_grid]], uint lane "
    "[[thread_index_in_simdgroup]]) {\n"
    "  float total = Op::start();\n"
    "  for (uint i = lane * N; i < n; i += 32 * N) {\n"
    "    for (uint j = 0; j < N && i + j < n; j++) total = Op::join(total, float(x[row * n + i + j]));\n"
    "  }\n"
    "  total = Op::all(total);\n"
    "  if (lane == 0) y[row] = T(total);\n"
    "}\n"
    "template <typename T, int N>\n"
    "kernel void softmax_rows(device const T *x [[buffer(0)]], device T *y [[buffer(1)]], constant uint &n "
    "[[buffer(2)]],\n"
    "                         uint row [[threadgroup_position_in_grid]], uint lane "
    "[[thread_index_in_simdgroup]]) {\n"
    "  float values[N], most = -INFINITY, sum = 0;\n"
    "  for (int j = 0; j < N; j++) {\n"
    "    uint i = lane + 32 * j;\n"
    "    values[j] = i < n ? float(x[row * n + i]) : -INFINITY;\n"
    "    most = max(most, values[j]);\n"
    "  }\n"
    "  most = simd_max(most);\n"
    "  for (int j = 0; j < N; j++) sum += values[j] = exp(values[j] - most);\n"
    "  sum = simd_sum(sum);\n"
    "  for (int j = 0; j < N; j++)\n"
    "    if (lane + 32 * j < n) y[row * n + lane + 32 * j] = T(values[j] / sum);\n"
    "}\n"
    "template <typename T, int N>\n"
    "kernel void scale_rows(device const T *x [[buffer(0)]], device T *y [[buffer(1)]], constant uint &n "
    "[[buffer(2)]],\n"
    "                       uint row [[threadgroup_position_in_grid]], uint lane "
    "[[thread_index_in_simdgroup]]) {\n"
    "  for (uint i = lane; i < n; i += 32) y[row * n + i] = x[row * n + i] * T(N);\n"
    "}\n"
    "#define instantiate(name, ...) template [[host_name(name)]] kernel decltype(__VA_ARGS__) __VA_ARGS__;\n";

struct job {
    smelt_array *input, *output;
    char *text;
    unsigned made;
    /* Of the last entry: processor time of clang, and of smelt without code generation. */
    double clang, rest;
};

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Processor time: of this process, of its children that have ended. */
static double time_of(int who) {
    struct rusage usage;
    getrusage(who, &usage);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

/* A name of its own makes the text one that no cache has seen. */
static smelt_status make_text(struct job *job) {
    static const char *const types[] = {"float", "half", "bfloat"};
    const size_t size = sizeof head + (size_t)ENTRIES * 160 + 100;
    if (!job->text) job->text = malloc(size);
    if (!job->text) return SMELT_ERROR_OUT_OF_MEMORY;
    size_t length = (size_t)snprintf(job->text, size, "typedef int made_%ld_%lld_%u;\n%s", (long)getpid(),
                                     (long long)time(NULL), job->made++, head);
    for (int i = 0; i < WIDTHS; i++) {
        const char *type = types[i % 3];
        int n = i / 3 + 1;
        length += (size_t)snprintf(
            job->text + length, size - length,
            "instantiate(\"sum_%d\", reduce_rows<%s, Sum, %d>)\ninstantiate(\"max_%d\", reduce_rows<%s, "
            "Max, %d>)\ninstantiate(\"softmax_%d\", softmax_rows<%s, %d>)\ninstantiate(\"scale_%d\", "
            "scale_rows<%s, %d>)\n",
            i, type, n, i, type, n, i, type, n, i, type, n);
    }
    return SMELT_OK;
}

static smelt_status run_entry(const struct job *job, smelt_function *function, double timeout) {
    uint32_t n = 100;
    return smelt_function_run(function, &(smelt_dispatch_desc){.buffers = {{.array = job->input},
                                                                           {.array = job->output},
                                                                           {.bytes = &n, .size = sizeof n}},
                                                               .groups = {4},
                                                               .threadgroup = {32},
                                                               .timeout = timeout});
}

static smelt_status read_file(void *context, double *seconds) {
    smelt_library *library;
    struct job *job = context;
    smelt_status status = make_text(job);
    if (status != SMELT_OK) return status;
    double start = bench_now();
    status = smelt_library_create(&(smelt_library_desc){.source = job->text}, &library);
    *seconds = bench_now() - start;
    if (status == SMELT_OK) smelt_library_release(library);
    return status;
}

/* The entry's first launch; then another code of it, with clang's work in the cache. What the second takes is
 * code generation, in the host's process or in one of its own. */
static smelt_status time_entry(struct job *job, smelt_library *library, double *seconds) {
    smelt_function *function;
    double start = bench_now(), children = time_of(RUSAGE_CHILDREN), own = time_of(RUSAGE_SELF);
    smelt_status status =
        smelt_library_function(library, &(smelt_function_desc){.name = "softmax_12"}, &function);
    if (status != SMELT_OK) return status;
    status = run_entry(job, function, 0);
    *seconds = bench_now() - start;
    /* What the background still compiles belongs to the launch that began it. */
    if (status == SMELT_OK) status = smelt_function_wait(function, NULL);
    double own_between = time_of(RUSAGE_SELF), children_between = time_of(RUSAGE_CHILDREN);
    if (status == SMELT_OK) status = run_entry(job, function, 100);
    if (status == SMELT_OK) status = smelt_function_wait(function, NULL);
    double own_code = time_of(RUSAGE_SELF) - own_between;
    double children_code = time_of(RUSAGE_CHILDREN) - children_between;
    /* A difference of two compiles, which on a busy machine may come out below 0. */
    job->clang = fmax(children_between - children - children_code, 1e-6);
    job->rest = own_between - own > own_code ? own_between - own - own_code : 0;
    smelt_function_release(function);
    return status;
}

static smelt_status compile_entry(void *context, double *seconds) {
    struct job *job = context;
    smelt_library *library;
    smelt_status status = make_text(job);
    if (status == SMELT_OK)
        status = smelt_library_create(&(smelt_library_desc){.source = job->text}, &library);
    if (status != SMELT_OK) return status;
    status = time_entry(job, library, seconds);
    smelt_library_release(library);
    return status;
}

static smelt_status clang_time(void *context, double *seconds) {
    *seconds = ((struct job *)context)->clang;
    return SMELT_OK;
}

static smelt_status without_code(void *context, double *seconds) {
    const struct job *job = context;
    *seconds = job->clang + job->rest;
    return SMELT_OK;
}

smelt_status bench_compile_file(struct bench *bench) {
    struct job job = {0};
    smelt_shape shape = {.ndim = 1, .size = {400}};
    smelt_status status = smelt_array_uniform(SMELT_FLOAT32, shape, 1, &job.input);
    if (status == SMELT_OK) status = smelt_array_uniform(SMELT_FLOAT32, shape, 2, &job.output);
    const struct bench_case cases[] = {
        {.job = "one entry of 200", .variant = "reading the file", .measure = read_file, .context = &job},
        {.job = "one entry of 200",
         .variant = "compiling the entry",
         .measure = compile_entry,
         .context = &job},
        {.job = "one entry of 200",
         .variant = "clang, processor time",
         .measure = clang_time,
         .context = &job},
        {.job = "one entry of 200",
         .variant = "all but code generation",
         .anchor = "clang, processor time",
         .measure = without_code,
         .context = &job,
         .bar = {BENCH_TIME_AT_MOST, 1.2}},
    };
    if (status == SMELT_OK) status = bench_measure(bench, cases, sizeof cases / sizeof *cases, 0);
    smelt_array_release(job.input);
    smelt_array_release(job.output);
    free(job.text);
    return status;
}
