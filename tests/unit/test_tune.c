/* Searches for the fastest candidate: what is chosen, stored, skipped and shared. */
#include "outcome.h"

#include "smelt/tune.h"
#include "tune/machine.h"
#include "tune/setting.h"
#include "tune/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[64];

static int fresh_cache(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/smelt-tune-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    return setenv("SMELT_CACHE_DIR", folder, 1);
}

static int remove_cache(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command); /* NOLINT(cert-env33-c): a folder of this test */
}

/* ---- Searches whose candidates sleep. */

struct sleeper {
    const double *milliseconds; /* negative: the candidate fails */
    int wrong;                  /* this one's result is wrong; -1: none */
    int disturbed;              /* the second run of this one takes 60 ms; 0: none */
    int runs[8];
    char notes[8][200];
    smelt_interrupt *interrupt; /* raised by the first run */
};

static smelt_status sleep_once(int index, void *context) {
    struct sleeper *sleeper = context;
    sleeper->runs[index]++;
    if (sleeper->interrupt) smelt_interrupt_raise(sleeper->interrupt);
    double milliseconds = sleeper->milliseconds[index];
    if (milliseconds < 0) return fail(SMELT_ERROR_COMPILE, "line %d: error", index);
    if (index && index == sleeper->disturbed && sleeper->runs[index] == 2) milliseconds = 60;
    struct timespec time = {.tv_nsec = (long)(milliseconds * 1e6)};
    nanosleep(&time, NULL);
    return SMELT_OK;
}

static bool is_right(int index, void *context) {
    return index != ((struct sleeper *)context)->wrong;
}

static void note(const smelt_tune_progress *progress, void *context) {
    struct sleeper *sleeper = context;
    snprintf(sleeper->notes[progress->tried - 1], sizeof *sleeper->notes, "%s",
             progress->note ? progress->note : "");
}

static const char *const words[] = {"WAY=0", "WAY=1", "WAY=2", "WAY=3"};

static smelt_tune_desc desc_of(struct sleeper *sleeper, int count, const char *key) {
    return (smelt_tune_desc){.name = "sleep",
                             .key = key,
                             .candidates = words,
                             .count = count,
                             .run = sleep_once,
                             .check = is_right,
                             .progress = note,
                             .context = sleeper};
}

static void test_the_fastest_is_chosen_and_stored(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){16, 1, 8}, .wrong = -1};
    smelt_tune_desc desc = desc_of(&sleeper, 3, "n=3");
    smelt_tune_result result;
    succeed(smelt_tune(&desc, &result));
    assert_int_equal(result.index, 1);
    assert_false(result.stored);
    assert_true(result.seconds >= 1e-3 && result.seconds < 8e-3);
    int before = sleeper.runs[0] + sleeper.runs[1] + sleeper.runs[2];
    succeed(smelt_tune(&desc, &result));
    assert_true(result.stored && result.index == 1);
    assert_int_equal(sleeper.runs[0] + sleeper.runs[1] + sleeper.runs[2], before);
    desc.again = true;
    succeed(smelt_tune(&desc, &result));
    assert_false(result.stored);
    desc.again = false;
    desc.key = "n=4";
    succeed(smelt_tune(&desc, &result));
    assert_false(result.stored);
}

static void test_a_stored_choice_that_is_no_candidate_is_searched_again(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){1, 1}, .wrong = -1};
    char machine[HASH_HEX_LENGTH + 1];
    smelt_tune_result result;
    smelt_tune_desc desc = desc_of(&sleeper, 2, "other");
    succeed(tune_machine(NULL, machine));
    store_add(machine, "sleep", "other", "WAY=9", 1);
    succeed(smelt_tune(&desc, &result));
    assert_false(result.stored);
}

static void test_each_shipped_default_is_found(void **state) {
    (void)state;
#define ROW(machine, operation, key, ...)                               \
    do {                                                                \
        int64_t expected[SETTING_NUMBERS] = {__VA_ARGS__};              \
        const int64_t *found = tune_default(machine, operation, key);   \
        assert_non_null(found);                                         \
        assert_memory_equal(found, expected, sizeof expected);          \
        assert_null(tune_default("sm_0", operation, key));              \
        assert_null(tune_default(machine, operation, "float32 1x1x1")); \
    } while (0);
#include "tune/defaults.inc"
#undef ROW
}

static void test_what_fails_is_wrong_or_slow_is_skipped(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){-1, 2, 3, 60}, .wrong = 1};
    smelt_tune_desc desc = desc_of(&sleeper, 4, "skip");
    smelt_tune_result result;
    succeed(smelt_tune(&desc, &result));
    assert_int_equal(result.index, 2);
    assert_int_equal(result.tried, 1);
    assert_string_equal(sleeper.notes[0], "line 0: error");
    assert_string_equal(sleeper.notes[1], "wrong result");
    assert_string_equal(sleeper.notes[2], "");
    assert_true(strncmp(sleeper.notes[3], "slow: ", 6) == 0);
    assert_int_equal(sleeper.runs[3], 4); /* one compiles, three are timed */
}

