#include "base/background.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/older_glibc.h"
#include "base/text.h"
#include "base/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* How long a process that exits waits for the thread: it looks at its interrupt every few milliseconds. */
#define EXIT_SECONDS 0.5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below, and the jobs' states */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct background_job *first, *running;
static bool thread_runs, ending, in_library;
static unsigned forks;             /* so many forks lie between the first process and this one */
static smelt_interrupt *interrupt; /* of the thread's calls */

/* Held by the thread except where a fork may happen, and by a thread that forks. */
static pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_thread __attribute__((tls_model("initial-exec")));

bool background_is_here(void) {
    return is_thread;
}

void background_pause(void) {
    if (is_thread) pthread_mutex_unlock(&forking);
}

void background_resume(void) {
    if (is_thread) pthread_mutex_lock(&forking);
}

/* ---- One job, with the lock held. */

static void set_state(struct background_job *job, enum background_state state) {
    job->state = state;
    job->process = forks;
}

/* Jobs of an earlier process's threads are idle in this process, which lacks the threads. */
static enum background_state state_of(const struct background_job *job) {
    return job->state == BACKGROUND_ENDED || job->process == forks ? job->state : BACKGROUND_IDLE;
}

/* On the calling thread. Releases the lock in between. */
static smelt_status run_job(struct background_job *job) {
    set_state(job, BACKGROUND_RUNNING);
    pthread_mutex_unlock(&lock);
    smelt_status status = job->run(job);
    pthread_mutex_lock(&lock);
    set_state(job, status == SMELT_ERROR_INTERRUPTED ? BACKGROUND_IDLE : BACKGROUND_ENDED);
    job->status = status;
    if (status != SMELT_OK && status != SMELT_ERROR_INTERRUPTED)
        job->message = string_copy(smelt_error(), strlen(smelt_error()));
    pthread_cond_broadcast(&changed);
    return status;
}

/* Releases the lock in between. The job may no longer exist afterwards: what it held may own it. */
static void forget(struct background_job *job) {
    void (*let_go)(struct background_job *) = job->let_go;
    pthread_mutex_unlock(&lock);
    let_go(job);
    pthread_mutex_lock(&lock);
}

/* ---- The thread. */

/* The first job that is due, in the list; or NULL, and the seconds until one is (0: the list is empty). */
static struct background_job **find_due(double *seconds) {
    int64_t now = clock_nanoseconds(), next = INT64_MAX;
    for (struct background_job **at = &first; *at; at = &(*at)->next) {
        if ((*at)->due <= now) return at;
        if ((*at)->due < next) next = (*at)->due;
    }
    *seconds = first ? 1e-9 * (double)(next - now) : 0;
    return NULL;
}

static void wait_for_job(double seconds) {
    struct timespec until = clock_after(CLOCK_REALTIME, seconds);
    if (seconds > 0 && !ending)
        (void)pthread_cond_timedwait(&changed, &lock, &until);
    else
        pthread_cond_wait(&changed, &lock);
}

static void *work(void *unused) {
    (void)unused;
    is_thread = true;
    background_resume();
    (void)interrupt_begin_call(interrupt);
    pthread_mutex_lock(&lock);
    for (;;) {
        struct background_job **due;
        double seconds;
        while (!(due = find_due(&seconds)) || ending) {
            background_pause();
            wait_for_job(due ? 0 : seconds);
            pthread_mutex_unlock(&lock);
            background_resume();
            pthread_mutex_lock(&lock);
        }
        running = *due;
        *due = running->next;
        (void)run_job(running);
        struct background_job *job = running;
        running = NULL;
        if (ending) continue; /* the process exits: what the job holds ends with it */
        in_library = true;    /* code may be unloaded by a library */
        forget(job);
        in_library = false;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* ---- Fork and exit. */

static void before_fork(void) {
    if (!is_thread) pthread_mutex_lock(&forking);
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void) {
    pthread_mutex_unlock(&lock);
    if (!is_thread) pthread_mutex_unlock(&forking);
}

static void after_fork_in_child(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&forking, NULL);
    pthread_cond_init(&changed, NULL);
    first = running = NULL;
    forks++;
    thread_runs = ending = in_library = is_thread = false;
    smelt_interrupt_clear(interrupt);
}

static void stop_at_exit(void) {
    struct timespec until = clock_after(CLOCK_REALTIME, EXIT_SECONDS);
    int error = 0;
    if (is_thread) return;
    pthread_mutex_lock(&lock);
    ending = true;
    smelt_interrupt_raise(interrupt);
    while (in_library) pthread_cond_wait(&changed, &lock);
    while (running && error == 0) error = pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
}

/* exit runs the calling thread's destructors before all exit handlers. The main thread's run only then, or in
 * pthread_exit, after which no job begins. */
static void on_thread_end(void *unused) {
    (void)unused;
    if (getpid() == gettid()) stop_at_exit();
}

/* Exit handlers run in the reverse order of their registration, and a library may register some in any call.
 * If the main thread has started a job, its exit waits before all of them. Otherwise the order decides:
 * background_enter_library registers stop_at_exit again, so that it runs before the handlers of earlier
 * calls. */
static void wait_before_handlers(void) {
    extern int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *library);
    extern char __dso_handle __attribute__((visibility("hidden")));
    static atomic_flag registered = ATOMIC_FLAG_INIT;
    if (getpid() != gettid() || atomic_flag_test_and_set(&registered)) return;
    (void)__cxa_thread_atexit_impl(on_thread_end, NULL, &__dso_handle);
}

