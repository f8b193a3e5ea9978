/* Limits how many compilers run at once to the number of CPUs that this process may use. The limit counts
 * this process's compilers and, where locks work, those of all processes that share its cache folder. A slot
 * is held for one run of a compiler, and its holder waits for nothing else meanwhile. */
#ifndef SMELT_FRONTEND_COMPILE_SLOT_H
#define SMELT_FRONTEND_COMPILE_SLOT_H

#include "frontend/cache_lock.h"

#include <stdbool.h>

struct compile_slot {
    bool is_taken;
    cache_lock among_processes;
};

/* Waits for a slot. After INTERRUPTED, there is none to give back. */
smelt_status compile_slot_take(struct compile_slot *slot);
void compile_slot_give(struct compile_slot *slot);

/* The CPUs that the calling thread may use. */
int compile_slots(void);

#endif
