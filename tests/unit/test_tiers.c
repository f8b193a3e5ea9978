/* Quick code first: it gives the same bits, the best takes its place, and what happens meanwhile to a process
 * (an exit, a fork, a compiler that dies) leaves results and error messages, and nothing that waits. Needs
 * smelt-cc1: where LLVM runs in the host's process, all launches wait for the best code. */
#include "unit.h"

#include "base/text.h"
#include "smelt/smelt.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_for(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {
    }
}

#define COUNT 4096
#define THREADS 64

/* ---- Kernels, each of its own text: none is in the cache. */

struct options {
    int steps; /* of straight-line code; 0: a small kernel */
    const char *extra;
    smelt_math_mode math;
    bool atomic;
};

static char *body_of(const struct options *options) {
    static int made;
    struct text text = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    text_addf(&text, "uint i = thread_position_in_grid.x; float x = a[i], y = %ld.%09ldf + %d.0f;\n",
              (long)now.tv_sec % 1000, now.tv_nsec, getpid() % 10000 + made++);
    for (int s = 0; s < options->steps; s++)
        text_addf(&text, "x = x * y + %d.25f; y = x - a[(i + %d) %% %d] * 0.5f;\n", s % 7, s, COUNT);
    text_addf(&text, "%s out[i] = x + y;\n", options->extra ? options->extra : "");
    assert_false(text.failed);
    return text.data;
}

static smelt_kernel *kernel_of(const char *body, const struct options *options) {
    smelt_kernel *kernel;
    OK(smelt_kernel_create(&(smelt_kernel_desc){.name = "steps",
                                                .source = body,
                                                .inputs = {"a", "turns"},
                                                .outputs = {"out"},
                                                .math = options->math,
                                                .atomic_outputs = options->atomic},
                           &kernel));
    return kernel;
}

static smelt_kernel *make_kernel(const struct options *options) {
    char *body = body_of(options);
    smelt_kernel *kernel = kernel_of(body, options);
    free(body);
    return kernel;
}

/* Of narrower vectors a step takes more: as many instructions of vector code on every CPU. */
static int steps(int of_512_bits) {
    const char *cpu = getenv("SMELT_CPU");
    bool wide = cpu && *cpu ? strcmp(cpu, "avx512") == 0 : __builtin_cpu_supports("avx512f");
    bool narrow = cpu && *cpu ? strcmp(cpu, "sse2") == 0 : !__builtin_cpu_supports("avx2");
    return narrow ? of_512_bits / 4 : wide ? of_512_bits : of_512_bits / 2;
}

/* Just large enough for quick code, which is vector code. */
#define MIDDLING ((struct options){.steps = steps(20)})
/* Half as large again: it is scalar code. */
#define LARGE ((struct options){.steps = steps(30)})
/* Whose best code takes so long to compile that await_compiler finds the compiler. */
#define HUGE ((struct options){.steps = steps(60)})

static smelt_array *input(void) {
    smelt_array *a;
    OK(smelt_array_uniform(SMELT_FLOAT32, (smelt_shape){1, {COUNT}}, 7, &a));
    return a;
}

static smelt_run_desc desc_of(smelt_array *a, smelt_run_info *info) {
    static const int turns = 3;
    static smelt_array *number;
    if (!number) OK(smelt_array_from_values(SMELT_INT32, (smelt_shape){0, {0}}, &turns, &number));
    return (smelt_run_desc){.inputs = {a, number},
                            .grid = {COUNT - 5},
                            .threadgroup = {THREADS},
                            .output_shapes = {{1, {COUNT}}},
                            .output_dtypes = {SMELT_FLOAT32},
                            .initialise = true,
                            .init_value = -3,
                            .info = info};
}

/* The result's bits, which the caller frees; *quick: what ran. */
static float *run(smelt_kernel *kernel, double timeout, bool *quick) {
    smelt_run_info info;
    smelt_array *a = input(), *out;
    smelt_run_desc desc = desc_of(a, &info);
    desc.timeout = timeout;
    OK(smelt_kernel_run(kernel, &desc, &out));
    float *bits = malloc(COUNT * sizeof *bits);
    memcpy(bits, smelt_array_data(out), COUNT * sizeof *bits);
    smelt_array_release(out);
    smelt_array_release(a);
    *quick = info.quick;
    return bits;
}

