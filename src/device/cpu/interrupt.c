/* Interrupts of launches.
 *
 * When any interrupt of the process is raised, the watcher (base/watch.h) looks at all workers: one whose
 * launch has that interrupt gets a signal, again and again until it has left the launch. The handler takes
 * the worker back where it runs generated code; where it runs the engine's own, which notices the launch's
 * stop flag soon, it does nothing. Workers of other launches get no signal.
 *
 * Between worker and watcher: a worker says which launch it works for; the watcher says that it is looking,
 * reads it, and signals or not. A worker that ends its work takes the launch back, and waits while the
 * watcher looks or a signal is on its way: so launches stay while they are looked at, and no signal comes to
 * a thread that has gone back to its caller. */
#include "device/cpu/interrupt.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/watch.h"
#include "device/cpu/leave.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#endif

/* Ignored where nobody handles it, let through by debuggers, used by hardly anyone. */
const int interruption_signal = SIGURG;

/* A signal that has not arrived by then was consumed by other code. */
#define SIGNAL_SECONDS 0.2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *workers; /* under the lock */

/* ---- The signal. */

static struct sigaction previous;
/* As for faults: a handler before ours that hands on to us would go round for ever. */
static _Thread_local volatile sig_atomic_t handing_on __attribute__((tls_model("initial-exec")));

NOT_COUNTED static void call_previous(int signal, siginfo_t *info, void *context) {
    if (handing_on) return;
    handing_on = 1;
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(signal, info, context);
    else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
        previous.sa_handler(signal);
    handing_on = 0;
}

NOT_COUNTED static void on_signal(int signal, siginfo_t *info, void *opaque) {
    ucontext_t *context = opaque;
    struct worker *worker = worker_of_signal();
    if (!worker || !atomic_exchange(&worker->interruption.signalled, false)) {
        call_previous(signal, info, opaque);
        return;
    }
    /* Functions that generated code calls are short, and the signal comes again. */
    if (worker->in_kernel && leave_on_fiber(worker, arch_stack(context)) &&
        leave_in_code(worker, arch_instruction(context)))
        leave_kernel(worker, context, ENDED_BY_STOP);
}

#if WITH_TSAN
/* ThreadSanitizer holds signals back until it intercepts a call: never, in an endless kernel. The
 * system is asked directly, and shown how a handler returns. */
#define SA_RESTORER 0x04000000
struct system_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static bool is_installed(void) {
    struct system_action now;
    return syscall(SYS_rt_sigaction, interruption_signal, NULL, &now, sizeof now.mask) == 0 &&
           now.handler == on_signal;
}

static void install(void) {
    struct system_action before,
        action = {on_signal, SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_RESTORER, arch_signal_return, 0};
    if (is_installed()) return;
    (void)syscall(SYS_rt_sigaction, interruption_signal, &action, &before, sizeof action.mask);
    previous.sa_flags = (int)(before.flags & SA_SIGINFO);
    if (previous.sa_flags)
        previous.sa_sigaction = before.handler;
    else
        memcpy(&previous.sa_handler, &before.handler, sizeof before.handler);
}
#else
static bool is_installed(void) {
    struct sigaction now;
    return sigaction(interruption_signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_signal;
}

/* With the lock held. The handler that was there is known before ours can come. */
static void install(void) {
    struct sigaction action;
    if (is_installed()) return;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    (void)sigaction(interruption_signal, NULL, &previous);
    (void)sigaction(interruption_signal, &action, NULL);
}
#endif

void interruption_allow(sigset_t *before) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, interruption_signal);
    pthread_sigmask(SIG_UNBLOCK, &set, before);
}

void interruption_restore(const sigset_t *before) {
    if (sigismember(before, interruption_signal)) pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- Workers. */

static void stop(struct cpu_launch *launch) {
    __atomic_store_n(&launch->interrupted, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
}

void interruption_begin(struct worker *worker, struct cpu_launch *launch) {
    atomic_store(&worker->interruption.launch, launch);
    /* The watcher may have looked before. */
    if (interrupt_is_raised(launch->interrupt)) stop(launch);
}

void interruption_end(struct worker *worker) {
    struct interruption *own = &worker->interruption;
    atomic_store(&own->launch, NULL);
    if (!atomic_load(&own->watched) && !atomic_load(&own->signalled)) return;
    double until = clock_seconds() + SIGNAL_SECONDS;
    /* Sleeping, not yielding: the watcher may have a lower priority. */
    while (atomic_load(&own->watched) || (atomic_load(&own->signalled) && clock_seconds() < until)) {
        struct timespec time = {0, 10000};
        nanosleep(&time, NULL);
    }
    atomic_store(&own->signalled, false);
}

/* Is its launch to end? Then signals it, unless a signal is on its way. */
static bool tell(struct worker *worker) {
    struct interruption *own = &worker->interruption;
    atomic_store(&own->watched, true);
    struct cpu_launch *launch = atomic_load(&own->launch);
    bool told = launch && (interrupt_is_raised(launch->interrupt) ||
                           __atomic_load_n(&launch->interrupted, __ATOMIC_RELAXED));
    if (told) {
        stop(launch);
        if (!atomic_exchange(&own->signalled, true) && pthread_kill(own->thread, interruption_signal) != 0)
            atomic_store(&own->signalled, false);
    }
    atomic_store(&own->watched, false);
    return told;
}

void interruption_know(struct worker *worker) {
    struct interruption *own = &worker->interruption;
    own->thread = pthread_self();
    pthread_mutex_lock(&lock);
    own->next = workers;
    own->link = &workers;
    if (own->next) own->next->interruption.link = &own->next;
    workers = worker;
    pthread_mutex_unlock(&lock);
}

void interruption_forget(struct worker *worker) {
    struct interruption *own = &worker->interruption;
    pthread_mutex_lock(&lock);
    *own->link = own->next;
    if (own->next) own->next->interruption.link = own->link;
    pthread_mutex_unlock(&lock);
}

/* ---- On the watcher's thread. */

/* True while somebody has still to end. */
static bool tell_all(unsigned round) {
    bool any = false;
    pthread_mutex_lock(&lock);
    if (round % 64 == 0) install();
    for (struct worker *worker = workers; worker; worker = worker->interruption.next) any |= tell(worker);
    pthread_mutex_unlock(&lock);
    return any;
}

smelt_status interruption_prepare(void) {
    return interrupt_watch_all(tell_all);
}

/* A forked child has the forking thread alone. */
static void after_fork(void) {
    struct worker *own = worker_of_signal();
    pthread_mutex_init(&lock, NULL);
    workers = own;
    if (!own) return;
    own->interruption.next = NULL;
    own->interruption.link = &workers;
    atomic_store(&own->interruption.watched, false);
    atomic_store(&own->interruption.signalled, false);
}

__attribute__((constructor)) static void register_fork(void) {
    (void)pthread_atfork(NULL, NULL, after_fork);
}
