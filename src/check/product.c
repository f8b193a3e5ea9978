/* Products of tiles (abi/tile.h). An element of the result is undefined if an element of its row of the left
 * operand, of its column of the right one, or what it is added to is. Elements that an operand lacks are 0,
 * and nothing depends on what lies there. */
#include "abi/tile.h"
#include "check/state.h"

#include <stdlib.h>

/* Whether a line of an operand, or an element, is undefined, and since when. */
struct lack {
    bool undefined;
    uint32_t origin;
};

static struct lack lack_of(char *address, uint64_t bytes, unsigned char mask) {
    struct lack lack = {0};
    lack.undefined = undefined_in(address, bytes, mask, &lack.origin);
    return lack;
}

static char *address_of(uint64_t data, int64_t bytes) {
    return (char *)(uintptr_t)data + bytes;
}

/* An element of a tile whose dense form has this number. */
static char *held_at(uint64_t data, uint64_t held, uint64_t number) {
    uint64_t row = 16 * (uint64_t)TILE_HELD_ACROSS(held);
    return address_of(data, 4 * (int64_t)tile_held_at(held, number / row, number % row));
}

static struct lack lack_of_element(const uint64_t *operand, uint32_t bits, int64_t number) {
    if (operand[TILE_HELD])
        return lack_of(held_at(operand[TILE_DATA], operand[TILE_HELD], (uint64_t)number), 4, 0xff);
    int64_t first = ((int64_t)operand[TILE_FIRST] + number) * bits;
    unsigned char mask = bits < 8 ? (unsigned char)(((1u << bits) - 1) << (first & 7)) : 0xff;
    return lack_of(address_of(operand[TILE_DATA], first >> 3), bits < 8 ? 1 : bits / 8, mask);
}

static struct lack lack_of_scales(const uint64_t *operand, int64_t line, int64_t terms) {
    int64_t block = (int64_t)operand[TILE_SCALE_TERM_BLOCK];
    int64_t at = line / (int64_t)operand[TILE_SCALE_LINE_BLOCK] * (int64_t)operand[TILE_SCALE_LINE];
    struct lack lack = {0};
    for (int64_t term = 0; term < terms && !lack.undefined; term += block)
        lack = lack_of(
            address_of(operand[TILE_SCALES], at + term / block * (int64_t)operand[TILE_SCALE_TERM]), 1, 0xff);
    return lack;
}

static struct lack lack_of_line(const uint64_t *operand, uint32_t bits, int64_t line, int64_t terms) {
    struct lack lack = {0};
    int64_t step = (int64_t)operand[TILE_TERM_STRIDE], first = line * (int64_t)operand[TILE_LINE_STRIDE];
    if (line >= (int64_t)operand[TILE_LINES] || terms <= 0) return lack;
    if (operand[TILE_SCALES]) lack = lack_of_scales(operand, line, terms);
    if (lack.undefined) return lack;
    if (!operand[TILE_HELD] && step == 1 && bits >= 8)
        return lack_of(address_of(operand[TILE_DATA], ((int64_t)operand[TILE_FIRST] + first) * bits / 8),
                       (uint64_t)terms * bits / 8, 0xff);
    for (int64_t term = 0; term < terms && !lack.undefined; term++)
        lack = lack_of_element(operand, bits, first + term * step);
    return lack;
}

static void find_lacks(struct lack *lacks, int64_t count, const uint64_t *words, enum tile_word operand,
                       uint32_t bits) {
    int64_t dealt = operand == TILE_LEFT ? (int64_t)words[TILE_DEALT_ROWS] : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t line = dealt ? i / dealt * (int64_t)words[TILE_DEALT_STEP] + i % dealt : i;
        lacks[i] = lack_of_line(words + operand, bits, line, (int64_t)words[TILE_TERMS]);
    }
}

static char *result_at(const uint64_t *words, uint32_t bytes, int64_t row, int64_t column) {
    int64_t number = row * (int64_t)words[TILE_RESULT_ROW] + column * (int64_t)words[TILE_RESULT_COLUMN];
    if (words[TILE_RESULT_HELD])
        return held_at(words[TILE_RESULT], words[TILE_RESULT_HELD], (uint64_t)number);
    return address_of(words[TILE_RESULT], number * bytes);
}

/* What the kernel stores in device memory is used. */
static bool is_of_argument(struct check *check, const uint64_t *words) {
    const struct region *region =
        words[TILE_RESULT_HELD] ? NULL : memories_region(check, address_of(words[TILE_RESULT], 0));
    return region && region != &check->threadgroup;
}

void check_product(struct check *check, const uint64_t *words, bool complete, const char *file, int line) {
    int64_t rows = (int64_t)words[TILE_ROWS], columns = (int64_t)words[TILE_COLUMNS];
    uint64_t form = words[TILE_FORM];
    uint32_t bytes = tile_kind_bits(form >> 16 & 255) / 8;
    if (rows <= 0 || columns <= 0) return;
    struct lack *lacks = calloc((size_t)(rows + columns), sizeof *lacks);
    check->out_of_memory |= !lacks;
    if (!lacks) return;
    if (complete) {
        find_lacks(lacks, rows, words, TILE_LEFT, tile_kind_bits(form & 255));
        find_lacks(lacks + rows, columns, words, TILE_RIGHT, tile_kind_bits(form >> 8 & 255));
    }
    const struct check_site *site = is_of_argument(check, words) ? check_line_site(check, file, line) : NULL;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            char *address = result_at(words, bytes, row, column);
            struct lack lack = lacks[row].undefined ? lacks[row] : lacks[rows + column];
            if (!lack.undefined && complete && form & TILE_ADDS) lack = lack_of(address, bytes, 0xff);
            if (lack.undefined)
                undefined_set(address, bytes, lack.origin);
            else
                smelt_check_unpoison(address, bytes);
            if (lack.undefined && site) undefined_report(check, lack.origin, site, "the kernel stores");
        }
    free(lacks);
}
