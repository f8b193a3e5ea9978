#include "frontend/code.h"
#include "frontend/gpu_target.h"
#include "abi/build_id.h"
#include "base/background.h"
#include "frontend/cache.h"
#include "frontend/clang.h"
#include "frontend/compile_slot.h"
#include "frontend/compile_thread.h"
#include "frontend/compiling.h"
#include "frontend/compiler_library.h"
#include "frontend/installed.h"
#include "frontend/target.h"

#include <stdlib.h>

/* Private arrays a thread may have (docs/semantics.md). */
#define PRIVATE_LIMIT_BYTES 65536

static void add_constants(struct hasher *hasher, const struct code_options *options) {
    for (const smelt_constant *c = options->constants; c && c->dtype != SMELT_NO_DTYPE; c++) {
        int count = c->count > 1 ? c->count : 1;
        if (c->name)
            hasher_add_string(hasher, c->name);
        else
            hasher_add_integer(hasher, c->index);
        hasher_add_integer(hasher, c->dtype);
        hasher_add_integer(hasher, count);
        hasher_add(hasher, &c->value, (size_t)count * sizeof c->value.integer);
    }
}

/* Everything that determines the code of a bitcode. */
static struct hash image_key(struct hash bitcode, const struct code_options *options, const char *cpu,
                             bool quick) {
    struct hasher *hasher = hasher_create();
    hasher_add_string(hasher, build_id);
    if (quick) hasher_add_string(hasher, "quick");
    hasher_add(hasher, &bitcode, sizeof bitcode);
    hasher_add(hasher, &options->shape, sizeof options->shape);
    if (options->values) hasher_add(hasher, options->values, sizeof *options->values);
    add_constants(hasher, options);
    target_add_to_key(options->target ? options->target : cpu, hasher);
    return hasher_finish(hasher);
}

static bool recall(struct hash key, struct image *image) {
    struct text stored = {0};
    if (!cache_read(key, "image", &stored)) return false;
    bool good = image_read(stored.data, stored.length, image) == SMELT_OK;
    if (!good) cache_remove(key, "image");
    text_free(&stored);
    return good;
}

bool code_recall(struct hash bitcode, const struct code_options *options, const char *cpu,
                 struct image *image) {
    if (recall(image_key(bitcode, options, cpu, false), image)) return true;
    bool quick = options->effort != COMPILE_BEST && options->effort != COMPILE_RECALL;
    return quick && recall(image_key(bitcode, options, cpu, true), image);
}

static bool recall_installed(struct hash key, struct image *image) {
    struct text stored = {0};
    if (!installed_read(key, "image", &stored)) return false;
    bool good = image_read(stored.data, stored.length, image) == SMELT_OK;
    text_free(&stored);
    return good;
}

/* Code for a GPU is collected for small grids. It serves all of them if threads do their own work. */
bool code_recall_installed(struct hash key, const struct code_options *options, const char *cpu,
                           struct image *image) {
    struct code_options small = *options;
    if (recall_installed(image_key(key, options, cpu, false), image)) return true;
    small.shape.coarse = 0;
    if (!options->shape.coarse || !recall_installed(image_key(key, &small, cpu, false), image)) return false;
    if (image->alone) return true;
    image_free(image);
    return false;
}

smelt_status code_fail_recall(const struct code_options *options) {
    return fail(SMELT_ERROR_NO_COMPILER, "kernel '%s': the cache does not have its code", options->name);
}

void code_collect(struct hash key, const struct code_options *options, const char *cpu,
                  const struct image *image) {
    struct bytes piece;
    char *bytes;
    if (image->quick || options->values || image_write(image, &bytes, &piece.size) != SMELT_OK) return;
    piece.data = bytes;
    installed_write(image_key(key, options, cpu, false), "image", &piece, 1);
    free(bytes);
}

static void keep(struct hash key, const struct image *image) {
    char *bytes;
    size_t size;
    if (image_write(image, &bytes, &size) != SMELT_OK) return;
    struct bytes piece = {bytes, size};
    cache_write(key, "image", &piece, 1);
    free(bytes);
}

static struct compile_request request_for(struct bytes bitcode, const struct code_options *options,
                                          const char *cpu, enum compile_output output) {
    static const struct known_values none;
    return (struct compile_request){.bitcode = bitcode.data,
                                    .bitcode_size = bitcode.size,
                                    .cpu = options->target ? options->target : cpu,
                                    .features = options->target ? gpu_target_features(options->target) : NULL,
                                    .after = options->after,
                                    .constants = options->constants,
                                    .private_limit = PRIVATE_LIMIT_BYTES,
                                    .shape = options->shape,
                                    .values = options->values ? *options->values : none,
                                    .output = output,
                                    .effort = options->effort};
}

/* The error of a compile that ended with `status`, and nothing left in `result`. */
static smelt_status finish(smelt_status status, const struct code_options *options,
                           struct compile_result *result) {
    if (status == SMELT_OK) return SMELT_OK;
    image_free(&result->image);
    free(result->text);
    free(result->constants);
    return fail(status, "kernel '%s': %s", options->name, result->message);
}

