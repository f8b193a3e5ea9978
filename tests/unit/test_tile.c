/* Products of tiles against plain loops: sums of floats have the bits of fused multiply-adds in the order of
 * the terms, whatever the blocks; sums of whole numbers are exact. SMELT_CPU selects the level. */
#include "device/cpu/tile.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint32_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static int below(int count) {
    return (int)(next() % (uint32_t)count);
}

/* ---- Elements, decoded by definition. */

static double real(uint32_t code, int exponent_bits, int mantissa_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1, mantissa = (int)(code & ((1u << mantissa_bits) - 1));
    int exponent = (int)(code >> mantissa_bits & ((1u << exponent_bits) - 1));
    double value = exponent ? ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)
                            : ldexp(mantissa, 1 - bias - mantissa_bits);
    return code >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

static double value_at(const void *data, enum tile_kind kind, int64_t at) {
    int bits = (int)tile_kind_bits(kind);
    const uint8_t *bytes = (const uint8_t *)data + at * bits / 8;
    uint32_t code = 0;
    memcpy(&code, bytes, (size_t)(bits + 7) / 8);
    if (bits < 8) code = code >> at * bits % 8 & ((1u << bits) - 1);
    int32_t whole = (int32_t)(code << (32 - bits)) >> (32 - bits);
    float number;
    switch (kind) {
    case TILE_FLOAT:
        memcpy(&number, &code, sizeof number);
        return number;
    case TILE_HALF:
        return (code & 0x7c00) == 0x7c00 ? (code & 0x3ff ? NAN
                                            : code >> 15 ? -INFINITY
                                                         : INFINITY)
                                         : real(code, 5, 10);
    case TILE_BFLOAT:
        code <<= 16;
        memcpy(&number, &code, sizeof number);
        return number;
    case TILE_FP4:
        return real(code, 2, 1);
    case TILE_E4M3:
        return real(code, 4, 3);
    case TILE_E5M2:
        return real(code, 5, 2);
    case TILE_INT8:
    case TILE_INT4:
    case TILE_INT2:
    case TILE_INT32:
        return whole;
    default:
        return code;
    }
}

/* Random codes of finite numbers, of moderate size where the format has others. */
static void fill(void *data, enum tile_kind kind, int64_t count) {
    uint8_t *bytes = data;
    int64_t size = (count * (int)tile_kind_bits(kind) + 7) / 8;
    for (int64_t i = 0; i < size; i++) bytes[i] = (uint8_t)next();
    for (int64_t i = 0; i < count; i++) {
        float number = (float)((below(2000001) - 1000000) * ldexp(1, -below(24)));
        uint32_t word;
        memcpy(&word, &number, sizeof word);
        if (kind == TILE_FLOAT) ((uint32_t *)data)[i] = word;
        if (kind == TILE_BFLOAT) ((uint16_t *)data)[i] = (uint16_t)(word >> 16);
        if (kind == TILE_HALF) ((uint16_t *)data)[i] &= 0xbfff;
        if (kind == TILE_E4M3 && (bytes[i] & 0x7f) == 0x7f) bytes[i] ^= 8;
        if (kind == TILE_E5M2 && (bytes[i] & 0x7c) == 0x7c) bytes[i] ^= 0x40;
    }
}

/* ---- One product. */

struct operand {
    enum tile_kind kind;
    int lines, terms; /* that exist */
    bool by_term;     /* lines are consecutive in memory, else terms */
    bool scaled;
    int spread; /* distance of the consecutive ones */
    int first;  /* element of the memory */
    uint8_t *data, *scales;
    int64_t line_stride, term_stride;
    int line_block, term_block;
};

static void make_operand(struct operand *o) {
    int inner = o->by_term ? o->lines : o->terms, outer = o->by_term ? o->terms : o->lines;
    int64_t row = (int64_t)inner * o->spread + below(3);
    if ((int)tile_kind_bits(o->kind) < 8) row = (row + 3) / 4 * 4;
    o->line_stride = o->by_term ? o->spread : row;
    o->term_stride = o->by_term ? row : o->spread;
    o->first = (int)tile_kind_bits(o->kind) < 8 ? below(8) : 0;
    int64_t count = row * outer + o->first + 8;
    /* It ends where its last element does, so that tools see reads beyond. */
    o->data = calloc(1, (size_t)((count * (int)tile_kind_bits(o->kind) + 7) / 8));
    fill(o->data, o->kind, count);
    o->line_block = 1 + below(3), o->term_block = o->scaled ? 32 : 1;
    o->scales = malloc((size_t)(o->lines + 1) * (size_t)(o->terms + 1));
    for (int i = 0; i < (o->lines + 1) * (o->terms + 1); i++) o->scales[i] = (uint8_t)(120 + below(14));
}

