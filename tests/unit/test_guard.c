/* Guarded launches: kernels that hang, divide by zero, write NaN, report failure, or are refused; retries and
 * fallbacks. */
#include "graph.h"

#include "smelt/guard.h"

#include <stdio.h>

static char logged[1024];
static void keep_log(smelt_log_level level, const char *line, void *context) {
    (void)level, (void)context;
    snprintf(logged, sizeof logged, "%s", line);
}

static smelt_kernel *new_kernel(const char *name, const char *source) {
    smelt_kernel *kernel;
    OK(smelt_kernel_create(&(smelt_kernel_desc){.name = name,
                                                .source = source,
                                                .header = smelt_flags_header(),
                                                .inputs = {"x"},
                                                .outputs = {"out", "dbg"}},
                           &kernel));
    return kernel;
}

/* Four elements, one thread; flags beside them. */
static smelt_run_desc run_of(smelt_array *x) {
    return (smelt_run_desc){.inputs = {x},
                            .grid = {1},
                            .threadgroup = {1},
                            .output_shapes = {{1, {4}}, {1, {16}}},
                            .output_dtypes = {SMELT_FLOAT32, SMELT_FLOAT32},
                            .initialise = true,
                            .device = test_device()};
}

static smelt_array *new_vector(float a, float b, float c, float d) {
    smelt_array *x;
    OK(smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){1, {4}}, (float[]){a, b, c, d}, &x));
    return x;
}

/* The results of a fallback: 42s. */
static smelt_status fall_back(void *context, smelt_array **outputs) {
    (void)context;
    for (int i = 0; i < 2; i++) {
        OK(smelt_array_create(SMELT_FLOAT32, (smelt_shape){1, {i ? 16 : 4}}, &outputs[i]));
        OK(smelt_array_fill(outputs[i], 42));
    }
    return SMELT_OK;
}

static const char *good = "for (uint i = 0; i < 4; i++) out[i] = 2 * x[i]; dbg_start(dbg); dbg_succeed(dbg);";
static const char *reciprocals =
    "for (uint i = 0; i < 4; i++) out[i] = 1 / x[i]; dbg_start(dbg); dbg_succeed(dbg);";
static const char *endless =
    "float s = 0; while (x[0] > 0) s += 1; out[0] = s; dbg_start(dbg); dbg_succeed(dbg);";
static const char *roots =
    "dbg_dims(dbg, 2, 2); dbg_start(dbg); for (uint i = 0; i < 4; i++) { out[i] = sqrt(x[i]); "
    "dbg_iterations(dbg, i + 1); if (!dbg_finite(dbg, out[i], 9)) return; } dbg_succeed(dbg);";

static void expect_fallback(smelt_array **outputs, const smelt_guard_report *report, int attempts,
                            smelt_status status, const char *words) {
    double *values = numbers_of(outputs[0]);
    assert_true(values[0] == 42 && values[3] == 42);
    free(values);
    smelt_array_release(outputs[0]), smelt_array_release(outputs[1]);
    assert_true(report->fell_back);
    assert_int_equal(report->attempts, attempts);
    assert_int_equal(report->status, status);
    if (!strstr(report->message, words)) FAIL_TEST("'%s' lacks '%s'", report->message, words);
}

static void a_healthy_run_is_one_attempt(void **state) {
    (void)state;
    smelt_kernel *kernel = new_kernel("good", good);
    smelt_array *x = new_vector(1, 2, 3, 4), *outputs[2];
    smelt_guard_report report;
    smelt_run_desc run = run_of(x);
    OK(smelt_kernel_run_guarded(
        kernel, &run,
        &(smelt_guard){.timeout = 60, .flags = 2, .finite = true, .fallback = fall_back, .report = &report},
        outputs));
    double *values = numbers_of(outputs[0]);
    assert_true(values[0] == 2 && values[3] == 8);
    free(values);
    assert_true(!report.fell_back && report.attempts == 1 && report.status == SMELT_OK && !report.message[0]);
    assert_string_equal(report.device, strcmp(test_device(), "cuda") == 0 ? "cuda" : test_device());
    smelt_array_release(outputs[0]), smelt_array_release(outputs[1]), smelt_array_release(x);
    smelt_kernel_release(kernel);
}

