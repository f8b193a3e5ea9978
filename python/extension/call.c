/* A call of a kernel from a body: its keyword arguments as a descriptor. */
#include "call.h"

#include <stddef.h>

static const char *const keyword_names[KEYWORD_COUNT] = {
    [KEYWORD_INPUTS] = "inputs",
    [KEYWORD_OUTPUT_SHAPES] = "output_shapes",
    [KEYWORD_OUTPUT_DTYPES] = "output_dtypes",
    [KEYWORD_GRID] = "grid",
    [KEYWORD_THREADGROUP] = "threadgroup",
    [KEYWORD_TEMPLATE] = "template",
    [KEYWORD_INIT_VALUE] = "init_value",
    [KEYWORD_VERBOSE] = "verbose",
    [KEYWORD_STREAM] = "stream",
    [KEYWORD_DEVICE] = "device",
    [KEYWORD_TIMEOUT] = "timeout",
    [KEYWORD_PROFILE] = "profile",
    [KEYWORD_CHECK] = "check",
    [KEYWORD_ROW_CONTIGUOUS] = "ensure_row_contiguous",
    [KEYWORD_OUT] = "out",
    [KEYWORD_OUTPUT_KIND] = "output_kind",
};
static PyObject *keywords_interned[KEYWORD_COUNT];

/* "kernel 'k': grid" */
struct what {
    char text[320];
};

static struct what what_of(const struct kernel *kernel, const char *name) {
    struct what what;
    PyOS_snprintf(what.text, sizeof what.text, "kernel '%.200s': %.100s", kernel->text, name);
    return what;
}

static struct what what_at(const struct kernel *kernel, const char *name, int i) {
    struct what what;
    PyOS_snprintf(what.text, sizeof what.text, "kernel '%.200s': %.90s[%d]", kernel->text, name, i);
    return what;
}

static bool fail_type(PyObject *o, struct what what, const char *expected) {
    PyObject *name = type_name(o);
    if (name) PyErr_Format(PyExc_TypeError, "%s is %R (%U); expected %s", what.text, o, name, expected);
    Py_XDECREF(name);
    return false;
}

bool labels_make(struct kernel *kernel) {
    int count = kernel->input_count + 3 * kernel->output_count;
    kernel->labels = calloc((size_t)count + 1, sizeof *kernel->labels);
    for (int l = 0, n = 0; l < LABEL_KINDS && kernel->labels; l++)
        for (int i = 0; i < (l == LABEL_INPUT ? kernel->input_count : kernel->output_count); i++) {
            static const char *const forms[] = {"input '%.80s'", "out '%.80s'", "output_shapes[%d]",
                                                "output_dtypes[%d]"};
            char name[120], text[400];
            if (l == LABEL_INPUT || l == LABEL_OUT)
                PyOS_snprintf(name, sizeof name, forms[l],
                              l == LABEL_INPUT ? kernel->desc.inputs[i] : kernel->desc.outputs[i]);
            else
                PyOS_snprintf(name, sizeof name, forms[l], i);
            PyOS_snprintf(text, sizeof text, "kernel '%.200s': %s", kernel->text, name);
            kernel->labels[n] = strdup(text);
            if (!kernel->labels[n++]) return false;
        }
    return kernel->labels != NULL;
}

void labels_free(struct kernel *kernel) {
    for (char **label = kernel->labels; label && *label; label++) free(*label);
    free(kernel->labels);
}

const char *label_of(const struct kernel *kernel, enum label label, int i) {
    int before = label == LABEL_INPUT ? 0 : kernel->input_count + ((int)label - 1) * kernel->output_count;
    return kernel->labels[before + i];
}

/* ---- Keywords. */

static bool fail_keyword(const struct kernel *kernel, PyObject *key) {
    char names[400];
    size_t length = 0;
    for (int i = 0; i < KEYWORD_COUNT; i++)
        length += (size_t)PyOS_snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                        keyword_names[i]);
    PyErr_Format(PyExc_TypeError, "kernel '%s' has no argument %R; expected one of: %s", kernel->text, key,
                 names);
    return false;
}

static int keyword_of(PyObject *key) {
    for (int i = 0; i < KEYWORD_COUNT; i++)
        if (key == keywords_interned[i]) return i;
    for (int i = 0; i < KEYWORD_COUNT; i++)
        if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, keyword_names[i]) == 0) return i;
    return -1;
}

