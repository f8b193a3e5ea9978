/* Memory of released large arrays serves new ones (array/memory_pool.h). */
#include "unit.h"

#include "array/memory_pool.h"
#include "smelt/smelt.h"

#include <string.h>

#define LARGE (INT64_C(8) << 20)
#define MANY (2 * MEMORY_POOL_BLOCKS)

static smelt_array *bytes_array(int64_t bytes) {
    smelt_array *array;
    smelt_shape shape = {.ndim = 1, .size = {bytes}};
    assert_int_equal(smelt_array_create(SMELT_UINT8, shape, &array), SMELT_OK);
    memset(smelt_array_data(array), 7, (size_t)bytes);
    return array;
}

static void a_released_block_serves_the_next_array_of_its_size(void **state) {
    (void)state;
    smelt_array *first = bytes_array(LARGE);
    const char *start = smelt_array_data(first);
    smelt_array_release(first);
    smelt_array *other = bytes_array(4 * LARGE), *small = bytes_array(100), *again = bytes_array(LARGE);
    assert_ptr_not_equal(smelt_array_data(other), start);
    assert_ptr_not_equal(smelt_array_data(small), start);
    assert_ptr_equal(smelt_array_data(again), start);
    smelt_array_release(other);
    smelt_array_release(small);
    smelt_array_release(again);
}

static void a_view_keeps_its_memory(void **state) {
    (void)state;
    smelt_array *base = bytes_array(LARGE), *view;
    smelt_shape shape = {.ndim = 1, .size = {16}};
    assert_int_equal(smelt_array_view(base, shape, NULL, 5, &view), SMELT_OK);
    const char *start = smelt_array_data(base);
    smelt_array_release(base);
    smelt_array *other = bytes_array(LARGE);
    assert_ptr_not_equal(smelt_array_data(other), start);
    smelt_array_release(view);
    smelt_array_release(other);
}

static void the_pool_is_bounded_and_can_be_emptied(void **state) {
    (void)state;
    smelt_array *arrays[MANY];
    (void)memory_pool_empty();
    for (int i = 0; i < MANY; i++) arrays[i] = bytes_array(LARGE);
    for (int i = 0; i < MANY; i++) smelt_array_release(arrays[i]);
    int kept = 0;
    char *blocks[MANY];
    size_t capacity;
    while (kept < MANY && (blocks[kept] = memory_pool_take((size_t)LARGE, &capacity))) kept++;
    assert_true(kept > 0 && kept <= MEMORY_POOL_BLOCKS);
    for (int i = 0; i < kept; i++) assert_true(memory_pool_keep(blocks[i], capacity));
    assert_true(memory_pool_empty());
    assert_null(memory_pool_take((size_t)LARGE, &capacity));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_released_block_serves_the_next_array_of_its_size),
        cmocka_unit_test(a_view_keeps_its_memory),
        cmocka_unit_test(the_pool_is_bounded_and_can_be_emptied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
