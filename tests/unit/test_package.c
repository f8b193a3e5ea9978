/* Packages as bytes: everything is restored, and damaged ones are refused. Constants and targets. */
#include "unit.h"

#include "base/hash.h"
#include "device/cpu_shape.h"
#include "abi/build_id.h"
#include "package/constants.h"
#include "package/features.h"
#include "package/package.h"
#include "package/select.h"

#include <stdlib.h>
#include <string.h>

static const struct package_target targets[] = {
    {PACKAGE_TARGET_CPU, "cpu", "", "sse3 avx2"},
    {PACKAGE_TARGET_CPU, "x86-64-v3", "x86-64-v3", "avx2"},
    {77, "of a later kind", "", "whatever"},
    {PACKAGE_TARGET_CUDA, "sm_90a", "sm_90a", ""},
};
#define TARGET_COUNT ((int)(sizeof targets / sizeof *targets))
static const struct parameter parameters[] = {
    {.name = "x", .kind = PARAMETER_BUFFER, .index = "0"},
    {.name = "", .kind = PARAMETER_ATTRIBUTE, .attribute = "thread_position_in_grid"},
    {.name = "mask", .kind = PARAMETER_BUFFER, .index = "N + 1", .guard = "has_mask"},
};
static const struct package_constant constants[] = {
    {.name = "scale",
     .type = SMELT_FLOAT32,
     .set = true,
     .value = {.index = 3, .dtype = SMELT_FLOAT32, .value = {.real = -0.5}}},
    {.name = "flip", .type = SMELT_BOOL, .required = true, .value = {.index = 65535, .dtype = SMELT_BOOL}},
};
static const struct package_code codes[] = {
    {.target = 1,
     .shape = {.engine = ENGINE_SIMD, .masked = 1, .size = {0, 1, 1}},
     .engine = ENGINE_SIMD,
     .image = {"code", 4}},
    {.target = 0,
     .shape = {.engine = ENGINE_SIMD, .rows = 1, .multiple = 64},
     .engine = ENGINE_SCALAR,
     .image = {"", 0}},
    {.target = 3,
     .shape = {.engine = ENGINE_PTX,
               .polled = 1,
               .most_threads = 512,
               .folded = 1,
               .inlined = {0, 3, [2] = 1, [5] = 8, [SHAPE_MAX_INLINED - 1] = 2}},
     .engine = ENGINE_PTX,
     .image = {".version 8.0", 13}},
    {.target = 2, .shape = {.engine = 9, .masked = 3}, .engine = 9, .image = {"who knows", 9}},
};
#define CODE_COUNT ((int)(sizeof codes / sizeof *codes))
static const struct package_entry package_entries[] = {
    {.entry = {.host_name = "first", .parameters = parameters, .parameter_count = 3},
     .max_threads = 512,
     .required_threads = {16, 8, 2},
     .has_barrier = true,
     .constants = constants,
     .constant_count = 2,
     .bitcode = {"BC\xC0\xDE", 4},
     .codes = codes,
     .code_count = CODE_COUNT},
    {.entry = {.host_name = "second"}, .bitcode = {"bits", 4}},
};

static struct package example(void) {
    return (struct package){.smelt_version = "1.2.3",
                            .llvm_version = "19.1.7",
                            .bitcode_interface = bitcode_interface,
                            .code_interface = code_interface,
                            .source_name = "kernels.metal",
                            .math = SMELT_MATH_FAST,
                            .metal_version = 400,
                            .targets = targets,
                            .target_count = TARGET_COUNT,
                            .entries = package_entries,
                            .entry_count = 2};
}

static struct text written(const struct package *package) {
    struct text bytes = {0};
    assert_int_equal(package_write(package, &bytes), SMELT_OK);
    return bytes;
}

static void same_bytes(struct bytes a, struct bytes b) {
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
}

static void same_string(const char *a, const char *b) {
    assert_int_equal(a == NULL, b == NULL);
    if (a) assert_string_equal(a, b);
}

