/* Products of tiles: blocks of them, packed and multiplied by the level of instruction sets that the machine
 * has (arch/tile.h). Every level gives the same bits, except of bfloats in relaxed math. */
#include "device/cpu/tile.h"
#include "device/cpu/tile_ahead.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A block's rows share what is packed of the right operand, and its columns what is packed of the left one.
 * Blocks of 1024 × 512 instead of 512 × 256 made products of 1024 and 2048 3 to 8 % faster on one core of a
 * Xeon with 2 MiB of second-level cache (30 November 2026). */
#define BLOCK_ROWS 1024
#define HELD_ROWS 256 /* whose sums lie in memory of the worker's own */
#define LEFT_ROWS 128 /* that are packed at once, at most */
#define BLOCK_COLUMNS 512
#define COLUMN_STEP 128 /* a multiple of every engine's columns */
#define RIGHT_UNITS (TILE_MOST_DEPTH * BLOCK_COLUMNS)
#define MATRIX_UNITS (384 * 256) /* of a block's right operand, for matrix units */
#define PART_STEP 16             /* units: whole cache lines, and a multiple of every engine's steps */
/* Lines of the left operand begin in different sets of the first-level cache. */
#define LEFT_LINE (TILE_MOST_DEPTH + 16)
#define CACHE_LINE 64 /* bytes */
/* Lines that begin at multiples of it lie in few sets. */
#define CACHE_PERIOD 1024
/* Lines of a set, of 8 or more ways, that are left for what else is read. */
#define SET_LINES 6
/* Columns that repay packing the left operand. */
#define PACKING_COLUMNS 64
/* Up to so many rows, a right operand is not packed if it can be read in place: few rows share what is
 * packed, as in attention, whose tiles have 64 rows. */
#define UNPACKED_ROWS 128
#define SPARE_LINES 32 /* that an engine may read beyond the last */

struct tile_memory {
    uint32_t left[(LEFT_ROWS + SPARE_LINES) * LEFT_LINE];
    uint32_t right[RIGHT_UNITS];
    uint32_t sums[HELD_ROWS * BLOCK_COLUMNS];
    uint32_t held[3][TILE_MOST_HELD]; /* operands and result that lie in slots, as dense tiles */
};

size_t tile_memory_bytes(void) {
    return sizeof(struct tile_memory);
}

/* ---- The product. */

struct product {
    int64_t rows, columns, terms, dealt_rows, dealt_step;
    struct tile_source left, right;
    char *result;
    int64_t result_row, result_column;
    enum tile_kind result_kind;
    bool adds, relaxed, negates;
    /* Chosen. */
    const struct tile_level *level;
    const struct tile_engine *engine;
    enum tile_format format;
    int block_columns, depth; /* of blocks, and units of their panels */
    bool in_place;            /* sums are computed in the result */
    struct tile_memory *memory;
};

static int smaller(int64_t a, int64_t b) {
    int64_t least = a < b ? a : b;
    return least < 0 ? 0 : (int)least;
}

static struct tile_source source_of(const uint64_t *words, enum tile_kind kind) {
    return (struct tile_source){.data = (const char *)(uintptr_t)words[TILE_DATA],
                                .line_stride = (int64_t)words[TILE_LINE_STRIDE],
                                .term_stride = (int64_t)words[TILE_TERM_STRIDE],
                                .first = (int64_t)words[TILE_FIRST],
                                .lines = (int64_t)words[TILE_LINES],
                                .kind = kind,
                                .scales = (const uint8_t *)(uintptr_t)words[TILE_SCALES],
                                .scale_line = (int64_t)words[TILE_SCALE_LINE],
                                .scale_term = (int64_t)words[TILE_SCALE_TERM],
                                .line_block = (int64_t)words[TILE_SCALE_LINE_BLOCK],
                                .term_block = (int64_t)words[TILE_SCALE_TERM_BLOCK]};
}

/* Whether every value is a bfloat, too. */
static bool is_brain(const struct tile_source *source) {
    return source->kind != TILE_FLOAT && source->kind != TILE_HALF && !source->scales;
}

/* Whether the product with another such value is exact in float: 11 bits or fewer, and no tiny ones. */
static bool is_narrow(const struct tile_source *source) {
    return source->kind != TILE_FLOAT && source->kind != TILE_BFLOAT && !source->scales;
}

