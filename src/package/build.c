#include "package/build.h"
#include "abi/entry_names.h"
#include "base/clock.h"
#include "base/thread.h"
#include "frontend/gpu_target.h"
#include "abi/build_id.h"
#include "frontend/compile.h"
#include "frontend/compiler_library.h"
#include "package/constants.h"
#include "package/features.h"
#include "package/package.h"
#include "package/shapes.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Targets. */

static const char *const cpu_targets[] = {"cpu", "x86-64", "x86-64-v3", "x86-64-v4"};
#define CPU_TARGET_COUNT ((int)(sizeof cpu_targets / sizeof *cpu_targets))

static smelt_status unknown_target(const char *name) {
    struct text names = {0};
    for (int i = 0; i < CPU_TARGET_COUNT; i++) text_addf(&names, "%s, ", cpu_targets[i]);
    for (int i = 0; gpu_target_at(i); i++)
        text_addf(&names, "%s%s", i ? gpu_target_at(i + 1) ? ", " : " or " : "", gpu_target_at(i));
    smelt_status status =
        fail(SMELT_ERROR_INVALID_ARGUMENT, "target '%s' is unknown; expected %s", name, text_string(&names));
    text_free(&names);
    return status;
}

static smelt_status read_target(const char *name, struct arena *arena, struct package_target *target) {
    *target = (struct package_target){.kind = PACKAGE_TARGET_CPU, .name = name, .processor = ""};
    const char *level = features_of_level(name);
    if (strcmp(name, "cpu") == 0) {
        struct text features = {0};
        features_of_code(&features);
        target->features = arena_copy(arena, text_string(&features), features.length);
        text_free(&features);
    } else if (level) {
        target->processor = name;
        target->features = level;
    } else if (gpu_target_named(name)) {
        target->kind = PACKAGE_TARGET_CUDA;
        target->processor = name;
        target->features = "";
    } else {
        return unknown_target(name);
    }
    return target->features ? SMELT_OK : fail_out_of_memory(1);
}

/* ---- The work in progress. */

struct slot {
    bool done;
    smelt_status status;
    char *message;       /* heap: the error message, or a note after success */
    struct text skipped; /* requested sizes of threadgroups for which there is no code */
    double seconds;
    struct package_entry entry;
    struct text bitcode;
    struct package_code *codes; /* heap, with their images */
    struct package_constant *constants;
    struct constant_use *uses; /* the names of the function constants */
};

struct work {
    const struct package_request *request;
    const struct package_target *targets;
    int target_count;
    const char *target_names;
    smelt_constant given[SMELT_MAX_CONSTANTS + 1]; /* ended by SMELT_NO_DTYPE */
    struct slot *slots;
    atomic_int next;
    pthread_mutex_t lock;
    int reported;     /* slots reported so far */
    int first_failed; /* -1: none */
    int last;         /* no entry after this one is started: its failure ends the build */
};

static void slot_free(struct slot *slot) {
    for (int i = 0; i < slot->entry.code_count; i++) free((void *)slot->codes[i].image.data);
    free(slot->codes);
    free(slot->constants);
    free(slot->uses);
    free(slot->message);
    text_free(&slot->skipped);
    text_free(&slot->bitcode);
}

/* Names of symbols are stored in bitcode as plain text. */
static bool mentions(const struct entry_bitcode *bitcode, const char *name) {
    return memmem(text_string(&bitcode->bytes), bitcode->bytes.length, name, strlen(name)) != NULL;
}

/* Whether the entry refuses some sizes of threadgroups (prelude/MetalPerformancePrimitives). */
static bool mentions_sizes(const struct entry_bitcode *bitcode) {
    return mentions(bitcode, "by_a_part_of_the_threadgroup");
}

/* The caller frees `image` in any case. */
static smelt_status add_code(struct slot *slot, const struct entry_bitcode *bitcode,
                             const struct code_options *options, const struct work *work, int target,
                             struct image *image) {
    const struct package_target *t = &work->targets[target];
    struct package_code code = {.target = (uint32_t)target, .shape = options->shape};
    const char *processor = t->kind == PACKAGE_TARGET_CPU && *t->processor ? t->processor : NULL;
    struct bytes bytes = {bitcode->bytes.data, bitcode->bytes.length};
    char *written;
    bool ready;
    TRY(code_make_once(bytes, bitcode->key, options, processor, image, &ready));
    code.engine = image->engine;
    TRY(image_write(image, &written, &code.image.size));
    code.image.data = written;
    slot->codes[slot->entry.code_count++] = code;
    return SMELT_OK;
}

