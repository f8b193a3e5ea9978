/* One thread, started at the first alarm, sleeps until the earliest deadline. */
#include "base/alarm.h"
#include "base/clock.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

struct alarm {
    struct alarm *next;
    double deadline;
    void (*expire)(void *context);
    void *context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct alarm *alarms;
static bool thread_runs;

static void *watch(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        double now = clock_seconds(), earliest = now + 3600;
        for (struct alarm *alarm = alarms; alarm; alarm = alarm->next) {
            if (alarm->expire && alarm->deadline <= now) {
                alarm->expire(alarm->context);
                alarm->expire = NULL;
            }
            if (alarm->expire && alarm->deadline < earliest) earliest = alarm->deadline;
        }
        struct timespec until = {.tv_sec = (time_t)earliest};
        until.tv_nsec = (long)((earliest - (double)until.tv_sec) * 1e9);
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    return NULL;
}

/* 0 or the reason. */
static int start_thread(void) {
    if (thread_runs) return 0;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int error = thread_start_background(watch);
    thread_runs = error == 0;
    return error;
}

smelt_status alarm_arm(double seconds, void (*expire)(void *), void *context, struct alarm **out) {
    struct alarm *alarm = calloc(1, sizeof *alarm);
    if (!alarm) return fail_out_of_memory(sizeof *alarm);
    *alarm = (struct alarm){.deadline = clock_seconds() + seconds, .expire = expire, .context = context};
    pthread_mutex_lock(&lock);
    int error = start_thread();
    if (!error) {
        alarm->next = alarms;
        alarms = alarm;
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&lock);
    if (error) {
        free(alarm);
        return fail(SMELT_ERROR_OUT_OF_MEMORY, "the thread that watches time-outs could not be started: %s",
                    thread_reason(error));
    }
    *out = alarm;
    return SMELT_OK;
}

void alarm_disarm(struct alarm *alarm) {
    if (!alarm) return;
    pthread_mutex_lock(&lock);
    for (struct alarm **at = &alarms; *at; at = &(*at)->next) {
        if (*at != alarm) continue;
        *at = alarm->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    free(alarm);
}

/* A forked child has no such thread, and starts its own. */
static void after_fork(void) {
    pthread_mutex_init(&lock, NULL);
    alarms = NULL;
    thread_runs = false;
}

__attribute__((constructor)) static void register_fork(void) {
    (void)pthread_atfork(NULL, NULL, after_fork);
}
