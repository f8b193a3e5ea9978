/* Graphs, compiled graphs and sessions: the classes behind smelt.graph. */
#include "operations.h"

#include <stddef.h>

/* One struct for the three types: a handle. */
struct holder {
    PyObject_HEAD void *handle;
};

static void *held(PyObject *self) {
    return ((struct holder *)self)->handle;
}

static PyTypeObject *graph_type, *compiled_type, *session_type;

/* Takes the handle, also when it fails. */
static PyObject *hold(PyTypeObject *type, void *handle, void (*release)(void *handle)) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct holder *o = (struct holder *)allocate(type, 0);
    if (o)
        o->handle = handle;
    else
        release(handle);
    return (PyObject *)o;
}

smelt_graph *graph_handle(PyObject *o) {
    if (PyObject_TypeCheck(o, graph_type)) return held(o);
    PyErr_Format(PyExc_TypeError, "%R is not a graph", o);
    return NULL;
}

static void release_graph(void *handle) {
    smelt_graph_release(handle);
}

static void release_compiled(void *handle) {
    smelt_compiled_release(handle);
}

static void release_session(void *handle) {
    smelt_session_release(handle);
}

static void deallocate(PyObject *self, void (*release)(void *handle)) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(held(self));
    free_object(self);
    Py_DECREF(type);
}

static PyObject *text_taking(smelt_status status, char *text) {
    if (status != SMELT_OK) return raise_status(status);
    PyObject *string = PyUnicode_FromString(text);
    smelt_free(text);
    return string;
}

/* ---- Types. */

static bool shape_take(PyObject *sizes, smelt_shape *shape) {
    PyObject *items = PySequence_Tuple(sizes);
    if (!items) return false;
    Py_ssize_t count = PyTuple_Size(items);
    bool good = count <= SMELT_MAX_DIMENSIONS;
    if (!good)
        PyErr_Format(PyExc_ValueError, "shape: %zd dimensions; at most %d are allowed", count,
                     SMELT_MAX_DIMENSIONS);
    *shape = (smelt_shape){.ndim = (int)count};
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *number = PyNumber_Index(PyTuple_GetItem(items, i));
        shape->size[i] = number ? PyLong_AsLongLong(number) : -1;
        good = number && !(shape->size[i] == -1 && PyErr_Occurred());
        Py_XDECREF(number);
    }
    Py_DECREF(items);
    return good;
}

bool types_take(PyObject *sequence, const char *what, smelt_type *types, int *count) {
    PyObject *items = PySequence_Tuple(sequence);
    if (!items) return false;
    Py_ssize_t size = PyTuple_Size(items);
    bool good = size <= SMELT_MAX_ARGUMENTS;
    if (!good)
        PyErr_Format(PyExc_ValueError, "%s: %zd types; at most %d are allowed", what, size,
                     SMELT_MAX_ARGUMENTS);
    for (Py_ssize_t i = 0; i < size && good; i++) {
        PyObject *dtype, *shape, *pair = PySequence_Tuple(PyTuple_GetItem(items, i));
        types[i] = (smelt_type){0};
        good = pair && PyArg_ParseTuple(pair, "OO", &dtype, &shape) &&
               dtype_of_object(dtype, what, &types[i].dtype) && shape_take(shape, &types[i].shape);
        Py_XDECREF(pair);
    }
    *count = (int)size;
    Py_DECREF(items);
    return good;
}

static PyObject *shape_tuple(const smelt_shape *shape) {
    PyObject *tuple = PyTuple_New(shape->ndim);
    for (int d = 0; d < shape->ndim && tuple; d++) {
        PyObject *size = PyLong_FromLongLong(shape->size[d]);
        if (!size || PyTuple_SetItem(tuple, d, size) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *types_list(const smelt_type *types, int count) {
    PyObject *list = PyList_New(count);
    for (int i = 0; i < count && list; i++) {
        PyObject *shape = shape_tuple(&types[i].shape);
        PyObject *pair = shape ? PyTuple_Pack(2, dtype_object(types[i].dtype), shape) : NULL;
        Py_XDECREF(shape);
        if (!pair || PyList_SetItem(list, i, pair) < 0) Py_CLEAR(list);
    }
    return list;
}

/* ---- smelt._smelt.Graph */

static PyObject *graph_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    const char *name;
    smelt_graph *graph;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "s:Graph", &name)) return NULL;
    smelt_status status = smelt_graph_create(name, &graph);
    return status == SMELT_OK ? hold(type, graph, release_graph) : raise_status(status);
}

