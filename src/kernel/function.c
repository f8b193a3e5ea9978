/* Functions of libraries: their constants, codes, launches. */
#include "array/array.h"
#include "base/interrupt.h"
#include "base/reserved.h"
#include "device/executable.h"
#include "kernel/function_arguments.h"
#include "kernel/show.h"

#include <stdlib.h>
#include <string.h>

/* ---- Creation. */

/* A name that no function constant of the text has is a mistake. */
static smelt_status check_constant_name(const smelt_library *library, const smelt_constant *given) {
    const struct program *program = &library->translation.program;
    struct text names = {0};
    if (library->packaged) return SMELT_OK;
    for (int i = 0; i < program->constant_count; i++) {
        if (constant_matches(given, -1, program->constants[i])) {
            text_free(&names);
            return SMELT_OK;
        }
        text_addf(&names, "%s%s", i ? ", " : "; expected one of: ", program->constants[i]);
    }
    smelt_status status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s has no function constant '%s'%s",
                               library->label, given->name, text_string(&names));
    text_free(&names);
    return status;
}

static smelt_status copy_constants(smelt_function *function, const smelt_function_desc *desc) {
    memcpy(function->constants, desc->constants, sizeof desc->constants);
    for (int i = 0; i < SMELT_MAX_CONSTANTS && desc->constants[i].dtype != SMELT_NO_DTYPE; i++) {
        smelt_constant *constant = &function->constants[i];
        if (constant->count < 0 || constant->count > 4)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "function constant %d has a count of %d components, expected 0 to 4", i,
                        constant->count);
        if (!constant->name) continue;
        TRY(check_constant_name(function->library, constant));
        constant->name = arena_copy(&function->arena, constant->name, strlen(constant->name));
        if (!constant->name) return fail_out_of_memory(sizeof *constant);
    }
    return SMELT_OK;
}

smelt_status smelt_library_function(smelt_library *library, const smelt_function_desc *desc,
                                    smelt_function **out) {
    if (!library || !desc || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library function: %s is NULL",
                    !library ? "library"
                    : !desc  ? "desc"
                             : "the address for the function");
    TRY(reserved_check(smelt_function_desc, desc));
    TRY(library_check_constants(desc->constants));
    int index = desc->name                                   ? library_find(library, desc->name)
                : smelt_library_function_count(library) == 1 ? 0
                                                             : -1;
    if (index < 0) return library_lacks(library, desc->name);
    smelt_function *function = calloc(1, sizeof *function);
    if (!function) return fail_out_of_memory(sizeof *function);
    smelt_status status;
    atomic_init(&function->references, 1);
    pthread_mutex_init(&function->loaded.lock, NULL);
    function->library = smelt_library_retain(library);
    function->entry = library_entry(library, index);
    status = copy_constants(function, desc);
    if (status != SMELT_OK) {
        smelt_function_release(function);
        return status;
    }
    if (library->packaged) {
        smelt_constant values[SMELT_MAX_CONSTANTS + 1];
        function->packaged = &library->package.entries[index];
        package_constants(function->packaged, function->constants, values, &function->constants_changed);
        memcpy(function->constants, values, sizeof values);
    }
    *out = function;
    return SMELT_OK;
}

smelt_function *smelt_function_retain(smelt_function *function) {
    if (function) atomic_fetch_add(&function->references, 1);
    return function;
}

void smelt_function_release(smelt_function *function) {
    if (!function || atomic_fetch_sub(&function->references, 1) != 1) return;
    for (struct loaded *l = function->loaded.first, *next; l; l = next) {
        next = l->next;
        executable_unload(l->executable);
        free(l);
    }
    smelt_library_release(function->library);
    arena_free(&function->arena);
    pthread_mutex_destroy(&function->loaded.lock);
    free(function);
}

/* ---- Codes. */

