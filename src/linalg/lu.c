/* LU factorisation with partial pivoting: panels, exchanges of rows, products; on the host by halves
 * (halves.c). */
#include "linalg/kernels.h"
#include "linalg/reference.h"
#include "linalg/sides.h"
#include "smelt/autodiff.h"

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

smelt_status dense_exchange(const struct dense *d, smelt_array *w, smelt_array *pivots,
                            const struct exchange_size *size) {
    int64_t columns = (int64_t)size->columns - size->skipped;
    smelt_dispatch_desc dispatch = {
        .buffers = {{.array = w}, {.array = pivots}, {.bytes = size, .size = sizeof *size}},
        .grid = {columns, d->batch, 1},
        .threadgroup = {columns < 128 ? columns : 128, 1, 1}};
    if (columns <= 0 || !size->count) return SMELT_OK;
    return dense_launch(d, KERNEL_EXCHANGE, 0, &dispatch);
}

static smelt_status factor_panel(const struct dense *d, const struct lu_job *job, int64_t first,
                                 int64_t columns) {
    int64_t m = d->rows, n = d->columns, rank = least(m, n), threads = d->host ? 64 : 512;
    threads = least(threads, pieces(m - first, 32) * 32);
    struct copy_size copy = {.rows = (uint32_t)(m - first),
                             .columns = (uint32_t)columns,
                             .transpose = 1,
                             .from_matrix = m * n,
                             .from_first = first * (n + 1),
                             .from_row = n,
                             .to_matrix = DENSE_BLOCK * m,
                             .to_first = first,
                             .to_row = m};
    TRY(dense_copy(d, job->lu, job->panel, &copy));
    /* The last launch only exchanges rows left of the last leaf. */
    for (int64_t leaf = 0; leaf < columns + DENSE_LEAF; leaf += DENSE_LEAF) {
        struct leaf_size size = {.rows = (uint32_t)m,
                                 .first = (uint32_t)first,
                                 .columns = (uint32_t)columns,
                                 .leaf = (uint32_t)leaf,
                                 .previous = leaf ? (uint32_t)(leaf - DENSE_LEAF) : NO_LEAF,
                                 .rank = (uint32_t)rank,
                                 .tolerance = (float)job->tolerance,
                                 .p_matrix = DENSE_BLOCK * m,
                                 .w_matrix = m * n,
                                 .w_row = n,
                                 .pivots_matrix = rank};
        smelt_dispatch_desc dispatch = {.buffers = {{.array = job->panel},
                                                    {.array = job->pivots},
                                                    {.array = d->flags},
                                                    {.array = d->stats},
                                                    {.bytes = &size, .size = sizeof size}},
                                        .groups = {pieces(columns, DENSE_LEAF), d->batch, 1},
                                        .threadgroup = {threads, 1, 1}};
        TRY(dense_launch(d, KERNEL_LU_LEAF, 0, &dispatch));
    }
    return dense_copy(d, job->panel, job->lu,
                      &(struct copy_size){.rows = (uint32_t)columns,
                                          .columns = (uint32_t)(m - first),
                                          .transpose = 1,
                                          .from_matrix = DENSE_BLOCK * m,
                                          .from_first = first,
                                          .from_row = m,
                                          .to_matrix = m * n,
                                          .to_first = first * (n + 1),
                                          .to_row = n});
}

/* What is right of a panel: exchanges, U's rows, products. */
static smelt_status update(const struct dense *d, const struct lu_job *job, int64_t first, int64_t columns) {
    int64_t m = d->rows, n = d->columns, next = first + columns, rest = n - next;
    TRY(dense_exchange(d, job->lu, job->pivots,
                       &(struct exchange_size){.first = (uint32_t)first,
                                               .count = (uint32_t)columns,
                                               .columns = (uint32_t)n,
                                               .skip = (uint32_t)first,
                                               .skipped = (uint32_t)columns,
                                               .w_matrix = m * n,
                                               .w_row = n,
                                               .pivots_matrix = least(m, n)}));
    if (!rest) return SMELT_OK;
    TRY(dense_solve_block(d, job->lu, job->lu, job->solved, NULL,
                          &(struct solve_size){.size = (uint32_t)columns,
                                               .columns = (uint32_t)rest,
                                               .diagonal = DIAGONAL_UNIT,
                                               .store = 1,
                                               .parts = 1,
                                               .t_matrix = m * n,
                                               .t_first = first * (n + 1),
                                               .t_row = n,
                                               .t_column = 1,
                                               .b_matrix = m * n,
                                               .b_first = first * n + next,
                                               .b_row = n,
                                               .x_matrix = DENSE_BLOCK * n,
                                               .x_row = n}));
    return dense_product(d, d->batch, job->panel, job->solved, job->lu,
                         &(struct product_size){.rows = (uint32_t)(m - next),
                                                .columns = (uint32_t)rest,
                                                .depth = (uint32_t)columns,
                                                .adds = 1,
                                                .a_matrix = DENSE_BLOCK * m,
                                                .a_first = next,
                                                .a_row = 1,
                                                .a_column = m,
                                                .b_matrix = DENSE_BLOCK * n,
                                                .b_row = n,
                                                .b_column = 1,
                                                .c_matrix = m * n,
                                                .c_first = next * (n + 1),
                                                .c_row = n});
}

