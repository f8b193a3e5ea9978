#include "frontend/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_LIMIT_BYTES ((uint64_t)2 << 30)
/* A temporary file older than this belongs to a process that was killed. */
#define STALE_SECONDS (24 * 3600)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *folder;       /* the folder in use; kept for good once found: callers hold the pointer */
static char *folder_wish;  /* the environment it was found for */
static char *folder_error; /* why there is none */

static char *wished_folder(void) {
    const char *own = getenv("SMELT_CACHE_DIR"), *shared = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct text path = {0};
    if (own && *own)
        text_add(&path, own);
    else if (shared && *shared == '/')
        text_addf(&path, "%s/smelt", shared);
    else if (home && *home)
        text_addf(&path, "%s/.cache/smelt", home);
    if (!path.data) return strdup("");
    return path.data;
}

static smelt_status check_folder(const char *path) {
    if (!*path)
        return fail(SMELT_ERROR_IO, "no cache folder: none of SMELT_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    TRY(file_make_folder(path));
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return fail(SMELT_ERROR_IO, "cache folder '%s' is not a folder", path);
    if (status.st_uid != geteuid())
        return fail(SMELT_ERROR_IO, "cache folder '%s' belongs to user %ld, expected %ld", path, (long)status.st_uid,
                    (long)geteuid());
    if (status.st_mode & 022)
        return fail(SMELT_ERROR_IO, "cache folder '%s' has mode %03o: others may write to it; expected 700", path,
                    (unsigned)status.st_mode & 0777);
    if (access(path, R_OK | W_OK | X_OK) != 0)
        return fail(SMELT_ERROR_IO, "cache folder '%s' is not writable", path);
    return SMELT_OK;
}

struct cached_file {
    char *path;
    uint64_t bytes;
    struct timespec used;
};

struct listing {
    struct cached_file *files;
    size_t count, capacity;
    uint64_t bytes;
};

static void listing_free(struct listing *listing) {
    for (size_t i = 0; i < listing->count; i++) free(listing->files[i].path);
    free(listing->files);
}

/* Lists the entries; temporary files that were left behind are removed on the way. */
static void list_files(const char *path, struct listing *listing) {
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *item; (item = readdir(directory));) {
        char name[4352];
        struct stat status;
        if (item->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, item->d_name);
        if (stat(name, &status) != 0 || !S_ISREG(status.st_mode)) continue;
        if (strstr(item->d_name, ".tmp.")) {
            if (time(NULL) - status.st_mtime > STALE_SECONDS) (void)unlink(name);
            continue;
        }
        if (listing->count == listing->capacity) {
            size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
            struct cached_file *grown = realloc(listing->files, capacity * sizeof *grown);
            if (!grown) break;
            listing->files = grown;
            listing->capacity = capacity;
        }
        char *copy = strdup(name);
        if (!copy) break;
        listing->files[listing->count++] = (struct cached_file){copy, (uint64_t)status.st_size, status.st_mtim};
        listing->bytes += (uint64_t)status.st_size;
    }
    closedir(directory);
}

static int by_use(const void *a, const void *b) {
    const struct cached_file *p = a, *q = b;
    if (p->used.tv_sec != q->used.tv_sec) return p->used.tv_sec < q->used.tv_sec ? -1 : 1;
    return p->used.tv_nsec < q->used.tv_nsec ? -1 : p->used.tv_nsec > q->used.tv_nsec;
}

static void tidy(const char *path) {
    struct listing listing = {0};
    list_files(path, &listing);
    if (listing.bytes > CACHE_LIMIT_BYTES) {
        qsort(listing.files, listing.count, sizeof *listing.files, by_use);
        /* Down to three quarters, so that it is not done at every write. */
        for (size_t i = 0; i < listing.count && listing.bytes > CACHE_LIMIT_BYTES / 4 * 3; i++)
            if (unlink(listing.files[i].path) == 0) listing.bytes -= listing.files[i].bytes;
    }
    listing_free(&listing);
}

const char *cache_folder(void) {
    pthread_mutex_lock(&lock);
    char *wish = wished_folder();
    if (!wish || !folder_wish || strcmp(wish, folder_wish) != 0) {
        smelt_status status = wish ? check_folder(wish) : fail_out_of_memory(1);
        free(folder_error);
        folder_error = NULL;
        if (status == SMELT_OK) {
            folder = strdup(wish);
            tidy(wish);
        } else {
            folder = NULL;
            folder_error = strdup(smelt_error());
            log_line(SMELT_LOG_WARNING, "%s; compiling without a cache", smelt_error());
        }
        free(folder_wish);
        folder_wish = wish;
    } else {
        free(wish);
    }
    const char *result = folder;
    if (!result) error_record("%s", folder_error ? folder_error : "no cache folder");
    pthread_mutex_unlock(&lock);
    return result;
}

static bool entry_path(struct hash key, const char *kind, char path[4352]) {
    const char *where = cache_folder();
    if (!where) return false;
    char hex[HASH_HEX_LENGTH + 1];
    hash_hex(key, hex);
    snprintf(path, 4352, "%s/%s.%s", where, hex, kind);
    return true;
}

bool cache_read(struct hash key, const char *kind, struct text *contents) {
    char path[4352];
    if (!entry_path(key, kind, path)) return false;
    if (access(path, R_OK) != 0 || file_read(path, contents) != SMELT_OK) return false;
    (void)utimensat(AT_FDCWD, path, NULL, 0);
    return true;
}

void cache_write(struct hash key, const char *kind, const struct bytes *pieces, int count) {
    char path[4352];
    static unsigned writes;
    if (!entry_path(key, kind, path)) return;
    if (file_write(path, pieces, count) != SMELT_OK) log_line(SMELT_LOG_WARNING, "%s", smelt_error());
    if (__atomic_fetch_add(&writes, 1, __ATOMIC_RELAXED) % 256 == 255) tidy(cache_folder());
}

void cache_remove(struct hash key, const char *kind) {
    char path[4352];
    if (entry_path(key, kind, path)) (void)unlink(path);
}

const char *smelt_cache_path(void) { return cache_folder(); }

smelt_status smelt_cache_usage(uint64_t *entries, uint64_t *bytes) {
    const char *where = cache_folder();
    if (!where) return SMELT_ERROR_IO;
    struct listing listing = {0};
    list_files(where, &listing);
    *entries = listing.count;
    *bytes = listing.bytes;
    listing_free(&listing);
    return SMELT_OK;
}

smelt_status smelt_cache_clear(void) {
    const char *where = cache_folder();
    if (!where) return SMELT_ERROR_IO;
    struct listing listing = {0};
    smelt_status status = SMELT_OK;
    list_files(where, &listing);
    for (size_t i = 0; i < listing.count && status == SMELT_OK; i++)
        if (unlink(listing.files[i].path) != 0 && errno != ENOENT)
            status = fail(SMELT_ERROR_IO, "cache entry '%s' cannot be removed: %s", listing.files[i].path, strerror(errno));
    listing_free(&listing);
    return status;
}