static smelt_status compile_function(void *context, const char *target, const struct code_shape *shape,
                                     const struct known_values *values, enum compile_effort effort,
                                     struct image *image, bool *cache_hit) {
    const smelt_function *function = context;
    struct code_options options = {.name = function->entry->host_name,
                                   .constants = function->constants,
                                   .shape = *shape,
                                   .values = values,
                                   .target = target,
                                   .effort = effort};
    return compile_entry(&function->library->translation, function->entry, &options, image, cache_hit);
}

static smelt_status load_function(void *context, const char *target, const struct code_shape *shape,
                                  const struct known_values *values, enum compile_effort effort,
                                  struct image *image, bool *ready) {
    smelt_function *function = context;
    struct code_options options = {.name = function->entry->host_name,
                                   .constants = function->constants,
                                   .shape = *shape,
                                   .values = values,
                                   .target = target,
                                   .effort = effort};
    char *note;
    smelt_status status = package_code(&function->library->package, function->packaged, &options,
                                       function->constants_changed, image, ready, &note);
    if (status == SMELT_OK && note && !atomic_flag_test_and_set(&function->noted))
        log_line(SMELT_LOG_INFO, "kernel '%s' %s", options.name, note);
    free(note);
    return status;
}

static void hold(void *context) {
    (void)smelt_function_retain(context);
}

static void let_go(void *context) {
    smelt_function_release(context);
}

static bool barrier_hint(const smelt_function *function) {
    return function->packaged ? function->packaged->has_barrier
                              : compile_has_barrier(&function->library->translation);
}

/* Under the lock of the list. */
static smelt_status load(smelt_function *function, const struct device *device, struct executable **out) {
    struct code_source source = {.compile = function->packaged ? load_function : compile_function,
                                 .hold = hold,
                                 .let_go = let_go,
                                 .context = function,
                                 .barrier_hint = barrier_hint(function)};
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded) return fail_out_of_memory(sizeof *loaded);
    smelt_status status = executable_load(device, &source, function->entry->host_name, out);
    loaded->executable = *out;
    if (status == SMELT_OK)
        loaded_add(&function->loaded, loaded);
    else
        free(loaded);
    return status;
}

static smelt_status get_executable(smelt_function *function, const struct device *device,
                                   struct executable **out) {
    struct loaded_list *list = &function->loaded;
    smelt_status status = SMELT_OK;
    *out = NULL;
    pthread_mutex_lock(&list->lock);
    for (struct loaded *l = list->first; l; l = l->next)
        if (l->executable->device == device) *out = l->executable;
    if (!*out) status = load(function, device, out);
    pthread_mutex_unlock(&list->lock);
    return status;
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

static smelt_status check_reserved(const smelt_dispatch_desc *desc) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) TRY(reserved_check(smelt_buffer, &desc->buffers[i]));
    return reserved_check(smelt_dispatch_desc, desc);
}

/* A launch that is checked, except its arguments. */
static smelt_status begin(smelt_function *function, const smelt_dispatch_desc *desc, struct launch *launch) {
    int64_t grid[3];
    *launch =
        (struct launch){.what = function->entry->host_name,
                        .profile = desc->profile,
                        .timeout = desc->timeout,
                        .threadgroup_memory = desc->threadgroup_memory,
                        .stream = desc->stream,
                        .entry = function->entry,
                        .translation = function->library->packaged ? NULL : &function->library->translation,
                        .info = desc->info,
                        .check = desc->check,
                        .look_for = desc->also,
                        .unchecked = desc->unchecked};
    TRY(check_reserved(desc));
    TRY(function_check_names(function, desc));
    TRY(launch_begin(launch, desc->device));
    TRY(grid_of(function, desc, grid));
    launch->large = function_is_large(desc);
    TRY(launch_measure(launch, grid, desc->threadgroup, false));
    TRY(get_executable(function, launch->device, &launch->executable));
    if (launch->device->space) function_inlined(function, desc, launch->inlined);
    return SMELT_OK;
}

