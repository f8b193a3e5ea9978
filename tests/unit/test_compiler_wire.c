/* Compile requests and results as bytes: they are restored exactly, and damaged ones are refused. */
#include "unit.h"

#include "abi/compiler_wire.h"

#include <stdlib.h>
#include <string.h>

static struct text write_request(bool full) {
    static const smelt_constant constants[] = {
        {.index = 3, .dtype = SMELT_FLOAT32, .value.reals = {1, 2}, .count = 2, .name = "scale"},
        {.index = 7, .dtype = SMELT_INT32, .value.integer = -5},
        {.dtype = SMELT_NO_DTYPE}};
    struct compile_request request = {
        .bitcode = "BC\0x",
        .bitcode_size = 4,
        .after = full ? "sink" : NULL,
        .only = full ? "sink,hold" : NULL,
        .cpu = full ? "x86-64-v3" : NULL,
        .features = full ? "+avx2" : NULL,
        .constants = full ? constants : NULL,
        .private_limit = 65536,
        .shape = {.engine = ENGINE_SIMD, .size = {32, 2, 1}, .inlined = {[5] = 3}},
        .output = COMPILE_IR,
        .effort = COMPILE_QUICK};
    struct text bytes = {0};
    compile_request_write(&request, &bytes);
    assert_false(bytes.failed);
    return bytes;
}

static void requests_come_back(void **state) {
    (void)state;
    for (int full = 0; full < 2; full++) {
        struct text bytes = write_request(full);
        struct compile_request request;
        smelt_constant constants[SMELT_MAX_CONSTANTS + 1];
        assert_true(compile_request_read(bytes.data, bytes.length, &request, constants));
        assert_int_equal(request.bitcode_size, 4);
        assert_memory_equal(request.bitcode, "BC\0x", 4);
        assert_int_equal(request.private_limit, 65536);
        assert_int_equal(request.shape.size[1], 2);
        assert_int_equal(request.shape.inlined[5], 3);
        assert_int_equal(request.output, COMPILE_IR);
        assert_int_equal(request.effort, COMPILE_QUICK);
        if (full) {
            assert_string_equal(request.after, "sink");
            assert_string_equal(request.only, "sink,hold");
            assert_string_equal(request.cpu, "x86-64-v3");
            assert_string_equal(request.features, "+avx2");
            assert_string_equal(request.constants[0].name, "scale");
            assert_true(request.constants[0].value.reals[1] == 2);
            assert_null(request.constants[1].name);
            assert_int_equal(request.constants[1].value.integer, -5);
            assert_int_equal(request.constants[2].dtype, SMELT_NO_DTYPE);
        } else {
            assert_true(!request.after && !request.only && !request.cpu && !request.features &&
                        !request.constants);
        }
        text_free(&bytes);
    }
}

static void cut_or_changed_requests_are_refused(void **state) {
    (void)state;
    struct text bytes = write_request(true);
    struct compile_request request;
    smelt_constant constants[SMELT_MAX_CONSTANTS + 1];
    for (size_t size = 0; size < bytes.length; size++) {
        char *cut = malloc(size + 1); /* a block of its own, so that a sanitizer detects reads past it */
        memcpy(cut, bytes.data, size);
        if (compile_request_read(cut, size, &request, constants)) FAIL_TEST("%zu bytes are taken", size);
        free(cut);
    }
    text_append(&bytes, "x", 1);
    assert_false(compile_request_read(bytes.data, bytes.length, &request, constants));
    bytes.data[8] ^= 1; /* the interface */
    assert_false(compile_request_read(bytes.data, bytes.length - 1, &request, constants));
    text_free(&bytes);
}

static struct text write_result(smelt_status status, enum compile_output output) {
    static char object[] = "\177ELF and more", text[] = "; text", refusal[] = "It is too large.";
    static struct binding binding = {.kind = BINDING_BUFFER, .index = 2};
    static struct constant_use use = {.index = 4, .name = "count"};
    struct compile_result result = {.image = {.has_barrier = true,
                                              .bindings = &binding,
                                              .binding_count = 1,
                                              .engine = ENGINE_SCALAR,
                                              .refusal = refusal,
                                              .object = object,
                                              .object_size = sizeof object},
                                    .text = text,
                                    .constants = &use,
                                    .constant_count = 1,
                                    .message = "a message"};
    struct text bytes = {0};
    compile_result_write(status, output, &result, &bytes);
    assert_false(bytes.failed);
    return bytes;
}

static void free_result(struct compile_result *result) {
    image_free(&result->image);
    free(result->text);
    free(result->constants);
}

static void results_come_back(void **state) {
    (void)state;
    struct text bytes = write_result(SMELT_OK, COMPILE_OBJECT);
    struct compile_result result;
    smelt_status status;
    assert_true(compile_result_read(bytes.data, bytes.length, &status, &result));
    assert_int_equal(status, SMELT_OK);
    assert_string_equal(result.message, "a message");
    assert_string_equal(result.text, "; text");
    assert_int_equal(result.constant_count, 1);
    assert_string_equal(result.constants[0].name, "count");
    assert_int_equal(result.image.bindings[0].index, 2);
    assert_string_equal(result.image.refusal, "It is too large.");
    assert_memory_equal(result.image.object, "\177ELF and more", result.image.object_size);
    free_result(&result);
    text_free(&bytes);
}

static void failures_have_no_image(void **state) {
    (void)state;
    struct text bytes = write_result(SMELT_ERROR_UNSUPPORTED, COMPILE_OBJECT);
    struct compile_result result;
    smelt_status status;
    assert_true(compile_result_read(bytes.data, bytes.length, &status, &result));
    assert_int_equal(status, SMELT_ERROR_UNSUPPORTED);
    assert_string_equal(result.message, "a message");
    assert_null(result.image.object);
    assert_true(result.image.has_barrier);
    free_result(&result);
    text_free(&bytes);
}

static void cut_results_are_refused(void **state) {
    (void)state;
    struct text bytes = write_result(SMELT_OK, COMPILE_OBJECT);
    struct compile_result result;
    smelt_status status;
    for (size_t size = 0; size < bytes.length; size++) {
        char *cut = malloc(size + 1);
        memcpy(cut, bytes.data, size);
        if (compile_result_read(cut, size, &status, &result)) FAIL_TEST("%zu bytes are taken", size);
        free(cut);
    }
    bytes.data[bytes.length - 1] ^= 1; /* in the image, which has a checksum */
    assert_false(compile_result_read(bytes.data, bytes.length, &status, &result));
    text_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_back),      cmocka_unit_test(cut_or_changed_requests_are_refused),
        cmocka_unit_test(results_come_back),       cmocka_unit_test(failures_have_no_image),
        cmocka_unit_test(cut_results_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
