/* Lines that kernels log, as the receiver of the C API gets them. A test's state is its device: both of the
 * CPU's, or the GPU in SMELT_TEST_DEVICE. */
#include "unit.h"

#include "../device.h"

#include "smelt/smelt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A receiver that keeps lines as texts: "level (x, y, z) subsystem category: text". */

struct receiver {
    char **lines;
    int count;
    int warnings;
    char warning[512];
    bool disturb; /* causes an error of its own at each line */
};

static void receive(const smelt_kernel_line *line, void *context) {
    static const char *const levels[] = {"debug", "info", "default", "error", "fault"};
    struct receiver *receiver = context;
    char *text;
    assert_string_equal(line->kernel, "f");
    assert_true(asprintf(&text, "%s (%u, %u, %u) %s %s: %s", levels[line->level], line->thread[0],
                         line->thread[1], line->thread[2], line->subsystem, line->category, line->text) > 0);
    receiver->lines = realloc(receiver->lines, (size_t)(receiver->count + 1) * sizeof(char *));
    assert_non_null(receiver->lines);
    receiver->lines[receiver->count++] = text;
    smelt_dtype dtype;
    if (receiver->disturb) assert_int_not_equal(smelt_dtype_from_name("nothing", &dtype), SMELT_OK);
}

static void receive_warning(smelt_log_level level, const char *line, void *context) {
    struct receiver *receiver = context;
    if (strstr(line, "scalar engine")) FAIL_TEST("%s", line);
    if (level != SMELT_LOG_WARNING) return;
    receiver->warnings++;
    snprintf(receiver->warning, sizeof receiver->warning, "%s", line);
}

static void forget(struct receiver *receiver) {
    for (int i = 0; i < receiver->count; i++) free(receiver->lines[i]);
    free(receiver->lines);
    *receiver = (struct receiver){.lines = NULL};
}

/* ---- Running. */

#define HEAD                                                                                                 \
    "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n"                            \
    "#define KERNEL(...) kernel void f(device int *out [[buffer(0)]], uint3 p [[thread_position_in_grid]], " \
    "uint t [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]], "                      \
    "threadgroup int *shared [[threadgroup(0)]]) { uint i = p.x; __VA_ARGS__ }\n"

struct job {
    const char *source;
    int64_t grid[3], threadgroup[3];
    double timeout;
    smelt_run_info info;
    char message[512]; /* of the run */
};

static smelt_status run_on(const char *device, struct job *job, struct receiver *receiver) {
    smelt_library *library = NULL;
    smelt_function *function = NULL;
    smelt_array *out = NULL;
    smelt_status status = smelt_array_arange(SMELT_INT32, (smelt_shape){.ndim = 1, .size = {64}}, &out);
    if (status == SMELT_OK)
        status = smelt_library_create(&(smelt_library_desc){.source = job->source}, &library);
    if (status == SMELT_OK)
        status = smelt_library_function(library, &(smelt_function_desc){.name = NULL}, &function);
    smelt_set_kernel_log(receive, receiver);
    smelt_set_log(receive_warning, receiver);
    smelt_dispatch_desc desc = {.buffers = {{.array = out}},
                                .threadgroup_memory = {4096},
                                .device = device,
                                .timeout = job->timeout,
                                .info = &job->info};
    memcpy(desc.grid, job->grid, sizeof desc.grid);
    memcpy(desc.threadgroup, job->threadgroup, sizeof desc.threadgroup);
    if (status == SMELT_OK) status = smelt_function_run(function, &desc);
    smelt_set_kernel_log(NULL, NULL);
    smelt_set_log(NULL, NULL);
    snprintf(job->message, sizeof job->message, "%s", status == SMELT_OK ? "" : smelt_error());
    smelt_function_release(function);
    smelt_library_release(library);
    smelt_array_release(out);
    return status;
}

static void assert_lines(const struct receiver *receiver, const char *const *expected, int count) {
    for (int i = 0; i < count && i < receiver->count; i++)
        if (strcmp(receiver->lines[i], expected[i]) != 0)
            FAIL_TEST("line %d is\n%s\nexpected\n%s", i, receiver->lines[i], expected[i]);
    if (receiver->count != count)
        FAIL_TEST("%d lines, expected %d; the last is %s", receiver->count, count,
                  receiver->count ? receiver->lines[receiver->count - 1] : "none");
}

#define RUN(job, receiver) assert_int_equal(run_on(*state, job, receiver), SMELT_OK)

