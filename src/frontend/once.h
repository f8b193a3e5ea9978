/* Work that several threads or processes need at the same time is done once: the first does it, the others
 * wait and get its result.
 *
 *   struct text result = {0};
 *   struct once *mine;
 *   TRY(once_begin(key, &mine, &result));
 *   if (mine) {
 *       … look in the cache again: another process may have done the work …
 *       status = …
 *       once_end(mine, status, &piece);
 *   }
 *
 * The holder may wait for compilers (compile_slot.h) and for work of other keys; no two kinds of work wait
 * for each other: code waits for bitcode, and bitcode for the prelude. */
#ifndef SMELT_FRONTEND_ONCE_H
#define SMELT_FRONTEND_ONCE_H

#include "base/file.h"
#include "base/hash.h"

struct once;

/* *mine: the caller does the work and then calls once_end, also after a failure. NULL: a thread of this
 * process has just done it, and `result` is a copy of the bytes that it gave (the caller frees them), or it
 * failed, and its failure is returned with its message. A thread that was interrupted leaves the work to one
 * that waits. INTERRUPTED if the caller is. OUT_OF_MEMORY. */
smelt_status once_begin(struct hash key, struct once **mine, struct text *result);

/* `result` is copied for the threads that wait. After a failure it may be NULL, and smelt_error() is the
 * message. */
void once_end(struct once *mine, smelt_status status, const struct bytes *result);

/* The key of one kind of work on what `key` names. */
struct hash once_key(const char *kind, struct hash key);

#endif
