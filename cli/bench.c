/* smelt bench: benchmarks by name. What is printed are medians and inter-quartile ranges, as a table or as
 * JSON. */
#include "bench_report.h"
#include "commands.h"
#include "plot.h"
#include "values.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct benchmark *const benchmarks[] = {
    &bench_attention, &bench_compile, &bench_cpu, &bench_gpu, &bench_graph,
    &bench_linalg,    &bench_matmul,  &bench_ml,  &bench_ops, &bench_tensor_ops};
#define BENCHMARK_COUNT (sizeof benchmarks / sizeof *benchmarks)

#define MAX_JOBS 32

/* ---- Results. */

struct collection {
    struct printer printer;
    struct plot *plot; /* NULL: none is wanted */
    int exit_status;   /* of the first failure */
};

static void collect(const struct bench_result *result, void *context) {
    struct collection *all = context;
    if (result->status != SMELT_OK) {
        if (all->exit_status == EXIT_OK) all->exit_status = exit_status_of(result->status);
        fprintf(stderr, "smelt: %s, %s: %s\n", result->job, result->variant, result->note);
    }
    print_result(&all->printer, result);
    if (all->plot) plot_add(all->plot, result);
}

static void collect_comparison(const struct against_row *row, void *context) {
    print_comparison(&((struct collection *)context)->printer, row);
}

/* ---- The command line. */

static void list_benchmarks(FILE *out) {
    fputc('\n', out);
    for (size_t i = 0; i < BENCHMARK_COUNT; i++) {
        fprintf(out, "  %-10s %s\n", benchmarks[i]->name, benchmarks[i]->help);
        if (!benchmarks[i]->jobs) continue;
        fprintf(out, "  %-10s jobs:", "");
        for (const struct bench_job *job = benchmarks[i]->jobs; job->name; job++)
            fprintf(out, " %s", job->name);
        fputc('\n', out);
    }
    fputc('\n', out);
}

/* The names of benchmarks and jobs. */
static const char *name_at(const void *context, int index) {
    (void)context;
    for (size_t i = 0; i < BENCHMARK_COUNT; i++) {
        if (index-- == 0) return benchmarks[i]->name;
        for (const struct bench_job *job = benchmarks[i]->jobs; job && job->name; job++)
            if (index-- == 0) return job->name;
    }
    return NULL;
}

static const struct benchmark *find(const char *name) {
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        if (strcmp(benchmarks[i]->name, name) == 0) return benchmarks[i];
    return NULL;
}

struct choice {
    const struct benchmark *benchmark;
    const char *jobs[MAX_JOBS + 1];
    int job_count;
};

struct request {
    bool json, csv, quick;
    int64_t repeats;
    char *against, *plot;
    struct bench_products products;
    struct choice chosen[BENCHMARK_COUNT];
    int count;
};

static bool has_job(const struct benchmark *benchmark, const char *name) {
    for (const struct bench_job *job = benchmark->jobs; job && job->name; job++)
        if (strcmp(job->name, name) == 0) return true;
    return false;
}

/* A job of the benchmark named last, or a benchmark: some jobs have a benchmark's name. */
static bool parse_name(void *target, char *name) {
    struct request *request = target;
    struct choice *last = request->count ? &request->chosen[request->count - 1] : NULL;
    if (last && has_job(last->benchmark, name)) {
        if (last->job_count == MAX_JOBS) return complain("more than %d jobs are named", MAX_JOBS);
        last->jobs[last->job_count++] = name;
        return true;
    }
    const struct benchmark *found = find(name);
    const char *near = found ? NULL : nearest_word(name, name_at, NULL);
    if (near) return complain("benchmark '%s' is unknown; did you mean %s?", name, near);
    if (!found) return complain("benchmark '%s' is unknown; see smelt bench --help", name);
    for (int c = 0; c < request->count; c++)
        if (request->chosen[c].benchmark == found) return complain("benchmark '%s' is named twice", name);
    request->chosen[request->count++].benchmark = found;
    return true;
}

#define FIELD(name) .offset = offsetof(struct request, name)

static const struct option options[] = {
    {.name = "JOB", .help = "only these jobs of the benchmark named before them"},
    {"--repeat", "N", "rounds (default 15; fewer in long benchmarks)", OPTION_COUNT, FIELD(repeats),
     .many = true, .most = 100000},
    {"--quick", NULL, "trial run: small sizes, one round; its figures mean nothing", OPTION_FLAG,
     FIELD(quick)},
    {"--json", NULL,
     "print an array of {job, variant, median_s, iqr_s, anchor, ratio}; ratio is time / anchor's time",
     OPTION_FLAG, FIELD(json)},
    {"--csv", NULL, "print the same without rates, as comma-separated values with a header", OPTION_FLAG,
     FIELD(csv)},
    {"--sizes", "LIST",
     "matmul: sizes, like 1024,1000x517x300 (M, N, K),64x256x256x256 (products); default 1024", OPTION_TEXT,
     FIELD(products.sizes)},
    {"--dtype", "NAME", "matmul: float32 (default), float16 or bfloat16", OPTION_TEXT, FIELD(products.dtype),
     .words = "float32 float16 bfloat16"},
    {"--algorithm", "LIST", "matmul: only these kernels, like naive,best", OPTION_TEXT,
     FIELD(products.algorithm)},
    {"--device", "NAME", "matmul, linalg, ops: cpu or cuda; default: all there are, cpu", OPTION_TEXT,
     FIELD(products.device), .words = "cpu cuda"},
    {"--plot", "FILE.svg",
     "draw the rates as bars, and against the machine's bounds where they were measured", OPTION_TEXT,
     FIELD(plot)},
    {"--against", "BUILD",
     "compare with another build: its folder, an installation's folder, or its\n"
     "bin/smelt. Rounds of the two alternate; --repeat is their number (default 5);\n"
     "ratio is this build's time / the other's",
     OPTION_TEXT, FIELD(against)},
    {0},
};

