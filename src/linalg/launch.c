/* Launches of the kernels of dense factorisations, with the threads that suit the device. */
#include "base/text.h"
#include "kernels/kernel_text.h"
#include "linalg/dense.h"
#include "linalg/kernels.h"
#include "ops/program.h"

#include <string.h>

/* Of a threadgroup that solves a block: a column each. */
#define CPU_SOLVE_THREADS 32
#define GPU_SOLVE_THREADS 128
/* With one simdgroup per matrix, batches up to this size leave most schedulers of a GPU idle: each matrix
 * gets 256 threads instead. */
#define FEW_MATRICES 264
enum cholesky_form { CHOLESKY_MANY, CHOLESKY_FEW };

/* ---- Texts. */

static const char *const names[] = {
    [KERNEL_COPY] = "linalg_copy",
    [KERNEL_SYMMETRY] = "linalg_symmetry",
    [KERNEL_IDENTITY] = "linalg_identity",
    [KERNEL_BEGIN] = "linalg_begin",
    [KERNEL_CHOLESKY] = "linalg_cholesky",
    [KERNEL_CHOLESKY_ROW] = "linalg_cholesky_row",
    [KERNEL_SOLVE] = "linalg_solve",
    [KERNEL_PRODUCT] = "linalg_product",
    [KERNEL_QR_LEAF] = "linalg_qr_leaf",
    [KERNEL_QR_SMALL] = "linalg_qr_small",
    [KERNEL_LU_LEAF] = "linalg_lu_leaf",
    [KERNEL_LU_SMALL] = "linalg_lu_small",
    [KERNEL_EXCHANGE] = "linalg_exchange",
    [KERNEL_LIMB_DOT] = "linalg_limb_dot",
    [KERNEL_LIMB_CHOLESKY] = "linalg_limb_cholesky",
    [KERNEL_LIMB_QR] = "linalg_limb_qr",
};

/* What the texts depend on. */
struct variant {
    enum dense_kernel kernel;
    bool host;
    int form; /* of products: see dense_product; of leaves: rows in registers; of copies on the host: 1 with
                 a transposition, + 2 with measures; of Cholesky on GPUs: enum cholesky_form */
};

static const char *text_of(const struct variant *v) {
    switch (v->kernel) {
    case KERNEL_COPY:
    case KERNEL_SYMMETRY:
    case KERNEL_IDENTITY:
    case KERNEL_BEGIN:
        return kernel_text_dense_copy;
    case KERNEL_CHOLESKY:
    case KERNEL_CHOLESKY_ROW:
        return kernel_text_dense_cholesky;
    case KERNEL_SOLVE:
        return kernel_text_dense_solve;
    case KERNEL_PRODUCT:
        return v->host ? kernel_text_dense_tiles : kernel_text_dense_product;
    case KERNEL_QR_LEAF:
        return kernel_text_dense_qr;
    case KERNEL_QR_SMALL:
        return kernel_text_dense_qr_small;
    case KERNEL_LU_LEAF:
    case KERNEL_EXCHANGE:
        return kernel_text_dense_lu;
    case KERNEL_LU_SMALL:
        return kernel_text_dense_lu_small;
    default:
        return kernel_text_limbs;
    }
}

/* Tiles of products on GPUs. */
static const struct tiling {
    int rows, columns;
} tilings[] = {{128, 128}, {64, 128}, {64, 64}};

static void write_kernels(struct text *text, const void *context) {
    const struct variant *v = context;
    text_add(text, "#define SMELT_UNROLL _Pragma(\"clang loop unroll(full)\")\n");
    text_addf(
        text,
        "#define SMELT_UNROLL_SOME %s\n#define SOLVE_ROWS %d\n#define SOLVE_THREADS %d\n#define ON_CPU %d\n",
        v->host ? "" : "_Pragma(\"clang loop unroll_count(8)\")", v->host ? 4 : 8,
        v->host ? CPU_SOLVE_THREADS : GPU_SOLVE_THREADS, v->host);
    if (v->kernel == KERNEL_PRODUCT && !v->host)
        text_addf(text, "#define TILE_ROWS %d\n#define TILE_COLUMNS %d\n#define LEFT_ROWS %d\n",
                  tilings[v->form / 2].rows, tilings[v->form / 2].columns, v->form % 2);
    if (v->kernel == KERNEL_COPY && v->host)
        text_addf(text, "#define TRANSPOSES %s\n#define MEASURES %s\n", v->form & 1 ? "true" : "false",
                  v->form & 2 ? "true" : "false");
    if (!(v->kernel == KERNEL_COPY && v->host))
        text_add(text, "#define TRANSPOSES s.transpose\n#define MEASURES s.measure\n");
    bool row = v->kernel == KERNEL_CHOLESKY_ROW, many = !row && v->form == CHOLESKY_MANY;
    if (v->kernel == KERNEL_CHOLESKY || row)
        text_addf(text, "#define DOWN %d\n#define ACROSS %d\n#define BESIDE %d\n", many ? 4 : 16,
                  many ? 8 : 16, row);
    if (v->kernel == KERNEL_QR_LEAF)
        text_addf(text, "#define LEAF_ROWS %d\n#define LEAF_SIMDGROUPS %d\n", v->form, v->host ? 4 : 16);
    text_add(text, kernel_text_flags);
    text_add(text, text_of(v));
}

