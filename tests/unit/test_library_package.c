/* Packages through the public interface: built, loaded from a file and from memory, run without a compiler,
 * with the same results as the text. */
#include "outcome.h"

#include "smelt/smelt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    /* Each thread's positions, by its index in a grid of any size. */
    "kernel void places(device uint *out [[buffer(0)]], uint3 at [[thread_position_in_grid]],\n"
    "                   uint3 grid [[threads_per_grid]], uint3 here [[thread_position_in_threadgroup]],\n"
    "                   uint3 group [[threadgroup_position_in_grid]], uint3 size "
    "[[threads_per_threadgroup]],\n"
    "                   uint lane [[thread_index_in_simdgroup]]) {\n"
    "    uint sum = simd_sum(1u);\n"
    "    out[(at.z * grid.y + at.y) * grid.x + at.x] = ((((here.z * 32 + here.y) * 1024 + here.x) * 8 + "
    "group.x +\n"
    "        group.y + group.z) * 64 + lane) * 64 + sum + size.x * size.y * size.z;\n"
    "}\n"
    "kernel void turn(device float *x [[buffer(0)]], device float *sums [[buffer(1)]],\n"
    "                 uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],\n"
    "                 uint n [[threads_per_threadgroup]]) {\n"
    "    threadgroup float part[1024];\n"
    "    part[t] = x[i];\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    sums[i] = part[n - 1 - t];\n"
    "}\n"
    "kernel void from_the_end(device uint *x [[buffer(0)]], constant uint &n [[buffer(1)]],\n"
    "                         uint i [[thread_position_in_grid]]) { x[n - 1 - i] = i; }\n"
    "kernel void endless(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
    "    x[i] = 0; while (true) {}\n"
    "}\n"
    "float twice(float x) { return 2 * x; }\n"
    "float thrice(float x) { return 3 * x; }\n"
    "kernel void called(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
    "    float (*f)(float) = x[i] > 2 ? twice : thrice;\n"
    "    x[i] = f(x[i]);\n"
    "}\n";

static char folder[] = "/tmp/smelt-test-package-XXXXXX", path[64];

static void expect_error(smelt_status found, smelt_status wanted, const char *words) {
    if (found != wanted || !strstr(smelt_error(), words))
        FAIL_TEST("%s: \"%s\", expected %s: \"%s\"", smelt_status_name(found), smelt_error(),
                  smelt_status_name(wanted), words);
}

static smelt_library *text_library(void) {
    smelt_library *library = NULL;
    succeed(smelt_library_create(&(smelt_library_desc){.source = source, .path = "kernels.metal"}, &library));
    return library;
}

static smelt_library *package_library(void) {
    smelt_library *library = NULL;
    succeed(smelt_library_create(&(smelt_library_desc){.path = path}, &library));
    return library;
}

static smelt_function *function_of(smelt_library *library, const char *name) {
    smelt_function *function = NULL;
    succeed(smelt_library_function(library, &(smelt_function_desc){.name = name}, &function));
    return function;
}

struct reports {
    char names[512];
    int count;
};

static void note_report(const smelt_build_report *report, void *context) {
    struct reports *reports = context;
    size_t length = strlen(reports->names);
    assert_int_equal(report->status, SMELT_OK);
    assert_int_equal(report->number, ++reports->count);
    assert_int_equal(report->total, 5);
    assert_string_equal(report->targets, "x86-64,cpu");
    assert_string_equal(report->message, "");
    snprintf(reports->names + length, sizeof reports->names - length, "%s ", report->entry);
}

/* From here on only packaged code runs, unless a test says otherwise. */
static int build(void **state) {
    (void)state;
    struct reports reports = {.count = 0};
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/kernels.smeltlib", folder);
    smelt_library *library = text_library();
    succeed(smelt_library_build(library, &(smelt_build_desc){.path = path,
                                                             .targets = {"x86-64", "cpu"},
                                                             .threadgroups = {{64, 2}},
                                                             .report = note_report,
                                                             .context = &reports}));
    assert_string_equal(reports.names, "places turn from_the_end endless called ");
    smelt_library_release(library);
    setenv("SMELT_CACHE_DIR", folder, 1);
    setenv("SMELT_CLANG", "/no/such/clang", 1);
    setenv("SMELT_COMPILE", "0", 1);
    return 0;
}

