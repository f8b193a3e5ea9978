/* A child process with its input given, its output collected, and limits on time and memory. */
#ifndef SMELT_BASE_PROCESS_H
#define SMELT_BASE_PROCESS_H

#include "base/error.h"
#include "base/text.h"

struct process_request {
    const char *const *arguments; /* argv, ended by NULL; arguments[0] is a path, or looked up in PATH */
    const char *input;            /* what it finds as its standard input */
    size_t input_size;
    const char *extra; /* what it finds as descriptor 3 (/dev/fd/3); NULL: nothing */
    size_t extra_size;
    double seconds;      /* limit on its processor time; 0: none */
    size_t memory_bytes; /* limit on its address space; 0: none */
    size_t output_bytes; /* limit on each of its outputs: SIGXFSZ; 0: none */
};

#define PROCESS_PATIENCE 10

struct process_result {
    struct text output;   /* standard output */
    struct text messages; /* standard error */
    int exit_code;        /* -1 if it was ended by a signal */
    int signal;
    bool timed_out;
    char *pipe; /* the named pipe that it waited for and was ended over (heap memory); NULL: none */
};

/* Runs the child to its end, in a process group of its own, which is ended with it when its time is over.
 * Holds for every host: one that ignores SIGCHLD or waits for any child takes no result from us; descriptors
 * of the host do not reach the child; a fork of the host at the same time does not hold it up. Returns a
 * failure only if it could not be started or watched (SMELT_ERROR_NO_COMPILER for "no such program", else
 * SMELT_ERROR_IO or SMELT_ERROR_OUT_OF_MEMORY), or if the call that the thread is in was interrupted, which
 * ends the child (SMELT_ERROR_INTERRUPTED); how the child ended is in `result`, which the caller frees.
 * A busy machine does not shorten the limit on processor time, which counts whole seconds. A child that only
 * waits is ended after PROCESS_PATIENCE times as long by the clock; one that waits to open a named pipe, at
 * once. Limits take effect a moment after the child's start; of its outputs no more than output_bytes is ever
 * collected, and a child that wrote more counts as ended by SIGXFSZ whatever it did then. */
smelt_status process_run(const struct process_request *request, struct process_result *result);
/* The stack a child gets where this process was given much less (ulimit -s), if the system allows it. */
#define PROCESS_STACK_BYTES ((size_t)8 << 20)

/* The limit on a child's address space where `wanted` bytes are asked for: no more than this process's own.
 */
size_t process_memory_limit(size_t wanted);

void process_result_free(struct process_result *result);

#endif
