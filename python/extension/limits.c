/* Limits that a thread sets on the kernels it runs, for smelt.launch: an interrupt by which another thread
 * ends them (on the main thread signals do), and the time by which they must end on a GPU, where a launch
 * without a time-out would continue. */
#include "call.h"

#include <time.h>

static _Thread_local struct {
    smelt_interrupt *interrupt; /* while depth > 0 */
    int depth;                  /* limits set within limits share the interrupt */
    double until;               /* on the monotonic clock; 0: none */
} limits;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

smelt_interrupt *limits_interrupt(void) {
    return limits.interrupt;
}

double limits_timeout(double timeout) {
    if (limits.until == 0) return timeout;
    double left = limits.until - now(), least = 1e-3;
    if (left < least) left = least;
    return timeout > 0 && timeout < left ? timeout : left;
}

static const char capsule_name[] = "smelt interrupt";

static void release(PyObject *capsule) {
    smelt_interrupt_release(PyCapsule_GetPointer(capsule, capsule_name));
}

/* (seconds) -> (handle, (depth, end) of the outer limit): sets a limit on this thread. */
static PyObject *limit_begin(PyObject *self, PyObject *seconds) {
    (void)self;
    double length = PyFloat_AsDouble(seconds), end = now() + length, outer = limits.until;
    if (length == -1 && PyErr_Occurred()) return NULL;
    if (!limits.interrupt && smelt_interrupt_create(&limits.interrupt) != SMELT_OK)
        return raise_status(SMELT_ERROR_OUT_OF_MEMORY);
    PyObject *handle = PyCapsule_New(smelt_interrupt_retain(limits.interrupt), capsule_name, release);
    PyObject *result = handle ? Py_BuildValue("N(id)", handle, limits.depth, outer) : NULL;
    if (result) {
        limits.depth++;
        limits.until = outer == 0 || end < outer ? end : outer;
    } else if (limits.depth == 0) {
        smelt_interrupt_release(limits.interrupt);
        limits.interrupt = NULL;
    }
    return result;
}

/* (depth, end): returns to an outer limit, or to none, on the same thread; drops those set since. */
static PyObject *limit_end(PyObject *self, PyObject *arguments) {
    (void)self;
    if (!PyArg_ParseTuple(arguments, "id", &limits.depth, &limits.until)) return NULL;
    if (limits.depth == 0) {
        smelt_interrupt_release(limits.interrupt);
        limits.interrupt = NULL;
    }
    Py_RETURN_NONE;
}

/* (handle, raised): on any thread: ends the kernels of the handle's thread, or allows them again. */
static PyObject *limit_interrupt(PyObject *self, PyObject *arguments) {
    PyObject *handle;
    int raised;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "Op", &handle, &raised)) return NULL;
    smelt_interrupt *interrupt = PyCapsule_GetPointer(handle, capsule_name);
    if (!interrupt) return NULL;
    if (raised)
        smelt_interrupt_raise(interrupt);
    else
        smelt_interrupt_clear(interrupt);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"_limit_begin", limit_begin, METH_O, NULL},
                                  {"_limit_end", limit_end, METH_VARARGS, NULL},
                                  {"_limit_interrupt", limit_interrupt, METH_VARARGS, NULL},
                                  {0}};

int limits_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
