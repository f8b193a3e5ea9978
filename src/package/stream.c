#include "package/stream.h"

#include <limits.h>
#include <string.h>

#define NO_STRING UINT32_MAX

void write_u32(struct text *out, uint32_t value) {
    text_append(out, (const char *)&value, sizeof value);
}

void write_u64(struct text *out, uint64_t value) {
    text_append(out, (const char *)&value, sizeof value);
}

void write_string(struct text *out, const char *string) {
    size_t length = string ? strlen(string) : 0;
    write_u32(out, string ? (uint32_t)length : NO_STRING);
    text_append(out, string, length);
}

void write_block(struct text *out, struct bytes block) {
    write_u64(out, block.size);
    text_append(out, block.data, block.size);
}

/* The next `size` bytes, or NULL. */
static const char *take(struct reader *reader, uint64_t size) {
    const char *at = reader->at;
    reader->failed |= size > (uint64_t)(reader->end - at);
    if (reader->failed) return NULL;
    reader->at += size;
    return at;
}

uint32_t read_u32(struct reader *reader) {
    uint32_t value = 0;
    const char *at = take(reader, sizeof value);
    if (at) memcpy(&value, at, sizeof value);
    return value;
}

uint64_t read_u64(struct reader *reader) {
    uint64_t value = 0;
    const char *at = take(reader, sizeof value);
    if (at) memcpy(&value, at, sizeof value);
    return value;
}

const char *read_string(struct reader *reader, struct arena *arena) {
    uint32_t length = read_u32(reader);
    if (length == NO_STRING) return NULL;
    const char *at = take(reader, length);
    if (at && memchr(at, 0, length)) reader->failed = true;
    return reader->failed ? "" : arena_copy(arena, at, length);
}

struct bytes read_block(struct reader *reader) {
    uint64_t size = read_u64(reader);
    const char *at = take(reader, size);
    return at ? (struct bytes){at, (size_t)size} : (struct bytes){NULL, 0};
}

int read_count(struct reader *reader, size_t least) {
    uint32_t count = read_u32(reader);
    reader->failed |= count > INT_MAX || count > (size_t)(reader->end - reader->at) / least;
    return reader->failed ? 0 : (int)count;
}
