/* The findings of a checked run, in terms of the user's text. */
#ifndef SMELT_KERNEL_FOUND_H
#define SMELT_KERNEL_FOUND_H

#include "device/device.h"

/* As `accept` of struct launch: the finding's columns become the user's. False: a comment asks for it to be
 * ignored,
 *   // smelt: ignore SM003, SM008: why
 * at the end of one of its lines, or on a line of its own above. */
bool found_accept(const struct launch *launch, struct smelt_finding *finding);

#endif