static void graph_deallocate(PyObject *self) {
    deallocate(self, release_graph);
}

static PyObject *graph_input(PyObject *self, PyObject *arguments) {
    const char *name;
    PyObject *dtype_name, *sizes;
    smelt_dtype dtype;
    smelt_shape shape;
    smelt_array *value;
    if (!PyArg_ParseTuple(arguments, "zOO:input", &name, &dtype_name, &sizes)) return NULL;
    if (!dtype_of_object(dtype_name, "dtype", &dtype) || !shape_take(sizes, &shape)) return NULL;
    smelt_status status = smelt_graph_input(held(self), name, dtype, shape, &value);
    return status == SMELT_OK ? array_wrap(value) : raise_status(status);
}

static PyObject *graph_output(PyObject *self, PyObject *arguments) {
    const char *name;
    PyObject *object;
    smelt_array *array;
    bool weak;
    if (!PyArg_ParseTuple(arguments, "zO:output", &name, &object)) return NULL;
    if (!operation_input(object, "output", &array, &weak)) return NULL;
    smelt_status status = smelt_graph_output(held(self), name, array);
    smelt_array_release(array);
    return status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *graph_show(PyObject *self, PyObject *unused) {
    char *text = NULL;
    (void)unused;
    smelt_status status = smelt_graph_show(held(self), &text);
    return text_taking(status, text);
}

static PyObject *graph_gradient(PyObject *self, PyObject *arguments) {
    int output, inputs[1024], count;
    PyObject *numbers;
    smelt_graph *gradient;
    if (!PyArg_ParseTuple(arguments, "iO!:gradient", &output, &PyList_Type, &numbers)) return NULL;
    count = (int)PyList_Size(numbers);
    if (count > 1024) return PyErr_Format(PyExc_ValueError, "gradient: more than 1024 inputs");
    for (int i = 0; i < count; i++) {
        inputs[i] = (int)PyLong_AsLong(PyList_GetItem(numbers, i));
        if (inputs[i] == -1 && PyErr_Occurred()) return NULL;
    }
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_graph_gradient(held(self), output, inputs, count, &gradient);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? hold(graph_type, gradient, release_graph)
                                                   : exception_raise_kept(status);
}

static PyObject *graph_compile(PyObject *self, PyObject *arguments) {
    const char *device;
    int unfused, unplanned;
    long long streams;
    smelt_compiled *compiled;
    smelt_status status;
    if (!PyArg_ParseTuple(arguments, "sppL:compile", &device, &unfused, &unplanned, &streams)) return NULL;
    smelt_compile_desc desc = {
        .device = device, .unfused = unfused, .unplanned = unplanned, .streams = streams};
    Py_BEGIN_ALLOW_THREADS status = smelt_graph_compile(held(self), &desc, &compiled);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? hold(compiled_type, compiled, release_compiled)
                                                   : exception_raise_kept(status);
}

static PyObject *numbers_list(const int64_t *numbers, int count) {
    PyObject *list = PyList_New(count);
    for (int i = 0; i < count && list; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyList_SetItem(list, i, number) < 0) Py_CLEAR(list);
    }
    return list;
}

/* The attributes of an operation whose first input has `ndim` dimensions. */
static PyObject *attributes_of(const smelt_apply_desc *desc, int ndim) {
    int64_t axes[2 * SMELT_MAX_DIMENSIONS];
    for (int i = 0; i < desc->axis_count; i++) axes[i] = desc->axes[i];
    PyObject *lists[] = {numbers_list(axes, desc->axis_count), numbers_list(desc->starts, ndim),
                         numbers_list(desc->stops, ndim), numbers_list(desc->steps, ndim)};
    PyObject *made = NULL;
    if (lists[0] && lists[1] && lists[2] && lists[3])
        made = Py_BuildValue("{s:O,s:O,s:O,s:O,s:N,s:N,s:K,s:L,s:(ddd)}", "axes", lists[0], "starts",
                             lists[1], "stops", lists[2], "steps", lists[3], "no_axes",
                             PyBool_FromLong(desc->no_axes), "keepdims", PyBool_FromLong(desc->keepdims),
                             "weak", (unsigned long long)desc->weak, "offset", (long long)desc->offset,
                             "numbers", desc->numbers[0], desc->numbers[1], desc->numbers[2]);
    for (int i = 0; i < 4; i++) Py_XDECREF(lists[i]);
    return made;
}

