/* What a compile says about itself: the stages that ended, and what runs at the moment. */
#include "unit.h"

#include "frontend/compiling.h"
#include "smelt/smelt.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A kernel that no cache has seen. */
static void run_new_kernel(struct compile_record *record) {
    char name[64];
    smelt_kernel *kernel;
    smelt_array *output = NULL;
    snprintf(name, sizeof name, "staged_%ld_%lld", (long)getpid(), (long long)time(NULL));
    assert_int_equal(smelt_kernel_create(&(smelt_kernel_desc){.name = name,
                                                              .source = "out[thread_position_in_grid.x] = 7;",
                                                              .outputs = {"out"}},
                                         &kernel),
                     SMELT_OK);
    compile_record_begin(record);
    smelt_status status = smelt_kernel_run(kernel,
                                           &(smelt_run_desc){.grid = {32},
                                                             .threadgroup = {32},
                                                             .output_shapes = {{.ndim = 1, .size = {32}}},
                                                             .output_dtypes = {SMELT_INT32}},
                                           &output);
    compile_record_end();
    if (status != SMELT_OK) FAIL_TEST("%s", smelt_error());
    smelt_array_release(output);
    smelt_kernel_release(kernel);
}

static void check_stage(const struct compile_stage *stage, enum compile_stage_kind kind) {
    assert_string_equal(compile_stage_name(stage->kind), compile_stage_name(kind));
    assert_true(stage->start > 0 && stage->end >= stage->start);
    assert_true(stage->processor > 0);
}

static void stages_are_recorded_in_order(void **state) {
    (void)state;
    struct compile_record record;
    static const enum compile_stage_kind last[] = {COMPILE_STAGE_CLANG, COMPILE_STAGE_OPTIMISE,
                                                   COMPILE_STAGE_VECTORISE, COMPILE_STAGE_CODE};
    run_new_kernel(&record);
    /* Before them there may be the prelude. */
    assert_true(record.count >= 4);
    for (int i = 0; i < 4; i++) check_stage(&record.stages[record.count - 4 + i], last[i]);
    for (int i = 1; i < 4; i++) assert_true(record.stages[record.count - 4 + i].instructions > 0);
}

static void what_runs_is_listed(void **state) {
    (void)state;
    struct compiling first, second;
    struct compiling_view views[2];
    assert_int_equal(compiling_list(views, 2), 0);
    compiling_begin(&first, "one");
    compiling_begin(&second, "two");
    compile_stage_begin(second.progress, COMPILE_STAGE_CLANG);
    compile_stage_end(second.progress, 123);
    compile_stage_begin(second.progress, COMPILE_STAGE_OPTIMISE);
    assert_int_equal(compiling_list(views, 2), 2);
    assert_int_equal(compiling_list(views, 1), 2);
    assert_string_equal(views[0].name, "two");
    assert_int_equal(views[0].stage, COMPILE_STAGE_OPTIMISE);
    assert_true(views[0].since > 0);
    assert_int_equal(views[0].finished_count, 1);
    assert_int_equal(views[0].finished[0].instructions, 123);
    compiling_end(&second);
    assert_int_equal(compiling_list(views, 2), 1);
    assert_string_equal(views[0].name, "one");
    compiling_end(&first);
    assert_int_equal(compiling_list(views, 2), 0);
}

/* Another process writes the counts: they cannot lead a reader out of bounds. */
static void nonsense_is_cut(void **state) {
    (void)state;
    struct compile_progress progress = {0};
    struct compile_stage stages[COMPILE_MOST_STAGES];
    atomic_store(&progress.count, UINT32_MAX);
    assert_int_equal(compile_progress_read(&progress, stages), COMPILE_MOST_STAGES);
    assert_string_equal(compile_stage_name(UINT32_MAX), "compile");
    for (int i = 0; i < 2 * COMPILE_MOST_STAGES; i++) {
        compile_stage_begin(&progress, COMPILE_STAGE_CODE);
        compile_stage_end(&progress, 1);
    }
    atomic_store(&progress.count, 0);
    for (int i = 0; i < 2 * COMPILE_MOST_STAGES; i++) {
        compile_stage_begin(&progress, COMPILE_STAGE_CODE);
        compile_stage_end(&progress, 1);
    }
    assert_int_equal(atomic_load(&progress.count), COMPILE_MOST_STAGES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stages_are_recorded_in_order),
                                       cmocka_unit_test(what_runs_is_listed),
                                       cmocka_unit_test(nonsense_is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
