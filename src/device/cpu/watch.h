/* Who is told, on another thread, that an interrupt was raised. */
#ifndef SMELT_DEVICE_CPU_WATCH_H
#define SMELT_DEVICE_CPU_WATCH_H

#include "base/error.h"

/* Calls `act(context)` once, on another thread, when `interrupt` is raised, or is already. It must not take
 * long, nor open or close watches. Nothing is called behind the end. OUT_OF_MEMORY. */
struct interrupt_watch;
smelt_status interrupt_watch_open(smelt_interrupt *interrupt, void (*act)(void *context), void *context,
                                  struct interrupt_watch **watch);
void interrupt_watch_close(struct interrupt_watch *watch);

#endif
