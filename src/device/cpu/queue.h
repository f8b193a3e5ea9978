/* The queues of the CPU's engines. */
#ifndef SMELT_DEVICE_CPU_QUEUE_H
#define SMELT_DEVICE_CPU_QUEUE_H

#include "device/queue.h"

extern const struct queue_functions cpu_queues;

#endif
