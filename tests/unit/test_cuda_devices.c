/* GPUs as devices: which are found, and the reasons if not, on machines with and without a driver; loss,
 * reset, fork. Each case is a process of its own, since a driver is opened once. */
#include "unit.h"

#include "device/cuda/stream.h"
#include "cuda/fake_driver.h"
#include "tune/machine.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE(count) ((smelt_shape){1, {count}})

/* Runs the rest of the test in a child; the parent waits for it and returns. A failed assertion ends the
 * child. */
#define IN_CHILD()                                                           \
    do {                                                                     \
        pid_t child = fork();                                                \
        if (child) {                                                         \
            int status;                                                      \
            assert_int_equal(waitpid(child, &status, 0), child);             \
            if (status) FAIL_TEST("the child ended with status %d", status); \
            return;                                                          \
        }                                                                    \
        alarm(60);                                                           \
    } while (0)
#define END_CHILD() exit(0)

/* cmocka's assertions return to the runner, which the child must not do. */
#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            fprintf(stderr, "the last message is: %s\n", smelt_error());    \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)
#define CHECK_TEXT(found, wanted)                                                     \
    do {                                                                              \
        const char *found_text = (found);                                             \
        if (!found_text || strcmp(found_text, wanted) != 0) {                         \
            fprintf(stderr, "%s:%d: \"%s\"\n  expected \"%s\"\n", __FILE__, __LINE__, \
                    found_text ? found_text : "(null)", wanted);                      \
            _exit(1);                                                                 \
        }                                                                             \
    } while (0)

static void check_none(const char *reason) {
    const char *found = NULL;
    const struct device *device = NULL;
    char message[1500];
    CHECK_TEXT(smelt_device_name(1, NULL), "cpu-scalar");
    CHECK_TEXT(smelt_device_name(2, &found), "cuda");
    CHECK_TEXT(found, reason);
    CHECK(!smelt_device_name(3, NULL));
    CHECK(!smelt_device_description("cuda"));
    snprintf(message, sizeof message, "device 'cuda:0' cannot be used on this machine: %s", reason);
    CHECK(device_find("cuda:0", &device) == SMELT_ERROR_NO_DEVICE);
    CHECK_TEXT(smelt_error(), message);
    smelt_stream *stream = NULL;
    CHECK(smelt_stream_create("cuda", &stream) == SMELT_ERROR_NO_DEVICE && !stream);
}

static void without_a_driver_there_is_a_reason(void **state) {
    (void)state;
    IN_CHILD();
    setenv("SMELT_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    check_none(
        "the driver library '/nowhere/libcuda.so.1' cannot be opened: /nowhere/libcuda.so.1: cannot open "
        "shared object file: No such file or directory");
    END_CHILD();
}

static void an_old_driver_is_told_by_what_it_lacks(void **state) {
    (void)state;
    IN_CHILD();
    setenv("SMELT_CUDA_DRIVER", FAKE_CUDA_OLD, 1);
    check_none("the driver library '" FAKE_CUDA_OLD "' is too old: it lacks cuMemPoolTrimTo, "
               "cuGraphInstantiateWithFlags");
    END_CHILD();
}

static void a_driver_without_a_gpu(void **state) {
    (void)state;
    IN_CHILD();
    setenv("SMELT_CUDA_DRIVER", FAKE_CUDA, 1);
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    check_none("the driver cannot be initialised: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)");
    END_CHILD();
}

static void a_gpu_may_be_too_old(void **state) {
    (void)state;
    IN_CHILD();
    setenv("SMELT_CUDA_DRIVER", FAKE_CUDA, 1);
    setenv("FAKE_CUDA_CAPABILITY", "75", 1);
    check_none("GPU 0, Fake GPU A, has compute capability 7.5; 8.0 or higher is needed");
    END_CHILD();
}

static void a_gpu_may_have_no_memory_pools(void **state) {
    (void)state;
    IN_CHILD();
    setenv("SMELT_CUDA_DRIVER", FAKE_CUDA, 1);
    setenv("FAKE_CUDA_POOLS", "0", 1);
    check_none("GPU 0, Fake GPU A, does not support memory pools in this configuration");
    END_CHILD();
}

