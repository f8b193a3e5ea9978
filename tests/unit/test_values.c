/* Code for the values that launches give: it runs launches with these values alone, gives the same bits, is
 * compiled for few of them, and never looks at values that the launch itself may change. */
#include "unit.h"

#include "smelt/smelt.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT 3008
#define SOURCES 500

/* Divisions, a loop and a stride by sizes. */
#define BODY                                                   \
    "uint i = thread_position_in_grid.x;\n"                    \
    "float sum = 0.0f;\n"                                      \
    "for (int k = 0; k < sizes[0]; k++)\n"                     \
    "    sum += a[(i / sizes[1] + k * sizes[2]) %% %d] * k;\n" \
    "out[i] = sum + %d;\n"

static atomic_int compiled, failed;
static int threads = COUNT; /* of launches: of whole groups, unless a test changes that */

static void count_lines(smelt_log_level level, const char *line, void *context) {
    (void)level;
    (void)context;
    if (strstr(line, "has code for its arguments' values")) atomic_fetch_add(&compiled, 1);
    if (strstr(line, "has no code for its arguments' values")) atomic_fetch_add(&failed, 1);
}

static int set_up(void **state) {
    (void)state;
    setenv("SMELT_TIERS", "0", 1);
    unsetenv("SMELT_VALUES");
    smelt_set_log(count_lines, NULL);
    atomic_store(&compiled, 0);
    atomic_store(&failed, 0);
    return 0;
}

static smelt_kernel *kernel_of(int added) {
    char body[1000];
    snprintf(body, sizeof body, BODY, SOURCES, added);
    smelt_kernel *kernel;
    OK(smelt_kernel_create(
        &(smelt_kernel_desc){.name = "sized", .source = body, .inputs = {"a", "sizes"}, .outputs = {"out"}},
        &kernel));
    return kernel;
}

/* Each of its own text. */
static smelt_kernel *make_kernel(int *added) {
    static int made;
    *added = (int)(time(NULL) % 100000) * 10 + made++ % 10;
    return kernel_of(*added);
}

static float element(int i) {
    return (float)(i % 17) * 0.5f;
}

static smelt_array *source(void) {
    float values[SOURCES];
    smelt_array *a;
    for (int i = 0; i < SOURCES; i++) values[i] = element(i);
    OK(smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){1, {SOURCES}}, values, &a));
    return a;
}

static smelt_array *sizes_array(int rounds, int divisor, int stride) {
    int values[3] = {rounds, divisor, stride};
    smelt_array *sizes;
    OK(smelt_array_from_values(SMELT_INT32, (smelt_shape){1, {3}}, values, &sizes));
    return sizes;
}

/* Runs it once; false: the results are wrong. */
static bool run(smelt_kernel *kernel, int added, smelt_array *a, int rounds, int divisor, int stride) {
    smelt_array *sizes = sizes_array(rounds, divisor, stride), *out;
    smelt_run_desc desc = {.inputs = {a, sizes},
                           .grid = {threads},
                           .threadgroup = {64},
                           .output_shapes = {{1, {COUNT}}},
                           .output_dtypes = {SMELT_FLOAT32}};
    bool good = smelt_kernel_run(kernel, &desc, &out) == SMELT_OK;
    for (int i = 0; good && i < threads; i += rounds > 100 ? 997 : 1) {
        float sum = 0;
        for (int k = 0; k < rounds; k++)
            sum = fmaf(element((i / divisor + k * stride) % SOURCES), (float)k, sum);
        good = ((const float *)smelt_array_data(out))[i] == sum + (float)added;
    }
    smelt_array_release(sizes);
    smelt_array_release(out);
    return good;
}

