#include "frontend/compiler_library.h"
#include "base/setting.h"
#include "frontend/companion.h"
#include "frontend/compile_process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct compiler *opened;

static smelt_status open_library(const struct compiler **compiler) {
    char path[4096];
    companion_find(COMPANION_COMPILER_LIBRARY, path);
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

/* smelt-cc1, or else the library. */
static smelt_status find(const struct compiler **compiler) {
    *compiler = compile_process_find();
    return *compiler ? SMELT_OK : open_library(compiler);
}

smelt_status compiler_open(const struct compiler **compiler) {
    static struct setting setting = {"SMELT_COMPILE", {"1", "0"}, ATOMIC_FLAG_INIT};
    if (setting_choice(&setting) != 0)
        return fail(SMELT_ERROR_NO_COMPILER, "SMELT_COMPILE is 0: nothing is compiled");
    pthread_mutex_lock(&lock);
    smelt_status status = opened ? SMELT_OK : find(&opened);
    if (status == SMELT_OK) *compiler = opened;
    pthread_mutex_unlock(&lock);
    return status;
}
