/* Blocks of products of simdgroup matrices of bfloat (abi/matrix_block.h), by AMX: tiles 0 to 3 are the sums
 * of two by two blocks of 16 × 16, 4 and 5 the left matrices, 6 and 7 the right ones. Configuring the tiles
 * takes longer than a block (133 ns on a Xeon at 2.8 GHz), so they stay configured until the worker closes
 * them.
 *
 * Where the system refuses AMX, vectors of AVX512-BF16, which all CPUs with AMX have, do the same. */
#include "abi/matrix_block.h"
#include "device/cpu/arch/matrix.h"
#include "device/cpu/arch/x86_64/tile.h"

#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <string.h>

#define SIDE 16
#define ROW_BYTES 16 /* of a matrix of bfloats */
#define SUM_ROW_BYTES 128
#define PAIRS 4 /* of rows of a right matrix */

static bool permitted;

static void find_permission(void) {
    unsigned a, b, c, d = 0;
    permitted =
        __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1) && tile_amx_permitted();
}

static bool has_tiles(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_permission);
    return permitted;
}

/* ---- Operands. */

struct operands {
    const char *left[2]; /* of each two left matrices, 16 rows … */
    int64_t left_row;    /* … this many bytes apart */
    uint32_t right[2][BLOCK_MOST_ROUNDS * PAIRS][SIDE] __attribute__((aligned(64)));
    char copies[2][SIDE][BLOCK_MOST_ROUNDS * ROW_BYTES] __attribute__((aligned(64)));
};

static const char *left_of(const uint64_t *block, uint64_t round, uint64_t matrix) {
    return (const char *)(uintptr_t)block[BLOCK_OPERANDS + round * 2 * BLOCK_MATRICES + matrix];
}
static const char *right_of(const uint64_t *block, uint64_t round, uint64_t matrix) {
    return left_of(block, round, BLOCK_MATRICES + matrix);
}

/* Whether the rounds' columns follow each other in memory, and the rows of each two left matrices. */
static bool is_dense(const uint64_t *block) {
    if (block[BLOCK_LEFTS] % 2) return false;
    for (uint64_t i = 0; i < block[BLOCK_LEFTS]; i++) {
        for (uint64_t r = 1; r < block[BLOCK_ROUNDS]; r++)
            if (left_of(block, r, i) != left_of(block, r - 1, i) + ROW_BYTES) return false;
        if (i % 2 && left_of(block, 0, i) != left_of(block, 0, i - 1) + 8 * (int64_t)block[BLOCK_LEFT_ROW])
            return false;
    }
    return true;
}

static void take_left(const uint64_t *block, struct operands *o) {
    bool dense = is_dense(block);
    int64_t row = (int64_t)block[BLOCK_LEFT_ROW];
    o->left_row = dense ? row : BLOCK_MOST_ROUNDS * ROW_BYTES;
    for (uint64_t i = 0; i < block[BLOCK_LEFTS]; i++) {
        if (i % 2 == 0) o->left[i / 2] = dense ? left_of(block, 0, i) : o->copies[i / 2][0];
        for (uint64_t r = 0; r < block[BLOCK_ROUNDS] && !dense; r++)
            for (int line = 0; line < 8; line++)
                memcpy(o->copies[i / 2][i % 2 * 8 + (uint64_t)line] + r * ROW_BYTES,
                       left_of(block, r, i) + line * row, ROW_BYTES);
    }
    if (block[BLOCK_LEFTS] % 2) memset(o->copies[block[BLOCK_LEFTS] / 2][8], 0, 8 * sizeof o->copies[0][0]);
}

