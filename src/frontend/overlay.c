#include "frontend/overlay.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/process.h"
#include "frontend/prelude.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Metal's headers, which are there as <metal_stdlib> and as <metal/metal_stdlib>, and those of simd that
 * projects include on the host and the device. */
static const char *const header_names[] = {"metal_stdlib",
                                           "metal_types",
                                           "metal_type_traits",
                                           "metal_limits",
                                           "metal_common",
                                           "metal_math",
                                           "metal_integer",
                                           "metal_relational",
                                           "metal_geometric",
                                           "metal_matrix",
                                           "metal_atomic",
                                           "metal_compute",
                                           "metal_simdgroup",
                                           "metal_quadgroup",
                                           "metal_array",
                                           "metal_pack",
                                           "metal_texture",
                                           "metal_uniform",
                                           "metal_simdgroup_matrix",
                                           "metal_logging",
                                           "metal_tensor",
                                           "metal_numeric",
                                           "metal_utility",
                                           "metal_graphics",
                                           "metal_tessellation",
                                           "metal_raytracing",
                                           "metal_config",
                                           "metal_assert",
                                           "metal_command_buffer",
                                           "metal_cooperative_tensor",
                                           "metal_curves",
                                           "metal_extended_vector",
                                           "metal_functional",
                                           "metal_imageblocks",
                                           "metal_initializer_list",
                                           "metal_interpolate",
                                           "metal_iterator",
                                           "metal_mesh",
                                           "metal_packed_numeric",
                                           "metal_packed_vector",
                                           "metal_pixel",
                                           "metal_visible_function_table",
                                           "TargetConditionals.h"};
static const char *const simd_header_names[] = {"simd.h",         "base.h",         "common.h",  "types.h",
                                                "vector_types.h", "matrix_types.h", "packed.h",  "vector.h",
                                                "matrix.h",       "math.h",         "geometry.h"};
static const char *const primitives_header_names[] = {
    "MetalPerformancePrimitives.h", "MPPTensorOpsMatMul2d.h", "MPPTensorOpsConvolution2d.h"};
static const char *const execution_header_names[] = {"units.h"};

/* Empty files: the prelude has their declarations. Not /dev/null, which may be a regular file with contents.
 */
static void add_headers(struct text *overlay, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        text_addf(overlay, "%s{\"name\":\"%s\",\"type\":\"file\",\"external-contents\":\"/dev/fd/%d\"}",
                  i ? "," : "", names[i], PROCESS_FIRST_FILE + PRELUDE_HEADERS);
}

/* Files with contents, which the compiler has as descriptors. */
static void add_smelt_headers(struct text *overlay) {
    text_add(overlay, ",{\"name\":\"smelt\",\"type\":\"directory\",\"contents\":[");
    for (int i = 0; i < PRELUDE_HEADERS; i++)
        text_addf(overlay, "%s{\"name\":\"%s\",\"type\":\"file\",\"external-contents\":\"/dev/fd/%d\"}",
                  i ? "," : "", prelude_header_names[i], PROCESS_FIRST_FILE + i);
    text_add(overlay, "]}");
}

static void add_folder_of_headers(struct text *overlay, const char *folder, const char *const *names,
                                  size_t count) {
    text_addf(overlay, ",{\"name\":\"%s\",\"type\":\"directory\",\"contents\":[", folder);
    add_headers(overlay, names, count);
    text_add(overlay, "]}");
}

void overlay_path(const char *folder, struct text *path) {
    char *here = *folder == '/' ? NULL : getcwd(NULL, 0);
    struct text whole = {0};
    text_addf(&whole, "%s/%s", here ? here : "", folder);
    free(here);
    for (const char *at = text_string(&whole); *at;) {
        size_t length = strcspn(at, "/");
        if (length == 2 && memcmp(at, "..", 2) == 0) {
            while (path->length && path->data[path->length - 1] != '/') path->data[--path->length] = 0;
            if (path->length) path->data[--path->length] = 0;
        } else if (length && !(length == 1 && *at == '.')) {
            text_add(path, "/");
            text_append(path, at, length);
        }
        at += length + (at[length] == '/');
    }
    text_free(&whole);
}

/* A folder as itself; false if its name cannot be written there. */
static bool add_folder(struct text *overlay, const char *folder) {
    struct text path = {0}, printable = {0};
    overlay_path(folder, &path);
    text_add_printable(&printable, text_string(&path));
    bool good = path.length && printable.length == path.length && !path.failed && !printable.failed;
    if (good) {
        text_add(overlay, ",{\"name\":");
        json_add_string(overlay, text_string(&path), path.length);
        text_add(overlay, ",\"type\":\"directory-remap\",\"external-contents\":");
        json_add_string(overlay, text_string(&path), path.length);
        text_add(overlay, "}");
    }
    text_free(&path);
    text_free(&printable);
    return good;
}

smelt_status overlay_create(const char *const *folders, struct text *overlay) {
    struct text roots = {0};
    bool alone = true;
    for (const char *const *f = folders; f && *f; f++) alone &= add_folder(&roots, *f);
    text_addf(overlay,
              "{\"version\":0,\"case-sensitive\":true,\"use-external-names\":false%s,\"roots\":[{"
              "\"name\":\"" OVERLAY_HEADER_FOLDER "\",\"type\":\"directory\",\"contents\":[",
              alone ? ",\"redirecting-with\":\"redirect-only\"" : "");
    add_headers(overlay, header_names, sizeof header_names / sizeof *header_names);
    add_folder_of_headers(overlay, "metal", header_names, sizeof header_names / sizeof *header_names);
    add_folder_of_headers(overlay, "simd", simd_header_names,
                          sizeof simd_header_names / sizeof *simd_header_names);
    add_folder_of_headers(overlay, "MetalPerformancePrimitives", primitives_header_names,
                          sizeof primitives_header_names / sizeof *primitives_header_names);
    add_folder_of_headers(overlay, "__exec", execution_header_names,
                          sizeof execution_header_names / sizeof *execution_header_names);
    add_smelt_headers(overlay);
    text_add(overlay, ",{\"name\":\"" OVERLAY_SOURCE_NAME
                      "\",\"type\":\"file\",\"external-contents\":\"/dev/stdin\"}]}");
    if (alone) text_append(overlay, text_string(&roots), roots.length);
    text_add(overlay, "]}");
    bool failed = overlay->failed || roots.failed;
    text_free(&roots);
    return failed ? fail_out_of_memory(overlay->length) : SMELT_OK;
}

bool overlay_holds(const char *const *folders, const char *file) {
    struct text path = {0};
    bool held = false;
    overlay_path(file, &path);
    for (const char *const *f = folders; f && *f && !held; f++) {
        struct text folder = {0};
        overlay_path(**f ? *f : ".", &folder);
        held = path.length > folder.length &&
               memcmp(text_string(&path), text_string(&folder), folder.length) == 0 &&
               path.data[folder.length] == '/';
        text_free(&folder);
    }
    text_free(&path);
    return held;
}
