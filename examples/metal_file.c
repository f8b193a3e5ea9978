/* A whole .metal file, as a Metal program would use it: a library, a function of it, buffers by index, a
 * small struct passed as bytes, threadgroup memory, and a dispatch that counts threadgroups.
 *
 *     metal_file [FILE]        FILE: row_softmax.metal; exits with 0 when the result is right
 */
#include <smelt/smelt.h>

#include <math.h>
#include <stdio.h>

#define ROWS 5
#define COLUMNS 1000
#define THREADS 96 /* of the threadgroup that works on one row */

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, smelt_error());
    return 1;
}

/* As the kernel declares it. */
struct row_size {
    uint32_t columns;
    float scale;
};

static double expected(const float *row, int column, double scale) {
    double sum = 0;
    for (int i = 0; i < COLUMNS; i++) sum += exp(scale * ((double)row[i] - (double)row[column]));
    return 1 / sum;
}

int main(int argc, char **argv) {
    /* Reading a library finds its kernel functions; the first run of one compiles it. */
    smelt_library *library;
    smelt_function *function;
    if (smelt_library_create(&(smelt_library_desc){.path = argc > 1 ? argv[1] : METAL_FILE}, &library) !=
        SMELT_OK)
        return failed("the library");
    for (int i = 0; i < smelt_library_function_count(library); i++)
        printf("kernel function: %s\n", smelt_library_function_name(library, i));
    if (smelt_library_function(library, &(smelt_function_desc){.name = "row_softmax"}, &function) != SMELT_OK)
        return failed("the function");

    smelt_shape shape = {2, {ROWS, COLUMNS}};
    smelt_array *x, *y;
    if (smelt_array_normal(SMELT_FLOAT32, shape, 3, &x) != SMELT_OK) return failed("the input");
    if (smelt_array_create(SMELT_FLOAT32, shape, &y) != SMELT_OK) return failed("the output");

    struct row_size size = {COLUMNS, 2.5f};
    smelt_run_info info;
    smelt_dispatch_desc dispatch = {
        .buffers = {{.array = x}, {.array = y}, {.bytes = &size, .size = sizeof size}},
        .threadgroup_memory = {THREADS * sizeof(float)},
        .groups = {ROWS},
        .threadgroup = {THREADS},
        .info = &info};
    if (smelt_function_run(function, &dispatch) != SMELT_OK) return failed("the run");

    const float *from = smelt_array_data(x), *to = smelt_array_data(y);
    double worst = 0;
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column += 37) {
            double wanted = expected(from + row * COLUMNS, column, (double)size.scale);
            double error = fabs((double)to[row * COLUMNS + column] - wanted) / wanted;
            if (!(error <= worst)) worst = error;
        }
    printf(
        "softmax of %d rows on %s: %llu threadgroups of %u threads, %llu bytes of threadgroup memory each, "
        "largest relative error %.2g\n",
        ROWS, info.device, (unsigned long long)info.groups[0], info.threads_per_group[0],
        (unsigned long long)info.threadgroup_bytes, worst);

    smelt_array_release(x);
    smelt_array_release(y);
    smelt_function_release(function);
    smelt_library_release(library);
    return worst < 1e-5 ? 0 : 1;
}
