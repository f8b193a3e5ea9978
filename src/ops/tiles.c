/* Products of matrices on CPUs: a tile of the result for each threadgroup, by the runtime's blocked product
 * (kernels/linalg/matmul_tiles.metal), or rows times few columns (matmul_few.metal). */
#include "kernels/kernel_text.h"
#include "ops/product.h"
#include "ops/program.h"
#include "tune/setting.h"

#include <stdint.h>
#include <string.h>

#define MOST_BATCH (SMELT_MAX_DIMENSIONS - 2)

/* Shared with the kernel's `struct matrices`. Dimension 0 of the batch is the innermost. */
struct matrices {
    int64_t rows, columns, depth;
    int64_t tile_rows, tile_columns;
    int64_t first[3];
    int64_t stride[3][2];
    uint32_t batch_rank;
    uint32_t batch_size[MOST_BATCH];
    int64_t batch_stride[3][MOST_BATCH];
};

static bool is_dtype(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 || dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16;
}

/* ---- The kernels. */

#define DENSE_TERMS 0x100 /* the terms of a column of B are contiguous */

enum variant { PLAIN = -1, TILES, DOT, ALONG, ALONG_FEW, ACROSS, ACROSS_FEW };

/* The kernel and, for few columns, the function in matmul_few.metal that it calls. */
static const struct {
    const char *kernel, *function;
} kernels[] = {{"smelt_matmul", NULL},
               {"smelt_matmul_dot", "add_dot"},
               {"smelt_matmul_along", "add_along<4, 1>"},
               {"smelt_matmul_along_few", "add_along<2, 4>"},
               {"smelt_matmul_across", "add_across_column"},
               {"smelt_matmul_across_few", "add_across<1, 4>"}};

static void write_kernels(struct text *text, const void *context) {
    const struct program_key *key = context;
    for (int i = 0; i < 3; i++)
        text_addf(text, "#define %c_TYPE %s\n", "ABC"[i], program_type((smelt_dtype)key->dtypes[i]));
    text_add(text, kernel_text_matmul_sizes);
    if (key->form == TILES) {
        text_add(text, kernel_text_matmul_tiles);
        return;
    }
    text_addf(text, "#define KERNEL %s\n#define PRODUCT %s\n#define B_STRIDE %s\n",
              kernels[key->form & 0xff].kernel, kernels[key->form & 0xff].function,
              key->form & DENSE_TERMS ? "1" : "m.stride[1][0]");
    text_add(text, kernel_text_matmul_few);
}

/* ---- The matrices, as the kernels see them. */

/* Batch dimensions that all three traverse as one are joined. */
static void add_batch(struct matrices *m, int64_t size, const int64_t strides[3]) {
    uint32_t last = m->batch_rank - 1;
    bool joins = m->batch_rank > 0 && size * m->batch_size[last] <= UINT32_MAX;
    for (int i = 0; i < 3 && joins; i++) joins = strides[i] == m->batch_stride[i][last] * m->batch_size[last];
    if (joins) {
        m->batch_size[last] *= (uint32_t)size;
        return;
    }
    m->batch_size[m->batch_rank] = (uint32_t)size;
    for (int i = 0; i < 3; i++) m->batch_stride[i][m->batch_rank] = strides[i];
    m->batch_rank++;
}

/* Matrices that are multiplied by the same B are one with more rows, if their rows follow each other. */
static bool add_rows(struct matrices *m, int64_t size, const int64_t strides[3]) {
    if (m->batch_rank || strides[1]) return false;
    for (int i = 0; i < 3; i += 2)
        if (m->rows > 1 && strides[i] != m->rows * m->stride[i][0]) return false;
    for (int i = 0; i < 3 && m->rows == 1; i += 2) m->stride[i][0] = strides[i];
    return !__builtin_mul_overflow(m->rows, size, &m->rows);
}

/* False: a size that the kernels' positions do not hold. */
static bool describe(const struct product *p, struct matrices *m) {
    int64_t result[SMELT_MAX_DIMENSIONS], batch = 1;
    shape_strides(&p->shape, result);
    *m = (struct matrices){.rows = p->shape.size[p->batch],
                           .columns = p->shape.size[p->batch + 1],
                           .depth = p->depth,
                           .stride = {{p->x_strides[p->batch], p->x_depth},
                                      {p->y_depth, p->y_strides[p->batch + 1]},
                                      {result[p->batch], 1}}};
    for (int d = p->batch - 1; d >= 0; d--) {
        int64_t size = p->shape.size[d], strides[3] = {p->x_strides[d], p->y_strides[d], result[d]};
        if (size == 1 || add_rows(m, size, strides)) continue;
        if (size > UINT32_MAX || __builtin_mul_overflow(batch, size, &batch) || batch > UINT32_MAX)
            return false;
        add_batch(m, size, strides);
    }
    return true;
}

