/* The CPU as a device: loading of images, launches over the pool. */
#include "base/alarm.h"
#include "base/interrupt.h"
#include "device/cpu/checked.h"
#include "device/cpu/gang.h"
#include "device/cpu/improve.h"
#include "device/cpu/interrupt.h"
#include "device/cpu/pool.h"
#include "device/cpu/queue.h"
#include "device/cpu/scalar.h"
#include "device/cpu/values.h"
#include "device/cpu_shape.h"
#include "device/log.h"

#include <stdlib.h>

static smelt_status prepare(struct launch *launch, struct preparation *preparation) {
    struct launch_codes codes;
    struct launch joined;
    const struct launch *runs = launch;
    *preparation = (struct preparation){false, false};
    TRY(executable_codes(&runs, &joined, &codes, preparation));
    launch->image = codes.full ? &codes.full->head.image : &codes.edge->head.image;
    launch->edge_image = codes.full && codes.edge ? &codes.edge->head.image : NULL;
    return SMELT_OK;
}

static void shape_simd(const struct launch *launch, bool barrier_hint, struct code_shape *shape) {
    struct launch full = *launch;
    struct launch_shapes shapes;
    for (int d = 0; d < 3; d++)
        if (full.grid[d] < full.group_size[d]) full.grid[d] = full.group_size[d];
    launch_shapes(&full, barrier_hint, &shapes);
    *shape = shapes.full;
}

static void shape_scalar(const struct launch *launch, bool barrier_hint, struct code_shape *shape) {
    (void)barrier_hint;
    *shape = (struct code_shape){.engine = ENGINE_SCALAR, .tested = launch->tested};
}

static smelt_status run_groups(void *job, uint64_t first, uint64_t last) {
    struct cpu_launch *launch = job;
    struct worker *worker;
    smelt_status status = worker_of_this_thread(&worker);
    if (status == SMELT_OK) {
        if (launch->interrupt) interruption_begin(worker, launch);
        if (launch->scalar) status = scalar_run_groups(worker, launch, &first, last);
        if (status == SMELT_OK && (!launch->scalar || atomic_load(&launch->improved)))
            status = gang_run_groups(worker, launch, first, last);
        if (launch->interrupt) interruption_end(worker);
    }
    if (status != SMELT_OK) __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
    return status;
}

