/* A kernel that reads its input where it lies: here the transpose of a matrix with its rows turned around,
 * which no copy is made of.
 *
 *     strided_exp        exits with 0 when the result is right
 */
#include <smelt/smelt.h>

#include <math.h>
#include <stdio.h>

#define ROWS 6
#define COLUMNS 10

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, smelt_error());
    return 1;
}

int main(void) {
    /* `strided` passes inputs with their strides. inp_shape, inp_strides and inp_ndim join the signature
     * because the body names them; elem_to_loc finds the place of the i-th element. Outputs are always
     * row-contiguous. */
    smelt_kernel *kernel;
    if (smelt_kernel_create(
            &(smelt_kernel_desc){
                .name = "myexp_strided",
                .source = "uint i = thread_position_in_grid.x;\n"
                          "int64_t place = elem_to_loc<int64_t>(i, inp_shape, inp_strides, inp_ndim);\n"
                          "out[i] = metal::exp(inp[place]);\n",
                .inputs = {"inp"},
                .outputs = {"out"},
                .strided = true},
            &kernel) != SMELT_OK)
        return failed("the kernel");

    smelt_array *matrix, *view, *y;
    if (smelt_array_normal(SMELT_FLOAT32, (smelt_shape){2, {ROWS, COLUMNS}}, 1, &matrix) != SMELT_OK)
        return failed("the input");

    /* Element (c, r) of the view is element (ROWS - 1 - r, c) of the matrix. Strides and offsets count
     * elements. */
    smelt_shape shape = {2, {COLUMNS, ROWS}};
    if (smelt_array_view(matrix, shape, (int64_t[]){1, -COLUMNS}, (ROWS - 1) * COLUMNS, &view) != SMELT_OK)
        return failed("the view");

    if (smelt_kernel_run(kernel,
                         &(smelt_run_desc){.inputs = {view},
                                           .grid = {ROWS * COLUMNS},
                                           .threadgroup = {16},
                                           .output_shapes = {shape},
                                           .output_dtypes = {SMELT_FLOAT32}},
                         &y) != SMELT_OK)
        return failed("the run");

    const float *from = smelt_array_data(matrix), *to = smelt_array_data(y);
    double worst = 0;
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < ROWS; r++) {
            double expected = exp((double)from[(ROWS - 1 - r) * COLUMNS + c]);
            double error = fabs((double)to[c * ROWS + r] - expected) / expected;
            if (!(error <= worst)) worst = error;
        }
    printf("exp of a transposed, reversed view: largest relative error %.2g\n", worst);

    smelt_array_release(y);
    smelt_array_release(view);
    smelt_array_release(matrix);
    smelt_kernel_release(kernel);
    return worst < 1e-6 ? 0 : 1;
}
