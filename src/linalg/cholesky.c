/* Cholesky factorisation by blocks: A = Uᵀ U. On GPUs by panels of several blocks of rows, whose products are
 * subtracted from what is left at once; on the host by halves (halves.c). Rows are contiguous: a lower factor
 * is the transpose, copied in the end. */
#include "linalg/gradient.h"
#include "linalg/health.h"
#include "linalg/limbs.h"
#include "linalg/reference.h"

/* Rows of U on GPUs before their products are subtracted from all below: the fewer, the more often what is
 * below is read and written; the more, the more of the work is in small products. */
#define PANEL 256

struct job {
    smelt_array *l, *work, *solved;
    smelt_array *corners; /* on GPUs: (batch, n, DENSE_BLOCK), the factors of all blocks but the last */
    int64_t pitch;        /* from row to row of work */
};

static smelt_status factor_small(struct dense *d, struct job *job) {
    int64_t n = d->rows, row = d->desc.upper ? n : 1, column = d->desc.upper ? 1 : n;
    return dense_cholesky_block(d, d->a, job->l,
                                &(struct cholesky_size){.n = (uint32_t)n,
                                                        .size = (uint32_t)n,
                                                        .clear = 1,
                                                        .jitter = d->jitter != NULL,
                                                        .in_matrix = n * n,
                                                        .in_row = row,
                                                        .in_column = column,
                                                        .out_matrix = n * n,
                                                        .out_row = row,
                                                        .out_column = column});
}

/* Elements first … first + size - 1 of the diagonal. */
static smelt_status factor_corner(struct dense *d, struct job *job, int64_t first, int64_t size) {
    int64_t n = d->rows, corner = first * (job->pitch + 1);
    return dense_cholesky_block(d, job->work, job->work,
                                &(struct cholesky_size){.n = (uint32_t)n,
                                                        .first = (uint32_t)first,
                                                        .size = (uint32_t)size,
                                                        .in_matrix = n * job->pitch,
                                                        .in_first = corner,
                                                        .in_row = job->pitch,
                                                        .in_column = 1,
                                                        .out_matrix = n * job->pitch,
                                                        .out_first = corner,
                                                        .out_row = job->pitch,
                                                        .out_column = 1});
}

static smelt_status factor_halves(struct dense *d, struct job *job, int64_t first, int64_t size) {
    if (size <= DENSE_BLOCK) return factor_corner(d, job, first, size);
    int64_t half = halves_cut(size, DENSE_BLOCK), rest = size - half;
    struct dense_part corner = {job->work, d->rows * job->pitch, first * (job->pitch + 1), job->pitch, 1},
                      right = dense_part_from(corner, 0, half), turned = corner;
    TRY(factor_halves(d, job, first, half));
    turned.row = 1, turned.column = job->pitch;
    TRY(halves_solve(d, turned, false, right, half, rest));
    turned.first = right.first;
    TRY(halves_subtract(d, turned, right, dense_part_from(corner, half, half), rest, rest, half, true));
    return factor_halves(d, job, first + half, rest);
}

/* Rows next … end - 1 lose their products with `depth` rows of U from `row` on, whose negatives are at
 * `solved`. */
static smelt_status subtract_rows(struct dense *d, struct job *job, int64_t row, int64_t depth,
                                  int64_t solved, int64_t next, int64_t end) {
    int64_t n = d->rows;
    return dense_product(d, d->batch, job->work, job->solved, job->work,
                         &(struct product_size){.rows = (uint32_t)(end - next),
                                                .columns = (uint32_t)(n - next),
                                                .depth = (uint32_t)depth,
                                                .upper = 1,
                                                .adds = 1,
                                                .a_matrix = n * n,
                                                .a_first = row * n + next,
                                                .a_row = 1,
                                                .a_column = n,
                                                .b_matrix = PANEL * n,
                                                .b_first = solved,
                                                .b_row = n,
                                                .b_column = 1,
                                                .c_matrix = n * n,
                                                .c_first = next * (n + 1),
                                                .c_row = n});
}

/* The rows first … end - 1 of U. `solved` keeps -U, so that products are only added. */
static smelt_status factor_panel(struct dense *d, struct job *job, int64_t first, int64_t end) {
    int64_t n = d->rows;
    for (int64_t row = first; row < end; row += DENSE_BLOCK) {
        int64_t size = end - row < DENSE_BLOCK ? end - row : DENSE_BLOCK, next = row + size,
                solved = (row - first) * n + next;
        if (next == n) return factor_corner(d, job, row, size);
        TRY(dense_cholesky_row(d, job->work, job->corners, job->solved,
                               &(struct row_size){.corner = {.n = (uint32_t)n,
                                                             .first = (uint32_t)row,
                                                             .size = DENSE_BLOCK,
                                                             .in_matrix = n * n,
                                                             .in_first = row * (n + 1),
                                                             .in_row = n,
                                                             .in_column = 1,
                                                             .out_matrix = n * DENSE_BLOCK,
                                                             .out_first = row * DENSE_BLOCK,
                                                             .out_row = DENSE_BLOCK,
                                                             .out_column = 1},
                                                  .columns = (uint32_t)(n - next),
                                                  .x_matrix = PANEL * n,
                                                  .x_first = solved,
                                                  .x_row = n}));
        if (next == end) continue;
        TRY(subtract_rows(d, job, row, size, solved, next, end));
    }
    return SMELT_OK;
}