static void newer_gpus_get_the_newest_code_that_runs_everywhere(void **state) {
    (void)state;
    IN_CHILD();
    static const char *const names[] = {"cuda:0", "cuda:1", "cuda:2"};
    setenv("SMELT_CUDA_DRIVER", FAKE_CUDA, 1);
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("FAKE_CUDA_CAPABILITY", "100,103,120", 1);
    for (size_t i = 0; i < 3; i++) {
        const struct device *device;
        CHECK(device_find(names[i], &device) == SMELT_OK);
        CHECK_TEXT(device->target, "sm_90");
    }
    END_CHILD();
}

static char warnings[400];
static int warning_count;

static void keep_warning(smelt_log_level level, const char *message, void *context) {
    (void)context;
    if (level == SMELT_LOG_WARNING) warning_count++;
    snprintf(warnings, sizeof warnings, "%s", message);
}

/* For GPUs of 9.0, 8.6 and 12.0. */
static bool targets_are(const char *setting, const char *first, const char *second, const char *third) {
    const struct device *device;
    const char *expected[] = {first, second, third};
    setenv("SMELT_CUDA_DRIVER", FAKE_CUDA, 1);
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("FAKE_CUDA_CAPABILITY", "90,86,120", 1);
    setenv("SMELT_CUDA_TARGET", setting, 1);
    smelt_set_log(keep_warning, NULL);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "cuda:%d", i);
        if (device_find(name, &device) != SMELT_OK || strcmp(device->target, expected[i]) != 0) return false;
    }
    return true;
}

static void a_lower_target_can_be_asked_for(void **state) {
    (void)state;
    IN_CHILD();
    CHECK(targets_are("sm_80", "sm_80", "sm_80", "sm_80"));
    CHECK(warning_count == 0);
    END_CHILD();
}

static void a_target_that_does_not_run_is_warned_about_once(void **state) {
    (void)state;
    IN_CHILD();
    CHECK(targets_are("sm_89", "sm_89", "sm_86", "sm_89"));
    CHECK(warning_count == 1);
    CHECK_TEXT(warnings,
               "SMELT_CUDA_TARGET is 'sm_89', whose code does not run on the GPU; expected sm_86 or a "
               "lower one; using sm_86");
    END_CHILD();
}

static void a_target_that_is_none_is_warned_about_once(void **state) {
    (void)state;
    IN_CHILD();
    CHECK(targets_are("sm_75", "sm_90a", "sm_86", "sm_90"));
    CHECK(warning_count == 1);
    CHECK_TEXT(warnings,
               "SMELT_CUDA_TARGET is 'sm_75', expected sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a; "
               "using sm_90a");
    END_CHILD();
}

static bool starts_early(const char *setting) {
    const struct device *device;
    setenv("SMELT_CUDA_DRIVER", FAKE_CUDA, 1);
    if (setting) setenv("SMELT_CUDA_EARLY", setting, 1);
    return device_find("cuda", &device) == SMELT_OK && cuda_gpu_of(device)->early;
}

static void launches_start_early(void **state) {
    (void)state;
    IN_CHILD();
    CHECK(starts_early(NULL));
    END_CHILD();
}

static void launches_do_not_start_early_if_so_set(void **state) {
    (void)state;
    IN_CHILD();
    CHECK(!starts_early("0"));
    END_CHILD();
}

static void gpus_are_listed_and_described(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    const struct device *device, *second;
    const char *reason = "unset";
    char machines[2][HASH_HEX_LENGTH + 1];
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("FAKE_CUDA_CAPABILITY", "90,70,86", 1);
    CHECK(device_find("cpu", &device) == SMELT_OK);
    CHECK(fake->calls(NULL) == 0); /* nothing has requested a GPU */
    CHECK_TEXT(smelt_device_name(2, &reason), "cuda:0");
    CHECK_TEXT(reason, "");
    CHECK_TEXT(smelt_device_name(3, NULL), "cuda:2");
    CHECK(!smelt_device_name(4, NULL));
    CHECK_TEXT(smelt_device_description("cuda:0"),
               "Fake GPU A, compute capability 9.0, 132 multiprocessors, 0.2 GiB");
    CHECK(device_find("cuda", &device) == SMELT_OK && device_find("cuda:2", &second) == SMELT_OK);
    CHECK_TEXT(device->name, "cuda:0");
    /* What was tuned on one of its names holds for the other. */
    CHECK(tune_machine("cuda", machines[0]) == SMELT_OK && tune_machine("cuda:0", machines[1]) == SMELT_OK);
    CHECK_TEXT(machines[0], machines[1]);
    CHECK_TEXT(device->target, "sm_90a");
    CHECK_TEXT(second->target, "sm_86");
    CHECK(device->threadgroup_limit == 227 * 1024 && device->thread_limit == 1024);
    CHECK(cuda_gpu_of(device) && cuda_gpu_of(second)->ordinal == 2);
    CHECK(device_find("cpu", &device) == SMELT_OK && !cuda_gpu_of(device));
    CHECK(device_find("cuda:1", &device) == SMELT_ERROR_NO_DEVICE);
    CHECK_TEXT(
        smelt_error(),
        "device 'cuda:1' does not exist on this machine; expected one of: cpu, cpu-scalar, cuda:0, cuda:2");
    CHECK(device_find("gpu", &device) == SMELT_ERROR_NO_DEVICE);
    CHECK(smelt_device_threads("cuda:0") == 0);
    CHECK(smelt_device_vector_bits("cuda:0") == 0);
    CHECK(smelt_device_driver_version("cuda:0") == 13000);
    /* Listing is not using: no context was created. */
    CHECK(fake->calls("cuDevicePrimaryCtxRetain") == 0);
    CHECK(!fake->violation());
    END_CHILD();
}

