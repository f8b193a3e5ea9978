/* What is installed with libsmelt so that first calls of its own operations need not compile: preprocessed
 * texts, codes, and machine code of GPUs, in the folder `smelt-codes` (`make codes` writes it, by
 * src/codes).
 *
 * Entries are named as in the cache, by hashes of everything that determines their contents. Only the
 * compiler is not a part of these hashes: it is that of the same build. Code of other sources has other
 * names, and is never found. SMELT_CLANG, which asks for another compiler, turns them off. */
#ifndef SMELT_FRONTEND_INSTALLED_H
#define SMELT_FRONTEND_INSTALLED_H

#include "base/file.h"
#include "base/hash.h"

/* False if there is no such entry. */
bool installed_read(struct hash key, const char *kind, struct text *contents);

/* For the step of the build: from now on, installed_write writes into this folder, and nothing is read.
 * Before any other call, from one thread. */
void installed_collect(const char *folder);

/* Nothing, unless entries are collected. */
void installed_write(struct hash key, const char *kind, const struct bytes *pieces, int count);

#endif
