/* Kernels that differ in anything except their name never share code, in memory or in the disk cache. Also
 * kernels in a forked child, and from many threads at once. */
#include "unit.h"

#include "smelt/smelt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT 8

static char folder[] = "/tmp/smelt-test-isolation-XXXXXX";

struct variation {
    const char *source, *header;
    smelt_math_mode math;
    smelt_dtype dtype; /* of input and output */
    smelt_template template;
    bool strided, atomic;
    const char *include;
    double expected; /* output[1] for input[1] = 3 */
};

static smelt_array *input_of(smelt_dtype dtype) {
    smelt_array *array;
    smelt_shape shape = {.ndim = 1, .size = {COUNT}};
    assert_int_equal(smelt_array_create(dtype, shape, &array), SMELT_OK);
    assert_int_equal(smelt_array_fill(array, 3), SMELT_OK);
    return array;
}

static smelt_kernel *kernel_of(const struct variation *v) {
    smelt_kernel *kernel = NULL;
    smelt_status status = smelt_kernel_create(&(smelt_kernel_desc){.name = "same",
                                                                   .source = v->source,
                                                                   .header = v->header,
                                                                   .inputs = {"inp"},
                                                                   .outputs = {"out"},
                                                                   .math = v->math,
                                                                   .strided = v->strided,
                                                                   .atomic_outputs = v->atomic,
                                                                   .include_paths = {v->include}},
                                              &kernel);
    if (status != SMELT_OK) print_error("%s\n", smelt_error());
    assert_int_equal(status, SMELT_OK);
    return kernel;
}

static double run(smelt_kernel *kernel, const struct variation *v, smelt_run_info *info) {
    smelt_array *input = input_of(v->dtype), *output = NULL, *real = NULL;
    smelt_status status = smelt_kernel_run(kernel,
                                           &(smelt_run_desc){.inputs = {input},
                                                             .grid = {COUNT},
                                                             .threadgroup = {COUNT},
                                                             .templates = {v->template},
                                                             .output_shapes = {{.ndim = 1, .size = {COUNT}}},
                                                             .output_dtypes = {v->dtype},
                                                             .initialise = true,
                                                             .init_value = 77,
                                                             .info = info},
                                           &output);
    if (status != SMELT_OK) print_error("%s\n", smelt_error());
    assert_int_equal(status, SMELT_OK);
    assert_int_equal(smelt_array_convert(output, SMELT_FLOAT64, &real), SMELT_OK);
    double value = ((const double *)smelt_array_data(real))[1];
    smelt_array_release(real);
    smelt_array_release(output);
    smelt_array_release(input);
    return value;
}

#define INDEX "uint i = thread_position_in_grid.x; "

