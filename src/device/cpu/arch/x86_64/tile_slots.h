/* Copies tiles from slots (abi/tile.h) to dense rows and back. tile_level.h includes it, with LANES.
 *
 * The element in row r and column c of a fragment has bits 2 1 0 of r and bit 3 of c in bits 4 2 1 and 3 of
 * its lane, bit 2 of c in bit 0 of the lane, and bit 3 of r and bits 1 0 of c in its slot. So four slots of
 * sixteen lanes are four rows of sixteen columns. */

/* Bit `from` of x, moved to bit `to`. */
#define MOVED(x, from, to) (((x) >> (from) & 1) << (to))

#if LANES == 16

/* A table for permutex2var: f(i) is the element of two vectors that lane i takes; the second vector's
 * elements count from 16. */
#define BY_LANE(f) \
    {f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)}

/* Both directions pass through four vectors, one for each value of bit 1 of the column and bit 1 of the row.
 * Their lanes have bits 3 2 0 of the column and bit 0 of the row in bits 3 2 1 0. */
#define HALF_FROM_SLOTS(i) (MOVED(i, 3, 3) | MOVED(i, 0, 1) | MOVED(i, 2, 0) | MOVED(i, 1, 4))
#define HALF_FROM_SLOTS_BELOW(i) (HALF_FROM_SLOTS(i) | 4)
#define ROW_FROM_HALVES(i) (MOVED(i, 3, 3) | MOVED(i, 2, 2) | MOVED(i, 0, 1) | MOVED(i, 1, 4))
#define ROW_FROM_HALVES_BELOW(i) (ROW_FROM_HALVES(i) | 1)
#define HALF_FROM_ROWS(i) (MOVED(i, 3, 3) | MOVED(i, 2, 2) | MOVED(i, 1, 0) | MOVED(i, 0, 4))
#define HALF_FROM_ROWS_RIGHT(i) (HALF_FROM_ROWS(i) | 2)
#define SLOT_FROM_HALVES(i) (MOVED(i, 3, 3) | MOVED(i, 0, 2) | MOVED(i, 1, 0) | MOVED(i, 2, 4))
#define SLOT_FROM_HALVES_RIGHT(i) (SLOT_FROM_HALVES(i) | 2)

/* Permutes the elements of four vectors in two steps, each by two tables. */
static inline void exchange(__m512 v[4], const int32_t first[2][16], const int32_t second[2][16]) {
    __m512i f0 = _mm512_loadu_si512(first[0]), f1 = _mm512_loadu_si512(first[1]);
    __m512i s0 = _mm512_loadu_si512(second[0]), s1 = _mm512_loadu_si512(second[1]);
    __m512 upper0 = _mm512_permutex2var_ps(v[0], f0, v[1]), upper1 = _mm512_permutex2var_ps(v[0], f1, v[1]);
    __m512 lower0 = _mm512_permutex2var_ps(v[2], f0, v[3]), lower1 = _mm512_permutex2var_ps(v[2], f1, v[3]);
    v[0] = _mm512_permutex2var_ps(upper0, s0, lower0), v[1] = _mm512_permutex2var_ps(upper0, s1, lower0);
    v[2] = _mm512_permutex2var_ps(upper1, s0, lower1), v[3] = _mm512_permutex2var_ps(upper1, s1, lower1);
}

static inline void unfold_rows(const float *slots, float *rows, int64_t row) {
    static const int32_t halves[2][16] = {BY_LANE(HALF_FROM_SLOTS), BY_LANE(HALF_FROM_SLOTS_BELOW)};
    static const int32_t whole[2][16] = {BY_LANE(ROW_FROM_HALVES), BY_LANE(ROW_FROM_HALVES_BELOW)};
    __m512 v[4];
    for (int i = 0; i < 4; i++) v[i] = _mm512_loadu_ps(slots + i * 32);
    exchange(v, halves, whole);
    for (int i = 0; i < 4; i++) _mm512_storeu_ps(rows + i * row, v[i]);
}

static inline void fold_rows(const float *rows, int64_t row, float *slots) {
    static const int32_t halves[2][16] = {BY_LANE(HALF_FROM_ROWS), BY_LANE(HALF_FROM_ROWS_RIGHT)};
    static const int32_t whole[2][16] = {BY_LANE(SLOT_FROM_HALVES), BY_LANE(SLOT_FROM_HALVES_RIGHT)};
    __m512 v[4];
    for (int i = 0; i < 4; i++) v[i] = _mm512_loadu_ps(rows + i * row);
    exchange(v, halves, whole);
    for (int i = 0; i < 4; i++) _mm512_storeu_ps(slots + i * 32, v[i]);
}

