/* Fibers: stacks a worker switches between, so that a kernel's thread can wait in the middle.
 * Switching is a dozen instructions (arch_switch); the sanitizers are told about it. */
#ifndef SMELT_DEVICE_CPU_FIBER_H
#define SMELT_DEVICE_CPU_FIBER_H

#include "base/error.h"
#include "device/cpu/arch/arch.h"

/* Room for spills and runtime calls, in addition to a kernel's own stack use. */
#define FIBER_SPARE_BYTES 65536
/* On both sides of a stack lie as many inaccessible bytes: code that runs past its arrays, by steps of a
 * whole gang's rows, must not step over them. */
#define FIBER_GUARD_BYTES 65536

struct fiber {
    void *stack_pointer; /* while it does not run */
    char *stack;         /* lowest address */
    size_t stack_bytes;
    void *sanitizer;  /* ThreadSanitizer's handle */
    void *fake_stack; /* AddressSanitizer's */
};

/* The side the fibers are resumed from: the worker's own stack. */
struct fiber_home {
    void *stack_pointer;
    void *sanitizer, *fake_stack;
    const void *stack_bottom;
    size_t stack_size;
    bool left; /* AddressSanitizer: the switch under way started here */
};

/* Maps `count` stacks of `stack_bytes`, a multiple of 4096, at once; memory is allocated when it is touched.
 * OUT_OF_MEMORY. */
smelt_status fibers_create(struct fiber *fibers, int count, size_t stack_bytes);
void fibers_destroy(struct fiber *fibers, int count);

/* Makes the fiber start at `main(argument)` when it is next entered; drops its former work.
 * `main` must not return. `stagger` spreads the stack tops over cache sets. */
void fiber_prepare(struct fiber *fiber, void (*main)(void *argument), void *argument, int stagger);

/* From the worker into a fiber; returns when the fiber leaves (or a fault leaves for it). */
void fiber_enter(struct fiber *fiber, struct fiber_home *home);

/* From a fiber back to the worker; returns when the fiber is entered again. */
void fiber_leave(struct fiber *fiber, struct fiber_home *home);

/* From a fiber straight into another one of the same home; returns when `from` is entered again. */
void fiber_switch(struct fiber *from, struct fiber *to, struct fiber_home *home);

/* Called first by a fiber's main function: completes the switch that started it. */
void fiber_started(struct fiber_home *home);

/* For a signal handler on another stack: the stack on which arch_return_to must continue so that fiber_enter
 * returns to the worker. The fiber is lost. */
void *fiber_escape(struct fiber_home *home);

#endif