/* Cᵀ = Bᵀ Aᵀ. */
static void swap_sides(struct matrices *m, smelt_array *operands[2]) {
    struct matrices old = *m;
    smelt_array *left = operands[0];
    operands[0] = operands[1];
    operands[1] = left;
    m->rows = old.columns;
    m->columns = old.rows;
    for (int i = 0; i < 3; i++) {
        int from = i == 2 ? 2 : 1 - i;
        m->stride[i][0] = old.stride[from][1];
        m->stride[i][1] = old.stride[from][0];
        memcpy(m->batch_stride[i], old.batch_stride[from], sizeof m->batch_stride[i]);
    }
}

/* ---- Tiles. */

/* The largest tile: the runtime's largest block (device/cpu/tile.c). */
#define MOST_ROWS 1024
#define MOST_COLUMNS 512
/* Multiply-adds that are not worth being divided: some microseconds. */
#define LEAST_WORK_LOG2 18
#define LEAST_WORK (INT64_C(1) << LEAST_WORK_LOG2)

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

static int64_t tiles_of(const struct matrices *m) {
    int64_t count = pieces(m->rows, m->tile_rows) * pieces(m->columns, m->tile_columns);
    for (uint32_t d = 0; d < m->batch_rank; d++) count *= m->batch_size[d];
    return count;
}

/* Tiles of the sizes that were tuned for single products; else they are halved until each of `threads` has
 * several, or they are small. */
static void choose_tiles(const struct product *p, struct matrices *m, bool few) {
    int threads = smelt_device_threads(p->call->device);
    /* Sizes of one class share a setting. Where the largest of them is not worth being divided, the setting
     * is not looked up. */
    bool may_divide =
        tune_size_class(m->rows) + tune_size_class(m->columns) + tune_size_class(m->depth) > LEAST_WORK_LOG2;
    struct tune_job job = {"matmul", p->call->device, p->dtype, {m->rows, m->columns, m->depth}, 3};
    int64_t tuned[SETTING_NUMBERS];
    m->tile_rows = m->rows < MOST_ROWS ? m->rows : MOST_ROWS;
    m->tile_columns = m->columns < MOST_COLUMNS ? m->columns : MOST_COLUMNS;
    if (!may_divide) return;
    if (!few && threads && !m->batch_rank && tune_setting(&job, tuned) && tuned[0] > 0 && tuned[1] > 0) {
        if (tuned[0] < m->rows) m->tile_rows = tuned[0];
        if (tuned[1] < m->columns) m->tile_columns = tuned[1];
        return;
    }
    while (threads > 1 && tiles_of(m) < 4 * threads && m->tile_rows * m->tile_columns * m->depth > LEAST_WORK)
        if (few || m->tile_rows > m->tile_columns)
            m->tile_rows = pieces(m->tile_rows, 2);
        else
            m->tile_columns = pieces(m->tile_columns, 2);
}

/* Up to so many columns, rows of A are read where they are; the runtime packs them for tiles. */
#define FEW_COLUMNS 8
/* Of several products with so few multiply-adds each, the plain kernel is faster than a threadgroup per
 * product: 1000 products of 4³ take 33 µs by it and 247 µs by the runtime (AVX-512, two threads). */
#define SMALL_WORK 100
/* From so many terms on, it is faster that the lanes of a simdgroup divide the terms and add up their sums:
 * with 3000 × 64 times 8 columns that took twice as long as tiles, with 200 × 768 times 5 half as long. */
#define LEAST_DEPTH 256
/* Up to so many elements, A is fast to read in strips of 32 rows: with 4 MB that was faster than tiles; with
 * 16 MB it took twice as long as tiles or the plain kernel (AVX2). */
#define MOST_ACROSS (1 << 20)

/* Whether B's columns, whose terms are apart, can be copied so that a column's terms are contiguous: the copy
 * must be small next to A. */
static bool can_copy_terms(const struct matrices *m) {
    return m->batch_rank == 0 && m->rows > 1;
}

