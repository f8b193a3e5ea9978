/* Who is told, on another thread, that an interrupt was raised. That thread, the watcher, is started when it
 * is first needed and sleeps until any interrupt of the process is raised. */
#ifndef SMELT_BASE_WATCH_H
#define SMELT_BASE_WATCH_H

#include "base/error.h"

/* Calls `act(context)` once, on another thread, when `interrupt` is raised, or is already. It must not take
 * long, nor open or close watches. Nothing is called behind the end. OUT_OF_MEMORY. */
struct interrupt_watch;
smelt_status interrupt_watch_open(smelt_interrupt *interrupt, void (*act)(void *context), void *context,
                                  struct interrupt_watch **watch);
void interrupt_watch_close(struct interrupt_watch *watch);

/* From now on calls `tell` whenever an interrupt was raised, with round 0, and then again and again, often at
 * first, for as long as it returns true. There is one such function in a process. OUT_OF_MEMORY. */
smelt_status interrupt_watch_all(bool (*tell)(unsigned round));

#endif