static int clean(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static smelt_array *zeros(smelt_dtype dtype, int64_t count) {
    smelt_array *array;
    succeed(smelt_array_create(dtype, (smelt_shape){1, {count}}, &array));
    succeed(smelt_array_fill(array, 0));
    return array;
}

static uint32_t place_of(const int64_t at[3], const int64_t grid[3], const int64_t group[3]) {
    int64_t here[3], size[3], groups = 0;
    for (int d = 0; d < 3; d++) {
        here[d] = at[d] % group[d];
        int64_t first = at[d] - here[d], left = grid[d] - first;
        size[d] = left < group[d] ? left : group[d];
        groups += at[d] / group[d];
    }
    int64_t threads = size[0] * size[1] * size[2], index = (here[2] * size[1] + here[1]) * size[0] + here[0];
    int64_t lane = index % 32, active = threads - index / 32 * 32 < 32 ? threads - index / 32 * 32 : 32;
    return (uint32_t)(((((here[2] * 32 + here[1]) * 1024 + here[0]) * 8 + groups) * 64 + lane) * 64 + active +
                      threads);
}

/* Groups of every kind for which code is generated, whole and cut off. */
static void every_launch_finds_code(void **state) {
    (void)state;
    static const int64_t launches[][2][3] = {
        {{512, 1, 1}, {256, 1, 1}}, {{500, 1, 1}, {256, 1, 1}},   {{96, 1, 1}, {32, 1, 1}},
        {{7, 1, 1}, {5, 1, 1}},     {{64, 6, 1}, {32, 2, 1}},     {{70, 5, 1}, {32, 2, 1}},
        {{33, 9, 1}, {16, 4, 1}},   {{20, 20, 2}, {8, 8, 2}},     {{9, 7, 5}, {3, 3, 2}},
        {{128, 4, 1}, {64, 2, 1}},  {{10, 12, 1}, {20, 16, 1}},   {{1, 64, 3}, {1, 64, 1}},
        {{40, 3, 3}, {40, 3, 2}},   {{1024, 2, 1}, {1024, 1, 1}}, {{3000, 1, 1}, {1000, 1, 1}},
    };
    smelt_library *library = package_library();
    smelt_function *function = function_of(library, "places");
    for (size_t l = 0; l < sizeof launches / sizeof *launches; l++)
        for (int timed = 0; timed < 2; timed++) {
            const int64_t *grid = launches[l][0], *group = launches[l][1];
            int64_t count = grid[0] * grid[1] * grid[2], at[3];
            smelt_array *out = zeros(SMELT_UINT32, count);
            smelt_dispatch_desc desc = {.buffers = {{.array = out}}, .timeout = timed ? 60 : 0};
            memcpy(desc.grid, grid, sizeof desc.grid);
            memcpy(desc.threadgroup, group, sizeof desc.threadgroup);
            succeed(smelt_function_run(function, &desc));
            const uint32_t *found = smelt_array_data(out);
            for (at[2] = 0; at[2] < grid[2]; at[2]++)
                for (at[1] = 0; at[1] < grid[1]; at[1]++)
                    for (at[0] = 0; at[0] < grid[0]; at[0]++)
                        assert_int_equal(found[(at[2] * grid[1] + at[1]) * grid[0] + at[0]],
                                         place_of(at, grid, group));
            smelt_array_release(out);
        }
    smelt_function_release(function);
    smelt_library_release(library);
}

static void barriers_in_groups_of_any_size(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 7, 32, 33, 64, 128, 256, 1000, 1024};
    smelt_library *library = package_library();
    smelt_function *function = function_of(library, "turn");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t size = sizes[s], count = 2 * size + size / 3;
        smelt_array *x, *sums = zeros(SMELT_FLOAT32, count);
        succeed(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){1, {count}}, &x));
        succeed(
            smelt_function_run(function, &(smelt_dispatch_desc){.buffers = {{.array = x}, {.array = sums}},
                                                                .grid = {count},
                                                                .threadgroup = {size}}));
        for (int64_t i = 0; i < count; i++) {
            int64_t first = i / size * size, length = count - first < size ? count - first : size;
            assert_true(((float *)smelt_array_data(sums))[i] == (float)(first + length - 1 - i % size));
        }
        smelt_array_release(x);
        smelt_array_release(sums);
    }
    smelt_function_release(function);
    smelt_library_release(library);
}