static enum variant choose_variant(const struct matrices *m) {
    bool along = m->stride[0][1] == 1;
    bool across = m->stride[0][0] == 1 && m->rows <= MOST_ACROSS / m->depth;
    if (m->columns > FEW_COLUMNS) return TILES;
    if (m->columns == 1 && along) return m->rows == 1 ? DOT : ALONG;
    /* The threads of the plain kernel read neighbouring rows, too. With several products, it was up to twice
     * as fast where their rows are a multiple of 32 (AVX2). */
    if (m->columns == 1 && m->stride[0][0] == 1 && m->rows > 1)
        return m->batch_rank == 0 || m->rows % 32 ? ACROSS : PLAIN;
    if (m->columns == 1) return TILES;
    if (along && m->depth >= LEAST_DEPTH && (m->stride[1][0] == 1 || can_copy_terms(m))) return ALONG_FEW;
    return across ? ACROSS_FEW : TILES;
}

#define FEW_TERMS 8192 /* copying so many here takes less time than a launch */

#define COPY_TERMS(type)                             \
    for (int64_t j = 0; j < m->columns; j++)         \
        for (int64_t k = 0; k < m->depth; k++)       \
            ((type *)copy->data)[j * m->depth + k] = \
                ((const type *)columns->data)[j * m->stride[1][1] + k * m->stride[1][0]];

/* *result is B's transpose, row-contiguous. */
static smelt_status copy_terms(const struct product *p, const struct matrices *m, smelt_array *columns,
                               smelt_array **result) {
    smelt_shape shape = {.ndim = 2, .size = {m->columns, m->depth}};
    smelt_array *view, *copy;
    if (m->columns * m->depth > FEW_TERMS) {
        TRY(smelt_array_view(columns, shape, (int64_t[]){m->stride[1][1], m->stride[1][0]}, 0, &view));
        smelt_status status = call_contiguous(p->call, view, result);
        smelt_array_release(view);
        return status;
    }
    TRY(smelt_array_create(columns->dtype, shape, &copy));
    if (columns->dtype == SMELT_FLOAT32)
        COPY_TERMS(float)
    else
        COPY_TERMS(uint16_t)
    *result = copy;
    return SMELT_OK;
}

static smelt_status run(const struct product *p, struct matrices *m, smelt_array *operands[2],
                        enum variant variant) {
    struct program_key key = {
        .family = PROGRAM_MATMUL,
        .form = (uint16_t)(variant | (variant != TILES && m->stride[1][0] == 1 ? DENSE_TERMS : 0)),
        .dtypes = {(uint8_t)operands[0]->dtype, (uint8_t)operands[1]->dtype, (uint8_t)p->dtype}};
    smelt_function *function;
    TRY(program_get(&key, kernels[variant].kernel, write_kernels, &key, &function));
    choose_tiles(p, m, variant != TILES);
    smelt_array spans[2] = {program_span(operands[0], &m->first[0]), program_span(operands[1], &m->first[1])};
    smelt_dispatch_desc dispatch = {
        .buffers = {{.array = &spans[0]},
                    {.array = &spans[1]},
                    {.array = p->result},
                    {.bytes = m, .size = sizeof *m}},
        .groups = {pieces(m->columns, m->tile_columns), pieces(m->rows, m->tile_rows), 1},
        .threadgroup = {variant == TILES ? 1 : 32},
        .device = p->call->device,
        .stream = p->call->desc->stream};
    for (uint32_t d = 0; d < m->batch_rank; d++) dispatch.groups[2] *= m->batch_size[d];
    return program_run(function, &dispatch);
}

smelt_status product_by_tiles(const struct product *p, bool *done) {
    struct matrices m;
    smelt_array *operands[2] = {p->x, p->y};
    *done = false;
    if (!is_dtype(p->x->dtype) || !is_dtype(p->y->dtype) || !is_dtype(p->dtype) || !describe(p, &m))
        return SMELT_OK;
    bool few_rows = m.rows < m.columns && m.rows <= FEW_COLUMNS;
    if (few_rows) swap_sides(&m, operands);
    enum variant variant = choose_variant(&m);
    /* Tiles of few rows are faster than tiles of few columns: the runtime reads rows of B in memory order. */
    if (variant == TILES && m.columns > 1 && (few_rows || (m.batch_rank && m.rows <= FEW_COLUMNS))) {
        swap_sides(&m, operands);
        variant = choose_variant(&m);
    }
    if (m.batch_rank && m.rows * m.columns <= SMALL_WORK / m.depth) variant = PLAIN;
    *done = variant != PLAIN;
    if (!*done) return SMELT_OK;
    bool copies = (variant == ALONG || variant == ALONG_FEW) && m.stride[1][0] != 1 && can_copy_terms(&m);
    if (copies) {
        TRY(copy_terms(p, &m, operands[1], &operands[1]));
        m.stride[1][0] = 1;
        m.stride[1][1] = m.depth;
    }
    smelt_status status = run(p, &m, operands, variant);
    if (copies) smelt_array_release(operands[1]);
    return status;
}
