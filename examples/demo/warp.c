#include "demo.h"
#include "kernels/vision/grid_sample.h"

#include <math.h>
#include <stdlib.h>

smelt_array *whirl(int64_t rows, int64_t columns) {
    smelt_array *points;
    require(smelt_array_create(SMELT_FLOAT32, (smelt_shape){4, {1, rows, columns, 2}}, &points),
            "the points");
    float *to = smelt_array_data(points);
    const double aspect = (double)PICTURE_WIDTH / PICTURE_HEIGHT;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            double x = ((2 * (double)column + 1) / (double)columns - 1) * aspect;
            double y = (2 * (double)row + 1) / (double)rows - 1;
            /* Turned by an angle that falls off with the distance from the centre, and drawn in at the
             * corners, past the picture's edge, where samples are 0. */
            double distance = hypot(x, y), angle = 2.6 * exp(-2.2 * distance * distance);
            double scale = 0.93 + 0.06 * distance * distance * distance * distance;
            *to++ = (float)(scale * (cos(angle) * x - sin(angle) * y) / aspect);
            *to++ = (float)(scale * (sin(angle) * x + cos(angle) * y));
        }
    return points;
}

smelt_array *warp_picture(smelt_array *picture) {
    const struct grid_sample_size size = {1, PICTURE_HEIGHT, PICTURE_WIDTH, 3, PICTURE_HEIGHT, PICTURE_WIDTH};
    smelt_array *batch, *points = whirl(PICTURE_HEIGHT, PICTURE_WIDTH), *warped;
    smelt_run_info info;
    require(smelt_array_view(picture, (smelt_shape){4, {1, PICTURE_HEIGHT, PICTURE_WIDTH, 3}},
                             (int64_t[]){PICTURE_HEIGHT * PICTURE_WIDTH * 3, PICTURE_WIDTH * 3, 3, 1}, 0,
                             &batch),
            "the picture as a batch of one");
    require(smelt_grid_sample(batch, points, &warped, &(smelt_call){.info = &info}), "grid_sample");
    double *x = values_of(picture), *grid = values_of(points);
    double *expected = require_memory(malloc(sizeof *expected * (size_t)smelt_array_size(warped)));
    smelt_reference_grid_sample(&size, x, grid, expected);
    report("bend it: grid_sample", &info, largest_error(warped, expected), 1e-4);
    free(x);
    free(grid);
    free(expected);
    smelt_array_release(batch);
    smelt_array_release(points);
    return warped;
}