static void expire(void *context) {
    struct cpu_launch *launch = context;
    __atomic_store_n(&launch->timed_out, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
}

/* bytes: of the memory; before: how many of them lie before the argument's address. */
static void set_extent(struct buffer_extent *extent, uint64_t address, uint64_t before, uint64_t bytes) {
    extent->start = address - before;
    extent->bytes = bytes;
    for (int i = 0; i < EXTENT_COUNTS; i++) {
        uint64_t needed = UINT64_C(1) << i, count = bytes < needed ? 0 : bytes - needed + 1;
        extent->counts[i] = count;
        for (int j = 0; j < EXTENT_SCALES; j++)
            extent->bound[j][i] = before || !count ? 0 : ((count - 1) >> j) + 1;
    }
}

/* Those of one of the codes. */
static void find_buffers_of(const struct cpu_launch *launch, const struct code *code, void **buffers,
                            struct buffer_extent *extents) {
    for (int i = 0; code && i < code->head.image.binding_count; i++) {
        const struct binding *binding = &code->head.image.bindings[i];
        if (binding->kind != BINDING_BUFFER) continue;
        int index = binding->index;
        const struct launch_buffer *buffer = &launch->request->buffers[index];
        buffers[index] = launch_address(buffer);
        set_extent(&extents[index], (uintptr_t)buffers[index], buffer->before,
                   buffer->span ? buffer->span : buffer->bytes);
    }
}

static int buffer_count(const struct code *code) {
    int count = 0;
    for (int i = 0; code && i < code->head.image.binding_count; i++) {
        const struct binding *binding = &code->head.image.bindings[i];
        if (binding->kind == BINDING_BUFFER && binding->index >= count) count = binding->index + 1;
    }
    return count;
}

/* As many as Metal has. Extents of more are allocated. */
#define FEW_BUFFERS 31

/* The two codes may use different buffers (launch_binding). few: extents for FEW_BUFFERS of them. */
static smelt_status find_buffers(struct cpu_launch *launch, void **buffers, struct buffer_extent *few) {
    int full = buffer_count(launch->codes.full), edge = buffer_count(launch->codes.edge);
    int count = full > edge ? full : edge;
    struct buffer_extent *extents = few;
    if (count > FEW_BUFFERS) {
        extents = launch->more_extents = malloc((size_t)count * sizeof *extents);
        if (!extents)
            return fail(SMELT_ERROR_OUT_OF_MEMORY, "the extents of %d arguments could not be stored", count);
    }
    find_buffers_of(launch, launch->codes.full, buffers, extents);
    if (launch->codes.edge != launch->codes.full)
        find_buffers_of(launch, launch->codes.edge, buffers, extents);
    launch->buffers = buffers;
    launch->extents = extents;
    return SMELT_OK;
}

/* Whether a buffer that the code may write overlaps another one. */
static bool written_overlaps(const struct launch *launch, const struct image *image) {
    for (int i = 0; i < image->binding_count; i++) {
        const struct binding *written = &image->bindings[i];
        if (written->kind != BINDING_BUFFER || !written->writable) continue;
        for (int k = 0; k < image->binding_count; k++) {
            const struct binding *other = &image->bindings[k];
            if (k == i || other->kind != BINDING_BUFFER) continue;
            if (launch_buffers_overlap(&launch->buffers[written->index], &launch->buffers[other->index]))
                return true;
        }
    }
    return false;
}

/* Whether the launch's buffers overlap, but the code relies on distinct ones. Quick code does not, but the
 * best code that replaces it during the launch may. */
static bool is_unfit(const struct launch *launch, const struct code *code) {
    const struct image *image = code ? &code->head.image : NULL;
    return image && (image->distinct || (image->quick && !launch->overlapping)) &&
           written_overlaps(launch, image);
}

/* The codes for this launch's buffers. `prepare` does not know the buffers and has compiled code for distinct
 * ones, so that code is tried first. *request may become `joined` or `overlapping`. */
static smelt_status find_codes(const struct launch **request, struct launch *joined,
                               struct launch *overlapping, struct launch_codes *codes) {
    const struct launch *asked = *request;
    TRY(executable_codes(request, joined, codes, NULL));
    if (!is_unfit(asked, codes->full) && !is_unfit(asked, codes->edge)) return SMELT_OK;
    *overlapping = *asked;
    overlapping->overlapping = true;
    *request = overlapping;
    return executable_codes(request, joined, codes, NULL);
}

static bool have_values(const struct launch_codes *codes) {
    return (codes->full && codes->full->sets) || (codes->edge && codes->edge->sets);
}

/* Code for the values that the arguments have, if there is some that the launch's buffers allow. */
static void use_values(const struct launch *launch, struct launch_codes *codes, struct values_note *note) {
    struct launch_codes general = *codes;
    cpu_values_begin(launch, codes, note);
    if (codes->full != general.full && is_unfit(launch, codes->full)) codes->full = general.full;
    if (codes->edge != general.edge && is_unfit(launch, codes->edge)) codes->edge = general.edge;
}

static void measure_threadgroup_memory(struct cpu_launch *launch) {
    const struct code *full = launch->codes.full, *edge = launch->codes.edge;
    const size_t *given = launch->request->threadgroup_memory;
    if (full) launch->static_bytes = full->head.image.threadgroup_bytes;
    if (edge && edge->head.image.threadgroup_bytes > launch->static_bytes)
        launch->static_bytes = edge->head.image.threadgroup_bytes;
    launch->threadgroup_total = (launch->static_bytes + 127) / 128 * 128;
    for (int i = 0; i < CPU_MAX_THREADGROUP_SLOTS; i++) {
        launch->threadgroup_bytes[i] = given ? given[i] : 0;
        launch->threadgroup_total += (launch->threadgroup_bytes[i] + 127) / 128 * 128;
    }
}

/* Codes, buffers and sizes are known. */
static smelt_status run_prepared(struct cpu_launch *launch) {
    const struct launch *request = launch->request;
    const uint32_t *counts = request->groups;
    uint64_t groups = (uint64_t)counts[0] * counts[1] * counts[2];
    struct alarm *alarm = NULL;
    sigset_t signals;
    fault_install();
    if (launch->interrupt) TRY(interruption_prepare());
    TRY(checked_begin(launch));
    smelt_status status = SMELT_OK;
    if (request->timeout > 0) status = alarm_arm(request->timeout, expire, launch, &alarm);
    if (status != SMELT_OK) return checked_end(launch, status);
    launch_log_open(launch->log);
    if (launch->interrupt) interruption_allow(&signals);
    if (groups == 1 || launch->check)
        status = run_groups(launch, 0, groups);
    else
        status = pool_run_beside(run_groups, launch, groups, launch->name,
                                 launch->scalar && launch->is_improved ? cpu_launch_is_improving : NULL);
    status = checked_end(launch, status);
    if (launch->interrupt) interruption_restore(&signals);
    alarm_disarm(alarm);
    launch_log_deliver(launch->log, launch->name, request->info);
    return status;
}

static smelt_status run(const struct launch *request) {
    static _Atomic uint64_t launches;
    const char *name = request->executable->name;
    struct launch joined, overlapping;
    struct launch_log log;
    void *buffers[LAUNCH_MAX_BUFFERS]; /* not initialised: only those are read that the kernel has */
    struct buffer_extent extents[FEW_BUFFERS];
    struct cpu_launch launch = {.name = name,
                                .request = request,
                                .interrupt = interrupt_of_call(),
                                .improving = PTHREAD_MUTEX_INITIALIZER,
                                .seen = atomic_load(&request->executable->first),
                                .log = &log};
    TRY(find_codes(&request, &joined, &overlapping, &launch.codes));
    launch.request = request;
    struct values_note values;
    bool have = have_values(&launch.codes);
    if (have) use_values(request, &launch.codes, &values);
    TRY(find_buffers(&launch, buffers, extents));
    measure_threadgroup_memory(&launch);
    launch.number = atomic_fetch_add(&launches, 1) + 1;
    launch.scalar = launch.codes.full && cpu_code_is_scalar(launch.codes.full);
    bool quick = cpu_codes_are_quick(&launch.codes);
    if (quick) launch.is_improved = cpu_launch_improved;
    if (request->info) request->info->quick = quick;
    smelt_status status = run_prepared(&launch);
    if (have && values.timed) cpu_values_end(&values);
    if (quick) executable_codes_improve(request, &launch.codes);
    free(launch.more_extents);
    if (status != SMELT_OK) return status;
    return launch_end(name, request, __atomic_load_n(&launch.interrupted, __ATOMIC_RELAXED),
                      __atomic_load_n(&launch.timed_out, __ATOMIC_RELAXED));
}

#define CPU_THREADGROUP_LIMIT (227 * 1024)

/* What the engines share. */
#define COMMON_OF_CPUS                                                                         \
    .threadgroup_limit = CPU_THREADGROUP_LIMIT, .thread_limit = MAX_THREADS_PER_GROUP,         \
    .code_bytes = sizeof(struct code), .make_code = cpu_make_code, .free_code = cpu_free_code, \
    .prepare = prepare, .threads = pool_size, .run = run, .queues = &cpu_queues

static void shape_checked(const struct launch *launch, bool barrier_hint, struct code_shape *shape) {
    (void)barrier_hint;
    *shape = (struct code_shape){.engine = ENGINE_CHECK, .also = (uint8_t)launch->also};
}

/* Not listed: `checked` of the others. */
static const struct device cpu_check_device = {
    .name = "cpu",
    .description = "x86-64 CPU, scalar engine: every access of memory is checked",
    .engine = ENGINE_CHECK,
    COMMON_OF_CPUS,
    .shape = shape_checked,
};

static const struct device cpu_device = {
    .name = "cpu",
    .checked = &cpu_check_device,
    .description = "x86-64 CPU, SIMD engine: a simdgroup is vector code",
    .engine = ENGINE_SIMD,
    COMMON_OF_CPUS,
    .shape = shape_simd,
};

static const struct device cpu_scalar_device = {
    .name = "cpu-scalar",
    .checked = &cpu_check_device,
    .description = "x86-64 CPU, scalar engine: one thread at a time per core",
    .engine = ENGINE_SCALAR,
    COMMON_OF_CPUS,
    .shape = shape_scalar,
};

static const struct device *cpu_at(int index, const char **reason) {
    static const struct device *const engines[] = {&cpu_device, &cpu_scalar_device};
    (void)reason;
    return index < 2 ? engines[index] : NULL;
}

static const struct device_kind cpu_kind = {.rank = 0, .at = cpu_at};
REGISTER_DEVICES(cpu_kind)