smelt_status dense_kernel(const struct dense *d, enum dense_kernel kernel, int form,
                          smelt_function **function) {
    struct variant variant = {kernel, d->host, form};
    struct program_key key = {
        .family = PROGRAM_LINALG, .operation = (uint16_t)kernel, .form = (uint16_t)(form << 1 | d->host)};
    return program_get(&key, names[kernel], write_kernels, &variant, function);
}

smelt_status dense_launch(const struct dense *d, enum dense_kernel kernel, int form,
                          smelt_dispatch_desc *dispatch) {
    smelt_function *function;
    TRY(dense_kernel(d, kernel, form, &function));
    dispatch->device = d->device;
    dispatch->stream = d->desc.stream;
    return smelt_function_run(function, dispatch);
}

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

/* ---- Copies and checks. */

smelt_status dense_copy(const struct dense *d, smelt_array *from, smelt_array *to,
                        const struct copy_size *size) {
    smelt_dispatch_desc dispatch = {.buffers = {{.array = from},
                                                {.array = to},
                                                {.array = d->jitter ? d->jitter : d->flags},
                                                {.array = d->stats},
                                                {.bytes = size, .size = sizeof *size}},
                                    .groups = {pieces(size->columns, 32), pieces(size->rows, 32), d->batch},
                                    .threadgroup = {32, d->host ? 1 : 8, 1}};
    if (!size->rows || !size->columns || !d->batch) return SMELT_OK;
    int form = d->host ? (size->transpose ? 1 : 0) + (size->measure ? 2 : 0) : 0;
    return dense_launch(d, KERNEL_COPY, form, &dispatch);
}

smelt_status dense_clear(const struct dense *d) {
    uint32_t size[4] = {(uint32_t)d->rows, (uint32_t)d->columns};
    smelt_dispatch_desc dispatch = {
        .buffers = {{.array = d->stats}, {.array = d->flags}, {.bytes = size, .size = sizeof size}},
        .grid = {d->batch, 1, 1},
        .threadgroup = {d->batch < 64 ? d->batch : 64, 1, 1}};
    return dense_launch(d, KERNEL_BEGIN, 0, &dispatch);
}

smelt_status dense_measure(struct dense *d, uint32_t triangle) {
    if (d->measured) return SMELT_OK;
    d->measured = true;
    return dense_copy(d, d->a, d->a,
                      &(struct copy_size){.rows = (uint32_t)d->rows,
                                          .columns = (uint32_t)d->columns,
                                          .triangle = triangle,
                                          .clear = STORES_NOTHING,
                                          .measure = 1,
                                          .from_matrix = d->rows * d->columns,
                                          .from_row = d->columns});
}

smelt_status dense_symmetry(const struct dense *d) {
    struct {
        uint32_t n;
        float tolerance;
    } size = {(uint32_t)d->rows, 1e-5F};
    int64_t side = pieces(d->rows, 32);
    smelt_dispatch_desc dispatch = {
        .buffers = {{.array = d->a}, {.array = d->stats}, {.bytes = &size, .size = sizeof size}},
        .groups = {side, side, d->batch},
        .threadgroup = {32, 8, 1}};
    return dense_launch(d, KERNEL_SYMMETRY, 0, &dispatch);
}

smelt_status dense_identity(const struct dense *d, smelt_array *to) {
    const int64_t *size = to->shape.size;
    smelt_dispatch_desc dispatch = {.buffers = {{.array = to}},
                                    .grid = {size[2], size[1], size[0]},
                                    .threadgroup = {size[2] < 256 ? size[2] : 256, 1, 1}};
    return dense_launch(d, KERNEL_IDENTITY, 0, &dispatch);
}

/* ---- Blocks. */