static void everything_comes_back(void **state) {
    (void)state;
    struct package one = example(), other;
    struct text bytes = written(&one), again;
    assert_true(package_begins(bytes.data, bytes.length));
    assert_int_equal(package_read("p", bytes.data, bytes.length, &other), SMELT_OK);
    assert_string_equal(other.smelt_version, "1.2.3");
    assert_string_equal(other.llvm_version, "19.1.7");
    assert_string_equal(other.source_name, "kernels.metal");
    assert_int_equal(other.math, SMELT_MATH_FAST);
    assert_int_equal(other.metal_version, 400);
    assert_true(package_code_fits(&other));
    assert_int_equal(other.target_count, TARGET_COUNT);
    for (int i = 0; i < TARGET_COUNT; i++) {
        assert_int_equal(other.targets[i].kind, targets[i].kind);
        assert_string_equal(other.targets[i].name, targets[i].name);
        assert_string_equal(other.targets[i].processor, targets[i].processor);
        assert_string_equal(other.targets[i].features, targets[i].features);
    }
    assert_int_equal(other.entry_count, 2);
    const struct package_entry *entry = &other.entries[0];
    assert_string_equal(entry->entry.host_name, "first");
    assert_int_equal(entry->max_threads, 512);
    assert_memory_equal(entry->required_threads, package_entries[0].required_threads,
                        sizeof entry->required_threads);
    assert_true(entry->has_barrier);
    assert_int_equal(entry->entry.parameter_count, 3);
    for (int i = 0; i < 3; i++) {
        const struct parameter *parameter = &entry->entry.parameters[i];
        assert_int_equal(parameter->kind, parameters[i].kind);
        same_string(parameter->name, parameters[i].name);
        same_string(parameter->index, parameters[i].index);
        same_string(parameter->attribute, parameters[i].attribute);
        same_string(parameter->guard, parameters[i].guard);
    }
    assert_int_equal(entry->constant_count, 2);
    assert_true(entry->constants[0].set && !entry->constants[0].required && entry->constants[1].required);
    assert_true(entry->constants[0].value.value.real == -0.5 &&
                entry->constants[0].value.dtype == SMELT_FLOAT32);
    assert_int_equal(entry->constants[0].type, SMELT_FLOAT32);
    assert_int_equal(entry->constants[1].type, SMELT_BOOL);
    assert_int_equal(entry->constants[1].value.index, 65535);
    same_bytes(entry->bitcode, package_entries[0].bitcode);
    assert_int_equal(entry->code_count, CODE_COUNT);
    for (int i = 0; i < CODE_COUNT; i++) {
        assert_int_equal(entry->codes[i].target, codes[i].target);
        assert_int_equal(entry->codes[i].engine, codes[i].engine);
        assert_memory_equal(&entry->codes[i].shape, &codes[i].shape, sizeof codes[i].shape);
        same_bytes(entry->codes[i].image, codes[i].image);
    }
    assert_string_equal(other.entries[1].entry.host_name, "second");
    assert_int_equal(other.entries[1].code_count, 0);
    again = written(&other);
    same_bytes((struct bytes){bytes.data, bytes.length}, (struct bytes){again.data, again.length});
    package_free(&other);
    text_free(&bytes);
    text_free(&again);
}

static void refuse(const char *bytes, size_t size, const char *words) {
    struct package package = {.metal_version = 99};
    assert_int_equal(package_read("p", bytes, size, &package), SMELT_ERROR_FORMAT);
    assert_int_equal(package.metal_version, 99);
    if (!strstr(smelt_error(), words))
        FAIL_TEST("the message is \"%s\", expected \"%s\"", smelt_error(), words);
}

static void no_cut_is_read(void **state) {
    (void)state;
    struct package one = example();
    struct text bytes = written(&one);
    for (size_t cut = 0; cut < bytes.length; cut++) {
        /* Memory of exactly that size, for sanitizers. */
        char *copy = malloc(cut + !cut);
        memcpy(copy, bytes.data, cut);
        refuse(copy, cut, cut < 8 ? "is not a smelt package" : "is truncated");
        free(copy);
    }
    text_free(&bytes);
}

static void no_flipped_bit_is_read(void **state) {
    (void)state;
    struct package one = example();
    struct text bytes = written(&one);
    for (size_t bit = 0; bit < 8 * bytes.length; bit++) {
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        refuse(bytes.data, bytes.length, "");
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    bytes.data[8]++;
    refuse(bytes.data, bytes.length, "has format 7; this smelt (0.1.0) reads format 6: build it again");
    text_free(&bytes);
}

static void packages_of_another_prelude_are_refused(void **state) {
    (void)state;
    struct package one = example();
    one.bitcode_interface = "bitcode of another";
    struct text bytes = written(&one);
    refuse(bytes.data, bytes.length, "was built by another build of smelt (version 1.2.3, this is 0.1.0)");
    text_free(&bytes);
}

static void code_of_other_engines_does_not_fit(void **state) {
    (void)state;
    struct package one = example(), other;
    one.code_interface = "code of another";
    struct text bytes = written(&one);
    assert_int_equal(package_read("p", bytes.data, bytes.length, &other), SMELT_OK);
    assert_false(package_code_fits(&other));
    package_free(&other);
    text_free(&bytes);
}

/* ---- Function constants. */

static void constants_are_listed_by_index(void **state) {
    (void)state;
    struct constant_use uses[] = {{4, SMELT_BOOL, 1, "flip"},     {1, SMELT_INT8, 0, "small"},
                                  {2, SMELT_FLOAT32, 0, "scale"}, {9, SMELT_UINT32, 0, "flop"},
                                  {5, SMELT_INT8, 0, "tiny"},     {3, SMELT_INT16, 1, "odd"}};
    static const struct {
        int index;
        smelt_dtype type;
    } wanted[] = {{1, SMELT_INT8}, {2, SMELT_FLOAT32}, {3, SMELT_INT16},
                  {4, SMELT_BOOL}, {5, SMELT_INT8},    {9, SMELT_UINT32}};
    const smelt_constant given[] = {{.index = 2, .dtype = SMELT_FLOAT32, .value = {.real = 0.5}},
                                    {.name = "n::flop", .dtype = SMELT_UINT32, .value = {.integer = 6}},
                                    {.index = 77, .dtype = SMELT_BOOL},
                                    {.dtype = SMELT_NO_DTYPE}};
    struct package_constant listed[6];
    constants_of_uses(uses, 6, given, listed);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(listed[i].value.index, wanted[i].index);
        assert_int_equal(listed[i].type, wanted[i].type);
        assert_int_equal(listed[i].set, wanted[i].index == 2 || wanted[i].index == 9);
        assert_int_equal(listed[i].required, wanted[i].index == 3 || wanted[i].index == 4);
    }
    assert_true(listed[1].value.value.real == 0.5);
    assert_true(listed[5].value.value.integer == 6 && !listed[5].value.name);
}

