/* grid_sample and its VJP in float64, corner by corner as the formulas stand: slow and plain. */
#include "kernels/vision/grid_sample.h"

#include <math.h>
#include <string.h>

struct corner {
    bool inside;
    int64_t pixel;     /* row * width + column */
    double weight;     /* of this corner in the mean */
    double by_x, by_y; /* its derivatives by the point's pixel coordinates */
};

static void find_corners(const struct grid_sample_size *size, const double *point, struct corner corners[4]) {
    double x = ((point[0] + 1) * (double)size->width - 1) / 2,
           y = ((point[1] + 1) * (double)size->height - 1) / 2;
    double x0 = floor(x), y0 = floor(y), x1 = x0 + 1, y1 = y0 + 1;
    const double column[4] = {x0, x1, x0, x1}, row[4] = {y0, y0, y1, y1};
    const double weight[4] = {(x1 - x) * (y1 - y), (x - x0) * (y1 - y), (x1 - x) * (y - y0),
                              (x - x0) * (y - y0)};
    const double by_x[4] = {-(y1 - y), y1 - y, -(y - y0), y - y0};
    const double by_y[4] = {-(x1 - x), -(x - x0), x1 - x, x - x0};
    for (int k = 0; k < 4; k++) {
        bool inside = column[k] >= 0 && column[k] <= (double)size->width - 1 && row[k] >= 0 &&
                      row[k] <= (double)size->height - 1;
        corners[k] = (struct corner){.inside = inside, .weight = weight[k], .by_x = by_x[k], .by_y = by_y[k]};
        if (inside) corners[k].pixel = (int64_t)row[k] * size->width + (int64_t)column[k];
    }
}

void smelt_reference_grid_sample(const struct grid_sample_size *size, const double *x, const double *grid,
                                 double *out) {
    int64_t points = size->rows * size->columns, image = size->height * size->width * size->channels;
    for (int64_t p = 0; p < size->batch * points; p++) {
        struct corner corners[4];
        find_corners(size, grid + 2 * p, corners);
        for (int64_t c = 0; c < size->channels; c++) {
            double sum = 0;
            for (int k = 0; k < 4; k++)
                if (corners[k].inside)
                    sum += corners[k].weight * x[p / points * image + corners[k].pixel * size->channels + c];
            out[p * size->channels + c] = sum;
        }
    }
}

void smelt_reference_grid_sample_vjp(const struct grid_sample_size *size, const double *x, const double *grid,
                                     const double *cotangent, double *x_grad, double *grid_grad) {
    int64_t points = size->rows * size->columns, image = size->height * size->width * size->channels;
    memset(x_grad, 0, sizeof *x_grad * (size_t)(size->batch * image));
    for (int64_t p = 0; p < size->batch * points; p++) {
        struct corner corners[4];
        double by_x = 0, by_y = 0;
        find_corners(size, grid + 2 * p, corners);
        for (int64_t c = 0; c < size->channels; c++)
            for (int k = 0; k < 4; k++) {
                if (!corners[k].inside) continue;
                int64_t place = p / points * image + corners[k].pixel * size->channels + c;
                double g = cotangent[p * size->channels + c];
                x_grad[place] += corners[k].weight * g;
                by_x += g * corners[k].by_x * x[place];
                by_y += g * corners[k].by_y * x[place];
            }
        grid_grad[2 * p] = by_x * (double)size->width / 2;
        grid_grad[2 * p + 1] = by_y * (double)size->height / 2;
    }
}
