#include "frontend/compile.h"
#include "base/clock.h"
#include "abi/build_id.h"
#include "frontend/cache.h"
#include "frontend/clang.h"
#include "frontend/compile_time.h"
#include "frontend/compiler_library.h"
#include "frontend/condition.h"
#include "frontend/diagnostic.h"
#include "frontend/prelude.h"
#include "frontend/target.h"
#include "source/attribute.h"
#include "source/resource.h"

#include <stdlib.h>
#include <string.h>

/* A failure that a token of the source is the reason for. */
static smelt_status fail_at(const struct translation *translation, uint32_t token, smelt_status status,
                            const char *message) {
    struct text described = {0};
    diagnostics_add(translation, translation->program.input.items[token].start, message, &described);
    status = fail(status, "%s", text_string(&described));
    text_free(&described);
    return status;
}

static smelt_status check_parameters(const struct translation *translation, const struct entry *entry) {
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *parameter = &entry->parameters[i];
        if (parameter->kind != PARAMETER_UNSUPPORTED && parameter->kind != PARAMETER_RESOURCE) continue;
        bool is_type = parameter->kind == PARAMETER_RESOURCE;
        const char *instead = resource_alternative(parameter->attribute),
                   *near = is_type || instead ? NULL : attribute_nearest(parameter->attribute);
        struct text message = {0};
        text_addf(&message,
                  is_type ? "kernel '%s': argument '%s' is of type %s, which is not supported"
                          : "kernel '%s': argument '%s' has the attribute [[%s]], which is not supported",
                  entry->host_name, parameter->name, parameter->attribute);
        if (instead) text_addf(&message, "; %s", instead);
        if (near) text_addf(&message, "; did you mean [[%s]]?", near);
        smelt_status status =
            fail_at(translation, parameter->token, SMELT_ERROR_UNSUPPORTED, text_string(&message));
        text_free(&message);
        return status;
    }
    return SMELT_OK;
}

/* The text passed to clang: rewritten program and entry point. */
static smelt_status complete_text(const struct translation *translation, const struct entry *entry,
                                  struct text *text) {
    const struct refusal *refusal = &translation->program.refusal;
    if (refusal->message) return fail_at(translation, refusal->token, SMELT_ERROR_COMPILE, refusal->message);
    TRY(check_parameters(translation, entry));
    if (entry->required_token && translation->metal_version < 400)
        return fail_at(translation, entry->required_token, SMELT_ERROR_COMPILE,
                       "[[required_threads_per_threadgroup]] requires Metal 4.0 or higher");
    program_add_text(&translation->program, entry, text);
    smelt_status status = program_add_entry_point(&translation->program, entry, text);
    if (status != SMELT_OK) text_free(text);
    return status;
}

bool compile_has_barrier(const struct translation *translation) {
    return strstr(text_string(&translation->program.text), "threadgroup_barrier") != NULL;
}

/* Everything that determines clang's output for the text. clang: NULL for that of the same build
 * (installed.h). */
static struct hash bitcode_key(const struct translation *translation, const struct text *text,
                               const struct clang *clang) {
    struct hasher *hasher = hasher_create();
    struct text flags = {0};
    clang_add_flags(translation->math, prelude_is_cpp23(translation->prelude), &flags);
    struct hash prelude = prelude_hash(translation->prelude);
    hasher_add_string(hasher, build_id);
    hasher_add(hasher, text->data, text->length);
    hasher_add_string(hasher, text_string(&flags));
    hasher_add(hasher, &prelude, sizeof prelude);
    if (clang) hasher_add(hasher, &clang->identity, sizeof clang->identity);
    text_free(&flags);
    return hasher_finish(hasher);
}

/* A run of clang over the text: alone, or with LLVM behind it. */
struct clang_job {
    const struct translation *translation;
    const struct clang *clang;
    const struct text *text;
    const char *name;
    struct text bitcode;
    /* With LLVM: */
    const struct code_options *options; /* NULL: alone */
    const char *cpu;
    bool ran; /* `whole` has LLVM's result */
    struct compile_whole whole;
    bool anew;  /* whatever the cache has */
    bool warns; /* run for its warnings only */
};

