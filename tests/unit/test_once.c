/* Identical work runs once, in a process and across processes, and only so many compilers run at once. */
#include "unit.h"

#include "base/interrupt.h"
#include "frontend/cache.h"
#include "frontend/compile_slot.h"
#include "frontend/compiling.h"
#include "frontend/once.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 32

static struct hash new_key(void) {
    static uint64_t made;
    uint64_t words[] = {(uint64_t)getpid(), (uint64_t)time(NULL), made++};
    return hash_bytes((const char *)words, sizeof words);
}

static void sleep_milliseconds(long milliseconds) {
    struct timespec time = {.tv_nsec = milliseconds * 1000000};
    nanosleep(&time, NULL);
}

static char *take_cache_away(void) {
    const char *setting = getenv("SMELT_CACHE_DIR");
    char *before = string_copy(setting ? setting : "", setting ? strlen(setting) : 0);
    assert_non_null(before);
    setenv("SMELT_CACHE_DIR", "/proc/no/such/folder", 1);
    return before;
}

static void give_cache_back(char *before) {
    setenv("SMELT_CACHE_DIR", before, 1); /* empty: as if it were not set */
    free(before);
}

/* ---- Threads. */

struct crowd {
    struct hash key;
    smelt_status outcome;
    smelt_interrupt *first; /* ends the call of the thread that does the work first */
    atomic_int worked, waiting;
    atomic_bool cached; /* as a cache has what was done */
};

struct member {
    struct crowd *crowd;
    pthread_t thread;
    smelt_status status;
    char message[128];
    struct text result;
};

/* Long enough for most of the others to arrive. */
static smelt_status work(struct crowd *crowd) {
    if (atomic_load(&crowd->cached)) return SMELT_OK;
    int before = atomic_fetch_add(&crowd->worked, 1);
    while (atomic_load(&crowd->waiting) < THREADS) sleep_milliseconds(2);
    sleep_milliseconds(100);
    if (crowd->first && before == 0) return SMELT_ERROR_INTERRUPTED;
    if (crowd->outcome != SMELT_OK) return fail(crowd->outcome, "no luck with '%s'", "it");
    atomic_store(&crowd->cached, true);
    return SMELT_OK;
}

static void *join_in(void *argument) {
    struct member *member = argument;
    struct once *mine;
    atomic_fetch_add(&member->crowd->waiting, 1);
    member->status = once_begin(member->crowd->key, &mine, &member->result);
    if (member->status == SMELT_OK && mine) {
        struct bytes piece = {"result", 6};
        member->status = work(member->crowd);
        once_end(mine, member->status, &piece);
        text_append(&member->result, "result", 6);
    }
    snprintf(member->message, sizeof member->message, "%s", smelt_error());
    return NULL;
}