const struct command bench_command = {
    .name = "bench",
    .summary = "run benchmarks",
    .usage =
        "smelt bench NAME [JOB]… [NAME [JOB]…]… [--repeat N] [--quick] [--json|--csv] [--against BUILD]\n\n"
        "Runs benchmarks and prints medians and inter-quartile ranges. Rounds of a benchmark's cases\n"
        "are interleaved. For stable figures, use a quiet machine.",
    .options = {options},
    .width = 10,
    .argument = parse_name,
    .list = list_benchmarks,
    .word = name_at,
};

/* ---- At work. */

static int run(const struct request *request, struct collection *all) {
    for (int i = 0; i < request->count; i++) {
        struct bench bench = {.repeats = (int)request->repeats,
                              .quick = request->quick,
                              .wanted = request->chosen[i].jobs,
                              .products = request->products,
                              .report = collect,
                              .context = all};
        smelt_status status = request->chosen[i].benchmark->run(&bench);
        if (status != SMELT_OK) return report(status);
    }
    return all->exit_status;
}

/* A child's rounds: its median is one figure of its build's. */
#define CHILD_REPEATS "3"
#define DEFAULT_ROUNDS 5

/* Job by job, so that the two builds' rounds of a job are close in time. */
static int compare_job(struct against *against, const struct request *request, const char *name,
                       const char *job) {
    const char *arguments[8] = {"bench", name};
    int count = 2;
    if (job) arguments[count++] = job;
    arguments[count++] = "--json";
    arguments[count++] = request->quick ? "--quick" : "--repeat";
    if (!request->quick) arguments[count++] = CHILD_REPEATS;
    return against_run(against, arguments);
}

static int compare_benchmark(struct against *against, const struct request *request,
                             const struct choice *choice) {
    const struct benchmark *benchmark = choice->benchmark;
    int failed = benchmark->jobs ? 0 : compare_job(against, request, benchmark->name, NULL);
    for (const struct bench_job *job = benchmark->jobs; job && job->name; job++) {
        bool wanted = choice->job_count == 0;
        for (int i = 0; i < choice->job_count; i++) wanted |= strcmp(choice->jobs[i], job->name) == 0;
        int status = wanted ? compare_job(against, request, benchmark->name, job->name) : 0;
        if (!failed) failed = status;
    }
    return failed;
}

static int compare(const struct request *request, struct collection *all) {
    char *this = realpath("/proc/self/exe", NULL), *other = NULL;
    struct against against = {.program = {this ? this : "/proc/self/exe"},
                              .rounds = request->repeats ? (int)request->repeats
                                        : request->quick ? 1
                                                         : DEFAULT_ROUNDS,
                              .report = collect_comparison,
                              .context = all};
    int exit_status = EXIT_USAGE;
    if (against_find(&against, request->against, &other)) {
        exit_status = EXIT_OK;
        against.program[AGAINST_OTHER] = other;
        for (int i = 0; i < request->count; i++) {
            int status = compare_benchmark(&against, request, &request->chosen[i]);
            if (exit_status == EXIT_OK) exit_status = status;
        }
    }
    if (*against.message) complain("--against is '%s': %s", request->against, against.message);
    free(this);
    free(other);
    return exit_status;
}

int command_bench(int count, char **arguments) {
    struct request request = {0};
    /* Measured is the best code. */
    (void)setenv("SMELT_TIERS", "0", 0);
    enum parsed parsed = parse_options(&bench_command, count, arguments, &request);
    if (parsed == PARSED_HELP) print_command_help(&bench_command);
    if (parsed != PARSED) return parsed == PARSED_HELP ? EXIT_OK : EXIT_USAGE;
    bool good =
        !(request.json && request.csv) || complain("--json and --csv are both given; expected one of them");
    char wrong[512];
    if (good && !bench_matmul_check(&request.products, wrong, sizeof wrong)) good = complain("%s", wrong);
    if (good && request.against && request.plot)
        good = complain("--against and --plot are both given; expected one of them");
    if (good && !request.count) good = complain("no benchmark is named; see smelt bench --help");
    if (!good) return EXIT_USAGE;
    struct collection all = {.printer.format = request.json  ? PRINT_JSON
                                               : request.csv ? PRINT_CSV
                                                             : PRINT_TABLE};
    if (request.plot) {
        all.plot = calloc(1, sizeof *all.plot);
        if (!all.plot) return report(SMELT_ERROR_OUT_OF_MEMORY);
    }
    int exit_status = request.against ? compare(&request, &all) : run(&request, &all);
    if (all.plot) {
        int written = plot_write(all.plot, request.plot);
        if (exit_status == EXIT_OK) exit_status = written;
        free(all.plot);
    }
    if (all.printer.count || *all.printer.job || exit_status == EXIT_OK) print_end(&all.printer);
    return exit_status;
}
