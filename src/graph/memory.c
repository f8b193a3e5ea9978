/* Planned memory: each intermediate value gets a buffer that is free from the step that computes it to the
 * last that reads it. Buffers are arrays of their own, not parts of one, so that work on different streams of
 * a GPU does not wait for each other. */
#include "graph/plan.h"

#include <stdlib.h>

/* Buffers are multiples of a cache line of a GPU. */
#define ALIGNMENT 128

struct buffers {
    uint64_t *bytes;
    char *taken;
    int count;
    /* Where steps run at once: a row of bits per buffer, the steps that use it. */
    uint64_t *users;
    size_t words;
};

/* Whether all that used the buffer has ended before a step that needs `needed` begins. */
static bool is_over(const struct buffers *buffers, int b, const uint64_t *needed) {
    for (size_t w = 0; needed && w < buffers->words; w++)
        if (buffers->users[(size_t)b * buffers->words + w] & ~needed[w]) return false;
    return true;
}

static void note_use(struct buffers *buffers, int b, int step) {
    if (buffers->users)
        buffers->users[(size_t)b * buffers->words + (size_t)step / 64] |= UINT64_C(1) << step % 64;
}

static uint64_t bytes_of(const smelt_compiled *compiled, int value) {
    const struct graph_value *type = plan_value(compiled, value);
    uint64_t bytes = (uint64_t)shape_product(&type->shape) * smelt_dtype_bytes(type->dtype);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The smallest free buffer that is large enough; else the largest free one grows; else a new one. */
static int take(struct buffers *buffers, uint64_t bytes, bool reuse, const uint64_t *needed) {
    int best = -1, largest = -1;
    for (int b = 0; b < buffers->count && reuse; b++) {
        if (buffers->taken[b] || !is_over(buffers, b, needed)) continue;
        if (buffers->bytes[b] >= bytes && (best < 0 || buffers->bytes[b] < buffers->bytes[best])) best = b;
        if (largest < 0 || buffers->bytes[b] > buffers->bytes[largest]) largest = b;
    }
    if (best < 0) best = largest;
    if (best < 0) {
        best = buffers->count++;
        buffers->bytes[best] = 0;
    }
    if (buffers->bytes[best] < bytes) buffers->bytes[best] = bytes;
    buffers->taken[best] = 1;
    return best;
}

/* By value: the last step that reads it, through views too. */
static void find_last_reads(const smelt_compiled *compiled, int *last) {
    for (int v = 0; v < compiled->value_count; v++) last[v] = -1;
    for (int s = 0; s < compiled->step_count; s++) {
        const struct step *step = &compiled->steps[s];
        for (int i = 0; i < step->read_count; i++) last[compiled->places[step->reads[i]].root] = s;
    }
    /* An output that is a view is copied after the last step. */
    for (int i = 0; i < compiled->graph->output_count; i++)
        last[compiled->places[compiled->graph->outputs[i].value].root] = compiled->step_count;
}

/* The values that a step writes, and its scratch values. */
static int count_writes(const smelt_compiled *compiled, const struct step *step) {
    int count = step->write_count;
    if (step->kernel_count < 2) return count;
    const struct group *group = &compiled->fusion.groups[step->group];
    for (int m = 0; m < group->node_count; m++)
        count += fusion_is_reduction(compiled->graph, group->nodes[m]);
    return count;
}

static void assign(smelt_compiled *compiled, struct buffers *buffers, const int *last, bool reuse) {
    for (int s = 0; s < compiled->step_count; s++) {
        const struct step *step = &compiled->steps[s];
        int writes = count_writes(compiled, step);
        for (int i = 0; i < writes; i++) {
            struct place *place = &compiled->places[step->writes[i]];
            if (place->kind != PLACE_BUFFER) continue;
            uint64_t bytes = bytes_of(compiled, step->writes[i]);
            place->index = take(buffers, bytes, reuse, plan_needed(compiled, s));
            note_use(buffers, place->index, s);
            compiled->info.total_bytes += bytes;
        }
        for (int i = 0; i < step->read_count + writes; i++) {
            int value = i < step->read_count ? step->reads[i] : step->writes[i - step->read_count];
            const struct place *root = &compiled->places[compiled->places[value].root];
            if (root->kind != PLACE_BUFFER) continue;
            note_use(buffers, root->index, s);
            if (last[root->root] <= s) buffers->taken[root->index] = 0;
        }
    }
}

smelt_status plan_memory(smelt_compiled *compiled, bool reuse) {
    size_t count = (size_t)compiled->value_count + 1;
    int *last = calloc(count, sizeof *last);
    struct buffers buffers = {.bytes = calloc(count, sizeof(uint64_t)), .taken = calloc(count, 1)};
    bool at_once = compiled->needed != NULL;
    if (at_once) {
        buffers.words = (size_t)compiled->needed_words;
        buffers.users = calloc(count * buffers.words + 1, sizeof(uint64_t));
    }
    smelt_status status = last && buffers.bytes && buffers.taken && (buffers.users || !at_once)
                              ? SMELT_OK
                              : fail_out_of_memory(count * sizeof *last);
    if (status == SMELT_OK) {
        find_last_reads(compiled, last);
        assign(compiled, &buffers, last, reuse);
        for (int b = 0; b < buffers.count; b++) compiled->info.peak_bytes += buffers.bytes[b];
        compiled->buffers = buffers.bytes;
        compiled->buffer_count = buffers.count;
        buffers.bytes = NULL;
    }
    free(buffers.bytes);
    free(buffers.taken);
    free(buffers.users);
    free(last);
    return status;
}