/* Facts that are the same for every code of an entry. */
static void note_entry(struct package_entry *entry, const struct image *image) {
    entry->max_threads = image->max_threads;
    memcpy(entry->required_threads, image->required_threads, sizeof image->required_threads);
    entry->has_barrier = image->has_barrier;
}

static void drop_last_code(struct slot *slot) {
    free((void *)slot->codes[--slot->entry.code_count].image.data);
}

/* Once per size, whatever the number of targets. */
static void note_skipped(struct slot *slot, const int64_t size[3], const char *why) {
    char note[120];
    snprintf(note, sizeof note, "threadgroup %lld,%lld,%lld skipped: %s", (long long)size[0],
             (long long)(size[1] ? size[1] : 1), (long long)(size[2] ? size[2] : 1), why);
    if (strstr(text_string(&slot->skipped), note)) return;
    text_addf(&slot->skipped, "%s%s", slot->skipped.length ? "; " : "", note);
}

/* Codes for one size of threadgroup, or for the size that the kernel requires. *added: it compiles for it. */
static smelt_status add_sized(const struct work *work, struct slot *slot, const struct entry_bitcode *bitcode,
                              struct code_options *options, int target, const uint32_t size[3], bool *added) {
    struct shapes shapes = {.count = 0};
    *added = false;
    for (int i = 0; i == 0 || i < shapes.count; i++) {
        struct image image = {0};
        options->shape = i ? shapes.items[i] : shapes_whole_groups(size);
        smelt_status status = add_code(slot, bitcode, options, work, target, &image);
        if (status == SMELT_OK && !i) {
            note_entry(&slot->entry, &image);
            shapes_for_size(&slot->entry, &image, size, &shapes);
        }
        image_free(&image);
        if (status == SMELT_ERROR_UNSUPPORTED && !i) return SMELT_OK;
        TRY(status);
        const uint32_t *required = slot->entry.required_threads;
        if (!i && required[0] && memcmp(required, size, sizeof slot->entry.required_threads) != 0) {
            drop_last_code(slot);
            return add_sized(work, slot, bitcode, options, target, required, added);
        }
    }
    *added = true;
    return SMELT_OK;
}

/* Codes of a kernel that does not compile for threadgroups of any size, as it is written for those of one
 * size: for the sizes that were asked for, and the first in a line for which it compiles. */
static smelt_status add_all_sized(const struct work *work, struct slot *slot,
                                  const struct entry_bitcode *bitcode, struct code_options *options,
                                  int target) {
    static const uint32_t usual[] = {128, 256, 384, 512, 640, 768, 896, 1024, 32, 64};
    const int64_t(*asked)[3] = work->request->desc->threadgroups;
    char *message = strdup(smelt_error());
    bool any = false, added;
    smelt_status status = message ? SMELT_OK : fail_out_of_memory(1);
    for (int i = 0; i < SMELT_MAX_BUILD_THREADGROUPS && asked[i][0] && status == SMELT_OK; i++) {
        uint32_t size[3];
        for (int d = 0; d < 3; d++) size[d] = asked[i][d] ? (uint32_t)asked[i][d] : 1;
        status = add_sized(work, slot, bitcode, options, target, size, &added);
        if (status == SMELT_OK && !added) note_skipped(slot, asked[i], "it does not compile for this size");
        any |= added;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !any && status == SMELT_OK; i++)
        status = add_sized(work, slot, bitcode, options, target, (uint32_t[3]){usual[i], 1, 1}, &any);
    if (status == SMELT_OK && !any) status = fail(SMELT_ERROR_UNSUPPORTED, "%s", message);
    free(message);
    return status;
}

