#include "abi/image.h"
#include "base/hash.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Raise the version with every change of the structures below. */
struct header {
    char magic[8];
    struct hash checksum; /* of everything behind the header */
    uint64_t size;        /* of everything behind the header */
    uint64_t threadgroup_bytes, threadgroup_filled, private_bytes, stack_bytes, object_size, refusal_size,
        reduced_size;
    uint32_t max_threads, required_threads[3], has_barrier, log_words, engine, lanes, quick, distinct,
        by_rows, joined, runs_group, alone, early, expanded_tile, coarse[3], block[3];
    int32_t binding_count, site_count, tensor_count;
    uint32_t value_count;
    struct value_place values[VALUES_MAX];
};

static const char magic[8] = "smelt18";

bool image_serves_all(uint32_t engine, const struct code_shape *shape) {
    /* Masked code for any size is not specialised; the other members do not matter to the scalar engine. */
    struct code_shape any = {.engine = shape->engine,
                             .polled = shape->polled,
                             .masked = true,
                             .by_rows = shape->by_rows,
                             .tested = shape->tested,
                             .also = shape->also};
    return engine_traits(engine)->serves_all &&
           (engine_traits(shape->engine)->serves_all || memcmp(&any, shape, sizeof any) == 0);
}

void image_free(struct image *image) {
    free(image->bindings);
    free(image->tensors);
    free(image->sites);
    free(image->refusal);
    free(image->reduced);
    free(image->object);
    *image = (struct image){0};
}

smelt_status image_write(const struct image *image, char **bytes, size_t *size) {
    struct text body = {0};
    text_append(&body, (const char *)image->bindings, (size_t)image->binding_count * sizeof *image->bindings);
    text_append(&body, (const char *)image->tensors, (size_t)image->tensor_count * sizeof *image->tensors);
    text_append(&body, (const char *)image->sites, (size_t)image->site_count * sizeof *image->sites);
    text_append(&body, image->object, image->object_size);
    size_t refusal_size = image->refusal ? strlen(image->refusal) : 0;
    text_append(&body, image->refusal, refusal_size);
    size_t reduced_size = image->reduced ? strlen(image->reduced) : 0;
    text_append(&body, image->reduced, reduced_size);
    struct header header = {.checksum = hash_bytes(text_string(&body), body.length),
                            .size = body.length,
                            .threadgroup_bytes = image->threadgroup_bytes,
                            .threadgroup_filled = image->threadgroup_filled,
                            .private_bytes = image->private_bytes,
                            .stack_bytes = image->stack_bytes,
                            .object_size = image->object_size,
                            .refusal_size = refusal_size,
                            .reduced_size = reduced_size,
                            .max_threads = image->max_threads,
                            .required_threads = {image->required_threads[0], image->required_threads[1],
                                                 image->required_threads[2]},
                            .has_barrier = image->has_barrier,
                            .coarse = {image->coarse[0], image->coarse[1], image->coarse[2]},
                            .block = {image->block[0], image->block[1], image->block[2]},
                            .log_words = image->log_words,
                            .engine = image->engine,
                            .lanes = image->lanes,
                            .quick = image->quick,
                            .distinct = image->distinct,
                            .by_rows = image->by_rows,
                            .joined = image->joined,
                            .runs_group = image->runs_group,
                            .alone = image->alone,
                            .early = image->early,
                            .expanded_tile = image->expanded_tile,
                            .binding_count = image->binding_count,
                            .site_count = image->site_count,
                            .tensor_count = image->tensor_count,
                            .value_count = image->value_count};
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.values, image->values, sizeof header.values);
    char *out = body.failed ? NULL : malloc(sizeof header + body.length);
    if (!out) {
        text_free(&body);
        return fail_out_of_memory(sizeof header + body.length);
    }
    memcpy(out, &header, sizeof header);
    memcpy(out + sizeof header, text_string(&body), body.length);
    *bytes = out;
    *size = sizeof header + body.length;
    text_free(&body);
    return SMELT_OK;
}

/* A gang is some simdgroups, or an even part of one. */
static bool lanes_are_sound(uint32_t lanes) {
    return lanes && (lanes % 32 == 0 || 32 % lanes == 0);
}

/* Coarsened code names its blocks, or is not coarsened. */
static bool blocks_are_sound(const struct header *header) {
    uint64_t threads = 1;
    if (!header->coarse[0] && !header->coarse[1] && !header->coarse[2]) return true;
    for (int d = 0; d < 3; d++) {
        bool sound =
            header->coarse[d] && header->coarse[d] <= 1024 && header->block[d] && header->block[d] <= 1024;
        if (!sound) return false;
        threads *= header->block[d];
    }
    return threads <= 1024;
}

static bool tensors_are_sound(const struct tensor_binding *tensors, int32_t count) {
    bool sound = true;
    for (int32_t i = 0; i < count; i++)
        sound &= tensors[i].rank >= 1 && tensors[i].rank <= SMELT_MAX_DIMENSIONS && tensors[i].index >= 0 &&
                 tensors[i].index < IMAGE_MAX_BINDINGS;
    return sound;
}