static void choose_engine(struct product *p) {
    const struct tile_engine *const *engines = p->level->engines;
    p->format = TILE_UNIT_FLOAT;
    if (p->result_kind == TILE_INT32)
        p->format = engines[TILE_UNIT_BYTE] ? TILE_UNIT_BYTE : TILE_UNIT_SHORT;
    else if (p->relaxed && engines[TILE_UNIT_BRAIN] && is_brain(&p->left) && is_brain(&p->right))
        p->format = TILE_UNIT_BRAIN;
    else if (is_narrow(&p->left) && is_narrow(&p->right))
        p->format = TILE_UNIT_EXACT;
    p->engine = engines[p->format];
}

/* Bytes of a core's second-level cache. */
static int64_t cache_bytes(void) {
    static atomic_long known;
    long bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes) return bytes;
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes <= 0) bytes = 1 << 20;
    atomic_store(&known, bytes);
    return bytes;
}

/* Packed operands may fill 5/8 of the cache: sums, and what is packed next, pass through it, too. */
static bool fits(int columns, int units) {
    return (int64_t)(columns + LEFT_ROWS) * units * 4 <= cache_bytes() * 5 / 8;
}

/* Matrix units (AMX) have deep panels of few columns, whatever the cache. Vectors have the first of these
 * blocks that fits, or the last one. Each step down in this list takes 2 to 6 % longer where the one before
 * it fits: products of 1024 to 3072 on one core of a Xeon with 2 MiB of second-level cache (November 2026).
 */
static void choose_block(struct product *p) {
    static const struct {
        int columns, depth;
    } blocks[] = {{BLOCK_COLUMNS, 512}, {BLOCK_COLUMNS, 384}, {256, 384}, {256, 256}};
    const int last = (int)(sizeof blocks / sizeof *blocks) - 1;
    int i = 0, most = p->engine->depth;
    if (p->engine->unit_step > 1) {
        p->depth = most;
        p->block_columns = MATRIX_UNITS / most / COLUMN_STEP * COLUMN_STEP;
        return;
    }
    while (i < last && !fits(blocks[i].columns, smaller(blocks[i].depth, most))) i++;
    p->block_columns = blocks[i].columns, p->depth = smaller(blocks[i].depth, most);
}

/* An operand in slots becomes a dense tile. Its values stay those of its kind, as floats or ints. */
static void unfold(const struct product *p, uint64_t held, struct tile_source *source, uint32_t *tile) {
    if (!held) return;
    p->level->unfold((const uint32_t *)source->data, TILE_HELD_DOWN(held), TILE_HELD_ACROSS(held),
                     TILE_HELD_TALL(held), tile);
    source->data = (const char *)tile;
    source->kind = p->result_kind == TILE_INT32 ? TILE_INT32 : TILE_FLOAT;
}

static struct product product_of(const uint64_t *words, struct tile_memory *memory) {
    uint64_t form = words[TILE_FORM];
    struct product p = {.rows = (int64_t)words[TILE_ROWS],
                        .columns = (int64_t)words[TILE_COLUMNS],
                        .terms = (int64_t)words[TILE_TERMS],
                        .dealt_rows = (int64_t)words[TILE_DEALT_ROWS],
                        .dealt_step = (int64_t)words[TILE_DEALT_STEP],
                        .left = source_of(words + TILE_LEFT, (enum tile_kind)(form & 255)),
                        .right = source_of(words + TILE_RIGHT, (enum tile_kind)(form >> 8 & 255)),
                        .result = (char *)(uintptr_t)words[TILE_RESULT],
                        .result_row = (int64_t)words[TILE_RESULT_ROW],
                        .result_column = (int64_t)words[TILE_RESULT_COLUMN],
                        .result_kind = (enum tile_kind)(form >> 16 & 255),
                        .adds = form & TILE_ADDS,
                        .relaxed = form & TILE_RELAXED,
                        .negates = form & TILE_NEGATES,
                        .level = arch_tile_level(),
                        .memory = memory};
    if (p.terms < 0) p.terms = 0;
    p.in_place = p.result_column == 1 && (p.result_kind == TILE_FLOAT || p.result_kind == TILE_INT32);
    choose_engine(&p);
    choose_block(&p);
    unfold(&p, words[TILE_LEFT + TILE_HELD], &p.left, memory->held[0]);
    unfold(&p, words[TILE_RIGHT + TILE_HELD], &p.right, memory->held[1]);
    return p;
}

/* ---- One block: `rows` × `columns` sums from (row, column) on, in all terms. */

struct part {
    int64_t row, column, term;
    int rows, columns, terms, units; /* units: those that the terms fill, in the engine's steps */
    int in_place;                    /* columns whose right operand is not packed */
    char *sums;
    int64_t sums_row; /* in sums */
    bool fresh;
};

