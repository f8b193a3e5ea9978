#include "kernel/dispatch.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "device/stream.h"
#include "kernel/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_GRID ((int64_t)UINT32_MAX)
/* Thirty years: more is never meant, and clocks must be able to add it. */
#define MAX_TIMEOUT 1e9

smelt_status extent_check(const char *what, const struct device *device, const int64_t grid[3],
                          const int64_t group[3], bool clamp, struct extent *extent) {
    static const char axis[] = "xyz";
    int64_t threads[3], size[3], product = 1, total = 1;
    for (int d = 0; d < 3; d++) {
        threads[d] = grid[d] == 0 && d > 0 ? 1 : grid[d];
        size[d] = group[d] == 0 && d > 0 ? 1 : group[d];
        if (threads[d] <= 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': grid.%c is %lld, expected at least 1",
                        what, axis[d], (long long)threads[d]);
        if (size[d] <= 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': threadgroup.%c is %lld, expected at least 1", what, axis[d],
                        (long long)size[d]);
        if (threads[d] > MAX_GRID)
            return fail(SMELT_ERROR_LIMIT, "kernel '%s': grid.%c is %lld, expected at most %lld", what,
                        axis[d], (long long)threads[d], (long long)MAX_GRID);
        if (__builtin_mul_overflow(total, threads[d], &total))
            return fail(SMELT_ERROR_LIMIT,
                        "kernel '%s': grid %lld x %lld x %lld has more threads than 63 bits can count", what,
                        (long long)grid[0], (long long)grid[1], (long long)grid[2]);
    }
    bool too_many = false;
    for (int d = 0; d < 3; d++) too_many |= __builtin_mul_overflow(product, size[d], &product);
    if (too_many || product > device->thread_limit)
        return fail(
            SMELT_ERROR_LIMIT,
            "kernel '%s': threadgroup %lld x %lld x %lld has %s%lld threads; device '%s' allows at most %u",
            what, (long long)size[0], (long long)size[1], (long long)size[2], too_many ? "more than " : "",
            (long long)(too_many ? INT64_MAX : product), device->name, device->thread_limit);
    for (int d = 0; d < 3; d++) {
        if (clamp && size[d] > threads[d]) size[d] = threads[d];
        extent->grid[d] = (uint32_t)threads[d];
        extent->group[d] = (uint32_t)size[d];
        extent->groups[d] = (uint64_t)(threads[d] + size[d] - 1) / (uint64_t)size[d];
    }
    return SMELT_OK;
}

smelt_status profile_threadgroup_limit(const char *profile, const struct device *device, uint64_t *bytes) {
    *bytes = device->threadgroup_limit;
    if (!profile) return SMELT_OK;
    if (strcmp(profile, "apple") != 0)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "profile '%s' is unknown; expected apple", profile);
    *bytes = 32 * 1024;
    return SMELT_OK;
}

smelt_status settings_check(const char *what, const struct device *device, const char *profile,
                            double timeout) {
    uint64_t limit;
    if (!(timeout >= 0 && timeout <= MAX_TIMEOUT))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': timeout is %g, expected 0 (none) to %g seconds", what, timeout,
                    MAX_TIMEOUT);
    return profile_threadgroup_limit(profile, device, &limit);
}

smelt_status stream_check(const char *what, const struct device *device, const smelt_stream *stream) {
    /* The engines of the CPU have one memory and no order to keep. */
    if (!stream || stream->device == device || (!stream->device->space && !device->space)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "kernel '%s': the stream is of device '%s', expected one of device '%s', where it runs", what,
                stream->device->name, device->name);
}

static smelt_status check_memory(const struct dispatch *dispatch, uint64_t *total) {
    const struct image *image = dispatch->image;
    uint64_t limit;
    TRY(profile_threadgroup_limit(dispatch->profile, dispatch->device, &limit));
    *total = image->threadgroup_bytes;
    for (int i = 0; dispatch->threadgroup_memory && i < SMELT_MAX_BUFFERS; i++)
        if (__builtin_add_overflow(*total, dispatch->threadgroup_memory[i], total)) *total = UINT64_MAX;
    if (*total > limit)
        return fail(
            SMELT_ERROR_LIMIT,
            "kernel '%s': a threadgroup uses %llu bytes of threadgroup memory; device '%s'%s%s allows %llu",
            dispatch->what, (unsigned long long)*total, dispatch->device->name,
            dispatch->profile ? " with profile " : "", dispatch->profile ? dispatch->profile : "",
            (unsigned long long)limit);
    const uint32_t *group = dispatch->extent->group;
    uint32_t threads = group[0] * group[1] * group[2];
    if (image->max_threads && threads > image->max_threads)
        return fail(SMELT_ERROR_LIMIT,
                    "kernel '%s': the threadgroup has %u threads; the kernel's "
                    "max_total_threads_per_threadgroup is %u",
                    dispatch->what, threads, image->max_threads);
    const uint32_t *required = image->required_threads;
    if (required[0] && (group[0] != required[0] || group[1] != required[1] || group[2] != required[2]))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': the threadgroup is %u x %u x %u; the kernel's "
                    "required_threads_per_threadgroup is %u x %u x %u",
                    dispatch->what, group[0], group[1], group[2], required[0], required[1], required[2]);
    return SMELT_OK;
}

