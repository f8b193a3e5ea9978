/* Traces: starting and stopping, retention, contents, from many threads. */
#include "trace_file.h"

#include "array/array.h"
#include "base/file.h"
#include "base/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/smelt-trace-XXXXXX";
static char file[128];

static void refused(smelt_status found, smelt_status wanted, const char *message) {
    assert_int_equal(found, wanted);
    assert_string_equal(smelt_error(), message);
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static void add(const char *category, const char *name) {
    struct trace_span span = trace_begin();
    struct trace_slice slice = {.category = category, .name = name};
    assert_true(span.capture != 0);
    trace_end(span, &slice);
}

/* ---- Starting and stopping. */

static void misuse_is_refused(void **state) {
    (void)state;
    char message[400];
    refused(smelt_trace_stop(), SMELT_ERROR_INVALID_ARGUMENT,
            "trace stop: no trace is being recorded; call smelt_trace_start first");
    refused(smelt_trace_start(NULL), SMELT_ERROR_INVALID_ARGUMENT,
            "trace start: path is NULL, expected the path of the file to write");
    refused(smelt_trace_start(""), SMELT_ERROR_INVALID_ARGUMENT,
            "trace start: path is empty, expected the path of the file to write");
    refused(smelt_trace_start("/nowhere/at/all.json"), SMELT_ERROR_IO,
            "file '/nowhere/at/all.json' cannot be written: No such file or directory");
    refused(smelt_trace_start("/tmp"), SMELT_ERROR_IO, "file '/tmp' cannot be written: Is a directory");
    ok(smelt_trace_start(file));
    snprintf(message, sizeof message,
             "trace start: a trace is already being recorded, to file '%s'; stop it first", file);
    refused(smelt_trace_start("/tmp/other.json"), SMELT_ERROR_INVALID_ARGUMENT, message);
    assert_false(exists(file));
    ok(smelt_trace_stop());
    assert_true(exists(file));
    assert_int_equal(smelt_trace_stop(), SMELT_ERROR_INVALID_ARGUMENT);
    struct text text = read_trace(file);
    expect_in(&text, "\"name\":\"process_name\"");
    text_free(&text);
}

static void a_file_that_cannot_be_written_in_the_end_is_an_error(void **state) {
    (void)state;
    char inner[160], path[200], message[400];
    snprintf(inner, sizeof inner, "%s/inner", folder);
    snprintf(path, sizeof path, "%s/trace.json", inner);
    ok(file_make_folder(inner));
    ok(smelt_trace_start(path));
    assert_int_equal(rmdir(inner), 0);
    snprintf(message, sizeof message, "file '%s' cannot be written: No such file or directory", path);
    refused(smelt_trace_stop(), SMELT_ERROR_IO, message);
    assert_int_equal(smelt_trace_stop(), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(trace_capture(), 0);
}

static void a_relative_path_means_the_folder_of_the_start(void **state) {
    (void)state;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    (void)unlink(file);
    assert_int_equal(chdir(folder), 0);
    ok(smelt_trace_start("trace.json"));
    assert_int_equal(chdir("/"), 0);
    ok(smelt_trace_stop());
    assert_int_equal(chdir(before), 0);
    assert_true(exists(file));
}

/* Runs an action in a process that must leave no file. */
static void expect_nothing(void (*act)(void)) {
    int status;
    (void)unlink(file);
    pid_t child = fork();
    if (child == 0) {
        act();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(exists(file));
}

static void start_and_exit(void) {
    if (smelt_trace_start(file) != SMELT_OK) _exit(1);
    trace_end_plain(trace_begin(), "test", "unfinished");
}

static void a_process_that_does_not_stop_leaves_nothing(void **state) {
    (void)state;
    expect_nothing(start_and_exit);
}

static void stop_in_child(void) {
    if (trace_capture() != 0 || smelt_trace_stop() != SMELT_ERROR_INVALID_ARGUMENT) _exit(1);
}

static void a_forked_child_has_no_trace(void **state) {
    (void)state;
    ok(smelt_trace_start(file));
    add("test", "before");
    expect_nothing(stop_in_child);
    add("test", "after");
    ok(smelt_trace_stop());
    struct text text = read_trace(file);
    expect_in(&text, "\"before\"");
    expect_in(&text, "\"after\"");
    text_free(&text);
}

/* ---- Contents. */

static void slices_nest(void **state) {
    (void)state;
    ok(smelt_trace_start(file));
    struct trace_span outer = trace_begin(), inner = trace_begin();
    struct trace_slice slice = {.category = "test", .name = "inner"};
    trace_triple(&slice, "size", (uint64_t[3]){1, 2, UINT64_MAX});
    trace_real(&slice, "seconds", 0.25);
    trace_integer(&slice, "bytes", -1);
    trace_end(inner, &slice);
    trace_end_plain(outer, "test", "outer");
    ok(smelt_trace_stop());
    struct text text = read_trace(file);
    double start[2], end[2];
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "\"name\":\"inner\"" : "\"name\":\"outer\"";
        start[i] = number_at(&text, name, "\"ts\":");
        end[i] = start[i] + number_at(&text, name, "\"dur\":");
    }
    assert_true(0 <= start[0] && start[0] <= start[1] && start[1] <= end[1] && end[1] <= end[0] + 1e-6);
    assert_true(end[0] * 1e3 <= number_at(&text, "\"duration_ns\"", "\"duration_ns\":") + 1);
    expect_in(&text, "\"args\":{\"size\":[1,2,18446744073709551615],\"seconds\":0.25,\"bytes\":-1}");
    assert_int_equal((int)number_at(&text, "\"name\":\"outer\"", "\"pid\":"), getpid());
    text_free(&text);
}

static void odd_names_are_escaped(void **state) {
    (void)state;
    char endless[5000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    ok(smelt_trace_start(file));
    struct trace_span span = trace_begin();
    struct trace_slice slice = {.category = "test", .name = "a \"b\" \\ \n \x01 \xff ü \xe2\x82 </script>"};
    trace_string(&slice, "endless", endless);
    trace_string(&slice, "none", NULL);
    trace_end(span, &slice);
    ok(smelt_trace_stop());
    struct text text = read_trace(file);
    expect_in(&text, "\"a \\\"b\\\" \\\\ \\u000a \\u0001 \\ufffd ü \\ufffd\\ufffd </script>\"");
    expect_in(&text, "xxx…\"");
    assert_true(text.length < 3000);
    text_free(&text);
}

static smelt_log_level logged_level;
static char logged[300];

static void keep_line(smelt_log_level level, const char *line, void *context) {
    (void)context;
    logged_level = level;
    snprintf(logged, sizeof logged, "%s", line);
}

static void what_is_too_much_is_counted(void **state) {
    (void)state;
    char message[300];
    setenv("SMELT_TRACE_EVENTS", "3", 1);
    smelt_set_log(keep_line, NULL);
    ok(smelt_trace_start(file));
    for (int i = 0; i < 10; i++) add("test", "event");
    ok(smelt_trace_stop());
    snprintf(message, sizeof message, "trace '%s': 7 events were dropped; at most 3 are kept", file);
    assert_string_equal(logged, message);
    assert_int_equal(logged_level, SMELT_LOG_WARNING);
    struct text text = read_trace(file);
    assert_int_equal(count_of(&text, "\"ph\":\"X\""), 3);
    expect_in(&text, "\"events\":3,\"dropped_events\":7,\"event_limit\":3");
    text_free(&text);
    setenv("SMELT_TRACE_EVENTS", "many", 1);
    ok(smelt_trace_start(file));
    assert_string_equal(logged, "SMELT_TRACE_EVENTS is 'many', expected 1 to 10000000; using 500000");
    ok(smelt_trace_stop());
    unsetenv("SMELT_TRACE_EVENTS");
    smelt_set_log(NULL, NULL);
}

static void a_slice_of_an_earlier_capture_is_thrown_away(void **state) {
    (void)state;
    ok(smelt_trace_start(file));
    struct trace_span late = trace_begin();
    ok(smelt_trace_stop());
    assert_int_equal(trace_begin().capture, 0);
    ok(smelt_trace_start(file));
    trace_end_plain(late, "test", "late");
    add("test", "present");
    ok(smelt_trace_stop());
    struct text text = read_trace(file);
    /* Tracks are named in each trace. */
    assert_int_equal(count_of(&text, "\"name\":\"thread_name\""), 1);
    assert_int_equal(count_of(&text, "late"), 0);
    assert_int_equal(count_of(&text, "present"), 1);
    text_free(&text);
}

static void arrays_are_traced(void **state) {
    (void)state;
    smelt_array *array, *turned, *rows, *halves;
    ok(smelt_array_create(SMELT_FLOAT32, (smelt_shape){2, {3, 5}}, &array));
    ok(smelt_array_view(array, (smelt_shape){2, {5, 3}}, (int64_t[]){1, 5}, 0, &turned));
    ok(smelt_trace_start(file));
    ok(smelt_array_fill(array, 2));
    ok(smelt_array_contiguous(turned, &rows));
    ok(smelt_array_convert(rows, SMELT_FLOAT16, &halves));
    ok(smelt_array_copy(rows, turned));
    ok(smelt_trace_stop());
    struct text text = read_trace(file);
    expect_in(&text, "\"args\":{\"shape\":\"3x5\",\"dtype\":\"float32\",\"bytes\":60}");
    assert_int_equal(count_of(&text, "\"name\":\"fill\""), 1);
    assert_int_equal(count_of(&text, "\"name\":\"make contiguous\""), 1);
    assert_int_equal(count_of(&text, "\"name\":\"copy\""), 1);
    assert_int_equal((int)number_at(&text, "\"name\":\"convert\"", "\"bytes\":"), 30);
    expect_in(&text, "\"dtype\":\"float16\",\"bytes\":30,\"from_dtype\":\"float32\"");
    text_free(&text);
    smelt_array_release(array);
    smelt_array_release(turned);
    smelt_array_release(rows);
    smelt_array_release(halves);
}

/* ---- Launches from many threads, with captures that come and go. */

enum { THREADS = 6, LAUNCHES = 40, COUNT = 5000 };

static const smelt_kernel_desc twice = {.name = "twice",
                                        .source = "uint i = thread_position_in_grid.x; out[i] = 2 * x[i];",
                                        .inputs = {"x"},
                                        .outputs = {"out"}};

static smelt_status run_twice(smelt_kernel *kernel, smelt_array *x) {
    smelt_array *out = NULL;
    smelt_status status = smelt_kernel_run(kernel,
                                           &(smelt_run_desc){.inputs = {x},
                                                             .grid = {COUNT},
                                                             .threadgroup = {256},
                                                             .output_shapes = {{1, {COUNT}}},
                                                             .output_dtypes = {SMELT_FLOAT32}},
                                           &out);
    smelt_array_release(out);
    return status;
}

struct job {
    smelt_kernel *kernel;
    smelt_array *x;
    _Atomic smelt_status status;
};

static void *launch_often(void *argument) {
    struct job *job = argument;
    for (int i = 0; i < LAUNCHES; i++) {
        smelt_status status = run_twice(job->kernel, job->x);
        if (status != SMELT_OK) job->status = status;
    }
    return NULL;
}

static void launch_from_threads(struct job *job, pthread_t threads[THREADS]) {
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, job), 0);
}

static void join(pthread_t threads[THREADS]) {
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void launches_of_many_threads_are_all_there(void **state) {
    (void)state;
    struct job job = {.status = SMELT_OK};
    pthread_t threads[THREADS];
    ok(smelt_kernel_create(&twice, &job.kernel));
    ok(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){1, {COUNT}}, &job.x));
    ok(run_twice(job.kernel, job.x));
    ok(smelt_trace_start(file));
    launch_from_threads(&job, threads);
    join(threads);
    ok(smelt_trace_stop());
    ok(job.status);
    struct text text = read_trace(file);
    assert_int_equal(count_of(&text, "\"cat\":\"launch\",\"name\":\"twice\""), THREADS * LAUNCHES);
    assert_int_equal(count_of(&text, "\"grid\":[5000,1,1],\"threadgroup\":[256,1,1],\"groups\":[20,1,1]"),
                     THREADS * LAUNCHES);
    assert_int_equal(count_of(&text, "\"cat\":\"compile\""), 0);
    assert_true(count_of(&text, "\"name\":\"thread_name\"") >= THREADS);
    text_free(&text);
    /* Captures that begin and end while the other threads launch. */
    launch_from_threads(&job, threads);
    for (int i = 0; i < 20; i++) {
        ok(smelt_trace_start(file));
        usleep(500);
        ok(smelt_trace_stop());
        text = read_trace(file);
        text_free(&text);
    }
    join(threads);
    ok(job.status);
    smelt_kernel_release(job.kernel);
    smelt_array_release(job.x);
}