static void memory_of_devices(void **state) {
    (void)state;
    IN_CHILD();
    fake_cuda_open(FAKE_CUDA);
    setenv("FAKE_CUDA_MEMORY", "1000000", 1);
    uint64_t unused = 0, total = 0;
    CHECK(smelt_device_memory("cuda", &unused, &total) == SMELT_OK && unused == 1000000 && total == 1000000);
    smelt_array *array;
    CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(1000), &array) == SMELT_OK);
    CHECK(smelt_device_memory("cuda", &unused, NULL) == SMELT_OK && unused == 999000);
    smelt_array_release(array);
    /* The pool keeps it; it counts as free nevertheless. */
    CHECK(smelt_device_memory("cuda", &unused, NULL) == SMELT_OK && unused == 1000000);
    CHECK(smelt_device_memory("cpu", &unused, &total) == SMELT_ERROR_INVALID_ARGUMENT);
    CHECK_TEXT(smelt_error(), "device memory: device 'cpu' uses the host's memory; expected a GPU");
    CHECK(smelt_device_wait("cuda") == SMELT_OK && smelt_device_wait("cpu") == SMELT_OK);
    CHECK(smelt_device_reset("cpu-scalar") == SMELT_OK);
    END_CHILD();
}

static void the_callers_context_stays_current(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    const char *reason;
    CHECK(smelt_device_name(2, NULL));
    const struct cuda_driver *driver = cuda_driver(&reason);
    CUcontext mine, now, before;
    CHECK(driver->context_retain(&mine, 1) == CUDA_SUCCESS && driver->context_set(mine) == CUDA_SUCCESS);
    smelt_array *array;
    float value = 3;
    CHECK(smelt_array_create_on("cuda:0", SMELT_FLOAT32, LINE(1), &array) == SMELT_OK);
    CHECK(smelt_array_fill(array, 3) == SMELT_OK);
    CHECK(driver->context_get(&now) == CUDA_SUCCESS && now == mine);
    /* Also after a failure. */
    fake->fail_call("cuMemsetD32Async", 1, CUDA_ERROR_INVALID_VALUE);
    CHECK(smelt_array_fill(array, (double)value) == SMELT_ERROR_INTERNAL);
    CHECK_TEXT(smelt_error(),
               "a fill of 4 bytes on device 'cuda:0': the driver returns CUDA_ERROR_INVALID_VALUE (invalid "
               "argument)");
    CHECK(driver->context_get(&now) == CUDA_SUCCESS && now == mine);
    smelt_array_release(array);
    CHECK(driver->context_get(&now) == CUDA_SUCCESS && now == mine);
    /* Nested, and without a context before. */
    const struct device *device;
    CHECK(device_find("cuda:0", &device) == SMELT_OK);
    driver->context_set(NULL);
    CHECK(cuda_enter(cuda_gpu_of(device), &before) == SMELT_OK && !before);
    CHECK(cuda_enter(cuda_gpu_of(device), &now) == SMELT_OK && now);
    cuda_leave(cuda_gpu_of(device), now);
    CHECK(driver->context_get(&now) == CUDA_SUCCESS && now);
    cuda_leave(cuda_gpu_of(device), before);
    CHECK(driver->context_get(&now) == CUDA_SUCCESS && !now);
    CHECK(!fake->violation());
    END_CHILD();
}

