/* Interrupts: how a caller ends a call in progress. The object is a flag. Long work polls it; kernel code,
 * which does not, is stopped by src/device/cpu/interrupt.c. */
#ifndef SMELT_BASE_INTERRUPT_H
#define SMELT_BASE_INTERRUPT_H

#include "base/error.h"

/* NULL is never raised. Costs a load without a fence if it is not raised. */
bool interrupt_is_raised(const smelt_interrupt *interrupt);

/* Lets `interrupt` (may be NULL) end the calling thread's call of the library, until interrupt_end_call with
 * the returned value: calls by callbacks nest. */
smelt_interrupt *interrupt_begin_call(smelt_interrupt *interrupt);
void interrupt_end_call(smelt_interrupt *outer);

/* The interrupt of the calling thread's call, or NULL. */
smelt_interrupt *interrupt_of_call(void);

/* INTERRUPTED if it is raised. */
smelt_status interrupt_check(void);

/* INTERRUPTED if the call ends where it would compile code, or wait for that. */
smelt_status interrupt_check_compile(void);
/* Whether a call ended so: its caller repeats it, and traces leave the attempt out. */
bool interrupt_was_before_compile(smelt_status status);

/* The result of a call for a kernel for `status`: INTERRUPTED gets the kernel's name in the message. */
smelt_status interrupt_status(const char *kernel, smelt_status status);

/* A wait within a call that has an interrupt looks at it this often: the host's handlers run on other threads
 * too, and wake no one. */
#define INTERRUPT_LOOK_SECONDS 0.005

/* Sleeps until an interrupt of the process is raised that no such sleep has reported. */
void interrupt_await_any(void);
/* Ends such a sleep as if one were raised. */
void interrupt_tell_again(void);

#endif
