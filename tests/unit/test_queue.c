/* Queues of the CPU (device/queue.h): order, concurrency, points, failures, interrupts, lifetimes. A test's
 * state is the name of the engine. */
#include "unit.h"

#include "base/interrupt.h"
#include "device/queue.h"
#include "kernel/kernel.h"

#include <string.h>

#define MOST_SECONDS 60.0 /* a launch that waits for another one fails rather than hang */

enum { STEP, GATE, OPEN, BARRIER, EDGE, KERNELS };

/* `x` is the first input, and `out` is an array of the caller. */
static const char *const bodies[KERNELS] = {
    [STEP] = "uint i = thread_position_in_grid.x; out[i] = x[i] * 3 + int(x_shape[0]) + by[0];",
    /* Waits until someone writes out[0]. */
    [GATE] = "while (atomic_load_explicit(&out[0], memory_order_relaxed) == by[0]) {}",
    [OPEN] = "atomic_store_explicit(&out[0], x[0] + by[0] + 1, memory_order_relaxed);",
    [BARRIER] = "if (thread_position_in_threadgroup.x == 0) threadgroup_barrier(mem_flags::mem_none);"
                "out[0] = x[0] + by[0];",
    /* Code for full groups, whose size is known, reads no input. */
    [EDGE] = "uint i = thread_position_in_grid.x; int read = -7; threadgroup_barrier(mem_flags::mem_none);"
             "if (threads_per_threadgroup.x % 64 != 0) read = x[i] + by[0]; out[i] = read;",
};

struct test {
    const struct device *device;
    smelt_kernel *kernels[KERNELS];
    struct queue *queues[2];
    smelt_array *zero;
};

static smelt_array *array_of(int64_t count, double value) {
    smelt_array *array;
    OK(smelt_array_create(SMELT_INT32, (smelt_shape){1, {count}}, &array));
    OK(smelt_array_fill(array, value));
    return array;
}

static struct test begin(void **state) {
    struct test t = {.zero = array_of(1, 0)};
    OK(device_find(*state, &t.device));
    for (int k = 0; k < KERNELS; k++)
        OK(smelt_kernel_create(&(smelt_kernel_desc){.name = "work",
                                                    .source = bodies[k],
                                                    .inputs = {"x", "by"},
                                                    .outputs = {"out"},
                                                    .atomic_outputs = k == GATE || k == OPEN},
                               &t.kernels[k]));
    for (int q = 0; q < 2; q++) OK(t.device->queues->open(t.device, &t.queues[q]));
    return t;
}

static void end(struct test *t) {
    for (int q = 0; q < 2; q++) t->device->queues->close(t->queues[q]);
    for (int k = 0; k < KERNELS; k++) smelt_kernel_release(t->kernels[k]);
    smelt_array_release(t->zero);
}

/* out = kernel(x, by), for all elements of `out`. */
static void enqueue(struct test *t, int queue, int kernel, smelt_array *x, smelt_array *out, double by,
                    smelt_interrupt *interrupt) {
    smelt_array *number = array_of(1, by);
    smelt_run_desc desc = {.inputs = {x, number},
                           .grid = {smelt_array_size(out)},
                           .threadgroup = {64},
                           .output_shapes = {smelt_array_shape(out)},
                           .output_dtypes = {SMELT_INT32},
                           .device = t->device->name,
                           .timeout = interrupt ? 0 : MOST_SECONDS,
                           .into = {out}};
    struct variant_key key;
    struct variant *variant;
    struct launch launch;
    struct bound bound;
    struct launch_arguments arguments;
    OK(kernel_begin(t->kernels[kernel], &desc, &key, &launch));
    OK(kernel_variant(t->kernels[kernel], &desc, &key, &variant));
    struct bound_request request = kernel_request(t->kernels[kernel], &variant->signature, t->device, &desc);
    kernel_launch(variant, &request, &launch);
    OK(launch_prepare(&launch));
    bound_open(&bound, &request);
    arguments_begin(&arguments, t->device);
    OK(bound_bind(&bound, &launch, &arguments));
    launch.buffers = arguments.buffers;
    smelt_interrupt *outer = interrupt_begin_call(interrupt);
    OK(t->device->queues->launch(t->queues[queue], &launch));
    interrupt_end_call(outer);
    bound_close(&bound);
    memset(&bound, 0xff, sizeof bound); /* the queue has copies */
    memset(&arguments, 0xff, sizeof arguments);
    smelt_array_release(number);
}

