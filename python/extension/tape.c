/* Tapes, and functions whose derivatives Python gives. */
#include "operations.h"

/* ---- smelt._smelt.Tape */

struct tape_object {
    PyObject_HEAD smelt_tape *tape;
};

static smelt_tape *held(PyObject *self) {
    return ((struct tape_object *)self)->tape;
}

static PyObject *tape_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)arguments;
    (void)keywords;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct tape_object *o = (struct tape_object *)allocate(type, 0);
    if (!o) return NULL;
    smelt_status status = smelt_tape_begin(&o->tape);
    if (status == SMELT_OK) return (PyObject *)o;
    Py_DECREF(o);
    return raise_status(status);
}

static void tape_deallocate(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    smelt_tape_release(held(self));
    free_object(self);
    Py_DECREF(type);
}

static PyObject *tape_end(PyObject *self, PyObject *unused) {
    (void)unused;
    smelt_status status = smelt_tape_end(held(self));
    return status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *tape_watch(PyObject *self, PyObject *o) {
    smelt_array *array = array_of(o);
    if (!array) return PyErr_Format(PyExc_TypeError, "watch: expected a smelt.array");
    smelt_status status = smelt_tape_watch(held(self), array);
    return status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *products(PyObject *self, PyObject *arguments, bool forward) {
    PyObject *lists[3];
    static const char *const names[2][3] = {{"outputs", "cotangents", "inputs"},
                                            {"inputs", "tangents", "outputs"}};
    if (!PyArg_ParseTuple(arguments, "OOO", &lists[0], &lists[1], &lists[2])) return NULL;
    struct arrays a[3] = {{0}};
    PyObject *result = NULL;
    bool good = true;
    for (int i = 0; i < 3 && good; i++) good = arrays_take(lists[i], names[forward][i], i == 1, &a[i]);
    if (good && a[0].count != a[1].count) {
        PyErr_Format(PyExc_ValueError, "%d %s for %d %s: expected one for each", a[1].count,
                     names[forward][1], a[0].count, names[forward][0]);
        good = false;
    }
    smelt_array **made = good ? calloc((size_t)a[2].count + 1, sizeof *made) : NULL;
    if (made) {
        smelt_status status;
        Py_BEGIN_ALLOW_THREADS status = forward ? smelt_tape_jvp(held(self), a[0].items, a[0].count,
                                                                 a[1].items, a[2].items, a[2].count, made)
                                                : smelt_tape_vjp(held(self), a[0].items, a[0].count,
                                                                 a[1].items, a[2].items, a[2].count, made);
        Py_END_ALLOW_THREADS result =
            status == SMELT_OK ? arrays_list_taking(made, a[2].count) : exception_raise_kept(status);
    } else if (good) {
        PyErr_NoMemory();
    }
    free(made);
    for (int i = 0; i < 3; i++) free(a[i].items);
    return result;
}

static PyObject *tape_vjp(PyObject *self, PyObject *arguments) {
    return products(self, arguments, false);
}

static PyObject *tape_jvp(PyObject *self, PyObject *arguments) {
    return products(self, arguments, true);
}

static PyMethodDef tape_methods[] = {
    {"watch", tape_watch, METH_O,
     "watch($self, array, /)\n--\n\nTracks an array, with respect to which others are differentiated."},
    {"end", tape_end, METH_NOARGS, "end($self, /)\n--\n\nEnds the recording."},
    {"vjp", tape_vjp, METH_VARARGS,
     "vjp($self, outputs, cotangents, inputs, /)\n--\n\nA gradient for each input; a cotangent that is None "
     "is "
     "ones."},
    {"jvp", tape_jvp, METH_VARARGS,
     "jvp($self, inputs, tangents, outputs, /)\n--\n\nA tangent for each output."},
    {0}};

static PyType_Slot tape_slots[] = {
    {Py_tp_doc, "Tape()\n--\n\nRecords the operations of this thread until its end."},
    {Py_tp_new, tape_new},
    {Py_tp_dealloc, tape_deallocate},
    {Py_tp_methods, tape_methods},
    {0}};
static PyType_Spec tape_spec = {.name = "smelt._smelt.Tape",
                                .basicsize = sizeof(struct tape_object),
                                .flags = Py_TPFLAGS_DEFAULT,
                                .slots = tape_slots};

/* ---- Custom functions. */

struct rules {
    PyObject *vjp, *jvp; /* or NULL */
    int input_count, output_count;
};

/* Calls rule(inputs, outputs, with): a list of arrays or None, `count` of them. */
static smelt_status call_rule(PyObject *rule, const struct rules *rules, smelt_array *const *inputs,
                              smelt_array *const *outputs, smelt_array *const *with, int with_count,
                              smelt_array **made, int count) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *lists[3] = {arrays_list(inputs, rules->input_count), arrays_list(outputs, rules->output_count),
                          arrays_list(with, with_count)};
    PyObject *result = lists[0] && lists[1] && lists[2]
                           ? PyObject_CallFunctionObjArgs(rule, lists[0], lists[1], lists[2], NULL)
                           : NULL;
    struct arrays arrays = {0};
    bool good = result && arrays_take(result, "a derivative", true, &arrays);
    if (good && arrays.count != count) {
        PyErr_Format(PyExc_ValueError, "a derivative returned %d arrays; expected %d", arrays.count, count);
        good = false;
    }
    for (int i = 0; i < count && good; i++)
        made[i] = arrays.items[i] ? smelt_array_retain(arrays.items[i]) : NULL;
    smelt_status status = good ? SMELT_OK : exception_keep();
    free(arrays.items);
    Py_XDECREF(result);
    for (int i = 0; i < 3; i++) Py_XDECREF(lists[i]);
    PyGILState_Release(state);
    return status;
}

static smelt_status call_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                             smelt_array *const *cotangents, smelt_array **gradients) {
    const struct rules *rules = context;
    return call_rule(rules->vjp, rules, inputs, outputs, cotangents, rules->output_count, gradients,
                     rules->input_count);
}

