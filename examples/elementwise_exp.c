/* The smallest whole program: y = exp(x) for an array of half-precision numbers, by a Metal kernel on this
 * CPU.
 *
 *     elementwise_exp        exits with 0 when the result is right
 */
#include <smelt/smelt.h>

#include <math.h>
#include <stdio.h>

/* Every call that can fail returns a status; smelt_error() is the sentence that goes with it. */
static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, smelt_error());
    return 1;
}

/* How far y is from exp(x), relative; both are read as float64. */
static double worst_error(const smelt_array *x, const smelt_array *y) {
    smelt_array *wide_x, *wide_y;
    if (smelt_array_convert(x, SMELT_FLOAT64, &wide_x) != SMELT_OK) return INFINITY;
    if (smelt_array_convert(y, SMELT_FLOAT64, &wide_y) != SMELT_OK) return INFINITY;
    const double *from = smelt_array_data(wide_x), *to = smelt_array_data(wide_y);
    double worst = 0;
    for (int64_t i = 0; i < smelt_array_size(x); i++) {
        double error = fabs(to[i] - exp(from[i])) / exp(from[i]);
        if (!(error <= worst)) worst = error;
    }
    smelt_array_release(wide_x);
    smelt_array_release(wide_y);
    return worst;
}

int main(void) {
    /* A kernel is the body of a Metal function. Its signature is made from the names below and from the
     * arrays of the run: here `const device float16_t *inp`, `device float16_t *out`, and the thread's
     * position, because the body mentions it. */
    smelt_kernel *kernel;
    if (smelt_kernel_create(&(smelt_kernel_desc){.name = "myexp",
                                                 .source = "uint i = thread_position_in_grid.x;\n"
                                                           "out[i] = metal::exp(T(inp[i]));\n",
                                                 .inputs = {"inp"},
                                                 .outputs = {"out"}},
                            &kernel) != SMELT_OK)
        return failed("the kernel");

    /* 4 x 16 normal random numbers; 7 is the seed. */
    smelt_shape shape = {2, {4, 16}};
    smelt_array *x, *y;
    if (smelt_array_normal(SMELT_FLOAT16, shape, 7, &x) != SMELT_OK) return failed("the input");

    /* One thread an element. The grid counts threads, not threadgroups. What is not given has its default. */
    smelt_run_info info;
    smelt_run_desc run = {.inputs = {x},
                          .grid = {smelt_array_size(x)},
                          .threadgroup = {32},
                          .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = SMELT_FLOAT16}},
                          .output_shapes = {shape},
                          .output_dtypes = {SMELT_FLOAT16},
                          .info = &info};
    if (smelt_kernel_run(kernel, &run, &y) != SMELT_OK) return failed("the run");

    /* A half has 11 significant bits: rounding costs at most 2⁻¹¹. */
    double error = worst_error(x, y);
    printf("exp of %lld numbers on %s: %llu threads in %llu threadgroups, largest relative error %.2g\n",
           (long long)smelt_array_size(x), info.device, (unsigned long long)info.threads[0],
           (unsigned long long)info.groups[0], error);

    smelt_array_release(x);
    smelt_array_release(y);
    smelt_kernel_release(kernel);
    return error < 0x1p-10 ? 0 : 1;
}
