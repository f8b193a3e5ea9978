/* Ending launches from outside, at no cost to their code: a signal reaches workers, and its handler returns
 * them from kernel code. */
#ifndef SMELT_DEVICE_CPU_INTERRUPT_H
#define SMELT_DEVICE_CPU_INTERRUPT_H

#include "device/cpu/worker.h"

#include <signal.h>

/* Before a launch that has an interrupt. OUT_OF_MEMORY: the thread that watches could not be started. */
smelt_status interruption_prepare(void);

/* A worker of such a launch begins and ends pieces of it. In between, it may be returned from kernel code
 * (ENDED_BY_STOP), with launch->interrupted and launch->stop set, or find these set when it returns by
 * itself. After the end no signal is pending any more. */
void interruption_begin(struct worker *worker, struct cpu_launch *launch);
void interruption_end(struct worker *worker);

/* Lets the signal through to the calling thread while it works for a launch. */
void interruption_allow(sigset_t *before);
void interruption_restore(const sigset_t *before);
extern const int interruption_signal;

/* Registers and removes the worker of the calling thread. */
void interruption_know(struct worker *worker);
void interruption_forget(struct worker *worker);

#endif
