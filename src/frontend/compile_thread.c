#include "frontend/compile_thread.h"
#include "base/clock.h"
#include "base/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* LLVM recurses deeply over large functions; the host's thread may have little stack. */
#define COMPILER_STACK_BYTES ((size_t)64 << 20)

/* Has two owners, the caller and the thread: the last one to let go frees it. All that LLVM reads is in it.
 */
struct job {
    const struct compiler *compiler;
    struct compile_request request;
    struct compile_result result;
    struct compile_progress progress;
    char *bitcode;
    char cpu[128], features[4096];
    smelt_constant constants[SMELT_MAX_CONSTANTS + 1];
    smelt_status status;
    bool done, abandoned;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct job *next; /* of those abandoned */
};

static void free_job(struct job *job) {
    if (!job) return;
    free(job->bitcode);
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->changed);
    free(job);
}

static void free_result(struct compile_result *result) {
    image_free(&result->image);
    free(result->text);
    free(result->constants);
}

static struct job *make_job(const struct compiler *compiler, const struct compile_request *request) {
    struct job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    job->compiler = compiler;
    job->request = *request;
    job->request.progress = &job->progress;
    pthread_mutex_init(&job->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&job->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    job->bitcode = malloc(request->bitcode_size + 1);
    if (!job->bitcode) {
        free_job(job);
        return NULL;
    }
    if (request->bitcode_size) memcpy(job->bitcode, request->bitcode, request->bitcode_size);
    job->request.bitcode = job->bitcode;
    if (request->cpu) {
        snprintf(job->cpu, sizeof job->cpu, "%s", request->cpu);
        job->request.cpu = job->cpu;
    }
    if (request->features) {
        snprintf(job->features, sizeof job->features, "%s", request->features);
        job->request.features = job->features;
    }
    int count = 0;
    for (const smelt_constant *c = request->constants;
         c && c->dtype != SMELT_NO_DTYPE && count < SMELT_MAX_CONSTANTS; c++)
        job->constants[count++] = *c;
    job->constants[count].dtype = SMELT_NO_DTYPE;
    if (request->constants) job->request.constants = job->constants;
    return job;
}

/* ---- Those left behind. When the process exits, LLVM's global data is taken down while they may still use
 * it. */

static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static struct job *left;
static volatile sig_atomic_t exit_status;

/* In such a thread, while the process ends. It may hold a lock that ending needs: then it ends the process
 * itself. */
static void rest(int signal) {
    (void)signal;
    struct timespec patience = {.tv_sec = 2};
    nanosleep(&patience, NULL);
    _exit(exit_status);
}

static void still_them(int status, void *unused) {
    (void)unused;
    exit_status = status;
    pthread_mutex_lock(&left_lock);
    struct sigaction action = {.sa_handler = rest};
    if (left) sigaction(SIGURG, &action, NULL);
    for (struct job *job = left; job; job = job->next) pthread_kill(job->thread, SIGURG);
    pthread_mutex_unlock(&left_lock);
}

/* A forked child has none of them. */
static void after_fork(void) {
    pthread_mutex_init(&left_lock, NULL);
    left = NULL;
}

static void register_stilling(void) {
    (void)on_exit(still_them, NULL);
    (void)pthread_atfork(NULL, NULL, after_fork);
}

static void leave_behind(struct job *job) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_stilling);
    pthread_mutex_lock(&left_lock);
    job->next = left;
    left = job;
    pthread_mutex_unlock(&left_lock);
}

static void forget(struct job *job) {
    pthread_mutex_lock(&left_lock);
    for (struct job **at = &left; *at; at = &(*at)->next) {
        if (*at != job) continue;
        *at = job->next;
        break;
    }
    pthread_mutex_unlock(&left_lock);
}

/* ---- */

static void *work(void *argument) {
    struct job *job = argument;
    job->status = job->compiler->compile(&job->request, &job->result);
    pthread_mutex_lock(&job->lock);
    job->done = true;
    bool mine = job->abandoned;
    pthread_cond_signal(&job->changed);
    pthread_mutex_unlock(&job->lock);
    if (mine) {
        forget(job);
        free_result(&job->result);
        free_job(job);
    }
    return NULL;
}

static bool start(struct job *job) {
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, COMPILER_STACK_BYTES);
    /* The host's signals are for the host's threads; those of faults stay as they are. */
    sigfillset(&all);
    sigdelset(&all, SIGURG);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&job->thread, &attributes, work, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

static double processor_time(pthread_t thread) {
    clockid_t clock;
    struct timespec used;
    if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* On a busy machine a thread may get little of a processor: its limit is on what it uses, and a looser one on
 * what passes. */
#define PATIENCE 10

static bool has_time_left(const struct job *job, double seconds, double start) {
    return processor_time(job->thread) < seconds && clock_seconds() - start < PATIENCE * seconds;
}

/* OK: the thread came to an end. If not, TIMEOUT or INTERRUPTED, the job is its own. `progress`, the
 * caller's, may be NULL. */
static smelt_status wait_for(struct job *job, double seconds, struct compile_progress *progress) {
    const double start = clock_seconds();
    smelt_status status = SMELT_OK;
    pthread_mutex_lock(&job->lock);
    while (!job->done && status == SMELT_OK) {
        struct timespec until =
            clock_after(CLOCK_MONOTONIC, interrupt_of_call() ? INTERRUPT_LOOK_SECONDS : 1);
        bool woken = pthread_cond_timedwait(&job->changed, &job->lock, &until) != ETIMEDOUT;
        if (progress) compile_progress_copy(&job->progress, progress);
        if (job->done)
            break;
        else if (interrupt_is_raised(interrupt_of_call()))
            status = SMELT_ERROR_INTERRUPTED;
        else if (!woken && !has_time_left(job, seconds, start))
            status = SMELT_ERROR_TIMEOUT;
    }
    bool done = job->done;
    if (!done) {
        leave_behind(job);
        pthread_detach(job->thread);
        job->abandoned = true;
    }
    pthread_mutex_unlock(&job->lock);
    if (done) pthread_join(job->thread, NULL);
    return status;
}

smelt_status compile_on_thread(const struct compiler *compiler, const struct compile_request *request,
                               double seconds, struct compile_result *result) {
    struct job *job = make_job(compiler, request);
    if (!job) return fail_out_of_memory(request->bitcode_size);
    if (!start(job)) {
        free_job(job);
        return compiler->compile(request, result);
    }
    smelt_status status = wait_for(job, seconds, request->progress);
    if (status != SMELT_OK) {
        if (status == SMELT_ERROR_TIMEOUT)
            snprintf(result->message, sizeof result->message, "LLVM took longer than %.0f seconds", seconds);
        else
            snprintf(result->message, sizeof result->message, "the call was interrupted");
        return status;
    }
    status = job->status;
    *result = job->result;
    free_job(job);
    return status;
}
