/* Blocks of 32 × 32 sums in AMX's tiles: pairs of bfloats (for relaxed math: AMX rounds sums by its own
 * rules) and fours of bytes, which are exact. Left operands lie line by line, units in multiples of 16. */
#include "device/cpu/arch/x86_64/tile.h"

#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* GCC's intrinsics do not say that they read memory. */
#define WRITTEN() __asm__ volatile("" : : : "memory")

#define SIDE 16 /* rows of a tile, and its words per row */
#define TILE_DATA_STATE 18
#define ARCH_REQ_XCOMP_PERM 0x1023

bool tile_amx_permitted(void) {
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA_STATE) == 0;
}

struct palette {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Tiles 0 to 3 are sums, 4 and 5 the left operand's, 6 and 7 the right one's. */
static void begin(void) {
    struct palette palette = {.palette = 1};
    for (int i = 0; i < 8; i++) palette.row_bytes[i] = 64, palette.rows[i] = SIDE;
    __asm__ volatile("" : : "r"(&palette) : "memory");
    _tile_loadconfig(&palette);
}

static void end(void) {
    _tile_release();
}

/* A block of whole tiles: sums that lie `sums_row` apart, and as many lines of the left operand. */
#define DEFINE_MULTIPLY(name, multiply)                                                          \
    static void name(const struct tile_block *b, bool low_rows, bool high_columns) {             \
        char *sums = b->sums;                                                                    \
        size_t sums_row = (size_t)b->sums_row * 4, left_row = (size_t)b->left_line * 4,          \
               right_row = (size_t)b->right_unit * 4;                                            \
        const char *left = (const char *)b->left, *low = left + SIDE * left_row;                 \
        const char *right = (const char *)b->right;                                              \
        WRITTEN();                                                                               \
        if (b->fresh) {                                                                          \
            _tile_zero(0);                                                                       \
            _tile_zero(1);                                                                       \
            _tile_zero(2);                                                                       \
            _tile_zero(3);                                                                       \
        } else {                                                                                 \
            _tile_loadd(0, sums, sums_row);                                                      \
            if (high_columns) _tile_loadd(1, sums + 64, sums_row);                               \
            if (low_rows) _tile_loadd(2, sums + SIDE * sums_row, sums_row);                      \
            if (low_rows && high_columns) _tile_loadd(3, sums + SIDE * sums_row + 64, sums_row); \
        }                                                                                        \
        for (int64_t unit = 0; unit < b->units; unit += SIDE) {                                  \
            const char *panel = right + (size_t)unit * right_row;                                \
            _tile_loadd(4, left + unit * 4, left_row);                                           \
            _tile_loadd(6, panel, right_row);                                                    \
            multiply(0, 4, 6);                                                                   \
            if (high_columns) {                                                                  \
                _tile_loadd(7, panel + 64, right_row);                                           \
                multiply(1, 4, 7);                                                               \
            }                                                                                    \
            if (!low_rows) continue;                                                             \
            _tile_loadd(5, low + unit * 4, left_row);                                            \
            multiply(2, 5, 6);                                                                   \
            if (high_columns) multiply(3, 5, 7);                                                 \
        }                                                                                        \
        _tile_stored(0, sums, sums_row);                                                         \
        if (high_columns) _tile_stored(1, sums + 64, sums_row);                                  \
        if (low_rows) _tile_stored(2, sums + SIDE * sums_row, sums_row);                         \
        if (low_rows && high_columns) _tile_stored(3, sums + SIDE * sums_row + 64, sums_row);    \
    }

DEFINE_MULTIPLY(brains, _tile_dpbf16ps)
DEFINE_MULTIPLY(signed_bytes, _tile_dpbssd)
DEFINE_MULTIPLY(unsigned_bytes, _tile_dpbuud)

/* A block that is not made of whole tiles goes through one that is. Lines of the left
 * operand that do not exist are never used: their rows of sums are dropped, and its memory has room for them.
 */
static void multiply(const struct tile_block *block,
                     void (*whole)(const struct tile_block *, bool low_rows, bool high_columns)) {
    uint32_t sums[2 * SIDE * 2 * SIDE];
    struct tile_block b = *block;
    bool low_rows = b.rows > SIDE, high_columns = b.columns > SIDE;
    bool apart = b.rows % SIDE || b.columns % SIDE;
    uint32_t *out = b.sums;
    size_t bytes = (size_t)b.columns * 4;
    if (apart) {
        if (!b.fresh) memset(sums, 0, sizeof sums);
        for (int i = 0; i < b.rows && !b.fresh; i++)
            memcpy(sums + i * 2 * SIDE, out + i * block->sums_row, bytes);
        b.sums = sums, b.sums_row = 2 * SIDE;
    }
    whole(&b, low_rows, high_columns);
    for (int i = 0; apart && i < b.rows; i++) memcpy(out + i * block->sums_row, sums + i * 2 * SIDE, bytes);
}

static void multiply_brains(const struct tile_block *block) {
    multiply(block, brains);
}

static void multiply_bytes(const struct tile_block *block) {
    multiply(block, block->is_unsigned ? unsigned_bytes : signed_bytes);
}

/* Units of so many terms, a word each. */
#define AMX_ENGINE(terms_of_unit, function) \
    {.terms = (terms_of_unit),              \
     .rows = 2 * SIDE,                      \
     .columns = 2 * SIDE,                   \
     .depth = 512,                          \
     .unit_step = SIDE,                     \
     .row_step = SIDE,                      \
     .multiply = function,                  \
     .begin = begin,                        \
     .end = end}

const struct tile_engine tile_engine_brain_amx = AMX_ENGINE(2, multiply_brains);
const struct tile_engine tile_engine_byte_amx = AMX_ENGINE(4, multiply_bytes);