/* ---- Loss. */

static struct cuda_gpu *first_gpu(void) {
    const struct device *device;
    CHECK(device_find("cuda", &device) == SMELT_OK);
    return cuda_gpu_of(device);
}

static void note_launch(smelt_stream *stream, const char *name) {
    struct cuda_gpu *gpu = first_gpu();
    struct cuda_stream *cuda;
    CUcontext previous;
    CHECK(cuda_enter(gpu, &previous) == SMELT_OK);
    CHECK(cuda_stream_for(gpu, stream, &cuda) == SMELT_OK);
    cuda_stream_note(cuda, name);
    cuda_leave(gpu, previous);
}

#define FAULTY(kernels)                                                                    \
    kernels " on device 'cuda:0' accessed invalid memory: CUDA_ERROR_ILLEGAL_ADDRESS (an " \
            "illegal memory access was encountered)"
#define LOST                                                                                                 \
    "device 'cuda:0' is lost; start a new process, or try smelt_device_reset, which destroys everything on " \
    "it: "

static void a_fault_names_the_kernel_and_loses_the_device(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    smelt_stream *stream, *fresh;
    smelt_array *array, *other = NULL;
    smelt_event *event;
    float value = 7, read = 0;
    CHECK(smelt_stream_create("cuda", &stream) == SMELT_OK);
    CHECK(smelt_event_create("cuda", &event) == SMELT_OK);
    CHECK(smelt_array_create_on("cuda", SMELT_FLOAT32, LINE(10), &array) == SMELT_OK);
    note_launch(stream, "fine");
    CHECK(smelt_stream_wait(stream) == SMELT_OK); /* no suspect any more */
    note_launch(stream, "wild");
    fake->fault(CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(smelt_stream_wait(stream) == SMELT_ERROR_FAULT);
    CHECK_TEXT(
        smelt_error(),
        FAULTY("kernel 'wild'") "; the device is lost to this process unless smelt_device_reset restores it");
    /* From now on everything fails. */
    CHECK(smelt_stream_wait(stream) == SMELT_ERROR_DEVICE_LOST);
    CHECK_TEXT(smelt_error(), LOST FAULTY("kernel 'wild'"));
    CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(1), &other) == SMELT_ERROR_DEVICE_LOST && !other);
    CHECK(smelt_array_fill(array, 1) == SMELT_ERROR_DEVICE_LOST);
    CHECK(smelt_array_to(array, "cpu", NULL, &other) == SMELT_ERROR_DEVICE_LOST && !other);
    CHECK(smelt_event_record(event, stream) == SMELT_ERROR_DEVICE_LOST);
    CHECK(smelt_device_wait("cuda") == SMELT_ERROR_DEVICE_LOST);
    CHECK(smelt_device_memory("cuda", NULL, NULL) == SMELT_ERROR_DEVICE_LOST);
    CHECK(smelt_stream_create("cuda", &fresh) == SMELT_ERROR_DEVICE_LOST);
    /* Until it is reset. Objects from before can only be released. */
    CHECK(smelt_device_reset("cuda") == SMELT_OK);
    CHECK(smelt_array_fill(array, 1) == SMELT_ERROR_INVALID_ARGUMENT);
    CHECK_TEXT(smelt_error(),
               "array: it was created before device 'cuda:0' was reset, and can only be released");
    CHECK(smelt_stream_wait(stream) == SMELT_ERROR_INVALID_ARGUMENT);
    CHECK_TEXT(smelt_error(),
               "stream: it was created before device 'cuda:0' was reset, and can only be released");
    CHECK(smelt_event_record(event, NULL) == SMELT_ERROR_INVALID_ARGUMENT);
    CHECK_TEXT(smelt_error(),
               "event: it was created before device 'cuda:0' was reset, and can only be released");
    CHECK(smelt_stream_create("cuda", &fresh) == SMELT_OK);
    CHECK(smelt_array_create_on("cuda", SMELT_FLOAT32, LINE(1), &other) == SMELT_OK);
    CHECK(smelt_array_fill(other, (double)value) == SMELT_OK);
    smelt_array *host;
    CHECK(smelt_array_to(other, "cpu", fresh, &host) == SMELT_OK);
    memcpy(&read, smelt_array_data(host), sizeof read);
    CHECK(read == value);
    smelt_array_release(array);
    smelt_array_release(other);
    smelt_array_release(host);
    smelt_stream_release(stream);
    smelt_stream_release(fresh);
    smelt_event_release(event);
    if (fake->violation()) fprintf(stderr, "%s\n", fake->violation());
    CHECK(!fake->violation());
    CHECK(fake->alive("stream") == 1 && fake->alive("block") == 0); /* the default stream */
    END_CHILD();
}

