/* Whole .metal files, and packages made of them: functions by host name, buffers by index. */
#include "array/array.h"
#include "base/file.h"
#include "frontend/diagnostic.h"
#include "kernel/dispatch.h"
#include "package/build.h"
#include "package/code.h"
#include "package/describe.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct smelt_library {
    atomic_int references;
    char *label;        /* its name in messages */
    struct text source; /* the text, or the package's bytes */
    bool packaged;
    struct translation translation; /* where it is not packaged */
    struct package package;         /* where it is */
};

struct smelt_function {
    atomic_int references;
    smelt_library *library;
    const struct entry *entry;
    const struct package_entry *packaged;              /* NULL: compiled from text */
    bool constants_changed;                            /* from those of the package's code */
    atomic_flag noted;                                 /* that its code is not the best there could be */
    smelt_constant constants[SMELT_MAX_CONSTANTS + 1]; /* ended by SMELT_NO_DTYPE; names in `arena` */
    struct arena arena;
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
                                          .metal_version = desc->metal_version,
                                          .include_paths = desc->include_paths,
                                          .texts = {{library->label, text_string(&library->source)}}};
    return translation_create(&request, &library->translation);
}

static smelt_status check_desc(const smelt_library_desc *desc, smelt_library **out) {
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "library: the address for the new library is NULL");
    if (!desc || (!desc->path && !desc->source && !desc->package))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library: neither path nor source nor package is given");
    if (desc->source && desc->package)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "library: source and package are both given; one is loaded");
    return metal_version_check("library", desc->metal_version);
}

/* From where the descriptor says, as text or package. */
static smelt_status read_source(smelt_library *library, const smelt_library_desc *desc) {
    if (desc->source)
        text_add(&library->source, desc->source);
    else if (desc->package)
        text_append(&library->source, desc->package, desc->package_size);
    else
        TRY(file_read(desc->path, &library->source));
    library->packaged = !desc->source && (desc->package || package_begins(text_string(&library->source),
                                                                          library->source.length));
    return library->source.failed ? fail_out_of_memory(library->source.length) : SMELT_OK;
}

smelt_status smelt_library_create(const smelt_library_desc *desc, smelt_library **out) {
    TRY(check_desc(desc, out));
    smelt_library *library = calloc(1, sizeof *library);
    if (!library) return fail_out_of_memory(sizeof *library);
    const char *label = desc->path ? desc->path : desc->package ? "package" : "library.metal";
    atomic_init(&library->references, 1);
    library->label = string_copy(label, strlen(label));
    smelt_status status = library->label ? SMELT_OK : fail_out_of_memory(strlen(label));
    if (status == SMELT_OK) status = read_source(library, desc);
    if (status == SMELT_OK)
        status = library->packaged
                     ? package_read(label, library->source.data, library->source.length, &library->package)
                     : translate(library, desc);
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
    if (library->packaged)
        package_free(&library->package);
    else
        translation_free(&library->translation);
    text_free(&library->source);
    free(library->label);
    free(library);
}

int smelt_library_function_count(const smelt_library *library) {
    if (!library) return 0;
    return library->packaged ? library->package.entry_count : library->translation.program.entry_count;
}

static const struct entry *entry_at(const smelt_library *library, int index) {
    return library->packaged ? &library->package.entries[index].entry
                             : &library->translation.program.entries[index];
}

/* The index of the function called `name`, or -1. */
static int find_entry(const smelt_library *library, const char *name) {
    for (int i = 0; i < smelt_library_function_count(library); i++)
        if (strcmp(entry_at(library, i)->host_name, name) == 0) return i;
    return -1;
}

const char *smelt_library_function_name(const smelt_library *library, int index) {
    if (index < 0 || index >= smelt_library_function_count(library)) return NULL;
    return entry_at(library, index)->host_name;
}

/* A function of another stage is named with its place. */
static bool is_other_function(const smelt_library *library, const char *name) {
    const struct program *program = &library->translation.program;
    for (int i = 0; name && !library->packaged && i < program->other_count; i++) {
        const struct other_function *other = &program->others[i];
        if (strcmp(other->name, name) != 0) continue;
        struct text message = {0}, described = {0};
        text_addf(&message, "'%s' is %s %s function; render functions are not supported", name,
                  strchr("aeiou", *other->stage) ? "an" : "a", other->stage);
        diagnostics_add(&library->translation, program->input.items[other->token].start,
                        text_string(&message), &described);
        error_record("%s", text_string(&described));
        text_free(&message);
        text_free(&described);
        return true;
    }
    return false;
}