static void wait_for(struct test *t, int queue) {
    OK(t->device->queues->wait(t->queues[queue]));
}

static int32_t *data_of(smelt_array *array) {
    return smelt_array_data(array);
}

/* What a GATE on `array` waits for. */
static void open_gate(smelt_array *array) {
    __atomic_store_n(data_of(array), 1, __ATOMIC_RELAXED);
}

static void launches_of_a_queue_run_in_order(void **state) {
    struct test t = begin(state);
    for (int64_t count = 1; count <= 5000; count += 4999) {
        smelt_array *x = array_of(count, 1);
        uint32_t wanted = 1;
        for (int step = 0; step < 40; step++) {
            enqueue(&t, 0, STEP, x, x, step, NULL);
            wanted = wanted * 3 + (uint32_t)count + (uint32_t)step;
        }
        wait_for(&t, 0);
        for (int64_t i = 0; i < count; i++) assert_int_equal((uint32_t)data_of(x)[i], wanted);
        smelt_array_release(x);
    }
    end(&t);
}

static void arguments_that_only_the_edge_uses_are_kept(void **state) {
    struct test t = begin(state);
    smelt_array *x = array_of(126, 5), *out = array_of(126, 0);
    enqueue(&t, 0, EDGE, x, out, 3, NULL);
    smelt_array_release(x);
    wait_for(&t, 0);
    for (int i = 0; i < 126; i++) assert_int_equal(data_of(out)[i], i < 64 ? -7 : 8);
    smelt_array_release(out);
    end(&t);
}

static void queues_run_at_the_same_time(void **state) {
    struct test t = begin(state);
    smelt_array *gate = array_of(1, 0);
    enqueue(&t, 0, GATE, t.zero, gate, 0, NULL); /* ends only if the next one runs, */
    enqueue(&t, 1, OPEN, t.zero, gate, 0, NULL);
    enqueue(&t, 1, GATE, t.zero, gate, 1, NULL); /* and this one only if the one after the first does */
    enqueue(&t, 0, OPEN, t.zero, gate, 1, NULL);
    for (int q = 0; q < 2; q++) wait_for(&t, q);
    assert_int_equal(data_of(gate)[0], 2);
    smelt_array_release(gate);
    end(&t);
}

static void a_queue_follows_a_point_of_another(void **state) {
    struct test t = begin(state);
    const struct queue_functions *queues = t.device->queues;
    smelt_array *gate = array_of(1, 0), *x = array_of(300, 5), *y = array_of(300, -1);
    enqueue(&t, 0, GATE, t.zero, gate, 0, NULL);
    enqueue(&t, 0, STEP, x, x, 0, NULL);
    struct queue_point stepped = queues->point(t.queues[0]);
    enqueue(&t, 0, STEP, x, x, 0, NULL);
    OK(queues->follow(t.queues[1], queues->point(t.queues[0])));
    enqueue(&t, 1, STEP, x, y, 0, NULL);
    OK(queues->follow(t.queues[1], stepped)); /* happened long ago */
    enqueue(&t, 1, STEP, y, y, 0, NULL);
    assert_int_equal(data_of(x)[0], 5);
    assert_int_equal(data_of(y)[0], -1);
    open_gate(gate);
    wait_for(&t, 1);
    int32_t wanted = 5;
    for (int i = 0; i < 4; i++) wanted = wanted * 3 + 300;
    for (int i = 0; i < 300; i++) assert_int_equal(data_of(y)[i], wanted);
    smelt_array *all[] = {gate, x, y};
    for (int i = 0; i < 3; i++) smelt_array_release(all[i]);
    end(&t);
}

static void expect_failure(struct test *t, int queue, smelt_status wanted, const char *message) {
    smelt_status status = t->device->queues->wait(t->queues[queue]);
    if (status != wanted || !strstr(smelt_error(), message))
        FAIL_TEST("queue %d: %s: %s; expected %s: %s", queue, smelt_status_name(status), smelt_error(),
                  smelt_status_name(wanted), message);
}

