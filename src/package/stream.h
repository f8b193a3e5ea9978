/* Numbers, strings and blocks of bytes one after another: what a package's contents are written as. Little
 * endian.
 *
 * Reading never goes past the end: a reader that would is `failed` from then on and yields nothing. */
#ifndef SMELT_PACKAGE_STREAM_H
#define SMELT_PACKAGE_STREAM_H

#include "base/arena.h"
#include "base/file.h"

void write_u32(struct text *out, uint32_t value);
void write_u64(struct text *out, uint64_t value);
void write_string(struct text *out, const char *string); /* NULL is kept apart from "" */
void write_block(struct text *out, struct bytes block);

struct reader {
    const char *at, *end;
    bool failed;
};

uint32_t read_u32(struct reader *reader);
uint64_t read_u64(struct reader *reader);
/* In the arena. */
const char *read_string(struct reader *reader, struct arena *arena);
/* Within the bytes that are read. */
struct bytes read_block(struct reader *reader);
/* A number of items that each take at least `least` bytes: there are no more than the bytes left allow. */
int read_count(struct reader *reader, size_t least);

#endif
