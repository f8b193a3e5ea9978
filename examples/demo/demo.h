/* The demo's steps. Each runs kernels, compares with float64, and reports one line or more. */
#ifndef SMELT_DEMO_H
#define SMELT_DEMO_H

#include <smelt/smelt.h>

#define PICTURE_WIDTH 512
#define PICTURE_HEIGHT 384

/* Ends the program with smelt's message unless the call succeeded. */
void require(smelt_status status, const char *what);
/* Ends the program for lack of memory if `memory` is NULL; else yields it. */
void *require_memory(void *memory);

/* One line of the report. info: the launch meant (NULL for a step that has none of its own). The step is
 * right if `error` is at most `allowed`. */
void report(const char *step, const smelt_run_info *info, double error, double allowed);
/* The number of steps reported, and of those that were wrong. */
int steps_done(void);
int steps_wrong(void);

/* The elements in row-major order as float64; free() it. */
double *values_of(const smelt_array *array);
/* The largest difference between an array and what was expected; infinity if anything is not a number. */
double largest_error(const smelt_array *actual, const double *expected);

/* Writes a (height, width, 3) float32 array as FOLDER/NAME: 0 is black, 1 is white. Creates the folder. */
void write_picture(const smelt_array *picture, const char *folder, const char *name);

/* Renders the scene: a new (height, width, 3) float32 array. */
smelt_array *render_scene(void);
/* Samples the picture at the points of a whirl: the picture, bent. */
smelt_array *warp_picture(smelt_array *picture);
/* The points of a whirl, (1, rows, columns, 2): where each pixel of the bent picture is taken from. */
smelt_array *whirl(int64_t rows, int64_t columns);
/* Checks the derivatives of the warp against float64 and against finite differences. */
void check_gradient(smelt_array *picture);
/* Block Cholesky, and the triangular inverse with 64 and with 128 threads. */
void check_linear_algebra(void);
/* Executes an exported model on a street scene: its cars in blue are FOLDER/cars.png. */
void find_cars(const char *folder);

#endif