bool call_keywords(const struct kernel *kernel, PyObject *arguments, PyObject *keywords,
                   PyObject *values[KEYWORD_COUNT]) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    memset(values, 0, KEYWORD_COUNT * sizeof *values);
    if (PyTuple_Size(arguments) > 0) {
        PyErr_Format(
            PyExc_TypeError,
            "kernel '%s' takes its arguments by keyword (inputs=[...], grid=...); %zd were given without one",
            kernel->text, PyTuple_Size(arguments));
        return false;
    }
    while (keywords && PyDict_Next(keywords, &position, &key, &value)) {
        int keyword = keyword_of(key);
        if (keyword < 0) return fail_keyword(kernel, key);
        values[keyword] = value == Py_None ? NULL : value;
    }
    return true;
}

/* ---- Inputs. */

/* "a, b" of a tuple of names; a new reference. */
static PyObject *joined(PyObject *names) {
    PyObject *comma = PyUnicode_FromString(", ");
    PyObject *text = comma ? PyUnicode_Join(comma, names) : NULL;
    Py_XDECREF(comma);
    return text;
}

/* A list or tuple with one item for each of the names. */
static bool check_list(const struct kernel *kernel, PyObject *o, const char *name, PyObject *names,
                       const char *expected) {
    if (!o && PyTuple_Size(names) == 0) return true;
    if (!o) {
        PyErr_Format(PyExc_TypeError, "kernel '%s': the argument %s is missing", kernel->text, name);
        return false;
    }
    if (!is_list(o)) return fail_type(o, what_of(kernel, name), expected);
    Py_ssize_t given = length_of(o), wanted = PyTuple_Size(names);
    if (given == wanted) return true;
    PyObject *all = joined(names);
    if (all)
        PyErr_Format(PyExc_ValueError, "kernel '%s': %s has length %zd, expected %zd, one for each of: %U",
                     kernel->text, name, given, wanted, all);
    Py_XDECREF(all);
    return false;
}

/* The argument that determines the kind of the results: the first that is neither a number nor NumPy's. */
static void note_kind(struct call *call, enum array_kind kind) {
    if (kind == KIND_SCALAR) return;
    if (call->kind == KIND_SCALAR || (call->kind == KIND_NUMPY && kind != KIND_NUMPY)) call->kind = kind;
}

static bool import_inputs(struct call *call, PyObject *list) {
    const struct kernel *kernel = call->kernel;
    if (!check_list(kernel, list, "inputs", kernel->input_names,
                    "a list of arrays and numbers, such as [a, b]"))
        return false;
    for (int i = 0; i < kernel->input_count; i++) {
        enum array_kind kind;
        if (!array_import(item_of(list, i), label_of(kernel, LABEL_INPUT, i), &call->desc.inputs[i], &kind))
            return false;
        call->input_count = i + 1;
        note_kind(call, kind);
    }
    return true;
}

/* ---- Outputs. */

static bool import_out(struct call *call, PyObject *list) {
    const struct kernel *kernel = call->kernel;
    if (!list) return true;
    if (!check_list(kernel, list, "out", kernel->output_names, "a list of arrays, one per output"))
        return false;
    for (int i = 0; i < kernel->output_count; i++) {
        enum array_kind kind;
        const char *what = label_of(kernel, LABEL_OUT, i);
        if (!array_import_for_writing(item_of(list, i), what, &call->desc.into[i], &kind)) return false;
        call->into_count = i + 1;
        if (!smelt_array_is_contiguous(call->desc.into[i])) {
            PyErr_Format(PyExc_ValueError, "%s: it is not row-contiguous; outputs always are", what);
            return false;
        }
        call->desc.output_shapes[i] = smelt_array_shape(call->desc.into[i]);
        call->desc.output_dtypes[i] = smelt_array_dtype(call->desc.into[i]);
    }
    call->out = list;
    return true;
}

/* Adds to the exception for a list of the wrong length that the two lists differ. */
static bool fail_lengths(PyObject *shapes, PyObject *dtypes) {
    if (!shapes || !dtypes || !is_list(shapes) || !is_list(dtypes)) return false;
    Py_ssize_t shape_count = length_of(shapes), dtype_count = length_of(dtypes);
    if (shape_count == dtype_count || !PyErr_ExceptionMatches(PyExc_ValueError)) return false;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_Format(PyExc_ValueError, "%S; output_shapes and output_dtypes differ in length: %zd and %zd", value,
                 shape_count, dtype_count);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return false;
}