smelt_status background_enter_library(void) {
    if (!is_thread) return SMELT_OK;
    (void)atexit(stop_at_exit);
    pthread_mutex_lock(&lock);
    in_library = !ending;
    pthread_mutex_unlock(&lock);
    return in_library ? SMELT_OK : fail(SMELT_ERROR_INTERRUPTED, "the process exits");
}

void background_leave_library(void) {
    if (!is_thread) return;
    pthread_mutex_lock(&lock);
    in_library = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void prepare_process(void) {
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    (void)atexit(stop_at_exit);
    (void)smelt_interrupt_create(&interrupt);
}

/* With the lock held. The host's signals are not for the thread. */
static bool have_thread(void) {
    pthread_t thread;
    sigset_t all, before;
    if (thread_runs || ending || !interrupt) return thread_runs && !ending;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_runs = thread_start(&thread, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (thread_runs) pthread_detach(thread);
    return thread_runs;
}

/* ---- Callers. */

/* due: 0: at once. */
static void start(struct background_job *job, int64_t due) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_process);
    wait_before_handlers();
    pthread_mutex_lock(&lock);
    if (state_of(job) == BACKGROUND_IDLE && have_thread()) {
        struct background_job **last = &first;
        while (*last) last = &(*last)->next;
        job->hold(job);
        set_state(job, BACKGROUND_QUEUED);
        job->next = NULL;
        job->due = due;
        *last = job;
        pthread_cond_broadcast(&changed);
    } else if (state_of(job) == BACKGROUND_QUEUED && due < job->due) {
        job->due = due;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

void background_start(struct background_job *job) {
    start(job, 0);
}

void background_start_later(struct background_job *job, double seconds) {
    start(job, clock_nanoseconds() + (int64_t)(1e9 * seconds));
}

static void take_out(struct background_job *job) {
    struct background_job **at = &first;
    while (*at != job) at = &(*at)->next;
    *at = job->next;
}

/* With the lock held: until the job changes, or the caller's interrupt is raised. */
static smelt_status wait_for_change(void) {
    struct timespec until = clock_after(CLOCK_REALTIME, interrupt_of_call() ? INTERRUPT_LOOK_SECONDS : 1);
    (void)pthread_cond_timedwait(&changed, &lock, &until);
    return interrupt_check();
}

/* Runs a job that is queued or idle. */
static smelt_status run_now(struct background_job *job) {
    bool queued = state_of(job) == BACKGROUND_QUEUED;
    if (queued) take_out(job);
    smelt_status status = run_job(job);
    if (queued) forget(job);
    return state_of(job) == BACKGROUND_ENDED ? SMELT_OK : status;
}

bool background_is_pending(const struct background_job *job) {
    pthread_mutex_lock(&lock);
    enum background_state state = state_of(job);
    pthread_mutex_unlock(&lock);
    return state == BACKGROUND_QUEUED || state == BACKGROUND_RUNNING;
}

smelt_status background_wait(struct background_job *job) {
    smelt_status status = SMELT_OK;
    pthread_mutex_lock(&lock);
    while (state_of(job) != BACKGROUND_ENDED && status == SMELT_OK)
        status = state_of(job) == BACKGROUND_RUNNING ? wait_for_change() : run_now(job);
    if (status == SMELT_OK && job->status != SMELT_OK)
        status = fail(job->status, "%s", job->message ? job->message : "");
    pthread_mutex_unlock(&lock);
    return status;
}
