#include "frontend/compiler_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY_NAME "libsmelt_compiler.so"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct compiler *opened;

/* Beside the file this code lies in (libsmelt.so), or in the lib folder next to that file's (a program that
 * links the library's objects). */
void compiler_library_path(char path[4096]) {
    static const char *const places[] = {"", "../lib/"};
    Dl_info info;
    snprintf(path, 4096, "%s", LIBRARY_NAME);
    const char *slash =
        dladdr((const void *)&smelt_version, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    if (!slash) return;
    int folder = (int)(slash - info.dli_fname);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, 4096, "%.*s/%s%s", folder, info.dli_fname, places[i], LIBRARY_NAME);
        if (access(path, R_OK) == 0) return;
    }
    /* It is not there: the message names the first place. */
    snprintf(path, 4096, "%.*s/%s", folder, info.dli_fname, LIBRARY_NAME);
}

static smelt_status open_library(const struct compiler **compiler) {
    char path[4096];
    compiler_library_path(path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(SMELT_ERROR_NO_COMPILER,
                    "the compiler library cannot be opened: %s; it needs LLVM 19: install the Debian package "
                    "libllvm19",
                    dlerror());
    void *symbol = dlsym(library, "smelt_compiler");
    smelt_compiler_function *function;
    memcpy(&function, &symbol, sizeof function);
    const struct compiler *found = symbol ? function() : NULL;
    if (!found || found->interface != COMPILER_INTERFACE) {
        dlclose(library);
        return fail(SMELT_ERROR_NO_COMPILER, "'%s' is of another version of smelt", path);
    }
    if (strncmp(found->llvm_version, "19.", 3) != 0)
        return fail(
            SMELT_ERROR_NO_COMPILER,
            "the compiler library found LLVM %s; expected LLVM 19: install the Debian package libllvm19",
            found->llvm_version);
    *compiler = found;
    return SMELT_OK;
}

smelt_status compiler_open(const struct compiler **compiler) {
    const char *setting = getenv("SMELT_COMPILE");
    if (setting && strcmp(setting, "0") == 0)
        return fail(SMELT_ERROR_NO_COMPILER, "SMELT_COMPILE is 0: nothing is compiled");
    pthread_mutex_lock(&lock);
    smelt_status status = opened ? SMELT_OK : open_library(&opened);
    if (status == SMELT_OK) *compiler = opened;
    pthread_mutex_unlock(&lock);
    return status;
}
