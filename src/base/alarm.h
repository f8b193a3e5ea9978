/* Alarms: functions called at their time, unless disarmed before. */
#ifndef SMELT_BASE_ALARM_H
#define SMELT_BASE_ALARM_H

#include "base/error.h"

/* Calls `expire(context)` once `seconds` have passed, unless disarmed before; the handle goes to
 * alarm_disarm. OUT_OF_MEMORY. */
struct alarm;
smelt_status alarm_arm(double seconds, void (*expire)(void *context), void *context, struct alarm **alarm);
void alarm_disarm(struct alarm *alarm);

#endif
