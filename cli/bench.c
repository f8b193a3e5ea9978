/* smelt bench: benchmarks by name. Their cases are repeated in turn; what is printed are medians and
 * inter-quartile ranges, as a table or as JSON. */
#include "bench.h"
#include "commands.h"
#include "json.h"
#include "values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct benchmark *const benchmarks[] = {&bench_compile};
#define BENCHMARK_COUNT (sizeof benchmarks / sizeof *benchmarks)

#define DEFAULT_REPEATS 15

struct result {
    const char *job, *variant, *anchor;
    double median, spread, anchor_seconds; /* anchor_seconds 0: there is none */
};

struct bench {
    int64_t repeats;
    struct result *results;
    int count;
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

/* One round of every case, in turn; times[case * stride + round]. */
static smelt_status measure_round(const struct bench_case *cases, int count, double *times, int stride,
                                  int round) {
    for (int i = 0; i < count; i++) {
        double seconds = 0;
        smelt_status status = cases[i].measure(cases[i].context, &seconds);
        if (status != SMELT_OK) return status;
        if (round >= 0) times[i * stride + round] = seconds;
    }
    return SMELT_OK;
}

static double anchor_of(const struct bench *bench, int first, const struct bench_case *one) {
    if (!one->anchor) return 0;
    if (one->anchor_seconds > 0) return one->anchor_seconds;
    for (int i = first; i < bench->count; i++)
        if (strcmp(bench->results[i].job, one->job) == 0 &&
            strcmp(bench->results[i].variant, one->anchor) == 0)
            return bench->results[i].median;
    return 0;
}

smelt_status bench_measure(struct bench *bench, const struct bench_case *cases, int count, int repeats) {
    int rounds = repeats > 0 ? repeats : (int)bench->repeats, first = bench->count;
    double *times = calloc((size_t)count * (size_t)rounds, sizeof *times);
    struct result *results = realloc(bench->results, (size_t)(first + count) * sizeof *results);
    if (results) bench->results = results;
    smelt_status status = times && results ? SMELT_OK : SMELT_ERROR_OUT_OF_MEMORY;
    for (int round = -1; round < rounds && status == SMELT_OK; round++)
        status = measure_round(cases, count, times, rounds, round);
    for (int i = 0; i < count && status == SMELT_OK; i++) {
        double *own = times + (size_t)i * (size_t)rounds;
        qsort(own, (size_t)rounds, sizeof *own, compare_reals);
        bench->results[bench->count++] =
            (struct result){.job = cases[i].job,
                            .variant = cases[i].variant,
                            .anchor = cases[i].anchor,
                            .median = quantile(own, rounds, 0.5),
                            .spread = quantile(own, rounds, 0.75) - quantile(own, rounds, 0.25)};
    }
    for (int i = 0; i < count && status == SMELT_OK; i++)
        bench->results[first + i].anchor_seconds = anchor_of(bench, first, &cases[i]);
    free(times);
    return status;
}

/* ---- Printing. */

static void print_seconds(double seconds) {
    const char *unit = seconds < 1e-6 ? "ns" : seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s";
    double scale = seconds < 1e-6 ? 1e9 : seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;
    printf("%9.3f %-2s", seconds * scale, unit);
}

static void print_table(const struct bench *bench) {
    printf("%-20s %-26s %12s %12s  %s\n", "job", "variant", "median", "iqr", "ratio to anchor");
    for (int i = 0; i < bench->count; i++) {
        const struct result *r = &bench->results[i];
        printf("%-20s %-26s ", r->job, r->variant);
        print_seconds(r->median);
        putchar(' ');
        print_seconds(r->spread);
        if (r->anchor_seconds > 0) printf("  %.2f of %s", r->median / r->anchor_seconds, r->anchor);
        putchar('\n');
    }
}

static void print_json(const struct bench *bench) {
    putchar('[');
    for (int i = 0; i < bench->count; i++) {
        const struct result *r = &bench->results[i];
        fputs(i ? ",\n {\"job\": " : "\n {\"job\": ", stdout);
        json_print_string(stdout, r->job);
        fputs(", \"variant\": ", stdout);
        json_print_string(stdout, r->variant);
        fputs(", \"median_s\": ", stdout);
        json_print_number(stdout, r->median);
        fputs(", \"iqr_s\": ", stdout);
        json_print_number(stdout, r->spread);
        fputs(", \"anchor\": ", stdout);
        json_print_string(stdout, r->anchor_seconds > 0 ? r->anchor : NULL);
        fputs(", \"ratio\": ", stdout);
        json_print_number(stdout, r->anchor_seconds > 0 ? r->median / r->anchor_seconds : (double)NAN);
        putchar('}');
    }
    puts("\n]");
}

static void print_help(FILE *out) {
    fprintf(out, "usage: smelt bench NAME… [--repeat N] [--json]\n\n"
                 "Runs benchmarks and prints medians and inter-quartile ranges. The cases of one benchmark "
                 "are repeated in\n"
                 "turn. Quiet machines give steady figures.\n\n");
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        fprintf(out, "  %-10s %s\n", benchmarks[i]->name, benchmarks[i]->help);
    fprintf(out,
            "\n  --repeat N rounds (default %d)\n"
            "  --json     an array of {job, variant, median_s, iqr_s, anchor, ratio}\n",
            DEFAULT_REPEATS);
}

/* ---- The command line. */

static const struct benchmark *find(const char *name) {
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        if (strcmp(benchmarks[i]->name, name) == 0) return benchmarks[i];
    return NULL;
}

struct request {
    bool help, json;
    int64_t repeats;
    const struct benchmark *chosen[BENCHMARK_COUNT];
    int count;
};

static bool parse(int count, char **arguments, struct request *request) {
    for (int i = 0; i < count && !request->help; i++) {
        const char *argument = arguments[i];
        if (is_help(argument)) {
            request->help = true;
        } else if (strcmp(argument, "--json") == 0) {
            request->json = true;
        } else if (strcmp(argument, "--repeat") == 0) {
            if (i + 1 == count) return complain("--repeat needs a value");
            if (!parse_integer("--repeat", arguments[++i], 1, 100000, &request->repeats)) return false;
        } else if (*argument == '-') {
            return complain("option '%s' is unknown; see smelt bench --help", argument);
        } else {
            const struct benchmark *found = find(argument);
            if (!found) return complain("benchmark '%s' is unknown; see smelt bench --help", argument);
            for (int c = 0; c < request->count; c++)
                if (request->chosen[c] == found) return complain("benchmark '%s' is named twice", argument);
            request->chosen[request->count++] = found;
        }
    }
    return request->help || request->count || complain("no benchmark is named; see smelt bench --help");
}

int command_bench(int count, char **arguments) {
    struct request request = {.repeats = DEFAULT_REPEATS};
    if (!parse(count, arguments, &request)) return EXIT_USAGE;
    if (request.help) {
        print_help(stdout);
        return EXIT_OK;
    }
    struct bench bench = {.repeats = request.repeats};
    smelt_status status = SMELT_OK;
    for (int i = 0; i < request.count && status == SMELT_OK; i++) status = request.chosen[i]->run(&bench);
    if (status == SMELT_OK) {
        if (request.json)
            print_json(&bench);
        else
            print_table(&bench);
    }
    free(bench.results);
    return report(status);
}