static void a_failure_ends_what_comes_after_it(void **state) {
    struct test t = begin(state);
    const struct queue_functions *queues = t.device->queues;
    struct queue *other;
    smelt_array *x = array_of(64, 1), *y = array_of(64, 1), *gate = array_of(1, 0);
    OK(queues->open(t.device, &other));
    enqueue(&t, 0, GATE, t.zero, gate, 0, NULL);
    struct queue_point opened = queues->point(t.queues[0]);
    enqueue(&t, 0, BARRIER, x, y, 0, NULL);
    enqueue(&t, 0, STEP, x, x, 0, NULL);
    OK(queues->follow(t.queues[1], queues->point(t.queues[0])));
    enqueue(&t, 1, STEP, x, x, 0, NULL);
    open_gate(gate);
    for (int round = 0; round < 2; round++)
        for (int q = 1; q >= 0; q--) expect_failure(&t, q, SMELT_ERROR_BARRIER, "kernel 'work': thread ");
    enqueue(&t, 0, STEP, x, x, 0, NULL);
    expect_failure(&t, 0, SMELT_ERROR_BARRIER, "kernel 'work': thread ");
    assert_int_equal(data_of(x)[0], 1);
    OK(queues->follow(other, opened)); /* before the failure */
    OK(queues->wait(other));
    queues->close(other);
    smelt_array *all[] = {x, y, gate};
    for (int i = 0; i < 3; i++) smelt_array_release(all[i]);
    end(&t);
}

static void an_interrupt_ends_the_launches_of_its_call(void **state) {
    struct test t = begin(state);
    smelt_array *gate = array_of(1, 0), *x = array_of(64, 1);
    smelt_interrupt *interrupt;
    OK(smelt_interrupt_create(&interrupt));
    enqueue(&t, 0, GATE, t.zero, gate, 0, interrupt);
    enqueue(&t, 0, STEP, x, x, 0, interrupt);
    enqueue(&t, 1, STEP, x, x, 0, NULL);
    wait_for(&t, 1);
    smelt_interrupt_raise(interrupt);
    smelt_interrupt_release(interrupt); /* the queue has references */
    expect_failure(&t, 0, SMELT_ERROR_INTERRUPTED, "interrupted");
    assert_int_equal(data_of(x)[0], 1 * 3 + 64);
    smelt_array_release(gate);
    smelt_array_release(x);
    end(&t);
}

static void memory_lives_until_its_launch_has_ended(void **state) {
    struct test t = begin(state);
    smelt_array *gate = array_of(1, 0), *x = array_of(5000, 1), *y = array_of(5000, -1);
    struct memory *memory = x->memory;
    memory_retain(memory);
    enqueue(&t, 0, GATE, t.zero, gate, 0, NULL);
    enqueue(&t, 0, STEP, x, x, 0, NULL);
    enqueue(&t, 0, STEP, x, y, 0, NULL);
    smelt_array_release(x);
    assert_true(atomic_load(&memory->references) > 1);
    open_gate(gate);
    wait_for(&t, 0);
    assert_int_equal(atomic_load(&memory->references), 1);
    assert_int_equal(data_of(y)[4999], (1 * 3 + 5000) * 3 + 5000);
    memory_release(memory);
    smelt_array_release(gate);
    smelt_array_release(y);
    end(&t);
}

static void closing_waits(void **state) {
    struct test t = begin(state);
    smelt_array *x = array_of(5000, 1);
    for (int step = 0; step < 8; step++) enqueue(&t, 0, STEP, x, x, 0, NULL);
    end(&t);
    int32_t wanted = 1;
    for (int step = 0; step < 8; step++) wanted = wanted * 3 + 5000;
    assert_int_equal(data_of(x)[4999], wanted);
    smelt_array_release(x);
}

#define ON_BOTH(test) \
    {#test " simd", test, NULL, NULL, "cpu"}, {#test " scalar", test, NULL, NULL, "cpu-scalar"}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_BOTH(launches_of_a_queue_run_in_order),
        ON_BOTH(arguments_that_only_the_edge_uses_are_kept),
        ON_BOTH(queues_run_at_the_same_time),
        ON_BOTH(a_queue_follows_a_point_of_another),
        ON_BOTH(a_failure_ends_what_comes_after_it),
        ON_BOTH(an_interrupt_ends_the_launches_of_its_call),
        ON_BOTH(memory_lives_until_its_launch_has_ended),
        ON_BOTH(closing_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
