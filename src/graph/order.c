/* The order of steps that may run at once: a step needs those that compute what it reads, and those that they
 * need. Its buffers are its own or free since a step that it needs (memory.c), so nothing else matters. */
#include "graph/plan.h"

#include <stdlib.h>

smelt_status plan_order(smelt_compiled *compiled) {
    size_t steps = (size_t)compiled->step_count, words = (steps + 63) / 64;
    int *writer = malloc(((size_t)compiled->value_count + 1) * sizeof *writer);
    compiled->needed = calloc(steps * words + 1, sizeof *compiled->needed);
    compiled->needed_words = (int)words;
    if (!writer || !compiled->needed) {
        free(writer);
        return fail_out_of_memory(steps * words * sizeof *compiled->needed);
    }
    for (int v = 0; v < compiled->value_count; v++) writer[v] = -1;
    for (size_t s = 0; s < steps; s++) {
        const struct step *step = &compiled->steps[s];
        uint64_t *row = compiled->needed + s * words;
        for (int i = 0; i < step->read_count; i++) {
            int from = writer[compiled->places[step->reads[i]].root];
            if (from < 0) continue;
            row[from / 64] |= UINT64_C(1) << from % 64;
            for (size_t w = 0; w < words; w++) row[w] |= compiled->needed[(size_t)from * words + w];
        }
        for (int i = 0; i < step->write_count; i++) writer[step->writes[i]] = (int)s;
    }
    free(writer);
    return SMELT_OK;
}
