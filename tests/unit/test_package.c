/* Packages as bytes: everything comes back, and what is damaged is refused. Which code serves which launch.
 */
#include "unit.h"

#include "base/hash.h"
#include "cpu/shape.h"
#include "cuda/parameters.h"
#include "cuda/shape.h"
#include "frontend/build_id.h"
#include "package/constants.h"
#include "package/features.h"
#include "package/package.h"
#include "package/select.h"
#include "package/shapes.h"

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
        /* Memory of just that size, for tools that look. */
        char *copy = malloc(cut + !cut);
        memcpy(copy, bytes.data, cut);
        refuse(copy, cut, cut < 8 ? "is not a package of smelt" : "is cut off");
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
    refuse(bytes.data, bytes.length, "is of format 5; this smelt (0.1.0) reads format 4: build it again");
    text_free(&bytes);
}

static void packages_of_another_prelude_are_refused(void **state) {
    (void)state;
    struct package one = example();
    one.bitcode_interface = "bitcode of another";
    struct text bytes = written(&one);
    refuse(bytes.data, bytes.length, "was made by another build of smelt (version 1.2.3, this is 0.1.0)");
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
        /* Refused where it is compiled; the low byte is not all there is. */
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
    assert_string_equal(text_string(&why), "'cpu' needs sse3, which this machine has not");
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
    /* The compiler's own opinion of this machine. */
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

/* Code generation keeps away from SSE4A: a package made on AMD's CPUs runs on Intel's. */
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

/* ---- Shapes. */

struct launch_case {
    struct shape_request request;
    uint32_t edge[3]; /* threads of the smallest group at the edge */
};

static uint32_t below(uint32_t limit) {
    return (uint32_t)(random() % limit);
}

static struct launch_case random_launch(void) {
    static const uint32_t sizes[] = {1, 1, 2, 3, 4, 7, 8, 16, 20, 32, 33, 64, 96, 128, 256, 1000, 1024};
    struct launch_case l = {
        .request = {.polled = below(2), .large = below(4) == 0, .barrier_hint = below(2)}};
    uint32_t threads = 1;
    for (int d = 0; d < 3; d++) {
        uint32_t size = d && below(2) ? 1 : sizes[below(sizeof sizes / sizeof *sizes)];
        if (threads * size > 1024) size = 1;
        threads *= size;
        uint32_t grid = below(2) ? size * (1 + below(5)) : 1 + below(3000);
        if (below(20) == 0) grid = 0xfffffff0u + below(16);
        l.request.group_size[d] = size;
        l.request.grid[d] = grid;
        l.edge[d] = grid % size ? grid % size : size;
    }
    return l;
}

static void expect(bool truth, const char *what, const struct code_shape *made, const struct launch_case *l) {
    if (truth) return;
    const uint32_t *g = l->request.group_size;
    FAIL_TEST("%s: code {polled %u masked %u small %u rows %u multiple %u size %u %u %u} for groups of %u x "
              "%u x %u, edge %u %u %u",
              what, made->polled, made->masked, made->small, made->rows, made->multiple, made->size[0],
              made->size[1], made->size[2], g[0], g[1], g[2], l->edge[0], l->edge[1], l->edge[2]);
}

/* What the code takes for granted holds of a group of `size` threads. */
static void expect_safe(const struct code_shape *made, const struct launch_case *l, const uint32_t size[3]) {
    const uint32_t *full = l->request.group_size;
    uint32_t threads = size[0] * size[1] * size[2];
    expect(made->polled || !l->request.polled, "the clock is not looked at", made, l);
    bool small = !l->request.large;
    for (int d = 0; d < 3; d++) small &= l->request.grid[d] < INT32_MAX - 1023;
    expect(small || !made->small, "the launch is not small", made, l);
    expect(made->masked || threads % 32 == 0, "lanes without a thread", made, l);
    expect(!made->rows || size[0] % 32 == 0, "rows of broken simdgroups", made, l);
    if (made->multiple)
        expect(size[1] == 1 && size[2] == 1 && size[0] % made->multiple == 0, "gangs do not divide", made, l);
    for (int d = 0; d < 3 && !made->masked; d++)
        expect(!made->size[d] || made->size[d] == size[d], "another size", made, l);
    /* Masked code knows sizes of full groups; only 1 is the same at the edge, and nothing else may be known
     * of it. */
    for (int d = 0; d < 3 && made->masked; d++)
        expect(!made->size[d] || (made->size[d] == full[d] && (d == 0 || full[d] == 1)), "another full size",
               made, l);
}

#define ROUNDS 300

static void code_serves_only_launches_it_is_right_for(void **state) {
    (void)state;
    static struct code_shape made[4 * ROUNDS + 2];
    int count = 0, served = 0, well = 0;
    srandom(5);
    /* All that is ever asked for, and what packages hold beside. */
    for (int i = 0; i < ROUNDS; i++) {
        struct launch_case l = random_launch();
        struct launch_shapes shapes;
        launch_shapes(&l.request, &shapes);
        if (shapes.has_full) made[count++] = shapes.full;
        if (shapes.has_edge) made[count++] = shapes.edge;
    }
    const struct code_shape any = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1};
    made[count++] = any;
    made[count++] = (struct code_shape){.engine = ENGINE_SIMD, .polled = 1, .small = 1};
    for (int i = 0; i < ROUNDS; i++) {
        struct launch_case l = random_launch();
        struct launch_shapes wanted;
        launch_shapes(&l.request, &wanted);
        for (int edge = 0; edge < 2; edge++) {
            const struct code_shape *shape = edge ? &wanted.edge : &wanted.full;
            if (!(edge ? wanted.has_edge : wanted.has_full)) continue;
            assert_true(shape_serves(shape, shape));
            assert_true(shape_serves_well(shape, shape));
            assert_true(shape_serves(&any, shape));
            for (int m = 0; m < count; m++) {
                if (!shape_serves(&made[m], shape)) {
                    assert_false(shape_serves_well(&made[m], shape));
                    continue;
                }
                served++;
                well += shape_serves_well(&made[m], shape);
                expect_safe(&made[m], &l, edge ? l.edge : l.request.group_size);
            }
        }
    }
    assert_true(served > ROUNDS && well > ROUNDS && well < served);
}