static void values_at_load_win(void **state) {
    (void)state;
    const struct package_constant own[] = {
        {.name = "a",
         .type = SMELT_BOOL,
         .set = true,
         .value = {.index = 1, .dtype = SMELT_BOOL, .value = {.integer = 1}}},
        {.name = "b",
         .type = SMELT_UINT8,
         .set = true,
         .value = {.index = 2, .dtype = SMELT_UINT8, .value = {.integer = 200}}},
        {.name = "c",
         .type = SMELT_FLOAT32,
         .set = true,
         .value = {.index = 3, .dtype = SMELT_FLOAT32, .value = {.real = 2}}},
        {.name = "d", .type = SMELT_INT32, .value = {.index = 4, .dtype = SMELT_INT32}},
    };
    const struct package_entry entry = {.constants = own, .constant_count = 4};
    static const struct {
        smelt_constant given;
        bool changed;
        int count;
    } cases[] = {
        {{.index = 9, .dtype = SMELT_BOOL, .value = {.integer = 1}}, false, 3},
        {{.index = 1, .dtype = SMELT_INT32, .value = {.integer = 7}}, false, 3},
        {{.index = 1, .dtype = SMELT_BOOL, .value = {.integer = 0}}, true, 3},
        {{.index = 2, .dtype = SMELT_INT32, .value = {.integer = 200}}, false, 3},
        {{.index = 2, .dtype = SMELT_FLOAT32, .value = {.real = 200}}, false, 3},
        {{.index = 2, .dtype = SMELT_FLOAT32, .value = {.real = 1e30}}, true, 3},
        /* Refused when compiled; the low byte is not all of the value. */
        {{.index = 2, .dtype = SMELT_INT32, .value = {.integer = 200 + 256}}, true, 3},
        {{.index = 2, .dtype = SMELT_UINT8, .value = {.integer = 254}}, true, 3},
        {{.index = 3, .dtype = SMELT_INT32, .value = {.integer = 2}}, false, 3},
        {{.index = 3, .dtype = SMELT_FLOAT32, .value = {.real = 2.5}}, true, 3},
        {{.index = 4, .dtype = SMELT_INT32, .value = {.integer = 0}}, true, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const smelt_constant given[2] = {cases[i].given};
        smelt_constant values[SMELT_MAX_CONSTANTS + 1];
        bool changed;
        package_constants(&entry, given, values, &changed);
        assert_int_equal(changed, cases[i].changed);
        for (int v = 0; v < cases[i].count; v++) {
            assert_int_equal(values[v].index, v + 1);
            if (v + 1 == given[0].index) assert_memory_equal(&values[v], &given[0], sizeof given[0]);
        }
        assert_int_equal(values[cases[i].count].dtype, SMELT_NO_DTYPE);
    }
}

/* ---- Machines. */

static void the_richest_target_that_runs_here_is_taken(void **state) {
    (void)state;
    struct text why = {0};
    setenv("SMELT_CPU", "sse2", 1);
    const struct package_target some[] = {{77, "sm_99", "", ""},
                                          {PACKAGE_TARGET_CPU, "x86-64", "x86-64", ""},
                                          {PACKAGE_TARGET_CPU, "cpu", "", "sse3 no-such-set"}};
    struct package package = {.targets = some, .target_count = 3};
    assert_int_equal(package_target_here(&package, NULL, &why), 1);
    assert_string_equal(text_string(&why), "'cpu' needs sse3, which this machine lacks");
    package.target_count = 1;
    text_free(&why);
    assert_int_equal(package_target_here(&package, NULL, &why), -1);
    assert_string_equal(text_string(&why), "");
    unsetenv("SMELT_CPU");
    const struct package_target levels[] = {
        {PACKAGE_TARGET_CPU, "x86-64", "x86-64", ""},
        {PACKAGE_TARGET_CPU, "x86-64-v4", "x86-64-v4", features_of_level("x86-64-v4")},
        {PACKAGE_TARGET_CPU, "x86-64-v3", "x86-64-v3", features_of_level("x86-64-v3")}};
    package = (struct package){.targets = levels, .target_count = 3};
    /* The compiler's own detection of this machine. */
    int best = __builtin_cpu_supports("x86-64-v4") ? 1 : __builtin_cpu_supports("x86-64-v3") ? 2 : 0;
    assert_int_equal(package_target_here(&package, NULL, &why), best);
    text_free(&why);
}

static void a_gpu_runs_the_newest_code_that_it_can(void **state) {
    (void)state;
    const struct package_target some[] = {{PACKAGE_TARGET_CPU, "cpu", "", ""},
                                          {PACKAGE_TARGET_CUDA, "sm_86", "sm_86", ""},
                                          {PACKAGE_TARGET_CUDA, "sm_90a", "sm_90a", ""},
                                          {PACKAGE_TARGET_CUDA, "sm_80", "sm_80", ""},
                                          {77, "sm_90", "sm_90", ""},
                                          {PACKAGE_TARGET_CUDA, "sm_999", "sm_999", ""}};
    struct package package = {.targets = some, .target_count = 6};
    static const struct {
        const char *here;
        int target;
        const char *why;
    } cases[] = {{"sm_80", 3,
                  "'sm_86' does not run on sm_80; 'sm_90a' does not run on sm_80; 'sm_999' does not run on "
                  "sm_80"},
                 {"sm_89", 1, "'sm_90a' does not run on sm_89; 'sm_999' does not run on sm_89"},
                 {"sm_90", 1, "'sm_90a' does not run on sm_90; 'sm_999' does not run on sm_90"},
                 {"sm_90a", 2, "'sm_999' does not run on sm_90a"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text why = {0};
        assert_int_equal(package_target_here(&package, cases[i].here, &why), cases[i].target);
        assert_string_equal(text_string(&why), cases[i].why);
        text_free(&why);
    }
    struct text why = {0};
    package.target_count = 1;
    assert_int_equal(package_target_here(&package, "sm_90a", &why), -1);
    assert_string_equal(text_string(&why), "");
    text_free(&why);
}

static void feature_lists(void **state) {
    (void)state;
    char missing[64];
    assert_false(features_missing("", "", missing));
    assert_false(features_missing("avx avx2", "sse3 avx2 avx", missing));
    assert_true(features_missing("avx2", "avx avx512f", missing));
    assert_string_equal(missing, "avx2");
    assert_true(features_missing("avx", "avx2", missing));
    assert_int_equal(features_count(""), 0);
    assert_int_equal(features_count("a b c"), 3);
    assert_int_equal(features_level(features_of_level("x86-64-v4")), 4);
    assert_int_equal(features_level(features_of_level("x86-64-v3")), 3);
    assert_int_equal(features_level("sse3"), 1);
    assert_null(features_of_level("x86-64-v5"));
}

/* Code generation avoids SSE4A: a package built on AMD CPUs runs on Intel's. */
static void what_code_never_uses_is_not_needed(void **state) {
    (void)state;
    char missing[64];
    struct text machine = {0}, code = {0};
    features_of_machine(&machine);
    features_of_code(&code);
    assert_false(features_missing(text_string(&code), text_string(&machine), missing));
    assert_true(features_missing("sse4a", text_string(&code), missing));
    bool has_sse4a = !features_missing("sse4a", text_string(&machine), missing);
    assert_int_equal(features_count(text_string(&machine)), features_count(text_string(&code)) + has_sse4a);
    text_free(&machine);
    text_free(&code);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(no_cut_is_read),
        cmocka_unit_test(no_flipped_bit_is_read),
        cmocka_unit_test(packages_of_another_prelude_are_refused),
        cmocka_unit_test(code_of_other_engines_does_not_fit),
        cmocka_unit_test(constants_are_listed_by_index),
        cmocka_unit_test(values_at_load_win),
        cmocka_unit_test(the_richest_target_that_runs_here_is_taken),
        cmocka_unit_test(a_gpu_runs_the_newest_code_that_it_can),
        cmocka_unit_test(feature_lists),
        cmocka_unit_test(what_code_never_uses_is_not_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
