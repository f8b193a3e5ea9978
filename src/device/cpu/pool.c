#include "device/cpu/pool.h"
#include "base/clock.h"
#include "base/setting.h"
#include "base/thread.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "base/trace.h"
#include "device/cpu/arch/arch.h"
#include "device/cpu/interrupt.h"
#include "device/cpu/team.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_POOL_THREADS 256
/* A worker spins this long for the next job before it sleeps: waking costs more than this is worth. */
#define SPIN_SECONDS 50e-6

/* A thread that leaves its CPU to another process sleeps between looks at it: first for this long, and then
 * twice as long each time, up to the limit. A short job thus does not wait long for the thread at its end. */
#define FIRST_SLEEP_NANOSECONDS 10000
#define LONGEST_SLEEP_NANOSECONDS 1000000

#define JOB_OPEN (1U << 31) /* in `inside`: pool threads may enter the job */

struct pool {
    pthread_mutex_t callers; /* held by the caller whose job runs */
    atomic_uint generation;  /* grows with each job; sleepers wait for a change */
    atomic_int sleeping;
    int threads; /* in addition to the caller */
    bool started;
    /* The job. A pool thread enters it by counting itself in `inside` while JOB_OPEN is set. The caller waits
     * only for threads that have entered, not for those that wake when all pieces are taken. */
    atomic_uint inside;
    pool_pieces *pieces;
    void *job;
    const char *name;
    uint64_t count;
    _Atomic uint64_t next;
    bool (*is_busy)(void *job); /* NULL: no thread leaves its CPU */
    atomic_flag left;           /* a thread has left its CPU during this job */
    pthread_mutex_t failure_lock;
    smelt_status status;
    char *message;
};

static struct pool pool = {.callers = PTHREAD_MUTEX_INITIALIZER,
                           .left = ATOMIC_FLAG_INIT,
                           .failure_lock = PTHREAD_MUTEX_INITIALIZER};

static cpu_set_t allowed_cpus(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) == 0) CPU_SET(0, &set);
    return set;
}

int pool_size(void) {
    static atomic_int size;
    int known = atomic_load(&size);
    if (known) return known;
    const char *setting = getenv("SMELT_THREADS");
    cpu_set_t set = allowed_cpus();
    long wanted = CPU_COUNT(&set);
    if (setting) {
        char *end;
        long value = strtol(setting, &end, 10);
        if (*setting && !*end && value >= 1 && value <= MAX_POOL_THREADS)
            wanted = value;
        else
            log_line(SMELT_LOG_WARNING, "SMELT_THREADS is '%s', expected 1 to %d; using %ld", setting,
                     MAX_POOL_THREADS, wanted);
    }
    if (wanted > MAX_POOL_THREADS) wanted = MAX_POOL_THREADS;
    atomic_store(&size, (int)wanted);
    return (int)wanted;
}

static void keep_failure(smelt_status status) {
    pthread_mutex_lock(&pool.failure_lock);
    if (pool.status == SMELT_OK) {
        pool.status = status;
        pool.message = strdup(smelt_error());
    }
    pthread_mutex_unlock(&pool.failure_lock);
}

/* Takes the next pieces: a thread's share of a quarter of what is left. The first ones taken are many, which
 * costs little; the last ones are few, so that all threads end together. */
static bool take(uint64_t *first, uint64_t *last) {
    uint64_t share = 4 * (uint64_t)(pool.threads + 1);
    *first = atomic_load(&pool.next);
    do {
        if (*first >= pool.count) return false;
        uint64_t pieces = (pool.count - *first) / share;
        *last = *first + (pieces ? pieces : 1);
    } while (!atomic_compare_exchange_weak(&pool.next, first, *last));
    return true;
}

static void trace(struct trace_span span, uint64_t pieces, int64_t ranges) {
    struct trace_slice slice = {.category = "worker", .name = pool.name};
    trace_integer(&slice, "groups", (int64_t)pieces);
    trace_integer(&slice, "ranges", ranges);
    trace_end(span, &slice);
}

static void work(void) {
    struct trace_span span = trace_begin();
    uint64_t first, last, pieces = 0;
    int64_t ranges = 0;
    while (take(&first, &last)) {
        smelt_status status = pool.pieces(pool.job, first, last);
        if (status != SMELT_OK) keep_failure(status);
        pieces += last - first;
        ranges++;
    }
    if (span.capture && pieces) trace(span, pieces, ranges);
}

/* ---- Sleep. */

static void sleep_while_generation_is(unsigned seen) {
    atomic_fetch_add(&pool.sleeping, 1);
    while (atomic_load(&pool.generation) == seen)
        (void)syscall(SYS_futex, &pool.generation, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&pool.sleeping, 1);
}

