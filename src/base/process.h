/* A child process with given input, collected output, and limits on time and memory. */
#ifndef SMELT_BASE_PROCESS_H
#define SMELT_BASE_PROCESS_H

#include "base/error.h"
#include "base/text.h"

struct process_request {
    const char *const *arguments; /* argv, ended by NULL; arguments[0] is a path, or looked up in PATH */
    const char *input;            /* its standard input */
    size_t input_size;
    const char *extra; /* its descriptor 3 (/dev/fd/3); NULL: nothing */
    size_t extra_size;
    const char *const *files; /* texts, its descriptors PROCESS_FIRST_FILE …; ended by NULL; may be NULL */
    int shared;               /* a descriptor of the caller's that is its descriptor 4, too; 0: none */
    double seconds;           /* limit on its processor time; 0: none */
    size_t memory_bytes;      /* limit on its address space; 0: none */
    size_t output_bytes;      /* limit on each of its outputs: SIGXFSZ; 0: none */
    /* Each may be NULL. `begin(turn)` is called just before the child starts, after all preparations; if it
     * fails, no child starts. `end(turn)` is called as soon as the child has ended or could not start. */
    smelt_status (*begin)(void *turn);
    void (*end)(void *turn);
    void *turn;
};

#define PROCESS_PATIENCE 10
#define PROCESS_FIRST_FILE 6
#define PROCESS_FILES 3 /* at most */

struct process_result {
    struct text output;   /* standard output */
    struct text messages; /* standard error */
    int exit_code;        /* -1 if it was ended by a signal */
    int signal;
    bool timed_out;
    double processor_seconds; /* that it and its own children used */
    char *pipe; /* the named pipe that it waited for when it was ended (heap memory); NULL: none */
};

/* Runs the child to its end, in a process group of its own, which ends with it when its time is over. Works
 * in every host: one that ignores SIGCHLD or waits for any child takes no result from us; the child inherits
 * no descriptors of the host; a concurrent fork of the host does not delay it. Returns a failure only if it
 * could not be started or watched (SMELT_ERROR_NO_COMPILER for "no such program", else SMELT_ERROR_IO or
 * SMELT_ERROR_OUT_OF_MEMORY), or if the thread's call was interrupted, which ends the child
 * (SMELT_ERROR_INTERRUPTED). `result`, which the caller frees, tells how the child ended. The limit on
 * processor time counts whole seconds and does not depend on the machine's load. A child that only waits is
 * ended after PROCESS_PATIENCE times this limit on the wall clock; one that waits to open a named pipe, at
 * once. Limits take effect shortly after the child's start. No more than output_bytes of an output is ever
 * collected; a child that wrote more counts as ended by SIGXFSZ. */
smelt_status process_run(const struct process_request *request, struct process_result *result);
/* The stack of a child if this process has much less (ulimit -s) and the system allows it. */
#define PROCESS_STACK_BYTES ((size_t)8 << 20)

/* The limit on a child's address space for a request of `wanted` bytes: at most this process's own. */
size_t process_memory_limit(size_t wanted);

void process_result_free(struct process_result *result);

#endif