static float element(const struct operand *o, int64_t line, int64_t term) {
    if (line >= o->lines || term >= o->terms) return 0;
    float value = (float)value_at(o->data, o->kind, o->first + line * o->line_stride + term * o->term_stride);
    if (!o->scaled) return value;
    int64_t blocks = o->terms / o->term_block + 1;
    uint8_t scale = o->scales[line / o->line_block * blocks + term / o->term_block];
    return value * ldexpf(1, scale - 127);
}

static void describe(const struct operand *o, uint64_t *words) {
    words[TILE_DATA] = (uint64_t)(uintptr_t)o->data;
    words[TILE_LINE_STRIDE] = (uint64_t)o->line_stride;
    words[TILE_TERM_STRIDE] = (uint64_t)o->term_stride;
    words[TILE_FIRST] = (uint64_t)o->first;
    words[TILE_LINES] = (uint64_t)o->lines;
    if (!o->scaled) return;
    words[TILE_SCALES] = (uint64_t)(uintptr_t)o->scales;
    words[TILE_SCALE_LINE] = (uint64_t)(o->terms / o->term_block + 1);
    words[TILE_SCALE_TERM] = 1;
    words[TILE_SCALE_LINE_BLOCK] = (uint64_t)o->line_block;
    words[TILE_SCALE_TERM_BLOCK] = (uint64_t)o->term_block;
}

struct job {
    int rows, columns, terms;
    enum tile_kind left, right, result;
    bool left_by_term, right_by_term, adds, negates, relaxed, scaled;
    int dealt_rows, dealt_step; /* 0: not dealt */
    int lacking;                /* lines and terms that the operands lack */
    int spread, column_stride;
};

static float rounded(float value, enum tile_kind kind) {
    if (kind == TILE_HALF) return (float)(_Float16)value;
    if (kind != TILE_BFLOAT) return value;
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    word = (word + 0x7fff + (word >> 16 & 1)) & 0xffff0000u;
    memcpy(&value, &word, sizeof value);
    return value;
}

static void fail_job(const struct job *j, int row, int column, double got, double expected) {
    FAIL_TEST(
        "%d x %d x %d of kinds %d %d %d, left %s, right %s, adds %d, dealt %d/%d, lacking %d: element (%d, "
        "%d) is %.9g, expected %.9g",
        j->rows, j->columns, j->terms, j->left, j->right, j->result, j->left_by_term ? "by term" : "by line",
        j->right_by_term ? "by term" : "by line", j->adds, j->dealt_rows, j->dealt_step, j->lacking, row,
        column, got, expected);
}

static void check_element(const struct job *j, const struct operand *l, const struct operand *r, int row,
                          int column, double before, double got) {
    int64_t line = j->dealt_rows ? row / j->dealt_rows * j->dealt_step + row % j->dealt_rows : row;
    float sum = (float)before;
    uint32_t whole = (uint32_t)(int64_t)before;
    double absolute = fabs(before);
    for (int t = 0; t < j->terms; t++) {
        float a = element(l, line, t), b = element(r, column, t);
        sum = fmaf(a, j->negates ? -b : b, sum);
        absolute += fabs((double)a * b);
        whole += (uint32_t)((int32_t)a * (int32_t)b);
    }
    double expected = j->result == TILE_INT32 ? (double)(int32_t)whole : rounded(sum, j->result), allowed = 0;
    if (j->relaxed) allowed = absolute * 1e-6 * (j->terms + 1) + 1e-30;
    if (got != expected && !(fabs(got - expected) <= allowed) && !(isnan(got) && isnan(expected)))
        fail_job(j, row, column, got, expected);
}

