#include "frontend/once.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "frontend/cache_lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* How long to wait for another process: it may be stopped. Most compiles take a fraction of a second. */
#define PATIENCE_SECONDS 10

/* Freed by the last of its users: the thread that does the work, and those that wait for it. */
struct once {
    struct hash key;
    pthread_t owner; /* who does it */
    int users;
    bool left; /* left by an interrupted thread: the first waiting thread takes it over */
    bool done;
    smelt_status status;
    char *message;
    struct text result;
    cache_lock among_processes;
    struct once *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of it */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct once *works;

/* No thread of a forked child does them. */
static void after_fork(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, NULL);
    works = NULL;
}

static void register_fork(void) {
    (void)pthread_atfork(NULL, NULL, after_fork);
}

struct hash once_key(const char *kind, struct hash key) {
    struct hasher *hasher = hasher_create();
    hasher_add_string(hasher, kind);
    hasher_add(hasher, &key, sizeof key);
    return hasher_finish(hasher);
}

/* ---- With the lock held. */

/* By another thread: a thread that needs its own unfinished work, in a log callback, does it twice. */
static struct once *find(struct hash key) {
    for (struct once *work = works; work; work = work->next)
        if (work->key.low == key.low && work->key.high == key.high &&
            !pthread_equal(work->owner, pthread_self()))
            return work;
    return NULL;
}

static void remove_work(struct once *gone) {
    for (struct once **at = &works; *at; at = &(*at)->next) {
        if (*at != gone) continue;
        *at = gone->next;
        return;
    }
}

static struct once *add(struct hash key) {
    struct once *work = calloc(1, sizeof *work);
    if (!work) return NULL;
    *work =
        (struct once){.key = key, .owner = pthread_self(), .users = 1, .among_processes = -1, .next = works};
    works = work;
    return work;
}

static void let_go(struct once *work) {
    if (--work->users) return;
    remove_work(work);
    free(work->message);
    text_free(&work->result);
    free(work);
}

static void wait_a_while(void) {
    if (!interrupt_of_call()) {
        pthread_cond_wait(&changed, &lock);
        return;
    }
    struct timespec until = clock_after(CLOCK_REALTIME, INTERRUPT_LOOK_SECONDS);
    background_pause();
    (void)pthread_cond_timedwait(&changed, &lock, &until);
    background_resume();
}

static smelt_status take_result(const struct once *work, struct text *result) {
    if (work->status != SMELT_OK)
        return fail(work->status, "%s", work->message ? work->message : "out of memory");
    text_append(result, work->result.data, work->result.length);
    return result->failed ? fail_out_of_memory(work->result.length) : SMELT_OK;
}

/* Until it is done, or *mine to do. */
static smelt_status wait_for(struct once *work, struct once **mine, struct text *result) {
    smelt_status status = SMELT_OK;
    work->users++;
    while (!work->done && !work->left && (status = interrupt_check()) == SMELT_OK) wait_a_while();
    if (status == SMELT_OK && work->left) {
        work->left = false;
        work->owner = pthread_self();
        *mine = work;
        return SMELT_OK;
    }
    if (status == SMELT_OK) status = take_result(work, result);
    let_go(work);
    return status;
}

/* ---- */

static smelt_status begin_in_process(struct hash key, struct once **mine, struct text *result) {
    pthread_mutex_lock(&lock);
    struct once *work = find(key);
    smelt_status status = SMELT_OK;
    if (work)
        status = wait_for(work, mine, result);
    else
        status = (*mine = add(key)) ? SMELT_OK : fail_out_of_memory(sizeof **mine);
    pthread_mutex_unlock(&lock);
    return status;
}

smelt_status once_begin(struct hash key, struct once **mine, struct text *result) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork);
    *mine = NULL;
    TRY(begin_in_process(key, mine, result));
    if (!*mine) return SMELT_OK;
    smelt_status status = cache_lock_key(key, PATIENCE_SECONDS, &(*mine)->among_processes);
    if (status == SMELT_OK) return SMELT_OK;
    once_end(*mine, status, NULL);
    *mine = NULL;
    return status;
}

/* With the lock held: hands the result to those that wait. */
static void give_result(struct once *work, smelt_status status, const struct bytes *result) {
    if (status == SMELT_OK && result) text_append(&work->result, result->data, result->size);
    if (status != SMELT_OK) work->message = string_copy(smelt_error(), strlen(smelt_error()));
    work->status = work->result.failed ? SMELT_ERROR_OUT_OF_MEMORY : status;
    work->done = true;
    remove_work(work);
}

void once_end(struct once *mine, smelt_status status, const struct bytes *result) {
    cache_unlock(mine->among_processes);
    pthread_mutex_lock(&lock);
    mine->among_processes = -1;
    if (status == SMELT_ERROR_INTERRUPTED)
        mine->left = true;
    else if (mine->users > 1)
        give_result(mine, status, result);
    pthread_cond_broadcast(&changed);
    let_go(mine);
    pthread_mutex_unlock(&lock);
}
