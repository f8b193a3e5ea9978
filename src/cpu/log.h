/* What kernels log: lines are kept while the launch runs and handed over when it has ended.
 *
 * A log call arrives as words (prelude/metal_logging writes them):
 *   level; arguments | 256 where they have four words each;
 *   address and bytes of subsystem, category and format; then, for n arguments,
 *   n tags (kind | bytes of a component << 8 | components << 16), n first words, and n second, third and
 * fourth ones where they have four. A text has its address in the first and second word, its bytes in the
 * third. Kernel code has read every byte of these texts, or the compiler has laid them out: they may be read
 * here.
 */
#ifndef SMELT_CPU_LOG_H
#define SMELT_CPU_LOG_H

#include "cpu/worker.h"

#include <pthread.h>

struct log_record;

/* The lines of a launch. Written by its workers, under the lock. */
struct launch_log {
    pthread_mutex_t lock;
    struct log_record *last; /* newest first */
    uint64_t kept, dropped;
};

void launch_log_open(struct launch_log *log);

/* Hands the lines to their receiver, says how many were dropped, and closes the log. The thread's error
 * message stays. */
void launch_log_deliver(struct launch_log *log, const struct cpu_launch *launch);

#endif
