/* Triangles by halves, on the host: the first half of the rows is solved, its products with what is below are
 * subtracted from the second half, and that is solved. Half of all operations are then in products as deep as
 * half the triangle, which load and store each sum once. */
#include "linalg/dense.h"

struct dense_part dense_part_from(struct dense_part part, int64_t i, int64_t j) {
    part.first += i * part.row + j * part.column;
    return part;
}

int64_t halves_cut(int64_t n, int64_t block) {
    return (n / block + 1) / 2 * block;
}

static smelt_status solve_block(const struct dense *d, struct dense_part t, bool unit, struct dense_part x,
                                int64_t n, int64_t k) {
    return dense_solve_block(d, t.array, x.array, x.array, NULL,
                             &(struct solve_size){.size = (uint32_t)n,
                                                  .columns = (uint32_t)k,
                                                  .diagonal = unit ? DIAGONAL_UNIT : DIAGONAL_DIVIDES,
                                                  .store = 1,
                                                  .parts = 1,
                                                  .silent = 1,
                                                  .t_matrix = t.matrix,
                                                  .t_first = t.first,
                                                  .t_row = t.row,
                                                  .t_column = t.column,
                                                  .b_matrix = x.matrix,
                                                  .b_first = x.first,
                                                  .b_row = x.row,
                                                  .x_matrix = x.matrix,
                                                  .x_first = x.first,
                                                  .x_row = x.row});
}

smelt_status halves_subtract(const struct dense *d, struct dense_part a, struct dense_part b,
                             struct dense_part c, int64_t rows, int64_t columns, int64_t depth, bool upper) {
    return dense_product(d, d->batch, a.array, b.array, c.array,
                         &(struct product_size){.rows = (uint32_t)rows,
                                                .columns = (uint32_t)columns,
                                                .depth = (uint32_t)depth,
                                                .upper = upper,
                                                .adds = SUBTRACTS,
                                                .a_matrix = a.matrix,
                                                .a_first = a.first,
                                                .a_row = a.row,
                                                .a_column = a.column,
                                                .b_matrix = b.matrix,
                                                .b_first = b.first,
                                                .b_row = b.row,
                                                .b_column = b.column,
                                                .c_matrix = c.matrix,
                                                .c_first = c.first,
                                                .c_row = c.row});
}

smelt_status halves_solve(const struct dense *d, struct dense_part t, bool unit, struct dense_part x,
                          int64_t n, int64_t k) {
    if (n <= DENSE_BLOCK) return solve_block(d, t, unit, x, n, k);
    int64_t half = halves_cut(n, DENSE_BLOCK);
    struct dense_part rest = dense_part_from(x, half, 0);
    TRY(halves_solve(d, t, unit, x, half, k));
    TRY(halves_subtract(d, dense_part_from(t, half, 0), x, rest, n - half, k, half, false));
    return halves_solve(d, dense_part_from(t, half, half), unit, rest, n - half, k);
}
