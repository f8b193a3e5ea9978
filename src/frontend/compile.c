#include "frontend/compile.h"
#include "frontend/build_id.h"
#include "frontend/cache.h"
#include "frontend/clang.h"
#include "frontend/compiler_library.h"
#include "frontend/diagnostic.h"
#include "frontend/prelude.h"
#include "frontend/target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Private arrays a thread may have: DESIGN section 2. */
#define PRIVATE_LIMIT_BYTES 65536

static void add_constants(struct hasher *hasher, const struct compile_options *options) {
    for (const smelt_constant *c = options->constants; c && c->dtype != SMELT_NO_DTYPE; c++) {
        hasher_add_integer(hasher, c->index);
        hasher_add_integer(hasher, c->dtype);
        hasher_add(hasher, &c->value, sizeof c->value);
    }
}

static smelt_status check_parameters(const struct translation *translation, const struct entry *entry) {
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *parameter = &entry->parameters[i];
        if (parameter->kind != PARAMETER_UNSUPPORTED) continue;
        struct text message = {0}, described = {0};
        text_addf(&message, "kernel '%s': argument '%s' has the attribute [[%s]], which is not supported",
                  entry->host_name, parameter->name, parameter->attribute);
        diagnostics_add(translation, translation->program.input.items[parameter->token].start,
                        text_string(&message), &described);
        smelt_status status = fail(SMELT_ERROR_UNSUPPORTED, "%s", text_string(&described));
        text_free(&message);
        text_free(&described);
        return status;
    }
    return SMELT_OK;
}

/* The text clang is given: rewritten program and entry point. */
static smelt_status complete_text(const struct translation *translation, const struct entry *entry,
                                  struct text *text) {
    TRY(check_parameters(translation, entry));
    text_append(text, text_string(&translation->program.text), translation->program.text.length);
    smelt_status status = program_add_entry_point(&translation->program, entry, text);
    if (status != SMELT_OK) text_free(text);
    return status;
}

bool compile_has_barrier(const struct translation *translation) {
    return strstr(text_string(&translation->program.text), "threadgroup_barrier") != NULL;
}

/* Everything that decides what clang makes of the text. */
static struct hash bitcode_key(const struct translation *translation, const struct text *text,
                               const struct clang *clang) {
    struct hasher *hasher = hasher_create();
    struct text flags = {0};
    clang_add_flags(translation->math, &flags);
    struct hash prelude = prelude_hash(translation->prelude);
    hasher_add_string(hasher, build_id);
    hasher_add(hasher, text->data, text->length);
    hasher_add_string(hasher, text_string(&flags));
    hasher_add(hasher, &prelude, sizeof prelude);
    hasher_add(hasher, &clang->identity, sizeof clang->identity);
    text_free(&flags);
    return hasher_finish(hasher);
}

/* And what decides the code that comes of it. */
static struct hash image_key(struct hash bitcode, const struct compile_options *options, const char *cpu) {
    struct hasher *hasher = hasher_create();
    hasher_add(hasher, &bitcode, sizeof bitcode);
    hasher_add(hasher, &options->shape, sizeof options->shape);
    add_constants(hasher, options);
    target_add_to_key(cpu, hasher);
    return hasher_finish(hasher);
}

static smelt_status run_clang_with(const struct translation *translation, const struct clang *clang,
                                   const struct text *text, const char *precompiled, struct text *bitcode,
                                   struct text *messages, bool *ok) {
    struct text whole = {0};
    struct clang_request request = {.action = CLANG_COMPILE,
                                    .math = translation->math,
                                    .precompiled = *precompiled ? precompiled : NULL,
                                    .text = text->data,
                                    .length = text->length};
    *ok = false;
    if (!*precompiled) {
        text_add(&whole, prelude_texts[translation->prelude]);
        text_append(&whole, text->data, text->length);
        request.text = whole.data;
        request.length = whole.length;
    }
    smelt_status status =
        whole.failed ? fail_out_of_memory(text->length) : clang_run(clang, &request, bitcode, messages, ok);
    text_free(&whole);
    return status;
}

static smelt_status run_clang(const struct translation *translation, const struct clang *clang,
                              const struct text *text, struct text *bitcode) {
    char precompiled[4096];
    struct text messages = {0};
    bool ok = false;
    TRY(prelude_precompiled(clang, translation->prelude, translation->math, false, precompiled));
    smelt_status status = run_clang_with(translation, clang, text, precompiled, bitcode, &messages, &ok);
    /* Not the source's fault if the prelude's image was removed or damaged meanwhile. */
    if (!ok && *precompiled && !prelude_is_whole(precompiled)) {
        text_free(bitcode);
        text_free(&messages);
        TRY(prelude_precompiled(clang, translation->prelude, translation->math, true, precompiled));
        status = run_clang_with(translation, clang, text, precompiled, bitcode, &messages, &ok);
    }
    if (status == SMELT_OK && !ok) {
        struct text described = {0};
        diagnostics_describe(translation, text_string(&messages), &described);
        status = fail(SMELT_ERROR_COMPILE, "%s", text_string(&described));
        text_free(&described);
        text_free(bitcode);
    }
    text_free(&messages);
    return status;
}

/* LLVM recurses deeply over large functions; the host's thread may have little stack. */
#define COMPILER_STACK_BYTES ((size_t)64 << 20)

