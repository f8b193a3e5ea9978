/* Log calls of generated code. */
#include "device/cpu/worker.h"
#include "device/log.h"

static void record_call(const struct group_context *group, uint32_t index, uint32_t count,
                        const uint64_t *words) {
    uint32_t position[3] = {index % group->size[0], index / group->size[0] % group->size[1],
                            index / group->size[0] / group->size[1]};
    struct log_place place = {.group =
                                  group->position[0] +
                                  (uint64_t)group->groups[0] *
                                      (group->position[1] + (uint64_t)group->groups[1] * group->position[2]),
                              .index = index};
    for (int d = 0; d < 3; d++) place.thread[d] = group->position[d] * group->dispatch_size[d] + position[d];
    launch_log_add(worker_in_kernel()->launch->log, &place, count, words, NULL, NULL);
}

/* A kernel that does little else is hardly ever found in its own code. */
static bool is_interrupted(void) {
    return __atomic_load_n(&worker_in_kernel()->launch->interrupted, __ATOMIC_RELAXED);
}

void smelt_runtime_log(struct thread_context *context, uint32_t count, const uint64_t *words) {
    record_call(context->group, context->index, count, words);
    if (is_interrupted()) smelt_runtime_stop(context);
}

void smelt_runtime_gang_log(struct gang_context *context, const uint32_t *lanes, uint32_t count,
                            const uint64_t *varies, const uint64_t *shared, const uint64_t *by_lane) {
    uint64_t words[LOG_MOST_WORDS];
    const struct worker *worker = worker_in_kernel();
    if (count > sizeof words / sizeof *words) return;
    for (uint32_t lane = 0; lane < context->count; lane++) {
        if (!(lanes[lane / 32] >> lane % 32 & 1)) continue;
        worker_lane_words(worker, lane, count, varies, shared, by_lane, words);
        record_call(context->group, context->first + lane, count, words);
    }
    if (is_interrupted()) smelt_runtime_gang_stop(context);
}