static smelt_status run_request(struct clang_job *job, const struct clang_request *request,
                                struct text *messages, bool *ok) {
    if (!job->options) return clang_run(job->clang, request, &job->bitcode, messages, ok);
    TRY(code_run_whole(job->clang, request, job->options, job->cpu, &job->whole));
    *ok = job->ran = job->whole.ok;
    *messages = job->whole.messages;
    job->bitcode = job->whole.bitcode;
    return SMELT_OK;
}

static smelt_status run_clang_with(struct clang_job *job, const char *precompiled, struct text *messages,
                                   bool *ok) {
    const struct translation *translation = job->translation;
    struct text whole = {0};
    struct clang_request request = {.action = job->warns ? CLANG_WARN : CLANG_COMPILE,
                                    .name = job->name,
                                    .math = translation->math,
                                    .cpp23 = prelude_is_cpp23(translation->prelude),
                                    .precompiled = *precompiled ? precompiled : NULL,
                                    .text = job->text->data,
                                    .length = job->text->length};
    *ok = false;
    if (!*precompiled) {
        text_add(&whole, prelude_texts[translation->prelude]);
        text_append(&whole, job->text->data, job->text->length);
        request.text = whole.data;
        request.length = whole.length;
    }
    smelt_status status =
        whole.failed ? fail_out_of_memory(job->text->length) : run_request(job, &request, messages, ok);
    text_free(&whole);
    return status;
}

/* Fills the job's bitcode, and its image where LLVM is to run; nothing after a failure. warnings: receives
 * those of a job that warns; else NULL. */
static smelt_status run_clang(struct clang_job *job, struct text *warnings) {
    const struct translation *translation = job->translation;
    char precompiled[4096];
    struct text messages = {0};
    bool ok = false;
    TRY(prelude_precompiled(job->clang, translation->prelude, translation->math, false, precompiled));
    smelt_status status = run_clang_with(job, precompiled, &messages, &ok);
    /* Not the source's fault if the prelude's image was removed or damaged meanwhile. */
    if (!ok && *precompiled && !prelude_is_whole(precompiled)) {
        text_free(&job->bitcode);
        text_free(&messages);
        TRY(prelude_precompiled(job->clang, translation->prelude, translation->math, true, precompiled));
        status = run_clang_with(job, precompiled, &messages, &ok);
    }
    if (status == SMELT_OK && !ok) {
        struct text described = {0};
        diagnostics_describe(translation, text_string(&messages), &described);
        status = fail(SMELT_ERROR_COMPILE, "%s", text_string(&described));
        text_free(&described);
    }
    if (status == SMELT_OK && warnings) diagnostics_warn(translation, text_string(&messages), warnings);
    if (status != SMELT_OK) text_free(&job->bitcode);
    text_free(&messages);
    return status;
}

/* A compiler may succeed and write something else, or nothing. */
static bool looks_like_bitcode(const struct text *bytes) {
    return bytes->length > 4 && memcmp(bytes->data, "BC\xC0\xDE", 4) == 0;
}

static smelt_status run_clang_for(struct clang_job *job, struct entry_bitcode *out) {
    TRY(run_clang(job, NULL));
    out->bytes = job->bitcode;
    struct bytes piece = {out->bytes.data, out->bytes.length};
    if (looks_like_bitcode(&out->bytes)) cache_write(out->key, "bitcode", &piece, 1);
    clang_note_use(job->clang);
    return SMELT_OK;
}

/* The caller has waited for others who did it. */
static smelt_status run_or_recall(struct clang_job *job, struct entry_bitcode *out) {
    out->cached = cache_read(out->key, "bitcode", &out->bytes);
    return out->cached ? SMELT_OK : run_clang_for(job, out);
}