/* The attempt is not a compile that failed: the caller repeats it. */
static void a_call_that_ends_before_it_compiles_is_not_traced(void **state) {
    (void)state;
    smelt_library *library;
    smelt_function *function;
    smelt_array *array;
    smelt_library_desc source = {.source = "kernel void ones(device float *out, uint i "
                                           "[[thread_position_in_grid]]) { out[i] = 1; }"};
    ok(smelt_library_create(&source, &library));
    ok(smelt_library_function(library, &(smelt_function_desc){.name = "ones"}, &function));
    ok(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){1, {64}}, &array));
    smelt_dispatch_desc desc = {.grid = {64},
                                .threadgroup = {32},
                                .buffers = {{.array = array}},
                                .interrupt = smelt_interrupt_before_compile()};
    ok(smelt_trace_start(file));
    assert_int_equal(smelt_function_run(function, &desc), SMELT_ERROR_INTERRUPTED);
    desc.interrupt = NULL;
    ok(smelt_function_run(function, &desc));
    ok(smelt_trace_stop());
    struct text text = read_trace(file);
    assert_int_equal(count_of(&text, "\"name\":\"compile ones\""), 1);
    assert_int_equal(count_of(&text, "\"cat\":\"launch\""), 1);
    text_free(&text);
    smelt_array_release(array);
    smelt_function_release(function);
    smelt_library_release(library);
}

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(file, sizeof file, "%s/trace.json", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    (void)unlink(file);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(a_file_that_cannot_be_written_in_the_end_is_an_error),
        cmocka_unit_test(a_relative_path_means_the_folder_of_the_start),
        cmocka_unit_test(a_process_that_does_not_stop_leaves_nothing),
        cmocka_unit_test(a_forked_child_has_no_trace),
        cmocka_unit_test(slices_nest),
        cmocka_unit_test(odd_names_are_escaped),
        cmocka_unit_test(what_is_too_much_is_counted),
        cmocka_unit_test(a_slice_of_an_earlier_capture_is_thrown_away),
        cmocka_unit_test(arrays_are_traced),
        cmocka_unit_test(launches_of_many_threads_are_all_there),
        cmocka_unit_test(a_call_that_ends_before_it_compiles_is_not_traced),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
