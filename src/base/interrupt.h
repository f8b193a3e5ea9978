/* Interrupts: how a caller ends a call that is in progress. The object is a flag; who works long for a call
 * looks at it, or (kernel code, which does not) is told by device/cpu/interrupt.c. */
#ifndef SMELT_BASE_INTERRUPT_H
#define SMELT_BASE_INTERRUPT_H

#include "base/error.h"

/* NULL: there is none, and it is never raised. A load without a fence where it is not. */
bool interrupt_is_raised(const smelt_interrupt *interrupt);

/* A call of the library that the calling thread makes can be ended by `interrupt` (may be NULL), until
 * interrupt_end_call with what this returns: calls made by callbacks lie within others. */
smelt_interrupt *interrupt_begin_call(smelt_interrupt *interrupt);
void interrupt_end_call(smelt_interrupt *outer);

/* That of the call the calling thread is in; NULL. */
smelt_interrupt *interrupt_of_call(void);

/* INTERRUPTED if that is raised. */
smelt_status interrupt_check(void);

/* What a call for a kernel returns for `status`: INTERRUPTED with the kernel's name in the message, whoever
 * was interrupted. */
smelt_status interrupt_status(const char *kernel, smelt_status status);

/* A wait within a call that has an interrupt looks at it this often: the host's handlers run on other threads
 * too, and wake no one. */
#define INTERRUPT_LOOK_SECONDS 0.005

/* Sleeps until an interrupt of the process is raised that no such sleep has told of. */
void interrupt_await_any(void);
/* Ends such a sleep as if one had been raised. */
void interrupt_tell_again(void);

#endif