/* The columns, from the first on, that the engine reads in the right operand's own memory: float32 in
 * contiguous rows, of which it loads whole registers only, so nothing beyond a row's end. Else the last panel
 * is packed. */
static int count_in_place(const struct product *p, const struct part *part) {
    const struct tile_source *right = &p->right;
    bool floats = right->kind == TILE_FLOAT && !right->scales && !p->negates &&
                  (p->format == TILE_UNIT_FLOAT || p->format == TILE_UNIT_EXACT);
    if (!floats || p->rows > UNPACKED_ROWS || right->line_stride != 1 ||
        right->term_stride % (CACHE_PERIOD / 4) == 0 || part->column + part->columns > right->lines)
        return 0;
    int width = p->engine->columns;
    return part->columns % (width / 2) ? part->columns / width * width : part->columns;
}

static void pack_right(const struct product *p, struct part *part) {
    part->in_place = count_in_place(p, part);
    if (part->in_place == part->columns) return;
    struct tile_pack pack = {.source = &p->right,
                             .first_line = part->column + part->in_place,
                             .first_term = part->term,
                             .lines = part->columns - part->in_place,
                             .terms = part->terms,
                             .units = part->units,
                             .format = p->format,
                             .out = p->memory->right,
                             .panels = true};
    p->level->pack(&pack);
    if (!p->negates) return;
    /* Of floats the sign, of pairs of bfloats both. */
    uint32_t signs = p->format == TILE_UNIT_BRAIN ? 0x80008000u : 0x80000000u, *right = p->memory->right;
    int panels = (part->columns + p->engine->columns - 1) / p->engine->columns;
    int count = panels * p->engine->columns * part->units;
    for (int i = 0; i < count; i++) right[i] ^= signs;
}

/* The panel that begins with a column, and the distance from unit to unit. */
static const uint32_t *panel_of(const struct product *p, const struct part *part, int column, int64_t *unit) {
    bool in_place = column < part->in_place;
    *unit = in_place ? p->right.term_stride : p->engine->columns;
    return in_place
               ? (const uint32_t *)p->right.data + part->term * p->right.term_stride + part->column + column
               : p->memory->right + (int64_t)(column - part->in_place) * part->units;
}

/* Rows that lie in consecutive lines of the left operand; `rows` of them exist. */
struct stretch {
    int64_t line;
    int row, rows;
    const uint32_t *units;
    int64_t line_stride, unit_stride;
};

/* Whether lines, or terms, that are read together lie in few sets of the first-level cache. */
static bool collides(const struct tile_source *left) {
    int64_t stride = left->term_stride == 1 ? left->line_stride : left->term_stride;
    return stride % (CACHE_PERIOD / 4) == 0;
}

/* Whether the operand's own memory has the form of units: floats, or bfloats for an engine that takes whole
 * steps of units and blocks of lines. */
static bool is_packed(const struct product *p, const struct part *part, const struct stretch *stretch) {
    const struct tile_source *left = &p->left;
    if (left->scales) return false;
    if (p->format == TILE_UNIT_BRAIN)
        return left->kind == TILE_BFLOAT && left->term_stride == 1 && left->line_stride % 2 == 0 &&
               part->units * 2 == part->terms && stretch->rows % p->engine->row_step == 0;
    if (left->kind != TILE_FLOAT || (p->format != TILE_UNIT_FLOAT && p->format != TILE_UNIT_EXACT))
        return false;
    return part->columns < PACKING_COLUMNS || p->engine->rows <= SET_LINES || !collides(left);
}

static void pack_left(const struct product *p, const struct part *part, struct stretch *stretch) {
    if (is_packed(p, part, stretch)) {
        int terms = p->engine->terms;
        int64_t first = stretch->line * p->left.line_stride + part->term * p->left.term_stride;
        stretch->units = (const uint32_t *)(p->left.data + first * (4 / terms));
        stretch->line_stride = p->left.line_stride / terms, stretch->unit_stride = p->left.term_stride;
        return;
    }
    struct tile_pack pack = {.source = &p->left,
                             .first_line = stretch->line,
                             .first_term = part->term,
                             .lines = stretch->rows,
                             .terms = part->terms,
                             .units = part->units,
                             .format = p->format,
                             .out = p->memory->left,
                             .line_stride = LEFT_LINE};
    p->level->pack(&pack);
    stretch->units = p->memory->left;
    stretch->line_stride = LEFT_LINE, stretch->unit_stride = 1;
}

/* Begins to read the sums of the block below while this one is computed. Their rows lie in different pages
 * where a result has long rows, and no hardware fetches them in advance. (The block may have a row less.) */