static bool values_are_sound(const struct header *header) {
    bool sound = header->value_count <= VALUES_MAX;
    for (uint32_t i = 0; sound && i < header->value_count; i++) {
        const struct value_place *place = &header->values[i];
        bool size = place->bytes == 1 || place->bytes == 2 || place->bytes == 4 || place->bytes == 8;
        sound =
            size && place->buffer < IMAGE_MAX_BINDINGS && place->offset <= INT32_MAX && place->may_lack <= 1;
    }
    return sound;
}

static void *copy_of(const char *bytes, size_t size) {
    void *copy = malloc(size ? size : 1);
    if (copy && size) memcpy(copy, bytes, size);
    return copy;
}

smelt_status image_read(const char *bytes, size_t size, struct image *image) {
    struct header header;
    if (size < sizeof header)
        return fail(SMELT_ERROR_FORMAT, "a compiled entry of %zu bytes is too short", size);
    memcpy(&header, bytes, sizeof header);
    bytes += sizeof header;
    size -= sizeof header;
    if (memcmp(header.magic, magic, sizeof magic) != 0)
        return fail(SMELT_ERROR_FORMAT, "a compiled entry has another version");
    struct hash found = hash_bytes(bytes, size);
    if (header.size != size || found.low != header.checksum.low || found.high != header.checksum.high)
        return fail(SMELT_ERROR_FORMAT, "a compiled entry is damaged");
    bool sound = header.engine < ENGINE_COUNT &&
                 (!engine_traits(header.engine)->is_vector || lanes_are_sound(header.lanes));
    if (header.threadgroup_filled > header.threadgroup_bytes || !blocks_are_sound(&header) ||
        !values_are_sound(&header))
        sound = false;
    if (!sound || header.binding_count < 0 || header.binding_count > IMAGE_MAX_BINDINGS ||
        header.site_count < 0 || header.tensor_count < 0 || header.tensor_count > header.binding_count)
        return fail(SMELT_ERROR_FORMAT, "a compiled entry has impossible counts");
    size_t bindings = (size_t)header.binding_count * sizeof(struct binding);
    size_t tensors = (size_t)header.tensor_count * sizeof(struct tensor_binding);
    size_t sites = (size_t)header.site_count * sizeof(struct site);
    uint64_t left = size, sizes[] = {header.object_size, header.refusal_size, header.reduced_size};
    bool fits = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && fits; i++) {
        fits = sizes[i] <= left;
        left -= sizes[i];
    }
    if (!fits || left != bindings + tensors + sites)
        return fail(SMELT_ERROR_FORMAT, "a compiled entry's parts do not match its size");
    const char *object = bytes + bindings + tensors + sites;
    bool text = engine_traits(header.engine)->may_be_text &&
                (header.object_size < 4 || memcmp(object, "\177ELF", 4) != 0);
    if (text && (!header.object_size || object[header.object_size - 1]))
        return fail(SMELT_ERROR_FORMAT, "a compiled entry's text is unterminated");
    struct image out = {.binding_count = header.binding_count,
                        .site_count = header.site_count,
                        .tensor_count = header.tensor_count,
                        .threadgroup_bytes = header.threadgroup_bytes,
                        .threadgroup_filled = header.threadgroup_filled,
                        .private_bytes = header.private_bytes,
                        .stack_bytes = header.stack_bytes,
                        .max_threads = header.max_threads,
                        .required_threads = {header.required_threads[0], header.required_threads[1],
                                             header.required_threads[2]},
                        .has_barrier = header.has_barrier != 0,
                        .log_words = header.log_words,
                        .engine = header.engine,
                        .lanes = header.lanes,
                        .quick = header.quick != 0,
                        .distinct = header.distinct != 0,
                        .by_rows = header.by_rows != 0,
                        .joined = header.joined != 0,
                        .runs_group = header.runs_group != 0,
                        .alone = header.alone != 0,
                        .early = header.early != 0,
                        .expanded_tile = header.expanded_tile,
                        .coarse = {header.coarse[0], header.coarse[1], header.coarse[2]},
                        .block = {header.block[0], header.block[1], header.block[2]},
                        .value_count = header.value_count,
                        .object_size = header.object_size};
    memcpy(out.values, header.values, sizeof out.values);
    out.bindings = copy_of(bytes, bindings);
    out.tensors = copy_of(bytes + bindings, tensors);
    out.sites = copy_of(bytes + bindings + tensors, sites);
    out.object = copy_of(object, header.object_size);
    const char *refusal = object + header.object_size, *reduced = refusal + header.refusal_size;
    if (header.refusal_size) out.refusal = string_copy(refusal, header.refusal_size);
    if (header.reduced_size) out.reduced = string_copy(reduced, header.reduced_size);
    if (!out.bindings || !out.tensors || !out.sites || !out.object || (header.refusal_size && !out.refusal) ||
        (header.reduced_size && !out.reduced)) {
        image_free(&out);
        return fail_out_of_memory(size);
    }
    if (!tensors_are_sound(out.tensors, out.tensor_count)) {
        image_free(&out);
        return fail(SMELT_ERROR_FORMAT, "a compiled entry has an impossible tensor");
    }
    *image = out;
    return SMELT_OK;
}
