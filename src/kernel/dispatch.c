#include "kernel/dispatch.h"
#include "kernel/also.h"
#include "kernel/found.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/setting.h"
#include "device/stream.h"
#include "kernel/trace.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MAX_GRID ((int64_t)UINT32_MAX)
/* Thirty years: more is never meant, and clocks must be able to add it. */
#define MAX_TIMEOUT 1e9

smelt_status launch_measure(struct launch *launch, const int64_t grid[3], const int64_t group[3],
                            bool clamp) {
    static const char axis[] = "xyz";
    const char *what = launch->what;
    const struct device *device = launch->device;
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
                        "kernel '%s': grid %lld x %lld x %lld has more than 2^63 - 1 threads", what,
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
        launch->grid[d] = (uint32_t)threads[d];
        launch->group_size[d] = (uint32_t)size[d];
    }
    launch_count_groups(launch);
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
    return fail(
        SMELT_ERROR_INVALID_ARGUMENT,
        "kernel '%s': the stream belongs to device '%s', expected one of device '%s', where the kernel runs",
        what, stream->device->name, device->name);
}

/* The name a parameter has in the kernel's text. */
static const char *parameter_name(const struct launch *launch, int index) {
    const struct entry *entry = launch->entry;
    const char *name = entry && index < entry->parameter_count ? entry->parameters[index].name : NULL;
    return name ? name : "";
}

/* SMELT_CHECK=1: every run on a device that can. */
static bool all_are_checked(const struct device *device) {
    static struct setting setting = {"SMELT_CHECK", {"0", "1"}, ATOMIC_FLAG_INIT};
    return device->checked && setting_choice(&setting) == 1;
}

bool launch_is_tested(const struct launch *launch) {
    if (launch->device->tests) return launch->check;
    static struct setting setting = {"SMELT_BOUNDS", {"1", "0"}, ATOMIC_FLAG_INIT};
    return launch->device->checked && !launch->unchecked && setting_choice(&setting) == 0;
}

/* On a device that only tests accesses: warns once that device cpu finds more. */
static smelt_status use_tests(const struct launch *launch) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    const char *name = launch->device->name;
    if (launch->look_for && *launch->look_for)
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "kernel '%s': also is '%s'; device '%s' only tests addresses, expected none, or "
                    "device cpu",
                    launch->what, launch->look_for, name);
    if (!atomic_flag_test_and_set(&told))
        log_line(
            SMELT_LOG_WARNING,
            "kernel '%s': on device '%s' a checked run ends at the first access that is out of bounds "
            "or misaligned (SM001, SM012); device cpu also finds races, values that were never set, missed "
            "barriers and the rest",
            launch->what, name);
    return SMELT_OK;
}

static smelt_status use_checked(struct launch *launch) {
    if (launch->device->tests) return use_tests(launch);
    if (!launch->device->checked)
        return fail(SMELT_ERROR_UNSUPPORTED, "kernel '%s': device '%s' cannot check a run; expected cpu",
                    launch->what, launch->device->name);
    launch->device = launch->device->checked;
    return also_parse(launch->what, launch->look_for, &launch->also);
}

smelt_status launch_begin(struct launch *launch, const char *device) {
    if (launch->info) *launch->info = (smelt_run_info){0};
    TRY(device_find(device, &launch->device));
    if (launch->check || all_are_checked(launch->device)) TRY(use_checked(launch));
    launch->tested = launch_is_tested(launch);
    launch->parameter_name = parameter_name;
    launch->accept = found_accept;
    TRY(settings_check(launch->what, launch->device, launch->profile, launch->timeout));
    return stream_check(launch->what, launch->device, launch->stream);
}