/* ---- Shapes on GPUs. */

struct gpu_case {
    struct launch launch;
    size_t bytes[4]; /* of the first buffers, where they are bytes on the host */
    uint8_t inlined[SHAPE_MAX_INLINED];
};

static void random_gpu_launch(struct gpu_case *c) {
    struct launch_case l = random_launch();
    *c = (struct gpu_case){.launch = {.timeout = below(2), .large = below(4) == 0}};
    for (int d = 0; d < 3; d++) {
        c->launch.grid[d] = l.request.grid[d];
        c->launch.group_size[d] = l.request.group_size[d];
        if (below(10) == 0) c->launch.grid[d] = 65530 * l.request.group_size[d] + below(100);
    }
    if (below(4) == 0) { /* groups that a package is built for */
        c->launch.group_size[0] = c->launch.group_size[1] = below(2) ? 16 : 7;
        c->launch.group_size[2] = 1;
    }
    for (int i = 0; i < 4; i++) {
        c->bytes[i] = below(3) == 0 ? 0 : i == 2 ? 24 : 1 + below(40);
        if (c->bytes[i]) c->inlined[i] = inlined_class(c->bytes[i]);
    }
    c->launch.inlined = c->inlined;
}

static void gpu_shape(const struct gpu_case *c, struct code_shape *shape) {
    cuda_shape(&c->launch, false, shape);
    memcpy(shape->inlined, c->inlined, sizeof c->inlined);
}

static void expect_on_gpu(bool truth, const char *what, const struct code_shape *made,
                          const struct gpu_case *c) {
    if (truth) return;
    const uint32_t *g = c->launch.group_size, *n = c->launch.grid;
    FAIL_TEST("%s: code {polled %u masked %u small %u folded %u most %u size %u %u %u inlined %u %u %u %u} "
              "for a grid of %u x %u x %u, groups of %u x %u x %u, time-out %g, bytes %zu %zu %zu %zu",
              what, made->polled, made->masked, made->small, made->folded, made->most_threads, made->size[0],
              made->size[1], made->size[2], made->inlined[0], made->inlined[1], made->inlined[2],
              made->inlined[3], n[0], n[1], n[2], g[0], g[1], g[2], c->launch.timeout, c->bytes[0],
              c->bytes[1], c->bytes[2], c->bytes[3]);
}

