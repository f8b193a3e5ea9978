/* smelt_set_progress: what is told of compiles that take a second, and when it ends. */
#include "unit.h"

#include "base/clock.h"
#include "frontend/compiling.h"
#include "smelt/smelt.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The last call, and how many there were. */
static struct told {
    char kernel[64], stage[64];
    bool ended;
    double seconds, least_seconds;
    int others, calls;
} told;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void receive(const smelt_progress *progress, void *context) {
    pthread_mutex_lock(&lock);
    assert_ptr_equal(context, &told);
    told.ended = !progress->stage;
    snprintf(told.kernel, sizeof told.kernel, "%s", progress->kernel);
    snprintf(told.stage, sizeof told.stage, "%s", progress->stage ? progress->stage : "");
    told.seconds = progress->seconds;
    if (!told.calls++ || progress->seconds < told.least_seconds) told.least_seconds = progress->seconds;
    told.others = progress->others;
    pthread_mutex_unlock(&lock);
}

static struct told look(void) {
    pthread_mutex_lock(&lock);
    struct told now = told;
    pthread_mutex_unlock(&lock);
    return now;
}

/* Until the stage is told; a minute is longer than any load of the machine should take. */
static struct told await(const char *stage) {
    struct timespec pause = {.tv_nsec = 10000000};
    struct told now = look();
    for (double limit = clock_seconds() + 60; strcmp(now.stage, stage) != 0 && clock_seconds() < limit;) {
        nanosleep(&pause, NULL);
        now = look();
    }
    assert_string_equal(now.stage, stage);
    return now;
}

static int begin(void **state) {
    (void)state;
    memset(&told, 0, sizeof told);
    smelt_set_progress(receive, &told);
    return 0;
}

static int end(void **state) {
    (void)state;
    smelt_set_progress(NULL, NULL);
    return 0;
}

static void a_long_compile_is_told_from_its_first_second_to_its_end(void **state) {
    (void)state;
    struct compiling compiling;
    compiling_begin(&compiling, "slow");
    compile_stage_begin(compiling.progress, COMPILE_STAGE_CLANG);
    struct told now = await("clang");
    assert_string_equal(now.kernel, "slow");
    assert_int_equal(now.others, 0);
    assert_true(now.least_seconds >= 1);
    compile_stage_end(compiling.progress, 1);
    compile_stage_begin(compiling.progress, COMPILE_STAGE_CODE);
    struct told later = await("generate code");
    assert_true(later.seconds > now.seconds && !later.ended);
    compiling_end(&compiling);
    /* Told before the compile returned, and nothing after that. */
    struct told last = look();
    assert_true(last.ended && last.seconds >= later.seconds);
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    assert_int_equal(look().calls, last.calls);
}

static void of_several_the_oldest_is_told_and_the_others_counted(void **state) {
    (void)state;
    struct compiling compiling[3];
    static const char *const names[] = {"old", "young", "youngest"};
    for (int i = 0; i < 3; i++) {
        compiling_begin(&compiling[i], names[i]);
        compile_stage_begin(compiling[i].progress, i ? COMPILE_STAGE_OPTIMISE : COMPILE_STAGE_CLANG);
    }
    struct told now = await("clang");
    assert_string_equal(now.kernel, "old");
    assert_int_equal(now.others, 2);
    compiling_end(&compiling[0]);
    now = await("optimise");
    assert_string_equal(now.kernel, "young");
    assert_int_equal(now.others, 1);
    assert_false(now.ended);
    compiling_end(&compiling[2]);
    assert_false(look().ended);
    compiling_end(&compiling[1]);
    assert_true(look().ended);
}

static void compiles_that_follow_each_other_are_one_wait(void **state) {
    (void)state;
    struct compiling compiling;
    for (int i = 0; i < 8 && !look().calls; i++) {
        compiling_begin(&compiling, "part");
        compile_stage_begin(compiling.progress, COMPILE_STAGE_CLANG);
        nanosleep(&(struct timespec){.tv_nsec = 700000000}, NULL);
        compiling_end(&compiling);
    }
    /* None of them took a second, unless the machine is busy. */
    assert_true(look().calls > 0 && look().least_seconds >= 1);
}

static void without_a_receiver_nothing_is_told(void **state) {
    (void)state;
    struct compiling compiling;
    compiling_begin(&compiling, "slow");
    compile_stage_begin(compiling.progress, COMPILE_STAGE_CLANG);
    await("clang");
    smelt_set_progress(NULL, NULL);
    struct told last = look();
    assert_true(last.ended);
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    compiling_end(&compiling);
    assert_int_equal(look().calls, last.calls);
}

static char logged[200];

static void keep_line(smelt_log_level level, const char *line, void *context) {
    (void)level;
    (void)context;
    snprintf(logged, sizeof logged, "%s", line);
}

static void replace_and_receive(const smelt_progress *progress, void *context) {
    smelt_set_progress(NULL, NULL);
    receive(progress, context);
}

static void a_receiver_cannot_replace_itself(void **state) {
    (void)state;
    struct compiling compiling;
    smelt_set_progress(replace_and_receive, &told);
    smelt_set_log(keep_line, NULL);
    compiling_begin(&compiling, "slow");
    compile_stage_begin(compiling.progress, COMPILE_STAGE_CLANG);
    await("clang");
    compiling_end(&compiling);
    smelt_set_log(NULL, NULL);
    assert_true(look().ended);
    assert_string_equal(logged, "smelt_set_progress was called by a progress callback, which must not call "
                                "smelt; the callback is not replaced");
}

static void the_terminal_needs_a_progress(void **state) {
    (void)state;
    smelt_progress_on_terminal(NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_long_compile_is_told_from_its_first_second_to_its_end, begin, end),
        cmocka_unit_test_setup_teardown(of_several_the_oldest_is_told_and_the_others_counted, begin, end),
        cmocka_unit_test_setup_teardown(compiles_that_follow_each_other_are_one_wait, begin, end),
        cmocka_unit_test_setup_teardown(without_a_receiver_nothing_is_told, begin, end),
        cmocka_unit_test_setup_teardown(a_receiver_cannot_replace_itself, begin, end),
        cmocka_unit_test(the_terminal_needs_a_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
