/* A model, exported from PyTorch as a package (examples/python/segmenter/export.py), finds the cars of a
 * street scene: attention and all other kernels are smelt's, and no Python runs. */
#include "demo.h"

#include <png.h>
#include <smelt/graph.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 96
#define PIXELS (SIDE * SIDE)
#define CAR 5 /* its place in CLASSES of examples/python/segmenter/scenes.py */

/* SIDE x SIDE pixels of one or three channels, side by side. */
static unsigned char *read_pixels(const char *name, png_uint_32 format, size_t channels) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", DEMO_FOLDER, name);
    png_image image = {.version = PNG_IMAGE_VERSION};
    unsigned char *pixels = require_memory(malloc(channels * PIXELS));
    bool good = png_image_begin_read_from_file(&image, path) && image.width == SIDE && image.height == SIDE;
    image.format = format;
    if (!good || !png_image_finish_read(&image, NULL, pixels, 0, NULL)) {
        fprintf(stderr, "cannot read '%s' as a picture of %d x %d pixels: %s\n", path, SIDE, SIDE,
                image.message);
        exit(1);
    }
    return pixels;
}

/* The picture as the model takes it: (1, 3, SIDE, SIDE), 0 to 1. */
static smelt_array *model_input(const unsigned char *pixels) {
    smelt_array *array;
    require(smelt_array_create(SMELT_FLOAT32, (smelt_shape){4, {1, 3, SIDE, SIDE}}, &array), "the picture");
    float *values = smelt_array_data(array);
    for (int channel = 0; channel < 3; channel++)
        for (int i = 0; i < PIXELS; i++) values[channel * PIXELS + i] = (float)pixels[3 * i + channel] / 255;
    return array;
}

/* Logits, (1, 1, SIDE, SIDE). */
static smelt_array *execute(smelt_array *picture) {
    smelt_compiled *compiled;
    smelt_session *session;
    smelt_array *word, *masks;
    const int64_t car = CAR;
    require(smelt_compiled_load(DEMO_FOLDER "/segmenter.smeltlib", &compiled), "the model");
    require(smelt_session_create(compiled, NULL, &session), "the model's session");
    require(smelt_array_from_values(SMELT_INT64, (smelt_shape){2, {1, 1}}, &car, &word), "the word");
    smelt_array *inputs[] = {picture, word};
    require(smelt_session_execute(session,
                                  &(smelt_execute_desc){.inputs = inputs,
                                                        .input_count = 2,
                                                        .input_names = (const char *[]){"pictures", "words"}},
                                  &masks),
            "the model's execution");
    smelt_array_release(word);
    smelt_session_release(session);
    smelt_compiled_release(compiled);
    return masks;
}

void find_cars(const char *folder) {
    static const double blue[3] = {0.12, 0.35, 1};
    unsigned char *pixels = read_pixels("street.png", PNG_FORMAT_RGB, 3);
    unsigned char *labels = read_pixels("street.labels.png", PNG_FORMAT_GRAY, 1);
    smelt_array *picture = model_input(pixels), *masks = execute(picture), *coloured;
    double *logits = values_of(masks);
    require(smelt_array_create(SMELT_FLOAT32, (smelt_shape){3, {SIDE, SIDE, 3}}, &coloured), "the result");
    float *out = smelt_array_data(coloured);
    int both = 0, either = 0;
    for (int i = 0; i < PIXELS; i++) {
        bool found = logits[i] > 0, expected = labels[i] == CAR;
        both += found && expected;
        either += found || expected;
        for (int c = 0; c < 3; c++) {
            double value = pixels[3 * i + c] / 255.0;
            out[3 * i + c] = (float)(found ? 0.35 * value + 0.65 * blue[c] : value);
        }
    }
    /* The error is what the overlap lacks; one that is NaN is wrong. */
    report("a model finds cars: 1 - overlap", NULL, either ? 1 - (double)both / either : 1, 0.1);
    write_picture(coloured, folder, "cars.png");
    smelt_array_release(coloured);
    smelt_array_release(masks);
    smelt_array_release(picture);
    free(logits);
    free(labels);
    free(pixels);
}
