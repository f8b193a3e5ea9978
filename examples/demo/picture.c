#include "demo.h"

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Creates a folder with those above it. */
static void make_folder(const char *folder) {
    char *path = require_memory(strdup(folder));
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) *slash = 0;
        if (*path && mkdir(path, 0777) != 0 && errno != EEXIST) {
            fprintf(stderr, "cannot create the folder '%s': %s\n", path, strerror(errno));
            exit(1);
        }
        if (!slash) break;
        *slash = '/';
    }
    free(path);
}

void write_picture(const smelt_array *picture, const char *folder, const char *name) {
    smelt_shape shape = smelt_array_shape(picture);
    int64_t count = smelt_array_size(picture);
    double *values = values_of(picture);
    unsigned char *bytes = require_memory(malloc((size_t)count));
    for (int64_t i = 0; i < count; i++) {
        double value = values[i] < 0 ? 0 : values[i] > 1 ? 1 : values[i];
        bytes[i] = (unsigned char)(255 * value + 0.5);
    }
    make_folder(folder);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)shape.size[shape.ndim - 2],
                       .height = (png_uint_32)shape.size[shape.ndim - 3],
                       .format = PNG_FORMAT_RGB};
    if (!png_image_write_to_file(&image, path, 0, bytes, 0, NULL)) {
        fprintf(stderr, "cannot write '%s': %s\n", path, image.message);
        exit(1);
    }
    free(bytes);
    free(values);
}