/* A list of (value, dtype, shape). */
static PyObject *outputs_of(const smelt_graph *graph, const smelt_node *node) {
    PyObject *list = PyList_New(node->output_count);
    for (int i = 0; i < node->output_count && list; i++) {
        smelt_type type;
        int value = node->first_output + i;
        PyObject *entry = NULL, *shape = NULL;
        if (smelt_graph_value_type(graph, value, &type) == SMELT_OK) shape = shape_tuple(&type.shape);
        if (shape) entry = Py_BuildValue("(iOO)", value, dtype_object(type.dtype), shape);
        Py_XDECREF(shape);
        if (!entry || PyList_SetItem(list, i, entry) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *describe_node(const smelt_graph *graph, const smelt_node *node) {
    static const char *const kinds[] = {"removed", "input", "constant", "operation", "custom", "kernel"};
    int64_t inputs[SMELT_MAX_ARGUMENTS];
    smelt_type first = {0};
    for (int i = 0; i < node->input_count; i++) inputs[i] = node->inputs[i];
    if (node->input_count) (void)smelt_graph_value_type(graph, node->inputs[0], &first);
    PyObject *values = numbers_list(inputs, node->input_count), *outputs = outputs_of(graph, node);
    PyObject *attributes = node->desc ? attributes_of(node->desc, first.shape.ndim) : PyDict_New();
    PyObject *constant = node->constant ? array_wrap(smelt_array_retain(node->constant)) : Py_NewRef(Py_None);
    PyObject *made = NULL;
    if (values && outputs && attributes && constant)
        made = Py_BuildValue("{s:s,s:s,s:O,s:O,s:O,s:O}", "kind", kinds[node->kind], "name", node->name,
                             "inputs", values, "outputs", outputs, "attributes", attributes, "constant",
                             constant);
    Py_XDECREF(values);
    Py_XDECREF(outputs);
    Py_XDECREF(attributes);
    Py_XDECREF(constant);
    return made;
}

static PyObject *graph_nodes(PyObject *self, PyObject *unused) {
    const smelt_graph *graph = held(self);
    PyObject *list = PyList_New(0);
    (void)unused;
    for (int i = 0; i < smelt_graph_node_count(graph) && list; i++) {
        smelt_node node;
        PyObject *entry = NULL;
        if (smelt_graph_node(graph, i, &node) == SMELT_OK) entry = describe_node(graph, &node);
        if (!entry || PyList_Append(list, entry) < 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

/* A list of (name, value). */
static PyObject *graph_outputs(PyObject *self, PyObject *unused) {
    const smelt_graph *graph = held(self);
    PyObject *list = PyList_New(0);
    const char *name;
    int value;
    (void)unused;
    for (int i = 0; list && (name = smelt_graph_output_name(graph, i, &value)); i++) {
        PyObject *entry = Py_BuildValue("(si)", name, value);
        if (!entry || PyList_Append(list, entry) < 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyMethodDef graph_methods[] = {
    {"nodes", graph_nodes, METH_NOARGS, "nodes($self, /)\n--\n\nA dict for each node."},
    {"outputs", graph_outputs, METH_NOARGS, "outputs($self, /)\n--\n\nA list of (name, value)."},
    {"input", graph_input, METH_VARARGS, "input($self, name, dtype, shape, /)\n--\n\nA new input's value."},
    {"output", graph_output, METH_VARARGS,
     "output($self, name, value, /)\n--\n\nThe value becomes the next output."},
    {"show", graph_show, METH_NOARGS, "show($self, /)\n--\n\nThe nodes, one per line."},
    {"gradient", graph_gradient, METH_VARARGS,
     "gradient($self, output, inputs, /)\n--\n\nA new graph with gradients by inputs (numbers) as outputs."},
    {"compile", graph_compile, METH_VARARGS,
     "compile($self, device, unfused, unplanned, streams, /)\n--\n\nA compiled graph."},
    {0}};

static PyType_Slot graph_slots[] = {{Py_tp_doc, "Graph(name, /)\n--\n\nsmelt_graph."},
                                    {Py_tp_new, graph_new},
                                    {Py_tp_dealloc, graph_deallocate},
                                    {Py_tp_methods, graph_methods},
                                    {0}};
static PyType_Spec graph_spec = {.name = "smelt._smelt.Graph",
                                 .basicsize = sizeof(struct holder),
                                 .flags = Py_TPFLAGS_DEFAULT,
                                 .slots = graph_slots};

/* ---- smelt._smelt.CompiledGraph */

static void compiled_deallocate(PyObject *self) {
    deallocate(self, release_compiled);
}

static PyObject *compiled_describe(PyObject *self, PyObject *unused) {
    smelt_compiled_info info;
    (void)unused;
    smelt_status status = smelt_compiled_describe(held(self), &info);
    if (status != SMELT_OK) return raise_status(status);
    return Py_BuildValue("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:K,s:K}", "nodes", info.nodes, "folded", info.folded,
                         "shared", info.shared, "dead", info.dead, "steps", info.steps, "fused_kernels",
                         info.fused_kernels, "fused_nodes", info.fused_nodes, "peak_bytes",
                         (unsigned long long)info.peak_bytes, "total_bytes",
                         (unsigned long long)info.total_bytes);
}

static PyObject *compiled_show(PyObject *self, PyObject *arguments) {
    int step;
    char *text = NULL;
    if (!PyArg_ParseTuple(arguments, "i:show", &step)) return NULL;
    smelt_status status = smelt_compiled_show(held(self), step, &text);
    return text_taking(status, text);
}

/* A list of (name, dtype, shape). */
static PyObject *ports(PyObject *self, bool inputs) {
    smelt_compiled *compiled = held(self);
    PyObject *list = PyList_New(0);
    const char *name;
    smelt_type type;
    for (int i = 0; list && (name = inputs ? smelt_compiled_input(compiled, i, &type)
                                           : smelt_compiled_output(compiled, i, &type));
         i++) {
        PyObject *shape = shape_tuple(&type.shape);
        PyObject *entry = shape ? Py_BuildValue("(sOO)", name, dtype_object(type.dtype), shape) : NULL;
        Py_XDECREF(shape);
        if (!entry || PyList_Append(list, entry) < 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyObject *compiled_inputs(PyObject *self, PyObject *unused) {
    (void)unused;
    return ports(self, true);
}

static PyObject *compiled_outputs(PyObject *self, PyObject *unused) {
    (void)unused;
    return ports(self, false);
}

static PyObject *compiled_session(PyObject *self, PyObject *arguments) {
    int no_recording;
    smelt_session *session;
    smelt_status status;
    if (!PyArg_ParseTuple(arguments, "p:session", &no_recording)) return NULL;
    smelt_session_desc desc = {.no_recording = no_recording};
    Py_BEGIN_ALLOW_THREADS status = smelt_session_create(held(self), &desc, &session);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? hold(session_type, session, release_session)
                                                   : raise_status(status);
}

static PyObject *compiled_store(PyObject *self, PyObject *arguments) {
    const char *path;
    int without_code;
    smelt_status status;
    if (!PyArg_ParseTuple(arguments, "sp:store", &path, &without_code)) return NULL;
    smelt_store_desc desc = {.path = path, .without_code = without_code};
    Py_BEGIN_ALLOW_THREADS status = smelt_compiled_store(held(self), &desc);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *load_compiled(PyObject *self, PyObject *path) {
    const char *name = PyUnicode_AsUTF8AndSize(path, NULL);
    smelt_compiled *compiled;
    smelt_status status;
    (void)self;
    if (!name) return NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_compiled_load(name, &compiled);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? hold(compiled_type, compiled, release_compiled)
                                                   : raise_status(status);
}

static PyMethodDef module_functions[] = {
    {"load_compiled", load_compiled, METH_O, "load_compiled(path, /)\n--\n\nsmelt_compiled_load."}, {0}};

static PyMethodDef compiled_methods[] = {
    {"store", compiled_store, METH_VARARGS,
     "store($self, path, without_code, /)\n--\n\nsmelt_compiled_store."},
    {"describe", compiled_describe, METH_NOARGS, "describe($self, /)\n--\n\nsmelt_compiled_info as a dict."},
    {"show", compiled_show, METH_VARARGS, "show($self, step, /)\n--\n\nsmelt_compiled_show."},
    {"inputs", compiled_inputs, METH_NOARGS, "inputs($self, /)\n--\n\nA list of (name, dtype, shape)."},
    {"outputs", compiled_outputs, METH_NOARGS, "outputs($self, /)\n--\n\nA list of (name, dtype, shape)."},
    {"session", compiled_session, METH_VARARGS, "session($self, no_recording, /)\n--\n\nA session."},
    {0}};

static PyType_Slot compiled_slots[] = {{Py_tp_doc, "smelt_compiled."},
                                       {Py_tp_dealloc, compiled_deallocate},
                                       {Py_tp_methods, compiled_methods},
                                       {0}};
static PyType_Spec compiled_spec = {.name = "smelt._smelt.CompiledGraph",
                                    .basicsize = sizeof(struct holder),
                                    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                    .slots = compiled_slots};

/* ---- smelt._smelt.Session */

static void session_deallocate(PyObject *self) {
    deallocate(self, release_session);
}

/* execute(inputs, into, output_count): into a list of arrays or None, or None. */
static PyObject *session_execute(PyObject *self, PyObject *arguments) {
    PyObject *input_list, *into_list;
    int output_count;
    struct arrays inputs = {0}, into = {0};
    if (!PyArg_ParseTuple(arguments, "OOi:execute", &input_list, &into_list, &output_count)) return NULL;
    bool good = arrays_take(input_list, "inputs", false, &inputs) &&
                (into_list == Py_None || arrays_take(into_list, "into", true, &into));
    if (good && into_list != Py_None && into.count != output_count) {
        PyErr_Format(PyExc_ValueError, "into: %d arrays are given for %d outputs", into.count, output_count);
        good = false;
    }
    smelt_array **made = good ? calloc((size_t)output_count + 1, sizeof *made) : NULL;
    PyObject *result = NULL;
    if (made) {
        smelt_execute_desc desc = {.inputs = inputs.items, .input_count = inputs.count, .into = into.items};
        smelt_status status;
        Py_BEGIN_ALLOW_THREADS status = smelt_session_execute(held(self), &desc, made);
        Py_END_ALLOW_THREADS result =
            status == SMELT_OK ? arrays_list_taking(made, output_count) : raise_status(status);
    } else if (good) {
        PyErr_NoMemory();
    }
    free(made);
    free(inputs.items);
    free(into.items);
    return result;
}

static PyMethodDef session_methods[] = {
    {"execute", session_execute, METH_VARARGS,
     "execute($self, inputs, into, output_count, /)\n--\n\nsmelt_session_execute: a list of arrays."},
    {0}};

static PyType_Slot session_slots[] = {{Py_tp_doc, "smelt_session."},
                                      {Py_tp_dealloc, session_deallocate},
                                      {Py_tp_methods, session_methods},
                                      {0}};
static PyType_Spec session_spec = {.name = "smelt._smelt.GraphSession",
                                   .basicsize = sizeof(struct holder),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = session_slots};

int graph_init(PyObject *module) {
    graph_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &graph_spec, NULL);
    compiled_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &compiled_spec, NULL);
    session_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &session_spec, NULL);
    if (!graph_type || !compiled_type || !session_type) return -1;
    if (PyModule_AddFunctions(module, module_functions) < 0) return -1;
    return PyModule_AddObjectRef(module, "Graph", (PyObject *)graph_type) < 0 ||
                   PyModule_AddObjectRef(module, "CompiledGraph", (PyObject *)compiled_type) < 0 ||
                   PyModule_AddObjectRef(module, "GraphSession", (PyObject *)session_type) < 0
               ? -1
               : 0;
}
