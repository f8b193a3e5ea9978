/* Threads with enough stack, regardless of the process's limit (ulimit -s). */
#ifndef SMELT_BASE_THREAD_H
#define SMELT_BASE_THREAD_H

#include <pthread.h>

/* pthread_create with a stack of at least 2 MiB, which is enough for a compile up to the compiler's own
 * thread. */
int thread_start(pthread_t *thread, void *(*work)(void *), void *argument);

/* Starts a thread that works for the whole process and never ends. The host's signals are blocked there. 0 or
 * an error. */
int thread_start_background(void *(*work)(void *));

/* Why a thread could not be started, for a message. */
const char *thread_reason(int error);

#endif
