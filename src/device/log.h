/* Kernels' log lines: kept while the launch runs and passed on when it has ended. */
#ifndef SMELT_DEVICE_LOG_H
#define SMELT_DEVICE_LOG_H

#include "abi/log_words.h"
#include "base/error.h"

#include <pthread.h>

struct log_record;

/* The lines of a launch. Written by several threads, under the lock. */
struct launch_log {
    pthread_mutex_t lock;
    struct log_record *last; /* newest first */
    uint64_t kept, dropped;
};

/* The thread that logged. */
struct log_place {
    uint64_t group; /* number of its threadgroup, x fastest */
    uint32_t index; /* in the threadgroup */
    uint32_t thread[3];
};

/* Reads texts outside the host's memory: copies those of the `bytes` at `address` before a zero to `to`.
 * Returns their number. */
typedef size_t log_text_reader(void *context, char *to, uint64_t address, size_t bytes);

void launch_log_open(struct launch_log *log);

/* Keeps a call (abi/log_words.h), or counts it as dropped. `read`: NULL for texts in the host's memory.
 * Callable on a kernel's stack. */
void launch_log_add(struct launch_log *log, const struct log_place *place, uint32_t count,
                    const uint64_t *words, log_text_reader *read, void *context);

/* Passes the lines to their receiver, as lines of `kernel`, reports dropped ones, counts them in `info` (may
 * be NULL), and closes the log. Keeps the thread's error message. */
void launch_log_deliver(struct launch_log *log, const char *kernel, smelt_run_info *info);

#endif