/* From the cache or from clang, which has nothing to do for a second shape of launch. */
static smelt_status get_bitcode(struct clang_job *job, struct entry_bitcode *out) {
    struct once *mine;
    if (job->anew) return run_clang_for(job, out);
    out->cached = cache_read(out->key, "bitcode", &out->bytes);
    if (out->cached) return SMELT_OK;
    TRY(once_begin(once_key("bitcode", out->key), &mine, &out->bytes));
    out->cached = !mine;
    if (!mine) return SMELT_OK;
    smelt_status status = run_or_recall(job, out);
    struct bytes piece = {out->bytes.data, out->bytes.length};
    once_end(mine, status, &piece);
    return status;
}

static struct bytes bitcode_bytes(const struct entry_bitcode *bitcode) {
    return (struct bytes){bitcode->bytes.data, bitcode->bytes.length};
}

smelt_status compile_bitcode(const struct translation *translation, const struct entry *entry,
                             struct entry_bitcode *out) {
    struct text text = {0};
    struct clang clang;
    const struct compiler *compiler;
    TRY(clang_find(&clang));
    TRY(complete_text(translation, entry, &text));
    *out = (struct entry_bitcode){.key = bitcode_key(translation, &text, &clang)};
    smelt_status status = compiler_open(&compiler);
    struct clang_job job = {
        .translation = translation, .clang = &clang, .text = &text, .name = entry->host_name};
    if (status == SMELT_OK) status = get_bitcode(&job, out);
    text_free(&text);
    return status;
}

void compile_drop_unreadable(const struct entry_bitcode *bitcode, smelt_status status) {
    if (status == SMELT_ERROR_INTERNAL) cache_remove(bitcode->key, "bitcode");
}

/* Cached and installed code needs neither clang nor the compiler library. */
static bool recall_image(const struct translation *translation, const struct text *text,
                         const struct code_options *options, const char *cpu, struct image *image) {
    struct clang clang;
    if (code_recall_installed(bitcode_key(translation, text, NULL), options, cpu, image)) return true;
    if (clang_find_or_recall(&clang) != SMELT_OK) return false;
    return code_recall(bitcode_key(translation, text, &clang), options, cpu, image);
}

/* LLVM's half has run with clang's, or does now. */
static smelt_status make_image(struct clang_job *job, struct hash key, struct image *image) {
    const struct code_options *options = job->options;
    struct entry_bitcode bitcode = {.key = key};
    if (!compile_whole_is_possible(job->clang)) job->options = NULL;
    TRY(get_bitcode(job, &bitcode));
    smelt_status status = job->ran ? code_take(&job->whole, key, options, job->cpu, image)
                                   : code_make(bitcode_bytes(&bitcode), key, options, job->cpu, image);
    compile_drop_unreadable(&bitcode, status);
    text_free(&bitcode.bytes);
    return status;
}

/* *ready: another has made it meanwhile. */
static smelt_status make_image_once(struct clang_job *job, struct image *image, bool *ready) {
    struct hash key = bitcode_key(job->translation, job->text, job->clang);
    struct once *mine;
    TRY(code_begin(key, job->options, job->cpu, &mine, image));
    *ready = !mine;
    if (!mine) return SMELT_OK;
    smelt_status status = make_image(job, key, image);
    code_end(mine, status, image);
    return status;
}

smelt_status compile_entry(const struct translation *translation, const struct entry *entry,
                           const struct code_options *options, struct image *image, bool *cache_hit) {
    struct text text = {0};
    struct clang clang;
    const struct compiler *compiler;
    TRY(complete_text(translation, entry, &text));
    *cache_hit = recall_image(translation, &text, options, target_cpu(), image);
    smelt_status status = SMELT_OK;
    if (!*cache_hit)
        status = options->effort == COMPILE_RECALL ? code_fail_recall(options) : clang_find(&clang);
    if (!*cache_hit && status == SMELT_OK) status = compiler_open(&compiler);
    if (!*cache_hit && status == SMELT_OK) {
        struct clang_job job = {translation,        &clang, &text, options->name, .options = options,
                                .cpu = target_cpu()};
        status = make_image_once(&job, image, cache_hit);
        if (status == SMELT_OK)
            code_collect(bitcode_key(translation, &text, NULL), options, target_cpu(), image);
    }
    text_free(&text);
    return status;
}