/* More than 2^31 bytes, of which the last pages are used. */
static void buffers_above_two_gigabytes(void **state) {
    (void)state;
    const uint32_t count = UINT32_C(0x24000001), threads = 1000;
    size_t bytes = (size_t)count * sizeof(uint32_t);
    uint32_t *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(memory != MAP_FAILED);
    smelt_array *x;
    succeed(smelt_array_from_memory(SMELT_UINT32, (smelt_shape){1, {count}}, NULL, memory, NULL, NULL, &x));
    smelt_library *library = package_library();
    smelt_function *function = function_of(library, "from_the_end");
    static const int64_t groups[] = {256, 32, 7};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        memset(memory + count - threads, 0xff, threads * sizeof *memory);
        succeed(smelt_function_run(
            function,
            &(smelt_dispatch_desc){.buffers = {{.array = x}, {.bytes = &count, .size = sizeof count}},
                                   .grid = {threads},
                                   .threadgroup = {groups[g]}}));
        for (uint32_t i = 0; i < threads; i++) assert_int_equal(memory[count - 1 - i], i);
    }
    smelt_function_release(function);
    smelt_library_release(library);
    smelt_array_release(x);
    munmap(memory, bytes);
}

static void time_outs_hold(void **state) {
    (void)state;
    smelt_library *library = package_library();
    smelt_function *function = function_of(library, "endless");
    smelt_array *x = zeros(SMELT_FLOAT32, 512);
    static const int64_t groups[] = {256, 96, 7};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        expect_error(smelt_function_run(function, &(smelt_dispatch_desc){.buffers = {{.array = x}},
                                                                         .grid = {512},
                                                                         .threadgroup = {groups[g]},
                                                                         .timeout = 0.05}),
                     SMELT_ERROR_TIMEOUT, "ran longer than the time-out");
    smelt_array_release(x);
    smelt_function_release(function);
    smelt_library_release(library);
}

static char logged[1024];
static void keep_log(smelt_log_level level, const char *line, void *context) {
    (void)level;
    (void)context;
    snprintf(logged, sizeof logged, "%s", line);
}

static void what_the_simd_engine_refuses_runs_on_the_scalar_engine(void **state) {
    (void)state;
    smelt_library *library = package_library();
    static const char *const devices[] = {"cpu", "cpu-scalar"};
    smelt_set_log(keep_log, NULL);
    for (int d = 0; d < 2; d++) {
        smelt_function *function = function_of(library, "called");
        smelt_array *x;
        logged[0] = 0;
        succeed(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){1, {100}}, &x));
        succeed(smelt_function_run(function, &(smelt_dispatch_desc){.buffers = {{.array = x}},
                                                                    .grid = {100},
                                                                    .threadgroup = {64},
                                                                    .device = devices[d]}));
        for (int i = 0; i < 100; i++)
            assert_true(((float *)smelt_array_data(x))[i] == (float)(i > 2 ? 2 * i : 3 * i));
        assert_non_null(strstr(logged, "kernel 'called' runs on the scalar engine: "));
        smelt_array_release(x);
        smelt_function_release(function);
    }
    smelt_set_log(NULL, NULL);
    smelt_library_release(library);
}

static void bytes_are_copied(void **state) {
    (void)state;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char bytes[4 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 1000 && size < sizeof bytes);
    smelt_library *library = NULL;
    succeed(smelt_library_create(&(smelt_library_desc){.package = bytes, .package_size = size}, &library));
    memset(bytes, 0, size);
    assert_int_equal(smelt_library_function_count(library), 5);
    assert_string_equal(smelt_library_function_name(library, 3), "endless");
    assert_null(smelt_library_function_name(library, 5));
    smelt_function *function = function_of(library, "from_the_end");
    uint32_t n = 100;
    smelt_array *x = zeros(SMELT_UINT32, n);
    succeed(smelt_function_run(
        function, &(smelt_dispatch_desc){.buffers = {{.array = x}, {.bytes = &n, .size = sizeof n}},
                                         .grid = {n},
                                         .threadgroup = {32}}));
    assert_int_equal(((uint32_t *)smelt_array_data(x))[99], 0);
    smelt_array_release(x);
    smelt_function_release(function);
    smelt_library_release(library);
}

