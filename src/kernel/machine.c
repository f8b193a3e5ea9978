/* The compiler and devices of this machine, for programs that display them. */
#include "device/device.h"
#include "frontend/clang.h"
#include "frontend/companion.h"
#include "frontend/compiler_library.h"
#include "frontend/target.h"

#include <string.h>

/* Copies for the caller, of those requested: both or none. */
static smelt_status hand_out(const char *path, const char *version, char **path_out, char **version_out) {
    char *path_copy = string_copy(path, strlen(path)), *version_copy = string_copy(version, strlen(version));
    if (!path_copy || !version_copy) {
        smelt_free(path_copy);
        smelt_free(version_copy);
        return fail_out_of_memory(strlen(path) + strlen(version) + 2);
    }
    if (path_out)
        *path_out = path_copy;
    else
        smelt_free(path_copy);
    if (version_out)
        *version_out = version_copy;
    else
        smelt_free(version_copy);
    return SMELT_OK;
}

smelt_status smelt_clang_find(char **path, char **version) {
    struct clang clang;
    char line[256];
    TRY(clang_find(&clang));
    clang_version(&clang, line);
    return hand_out(clang.path, line, path, version);
}

smelt_status smelt_llvm_find(char **path, char **version) {
    const struct compiler *compiler;
    char place[4096];
    TRY(compiler_open(&compiler));
    companion_find(compiler->in_process_of_its_own ? COMPANION_CC1 : COMPANION_COMPILER_LIBRARY, place);
    return hand_out(place, compiler->llvm_version, path, version);
}

int smelt_device_vector_bits(const char *name) {
    const struct device *device;
    const struct compiler *compiler;
    if (!name || device_find(name, &device) != SMELT_OK || !engine_traits(device->engine)->is_vector)
        return 0;
    return compiler_open(&compiler) == SMELT_OK ? compiler->vector_bits(target_cpu()) : 0;
}