/* What the code takes for granted holds of the launch. */
static void expect_safe_on_gpu(const struct code_shape *made, const struct gpu_case *c) {
    const struct launch *launch = &c->launch;
    uint32_t threads = launch->group_size[0] * launch->group_size[1] * launch->group_size[2];
    bool small = !launch->large, cut = false, many = false;
    for (int d = 0; d < 3; d++) {
        uint64_t groups = ((uint64_t)launch->grid[d] + launch->group_size[d] - 1) / launch->group_size[d];
        small &= launch->grid[d] < INT32_MAX - 1023;
        cut |= launch->grid[d] % launch->group_size[d] != 0;
        many |= groups > (d ? 65535u : 2147483647u);
        expect_on_gpu(!made->size[d] || made->size[d] == launch->group_size[d], "another size", made, c);
    }
    expect_on_gpu(small || !made->small, "the launch is not small", made, c);
    expect_on_gpu(!cut || made->masked, "threads that are not there", made, c);
    expect_on_gpu(many == made->folded, "the grid's rows", made, c);
    expect_on_gpu((launch->timeout > 0) == made->polled, "the flag's address", made, c);
    expect_on_gpu(made->size[0] || threads <= made->most_threads, "too many threads", made, c);
    for (int i = 0; i < 4; i++)
        if (made->inlined[i])
            expect_on_gpu(c->bytes[i] && c->bytes[i] <= inlined_bytes(made->inlined[i]),
                          "the bytes are not there, or not all", made, c);
}

static void packages_have_code_for_every_launch_on_a_gpu(void **state) {
    (void)state;
    struct binding bindings[4] = {{.kind = BINDING_BUFFER, .index = 0, .size = 4},
                                  {.kind = BINDING_BUFFER, .index = 1, .size = 24, .writable = 1},
                                  {.kind = BINDING_BUFFER, .index = 2, .size = 24},
                                  {.kind = BINDING_BUFFER, .index = 3, .size = 4}};
    const struct parameter given[4] = {
        {.by_reference = true}, {.by_reference = true}, {.by_reference = true}, {.by_reference = false}};
    struct image image = {.bindings = bindings, .binding_count = 4};
    const smelt_build_desc desc = {.threadgroups = {{64, 0, 0}, {16, 16, 0}, {7, 7, 1}}};
    struct package_entry entry = {.entry = {.parameters = given, .parameter_count = 4}};
    static struct package_code made[MAX_SHAPES + 1];
    static struct code_shape asked[ROUNDS];
    struct shapes shapes = {.count = 0};
    shapes_for_gpu(&desc, &entry, &image, &shapes);
    assert_in_range(shapes.count, 10, MAX_SHAPES);
    made[0] = (struct package_code){.shape = shape_any_on_gpu, .engine = ENGINE_PTX};
    for (int i = 0; i < shapes.count; i++) {
        made[i + 1] = (struct package_code){.shape = shapes.items[i], .engine = ENGINE_PTX};
        assert_int_equal(shapes.items[i].inlined[0], shapes.items[i].small ? 1 : 0);
        assert_int_equal(shapes.items[i].inlined[2], shapes.items[i].small ? 2 : 0);
        assert_int_equal(shapes.items[i].inlined[1] + shapes.items[i].inlined[3], 0);
    }
    entry.codes = made;
    entry.code_count = shapes.count + 1;
    srandom(6);
    int well = 0, used[MAX_SHAPES + 1] = {0};
    struct gpu_case c;
    for (int i = 0; i < ROUNDS; i++) {
        random_gpu_launch(&c);
        gpu_shape(&c, &asked[i]);
    }
    for (int i = 0; i < 20 * ROUNDS; i++) {
        struct code_shape wanted;
        random_gpu_launch(&c);
        gpu_shape(&c, &wanted);
        const struct package_code *found = package_find_code(&entry, 0, &wanted);
        expect_on_gpu(found != NULL, "no code", &wanted, &c);
        expect_on_gpu(shape_serves(&wanted, &wanted) && shape_serves_well(&wanted, &wanted),
                      "not even what was asked for", &wanted, &c);
        used[found - made]++;
        well += shape_serves_well(&found->shape, &wanted);
        for (int m = 0; m < entry.code_count; m++) {
            bool serves = shape_serves(&made[m].shape, &wanted);
            if (serves) expect_safe_on_gpu(&made[m].shape, &c);
            expect_on_gpu(serves || !shape_serves_well(&made[m].shape, &wanted), "well, but not at all",
                          &made[m].shape, &c);
        }
        for (int m = 0; m < ROUNDS; m++)
            if (shape_serves(&asked[m], &wanted)) expect_safe_on_gpu(&asked[m], &c);
    }
    assert_true(well > 0 && well < 20 * ROUNDS);
    for (int m = 0; m < entry.code_count; m++)
        expect_on_gpu(used[m] > 0, "no launch takes it", &made[m].shape, &c);
    assert_false(shape_serves(&shape_any_on_cpu, &shape_any_on_gpu));
    assert_false(shape_serves(&shape_any_on_gpu, &shape_any_on_cpu));
    /* One size only. */
    entry.required_threads[0] = 16;
    entry.required_threads[1] = entry.required_threads[2] = 2;
    shapes = (struct shapes){.count = 0};
    shapes_for_gpu(&desc, &entry, &image, &shapes);
    assert_int_equal(shapes.count, 5);
    assert_int_equal(shapes.items[3].size[1], 2);
}