static smelt_status check_memory(const struct launch *launch, uint64_t *total) {
    const struct image *image = launch->image;
    uint64_t limit;
    TRY(profile_threadgroup_limit(launch->profile, launch->device, &limit));
    *total = image->threadgroup_bytes;
    if (launch->edge_image && launch->edge_image->threadgroup_bytes > *total)
        *total = launch->edge_image->threadgroup_bytes;
    for (int i = 0; launch->threadgroup_memory && i < SMELT_MAX_BUFFERS; i++)
        if (__builtin_add_overflow(*total, launch->threadgroup_memory[i], total)) *total = UINT64_MAX;
    if (*total > limit)
        return fail(
            SMELT_ERROR_LIMIT,
            "kernel '%s': a threadgroup uses %llu bytes of threadgroup memory; device '%s'%s%s allows %llu",
            launch->what, (unsigned long long)*total, launch->device->name,
            launch->profile ? " with profile " : "", launch->profile ? launch->profile : "",
            (unsigned long long)limit);
    const uint32_t *group = launch->group_size;
    uint32_t threads = group[0] * group[1] * group[2];
    if (image->max_threads && threads > image->max_threads)
        return fail(SMELT_ERROR_LIMIT,
                    "kernel '%s': the threadgroup has %u threads; the kernel's "
                    "max_total_threads_per_threadgroup is %u",
                    launch->what, threads, image->max_threads);
    const uint32_t *required = image->required_threads;
    if (required[0] && (group[0] != required[0] || group[1] != required[1] || group[2] != required[2]))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': the threadgroup is %u x %u x %u; the kernel's "
                    "required_threads_per_threadgroup is %u x %u x %u",
                    launch->what, group[0], group[1], group[2], required[0], required[1], required[2]);
    return SMELT_OK;
}

bool array_is_large(smelt_dtype dtype, const smelt_shape *shape, const int64_t *strides) {
    double span = 1, elements = 1; /* as reals: sizes have not been multiplied before */
    for (int d = 0; d < shape->ndim; d++) {
        elements *= (double)shape->size[d];
        if (strides) span += (double)(shape->size[d] - 1) * fabs((double)strides[d]);
    }
    return (strides ? span : elements) * (double)smelt_dtype_bytes(dtype) >= 0x1p31 - SMALL_REACH;
}

smelt_status launch_prepare(struct launch *launch) {
    smelt_run_info *info = launch->info;
    TRY(interrupt_check());
    struct preparation preparation;
    struct trace_span span = trace_begin();
    double start = info ? clock_seconds() : 0;
    smelt_status status = launch->device->prepare(launch, &preparation);
    if (!preparation.compiled && status == SMELT_OK) return SMELT_OK;
    if (span.capture && !interrupt_was_before_compile(status))
        trace_compile(span, launch, preparation.compiled && preparation.cache_hit, status);
    if (info) {
        info->compile_seconds += clock_seconds() - start;
        info->cache_hit = preparation.cache_hit;
    }
    return status;
}

static smelt_status run(const struct launch *launch) {
    smelt_run_info *info = launch->info;
    uint64_t threadgroup_bytes;
    TRY(interrupt_check());
    TRY(check_memory(launch, &threadgroup_bytes));
    if (!info) return launch->device->run(launch);
    double start = clock_seconds();
    info->seconds = -1;
    smelt_status status = launch->device->run(launch);
    if (info->seconds < 0) info->seconds = clock_seconds() - start;
    memcpy(info->device, launch->device->name, strnlen(launch->device->name, sizeof info->device - 1));
    for (int d = 0; d < 3; d++) {
        info->threads[d] = launch->grid[d];
        info->groups[d] = launch->groups[d];
        info->threads_per_group[d] = launch->group_size[d];
    }
    info->threadgroup_bytes = threadgroup_bytes;
    info->private_bytes = launch->image->private_bytes;
    return status;
}

smelt_status launch_run(struct launch *launch) {
    struct trace_span span = trace_begin();
    launch->flow = span.capture && launch->device->space ? trace_flow() : 0;
    smelt_status status = run(launch);
    if (span.capture && !interrupt_was_before_compile(status)) trace_launch(span, launch, status);
    return status;
}