static bool runs_quickly(smelt_kernel *kernel) {
    bool quick;
    free(run(kernel, 0, &quick));
    return quick;
}

static bool is_out_of_process(void) {
    char *path;
    OK(smelt_llvm_find(&path, NULL));
    const char *end = strrchr(path, '/');
    bool is = strcmp(end ? end + 1 : path, "smelt-cc1") == 0;
    smelt_free(path);
    return is;
}

static int set_up(void **state) {
    (void)state;
    unsetenv("SMELT_TIERS");
    return 0;
}

#define NEED_QUICK \
    if (!is_out_of_process()) SKIP_TEST("smelt-cc1 is not used, and only it makes quick code")

/* ---- What runs. */

static void best_code_takes_over_with_the_same_bits(void **state) {
    (void)state;
    NEED_QUICK;
    struct options options = LARGE;
    char *body = body_of(&options);
    smelt_kernel *kernel = kernel_of(body, &options), *again = kernel_of(body, &options);
    bool quick;
    float *first = run(kernel, 0, &quick);
    assert_true(quick);
    OK(smelt_kernel_wait(kernel, NULL));
    float *second = run(kernel, 0, &quick);
    assert_false(quick);
    assert_memory_equal(first, second, COUNT * sizeof *first);
    /* Which is in the disk cache. */
    float *third = run(again, 0, &quick);
    assert_false(quick);
    assert_memory_equal(first, third, COUNT * sizeof *first);
    free(first);
    free(second);
    free(third);
    smelt_kernel_release(kernel);
    smelt_kernel_release(again);
    free(body);
}

static void assert_best(const struct options *options, double timeout) {
    smelt_kernel *kernel = make_kernel(options);
    bool quick;
    free(run(kernel, timeout, &quick));
    assert_false(quick);
    OK(smelt_kernel_wait(kernel, NULL));
    smelt_kernel_release(kernel);
}

static void kernels_that_wait(void **state) {
    (void)state;
    assert_best(&(struct options){.steps = 1}, 0);
    assert_best(&(struct options){.steps = steps(30), .math = SMELT_MATH_RELAXED}, 0);
    assert_best(&(struct options){.steps = steps(30), .math = SMELT_MATH_FAST}, 0);
    assert_best(&(struct options){.steps = steps(30),
                                  .extra =
                                      "threadgroup atomic_uint n; uint k = atomic_fetch_add_explicit(&n, 1u, "
                                      "memory_order_relaxed); x += float(k);"},
                0);
    assert_best(&LARGE, 29);
    setenv("SMELT_TIERS", "0", 1);
    assert_best(&LARGE, 0);
}

static void long_timeouts_do_not_wait(void **state) {
    (void)state;
    NEED_QUICK;
    smelt_kernel *kernel = make_kernel(&LARGE);
    bool quick;
    free(run(kernel, 100, &quick));
    assert_true(quick);
    smelt_kernel_release(kernel);
}

static void prepared_launches_have_the_best(void **state) {
    (void)state;
    smelt_kernel *kernel = make_kernel(&LARGE);
    smelt_array *a = input(), *out;
    smelt_run_info info;
    smelt_run_desc desc = desc_of(a, NULL);
    smelt_launch *launch;
    (void)runs_quickly(kernel); /* then the background may be at it */
    OK(smelt_kernel_prepare(kernel, &desc, &launch));
    OK(smelt_launch_run(launch, &(smelt_launch_desc){.info = &info}, &out));
    assert_false(info.quick);
    assert_false(runs_quickly(kernel));
    smelt_array_release(out);
    smelt_array_release(a);
    smelt_launch_release(launch);
    smelt_kernel_release(kernel);
}