/* ---- */

static void levels_names_and_positions(void **state) {
    struct receiver r = {0};
    struct job job = {.source = HEAD "constant os_log logger(\"com.example\", \"unit\");\n"
                                     "namespace n { using os_log = metal::os_log; }\n"
                                     "constant n::os_log other(\"a\" \"b\", \"\");\n"
                                     "KERNEL(if (p.y != 2 || p.z != 1 || i != 3) return;"
                                     "logger.log_debug(\"d\"); logger.log_info(\"i\"); logger.log(\"l\");"
                                     "other.log_error(\"e\\n\"); os_log_default.log_fault(\"f %d\", i);"
                                     "metal::os_log mine = other; mine.log(\"%u\", t);)",
                      .grid = {5, 3, 2},
                      .threadgroup = {2, 2, 2}};
    static const char *const expected[] = {"debug (3, 2, 1) com.example unit: d",
                                           "info (3, 2, 1) com.example unit: i",
                                           "default (3, 2, 1) com.example unit: l",
                                           "error (3, 2, 1) ab : e",
                                           "fault (3, 2, 1)  : f 3",
                                           "default (3, 2, 1) ab : 3"};
    RUN(&job, &r);
    assert_lines(&r, expected, 6);
    assert_int_equal(job.info.log_lines, 6);
    assert_int_equal(job.info.dropped_log_lines, 0);
    forget(&r);
}

/* The lines that thread `i` of the kernel below logs. */
static void add_expected(char **lines, int *count, int i) {
    char text[100];
#define LINE(...)                                                          \
    do {                                                                   \
        int at = snprintf(text, sizeof text, "default (%d, 0, 0)  : ", i); \
        snprintf(text + at, sizeof text - (size_t)at, __VA_ARGS__);        \
        lines[(*count)++] = strdup(text);                                  \
    } while (0)
    if (i % 3 == 0) {
        LINE("third %d", i);
        if (i % 2) LINE("odd third");
    } else {
        for (int k = 0; k < i % 5; k++)
            if (k != 2) LINE("round %d of %d", k, i % 5);
    }
    LINE("all %d", i * i);
    if (i == 77) return;
    LINE("behind %x", i);
#undef LINE
}

static void only_active_lanes_log(void **state) {
    struct receiver r = {0};
    struct job job = {.source = HEAD "KERNEL(if (i % 3 == 0) { os_log_default.log(\"third %d\", i);"
                                     "  if (i % 2) os_log_default.log(\"odd third\");"
                                     "} else { for (uint k = 0; k < i % 5; k++) { if (k == 2) continue;"
                                     "  os_log_default.log(\"round %d of %d\", k, i % 5); } }"
                                     "os_log_default.log(\"all %d\", i * i); if (i == 77) return;"
                                     "os_log_default.log(\"behind %x\", i); out[i % 64] = i;)",
                      .grid = {153},
                      .threadgroup = {72}};
    char *expected[1500];
    int count = 0;
    for (int i = 0; i < 153; i++) add_expected(expected, &count, i);
    RUN(&job, &r);
    assert_lines(&r, (const char *const *)expected, count);
    for (int i = 0; i < count; i++) free(expected[i]);
    forget(&r);
}

