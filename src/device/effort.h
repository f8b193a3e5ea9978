/* Whether a launch runs quick code first. */
#ifndef SMELT_DEVICE_EFFORT_H
#define SMELT_DEVICE_EFFORT_H

#include "device/device.h"

/* How to compile a code that the launch lacks. If SMELT_TIERS is "quick": quick code for every launch.
 * Otherwise the best code if SMELT_TIERS is 0, the launch needs it, or its time-out is short, since quick
 * code may run many times as long. */
enum compile_effort launch_effort(const struct launch *launch);

/* SMELT_TIERS is "quick": quick code is not replaced. For tests. */
bool launch_stays_quick(void);

#endif