static void values_may_change_between_launches(void **state) {
    (void)state;
    setenv("SMELT_VALUES", "always", 1);
    int added;
    smelt_kernel *kernel = make_kernel(&added);
    smelt_array *a = source();
    for (int turn = 0; turn < 3; turn++)
        for (int s = 1; s < 7; s++) assert_true(run(kernel, added, a, 3 + s, s, 2 * s - 1));
    assert_int_equal(atomic_load(&failed), 0);
    assert_int_equal(atomic_load(&compiled), 4); /* of six */
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

/* Long launches, until the background has been asked for code, and what it has compiled is used. */
static void run_for_long(smelt_kernel *kernel, int added, smelt_array *a, int divisor, int launches) {
    for (int i = 0; i < launches; i++) assert_true(run(kernel, added, a, 5000, divisor, 3));
    OK(smelt_kernel_wait(kernel, NULL));
    for (int i = 0; i < 8; i++) assert_true(run(kernel, added, a, 5000, divisor, 3));
}

static void time_spent_asks_for_code(void **state) {
    (void)state;
    int added;
    smelt_kernel *kernel = make_kernel(&added);
    smelt_array *a = source();
    assert_true(run(kernel, added, a, 5, 1, 1));
    OK(smelt_kernel_wait(kernel, NULL));
    assert_int_equal(atomic_load(&compiled), 0);
    for (int i = 0; i < 400 && !atomic_load(&compiled); i++) run_for_long(kernel, added, a, 7, 5);
    assert_int_equal(atomic_load(&compiled), 1);
    assert_true(run(kernel, added, a, 5, 1, 1));
    /* The next process, or kernel, finds it in the cache. */
    smelt_kernel *again = kernel_of(added);
    assert_true(run(again, added, a, 5000, 7, 3));
    OK(smelt_kernel_wait(again, NULL));
    assert_int_equal(atomic_load(&compiled), 2);
    assert_true(run(again, added, a, 5000, 7, 3));
    smelt_array_release(a);
    smelt_kernel_release(kernel);
    smelt_kernel_release(again);
}

static void nothing_is_compiled_where_that_is_turned_off(void **state) {
    (void)state;
    setenv("SMELT_VALUES", "0", 1);
    int added;
    smelt_kernel *kernel = make_kernel(&added);
    smelt_array *a = source();
    run_for_long(kernel, added, a, 7, 40);
    assert_int_equal(atomic_load(&compiled), 0);
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

/* ---- Memory that a launch changes. */

static smelt_function *make_function(const char *source, smelt_library **library) {
    smelt_function *function;
    OK(smelt_library_create(&(smelt_library_desc){.source = source}, library));
    OK(smelt_library_function(*library, &(smelt_function_desc){.name = "f"}, &function));
    return function;
}

/* The kernel overwrites the number of its rounds. */
static void sizes_that_the_kernel_writes_do_not_count(void **state) {
    (void)state;
    setenv("SMELT_VALUES", "always", 1);
    static const char text[] = "#include <metal_stdlib>\n"
                               "kernel void f(device const int *sizes [[buffer(0)]], device int *out "
                               "[[buffer(1)]], device int *count [[buffer(2)]]) {\n"
                               "  int n = 0;\n"
                               "  for (int k = 0; k < sizes[0]; k++) { out[0] = 3; n++; }\n"
                               "  count[0] = n; }\n";
    smelt_library *library;
    smelt_function *function = make_function(text, &library);
    int expected[] = {9, 3};
    for (int shared = 0; shared < 2; shared++) {
        smelt_array *sizes = sizes_array(9, 1, 1), *out = sizes_array(0, 0, 0), *count = sizes_array(0, 0, 0);
        smelt_dispatch_desc desc = {
            .buffers = {{.array = sizes}, {.array = shared ? sizes : out}, {.array = count}},
            .grid = {1},
            .threadgroup = {1}};
        OK(smelt_function_run(function, &desc));
        assert_int_equal(*(const int *)smelt_array_data(count), expected[shared]);
        smelt_array_release(sizes);
        smelt_array_release(out);
        smelt_array_release(count);
    }
    assert_int_equal(atomic_load(&compiled), 1);
    smelt_function_release(function);
    smelt_library_release(library);
}

/* A launch reads what the one before it has written. */
static void written_sizes_are_seen_by_the_next_launch(void **state) {
    (void)state;
    setenv("SMELT_VALUES", "always", 1);
    static const char text[] = "#include <metal_stdlib>\n"
                               "kernel void f(constant int *sizes [[buffer(0)]], device int *next "
                               "[[buffer(1)]]) {\n"
                               "  int n = 0;\n"
                               "  for (int k = 0; k < sizes[0]; k++) n += k / sizes[1];\n"
                               "  next[0] = n; next[1] = sizes[1] + 1; }\n";
    smelt_library *library;
    smelt_function *function = make_function(text, &library);
    smelt_array *both[2] = {sizes_array(9, 1, 1), sizes_array(0, 0, 0)};
    int n = 9, divisor = 1;
    for (int i = 0; i < 8; i++) {
        smelt_dispatch_desc desc = {
            .buffers = {{.array = both[i % 2]}, {.array = both[1 - i % 2]}}, .grid = {1}, .threadgroup = {1}};
        OK(smelt_function_run(function, &desc));
        int sum = 0;
        for (int k = 0; k < n; k++) sum += k / divisor;
        n = sum;
        divisor++;
        const int *result = smelt_array_data(both[1 - i % 2]);
        assert_int_equal(result[0], n);
        assert_int_equal(result[1], divisor);
    }
    smelt_array_release(both[0]);
    smelt_array_release(both[1]);
    smelt_function_release(function);
    smelt_library_release(library);
}

/* The optimiser removes the loop, and the argument need not be bound. */
static void arguments_that_no_code_uses_are_not_read(void **state) {
    (void)state;
    setenv("SMELT_VALUES", "always", 1);
    static const char text[] =
        "#include <metal_stdlib>\n"
        "kernel void f(device int *out [[buffer(0)]], constant int *used [[buffer(1)]], "
        "constant int *unused [[buffer(30)]]) {\n"
        "  int n = 0, gone = 0;\n"
        "  for (int k = 0; k < used[0]; k++) n += 7 / used[1];\n"
        "  for (int k = 0; k < unused[0]; k++) gone += k;\n"
        "  out[0] = n; }\n";
    smelt_library *library;
    smelt_function *function = make_function(text, &library);
    for (int rounds = 1; rounds < 4; rounds++) {
        smelt_array *out = sizes_array(0, 0, 0), *used = sizes_array(rounds, 3, 0);
        smelt_dispatch_desc desc = {
            .buffers = {{.array = out}, {.array = used}}, .grid = {1}, .threadgroup = {1}};
        OK(smelt_function_run(function, &desc));
        assert_int_equal(*(const int *)smelt_array_data(out), 2 * rounds);
        smelt_array_release(out);
        smelt_array_release(used);
    }
    assert_int_equal(atomic_load(&compiled), 3);
    smelt_function_release(function);
    smelt_library_release(library);
}

/* Reading behind its end is an error, with code for given values, too. */
static void arrays_may_be_too_short(void **state) {
    (void)state;
    static const char *const settings[] = {"0", "always"};
    smelt_kernel *kernel;
    OK(smelt_kernel_create(
        &(smelt_kernel_desc){.name = "short",
                             .source = "uint rest = thread_position_in_grid.x, sum = 0;\n"
                                       "for (int k = 0; k < rank; k++) {\n"
                                       "    sum += rest % uint(sizes[k]); rest /= uint(sizes[k]); }\n"
                                       "out[thread_position_in_grid.x] = sum;\n",
                             .inputs = {"sizes", "rank"},
                             .outputs = {"out"}},
        &kernel));
    for (int rank = 3; rank < 6; rank++)
        for (int s = 0; s < 2; s++) {
            setenv("SMELT_VALUES", settings[s], 1);
            smelt_array *sizes = sizes_array(4, 3, 2), *of_rank, *out = NULL;
            OK(smelt_array_from_values(SMELT_INT32, (smelt_shape){0, {0}}, &rank, &of_rank));
            smelt_run_desc desc = {.inputs = {sizes, of_rank},
                                   .grid = {64},
                                   .threadgroup = {32},
                                   .output_shapes = {{1, {64}}},
                                   .output_dtypes = {SMELT_INT32}};
            smelt_status status = smelt_kernel_run(kernel, &desc, &out);
            assert_int_equal(status, rank > 3 ? SMELT_ERROR_FAULT : SMELT_OK);
            smelt_array_release(out);
            smelt_array_release(of_rank);
            smelt_array_release(sizes);
        }
    smelt_kernel_release(kernel);
}

/* ---- Threads and processes. */

struct caller {
    smelt_kernel *kernel;
    smelt_array *a;
    int added, number;
    bool good;
};

static void *call_often(void *argument) {
    struct caller *caller = argument;
    caller->good = true;
    for (int i = 0; i < 60; i++)
        caller->good &= run(caller->kernel, caller->added, caller->a, 20 + (i + caller->number) % 6,
                            1 + (i + caller->number) % 6, 2);
    return NULL;
}

static void threads_may_launch_different_values(void **state) {
    (void)state;
    static const char *const settings[] = {"always", "1"};
    threads = COUNT - 5;
    for (int s = 0; s < 2; s++) {
        setenv("SMELT_VALUES", settings[s], 1);
        int added;
        smelt_kernel *kernel = make_kernel(&added);
        smelt_array *a = source();
        struct caller callers[4];
        pthread_t callers_of[4];
        for (int i = 0; i < 4; i++) {
            callers[i] = (struct caller){kernel, a, added, i, false};
            assert_int_equal(pthread_create(&callers_of[i], NULL, call_often, &callers[i]), 0);
        }
        for (int i = 0; i < 4; i++) pthread_join(callers_of[i], NULL);
        for (int i = 0; i < 4; i++) assert_true(callers[i].good);
        smelt_array_release(a);
        smelt_kernel_release(kernel);
    }
    threads = COUNT;
}

static void a_child_process_goes_on(void **state) {
    (void)state;
    int added, status;
    smelt_kernel *kernel = make_kernel(&added);
    smelt_array *a = source();
    for (int i = 0; i < 100; i++) assert_true(run(kernel, added, a, 5000, 7, 3));
    pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (int i = 0; i < 40; i++) good &= run(kernel, added, a, 5000, 7, 3);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(values_may_change_between_launches, set_up),
        cmocka_unit_test_setup(time_spent_asks_for_code, set_up),
        cmocka_unit_test_setup(nothing_is_compiled_where_that_is_turned_off, set_up),
        cmocka_unit_test_setup(sizes_that_the_kernel_writes_do_not_count, set_up),
        cmocka_unit_test_setup(written_sizes_are_seen_by_the_next_launch, set_up),
        cmocka_unit_test_setup(arguments_that_no_code_uses_are_not_read, set_up),
        cmocka_unit_test_setup(arrays_may_be_too_short, set_up),
        cmocka_unit_test_setup(threads_may_launch_different_values, set_up),
        cmocka_unit_test_setup(a_child_process_goes_on, set_up),
    };
    return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