/* One name throughout. */
static const struct variation variations[] = {
    {.source = INDEX "out[i] = inp[i] + 1;", .dtype = SMELT_FLOAT32, .expected = 4},
    {.source = INDEX "out[i] = inp[i] + 2;", .dtype = SMELT_FLOAT32, .expected = 5},
    /* The same number of characters, and a text equal to the other's header and body concatenated. */
    {.source = INDEX "out[i] = inp[i] + A;",
     .header = "#define A 3\n",
     .dtype = SMELT_FLOAT32,
     .expected = 6},
    {.source = INDEX "out[i] = inp[i] + A;",
     .header = "#define A 4\n",
     .dtype = SMELT_FLOAT32,
     .expected = 7},
    {.source = INDEX "out[i] = sizeof(inp[i]);", .dtype = SMELT_FLOAT32, .expected = 4},
    {.source = INDEX "out[i] = sizeof(inp[i]);", .dtype = SMELT_FLOAT16, .expected = 2},
    {.source = INDEX "out[i] = inp[i] / 2;", .dtype = SMELT_FLOAT16, .expected = 1.5},
    {.source = INDEX "out[i] = inp[i] / 2;", .dtype = SMELT_INT32, .expected = 1},
    {.source = INDEX "out[i] = N;",
     .dtype = SMELT_FLOAT32,
     .template = {.name = "N", .kind = SMELT_TEMPLATE_INT, .integer = 1},
     .expected = 1},
    {.source = INDEX "out[i] = N;",
     .dtype = SMELT_FLOAT32,
     .template = {.name = "N", .kind = SMELT_TEMPLATE_INT, .integer = 2},
     .expected = 2},
    {.source = INDEX "out[i] = N + sizeof(N);",
     .dtype = SMELT_FLOAT32,
     .template = {.name = "N", .kind = SMELT_TEMPLATE_INT, .integer = 1},
     .expected = 5},
    {.source = INDEX "out[i] = N + sizeof(N);",
     .dtype = SMELT_FLOAT32,
     .template = {.name = "N", .kind = SMELT_TEMPLATE_BOOL, .boolean = true},
     .expected = 2},
    {.source = INDEX "out[i] = T(2.75f);",
     .dtype = SMELT_FLOAT32,
     .template = {.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = SMELT_FLOAT32},
     .expected = 2.75},
    {.source = INDEX "out[i] = T(2.75f);",
     .dtype = SMELT_FLOAT32,
     .template = {.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = SMELT_INT32},
     .expected = 2},
    {.source = INDEX "\n#ifdef __FAST_MATH__\nout[i] = 1;\n#else\nout[i] = 2;\n#endif\n",
     .dtype = SMELT_FLOAT32,
     .math = SMELT_MATH_SAFE,
     .expected = 2},
    {.source = INDEX "\n#ifdef __FAST_MATH__\nout[i] = 1;\n#else\nout[i] = 2;\n#endif\n",
     .dtype = SMELT_FLOAT32,
     .math = SMELT_MATH_FAST,
     .expected = 1},
    /* Infinity minus infinity: not a number, unless the mode assumes that there is none. */
    {.source = INDEX "float x = inp[i] * 3e38f; out[i] = x - x == 0 ? 8 : 9;",
     .dtype = SMELT_FLOAT32,
     .math = SMELT_MATH_SAFE,
     .expected = 9},
    {.source = INDEX "float x = inp[i] * 3e38f; out[i] = x - x == 0 ? 8 : 9;",
     .dtype = SMELT_FLOAT32,
     .math = SMELT_MATH_FAST,
     .expected = 8},
    {.source = INDEX "out[i] = sizeof(&inp[0]) + INCLUDED;",
     .header = "#include \"value.h\"\n",
     .include = "one",
     .dtype = SMELT_FLOAT32,
     .expected = 9},
    {.source = INDEX "out[i] = sizeof(&inp[0]) + INCLUDED;",
     .header = "#include \"value.h\"\n",
     .include = "two",
     .dtype = SMELT_FLOAT32,
     .expected = 10},
};
#define VARIATIONS ((int)(sizeof variations / sizeof *variations))

static void write_file(const char *path, const char *contents) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(contents, file);
    fclose(file);
}

static struct variation placed(const struct variation *v, char include[256]) {
    struct variation out = *v;
    if (v->include) {
        snprintf(include, 256, "%s/%s", folder, v->include);
        out.include = include;
    }
    return out;
}

/* Twice: the first time they are compiled; the second time, with new handles, all come from the disk. */
static void one_name_many_kernels(void **state) {
    (void)state;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < VARIATIONS; i++) {
            char include[256];
            smelt_run_info info;
            struct variation v = placed(&variations[i], include);
            smelt_kernel *kernel = kernel_of(&v);
            double value = run(kernel, &v, &info);
            if (value != v.expected) print_error("variation %d, round %d\n", i, round);
            assert_true(value == v.expected);
            if (info.cache_hit != (round == 1)) print_error("variation %d, round %d: cache_hit\n", i, round);
            assert_int_equal(info.cache_hit, round == 1);
            smelt_kernel_release(kernel);
        }
}

