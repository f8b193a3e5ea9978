/* Lanes that come to a barrier without the other lanes of their gang: simdgroups that pass a barrier which
 * orders no memory, and lanes that wait in vain. */
#include "device/cpu/gang_state.h"

#include <string.h>

void gang_wait_in_vain(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes) {
    struct gang_state *state = gang->state;
    for (int w = 0; w < gang_lane_words(gang); w++) {
        uint32_t waiting = lanes[w] & gang_lanes_there(gang, w) & ~gang->in_vain[w];
        gang->in_vain[w] |= waiting;
        for (; waiting; waiting &= waiting - 1) {
            uint32_t thread = gang->context.first + 32 * (uint32_t)w + (uint32_t)__builtin_ctz(waiting);
            state->in_vain[thread] = (struct standing){thread, line, file};
        }
    }
    state->vain = true;
}

enum meeting gang_meet(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes) {
    struct gang_state *state = gang->state;
    uint32_t coming[LANE_WORDS], rest = 0;
    for (int w = 0; w < gang_lane_words(gang); w++)
        coming[w] = lanes[w] & gang_lanes_there(gang, w) & ~gang->context.returned[w];
    for (struct lone_barrier *l = state->lone; l < state->lone + state->lone_count; l++) {
        uint32_t missed = 0;
        for (int w = 0; w < gang_lane_words(gang) && l->gang == gang; w++)
            missed |= l->missing[w] & coming[w];
        if (!missed) continue;
        if (!gang_same_barrier(line, file, l->line, l->file)) {
            gang_wait_in_vain(gang, l->line, l->file, l->passed);
            return MEETS_AT_ANOTHER;
        }
        for (int w = 0; w < gang_lane_words(gang); w++) {
            uint32_t here = l->missing[w] & coming[w];
            l->missing[w] &= ~here;
            l->passed[w] |= here;
            coming[w] &= ~here;
        }
    }
    for (int w = 0; w < gang_lane_words(gang); w++) rest |= coming[w];
    return rest ? MEETS_NOBODY : MEETS_ALL;
}

void gang_pass_alone(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes) {
    struct gang_state *state = gang->state;
    if (state->lone_count == MOST_LONE_BARRIERS) return;
    struct lone_barrier *l = &state->lone[state->lone_count++];
    *l = (struct lone_barrier){.gang = gang, .line = line, .file = file};
    for (int w = 0; w < gang_lane_words(gang); w++) {
        uint32_t there = gang_lanes_there(gang, w) & ~gang->context.returned[w];
        l->passed[w] = lanes[w] & there;
        l->missing[w] = there & ~lanes[w];
    }
}
