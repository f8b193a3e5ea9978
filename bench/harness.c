#include "bench/harness.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_REPEATS 15

double bench_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int bench_repeats(const struct bench *bench, int usual) {
    if (bench->repeats) return bench->repeats;
    return bench->quick ? 1 : usual;
}

static bool wants(const struct bench *bench, const char *job) {
    for (int i = 0; bench->wanted[i]; i++)
        if (strcmp(bench->wanted[i], job) == 0) return true;
    return !bench->wanted[0];
}

void bench_fail(struct bench *bench, const char *job, const char *variant, smelt_status status,
                const char *message) {
    bench->report(&(struct bench_result){.job = job, .variant = variant, .note = message, .status = status},
                  bench->context);
}

void bench_note(struct bench *bench, const char *job, const char *variant, const char *text) {
    bench_fail(bench, job, variant, SMELT_OK, text);
}

void bench_run_jobs(struct bench *bench, const struct bench_job *jobs, const char *(*error)(void)) {
    for (; jobs->name; jobs++) {
        if (!wants(bench, jobs->name)) continue;
        smelt_status status = jobs->run(bench, jobs->name);
        if (status != SMELT_OK) bench_fail(bench, jobs->name, "preparing", status, error());
    }
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

double bench_quantile(double *values, int count, double part) {
    qsort(values, (size_t)count, sizeof *values, compare_reals);
    double at = part * (count - 1);
    int low = (int)at, high = low + 1 < count ? low + 1 : low;
    return values[low] + (at - low) * (values[high] - values[low]);
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

static struct bench_result result_of(const struct bench *bench, const struct bench_case *one,
                                     const struct timing *timing) {
    struct bench_result result = {.job = one->job, .variant = one->variant, .status = timing->status};
    if (timing->status != SMELT_OK) {
        result.note = timing->message ? timing->message : smelt_status_meaning(timing->status);
        return result;
    }
    result.anchor = one->anchor;
    result.anchor_seconds = one->anchor ? one->anchor_seconds : 0;
    result.median = bench_quantile(timing->times, timing->rounds, 0.5);
    result.spread = bench_quantile(timing->times, timing->rounds, 0.75) -
                    bench_quantile(timing->times, timing->rounds, 0.25);
    result.work = one->work;
    result.work_unit = one->work_unit;
    result.rounds = timing->rounds;
    result.elements = one->elements;
    result.bytes = one->bytes;
    if (!bench->quick) result.bar = one->bar;
    return result;
}

/* The work per second of a variant; 0: it is not there. */
static double rate_of(const struct bench_result *results, int count, const char *variant) {
    for (int j = 0; j < count && variant; j++)
        if (!results[j].note && strcmp(results[j].variant, variant) == 0)
            return results[j].work / results[j].median;
    return 0;
}

/* Reports the results, after finding the times of the anchors that were measured among them. */
static void report_all(const struct bench *bench, const struct bench_case *cases,
                       struct bench_result *results, int count) {
    for (int i = 0; i < count; i++) {
        struct bench_result *one = &results[i];
        one->peak = rate_of(results, count, cases[i].peak);
        one->bandwidth = rate_of(results, count, cases[i].bandwidth);
        for (int j = 0; j < count && one->anchor && one->anchor_seconds == 0; j++)
            if (!results[j].note && strcmp(results[j].job, one->job) == 0 &&
                strcmp(results[j].variant, one->anchor) == 0)
                one->anchor_seconds = results[j].median;
    }
    for (int i = 0; i < count; i++) bench->report(&results[i], bench->context);
}

smelt_status bench_measure(struct bench *bench, const struct bench_case *cases, int count, int repeats) {
    int rounds = repeats > 0 ? repeats : bench_repeats(bench, DEFAULT_REPEATS);
    double *times = calloc((size_t)count * (size_t)rounds, sizeof *times);
    struct timing *timings = calloc((size_t)count, sizeof *timings);
    struct bench_result *results = calloc((size_t)count, sizeof *results);
    smelt_status status = times && timings && results ? SMELT_OK : SMELT_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < count && status == SMELT_OK; i++)
        timings[i].times = times + (size_t)i * (size_t)rounds;
    for (int round = -1; round < rounds && status == SMELT_OK; round++)
        measure_round(cases, count, timings, round);
    for (int i = 0, source = 0; i < count && status == SMELT_OK; i++) {
        if (cases[i].measure) source = i;
        results[i] = result_of(bench, &cases[i], &timings[source]);
    }
    if (status == SMELT_OK) report_all(bench, cases, results, count);
    for (int i = 0; timings && i < count; i++) free(timings[i].message);
    free(results);
    free(timings);
    free(times);
    return status;
}