static smelt_status make_target_codes(const struct work *work, struct slot *slot,
                                      const struct entry_bitcode *bitcode, struct code_options *options,
                                      int target) {
    bool gpu = work->targets[target].kind == PACKAGE_TARGET_CUDA;
    struct shapes shapes = {.count = 0};
    options->target = gpu ? work->targets[target].processor : NULL;
    options->shape = gpu ? shape_any_on_gpu : shape_any_on_cpu;
    for (int i = -1; i < shapes.count; i++) {
        struct image image = {0};
        if (i >= 0) options->shape = shapes.items[i];
        smelt_status status = add_code(slot, bitcode, options, work, target, &image);
        if (status == SMELT_OK && i < 0) {
            note_entry(&slot->entry, &image);
            if (gpu)
                shapes_for_gpu(work->request->desc, &slot->entry, &image, &shapes);
            else if (!engine_traits(image.engine)->serves_all)
                shapes_for_cpu(work->request, &slot->entry, &shapes);
        }
        image_free(&image);
        if (status == SMELT_ERROR_UNSUPPORTED && i < 0 && gpu && mentions_sizes(bitcode))
            return add_all_sized(work, slot, bitcode, options, target);
        TRY(status);
    }
    return SMELT_OK;
}

/* The requested sizes that differ from the only one that the kernel runs with. */
static void note_other_sizes(const struct work *work, struct slot *slot) {
    const int64_t(*asked)[3] = work->request->desc->threadgroups;
    const uint32_t *required = slot->entry.required_threads;
    char why[80];
    snprintf(why, sizeof why, "the kernel requires %u,%u,%u", required[0], required[1], required[2]);
    for (int i = 0; i < SMELT_MAX_BUILD_THREADGROUPS && asked[i][0] && required[0]; i++)
        for (int d = 0; d < 3; d++)
            if ((asked[i][d] ? asked[i][d] : 1) != required[d]) note_skipped(slot, asked[i], why);
}

static smelt_status make_codes(const struct work *work, struct slot *slot,
                               const struct entry_bitcode *bitcode, const smelt_constant *constants) {
    struct code_options options = {.name = slot->entry.entry.host_name, .constants = constants};
    slot->codes = calloc((size_t)work->target_count * MOST_CODES, sizeof *slot->codes);
    if (!slot->codes) return fail_out_of_memory(MOST_CODES * sizeof *slot->codes);
    for (int t = 0; t < work->target_count; t++) TRY(make_target_codes(work, slot, bitcode, &options, t));
    note_other_sizes(work, slot);
    return SMELT_OK;
}

/* ---- Function constants. */

/* Lists the function constants that the entry names; those with values go to `values`. *missing lists those
 * that need a value and lack one. */
static smelt_status list_constants(const struct work *work, struct slot *slot,
                                   const struct entry_bitcode *bitcode,
                                   smelt_constant values[SMELT_MAX_CONSTANTS + 1], struct text *missing) {
    int count = 0, set = 0;
    values[0] = (smelt_constant){.dtype = SMELT_NO_DTYPE};
    if (!mentions(bitcode, CONSTANT_NAME)) return SMELT_OK;
    struct bytes bytes = {bitcode->bytes.data, bitcode->bytes.length};
    struct code_options options = {.name = slot->entry.entry.host_name, .constants = work->given};
    TRY(code_constants(bytes, &options, &slot->uses, &count, &slot->entry.has_barrier));
    slot->constants = calloc((size_t)count + 1, sizeof *slot->constants);
    if (!slot->constants) return fail_out_of_memory((size_t)count * sizeof *slot->constants);
    constants_of_uses(slot->uses, count, work->given, slot->constants);
    for (int i = 0; i < count; i++) {
        const struct package_constant *c = &slot->constants[i];
        if (c->set && set < SMELT_MAX_CONSTANTS) values[set++] = c->value;
        if (c->required)
            text_addf(missing, "%s%d ('%s')", missing->length ? ", " : "", c->value.index, c->name);
    }
    values[set] = (smelt_constant){.dtype = SMELT_NO_DTYPE};
    slot->entry.constants = slot->constants;
    slot->entry.constant_count = count;
    return SMELT_OK;
}

/* ---- One entry. */

