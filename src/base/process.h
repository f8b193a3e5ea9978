/* A child process with its input given, its output collected, and limits on time and memory. */
#ifndef SMELT_BASE_PROCESS_H
#define SMELT_BASE_PROCESS_H

#include "base/error.h"
#include "base/text.h"

struct process_request {
    const char *const *arguments; /* argv, ended by NULL; arguments[0] is looked up in PATH */
    const char *input;            /* written to its standard input */
    size_t input_size;
    double seconds;        /* wall-clock limit */
    size_t memory_bytes;   /* limit on its address space */
};

struct process_result {
    struct text output;   /* standard output */
    struct text messages; /* standard error */
    int exit_code;        /* -1 if it was ended by a signal */
    int signal;
    bool timed_out;
};

/* Runs the child to its end. Returns a failure only if it could not be started or watched (then SMELT_ERROR_NO_COMPILER
 * for "no such program", else SMELT_ERROR_IO); how the child ended is in `result`, which the caller frees. */
smelt_status process_run(const struct process_request *request, struct process_result *result);
void process_result_free(struct process_result *result);

#endif
