/* The rendered scene, and the same scene in float64: landscape.metal line by line. */
#include "demo.h"

#include <math.h>
#include <stdlib.h>

extern const char kernel_text_landscape[], kernel_text_scene[];

struct colour {
    double r, g, b;
};

static struct colour mix(struct colour a, struct colour b, double t) {
    return (struct colour){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static struct colour add(struct colour a, struct colour b, double scale) {
    return (struct colour){a.r + b.r * scale, a.g + b.g * scale, a.b + b.b * scale};
}

static double smoothstep(double low, double high, double x) {
    double t = fmin(fmax((x - low) / (high - low), 0), 1);
    return t * t * (3 - 2 * t);
}

static const double shore = 0.76;

static struct colour sky(double u, double v) {
    double t = v / 0.66;
    struct colour colour =
        mix((struct colour){0.06, 0.09, 0.26}, (struct colour){0.56, 0.25, 0.44}, smoothstep(0, 0.70, t));
    colour = mix(colour, (struct colour){1.0, 0.62, 0.32}, smoothstep(0.40, 1.05, t));
    double streak = sin(58 * v + 2.5 * sin(3.1 * u + 1) + 1.4 * sin(8.3 * u + 17 * v));
    double high = (v - 0.17) / 0.07, low = (v - 0.33) / 0.08;
    double cover = smoothstep(-0.2, 1.1, streak) * (0.35 * exp(-high * high) + 0.55 * exp(-low * low));
    colour = mix(colour, (struct colour){1.0, 0.66, 0.52}, cover);
    double distance = hypot(u - 0.82, v - 0.455);
    colour = add(colour, (struct colour){0.42, 0.22, 0.08}, exp(-5 * distance));
    colour = add(colour, (struct colour){0.35, 0.28, 0.16}, exp(-90 * distance * distance));
    return mix(colour, (struct colour){1.0, 0.95, 0.80}, 1 - smoothstep(0.050, 0.055, distance));
}

static struct colour mountains(double u, double v, struct colour colour) {
    for (int k = 0; k < 5; k++) {
        double near = k / 4.0, f = 3 + 1.7 * k, p = 1.3 + 2.9 * k;
        double height = 0.085 - 0.045 * near;
        double crest = 0.53 + 0.20 * near -
                       height * (sin(f * u + p) + 0.45 * sin(2.7 * f * u + 1.9 * p) +
                                 0.22 * sin(7.3 * f * u + p * p) + 0.1 * sin(17 * f * u));
        struct colour rock =
            mix((struct colour){0.80, 0.47, 0.44}, (struct colour){0.035, 0.05, 0.10}, sqrt(near));
        rock = add(rock, (struct colour){0.16, 0.10, 0.08}, (1 - near) * smoothstep(0, 0.20, v - crest));
        colour = mix(colour, rock, smoothstep(-0.0022, 0.0022, v - crest));
    }
    return colour;
}

static struct colour landscape(double u, double v) {
    double depth = fmax(v - shore, 0);
    double wave = sin(260 * v / (1 + 4 * depth) + 3 * sin(7 * u) + 5 * u);
    double mirror_u = u + 0.10 * depth * wave;
    double mirror_v = fmin(v, shore - 2.2 * depth + 0.10 * depth * wave);
    struct colour colour = mountains(mirror_u, mirror_v, sky(mirror_u, mirror_v));
    double light = 0.86 - 0.5 * depth, crest = 0.025 * wave * smoothstep(0, 0.1, depth);
    struct colour water = {colour.r * light + 0.02 + crest, colour.g * light + 0.01 + crest,
                           colour.b * light + 0.05 + crest};
    return mix(colour, water, smoothstep(0, 0.004, v - shore));
}

static double *expected_scene(void) {
    double *picture = require_memory(malloc(sizeof *picture * PICTURE_HEIGHT * PICTURE_WIDTH * 3)),
           *to = picture;
    for (int y = 0; y < PICTURE_HEIGHT; y++)
        for (int x = 0; x < PICTURE_WIDTH; x++, to += 3) {
            struct colour colour = landscape((x + 0.5) / PICTURE_HEIGHT, (y + 0.5) / PICTURE_HEIGHT);
            to[0] = colour.r;
            to[1] = colour.g;
            to[2] = colour.b;
        }
    return picture;
}

smelt_array *render_scene(void) {
    smelt_kernel *kernel;
    smelt_array *picture;
    smelt_run_info info;
    require(smelt_kernel_create(&(smelt_kernel_desc){.name = "scene",
                                                     .source = kernel_text_scene,
                                                     .header = kernel_text_landscape,
                                                     .source_label = "scene.body",
                                                     .header_label = "landscape.metal",
                                                     .outputs = {"picture"}},
                                &kernel),
            "the scene's kernel");
    require(smelt_kernel_run(kernel,
                             &(smelt_run_desc){.grid = {PICTURE_WIDTH, PICTURE_HEIGHT},
                                               .threadgroup = {16, 16},
                                               .output_shapes = {{3, {PICTURE_HEIGHT, PICTURE_WIDTH, 3}}},
                                               .output_dtypes = {SMELT_FLOAT32},
                                               .info = &info},
                             &picture),
            "rendering");
    double *expected = expected_scene();
    /* A crest or a wave that is off by a rounding of its phase moves an edge by a small part of its width. */
    report("render a picture", &info, largest_error(picture, expected), 2e-3);
    free(expected);
    smelt_kernel_release(kernel);
    return picture;
}
