/* Numbers, strings and blocks of bytes in sequence, in which a package's contents are written. Little endian.
 *
 * Reading never goes past the end: a reader that would is `failed` from then on and returns zeros or NULL. */
#ifndef SMELT_PACKAGE_STREAM_H
#define SMELT_PACKAGE_STREAM_H

#include "base/arena.h"
#include "base/file.h"

void write_u32(struct text *out, uint32_t value);
void write_u64(struct text *out, uint64_t value);
void write_string(struct text *out, const char *string); /* NULL is distinct from "" */
void write_block(struct text *out, struct bytes block);

struct reader {
    const char *at, *end;
    bool failed;
};

uint32_t read_u32(struct reader *reader);
uint64_t read_u64(struct reader *reader);
/* In the arena. */
const char *read_string(struct reader *reader, struct arena *arena);
/* Points into the bytes being read. */
struct bytes read_block(struct reader *reader);
/* A number of items that each take at least `least` bytes: there are no more than the bytes left allow. */
int read_count(struct reader *reader, size_t least);

#endif
