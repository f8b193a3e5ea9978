/* Weights in turn from more memory than the caches hold, and the entering of kernels that read them. */
#include "bench/ml/ml.h"

#include <string.h>

#define ROTATED_BYTES (INT64_C(320) << 20) /* several times the last-level cache of usual machines */

smelt_status ml_copies_create(smelt_array *array, int64_t bytes, bool quick, struct ml_copies *copies) {
    int64_t wanted = quick ? 2 : (ROTATED_BYTES + bytes - 1) / bytes;
    *copies = (struct ml_copies){.arrays = {array}, .count = 1, .bytes = bytes};
    if (wanted > ML_MAX_COPIES) wanted = ML_MAX_COPIES;
    for (int64_t i = 1; i < wanted; i++) {
        smelt_status status = smelt_array_create(smelt_array_dtype(array), SHAPE_OF(smelt_array_size(array)),
                                                 &copies->arrays[copies->count]);
        if (status != SMELT_OK) return status;
        memcpy(smelt_array_data(copies->arrays[copies->count++]), smelt_array_data(array), (size_t)bytes);
    }
    return SMELT_OK;
}

void ml_copies_release(struct ml_copies *copies) {
    for (int i = 0; i < copies->count; i++) smelt_array_release(copies->arrays[i]);
    copies->count = 0;
}

smelt_array *ml_copies_next(struct ml_copies *copies) {
    copies->turn = (copies->turn + 1) % copies->count;
    return copies->arrays[copies->turn];
}

static smelt_status run_next(void *context) {
    struct ml_variant *variant = context;
    variant->launches.descs[0].buffers[0].array = ml_copies_next(variant->rotated);
    return launches_run(&variant->launches);
}

#define SLOW_ROUNDS 3

void ml_enter(struct contest *contest, struct ml_variant *variants, const struct ml_way *ways, int count,
              const char *file, const char *text, const smelt_dispatch_desc *desc, struct ml_copies *rotated,
              struct ml_anchor anchor) {
    for (int i = 0; i < count; i++) {
        smelt_dispatch_desc own = *desc;
        own.device = "cpu";
        for (int d = 0; d < 3; d++) {
            own.groups[d] = ways[i].groups[d] ? ways[i].groups[d] : 1;
            own.threadgroup[d] = ways[i].threads[d] ? ways[i].threads[d] : 1;
        }
        variants[i] = (struct ml_variant){.rotated = rotated};
        if (contest->status == SMELT_OK)
            contest->status = launches_add(&variants[i].launches, file, text, ways[i].function, &own);
        contest_enter(contest, (struct variant){.name = ways[i].name,
                                                .run = run_next,
                                                .context = &variants[i],
                                                .anchor = anchor.variant,
                                                .bar = anchor.bar,
                                                .most_rounds = ways[i].slow ? SLOW_ROUNDS : 0});
    }
}