static smelt_status no_such_function(const smelt_library *library, const char *name) {
    struct text names = {0};
    if (is_other_function(library, name)) return SMELT_ERROR_UNSUPPORTED;
    int count = smelt_library_function_count(library);
    for (int i = 0; i < count && i < 20; i++)
        text_addf(&names, "%s%s", i ? ", " : "", entry_at(library, i)->host_name);
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
        text_addf(&names, "%s%s", i ? ", " : "; there are: ", program->constants[i]);
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
    int index = desc->name                                   ? find_entry(library, desc->name)
                : smelt_library_function_count(library) == 1 ? 0
                                                             : -1;
    if (index < 0) return no_such_function(library, desc->name);
    smelt_function *function = calloc(1, sizeof *function);
    if (!function) return fail_out_of_memory(sizeof *function);
    smelt_status status;
    atomic_init(&function->references, 1);
    pthread_mutex_init(&function->lock, NULL);
    function->library = smelt_library_retain(library);
    function->entry = entry_at(library, index);
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
    for (int i = 0; i < function->loaded_count; i++)
        function->loaded[i].device->unload(function->loaded[i].executable);
    smelt_library_release(function->library);
    arena_free(&function->arena);
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

static smelt_status load_function(void *context, const struct code_shape *shape, struct image *image,
                                  bool *ready) {
    smelt_function *function = context;
    struct code_options options = {
        .name = function->entry->host_name, .constants = function->constants, .shape = *shape};
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
    if ((unsigned)stage > SMELT_STAGE_WHY)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': stage %d is not one of smelt_stage", name,
                    (int)stage);
    const struct device *device;
    TRY(device_find(desc->device, &device));
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
                               .barrier_hint = barrier_hint(function)};
    TRY(shape_for_stage(name, device, &shape, stage, &options.shape));
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

/* ---- Packages. */

static smelt_status check_build(const smelt_library *library, const smelt_build_desc *desc) {
    if (!library || !desc || !desc->path)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library build: %s is NULL",
                    !library ? "library"
                    : !desc  ? "desc"
                             : "path");
    if (library->packaged)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "'%s' is a package already; packages are built from text",
                    library->label);
    if (!smelt_library_function_count(library)) return no_such_function(library, NULL);
    for (int i = 0; i < SMELT_MAX_BUILD_THREADGROUPS && desc->threadgroups[i][0]; i++) {
        int64_t product = 1;
        for (int d = 0; d < 3; d++) {
            int64_t size = desc->threadgroups[i][d] || d == 0 ? desc->threadgroups[i][d] : 1;
            if (size < 1 || __builtin_mul_overflow(product, size, &product) ||
                product > cpu_device.thread_limit)
                return fail(SMELT_ERROR_INVALID_ARGUMENT,
                            "library build: threadgroup %lld x %lld x %lld is none; expected 1 to %u threads",
                            (long long)desc->threadgroups[i][0], (long long)desc->threadgroups[i][1],
                            (long long)desc->threadgroups[i][2], cpu_device.thread_limit);
        }
    }
    return SMELT_OK;
}

/* The entries of these names (NULL: all) in the order of the text, each once. */
static smelt_status choose_entries(const smelt_library *library, const char *const *names,
                                   const struct entry **entries, int *count) {
    *count = 0;
    for (const char *const *name = names; name && *name; name++)
        if (find_entry(library, *name) < 0) return no_such_function(library, *name);
    for (int i = 0; i < smelt_library_function_count(library); i++) {
        bool wanted = !names;
        for (const char *const *name = names; name && *name; name++)
            wanted |= strcmp(*name, entry_at(library, i)->host_name) == 0;
        if (wanted) entries[(*count)++] = entry_at(library, i);
    }
    if (!*count) return fail(SMELT_ERROR_INVALID_ARGUMENT, "library build: the list of entries is empty");
    return SMELT_OK;
}

smelt_status smelt_library_build(smelt_library *library, const smelt_build_desc *desc) {
    TRY(check_build(library, desc));
    size_t most = (size_t)smelt_library_function_count(library);
    const struct entry **entries = calloc(most, sizeof *entries);
    if (!entries) return fail_out_of_memory(most * sizeof *entries);
    struct package_request request = {.translation = &library->translation,
                                      .source_name = library->label,
                                      .entries = entries,
                                      .desc = desc};
    struct text bytes = {0};
    smelt_status status = choose_entries(library, desc->entries, entries, &request.entry_count);
    if (status == SMELT_OK) status = file_check_writable(desc->path);
    if (status == SMELT_OK) status = package_build(&request, &bytes);
    if (bytes.length) {
        struct bytes piece = {bytes.data, bytes.length};
        smelt_status written = file_write(desc->path, &piece, 1);
        if (written != SMELT_OK) status = written;
    }
    text_free(&bytes);
    free(entries);
    return status;
}

smelt_status smelt_library_describe(const smelt_library *library, const char *name, char **text) {
    if (!library || !text)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library describe: %s is NULL",
                    library ? "text" : "library");
    if (!library->packaged)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "'%s' is no package: its contents are its text",
                    library->label);
    int index = name ? find_entry(library, name) : -1;
    if (name && index < 0) return no_such_function(library, name);
    struct text out = {0};
    describe_package(&library->package, index, &out);
    if (out.failed) return fail_out_of_memory(out.length);
    *text = out.data;
    return SMELT_OK;
}
