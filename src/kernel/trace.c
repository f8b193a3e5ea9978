#include "kernel/trace.h"
#include "base/json.h"
#include "device/device.h"

#include <stdio.h>

/* Of more buffers only the sums are told. */
#define MOST_BUFFERS 64

/* Bytes as they are bound; how many of them the kernel touches is not known. */
static void add_buffers(struct trace_slice *slice, const struct launch *launch) {
    const struct image *image = launch->image;
    struct text list = {0};
    uint64_t bytes[2] = {0, 0}; /* read, written */
    int count = 0;
    text_add(&list, "[");
    for (int i = 0; i < image->binding_count; i++) {
        const struct binding *binding = launch_binding(launch, i);
        if (binding->kind != BINDING_BUFFER) continue;
        size_t size = launch->buffers[binding->index].bytes;
        bytes[binding->writable != 0] += size;
        if (count++ >= MOST_BUFFERS) continue;
        text_addf(&list, "%s{\"index\":%d,\"name\":", count > 1 ? "," : "", binding->index);
        json_add_string(&list, launch->parameter_name(launch, i), 100);
        text_addf(&list, ",\"bytes\":%zu,\"access\":\"%s\"}", size, binding->writable ? "write" : "read");
    }
    text_add(&list, "]");
    trace_json(slice, "buffers", text_string(&list));
    if (count > MOST_BUFFERS) trace_integer(slice, "buffers_left_out", count - MOST_BUFFERS);
    trace_integer(slice, "bytes_read", (int64_t)bytes[0]);
    trace_integer(slice, "bytes_written", (int64_t)bytes[1]);
    text_free(&list);
}

static void add_triple(struct trace_slice *slice, const char *name, const uint32_t value[3]) {
    trace_triple(slice, name, (uint64_t[3]){value[0], value[1], value[2]});
}

void trace_launch(struct trace_span span, const struct launch *launch, smelt_status status) {
    const struct image *image = launch->image;
    bool enqueued = launch->device->space != NULL;
    char name[200];
    struct trace_slice slice = {
        .category = enqueued ? "enqueue" : "launch", .name = launch->what, .flow_out = launch->flow};
    if (enqueued) {
        snprintf(name, sizeof name, "enqueue %s", launch->what);
        slice.name = name;
    }
    trace_string(&slice, "kernel", launch->what);
    trace_string(&slice, "device", launch->device->name);
    trace_string(&slice, "engine", engine_traits(image->engine)->name);
    add_triple(&slice, "grid", launch->grid);
    add_triple(&slice, "threadgroup", launch->group_size);
    add_triple(&slice, "groups", launch->groups);
    trace_integer(&slice, "threads", (int64_t)launch->grid[0] * launch->grid[1] * launch->grid[2]);
    add_buffers(&slice, launch);
    if (image->threadgroup_bytes)
        trace_integer(&slice, "threadgroup_bytes", (int64_t)image->threadgroup_bytes);
    if (image->lanes) trace_integer(&slice, "lanes", image->lanes);
    if (image->refusal)
        trace_string(&slice, engine_traits(image->engine)->is_vector ? "smaller_because" : "scalar_because",
                     image->refusal);
    if (launch->timeout > 0) trace_real(&slice, "timeout_s", launch->timeout);
    trace_status(&slice, status);
    trace_end(span, &slice);
}

void trace_compile(struct trace_span span, const struct launch *launch, bool cache_hit, smelt_status status) {
    char name[200];
    struct trace_slice slice = {.category = "compile", .name = name};
    snprintf(name, sizeof name, "compile %s", launch->what);
    trace_string(&slice, "kernel", launch->what);
    trace_string(&slice, "device", launch->device->name);
    if (launch->device->target) trace_string(&slice, "target", launch->device->target);
    trace_string(&slice, "cache", cache_hit ? "hit" : "miss");
    if (status == SMELT_OK) trace_string(&slice, "engine", engine_traits(launch->image->engine)->name);
    trace_status(&slice, status);
    trace_end(span, &slice);
}

void trace_translation(struct trace_span span, const char *what, smelt_status status) {
    char name[200];
    struct trace_slice slice = {.category = "compile", .name = name};
    snprintf(name, sizeof name, "translate %s", what);
    trace_status(&slice, status);
    trace_end(span, &slice);
}

/* ---- The public calls. */

smelt_status smelt_trace_start(const char *path) {
    if (!path || !*path)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "trace start: path is %s, expected the path of the file to write",
                    path ? "empty" : "NULL");
    return trace_open(path);
}

smelt_status smelt_trace_stop(void) {
    uint32_t capture;
    TRY(trace_halt(&capture));
    device_finish_trace(capture);
    return trace_close();
}
