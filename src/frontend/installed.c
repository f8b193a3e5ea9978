#include "frontend/installed.h"
#include "frontend/companion.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FOLDER "smelt-codes"

static char folder[4096]; /* "": there is none */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *collected;

static void find_folder(void) {
    if (!companion_find(FOLDER, folder)) folder[0] = 0;
}

static void path_of(const char *where, struct hash key, const char *kind, char path[4352]) {
    char hex[HASH_HEX_LENGTH + 1];
    hash_hex(key, hex);
    snprintf(path, 4352, "%s/%s.%s", where, hex, kind);
}

bool installed_read(struct hash key, const char *kind, struct text *contents) {
    char path[4352];
    const char *compiler = getenv("SMELT_CLANG");
    pthread_once(&once, find_folder);
    if (!folder[0] || collected || (compiler && *compiler)) return false;
    path_of(folder, key, kind, path);
    return access(path, R_OK) == 0 && file_read(path, contents) == SMELT_OK;
}

void installed_collect(const char *where) {
    collected = where;
}

void installed_write(struct hash key, const char *kind, const struct bytes *pieces, int count) {
    char path[4352];
    if (!collected) return;
    path_of(collected, key, kind, path);
    if (file_write(path, pieces, count) != SMELT_OK) log_line(SMELT_LOG_WARNING, "%s", smelt_error());
}