/* Wakes one sleeper per piece, except for the caller's piece. The caller wakes all of them: if threads woke
 * each other, each in the chain would add its delay. */
static void wake_sleepers(void) {
    int64_t count = (int64_t)pool.count - 1;
    if (count < 1 || !atomic_load(&pool.sleeping)) return;
    if (count > pool.threads) count = pool.threads;
    (void)syscall(SYS_futex, &pool.generation, FUTEX_WAKE_PRIVATE, (int)count, NULL, NULL, 0);
}

static void wait_for_generation(unsigned seen) {
    double until = clock_seconds() + SPIN_SECONDS;
    while (atomic_load(&pool.generation) == seen) {
        if (clock_seconds() > until) {
            sleep_while_generation_is(seen);
            return;
        }
        arch_pause();
    }
}

/* ---- The threads. */

static bool enter_job(void) {
    unsigned inside = atomic_load(&pool.inside);
    do {
        if (!(inside & JOB_OPEN)) return false;
    } while (!atomic_compare_exchange_weak(&pool.inside, &inside, inside + 1));
    return true;
}

/* The first thread that enters the job sleeps while pieces are left and the other process is busy. */
static void leave_cpu_to_others(void) {
    struct timespec sleep = {.tv_nsec = FIRST_SLEEP_NANOSECONDS};
    if (!pool.is_busy || atomic_flag_test_and_set(&pool.left)) return;
    while (atomic_load(&pool.next) < pool.count && pool.is_busy(pool.job)) {
        nanosleep(&sleep, NULL);
        if ((sleep.tv_nsec *= 2) > LONGEST_SLEEP_NANOSECONDS) sleep.tv_nsec = LONGEST_SLEEP_NANOSECONDS;
    }
}

static void *pool_thread(void *start) {
    unsigned seen = (unsigned)(uintptr_t)start;
    for (;;) {
        wait_for_generation(seen);
        seen = atomic_load(&pool.generation);
        if (!enter_job()) continue;
        leave_cpu_to_others();
        work();
        atomic_fetch_sub(&pool.inside, 1);
    }
    return NULL;
}

/* Lets no more threads enter the job, and waits until those inside have left it. */
static void close_job(void) {
    atomic_fetch_and(&pool.inside, ~JOB_OPEN);
    for (unsigned spins = 0; atomic_load(&pool.inside); spins++) {
        if (spins < 4096)
            arch_pause();
        else
            sched_yield();
    }
}

/* ---- CPUs. Each pool thread is pinned to a CPU of its own if there are enough. The caller is not pinned: if
 * it runs on a pool thread's CPU, that thread moves to the CPU that is left over. */

/* Callers on different CPUs may take turns, and each move takes time. */
#define SECONDS_BETWEEN_MOVES 1e-3

static struct {
    pthread_t thread_of[CPU_SETSIZE];
    bool has_thread[CPU_SETSIZE];
    int left_over; /* the allowed CPU without a pool thread; -1: none, or pool threads are not pinned */
    double moved;  /* clock_seconds() of the last move */
} cpus = {.left_over = -1};

static bool pin(pthread_t thread, int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return pthread_setaffinity_np(thread, sizeof one, &one) == 0;
}

/* Pool thread i takes the allowed CPU number i + 1, counted from 0, modulo the number of allowed CPUs. */
static void place_thread(pthread_t thread, int index) {
    static struct setting setting = {"SMELT_PIN", {"1", "0"}, ATOMIC_FLAG_INIT};
    if (setting_choice(&setting) != 0) return;
    cpu_set_t set = allowed_cpus();
    int wanted = (index + 1) % CPU_COUNT(&set), first = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set)) continue;
        if (first < 0) first = cpu;
        if (wanted-- > 0) continue;
        if (!pin(thread, cpu)) return;
        cpus.thread_of[cpu] = thread;
        cpus.has_thread[cpu] = true;
        cpus.left_over = cpus.has_thread[first] ? -1 : first;
        return;
    }
}

static void leave_cpu_of_caller(void) {
    int cpu = cpus.left_over < 0 ? -1 : sched_getcpu();
    if (cpu < 0 || cpu >= CPU_SETSIZE || !cpus.has_thread[cpu]) return;
    double now = clock_seconds();
    if (now - cpus.moved < SECONDS_BETWEEN_MOVES) return;
    cpus.moved = now;
    if (!pin(cpus.thread_of[cpu], cpus.left_over)) return;
    cpus.thread_of[cpus.left_over] = cpus.thread_of[cpu];
    cpus.has_thread[cpus.left_over] = true;
    cpus.has_thread[cpu] = false;
    cpus.left_over = cpu;
}