static bool read_outputs(struct call *call, PyObject *shapes, PyObject *dtypes) {
    const struct kernel *kernel = call->kernel;
    if ((shapes || !call->out) && !check_list(kernel, shapes, "output_shapes", kernel->output_names,
                                              "a list of shapes, such as [(4, 16)]"))
        return fail_lengths(shapes, dtypes);
    if ((dtypes || !call->out) && !check_list(kernel, dtypes, "output_dtypes", kernel->output_names,
                                              "a list of dtypes, such as [smelt.float32]"))
        return fail_lengths(shapes, dtypes);
    for (int i = 0; i < kernel->output_count; i++) {
        if (shapes &&
            !shape_of(item_of(shapes, i), label_of(kernel, LABEL_SHAPE, i), &call->desc.output_shapes[i]))
            return false;
        if (dtypes && !dtype_of_object(item_of(dtypes, i), label_of(kernel, LABEL_DTYPE, i),
                                       &call->desc.output_dtypes[i]))
            return false;
    }
    call->desc.output_count = kernel->output_count;
    return true;
}

static bool real_of(PyObject *o, struct what what, const char *expected, double *value) {
    *value = PyFloat_Check(o) || PyLong_Check(o) || PyIndex_Check(o) || !PyUnicode_Check(o)
                 ? PyFloat_AsDouble(o)
                 : -1;
    if (!PyErr_Occurred() && !PyUnicode_Check(o)) return true;
    PyErr_Clear();
    return fail_type(o, what, expected);
}

static bool read_init(struct call *call, PyObject *o) {
    static const char one_or_each[] = "a number, or a list of one number per output";
    const struct kernel *kernel = call->kernel;
    if (!o) return true;
    if (!is_list(o)) {
        call->desc.initialise = true;
        return real_of(o, what_of(kernel, "init_value"), one_or_each, &call->desc.init_value);
    }
    if (!check_list(kernel, o, "init_value", kernel->output_names, "a number")) return false;
    for (int i = 0; i < kernel->output_count; i++)
        if (!real_of(item_of(o, i), what_at(kernel, "init_value", i), "a number", &call->init_values[i]))
            return false;
    call->desc.init_values = call->init_values;
    return true;
}

/* ---- Templates. */

/* NumPy's bool has no __index__. */
static bool is_numpy_bool(PyObject *o) {
    PyObject *name = type_name(o);
    bool is = name && (PyUnicode_CompareWithASCIIString(name, "bool_") == 0 ||
                       PyUnicode_CompareWithASCIIString(name, "bool") == 0);
    Py_XDECREF(name);
    PyErr_Clear();
    return is;
}

static bool fail_value(const struct kernel *kernel, const char *name, PyObject *value) {
    struct what what;
    PyErr_Clear();
    PyOS_snprintf(what.text, sizeof what.text, "kernel '%.200s': template '%.80s'", kernel->text, name);
    return fail_type(value, what, "a dtype, an int or a bool");
}

static bool read_value(const struct kernel *kernel, PyObject *value, smelt_template *out) {
    bool type = PyType_Check(value), integral = !type && (PyLong_Check(value) || PyIndex_Check(value));
    if (PyBool_Check(value) || (!type && !integral && is_numpy_bool(value))) {
        out->kind = SMELT_TEMPLATE_BOOL;
        out->boolean = PyObject_IsTrue(value) == 1;
        return !PyErr_Occurred();
    }
    if (integral) {
        out->kind = SMELT_TEMPLATE_INT;
        if (!integer_of(value, &out->integer)) return fail_value(kernel, out->name, value);
        if (out->integer != INT64_MAX && out->integer != INT64_MIN) return true;
        PyErr_Format(PyExc_ValueError, "kernel '%s': template '%s' is %R, which does not fit in an int",
                     kernel->text, out->name, value);
        return false;
    }
    out->kind = SMELT_TEMPLATE_DTYPE;
    bool number = PyFloat_Check(value) || PyComplex_Check(value);
    return (!number && dtype_of_object(value, "template", &out->dtype)) ||
           fail_value(kernel, out->name, value);
}

static bool read_templates(struct call *call, PyObject *list) {
    const struct kernel *kernel = call->kernel;
    static const char expected[] =
        "a list of pairs of a name and a dtype, int or bool, such as [(\"T\", smelt.float32)]";
    if (!list) return true;
    if (PyDict_Check(list)) {
        list = call->kept[0] = PyDict_Items(list);
        if (!list) return false;
    }
    if (!is_list(list)) return fail_type(list, what_of(kernel, "template"), expected);
    Py_ssize_t count = length_of(list);
    if (count > SMELT_MAX_TEMPLATES) {
        PyErr_Format(PyExc_ValueError, "kernel '%s': template has %zd arguments; at most %d are allowed",
                     kernel->text, count, SMELT_MAX_TEMPLATES);
        return false;
    }
    for (int i = 0; i < count; i++) {
        PyObject *pair = item_of(list, i);
        smelt_template *out = &call->desc.templates[i];
        bool good = is_list(pair) && length_of(pair) == 2 && PyUnicode_Check(item_of(pair, 0));
        if (!good)
            return fail_type(pair, what_at(kernel, "template", i),
                             "a pair of a name and a dtype, int or bool");
        out->name = PyUnicode_AsUTF8AndSize(item_of(pair, 0), NULL);
        if (!out->name || !read_value(kernel, item_of(pair, 1), out)) return false;
    }
    return true;
}