static void every_type_of_argument(void **state) {
    struct receiver r = {0};
    struct job job = {.source = HEAD
                      "enum color { red = -3 }; enum class shade : uchar { dark = 200 };\n"
                      "constant char words[2][4] = {\"ab\", \"cde\"};\n"
                      "constant char raw[3] = {'r', '%', 'd'};\n"
                      "KERNEL(float x = 0.1f + i; packed_half4 q = packed_half4(1.5h, x, 0, -1);"
                      "auto l = os_log_default;"
                      "l.log(\"%d %hhd %hu %u %ld %lu\", char(-5), char(i - 4), ushort(65535 + i), uint(-1), "
                      "long(i) - (1l << 40), ~0ul);"
                      "l.log(\"%d %d %d %u\", i == 3, red, shade::dark, uchar(255));"
                      "l.log(\"%f %.3f %g\", x, half(x), bfloat(x));"
                      "l.log(\"%v2d %v3hhu %v4f %v4g %v3ld\", short2(-1, i), uchar3(i, 2, 255), float4(x), "
                      "q, long3(i, -1, 1l << 33));"
                      "l.log(\"%s %s %s %p\", words[i % 2], i % 2 ? \"odd\" : \"even!\", \"\", nullptr);"
                      "l.log(i % 2 ? \"first %d\" : \"second %d\", i);"
                      "l.log(words[1]); l.log(raw, 1);"
                      "constant char *text = words[i % 2]; l.log(text); l.log(\"%v2d\", int2(p.xy)); "
                      "l.log(\"%d\", out == nullptr);)",
                      .grid = {4},
                      .threadgroup = {4}};
    static const char *const expected[] = {
        "default (3, 0, 0)  : -5 -1 2 4294967295 -1099511627773 18446744073709551615",
        "default (3, 0, 0)  : 1 -3 200 255",
        "default (3, 0, 0)  : 3.100000 3.100 3.09375",
        "default (3, 0, 0)  : -1,3 3,2,255 3.100000,3.100000,3.100000,3.100000 1.5,3.09961,0,-1 "
        "3,-1,8589934592",
        "default (3, 0, 0)  : cde odd  0x0",
        "default (3, 0, 0)  : first 3",
        "default (3, 0, 0)  : cde",
        "default (3, 0, 0)  : r1",
        "default (3, 0, 0)  : cde",
        "default (3, 0, 0)  : 3,0",
        "default (3, 0, 0)  : 0"};
    static const char *const second[] = {"default (2, 0, 0)  : ab even!  0x0",
                                         "default (2, 0, 0)  : second 2"};
    RUN(&job, &r);
    assert_int_equal(r.count, 44);
    for (int i = 0; i < 11; i++) assert_string_equal(r.lines[33 + i], expected[i]);
    for (int i = 0; i < 2; i++) assert_string_equal(r.lines[22 + 4 + i], second[i]);
    forget(&r);
}

static void lines_around_barriers(void **state) {
    struct receiver r = {0};
    struct job job = {.source = HEAD "KERNEL(shared[t] = i; os_log_default.log(\"before\");"
                                     "threadgroup_barrier(mem_flags::mem_threadgroup);"
                                     "int sum = simd_sum(int(lane)); int other = shared[t ^ 1];"
                                     "os_log_default.log(\"after %d %d\", other, sum);)",
                      .grid = {320},
                      .threadgroup = {160}};
    char text[100];
    RUN(&job, &r);
    assert_int_equal(r.count, 640);
    for (int i = 0; i < 320; i++) {
        snprintf(text, sizeof text, "default (%d, 0, 0)  : before", i);
        assert_string_equal(r.lines[2 * i], text);
        snprintf(text, sizeof text, "default (%d, 0, 0)  : after %d 496", i, i ^ 1);
        assert_string_equal(r.lines[2 * i + 1], text);
    }
    forget(&r);
}

static void what_is_too_much_is_counted(void **state) {
    struct receiver r = {0};
    struct job job = {.source = HEAD "KERNEL(for (int k = 0; k < 3; k++) os_log_default.log(\"%d\", k);)",
                      .grid = {4001},
                      .threadgroup = {64}};
    RUN(&job, &r);
    assert_int_equal(r.count, SMELT_MAX_LOG_LINES);
    assert_int_equal(job.info.log_lines, SMELT_MAX_LOG_LINES);
    assert_int_equal(job.info.dropped_log_lines, 3 * 4001 - SMELT_MAX_LOG_LINES);
    assert_int_equal(r.warnings, 1);
    assert_string_equal(r.warning,
                        "kernel 'f' logged 2003 lines more than the 10000 kept per launch; they are lost");
    forget(&r);
}

static void an_endless_loop_of_lines_times_out(void **state) {
    struct receiver r = {.disturb = true};
    struct job job = {.source = HEAD "KERNEL(for (ulong k = 0;; k++) os_log_default.log(\"%lu\", k);)",
                      .grid = {100},
                      .threadgroup = {50},
                      .timeout = 0.2};
    assert_int_equal(run_on(*state, &job, &r), SMELT_ERROR_TIMEOUT);
    assert_int_equal(r.count, SMELT_MAX_LOG_LINES);
    assert_true(job.info.dropped_log_lines > 0);
    forget(&r);
}

static void lines_before_a_fault_arrive(void **state) {
    struct receiver r = {.disturb = true};
    struct job job = {.source = HEAD
                      "KERNEL(os_log_default.log_error(\"thread %u\", i); if (i == 5) out[1l << 44] = 1;)",
                      .grid = {8},
                      .threadgroup = {8}};
    assert_int_equal(run_on(*state, &job, &r), SMELT_ERROR_FAULT);
    assert_true(r.count >= 6);
    assert_string_equal(r.lines[5], "error (5, 0, 0)  : thread 5");
    forget(&r);
    /* And so does the message, whatever the receiver did. */
    assert_non_null(strstr(job.message, "kernel 'f' writes out[17592186044416] at"));
}

