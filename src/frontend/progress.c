/* smelt_set_progress: a thread that reports what is being compiled once that has taken a second. */
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "frontend/compiling.h"
#include "smelt/smelt.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#define SECOND INT64_C(1000000000)
#define FIRST_LOOK SECOND
#define NEXT_LOOK (SECOND / 10)
/* A shorter pause between compiles does not restart the clock: each stage of a kernel may be a process of its
 * own. */
#define PAUSE (SECOND / 5)

/* Further compiles at the same time are counted, but not compared. */
#define MOST_VIEWS 16

/* The callback is running on this thread, which holds `lock`. */
static _Thread_local bool within_callback;

/* Guards all below, and is held while the callback runs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static smelt_progress_callback *callback;
static void *callback_context;
static bool has_thread, thread_waits; /* for a compile to begin */
static bool busy, shown;
static int64_t busy_since, idle_since;

static int64_t start_of(const struct compiling_view *view) {
    return view->finished_count ? view->finished[0].start : view->since;
}

/* The compile that began first. One that has not reached its first stage counts as the youngest. */
static const struct compiling_view *oldest_of(const struct compiling_view *views, int count) {
    const struct compiling_view *oldest = &views[0];
    for (int i = 1; i < count; i++) {
        int64_t start = start_of(&views[i]), least = start_of(oldest);
        if (start && (!least || start < least)) oldest = &views[i];
    }
    return oldest;
}

/* Between two stages, the last one. */
static const char *stage_of(const struct compiling_view *view) {
    if (view->stage != COMPILE_STAGE_NONE) return compile_stage_name(view->stage);
    int count = view->finished_count;
    return count ? compile_stage_name(view->finished[count - 1].kind) : "start";
}

static void call(const smelt_progress *progress) {
    within_callback = true;
    callback(progress, callback_context);
    within_callback = false;
}

static void show(int64_t now) {
    struct compiling_view views[MOST_VIEWS];
    int count = compiling_list(views, MOST_VIEWS);
    if (!count) return;
    const struct compiling_view *view = oldest_of(views, count < MOST_VIEWS ? count : MOST_VIEWS);
    smelt_progress progress = {.kernel = view->name,
                               .stage = stage_of(view),
                               .seconds = (double)(now - busy_since) / SECOND,
                               .others = count - 1};
    call(&progress);
    shown = true;
}

static void clear(int64_t now) {
    if (!shown) return;
    smelt_progress progress = {.kernel = "", .seconds = (double)(now - busy_since) / SECOND};
    if (callback) call(&progress);
    shown = false;
}

static void wait_until(int64_t due) {
    struct timespec time = {due / SECOND, due % SECOND};
    (void)pthread_cond_timedwait(&changed, &lock, &time);
}

static void *watch(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        if (!callback || !busy) {
            thread_waits = true;
            (void)pthread_cond_wait(&changed, &lock);
            thread_waits = false;
            continue;
        }
        int64_t now = clock_nanoseconds(), due = busy_since + FIRST_LOOK;
        if (now >= due) {
            show(now);
            due = now + NEXT_LOOK;
        }
        wait_until(due);
    }
    return NULL;
}

/* If the thread cannot be started, only the progress is missing. It blocks all signals. */
static void have_thread(void) {
    pthread_t thread;
    sigset_t all, before;
    if (has_thread) return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    has_thread = thread_start(&thread, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (has_thread) pthread_detach(thread);
}

static void note_change(void) {
    if (within_callback) return;
    pthread_mutex_lock(&lock);
    int64_t now = clock_nanoseconds();
    bool was_busy = busy;
    busy = compiling_list(NULL, 0) > 0;
    if (busy && !was_busy && now - idle_since > PAUSE) busy_since = now;
    if (!busy && was_busy) {
        idle_since = now;
        clear(now);
    }
    if (busy && callback) have_thread();
    if (busy && thread_waits) pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void make_condition(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* A forked child has no thread yet, and compiles nothing. */
static void after_fork(void) {
    pthread_mutex_init(&lock, NULL);
    make_condition();
    has_thread = thread_waits = busy = shown = false;
}

static void prepare(void) {
    make_condition();
    (void)pthread_atfork(NULL, NULL, after_fork);
}

void smelt_set_progress(smelt_progress_callback *new_callback, void *context) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (within_callback) {
        log_line(SMELT_LOG_WARNING,
                 "smelt_set_progress was called by a progress callback, which must not call smelt; "
                 "the callback is not replaced");
        return;
    }
    pthread_once(&once, prepare);
    compiling_observe(note_change);
    pthread_mutex_lock(&lock);
    clear(clock_nanoseconds());
    callback = new_callback;
    callback_context = context;
    pthread_mutex_unlock(&lock);
    note_change();
}
