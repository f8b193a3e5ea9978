/* The order in which a checked launch takes its threadgroups and simdgroups: SMELT_CHECK_SEED. */
#ifndef SMELT_DEVICE_CPU_SCHEDULE_H
#define SMELT_DEVICE_CPU_SCHEDULE_H

#include <stdint.h>

/* The variable's number; 0, the default: in order. Anything but a whole number causes a warning and means 0.
 */
uint64_t schedule_seed(void);

/* Which of `count` things comes at place `index`: for each seed and salt another order, each thing once. Seed
 * 0: the thing of that number. */
uint64_t schedule_at(uint64_t seed, uint64_t salt, uint64_t index, uint64_t count);

#endif