/* ---- By halves, on the host: the left columns are factorised, the right ones get their exchanges and
 * products, and are factorised below; then the left ones get the exchanges of the right ones. */

#define HOST_PANEL 32

static smelt_status exchange_columns(const struct dense *d, const struct lu_job *job, int64_t first,
                                     int64_t count, int64_t column, int64_t columns) {
    int64_t m = d->rows, n = d->columns;
    return dense_exchange(d, job->lu, job->pivots,
                          &(struct exchange_size){.first = (uint32_t)first,
                                                  .count = (uint32_t)count,
                                                  .columns = (uint32_t)(column + columns),
                                                  .skip = 0,
                                                  .skipped = (uint32_t)column,
                                                  .w_matrix = m * n,
                                                  .w_row = n,
                                                  .pivots_matrix = least(m, n)});
}

static struct dense_part part_of(const struct dense *d, const struct lu_job *job, int64_t row,
                                 int64_t column) {
    return (struct dense_part){job->lu, d->rows * d->columns, row * d->columns + column, d->columns, 1};
}

/* `columns` columns right of `first + count` catch up with the steps first … first + count - 1. */
static smelt_status catch_up(const struct dense *d, const struct lu_job *job, int64_t first, int64_t count,
                             int64_t columns) {
    int64_t next = first + count;
    TRY(exchange_columns(d, job, first, count, next, columns));
    TRY(halves_solve(d, part_of(d, job, first, first), true, part_of(d, job, first, next), count, columns));
    return halves_subtract(d, part_of(d, job, next, first), part_of(d, job, first, next),
                           part_of(d, job, next, next), d->rows - next, columns, count, false);
}

static smelt_status factor_halves(const struct dense *d, const struct lu_job *job, int64_t first,
                                  int64_t columns) {
    if (columns <= HOST_PANEL) return factor_panel(d, job, first, columns);
    int64_t half = halves_cut(columns, HOST_PANEL), rest = columns - half;
    TRY(factor_halves(d, job, first, half));
    TRY(catch_up(d, job, first, half, rest));
    TRY(factor_halves(d, job, first + half, rest));
    return exchange_columns(d, job, first + half, rest, first, half);
}

/* Matrices of one block: one threadgroup per matrix. */
static smelt_status factor_small(const struct dense *d, const struct lu_job *job) {
    const struct {
        uint32_t rows, columns, rank;
        float tolerance;
    } size = {(uint32_t)d->rows, (uint32_t)d->columns, (uint32_t)least(d->rows, d->columns),
              (float)job->tolerance};
    smelt_dispatch_desc dispatch = {.buffers = {{.array = job->lu},
                                                {.array = job->pivots},
                                                {.array = d->flags},
                                                {.array = d->stats},
                                                {.bytes = &size, .size = sizeof size}},
                                    .groups = {d->batch, 1, 1},
                                    .threadgroup = {d->host ? 32 : 128, 1, 1}};
    return dense_launch(d, KERNEL_LU_SMALL, 0, &dispatch);
}

smelt_status lu_compute(struct dense *d, void *context) {
    struct lu_job *job = context;
    int64_t m = d->rows, n = d->columns, rank = least(m, n), width = DENSE_BLOCK;
    TRY(dense_clear(d));
    d->measured = true;
    TRY(dense_copy(d, d->a, job->lu,
                   &(struct copy_size){.rows = (uint32_t)m,
                                       .columns = (uint32_t)n,
                                       .jitter = d->jitter != NULL,
                                       .measure = 1,
                                       .from_matrix = m * n,
                                       .from_row = n,
                                       .to_matrix = m * n,
                                       .to_row = n}));
    if (m <= DENSE_BLOCK && n <= DENSE_BLOCK) return factor_small(d, job);
    if (d->host) {
        TRY(factor_halves(d, job, 0, rank));
        return n > rank ? catch_up(d, job, 0, rank, n - rank) : SMELT_OK;
    }
    for (int64_t first = 0; first < rank; first += width) {
        int64_t columns = least(width, rank - first);
        TRY(factor_panel(d, job, first, columns));
        TRY(update(d, job, first, columns));
    }
    return SMELT_OK;
}

