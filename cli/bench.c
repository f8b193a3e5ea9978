/* smelt bench: benchmarks by name. What is printed are medians and inter-quartile ranges, as a table or as
 * JSON. */
#include "bench_report.h"
#include "commands.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct benchmark *const benchmarks[] = {&bench_compile, &bench_cpu, &bench_gpu};
#define BENCHMARK_COUNT (sizeof benchmarks / sizeof *benchmarks)

#define MAX_JOBS 32

/* ---- Results. */

struct collection {
    bool json; /* then they are printed at the end */
    struct bench_result *results;
    int count;
    int exit_status; /* of the first failure */
};

/* Results are shown as they come: a whole run takes a while. */
static void collect(const struct bench_result *result, void *context) {
    struct collection *all = context;
    if (result->status != SMELT_OK) {
        if (all->exit_status == EXIT_OK) all->exit_status = exit_status_of(result->status);
        fprintf(stderr, "smelt: %s, %s: %s\n", result->job, result->variant, result->note);
    }
    if (!all->json) {
        if (all->count++ == 0) print_table_head();
        print_table_row(result);
        (void)fflush(stdout);
        return;
    }
    struct bench_result *grown = realloc(all->results, (size_t)(all->count + 1) * sizeof *all->results);
    if (!grown) return;
    all->results = grown;
    grown[all->count] = *result;
    grown[all->count++].note = result->note ? strdup(result->note) : NULL;
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
        for (const struct bench_job *job = benchmarks[i]->jobs; job->name; job++)
            fprintf(out, " %s", job->name);
        fputc('\n', out);
    }
    fprintf(out,
            "\n  JOB        only these jobs of the benchmark named before them\n"
            "  --repeat N rounds (default 15; less in benchmarks that take long)\n"
            "  --quick    a trial: small sizes, one round; the figures mean nothing\n"
            "  --json     an array of {job, variant, median_s, iqr_s, anchor, ratio}; ratio is time by the "
            "anchor's time\n");
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
    for (const struct bench_job *job = benchmark->jobs; job && job->name; job++)
        if (strcmp(job->name, name) == 0) return true;
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
    struct collection all = {.json = request.json};
    smelt_status status = SMELT_OK;
    for (int i = 0; i < request.count && status == SMELT_OK; i++) {
        struct bench bench = {.repeats = (int)request.repeats,
                              .quick = request.quick,
                              .wanted = request.chosen[i].jobs,
                              .report = collect,
                              .context = &all};
        status = request.chosen[i].benchmark->run(&bench);
    }
    if (status == SMELT_OK && request.json) print_results_json(all.results, all.count);
    for (int i = 0; i < all.count && all.results; i++) free((char *)all.results[i].note);
    free(all.results);
    return status == SMELT_OK ? all.exit_status : report(status);
}