/* A result with gaps: what lies between its elements and around it stays. */
static void run(const struct job *j) {
    static void *memory;
    if (!memory) memory = aligned_alloc(64, (tile_memory_bytes() + 63) / 64 * 64);
    int lines = j->dealt_rows ? (j->rows - 1) / j->dealt_rows * j->dealt_step + j->dealt_rows : j->rows;
    struct operand l = {.kind = j->left, .by_term = j->left_by_term},
                   r = {.kind = j->right, .by_term = j->right_by_term};
    l.lines = lines - j->lacking, r.lines = j->columns - j->lacking;
    l.terms = r.terms = j->terms, l.scaled = r.scaled = j->scaled, l.spread = r.spread = j->spread;
    if (l.lines < 0) l.lines = 0;
    if (r.lines < 0) r.lines = 0;
    make_operand(&l), make_operand(&r);
    int64_t row_stride = (int64_t)j->columns * j->column_stride + 3, count = row_stride * j->rows;
    size_t size = (size_t)(int)tile_kind_bits(j->result) / 8;
    uint8_t *result = calloc((size_t)count + 1, size), *before = calloc((size_t)count + 1, size);
    fill(result, j->result == TILE_INT32 ? TILE_INT8 : j->result,
         j->result == TILE_INT32 ? 4 * count : count);
    memcpy(before, result, (size_t)count * size);
    uint64_t words[TILE_WORDS] = {0};
    words[TILE_FORM] = (uint64_t)j->left | (uint64_t)j->right << 8 | (uint64_t)j->result << 16 |
                       (j->adds ? TILE_ADDS : 0) | (j->relaxed ? TILE_RELAXED : 0) |
                       (j->negates ? TILE_NEGATES : 0);
    words[TILE_ROWS] = (uint64_t)j->rows, words[TILE_COLUMNS] = (uint64_t)j->columns;
    words[TILE_TERMS] = (uint64_t)j->terms;
    words[TILE_DEALT_ROWS] = (uint64_t)j->dealt_rows, words[TILE_DEALT_STEP] = (uint64_t)j->dealt_step;
    words[TILE_RESULT] = (uint64_t)(uintptr_t)result;
    words[TILE_RESULT_ROW] = (uint64_t)row_stride, words[TILE_RESULT_COLUMN] = (uint64_t)j->column_stride;
    describe(&l, words + TILE_LEFT), describe(&r, words + TILE_RIGHT);
    uint32_t stop = 0;
    assert_true(tile_multiply(words, memory, &stop));
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / row_stride, column = i % row_stride;
        bool own = column % j->column_stride == 0 && column / j->column_stride < j->columns;
        if (own)
            check_element(j, &l, &r, (int)row, (int)(column / j->column_stride),
                          j->adds ? value_at(before, j->result, i) : 0, value_at(result, j->result, i));
        else
            assert_memory_equal(result + (size_t)i * size, before + (size_t)i * size, size);
    }
    free(l.data), free(r.data), free(l.scales), free(r.scales), free(result), free(before);
}

/* ---- Tests. */

