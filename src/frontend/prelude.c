#include "frontend/prelude.h"
#include "frontend/cache.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct hash prelude_hash(void) { return hash_bytes(prelude_text, strlen(prelude_text)); }

static bool exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && status.st_size > 0;
}

static smelt_status precompile(const struct clang *clang, smelt_math_mode math, const char *path) {
    struct clang_request request = {
        .action = CLANG_PRECOMPILE, .math = math, .text = prelude_text, .length = strlen(prelude_text)};
    struct text image = {0}, messages = {0};
    bool ok;
    TRY(clang_run(clang, &request, &image, &messages, &ok));
    smelt_status status = SMELT_OK;
    if (!ok) {
        status = fail(SMELT_ERROR_INTERNAL, "smelt's own prelude does not compile: %.800s", text_string(&messages));
    } else {
        struct bytes piece = {image.data, image.length};
        status = file_write(path, &piece, 1);
    }
    text_free(&image);
    text_free(&messages);
    return status;
}

smelt_status prelude_precompiled(const struct clang *clang, smelt_math_mode math, char path[4096]) {
    path[0] = 0;
    const char *folder = cache_folder();
    if (!folder) return SMELT_OK;
    struct text flags = {0};
    clang_add_flags(math, &flags);
    struct hasher *hasher = hasher_create();
    hasher_add(hasher, prelude_text, strlen(prelude_text));
    hasher_add(hasher, &clang->identity, sizeof clang->identity);
    hasher_add_string(hasher, text_string(&flags));
    text_free(&flags);
    char hex[HASH_HEX_LENGTH + 1];
    hash_hex(hasher_finish(hasher), hex);
    snprintf(path, 4096, "%s/%s.pch", folder, hex);
    if (exists(path)) return SMELT_OK;
    smelt_status status = precompile(clang, math, path);
    if (status == SMELT_ERROR_IO) {
        /* Nowhere to keep it: the text goes in front of each kernel instead. */
        log_line(SMELT_LOG_WARNING, "%s", smelt_error());
        path[0] = 0;
        return SMELT_OK;
    }
    return status;
}

/* Metal's headers, and the one of simd that projects include on the host and the device. */
static const char *const header_names[] = {
    "metal_stdlib",     "metal_types",     "metal_type_traits", "metal_limits",   "metal_common",    "metal_math",
    "metal_integer",    "metal_relational", "metal_geometric",  "metal_matrix",   "metal_atomic",    "metal_compute",
    "metal_simdgroup",  "metal_quadgroup", "metal_array",       "metal_pack",     "metal_texture",   "metal_uniform",
    "metal_simdgroup_matrix", "metal_logging", "metal_tensor",  "metal_numeric",  "metal_utility",   "metal_graphics",
    "metal_tessellation", "metal_raytracing", "metal_config",   "simd/simd.h"};

smelt_status prelude_stub_folder(char path[4096]) {
    path[0] = 0;
    const char *folder = cache_folder();
    if (!folder) return SMELT_OK;
    snprintf(path, 4096, "%s/headers-1", folder);
    char file[4200];
    snprintf(file, sizeof file, "%s/complete", path);
    if (access(file, F_OK) == 0) return SMELT_OK;
    snprintf(file, sizeof file, "%s/simd", path);
    TRY(file_make_folder(file));
    for (size_t i = 0; i < sizeof header_names / sizeof *header_names; i++) {
        snprintf(file, sizeof file, "%s/%s", path, header_names[i]);
        TRY(file_write(file, NULL, 0));
    }
    snprintf(file, sizeof file, "%s/complete", path);
    return file_write(file, NULL, 0);
}
