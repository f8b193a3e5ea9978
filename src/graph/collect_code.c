#include "graph/collect_code.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/thread.h"
#include "device/device.h"
#include "graph/plan.h"
#include "graph/stored.h"
#include "kernel/function_arguments.h"
#include "kernel/library.h"
#include "kernels/shipped.h"
#include "ops/program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A kernel that an execution runs, perhaps in several steps. */
struct kernel_code {
    struct hash hash;               /* of the key, or of a shipped kernel's name */
    int kind;                       /* STORED_PROGRAM or STORED_SHIPPED */
    struct program_key key;         /* a program's */
    const smelt_function *function; /* a program's, by which its launches are found */
    char *name, *source;
    smelt_math_mode math;
    struct package_launch *launches; /* none: they are not known */
    int launch_count, launch_capacity;
    struct text package;
};

struct collection {
    const char *target;
    struct kernel_code *parts;
    int count, capacity;
    smelt_status status;
};

static void free_parts(struct collection *all) {
    for (int i = 0; i < all->count; i++) {
        free(all->parts[i].name);
        free(all->parts[i].source);
        free(all->parts[i].launches);
        text_free(&all->parts[i].package);
    }
    free(all->parts);
}

/* The list with room for one more item; NULL: out of memory, and the list is as before. */
static void *with_room(void *items, int count, int *capacity, size_t size) {
    if (count < *capacity) return items;
    int wanted = *capacity ? 2 * *capacity : 16;
    void *grown = realloc(items, (size_t)wanted * size);
    if (grown) *capacity = wanted;
    return grown;
}

/* ---- Which kernels run, and how they are launched. */

/* Takes copies. */
static void add_part(struct collection *all, const struct kernel_code *part, const char *name,
                     const char *source) {
    if (all->status != SMELT_OK) return;
    for (int i = 0; i < all->count; i++)
        if (all->parts[i].hash.low == part->hash.low && all->parts[i].hash.high == part->hash.high) return;
    struct kernel_code *parts = with_room(all->parts, all->count, &all->capacity, sizeof *parts);
    if (parts) all->parts = parts;
    char *own_name = string_copy(name, strlen(name)), *own_source = string_copy(source, strlen(source));
    if (!parts || !own_name || !own_source) {
        free(own_name);
        free(own_source);
        all->status = fail_out_of_memory(strlen(source));
        return;
    }
    parts[all->count] = *part;
    parts[all->count].name = own_name;
    parts[all->count++].source = own_source;
}

static void add_program(void *context, const struct program_key *key, const char *name, const char *text,
                        const smelt_function *function) {
    struct kernel_code part = {.hash = hash_bytes(key, sizeof *key),
                               .kind = STORED_PROGRAM,
                               .key = *key,
                               .function = function,
                               .math = SMELT_MATH_SAFE};
    add_part(context, &part, name, text);
}

static void add_shipped(void *context, const char *source, const char *entry, smelt_math_mode math) {
    struct kernel_code part = {
        .hash = hash_bytes(entry, strlen(entry)), .kind = STORED_SHIPPED, .math = math};
    add_part(context, &part, entry, source);
}

/* False: the launch has no valid size. It is left out here, and fails when the graph is executed. */
static bool measure(const smelt_dispatch_desc *dispatch, struct package_launch *launch) {
    memset(launch, 0, sizeof *launch);
    for (int d = 0; d < 3; d++) {
        int64_t size = dispatch->threadgroup[d] > 0 ? dispatch->threadgroup[d] : 1;
        int64_t threads = dispatch->grid[0] ? dispatch->grid[d] : dispatch->groups[d];
        if (threads <= 0) threads = 1;
        if (!dispatch->grid[0] && __builtin_mul_overflow(threads, size, &threads)) return false;
        if (threads > UINT32_MAX || size > UINT32_MAX) return false;
        launch->grid[d] = (uint32_t)threads;
        launch->group[d] = (uint32_t)size;
    }
    launch->large = function_is_large(dispatch);
    return true;
}

static void add_launch(void *context, const smelt_function *function, const smelt_dispatch_desc *dispatch) {
    struct collection *all = context;
    struct package_launch launch;
    struct kernel_code *part = NULL;
    for (int i = 0; i < all->count; i++)
        if (all->parts[i].function == function) part = &all->parts[i];
    if (!part || all->status != SMELT_OK || !measure(dispatch, &launch)) return;
    for (int i = 0; i < part->launch_count; i++)
        if (memcmp(&part->launches[i], &launch, sizeof launch) == 0) return;
    struct package_launch *launches =
        with_room(part->launches, part->launch_count, &part->launch_capacity, sizeof launch);
    if (!launches) {
        all->status = fail_out_of_memory(sizeof launch);
        return;
    }
    launches[part->launch_count++] = launch;
    part->launches = launches;
}