static void wrong_calls(void **state) {
    (void)state;
    smelt_library *library = NULL, *package = package_library(), *text = text_library();
    expect_error(smelt_library_create(&(smelt_library_desc){.package = "no", .package_size = 2}, &library),
                 SMELT_ERROR_FORMAT, "'package' is not a smelt package");
    FILE *file = fopen("named.smeltlib", "w");
    assert_non_null(file);
    fputs("kernel void f(device float *a) {}\n", file);
    fclose(file);
    expect_error(smelt_library_create(&(smelt_library_desc){.path = "named.smeltlib"}, &library),
                 SMELT_ERROR_FORMAT, "'named.smeltlib' is not a smelt package");
    remove("named.smeltlib");
    expect_error(smelt_library_create(&(smelt_library_desc){.package = "", .source = ""}, &library),
                 SMELT_ERROR_INVALID_ARGUMENT, "source and package are both given");
    assert_null(library);
    smelt_build_desc desc = {.path = "/tmp/never.smeltlib"};
    expect_error(smelt_library_build(NULL, &desc), SMELT_ERROR_INVALID_ARGUMENT, "library is NULL");
    expect_error(smelt_library_build(text, NULL), SMELT_ERROR_INVALID_ARGUMENT, "desc is NULL");
    expect_error(smelt_library_build(package, &desc), SMELT_ERROR_INVALID_ARGUMENT, "is already a package");
    expect_error(smelt_library_build(text, &(smelt_build_desc){0}), SMELT_ERROR_INVALID_ARGUMENT,
                 "path is NULL");
    desc.targets[0] = "sm_75";
    expect_error(smelt_library_build(text, &desc), SMELT_ERROR_INVALID_ARGUMENT, "target 'sm_75'");
    desc.targets[0] = NULL;
    static const char *const unknown[] = {"turn", "tern", NULL}, *const none[] = {NULL};
    desc.entries = unknown;
    expect_error(smelt_library_build(text, &desc), SMELT_ERROR_INVALID_ARGUMENT,
                 "has no kernel function 'tern'; expected one of: places, turn");
    desc.entries = none;
    expect_error(smelt_library_build(text, &desc), SMELT_ERROR_INVALID_ARGUMENT,
                 "the list of entries is empty");
    desc.entries = NULL;
    desc.threadgroups[0][0] = 1025;
    expect_error(smelt_library_build(text, &desc), SMELT_ERROR_INVALID_ARGUMENT,
                 "threadgroup 1025 x 0 x 0 is invalid");
    assert_int_equal(access(desc.path, F_OK), -1);
    char *shown;
    smelt_function *function = function_of(package, "turn");
    expect_error(smelt_function_show(function, NULL, SMELT_STAGE_REWRITTEN, &shown),
                 SMELT_ERROR_INVALID_ARGUMENT, "a package holds no source text");
    smelt_array *x = zeros(SMELT_FLOAT32, 4);
    expect_error(
        smelt_function_run(
            function, &(smelt_dispatch_desc){.buffers = {{.array = x}}, .grid = {4}, .threadgroup = {4}}),
        SMELT_ERROR_INVALID_ARGUMENT, "buffer 1 ('sums') is missing");
    smelt_array_release(x);
    smelt_function_release(function);
    smelt_library_release(package);
    smelt_library_release(text);
}

#define THREADS 6

static void *run_often(void *argument) {
    smelt_function *function = argument;
    uint32_t n = 777;
    smelt_array *x = zeros(SMELT_UINT32, n);
    static const int64_t groups[] = {256, 32, 96, 7, 1};
    for (int round = 0; round < 20; round++) {
        succeed(smelt_array_fill(x, 5));
        succeed(smelt_function_run(
            function, &(smelt_dispatch_desc){.buffers = {{.array = x}, {.bytes = &n, .size = sizeof n}},
                                             .grid = {n},
                                             .threadgroup = {groups[round % 5]}}));
        for (uint32_t i = 0; i < n; i++) assert_int_equal(((uint32_t *)smelt_array_data(x))[n - 1 - i], i);
    }
    smelt_array_release(x);
    return NULL;
}

static void many_threads_load_at_once(void **state) {
    (void)state;
    smelt_library *library = package_library();
    smelt_function *function = function_of(library, "from_the_end");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, function), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    smelt_function_release(function);
    smelt_library_release(library);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_launch_finds_code),
        cmocka_unit_test(barriers_in_groups_of_any_size),
        cmocka_unit_test(buffers_above_two_gigabytes),
        cmocka_unit_test(time_outs_hold),
        cmocka_unit_test(what_the_simd_engine_refuses_runs_on_the_scalar_engine),
        cmocka_unit_test(bytes_are_copied),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(many_threads_load_at_once),
    };
    return cmocka_run_group_tests(tests, build, clean);
}
