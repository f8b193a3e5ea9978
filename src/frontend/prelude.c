#include "frontend/prelude.h"
#include "frontend/cache.h"
#include "frontend/companion.h"
#include "frontend/once.h"

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
    struct hash key;  /* of what the image was made from */
    struct hash hash; /* of the image */
};

static const char trailer_magic[16] = "smelt prelude 2";

static bool same(struct hash a, struct hash b) {
    return a.low == b.low && a.high == b.high;
}

/* Whether the file is whole; of the `key`, if one is given. */
static bool check(const char *path, const struct hash *key) {
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
            whole = memcmp(trailer.magic, trailer_magic, sizeof trailer_magic) == 0 &&
                    (!key || same(trailer.key, *key)) && same(hash_bytes(bytes, body), trailer.hash);
            munmap(bytes, size);
        }
    }
    close(fd);
    return whole;
}

bool prelude_is_whole(const char *path) {
    return check(path, NULL);
}

/* The images that this process has found intact, one per prelude and math mode: checked again when the file
 * is another. */
static struct checked {
    dev_t device;
    ino_t inode;
    off_t size;
} checked[PRELUDE_COUNT][SMELT_MATH_FAST + 1];
static pthread_mutex_t checked_lock = PTHREAD_MUTEX_INITIALIZER;

/* One image, and where it may be. */
struct wanted {
    enum prelude prelude;
    smelt_math_mode math;
    struct hash key;
    bool suspected; /* look at its contents again */
};

/* *first: it is the first time that this process uses it. */
static bool is_good(const char *path, const struct wanted *wanted, bool *first) {
    struct stat status;
    *first = false;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    struct checked now = {status.st_dev, status.st_ino, status.st_size};
    pthread_mutex_lock(&checked_lock);
    struct checked *known = &checked[wanted->prelude][wanted->math];
    bool good = !wanted->suspected && known->inode == now.inode && known->device == now.device &&
                known->size == now.size;
    pthread_mutex_unlock(&checked_lock);
    if (good) return true;
    if (!check(path, &wanted->key)) return false;
    pthread_mutex_lock(&checked_lock);
    *known = now;
    pthread_mutex_unlock(&checked_lock);
    *first = true;
    return true;
}

static smelt_status precompile(const struct clang *clang, const struct wanted *wanted, struct text *image) {
    struct clang_request request = {.action = CLANG_PRECOMPILE,
                                    .math = wanted->math,
                                    .cpp23 = prelude_is_cpp23(wanted->prelude),
                                    .text = prelude_texts[wanted->prelude],
                                    .length = strlen(prelude_texts[wanted->prelude])};
    struct text messages = {0};
    bool ok = false;
    TRY(clang_run(clang, &request, image, &messages, &ok));
    smelt_status status = SMELT_OK;
    if (!ok) {
        text_free(image);
        status = fail(SMELT_ERROR_INTERNAL, "smelt's own prelude does not compile: %.800s",
                      text_string(&messages));
    }
    text_free(&messages);
    return status;
}

static smelt_status write_image(const char *path, const struct wanted *wanted, const struct text *image) {
    struct trailer trailer = {.key = wanted->key, .hash = hash_bytes(text_string(image), image->length)};
    memcpy(trailer.magic, trailer_magic, sizeof trailer_magic);
    struct bytes pieces[] = {{image->data, image->length}, {&trailer, sizeof trailer}};
    return file_write(path, pieces, 2);
}

/* What an image is made from: the text, the flags, and the clang; NULL for smelt-cc1 of the same build. */
static struct hash key_of(enum prelude prelude, smelt_math_mode math, const struct clang *maker) {
    struct text flags = {0};
    struct hash text_hash = prelude_hash(prelude);
    clang_add_flags(math, prelude_is_cpp23(prelude), &flags);
    struct hasher *hasher = hasher_create();
    hasher_add(hasher, &text_hash, sizeof text_hash);
    if (maker) hasher_add(hasher, &maker->identity, sizeof maker->identity);
    hasher_add_string(hasher, text_string(&flags));
    text_free(&flags);
    return hasher_finish(hasher);
}