int pool_start_thread(pthread_t *thread, void *(*work)(void *), void *argument) {
    /* A kernel's faults, the profiler's signal, the interrupts of launches. */
    static const int let_through[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    sigset_t most, before;
    sigfillset(&most);
    for (size_t i = 0; i < sizeof let_through / sizeof *let_through; i++) sigdelset(&most, let_through[i]);
    sigdelset(&most, interruption_signal);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    int error = thread_start(thread, work, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* For debuggers and traces. */
static void name_thread(pthread_t thread, int index) {
    char name[32]; /* the system takes 15 characters */
    snprintf(name, sizeof name, "smelt pool %d", (index + 1) % MAX_POOL_THREADS);
    (void)pthread_setname_np(thread, name);
}

static void start_threads(void) {
    if (pool.started) return;
    pool.started = true;
    int wanted = pool_size() - 1;
    uintptr_t generation = atomic_load(&pool.generation);
    for (int i = 0; i < wanted; i++) {
        pthread_t thread;
        int error = pool_start_thread(&thread, pool_thread, (void *)generation);
        if (error) {
            log_line(SMELT_LOG_WARNING, "only %d of %d threads could be started: %s", i + 1, wanted + 1,
                     thread_reason(error));
            break;
        }
        name_thread(thread, i);
        place_thread(thread, i);
        pthread_detach(thread);
        pool.threads++;
    }
}

/* Until the jobs of others are done. INTERRUPTED. */
static smelt_status wait_for_turn(void) {
    if (!interrupt_of_call()) {
        pthread_mutex_lock(&pool.callers);
        return SMELT_OK;
    }
    if (pthread_mutex_trylock(&pool.callers) == 0) return SMELT_OK;
    for (;;) {
        TRY(interrupt_check());
        struct timespec until = clock_after(CLOCK_REALTIME, INTERRUPT_LOOK_SECONDS);
        if (pthread_mutex_timedlock(&pool.callers, &until) == 0) return SMELT_OK;
    }
}

/* Whether the pool's threads and the caller leave no CPU idle. */
static bool takes_all_cpus(void) {
    cpu_set_t set = allowed_cpus();
    return pool.threads + 1 >= CPU_COUNT(&set);
}

/* `inside` is counted for ThreadSanitizer, which does not see how OpenMP synchronises. */
static void work_in_team(void *unused) {
    (void)unused;
    atomic_fetch_add(&pool.inside, 1);
    work();
    atomic_fetch_sub(&pool.inside, 1);
}

static bool run_in_team(void) {
    if (pool.is_busy) return false;
    atomic_store(&pool.inside, 0); /* closed to the pool's own threads */
    return pool_team_run(work_in_team, pool.threads + 1) && atomic_load(&pool.inside) == 0;
}

static void run_on_own_threads(void) {
    atomic_store(&pool.inside, JOB_OPEN);
    atomic_fetch_add(&pool.generation, 1);
    wake_sleepers();
    work();
    close_job();
}

smelt_status pool_run_beside(pool_pieces *pieces, void *job, uint64_t count, const char *name,
                             bool (*is_busy)(void *job)) {
    TRY(wait_for_turn());
    start_threads();
    leave_cpu_of_caller();
    pool.is_busy = is_busy && takes_all_cpus() ? is_busy : NULL;
    atomic_flag_clear(&pool.left);
    pool.pieces = pieces;
    pool.job = job;
    pool.name = name;
    pool.count = count;
    pool.status = SMELT_OK;
    pool.message = NULL;
    atomic_store(&pool.next, 0);
    if (!run_in_team()) run_on_own_threads();
    smelt_status status = pool.status;
    char *message = pool.message;
    pthread_mutex_unlock(&pool.callers);
    if (status != SMELT_OK) error_record("%s", message ? message : "a worker failed");
    free(message);
    return status;
}

smelt_status pool_run(pool_pieces *pieces, void *job, uint64_t count, const char *name) {
    return pool_run_beside(pieces, job, count, name, NULL);
}

/* ---- A forked child has none of the threads: it starts its own at its next job. */

static void after_fork(void) {
    pthread_mutex_init(&pool.callers, NULL);
    pthread_mutex_init(&pool.failure_lock, NULL);
    memset(&cpus, 0, sizeof cpus);
    cpus.left_over = -1;
    pool.threads = 0;
    pool.started = false;
    atomic_store(&pool.sleeping, 0);
    atomic_store(&pool.inside, 0);
    pool_team_after_fork();
}

__attribute__((constructor)) static void register_fork(void) {
    (void)pthread_atfork(NULL, NULL, after_fork);
}
