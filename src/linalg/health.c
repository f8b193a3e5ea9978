#include "linalg/health.h"
#include "array/dtype.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum flag_slot { FLAG_INDEX = 8, FLAG_ERROR = 13, FLAG_ERROR_VALUE = 14, FLAG_SUCCESS = 15 };
enum stat_slot { STAT_LARGEST, STAT_BAD, STAT_ASYMMETRY, STAT_ASYMMETRIC };

/* What is wrong with one matrix; code 0: nothing. */
struct finding {
    int code;
    int64_t index;
    double value;
};

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static struct finding find(const float *flags, const uint32_t *stats) {
    if (stats[STAT_LARGEST] >= 0x7f800000u)
        return (struct finding){CODE_NOT_FINITE, -1 - (int64_t)stats[STAT_BAD], 0};
    if (stats[STAT_ASYMMETRIC] != UINT32_MAX)
        return (struct finding){CODE_ASYMMETRIC, stats[STAT_ASYMMETRIC], float_of(stats[STAT_ASYMMETRY])};
    if (flags[FLAG_SUCCESS] == 1) return (struct finding){0};
    int code = isfinite(flags[FLAG_ERROR]) ? (int)flags[FLAG_ERROR] : 0;
    return (struct finding){code ? code : CODE_NOT_FINITE, (int64_t)flags[FLAG_INDEX],
                            (double)flags[FLAG_ERROR_VALUE]};
}

/* ---- Messages. */

/* An element of a, wherever it is. */
static double element_of(const struct dense *d, int64_t matrix, int64_t number) {
    smelt_array *one = NULL, *here = NULL;
    double value = NAN;
    if (smelt_array_view(d->a, (smelt_shape){.ndim = 1, .size = {1}}, NULL,
                         matrix * d->rows * d->columns + number, &one) == SMELT_OK &&
        smelt_array_to(one, "cpu", d->desc.stream, &here) == SMELT_OK)
        value = element_as_real(element_load(here->dtype, here->data));
    smelt_array_release(one);
    smelt_array_release(here);
    return value;
}

static void describe(const struct dense *d, const struct dense_method *method, int64_t matrix,
                     const struct finding *found, char *text, size_t size) {
    char where[64] = "";
    if (d->batch > 1)
        snprintf(where, sizeof where, "matrix %lld of %lld: ", (long long)matrix, (long long)d->batch);
    if (found->code == CODE_NOT_FINITE && found->index < 0) {
        int64_t number = -1 - found->index;
        snprintf(text, size, "%selement (%lld, %lld) is %g, expected finite numbers", where,
                 (long long)(number / d->columns), (long long)(number % d->columns),
                 element_of(d, matrix, number));
    } else if (found->code == CODE_ASYMMETRIC) {
        long long i = found->index / d->columns, j = found->index % d->columns;
        snprintf(
            text, size,
            "%selements (%lld, %lld) and (%lld, %lld) differ, by more than 1e-5 of the largest magnitude "
            "(at most by %g), expected a symmetric matrix",
            where, i, j, j, i, found->value);
    } else if (found->code == CODE_NOT_FINITE) {
        snprintf(text, size, "%s%s %lld is %g, expected a finite number: the sums overflow", where,
                 method->what, (long long)found->index, found->value);
    } else {
        snprintf(text, size, "%s%s %lld is %g, expected %s", where, method->what, (long long)found->index,
                 found->value, method->expected);
    }
}

static smelt_status refuse(const struct dense *d, const struct dense_method *method, int64_t matrix,
                           const struct finding *found, int64_t failed) {
    char text[320], more[64] = "";
    describe(d, method, matrix, found, text, sizeof text);
    if (failed > 1) snprintf(more, sizeof more, " (%lld matrices failed)", (long long)failed);
    smelt_linalg_report *report = d->desc.report;
    if (report) snprintf(report->message, sizeof report->message, "%s: %s%s", d->name, text, more);
    return fail(SMELT_ERROR_HEALTH, "%s: %s%s", d->name, text, more);
}

smelt_status dense_refuse(const struct dense *d, const struct dense_method *method, int64_t matrix, int code,
                          int64_t index, double value) {
    return refuse(d, method, matrix, &(struct finding){code, index, value}, 1);
}

/* ---- Reading. */

struct health {
    smelt_array *flags, *stats; /* on the host */
    struct finding *found;      /* one per matrix */
    int64_t failed, first;      /* matrices */
};

static void release(struct health *h) {
    smelt_array_release(h->flags);
    smelt_array_release(h->stats);
    free(h->found);
    *h = (struct health){0};
}

