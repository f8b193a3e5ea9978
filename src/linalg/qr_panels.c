/* QR by panels of Householder reflections. A panel lies transposed while it is factorised (kernels/linalg/
 * dense_qr.metal), and stays so: V is a matrix of rows. What is right of it becomes A - V W, where W solves a
 * triangle of Vᵀ V: T, which LAPACK computes for it, is the inverse of that triangle. */
#include "linalg/dense.h"
#include "linalg/kernels.h"

#include <math.h>

/* A sum over many rows is dealt to groups on GPUs. */
#define CHUNK 512

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t parts_of(const struct dense *d, int64_t depth) {
    return d->host ? 1 : pieces(depth, CHUNK);
}

static smelt_status create(const struct dense *d, struct panels *p) {
    int64_t padded = pieces(p->rank, DENSE_LEAF) * DENSE_LEAF, widest = p->n > p->m ? p->n : p->m;
    if (p->most > widest) widest = p->most;
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, p->m, p->n, &p->w));
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, padded, p->m, &p->v));
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, 1, p->rank, &p->tau));
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, 2 * DENSE_LEAF, DENSE_LEAF, &p->turns));
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, p->count * p->parts, p->width * p->width, &p->grams));
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, p->parts * p->width, widest, &p->sums));
    return dense_create(d, SMELT_FLOAT32, d->batch, p->width, widest, &p->solved);
}

void panels_release(struct panels *p) {
    smelt_array_release(p->w);
    smelt_array_release(p->v);
    smelt_array_release(p->tau);
    smelt_array_release(p->grams);
    smelt_array_release(p->turns);
    smelt_array_release(p->sums);
    smelt_array_release(p->solved);
    *p = (struct panels){0};
}

/* The columns first … of w become rows of v, and are factorised. */
static smelt_status factor_panel(const struct dense *d, const struct panels *p, int64_t first,
                                 int64_t columns, double tolerance) {
    int64_t threads = d->host ? 64 : least(512, pieces(p->m - first, 32) * 32),
            rows = pieces(p->m - first, threads);
    int form = d->host || rows > 8 ? 0 : rows > 2 ? 8 : 2; /* rows in registers */
    if (d->host) threads = least(threads, pieces(p->m - first, 32) * 32);
    TRY(dense_copy(d, p->w, p->v,
                   &(struct copy_size){.rows = (uint32_t)(p->m - first),
                                       .columns = (uint32_t)columns,
                                       .transpose = 1,
                                       .from_matrix = p->m * p->n,
                                       .from_first = first * (p->n + 1),
                                       .from_row = p->n,
                                       .to_matrix = p->v->shape.size[1] * p->m,
                                       .to_first = first * (p->m + 1),
                                       .to_row = p->m}));
    for (int64_t leaf = 0; leaf < columns; leaf += DENSE_LEAF) {
        struct leaf_size size = {.rows = (uint32_t)p->m,
                                 .first = (uint32_t)first,
                                 .columns = (uint32_t)columns,
                                 .leaf = (uint32_t)leaf,
                                 .previous = leaf ? (uint32_t)(leaf - DENSE_LEAF) : NO_LEAF,
                                 .rank = (uint32_t)p->rank,
                                 .tolerance = (float)tolerance,
                                 .p_matrix = p->v->shape.size[1] * p->m,
                                 .p_first = first * p->m,
                                 .w_matrix = p->m * p->n,
                                 .w_row = p->n,
                                 .pivots_matrix = p->rank};
        smelt_dispatch_desc dispatch = {.buffers = {{.array = p->v},
                                                    {.array = p->w},
                                                    {.array = p->tau},
                                                    {.array = p->turns},
                                                    {.array = d->flags},
                                                    {.array = d->stats},
                                                    {.bytes = &size, .size = sizeof size}},
                                        .groups = {pieces(columns - leaf, DENSE_LEAF), d->batch, 1},
                                        .threadgroup = {threads, 1, 1}};
        TRY(dense_launch(d, KERNEL_QR_LEAF, form, &dispatch));
    }
    return SMELT_OK;
}

/* Vᵀ V of a panel, in parts. */
static smelt_status square_panel(const struct dense *d, const struct panels *p, int64_t first,
                                 int64_t columns) {
    int64_t square = p->width * p->width, depth = p->m - first;
    return dense_product(d, d->batch, p->v, p->v, p->grams,
                         &(struct product_size){.rows = (uint32_t)columns,
                                                .columns = (uint32_t)columns,
                                                .depth = (uint32_t)depth,
                                                .chunk = d->host ? 0 : CHUNK,
                                                .a_matrix = p->v->shape.size[1] * p->m,
                                                .a_first = first * (p->m + 1),
                                                .a_row = p->m,
                                                .a_column = 1,
                                                .b_matrix = p->v->shape.size[1] * p->m,
                                                .b_first = first * (p->m + 1),
                                                .b_row = 1,
                                                .b_column = p->m,
                                                .c_matrix = p->count * p->parts * square,
                                                .c_first = first / p->width * p->parts * square,
                                                .c_row = p->width,
                                                .c_part = square});
}

