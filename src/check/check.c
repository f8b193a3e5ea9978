/* A checked launch from its begin to its end. */
#include "check/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct check *check_this;

smelt_status check_open(const struct check_launch *launch, struct check **out) {
    struct check *check = calloc(1, sizeof *check);
    if (!check) return fail_out_of_memory(sizeof *check);
    *out = check;
    size_t bytes = ((size_t)launch->argument_count + 1) * sizeof *check->arguments;
    check->launch = *launch;
    check->findings = calloc(1, sizeof *check->findings);
    check->arguments = malloc(bytes);
    check->spare = calloc(1, sizeof *check->spare);
    if (!check->findings || !check->arguments || !check->spare ||
        !memories_open_stack(&check->scratch, memories_map(SCRATCH_BYTES), SCRATCH_BYTES) ||
        !memories_open_stack(&check->elsewhere, memories_map(SCRATCH_BYTES), SCRATCH_BYTES))
        return fail_out_of_memory(bytes);
    if (launch->argument_count) memcpy(check->arguments, launch->arguments, bytes - sizeof *check->arguments);
    TRY(memories_open(check));
    if (!advice_open(check)) return fail_out_of_memory(bytes);
    for (int i = 0; i < launch->argument_count; i++) {
        struct check_argument *argument = &check->arguments[i];
        argument->shape = findings_text(check->findings, "%s", argument->shape);
        if (!argument->undefined || !argument->bytes) continue;
        struct region *region = memories_region(check, argument->start);
        undefined_mark(region->shadow, region->origins, (size_t)(argument->start - region->start),
                       argument->bytes, undefined_origin(check, ORIGIN_ARGUMENT, argument));
    }
    return check->out_of_memory ? fail_out_of_memory(bytes) : SMELT_OK;
}

void check_close(struct check *check) {
    if (!check) return;
    memories_close(check);
    advice_close(check);
    for (int t = 0; t < CHECK_MOST_THREADS; t++)
        memories_unmap(check->parameters[t], sizeof *check->parameters[t]);
    free(check->intervals);
    free(check->sites);
    free(check->origins);
    memories_unmap(check->scratch.start, SCRATCH_BYTES);
    memories_unmap(check->elsewhere.start, SCRATCH_BYTES);
    memories_close_stack(&check->scratch);
    memories_close_stack(&check->lent);
    memories_close_stack(&check->elsewhere);
    free(check->spare);
    free(check->arguments);
    findings_free(check->findings);
    free(check);
}

smelt_status check_begin_group(struct check *check, const struct check_group *group) {
    race_settle(check);
    advice_begin_group(check, group);
    check->group = *group;
    race_begin_group(check);
    return memories_begin_group(check);
}

void check_enter(struct check *check, uint32_t thread, char *stack, size_t stack_bytes, int fiber) {
    check_this = check;
    if (!check) return;
    race_settle(check);
    check->thread = thread;
    check->out_of_memory |= memories_enter_stack(check, fiber, stack, stack_bytes) != SMELT_OK;
}

void check_lend(struct check *check, char *start, size_t bytes) {
    struct stack *lent = &check->lent;
    if (lent->start == start && lent->end == start + bytes) return;
    memories_close_stack(lent);
    if (memories_open_stack(lent, start, bytes)) return;
    memories_close_stack(lent);
    *lent = (struct stack){0};
    check->out_of_memory = true;
}

smelt_status check_end(struct check *check, bool is_whole) {
    if (check->out_of_memory) return fail_out_of_memory(sizeof *check);
    race_settle(check);
    if (is_whole) undefined_end(check);
    if (is_whole) advice_end(check);
    struct findings *findings = check->findings;
    check->findings = NULL;
    return findings_end(findings, check->launch.kernel, check->launch.accept, check->launch.accept_context);
}

/* ---- Who and where. */

void check_meet(struct check *check, const struct check_site *site) {
    if (site->number >= check->site_room) {
        uint32_t room = 2 * site->number + 64;
        const struct check_site **grown = realloc(check->sites, room * sizeof *grown);
        check->out_of_memory |= !grown;
        if (!grown) return;
        memset(grown + check->site_room, 0, (room - check->site_room) * sizeof *grown);
        check->sites = grown;
        check->site_room = room;
    }
    check->sites[site->number] = site;
}

void check_position(const struct check *check, uint32_t thread, uint32_t position[3]) {
    for (int d = 0; d < 3; d++) {
        position[d] = thread % check->group.size[d];
        thread /= check->group.size[d];
    }
}

void check_place(struct check *check, smelt_finding *told) {
    check_position(check, check->thread, told->thread);
    memcpy(told->threadgroup, check->group.position, sizeof told->threadgroup);
}

void check_name(struct check *check, const char *address, smelt_finding *told) {
    const struct access *now = &check->now;
    if (now->base && now->element) {
        int64_t offset = (int64_t)((uintptr_t)address - (uintptr_t)(now->first ? now->first : now->base)),
                element = now->element;
        told->has_index = true;
        told->index = offset < 0 ? -((-offset + element - 1) / element) : offset / element;
    }
    told->argument = now->name ? findings_text(check->findings, "%s", now->name) : "memory";
}
