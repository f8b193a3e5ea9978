#include "graph/crew.h"
#include "base/interrupt.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct crew {
    const smelt_compiled *compiled;
    crew_step *run;
    void *context;
    smelt_interrupt *interrupt; /* of the caller's call */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t *begun, *ended; /* bits of steps */
    int left;                /* steps that have not begun */
    smelt_status status;     /* the first failure */
    char *message;
};

static bool has(const uint64_t *bits, int step) {
    return bits[step / 64] >> step % 64 & 1;
}

static void set(uint64_t *bits, int step) {
    bits[step / 64] |= UINT64_C(1) << step % 64;
}

static bool is_ready(const struct crew *crew, int step) {
    const uint64_t *needed = plan_needed(crew->compiled, step);
    if (has(crew->begun, step)) return false;
    for (int w = 0; w < crew->compiled->needed_words; w++)
        if (needed[w] & ~crew->ended[w]) return false;
    return true;
}

/* Under the lock. The first step that can begin; -1: none will, or this thread is not needed. */
static int next_step(struct crew *crew) {
    while (crew->left && crew->status == SMELT_OK) {
        for (int step = 0; step < crew->compiled->step_count; step++)
            if (is_ready(crew, step)) return step;
        pthread_cond_wait(&crew->changed, &crew->lock);
    }
    return -1;
}

static void run_one(struct crew *crew, int step) {
    set(crew->begun, step);
    crew->left--;
    pthread_mutex_unlock(&crew->lock);
    smelt_status status = crew->run(crew->context, step);
    pthread_mutex_lock(&crew->lock);
    set(crew->ended, step);
    if (status != SMELT_OK && crew->status == SMELT_OK) {
        crew->status = status;
        crew->message = strdup(smelt_error());
    }
    pthread_cond_broadcast(&crew->changed);
}

static void *work(void *argument) {
    struct crew *crew = argument;
    smelt_interrupt *outer = interrupt_begin_call(crew->interrupt);
    pthread_mutex_lock(&crew->lock);
    for (int step; (step = next_step(crew)) >= 0;) run_one(crew, step);
    pthread_mutex_unlock(&crew->lock);
    interrupt_end_call(outer);
    return NULL;
}

smelt_status crew_run(const smelt_compiled *compiled, crew_step *run, void *context) {
    struct crew crew = {.compiled = compiled,
                        .run = run,
                        .context = context,
                        .interrupt = interrupt_of_call(),
                        .left = compiled->step_count};
    pthread_t threads[GRAPH_MOST_STREAMS];
    size_t words = (size_t)compiled->needed_words;
    int helpers = 0;
    crew.begun = calloc(2 * words + 1, sizeof *crew.begun);
    if (!crew.begun) return fail_out_of_memory(2 * words * sizeof *crew.begun);
    crew.ended = crew.begun + words;
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.changed, NULL);
    /* Fewer threads do as well. */
    while (helpers + 1 < compiled->streams && helpers + 1 < compiled->step_count &&
           thread_start(&threads[helpers], work, &crew) == 0)
        helpers++;
    (void)work(&crew);
    for (int i = 0; i < helpers; i++) pthread_join(threads[i], NULL);
    pthread_cond_destroy(&crew.changed);
    pthread_mutex_destroy(&crew.lock);
    free(crew.begun);
    smelt_status status = crew.status;
    if (status != SMELT_OK) error_record("%s", crew.message ? crew.message : "a step failed");
    free(crew.message);
    return status;
}