static void prefetch_below(const struct tile_block *block) {
    const char *below = (const char *)block->sums + block->rows * block->sums_row * 4;
    for (int row = 0; row < block->rows; row++, below += block->sums_row * 4)
        for (int column = 0; column < block->columns; column += CACHE_LINE / 4)
            __builtin_prefetch(below + column * 4, 1);
}

/* The height of the next block, with `rows` rows left. Blocks are as high as the engine allows, except that
 * the last two share what is left equally: very low blocks are slow. */
static int block_height(const struct tile_engine *engine, int rows) {
    return engine->unit_step == 1 && rows > engine->rows && rows < 2 * engine->rows
               ? (rows + 1) / 2
               : smaller(rows, engine->rows);
}

static int blocks_of(const struct product *p, int rows, int columns) {
    return ((rows + p->engine->rows - 1) / p->engine->rows) *
           ((columns + p->engine->columns - 1) / p->engine->columns);
}

/* What is packed after a stretch and after a part; each of their blocks fetches some of it. */
struct ahead {
    struct tile_runs left, right;
};

/* Whether the engine has the time to fetch the next block's sums. */
static bool has_time(const struct tile_engine *engine, const struct part *part) {
    return engine->fetches && part->units >= engine->rows * TILE_AHEAD_UNITS;
}

/* All runs are taken to be as long as a line of the left operand. */
static int64_t ahead_step(const struct product *p) {
    return (int64_t)TILE_AHEAD_UNITS * p->engine->terms * tile_kind_bits(p->left.kind) / 8;
}

static void multiply_stretch(const struct product *p, const struct part *part, const struct stretch *stretch,
                             struct ahead *ahead) {
    const struct tile_engine *engine = p->engine;
    for (int column = 0; column < part->columns; column += engine->columns) {
        struct tile_block block = {.left_line = stretch->line_stride,
                                   .left_unit = stretch->unit_stride,
                                   .units = part->units,
                                   .columns = smaller(part->columns - column, engine->columns),
                                   .sums_row = part->sums_row,
                                   .fresh = part->fresh,
                                   .is_unsigned = p->left.kind == TILE_UINT8,
                                   .fetches = has_time(engine, part),
                                   .ahead_step = ahead_step(p)};
        block.right = panel_of(p, part, column, &block.right_unit);
        char *top = part->sums + (stretch->row * part->sums_row + column) * 4;
        for (int row = 0; row < stretch->rows; row += block.rows) {
            block.rows = block_height(engine, stretch->rows - row);
            block.left = stretch->units + row * stretch->line_stride;
            block.sums = top + row * part->sums_row * 4;
            bool last = row + block.rows >= stretch->rows;
            if (block.fetches) {
                for (int i = 0; i < TILE_AHEAD; i++) block.ahead[i] = (const char *)block.right;
                int taken = tile_runs_take(&ahead->left, block.ahead, 0);
                (void)tile_runs_take(&ahead->right, block.ahead, taken);
                block.sums_ahead =
                    last ? top + engine->columns * 4 : (char *)block.sums + block.rows * part->sums_row * 4;
            } else if (!last) {
                prefetch_below(&block);
            }
            engine->multiply(&block);
        }
    }
}

/* Rows that are packed at once, of so many: whole blocks of the engine, and not few at last. */
static int stretch_rows(const struct tile_engine *engine, int rows) {
    int most = LEFT_ROWS / engine->rows * engine->rows, half = (rows + 1) / 2;
    if (rows >= 2 * most) return most;
    return rows <= most ? rows : (half + engine->rows - 1) / engine->rows * engine->rows;
}

/* What is packed for the stretch below, or, after the last, for the first one of the next part. */
static struct tile_runs left_ahead(const struct product *p, const struct part *part, int row,
                                   const struct stretch *stretch) {
    bool last = row + stretch->rows >= part->rows;
    int64_t term = part->term + (last ? part->terms : 0);
    return tile_runs_of(&p->left, last ? part->row : stretch->line + stretch->rows, term,
                        stretch_rows(p->engine, last ? part->rows : part->rows - row - stretch->rows),
                        last ? smaller(p->terms - term, part->terms) : part->terms,
                        blocks_of(p, stretch->rows, part->columns));
}

static struct tile_runs right_ahead(const struct product *p, const struct part *part) {
    int64_t term = part->term + part->terms;
    return tile_runs_of(&p->right, part->column, term, part->columns, smaller(p->terms - term, part->terms),
                        blocks_of(p, part->rows, part->columns));
}

