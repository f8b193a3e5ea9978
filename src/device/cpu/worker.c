#include "device/cpu/worker.h"
#include "abi/cpu_context.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct worker *worker_this;

struct worker *worker_in_kernel(void) {
    return worker_this && worker_this->in_kernel ? worker_this : NULL;
}

NOT_COUNTED struct worker *worker_of_signal(void) {
    return worker_this;
}

static smelt_status prepare_memory(struct worker *worker, const struct cpu_launch *launch) {
    if (worker->threadgroup_capacity < launch->threadgroup_total) {
        size_t bytes = (launch->threadgroup_total + 255) / 128 * 128;
        free(worker->threadgroup_memory);
        worker->threadgroup_capacity = 0;
        worker->threadgroup_memory = aligned_alloc(128, bytes);
        if (!worker->threadgroup_memory) return fail_out_of_memory(bytes);
        worker->threadgroup_capacity = bytes;
    }
    worker->group.threadgroup_memory = worker->threadgroup_memory;
    size_t offset = (launch->static_bytes + 127) / 128 * 128;
    for (int i = 0; i < CPU_MAX_THREADGROUP_SLOTS; i++) {
        worker->group.threadgroup_slots[i] =
            worker->threadgroup_memory ? worker->threadgroup_memory + offset : NULL;
        offset += (launch->threadgroup_bytes[i] + 127) / 128 * 128;
    }
    return SMELT_OK;
}

smelt_status worker_prepare(struct worker *worker, const struct cpu_launch *launch) {
    if (worker->prepared == launch->number) return SMELT_OK;
    worker->prepared = 0;
    TRY(prepare_memory(worker, launch));
    struct group_context *group = &worker->group;
    for (int d = 0; d < 3; d++) {
        group->dispatch_size[d] = launch->request->group_size[d];
        group->grid[d] = launch->request->grid[d];
        group->groups[d] = launch->request->groups[d];
    }
    group->buffers = launch->buffers;
    group->extents = launch->extents;
    memcpy(group->threadgroup_slot_bytes, launch->threadgroup_bytes, sizeof group->threadgroup_slot_bytes);
    group->stop = &launch->stop;
    worker->launch = launch;
    worker->filled_for = NULL;
    worker->prepared = launch->number;
    return SMELT_OK;
}

void worker_place_group(struct worker *worker, uint64_t number) {
    struct group_context *group = &worker->group;
    uint32_t count = 1;
    for (int d = 0; d < 3; d++) {
        group->position[d] = (uint32_t)(number % group->groups[d]);
        number /= group->groups[d];
        uint64_t left = group->grid[d] - (uint64_t)group->position[d] * group->dispatch_size[d];
        group->size[d] = left < group->dispatch_size[d] ? (uint32_t)left : group->dispatch_size[d];
        count *= group->size[d];
    }
    group->simdgroup_count = (count + SIMDGROUP_LANES - 1) / SIMDGROUP_LANES;
}

void worker_fill_threadgroup_memory(struct worker *worker) {
    const struct cpu_launch *launch = worker->launch;
    uint64_t own = worker->code->head.image.threadgroup_filled;
    uint64_t total = launch->threadgroup_total, given = (launch->static_bytes + 127) / 128 * 128;
    if (worker->filled_for != worker->code) own = given;
    if (own) memset(worker->threadgroup_memory, 0xff, own);
    if (total > given) memset(worker->threadgroup_memory + given, 0xff, total - given);
    worker->filled_for = worker->code;
    worker->refills = worker->code->head.image.threadgroup_filled || total > given;
}

void worker_enter(struct worker *worker, struct fiber *fiber) {
    worker->running = fiber;
    worker->in_kernel = true;
    fiber_enter(fiber, &worker->home);
    worker->in_kernel = false;
}

/* ---- Failures. */

smelt_status barrier_failure(const struct worker *worker, const struct standing *waiting,
                             const struct standing *other) {
    const char *name = worker->launch->name;
    const uint32_t *group = worker->group.position;
    if (!other->file)
        return fail(
            SMELT_ERROR_BARRIER,
            "kernel '%s': thread %u of threadgroup (%u, %u, %u) waits at the barrier in %s:%u, but thread %u "
            "reached the end of the kernel without passing it; all threads of a threadgroup must meet at a "
            "barrier or leave by return",
            name, waiting->thread, group[0], group[1], group[2], waiting->file, BARRIER_LINE(waiting->line),
            other->thread);
    return fail(SMELT_ERROR_BARRIER,
                "kernel '%s': thread %u of threadgroup (%u, %u, %u) waits at the barrier in %s:%u, but "
                "thread %u waits "
                "at the one in %s:%u; all threads of a threadgroup must meet at the same barrier",
                name, waiting->thread, group[0], group[1], group[2], waiting->file,
                BARRIER_LINE(waiting->line), other->thread, other->file, BARRIER_LINE(other->line));
}

smelt_status worker_memory_failure(struct worker *worker) {
    size_t bytes = worker->lacking_bytes;
    worker->lacking_bytes = 0;
    return bytes ? fail_out_of_memory(bytes) : SMELT_OK;
}

smelt_status fault_failure(const struct worker *worker, const char *who) {
    const char *name = worker->launch->name;
    const uint32_t *group = worker->group.position;
    struct source_line line;
    char where[512] = "an unknown line";
    if (object_line(&worker->code->object, worker->fault_instruction, &line))
        snprintf(where, sizeof where, "%s:%d", line.file, line.line);
    const char *stack = worker->running->stack, *address = worker->fault_address;
    /* In the inaccessible bytes before or behind the stack. */
    if (address >= stack - FIBER_GUARD_BYTES &&
        address < stack + worker->running->stack_bytes + FIBER_GUARD_BYTES)
        return fail(SMELT_ERROR_FAULT,
                    "kernel '%s' ran past its private arrays at %s (%s of threadgroup (%u, %u, %u))", name,
                    where, who, group[0], group[1], group[2]);
    if (worker->fault_signal == SIGILL)
        return fail(SMELT_ERROR_FAULT, "kernel '%s' %s at %s (%s of threadgroup (%u, %u, %u))", name,
                    arch_is_trap(worker->fault_instruction) ? "executed a trap"
                                                            : "executed an instruction that this CPU lacks,",
                    where, who, group[0], group[1], group[2]);
    if (address == (const char *)SMELT_NO_FUNCTION)
        return fail(SMELT_ERROR_FAULT,
                    "kernel '%s' called a function through a pointer to none of its functions, at %s (%s of "
                    "threadgroup (%u, %u, %u))",
                    name, where, who, group[0], group[1], group[2]);
    return fail(SMELT_ERROR_FAULT,
                "kernel '%s' accessed invalid address %p at %s (%s of threadgroup (%u, %u, %u))", name,
                worker->fault_address, where, who, group[0], group[1], group[2]);
}
