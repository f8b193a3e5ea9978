/* Traces of this machine's own GPU: its clock relative to the host's, events around launches. Skipped, with
 * the reason, on machines without one. */
#include "machine_gpu.h"
#include "trace_file.h"

#include "base/clock.h"
#include "device/cuda/context.h"

#include <stdio.h>
#include <unistd.h>

#define COUNT (1 << 20)
#define LINE ((smelt_shape){1, {COUNT}})

/* The largest distance allowed between the two clocks, in microseconds: the anchor's spread, and what a busy
 * host adds. */
#define CLOCKS 60.0

static char file[128];
static smelt_kernel *kernel;
static smelt_array *x;

static void run(smelt_run_info *info) {
    smelt_array *out;
    ok(smelt_kernel_run(kernel,
                        &(smelt_run_desc){.inputs = {x},
                                          .grid = {COUNT},
                                          .threadgroup = {256},
                                          .output_shapes = {LINE},
                                          .output_dtypes = {SMELT_FLOAT32},
                                          .device = "cuda",
                                          .info = info},
                        &out));
    smelt_array_release(out);
}

/* The next slice of a category, in microseconds. */
static bool next_slice(const char **at, const char *category, double *start, double *end) {
    *at = strstr(*at, category);
    if (!*at) return false;
    *start = strtod(strstr(*at, "\"ts\":") + 5, NULL);
    *end = *start + strtod(strstr(*at, "\"dur\":") + 6, NULL);
    (*at)++;
    return true;
}

enum { LAUNCHES = 12 };

/* Measured launches are waited for: each ran within the call, and for as long as was measured. */
static void launches_lie_where_the_host_saw_them(void **state) {
    (void)state;
    smelt_run_info infos[LAUNCHES];
    double start = 0, end = 0, first = 0, last = 0, early = 0, late = 0, less = 0;
    ok(smelt_trace_start(file));
    for (int i = 0; i < LAUNCHES; i++) {
        if (i == LAUNCHES / 2) usleep(4200000); /* a new anchor is due */
        run(&infos[i]);
    }
    ok(smelt_trace_stop());
    struct text text = read_trace(file);
    const char *kernels = text_string(&text), *calls = kernels;
    for (int i = 0; i < LAUNCHES; i++) {
        assert_true(next_slice(&kernels, "\"cat\":\"kernel\"", &start, &end));
        assert_true(next_slice(&calls, "\"cat\":\"enqueue\"", &first, &last));
        double measured = 1e6 * infos[i].seconds;
        if (first - start > early) early = first - start;
        if (end - last > late) late = end - last;
        if (measured - (end - start) > less) less = measured - (end - start);
        if (start < first - CLOCKS || end > last + CLOCKS || end - start > measured + 2)
            FAIL_TEST(
                "launch %d is told from %.1f to %.1f us, the call from %.1f to %.1f, and measured %.1f us", i,
                start, end, first, last, measured);
    }
    print_message(
        "%.0f us measured at last; slices begin at most %.1f us before their calls, end %.1f us after "
        "them, and are at most %.1f us shorter than measured\n",
        1e6 * infos[LAUNCHES - 1].seconds, early, late, less);
    assert_int_equal((int)number_at(&text, "dropped_events", "\"dropped_events\":"), 0);
    text_free(&text);
}

static double launch_often(void) {
    double start = clock_seconds();
    for (int i = 0; i < 1000; i++) run(NULL);
    double seconds = clock_seconds() - start;
    ok(smelt_device_wait("cuda"));
    return 1e3 * seconds;
}

static void launches_that_are_enqueued_are_all_there(void **state) {
    (void)state;
    double start = 0, end = 0, before = -1, traced, plain = launch_often();
    int count = 0;
    ok(smelt_trace_start(file));
    traced = launch_often();
    ok(smelt_trace_stop());
    print_message("a call took %.2f us, with a trace %.2f us\n", plain, traced);
    struct text text = read_trace(file);
    for (const char *at = text_string(&text); next_slice(&at, "\"cat\":\"kernel\"", &start, &end); count++) {
        if (start < before || end < start) FAIL_TEST("slice %d overlaps that before it", count);
        before = end;
    }
    assert_int_equal(count, 1000);
    text_free(&text);
}

int main(void) {
    if (!machine_has_gpu()) return 0;
    snprintf(file, sizeof file, "/tmp/smelt-trace-%d.json", (int)getpid());
    ok(smelt_kernel_create(&(smelt_kernel_desc){.name = "long_one",
                                                .source =
                                                    "uint i = thread_position_in_grid.x; float v = x[i];"
                                                    "for (int k = 0; k < 4000; k++) v = v * 0.999f + x[k];"
                                                    "out[i] = v;",
                                                .inputs = {"x"},
                                                .outputs = {"out"}},
                           &kernel));
    ok(smelt_array_uniform(SMELT_FLOAT32, LINE, 0, &x));
    smelt_array *there;
    ok(smelt_array_to(x, "cuda", NULL, &there));
    smelt_array_release(x);
    x = there;
    run(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_lie_where_the_host_saw_them),
        cmocka_unit_test(launches_that_are_enqueued_are_all_there),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(file);
    smelt_kernel_release(kernel);
    smelt_array_release(x);
    return failed;
}
