#include "bench/contest.h"

#include <string.h>

void contest_add(struct contest *contest, struct bench_case one) {
    if (contest->status != SMELT_OK || contest->case_count == 2 * MAX_VARIANTS) return;
    one.job = contest->job;
    one.error = contest->device->error;
    contest->cases[contest->case_count++] = one;
}

static bool is_right(struct variant *variant) {
    const struct contest *contest = variant->contest;
    char message[256] = "";
    smelt_status status = contest->device->check(variant, message, sizeof message);
    if (status != SMELT_OK)
        bench_fail(contest->bench, contest->job, variant->name, status,
                   *message ? message : contest->device->error());
    return status == SMELT_OK;
}

void contest_enter(struct contest *contest, struct variant variant) {
    if (contest->status != SMELT_OK || contest->count == MAX_VARIANTS) return;
    variant.contest = contest;
    if (!is_right(&variant)) return;
    struct variant *entered = &contest->variants[contest->count++];
    *entered = variant;
    contest_add(contest, (struct bench_case){.variant = variant.name,
                                             .anchor = variant.anchor,
                                             .measure = contest->device->measure,
                                             .context = entered,
                                             .most_rounds = variant.most_rounds,
                                             .work = contest->work,
                                             .work_unit = contest->work_unit,
                                             .bar = variant.bar});
}

static bool takes_part(const struct contest *contest, const char *variant) {
    for (int i = 0; i < contest->case_count; i++)
        if (strcmp(contest->cases[i].variant, variant) == 0) return true;
    return false;
}

void contest_compare(struct contest *contest, const char *variant, const char *anchor, struct bench_bar bar) {
    if (contest->status != SMELT_OK || contest->case_count == 0 || !takes_part(contest, anchor)) return;
    struct bench_case again = contest->cases[contest->case_count - 1];
    if (strcmp(again.variant, variant) != 0) return;
    again.measure = NULL;
    again.anchor = anchor;
    again.anchor_seconds = 0;
    again.bar = bar;
    contest_add(contest, again);
}

void contest_absent(struct contest *contest, const char *variant, const char *why) {
    if (contest->status == SMELT_OK) bench_note(contest->bench, contest->job, variant, why);
}

smelt_status contest_run(struct contest *contest) {
    if (contest->status != SMELT_OK || contest->case_count == 0) return contest->status;
    return bench_measure(contest->bench, contest->cases, contest->case_count,
                         bench_repeats(contest->bench, contest->device->rounds));
}

/* ---- Launches. */

smelt_status function_create(const char *file, const char *text, const char *name,
                             smelt_function **function) {
    smelt_library *library;
    smelt_status status = smelt_library_create(&(smelt_library_desc){.path = file, .source = text}, &library);
    if (status != SMELT_OK) return status;
    status = smelt_library_function(library, &(smelt_function_desc){.name = name}, function);
    smelt_library_release(library);
    return status;
}

smelt_status launches_add(struct launches *launches, const char *file, const char *text, const char *name,
                          const smelt_dispatch_desc *desc) {
    if (launches->count == MAX_LAUNCHES) return SMELT_ERROR_LIMIT;
    launches->descs[launches->count] = *desc;
    smelt_status status = function_create(file, text, name, &launches->functions[launches->count]);
    if (status == SMELT_OK) launches->count++;
    return status;
}

smelt_status launches_run(void *context) {
    const struct launches *launches = context;
    for (int i = 0; i < launches->count; i++) {
        smelt_status status = smelt_function_run(launches->functions[i], &launches->descs[i]);
        if (status != SMELT_OK) return status;
    }
    return SMELT_OK;
}

void launches_release(struct launches *launches) {
    for (int i = 0; i < launches->count; i++) smelt_function_release(launches->functions[i]);
    launches->count = 0;
}