struct compiler_call {
    const struct compiler *compiler;
    const struct compile_request *request;
    struct compile_result *result;
    smelt_status status;
};

static void *call_compiler(void *argument) {
    struct compiler_call *call = argument;
    call->status = call->compiler->compile(call->request, call->result);
    return NULL;
}

static smelt_status compile_on_own_stack(const struct compiler *compiler,
                                         const struct compile_request *request,
                                         struct compile_result *result) {
    struct compiler_call call = {compiler, request, result, SMELT_OK};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, COMPILER_STACK_BYTES);
    int error = pthread_create(&thread, &attributes, call_compiler, &call);
    pthread_attr_destroy(&attributes);
    if (error)
        call_compiler(&call);
    else
        pthread_join(thread, NULL);
    return call.status;
}

/* From the cache or from clang, which has nothing to do for a second shape of launch. */
static smelt_status get_bitcode(const struct translation *translation, const struct clang *clang,
                                const struct text *text, struct hash key, struct text *bitcode,
                                bool *cached) {
    *cached = cache_read(key, "bitcode", bitcode);
    return *cached ? SMELT_OK : run_clang(translation, clang, text, bitcode);
}

/* Only what the compiler library could read is kept: a compiler may say yes and write nothing. */
static void keep_bitcode(struct hash key, const struct text *bitcode, bool cached, smelt_status status) {
    struct bytes piece = {bitcode->data, bitcode->length};
    if (!cached && status == SMELT_OK) cache_write(key, "bitcode", &piece, 1);
    if (cached && status == SMELT_ERROR_INTERNAL) cache_remove(key, "bitcode");
}

/* What the compiler library is asked for. */
struct order {
    const struct compile_options *options;
    const char *cpu;
    enum compile_output output;
};

static smelt_status run_compiler(const struct translation *translation, const struct clang *clang,
                                 const struct text *text, struct hash key, const struct order *order,
                                 struct compile_result *result) {
    struct text bitcode = {0};
    bool cached;
    const struct compiler *compiler;
    TRY(compiler_open(&compiler));
    TRY(get_bitcode(translation, clang, text, key, &bitcode, &cached));
    struct compile_request request = {.bitcode = bitcode.data,
                                      .bitcode_size = bitcode.length,
                                      .cpu = order->cpu,
                                      .constants = order->options->constants,
                                      .private_limit = PRIVATE_LIMIT_BYTES,
                                      .shape = order->options->shape,
                                      .output = order->output};
    smelt_status status = compile_on_own_stack(compiler, &request, result);
    keep_bitcode(key, &bitcode, cached, status);
    text_free(&bitcode);
    if (status != SMELT_OK) {
        image_free(&result->image);
        free(result->text);
        result->text = NULL;
        return fail(status, "kernel '%s': %s", order->options->name, result->message);
    }
    return SMELT_OK;
}

static bool read_cached(struct hash key, struct image *image) {
    struct text stored = {0};
    if (!cache_read(key, "image", &stored)) return false;
    bool good = image_read(stored.data, stored.length, image) == SMELT_OK;
    if (!good) cache_remove(key, "image");
    text_free(&stored);
    return good;
}

static void write_cached(struct hash key, const struct image *image) {
    char *bytes;
    size_t size;
    if (image_write(image, &bytes, &size) != SMELT_OK) return;
    struct bytes piece = {bytes, size};
    cache_write(key, "image", &piece, 1);
    free(bytes);
}

smelt_status compile_entry(const struct translation *translation, const struct entry *entry,
                           const struct compile_options *options, struct image *image, bool *cache_hit) {
    struct text text = {0};
    struct clang clang;
    TRY(clang_find(&clang));
    TRY(complete_text(translation, entry, &text));
    struct order order = {options, target_cpu(), COMPILE_OBJECT};
    struct hash bitcode = bitcode_key(translation, &text, &clang);
    struct hash key = image_key(bitcode, options, order.cpu);
    *cache_hit = read_cached(key, image);
    smelt_status status = SMELT_OK;
    if (!*cache_hit) {
        struct compile_result result = {0};
        status = run_compiler(translation, &clang, &text, bitcode, &order, &result);
        if (status == SMELT_OK) {
            write_cached(key, &result.image);
            *image = result.image;
        }
    }
    text_free(&text);
    return status;
}

static enum compile_output output_of(smelt_stage stage) {
    switch (stage) {
    case SMELT_STAGE_SIMD:
        return COMPILE_SIMD;
    case SMELT_STAGE_WHY:
        return COMPILE_WHY;
    case SMELT_STAGE_ASM:
        return COMPILE_ASM;
    default:
        return COMPILE_IR;
    }
}

smelt_status compile_show(const struct translation *translation, const struct entry *entry,
                          const struct compile_options *options, smelt_stage stage, char **out) {
    struct text text = {0};
    TRY(complete_text(translation, entry, &text));
    if (stage == SMELT_STAGE_REWRITTEN) {
        *out = text.data;
        return SMELT_OK;
    }
    struct clang clang;
    struct compile_result result = {0};
    struct order order = {options, target_cpu(), output_of(stage)};
    smelt_status status = clang_find(&clang);
    if (status == SMELT_OK)
        status = run_compiler(translation, &clang, &text, bitcode_key(translation, &text, &clang), &order,
                              &result);
    text_free(&text);
    image_free(&result.image);
    if (status == SMELT_OK) *out = result.text;
    return status;
}