static smelt_status call_jvp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                             smelt_array *const *tangents, smelt_array **output_tangents) {
    const struct rules *rules = context;
    return call_rule(rules->jvp, rules, inputs, outputs, tangents, rules->input_count, output_tangents,
                     rules->output_count);
}

/* Also from the release of a tape, with the GIL or without. */
static void release_rules(void *context) {
    struct rules *rules = context;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(rules->vjp);
    Py_XDECREF(rules->jvp);
    PyGILState_Release(state);
    free(rules);
}

static bool record(const char *name, const struct arrays *inputs, const struct arrays *outputs, PyObject *vjp,
                   PyObject *jvp) {
    struct rules *rules = malloc(sizeof *rules);
    if (!rules) {
        PyErr_NoMemory();
        return false;
    }
    *rules = (struct rules){vjp, jvp, inputs->count, outputs->count};
    Py_XINCREF(vjp);
    Py_XINCREF(jvp);
    smelt_status status = smelt_tape_record(&(smelt_record_desc){.name = name,
                                                                 .inputs = inputs->items,
                                                                 .input_count = inputs->count,
                                                                 .outputs = outputs->items,
                                                                 .output_count = outputs->count,
                                                                 .vjp = vjp ? call_vjp : NULL,
                                                                 .jvp = jvp ? call_jvp : NULL,
                                                                 .release = release_rules,
                                                                 .context = rules});
    if (status != SMELT_OK) raise_status(status);
    return status == SMELT_OK;
}

bool tape_note(const char *name, smelt_array **inputs, int input_count, smelt_array **outputs,
               int output_count) {
    bool tracked = false;
    for (int i = 0; i < input_count && !tracked; i++) tracked = smelt_tape_tracks(NULL, inputs[i]);
    return !tracked || record(name, &(struct arrays){inputs, input_count},
                              &(struct arrays){outputs, output_count}, NULL, NULL);
}

static PyObject *tape_record(PyObject *self, PyObject *arguments) {
    const char *name;
    PyObject *input_list, *output_list, *vjp, *jvp;
    struct arrays inputs = {0}, outputs = {0};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sOOOO:tape_record", &name, &input_list, &output_list, &vjp, &jvp))
        return NULL;
    bool good = arrays_take(input_list, "inputs", false, &inputs) &&
                arrays_take(output_list, "outputs", false, &outputs) &&
                record(name, &inputs, &outputs, vjp == Py_None ? NULL : vjp, jvp == Py_None ? NULL : jvp);
    free(inputs.items);
    free(outputs.items);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *tape_pause(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    smelt_tape_pause();
    return Py_NewRef(Py_None);
}

static PyObject *tape_resume(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    smelt_tape_resume();
    return Py_NewRef(Py_None);
}

static PyObject *tape_tracks(PyObject *self, PyObject *o) {
    (void)self;
    smelt_array *array = array_of(o);
    return PyBool_FromLong(array && smelt_tape_tracks(NULL, array));
}

static PyMethodDef functions[] = {
    {"tape_record", tape_record, METH_VARARGS,
     "tape_record(name, inputs, outputs, vjp, jvp, /)\n--\n\nTells the open tapes of this thread which "
     "operation computed outputs."
     "\nvjp(inputs, outputs, cotangents) and jvp(inputs, outputs, tangents) give lists of arrays or "
     "None, or "
     "are None."},
    {"tape_pause", tape_pause, METH_NOARGS,
     "tape_pause()\n--\n\nNothing is recorded on this thread until resume."},
    {"tape_resume", tape_resume, METH_NOARGS, "tape_resume()\n--\n\nEnds tape_pause."},
    {"tape_tracks", tape_tracks, METH_O,
     "tape_tracks(array, /)\n--\n\nWhether an open tape of this thread tracks the array."},
    {0}};

int tape_init(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &tape_spec, NULL);
    if (!type || PyModule_AddObjectRef(module, "Tape", type) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