static void test_a_candidate_with_a_single_slow_run_is_kept(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){6, 2}, .wrong = -1, .disturbed = 1};
    smelt_tune_desc desc = desc_of(&sleeper, 2, "disturbed");
    smelt_tune_result result;
    succeed(smelt_tune(&desc, &result));
    assert_int_equal(result.index, 1);
}

static void test_none_that_works_is_the_first_ones_error(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){-1, 1}, .wrong = 1};
    smelt_tune_desc desc = desc_of(&sleeper, 2, "none");
    smelt_tune_result result;
    refused(smelt_tune(&desc, &result), SMELT_ERROR_COMPILE,
            "none of the 2 candidates of 'sleep' works; WAY=0: line 0: error");
}

static void test_the_budget_ends_a_search(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){3, 1}, .wrong = -1};
    smelt_tune_desc desc = desc_of(&sleeper, 2, "budget");
    smelt_tune_result result;
    desc.budget = 1e-3;
    succeed(smelt_tune(&desc, &result));
    assert_int_equal(result.index, 0);
    assert_int_equal(sleeper.runs[1], 0);
    assert_string_equal(sleeper.notes[1], "the time budget is spent");
}

static void test_an_interrupt_stores_nothing(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){1, 1}, .wrong = -1};
    smelt_tune_desc desc = desc_of(&sleeper, 2, "interrupt");
    smelt_tune_result result;
    succeed(smelt_interrupt_create(&sleeper.interrupt));
    desc.interrupt = sleeper.interrupt;
    refused(smelt_tune(&desc, &result), SMELT_ERROR_INTERRUPTED, "tuning 'sleep' was interrupted");
    assert_int_equal(sleeper.runs[0], 1);
    smelt_interrupt_release(sleeper.interrupt);
    sleeper.interrupt = desc.interrupt = NULL;
    succeed(smelt_tune(&desc, &result));
    assert_false(result.stored);
}

static void test_bad_searches_are_refused(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){1}, .wrong = -1};
    smelt_tune_result result;
    smelt_tune_desc desc = desc_of(&sleeper, 0, NULL);
    refused(smelt_tune(&desc, &result), SMELT_ERROR_INVALID_ARGUMENT,
            "tuning 'sleep': there are 0 candidates, expected 1 to 4096");
    desc = desc_of(&sleeper, 1, NULL);
    desc.budget = -1;
    refused(smelt_tune(&desc, &result), SMELT_ERROR_INVALID_ARGUMENT,
            "tuning 'sleep': the budget is -1 seconds, expected 0 or more");
    desc.budget = 0;
    desc.run = NULL;
    refused(smelt_tune(&desc, &result), SMELT_ERROR_INVALID_ARGUMENT, "tuning: desc->run is NULL");
    desc = desc_of(&sleeper, 1, NULL);
    desc.device = "tpu";
    assert_int_equal(smelt_tune(&desc, &result), SMELT_ERROR_NO_DEVICE);
}

/* ---- The store. */

static void count_entries(const smelt_tune_entry *entry, void *context) {
    if (strncmp(entry->name, "shared", 6) == 0) ++*(int *)context;
}

static void add_many(const char *name) {
    for (int i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        store_add("machine", name, key, "A=1", 1e-3);
    }
}

static void test_processes_keep_each_others_results(void **state) {
    (void)state;
    int count = 0, status;
    pid_t child = fork();
    if (child == 0) {
        add_many("shared by the child");
        _exit(0);
    }
    add_many("shared by the parent");
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    succeed(smelt_tune_list(count_entries, &count));
    assert_int_equal(count, 40);
}

static void test_clearing_the_cache_keeps_results_and_forgetting_does_not(void **state) {
    (void)state;
    int count = 0;
    store_add("machine", "shared", "1", "A=1", 1e-3);
    succeed(smelt_cache_clear());
    succeed(smelt_tune_list(count_entries, &count));
    assert_true(count >= 1);
    succeed(smelt_tune_forget());
    count = 0;
    succeed(smelt_tune_list(count_entries, &count));
    assert_int_equal(count, 0);
}

static int warnings;

static void count_warning(smelt_log_level level, const char *line, void *context) {
    (void)context;
    if (level == SMELT_LOG_WARNING && strstr(line, "tuning.sqlite")) warnings++;
}

static void test_a_damaged_file_costs_only_the_results(void **state) {
    (void)state;
    struct sleeper sleeper = {.milliseconds = (const double[]){2, 1}, .wrong = -1};
    smelt_tune_desc desc = desc_of(&sleeper, 2, "damaged");
    smelt_tune_result result;
    char path[128];
    snprintf(path, sizeof path, "%s/tuning.sqlite", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 200; i++) fputs("this is not a database\n", file);
    fclose(file);
    smelt_set_log(count_warning, NULL);
    succeed(smelt_tune(&desc, &result));
    smelt_set_log(NULL, NULL);
    assert_int_equal(result.index, 1);
    assert_int_equal(warnings, 1);
    succeed(smelt_tune_forget());
    succeed(smelt_tune(&desc, &result));
    succeed(smelt_tune(&desc, &result));
    assert_true(result.stored);
}

