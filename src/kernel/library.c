/* Whole .metal files: functions by host name, buffers by index. */
#include "array/array.h"
#include "base/file.h"
#include "kernel/dispatch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct smelt_library {
    atomic_int references;
    char *label; /* its name in messages */
    struct text source;
    struct translation translation;
};

struct smelt_function {
    atomic_int references;
    smelt_library *library;
    const struct entry *entry;
    smelt_constant constants[SMELT_MAX_CONSTANTS + 1]; /* ended by SMELT_NO_DTYPE */
    pthread_mutex_t lock;
    struct loaded {
        const struct device *device;
        struct executable *executable;
    } loaded[4];
    int loaded_count;
};

static smelt_status translate(smelt_library *library, const smelt_library_desc *desc) {
    struct translation_request request = {.text = text_string(&library->source),
                                          .length = library->source.length,
                                          .math = desc->math,
                                          .include_paths = desc->include_paths,
                                          .texts = {{library->label, text_string(&library->source)}}};
    return translation_create(&request, &library->translation);
}

smelt_status smelt_library_create(const smelt_library_desc *desc, smelt_library **out) {
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "library: the address for the new library is NULL");
    if (!desc || (!desc->path && !desc->source))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library: neither path nor source is given");
    smelt_library *library = calloc(1, sizeof *library);
    if (!library) return fail_out_of_memory(sizeof *library);
    const char *label = desc->path ? desc->path : "library.metal";
    atomic_init(&library->references, 1);
    library->label = string_copy(label, strlen(label));
    smelt_status status = library->label ? SMELT_OK : fail_out_of_memory(strlen(label));
    if (status == SMELT_OK && desc->source) {
        text_add(&library->source, desc->source);
        if (library->source.failed) status = fail_out_of_memory(strlen(desc->source));
    } else if (status == SMELT_OK) {
        status = file_read(desc->path, &library->source);
    }
    if (status == SMELT_OK) status = translate(library, desc);
    if (status != SMELT_OK) {
        text_free(&library->source);
        free(library->label);
        free(library);
        return status;
    }
    *out = library;
    return SMELT_OK;
}

smelt_library *smelt_library_retain(smelt_library *library) {
    if (library) atomic_fetch_add(&library->references, 1);
    return library;
}

void smelt_library_release(smelt_library *library) {
    if (!library || atomic_fetch_sub(&library->references, 1) != 1) return;
    translation_free(&library->translation);
    text_free(&library->source);
    free(library->label);
    free(library);
}

int smelt_library_function_count(const smelt_library *library) {
    return library ? library->translation.program.entry_count : 0;
}

const char *smelt_library_function_name(const smelt_library *library, int index) {
    if (!library || index < 0 || index >= library->translation.program.entry_count) return NULL;
    return library->translation.program.entries[index].host_name;
}

static smelt_status no_such_function(const smelt_library *library, const char *name) {
    struct text names = {0};
    int count = library->translation.program.entry_count;
    for (int i = 0; i < count && i < 20; i++)
        text_addf(&names, "%s%s", i ? ", " : "", library->translation.program.entries[i].host_name);
    if (count > 20) text_addf(&names, " and %d more", count - 20);
    smelt_status status;
    if (!count)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s has no kernel function", library->label);
    else if (name)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s has no kernel function '%s'; there are: %s",
                      library->label, name, text_string(&names));
    else
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s has %d kernel functions, one must be named: %s",
                      library->label, count, text_string(&names));
    text_free(&names);
    return status;
}

smelt_status smelt_library_function(smelt_library *library, const smelt_function_desc *desc,
                                    smelt_function **out) {
    if (!library || !desc || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library function: %s is NULL",
                    !library ? "library"
                    : !desc  ? "desc"
                             : "the address for the function");
    const struct entry *entry = NULL;
    if (desc->name)
        entry = translation_entry(&library->translation, desc->name);
    else if (library->translation.program.entry_count == 1)
        entry = &library->translation.program.entries[0];
    if (!entry) return no_such_function(library, desc->name);
    smelt_function *function = calloc(1, sizeof *function);
    if (!function) return fail_out_of_memory(sizeof *function);
    atomic_init(&function->references, 1);
    pthread_mutex_init(&function->lock, NULL);
    function->library = smelt_library_retain(library);
    function->entry = entry;
    memcpy(function->constants, desc->constants, sizeof desc->constants);
    *out = function;
    return SMELT_OK;
}

smelt_function *smelt_function_retain(smelt_function *function) {
    if (function) atomic_fetch_add(&function->references, 1);
    return function;
}

void smelt_function_release(smelt_function *function) {
    if (!function || atomic_fetch_sub(&function->references, 1) != 1) return;
    for (int i = 0; i < function->loaded_count; i++)
        function->loaded[i].device->unload(function->loaded[i].executable);
    smelt_library_release(function->library);
    pthread_mutex_destroy(&function->lock);
    free(function);
}

static smelt_status compile_function(void *context, const struct code_shape *shape, struct image *image,
                                     bool *cache_hit) {
    const smelt_function *function = context;
    struct code_options options = {
        .name = function->entry->host_name, .constants = function->constants, .shape = *shape};
    return compile_entry(&function->library->translation, function->entry, &options, image, cache_hit);
}

static smelt_status get_executable(smelt_function *function, const struct device *device,
                                   struct executable **out) {
    smelt_status status = SMELT_OK;
    pthread_mutex_lock(&function->lock);
    *out = NULL;
    for (int i = 0; i < function->loaded_count; i++)
        if (function->loaded[i].device == device) *out = function->loaded[i].executable;
    if (!*out) {
        struct code_source source = {.compile = compile_function,
                                     .context = function,
                                     .barrier_hint = compile_has_barrier(&function->library->translation)};
        status = device->load(&source, function->entry->host_name, out);
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
        if (binding->kind == BINDING_ATTRIBUTE) continue;
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
        bool guarded = function->entry->parameters[i].guard != NULL;
        if (!buffer->array && !buffer->bytes) {
            if (guarded) continue;
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': buffer %d ('%s') is missing", name,
                        binding->index, parameter);
        }
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
    if ((unsigned)stage > SMELT_STAGE_WHY)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': stage %d is not one of smelt_stage", name,
                    (int)stage);
    const struct device *device;
    TRY(device_find(desc->device, &device));
    if (stage == SMELT_STAGE_SOURCE) {
        *text = string_copy(text_string(&function->library->source), function->library->source.length);
        return *text ? SMELT_OK : fail_out_of_memory(function->library->source.length);
    }
    const struct translation *translation = &function->library->translation;
    struct code_options options = {.name = name, .constants = function->constants};
    int64_t grid[3] = {0, 0, 0};
    if (desc->grid[0] || desc->groups[0]) TRY(grid_of(function, desc, grid));
    struct shape_desc shape = {.grid = grid,
                               .group = desc->threadgroup,
                               .timeout = desc->timeout,
                               .barrier_hint = compile_has_barrier(translation)};
    TRY(shape_for_stage(name, device, &shape, stage, &options.shape));
    return compile_show(translation, function->entry, &options, stage, text);
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