static void a_kernel_that_hangs_is_stopped(void **state) {
    (void)state;
    smelt_kernel *kernel = new_kernel("endless", endless);
    smelt_array *x = new_vector(1, 0, 0, 0), *outputs[2] = {0};
    smelt_guard_report report;
    smelt_run_desc run = run_of(x);
    smelt_guard guard = {
        .name = "endless", .timeout = 0.3, .flags = 2, .devices = {"cpu-scalar"}, .report = &report};
    assert_int_equal(smelt_kernel_run_guarded(kernel, &run, &guard, outputs), SMELT_ERROR_TIMEOUT);
    assert_non_null(strstr(smelt_error(), "ran longer than the time-out of 0.3 seconds"));
    assert_null(outputs[0]);
    assert_int_equal(report.attempts, 2);
    assert_string_equal(report.device, "cpu-scalar");
    guard.fallback = fall_back;
    OK(smelt_kernel_run_guarded(kernel, &run, &guard, outputs));
    expect_fallback(outputs, &report, 2, SMELT_ERROR_TIMEOUT, "time-out of 0.3 seconds");
    smelt_array_release(x);
    smelt_kernel_release(kernel);
}

static void infinities_and_nan_are_failures_if_asked(void **state) {
    (void)state;
    smelt_kernel *kernel = new_kernel("reciprocals", reciprocals);
    smelt_array *outputs[2];
    smelt_guard_report report;
    for (int nan = 0; nan < 2; nan++) {
        smelt_array *x = new_vector(1, nan ? NAN : 0, 3, 4);
        smelt_run_desc run = run_of(x);
        smelt_guard guard = {.name = "reciprocals", .flags = 2, .fallback = fall_back, .report = &report};
        OK(smelt_kernel_run_guarded(kernel, &run, &guard, outputs));
        assert_false(report.fell_back);
        smelt_array_release(outputs[0]), smelt_array_release(outputs[1]);
        guard.finite = true;
        OK(smelt_kernel_run_guarded(kernel, &run, &guard, outputs));
        expect_fallback(outputs, &report, 1, SMELT_ERROR_HEALTH,
                        nan ? "kernel 'reciprocals': output 0 holds 1 values of 4 that are not finite, the "
                              "first, nan, as element 1"
                            : "the first, inf, as element 1");
        guard.fallback = NULL;
        assert_int_equal(smelt_kernel_run_guarded(kernel, &run, &guard, outputs), SMELT_ERROR_HEALTH);
        /* Without a report, the log tells. */
        guard.fallback = fall_back;
        guard.report = NULL;
        smelt_set_log(keep_log, NULL);
        OK(smelt_kernel_run_guarded(kernel, &run, &guard, outputs));
        smelt_set_log(NULL, NULL);
        assert_non_null(strstr(logged, "as element 1; the fallback computes the result"));
        smelt_array_release(outputs[0]), smelt_array_release(outputs[1]);
        smelt_array_release(x);
    }
    smelt_kernel_release(kernel);
}

static void flags_are_read(void **state) {
    (void)state;
    static const smelt_code codes[] = {{9, "a root of a negative number"}, {0, NULL}};
    smelt_kernel *kernel = new_kernel("roots", roots);
    smelt_array *x = new_vector(1, 4, -4, 9), *outputs[2];
    smelt_guard_report report;
    smelt_run_desc run = run_of(x);
    smelt_guard guard = {
        .name = "roots", .flags = 2, .codes = codes, .fallback = fall_back, .report = &report};
    OK(smelt_kernel_run_guarded(kernel, &run, &guard, outputs));
    expect_fallback(
        outputs, &report, 1, SMELT_ERROR_HEALTH,
        "kernel 'roots' on a 2 × 2 matrix: error 9, a root of a negative number, with the value ");
    smelt_array_release(x);
    smelt_kernel_release(kernel);
    /* Sets of flags. */
    float sets[3][16] = {{[0] = 1, [15] = 1}, {[0] = 1}, {[13] = 1, [14] = 70}};
    smelt_array *flags;
    int64_t failed;
    OK(smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){2, {3, 16}}, sets, &flags));
    assert_int_equal(smelt_flags_check(flags, "k", NULL, &failed), SMELT_ERROR_HEALTH);
    assert_string_equal(
        smelt_error(),
        "kernel 'k': the kernel started and did not finish: its success flag is 0 (set 1; 2 of 3 failed)");
    assert_int_equal(failed, 2);
    ((float *)flags->data)[16 + 15] = 1;
    assert_int_equal(smelt_flags_check(flags, "k", NULL, NULL), SMELT_ERROR_HEALTH);
    assert_non_null(strstr(
        smelt_error(), "error 1, the matrix is too large, with the value 70 (found before the work began)"));
    OK(smelt_array_fill(flags, -7));
    assert_int_equal(smelt_flags_check(flags, "k", NULL, NULL), SMELT_ERROR_HEALTH);
    assert_non_null(strstr(smelt_error(), "never written"));
    smelt_array_release(flags);
    OK(smelt_array_create(SMELT_FLOAT32, (smelt_shape){1, {15}}, &flags));
    assert_int_equal(smelt_flags_check(flags, "k", NULL, NULL), SMELT_ERROR_INVALID_ARGUMENT);
    smelt_array_release(flags);
}