/* ---- Kernels. */

static smelt_array *ones(int64_t count) {
    smelt_array *array;
    succeed(smelt_array_create(SMELT_FLOAT32, (smelt_shape){.ndim = 1, .size = {count}}, &array));
    succeed(smelt_array_fill(array, 1));
    return array;
}

#define COUNT 4096

static void test_a_kernel_with_template_parameters(void **state) {
    (void)state;
    smelt_kernel *kernel;
    succeed(smelt_kernel_create(&(smelt_kernel_desc){.name = "steps",
                                                     .source =
                                                         "uint i = thread_position_in_grid.x; float sum = 0;"
                                                         "for (uint j = 0; j < STEPS; j++) sum += inp[i];"
                                                         "out[i] = STEPS == 3 ? 7 : sum / STEPS;",
                                                     .inputs = {"inp"},
                                                     .outputs = {"out"}},
                                &kernel));
    smelt_array *x = ones(COUNT);
    smelt_run_desc run = {.inputs = {x},
                          .grid = {COUNT},
                          .threadgroup = {64},
                          .output_shapes = {{.ndim = 1, .size = {COUNT}}},
                          .output_dtypes = {SMELT_FLOAT32}};
    smelt_tune_space space = {.parameters = {{"STEPS", (const int64_t[]){262144, 2, 3}, 3},
                                             {"threads", (const int64_t[]){64, 2048}, 2}},
                              .expected = {x}};
    int64_t values[2];
    smelt_tune_result result;
    succeed(smelt_tune_kernel(kernel, &run, &space, values, &result));
    assert_int_equal(values[0], 2);  /* 3 is wrong, 262144 slow, whatever else the machine does */
    assert_int_equal(values[1], 64); /* 2048 threads are too many */
    assert_false(result.stored);
    succeed(smelt_tune_kernel(kernel, &run, &space, values, &result));
    assert_true(result.stored && values[0] == 2);
    space.parameters[0].values = NULL;
    refused(smelt_tune_kernel(kernel, &run, &space, values, &result), SMELT_ERROR_INVALID_ARGUMENT,
            "tuning 'steps': parameter 'STEPS' has no values");
    refused(smelt_tune_kernel(kernel, &run, &(smelt_tune_space){0}, values, &result),
            SMELT_ERROR_INVALID_ARGUMENT, "tuning 'steps': the space has no parameters");
    smelt_array_release(x);
    smelt_kernel_release(kernel);
}

static void adapt(const int64_t *values, void *desc, void *context) {
    (void)context;
    ((smelt_dispatch_desc *)desc)->groups[0] = COUNT / values[0];
}

static void test_a_function_with_constants(void **state) {
    (void)state;
    smelt_library *library;
    succeed(smelt_library_create(
        &(smelt_library_desc){.source = "#include <metal_stdlib>\nusing namespace metal;\n"
                                        "constant int TILE [[function_constant(0)]];\n"
                                        "kernel void add(device float *x [[buffer(0)]], "
                                        "uint group [[threadgroup_position_in_grid]]) {\n"
                                        "  if (TILE == 8) return;\n"
                                        "  for (int i = 0; i < TILE; i++) x[group * TILE + i] += 1; }\n"},
        &library));
    smelt_array *x = ones(COUNT), *expected = ones(COUNT);
    succeed(smelt_array_fill(expected, 2));
    smelt_dispatch_desc dispatch = {.buffers = {{.array = x}}, .threadgroup = {1}};
    smelt_tune_space space = {
        .parameters = {{"TILE", (const int64_t[]){8, 1, 256}, 3}}, .expected = {expected}, .adapt = adapt};
    int64_t value;
    smelt_tune_result result;
    succeed(smelt_tune_function(library, &(smelt_function_desc){.name = "add"}, &dispatch, &space, &value,
                                &result));
    assert_int_not_equal(value, 8); /* which writes nothing; the others may be equally fast */
    smelt_array_release(x);
    smelt_array_release(expected);
    smelt_library_release(library);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fastest_is_chosen_and_stored),
        cmocka_unit_test(test_a_stored_choice_that_is_no_candidate_is_searched_again),
        cmocka_unit_test(test_each_shipped_default_is_found),
        cmocka_unit_test(test_what_fails_is_wrong_or_slow_is_skipped),
        cmocka_unit_test(test_a_candidate_with_a_single_slow_run_is_kept),
        cmocka_unit_test(test_none_that_works_is_the_first_ones_error),
        cmocka_unit_test(test_the_budget_ends_a_search),
        cmocka_unit_test(test_an_interrupt_stores_nothing),
        cmocka_unit_test(test_bad_searches_are_refused),
        cmocka_unit_test(test_processes_keep_each_others_results),
        cmocka_unit_test(test_clearing_the_cache_keeps_results_and_forgetting_does_not),
        cmocka_unit_test(test_a_damaged_file_costs_only_the_results),
        cmocka_unit_test(test_a_kernel_with_template_parameters),
        cmocka_unit_test(test_a_function_with_constants),
    };
    return cmocka_run_group_tests(tests, fresh_cache, remove_cache);
}
