#include "ops/program.h"
#include "array/dtype.h"
#include "array/symbolic.h"
#include "base/hash.h"
#include "device/device.h"
#include "kernels/kernel_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table: open addressing over keys; entries are only ever added. */

struct program {
    struct program_key key;
    smelt_function *function;
};

static struct {
    pthread_mutex_t lock;
    struct program **slots;
    size_t capacity, count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock. The slot that holds the key, or the free one where it belongs. */
static struct program **find(const struct program_key *key) {
    if (!table.capacity) return NULL;
    size_t at = (size_t)hash_bytes(key, sizeof *key).low & (table.capacity - 1);
    while (table.slots[at] && memcmp(&table.slots[at]->key, key, sizeof *key) != 0)
        at = (at + 1) & (table.capacity - 1);
    return &table.slots[at];
}

static bool grow(void) {
    if (table.count * 2 < table.capacity) return true;
    size_t old = table.capacity;
    struct program **slots = table.slots;
    struct program **more = calloc(old ? 2 * old : 256, sizeof(struct program *));
    if (!more) return false;
    table.slots = more;
    table.capacity = old ? 2 * old : 256;
    for (size_t i = 0; i < old; i++)
        if (slots[i]) *find(&slots[i]->key) = slots[i];
    free(slots);
    return true;
}

static smelt_function *look_up(const struct program_key *key) {
    pthread_mutex_lock(&table.lock);
    struct program **slot = find(key);
    smelt_function *function = slot && *slot ? (*slot)->function : NULL;
    pthread_mutex_unlock(&table.lock);
    return function;
}

/* The function that is kept: `made`, or another thread's earlier one. */
static smelt_status keep(const struct program_key *key, smelt_function *made, smelt_function **function) {
    struct program *program = calloc(1, sizeof *program);
    pthread_mutex_lock(&table.lock);
    bool room = program && grow();
    struct program **slot = room ? find(key) : NULL;
    if (slot && !*slot) {
        *program = (struct program){*key, made};
        *slot = program;
        table.count++;
        program = NULL;
        made = NULL;
    }
    if (slot) *function = (*slot)->function;
    pthread_mutex_unlock(&table.lock);
    free(program);
    smelt_function_release(made);
    return room ? SMELT_OK : fail_out_of_memory(sizeof *program);
}

void program_write(const struct program_key *key, void (*write)(struct text *, const void *),
                   const void *context, struct text *text) {
    bool is_complex = false;
    for (int i = 0; i < PROGRAM_MAX_ARRAYS; i++) is_complex |= key->dtypes[i] == SMELT_COMPLEX64;
    text_add(text, "using namespace metal;\n");
    text_add(text, kernel_text_functions);
    if (is_complex) text_add(text, kernel_text_complex64);
    write(text, context);
}

static _Thread_local const struct program_sink *collected;

void program_collect(const struct program_sink *sink) {
    collected = sink;
}

bool program_is_collecting(void) {
    return collected != NULL;
}

static void collect(const struct program_key *key, const char *name,
                    void (*write)(struct text *, const void *), const void *context,
                    const smelt_function *function) {
    struct text text = {0};
    program_write(key, write, context, &text);
    collected->add(collected->context, key, name, text_string(&text), function);
    text_free(&text);
}

smelt_status program_put(const struct program_key *key, const char *name, const void *package, size_t bytes) {
    smelt_library *library;
    smelt_function *made, *function;
    TRY(smelt_library_create(&(smelt_library_desc){.package = package, .package_size = bytes, .path = name},
                             &library));
    smelt_status status = smelt_library_function(library, &(smelt_function_desc){.name = name}, &made);
    smelt_library_release(library);
    return status == SMELT_OK ? keep(key, made, &function) : status;
}

static smelt_status find_or_make(const struct program_key *key, const char *name,
                                 void (*write)(struct text *, const void *), const void *context,
                                 smelt_function **function) {
    *function = look_up(key);
    if (*function) return SMELT_OK;
    struct text text = {0};
    smelt_library *library = NULL;
    smelt_function *made = NULL;
    program_write(key, write, context, &text);
    smelt_status status = text.failed ? fail_out_of_memory(text.length) : SMELT_OK;
    if (status == SMELT_OK)
        status =
            smelt_library_create(&(smelt_library_desc){.source = text_string(&text), .path = name}, &library);
    if (status == SMELT_OK)
        status = smelt_library_function(library, &(smelt_function_desc){.name = name}, &made);
    if (status == SMELT_OK) status = keep(key, made, function);
    smelt_library_release(library);
    text_free(&text);
    return status;
}

smelt_status program_get(const struct program_key *key, const char *name,
                         void (*write)(struct text *, const void *), const void *context,
                         smelt_function **function) {
    TRY(find_or_make(key, name, write, context, function));
    if (collected) collect(key, name, write, context, *function);
    return SMELT_OK;
}

bool program_is_only_collected(const char *device) {
    return collected && program_is_host(device);
}

smelt_status program_run(smelt_function *function, const smelt_dispatch_desc *dispatch) {
    if (!program_is_only_collected(dispatch->device)) return smelt_function_run(function, dispatch);
    collected->launch(collected->context, function, dispatch);
    return SMELT_OK;
}

/* ---- Types. */

const char *program_type(smelt_dtype dtype) {
    switch (dtype) {
    case SMELT_FLOAT16:
        return "half";
    case SMELT_BFLOAT16:
        return "bfloat";
    case SMELT_COMPLEX64:
        return "complex64";
    default:
        return dtype_source_name(dtype);
    }
}

smelt_dtype program_compute_dtype(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16 ? SMELT_FLOAT32 : dtype;
}

void program_typedef(struct text *text, const char *name, smelt_dtype dtype) {
    text_addf(text, "typedef %s %s;\n", program_type(dtype), name);
}

/* ---- Devices. */

const char *program_device(const char *wanted, smelt_array *const *arrays, int count) {
    if (wanted) return wanted;
    for (int i = 0; i < count; i++)
        if (arrays[i]->memory->space) return arrays[i]->memory->space->device;
    return "cpu";
}

bool program_is_host(const char *device) {
    return strncmp(device, "cpu", 3) == 0;
}

bool program_is_symbolic(const char *device) {
    return strcmp(device, ARRAY_SYMBOLIC_DEVICE) == 0;
}

int64_t program_warpgroup_multiprocessors(const char *name) {
    const struct device *device;
    if (program_is_host(name) || device_find(name, &device) != SMELT_OK) return 0;
    return device->target && strcmp(device->target, "sm_90a") == 0 ? device->multiprocessors : 0;
}

bool program_has_warpgroups(const char *name) {
    return program_warpgroup_multiprocessors(name) > 0;
}

smelt_status program_filled(const char *name, smelt_stream *stream, smelt_dtype dtype,
                            const smelt_shape *shape, double value, smelt_array **array) {
    smelt_array *made;
    TRY(program_output(name, stream, dtype, shape, &made));
    smelt_status status = program_is_symbolic(name) ? SMELT_OK : array_fill_on(made, stream, value);
    if (status == SMELT_OK)
        *array = made;
    else
        smelt_array_release(made);
    return status;
}

smelt_status program_output(const char *name, smelt_stream *stream, smelt_dtype dtype,
                            const smelt_shape *shape, smelt_array **array) {
    const struct device *device;
    if (program_is_host(name)) return smelt_array_create(dtype, *shape, array);
    if (program_is_symbolic(name)) return array_symbolic(dtype, shape, NULL, NULL, array);
    TRY(device_find(name, &device));
    return device->space->create(device->space, stream, dtype, shape, array);
}

smelt_array program_span(const smelt_array *array, int64_t *start) {
    char *low;
    int64_t width = (int64_t)smelt_dtype_bytes(array->dtype);
    int64_t elements = (int64_t)array_span(array, &low) / width;
    *start = (array->data - low) / width;
    return (smelt_array){.references = 1,
                         .dtype = array->dtype,
                         .shape = {.ndim = 1, .size = {elements}},
                         .strides = {1},
                         .size = elements,
                         .data = low,
                         .memory = array->memory};
}