/* On success the parts of `result` are the caller's. */
static smelt_status run_compiler(struct bytes bitcode, const struct code_options *options, const char *cpu,
                                 enum compile_output output, struct compile_result *result) {
    const struct compiler *compiler;
    struct compiling compiling;
    TRY(compiler_open(&compiler));
    if (options->values && !compiler->in_process_of_its_own && background_is_here())
        return fail(SMELT_ERROR_NO_COMPILER, "kernel '%s': no compiler runs in a process of its own",
                    options->name);
    struct compile_request request = request_for(bitcode, options, cpu, output);
    /* A thread of this process that compiles is not left to the background: a fork or an exit would meet it.
     */
    if (!compiler->in_process_of_its_own) request.effort = COMPILE_BEST;
    struct compile_slot slot;
    compiling_begin(&compiling, options->name);
    smelt_status status = compile_slot_take(&slot);
    if (status != SMELT_OK) {
        compiling_end(&compiling);
        return status;
    }
    request.progress = compiling.progress;
    request.progress_fd = compiling.memory.fd;
    status = compiler->in_process_of_its_own
                 ? compiler->compile(&request, result)
                 : compile_on_thread(compiler, &request, clang_limit_seconds(), result);
    compile_slot_give(&slot);
    compiling_end(&compiling);
    return finish(status, options, result);
}

/* The image of a compile that went well goes into the cache, and to the caller. */
static void take_image(struct compile_result *result, struct hash key, const struct code_options *options,
                       const char *cpu, struct image *image) {
    keep(image_key(key, options, cpu, result->image.quick), &result->image);
    *image = result->image;
    free(result->constants);
}

smelt_status code_make(struct bytes bitcode, struct hash key, const struct code_options *options,
                       const char *cpu, struct image *image) {
    struct compile_result result = {0};
    TRY(run_compiler(bitcode, options, cpu, COMPILE_OBJECT, &result));
    take_image(&result, key, options, cpu, image);
    return SMELT_OK;
}

smelt_status code_run_whole(const struct clang *clang, const struct clang_request *source,
                            const struct code_options *options, const char *cpu,
                            struct compile_whole *whole) {
    struct compile_request request = request_for((struct bytes){0}, options, cpu, COMPILE_OBJECT);
    return compile_whole_run(clang, source, &request, whole);
}

smelt_status code_take(struct compile_whole *whole, struct hash key, const struct code_options *options,
                       const char *cpu, struct image *image) {
    TRY(finish(whole->status, options, &whole->result));
    take_image(&whole->result, key, options, cpu, image);
    return SMELT_OK;
}

smelt_status code_begin(struct hash key, const struct code_options *options, const char *cpu,
                        struct once **mine, struct image *image) {
    struct text made = {0};
    /* Who must have the best does not wait for quick code. */
    const char *kind = options->effort == COMPILE_BEST ? "code" : "quick code";
    TRY(once_begin(once_key(kind, image_key(key, options, cpu, false)), mine, &made));
    smelt_status status = SMELT_OK;
    if (!*mine) {
        status = image_read(made.data, made.length, image);
        text_free(&made);
    } else if (code_recall(key, options, cpu, image)) {
        code_end(*mine, SMELT_OK, image);
        *mine = NULL;
    }
    return status;
}

void code_end(struct once *mine, smelt_status status, const struct image *image) {
    struct bytes piece = {0};
    char *bytes = NULL;
    if (status == SMELT_OK) status = image_write(image, &bytes, &piece.size);
    piece.data = bytes;
    once_end(mine, status, &piece);
    free(bytes);
}

smelt_status code_make_once(struct bytes bitcode, struct hash key, const struct code_options *options,
                            const char *cpu, struct image *image, bool *ready) {
    struct once *mine = NULL;
    *ready = code_recall(key, options, cpu, image);
    if (*ready) return SMELT_OK;
    if (options->effort == COMPILE_RECALL) return code_fail_recall(options);
    TRY(code_begin(key, options, cpu, &mine, image));
    *ready = !mine;
    if (*ready) return SMELT_OK;
    smelt_status status = code_make(bitcode, key, options, cpu, image);
    code_end(mine, status, image);
    return status;
}

static enum compile_output output_of(smelt_stage stage, const char *after) {
    switch (stage) {
    case SMELT_STAGE_SIMD:
        return COMPILE_SIMD;
    case SMELT_STAGE_WHY:
        return COMPILE_WHY;
    case SMELT_STAGE_ASM:
    case SMELT_STAGE_PTX:
        return COMPILE_ASM;
    default:
        return after ? COMPILE_AFTER : COMPILE_IR;
    }
}

smelt_status code_show(struct bytes bitcode, const struct code_options *options, const char *cpu,
                       smelt_stage stage, char **text) {
    struct compile_result result = {0};
    TRY(run_compiler(bitcode, options, cpu, output_of(stage, options->after), &result));
    image_free(&result.image);
    free(result.constants);
    *text = result.text;
    return SMELT_OK;
}

smelt_status code_constants(struct bytes bitcode, const struct code_options *options,
                            struct constant_use **constants, int *count, bool *has_barrier) {
    struct compile_result result = {0};
    TRY(run_compiler(bitcode, options, NULL, COMPILE_CONSTANTS, &result));
    *has_barrier = result.image.has_barrier;
    image_free(&result.image);
    *constants = result.constants;
    *count = result.constant_count;
    return SMELT_OK;
}