static const struct {
    enum tile_kind left, right, result;
} kinds[] = {
    {TILE_FLOAT, TILE_FLOAT, TILE_FLOAT},   {TILE_HALF, TILE_HALF, TILE_HALF},
    {TILE_HALF, TILE_FLOAT, TILE_FLOAT},    {TILE_BFLOAT, TILE_BFLOAT, TILE_FLOAT},
    {TILE_BFLOAT, TILE_HALF, TILE_BFLOAT},  {TILE_FLOAT, TILE_INT8, TILE_FLOAT},
    {TILE_UINT8, TILE_BFLOAT, TILE_FLOAT},  {TILE_HALF, TILE_INT4, TILE_FLOAT},
    {TILE_BFLOAT, TILE_UINT4, TILE_BFLOAT}, {TILE_HALF, TILE_INT2, TILE_HALF},
    {TILE_HALF, TILE_UINT2, TILE_FLOAT},    {TILE_HALF, TILE_FP4, TILE_FLOAT},
    {TILE_E4M3, TILE_E4M3, TILE_FLOAT},     {TILE_E5M2, TILE_E5M2, TILE_FLOAT},
    {TILE_FP4, TILE_FP4, TILE_FLOAT},       {TILE_INT8, TILE_INT8, TILE_INT32},
    {TILE_UINT8, TILE_UINT8, TILE_INT32},   {TILE_INT8, TILE_INT4, TILE_INT32},
    {TILE_UINT8, TILE_UINT4, TILE_INT32},   {TILE_INT8, TILE_INT2, TILE_INT32},
    {TILE_UINT8, TILE_UINT2, TILE_INT32},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct job job_of(int kind, int rows, int columns, int terms) {
    return (struct job){.rows = rows,
                        .columns = columns,
                        .terms = terms,
                        .left = kinds[kind].left,
                        .right = kinds[kind].right,
                        .result = kinds[kind].result,
                        .spread = 1,
                        .column_stride = 1};
}

/* Sizes on both sides of every block's. */
static const int sizes[] = {1, 2, 5, 7, 8, 16, 31, 33, 63, 64, 65, 128, 130, 257, 300};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void floats_of_all_sizes(void **unused) {
    (void)unused;
    for (int m = 0; m < SIZES; m++)
        for (int n = 0; n < SIZES; n += 1 + m % 2)
            for (int k = (m + n) % 4; k < SIZES; k += 4) {
                if ((int64_t)sizes[m] * sizes[n] * sizes[k] > 600000) continue;
                struct job j = job_of(0, sizes[m], sizes[n], sizes[k]);
                j.left_by_term = next() & 1, j.right_by_term = next() & 1, j.adds = next() & 1;
                j.negates = next() & 1;
                run(&j);
            }
}

static void all_kinds_both_ways(void **unused) {
    (void)unused;
    for (int kind = 0; kind < KINDS; kind++)
        for (int way = 0; way < 8; way += 1 + (int)(next() & 1)) {
            struct job j = job_of(kind, 1 + below(70), 1 + below(70), way ? 1 + below(60) : 600);
            j.left_by_term = way & 1, j.right_by_term = way & 2, j.adds = way & 4;
            j.negates = j.result != TILE_INT32 && (next() & 1);
            run(&j);
            /* Beyond the blocks of rows and columns. */
            if (way % 4 == kind % 4) {
                struct job large = job_of(kind, 129 + below(4), 257 + below(8), 1 + below(9));
                large.left_by_term = way & 1, large.right_by_term = way & 2, large.adds = way & 4;
                run(&large);
            }
        }
}

/* More rows than are packed at once, more terms than a panel holds, and more columns than a block. */
static void several_stretches_parts_and_blocks(void **unused) {
    (void)unused;
    const int shapes[][3] = {{119, 40, 1030}, {121, 33, 513}, {253, 65, 700},
                             {133, 70, 1540}, {1030, 5, 60},  {13, 1029, 520}};
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
        for (int way = 0; way < 4; way++) {
            struct job j = job_of(i % 2 ? 0 : below(KINDS), shapes[i][0], shapes[i][1], shapes[i][2]);
            j.left_by_term = way & 1, j.right_by_term = way & 2, j.adds = next() & 1;
            run(&j);
        }
}

static void parts_that_do_not_exist(void **unused) {
    (void)unused;
    for (int i = 0; i < 120; i++) {
        struct job j = job_of(below(KINDS), 1 + below(50), 1 + below(50), below(80));
        j.left_by_term = next() & 1, j.right_by_term = next() & 1, j.adds = next() & 1;
        j.lacking = below(40);
        if (next() & 1) j.dealt_rows = next() & 1 ? 8 : 16, j.dealt_step = j.dealt_rows * (1 + below(4));
        j.column_stride = 1 + below(2);
        if ((int)tile_kind_bits(j.left) >= 8 && (int)tile_kind_bits(j.right) >= 8) j.spread = 1 + below(2);
        run(&j);
    }
}

static void scales(void **unused) {
    (void)unused;
    for (int i = 0; i < 40; i++) {
        struct job j = job_of(below(15), 1 + below(60), 1 + below(60), 1 + below(200));
        j.scaled = true, j.left_by_term = next() & 1, j.right_by_term = next() & 1;
        run(&j);
    }
}

/* Sums of bfloats by the CPU's own instructions, where it has them. */
static void relaxed(void **unused) {
    (void)unused;
    for (int i = 0; i < 120; i++) {
        struct job j = job_of(i % KINDS, 1 + below(70), 1 + below(70), 1 + below(100));
        j.relaxed = true, j.left_by_term = next() & 1, j.right_by_term = next() & 1, j.adds = next() & 1;
        j.lacking = next() & 1 ? below(20) : 0;
        j.negates = j.result != TILE_INT32 && (next() & 1);
        if (j.result == TILE_HALF || j.result == TILE_BFLOAT) j.result = TILE_FLOAT;
        if (next() & 1) j.dealt_rows = 16, j.dealt_step = 32;
        run(&j);
    }
}

static void special_values(void **unused) {
    (void)unused;
    static const float values[] = {0,          -0.0f,    INFINITY,        -INFINITY, NAN, 0x1p-149f,
                                   -0x1p-140f, 0x1p-75f, 0x1.fffffep127f, 1,         -1,  0x1p-74f};
    void *memory = aligned_alloc(64, (tile_memory_bytes() + 63) / 64 * 64);
    for (int i = 0; i < 4000; i++) {
        float l[6], r[6], out = 0, sum = 0;
        uint32_t stop = 0;
        for (int t = 0; t < 6; t++) l[t] = values[below(12)], r[t] = values[below(12)];
        for (int t = 0; t < 6; t++) sum = fmaf(l[t], r[t], sum);
        uint64_t words[TILE_WORDS] = {TILE_FLOAT | TILE_FLOAT << 8 | TILE_FLOAT << 16, 1, 1, 6};
        words[TILE_RESULT] = (uint64_t)(uintptr_t)&out, words[TILE_RESULT_COLUMN] = 1;
        struct operand left = {.data = (uint8_t *)l, .lines = 1, .term_stride = 1, .line_stride = 6},
                       right = {.data = (uint8_t *)r, .lines = 1, .term_stride = 1, .line_stride = 6};
        describe(&left, words + TILE_LEFT), describe(&right, words + TILE_RIGHT);
        assert_true(tile_multiply(words, memory, &stop));
        if (!(isnan(out) && isnan(sum))) assert_memory_equal(&out, &sum, sizeof sum);
    }
    free(memory);
}

static void the_stop_flag_ends_it(void **unused) {
    (void)unused;
    void *memory = aligned_alloc(64, (tile_memory_bytes() + 63) / 64 * 64);
    float one[64] = {0}, out = 0;
    uint32_t stop = 1;
    uint64_t words[TILE_WORDS] = {TILE_FLOAT | TILE_FLOAT << 8 | TILE_FLOAT << 16, 1, 1, 64};
    words[TILE_RESULT] = (uint64_t)(uintptr_t)&out, words[TILE_RESULT_COLUMN] = 1;
    struct operand operand = {.data = (uint8_t *)one, .lines = 1, .term_stride = 1};
    describe(&operand, words + TILE_LEFT), describe(&operand, words + TILE_RIGHT);
    assert_false(tile_multiply(words, memory, &stop));
    free(memory);
}

/* Where the element of a tile lies in slots, by definition (arch/x86_64/tile_slots.h). */
static int64_t slot_of(int row, int column, int across, int tall) {
    int fragment = row / tall * across + column / 16, r = row % tall, c = column % 16;
    int lane = (r >> 2 & 1) << 4 | (c >> 3 & 1) << 3 | (r & 3) << 1 | (c >> 2 & 1),
        slot = (r >> 3) * 4 + c % 4;
    return (int64_t)fragment * tall * 16 + slot * 32 + lane;
}

static void tiles_in_slots(void **unused) {
    (void)unused;
    static const int sizes[][3] = {{1, 1, 8}, {1, 1, 16}, {2, 3, 8}, {3, 2, 16}, {1, 8, 16}, {4, 4, 16}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int down = sizes[i][0], across = sizes[i][1], tall = sizes[i][2], count = down * across * tall * 16;
        uint32_t *slots = malloc((size_t)count * 4), *tile = malloc((size_t)count * 4),
                 *again = malloc((size_t)count * 4);
        for (int k = 0; k < count; k++) slots[k] = next(), tile[k] = again[k] = 0xdeadbeef;
        arch_tile_level()->unfold(slots, down, across, tall, tile);
        for (int row = 0; row < down * tall; row++)
            for (int column = 0; column < across * 16; column++)
                assert_int_equal(tile[row * across * 16 + column], slots[slot_of(row, column, across, tall)]);
        arch_tile_level()->fold(tile, down, across, tall, again);
        assert_memory_equal(again, slots, (size_t)count * 4);
        free(slots), free(tile), free(again);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats_of_all_sizes),
                                       cmocka_unit_test(all_kinds_both_ways),
                                       cmocka_unit_test(several_stretches_parts_and_blocks),
                                       cmocka_unit_test(parts_that_do_not_exist),
                                       cmocka_unit_test(scales),
                                       cmocka_unit_test(relaxed),
                                       cmocka_unit_test(special_values),
                                       cmocka_unit_test(tiles_in_slots),
                                       cmocka_unit_test(the_stop_flag_ends_it)};
    printf("level %s\n", arch_tile_level()->name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