static void run_crowd(struct crowd *crowd, struct member members[THREADS]) {
    crowd->key = new_key();
    for (int i = 0; i < THREADS; i++) {
        members[i] = (struct member){.crowd = crowd};
        assert_int_equal(pthread_create(&members[i].thread, NULL, join_in, &members[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(members[i].thread, NULL);
}

static void free_results(struct member members[THREADS]) {
    for (int i = 0; i < THREADS; i++) text_free(&members[i].result);
}

static void one_thread_works_and_all_have_the_result(void **state) {
    (void)state;
    struct crowd crowd = {.outcome = SMELT_OK};
    struct member members[THREADS];
    run_crowd(&crowd, members);
    assert_int_equal(crowd.worked, 1);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(members[i].status, SMELT_OK);
        assert_string_equal(text_string(&members[i].result), "result");
    }
    free_results(members);
}

static void a_failure_is_everybody_s(void **state) {
    (void)state;
    struct crowd crowd = {.outcome = SMELT_ERROR_LIMIT};
    struct member members[THREADS];
    run_crowd(&crowd, members);
    /* One that comes when it is over tries again. */
    assert_in_range(crowd.worked, 1, THREADS / 2);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(members[i].status, SMELT_ERROR_LIMIT);
        assert_string_equal(members[i].message, "no luck with 'it'");
    }
    free_results(members);
}

static void another_takes_over_from_one_that_was_interrupted(void **state) {
    (void)state;
    struct crowd crowd = {.outcome = SMELT_OK};
    struct member members[THREADS];
    int interrupted = 0;
    assert_int_equal(smelt_interrupt_create(&crowd.first), SMELT_OK);
    run_crowd(&crowd, members);
    assert_int_equal(crowd.worked, 2);
    for (int i = 0; i < THREADS; i++) interrupted += members[i].status == SMELT_ERROR_INTERRUPTED;
    assert_int_equal(interrupted, 1);
    free_results(members);
    smelt_interrupt_release(crowd.first);
}

static void waiting_can_be_interrupted(void **state) {
    (void)state;
    struct crowd crowd = {.key = new_key()};
    struct member member = {.crowd = &crowd};
    struct once *mine, *none = NULL;
    struct text result = {0};
    smelt_interrupt *interrupt;
    assert_int_equal(smelt_interrupt_create(&interrupt), SMELT_OK);
    assert_int_equal(once_begin(crowd.key, &mine, &result), SMELT_OK);
    assert_non_null(mine);
    smelt_interrupt_raise(interrupt);
    smelt_interrupt *outer = interrupt_begin_call(interrupt);
    assert_int_equal(once_begin(crowd.key, &none, &result), SMELT_ERROR_INTERRUPTED);
    interrupt_end_call(outer);
    assert_null(none);
    once_end(mine, SMELT_OK, &(struct bytes){"", 0});
    /* And the work can be done again. */
    crowd.waiting = THREADS;
    join_in(&member);
    assert_int_equal(crowd.worked, 1);
    text_free(&member.result);
    smelt_interrupt_release(interrupt);
}

static void a_thread_does_not_wait_for_itself(void **state) {
    (void)state;
    struct hash key = new_key();
    struct once *outer, *inner;
    struct text result = {0};
    /* Without the wait for the lock of the outer one. */
    char *before = take_cache_away();
    assert_int_equal(once_begin(key, &outer, &result), SMELT_OK);
    assert_int_equal(once_begin(key, &inner, &result), SMELT_OK);
    assert_non_null(inner);
    once_end(inner, SMELT_OK, NULL);
    once_end(outer, SMELT_OK, NULL);
    give_cache_back(before);
}

/* ---- Processes. */

/* A child that has the lock of `key`. */
static pid_t start_holder(struct hash key) {
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        cache_lock lock;
        byte = cache_lock_key(key, 5, &lock) == SMELT_OK && lock >= 0 ? 'y' : 'n';
        alarm(120); /* if the test fails, too */
        if (write(ready[1], &byte, 1) == 1) pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    assert_int_equal(byte, 'y');
    return child;
}

static void *kill_soon(void *child) {
    sleep_milliseconds(100);
    kill(*(pid_t *)child, SIGKILL);
    return NULL;
}

static void a_lock_is_waited_for(void **state) {
    (void)state;
    struct hash key = new_key();
    cache_lock lock;
    pthread_t killer;
    pid_t child = start_holder(key);
    assert_int_equal(pthread_create(&killer, NULL, kill_soon, &child), 0);
    assert_int_equal(cache_lock_key(key, 1000, &lock), SMELT_OK);
    assert_true(lock >= 0);
    cache_unlock(lock);
    pthread_join(killer, NULL);
    waitpid(child, NULL, 0);
}

static void the_dead_hold_no_locks(void **state) {
    (void)state;
    struct hash key = new_key();
    cache_lock lock;
    pid_t child = start_holder(key);
    assert_int_equal(cache_lock_key(key, 0.01, &lock), SMELT_OK);
    assert_int_equal(lock, -1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(cache_lock_key(key, 5, &lock), SMELT_OK);
    assert_true(lock >= 0);
    cache_unlock(lock);
}

static void the_stopped_are_not_waited_for(void **state) {
    (void)state;
    struct hash key = new_key();
    cache_lock lock;
    pid_t child = start_holder(key);
    kill(child, SIGSTOP);
    assert_int_equal(cache_lock_key(key, 0.05, &lock), SMELT_OK);
    assert_int_equal(lock, -1);
    cache_lock_key(new_key(), 0.05, &lock);
    assert_true(lock >= 0);
    cache_unlock(lock);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void a_wait_for_a_lock_is_interrupted(void **state) {
    (void)state;
    struct hash key = new_key();
    cache_lock lock;
    smelt_interrupt *interrupt;
    pid_t child = start_holder(key);
    assert_int_equal(smelt_interrupt_create(&interrupt), SMELT_OK);
    smelt_interrupt_raise(interrupt);
    smelt_interrupt *outer = interrupt_begin_call(interrupt);
    assert_int_equal(cache_lock_key(key, 1000, &lock), SMELT_ERROR_INTERRUPTED);
    interrupt_end_call(outer);
    smelt_interrupt_release(interrupt);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* A fork of the host inherits the open file, and must not keep what its parent gave back. */
static void forks_keep_no_locks(void **state) {
    (void)state;
    struct hash key = new_key();
    cache_lock lock, again;
    assert_int_equal(cache_lock_key(key, 5, &lock), SMELT_OK);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    cache_unlock(lock);
    assert_int_equal(cache_lock_key(key, 5, &again), SMELT_OK);
    assert_true(again >= 0);
    cache_unlock(again);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void without_a_cache_there_are_no_locks(void **state) {
    (void)state;
    cache_lock lock = 7;
    char *before = take_cache_away();
    assert_int_equal(cache_lock_key(new_key(), 1000, &lock), SMELT_OK);
    assert_int_equal(lock, -1);
    cache_unlock(lock);
    give_cache_back(before);
}

/* ---- Slots. */

static atomic_int running, most;

static void *use_slot(void *unused) {
    struct compile_slot slot;
    (void)unused;
    if (compile_slot_take(&slot) != SMELT_OK) return "failed";
    int now = atomic_fetch_add(&running, 1) + 1;
    for (int seen = atomic_load(&most); now > seen && !atomic_compare_exchange_weak(&most, &seen, now);) {
    }
    sleep_milliseconds(5);
    atomic_fetch_sub(&running, 1);
    compile_slot_give(&slot);
    return NULL;
}

static void count_running(void) {
    pthread_t threads[THREADS];
    most = 0;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_slot, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failure;
        pthread_join(threads[i], &failure);
        assert_null(failure);
    }
    assert_in_range(most, 1, compile_slots());
}

/* Among threads, with the locks among processes and without. */
static void as_many_compilers_as_cpus(void **state) {
    (void)state;
    count_running();
    char *before = take_cache_away();
    count_running();
    give_cache_back(before);
}

static void a_wait_for_a_slot_is_interrupted(void **state) {
    (void)state;
    int count = compile_slots();
    struct compile_slot *slots = calloc((size_t)count, sizeof *slots), more;
    smelt_interrupt *interrupt;
    assert_int_equal(smelt_interrupt_create(&interrupt), SMELT_OK);
    for (int i = 0; i < count; i++) assert_int_equal(compile_slot_take(&slots[i]), SMELT_OK);
    smelt_interrupt_raise(interrupt);
    smelt_interrupt *outer = interrupt_begin_call(interrupt);
    assert_int_equal(compile_slot_take(&more), SMELT_ERROR_INTERRUPTED);
    interrupt_end_call(outer);
    for (int i = 0; i < count; i++) compile_slot_give(&slots[i]);
    smelt_interrupt_release(interrupt);
    free(slots);
}

/* ---- All of it: one new library in many threads. */

static char library_text[400];

struct load {
    pthread_t thread;
    int preprocessed, translated, generated;
    float result;
    const char *failure;
};

static smelt_status load_and_run(float *result) {
    smelt_library *library = NULL;
    smelt_function *function = NULL;
    smelt_array *array = NULL;
    smelt_status status = smelt_library_create(&(smelt_library_desc){.source = library_text}, &library);
    if (status == SMELT_OK)
        status = smelt_library_function(library, &(smelt_function_desc){.name = "fill"}, &function);
    if (status == SMELT_OK)
        status = smelt_array_create(SMELT_FLOAT32, (smelt_shape){.ndim = 1, .size = {32}}, &array);
    if (status == SMELT_OK)
        status = smelt_function_run(
            function,
            &(smelt_dispatch_desc){.buffers = {{.array = array}}, .groups = {1}, .threadgroup = {32}});
    if (status == SMELT_OK) *result = ((const float *)smelt_array_data(array))[31];
    smelt_array_release(array);
    smelt_function_release(function);
    smelt_library_release(library);
    return status;
}

static void *load(void *argument) {
    struct load *load = argument;
    struct compile_record record;
    compile_record_begin(&record);
    if (load_and_run(&load->result) != SMELT_OK) load->failure = strdup(smelt_error());
    compile_record_end();
    for (int i = 0; i < record.count; i++) {
        load->preprocessed += record.stages[i].kind == COMPILE_STAGE_PREPROCESS;
        load->translated += record.stages[i].kind == COMPILE_STAGE_CLANG;
        load->generated += record.stages[i].kind == COMPILE_STAGE_CODE;
    }
    return NULL;
}

static void a_library_compiles_once(void **state) {
    (void)state;
    struct load loads[THREADS] = {0};
    int preprocessed = 0, translated = 0, generated = 0;
    /* #include makes clang preprocess it; the name is new. */
    snprintf(library_text, sizeof library_text,
             "#include <metal_stdlib>\n#if 1\nusing namespace metal;\n#endif\n// %ld %lld\n"
             "kernel void fill(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
             "    y[i] = float(i) + %ld;\n}\n",
             (long)getpid(), (long long)time(NULL), (long)getpid() % 1000);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&loads[i].thread, NULL, load, &loads[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(loads[i].thread, NULL);
        if (loads[i].failure) FAIL_TEST("%s", loads[i].failure);
        assert_true(loads[i].result == 31 + (float)(getpid() % 1000));
        preprocessed += loads[i].preprocessed;
        translated += loads[i].translated;
        generated += loads[i].generated;
    }
    assert_int_equal(preprocessed, 1);
    assert_int_equal(translated, 1);
    assert_int_equal(generated, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_works_and_all_have_the_result),
        cmocka_unit_test(a_failure_is_everybody_s),
        cmocka_unit_test(another_takes_over_from_one_that_was_interrupted),
        cmocka_unit_test(waiting_can_be_interrupted),
        cmocka_unit_test(a_thread_does_not_wait_for_itself),
        cmocka_unit_test(a_lock_is_waited_for),
        cmocka_unit_test(the_dead_hold_no_locks),
        cmocka_unit_test(the_stopped_are_not_waited_for),
        cmocka_unit_test(a_wait_for_a_lock_is_interrupted),
        cmocka_unit_test(forks_keep_no_locks),
        cmocka_unit_test(without_a_cache_there_are_no_locks),
        cmocka_unit_test(as_many_compilers_as_cpus),
        cmocka_unit_test(a_wait_for_a_slot_is_interrupted),
        cmocka_unit_test(a_library_compiles_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
