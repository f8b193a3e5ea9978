#include "base/hash.h"

#include <stdio.h>
#include <string.h>

/* The hash becomes part of this file: no library has to be there at run time. */
#define XXH_INLINE_ALL
#include <xxhash.h>

struct hasher *hasher_create(void) {
    XXH3_state_t *state = XXH3_createState();
    if (state) XXH3_128bits_reset(state);
    return (struct hasher *)state;
}

void hasher_add(struct hasher *hasher, const void *bytes, size_t count) {
    if (!hasher) return;
    uint64_t length = count;
    XXH3_128bits_update((XXH3_state_t *)hasher, &length, sizeof length);
    if (count) XXH3_128bits_update((XXH3_state_t *)hasher, bytes, count);
}

void hasher_add_raw(struct hasher *hasher, const void *bytes, size_t count) {
    if (hasher && count) XXH3_128bits_update((XXH3_state_t *)hasher, bytes, count);
}

void hasher_add_string(struct hasher *hasher, const char *string) {
    hasher_add(hasher, string ? string : "", string ? strlen(string) : 0);
}

void hasher_add_integer(struct hasher *hasher, int64_t value) {
    hasher_add(hasher, &value, sizeof value);
}

static struct hash from_xxh(XXH128_hash_t value) {
    return (struct hash){.low = value.low64, .high = value.high64};
}

struct hash hasher_finish(struct hasher *hasher) {
    if (!hasher) return (struct hash){0};
    struct hash result = from_xxh(XXH3_128bits_digest((XXH3_state_t *)hasher));
    XXH3_freeState((XXH3_state_t *)hasher);
    return result;
}

struct hash hash_bytes(const void *bytes, size_t count) {
    return from_xxh(XXH3_128bits(bytes, count));
}

void hash_hex(struct hash hash, char hex[HASH_HEX_LENGTH + 1]) {
    snprintf(hex, HASH_HEX_LENGTH + 1, "%016llx%016llx", (unsigned long long)hash.high,
             (unsigned long long)hash.low);
}
