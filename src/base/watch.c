#include "base/watch.h"
#include "base/interrupt.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Rounds follow each other quickly at first: who is told may be busy for a while, with copies of large arrays
 * for instance. */
#define FIRST_PAUSE_NANOSECONDS 50000
#define FIRST_ROUNDS 3000
#define LAST_PAUSE_NANOSECONDS 1000000

struct interrupt_watch {
    struct interrupt_watch *next;
    smelt_interrupt *interrupt;
    void (*act)(void *context);
    void *context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `watches`, and the watcher's start */
static struct interrupt_watch *watches;
static bool (*_Atomic tell_all)(unsigned round);
static atomic_bool watching; /* the watcher is there */

/* True: there must be another round. */
static bool look(unsigned round) {
    pthread_mutex_lock(&lock);
    for (struct interrupt_watch *watch = watches; watch; watch = watch->next) {
        if (!watch->act || !interrupt_is_raised(watch->interrupt)) continue;
        watch->act(watch->context);
        watch->act = NULL;
    }
    pthread_mutex_unlock(&lock);
    bool (*tell)(unsigned) = atomic_load(&tell_all);
    return tell && tell(round);
}

static void *watch_interrupts(void *unused) {
    (void)unused;
    for (;;) {
        interrupt_await_any();
        for (unsigned round = 0; look(round); round++) {
            struct timespec pause = {.tv_nsec = round < FIRST_ROUNDS ? FIRST_PAUSE_NANOSECONDS
                                                                     : LAST_PAUSE_NANOSECONDS};
            nanosleep(&pause, NULL);
        }
    }
    return NULL;
}

/* A forked child has no watcher, and starts its own. */
static void after_fork(void) {
    pthread_mutex_init(&lock, NULL);
    atomic_store(&watching, false);
    watches = NULL;
}

__attribute__((constructor)) static void register_fork(void) {
    (void)pthread_atfork(NULL, NULL, after_fork);
}

static smelt_status have_watcher(void) {
    if (atomic_load_explicit(&watching, memory_order_acquire)) return SMELT_OK;
    pthread_mutex_lock(&lock);
    int error = atomic_load(&watching) ? 0 : thread_start_background(watch_interrupts);
    atomic_store(&watching, error == 0);
    pthread_mutex_unlock(&lock);
    if (!error) return SMELT_OK;
    return fail(SMELT_ERROR_OUT_OF_MEMORY, "the thread that watches interrupts could not be started: %s",
                thread_reason(error));
}

smelt_status interrupt_watch_all(bool (*tell)(unsigned round)) {
    if (!atomic_load(&tell_all)) atomic_store(&tell_all, tell);
    return have_watcher();
}

smelt_status interrupt_watch_open(smelt_interrupt *interrupt, void (*act)(void *), void *context,
                                  struct interrupt_watch **out) {
    struct interrupt_watch *watch = calloc(1, sizeof *watch);
    if (!watch) return fail_out_of_memory(sizeof *watch);
    smelt_status status = have_watcher();
    if (status != SMELT_OK) {
        free(watch);
        return status;
    }
    *watch = (struct interrupt_watch){.interrupt = interrupt, .act = act, .context = context};
    pthread_mutex_lock(&lock);
    watch->next = watches;
    watches = watch;
    pthread_mutex_unlock(&lock);
    /* The watcher may have looked before. */
    if (interrupt_is_raised(interrupt)) interrupt_tell_again();
    *out = watch;
    return SMELT_OK;
}

void interrupt_watch_close(struct interrupt_watch *watch) {
    if (!watch) return;
    pthread_mutex_lock(&lock);
    for (struct interrupt_watch **at = &watches; *at; at = &(*at)->next) {
        if (*at != watch) continue;
        *at = watch->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    free(watch);
}
