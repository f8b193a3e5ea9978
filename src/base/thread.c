#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#define LEAST_STACK_BYTES ((size_t)2 << 20)

int thread_start(pthread_t *thread, void *(*work)(void *), void *argument) {
    pthread_attr_t attributes;
    size_t usual = 0;
    pthread_attr_init(&attributes);
    (void)pthread_attr_getstacksize(&attributes, &usual);
    if (usual < LEAST_STACK_BYTES) (void)pthread_attr_setstacksize(&attributes, LEAST_STACK_BYTES);
    int error = pthread_create(thread, &attributes, work, argument);
    pthread_attr_destroy(&attributes);
    return error;
}

int thread_start_background(void *(*work)(void *)) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = thread_start(&thread, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) pthread_detach(thread);
    return error;
}

const char *thread_reason(int error) {
    return error == EAGAIN ? "this process has reached a limit on processes and threads, or on memory "
                             "(ulimit -u, ulimit -v)"
                           : strerror(error);
}