#elif LANES == 8

/* Transposes the 4 x 4 elements of each half of 128 bits. */
static inline void transpose_halves(__m256 v[4]) {
    __m256 a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
    __m256 c = _mm256_unpacklo_ps(v[2], v[3]), d = _mm256_unpackhi_ps(v[2], v[3]);
    v[0] = _mm256_shuffle_ps(a, c, 0x44), v[1] = _mm256_shuffle_ps(a, c, 0xee);
    v[2] = _mm256_shuffle_ps(b, d, 0x44), v[3] = _mm256_shuffle_ps(b, d, 0xee);
}

static inline void unfold_rows(const float *slots, float *rows, int64_t row) {
    for (int side = 0; side < 16; side += 8) {
        __m256 v[4];
        for (int i = 0; i < 4; i++) v[i] = _mm256_loadu_ps(slots + i * 32 + side);
        transpose_halves(v);
        for (int i = 0; i < 2; i++) {
            _mm256_storeu_ps(rows + i * row + side, _mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x20));
            _mm256_storeu_ps(rows + (i + 2) * row + side,
                             _mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x31));
        }
    }
}

static inline void fold_rows(const float *rows, int64_t row, float *slots) {
    for (int side = 0; side < 16; side += 8) {
        __m256 v[4];
        for (int i = 0; i < 2; i++) {
            __m256 upper = _mm256_loadu_ps(rows + i * row + side),
                   lower = _mm256_loadu_ps(rows + (i + 2) * row + side);
            v[2 * i] = _mm256_permute2f128_ps(upper, lower, 0x20);
            v[2 * i + 1] = _mm256_permute2f128_ps(upper, lower, 0x31);
        }
        transpose_halves(v);
        for (int i = 0; i < 4; i++) _mm256_storeu_ps(slots + i * 32 + side, v[i]);
    }
}

#else

/* Four slots of four lanes are two rows of two quads of columns. */
static inline void unfold_rows(const float *slots, float *rows, int64_t row) {
    for (int quad = 0; quad < 4; quad++, slots += 4) {
        float *part = rows + (quad & 1) * 2 * row + (quad >> 1) * 8;
        __m128 v[4];
        for (int i = 0; i < 4; i++) v[i] = _mm_loadu_ps(slots + i * 32);
        _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
        for (int i = 0; i < 4; i++) _mm_storeu_ps(part + (i >> 1) * row + (i & 1) * 4, v[i]);
    }
}

static inline void fold_rows(const float *rows, int64_t row, float *slots) {
    for (int quad = 0; quad < 4; quad++, slots += 4) {
        const float *part = rows + (quad & 1) * 2 * row + (quad >> 1) * 8;
        __m128 v[4];
        for (int i = 0; i < 4; i++) v[i] = _mm_loadu_ps(part + (i >> 1) * row + (i & 1) * 4);
        _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
        for (int i = 0; i < 4; i++) _mm_storeu_ps(slots + i * 32, v[i]);
    }
}

#endif

/* The first element of the fragment's rows 4 `four` to 4 `four` + 3, in the tile and in slots. */
static inline uint32_t *rows_of_tile(const uint32_t *tile, int across, int tall, int fragment, int four) {
    return (uint32_t *)tile + (int64_t)(fragment / across * tall + four * 4) * across * 16 +
           fragment % across * 16;
}
static inline uint32_t *slots_of_rows(const uint32_t *slots, int tall, int fragment, int four) {
    return (uint32_t *)slots + (int64_t)fragment * tall * 16 + (four >> 1) * 4 * 32 + (four & 1) * 16;
}

static void unfold_tile(const uint32_t *slots, int down, int across, int tall, uint32_t *tile) {
    for (int fragment = 0; fragment < down * across; fragment++)
        for (int four = 0; four < tall / 4; four++)
            unfold_rows((const float *)slots_of_rows(slots, tall, fragment, four),
                        (float *)rows_of_tile(tile, across, tall, fragment, four), (int64_t)across * 16);
}

static void fold_tile(const uint32_t *tile, int down, int across, int tall, uint32_t *slots) {
    for (int fragment = 0; fragment < down * across; fragment++)
        for (int four = 0; four < tall / 4; four++)
            fold_rows((const float *)rows_of_tile(tile, across, tall, fragment, four), (int64_t)across * 16,
                      (float *)slots_of_rows(slots, tall, fragment, four));
}
