/* smelt bench: benchmarks by name. Their cases are repeated in turn; what is printed are medians and
 * inter-quartile ranges, as a table or as JSON. */
#include "bench/harness.h"
#include "bench_report.h"
#include "commands.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct benchmark *const benchmarks[] = {&bench_compile, &bench_cpu, &bench_gpu};
#define BENCHMARK_COUNT (sizeof benchmarks / sizeof *benchmarks)

#define DEFAULT_REPEATS 15
#define MAX_JOBS 32

struct bench {
    int64_t repeats; /* 0: nothing was said */
    bool quick, json;
    const char *wanted[MAX_JOBS + 1]; /* jobs that were named, ended by NULL */
    struct bench_result *results;
    int count;
    int exit_status; /* of the first failure */
};

bool bench_quick(const struct bench *bench) {
    return bench->quick;
}

int bench_repeats(const struct bench *bench, int usual) {
    if (bench->repeats) return (int)bench->repeats;
    return bench->quick ? 1 : usual;
}

bool bench_wants(const struct bench *bench, const char *job) {
    for (int i = 0; bench->wanted[i]; i++)
        if (strcmp(bench->wanted[i], job) == 0) return true;
    return !bench->wanted[0];
}

/* ---- Results. */

static smelt_status add_result(struct bench *bench, struct bench_result result) {
    struct bench_result *grown = realloc(bench->results, (size_t)(bench->count + 1) * sizeof *bench->results);
    if (!grown) return SMELT_ERROR_OUT_OF_MEMORY;
    bench->results = grown;
    bench->results[bench->count++] = result;
    return SMELT_OK;
}

/* Results are shown as they come: a whole run takes a while. */
static void show(const struct bench *bench, int first) {
    if (bench->json) return;
    if (first == 0 && bench->count > 0) print_table_head();
    for (int i = first; i < bench->count; i++) print_table_row(&bench->results[i]);
    (void)fflush(stdout);
}

static smelt_status add_note(struct bench *bench, const char *job, const char *variant, bool failed,
                             const char *text) {
    struct bench_result result = {.job = job, .variant = variant, .failed = failed, .note = strdup(text)};
    if (!result.note) return SMELT_ERROR_OUT_OF_MEMORY;
    smelt_status status = add_result(bench, result);
    if (status != SMELT_OK) free(result.note);
    return status;
}

static smelt_status add_failure(struct bench *bench, const char *job, const char *variant, int exit_status,
                                const char *message) {
    if (bench->exit_status == EXIT_OK) bench->exit_status = exit_status;
    fprintf(stderr, "smelt: %s, %s: %s\n", job, variant, message);
    return add_note(bench, job, variant, true, message);
}

smelt_status bench_fail(struct bench *bench, const char *job, const char *variant, int exit_status,
                        const char *message) {
    int first = bench->count;
    smelt_status status = add_failure(bench, job, variant, exit_status, message);
    show(bench, first);
    return status;
}

smelt_status bench_note(struct bench *bench, const char *job, const char *variant, const char *text) {
    int first = bench->count;
    smelt_status status = add_note(bench, job, variant, false, text);
    show(bench, first);
    return status;
}

/* ---- Measuring. */

struct timing {
    double *times; /* sorted at the end */
    int rounds;    /* that were recorded */
    smelt_status status;
    char *message; /* of a failure */
};

static int compare_reals(const void *a, const void *b) {
    double p = *(const double *)a, q = *(const double *)b;
    return p < q ? -1 : p > q;
}

/* The value below which a part of the sorted times lies, interpolated. */
static double quantile(const double *sorted, int count, double part) {
    double at = part * (count - 1);
    int low = (int)at, high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

/* One round of every case, in turn. Round -1 is not recorded, and left out by cases that take part once. */
static void measure_round(const struct bench_case *cases, int count, struct timing *timings, int round) {
    for (int i = 0; i < count; i++) {
        struct timing *timing = &timings[i];
        bool enough = cases[i].most_rounds &&
                      (round >= cases[i].most_rounds || (round < 0 && cases[i].most_rounds == 1));
        if (!cases[i].measure || timing->status != SMELT_OK || enough) continue;
        double seconds = 0;
        timing->status = cases[i].measure(cases[i].context, &seconds);
        if (timing->status != SMELT_OK)
            timing->message = strdup(cases[i].error ? cases[i].error() : smelt_error());
        else if (round >= 0)
            timing->times[timing->rounds++] = seconds;
    }
}

static smelt_status record(struct bench *bench, const struct bench_case *one, struct timing *timing) {
    if (timing->status != SMELT_OK)
        return add_failure(bench, one->job, one->variant, exit_status_of(timing->status),
                           timing->message ? timing->message : smelt_status_meaning(timing->status));
    qsort(timing->times, (size_t)timing->rounds, sizeof *timing->times, compare_reals);
    return add_result(bench, (struct bench_result){.job = one->job,
                                                   .variant = one->variant,
                                                   .anchor = one->anchor,
                                                   .median = quantile(timing->times, timing->rounds, 0.5),
                                                   .spread = quantile(timing->times, timing->rounds, 0.75) -
                                                             quantile(timing->times, timing->rounds, 0.25),
                                                   .work = one->work,
                                                   .work_unit = one->work_unit,
                                                   .bar = bench->quick ? (struct bench_bar){0} : one->bar});
}

/* The time the result is compared with: stated, or measured among the results since `first`. */
static double anchor_of(const struct bench *bench, int first, const struct bench_result *one,
                        const struct bench_case *of) {
    if (!one->anchor || one->note) return 0;
    if (of->anchor_seconds > 0) return of->anchor_seconds;
    for (int i = first; i < bench->count; i++) {
        const struct bench_result *other = &bench->results[i];
        if (!other->note && strcmp(other->job, one->job) == 0 && strcmp(other->variant, one->anchor) == 0)
            return other->median;
    }
    return 0;
}

smelt_status bench_measure(struct bench *bench, const struct bench_case *cases, int count, int repeats) {
    int rounds = repeats > 0 ? repeats : bench_repeats(bench, DEFAULT_REPEATS), first = bench->count;
    double *times = calloc((size_t)count * (size_t)rounds, sizeof *times);
    struct timing *timings = calloc((size_t)count, sizeof *timings);
    smelt_status status = times && timings ? SMELT_OK : SMELT_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < count && status == SMELT_OK; i++)
        timings[i].times = times + (size_t)i * (size_t)rounds;
    for (int round = -1; round < rounds && status == SMELT_OK; round++)
        measure_round(cases, count, timings, round);
    for (int i = 0, source = 0; i < count && status == SMELT_OK; i++) {
        if (cases[i].measure) source = i;
        status = record(bench, &cases[i], &timings[source]);
    }
    for (int i = 0; i < count && status == SMELT_OK; i++)
        bench->results[first + i].anchor_seconds =
            anchor_of(bench, first, &bench->results[first + i], &cases[i]);
    if (status == SMELT_OK) show(bench, first);
    for (int i = 0; timings && i < count; i++) free(timings[i].message);
    free(timings);
    free(times);
    return status;
}

