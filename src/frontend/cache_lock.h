/* Locks between processes that share a cache folder: bytes of one file in it, locked by the kernel for the
 * file's open description. A process that dies gives its locks up, and the file is never removed.
 *
 * Locks are a convenience: without a folder, on a file system that has none, or if another process keeps one
 * for too long (it may be stopped), work is done without. */
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

/* Gives it up. Nothing for -1. */
void cache_unlock(cache_lock lock);

#endif
