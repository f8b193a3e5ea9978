#include "tune/sqlite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libsqlite3.so.0"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sqlite table;
static char why[256]; /* "" once the table is complete */

/* The library stays open until the process ends. */
static void open_library(void) {
    static const char *const symbols[] = {
#define SYMBOL(result, name, arguments) "sqlite3_" #name,
        SQLITE_TABLE(SYMBOL)
#undef SYMBOL
    };
    void *functions[sizeof symbols / sizeof *symbols], *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    _Static_assert(sizeof functions == sizeof table, "the table holds function pointers and nothing else");
    if (!library) {
        const char *cause = dlerror();
        snprintf(why, sizeof why, "SQLite's library cannot be opened: %s", cause ? cause : LIBRARY);
        return;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        functions[i] = dlsym(library, symbols[i]);
        if (!functions[i]) {
            snprintf(why, sizeof why, LIBRARY " lacks %s", symbols[i]);
            return;
        }
    }
    memcpy(&table, functions, sizeof table);
}

const struct sqlite *sqlite_open(const char **reason) {
    pthread_once(&once, open_library);
    *reason = why;
    return *why ? NULL : &table;
}