smelt_status dense_cholesky_block(const struct dense *d, smelt_array *a, smelt_array *out,
                                  const struct cholesky_size *size) {
    smelt_dispatch_desc dispatch = {.buffers = {{.array = a},
                                                {.array = out},
                                                {.array = d->flags},
                                                {.array = d->jitter ? d->jitter : d->flags},
                                                {.bytes = size, .size = sizeof *size}},
                                    .groups = {d->batch, 1, 1},
                                    .threadgroup = {32, 1, 1}};
    bool few = !d->host && d->batch <= FEW_MATRICES;
    if (few) dispatch.threadgroup[0] = 256;
    return dense_launch(d, KERNEL_CHOLESKY, few ? CHOLESKY_FEW : CHOLESKY_MANY, &dispatch);
}

smelt_status dense_cholesky_row(const struct dense *d, smelt_array *work, smelt_array *corners,
                                smelt_array *x, const struct row_size *size) {
    smelt_dispatch_desc dispatch = {.buffers = {{.array = work},
                                                {.array = corners},
                                                {.array = d->flags},
                                                {.array = x},
                                                {.bytes = size, .size = sizeof *size}},
                                    .groups = {pieces(size->columns, DENSE_BLOCK), d->batch, 1},
                                    .threadgroup = {256, 1, 1}};
    return dense_launch(d, KERNEL_CHOLESKY_ROW, 0, &dispatch);
}

smelt_status dense_solve_block(const struct dense *d, smelt_array *t, smelt_array *b, smelt_array *x,
                               smelt_array *scale, const struct solve_size *size) {
    int64_t threads = d->host ? CPU_SOLVE_THREADS : GPU_SOLVE_THREADS;
    smelt_dispatch_desc dispatch = {.buffers = {{.array = t},
                                                {.array = b},
                                                {.array = x},
                                                {.array = scale ? scale : t},
                                                {.bytes = size, .size = sizeof *size}},
                                    .groups = {pieces(size->columns, threads), d->batch, 1},
                                    .threadgroup = {threads, 1, 1}};
    if (!size->columns || !size->size) return SMELT_OK;
    return dense_launch(d, KERNEL_SOLVE, 0, &dispatch);
}

/* ---- Products. */

/* Tiles that each CPU has several of, unless they are small. */
static void choose_tiles(const struct dense *d, int64_t batch, struct product_size *size) {
    /* Of a triangle, small ones waste less. */
    int64_t most = size->upper ? 128 : 512, rows = size->rows < most ? size->rows : most,
            columns = size->columns < 256 ? size->columns : 256;
    int threads = smelt_device_threads(d->device);
    while (threads > 1 &&
           batch * pieces(size->rows, rows) * pieces(size->columns, columns) < 4 * (int64_t)threads &&
           rows * columns * size->depth > INT64_C(1) << 18)
        if (rows >= columns)
            rows = pieces(rows, 2);
        else
            columns = pieces(columns, 2);
    size->tile_rows = (uint32_t)rows;
    size->tile_columns = (uint32_t)columns;
}

smelt_status dense_product(const struct dense *d, int64_t batch, smelt_array *a, smelt_array *b,
                           smelt_array *c, const struct product_size *given) {
    struct product_size size = *given;
    if (!size.rows || !size.columns || !size.depth) return SMELT_OK;
    int form = 0, threads = 1;
    if (d->host) {
        choose_tiles(d, batch, &size);
    } else {
        int64_t chunks = size.chunk ? pieces(size.depth, size.chunk) : 1, tiles = batch * chunks;
        int tiling = size.rows > 64 && tiles * pieces(size.rows, 128) * pieces(size.columns, 128) >= 100 ? 0
                     : tiles * pieces(size.rows, 64) * pieces(size.columns, 128) >= 100                  ? 1
                                                                                                         : 2;
        size.tile_rows = (uint32_t)tilings[tiling].rows;
        size.tile_columns = (uint32_t)tilings[tiling].columns;
        form = 2 * tiling + (size.a_column == 1);
        threads = (int)(size.tile_rows * size.tile_columns / 64);
        batch *= chunks;
    }
    smelt_dispatch_desc dispatch = {
        .buffers = {{.array = a}, {.array = b}, {.array = c}, {.bytes = &size, .size = sizeof size}},
        .groups = {pieces(size.columns, size.tile_columns), pieces(size.rows, size.tile_rows), batch},
        .threadgroup = {threads, 1, 1}};
    return dense_launch(d, KERNEL_PRODUCT, form, &dispatch);
}