static smelt_status refuse(void *context) {
    (*(int *)context)++;
    return smelt_guard_refuse("the matrix has 5 rows, expected at most 4");
}

static void preconditions_refuse_before_the_run(void **state) {
    (void)state;
    smelt_kernel *kernel = new_kernel("good", good);
    smelt_array *x = new_vector(1, 2, 3, 4), *outputs[2];
    smelt_guard_report report;
    int calls = 0;
    smelt_run_desc run = run_of(x);
    smelt_guard guard = {
        .precondition = refuse, .context = &calls, .devices = {"cpu-scalar"}, .report = &report};
    assert_int_equal(smelt_kernel_run_guarded(kernel, &run, &guard, outputs), SMELT_ERROR_HEALTH);
    assert_string_equal(smelt_error(), "the matrix has 5 rows, expected at most 4");
    guard.fallback = fall_back;
    OK(smelt_kernel_run_guarded(kernel, &run, &guard, outputs));
    expect_fallback(outputs, &report, 0, SMELT_ERROR_HEALTH, "expected at most 4");
    assert_int_equal(calls, 2);
    /* Mistakes of the caller pass through. */
    run.grid[0] = 0;
    guard.precondition = NULL;
    assert_int_equal(smelt_kernel_run_guarded(kernel, &run, &guard, outputs), SMELT_ERROR_INVALID_ARGUMENT);
    smelt_array_release(x);
    smelt_kernel_release(kernel);
}

static smelt_status only_elsewhere(void *context, const char *device, double timeout, smelt_array **outputs) {
    (void)context;
    assert_true(timeout == 5);
    if (!device || strcmp(device, "cpu-scalar") != 0) return smelt_guard_refuse("not here");
    return fall_back(NULL, outputs);
}

static void another_device_may_do_it(void **state) {
    (void)state;
    smelt_array *outputs[2];
    smelt_guard_report report;
    smelt_guard guard = {.timeout = 5, .devices = {"cpu", "cpu-scalar"}, .report = &report};
    OK(smelt_guard_run(&guard, NULL, only_elsewhere, NULL, 2, outputs));
    assert_int_equal(report.attempts, 3);
    assert_string_equal(report.device, "cpu-scalar");
    assert_string_equal(report.message, "not here");
    assert_false(report.fell_back);
    smelt_array_release(outputs[0]), smelt_array_release(outputs[1]);
}

static smelt_status fill_bound(void *context, smelt_array **outputs) {
    (void)outputs;
    return smelt_array_fill(context, 7);
}

static void functions_are_guarded(void **state) {
    (void)state;
    smelt_library *library;
    smelt_function *function;
    smelt_array *x = new_vector(1, 0, 1, 1), *out = new_vector(5, 5, 5, 5);
    smelt_guard_report report;
    OK(smelt_library_create(
        &(smelt_library_desc){.path = "f.metal",
                              .source = "#include <metal_stdlib>\nkernel void f(device const float *x "
                                        "[[buffer(0)]], device float *out [[buffer(1)]], uint i "
                                        "[[thread_position_in_grid]]) { out[i] = 1 / x[i]; }"},
        &library));
    OK(smelt_library_function(library, &(smelt_function_desc){.name = "f"}, &function));
    smelt_dispatch_desc desc = {
        .buffers = {{.array = x}, {.array = out}}, .grid = {4}, .threadgroup = {4}, .device = test_device()};
    smelt_guard guard = {
        .name = "f", .finite = true, .outputs = 2, .fallback = fill_bound, .context = out, .report = &report};
    OK(smelt_function_run_guarded(function, &desc, &guard));
    assert_true(report.fell_back && ((float *)out->data)[0] == 7);
    ((float *)x->data)[1] = 2;
    OK(smelt_function_run_guarded(function, &desc, &guard));
    assert_true(!report.fell_back && ((float *)out->data)[1] == 0.5F);
    smelt_array_release(x), smelt_array_release(out);
    smelt_function_release(function);
    smelt_library_release(library);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_run_is_one_attempt),
        cmocka_unit_test(a_kernel_that_hangs_is_stopped),
        cmocka_unit_test(infinities_and_nan_are_failures_if_asked),
        cmocka_unit_test(flags_are_read),
        cmocka_unit_test(preconditions_refuse_before_the_run),
        cmocka_unit_test(another_device_may_do_it),
        cmocka_unit_test(functions_are_guarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