static void the_best_code_for_a_gpu_is_found(void **state) {
    (void)state;
#define GPU_CODE(...) \
    { .shape = {.engine = ENGINE_PTX, .masked = 1, __VA_ARGS__}, .engine = ENGINE_PTX }
    const struct package_code some[] = {
        GPU_CODE(.most_threads = 1024),
        GPU_CODE(.most_threads = 1024, .small = 1),
        GPU_CODE(.most_threads = 256, .small = 1),
        GPU_CODE(.most_threads = 1024, .small = 1, .size = {0, 1, 1}),
        GPU_CODE(.small = 1, .size = {64, 1, 1}),
        GPU_CODE(.most_threads = 1024, .small = 1, .inlined = {0, 1}),
        GPU_CODE(.most_threads = 1024, .polled = 1),
        GPU_CODE(.most_threads = 1024, .folded = 1),
    };
    struct package_entry entry = {.codes = some, .code_count = 8};
    struct code_shape wanted = {.engine = ENGINE_PTX, .small = 1, .size = {64, 1, 1}};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[4]);
    assert_true(shape_serves_well(&some[4].shape, &wanted));
    wanted.size[0] = 128;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[3]);
    assert_false(shape_serves_well(&some[3].shape, &wanted));
    wanted.inlined[1] = 1;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[5]);
    wanted.inlined[1] = 2;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[3]);
    wanted = (struct code_shape){.engine = ENGINE_PTX, .small = 1, .size = {16, 16, 1}};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[2]);
    wanted.size[2] = 2;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[1]);
    wanted.small = 0;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[0]);
    wanted.polled = 1;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[6]);
    wanted.folded = 1;
    assert_null(package_find_code(&entry, 0, &wanted));
    wanted.polled = 0;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[7]);
    assert_null(package_find_code(&entry, 1, &wanted));
}

static void the_best_code_that_serves_is_found(void **state) {
    (void)state;
    const struct package_code some[] = {
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1}, .engine = ENGINE_SIMD},
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .masked = 1, .small = 1}, .engine = ENGINE_SIMD},
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .small = 1, .rows = 1}, .engine = ENGINE_SIMD},
        {.shape = {.engine = ENGINE_SIMD, .polled = 1, .small = 1, .size = {64, 1, 1}},
         .engine = ENGINE_SIMD},
        {.target = 1,
         .shape = {.engine = ENGINE_SIMD, .small = 1, .size = {128, 1, 1}},
         .engine = ENGINE_SIMD},
    };
    struct package_entry entry = {.codes = some, .code_count = 5};
    struct code_shape wanted = {.engine = ENGINE_SIMD, .small = 1, .size = {64, 1, 1}};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[3]);
    wanted.size[0] = 128;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[2]);
    assert_ptr_equal(package_find_code(&entry, 1, &wanted), &some[4]);
    wanted = (struct code_shape){.engine = ENGINE_SIMD, .small = 1, .masked = 1};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[1]);
    wanted.small = 0;
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &some[0]);
    assert_null(package_find_code(&entry, 1, &wanted));
    wanted.engine = ENGINE_SCALAR;
    assert_null(package_find_code(&entry, 0, &wanted));
    /* What the SIMD engine refused the scalar engine's code does, for every launch and on both devices. */
    const struct package_code refused = {.shape = {.engine = ENGINE_SIMD, .masked = 1},
                                         .engine = ENGINE_SCALAR};
    entry = (struct package_entry){.codes = &refused, .code_count = 1};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &refused);
    wanted = (struct code_shape){.engine = ENGINE_SIMD, .polled = 1};
    assert_ptr_equal(package_find_code(&entry, 0, &wanted), &refused);
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
        cmocka_unit_test(code_serves_only_launches_it_is_right_for),
        cmocka_unit_test(the_best_code_that_serves_is_found),
        cmocka_unit_test(packages_have_code_for_every_launch_on_a_gpu),
        cmocka_unit_test(the_best_code_for_a_gpu_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