static smelt_status repair(struct dense *d, void *context, int64_t matrix, double *a, int64_t *failed,
                           double *value) {
    struct lu_job *job = context;
    int64_t rank = least(d->rows, d->columns);
    int32_t *pivots = (int32_t *)job->pivots->data + matrix * rank;
    smelt_array *own = NULL;
    if (!d->host) {
        TRY(smelt_array_create(SMELT_INT32, (smelt_shape){.ndim = 1, .size = {rank}}, &own));
        pivots = (int32_t *)own->data;
    }
    bool wide = d->dtype == SMELT_FLOAT64;
    double tolerance = job->tolerance;
    if (tolerance > 0) {
        double largest = 0;
        for (int64_t i = 0; i < d->rows * d->columns; i++)
            largest = a[i] > largest ? a[i] : -a[i] > largest ? -a[i] : largest;
        tolerance *= wide ? largest : 0;
    }
    if (wide || !lapack_lu(a, d->rows, d->columns, pivots, tolerance, failed, value))
        reference_lu_factor(a, d->rows, d->columns, pivots, tolerance, failed, value);
    smelt_status status = dense_store(d, job->lu, matrix, a);
    if (own && status == SMELT_OK) {
        smelt_array *part = NULL;
        status = smelt_array_view(job->pivots, own->shape, NULL, matrix * rank, &part);
        if (status == SMELT_OK) status = smelt_array_copy(part, own);
        smelt_array_release(part);
    }
    smelt_array_release(own);
    return status;
}

const struct dense_method lu_method = {lu_compute, repair,
                                       "pivot",    "a magnitude above the tolerance: the matrix is singular",
                                       CODE_TINY,  TRIANGLE_ALL};

smelt_status lu_create(const struct dense *d, struct lu_job *job) {
    int64_t m = d->rows, n = d->columns;
    bool wide = d->dtype == SMELT_FLOAT64;
    TRY(dense_create(d, wide ? SMELT_FLOAT64 : SMELT_FLOAT32, d->batch, m, n, &job->lu));
    TRY(dense_create(d, SMELT_INT32, d->batch, least(m, n), 1, &job->pivots));
    if (wide || !d->a->size) return SMELT_OK;
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, DENSE_BLOCK, m, &job->panel));
    return d->host ? SMELT_OK : dense_create(d, SMELT_FLOAT32, d->batch, DENSE_BLOCK, n, &job->solved);
}

void lu_release(struct lu_job *job) {
    smelt_array_release(job->lu);
    smelt_array_release(job->pivots);
    smelt_array_release(job->panel);
    smelt_array_release(job->solved);
}

static smelt_status refuse_derivative(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                                      smelt_array *const *cotangents, smelt_array **gradients) {
    (void)context, (void)inputs, (void)outputs, (void)cotangents, (void)gradients;
    return fail(SMELT_ERROR_UNSUPPORTED,
                "lu has no derivative; use solve, whose derivative needs none of lu");
}

smelt_status smelt_lu(smelt_array *a, const smelt_linalg_desc *desc, smelt_array **lu, smelt_array **pivots) {
    struct dense d = {0};
    struct lu_job job = {0};
    smelt_array *made[2] = {0};
    if (!lu || !pivots) return fail(SMELT_ERROR_INVALID_ARGUMENT, "lu: %s is NULL", lu ? "pivots" : "lu");
    smelt_tape_pause();
    smelt_status status = dense_begin("lu", a, desc, &d);
    job.tolerance = d.desc.tolerance > 0 ? d.desc.tolerance : -1;
    if (status == SMELT_OK) status = lu_create(&d, &job);
    if (status == SMELT_OK && d.a->size) status = dense_run(&d, &lu_method, &job);
    if (status == SMELT_OK) {
        status = dense_finish(&d, job.lu, d.rows, d.columns, d.dtype, &made[0]);
        job.lu = NULL;
    }
    if (status == SMELT_OK) {
        status = dense_finish(&d, job.pivots, least(d.rows, d.columns), -1, SMELT_INT32, &made[1]);
        job.pivots = NULL;
    }
    lu_release(&job);
    dense_end(&d);
    smelt_tape_resume();
    if (status == SMELT_OK)
        status = smelt_tape_record(&(smelt_record_desc){.name = "lu",
                                                        .inputs = &a,
                                                        .input_count = 1,
                                                        .outputs = &made[0],
                                                        .output_count = 1,
                                                        .vjp = refuse_derivative});
    if (status != SMELT_OK) {
        smelt_array_release(made[0]);
        smelt_array_release(made[1]);
        return status;
    }
    *lu = made[0];
    *pivots = made[1];
    return SMELT_OK;
}
