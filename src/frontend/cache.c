#include "frontend/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_LIMIT_BYTES ((uint64_t)2 << 30)
/* A temporary file older than this belongs to a process that was killed. */
#define STALE_SECONDS (24 * 3600)

/* How long a look through the whole folder is good for: it costs a system call an entry. */
#define TIDY_SECONDS 3600
#define TIDY_WRITES 256
/* Its time is that of the last look; no entry has this name. */
#define TIDY_MARK ".tidied"

/* A checked folder, usable or not; never freed: callers hold the pointers. */
struct place {
    struct place *next;
    char *wish;  /* from the environment */
    char *error; /* why it cannot be used; NULL: it can */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places;

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
        return fail(SMELT_ERROR_IO,
                    "no cache folder: none of SMELT_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    TRY(file_make_folder(path));
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return fail(SMELT_ERROR_IO, "cache folder '%s' is not a folder", path);
    if (status.st_uid != geteuid())
        return fail(SMELT_ERROR_IO, "cache folder '%s' belongs to user %ld, expected %ld", path,
                    (long)status.st_uid, (long)geteuid());
    if (status.st_mode & 022)
        return fail(SMELT_ERROR_IO, "cache folder '%s' has mode %03o: others can write to it; expected 700",
                    path, (unsigned)status.st_mode & 0777);
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

/* Files of SQLite, which hold results of tuning (src/tune): not entries, and neither evicted nor cleared. */
static bool is_kept(const char *name) {
    return strstr(name, ".sqlite") != NULL;
}

/* Lists the entries; temporary files that were left behind are removed on the way. */
static void list_files(const char *path, struct listing *listing) {
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *item; (item = readdir(directory));) {
        char name[4352];
        struct stat status;
        if (item->d_name[0] == '.' || is_kept(item->d_name)) continue;
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
        listing->files[listing->count++] =
            (struct cached_file){copy, (uint64_t)status.st_size, status.st_mtim};
        listing->bytes += (uint64_t)status.st_size;
    }
    closedir(directory);
}

static int by_use(const void *a, const void *b) {
    const struct cached_file *p = a, *q = b;
    if (p->used.tv_sec != q->used.tv_sec) return p->used.tv_sec < q->used.tv_sec ? -1 : 1;
    return p->used.tv_nsec < q->used.tv_nsec ? -1 : p->used.tv_nsec > q->used.tv_nsec;
}

static uint64_t limit_bytes(void) {
    const char *setting = getenv("SMELT_CACHE_BYTES");
    if (!setting || !*setting) return CACHE_LIMIT_BYTES;
    char *end;
    long long value = strtoll(setting, &end, 10);
    return !*end && value >= 0 ? (uint64_t)value : CACHE_LIMIT_BYTES;
}

static void mark_path(const char *path, char mark[4352]) {
    snprintf(mark, 4352, "%s/" TIDY_MARK, path);
}

/* Removes leftovers, and the least recently used entries if there are too many. */
static void tidy(const char *path) {
    struct listing listing = {0};
    uint64_t limit = limit_bytes();
    char mark[4352];
    mark_path(path, mark);
    int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0) {
        (void)futimens(fd, NULL);
        close(fd);
    }
    list_files(path, &listing);
    if (listing.bytes > limit) {
        qsort(listing.files, listing.count, sizeof *listing.files, by_use);
        /* Down to three quarters, so that it is not done at every write. */
        for (size_t i = 0; i < listing.count && listing.bytes > limit / 4 * 3; i++)
            if (unlink(listing.files[i].path) == 0) listing.bytes -= listing.files[i].bytes;
    }
    listing_free(&listing);
}

static void tidy_if_due(const char *path) {
    char mark[4352];
    struct stat status;
    mark_path(path, mark);
    time_t now = time(NULL);
    if (stat(mark, &status) != 0 || now - status.st_mtime > TIDY_SECONDS ||
        status.st_mtime > now + TIDY_SECONDS)
        tidy(path);
}

static struct place *find_place(const char *wish) {
    for (struct place *place = places; place; place = place->next)
        if (strcmp(place->wish, wish) == 0) return place;
    return NULL;
}

/* Checks the folder; warns once about a problem. NULL: out of memory. */
static struct place *add_place(const char *wish) {
    struct place *place = calloc(1, sizeof *place);
    char *copy = strdup(wish);
    if (!place || !copy) {
        free(place);
        free(copy);
        return NULL;
    }
    place->wish = copy;
    if (check_folder(wish) == SMELT_OK) {
        tidy_if_due(wish);
    } else {
        place->error = strdup(smelt_error());
        log_line(SMELT_LOG_WARNING, "%s; compiling without a cache", smelt_error());
    }
    place->next = places;
    places = place;
    return place;
}

