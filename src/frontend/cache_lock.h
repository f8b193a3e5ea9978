/* Locks between processes that share a cache folder: bytes of one file in it, locked by the kernel for the
 * file's open description. The kernel releases the locks of a process that dies, and the file is never
 * removed.
 *
 * Locks only save work. Without a folder, on a file system without locks, or if another process keeps one for
 * too long (it may be stopped), the work is done without a lock. */
#ifndef SMELT_FRONTEND_CACHE_LOCK_H
#define SMELT_FRONTEND_CACHE_LOCK_H

#include "base/error.h"
#include "base/hash.h"

#include <stdint.h>

/* -1: nothing is locked. */
typedef int cache_lock;

/* The bytes below this are for numbers, the others for keys. */
#define CACHE_LOCK_NUMBERS 4096

/* Locks what `key` names; waits `seconds` at most. INTERRUPTED; otherwise OK with the lock or without. */
smelt_status cache_lock_key(struct hash key, double seconds, cache_lock *lock);

/* Locks one of the numbers below `count`; as above. */
smelt_status cache_lock_number(int count, double seconds, cache_lock *lock);

/* Releases it. -1 does nothing. */
void cache_unlock(cache_lock lock);

#endif