static void multiply_part(const struct product *p, struct part *part) {
    struct ahead ahead = {.right = right_ahead(p, part)};
    pack_right(p, part);
    int64_t dealt = p->dealt_rows ? p->dealt_rows : p->rows;
    for (int row = 0; row < part->rows;) {
        int64_t at = part->row + row, inside = at % dealt;
        int rows = stretch_rows(p->engine, smaller(part->rows - row, dealt - inside));
        struct stretch stretch = {.line = at / dealt * p->dealt_step + inside, .row = row};
        stretch.rows = smaller(p->left.lines - stretch.line, rows);
        if (stretch.rows > 0) {
            pack_left(p, part, &stretch);
            ahead.left = left_ahead(p, part, row, &stretch);
            multiply_stretch(p, part, &stretch, &ahead);
        }
        for (int i = stretch.rows; i < rows && part->fresh; i++)
            memset(part->sums + (row + i) * part->sums_row * 4, 0, (size_t)part->columns * 4);
        row += rows;
    }
}

static char *result_at(const struct product *p, int64_t row, int64_t column) {
    int64_t size = p->result_kind == TILE_HALF || p->result_kind == TILE_BFLOAT ? 2 : 4;
    return p->result + (row * p->result_row + column * p->result_column) * size;
}

static void begin_sums(const struct product *p, struct part *part) {
    part->sums = p->in_place ? result_at(p, part->row, part->column) : (char *)p->memory->sums;
    part->sums_row = p->in_place ? p->result_row : BLOCK_COLUMNS;
    part->fresh = !p->adds;
    for (int i = 0; i < part->rows && p->adds && !p->in_place; i++)
        p->level->load(p->memory->sums + i * BLOCK_COLUMNS, part->columns, p->result_kind,
                       result_at(p, part->row + i, part->column), p->result_column);
}

static void end_sums(const struct product *p, const struct part *part) {
    for (int i = 0; i < part->rows && !p->in_place; i++)
        p->level->store(p->memory->sums + i * BLOCK_COLUMNS, part->columns, p->result_kind,
                        result_at(p, part->row + i, part->column), p->result_column);
}

/* The terms of the next part: parts are about equally deep. */
static int part_terms(const struct product *p, int64_t left) {
    int64_t most = (int64_t)p->depth * p->engine->terms, step = (int64_t)PART_STEP * p->engine->terms;
    int64_t parts = (left + most - 1) / most, even = parts ? (left + parts - 1) / parts : 0;
    return smaller(left, smaller((even + step - 1) / step * step, most));
}

/* False: stopped. At least one part, of no terms, so that sums begin with 0. */
static bool multiply_block(const struct product *p, struct part *part, const uint32_t *stop) {
    const struct tile_engine *engine = p->engine;
    begin_sums(p, part);
    do {
        part->terms = part_terms(p, p->terms - part->term);
        int units = (part->terms + engine->terms - 1) / engine->terms;
        part->units = (units + engine->unit_step - 1) / engine->unit_step * engine->unit_step;
        multiply_part(p, part);
        part->fresh = false;
        part->term += part->terms;
        if (__atomic_load_n(stop, __ATOMIC_RELAXED)) return false;
    } while (part->term < p->terms);
    end_sums(p, part);
    return true;
}

bool tile_multiply(const uint64_t *words, void *opaque, const uint32_t *stop) {
    struct tile_memory *memory = opaque;
    struct product p = product_of(words, memory);
    bool goes_on = true;
    if (p.rows <= 0 || p.columns <= 0) return true;
    uint64_t held = words[TILE_RESULT_HELD];
    uint32_t *slots = (uint32_t *)p.result, *tile = memory->held[2];
    int down = TILE_HELD_DOWN(held), across = TILE_HELD_ACROSS(held), tall = TILE_HELD_TALL(held);
    if (held) p.result = (char *)tile;
    if (held && p.adds) p.level->unfold(slots, down, across, tall, tile);
    if (p.engine->begin) p.engine->begin();
    int block_rows = p.in_place ? BLOCK_ROWS : HELD_ROWS;
    for (int64_t column = 0; column < p.columns && goes_on; column += p.block_columns)
        for (int64_t row = 0; row < p.rows && goes_on; row += block_rows) {
            struct part part = {.row = row,
                                .column = column,
                                .rows = smaller(p.rows - row, block_rows),
                                .columns = smaller(p.columns - column, p.block_columns)};
            goes_on = multiply_block(&p, &part, stop);
        }
    if (p.engine->end) p.engine->end();
    if (held) p.level->fold(tile, down, across, tall, slots);
    return goes_on;
}
