/* How a signal handler leaves kernel code for good: the thread continues in its worker, as if the fiber had
 * left. Only generated code can be left at any point: it holds no lock, and owns only its fiber, which is
 * lost. */
#ifndef SMELT_DEVICE_CPU_LEAVE_H
#define SMELT_DEVICE_CPU_LEAVE_H

#include "device/cpu/worker.h"

/* All of these are safe in a signal handler, and none is instrumented: a handler may interrupt a sanitizer.
 */

bool leave_in_code(const struct worker *worker, const void *address);
bool leave_on_fiber(const struct worker *worker, const void *stack_pointer);

/* When the handler returns, worker_enter does. `ended`: of struct worker. */
void leave_kernel(struct worker *worker, ucontext_t *context, int ended);

#endif
