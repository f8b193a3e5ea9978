/* Blocks of products of simdgroup matrices of bfloat (abi/matrix_block.h) against sums in double. Without
 * AMX, the runtime's code for vectors is tested; without AVX512-BF16, nothing. */
#include "abi/matrix_block.h"
#include "device/cpu/arch/matrix.h"
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define MOST_ROUNDS 40
#define LEFT_COLUMNS (8 * MOST_ROUNDS + 24)
#define RIGHT_COLUMNS 64

static uint64_t state = 88172645463325252u;

static uint32_t below(uint32_t count) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 32) % count;
}

static struct {
    uint16_t left[32][LEFT_COLUMNS], right[8 * MOST_ROUNDS][RIGHT_COLUMNS];
    float sums[2][16][4][8] __attribute__((aligned(64)));
    double expected[32][32], terms[32][32];
    uint64_t block[BLOCK_WORDS];
    int open;
} t;

static uint16_t random_bfloat(void) {
    return (uint16_t)(below(2) << 15 | (120 + below(12)) << 7 | below(128));
}

static double value_of(uint16_t bits) {
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static float *sum_at(int row, int column) {
    return &t.sums[row / 16][row % 16][column / 8][column % 8];
}

static void begin(uint64_t lefts, uint64_t rights) {
    for (int i = 0; i < 32; i++)
        for (int k = 0; k < LEFT_COLUMNS; k++) t.left[i][k] = random_bfloat();
    for (int k = 0; k < 8 * MOST_ROUNDS; k++)
        for (int j = 0; j < RIGHT_COLUMNS; j++) t.right[k][j] = random_bfloat();
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++) {
            *sum_at(i, j) = (float)value_of(random_bfloat());
            t.expected[i][j] = *sum_at(i, j);
            t.terms[i][j] = fabs(t.expected[i][j]);
        }
    uint64_t head[] = {[BLOCK_LEFTS] = lefts,
                       [BLOCK_RIGHTS] = rights,
                       [BLOCK_LEFT_ROW] = sizeof t.left[0],
                       [BLOCK_RIGHT_ROW] = sizeof t.right[0],
                       [BLOCK_SUMS] = (uintptr_t)t.sums[0],
                       [BLOCK_SUMS + 1] = (uintptr_t)t.sums[1]};
    memcpy(t.block, head, sizeof head);
}

/* A round of columns from `k` on; the right matrices lie side by side, or apart and in reverse order. */
static void note(int round, int left_column, int right_row, bool apart) {
    uint64_t lefts = t.block[BLOCK_LEFTS], rights = t.block[BLOCK_RIGHTS];
    uint64_t *operands = t.block + BLOCK_OPERANDS + round * 2 * BLOCK_MATRICES;
    for (uint64_t i = 0; i < lefts; i++) operands[i] = (uintptr_t)&t.left[8 * i][left_column];
    for (uint64_t j = 0; j < rights; j++) {
        uint64_t column = apart ? 16 * (rights - 1 - j) : 8 * j;
        operands[BLOCK_MATRICES + j] = (uintptr_t)&t.right[right_row][column];
        for (uint64_t i = 0; i < 8 * lefts; i++)
            for (uint64_t c = 0; c < 8; c++)
                for (int k = 0; k < 8; k++) {
                    double term =
                        value_of(t.left[i][left_column + k]) * value_of(t.right[right_row + k][column + c]);
                    t.expected[i][8 * j + c] += term;
                    t.terms[i][8 * j + c] += fabs(term);
                }
    }
    t.block[BLOCK_ROUNDS] = (uint64_t)round + 1;
}

static void check(uint64_t lefts, uint64_t rights, int rounds) {
    for (int i = 0; i < 8 * (int)lefts; i++)
        for (int j = 0; j < 8 * (int)rights; j++) {
            double bound = t.terms[i][j] * 16 * (rounds + 1) * 0x1p-24;
            if (!(fabs(*sum_at(i, j) - t.expected[i][j]) <= bound))
                FAIL_TEST("%d x %d matrices, %d rounds, sum %d, %d: %g, expected %g", (int)lefts, (int)rights,
                          rounds, i, j, (double)*sum_at(i, j), t.expected[i][j]);
        }
}

/* Rounds come in random portions, as from loops over staged tiles. */
static void rounds_are_added(void **unused) {
    (void)unused;
    if (!__builtin_cpu_supports("avx512bf16")) skip();
    for (int n = 0; n < 300; n++) {
        uint64_t lefts = 2 + below(3), rights = 2 + below(3);
        int rounds = (int)below(MOST_ROUNDS + 1), shuffled = (int)below(3);
        begin(lefts, rights);
        for (int done = 0; done < rounds;) {
            int count = 1 + (int)below(BLOCK_MOST_ROUNDS);
            if (count > rounds - done) count = rounds - done;
            for (int r = 0; r < count; r++) {
                int column = shuffled == 1 ? (int)below(LEFT_COLUMNS - 8) : 8 * (done + r);
                note(r, column, 8 * (done + r), shuffled == 2);
            }
            arch_matrix_block(t.block, &t.open);
            done += count;
        }
        check(lefts, rights, rounds);
    }
    arch_matrix_close(&t.open);
    assert_int_equal(t.open, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounds_are_added)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