/* Executes the graph once, on zeros. */
static smelt_status execute_once(smelt_compiled *compiled) {
    const smelt_graph *graph = compiled->graph;
    size_t inputs = (size_t)graph->input_count, outputs = (size_t)graph->output_count;
    smelt_array **arrays = calloc(inputs + outputs + 1, sizeof *arrays);
    smelt_session *session = NULL;
    if (!arrays) return fail_out_of_memory(inputs * sizeof *arrays);
    smelt_status status =
        smelt_session_create(compiled, &(smelt_session_desc){.no_recording = true}, &session);
    for (int i = 0; i < graph->input_count && status == SMELT_OK; i++) {
        const struct graph_value *type = &graph->values[graph->inputs[i].value];
        status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_ZEROS,
                                                 .dtype = type->dtype,
                                                 .shape = type->shape,
                                                 .device = compiled->device},
                             &arrays[i]);
    }
    if (status == SMELT_OK)
        status = smelt_session_execute(
            session, &(smelt_execute_desc){.inputs = arrays, .input_count = graph->input_count},
            arrays + inputs);
    for (size_t i = 0; i < inputs + outputs; i++) smelt_array_release(arrays[i]);
    free(arrays);
    smelt_session_release(session);
    return status;
}

static smelt_status collect_parts(smelt_compiled *compiled, struct collection *all) {
    const struct program_sink programs = {add_program, add_launch, all};
    const struct shipped_sink shipped = {add_shipped, all};
    program_collect(&programs);
    shipped_collect(&shipped);
    smelt_status status = execute_once(compiled);
    program_collect(NULL);
    shipped_collect(NULL);
    return status == SMELT_OK ? all->status : status;
}

/* ---- Their packages. */

static smelt_status build(struct kernel_code *part, const char *target) {
    smelt_library *library;
    const char *const entries[] = {part->name, NULL};
    const smelt_build_desc desc = {.targets = {target}, .entries = entries, .jobs = 1};
    TRY(smelt_library_create(
        &(smelt_library_desc){.source = part->source, .path = part->name, .math = part->math}, &library));
    smelt_status status = library_package(library, &desc, part->launches, part->launch_count, &part->package);
    smelt_library_release(library);
    return status;
}

#define MOST_THREADS 64

/* The state that the building threads share. */
struct team {
    struct collection *all;
    smelt_interrupt *interrupt; /* of the caller's call */
    atomic_int next;
    pthread_mutex_t lock; /* guards what follows */
    smelt_status status;  /* the first failure's */
    char *message;
};

static void note_failure(struct team *team, smelt_status status) {
    pthread_mutex_lock(&team->lock);
    if (team->status == SMELT_OK) {
        team->status = status;
        team->message = string_copy(smelt_error(), strlen(smelt_error()));
    }
    pthread_mutex_unlock(&team->lock);
    atomic_store(&team->next, team->all->count);
}

static void *work(void *argument) {
    struct team *team = argument;
    smelt_interrupt *outer = interrupt_begin_call(team->interrupt);
    for (int i; (i = atomic_fetch_add(&team->next, 1)) < team->all->count;) {
        smelt_status status = build(&team->all->parts[i], team->all->target);
        if (status != SMELT_OK) note_failure(team, status);
    }
    interrupt_end_call(outer);
    return NULL;
}

/* On as many threads as there are CPUs: each waits for a compiler, which runs in a process of its own. */
static smelt_status build_all(struct collection *all) {
    pthread_t threads[MOST_THREADS];
    int started = 0, wanted = smelt_device_threads("cpu");
    if (wanted > MOST_THREADS) wanted = MOST_THREADS;
    struct team team = {.all = all, .interrupt = interrupt_of_call()};
    pthread_mutex_init(&team.lock, NULL);
    while (started + 1 < wanted && started + 1 < all->count &&
           thread_start(&threads[started], work, &team) == 0)
        started++;
    (void)work(&team);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&team.lock);
    if (team.status != SMELT_OK) error_record("%s", team.message ? team.message : "out of memory");
    free(team.message);
    return team.status;
}

static void write_part(struct text *out, const struct kernel_code *part) {
    stored_number(out, part->kind);
    if (part->kind == STORED_PROGRAM) stored_bytes(out, &part->key, sizeof part->key);
    stored_bytes(out, part->name, strlen(part->name));
    stored_bytes(out, part->package.data, part->package.length);
}

smelt_status compiled_collect_code(smelt_compiled *compiled, struct text *out) {
    const struct device *device;
    TRY(device_find(compiled->device, &device));
    struct collection all = {.target = device->target ? device->target : "cpu"};
    smelt_status status = collect_parts(compiled, &all);
    if (status == SMELT_OK) status = build_all(&all);
    for (int i = 0; i < all.count && status == SMELT_OK; i++) write_part(out, &all.parts[i]);
    free_parts(&all);
    return status;
}
