/* How many compilers run at once: as many as this process has CPUs to use, in this process and, politely, in
 * all that share its cache folder. A slot is held for one run of a compiler only, and its holder waits for
 * nothing else meanwhile. */
#ifndef SMELT_FRONTEND_COMPILE_SLOT_H
#define SMELT_FRONTEND_COMPILE_SLOT_H

#include "frontend/cache_lock.h"

#include <stdbool.h>

struct compile_slot {
    bool is_taken;
    cache_lock among_processes;
};

/* Waits for one. INTERRUPTED: there is none to give back. */
smelt_status compile_slot_take(struct compile_slot *slot);
void compile_slot_give(struct compile_slot *slot);

/* The CPUs that the calling thread may use. */
int compile_slots(void);

#endif