static smelt_status build_entry(const struct work *work, const struct entry *entry, struct slot *slot) {
    struct entry_bitcode bitcode = {0};
    smelt_constant values[SMELT_MAX_CONSTANTS + 1];
    struct text missing = {0}, note = {0};
    slot->entry.entry = *entry;
    smelt_status status = compile_bitcode(work->request->translation, entry, &bitcode);
    if (status == SMELT_OK) {
        status = list_constants(work, slot, &bitcode, values, &missing);
        if (status == SMELT_OK && !missing.length) status = make_codes(work, slot, &bitcode, values);
        compile_drop_unreadable(&bitcode, status);
    }
    slot->bitcode = bitcode.bytes;
    slot->entry.bitcode = (struct bytes){slot->bitcode.data, slot->bitcode.length};
    slot->entry.codes = slot->codes;
    if (missing.length)
        text_addf(&note, "constant%s %s given at load", strchr(text_string(&missing), ',') ? "s" : "",
                  text_string(&missing));
    if (slot->skipped.length) text_addf(&note, "%s%s", note.length ? "; " : "", text_string(&slot->skipped));
    slot->message = strdup(status == SMELT_OK ? text_string(&note) : smelt_error());
    text_free(&missing);
    text_free(&note);
    return status;
}

/* Whether the failure is not the entry's own and would affect every other entry. */
static bool ends_the_build(const struct work *work, smelt_status status) {
    if (status == SMELT_OK) return false;
    return !work->request->desc->keep_going || status == SMELT_ERROR_NO_COMPILER ||
           status == SMELT_ERROR_IO || status == SMELT_ERROR_OUT_OF_MEMORY;
}

/* Reports finished entries in their order. */
static void finish(struct work *work, int index, smelt_status status, double seconds) {
    const struct package_request *request = work->request;
    pthread_mutex_lock(&work->lock);
    work->slots[index].status = status;
    work->slots[index].seconds = seconds;
    work->slots[index].done = true;
    if (status != SMELT_OK && (work->first_failed < 0 || index < work->first_failed))
        work->first_failed = index;
    if (ends_the_build(work, status) && index < work->last) work->last = index;
    while (work->reported < request->entry_count && work->slots[work->reported].done) {
        const struct slot *slot = &work->slots[work->reported++];
        smelt_build_report report = {.entry = slot->entry.entry.host_name,
                                     .targets = work->target_names,
                                     .seconds = slot->seconds,
                                     .status = slot->status,
                                     .message = slot->message ? slot->message : "",
                                     .number = work->reported,
                                     .total = request->entry_count,
                                     .codes = slot->entry.code_count,
                                     .bytes = slot->entry.bitcode.size};
        for (int i = 0; i < slot->entry.code_count; i++) report.bytes += slot->codes[i].image.size;
        if (request->desc->report) request->desc->report(&report, request->desc->context);
        if (ends_the_build(work, slot->status)) work->reported = request->entry_count;
    }
    pthread_mutex_unlock(&work->lock);
}

static bool wanted(struct work *work, int index) {
    pthread_mutex_lock(&work->lock);
    bool yes = index < work->last;
    pthread_mutex_unlock(&work->lock);
    return yes;
}

static void *work_on(void *argument) {
    struct work *work = argument;
    for (int i; (i = atomic_fetch_add(&work->next, 1)) < work->request->entry_count;) {
        if (!wanted(work, i)) continue;
        double start = clock_seconds();
        smelt_status status = build_entry(work, work->request->entries[i], &work->slots[i]);
        finish(work, i, status, clock_seconds() - start);
    }
    return NULL;
}

#define MAX_JOBS 64

static int job_count(const struct package_request *request) {
    cpu_set_t set;
    int jobs = request->desc->jobs;
    if (jobs <= 0) jobs = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    if (jobs > request->entry_count) jobs = request->entry_count;
    return jobs > MAX_JOBS ? MAX_JOBS : jobs;
}