struct launch launch_of(const struct extent *extent, double timeout) {
    struct launch launch = {.timeout = timeout};
    for (int d = 0; d < 3; d++) {
        launch.grid[d] = extent->grid[d];
        launch.group_size[d] = extent->group[d];
    }
    return launch;
}

bool array_is_large(smelt_dtype dtype, const smelt_shape *shape, const int64_t *strides) {
    double span = 1, elements = 1; /* as reals: sizes have not been multiplied before */
    for (int d = 0; d < shape->ndim; d++) {
        elements *= (double)shape->size[d];
        if (strides) span += (double)(shape->size[d] - 1) * fabs((double)strides[d]);
    }
    return (strides ? span : elements) * (double)smelt_dtype_bytes(dtype) >= 0x1p31 - SMALL_REACH;
}

smelt_status dispatch_prepare(struct dispatch *dispatch) {
    TRY(interrupt_check());
    struct launch launch = launch_of(dispatch->extent, dispatch->timeout);
    launch.large = dispatch->large;
    launch.inlined = dispatch->inlined;
    struct preparation preparation;
    struct trace_span span = trace_begin();
    double start = dispatch->info ? clock_seconds() : 0;
    smelt_status status =
        dispatch->device->prepare(dispatch->executable, &launch, &dispatch->image, &preparation);
    if (span.capture && (preparation.compiled || status != SMELT_OK))
        trace_compile(span, dispatch, preparation.compiled && preparation.cache_hit, status);
    if (dispatch->info && (preparation.compiled || status != SMELT_OK)) {
        dispatch->info->compile_seconds += clock_seconds() - start;
        dispatch->info->cache_hit = preparation.cache_hit;
    }
    return status;
}

static smelt_status run(const struct dispatch *dispatch, uint64_t flow) {
    uint64_t threadgroup_bytes;
    TRY(interrupt_check());
    TRY(check_memory(dispatch, &threadgroup_bytes));
    struct launch launch = launch_of(dispatch->extent, dispatch->timeout);
    launch.large = dispatch->large;
    launch.inlined = dispatch->inlined;
    launch.stream = dispatch->stream;
    launch.flow = flow;
    launch.buffers = dispatch->buffers;
    launch.details = dispatch->details;
    launch.threadgroup_memory = dispatch->threadgroup_memory;
    if (!dispatch->info) return dispatch->device->run(dispatch->executable, &launch);
    double start = clock_seconds();
    smelt_run_info *info = dispatch->info;
    double seconds = -1;
    launch.seconds = &seconds;
    launch.log_lines = &info->log_lines;
    launch.dropped_log_lines = &info->dropped_log_lines;
    smelt_status status = dispatch->device->run(dispatch->executable, &launch);
    info->seconds = seconds >= 0 ? seconds : clock_seconds() - start;
    memcpy(info->device, dispatch->device->name, strnlen(dispatch->device->name, sizeof info->device - 1));
    for (int d = 0; d < 3; d++) {
        info->threads[d] = dispatch->extent->grid[d];
        info->groups[d] = dispatch->extent->groups[d];
        info->threads_per_group[d] = dispatch->extent->group[d];
    }
    info->threadgroup_bytes = threadgroup_bytes;
    info->private_bytes = dispatch->image->private_bytes;
    return status;
}

smelt_status dispatch_run(const struct dispatch *dispatch) {
    struct trace_span span = trace_begin();
    uint64_t flow = span.capture && dispatch->device->space ? trace_flow() : 0;
    smelt_status status = run(dispatch, flow);
    if (span.capture) trace_launch(span, dispatch, flow, status);
    return status;
}