/* ---- Where and how. */

static bool text_of(struct call *call, PyObject *o, int slot, const char **text) {
    PyObject *string = PyObject_Str(o);
    *text = string ? PyUnicode_AsUTF8AndSize(string, NULL) : NULL;
    call->kept[slot] = string;
    return *text != NULL;
}

/* The requested device, else that of an array, else the CPU. */
static bool read_device(struct call *call, PyObject *device, PyObject *stream) {
    smelt_run_desc *desc = &call->desc;
    const char *name = "cpu";
    for (int i = call->input_count - 1; i >= 0; i--) {
        const char *at = smelt_array_device(desc->inputs[i]);
        if (strcmp(at, "cpu") != 0) name = at;
    }
    for (int i = call->into_count - 1; i >= 0; i--) {
        const char *at = smelt_array_device(desc->into[i]);
        if (strcmp(at, "cpu") != 0) name = at;
    }
    /* MLX names a device where others name a stream. */
    if (!device && stream && PyUnicode_Check(stream)) device = stream;
    if (device && !text_of(call, device, 1, &name)) return false;
    if (strcmp(name, "gpu") == 0) name = "cuda";
    size_t length = strnlen(name, sizeof call->device - 1);
    memcpy(call->device, name, length);
    call->device[length] = 0;
    if (device && stream && !PyUnicode_Check(stream) && strncmp(call->device, "cuda", 4) != 0) {
        PyErr_Format(PyExc_ValueError,
                     "kernel '%s': a stream is given for device '%s'; only GPUs have streams",
                     call->kernel->text, call->device);
        return false;
    }
    if (!device && stream && !PyUnicode_Check(stream) && strncmp(call->device, "cuda", 4) != 0)
        PyOS_snprintf(call->device, sizeof call->device, "cuda");
    if (strcmp(call->device, "cuda") == 0) PyOS_snprintf(call->device, sizeof call->device, "cuda:0");
    desc->device = call->device;
    if (!stream || PyUnicode_Check(stream)) return stream_of_kind(call->kind, call->device, &desc->stream);
    struct what what;
    PyOS_snprintf(what.text, sizeof what.text, "kernel '%.200s'", call->kernel->text);
    return stream_of(stream, what.text, call->device, &desc->stream);
}

bool kind_of_name(const struct kernel *kernel, PyObject *name, enum array_kind *kind) {
    static const struct {
        const char *name;
        enum array_kind kind;
    } kinds[] = {{"smelt", KIND_SMELT}, {"numpy", KIND_NUMPY}, {"torch", KIND_TORCH},
                 {"jax", KIND_JAX},     {"cupy", KIND_CUPY},   {"mlx", KIND_MLX}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, kinds[i].name) == 0) {
            *kind = kinds[i].kind;
            return true;
        }
    PyErr_Format(PyExc_ValueError,
                 "kernel '%s': output_kind is %R; expected \"smelt\", \"numpy\", \"torch\", \"jax\", "
                 "\"cupy\" or \"mlx\"",
                 kernel->text, name);
    return false;
}

/* Other objects than bools, 0 and 1 are mistakes: "no" would be true. */
static bool truth_of(const struct kernel *kernel, const char *name, PyObject *o, bool *value) {
    bool number = PyLong_Check(o) && !PyBool_Check(o);
    long long integer = number ? PyLong_AsLongLong(o) : 0;
    if (number && PyErr_Occurred()) PyErr_Clear(), integer = -1;
    if (!(number ? integer == 0 || integer == 1 : PyBool_Check(o) || is_numpy_bool(o)))
        return fail_type(o, what_of(kernel, name), "True or False");
    *value = PyObject_IsTrue(o) == 1;
    return true;
}

