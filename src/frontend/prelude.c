#include "frontend/prelude.h"
#include "frontend/cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct hash prelude_hash(enum prelude prelude) {
    /* The text is constant: hashed at every call it would cost as much as the rest of a disk hit. */
    static struct hash hashes[PRELUDE_COUNT];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    struct hash *hash = &hashes[prelude];
    if (!hash->low && !hash->high) *hash = hash_bytes(prelude_texts[prelude], strlen(prelude_texts[prelude]));
    struct hash result = *hash;
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- The image: what clang wrote, and behind it, where clang does not look, the hash of that. */

struct trailer {
    char magic[16];
    struct hash hash;
};

static const char trailer_magic[16] = "smelt prelude 1";

bool prelude_is_whole(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0) return false;
    bool whole = false;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (size_t)status.st_size > sizeof(struct trailer)) {
        size_t size = (size_t)status.st_size, body = size - sizeof(struct trailer);
        char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
        if (bytes != MAP_FAILED) {
            struct trailer trailer;
            memcpy(&trailer, bytes + body, sizeof trailer);
            struct hash hash = hash_bytes(bytes, body);
            whole = memcmp(trailer.magic, trailer_magic, sizeof trailer_magic) == 0 &&
                    hash.low == trailer.hash.low && hash.high == trailer.hash.high;
            munmap(bytes, size);
        }
    }
    close(fd);
    return whole;
}

/* The images that this process has found intact, one per prelude and math mode: checked again when the file
 * is another. */
static struct checked {
    dev_t device;
    ino_t inode;
    off_t size;
} checked[PRELUDE_COUNT][SMELT_MATH_FAST + 1];
static pthread_mutex_t checked_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_good(const char *path, enum prelude prelude, smelt_math_mode math, bool suspected) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    struct checked now = {status.st_dev, status.st_ino, status.st_size};
    pthread_mutex_lock(&checked_lock);
    struct checked *known = &checked[prelude][math];
    bool good =
        !suspected && known->inode == now.inode && known->device == now.device && known->size == now.size;
    pthread_mutex_unlock(&checked_lock);
    if (good) return true;
    if (!prelude_is_whole(path)) return false;
    pthread_mutex_lock(&checked_lock);
    *known = now;
    pthread_mutex_unlock(&checked_lock);
    cache_touch(path);
    return true;
}

/* Where the file cannot be written, *kept is false: that is no failure. */
static smelt_status precompile(const struct clang *clang, enum prelude prelude, smelt_math_mode math,
                               const char *path, bool *kept) {
    struct clang_request request = {.action = CLANG_PRECOMPILE,
                                    .math = math,
                                    .text = prelude_texts[prelude],
                                    .length = strlen(prelude_texts[prelude])};
    struct text image = {0}, messages = {0};
    bool ok = false;
    TRY(clang_run(clang, &request, &image, &messages, &ok));
    smelt_status status = SMELT_OK;
    if (!ok) {
        status = fail(SMELT_ERROR_INTERNAL, "smelt's own prelude does not compile: %.800s",
                      text_string(&messages));
    } else {
        struct trailer trailer = {.hash = hash_bytes(text_string(&image), image.length)};
        memcpy(trailer.magic, trailer_magic, sizeof trailer_magic);
        struct bytes pieces[] = {{image.data, image.length}, {&trailer, sizeof trailer}};
        cache_clear_way(path);
        *kept = file_write(path, pieces, 2) == SMELT_OK;
    }
    text_free(&image);
    text_free(&messages);
    return status;
}

smelt_status prelude_precompiled(const struct clang *clang, enum prelude prelude, smelt_math_mode math,
                                 bool suspected, char path[4096]) {
    path[0] = 0;
    const char *folder = cache_folder();
    if (!folder) return SMELT_OK;
    struct text flags = {0};
    struct clang own;
    const struct clang *maker = clang_find_maker(clang, &own) ? &own : clang;
    struct hash text_hash = prelude_hash(prelude);
    clang_add_flags(math, &flags);
    struct hasher *hasher = hasher_create();
    hasher_add(hasher, &text_hash, sizeof text_hash);
    hasher_add(hasher, &maker->identity, sizeof maker->identity);
    hasher_add_string(hasher, text_string(&flags));
    text_free(&flags);
    char hex[HASH_HEX_LENGTH + 1];
    hash_hex(hasher_finish(hasher), hex);
    snprintf(path, 4096, "%s/%s.pch", folder, hex);
    if (is_good(path, prelude, math, suspected)) return SMELT_OK;
    bool kept = true;
    TRY(precompile(maker, prelude, math, path, &kept));
    if (!kept) {
        /* Nowhere to keep it: the text goes in front of each kernel instead. */
        cache_warn_unwritable();
        path[0] = 0;
    }
    return SMELT_OK;
}
