#include "frontend/compiling.h"
#include "base/clock.h"
#include "base/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct compiling *running;
static void (*_Atomic observer)(void);
static _Thread_local struct compile_record *record_of_thread;

void compiling_observe(void (*changed)(void)) {
    atomic_store(&observer, changed);
}

static void tell_observer(void) {
    void (*changed)(void) = atomic_load(&observer);
    if (changed) changed();
}

/* A forked child runs none of them. */
static void after_fork(void) {
    pthread_mutex_init(&lock, NULL);
    running = NULL;
}

static void register_fork(void) {
    (void)pthread_atfork(NULL, NULL, after_fork);
}

void compiling_begin(struct compiling *compiling, const char *name) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork);
    memset(compiling, 0, sizeof *compiling);
    snprintf(compiling->name, sizeof compiling->name, "%s", name ? name : "");
    compiling->capture = trace_capture();
    bool shared = shared_memory_create(sizeof *compiling->progress, &compiling->memory);
    compiling->progress = shared ? compiling->memory.bytes : &compiling->own;
    pthread_mutex_lock(&lock);
    compiling->next = running;
    compiling->at = &running;
    if (running) running->at = &compiling->next;
    running = compiling;
    pthread_mutex_unlock(&lock);
    tell_observer();
}

static void trace_stage(const struct compile_stage *stage, uint32_t capture) {
    struct trace_slice slice = {.category = "compile",
                                .name = compile_stage_name(stage->kind),
                                .start = stage->start,
                                .end = stage->end};
    trace_integer(&slice, "instructions", (int64_t)stage->instructions);
    trace_add(capture, &slice);
}

static void record_stage(const struct compile_stage *stage) {
    struct compile_record *record = record_of_thread;
    if (record && record->count < COMPILE_RECORD_STAGES) record->stages[record->count++] = *stage;
}

void compiling_end(struct compiling *compiling) {
    struct compile_stage stages[COMPILE_MOST_STAGES];
    pthread_mutex_lock(&lock);
    *compiling->at = compiling->next;
    if (compiling->next) compiling->next->at = compiling->at;
    pthread_mutex_unlock(&lock);
    tell_observer();
    int count = compile_progress_read(compiling->progress, stages);
    for (int i = 0; i < count; i++) {
        if (compiling->capture) trace_stage(&stages[i], compiling->capture);
        record_stage(&stages[i]);
    }
    shared_memory_free(&compiling->memory);
}

static void describe(const struct compiling *compiling, struct compiling_view *view) {
    memcpy(view->name, compiling->name, sizeof view->name);
    view->stage = atomic_load(&compiling->progress->now);
    view->since = atomic_load(&compiling->progress->since);
    view->finished_count = compile_progress_read(compiling->progress, view->finished);
}

int compiling_list(struct compiling_view *views, int most) {
    int count = 0;
    pthread_mutex_lock(&lock);
    for (const struct compiling *c = running; c; c = c->next, count++)
        if (count < most) describe(c, &views[count]);
    pthread_mutex_unlock(&lock);
    return count;
}

void compile_record_begin(struct compile_record *record) {
    record->count = 0;
    record_of_thread = record;
}

void compile_record_end(void) {
    record_of_thread = NULL;
}
