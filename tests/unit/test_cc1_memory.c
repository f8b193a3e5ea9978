/* smelt-cc1's malloc, under other names: its blocks are aligned, large enough, and do not overlap. */
#include "unit.h"

#include <malloc.h>
#include <stdlib.h>

#define malloc tested_malloc
#define free tested_free
#define calloc tested_calloc
#define realloc tested_realloc
#define memalign tested_memalign
#define aligned_alloc tested_aligned_alloc
#define posix_memalign tested_posix_memalign
#define malloc_usable_size tested_malloc_usable_size
#define mallinfo(nothing) tested_mallinfo(nothing)
#define mallinfo2(nothing) tested_mallinfo2(nothing)
#include "cc1/memory.c"
#undef malloc
#undef free
#undef calloc
#undef realloc
#undef memalign
#undef aligned_alloc
#undef posix_memalign
#undef malloc_usable_size
#undef mallinfo
#undef mallinfo2

#define BLOCKS 1000
#define ROUNDS 40000

static uint64_t seed = 1;

static size_t draw(size_t below) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (size_t)(seed >> 33) % below;
}

/* Mostly small, as in a compile. */
static size_t draw_size(void) {
    static const size_t below[] = {100, 100, 100, 1000, 1000, 10000, 100000, 300000};
    return draw(below[draw(sizeof below / sizeof *below)]);
}

struct block {
    unsigned char *memory;
    size_t size;
    unsigned char byte; /* in all of it */
};

static void fill(struct block *block) {
    block->byte = (unsigned char)draw(256);
    memset(block->memory, block->byte, block->size);
}

static void expect_whole(const struct block *block, size_t size) {
    bool same = true;
    for (size_t i = 0; i < size; i++) same &= block->memory[i] == block->byte;
    assert_true(same);
}

static void take_one(struct block *block) {
    size_t size = draw_size(), alignment = 16;
    switch (draw(4)) {
    case 0:
        block->memory = tested_calloc(1, size);
        expect_whole(&(struct block){block->memory, size, 0}, size);
        break;
    case 1:
        alignment = (size_t)1 << (4 + draw(9));
        block->memory = tested_aligned_alloc(alignment, size);
        break;
    default:
        block->memory = tested_malloc(size);
    }
    assert_non_null(block->memory);
    assert_int_equal((uintptr_t)block->memory % alignment, 0);
    assert_true(tested_malloc_usable_size(block->memory) >= size);
    block->size = size;
    fill(block);
}

static void resize_one(struct block *block) {
    size_t size = draw_size(), kept = size < block->size ? size : block->size;
    block->memory = tested_realloc(block->memory, size);
    assert_non_null(block->memory);
    assert_int_equal((uintptr_t)block->memory % 16, 0);
    assert_true(tested_malloc_usable_size(block->memory) >= size);
    expect_whole(block, kept);
    block->size = size;
    fill(block);
}

static void blocks_keep_what_is_written(void **state) {
    (void)state;
    static struct block blocks[BLOCKS];
    for (int i = 0; i < ROUNDS; i++) {
        struct block *block = &blocks[draw(BLOCKS)];
        if (!block->memory) {
            take_one(block);
        } else if (draw(4) == 0) {
            resize_one(block);
        } else {
            expect_whole(block, block->size);
            tested_free(block->memory);
            block->memory = NULL;
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].memory) expect_whole(&blocks[i], blocks[i].size);
        tested_free(blocks[i].memory);
    }
}

static void a_class_holds_its_sizes(void **state) {
    (void)state;
    for (size_t size = 1; size < LARGE; size += 1 + size / 70) {
        unsigned class = class_of(size);
        assert_true(class < CLASSES);
        assert_true(size_of(class) >= size);
        assert_int_equal(size_of(class) % 16, 0);
        if (class > 0) assert_true(size_of(class - 1) < size);
    }
    assert_int_equal(class_of(LARGE), CLASSES - 1);
}

/* On both sides of LARGE. */
static void large_blocks_are_mappings(void **state) {
    (void)state;
    for (size_t size = LARGE - 64; size <= LARGE + 64; size += 8) {
        struct block block = {tested_malloc(size), size, 0};
        assert_non_null(block.memory);
        fill(&block);
        block.memory = tested_realloc(block.memory, 2 * size);
        expect_whole(&block, size);
        block.memory = tested_realloc(block.memory, 100);
        expect_whole(&block, 100);
        tested_free(block.memory);
        block.memory = tested_aligned_alloc(4096, size);
        assert_int_equal((uintptr_t)block.memory % 4096, 0);
        fill(&block);
        tested_free(block.memory);
    }
}

static void free_blocks_are_used_again(void **state) {
    (void)state;
    void *first = tested_malloc(1000);
    tested_free(first);
    assert_ptr_equal(tested_malloc(990), first);
}

static void too_much_is_an_error(void **state) {
    (void)state;
    volatile size_t most = SIZE_MAX;
    errno = 0;
    assert_null(tested_malloc(most));
    assert_int_equal(errno, ENOMEM);
    assert_null(tested_malloc(most - 4096));
    assert_null(tested_calloc(most / 2, 3));
    assert_null(tested_aligned_alloc(4096, most - 8));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_keep_what_is_written), cmocka_unit_test(a_class_holds_its_sizes),
        cmocka_unit_test(large_blocks_are_mappings),   cmocka_unit_test(free_blocks_are_used_again),
        cmocka_unit_test(too_much_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
