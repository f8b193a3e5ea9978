/* Functions of libraries: their codes, their arguments by index, launches. */
#include "array/array.h"
#include "kernel/library.h"
#include "kernel/show.h"

#include <stdlib.h>
#include <string.h>

smelt_function *smelt_function_retain(smelt_function *function) {
    if (function) atomic_fetch_add(&function->references, 1);
    return function;
}

void smelt_function_release(smelt_function *function) {
    if (!function || atomic_fetch_sub(&function->references, 1) != 1) return;
    for (int i = 0; i < function->loaded_count; i++)
        function->loaded[i].device->unload(function->loaded[i].executable);
    smelt_library_release(function->library);
    arena_free(&function->arena);
    pthread_mutex_destroy(&function->lock);
    free(function);
}

static smelt_status compile_function(void *context, const char *target, const struct code_shape *shape,
                                     struct image *image, bool *cache_hit) {
    const smelt_function *function = context;
    struct code_options options = {.name = function->entry->host_name,
                                   .constants = function->constants,
                                   .shape = *shape,
                                   .target = target};
    return compile_entry(&function->library->translation, function->entry, &options, image, cache_hit);
}

static smelt_status load_function(void *context, const char *target, const struct code_shape *shape,
                                  struct image *image, bool *ready) {
    smelt_function *function = context;
    struct code_options options = {.name = function->entry->host_name,
                                   .constants = function->constants,
                                   .shape = *shape,
                                   .target = target};
    char *note;
    smelt_status status = package_code(&function->library->package, function->packaged, &options,
                                       function->constants_changed, image, ready, &note);
    if (status == SMELT_OK && note && !atomic_flag_test_and_set(&function->noted))
        log_line(SMELT_LOG_INFO, "kernel '%s' %s", options.name, note);
    free(note);
    return status;
}

static bool barrier_hint(const smelt_function *function) {
    return function->packaged ? function->packaged->has_barrier
                              : compile_has_barrier(&function->library->translation);
}

static smelt_status get_executable(smelt_function *function, const struct device *device,
                                   struct executable **out) {
    smelt_status status = SMELT_OK;
    pthread_mutex_lock(&function->lock);
    *out = NULL;
    for (int i = 0; i < function->loaded_count; i++)
        if (function->loaded[i].device == device) *out = function->loaded[i].executable;
    if (!*out) {
        struct code_source source = {.compile = function->packaged ? load_function : compile_function,
                                     .context = function,
                                     .barrier_hint = barrier_hint(function)};
        status = device->load(device, &source, function->entry->host_name, out);
        if (status == SMELT_OK) function->loaded[function->loaded_count++] = (struct loaded){device, *out};
    }
    pthread_mutex_unlock(&function->lock);
    return status;
}

/* The address bound to each buffer the function has. */
static smelt_status bind(const smelt_function *function, const struct image *image,
                         const smelt_dispatch_desc *desc, void *buffers[LAUNCH_MAX_BUFFERS]) {
    const char *name = function->entry->host_name;
    for (int i = 0; i < image->binding_count; i++) {
        const struct binding *binding = &image->bindings[i];
        if (binding->kind == BINDING_ATTRIBUTE || binding->kind == BINDING_ABSENT) continue;
        const char *what = binding->kind == BINDING_BUFFER ? "buffer" : "threadgroup memory";
        const char *parameter =
            i < function->entry->parameter_count ? function->entry->parameters[i].name : "?";
        if (binding->index < 0 || binding->index >= SMELT_MAX_BUFFERS)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': '%s' has %s index %d, expected 0 to %d",
                        name, parameter, what, binding->index, SMELT_MAX_BUFFERS - 1);
        if (binding->kind == BINDING_THREADGROUP) {
            if (!desc->threadgroup_memory[binding->index])
                return fail(SMELT_ERROR_INVALID_ARGUMENT,
                            "kernel '%s': threadgroup memory %d ('%s') is missing: give its size in bytes",
                            name, binding->index, parameter);
            continue;
        }
        const smelt_buffer *buffer = &desc->buffers[binding->index];
        if (!buffer->array && !buffer->bytes)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': buffer %d ('%s') is missing", name,
                        binding->index, parameter);
        if (buffer->array && !smelt_array_is_contiguous(buffer->array))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': the array of buffer %d ('%s') is not row-contiguous", name,
                        binding->index, parameter);
        if (buffer->array && buffer->bytes)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': buffer %d ('%s') is given both an array and bytes", name,
                        binding->index, parameter);
        if (buffer->bytes && binding->writable)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': buffer %d ('%s') is written by the kernel; bytes cannot be", name,
                        binding->index, parameter);
        size_t given = buffer->array ? (size_t)buffer->array->size * smelt_dtype_bytes(buffer->array->dtype)
                                     : buffer->size;
        if (given < (size_t)binding->size && (buffer->bytes || given == 0))
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "kernel '%s': buffer %d ('%s') has %zu bytes, expected at least %d, the size of its type",
                name, binding->index, parameter, given, binding->size);
        buffers[binding->index] = buffer->array ? buffer->array->data : (void *)buffer->bytes;
    }
    return SMELT_OK;
}

