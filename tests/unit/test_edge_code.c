/* A kernel that is too large for vector code: scalar code for groups of one size must not run the smaller
 * groups at a grid's edge, in the same launch or in a later one. */
#include "unit.h"

#include "base/text.h"
#include "smelt/smelt.h"

#include <stdlib.h>
#include <string.h>

/* Of four instructions each: past the budget of a thread's code where a simdgroup takes eight registers. */
#define STEPS 2500
/* What a thread adds to the size of its group, which is not known before the launch. */
#define ADDED 1000

static smelt_kernel *make_kernel(void) {
    struct text text = {0};
    smelt_kernel *kernel;
    /* A barrier: groups of a known size have code of their own. */
    text_add(&text,
             "uint i = thread_position_in_grid.x, x = i; threadgroup_barrier(mem_flags::mem_threadgroup);\n");
    for (int s = 0; s < STEPS; s++) text_addf(&text, "x = x * %du + (x >> %d);\n", 2 * s + 3, s % 13 + 1);
    text_add(&text, "out[i] = (x & zero[0]) + threads_per_threadgroup.x + added[0];\n");
    OK(smelt_kernel_create(
        &(smelt_kernel_desc){
            .name = "steps", .source = text_string(&text), .inputs = {"zero", "added"}, .outputs = {"out"}},
        &kernel));
    text_free(&text);
    return kernel;
}

static void run(smelt_kernel *kernel, uint32_t threads, uint32_t group) {
    static const uint32_t values[2] = {0, ADDED};
    smelt_array *in[2], *out;
    for (int i = 0; i < 2; i++)
        OK(smelt_array_from_values(SMELT_UINT32, (smelt_shape){1, {1}}, &values[i], &in[i]));
    OK(smelt_kernel_run(kernel,
                        &(smelt_run_desc){.inputs = {in[0], in[1]},
                                          .grid = {threads},
                                          .threadgroup = {group},
                                          .output_shapes = {{1, {threads}}},
                                          .output_dtypes = {SMELT_UINT32},
                                          .initialise = true,
                                          .init_value = 77},
                        &out));
    const uint32_t *found = smelt_array_data(out);
    for (uint32_t i = 0; i < threads; i++) {
        uint32_t first = i / group * group, size = threads - first < group ? threads - first : group;
        if (found[i] != size + ADDED)
            FAIL_TEST("thread %u of %u in groups of %u: a group of %u, expected %u", i, threads, group,
                      found[i] - ADDED, size);
    }
    smelt_array_release(out);
    for (int i = 0; i < 2; i++) smelt_array_release(in[i]);
}

static void full_groups_come_first(void **state) {
    (void)state;
    smelt_kernel *kernel = make_kernel();
    run(kernel, 128, 64);
    run(kernel, 100, 64);
    run(kernel, 50, 64);
    smelt_kernel_release(kernel);
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(full_groups_come_first)};
    setenv("SMELT_CPU", "sse2", 1); /* its simdgroups take the most registers */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