/* As with NVIDIA's driver 580. */
static void where_the_driver_gives_no_new_context_a_reset_says_so(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    smelt_array *array, *other = NULL;
    CHECK(smelt_array_create_on("cuda", SMELT_FLOAT32, LINE(10), &array) == SMELT_OK);
    note_launch(NULL, "wild");
    fake->fault_for_good(CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(smelt_device_wait("cuda") == SMELT_ERROR_FAULT);
    for (int round = 0; round < 2; round++) {
        CHECK(smelt_device_reset("cuda") == SMELT_ERROR_DEVICE_LOST);
        CHECK_TEXT(smelt_error(), "device 'cuda:0' is lost, and the driver gives this process no new context "
                                  "on it; start a new process: " FAULTY("kernel 'wild'"));
        CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(1), &other) == SMELT_ERROR_DEVICE_LOST &&
              !other);
    }
    smelt_array_release(array);
    CHECK(!fake->violation());
    END_CHILD();
}

static void a_fault_may_be_one_of_several_kernels(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    smelt_stream *a, *b;
    CHECK(smelt_stream_create("cuda", &a) == SMELT_OK && smelt_stream_create("cuda", &b) == SMELT_OK);
    note_launch(a, "first");
    note_launch(a, "second");
    note_launch(a, "first");
    note_launch(b, "third");
    fake->fault(CUDA_ERROR_LAUNCH_FAILED);
    CHECK(smelt_device_wait("cuda") == SMELT_ERROR_FAULT);
    CHECK_TEXT(smelt_error(), "one of the kernels 'third', 'first', 'second' on device 'cuda:0' failed: "
                              "CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure); the device is lost to "
                              "this process unless smelt_device_reset restores it");
    CHECK(smelt_device_reset("cuda") == SMELT_OK);
    note_launch(NULL, "late");
    for (int i = 0; i < 20; i++) note_launch(NULL, "many");
    fake->fault(CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(smelt_device_wait("cuda") == SMELT_ERROR_FAULT);
    CHECK(strncmp(smelt_error(), "one of the kernels 'many' or one before on device", 49) == 0);
    END_CHILD();
}

/* Callbacks of a launch, such as the receiver of log lines, run while the launch holds the device. */
static void a_reset_from_within_a_launch_is_refused(void **state) {
    (void)state;
    IN_CHILD();
    fake_cuda_open(FAKE_CUDA);
    CUcontext previous;
    CHECK(cuda_enter(first_gpu(), &previous) == SMELT_OK);
    CHECK(smelt_device_reset("cuda") == SMELT_ERROR_INVALID_ARGUMENT);
    CHECK_TEXT(smelt_error(),
               "device 'cuda:0' cannot be reset from a callback of a launch before the launch has ended");
    cuda_leave(first_gpu(), previous);
    CHECK(smelt_device_reset("cuda") == SMELT_OK);
    END_CHILD();
}

static void a_device_can_fail_by_itself(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    note_launch(NULL, "innocent");
    fake->fault(CUDA_ERROR_ECC_UNCORRECTABLE);
    CHECK(smelt_device_wait("cuda") == SMELT_ERROR_DEVICE_LOST);
    CHECK_TEXT(smelt_error(), LOST "device 'cuda:0' failed: CUDA_ERROR_ECC_UNCORRECTABLE (uncorrectable ECC "
                                   "error encountered)");
    END_CHILD();
}

/* Calls that cannot report an error neither lose it nor change the message of an earlier one. */
static void releases_leave_the_message_and_keep_the_loss(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    smelt_array *array;
    CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(5), &array) == SMELT_OK);
    note_launch(NULL, "wild");
    smelt_dtype dtype;
    CHECK(smelt_dtype_from_name("float31", &dtype) != SMELT_OK);
    char *message = strdup(smelt_error());
    fake->fail_call("cuMemFreeAsync", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    smelt_array_release(array);
    CHECK_TEXT(smelt_error(), message);
    free(message);
    CHECK(smelt_device_wait("cuda") == SMELT_ERROR_DEVICE_LOST);
    CHECK_TEXT(smelt_error(), LOST FAULTY("kernel 'wild'"));
    END_CHILD();
}

