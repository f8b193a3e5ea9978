/* The blocks of sums: included by each level's file, which defines
 *
 *   LANES                floats in a register
 *   ROWS, ROW_CASES      rows of the largest block; its columns are 2 * LANES
 *   DEPTH                most units of a panel: sums are loaded and stored once per so many
 *   FETCHES              whether the largest block fetches ahead (tile_ahead.h)
 *   multiply_add(a, b, sum)    a * b + sum, rounded once
 *   multiply_exact(a, b, sum)  the same of products that are exact
 *   multiply_pairs(a, b, sum)  of int16_t pairs: sum + a.low * b.low + a.high * b.high */

#define COLUMNS (2 * LANES)
#define INLINE static inline __attribute__((always_inline))

typedef float VECTOR __attribute__((vector_size(4 * LANES)));
typedef int32_t WHOLE __attribute__((vector_size(4 * LANES)));

INLINE VECTOR load_floats(const void *p) {
    VECTOR v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE WHOLE load_wholes(const void *p) {
    WHOLE v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void store_floats(void *p, VECTOR v) {
    memcpy(p, &v, sizeof v);
}
INLINE void store_wholes(void *p, WHOLE v) {
    memcpy(p, &v, sizeof v);
}
INLINE VECTOR spread_float(const uint32_t *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return x - (VECTOR){0};
}
INLINE WHOLE spread_whole(const uint32_t *p) {
    return (int32_t)*p - (WHOLE){0};
}

/* Fetches what is packed next into the second-level cache, and a row of the next sums into the first. */
INLINE void fetch(const char *const ahead[TILE_AHEAD], int64_t at, const char *sums) {
    for (int i = 0; i < TILE_AHEAD; i++) __builtin_prefetch(ahead[i] + at, 0, 2);
    for (int byte = 0; byte < COLUMNS * 4; byte += 64) __builtin_prefetch(sums + byte, 1);
}

/* `rows` and `vectors` are constants where these are inlined. The rows' addresses are computed from three
 * pointers: more would not fit the registers. The largest block, of which nearly all products consist, has a
 * loop that fetches ahead. */
#define DEFINE_SUMS(name, TYPE, load, store, spread, operation)                                          \
    INLINE void name##_unit(TYPE sums[ROWS][2], const uint32_t *left[3], int64_t line, int64_t step,     \
                            const uint32_t *right, int rows, int vectors) {                              \
        TYPE r[2];                                                                                       \
        _Pragma("GCC unroll 2") for (int j = 0; j < vectors; j++) r[j] = load(right + j * LANES);        \
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++) {                                        \
            TYPE l = spread(left[i / 4] + i % 4 * line);                                                 \
            _Pragma("GCC unroll 2") for (int j = 0; j < vectors; j++) sums[i][j] =                       \
                operation(l, r[j], sums[i][j]);                                                          \
        }                                                                                                \
        left[0] += step, left[1] += step, left[2] += step;                                               \
        __asm__("" : "+r"(left[0]), "+r"(left[1]), "+r"(left[2]));                                       \
    }                                                                                                    \
    INLINE void name##_sums(const struct tile_block *b, int rows, int vectors) {                         \
        TYPE sums[ROWS][2];                                                                              \
        int64_t line = b->left_line, step = b->left_unit, next = b->right_unit, unit = 0;                \
        const uint32_t *left[3] = {b->left, b->left + 4 * line, b->left + 8 * line};                     \
        const uint32_t *right = b->right;                                                                \
        uint32_t *out = b->sums;                                                                         \
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)                                          \
            _Pragma("GCC unroll 2") for (int j = 0; j < vectors; j++) sums[i][j] =                       \
                b->fresh ? (TYPE){0} : load(out + i * b->sums_row + j * LANES);                          \
        if (FETCHES && rows == ROWS && vectors == 2 && b->fetches) {                                     \
            const char *below = b->sums_ahead;                                                           \
            int64_t at = 0, height = b->sums_row * 4;                                                    \
            for (; unit + TILE_AHEAD_UNITS <= b->units; unit += TILE_AHEAD_UNITS, at += b->ahead_step) { \
                fetch(b->ahead, at, below);                                                              \
                below += unit < (ROWS - 1) * TILE_AHEAD_UNITS ? height : 0;                              \
                _Pragma("GCC unroll 8") for (int u = 0; u < TILE_AHEAD_UNITS; u++, right += next)        \
                    name##_unit(sums, left, line, step, right, rows, vectors);                           \
            }                                                                                            \
        }                                                                                                \
        for (; unit < b->units; unit++, right += next)                                                   \
            name##_unit(sums, left, line, step, right, rows, vectors);                                   \
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)                                          \
            _Pragma("GCC unroll 2") for (int j = 0; j < vectors; j++)                                    \
                store(out + i * b->sums_row + j * LANES, sums[i][j]);                                    \
    }                                                                                                    \
    static void name##_rows(const struct tile_block *b, int rows, int vectors) {                         \
        switch (rows * 2 + vectors - 3) { ROW_CASES(name) }                                              \
    }                                                                                                    \
    static void name(const struct tile_block *b) {                                                       \
        int vectors = b->columns > LANES ? 2 : 1;                                                        \
        if (b->columns == vectors * LANES) {                                                             \
            name##_rows(b, b->rows, vectors);                                                            \
            return;                                                                                      \
        }                                                                                                \
        uint32_t whole[ROWS * COLUMNS];                                                                  \
        struct tile_block inner = *b;                                                                    \
        inner.sums = whole, inner.sums_row = COLUMNS;                                                    \
        uint32_t *out = b->sums;                                                                         \
        size_t bytes = (size_t)b->columns * 4;                                                           \
        memset(whole, 0, sizeof whole);                                                                  \
        for (int i = 0; i < b->rows && !b->fresh; i++)                                                   \
            memcpy(whole + i * COLUMNS, out + i * b->sums_row, bytes);                                   \
        name##_rows(&inner, b->rows, vectors);                                                           \
        for (int i = 0; i < b->rows; i++) memcpy(out + i * b->sums_row, whole + i * COLUMNS, bytes);     \
    }

#define ROW_CASE(name, rows)     \
    case 2 * (rows) - 2:         \
        name##_sums(b, rows, 1); \
        break;                   \
    case 2 * (rows) - 1:         \
        name##_sums(b, rows, 2); \
        break;
#define ROW_CASES_4(name) ROW_CASE(name, 1) ROW_CASE(name, 2) ROW_CASE(name, 3) ROW_CASE(name, 4)
#define ROW_CASES_6(name) ROW_CASES_4(name) ROW_CASE(name, 5) ROW_CASE(name, 6)
#define ROW_CASES_9(name) ROW_CASES_6(name) ROW_CASE(name, 7) ROW_CASE(name, 8) ROW_CASE(name, 9)
#define ROW_CASES_12(name) ROW_CASES_9(name) ROW_CASE(name, 10) ROW_CASE(name, 11) ROW_CASE(name, 12)

/* An engine of such blocks: units of so many terms, and a function of DEFINE_SUMS. */
#define VECTOR_ENGINE(terms_of_unit, function) \
    {.terms = (terms_of_unit),                 \
     .rows = ROWS,                             \
     .columns = COLUMNS,                       \
     .depth = DEPTH,                           \
     .unit_step = 1,                           \
     .row_step = 1,                            \
     .fetches = FETCHES,                       \
     .multiply = function}