/* Two neighbouring rows of two matrices: words of pairs, one for each column. */
static __m512i pairs_of(const char *first, const char *second, int64_t row) {
    static const uint16_t indexes[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                         8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    __m128i low[2], high[2];
    for (int n = 0; n < 2; n++) {
        low[n] = _mm_loadu_si128((const __m128i *)(first + n * row));
        high[n] = second ? _mm_loadu_si128((const __m128i *)(second + n * row)) : _mm_setzero_si128();
    }
    __m256i a = _mm256_inserti128_si256(_mm256_castsi128_si256(low[0]), high[0], 1);
    __m256i b = _mm256_inserti128_si256(_mm256_castsi128_si256(low[1]), high[1], 1);
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(indexes),
                                    _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
}

static void take_right(const uint64_t *block, struct operands *o) {
    int64_t row = (int64_t)block[BLOCK_RIGHT_ROW];
    for (uint64_t j = 0; j < block[BLOCK_RIGHTS]; j += 2)
        for (uint64_t r = 0; r < block[BLOCK_ROUNDS]; r++) {
            const char *first = right_of(block, r, j);
            const char *second = j + 1 < block[BLOCK_RIGHTS] ? right_of(block, r, j + 1) : NULL;
            for (int p = 0; p < PAIRS; p++)
                _mm512_store_si512(o->right[j / 2][r * PAIRS + (uint64_t)p],
                                   pairs_of(first + 2 * p * row, second ? second + 2 * p * row : NULL, row));
        }
}

/* ---- With tiles. GCC's intrinsics do not say that they read and write memory. */

#define MEMORY() __asm__ volatile("" : : : "memory")

struct palette {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static void configure(int rounds) {
    struct palette palette = {.palette = 1};
    for (int i = 0; i < 8; i++) palette.row_bytes[i] = 64, palette.rows[i] = SIDE;
    for (int i = 4; i < 6; i++) palette.row_bytes[i] = (uint16_t)(rounds * ROW_BYTES);
    for (int i = 6; i < 8; i++) palette.rows[i] = (uint8_t)(rounds * PAIRS);
    __asm__ volatile("" : : "r"(&palette) : "memory");
    _tile_loadconfig(&palette);
}

static void multiply_in_tiles(const uint64_t *block, const struct operands *o) {
    bool low = block[BLOCK_LEFTS] > 2, high = block[BLOCK_RIGHTS] > 2;
    char *sums = (char *)(uintptr_t)block[BLOCK_SUMS], *more = (char *)(uintptr_t)block[BLOCK_SUMS + 1];
    MEMORY();
    _tile_loadd(4, o->left[0], o->left_row);
    _tile_loadd(6, o->right[0], 64);
    _tile_loadd(0, sums, SUM_ROW_BYTES);
    _tile_dpbf16ps(0, 4, 6);
    if (high) {
        _tile_loadd(7, o->right[1], 64);
        _tile_loadd(1, sums + 64, SUM_ROW_BYTES);
        _tile_dpbf16ps(1, 4, 7);
    }
    if (low) {
        _tile_loadd(5, o->left[1], o->left_row);
        _tile_loadd(2, more, SUM_ROW_BYTES);
        _tile_dpbf16ps(2, 5, 6);
    }
    if (low && high) {
        _tile_loadd(3, more + 64, SUM_ROW_BYTES);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, SUM_ROW_BYTES);
    if (high) _tile_stored(1, sums + 64, SUM_ROW_BYTES);
    if (low) _tile_stored(2, more, SUM_ROW_BYTES);
    if (low && high) _tile_stored(3, more + 64, SUM_ROW_BYTES);
    MEMORY();
}

/* ---- With vectors. */

static void multiply_in_vectors(const uint64_t *block, const struct operands *o) {
    for (uint64_t line = 0; line < 8 * block[BLOCK_LEFTS]; line++) {
        float *sums = (float *)(uintptr_t)block[BLOCK_SUMS + line / SIDE] + line % SIDE * (SUM_ROW_BYTES / 4);
        const char *left = o->left[line / SIDE] + (int64_t)(line % SIDE) * o->left_row;
        for (uint64_t j = 0; j < block[BLOCK_RIGHTS]; j += 2) {
            __m512 sum = _mm512_load_ps(sums + j * 8);
            for (uint64_t p = 0; p < block[BLOCK_ROUNDS] * PAIRS; p++) {
                int word;
                memcpy(&word, left + p * 4, 4);
                sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(word),
                                       (__m512bh)_mm512_load_si512(o->right[j / 2][p]));
            }
            _mm512_store_ps(sums + j * 8, sum);
        }
    }
}

void arch_matrix_block(const uint64_t *block, int *open) {
    struct operands o;
    int rounds = (int)block[BLOCK_ROUNDS];
    if (!rounds) return;
    take_left(block, &o);
    take_right(block, &o);
    if (!has_tiles()) {
        multiply_in_vectors(block, &o);
        return;
    }
    if (*open != rounds) configure(rounds);
    *open = rounds;
    multiply_in_tiles(block, &o);
}

void arch_matrix_close(int *open) {
    if (*open) _tile_release();
    *open = 0;
}
