/* Whether a launch runs quick code first. */
#ifndef SMELT_DEVICE_EFFORT_H
#define SMELT_DEVICE_EFFORT_H

#include "device/device.h"

/* For a code that the launch lacks. If SMELT_TIERS is "quick", it is quick code for every launch. Otherwise
 * the best is compiled if SMELT_TIERS is 0, the launch needs the best, or its time-out is short: quick code
 * may take many times as long. */
enum compile_effort launch_effort(const struct launch *launch);

/* SMELT_TIERS is "quick": quick code is not replaced. For tests. */
bool launch_stays_quick(void);

#endif