/* Copies `corners` to their places in `work`: one launch per matrix or per block, whichever are fewer. */
static smelt_status place_corners(const struct dense *d, const struct job *job) {
    int64_t n = d->rows;
    /* How many there are, and the distances between two in `corners` and in `work`. */
    const struct {
        int64_t count, from, to;
    } matrices = {d->batch, n * DENSE_BLOCK, n * n},
      blocks = {(n - 1) / DENSE_BLOCK, (int64_t)DENSE_BLOCK * DENSE_BLOCK, DENSE_BLOCK * (n + 1)},
      outer = matrices.count < blocks.count ? matrices : blocks,
      inner = matrices.count < blocks.count ? blocks : matrices;
    struct dense together = *d;
    together.batch = inner.count;
    for (int64_t i = 0; i < outer.count; i++)
        TRY(dense_copy(&together, job->corners, job->work,
                       &(struct copy_size){.rows = DENSE_BLOCK,
                                           .columns = DENSE_BLOCK,
                                           .from_matrix = inner.from,
                                           .from_first = i * outer.from,
                                           .from_row = DENSE_BLOCK,
                                           .to_matrix = inner.to,
                                           .to_first = i * outer.to,
                                           .to_row = n}));
    return SMELT_OK;
}

static smelt_status compute(struct dense *d, void *context) {
    struct job *job = context;
    int64_t n = d->rows;
    TRY(dense_clear(d));
    if (d->desc.symmetric) {
        TRY(dense_measure(d, TRIANGLE_ALL));
        TRY(dense_symmetry(d));
    }
    if (n <= DENSE_BLOCK) return factor_small(d, job);
    struct copy_size copy = {.rows = (uint32_t)n,
                             .columns = (uint32_t)n,
                             .transpose = !d->desc.upper,
                             .triangle = TRIANGLE_UPPER,
                             .clear = KEEPS,
                             .jitter = d->jitter != NULL,
                             .from_matrix = n * n,
                             .from_row = n,
                             .to_matrix = n * job->pitch,
                             .to_row = job->pitch};
    TRY(dense_copy(d, d->a, job->work, &copy));
    if (d->host) TRY(factor_halves(d, job, 0, n));
    for (int64_t first = 0; first < n && !d->host; first += PANEL) {
        int64_t end = n - first < PANEL ? n : first + PANEL;
        TRY(factor_panel(d, job, first, end));
        if (end < n) TRY(subtract_rows(d, job, first, end - first, end, end, n));
    }
    if (!d->host) TRY(place_corners(d, job));
    /* Products have written below the diagonal of U, too. */
    if (!d->desc.upper) copy.triangle = TRIANGLE_LOWER;
    copy.clear = CLEARS;
    copy.jitter = 0;
    copy.from_matrix = copy.to_matrix, copy.from_row = copy.to_row;
    copy.to_matrix = n * n, copy.to_row = n;
    return dense_copy(d, job->work, job->l, &copy);
}

static smelt_status repair(struct dense *d, void *context, int64_t matrix, double *a, int64_t *failed,
                           double *value) {
    struct job *job = context;
    if (d->dtype == SMELT_FLOAT64 || !lapack_cholesky(a, d->rows, d->desc.upper, failed, value))
        reference_cholesky_factor(a, d->rows, d->desc.upper, failed, value);
    return *failed >= 0 ? SMELT_OK : dense_store(d, job->l, matrix, a);
}

static smelt_status factor(struct dense *d, struct job *job) {
    static const struct dense_method method = {
        compute,           repair,        "pivot", "a positive number: the matrix is not positive definite",
        CODE_NOT_POSITIVE, TRIANGLE_LOWER};
    int64_t n = d->rows;
    bool wide = d->dtype == SMELT_FLOAT64;
    struct dense_method own = method;
    if (d->desc.upper) own.triangle = TRIANGLE_UPPER;
    TRY(dense_create(d, wide ? SMELT_FLOAT64 : SMELT_FLOAT32, d->batch, n, n, &job->l));
    if (!d->a->size) return SMELT_OK;
    if (d->desc.precision == SMELT_LINALG_EXTENDED) return limbs_cholesky(d, &own, job, job->l);
    if (n > DENSE_BLOCK && !wide) {
        job->pitch = dense_pitch(d, n);
        if (d->desc.upper && job->pitch == n)
            job->work = smelt_array_retain(job->l);
        else
            TRY(dense_create(d, SMELT_FLOAT32, d->batch, n, job->pitch, &job->work));
        if (!d->host) {
            TRY(dense_create(d, SMELT_FLOAT32, d->batch, PANEL, n, &job->solved));
            TRY(dense_create(d, SMELT_FLOAT32, d->batch, n, DENSE_BLOCK, &job->corners));
        }
    }
    return dense_run(d, &own, job);
}

smelt_status smelt_cholesky(smelt_array *a, const smelt_linalg_desc *desc, smelt_array **l) {
    struct dense d = {0};
    struct job job = {0};
    smelt_array *made = NULL;
    if (!l) return fail(SMELT_ERROR_INVALID_ARGUMENT, "cholesky: l is NULL");
    smelt_tape_pause();
    smelt_status status = dense_begin("cholesky", a, desc, &d);
    if (status == SMELT_OK && d.rows != d.columns)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "cholesky: a has shape %s, expected square matrices",
                      shape_print(&d.shape).text);
    if (status == SMELT_OK) status = factor(&d, &job);
    if (status == SMELT_OK) {
        status = dense_finish(&d, job.l, d.rows, d.columns, d.dtype, &made);
        job.l = NULL;
    }
    smelt_array_release(job.l);
    smelt_array_release(job.work);
    smelt_array_release(job.solved);
    smelt_array_release(job.corners);
    dense_end(&d);
    smelt_tape_resume();
    if (status == SMELT_OK) status = gradient_record_cholesky(&d.desc, a, made);
    if (status == SMELT_OK)
        *l = made;
    else
        smelt_array_release(made);
    return status;
}