static void functions_have_tiers_too(void **state) {
    (void)state;
    NEED_QUICK;
    struct text text = {0};
    char *body = body_of(&LARGE);
    text_addf(
        &text,
        "#include <metal_stdlib>\nusing namespace metal;\nkernel void steps(device float *out [[buffer(0)]], "
        "device const float *a [[buffer(1)]], uint3 thread_position_in_grid "
        "[[thread_position_in_grid]]) {\n%s}\n",
        body);
    smelt_library *library;
    smelt_function *function;
    smelt_run_info info;
    smelt_array *a = input(), *out = input();
    OK(smelt_library_create(&(smelt_library_desc){.source = text.data}, &library));
    OK(smelt_library_function(library, &(smelt_function_desc){.name = "steps"}, &function));
    smelt_dispatch_desc desc = {
        .buffers = {{.array = out}, {.array = a}}, .grid = {COUNT}, .threadgroup = {THREADS}, .info = &info};
    OK(smelt_function_run(function, &desc));
    assert_true(info.quick);
    float *first = malloc(COUNT * sizeof *first);
    memcpy(first, smelt_array_data(out), COUNT * sizeof *first);
    OK(smelt_function_wait(function, NULL));
    OK(smelt_array_fill(out, -1));
    OK(smelt_function_run(function, &desc));
    assert_false(info.quick);
    assert_memory_equal(first, smelt_array_data(out), COUNT * sizeof *first);
    smelt_array_release(a);
    smelt_array_release(out);
    smelt_function_release(function);
    smelt_library_release(library);
    text_free(&text);
    free(first);
    free(body);
}

static void forced_quick_code_stays(void **state) {
    (void)state;
    NEED_QUICK;
    setenv("SMELT_TIERS", "quick", 1);
    smelt_kernel *kernel = make_kernel(&(struct options){.steps = 1});
    assert_true(runs_quickly(kernel));
    OK(smelt_kernel_wait(kernel, NULL));
    assert_true(runs_quickly(kernel));
    smelt_kernel_release(kernel);
}

static bool code_has(smelt_kernel *kernel, const char *tiers, const char *what) {
    smelt_array *a = input();
    smelt_run_desc desc = desc_of(a, NULL);
    char *text;
    setenv("SMELT_TIERS", tiers, 1);
    OK(smelt_kernel_show(kernel, &desc, SMELT_STAGE_ASM, &text));
    bool has = strstr(text, what) != NULL;
    smelt_free(text);
    smelt_array_release(a);
    return has;
}

static bool forced_code_has(int step_count, const char *instruction) {
    smelt_kernel *kernel = make_kernel(&(struct options){.steps = step_count});
    bool has = code_has(kernel, "quick", instruction);
    smelt_kernel_release(kernel);
    return has;
}

static void quick_code_is_vector_code_up_to_a_size(void **state) {
    (void)state;
    NEED_QUICK;
    assert_true(forced_code_has(1, "addps"));
    assert_false(forced_code_has(steps(120), "addps"));
    assert_true(forced_code_has(steps(120), "addss"));
}

/* The best code of its groups of 256 threads is many times larger than that of a thread. */
static void a_small_thread_of_a_large_gang_has_quick_code(void **state) {
    (void)state;
    NEED_QUICK;
    const struct options options = {
        .extra = "threadgroup uint places[256]; uint t = thread_position_in_threadgroup.x; places[t] = t;"
                 "for (uint run = 2; run <= uint(turns + 253); run <<= 1)"
                 "  for (uint apart = run >> 1; apart; apart >>= 1) {"
                 "    threadgroup_barrier(metal::mem_flags::mem_threadgroup);"
                 "    uint partner = t ^ apart;"
                 "    if (partner < t) continue;"
                 "    uint one = places[t], other = places[partner];"
                 "    bool behind = t & run ? a[other] > a[one] : a[one] > a[other];"
                 "    if (behind) { places[t] = other; places[partner] = one; }"
                 "  }"
                 "threadgroup_barrier(metal::mem_flags::mem_threadgroup); x = places[t];"};
    smelt_kernel *kernel = make_kernel(&options);
    smelt_array *a = input(), *first, *second;
    smelt_run_info info;
    smelt_run_desc desc = desc_of(a, &info);
    desc.grid[0] = COUNT;
    desc.threadgroup[0] = 256;
    OK(smelt_kernel_run(kernel, &desc, &first));
    assert_true(info.quick);
    OK(smelt_kernel_wait(kernel, NULL));
    OK(smelt_kernel_run(kernel, &desc, &second));
    assert_false(info.quick);
    assert_memory_equal(smelt_array_data(first), smelt_array_data(second), COUNT * sizeof(float));
    smelt_array_release(first);
    smelt_array_release(second);
    smelt_array_release(a);
    smelt_kernel_release(kernel);
}

/* An unrolled kernel has dozens. They were most of its vector code, which was then thrown away as too large.
 */