static bool read_settings(struct call *call, PyObject *const values[KEYWORD_COUNT]) {
    const struct kernel *kernel = call->kernel;
    PyObject *timeout = values[KEYWORD_TIMEOUT], *row = values[KEYWORD_ROW_CONTIGUOUS];
    bool contiguous = !kernel->desc.strided, verbose = false;
    if (row && !truth_of(kernel, "ensure_row_contiguous", row, &contiguous)) return false;
    if (values[KEYWORD_VERBOSE] && !truth_of(kernel, "verbose", values[KEYWORD_VERBOSE], &verbose))
        return false;
    int check = values[KEYWORD_CHECK] ? PyObject_IsTrue(values[KEYWORD_CHECK]) : 0;
    if (check < 0) return false;
    call->desc.check = check;
    /* A string names what else to look for. */
    if (check && PyUnicode_Check(values[KEYWORD_CHECK]) &&
        !text_of(call, values[KEYWORD_CHECK], 3, &call->desc.also))
        return false;
    call->strided = !contiguous;
    call->verbose = verbose;
    if (timeout && !real_of(timeout, what_of(kernel, "timeout"), "a number of seconds", &call->desc.timeout))
        return false;
    if (values[KEYWORD_PROFILE] && !text_of(call, values[KEYWORD_PROFILE], 2, &call->desc.profile))
        return false;
    if (values[KEYWORD_OUTPUT_KIND]) return kind_of_name(kernel, values[KEYWORD_OUTPUT_KIND], &call->kind);
    if (call->kind == KIND_SCALAR || call->kind == KIND_OTHER) call->kind = KIND_SMELT;
    return true;
}

static bool read_size(struct call *call, PyObject *o, const char *name, bool sized, int64_t sizes[3]) {
    if (o) return triple_of(o, call->kernel->text, name, sizes);
    if (sized)
        PyErr_Format(PyExc_TypeError, "kernel '%s': the argument %s is missing", call->kernel->text, name);
    return !sized;
}

/* ---- The call. */

bool call_open(struct call *call, struct kernel *kernel, PyObject *const values[KEYWORD_COUNT], bool sized) {
    /* Most of it is shapes, which are written when needed. */
    memset(&call->desc, 0, offsetof(smelt_run_desc, output_shapes));
    memset((char *)&call->desc + offsetof(smelt_run_desc, output_dtypes), 0,
           sizeof call->desc - offsetof(smelt_run_desc, output_dtypes));
    call->kernel = kernel;
    call->input_count = call->into_count = 0;
    call->kind = KIND_SCALAR;
    call->out = NULL;
    memset(call->kept, 0, sizeof call->kept);
    return import_inputs(call, values[KEYWORD_INPUTS]) && import_out(call, values[KEYWORD_OUT]) &&
           read_outputs(call, values[KEYWORD_OUTPUT_SHAPES], values[KEYWORD_OUTPUT_DTYPES]) &&
           read_size(call, values[KEYWORD_GRID], "grid", sized, call->desc.grid) &&
           read_size(call, values[KEYWORD_THREADGROUP], "threadgroup", sized, call->desc.threadgroup) &&
           read_templates(call, values[KEYWORD_TEMPLATE]) && read_init(call, values[KEYWORD_INIT_VALUE]) &&
           read_device(call, values[KEYWORD_DEVICE], values[KEYWORD_STREAM]) && read_settings(call, values);
}

void call_close(struct call *call) {
    for (int i = 0; i < call->input_count; i++) smelt_array_release(call->desc.inputs[i]);
    for (int i = 0; i < call->into_count; i++) smelt_array_release(call->desc.into[i]);
    smelt_stream_release(call->desc.stream);
    for (int i = 0; i < 4; i++) Py_XDECREF(call->kept[i]);
}

PyObject *call_results(smelt_array **outputs, int count, enum array_kind kind, PyObject *out) {
    PyObject *list = PyList_New(count);
    for (int i = 0; i < count; i++) {
        PyObject *result = NULL;
        if (list && out) {
            result = item_of(out, i);
            Py_INCREF(result);
            smelt_array_release(outputs[i]);
        } else if (list) {
            result = array_export(outputs[i], kind);
        } else {
            smelt_array_release(outputs[i]);
        }
        if (!result || PyList_SetItem(list, i, result) < 0) Py_CLEAR(list);
    }
    return list;
}

/* Only the call has its outputs so far. */
bool call_note(const struct kernel *kernel, smelt_array *const *inputs, smelt_array **outputs) {
    if (tape_note(kernel->text, (smelt_array **)inputs, kernel->input_count, outputs, kernel->output_count))
        return true;
    for (int i = 0; i < kernel->output_count; i++) smelt_array_release(outputs[i]);
    return false;
}

int call_init(void) {
    for (int i = 0; i < KEYWORD_COUNT; i++)
        if (!(keywords_interned[i] = PyUnicode_InternFromString(keyword_names[i]))) return -1;
    return 0;
}
