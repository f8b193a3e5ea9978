#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_LIBRARY "libcuda.so.1"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cuda_driver table;
static char reason_text[1024]; /* "" once the table is complete */

/* Appends to the reason as far as it has room. */
static void add(const char *before, const char *text) {
    size_t used = strlen(reason_text);
    snprintf(reason_text + used, sizeof reason_text - used, "%s%s", before, text);
}

/* The library stays open until the process ends. */
static void open_library(void) {
    const char *path = getenv("SMELT_CUDA_DRIVER");
    if (!path || !*path) path = USUAL_LIBRARY;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *cause = dlerror();
        snprintf(reason_text, sizeof reason_text, "the driver library '%s' cannot be opened: %s", path,
                 cause ? cause : "no reason is given");
        return;
    }
    static const char *const symbols[] = {
#define SYMBOL(name, symbol, arguments) symbol,
        CUDA_DRIVER_TABLE(SYMBOL) CUDA_DRIVER_NEWER(SYMBOL)
#undef SYMBOL
    };
#define ONE(name, symbol, arguments) +1
    const size_t required = 0 CUDA_DRIVER_TABLE(ONE);
#undef ONE
    void *functions[sizeof symbols / sizeof *symbols];
    _Static_assert(sizeof functions == sizeof table, "the table holds function pointers and nothing else");
    int missing = 0;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        functions[i] = dlsym(library, symbols[i]);
        if (functions[i] || i >= required) continue;
        if (!missing++)
            snprintf(reason_text, sizeof reason_text, "the driver library '%s' is too old: it lacks ", path);
        add(missing > 1 ? ", " : "", symbols[i]);
    }
    memcpy(&table, functions, sizeof table);
}

const struct cuda_driver *cuda_driver(const char **reason) {
    pthread_once(&once, open_library);
    *reason = reason_text;
    return *reason_text ? NULL : &table;
}
