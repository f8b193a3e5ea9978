/* smelt_tune: the search itself. */
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/reserved.h"
#include "smelt/tune.h"
#include "tune/machine.h"
#include "tune/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_BUDGET 30
/* A candidate that takes so many times as long as the best, in each of its runs, is not measured further. It
 * runs again up to SLOW_AGAIN times, since other programs may have disturbed a single run. */
#define SLOW 3
#define SLOW_AGAIN 2
/* What a candidate is timed for, and how often at least: batches of runs, whose median counts. */
#define MEASURE_SECONDS 0.05
#define BATCH_SECONDS 0.001
#define LEAST_BATCHES 3
#define MOST_BATCHES 51
/* The best are timed again in turn: what disturbed one disturbs its neighbour. */
#define FINALISTS 3
#define FINAL_ROUNDS 7

struct search {
    const smelt_tune_desc *desc;
    double *seconds; /* per candidate; 0: skipped */
    double end;      /* on the clock */
    int tried, seen;
    int best; /* -1: none yet */
    smelt_status first_status;
    char first_note[1024];
};

/* A name's words before the first space. */
static int shown(const char *name) {
    return (int)strcspn(name, " ");
}

static smelt_status interrupted(const struct search *s) {
    if (!interrupt_is_raised(s->desc->interrupt)) return SMELT_OK;
    return fail(SMELT_ERROR_INTERRUPTED, "tuning '%.*s' was interrupted", shown(s->desc->name),
                s->desc->name);
}

static void tell(const struct search *s, int index, const char *note) {
    const smelt_tune_desc *desc = s->desc;
    if (!desc->progress) return;
    desc->progress(&(smelt_tune_progress){.name = desc->name,
                                          .candidate = desc->candidates[index],
                                          .tried = s->seen,
                                          .count = desc->count,
                                          .seconds = s->seconds[index],
                                          .note = note,
                                          .best = s->best < 0 ? NULL : desc->candidates[s->best],
                                          .best_seconds = s->best < 0 ? 0 : s->seconds[s->best]},
                   desc->context);
}

static void skip(struct search *s, int index, smelt_status status, const char *note) {
    s->seen++;
    if (s->first_status == SMELT_OK) {
        s->first_status = status;
        snprintf(s->first_note, sizeof s->first_note, "%s: %s", s->desc->candidates[index], note);
    }
    tell(s, index, note);
}

/* Seconds of `count` runs, by one. */
static smelt_status time_runs(const struct search *s, int index, int count, double *seconds) {
    double start = clock_seconds();
    for (int i = 0; i < count; i++) TRY(s->desc->run(index, s->desc->context));
    TRY(smelt_device_wait(s->desc->device));
    *seconds = (clock_seconds() - start) / count;
    return interrupted(s);
}

static int compare_reals(const void *a, const void *b) {
    double p = *(const double *)a, q = *(const double *)b;
    return p < q ? -1 : p > q;
}

static double median_of(double *times, int count) {
    qsort(times, (size_t)count, sizeof *times, compare_reals);
    return (times[count / 2] + times[(count - 1) / 2]) / 2;
}

/* `once`: about the seconds of a run. */
static smelt_status measure(const struct search *s, int index, double once, double *seconds) {
    double times[MOST_BATCHES], until = clock_seconds() + MEASURE_SECONDS;
    int count = 0, runs = once < BATCH_SECONDS ? (int)(BATCH_SECONDS / (once + 1e-9)) + 1 : 1;
    while (count < LEAST_BATCHES || (count < MOST_BATCHES && clock_seconds() < until))
        TRY(time_runs(s, index, runs, &times[count++]));
    *seconds = median_of(times, count);
    return SMELT_OK;
}

/* INTERRUPTED ends the search; anything else is noted. */
static smelt_status try_candidate(struct search *s, int index) {
    const smelt_tune_desc *desc = s->desc;
    char note[1024];
    double once = 0, seconds = 0;
    smelt_status status = time_runs(s, index, 1, &once); /* compiles */
    if (status == SMELT_OK && desc->check && !desc->check(index, desc->context)) {
        skip(s, index, SMELT_ERROR_INVALID_ARGUMENT, "wrong result");
        return SMELT_OK;
    }
    if (status == SMELT_OK) status = time_runs(s, index, 1, &once);
    double best = s->best < 0 ? once : s->seconds[s->best];
    for (int i = 0; i < SLOW_AGAIN && status == SMELT_OK && once > SLOW * best; i++) {
        status = time_runs(s, index, 1, &seconds);
        if (seconds < once) once = seconds;
    }
    if (status == SMELT_OK && once > SLOW * best) {
        snprintf(note, sizeof note, "slow: %.4g ms, where another takes %.4g", 1e3 * once, 1e3 * best);
        skip(s, index, SMELT_ERROR_TIMEOUT, note);
        return SMELT_OK;
    }
    if (status == SMELT_OK) status = measure(s, index, once, &seconds);
    if (status == SMELT_ERROR_INTERRUPTED) return status;
    if (status != SMELT_OK) {
        snprintf(note, sizeof note, "%s", desc->error ? desc->error(desc->context) : smelt_error());
        skip(s, index, status, note);
        return SMELT_OK;
    }
    s->seconds[index] = seconds;
    s->tried++;
    s->seen++;
    if (s->best < 0 || seconds < s->seconds[s->best]) s->best = index;
    tell(s, index, NULL);
    return SMELT_OK;
}

