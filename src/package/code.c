#include "package/code.h"
#include "frontend/compiler_library.h"
#include "frontend/target.h"
#include "package/describe.h"
#include "package/features.h"
#include "package/select.h"

#include <stdlib.h>
#include <string.h>

static smelt_status read_code(const char *name, const struct package_code *code, struct image *image) {
    smelt_status status = image_read(code->image.data, code->image.size, image);
    return status == SMELT_OK ? status : fail_within(status, "kernel '%s'", name);
}

static smelt_status make_code(const struct package_entry *entry, const struct code_options *options,
                              struct image *image, bool *ready) {
    const char *cpu = target_cpu();
    struct hash key = hash_bytes(entry->bitcode.data, entry->bitcode.size);
    *ready = code_recall(key, options, cpu, image);
    return *ready ? SMELT_OK : code_make(entry->bitcode, key, options, cpu, image);
}

static void name_targets(const struct package *package, struct text *out) {
    for (int i = 0; i < package->target_count; i++)
        text_addf(out, "%s%s", i ? ", " : "", package->targets[i].name);
}

/* Why the package's codes cannot be used on a device (package_target_here), as the start of a sentence; "" if
 * they can. */
static void reason_against(const struct package *package, const struct package_entry *entry,
                           const char *device, bool changed, struct text *reason) {
    struct text why = {0};
    if (!entry->code_count) {
        text_add(reason, "the package has no code for it, as function constants get their values only now");
    } else if (changed) {
        text_add(reason, "the package's code was made with other values of function constants");
    } else if (!package_code_fits(package)) {
        text_addf(reason, "the package's code was made by another build of smelt (version %s)",
                  package->smelt_version);
    } else if (package_target_here(package, device, &why) >= 0) {
        /* They can. */
    } else if (device) {
        text_addf(reason, "the package has no code that runs on a GPU of %s; it has code for ", device);
        name_targets(package, reason);
    } else {
        text_addf(reason, "the package's code does not run here: %s",
                  why.length ? text_string(&why) : "there is none for CPUs");
    }
    text_free(&why);
}

/* What the device has that code for the target leaves unused; NULL: nothing. */
static const char *unused_by(const struct package_target *target, const char *device) {
    struct text here = {0};
    bool wider = false;
    if (device) return strcmp(target->processor, device) != 0 ? "what is newer in this GPU" : NULL;
    features_allowed(&here);
    wider = features_level(text_string(&here)) > features_level(target->features);
    text_free(&here);
    return wider ? "wider registers of this machine" : NULL;
}

/* Where the code runs though better could be had. */
static char *note_of(const struct package_target *target, const struct package_code *code,
                     const struct code_options *options, bool well) {
    struct text note = {0};
    const struct code_shape *wanted = &options->shape;
    const char *unused = unused_by(target, options->target);
    if (!well || unused) text_addf(&note, "runs the package's code for %s", target->name);
    if (unused) text_addf(&note, ", which leaves %s unused", unused);
    if (!well) {
        text_add(&note, ", made for ");
        describe_shape(&code->shape, &note);
        text_add(&note, "; code for ");
        describe_shape(wanted, &note);
        text_addf(&note, " would be faster, and needs the compiler library%s",
                  wanted->small ? ", or --threadgroup when the package is built" : "");
    }
    return note.data;
}

smelt_status package_code(const struct package *package, const struct package_entry *entry,
                          const struct code_options *options, bool changed, struct image *image, bool *ready,
                          char **note) {
    struct text reason = {0}, ignored = {0};
    const struct code_shape *wanted = &options->shape;
    const struct package_code *code = NULL;
    *note = NULL;
    *ready = true;
    reason_against(package, entry, options->target, changed, &reason);
    int target = reason.length ? -1 : package_target_here(package, options->target, &ignored);
    text_free(&ignored);
    if (target >= 0) code = package_find_code(entry, target, wanted);
    bool well = code && (code->engine == ENGINE_SCALAR || shape_serves_well(&code->shape, wanted));
    if (well) {
        text_free(&reason);
        *note = note_of(&package->targets[target], code, options, true);
        return read_code(options->name, code, image);
    }
    smelt_status status = make_code(entry, options, image, ready);
    if (status == SMELT_ERROR_NO_COMPILER && code) {
        *note = note_of(&package->targets[target], code, options, false);
        *ready = true;
        status = read_code(options->name, code, image);
    } else if (status == SMELT_ERROR_NO_COMPILER) {
        if (!reason.length && options->target)
            text_addf(&reason, "the package has no code for %s that serves this launch", options->target);
        else if (!reason.length)
            text_add(&reason, "the package has no code of the scalar engine");
        status = fail_within(status, "kernel '%s': %s", options->name, text_string(&reason));
    }
    text_free(&reason);
    return status;
}

smelt_status package_show(const struct package_entry *entry, const struct code_options *options,
                          smelt_stage stage, char **text) {
    if (stage == SMELT_STAGE_SOURCE || stage == SMELT_STAGE_REWRITTEN)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "kernel '%s': a package holds no source text; there are the stages ir, simd, asm, ptx and why",
            options->name);
    return code_show(entry->bitcode, options, target_cpu(), stage, text);
}
