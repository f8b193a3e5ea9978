#include "graph/branches.h"
#include "device/device.h"
#include "device/stream.h"

#include <stdlib.h>
#include <string.h>

struct branches {
    const smelt_compiled *compiled;
    const struct recording_functions *functions;
    smelt_stream *stream;
    struct recording_ends *ends; /* of each step; the last element: of the work recorded before all steps */
    uint64_t *covered;           /* a bit per step: whether a step already found waits for it */
};

/* Adds `more` to `all`, without duplicates: steps that launch nothing end where those that they need do. */
static smelt_status add(struct recording_ends *all, const struct recording_ends *more) {
    void **grown = realloc(all->nodes, (all->count + more->count + 1) * sizeof *grown);
    if (!grown) return fail_out_of_memory((all->count + more->count) * sizeof *grown);
    all->nodes = grown;
    for (size_t i = 0; i < more->count; i++) {
        size_t k = 0;
        while (k < all->count && grown[k] != more->nodes[i]) k++;
        if (k == all->count) grown[all->count++] = more->nodes[i];
    }
    return SMELT_OK;
}

/* Makes the next launch wait for the steps before `end` that are in `needed` (NULL: all), except for those
 * that another of them waits for. */
static smelt_status wait_for_steps(struct branches *b, const uint64_t *needed, int end) {
    size_t words = (size_t)b->compiled->needed_words;
    struct recording_ends all = {0};
    smelt_status status = SMELT_OK;
    memset(b->covered, 0, words * sizeof *b->covered);
    for (int s = end - 1; s >= 0 && status == SMELT_OK; s--) {
        uint64_t bit = UINT64_C(1) << s % 64;
        if ((needed && !(needed[s / 64] & bit)) || b->covered[s / 64] & bit) continue;
        status = add(&all, &b->ends[s]);
        for (size_t w = 0; w < words; w++) b->covered[w] |= plan_needed(b->compiled, s)[w];
    }
    if (status == SMELT_OK && !all.count) status = add(&all, &b->ends[b->compiled->step_count]);
    if (status == SMELT_OK) status = b->functions->wait_for(b->stream, &all);
    free(all.nodes);
    return status;
}

static smelt_status run_all(struct branches *b, crew_step *run, void *context) {
    int count = b->compiled->step_count;
    TRY(b->functions->ends(b->stream, &b->ends[count]));
    for (int s = 0; s < count; s++) {
        TRY(wait_for_steps(b, plan_needed(b->compiled, s), s));
        TRY(run(context, s));
        TRY(b->functions->ends(b->stream, &b->ends[s]));
    }
    return wait_for_steps(b, NULL, count);
}

smelt_status branches_run(const smelt_compiled *compiled, smelt_stream *stream, crew_step *run,
                          void *context) {
    const struct device *device;
    TRY(device_find(compiled->device, &device));
    struct branches b = {.compiled = compiled, .functions = device->recordings, .stream = stream};
    size_t steps = (size_t)compiled->step_count;
    if (!b.functions || !b.functions->wait_for) {
        for (int s = 0; s < compiled->step_count; s++) TRY(run(context, s));
        return SMELT_OK;
    }
    b.ends = calloc(steps + 1, sizeof *b.ends);
    b.covered = calloc((size_t)compiled->needed_words + 1, sizeof *b.covered);
    smelt_status status = b.ends && b.covered ? run_all(&b, run, context) : fail_out_of_memory(steps);
    for (size_t s = 0; s <= steps && b.ends; s++) free(b.ends[s].nodes);
    free(b.ends);
    free(b.covered);
    return status;
}
