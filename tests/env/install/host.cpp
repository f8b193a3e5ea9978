// The C interface from C++: what an installed smelt is called from there.
#include <smelt/dlpack.h>
#include <smelt/graph.h>
#include <smelt/smelt.h>

#include <cstdio>

int main() {
    smelt_shape shape = {1, {8}};
    smelt_array *x = nullptr, *y = nullptr;
    smelt_kernel *kernel = nullptr;
    smelt_kernel_desc desc = {};
    desc.name = "twice";
    desc.source = "uint i = thread_position_in_grid.x; out[i] = 2 * inp[i];";
    desc.inputs[0] = "inp";
    desc.outputs[0] = "out";
    smelt_run_desc run = {};
    run.grid[0] = run.threadgroup[0] = 8;
    run.output_shapes[0] = shape;
    run.output_dtypes[0] = SMELT_FLOAT32;
    if (smelt_array_arange(SMELT_FLOAT32, shape, &x) != SMELT_OK || smelt_kernel_create(&desc, &kernel) != SMELT_OK)
        return 1;
    run.inputs[0] = x;
    if (smelt_kernel_run(kernel, &run, &y) != SMELT_OK) return 1;
    std::printf("smelt %s: %g\n", smelt_version(), static_cast<float *>(smelt_array_data(y))[7]);
    smelt_array_release(y);
    smelt_kernel_release(kernel);
    smelt_array_release(x);
}
