/* Doubles eight numbers with an installed smelt, and prints its version. */
#include <smelt/autodiff.h>
#include <smelt/dlpack.h>
#include <smelt/graph.h>
#include <smelt/ops.h>
#include <smelt/smelt.h>
#include <stdio.h>

int main(void) {
    smelt_shape shape = {1, {8}};
    smelt_array *x = NULL, *y = NULL;
    smelt_kernel *kernel = NULL;
    smelt_status status = smelt_array_arange(SMELT_FLOAT32, shape, &x);
    if (status == SMELT_OK)
        status = smelt_kernel_create(
            &(smelt_kernel_desc){.name = "twice",
                                 .source = "uint i = thread_position_in_grid.x; out[i] = 2 * inp[i];",
                                 .inputs = {"inp"},
                                 .outputs = {"out"}},
            &kernel);
    if (status == SMELT_OK)
        status = smelt_kernel_run(kernel,
                                  &(smelt_run_desc){.inputs = {x},
                                                    .grid = {8},
                                                    .threadgroup = {8},
                                                    .output_shapes = {shape},
                                                    .output_dtypes = {SMELT_FLOAT32}},
                                  &y);
    if (status != SMELT_OK)
        fprintf(stderr, "%s\n", smelt_error());
    else
        printf("smelt %s: %g\n", smelt_version(), ((float *)smelt_array_data(y))[7]);
    smelt_array_release(y);
    smelt_kernel_release(kernel);
    smelt_array_release(x);
    return status != SMELT_OK;
}