static void a_context_that_cannot_be_opened_can_be_tried_again(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    smelt_array *array = NULL;
    static const char *const calls[] = {"cuDevicePrimaryCtxRetain", "cuDeviceGetDefaultMemPool",
                                        "cuMemPoolSetAttribute", "cuStreamCreate", "cuEventCreate"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fake->fail_call(calls[i], 1, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(1), &array) == SMELT_ERROR_OUT_OF_MEMORY);
        CHECK(!array && fake->alive("stream") == 0 && fake->alive("event") == 0);
    }
    CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(1), &array) == SMELT_OK);
    smelt_array_release(array);
    CHECK(!fake->violation());
    END_CHILD();
}

/* ---- Fork. */

static void a_child_of_a_process_with_a_gpu_gets_an_error(void **state) {
    (void)state;
    IN_CHILD();
    const struct fake_cuda *fake = fake_cuda_open(FAKE_CUDA);
    smelt_array *array, *other = NULL;
    smelt_stream *stream;
    CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(100), &array) == SMELT_OK);
    CHECK(smelt_stream_create("cuda", &stream) == SMELT_OK);
    pid_t child = fork();
    if (!child) {
        alarm(20);
        fake->forget_calls();
        CHECK_TEXT(smelt_device_name(2, NULL), "cuda:0");
        CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(1), &other) == SMELT_ERROR_NO_DEVICE);
        CHECK_TEXT(smelt_error(),
                   "device 'cuda:0' cannot be used in this process: it was forked from one that uses GPUs; "
                   "fork before the first use of a GPU, or start a new program");
        CHECK(smelt_array_fill(array, 1) == SMELT_ERROR_NO_DEVICE);
        CHECK(smelt_stream_wait(stream) == SMELT_ERROR_NO_DEVICE);
        CHECK(smelt_device_reset("cuda") == SMELT_ERROR_NO_DEVICE);
        smelt_array_release(array);
        smelt_stream_release(stream);
        CHECK(fake->calls(NULL) == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(smelt_array_fill(array, 1) == SMELT_OK);
    smelt_array_release(array);
    smelt_stream_release(stream);
    END_CHILD();
}

static void a_child_may_be_the_first_to_use_a_gpu(void **state) {
    (void)state;
    IN_CHILD();
    fake_cuda_open(FAKE_CUDA);
    pid_t child = fork();
    smelt_array *array;
    CHECK(smelt_array_create_on("cuda", SMELT_INT8, LINE(1), &array) == SMELT_OK);
    smelt_array_release(array);
    if (!child) _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    END_CHILD();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_driver_there_is_a_reason),
        cmocka_unit_test(an_old_driver_is_told_by_what_it_lacks),
        cmocka_unit_test(a_driver_without_a_gpu),
        cmocka_unit_test(a_gpu_may_be_too_old),
        cmocka_unit_test(a_gpu_may_have_no_memory_pools),
        cmocka_unit_test(newer_gpus_get_the_newest_code_that_runs_everywhere),
        cmocka_unit_test(a_lower_target_can_be_asked_for),
        cmocka_unit_test(a_target_that_does_not_run_is_warned_about_once),
        cmocka_unit_test(a_target_that_is_none_is_warned_about_once),
        cmocka_unit_test(launches_start_early),
        cmocka_unit_test(launches_do_not_start_early_if_so_set),
        cmocka_unit_test(gpus_are_listed_and_described),
        cmocka_unit_test(memory_of_devices),
        cmocka_unit_test(the_callers_context_stays_current),
        cmocka_unit_test(a_fault_names_the_kernel_and_loses_the_device),
        cmocka_unit_test(where_the_driver_gives_no_new_context_a_reset_says_so),
        cmocka_unit_test(a_fault_may_be_one_of_several_kernels),
        cmocka_unit_test(a_reset_from_within_a_launch_is_refused),
        cmocka_unit_test(a_device_can_fail_by_itself),
        cmocka_unit_test(releases_leave_the_message_and_keep_the_loss),
        cmocka_unit_test(a_context_that_cannot_be_opened_can_be_tried_again),
        cmocka_unit_test(a_child_of_a_process_with_a_gpu_gets_an_error),
        cmocka_unit_test(a_child_may_be_the_first_to_use_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
