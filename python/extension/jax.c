/* Graphs as foreign functions of XLA: what JAX calls by jax.ffi. smelt.jax registers the handlers, and a
 * graph for each function and types of arguments; XLA passes the graph's number as an attribute. The handlers
 * run on XLA's threads, without Python. */
#include "operations.h"
#include "xla_ffi.h"

#include <pthread.h>
#include <smelt/graph.h>
#include <stdio.h>

#define MOST_DEVICES 64
#define ATTRIBUTE "graph"

/* A graph, and its sessions on the devices it ran on. */
struct entry {
    smelt_graph *graph;
    int inputs, outputs;
    pthread_mutex_t mutex; /* of the sessions, whose executions share memory */
    struct {
        char device[32];
        smelt_session *session;
    } sessions[MOST_DEVICES];
    int count;
};

/* Programs that XLA compiled may call a graph until the process ends, so entries stay. */
static struct {
    pthread_mutex_t mutex;
    struct entry **entries;
    int count;
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct entry *entry_of(int64_t number) {
    pthread_mutex_lock(&table.mutex);
    struct entry *entry = number >= 0 && number < table.count ? table.entries[number] : NULL;
    pthread_mutex_unlock(&table.mutex);
    return entry;
}

/* The number of a new entry for the graph, or -1: out of memory. */
static int add_entry(smelt_graph *graph, int inputs, int outputs) {
    struct entry *entry = calloc(1, sizeof *entry);
    int number = -1;
    if (!entry) return -1;
    *entry = (struct entry){.graph = smelt_graph_retain(graph), .inputs = inputs, .outputs = outputs};
    pthread_mutex_init(&entry->mutex, NULL);
    pthread_mutex_lock(&table.mutex);
    struct entry **more = realloc(table.entries, ((size_t)table.count + 1) * sizeof(struct entry *));
    if (more) {
        table.entries = more;
        table.entries[number = table.count++] = entry;
    }
    pthread_mutex_unlock(&table.mutex);
    if (more) return number;
    smelt_graph_release(graph);
    free(entry);
    return -1;
}

/* The entry's session on a device, compiled when it is first needed. Called with the entry's mutex. */
static smelt_status session_on(struct entry *entry, const char *device, smelt_session **session) {
    for (int i = 0; i < entry->count; i++)
        if (strcmp(entry->sessions[i].device, device) == 0) {
            *session = entry->sessions[i].session;
            return SMELT_OK;
        }
    if (entry->count == MOST_DEVICES) return SMELT_ERROR_LIMIT;
    smelt_compiled *compiled;
    smelt_status status =
        smelt_graph_compile(entry->graph, &(smelt_compile_desc){.device = device}, &compiled);
    if (status != SMELT_OK) return status;
    /* XLA has its own recordings, and passes other memory each time. */
    status = smelt_session_create(compiled, &(smelt_session_desc){.no_recording = true}, session);
    smelt_compiled_release(compiled);
    if (status != SMELT_OK) return status;
    snprintf(entry->sessions[entry->count].device, sizeof entry->sessions[0].device, "%s", device);
    entry->sessions[entry->count++].session = *session;
    return SMELT_OK;
}

/* ---- Calls from XLA. */

static const struct {
    enum ffi_type theirs;
    smelt_dtype ours;
} types[] = {{FFI_BOOL, SMELT_BOOL},           {FFI_INT8, SMELT_INT8},        {FFI_INT16, SMELT_INT16},
             {FFI_INT32, SMELT_INT32},         {FFI_INT64, SMELT_INT64},      {FFI_UINT8, SMELT_UINT8},
             {FFI_UINT16, SMELT_UINT16},       {FFI_UINT32, SMELT_UINT32},    {FFI_UINT64, SMELT_UINT64},
             {FFI_FLOAT16, SMELT_FLOAT16},     {FFI_FLOAT32, SMELT_FLOAT32},  {FFI_FLOAT64, SMELT_FLOAT64},
             {FFI_COMPLEX64, SMELT_COMPLEX64}, {FFI_BFLOAT16, SMELT_BFLOAT16}};

static struct ffi_error *refuse(const struct ffi_call *call, int code, const char *message) {
    struct ffi_error_create create = {.size = sizeof create, .message = message, .code = code};
    /* XLA copies what it is given. */
    /* cppcheck-suppress returnDanglingLifetime */
    return call->api->error_create(&create);
}

/* An array over XLA's memory. */
static smelt_status wrap(const struct ffi_buffer *buffer, const char *device, smelt_array **array) {
    smelt_dtype dtype = SMELT_NO_DTYPE;
    smelt_shape shape = {.ndim = (int)buffer->rank};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((int)types[i].theirs == buffer->type) dtype = types[i].ours;
    if (buffer->rank > SMELT_MAX_DIMENSIONS) return SMELT_ERROR_LIMIT;
    for (int64_t d = 0; d < buffer->rank; d++) shape.size[d] = buffer->sizes[d];
    return strcmp(device, "cpu") == 0
               ? smelt_array_from_memory(dtype, shape, NULL, buffer->data, NULL, NULL, array)
               : smelt_array_from_device_memory(device, dtype, shape, NULL, buffer->data, NULL, NULL, array);
}

static smelt_status execute(struct entry *entry, const struct ffi_call *call, const char *device,
                            smelt_stream *stream) {
    smelt_array *inputs[SMELT_MAX_ARGUMENTS] = {0}, *into[SMELT_MAX_ARGUMENTS] = {0},
                *made[SMELT_MAX_ARGUMENTS];
    smelt_session *session;
    smelt_status status = SMELT_OK;
    for (int i = 0; i < entry->inputs && status == SMELT_OK; i++)
        status = wrap(call->arguments.items[i], device, &inputs[i]);
    for (int i = 0; i < entry->outputs && status == SMELT_OK; i++)
        status = wrap(call->results.items[i], device, &into[i]);
    pthread_mutex_lock(&entry->mutex);
    if (status == SMELT_OK) status = session_on(entry, device, &session);
    if (status == SMELT_OK)
        status = smelt_session_execute(
            session,
            &(smelt_execute_desc){
                .inputs = inputs, .input_count = entry->inputs, .into = into, .stream = stream},
            made);
    pthread_mutex_unlock(&entry->mutex);
    for (int i = 0; i < entry->outputs; i++) {
        if (status == SMELT_OK) smelt_array_release(made[i]);
        smelt_array_release(into[i]);
    }
    for (int i = 0; i < entry->inputs; i++) smelt_array_release(inputs[i]);
    return status;
}

/* The number that XLA passes; -1: there is none. */
static int64_t number_of(const struct ffi_attributes *attributes) {
    for (int64_t i = 0; i < attributes->count; i++) {
        const struct ffi_text *name = attributes->names[i];
        const struct ffi_scalar *scalar = attributes->items[i];
        if (attributes->kinds[i] == FFI_SCALAR && name->length == strlen(ATTRIBUTE) &&
            memcmp(name->data, ATTRIBUTE, name->length) == 0 && scalar->type == FFI_INT64)
            return *(const int64_t *)scalar->value;
    }
    return -1;
}

/* Answers the question for metadata, which registering a handler asks. True: that was the call. */
static bool tell_metadata(const struct ffi_call *call) {
    for (struct ffi_extension *e = call->extensions; e; e = e->next) {
        if (e->kind != FFI_EXTENSION_METADATA) continue;
        struct ffi_metadata *metadata = ((struct ffi_metadata_extension *)e)->metadata;
        metadata->version.size = sizeof metadata->version;
        metadata->version.extensions = NULL;
        /* The layouts above are those of every minor version: XLA refuses others by the major one. */
        metadata->version.major = FFI_MAJOR;
        metadata->version.minor =
            call->api && call->api->size >= offsetof(struct ffi_api, internal) ? call->api->version.minor : 0;
        metadata->traits = 0;
        return true;
    }
    return false;
}

static struct ffi_error *run(const struct ffi_call *call, bool gpu) {
    const struct ffi_api *api = call->api;
    char device[32] = "cpu", message[640];
    if (tell_metadata(call)) return NULL;
    if (call->stage != FFI_STAGE_EXECUTE) return NULL;
    if (call->size < sizeof *call || api->size < offsetof(struct ffi_api, unused) ||
        api->version.major != FFI_MAJOR)
        return refuse(call, FFI_INVALID_ARGUMENT,
                      "smelt: this version of jaxlib calls foreign functions in a way that is not supported");
    struct entry *entry = entry_of(number_of(&call->attributes));
    if (!entry || call->arguments.count != entry->inputs || call->results.count != entry->outputs)
        return refuse(call, FFI_INVALID_ARGUMENT,
                      "smelt: the program calls a graph of another process; compile it again in this one");
    for (int64_t i = 0; i < entry->inputs + entry->outputs; i++)
        if ((i < entry->inputs ? call->arguments.kinds[i] : call->results.kinds[i - entry->inputs]) !=
            FFI_BUFFER)
            return refuse(call, FFI_INVALID_ARGUMENT, "smelt: an argument or result is not a buffer");
    smelt_stream *stream = NULL;
    smelt_status status = SMELT_OK;
    if (gpu) {
        struct ffi_ordinal_get ordinal = {.size = sizeof ordinal, .context = call->context};
        struct ffi_stream_get get = {.size = sizeof get, .context = call->context};
        struct ffi_error *error = api->size >= sizeof *api ? api->ordinal_get(&ordinal) : NULL;
        if (!error) error = api->stream_get(&get);
        /* cppcheck-suppress returnDanglingLifetime */
        if (error) return error;
        snprintf(device, sizeof device, "cuda:%d", (int)ordinal.ordinal);
        status = smelt_stream_from_native(device, get.stream, &stream);
    }
    if (status == SMELT_OK) status = execute(entry, call, device, stream);
    smelt_stream_release(stream);
    if (status == SMELT_OK) return NULL;
    snprintf(message, sizeof message, "smelt: %s", smelt_error());
    return refuse(call, FFI_INTERNAL, message);
}

static struct ffi_error *run_on_cpu(struct ffi_call *call) {
    return run(call, false);
}

static struct ffi_error *run_on_gpu(struct ffi_call *call) {
    return run(call, true);
}

/* ---- For smelt.jax. */

static PyObject *handler(PyObject *self, PyObject *platform) {
    typedef struct ffi_error *function(struct ffi_call *);
    const char *name = PyUnicode_AsUTF8AndSize(platform, NULL);
    (void)self;
    if (!name) return NULL;
    function *address = strcmp(name, "cpu") == 0 ? run_on_cpu : run_on_gpu;
    void *pointer;
    memcpy(&pointer, &address, sizeof pointer); /* C has no cast between the two */
    return PyCapsule_New(pointer, "xla._CUSTOM_CALL_TARGET", NULL);
}

static PyObject *add(PyObject *self, PyObject *arguments) {
    PyObject *graph;
    const char *device;
    int inputs, outputs;
    smelt_session *session;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "Oiis:jax_graph", &graph, &inputs, &outputs, &device)) return NULL;
    smelt_graph *handle = graph_handle(graph);
    if (!handle) return NULL;
    if (inputs > SMELT_MAX_ARGUMENTS || outputs > SMELT_MAX_ARGUMENTS)
        return PyErr_Format(PyExc_ValueError,
                            "smelt.jax: %d inputs and %d outputs; at most %d of each are supported", inputs,
                            outputs, SMELT_MAX_ARGUMENTS);
    int number = add_entry(handle, inputs, outputs);
    if (number < 0) return PyErr_NoMemory();
    smelt_status status = SMELT_OK;
    if (*device) {
        struct entry *entry = entry_of(number);
        Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&entry->mutex);
        status = session_on(entry, device, &session);
        pthread_mutex_unlock(&entry->mutex);
        Py_END_ALLOW_THREADS
    }
    return status == SMELT_OK ? PyLong_FromLong(number) : raise_status(status);
}

static PyMethodDef functions[] = {
    {"jax_handler", handler, METH_O,
     "jax_handler(platform, /)\n--\n\nThe function that XLA calls on 'cpu' or 'CUDA', as a capsule."},
    {"jax_graph", add, METH_VARARGS,
     "jax_graph(graph, inputs, outputs, device, /)\n--\n\nThe number of a graph for the attribute 'graph'. "
     "It "
     "is compiled for the device now ('': when it first runs)."},
    {0}};

int jax_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
