/* Ctrl-C, and other signals for which Python has a handler, while a kernel runs on the main thread. Python's
 * own C handler only notes the signal; ours, in front of it, also ends the run, so that Python's handler can
 * run. */
#include "call.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

/* Of array_wait: some 50 microseconds. */
#define ROUNDS_WITHOUT_PAUSE 50

static const int numbers[] = {SIGINT, SIGALRM, SIGTERM};
#define NUMBER_COUNT 3

static struct sigaction before[NUMBER_COUNT]; /* the handlers behind ours */
static smelt_interrupt *own;                  /* of the main thread's calls */
static smelt_interrupt *volatile active;      /* `own` during one of them */
static volatile sig_atomic_t watched;         /* one bit per signal: it ends the current call */
static pthread_t main_thread;
static PyObject *getsignal, *number_objects[NUMBER_COUNT];
static PyCFunction get_handler; /* getsignal as C, as every call of a kernel needs it; or NULL */

static void forward(const struct sigaction *action, int number, siginfo_t *info, void *context) {
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(number, info, context);
    else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN)
        action->sa_handler(number);
}

static void handle(int number, siginfo_t *info, void *context) {
    for (int i = 0; i < NUMBER_COUNT; i++) {
        if (numbers[i] != number) continue;
        if (watched >> i & 1) smelt_interrupt_raise(active);
        forward(&before[i], number, info, context);
    }
}

/* Installs our handler in front of the current one, unless that is ours or there is none. */
static void chain(int i) {
    struct sigaction now, ours;
    if (sigaction(numbers[i], NULL, &now) != 0) return;
    bool information = now.sa_flags & SA_SIGINFO;
    if (information && now.sa_sigaction == handle) return;
    if (!information && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
    before[i] = now;
    ours = now;
    ours.sa_sigaction = handle;
    ours.sa_flags = now.sa_flags | SA_SIGINFO;
    sigaction(numbers[i], &ours, NULL);
}

static bool has_python_handler(int i) {
    PyObject *handler = get_handler ? get_handler(PyCFunction_GetSelf(getsignal), number_objects[i])
                                    : PyObject_CallFunctionObjArgs(getsignal, number_objects[i], NULL);
    bool callable = handler && PyCallable_Check(handler);
    if (!handler) PyErr_Clear();
    Py_XDECREF(handler);
    return callable;
}

/* False with an exception if an earlier signal's handler raised. */
static bool begin(int signals) {
    int bits = 0;
    for (int i = 0; i < NUMBER_COUNT; i++)
        if (signals >> i & 1 && has_python_handler(i)) {
            chain(i);
            bits |= 1 << i;
        }
    active = own;
    watched = bits;
    return PyErr_CheckSignals() == 0;
}

static void end(void) {
    watched = 0;
    active = NULL;
}

smelt_status call_without_gil(long_call *run, void *context, smelt_interrupt *interrupt) {
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = run(context, interrupt);
    Py_END_ALLOW_THREADS return status;
}

smelt_status call_watched(long_call *run, void *context, bool once, bool *raised) {
    *raised = false;
    /* A Python handler that runs kernels enters here again, after our call has ended. */
    if (!pthread_equal(pthread_self(), main_thread) || active)
        return call_without_gil(run, context, limits_interrupt());
    for (int signals = (1 << NUMBER_COUNT) - 1;; signals = 1) {
        smelt_status status = SMELT_ERROR_INTERRUPTED;
        smelt_interrupt_clear(own);
        bool good = begin(signals);
        if (good) status = call_without_gil(run, context, own);
        end();
        if (status != SMELT_ERROR_INTERRUPTED) return status;
        *raised = !good || PyErr_CheckSignals() < 0;
        if (*raised) return status;
        if (once) {
            PyErr_SetString(PyExc_RuntimeError, "a signal ended the launch, but its handler raised nothing: "
                                                "the arrays that the kernel writes hold partial results");
            *raised = true;
            return status;
        }
    }
}

smelt_status call_enqueuing(long_call *run, void *context, bool once, bool *raised) {
    if (!pthread_equal(pthread_self(), main_thread) || active)
        return call_watched(run, context, once, raised);
    *raised = false;
    smelt_status status = call_without_gil(run, context, smelt_interrupt_before_compile());
    return status == SMELT_ERROR_INTERRUPTED ? call_watched(run, context, once, raised) : status;
}

bool array_wait(smelt_array *array) {
    bool ready = false;
    if (strcmp(smelt_array_device(array), "cpu") == 0 || !pthread_equal(pthread_self(), main_thread))
        return true;
    for (int round = 0;; round++) {
        smelt_status status = smelt_array_is_ready(array, &ready);
        if (status != SMELT_OK) {
            raise_status(status);
            return false;
        }
        if (ready) return true;
        if (PyErr_CheckSignals() < 0) return false;
        /* Polls without a pause at first; later a millisecond does not matter. */
        if (round < ROUNDS_WITHOUT_PAUSE) continue;
        struct timespec pause = {.tv_nsec = round < 10 * ROUNDS_WITHOUT_PAUSE ? 20000 : 1000000};
        Py_BEGIN_ALLOW_THREADS nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS
    }
}

/* The thread that forks is its child's main thread. */
static void in_child(void) {
    main_thread = pthread_self();
    end();
}

static int find_main_thread(void) {
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *thread = threading ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
    PyObject *identity = thread ? PyObject_GetAttrString(thread, "ident") : NULL;
    if (identity) main_thread = (pthread_t)PyLong_AsUnsignedLong(identity);
    Py_XDECREF(identity);
    Py_XDECREF(thread);
    Py_XDECREF(threading);
    return PyErr_Occurred() ? -1 : 0;
}

int interrupt_init(PyObject *module) {
    (void)module;
    PyObject *signals = PyImport_ImportModule("_signal");
    if (!signals) return -1;
    getsignal = PyObject_GetAttrString(signals, "getsignal");
    Py_DECREF(signals);
    if (!getsignal) return -1;
    if (PyCFunction_Check(getsignal) && PyCFunction_GetFlags(getsignal) == METH_O)
        get_handler = PyCFunction_GetFunction(getsignal);
    for (int i = 0; i < NUMBER_COUNT; i++)
        if (!(number_objects[i] = PyLong_FromLong(numbers[i]))) return -1;
    if (smelt_interrupt_create(&own) != SMELT_OK) {
        raise_status(SMELT_ERROR_OUT_OF_MEMORY);
        return -1;
    }
    pthread_atfork(NULL, NULL, in_child);
    return find_main_thread();
}
