/* The disk cache: one folder of files named by the hash of their inputs.
 *
 * Safe under many processes without locks: a file appears whole by rename or not at all; a damaged one is
 * rebuilt by the process that finds it; the least recently used files are removed when the folder passes its
 * limit (2 GiB, or SMELT_CACHE_BYTES). */
#ifndef SMELT_FRONTEND_CACHE_H
#define SMELT_FRONTEND_CACHE_H

#include "base/file.h"
#include "base/hash.h"

/* SMELT_CACHE_DIR, else XDG_CACHE_HOME/smelt, else ~/.cache/smelt; created with mode 0700 if absent. NULL if
 * it cannot be used: then one warning has been logged, and smelt_error() has the reason. */
const char *cache_folder(void);

/* Reads the entry; false if there is none, or a damaged one, which is removed. Its time of use is renewed. */
bool cache_read(struct hash key, const char *kind, struct text *contents);

/* Writes the entry; failures are logged, not returned: the cache is a convenience. */
void cache_write(struct hash key, const char *kind, const struct bytes *pieces, int count);

/* Removes an entry whose contents are useless. */
void cache_remove(struct hash key, const char *kind);

/* Removes an object in an entry's place that is not a file: writing to a pipe would wait for a reader. */
void cache_clear_way(const char *path);

/* Renews the time of use of a file in the folder. */
void cache_touch(const char *path);

/* Logs smelt_error() once per process: the folder is no longer writable. */
void cache_warn_unwritable(void);

#endif
