/* The state of this machine as programs see it: clang, LLVM, the registers that code uses. */
#include "unit.h"

#include "smelt/smelt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void clang_is_found_with_its_version(void **state) {
    (void)state;
    char *path = NULL, *version = NULL;
    assert_int_equal(smelt_clang_find(&path, &version), SMELT_OK);
    assert_int_equal(access(path, X_OK), 0);
    if (!strstr(version, "clang version 19.")) FAIL_TEST("the version is '%s', expected clang 19's", version);
    smelt_free(path);
    smelt_free(version);
    assert_int_equal(smelt_clang_find(NULL, NULL), SMELT_OK);
}

static void no_clang_says_what_to_install(void **state) {
    (void)state;
    char untouched, *path = &untouched, *version = &untouched;
    setenv("SMELT_CLANG", "/no/such/clang", 1);
    assert_int_equal(smelt_clang_find(&path, &version), SMELT_ERROR_NO_COMPILER);
    assert_string_equal(smelt_error(), "SMELT_CLANG is '/no/such/clang', which is not an executable program");
    unsetenv("SMELT_CLANG");
    assert_true(path == &untouched && version == &untouched);
}

static void llvm_is_found_with_its_version(void **state) {
    (void)state;
    char *path = NULL, *version = NULL;
    assert_int_equal(smelt_llvm_find(&path, &version), SMELT_OK);
    assert_int_equal(access(path, R_OK), 0);
    assert_true(strstr(path, "smelt-cc1") || strstr(path, "libsmelt_compiler.so"));
    assert_int_equal(strncmp(version, "19.", 3), 0);
    smelt_free(path);
    smelt_free(version);
    setenv("SMELT_COMPILE", "0", 1);
    assert_int_equal(smelt_llvm_find(&path, NULL), SMELT_ERROR_NO_COMPILER);
    assert_string_equal(smelt_error(), "SMELT_COMPILE is 0: nothing is compiled");
    assert_int_equal(smelt_device_vector_bits("cpu"), 0);
    unsetenv("SMELT_COMPILE");
}

/* The report of smelt show --why for a kernel that is vector code. */
static int bits_that_code_uses(void) {
    smelt_kernel *kernel;
    smelt_shape shape = {1, {256}};
    char *text;
    assert_int_equal(smelt_kernel_create(&(smelt_kernel_desc){.name = "one",
                                                              .source = "out[thread_position_in_grid.x] = 1;",
                                                              .outputs = {"out"}},
                                         &kernel),
                     SMELT_OK);
    smelt_run_desc run = {
        .grid = {256}, .threadgroup = {256}, .output_shapes = {shape}, .output_dtypes = {SMELT_FLOAT32}};
    if (smelt_kernel_show(kernel, &run, SMELT_STAGE_WHY, &text) != SMELT_OK) FAIL_TEST("%s", smelt_error());
    const char *words = strstr(text, "-bit registers");
    assert_non_null(words);
    while (words > text && words[-1] >= '0' && words[-1] <= '9') words--;
    int bits = atoi(words);
    smelt_free(text);
    smelt_kernel_release(kernel);
    return bits;
}

static void vector_bits_are_those_of_the_code(void **state) {
    (void)state;
    static const char *const levels[] = {"", "sse2", "avx2", "avx512"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        setenv("SMELT_CPU", levels[i], 1);
        assert_int_equal(smelt_device_vector_bits("cpu"), bits_that_code_uses());
    }
    setenv("SMELT_CPU", "sse2", 1);
    assert_int_equal(smelt_device_vector_bits("cpu"), 128);
    unsetenv("SMELT_CPU");
}

static void other_devices_have_none(void **state) {
    (void)state;
    assert_int_equal(smelt_device_vector_bits("cpu-scalar"), 0);
    assert_int_equal(smelt_device_vector_bits("nobody"), 0);
    assert_int_equal(smelt_device_vector_bits(NULL), 0);
    assert_int_equal(smelt_device_driver_version("cpu"), 0);
    assert_int_equal(smelt_device_driver_version("nobody"), 0);
    assert_int_equal(smelt_device_driver_version(NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clang_is_found_with_its_version),
        cmocka_unit_test(no_clang_says_what_to_install),
        cmocka_unit_test(llvm_is_found_with_its_version),
        cmocka_unit_test(vector_bits_are_those_of_the_code),
        cmocka_unit_test(other_devices_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
