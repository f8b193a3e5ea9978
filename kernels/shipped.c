#include "kernels/shipped.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    int count, capacity;
    struct {
        char name[64];
        smelt_kernel *kernel;
        smelt_function *function;
    } *entries;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Makes room for one more entry and clears it. The caller holds the lock. False: out of memory. */
static bool reserve(void) {
    if (table.count == table.capacity) {
        int capacity = table.capacity ? 2 * table.capacity : 64;
        void *entries = realloc(table.entries, (size_t)capacity * sizeof *table.entries);
        if (!entries) return false;
        table.entries = entries;
        table.capacity = capacity;
    }
    memset(&table.entries[table.count], 0, sizeof *table.entries);
    return true;
}

static int find(const char *name) {
    for (int i = 0; i < table.count; i++)
        if (strcmp(table.entries[i].name, name) == 0) return i;
    return -1;
}

smelt_status shipped_kernel(const smelt_kernel_desc *desc, smelt_kernel **kernel) {
    smelt_status status = SMELT_OK;
    pthread_mutex_lock(&table.lock);
    int found = find(desc->name);
    if (found < 0 && !reserve()) {
        status = SMELT_ERROR_OUT_OF_MEMORY;
    } else if (found < 0) {
        status = smelt_kernel_create(desc, &table.entries[table.count].kernel);
        if (status == SMELT_OK) {
            found = table.count++;
            snprintf(table.entries[found].name, sizeof table.entries[found].name, "%s", desc->name);
        }
    }
    if (status == SMELT_OK) *kernel = table.entries[found].kernel;
    pthread_mutex_unlock(&table.lock);
    return status;
}

/* entry NULL: the only one. */
static smelt_status make_function(const char *file, const char *source, const char *entry,
                                  smelt_math_mode math, smelt_function **function) {
    smelt_library *library;
    smelt_status status =
        smelt_library_create(&(smelt_library_desc){.path = file, .source = source, .math = math}, &library);
    if (status != SMELT_OK) return status;
    status = smelt_library_function(library, &(smelt_function_desc){.name = entry}, function);
    smelt_library_release(library);
    return status;
}

static smelt_status find_function(const char *name, const char *source, const char *entry,
                                  smelt_math_mode math, smelt_function **function) {
    smelt_status status = SMELT_OK;
    pthread_mutex_lock(&table.lock);
    int found = find(name);
    if (found < 0 && !reserve()) {
        status = SMELT_ERROR_OUT_OF_MEMORY;
    } else if (found < 0) {
        status = make_function(name, source, entry, math, &table.entries[table.count].function);
        if (status == SMELT_OK) {
            found = table.count++;
            snprintf(table.entries[found].name, sizeof table.entries[found].name, "%s", name);
        }
    }
    if (status == SMELT_OK) *function = table.entries[found].function;
    pthread_mutex_unlock(&table.lock);
    return status;
}

smelt_status shipped_function(const char *name, const char *source, smelt_function **function) {
    return find_function(name, source, NULL, SMELT_MATH_SAFE, function);
}

static _Thread_local const struct shipped_sink *collected;

void shipped_collect(const struct shipped_sink *sink) {
    collected = sink;
}

smelt_status shipped_put(const char *entry, const void *package, size_t bytes) {
    smelt_library *library;
    smelt_function *made;
    smelt_status status = smelt_library_create(
        &(smelt_library_desc){.package = package, .package_size = bytes, .path = entry}, &library);
    if (status == SMELT_OK) {
        status = smelt_library_function(library, &(smelt_function_desc){.name = entry}, &made);
        smelt_library_release(library);
    }
    if (status != SMELT_OK) return status;
    pthread_mutex_lock(&table.lock);
    if (find(entry) < 0 && reserve()) {
        snprintf(table.entries[table.count].name, sizeof table.entries[table.count].name, "%s", entry);
        table.entries[table.count++].function = made;
        made = NULL;
    }
    pthread_mutex_unlock(&table.lock);
    smelt_function_release(made);
    return SMELT_OK;
}

smelt_status shipped_entry(const char *source, const char *entry, smelt_math_mode math,
                           smelt_function **function) {
    if (collected) collected->add(collected->context, source, entry, math);
    return find_function(entry, source, entry, math, function);
}

/* Whether the table has the entry; then *function is set. */
static bool has(const char *entry, smelt_function **function) {
    pthread_mutex_lock(&table.lock);
    int found = find(entry);
    if (found >= 0) *function = table.entries[found].function;
    pthread_mutex_unlock(&table.lock);
    return found >= 0;
}

smelt_status shipped_variant(const char *defines, const char *source, const char *entry, smelt_math_mode math,
                             smelt_function **function) {
    if (!collected && has(entry, function)) return SMELT_OK;
    size_t size = strlen(defines) + strlen(source) + 1;
    char *text = malloc(size);
    if (!text) return SMELT_ERROR_OUT_OF_MEMORY;
    snprintf(text, size, "%s%s", defines, source);
    smelt_status status = shipped_entry(text, entry, math, function);
    free(text);
    return status;
}

void shipped_apply_call(const smelt_call *call, smelt_run_desc *desc) {
    if (!call) return;
    desc->device = call->device;
    desc->timeout = call->timeout;
    desc->info = call->info;
    /* A kernel that counts on a starting value of its own keeps it. */
    if (call->poison && !desc->initialise) {
        desc->initialise = true;
        desc->init_value = NAN;
    }
}

bool shipped_is_float(const smelt_array *array, int ndim) {
    if (!array || smelt_array_shape(array).ndim != ndim) return false;
    smelt_dtype dtype = smelt_array_dtype(array);
    return dtype == SMELT_FLOAT32 || dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16;
}
