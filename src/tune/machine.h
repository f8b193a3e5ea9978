/* The fingerprint of what a device's times depend on: smelt's version, the device, its threads and vectors,
 * the driver, and the processor's name and instruction sets. */
#ifndef SMELT_TUNE_MACHINE_H
#define SMELT_TUNE_MACHINE_H

#include "base/error.h"
#include "base/hash.h"

/* NO_DEVICE if `device` (NULL: "cpu") does not exist. */
smelt_status tune_machine(const char *device, char fingerprint[HASH_HEX_LENGTH + 1]);

#endif