/* A text at an unreadable address is the kernel's fault, not the host's; the line is the kernel's own. */
static void a_text_that_is_none_is_a_fault(void **state) {
    struct receiver r = {0};
    struct job job = {.source = HEAD "KERNEL(constant char *text = (constant char *)(ulong(out[1]) << 60);"
                                     "os_log_default.log(\"%s\", text);)",
                      .grid = {1},
                      .threadgroup = {1}};
    assert_int_equal(run_on(*state, &job, &r), SMELT_ERROR_FAULT);
    assert_int_equal(r.count, 0);
    assert_non_null(strstr(job.message, " at library.metal:5 (thread"));
    forget(&r);
}

/* With a division by a size, gangs start again if lanes do not share the quotient: not after a line was
 * logged. */
static void no_line_comes_twice(void **state) {
    struct receiver r = {0};
    struct job job = {.source = HEAD "KERNEL(int size = out[7]; os_log_default.log(\"row %d\", i / size);"
                                     "int row = i / size; int column = i % size;"
                                     "os_log_default.log(\"at %d %d\", row, column); out[i % 64] = row;)",
                      .grid = {64},
                      .threadgroup = {64}};
    RUN(&job, &r);
    assert_int_equal(r.count, 128);
    for (int i = 0; i < 7; i++) {
        char text[100];
        snprintf(text, sizeof text, "default (%d, 0, 0)  : at 0 %d", i, i);
        assert_string_equal(r.lines[2 * i + 1], text);
    }
    forget(&r);
}

static void two_devices_log_the_same(void **state) {
    (void)state;
    struct receiver a = {0}, b = {0};
    struct job job = {
        .source = HEAD
        "struct S { float x; int n; };\n"
        "static void tell(thread const S &s, int depth) {"
        "  if (depth > 3) return; os_log_default.log(\"%*d %f\", depth * 2, s.n, s.x);"
        "  for (int k = 0; k < s.n % 3; k++) os_log_default.log_info(\"  %d\", k); }\n"
        "KERNEL(S s = {0.25f * i, int(i * 7 % 11)}; tell(s, int(i % 5));"
        "uint peer = simd_shuffle_xor(i, 1); if (peer > i) os_log_default.log(\"peer %u\", peer);"
        "while (s.n > 4) { s.n -= 3; if (s.n % 2) continue; os_log_default.log(\"%d left\", s.n); })",
        .grid = {37, 3},
        .threadgroup = {16, 3}};
    assert_int_equal(run_on(test_device(), &job, &a), SMELT_OK);
    assert_int_equal(run_on(test_oracle(), &job, &b), SMELT_OK);
    assert_true(a.count > 111);
    assert_lines(&a, (const char *const *)b.lines, b.count);
    forget(&a);
    forget(&b);
}

#define ON_BOTH(test) \
    {#test " on cpu", test, NULL, NULL, "cpu"}, {#test " on cpu-scalar", test, NULL, NULL, "cpu-scalar"}

/* A GPU reports less about a fault, and is lost afterwards: tests/unit/test_engine.c. */
static int on_gpu(void) {
#define ON(test) {#test, test, NULL, NULL, (void *)(uintptr_t)test_device()}
    const struct CMUnitTest tests[] = {
        ON(levels_names_and_positions),  ON(only_active_lanes_log),
        ON(every_type_of_argument),      ON(lines_around_barriers),
        ON(what_is_too_much_is_counted), ON(an_endless_loop_of_lines_times_out),
        ON(no_line_comes_twice),         cmocka_unit_test(two_devices_log_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    if (test_device_has_memory()) return on_gpu();
    const struct CMUnitTest tests[] = {
        ON_BOTH(levels_names_and_positions),  ON_BOTH(only_active_lanes_log),
        ON_BOTH(every_type_of_argument),      ON_BOTH(lines_around_barriers),
        ON_BOTH(what_is_too_much_is_counted), ON_BOTH(an_endless_loop_of_lines_times_out),
        ON_BOTH(lines_before_a_fault_arrive), ON_BOTH(a_text_that_is_none_is_a_fault),
        ON_BOTH(no_line_comes_twice),         cmocka_unit_test(two_devices_log_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
