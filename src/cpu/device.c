/* The CPU as a device: loading of images, launches over the pool. */
#include "cpu/pool.h"
#include "cpu/scalar.h"
#include "kernel/device.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY_NAME "__smelt_entry"

static void unload(struct executable *executable) {
    if (!executable) return;
    object_unload(&executable->object);
    image_free(&executable->image);
    free(executable->name);
    free(executable);
}

static smelt_status load(struct image *image, const char *name, struct executable **out) {
    struct executable *executable = calloc(1, sizeof *executable);
    if (executable) executable->name = strdup(name);
    if (!executable || !executable->name) {
        free(executable);
        return fail_out_of_memory(sizeof *executable);
    }
    smelt_status status = object_load(image->object, image->object_size, &executable->object);
    if (status != SMELT_OK) (void)fail_within(status, "kernel '%s'", name);
    if (status == SMELT_OK) {
        const void *entry = object_symbol(image->object, image->object_size, &executable->object, ENTRY_NAME);
        if (entry)
            memcpy(&executable->function, &entry, sizeof entry);
        else
            status = fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has no entry point", name);
    }
    if (status != SMELT_OK) {
        unload(executable);
        return status;
    }
    executable->image = *image;
    *image = (struct image){0};
    *out = executable;
    return SMELT_OK;
}

static const struct image *image_of(const struct executable *executable) {
    return &executable->image;
}

static smelt_status run_piece(void *job, uint64_t index) {
    struct cpu_launch *launch = job;
    if (__atomic_load_n(&launch->stop, __ATOMIC_RELAXED)) return SMELT_OK;
    struct worker *worker;
    uint32_t position[3] = {(uint32_t)(index % launch->groups[0]),
                            (uint32_t)(index / launch->groups[0] % launch->groups[1]),
                            (uint32_t)(index / launch->groups[0] / launch->groups[1])};
    smelt_status status = worker_of_this_thread(&worker);
    if (status == SMELT_OK) status = scalar_run_group(worker, launch, position);
    if (status != SMELT_OK) __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
    return status;
}

static void expire(void *context) {
    struct cpu_launch *launch = context;
    __atomic_store_n(&launch->timed_out, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
}

static smelt_status run(struct executable *executable, const struct launch *request) {
    struct cpu_launch launch = {.executable = executable, .buffers = request->buffers};
    uint64_t groups = 1;
    launch.threadgroup_total = (executable->image.threadgroup_bytes + 127) / 128 * 128;
    for (int d = 0; d < 3; d++) {
        launch.grid[d] = request->grid[d];
        launch.group_size[d] = request->group_size[d];
        launch.groups[d] =
            (uint32_t)(((uint64_t)request->grid[d] + request->group_size[d] - 1) / request->group_size[d]);
        groups *= launch.groups[d];
    }
    for (int i = 0; i < CPU_MAX_THREADGROUP_SLOTS; i++) {
        launch.threadgroup_bytes[i] = request->threadgroup_memory ? request->threadgroup_memory[i] : 0;
        launch.threadgroup_total += (launch.threadgroup_bytes[i] + 127) / 128 * 128;
    }
    struct alarm *alarm = NULL;
    fault_install();
    if (request->timeout > 0) TRY(alarm_arm(request->timeout, expire, &launch, &alarm));
    smelt_status status = groups == 1 ? run_piece(&launch, 0) : pool_run(run_piece, &launch, groups);
    alarm_disarm(alarm);
    if (status == SMELT_OK && __atomic_load_n(&launch.timed_out, __ATOMIC_RELAXED))
        status = fail(SMELT_ERROR_TIMEOUT,
                      "kernel '%s' ran longer than the time-out of %g seconds and was stopped",
                      executable->name, request->timeout);
    return status;
}

#define CPU_THREADGROUP_LIMIT (227 * 1024)

/* Until the SIMD engine exists both names are the scalar engine. */
#define SCALAR_ENGINE(device_name)                                                                       \
    {                                                                                                    \
        .name = (device_name), .description = "x86-64 CPU, scalar engine: one thread at a time a core",  \
        .threadgroup_limit = CPU_THREADGROUP_LIMIT, .thread_limit = MAX_THREADS_PER_GROUP, .load = load, \
        .unload = unload, .image = image_of, .threads = pool_size, .run = run,                           \
    }

const struct device cpu_device = SCALAR_ENGINE("cpu");
const struct device cpu_scalar_device = SCALAR_ENGINE("cpu-scalar");