static void run_jobs(struct work *work) {
    pthread_t threads[MAX_JOBS];
    int started = 0, jobs = job_count(work->request);
    while (started < jobs - 1 && thread_start(&threads[started], work_on, work) == 0) started++;
    work_on(work);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* ---- The finished package. */

static void warn_of_unknown_constants(const struct work *work) {
    for (const smelt_constant *given = work->given; given->dtype != SMELT_NO_DTYPE; given++) {
        bool known = false;
        for (int s = 0; s < work->request->entry_count; s++)
            for (int c = 0; c < work->slots[s].entry.constant_count; c++)
                known |= constant_matches(given, work->slots[s].constants[c].value.index,
                                          work->slots[s].constants[c].name);
        if (known) continue;
        if (given->name)
            log_line(SMELT_LOG_WARNING, "function constant '%s' has a value, but no built entry uses it",
                     given->name);
        else
            log_line(SMELT_LOG_WARNING, "function constant %d has a value, but no built entry uses it",
                     given->index);
    }
}

static smelt_status collect(const struct work *work, const char *llvm_version, struct text *bytes) {
    const struct package_request *request = work->request;
    struct package package = {.smelt_version = smelt_version(),
                              .llvm_version = llvm_version,
                              .bitcode_interface = bitcode_interface,
                              .code_interface = code_interface,
                              .source_name = request->source_name,
                              .math = request->translation->math,
                              .metal_version = (uint32_t)request->translation->metal_version,
                              .targets = work->targets,
                              .target_count = work->target_count};
    struct package_entry *entries = calloc((size_t)request->entry_count + 1, sizeof *entries);
    if (!entries) return fail_out_of_memory(sizeof *entries);
    for (int i = 0; i < request->entry_count; i++)
        if (work->slots[i].status == SMELT_OK) entries[package.entry_count++] = work->slots[i].entry;
    package.entries = entries;
    smelt_status status = package.entry_count ? package_write(&package, bytes) : SMELT_OK;
    free(entries);
    return status;
}

static smelt_status conclude(const struct work *work, struct text *bytes) {
    const struct package_request *request = work->request;
    const struct slot *first = work->first_failed < 0 ? NULL : &work->slots[work->first_failed];
    const struct compiler *compiler;
    int failed = 0;
    for (int i = 0; i < request->entry_count; i++) failed += work->slots[i].status != SMELT_OK;
    if (work->last < request->entry_count) {
        const struct slot *last = &work->slots[work->last];
        return fail(last->status, "entry '%s' does not compile: %s", last->entry.entry.host_name,
                    last->message ? last->message : "");
    }
    TRY(compiler_open(&compiler));
    TRY(collect(work, compiler->llvm_version, bytes));
    warn_of_unknown_constants(work);
    if (!first) return SMELT_OK;
    return fail(first->status, "%d of %d entries do not compile; the first, '%s': %s", failed,
                request->entry_count, first->entry.entry.host_name, first->message ? first->message : "");
}

smelt_status package_build(const struct package_request *request, struct text *bytes) {
    static const char *const usual[] = {"cpu", NULL};
    const smelt_build_desc *desc = request->desc;
    const char *const *names = desc->targets[0] ? desc->targets : usual;
    struct package_target targets[SMELT_MAX_BUILD_TARGETS];
    struct arena arena = {0};
    struct text joined = {0};
    struct work work = {
        .request = request, .targets = targets, .first_failed = -1, .last = request->entry_count};
    smelt_status status = SMELT_OK;
    for (; work.target_count < SMELT_MAX_BUILD_TARGETS && names[work.target_count] && status == SMELT_OK;
         work.target_count++) {
        status = read_target(names[work.target_count], &arena, &targets[work.target_count]);
        text_addf(&joined, "%s%s", work.target_count ? "," : "", names[work.target_count]);
    }
    work.target_names = text_string(&joined);
    memcpy(work.given, desc->constants, sizeof desc->constants);
    work.slots = calloc((size_t)request->entry_count + 1, sizeof *work.slots);
    if (status == SMELT_OK && !work.slots) status = fail_out_of_memory(sizeof *work.slots);
    if (status == SMELT_OK) {
        pthread_mutex_init(&work.lock, NULL);
        run_jobs(&work);
        pthread_mutex_destroy(&work.lock);
        status = conclude(&work, bytes);
    }
    for (int i = 0; i < request->entry_count && work.slots; i++) slot_free(&work.slots[i]);
    free(work.slots);
    text_free(&joined);
    arena_free(&arena);
    return status;
}