static void quick_code_calls_a_function_for_products_of_matrices(void **state) {
    (void)state;
    NEED_QUICK;
    smelt_kernel *kernel;
    OK(smelt_kernel_create(
        &(smelt_kernel_desc){.name = "product",
                             .header = "#include <metal_simdgroup_matrix>\n",
                             .source =
                                 "simdgroup_float8x8 m, sum = make_filled_simdgroup_matrix<float, 8, 8>(0);"
                                 "simdgroup_load(m, a, 8);"
                                 "simdgroup_multiply_accumulate(sum, m, m, sum);"
                                 "simdgroup_store(sum, out, 8);",
                             .inputs = {"a", "turns"},
                             .outputs = {"out"}},
        &kernel));
    assert_true(code_has(kernel, "quick", "product_of_"));
    assert_false(code_has(kernel, "0", "product_of_"));
    smelt_kernel_release(kernel);
}

/* ---- A launch that is running goes on with the best code. */

static atomic_int improved;

static void count_improved(smelt_log_level level, const char *line, void *context) {
    (void)level;
    (void)context;
    improved += strstr(line, "goes on with its best code") != NULL;
}

/* The result of a long launch, of so many turns of a loop per thread. */
static float *run_long(smelt_kernel *kernel, int turns, bool *quick) {
    smelt_run_info info;
    smelt_array *a = input(), *out, *number;
    OK(smelt_array_from_values(SMELT_INT32, (smelt_shape){0, {0}}, &turns, &number));
    smelt_run_desc desc = desc_of(a, &info);
    desc.inputs[1] = number;
    OK(smelt_kernel_run(kernel, &desc, &out));
    float *bits = malloc(COUNT * sizeof *bits);
    memcpy(bits, smelt_array_data(out), COUNT * sizeof *bits);
    smelt_array_release(out);
    smelt_array_release(a);
    smelt_array_release(number);
    *quick = info.quick;
    return bits;
}

static void assert_changes(struct options options) {
    options.extra = "for (int t = 0; t < turns; t++) { x = x * 0.75f + y; y = a[(uint(t) + i) % 4096] - x; }";
    smelt_set_log(count_improved, NULL);
    improved = 0;
    /* Longer each time: how long it must be depends on the machine. */
    for (int turns = 1 << 14; !improved; turns *= 4) {
        if (turns > 1 << 26) FAIL_TEST("no launch changed to the best code");
        bool quick;
        smelt_kernel *kernel = make_kernel(&options);
        float *first = run_long(kernel, turns, &quick);
        assert_true(quick);
        OK(smelt_kernel_wait(kernel, NULL));
        float *second = run_long(kernel, turns, &quick);
        assert_false(quick);
        assert_memory_equal(first, second, COUNT * sizeof *first);
        free(first);
        free(second);
        smelt_kernel_release(kernel);
    }
    smelt_set_log(NULL, NULL);
}

static void running_launches_change_to_the_best(void **state) {
    (void)state;
    NEED_QUICK;
    assert_changes(MIDDLING);
}

static void running_scalar_code_changes_to_the_best(void **state) {
    (void)state;
    NEED_QUICK;
    assert_changes(LARGE);
}

/* ---- Waiting. */

static void *wait_for(void *kernel) {
    smelt_status status = smelt_kernel_wait(kernel, NULL);
    return status == SMELT_OK && !runs_quickly(kernel) ? kernel : NULL;
}

static void many_threads_wait(void **state) {
    (void)state;
    NEED_QUICK;
    enum { WAITERS = 8 };
    smelt_kernel *kernels[2];
    pthread_t threads[2][WAITERS];
    void *good;
    for (int k = 0; k < 2; k++) {
        kernels[k] = make_kernel(&LARGE);
        assert_true(runs_quickly(kernels[k]));
    }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < WAITERS; i++) pthread_create(&threads[k][i], NULL, wait_for, kernels[k]);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < WAITERS; i++) {
            pthread_join(threads[k][i], &good);
            assert_non_null(good);
        }
        smelt_kernel_release(kernels[k]);
    }
}

static void a_released_kernel_still_gets_into_the_cache(void **state) {
    (void)state;
    NEED_QUICK;
    char *body = body_of(&LARGE);
    smelt_kernel *kernel = kernel_of(body, &LARGE), *last = make_kernel(&LARGE);
    assert_true(runs_quickly(kernel));
    smelt_kernel_release(kernel);
    /* The background works in order. */
    assert_true(runs_quickly(last));
    for (bool quick = true; quick; pause_for(0.05)) quick = runs_quickly(last);
    kernel = kernel_of(body, &LARGE);
    assert_false(runs_quickly(kernel));
    smelt_kernel_release(kernel);
    smelt_kernel_release(last);
    free(body);
}

