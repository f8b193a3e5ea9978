/* 128-bit content hashes (XXH3), fed piece by piece. Pieces are length-prefixed, so ("ab","c") != ("a","bc").
 */
#ifndef SMELT_BASE_HASH_H
#define SMELT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash {
    uint64_t low, high;
};

#define HASH_HEX_LENGTH 32

struct hasher;
struct hasher *hasher_create(void); /* NULL: out of memory */
void hasher_add(struct hasher *hasher, const void *bytes, size_t count);
void hasher_add_raw(struct hasher *hasher, const void *bytes,
                    size_t count); /* without the length: pieces of one whole */
void hasher_add_string(struct hasher *hasher, const char *string);
void hasher_add_integer(struct hasher *hasher, int64_t value);
struct hash hasher_finish(struct hasher *hasher); /* frees the hasher */

struct hash hash_bytes(const void *bytes, size_t count);
void hash_hex(struct hash hash, char hex[HASH_HEX_LENGTH + 1]);

#endif