/* Templates and dtypes of one handle. */
static void one_handle_many_variants(void **state) {
    (void)state;
    smelt_kernel *kernel =
        kernel_of(&(struct variation){.source = INDEX "out[i] = N * 10 + sizeof(inp[i]);"});
    for (int round = 0; round < 2; round++)
        for (int n = 0; n < 3; n++)
            for (int half = 0; half < 2; half++) {
                struct variation v = {.dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32,
                                      .template = {.name = "N", .kind = SMELT_TEMPLATE_INT, .integer = n}};
                smelt_run_info info;
                assert_true(run(kernel, &v, &info) == n * 10 + (half ? 2 : 4));
                assert_true((info.compile_seconds > 0) == (round == 0));
            }
    smelt_kernel_release(kernel);
}

static void a_changed_include_is_seen(void **state) {
    (void)state;
    char path[256], include[256];
    snprintf(include, sizeof include, "%s/changing", folder);
    snprintf(path, sizeof path, "%s/changing/value.h", folder);
    for (int n = 1; n <= 3; n++) {
        char text[64];
        snprintf(text, sizeof text, "#define INCLUDED %d\n", n); /* of the same size each time */
        write_file(path, text);
        struct variation v = {.source = INDEX "out[i] = INCLUDED;",
                              .header = "#include \"value.h\"\n",
                              .include = include,
                              .dtype = SMELT_FLOAT32};
        for (int again = 0; again < 2; again++) {
            smelt_kernel *kernel = kernel_of(&v);
            assert_true(run(kernel, &v, NULL) == n);
            smelt_kernel_release(kernel);
        }
    }
}

/* A new file that is found earlier in the search hides the old one. */
static void an_include_that_is_hidden_by_a_new_file_is_seen(void **state) {
    (void)state;
    char first[256], second[256], path[300];
    snprintf(first, sizeof first, "%s/first", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    snprintf(path, sizeof path, "%s/value.h", second);
    write_file(path, "#define INCLUDED 2\n");
    usleep(20000); /* recently changed files are not remembered */
    for (int n = 2; n >= 1; n--) {
        smelt_kernel *kernel = NULL;
        assert_int_equal(smelt_kernel_create(&(smelt_kernel_desc){.name = "same",
                                                                  .source = INDEX "out[i] = INCLUDED;",
                                                                  .header = "#include \"value.h\"\n",
                                                                  .inputs = {"inp"},
                                                                  .outputs = {"out"},
                                                                  .include_paths = {first, second}},
                                             &kernel),
                         SMELT_OK);
        assert_true(run(kernel, &(struct variation){.dtype = SMELT_FLOAT32}, NULL) == n);
        smelt_kernel_release(kernel);
        snprintf(path, sizeof path, "%s/value.h", first);
        write_file(path, "#define INCLUDED 1\n");
    }
}

static void constants_make_different_functions(void **state) {
    (void)state;
    static const char source[] =
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "constant int scale [[function_constant(0)]];\n"
        "kernel void fill(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
        "    out[i] = scale;\n}\n";
    for (int round = 0; round < 2; round++) {
        smelt_library *library;
        assert_int_equal(
            smelt_library_create(&(smelt_library_desc){.path = "fill.metal", .source = source}, &library),
            SMELT_OK);
        for (int n = 1; n <= 2; n++) {
            smelt_function *function;
            smelt_run_info info;
            smelt_array *out = input_of(SMELT_FLOAT32);
            smelt_status status = smelt_library_function(
                library,
                &(smelt_function_desc){.constants = {{.index = 0, .dtype = SMELT_INT32, .value.integer = n}}},
                &function);
            assert_int_equal(status, SMELT_OK);
            status = smelt_function_run(function, &(smelt_dispatch_desc){.buffers = {{.array = out}},
                                                                         .grid = {COUNT},
                                                                         .threadgroup = {COUNT},
                                                                         .info = &info});
            if (status != SMELT_OK) print_error("%s\n", smelt_error());
            assert_int_equal(status, SMELT_OK);
            assert_true(((const float *)smelt_array_data(out))[1] == (float)n);
            assert_int_equal(info.cache_hit, round == 1);
            smelt_array_release(out);
            smelt_function_release(function);
        }
        smelt_library_release(library);
    }
}

/* ---- Processes and threads. */

#define LARGE 5000

/* Runs over many groups, so that the pool works; true if every element is right. */
static bool run_large(smelt_kernel *kernel) {
    smelt_array *input = NULL, *output = NULL;
    smelt_shape shape = {.ndim = 1, .size = {LARGE}};
    if (smelt_array_arange(SMELT_FLOAT32, shape, &input) != SMELT_OK) return false;
    smelt_status status = smelt_kernel_run(kernel,
                                           &(smelt_run_desc){.inputs = {input},
                                                             .grid = {LARGE},
                                                             .threadgroup = {32},
                                                             .output_shapes = {shape},
                                                             .output_dtypes = {SMELT_FLOAT32}},
                                           &output);
    bool right = status == SMELT_OK;
    for (int i = 0; right && i < LARGE; i++)
        right = ((const float *)smelt_array_data(output))[i] == (float)i + 1;
    smelt_array_release(output);
    smelt_array_release(input);
    return right;
}

static void a_forked_child_runs_kernels(void **state) {
    (void)state;
    smelt_kernel *kernel = kernel_of(&variations[0]);
    assert_true(run_large(kernel)); /* the parent's pool is running */
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            bool right = run_large(kernel);
            /* And compiles what is new. */
            char source[160];
            snprintf(source, sizeof source, INDEX "out[i] = inp[i] + 1 + 0 * %d;", i);
            smelt_kernel *fresh = kernel_of(&(struct variation){.source = source});
            right = right && run_large(fresh);
            smelt_kernel_release(fresh);
            _exit(!right);
        }
        assert_true(run_large(kernel));
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    smelt_kernel_release(kernel);
}

