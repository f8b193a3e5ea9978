/* The processor's part of products of tiles: packing operands and multiplying small blocks of them.
 *
 * The common currency is the *unit* of 4 bytes: one float term, two 16-bit terms or four 8-bit terms of a
 * line. A left operand lies in memory as lines of units or as units of lines, by two strides; a right operand
 * in panels of `columns` lines, unit after unit. */
#ifndef SMELT_DEVICE_CPU_ARCH_TILE_H
#define SMELT_DEVICE_CPU_ARCH_TILE_H

#include "abi/tile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a unit holds its terms. */
enum tile_format {
    TILE_UNIT_FLOAT, /* one float; sums are floats, by one fused multiply-add per term, in the order of terms
                      */
    TILE_UNIT_EXACT, /* the same of operands whose products are exact in float */
    TILE_UNIT_SHORT, /* two int16_t; sums are int32_t, modulo 2^32 */
    TILE_UNIT_BYTE,  /* four int8_t or uint8_t (both operands alike); sums are int32_t */
    TILE_UNIT_BRAIN, /* two bfloats; sums are floats, in any order */
    TILE_UNIT_FORMATS
};

/* One operand, with the meaning of its words in abi/tile.h. */
struct tile_source {
    const char *data;
    int64_t line_stride, term_stride, first, lines;
    enum tile_kind kind;
    const uint8_t *scales;
    int64_t scale_line, scale_term, line_block, term_block;
};

/* A part of an operand to be packed. As lines, unit u of line l is out[l * line_stride + u]. As panels of
 * `width` lines, the engine's columns, it is out[(l / width * units + u) * width + l % width]; the last panel
 * is filled up. Lines and terms that do not exist become 0, so every line has `units` units. */
struct tile_pack {
    const struct tile_source *source;
    int64_t first_line, first_term;
    int lines, terms, units; /* terms that exist, from first_term on */
    enum tile_format format;
    uint32_t *out;
    bool panels;
    int64_t line_stride;
};

/* Runs of bytes that are read after a block: a vector engine prefetches them while it multiplies. */
#define TILE_AHEAD 3
#define TILE_AHEAD_UNITS 8 /* that are multiplied between two fetches from each run */

/* A block of sums: rows × columns, at most those of the engine. */
struct tile_block {
    const uint32_t *left;
    int64_t left_line, left_unit;
    const uint32_t *right; /* a panel */
    int64_t right_unit;    /* from unit to unit */
    int64_t units;
    int rows, columns;
    void *sums; /* 4 bytes each, rows of consecutive columns */
    int64_t sums_row;
    bool fresh;       /* sums begin with 0, not with what is there */
    bool is_unsigned; /* TILE_UNIT_BYTE */
    bool fetches;     /* as the members below say, whose addresses need not be valid */
    const char *ahead[TILE_AHEAD];
    int64_t ahead_step;     /* bytes from fetch to fetch */
    const char *sums_ahead; /* of the next block, whose rows are sums_row apart, too */
};

#define TILE_MOST_DEPTH 512

/* What multiplies units of a format. */
struct tile_engine {
    int terms;         /* in a unit */
    int rows, columns; /* of the largest block */
    int depth;         /* units of a panel, at most TILE_MOST_DEPTH */
    int unit_step;     /* units come in multiples of it */
    int row_step; /* lines of the left operand, which must lie line by line, are read in multiples of it */
    bool fetches; /* ahead, in the largest blocks */
    void (*multiply)(const struct tile_block *block);
    void (*begin)(void), (*end)(void); /* around the blocks of a product; NULL: nothing to do */
};

/* Results: `count` sums become elements at out, `stride` elements apart. before is the inverse. */
struct tile_level {
    const char *name;
    void (*pack)(const struct tile_pack *pack);
    void (*store)(const void *sums, int count, enum tile_kind kind, char *out, int64_t stride);
    void (*load)(void *sums, int count, enum tile_kind kind, const char *in, int64_t stride);
    /* A tile in slots (TILE_HELD) to one with dense rows of 16 * across, and back. */
    void (*unfold)(const uint32_t *slots, int down, int across, int tall, uint32_t *tile);
    void (*fold)(const uint32_t *tile, int down, int across, int tall, uint32_t *slots);
    const struct tile_engine *engines[TILE_UNIT_FORMATS]; /* NULL: none for this format */
};

/* The best level of this machine that SMELT_CPU allows; found once. */
const struct tile_level *arch_tile_level(void);

#endif