static bool has_large_array(const smelt_dispatch_desc *desc) {
    bool large = false;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        const smelt_array *array = desc->buffers[i].array;
        if (array)
            large |= array_is_large(array->dtype, &array->shape, NULL);
        else if (desc->buffers[i].bytes)
            large |= desc->buffers[i].size >= (size_t)INT32_MAX - SMALL_REACH;
    }
    return large;
}

/* Groups times threads a group, for dispatch by threadgroups. */
static smelt_status grid_of(const smelt_function *function, const smelt_dispatch_desc *desc,
                            int64_t grid[3]) {
    const char *name = function->entry->host_name;
    bool by_threads = desc->grid[0] || desc->grid[1] || desc->grid[2];
    bool by_groups = desc->groups[0] || desc->groups[1] || desc->groups[2];
    if (by_threads == by_groups)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': %s of grid (threads) and groups must be given", name,
                    by_threads ? "only one" : "one");
    for (int d = 0; d < 3; d++) {
        int64_t size = desc->threadgroup[d] <= 0 ? 1 : desc->threadgroup[d];
        grid[d] = by_threads ? desc->grid[d] : desc->groups[d] == 0 && d > 0 ? 1 : desc->groups[d];
        if (by_groups && grid[d] <= 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': groups.%c is %lld, expected at least 1",
                        name, "xyz"[d], (long long)grid[d]);
        if (by_groups && __builtin_mul_overflow(grid[d], size, &grid[d])) grid[d] = INT64_MAX;
    }
    return SMELT_OK;
}

smelt_status smelt_function_run(smelt_function *function, const smelt_dispatch_desc *desc) {
    if (!function || !desc)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "function run: %s is NULL", function ? "desc" : "function");
    const struct device *device;
    struct extent extent;
    struct executable *executable;
    int64_t grid[3];
    void *buffers[LAUNCH_MAX_BUFFERS] = {NULL};
    if (desc->info) *desc->info = (smelt_run_info){0};
    TRY(device_find(desc->device, &device));
    TRY(settings_check(function->entry->host_name, device, desc->profile, desc->timeout));
    TRY(grid_of(function, desc, grid));
    TRY(extent_check(function->entry->host_name, device, grid, desc->threadgroup, false, &extent));
    TRY(get_executable(function, device, &executable));
    struct dispatch dispatch = {.what = function->entry->host_name,
                                .device = device,
                                .profile = desc->profile,
                                .executable = executable,
                                .extent = &extent,
                                .timeout = desc->timeout,
                                .large = has_large_array(desc),
                                .info = desc->info,
                                .buffers = buffers,
                                .threadgroup_memory = desc->threadgroup_memory};
    TRY(dispatch_prepare(&dispatch));
    TRY(bind(function, dispatch.image, desc, buffers));
    return dispatch_run(&dispatch);
}

static smelt_status show(smelt_function *function, const smelt_dispatch_desc *desc, smelt_stage stage,
                         char **text) {
    const char *name = function->entry->host_name;
    if ((unsigned)stage > SMELT_STAGE_PTX)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': stage %d is not one of smelt_stage", name,
                    (int)stage);
    const struct device *device;
    TRY(device_to_show(desc->device, &device));
    if (stage == SMELT_STAGE_SOURCE && !function->packaged) {
        *text = string_copy(text_string(&function->library->source), function->library->source.length);
        return *text ? SMELT_OK : fail_out_of_memory(function->library->source.length);
    }
    struct code_options options = {.name = name, .constants = function->constants};
    int64_t grid[3] = {0, 0, 0};
    if (desc->grid[0] || desc->groups[0]) TRY(grid_of(function, desc, grid));
    struct shape_desc shape = {.grid = grid,
                               .group = desc->threadgroup,
                               .timeout = desc->timeout,
                               .barrier_hint = barrier_hint(function),
                               .target = desc->target};
    TRY(shape_for_stage(name, device, &shape, stage, &options));
    return function->packaged
               ? package_show(function->packaged, &options, stage, text)
               : compile_show(&function->library->translation, function->entry, &options, stage, text);
}

smelt_status smelt_function_show(smelt_function *function, const char *device_name, smelt_stage stage,
                                 char **text) {
    if (!function || !text)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "function show: %s is NULL",
                    function ? "text" : "function");
    return show(function, &(smelt_dispatch_desc){.device = device_name}, stage, text);
}

smelt_status smelt_function_show_run(smelt_function *function, const smelt_dispatch_desc *desc,
                                     smelt_stage stage, char **text) {
    if (!function || !desc || !text)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "function show: %s is NULL",
                    !function ? "function"
                    : !desc   ? "desc"
                              : "text");
    return show(function, desc, stage, text);
}