/* ---- Images that are installed with smelt-cc1. */

const char *prelude_installed_name(enum prelude prelude, smelt_math_mode math) {
    static const char *const names[PRELUDE_COUNT] = {
        [PRELUDE_METAL] = "metal-safe.pch", [PRELUDE_MLX] = "mlx-safe.pch"};
    return math == SMELT_MATH_SAFE ? names[prelude] : NULL;
}

static bool find_installed(struct wanted wanted, char path[4096]) {
    const char *name = prelude_installed_name(wanted.prelude, wanted.math);
    bool first;
    wanted.key = key_of(wanted.prelude, wanted.math, NULL);
    return name && companion_find(name, path) && is_good(path, &wanted, &first);
}

smelt_status prelude_write_installed(enum prelude prelude, smelt_math_mode math, const char *path) {
    struct clang own;
    struct text image = {0};
    struct wanted wanted = {.prelude = prelude, .math = math, .key = key_of(prelude, math, NULL)};
    if (!clang_find_own(&own))
        return fail(SMELT_ERROR_NO_COMPILER, "smelt-cc1 is not next to libsmelt: '%s'", own.path);
    TRY(precompile(&own, &wanted, &image));
    smelt_status status = write_image(path, &wanted, &image);
    text_free(&image);
    return status;
}

/* ---- Images in the cache. */

/* Where the file cannot be written, *kept is false, which is not a failure. */
static smelt_status precompile_into_cache(const struct clang *clang, const struct wanted *wanted,
                                          const char *path, bool *kept) {
    struct text image = {0};
    TRY(precompile(clang, wanted, &image));
    cache_clear_way(path);
    *kept = write_image(path, wanted, &image) == SMELT_OK;
    text_free(&image);
    return SMELT_OK;
}

/* The caller has waited for others who did it. The path becomes "" if the image cannot be kept. */
static smelt_status make_in_cache(const struct clang *maker, const struct wanted *wanted, char path[4096]) {
    bool first, kept = true;
    if (is_good(path, wanted, &first)) return SMELT_OK;
    TRY(precompile_into_cache(maker, wanted, path, &kept));
    if (!kept) {
        /* Nowhere to keep it: the text goes in front of each kernel instead. */
        cache_warn_unwritable();
        path[0] = 0;
    }
    return SMELT_OK;
}

/* By one thread of one process; the others wait, and get the path. */
static smelt_status make_once(const struct clang *maker, const struct wanted *wanted, char path[4096]) {
    struct once *mine;
    struct text made = {0};
    TRY(once_begin(once_key("prelude", wanted->key), &mine, &made));
    if (mine) {
        smelt_status status = make_in_cache(maker, wanted, path);
        struct bytes piece = {path, strlen(path)};
        once_end(mine, status, &piece);
        return status;
    }
    snprintf(path, 4096, "%s", text_string(&made));
    text_free(&made);
    return SMELT_OK;
}

static smelt_status find_in_cache(const struct clang *maker, struct wanted wanted, char path[4096]) {
    const char *folder = cache_folder();
    char hex[HASH_HEX_LENGTH + 1];
    path[0] = 0;
    if (!folder) return SMELT_OK;
    wanted.key = key_of(wanted.prelude, wanted.math, maker);
    hash_hex(wanted.key, hex);
    snprintf(path, 4096, "%s/%s.pch", folder, hex);
    bool first;
    if (!is_good(path, &wanted, &first)) return make_once(maker, &wanted, path);
    if (first) cache_touch(path);
    return SMELT_OK;
}

smelt_status prelude_precompiled(const struct clang *clang, enum prelude prelude, smelt_math_mode math,
                                 bool suspected, char path[4096]) {
    struct wanted wanted = {.prelude = prelude, .math = math, .suspected = suspected};
    struct clang own;
    bool has_own = clang_find_maker(clang, &own);
    if (has_own && find_installed(wanted, path)) return SMELT_OK;
    return find_in_cache(has_own ? &own : clang, wanted, path);
}
