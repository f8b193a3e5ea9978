/* A kernel and its gradient: bilinear samples of an image at given points, and what a change of each pixel
 * does to their sum. The gradient scatters: many threads add to one pixel, so its output is atomic and starts
 * at 0.
 *
 *     grid_sample        exits with 0 when samples and gradient are right
 *
 * One channel and no batch, to keep it short; kernels/vision/ has the whole operation.
 */
#include <smelt/smelt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HEIGHT 13
#define WIDTH 17
#define POINTS 500

/* Metal that both bodies use; it stands in front of the kernel functions. Points run from -1 to 1, the
 * image's edges. */
static const char header[] =
    "struct place { int column, row; float right, below; };\n"
    "METAL_FUNC place find(float x, float y, int width, int height) {\n"
    "    float across = ((x + 1) * width - 1) / 2, down = ((y + 1) * height - 1) / 2;\n"
    "    int column = int(metal::floor(across)), row = int(metal::floor(down));\n"
    "    return place{column, row, across - column, down - row};\n"
    "}\n"
    "METAL_FUNC float weight(place p, int corner) {\n"
    "    return (corner & 1 ? p.right : 1 - p.right) * (corner & 2 ? p.below : 1 - p.below);\n"
    "}\n";

static const char forward[] = "uint i = thread_position_in_grid.x;\n"
                              "int height = image_shape[0], width = image_shape[1];\n"
                              "place p = find(points[2 * i], points[2 * i + 1], width, height);\n"
                              "float sum = 0;\n"
                              "for (int corner = 0; corner < 4; corner++) {\n"
                              "    int column = p.column + (corner & 1), row = p.row + (corner >> 1);\n"
                              "    if (column >= 0 && column < width && row >= 0 && row < height)\n"
                              "        sum += weight(p, corner) * image[row * width + column];\n"
                              "}\n"
                              "samples[i] = sum;\n";

/* gradient is `device atomic<float> *`: atomic_outputs says so. */
static const char backward[] =
    "uint i = thread_position_in_grid.x;\n"
    "int height = image_shape[0], width = image_shape[1];\n"
    "place p = find(points[2 * i], points[2 * i + 1], width, height);\n"
    "for (int corner = 0; corner < 4; corner++) {\n"
    "    int column = p.column + (corner & 1), row = p.row + (corner >> 1);\n"
    "    if (column >= 0 && column < width && row >= 0 && row < height)\n"
    "        atomic_fetch_add_explicit(&gradient[row * width + column], weight(p, corner),\n"
    "                                  memory_order_relaxed);\n"
    "}\n";

static void check(smelt_status status) {
    if (status == SMELT_OK) return;
    fprintf(stderr, "%s: %s\n", smelt_status_name(status), smelt_error());
    exit(1);
}

/* Runs one of the bodies on an image and points; the output has `shape`. */
static smelt_array *run(const char *name, const char *body, bool atomic, smelt_array *image,
                        smelt_array *points, smelt_shape shape) {
    smelt_kernel *kernel;
    smelt_array *output;
    check(smelt_kernel_create(&(smelt_kernel_desc){.name = name,
                                                   .source = body,
                                                   .header = header,
                                                   .inputs = {"image", "points"},
                                                   .outputs = {atomic ? "gradient" : "samples"},
                                                   .atomic_outputs = atomic},
                              &kernel));
    check(smelt_kernel_run(kernel,
                           &(smelt_run_desc){.inputs = {image, points},
                                             .grid = {POINTS},
                                             .threadgroup = {64},
                                             .output_shapes = {shape},
                                             .output_dtypes = {SMELT_FLOAT32},
                                             .initialise = atomic,
                                             .init_value = 0},
                           &output));
    smelt_kernel_release(kernel);
    return output;
}

/* The same sample in float64. */
static double expected_sample(const float *image, const float *point) {
    double across = (((double)point[0] + 1) * WIDTH - 1) / 2,
           down = (((double)point[1] + 1) * HEIGHT - 1) / 2;
    double sum = 0;
    for (int row = 0; row < HEIGHT; row++)
        for (int column = 0; column < WIDTH; column++)
            sum += (double)image[row * WIDTH + column] * fmax(0, 1 - fabs(across - column)) *
                   fmax(0, 1 - fabs(down - row));
    return sum;
}

int main(void) {
    smelt_shape image_shape = {2, {HEIGHT, WIDTH}}, samples_shape = {1, {POINTS}};
    smelt_array *image, *points;
    check(smelt_array_normal(SMELT_FLOAT32, image_shape, 1, &image));
    check(smelt_array_uniform(SMELT_FLOAT32, (smelt_shape){2, {POINTS, 2}}, 2, &points));
    float *point = smelt_array_data(points);
    for (int i = 0; i < 2 * POINTS; i++) point[i] = 2.4f * point[i] - 1.2f; /* some outside the image */

    smelt_array *samples = run("sample", forward, false, image, points, samples_shape);
    smelt_array *gradient = run("sample_gradient", backward, true, image, points, image_shape);

    /* The samples are linear in the image: their sum is the image's scalar product with the gradient. */
    const float *pixel = smelt_array_data(image), *sample = smelt_array_data(samples);
    const float *slope = smelt_array_data(gradient);
    double worst = 0, sum = 0, product = 0;
    for (int i = 0; i < POINTS; i++) {
        double error = fabs((double)sample[i] - expected_sample(pixel, point + 2 * i));
        if (!(error <= worst)) worst = error;
        sum += (double)sample[i];
    }
    for (int i = 0; i < HEIGHT * WIDTH; i++) product += (double)pixel[i] * (double)slope[i];
    printf("%d samples: largest error %.2g; their sum is %.6f, by the gradient %.6f\n", POINTS, worst, sum,
           product);

    smelt_array_release(image);
    smelt_array_release(points);
    smelt_array_release(samples);
    smelt_array_release(gradient);
    return worst < 1e-5 && fabs(sum - product) < 1e-3 ? 0 : 1;
}
