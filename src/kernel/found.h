/* The findings of a checked run, in terms of the user's text. */
#ifndef SMELT_KERNEL_FOUND_H
#define SMELT_KERNEL_FOUND_H

#include "device/device.h"

/* As `accept` of struct launch: the finding's columns become the user's. False: a comment at one of its lines
 * asks to ignore it (diagnostics_ignored). */
bool found_accept(const struct launch *launch, struct smelt_finding *finding);

#endif