/* *is_quick: whether the code is quick code, which the effort only allows. */
static smelt_status make_anew(const struct translation *translation, const struct text *text,
                              const struct code_options *options, struct compile_record *record,
                              int64_t *nanoseconds, bool *is_quick) {
    struct clang clang;
    const struct compiler *compiler;
    struct image image;
    TRY(clang_find(&clang));
    TRY(compiler_open(&compiler));
    struct clang_job job = {translation,         &clang,      text, options->name, .options = options,
                            .cpu = target_cpu(), .anew = true};
    int64_t start = clock_nanoseconds();
    compile_record_begin(record);
    smelt_status status = make_image(&job, bitcode_key(translation, text, &clang), &image);
    compile_record_end();
    *nanoseconds = clock_nanoseconds() - start;
    if (status != SMELT_OK) return status;
    *is_quick = image.quick;
    image_free(&image);
    return SMELT_OK;
}

/* The best code, and the code of a first launch if that is another. */
static smelt_status make_both(const struct translation *translation, const struct text *text,
                              const struct code_options *options, struct compile_times *times) {
    struct code_options first = *options;
    bool is_quick;
    TRY(make_anew(translation, text, options, &times->record, &times->compile, &is_quick));
    const struct engine_traits *traits = engine_traits(options->shape.engine);
    if (!traits->is_vector && !traits->is_gpu) return SMELT_OK;
    first.effort = COMPILE_QUICK_IF_LARGE;
    return make_anew(translation, text, &first, &times->quick_record, &times->quick_compile,
                     &times->has_quick);
}

/* Looks into the cache, and compiles whatever is there. */
static smelt_status show_times(const struct translation *translation, const struct entry *entry,
                               const struct code_options *options, char **out) {
    struct compile_times times = {.translate = translation->nanoseconds};
    struct text text = {0}, table = {0};
    struct image image;
    TRY(complete_text(translation, entry, &text));
    int64_t start = clock_nanoseconds();
    times.cached = recall_image(translation, &text, options, target_cpu(), &image);
    times.recall = clock_nanoseconds() - start;
    if (times.cached) image_free(&image);
    smelt_status status = make_both(translation, &text, options, &times);
    text_free(&text);
    if (status != SMELT_OK) return status;
    compile_times_describe(&times, &table);
    *out = table.data;
    return table.failed ? fail_out_of_memory(1) : SMELT_OK;
}

static smelt_status show_warnings(const struct translation *translation, const struct entry *entry,
                                  char **out) {
    struct text text = {0}, described = {0};
    struct clang clang;
    TRY(clang_find(&clang));
    TRY(complete_text(translation, entry, &text));
    struct clang_job job = {
        .translation = translation, .clang = &clang, .text = &text, .name = entry->host_name, .warns = true};
    smelt_status status = run_clang(&job, &described);
    text_free(&job.bitcode);
    text_free(&text);
    if (status == SMELT_OK) conditions_warn(translation, &described);
    if (status == SMELT_OK) diagnostics_warn_of_codes(translation, &described);
    if (described.length) text_add(&described, "\n");
    if (status == SMELT_OK && described.failed) status = fail_out_of_memory(1);
    *out = status == SMELT_OK ? string_copy(text_string(&described), described.length) : NULL;
    text_free(&described);
    return status != SMELT_OK || *out ? status : fail_out_of_memory(1);
}

smelt_status compile_show(const struct translation *translation, const struct entry *entry,
                          const struct code_options *options, smelt_stage stage, char **out) {
    struct entry_bitcode bitcode;
    if (stage == SMELT_STAGE_TIME) return show_times(translation, entry, options, out);
    if (stage == SMELT_STAGE_WARNINGS) return show_warnings(translation, entry, out);
    if (stage == SMELT_STAGE_REWRITTEN) {
        struct text text = {0};
        TRY(complete_text(translation, entry, &text));
        *out = text.data;
        return SMELT_OK;
    }
    TRY(compile_bitcode(translation, entry, &bitcode));
    smelt_status status = code_show(bitcode_bytes(&bitcode), options, target_cpu(), stage, out);
    compile_drop_unreadable(&bitcode, status);
    text_free(&bitcode.bytes);
    return status;
}
