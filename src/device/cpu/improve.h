/* Launches that began with quick code go on with the best once it is there. */
#ifndef SMELT_DEVICE_CPU_IMPROVE_H
#define SMELT_DEVICE_CPU_IMPROVE_H

#include "device/cpu/worker.h"

/* Whether groups of the launch that begin now run launch->best. */
bool cpu_launch_improved(struct cpu_launch *launch);

/* Whether the best code for a launch is still being compiled: `is_busy` of pool_run_beside. */
bool cpu_launch_is_improving(void *launch);

#endif