static smelt_status run(smelt_function *function, const smelt_dispatch_desc *desc) {
    struct launch launch;
    TRY(begin(function, desc, &launch));
    struct function_call call;
    call.function = function;
    call.desc = desc;
    return arguments_run(&launch, function_bind, &call);
}

smelt_status smelt_function_run(smelt_function *function, const smelt_dispatch_desc *desc) {
    if (!function || !desc)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "function run: %s is NULL", function ? "desc" : "function");
    smelt_interrupt *outer = interrupt_begin_call(desc->interrupt);
    smelt_status status = run(function, desc);
    interrupt_end_call(outer);
    return interrupt_status(function->entry->host_name, status);
}

smelt_status smelt_function_wait(smelt_function *function, smelt_interrupt *interrupt) {
    if (!function) return fail(SMELT_ERROR_INVALID_ARGUMENT, "function wait: function is NULL");
    return loaded_wait(&function->loaded, function->entry->host_name, interrupt);
}

static smelt_status list_parameters(smelt_function *function, const smelt_dispatch_desc *desc,
                                    smelt_parameter *parameters, int capacity, int *count) {
    struct launch launch;
    TRY(begin(function, desc, &launch));
    TRY(launch_prepare(&launch));
    const struct image *image = launch.image;
    int found = 0;
    for (int i = 0; i < function->entry->parameter_count && i < image->binding_count; i++) {
        const struct parameter *parameter = &function->entry->parameters[i];
        const struct binding *binding = launch_binding(&launch, i);
        const struct tensor_binding *tensor = tensor_of_parameter(image, i);
        bool threadgroup = parameter->kind == PARAMETER_THREADGROUP;
        if (!threadgroup && parameter->kind != PARAMETER_BUFFER) continue;
        if (found++ >= capacity) continue;
        parameters[found - 1] = (smelt_parameter){.name = parameter->name,
                                                  .index = binding->index,
                                                  .threadgroup = threadgroup,
                                                  .pointer = BINDING_POINTER(binding->type),
                                                  .writable = binding->writable != 0,
                                                  .used = tensor ? tensor_is_used(&launch, tensor)
                                                                 : binding->kind != BINDING_ABSENT,
                                                  .bytes = (size_t)binding->size,
                                                  .dtype = BINDING_DTYPE(binding->type),
                                                  .components = BINDING_COMPONENTS(binding->type),
                                                  .rank = tensor ? tensor->rank : 0,
                                                  .element = tensor ? tensor->element : 0,
                                                  .scales = tensor ? tensor->scales : 0};
    }
    *count = found;
    return SMELT_OK;
}

smelt_status smelt_function_parameters(smelt_function *function, const smelt_dispatch_desc *desc,
                                       smelt_parameter *parameters, int capacity, int *count) {
    if (!function || !desc || !count || (capacity > 0 && !parameters))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "function parameters: %s is NULL",
                    !function ? "function"
                    : !desc   ? "desc"
                    : !count  ? "count"
                              : "parameters");
    smelt_interrupt *outer = interrupt_begin_call(desc->interrupt);
    smelt_status status = list_parameters(function, desc, parameters, capacity, count);
    interrupt_end_call(outer);
    return interrupt_status(function->entry->host_name, status);
}

static smelt_status show(smelt_function *function, const smelt_dispatch_desc *desc, smelt_stage stage,
                         char **text) {
    const char *name = function->entry->host_name;
    if ((unsigned)stage > SMELT_STAGE_WARNINGS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': stage %d is not one of smelt_stage", name,
                    (int)stage);
    const struct device *device;
    TRY(check_reserved(desc));
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
                               .barrier_hint = barrier_hint(function),
                               .target = desc->target,
                               .after = desc->after};
    struct launch launch = {.what = name,
                            .device = device,
                            .timeout = desc->timeout,
                            .check = desc->check,
                            .unchecked = desc->unchecked};
    function_inlined(function, desc, launch.inlined);
    TRY(shape_for_stage(&launch, &shape, stage, &options));
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
