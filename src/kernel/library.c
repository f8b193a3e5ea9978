/* Whole .metal files, and packages of them: their functions; building packages. */
#include "array/array.h"
#include "base/file.h"
#include "base/reserved.h"
#include "frontend/diagnostic.h"
#include "kernel/library.h"
#include "kernel/trace.h"
#include "package/build.h"
#include "package/code.h"
#include "package/describe.h"

#include <stdlib.h>
#include <string.h>

static smelt_status translate(smelt_library *library, const smelt_library_desc *desc) {
    struct translation_request request = {.text = text_string(&library->source),
                                          .length = library->source.length,
                                          .math = desc->math,
                                          .metal_version = desc->metal_version,
                                          .include_paths = desc->include_paths,
                                          .macros = desc->macros,
                                          .texts = {{library->label, text_string(&library->source)}}};
    struct trace_span span = trace_begin();
    smelt_status status = translation_create(&request, &library->translation);
    if (span.capture) trace_translation(span, library->label, status);
    return status;
}

static smelt_status check_desc(const smelt_library_desc *desc, smelt_library **out) {
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "library: the address for the new library is NULL");
    if (!desc || (!desc->path && !desc->source && !desc->package))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library: neither path nor source nor package is given");
    TRY(reserved_check(smelt_library_desc, desc));
    if (desc->source && desc->package)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "library: source and package are both given; expected one of them");
    TRY(translation_check_macros("library", desc->macros));
    return metal_version_check("library", desc->metal_version);
}

static bool has_suffix(const char *path, const char *suffix) {
    size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

/* Reads the descriptor's source, as text or package. */
static smelt_status read_source(smelt_library *library, const smelt_library_desc *desc) {
    if (desc->source)
        text_add(&library->source, desc->source);
    else if (desc->package)
        text_append(&library->source, desc->package, desc->package_size);
    else
        TRY(file_read(desc->path, &library->source));
    /* A file that calls itself a package is one, if a damaged one. */
    bool named = desc->path && has_suffix(desc->path, ".smeltlib");
    bool begins = package_begins(text_string(&library->source), library->source.length);
    library->packaged = !desc->source && (desc->package || begins || named);
    return library->source.failed ? fail_out_of_memory(library->source.length) : SMELT_OK;
}

smelt_status smelt_library_create(const smelt_library_desc *desc, smelt_library **out) {
    TRY(check_desc(desc, out));
    smelt_library *library = calloc(1, sizeof *library);
    if (!library) return fail_out_of_memory(sizeof *library);
    const char *label = desc->path ? desc->path : desc->package ? "package" : "library.metal";
    atomic_init(&library->references, 1);
    library->label = string_copy(label, strlen(label));
    smelt_status status = library->label ? SMELT_OK : fail_out_of_memory(strlen(label));
    if (status == SMELT_OK) status = read_source(library, desc);
    if (status == SMELT_OK)
        status = library->packaged
                     ? package_read(label, library->source.data, library->source.length, &library->package)
                     : translate(library, desc);
    if (status != SMELT_OK) {
        text_free(&library->source);
        free(library->label);
        free(library);
        return status;
    }
    *out = library;
    return SMELT_OK;
}

smelt_library *smelt_library_retain(smelt_library *library) {
    if (library) atomic_fetch_add(&library->references, 1);
    return library;
}

void smelt_library_release(smelt_library *library) {
    if (!library || atomic_fetch_sub(&library->references, 1) != 1) return;
    if (library->packaged)
        package_free(&library->package);
    else
        translation_free(&library->translation);
    text_free(&library->source);
    free(library->label);
    free(library);
}

int smelt_library_function_count(const smelt_library *library) {
    if (!library) return 0;
    return library->packaged ? library->package.entry_count : library->translation.program.entry_count;
}

const struct entry *library_entry(const smelt_library *library, int index) {
    return library->packaged ? &library->package.entries[index].entry
                             : &library->translation.program.entries[index];
}

static const char *without_namespaces(const char *name) {
    const char *last = name;
    for (const char *c = name; *c && *c != '<'; c++)
        if (c[0] == ':' && c[1] == ':') last = c + 2;
    return last;
}

int library_find(const smelt_library *library, const char *name) {
    int found = -1, matches = 0;
    for (int i = 0; i < smelt_library_function_count(library); i++) {
        const char *host_name = library_entry(library, i)->host_name;
        if (strcmp(host_name, name) == 0) return i;
        if (strcmp(without_namespaces(host_name), name) != 0) continue;
        found = i;
        matches++;
    }
    return matches == 1 ? found : -1;
}

const char *smelt_library_function_name(const smelt_library *library, int index) {
    if (index < 0 || index >= smelt_library_function_count(library)) return NULL;
    return library_entry(library, index)->host_name;
}

/* Something else of that name in the source: a function of another stage, or a template of kernels, which
 * must be instantiated first. NULL if there is none. */
static const struct other_function *other_of_name(const smelt_library *library, const char *name) {
    const struct program *program = &library->translation.program;
    for (int i = 0; name && !library->packaged && i < program->other_count; i++) {
        const struct other_function *other = &program->others[i];
        if (strcmp(other->name, name) == 0 || strcmp(without_namespaces(other->name), name) == 0)
            return other;
    }
    return NULL;
}

static smelt_status fail_other(const smelt_library *library, const struct other_function *other,
                               const char *name) {
    struct text message = {0}, described = {0};
    if (other->stage)
        text_addf(&message, "'%s' is %s %s function; render functions are not supported", name,
                  strchr("aeiou", *other->stage) ? "an" : "a", other->stage);
    else
        text_addf(&message,
                  "'%s' is a template of kernels; expected the name of an instantiation, such as: template "
                  "[[host_name(\"%s_float\")]] [[kernel]] decltype(%s<float>) %s<float>;",
                  name, name, name, name);
    diagnostics_add(&library->translation, library->translation.program.input.items[other->token].start,
                    text_string(&message), &described);
    error_record("%s", text_string(&described));
    text_free(&message);
    text_free(&described);
    return other->stage ? SMELT_ERROR_UNSUPPORTED : SMELT_ERROR_INVALID_ARGUMENT;
}

smelt_status library_lacks(const smelt_library *library, const char *name) {
    struct text names = {0};
    const struct other_function *other = other_of_name(library, name);
    if (other) return fail_other(library, other, name);
    int count = smelt_library_function_count(library);
    for (int i = 0; i < count && i < 20; i++)
        text_addf(&names, "%s%s", i ? ", " : "", library_entry(library, i)->host_name);
    if (count > 20) text_addf(&names, " and %d more", count - 20);
    smelt_status status;
    if (!count)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s has no kernel function", library->label);
    else if (name)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s has no kernel function '%s'; expected one of: %s",
                      library->label, name, text_string(&names));
    else
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s has %d kernel functions; name one of: %s",
                      library->label, count, text_string(&names));
    text_free(&names);
    return status;
}

