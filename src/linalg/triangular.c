/* Solving with triangular matrices: on the host by halves (halves.c), else by blocks of rows: a block is
 * solved, and its products are subtracted from the rows that are left. */
#include "linalg/dense.h"

/* One block of rows first … first + size - 1 of x (n, k); `solved` (DENSE_BLOCK, k) receives its negative. */
static smelt_status solve_rows(const struct dense *d, smelt_array *t, int64_t n, int64_t row, int64_t column,
                               bool backward, bool unit, int64_t first, int64_t size, smelt_array *x,
                               int64_t k, smelt_array *solved) {
    int64_t start = backward ? first + size - 1 : first, sign = backward ? -1 : 1;
    return dense_solve_block(d, t, x, solved, NULL,
                             &(struct solve_size){.size = (uint32_t)size,
                                                  .columns = (uint32_t)k,
                                                  .diagonal = unit ? DIAGONAL_UNIT : DIAGONAL_DIVIDES,
                                                  .store = 1,
                                                  .parts = 1,
                                                  .t_matrix = t->shape.size[1] * t->shape.size[2],
                                                  .t_first = start * (row + column),
                                                  .t_row = sign * row,
                                                  .t_column = sign * column,
                                                  .b_matrix = n * k,
                                                  .b_first = start * k,
                                                  .b_row = sign * k,
                                                  .x_matrix = DENSE_BLOCK * k,
                                                  .x_first = backward ? (size - 1) * k : 0,
                                                  .x_row = sign * k});
}

static smelt_status subtract(const struct dense *d, smelt_array *t, int64_t n, int64_t row, int64_t column,
                             int64_t first, int64_t size, int64_t rest, int64_t rest_size, smelt_array *x,
                             int64_t k, smelt_array *solved) {
    return dense_product(d, d->batch, t, solved, x,
                         &(struct product_size){.rows = (uint32_t)rest_size,
                                                .columns = (uint32_t)k,
                                                .depth = (uint32_t)size,
                                                .adds = 1,
                                                .a_matrix = t->shape.size[1] * t->shape.size[2],
                                                .a_first = rest * row + first * column,
                                                .a_row = row,
                                                .a_column = column,
                                                .b_matrix = DENSE_BLOCK * k,
                                                .b_row = k,
                                                .b_column = 1,
                                                .c_matrix = n * k,
                                                .c_first = rest * k,
                                                .c_row = k});
}

smelt_status dense_triangular(const struct dense *d, smelt_array *t, int64_t t_row, int64_t n, bool upper,
                              bool transpose, bool unit, smelt_array *x, int64_t k) {
    int64_t row = transpose ? 1 : t_row, column = transpose ? t_row : 1;
    bool backward = upper != transpose;
    smelt_array *solved = NULL;
    if (!n || !k || !d->batch) return SMELT_OK;
    if (d->host) {
        struct dense_part triangle = {t, t->shape.size[1] * t->shape.size[2], 0, row, column},
                          whole = {x, n * k, 0, k, 1};
        if (backward) {
            /* From the last row up, an upper triangle is a lower one. */
            triangle.first = (n - 1) * (row + column), triangle.row = -row, triangle.column = -column;
            whole.first = (n - 1) * k, whole.row = -k;
        }
        return halves_solve(d, triangle, unit, whole, n, k);
    }
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, DENSE_BLOCK, k, &solved));
    smelt_status status = SMELT_OK;
    for (int64_t done = 0; done < n && status == SMELT_OK; done += DENSE_BLOCK) {
        int64_t size = n - done < DENSE_BLOCK ? n - done : DENSE_BLOCK, left = n - done - size,
                first = backward ? left : done;
        status = solve_rows(d, t, n, row, column, backward, unit, first, size, x, k, solved);
        if (status == SMELT_OK && left)
            status =
                subtract(d, t, n, row, column, first, size, backward ? 0 : done + size, left, x, k, solved);
    }
    smelt_array_release(solved);
    return status;
}
