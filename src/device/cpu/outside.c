/* Accesses that generated code has found to miss their array: the code ends, and the launch fails. */
#include "array/array.h"
#include "device/cpu/worker.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_inside(const struct access_site *site, const struct buffer_extent *extent, uint64_t address) {
    uint64_t offset = address + site->offset - extent->start;
    return offset <= extent->bytes && site->bytes <= extent->bytes - offset;
}

void smelt_runtime_outside(const struct access_site *sites, uint64_t start, uint64_t bytes,
                           uint64_t address) {
    struct worker *worker = worker_in_kernel();
    struct buffer_extent extent = {.start = start, .bytes = bytes};
    while (sites->left && is_inside(sites, &extent, address)) sites++;
    worker->outside = (struct outside_access){sites, extent, address + sites->offset};
    worker->ended = ENDED_OUTSIDE;
    fiber_leave(worker->running, &worker->home);
    __builtin_unreachable();
}

/* The parameter whose memory it is; NULL: a variable's, or it cannot be told. */
static const struct binding *parameter_of(const struct worker *worker, int *number) {
    const struct access_site *site = worker->outside.site;
    const struct image *image = &worker->code->head.image;
    for (int i = 0; i < image->binding_count; i++) {
        const struct binding *binding = &image->bindings[i];
        *number = i;
        if (site->object == ACCESS_BUFFER || site->object == ACCESS_UNKNOWN) {
            if (binding->kind != BINDING_BUFFER) continue;
            const struct buffer_extent *extent = &worker->launch->extents[binding->index];
            bool same = extent->start == worker->outside.extent.start &&
                        extent->bytes == worker->outside.extent.bytes;
            if (site->object == ACCESS_BUFFER ? binding->index == (int32_t)site->slot : same) return binding;
        } else if (site->object == ACCESS_THREADGROUP_ARGUMENT && binding->kind == BINDING_THREADGROUP &&
                   binding->index == (int32_t)site->slot) {
            return binding;
        }
    }
    return NULL;
}

/* What the access missed, as the message says it. */
struct missed {
    char name[200], size[640];
    uint64_t base; /* of element 0 */
    int64_t element;
};

static void describe_parameter(const struct worker *worker, const struct binding *binding, int number,
                               struct missed *missed) {
    const struct launch *launch = worker->launch->request;
    const char *name = launch->parameter_name ? launch->parameter_name(launch, number) : "";
    if (*name)
        snprintf(missed->name, sizeof missed->name, "%s", name);
    else
        snprintf(missed->name, sizeof missed->name, "%s(%d)",
                 binding->kind == BINDING_BUFFER ? "buffer" : "threadgroup", (int)binding->index);
    missed->element = binding->size > 0 ? binding->size : 1;
    if (binding->kind != BINDING_BUFFER) return;
    const struct launch_buffer *buffer = &launch->buffers[binding->index];
    missed->base = (uintptr_t)launch_address(buffer);
    if (buffer->array)
        snprintf(missed->size, sizeof missed->size, " and shape %s", shape_print(&buffer->array->shape).text);
}

smelt_status worker_outside_failure(const struct worker *worker, const char *who) {
    const struct outside_access *outside = &worker->outside;
    const struct access_site *site = outside->site;
    const uint32_t *group = worker->group.position;
    struct missed missed = {.name = "memory", .base = outside->extent.start, .element = 1};
    int number;
    const struct binding *binding = parameter_of(worker, &number);
    if (binding) {
        describe_parameter(worker, binding, number, &missed);
    } else if (site->name) {
        snprintf(missed.name, sizeof missed.name, "%s", site->name);
        missed.element = site->element ? site->element : 1;
    }
    if (site->object == ACCESS_PRIVATE && site->element) missed.element = site->element;
    int64_t offset = (int64_t)(outside->address - missed.base);
    if (offset < 0) offset += (int64_t)site->wrap;
    /* Down, as elements are counted. */
    int64_t index = offset / missed.element - (offset % missed.element < 0);
    uint64_t count = outside->extent.bytes / (uint64_t)missed.element;
    if (site->object == ACCESS_PRIVATE && !site->name)
        return fail(SMELT_ERROR_FAULT,
                    "kernel '%s' %s element %" PRId64 " of a private array at %s:%u, which has %" PRIu64
                    " element%s (%s of threadgroup (%u, %u, %u))",
                    worker->launch->name, site->writes ? "writes" : "reads", index, site->file, site->line,
                    count, count == 1 ? "" : "s", who, group[0], group[1], group[2]);
    return fail(SMELT_ERROR_FAULT,
                "kernel '%s' %s %s[%" PRId64 "] at %s:%u, but '%s' has %" PRIu64 " element%s%s (%s of "
                "threadgroup (%u, %u, %u))",
                worker->launch->name, site->writes ? "writes" : "reads", missed.name, index, site->file,
                site->line, missed.name, count, count == 1 ? "" : "s", missed.size, who, group[0], group[1],
                group[2]);
}