/* Columns from `column` on of rows first … of c (m, k) are reflected: c -= V (T or Tᵀ) Vᵀ c. */
static smelt_status reflect(const struct dense *d, const struct panels *p, int64_t first, bool transpose,
                            smelt_array *c, int64_t k, int64_t column) {
    int64_t columns = least(p->width, p->rank - first), depth = p->m - first, rest = k - column,
            square = p->width * p->width, parts = parts_of(d, depth), widest = p->sums->shape.size[2],
            last = columns - 1;
    if (rest <= 0) return SMELT_OK;
    TRY(dense_product(d, d->batch, p->v, c, p->sums,
                      &(struct product_size){.rows = (uint32_t)columns,
                                             .columns = (uint32_t)rest,
                                             .depth = (uint32_t)depth,
                                             .chunk = d->host ? 0 : CHUNK,
                                             .a_matrix = p->v->shape.size[1] * p->m,
                                             .a_first = first * (p->m + 1),
                                             .a_row = p->m,
                                             .a_column = 1,
                                             .b_matrix = p->m * k,
                                             .b_first = first * k + column,
                                             .b_row = k,
                                             .b_column = 1,
                                             .c_matrix = p->parts * p->width * widest,
                                             .c_row = widest,
                                             .c_part = p->width * widest}));
    /* The triangle is solved from its end for T, from its beginning for Tᵀ. */
    int64_t sign = transpose ? 1 : -1, start = transpose ? 0 : last,
            gram = first / p->width * p->parts * square;
    TRY(dense_solve_block(d, p->grams, p->sums, p->solved, p->tau,
                          &(struct solve_size){.size = (uint32_t)columns,
                                               .columns = (uint32_t)rest,
                                               .diagonal = DIAGONAL_SCALES,
                                               .parts = (uint32_t)parts,
                                               .t_matrix = p->count * p->parts * square,
                                               .t_first = gram + start * (p->width + 1),
                                               .t_row = sign * p->width,
                                               .t_column = sign,
                                               .t_part = square,
                                               .b_matrix = p->parts * p->width * widest,
                                               .b_first = start * widest,
                                               .b_row = sign * widest,
                                               .b_part = p->width * widest,
                                               .x_matrix = p->width * widest,
                                               .x_first = start * widest,
                                               .x_row = sign * widest,
                                               .scale_matrix = p->rank,
                                               .scale_first = first + start,
                                               .scale_step = sign}));
    return dense_product(d, d->batch, p->v, p->solved, c,
                         &(struct product_size){.rows = (uint32_t)depth,
                                                .columns = (uint32_t)rest,
                                                .depth = (uint32_t)columns,
                                                .adds = 1,
                                                .a_matrix = p->v->shape.size[1] * p->m,
                                                .a_first = first * (p->m + 1),
                                                .a_row = 1,
                                                .a_column = p->m,
                                                .b_matrix = p->width * widest,
                                                .b_row = widest,
                                                .b_column = 1,
                                                .c_matrix = p->m * k,
                                                .c_first = first * k + column,
                                                .c_row = k});
}

smelt_status panels_factor(struct dense *d, smelt_array *a, int64_t m, int64_t n, double tolerance,
                           struct panels *p) {
    *p = (struct panels){
        .m = m, .n = n, .rank = least(m, n), .width = d->host ? 32 : DENSE_BLOCK, .most = p->most};
    p->parts = parts_of(d, m);
    p->count = pieces(p->rank, p->width);
    TRY(create(d, p));
    TRY(dense_copy(d, a, p->w,
                   &(struct copy_size){.rows = (uint32_t)m,
                                       .columns = (uint32_t)n,
                                       .from_matrix = m * n,
                                       .from_row = n,
                                       .to_matrix = m * n,
                                       .to_row = n}));
    for (int64_t first = 0; first < p->rank; first += p->width) {
        int64_t columns = least(p->width, p->rank - first);
        TRY(factor_panel(d, p, first, columns, tolerance));
        TRY(square_panel(d, p, first, columns));
        TRY(reflect(d, p, first, true, p->w, n, first + columns));
    }
    return SMELT_OK;
}

smelt_status panels_apply(const struct dense *d, const struct panels *p, bool transpose, bool identity,
                          smelt_array *b, int64_t k) {
    for (int64_t done = 0; done < p->count; done++) {
        int64_t first = (transpose ? done : p->count - 1 - done) * p->width;
        TRY(reflect(d, p, first, transpose, b, k, identity ? first : 0));
    }
    return SMELT_OK;
}
