/* Compiled entries as blocks of bytes: everything is restored, and damaged ones are refused. */
#include "unit.h"

#include "abi/image.h"

#include <stdlib.h>
#include <string.h>

static struct binding bindings[] = {{BINDING_BUFFER, 3, 4, 4, 1, 0, 0, 1},
                                    {BINDING_ATTRIBUTE, 0, 12, 4, 0, 0, 0, 0}};
static struct tensor_binding tensors[] = {
    {.parameter = 0, .index = 3, .rank = 2, .element = 10, .extents = {-1, 7}}};
static struct site sites[] = {{.depth = 1, .position = {2, 7}}};
static char object[] = "not machine code, but bytes";
static char refusal[] = "a sentence", reduced[] = "another";

static const struct image example = {.bindings = bindings,
                                     .binding_count = 2,
                                     .tensors = tensors,
                                     .tensor_count = 1,
                                     .sites = sites,
                                     .site_count = 1,
                                     .threadgroup_bytes = 1000,
                                     .threadgroup_filled = 600,
                                     .private_bytes = 72,
                                     .max_threads = 512,
                                     .has_barrier = true,
                                     .quick = true,
                                     .early = true,
                                     .expanded_tile = 4096,
                                     .engine = ENGINE_SIMD,
                                     .lanes = 128,
                                     .stack_bytes = UINT64_C(5) << 32,
                                     .refusal = refusal,
                                     .reduced = reduced,
                                     .object = object,
                                     .object_size = sizeof object};

static void assert_same(const struct image *a, const struct image *b) {
    assert_int_equal(a->binding_count, b->binding_count);
    assert_memory_equal(a->bindings, b->bindings, sizeof bindings);
    assert_int_equal(a->tensor_count, b->tensor_count);
    assert_memory_equal(a->tensors, b->tensors, sizeof tensors);
    assert_int_equal(a->site_count, b->site_count);
    assert_memory_equal(a->sites, b->sites, sizeof sites);
    assert_int_equal(a->threadgroup_bytes, b->threadgroup_bytes);
    assert_int_equal(a->threadgroup_filled, b->threadgroup_filled);
    assert_int_equal(a->private_bytes, b->private_bytes);
    assert_int_equal(a->max_threads, b->max_threads);
    assert_int_equal(a->has_barrier, b->has_barrier);
    assert_int_equal(a->quick, b->quick);
    assert_int_equal(a->early, b->early);
    assert_int_equal(a->expanded_tile, b->expanded_tile);
    assert_int_equal(a->engine, b->engine);
    assert_int_equal(a->lanes, b->lanes);
    assert_int_equal(a->log_words, b->log_words);
    assert_int_equal(a->stack_bytes, b->stack_bytes);
    assert_int_equal(a->object_size, b->object_size);
    assert_memory_equal(a->object, b->object, sizeof object);
    assert_int_equal(a->refusal == NULL, b->refusal == NULL);
    if (a->refusal) assert_string_equal(a->refusal, b->refusal);
    assert_int_equal(a->reduced == NULL, b->reduced == NULL);
    if (a->reduced) assert_string_equal(a->reduced, b->reduced);
}

static void everything_comes_back(void **state) {
    (void)state;
    for (int sentences = 0; sentences < 4; sentences++) {
        struct image written = example, read;
        char *bytes;
        size_t size;
        if (sentences % 2) written.refusal = NULL;
        if (sentences / 2) written.reduced = NULL;
        assert_int_equal(image_write(&written, &bytes, &size), SMELT_OK);
        assert_int_equal(image_read(bytes, size, &read), SMELT_OK);
        assert_same(&written, &read);
        image_free(&read);
        free(bytes);
    }
}

/* PTX, whose readers rely on its terminator. */
static void code_for_gpus_comes_back_if_it_has_an_end(void **state) {
    (void)state;
    struct image written = example, read;
    struct binding inlined[] = {{BINDING_BUFFER, 3, 4, 4, 0, 16, 0, 0},
                                {BINDING_ABSENT, 0, 12, 4, 0, 2048, 0, 0}};
    char *bytes;
    size_t size;
    written.bindings = inlined;
    written.engine = ENGINE_PTX;
    written.lanes = 0;
    written.log_words = 7;
    assert_int_equal(image_write(&written, &bytes, &size), SMELT_OK);
    assert_int_equal(image_read(bytes, size, &read), SMELT_OK);
    assert_same(&written, &read);
    image_free(&read);
    free(bytes);
    for (size_t end = 0; end < sizeof object; end++) {
        written.object_size = end;
        assert_int_equal(image_write(&written, &bytes, &size), SMELT_OK);
        assert_int_equal(image_read(bytes, size, &read), SMELT_ERROR_FORMAT);
        free(bytes);
    }
}

static void refuse(const char *bytes, size_t size) {
    struct image read = {.max_threads = 99};
    assert_int_equal(image_read(bytes, size, &read), SMELT_ERROR_FORMAT);
    assert_int_equal(read.max_threads, 99);
}

static void no_cut_is_read(void **state) {
    (void)state;
    char *bytes;
    size_t size;
    assert_int_equal(image_write(&example, &bytes, &size), SMELT_OK);
    for (size_t cut = 0; cut < size; cut++) refuse(bytes, cut);
    free(bytes);
}

static void no_flipped_bit_behind_the_header_is_read(void **state) {
    (void)state;
    char *bytes;
    size_t size, behind = sizeof bindings + sizeof tensors + sizeof sites + sizeof object + strlen(refusal) +
                          strlen(reduced);
    assert_int_equal(image_write(&example, &bytes, &size), SMELT_OK);
    for (size_t at = size - behind; at < size; at++) {
        bytes[at] ^= (char)(1 << at % 8);
        refuse(bytes, size);
        bytes[at] ^= (char)(1 << at % 8);
    }
    free(bytes);
}

static void gangs_of_impossible_size_are_refused(void **state) {
    (void)state;
    static const uint32_t wrong[] = {0, 3, 31, 33, 48};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct image image = example;
        char *bytes;
        size_t size;
        image.lanes = wrong[i];
        assert_int_equal(image_write(&image, &bytes, &size), SMELT_OK);
        refuse(bytes, size);
        free(bytes);
    }
}

static void impossible_tensors_are_refused(void **state) {
    (void)state;
    static const struct tensor_binding wrong[] = {
        {.rank = 0}, {.rank = 17}, {.rank = 1, .index = -1}, {.rank = 1, .index = 400}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct image image = example;
        struct tensor_binding tensor = wrong[i];
        char *bytes;
        size_t size;
        image.tensors = &tensor;
        assert_int_equal(image_write(&image, &bytes, &size), SMELT_OK);
        refuse(bytes, size);
        free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(code_for_gpus_comes_back_if_it_has_an_end),
        cmocka_unit_test(no_cut_is_read),
        cmocka_unit_test(no_flipped_bit_behind_the_header_is_read),
        cmocka_unit_test(gangs_of_impossible_size_are_refused),
        cmocka_unit_test(impossible_tensors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