static void *launches(void *pointer) {
    smelt_kernel *kernel = pointer;
    for (int i = 0; i < 20; i++)
        if (!run_large(kernel)) return kernel;
    return NULL;
}

static void many_threads_compile_and_launch_one_kernel(void **state) {
    (void)state;
    pthread_t threads[6];
    smelt_kernel *kernel = kernel_of(&(struct variation){.source = INDEX "out[i] = 1 + inp[i];"});
    for (int i = 0; i < 6; i++) assert_int_equal(pthread_create(&threads[i], NULL, launches, kernel), 0);
    for (int i = 0; i < 6; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    smelt_kernel_release(kernel);
}

static void *compiles(void *pointer) {
    char source[160];
    snprintf(source, sizeof source, INDEX "out[i] = inp[i] + %d - %d;", *(int *)pointer + 1, *(int *)pointer);
    smelt_kernel *kernel = kernel_of(&(struct variation){.source = source});
    bool right = run_large(kernel);
    smelt_kernel_release(kernel);
    return right ? NULL : pointer;
}

static void many_threads_compile_different_kernels_of_one_name(void **state) {
    (void)state;
    pthread_t threads[6];
    int numbers[6];
    for (int i = 0; i < 6; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, compiles, &numbers[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

static int prepare(void **state) {
    static const char *const folders[] = {"one", "two", "changing", "first", "second", "cache"};
    char path[256];
    (void)state;
    if (!mkdtemp(folder)) return 1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "mkdir -m 700 %s/%s", folder, folders[i]);
        if (system(path) != 0) return 1;
    }
    snprintf(path, sizeof path, "%s/one/value.h", folder);
    write_file(path, "#define INCLUDED 1\n");
    snprintf(path, sizeof path, "%s/two/value.h", folder);
    write_file(path, "#define INCLUDED 2\n");
    snprintf(path, sizeof path, "%s/cache", folder);
    usleep(20000);
    return setenv("SMELT_CACHE_DIR", path, 1);
}

static int clean(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_name_many_kernels),
        cmocka_unit_test(one_handle_many_variants),
        cmocka_unit_test(a_changed_include_is_seen),
        cmocka_unit_test(an_include_that_is_hidden_by_a_new_file_is_seen),
        cmocka_unit_test(constants_make_different_functions),
        cmocka_unit_test(a_forked_child_runs_kernels),
        cmocka_unit_test(many_threads_compile_and_launch_one_kernel),
        cmocka_unit_test(many_threads_compile_different_kernels_of_one_name),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