/* ---- A compiler that is stopped, or dies. */

/* A child of the process that runs smelt-cc1; 0: none. */
static pid_t find_compiler(pid_t parent) {
    DIR *all = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *entry; !found && (entry = readdir(all));) {
        char path[300], line[400] = "", name[64];
        pid_t id, of;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fgets(line, sizeof line, file) && sscanf(line, "%d (%63[^)]) %*c %d", &id, name, &of) == 3 &&
            of == parent && strcmp(name, "smelt-cc1") == 0)
            found = id;
        fclose(file);
    }
    closedir(all);
    return found;
}

static pid_t await_compiler(pid_t parent) {
    pid_t found = 0;
    for (int i = 0; i < 6000 && !found; i++, pause_for(0.01)) found = find_compiler(parent);
    if (!found) FAIL_TEST("process %d starts no compiler in the background", (int)parent);
    return found;
}

/* It does not end by itself, until it is continued. */
static pid_t stop_compiler(pid_t parent) {
    pid_t compiler = await_compiler(parent);
    assert_int_equal(kill(compiler, SIGSTOP), 0);
    return compiler;
}

static void waits_are_interrupted_and_the_compile_is_not(void **state) {
    (void)state;
    NEED_QUICK;
    smelt_kernel *kernel = make_kernel(&HUGE);
    smelt_interrupt *interrupt;
    OK(smelt_interrupt_create(&interrupt));
    assert_true(runs_quickly(kernel));
    pid_t compiler = stop_compiler(getpid());
    smelt_interrupt_raise(interrupt);
    assert_int_equal(smelt_kernel_wait(kernel, interrupt), SMELT_ERROR_INTERRUPTED);
    kill(compiler, SIGCONT);
    OK(smelt_kernel_wait(kernel, NULL));
    OK(smelt_kernel_wait(kernel, interrupt)); /* there is nothing to wait for */
    assert_false(runs_quickly(kernel));
    smelt_interrupt_release(interrupt);
    smelt_kernel_release(kernel);
}

static atomic_int warned;

static void count_warnings(smelt_log_level level, const char *line, void *context) {
    (void)context;
    warned += level == SMELT_LOG_WARNING && strstr(line, "goes on with quick code") != NULL;
}

static void failures_are_those_of_waits_alone(void **state) {
    (void)state;
    NEED_QUICK;
    smelt_kernel *kernel = make_kernel(&HUGE);
    smelt_set_log(count_warnings, NULL);
    warned = 0;
    bool quick;
    float *first = run(kernel, 0, &quick);
    kill(await_compiler(getpid()), SIGKILL);
    assert_int_equal(smelt_kernel_wait(kernel, NULL), SMELT_ERROR_COMPILE);
    if (!strstr(smelt_error(), "kernel 'steps'") || !strstr(smelt_error(), "signal 9"))
        FAIL_TEST("the message is: %s", smelt_error());
    assert_int_equal(warned, 1);
    float *second = run(kernel, 0, &quick);
    assert_true(quick);
    assert_memory_equal(first, second, COUNT * sizeof *first);
    assert_int_equal(smelt_kernel_wait(kernel, NULL), SMELT_ERROR_COMPILE);
    assert_int_equal(warned, 1);
    smelt_set_log(NULL, NULL);
    smelt_kernel_release(kernel);
    free(first);
    free(second);
}

/* ---- Processes. */

static void assert_exits_with(pid_t child, int code) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        FAIL_TEST("the process ended with status 0x%x, expected exit code %d", status, code);
}

/* The child's compiles in the background are its own, also of kernels that the parent was at. */
static void forked_children_compile_for_themselves(void **state) {
    (void)state;
    NEED_QUICK;
    smelt_kernel *kernel = make_kernel(&HUGE);
    assert_true(runs_quickly(kernel));
    pid_t compiler = stop_compiler(getpid());
    pid_t child = fork();
    if (child > 0) kill(compiler, SIGCONT);
    if (child == 0) {
        bool quick = runs_quickly(kernel);
        _exit(quick && smelt_kernel_wait(kernel, NULL) == SMELT_OK && !runs_quickly(kernel) ? 21 : 1);
    }
    OK(smelt_kernel_wait(kernel, NULL));
    assert_false(runs_quickly(kernel));
    assert_exits_with(child, 21);
    smelt_kernel_release(kernel);
}

