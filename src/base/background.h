/* Work that no caller waits for: one thread of the process, started at the first job, runs jobs one after
 * another.
 *
 * Exit. A process that exits interrupts the running job (its call's interrupt is raised), drops the others,
 * and waits a moment for the thread to notice. It waits without limit for a call between
 * background_enter_library and background_leave_library.
 * Fork. A fork of the host waits until the thread is at a place where it holds nothing: asleep, or in
 * background_pause. The child has no such thread; jobs that were queued or running
 * are idle there. */
#ifndef SMELT_BASE_BACKGROUND_H
#define SMELT_BASE_BACKGROUND_H

#include "base/error.h"

enum background_state {
    BACKGROUND_IDLE,    /* not queued: new, dropped, or interrupted */
    BACKGROUND_QUEUED,  /* for the thread */
    BACKGROUND_RUNNING, /* on the thread, or on that of a caller who waits */
    BACKGROUND_ENDED
};

/* Zero-initialised except for its functions. Lives in what `hold` keeps. */
struct background_job {
    smelt_status (*run)(struct background_job *job);
    /* Keep, and give up, what the job needs: called when it is queued, and when it no longer is. */
    void (*hold)(struct background_job *job);
    void (*let_go)(struct background_job *job);
    struct background_job *next;
    enum background_state state; /* this and the next two: of background.c alone */
    unsigned process;            /* the forks before the process that set the state */
    int64_t due;                 /* while queued: the time of the clock before which it does not begin */
    smelt_status status;         /* where it has ended … */
    char *message;               /* the message of a failure, freed by the owner */
};

/* Queues the job if it is idle; it stays idle if no thread can be started. */
void background_start(struct background_job *job);

/* The same, but the job begins only after so many seconds (at most one), unless background_start or
 * background_wait is called for it before. */
void background_start_later(struct background_job *job, double seconds);

/* Whether it is queued or running. */
bool background_is_pending(const struct background_job *job);

/* Waits for the end of the job and returns its result with its message; runs it on the calling thread if it
 * has not begun. INTERRUPTED: the caller was; the job is not. */
smelt_status background_wait(struct background_job *job);

/* Around a wait for something outside the process, during which the calling thread holds no lock: a fork may
 * happen then. Do nothing on other threads than this one. */
void background_pause(void);
void background_resume(void);

/* Around a job's call into another library whose exit handlers must not run during the call: a process that
 * exits waits for the call to end. INTERRUPTED: the process is already exiting; do not make the call. Both do
 * nothing on other threads. */
smelt_status background_enter_library(void);
void background_leave_library(void);

/* Whether the calling thread is the background's. */
bool background_is_here(void);

#endif