smelt_status library_check_constants(const smelt_constant *constants) {
    for (int i = 0; i < SMELT_MAX_CONSTANTS && constants[i].dtype != SMELT_NO_DTYPE; i++)
        TRY(reserved_check(smelt_constant, &constants[i]));
    return SMELT_OK;
}

/* ---- Packages. */

static smelt_status check_build(const smelt_library *library, const smelt_build_desc *desc) {
    if (!library || !desc || !desc->path)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library build: %s is NULL",
                    !library ? "library"
                    : !desc  ? "desc"
                             : "path");
    TRY(reserved_check(smelt_build_desc, desc));
    TRY(library_check_constants(desc->constants));
    if (library->packaged)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "'%s' is already a package; packages are built from text",
                    library->label);
    if (!smelt_library_function_count(library)) return library_lacks(library, NULL);
    const struct device *cpu;
    TRY(device_find(NULL, &cpu));
    for (int i = 0; i < SMELT_MAX_BUILD_THREADGROUPS && desc->threadgroups[i][0]; i++) {
        int64_t product = 1;
        for (int d = 0; d < 3; d++) {
            int64_t size = desc->threadgroups[i][d] || d == 0 ? desc->threadgroups[i][d] : 1;
            if (size < 1 || __builtin_mul_overflow(product, size, &product) || product > cpu->thread_limit)
                return fail(
                    SMELT_ERROR_INVALID_ARGUMENT,
                    "library build: threadgroup %lld x %lld x %lld is invalid; expected 1 to %u threads",
                    (long long)desc->threadgroups[i][0], (long long)desc->threadgroups[i][1],
                    (long long)desc->threadgroups[i][2], cpu->thread_limit);
        }
    }
    return SMELT_OK;
}

/* The entries of these names (NULL: all) in the order of the text, each once. */
static smelt_status choose_entries(const smelt_library *library, const char *const *names,
                                   const struct entry **entries, int *count) {
    int functions = smelt_library_function_count(library);
    for (int i = 0; !names && i < functions; i++) entries[i] = library_entry(library, i);
    for (const char *const *name = names; name && *name; name++) {
        int index = library_find(library, *name);
        if (index < 0) return library_lacks(library, *name);
        entries[index] = library_entry(library, index);
    }
    *count = 0;
    for (int i = 0; i < functions; i++)
        if (entries[i]) entries[(*count)++] = entries[i];
    if (!*count) return fail(SMELT_ERROR_INVALID_ARGUMENT, "library build: the list of entries is empty");
    return SMELT_OK;
}

smelt_status library_package(const smelt_library *library, const smelt_build_desc *desc,
                             const struct package_launch *launches, int launch_count, struct text *bytes) {
    size_t most = (size_t)smelt_library_function_count(library);
    const struct entry **entries = calloc(most + 1, sizeof *entries);
    if (!entries) return fail_out_of_memory(most * sizeof *entries);
    struct package_request request = {.translation = &library->translation,
                                      .source_name = library->label,
                                      .entries = entries,
                                      .desc = desc,
                                      .launches = launches,
                                      .launch_count = launch_count};
    smelt_status status = choose_entries(library, desc->entries, entries, &request.entry_count);
    if (status == SMELT_OK) status = package_build(&request, bytes);
    free(entries);
    return status;
}

smelt_status smelt_library_build(smelt_library *library, const smelt_build_desc *desc) {
    struct text bytes = {0};
    TRY(check_build(library, desc));
    TRY(file_check_writable(desc->path));
    smelt_status status = library_package(library, desc, NULL, 0, &bytes);
    if (bytes.length) {
        struct bytes piece = {bytes.data, bytes.length};
        smelt_status written = file_write(desc->path, &piece, 1);
        if (written != SMELT_OK) status = written;
    }
    text_free(&bytes);
    return status;
}

smelt_status smelt_library_describe(const smelt_library *library, const char *name, char **text) {
    if (!library || !text)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "library describe: %s is NULL",
                    library ? "text" : "library");
    if (!library->packaged)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "'%s' is not a package; only packages can be described",
                    library->label);
    int index = name ? library_find(library, name) : -1;
    if (name && index < 0) return library_lacks(library, name);
    struct text out = {0};
    describe_package(&library->package, index, &out);
    if (out.failed) return fail_out_of_memory(out.length);
    *text = out.data;
    return SMELT_OK;
}