static smelt_status read_flags(const struct dense *d, struct health *h) {
    static const uint32_t unmeasured[STAT_COUNT] = {[STAT_ASYMMETRIC] = UINT32_MAX};
    TRY(smelt_array_to(d->flags, "cpu", d->desc.stream, &h->flags));
    /* A copy from a GPU takes as long as many a factorisation. */
    bool measured = d->measured || d->desc.symmetric;
    if (measured) TRY(smelt_array_to(d->stats, "cpu", d->desc.stream, &h->stats));
    h->found = calloc((size_t)d->batch, sizeof *h->found);
    if (!h->found) return fail_out_of_memory((size_t)d->batch * sizeof *h->found);
    const float *flags = (const float *)h->flags->data;
    const uint32_t *stats = measured ? (const uint32_t *)h->stats->data : unmeasured;
    for (int64_t b = d->batch - 1; b >= 0; b--) {
        h->found[b] = find(flags + b * FLAG_COUNT, measured ? stats + b * STAT_COUNT : stats);
        if (!h->found[b].code) continue;
        h->failed++;
        h->first = b;
    }
    return SMELT_OK;
}

/* What the flags leave open, an element that is not finite and the magnitudes, is measured once something
 * failed. */
static smelt_status read_health(struct dense *d, const struct dense_method *method, struct health *h) {
    TRY(read_flags(d, h));
    if (!h->failed || d->measured) return SMELT_OK;
    TRY(dense_measure(d, method->triangle));
    release(h);
    return read_flags(d, h);
}

static void tell(const struct dense *d, const struct health *h) {
    smelt_linalg_report *report = d->desc.report;
    if (!report || !h->failed) return;
    const struct finding *found = &h->found[h->first];
    report->failed = h->failed;
    report->matrix = h->first;
    report->index = found->index < 0 ? -1 - found->index : found->index;
    report->value = found->code == CODE_NOT_FINITE && found->index < 0
                        ? element_of(d, h->first, -1 - found->index)
                        : found->value;
}

/* ---- Policies. */

/* Tells what was done: in the report, or the log. */
static void warn(const struct dense *d, const char *first, const char *done) {
    smelt_linalg_report *report = d->desc.report;
    if (report)
        snprintf(report->message, sizeof report->message, "%s: %s; %s", d->name, first, done);
    else
        log_line(SMELT_LOG_WARNING, "%s: %s; %s", d->name, first, done);
}

/* More jitter for the matrices that failed. False: one cannot be helped by it. */
static bool shift_more(struct dense *d, const struct health *h, int attempt, int64_t *culprit) {
    const uint32_t *stats = (const uint32_t *)h->stats->data;
    for (int64_t b = 0; b < d->batch; b++) {
        if (!h->found[b].code) continue;
        double largest = (double)float_of(stats[b * STAT_COUNT]);
        *culprit = b;
        if (h->found[b].code == CODE_ASYMMETRIC || !isfinite(largest)) return false;
        d->shift[b] = (float)((d->desc.jitter > 0 ? d->desc.jitter : 1e-6) * pow(10, attempt) *
                              (largest > 0 ? largest : 1));
    }
    return true;
}

static smelt_status send_shift(struct dense *d) {
    smelt_array *here = NULL;
    smelt_array_release(d->jitter);
    d->jitter = NULL;
    TRY(smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){.ndim = 1, .size = {d->batch}}, d->shift,
                                &here));
    smelt_status status = smelt_array_to(here, d->host ? "cpu" : d->device, d->desc.stream, &d->jitter);
    smelt_array_release(here);
    return status;
}

static smelt_status run_with_jitter(struct dense *d, const struct dense_method *method, void *job,
                                    struct health *h) {
    int most = d->desc.attempts ? d->desc.attempts : 6;
    char first[320];
    int64_t culprit = h->first, failed = h->failed;
    d->shift = calloc((size_t)d->batch, sizeof *d->shift);
    if (!d->shift) return fail_out_of_memory((size_t)d->batch * sizeof *d->shift);
    describe(d, method, h->first, &h->found[h->first], first, sizeof first);
    for (int attempt = 0; h->failed; attempt++) {
        if (attempt == most || !shift_more(d, h, attempt, &culprit))
            return refuse(d, method, attempt == most ? h->first : culprit,
                          &h->found[attempt == most ? h->first : culprit], h->failed);
        TRY(send_shift(d));
        d->measured = false; /* which clears what was measured */
        TRY(method->compute(d, job));
        release(h);
        TRY(read_health(d, method, h));
        if (d->desc.report) d->desc.report->attempts = attempt + 1;
    }
    float largest = 0;
    for (int64_t b = 0; b < d->batch; b++) largest = d->shift[b] > largest ? d->shift[b] : largest;
    if (d->desc.report) d->desc.report->jitter = (double)largest;
    char done[128];
    snprintf(done, sizeof done, "%g was added to the diagonal%s", (double)largest,
             failed > 1 ? " of it, and at most that to those of the others that failed" : "");
    warn(d, first, done);
    return SMELT_OK;
}

static smelt_status repair_one(struct dense *d, const struct dense_method *method, void *job, int64_t matrix,
                               const double *all) {
    int64_t elements = d->rows * d->columns, failed = -1;
    double value = 0, *copy = malloc((size_t)elements * sizeof *copy);
    if (!copy) return fail_out_of_memory((size_t)elements * sizeof *copy);
    memcpy(copy, all + matrix * elements, (size_t)elements * sizeof *copy);
    smelt_status status = method->repair(d, job, matrix, copy, &failed, &value);
    free(copy);
    if (status == SMELT_OK && failed >= 0)
        status =
            refuse(d, method, matrix,
                   &(struct finding){isfinite(value) ? method->code : CODE_NOT_FINITE, failed, value}, 1);
    return status;
}