/* Many forks while the background compiles: it holds no lock then that the child needs. */
static void forks_at_any_moment(void **state) {
    (void)state;
    NEED_QUICK;
    smelt_kernel *kernels[2];
    for (int k = 0; k < 2; k++) {
        kernels[k] = make_kernel(&LARGE);
        (void)runs_quickly(kernels[k]);
    }
    for (int i = 0; i < 24; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(1 << 20));
            (void)runs_quickly(kernels[i % 2]);
            _exit(22);
        }
        assert_exits_with(child, 22);
        pause_for(0.01);
    }
    for (int k = 0; k < 2; k++) {
        OK(smelt_kernel_wait(kernels[k], NULL));
        smelt_kernel_release(kernels[k]);
    }
}

static bool is_gone(pid_t process) {
    char path[64], line[400] = "", state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    if (fgets(line, sizeof line, file)) sscanf(line, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return state == 'Z' || state == 'X';
}

static void await_end(pid_t process) {
    for (int i = 0; i < 3000 && !is_gone(process); i++) pause_for(0.01);
    if (is_gone(process)) return;
    kill(process, SIGKILL);
    FAIL_TEST("the compiler outlives the process that started it");
}

/* A process that compiles in the background until it is told to end. */
struct host {
    pid_t process, compiler;
    int tell;
};

static struct host start_host(void) {
    int down[2], up[2];
    char byte;
    assert_true(pipe(down) == 0 && pipe(up) == 0);
    struct host host = {.process = fork(), .tell = down[1]};
    if (host.process == 0) {
        close(down[1]);
        bool quick = runs_quickly(make_kernel(&HUGE));
        if (write(up[1], "q", 1) != 1 || read(down[0], &byte, 1) != 0) quick = false;
        exit(quick ? 23 : 1);
    }
    close(down[0]);
    close(up[1]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    close(up[0]);
    host.compiler = stop_compiler(host.process);
    return host;
}

static void processes_that_exit_do_not_wait(void **state) {
    (void)state;
    NEED_QUICK;
    struct host host = start_host();
    close(host.tell);
    assert_exits_with(host.process, 23);
    await_end(host.compiler);
}

static void killed_processes_leave_no_compiler(void **state) {
    (void)state;
    NEED_QUICK;
    struct host host = start_host();
    kill(host.process, SIGKILL);
    assert_int_equal(waitpid(host.process, NULL, 0), host.process);
    await_end(host.compiler);
    close(host.tell);
}

int main(int count, char **arguments) {
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(best_code_takes_over_with_the_same_bits, set_up),
        cmocka_unit_test_setup(kernels_that_wait, set_up),
        cmocka_unit_test_setup(long_timeouts_do_not_wait, set_up),
        cmocka_unit_test_setup(prepared_launches_have_the_best, set_up),
        cmocka_unit_test_setup(functions_have_tiers_too, set_up),
        cmocka_unit_test_setup(forced_quick_code_stays, set_up),
        cmocka_unit_test_setup(quick_code_is_vector_code_up_to_a_size, set_up),
        cmocka_unit_test_setup(a_small_thread_of_a_large_gang_has_quick_code, set_up),
        cmocka_unit_test_setup(quick_code_calls_a_function_for_products_of_matrices, set_up),
        cmocka_unit_test_setup(running_launches_change_to_the_best, set_up),
        cmocka_unit_test_setup(running_scalar_code_changes_to_the_best, set_up),
        cmocka_unit_test_setup(many_threads_wait, set_up),
        cmocka_unit_test_setup(a_released_kernel_still_gets_into_the_cache, set_up),
        cmocka_unit_test_setup(waits_are_interrupted_and_the_compile_is_not, set_up),
        cmocka_unit_test_setup(failures_are_those_of_waits_alone, set_up),
        cmocka_unit_test_setup(forked_children_compile_for_themselves, set_up),
        cmocka_unit_test_setup(forks_at_any_moment, set_up),
        cmocka_unit_test_setup(processes_that_exit_do_not_wait, set_up),
        cmocka_unit_test_setup(killed_processes_leave_no_compiler, set_up),
    };
    return cmocka_run_group_tests_name("tiers", tests, NULL, NULL);
}