const char *cache_folder(void) {
    char *wish = wished_folder();
    if (!wish) {
        (void)fail_out_of_memory(1);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    const struct place *place = find_place(wish);
    if (!place) place = add_place(wish);
    pthread_mutex_unlock(&lock);
    free(wish);
    if (place && !place->error) return place->wish;
    error_record("%s", place ? place->error : "no memory for the cache folder");
    return NULL;
}

static bool entry_path(struct hash key, const char *kind, char path[4352]) {
    const char *where = cache_folder();
    if (!where) return false;
    char hex[HASH_HEX_LENGTH + 1];
    hash_hex(key, hex);
    return snprintf(path, 4352, "%s/%s.%s", where, hex, kind) < 4352;
}

/* The header of an entry's contents. */
struct entry_header {
    char magic[16];
    struct hash hash; /* of key, kind and contents */
};

static const char entry_magic[16] = "smelt cache 1";

static struct hash entry_hash(struct hash key, const char *kind, const struct bytes *pieces, int count) {
    struct hasher *hasher = hasher_create();
    hasher_add(hasher, &key, sizeof key);
    hasher_add_string(hasher, kind);
    for (int i = 0; i < count; i++) hasher_add_raw(hasher, pieces[i].data, pieces[i].size);
    return hasher_finish(hasher);
}

/* Removes the header; false if the entry differs from what was written. */
static bool take_header(struct hash key, const char *kind, struct text *contents) {
    struct entry_header header;
    if (contents->length < sizeof header) return false;
    memcpy(&header, contents->data, sizeof header);
    struct bytes piece = {contents->data + sizeof header, contents->length - sizeof header};
    struct hash found = entry_hash(key, kind, &piece, 1);
    if (memcmp(header.magic, entry_magic, sizeof entry_magic) != 0 || found.low != header.hash.low ||
        found.high != header.hash.high)
        return false;
    memmove(contents->data, piece.data, piece.size + 1);
    contents->length = piece.size;
    return true;
}

void cache_clear_way(const char *path) {
    struct stat there;
    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode)) (void)unlink(path);
}

void cache_touch(const char *path) {
    (void)utimensat(AT_FDCWD, path, NULL, 0);
}

bool cache_read(struct hash key, const char *kind, struct text *contents) {
    char path[4352];
    if (!entry_path(key, kind, path)) return false;
    if (access(path, R_OK) != 0 || file_read(path, contents) != SMELT_OK) return false;
    if (!take_header(key, kind, contents)) {
        text_free(contents);
        (void)unlink(path);
        return false;
    }
    cache_touch(path);
    return true;
}

void cache_warn_unwritable(void) {
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        log_line(SMELT_LOG_WARNING, "%s; it is not kept in the cache", smelt_error());
}

#define MAX_PIECES 4

void cache_write(struct hash key, const char *kind, const struct bytes *pieces, int count) {
    char path[4352];
    static atomic_uint writes;
    struct entry_header header = {.hash = entry_hash(key, kind, pieces, count)};
    struct bytes all[MAX_PIECES + 1] = {{&header, sizeof header}};
    if (count > MAX_PIECES || !entry_path(key, kind, path)) return;
    memcpy(header.magic, entry_magic, sizeof entry_magic);
    for (int i = 0; i < count; i++) all[i + 1] = pieces[i];
    cache_clear_way(path);
    if (file_write(path, all, count + 1) != SMELT_OK) cache_warn_unwritable();
    if (atomic_fetch_add(&writes, 1) % TIDY_WRITES == TIDY_WRITES - 1) tidy(cache_folder());
}

void cache_remove(struct hash key, const char *kind) {
    char path[4352];
    if (entry_path(key, kind, path)) (void)unlink(path);
}

const char *smelt_cache_path(void) {
    return cache_folder();
}

smelt_status smelt_cache_usage(uint64_t *entries, uint64_t *bytes) {
    if (!entries || !bytes)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "cache usage: %s is NULL", entries ? "bytes" : "entries");
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
            status = fail(SMELT_ERROR_IO, "cache entry '%s' cannot be removed: %s", listing.files[i].path,
                          strerror(errno));
    listing_free(&listing);
    return status;
}
