/* The GPUs for which a device's code is generated, and on which it runs. */
#include "unit.h"

#include "device/gpu_shape.h"
#include "frontend/gpu_target.h"

static void each_device_has_a_target(void **state) {
    (void)state;
    static const struct {
        int capability;
        const char *target;
    } cases[] = {{70, NULL},     {75, NULL},     {80, "sm_80"},   {86, "sm_86"},  {87, "sm_87"},
                 {88, "sm_87"},  {89, "sm_89"},  {90, "sm_90a"},  {100, "sm_90"}, {103, "sm_90"},
                 {120, "sm_90"}, {121, "sm_90"}, {9999, "sm_90"}, {0, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = gpu_target_of(cases[i].capability);
        if (!found || !cases[i].target)
            assert_ptr_equal(found, cases[i].target);
        else
            assert_string_equal(found, cases[i].target);
    }
}

static void names_that_are_targets(void **state) {
    (void)state;
    int count = 0;
    for (const char *name; (name = gpu_target_at(count)); count++) {
        assert_string_equal(gpu_target_named(name), name);
        assert_true(*gpu_target_features(name) == '+');
    }
    assert_int_equal(count, 6);
    assert_null(gpu_target_at(-1));
    assert_null(gpu_target_named("sm_75"));
    assert_null(gpu_target_named("sm_90A"));
    assert_null(gpu_target_named(""));
    assert_string_equal(gpu_target_features("sm_75"), "");
}

/* PTX runs on newer GPUs, except PTX for one device only. */
static void code_runs_on_its_device_and_newer_ones(void **state) {
    (void)state;
    /* By the device's target: which codes run there, as letters y and n in the table's order. */
    static const struct {
        const char *here, *runs;
    } cases[] = {{"sm_80", "ynnnnn"}, {"sm_86", "yynnnn"}, {"sm_87", "yyynnn"},
                 {"sm_89", "yyyynn"}, {"sm_90", "yyyyyn"}, {"sm_90a", "yyyyyy"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int before = -1;
        for (int i = 0; gpu_target_at(i); i++) {
            int rank = -1;
            bool runs = gpu_target_runs(gpu_target_at(i), cases[c].here, &rank);
            if (runs != (cases[c].runs[i] == 'y'))
                FAIL_TEST("%s's code on %s: %d", gpu_target_at(i), cases[c].here, runs);
            if (!runs) continue;
            assert_true(rank > before);
            before = rank;
        }
    }
    int rank;
    assert_false(gpu_target_runs("sm_75", "sm_90a", &rank));
    assert_false(gpu_target_runs("sm_80", "sm_75", &rank));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_device_has_a_target),
        cmocka_unit_test(names_that_are_targets),
        cmocka_unit_test(code_runs_on_its_device_and_newer_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
