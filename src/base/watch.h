/* Notifies of raised interrupts on another thread. That thread, the watcher, is started when first needed and
 * sleeps until any interrupt of the process is raised. */
#ifndef SMELT_BASE_WATCH_H
#define SMELT_BASE_WATCH_H

#include "base/error.h"

/* Calls `act(context)` once, on another thread, when `interrupt` is raised or if it already is. `act` must be
 * short and must not open or close watches. It is never called after the end. OUT_OF_MEMORY. */
struct interrupt_watch;
smelt_status interrupt_watch_open(smelt_interrupt *interrupt, void (*act)(void *context), void *context,
                                  struct interrupt_watch **watch);
void interrupt_watch_close(struct interrupt_watch *watch);

/* From now on calls `tell` after each raised interrupt, with round 0, and repeats it, often at first, while
 * it returns true. A process has one such function. OUT_OF_MEMORY. */
smelt_status interrupt_watch_all(bool (*tell)(unsigned round));

#endif
