#include "bench/cpu/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Waits of a worker that is spinning before it sleeps: some 50 us. */
#define SPINS 1000
#define MAX_THREADS 256

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;
    atomic_uint generation; /* grows with each job */
    atomic_int active;      /* workers that have not finished the job */
    atomic_llong next;
    int workers; /* in addition to the caller */
    bool started;
    team_piece *piece;
    void *job;
    int64_t count;
} team = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

static void work(void) {
    for (;;) {
        int64_t index = atomic_fetch_add(&team.next, 1);
        if (index >= team.count) return;
        team.piece(team.job, index);
    }
}

static void wait_for_work(unsigned seen) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load(&team.generation) != seen) return;
        __builtin_ia32_pause();
    }
    pthread_mutex_lock(&team.lock);
    while (atomic_load(&team.generation) == seen) pthread_cond_wait(&team.work, &team.lock);
    pthread_mutex_unlock(&team.lock);
}

static void *worker(void *unused) {
    (void)unused;
    for (unsigned seen = 0;; seen++) {
        wait_for_work(seen);
        work();
        atomic_fetch_sub(&team.active, 1);
    }
    return NULL;
}

/* Binds the thread to the CPU of this index among those the process may use. */
static void pin(pthread_t thread, int index) {
    cpu_set_t allowed, one;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) == 0) return;
    int wanted = index % CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || wanted-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)pthread_setaffinity_np(thread, sizeof one, &one);
        return;
    }
}

void team_pin_caller(void) {
    pin(pthread_self(), 0);
}

void team_start(int threads) {
    if (team.started) return;
    team.started = true;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    for (int i = 0; i < threads - 1; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, NULL) != 0) return;
        pin(thread, i + 1);
        pthread_detach(thread);
        team.workers++;
    }
}

int team_size(void) {
    return team.workers + 1;
}

void team_run(team_piece *piece, void *job, int64_t count) {
    team.piece = piece;
    team.job = job;
    team.count = count;
    atomic_store(&team.next, 0);
    atomic_store(&team.active, team.workers);
    pthread_mutex_lock(&team.lock);
    atomic_fetch_add(&team.generation, 1);
    pthread_cond_broadcast(&team.work);
    pthread_mutex_unlock(&team.lock);
    work();
    while (atomic_load(&team.active) > 0) __builtin_ia32_pause();
}