/* ---- The command line. */

static void print_help(FILE *out) {
    fprintf(out, "usage: smelt bench NAME [JOB]… [NAME [JOB]…]… [--repeat N] [--quick] [--json]\n\n"
                 "Runs benchmarks and prints medians and inter-quartile ranges. The cases of one benchmark "
                 "are repeated in\n"
                 "turn. Quiet machines give steady figures.\n\n");
    for (size_t i = 0; i < BENCHMARK_COUNT; i++) {
        fprintf(out, "  %-10s %s\n", benchmarks[i]->name, benchmarks[i]->help);
        if (!benchmarks[i]->jobs) continue;
        fprintf(out, "  %-10s jobs:", "");
        for (int j = 0; benchmarks[i]->jobs[j]; j++) fprintf(out, " %s", benchmarks[i]->jobs[j]);
        fputc('\n', out);
    }
    fprintf(out,
            "\n  JOB        only these jobs of the benchmark named before them\n"
            "  --repeat N rounds (default %d; less in benchmarks that take long)\n"
            "  --quick    a trial: small sizes, one round; the figures mean nothing\n"
            "  --json     an array of {job, variant, median_s, iqr_s, anchor, ratio}; ratio is time by the "
            "anchor's time\n",
            DEFAULT_REPEATS);
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
    bool help, json, quick;
    int64_t repeats;
    struct choice chosen[BENCHMARK_COUNT];
    int count;
};

static bool has_job(const struct benchmark *benchmark, const char *name) {
    for (int i = 0; benchmark->jobs && benchmark->jobs[i]; i++)
        if (strcmp(benchmark->jobs[i], name) == 0) return true;
    return false;
}

/* A benchmark, or a job of the one named last. */
static bool parse_name(const char *name, struct request *request) {
    struct choice *last = request->count ? &request->chosen[request->count - 1] : NULL;
    const struct benchmark *found = find(name);
    if (!found && last && has_job(last->benchmark, name)) {
        if (last->job_count == MAX_JOBS) return complain("more than %d jobs are named", MAX_JOBS);
        last->jobs[last->job_count++] = name;
        return true;
    }
    if (!found) return complain("benchmark '%s' is unknown; see smelt bench --help", name);
    for (int c = 0; c < request->count; c++)
        if (request->chosen[c].benchmark == found) return complain("benchmark '%s' is named twice", name);
    request->chosen[request->count++].benchmark = found;
    return true;
}

static bool parse(int count, char **arguments, struct request *request) {
    for (int i = 0; i < count && !request->help; i++) {
        const char *argument = arguments[i];
        if (is_help(argument)) {
            request->help = true;
        } else if (strcmp(argument, "--json") == 0) {
            request->json = true;
        } else if (strcmp(argument, "--quick") == 0) {
            request->quick = true;
        } else if (strcmp(argument, "--repeat") == 0) {
            if (i + 1 == count) return complain("--repeat needs a value");
            if (!parse_integer("--repeat", arguments[++i], 1, 100000, &request->repeats)) return false;
        } else if (*argument == '-') {
            return complain("option '%s' is unknown; see smelt bench --help", argument);
        } else if (!parse_name(argument, request)) {
            return false;
        }
    }
    return request->help || request->count || complain("no benchmark is named; see smelt bench --help");
}

int command_bench(int count, char **arguments) {
    struct request request = {0};
    if (!parse(count, arguments, &request)) return EXIT_USAGE;
    if (request.help) {
        print_help(stdout);
        return EXIT_OK;
    }
    struct bench bench = {.repeats = request.repeats, .quick = request.quick, .json = request.json};
    smelt_status status = SMELT_OK;
    for (int i = 0; i < request.count && status == SMELT_OK; i++) {
        memcpy(bench.wanted, request.chosen[i].jobs, sizeof bench.wanted);
        status = request.chosen[i].benchmark->run(&bench);
    }
    if (status == SMELT_OK && request.json) print_results_json(bench.results, bench.count);
    for (int i = 0; i < bench.count; i++) free(bench.results[i].note);
    free(bench.results);
    return status == SMELT_OK ? bench.exit_status : report(status);
}
