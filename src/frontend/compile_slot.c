#include "frontend/compile_slot.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/interrupt.h"

#include <pthread.h>
#include <sched.h>

/* Other processes may compile for long, and new work should not wait for them: some more may run. */
#define PATIENCE_SECONDS 1

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given_back = PTHREAD_COND_INITIALIZER;
static int taken;

/* A forked child runs no compiler. */
static void after_fork(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&given_back, NULL);
    taken = 0;
}

static void register_fork(void) {
    (void)pthread_atfork(NULL, NULL, after_fork);
}

int compile_slots(void) {
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
    return count > 0 ? count : 1;
}

static void wait_a_while(void) {
    if (!interrupt_of_call()) {
        pthread_cond_wait(&given_back, &lock);
        return;
    }
    struct timespec until = clock_after(CLOCK_REALTIME, INTERRUPT_LOOK_SECONDS);
    (void)pthread_cond_timedwait(&given_back, &lock, &until);
}

static void give(void) {
    pthread_mutex_lock(&lock);
    if (taken) taken--;
    pthread_cond_signal(&given_back);
    pthread_mutex_unlock(&lock);
}

/* The background's one compile takes no slot: no caller waits for it, and none should wait because of it. */
smelt_status compile_slot_take(struct compile_slot *slot) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const int count = compile_slots();
    smelt_status status = SMELT_OK;
    slot->is_taken = !background_is_here();
    if (!slot->is_taken) return SMELT_OK;
    pthread_once(&once, register_fork);
    pthread_mutex_lock(&lock);
    while (taken >= count && (status = interrupt_check()) == SMELT_OK) wait_a_while();
    if (status == SMELT_OK) taken++;
    pthread_mutex_unlock(&lock);
    TRY(status);
    status = cache_lock_number(count, PATIENCE_SECONDS, &slot->among_processes);
    if (status != SMELT_OK) give();
    return status;
}

void compile_slot_give(struct compile_slot *slot) {
    if (!slot->is_taken) return;
    cache_unlock(slot->among_processes);
    give();
}
