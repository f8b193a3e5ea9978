/* Runs SIMD code: the threads of a group in gangs, one call of vector code per gang. */
#ifndef SMELT_DEVICE_CPU_GANG_H
#define SMELT_DEVICE_CPU_GANG_H

#include "device/cpu/worker.h"

/* Runs the threadgroups [first, last), numbered x fastest, until one fails or the launch is stopped; with
 * launch->best as soon as that is there.
 * Failures: BARRIER, FAULT, UNSUPPORTED, OUT_OF_MEMORY. */
smelt_status gang_run_groups(struct worker *worker, struct cpu_launch *launch, uint64_t first, uint64_t last);

void gang_state_free(struct gang_state *state);

#endif