/* The fastest candidates, by their first times. */
static int find_finalists(const struct search *s, int finalists[FINALISTS]) {
    int count = 0;
    for (int i = 0; i < s->desc->count; i++) {
        int at = count;
        if (s->seconds[i] <= 0) continue;
        while (at > 0 && s->seconds[i] < s->seconds[finalists[at - 1]]) at--;
        if (at == FINALISTS) continue;
        if (count < FINALISTS) count++;
        memmove(&finalists[at + 1], &finalists[at], (size_t)(count - 1 - at) * sizeof *finalists);
        finalists[at] = i;
    }
    return count;
}

static smelt_status decide(struct search *s) {
    int finalists[FINALISTS], count = find_finalists(s, finalists);
    double times[FINALISTS][FINAL_ROUNDS];
    int rounds = 0;
    for (; rounds < FINAL_ROUNDS && count > 1 && clock_seconds() < s->end; rounds++)
        for (int i = 0; i < count; i++) {
            double once = s->seconds[finalists[i]];
            int runs = once < BATCH_SECONDS ? (int)(BATCH_SECONDS / (once + 1e-9)) + 1 : 1;
            TRY(time_runs(s, finalists[i], runs, &times[i][rounds]));
        }
    if (rounds < LEAST_BATCHES) return SMELT_OK;
    for (int i = 0; i < count; i++) s->seconds[finalists[i]] = median_of(times[i], rounds);
    for (int i = 0; i < count; i++)
        if (s->seconds[finalists[i]] < s->seconds[s->best]) s->best = finalists[i];
    return SMELT_OK;
}

static smelt_status search(struct search *s) {
    const smelt_tune_desc *desc = s->desc;
    s->end = clock_seconds() + (desc->budget > 0 ? desc->budget : USUAL_BUDGET);
    s->best = -1;
    for (int i = 0; i < desc->count; i++) {
        TRY(interrupted(s));
        if (s->best >= 0 && clock_seconds() > s->end)
            skip(s, i, SMELT_ERROR_TIMEOUT, "the time budget is spent");
        else
            TRY(try_candidate(s, i));
    }
    if (s->best < 0)
        return fail(s->first_status, "none of the %d candidates of '%.*s' works; %s", desc->count,
                    shown(desc->name), desc->name, s->first_note);
    return decide(s);
}

/* ---- The call. */

static smelt_status check(const smelt_tune_desc *desc, const smelt_tune_result *result) {
    if (!desc || !result)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning: %s is NULL", desc ? "result" : "desc");
    TRY(reserved_check(smelt_tune_desc, desc));
    if (!desc->name || !desc->candidates || !desc->run)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning: desc->%s is NULL",
                    !desc->name         ? "name"
                    : !desc->candidates ? "candidates"
                                        : "run");
    if (desc->count < 1 || desc->count > SMELT_MAX_TUNE_CANDIDATES)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning '%.*s': there are %d candidates, expected 1 to %d",
                    shown(desc->name), desc->name, desc->count, SMELT_MAX_TUNE_CANDIDATES);
    for (int i = 0; i < desc->count; i++)
        if (!desc->candidates[i])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning '%.*s': candidate %d is NULL",
                        shown(desc->name), desc->name, i);
    if (!(desc->budget >= 0))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tuning '%.*s': the budget is %g seconds, expected 0 or more", shown(desc->name),
                    desc->name, desc->budget);
    return SMELT_OK;
}

/* A stored choice that is no longer a candidate is not found. */
static bool find_stored(const smelt_tune_desc *desc, const char *machine, smelt_tune_result *result) {
    struct text words = {0};
    bool found = false;
    if (store_find(machine, desc->name, desc->key ? desc->key : "", &words))
        for (int i = 0; i < desc->count && !found; i++)
            if (strcmp(desc->candidates[i], text_string(&words)) == 0) {
                *result = (smelt_tune_result){.index = i, .stored = true};
                found = true;
            }
    text_free(&words);
    return found;
}

smelt_status smelt_tune(const smelt_tune_desc *desc, smelt_tune_result *result) {
    char machine[HASH_HEX_LENGTH + 1];
    TRY(check(desc, result));
    TRY(tune_machine(desc->device, machine));
    if (!desc->again && find_stored(desc, machine, result)) return SMELT_OK;
    struct search s = {.desc = desc, .seconds = calloc((size_t)desc->count, sizeof(double))};
    if (!s.seconds) return fail_out_of_memory((size_t)desc->count * sizeof(double));
    smelt_status status = search(&s);
    if (status == SMELT_OK) {
        *result = (smelt_tune_result){.index = s.best, .seconds = s.seconds[s.best], .tried = s.tried};
        store_add(machine, desc->name, desc->key ? desc->key : "", desc->candidates[s.best],
                  s.seconds[s.best]);
    }
    free(s.seconds);
    return status;
}