static smelt_status run_on_host(struct dense *d, const struct dense_method *method, void *job,
                                struct health *h) {
    smelt_array *here = NULL, *wide = NULL;
    char first[320];
    for (int64_t b = 0; b < d->batch; b++)
        if (h->found[b].code == CODE_ASYMMETRIC ||
            (h->found[b].code == CODE_NOT_FINITE && h->found[b].index < 0))
            return refuse(d, method, b, &h->found[b], h->failed);
    describe(d, method, h->first, &h->found[h->first], first, sizeof first);
    warn(d, first,
         h->failed > 1 ? "the CPU computes all matrices that failed again, in float64"
                       : "the CPU computes it again in float64");
    smelt_status status = smelt_array_to(d->wide ? d->wide : d->a, "cpu", d->desc.stream, &here);
    if (status == SMELT_OK) status = smelt_array_convert(here, SMELT_FLOAT64, &wide);
    for (int64_t b = 0; b < d->batch && status == SMELT_OK; b++)
        if (h->found[b].code) status = repair_one(d, method, job, b, (const double *)wide->data);
    if (status == SMELT_OK && d->desc.report) d->desc.report->fell_back = true;
    smelt_array_release(here);
    smelt_array_release(wide);
    return status;
}

static smelt_status follow(struct dense *d, const struct dense_method *method, void *job, struct health *h) {
    TRY(read_health(d, method, h));
    tell(d, h);
    if (!h->failed) return SMELT_OK;
    if (d->desc.on_failure == SMELT_LINALG_JITTER) return run_with_jitter(d, method, job, h);
    if (d->desc.on_failure == SMELT_LINALG_FALLBACK) return run_on_host(d, method, job, h);
    return refuse(d, method, h->first, &h->found[h->first], h->failed);
}

/* ---- float64, on the host. */

static smelt_status run_one_wide(struct dense *d, const struct dense_method *method, void *job, int64_t b,
                                 double *copy) {
    int64_t elements = d->rows * d->columns, failed = -1;
    int most = d->desc.on_failure == SMELT_LINALG_JITTER ? d->desc.attempts ? d->desc.attempts : 6 : 0;
    const double *a = (const double *)d->a->data + b * elements;
    double value = 0, largest = 0, shift = 0;
    smelt_linalg_report unused = {0}, *report = d->desc.report ? d->desc.report : &unused;
    for (int64_t i = 0; i < elements; i++) largest = fmax(largest, isfinite(a[i]) ? fabs(a[i]) : INFINITY);
    for (int attempt = 0; attempt <= most; attempt++) {
        memcpy(copy, a, (size_t)elements * sizeof *copy);
        for (int64_t i = 0; i < d->rows && i < d->columns; i++) copy[i * (d->columns + 1)] += shift;
        TRY(method->repair(d, job, b, copy, &failed, &value));
        if (attempt) report->attempts = attempt;
        if (failed < 0) break;
        if (attempt == 0 && report->failed++ == 0)
            report->matrix = b, report->index = failed, report->value = value;
        shift =
            (d->desc.jitter > 0 ? d->desc.jitter : 1e-12) * pow(10, attempt) * (largest > 0 ? largest : 1);
        if (!isfinite(largest)) break;
        if (attempt < most) report->jitter = shift;
    }
    if (failed < 0 || d->desc.on_failure == SMELT_LINALG_IGNORE) return SMELT_OK;
    return refuse(d, method, b,
                  &(struct finding){isfinite(value) ? method->code : CODE_NOT_FINITE, failed, value}, 1);
}

static smelt_status run_wide(struct dense *d, const struct dense_method *method, void *job) {
    size_t bytes = (size_t)(d->rows * d->columns) * sizeof(double);
    double *copy = malloc(bytes + 1);
    if (!copy) return fail_out_of_memory(bytes);
    smelt_status status = SMELT_OK;
    for (int64_t b = 0; b < d->batch && status == SMELT_OK; b++)
        status = run_one_wide(d, method, job, b, copy);
    free(copy);
    return status;
}

smelt_status dense_run(struct dense *d, const struct dense_method *method, void *job) {
    struct health health = {0};
    if (d->desc.flags) *d->desc.flags = NULL;
    if (!d->flags) return run_wide(d, method, job);
    TRY(method->compute(d, job));
    if (d->desc.flags) *d->desc.flags = smelt_array_retain(d->flags);
    if (d->desc.on_failure == SMELT_LINALG_IGNORE) return SMELT_OK;
    smelt_status status = follow(d, method, job, &health);
    release(&health);
    if (status != SMELT_OK && d->desc.flags) {
        smelt_array_release(*d->desc.flags);
        *d->desc.flags = NULL;
    }
    return status;
}
