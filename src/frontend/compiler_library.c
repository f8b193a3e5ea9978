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

/* Looks beside `file` (libsmelt.so in a build or a wheel), in its own folder there (installed), and in the
 * lib folder next to that file's (a program that links the library's objects). */
static bool find_near(const char *file, char path[4096]) {
    static const char *const places[] = {"", "smelt/", "../lib/"};
    const char *slash = strrchr(file, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(path, 4096, "%.*s/%s%s", (int)(slash - file), file, places[i], LIBRARY_NAME);
        if (access(path, R_OK) == 0) return true;
    }
    return false;
}

/* Near the file this code lies in, or what that is a link to. */
void compiler_library_path(char path[4096]) {
    Dl_info info = {0};
    const char *file = dladdr((const void *)&smelt_version, &info) && info.dli_fname ? info.dli_fname : "";
    if (find_near(file, path)) return;
    char *target = strchr(file, '/') ? realpath(file, NULL) : NULL;
    bool found = target && find_near(target, path);
    free(target);
    if (found) return;
    /* It is not there: the message names the first place. */
    const char *slash = strrchr(file, '/');
    snprintf(path, 4096, "%.*s%s", slash ? (int)(slash + 1 - file) : 0, file, LIBRARY_NAME);
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
        return fail(SMELT_ERROR_NO_COMPILER, "'%s' belongs to another version of smelt", path);
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
