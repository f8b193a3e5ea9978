/* libpng is opened when an image is written, so that the command runs where it is not installed. */
#include "picture.h"
#include "base/in_place.h"
#include "commands.h"
#include "values.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

bool picture_is_named(const char *file) {
    const char *dot = strrchr(file, '.');
    return dot && strcasecmp(dot, ".png") == 0;
}

static bool is_float(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16 || dtype == SMELT_FLOAT32;
}

static int channels_of(const smelt_shape *shape) {
    return shape->ndim == 3 ? (int)shape->size[2] : 1;
}

bool picture_check(const char *what, smelt_dtype dtype, const smelt_shape *shape) {
    bool sized = shape->ndim == 2 ||
                 (shape->ndim == 3 && (shape->size[2] == 1 || shape->size[2] == 3 || shape->size[2] == 4));
    int64_t bytes = 1;
    for (int d = 0; d < shape->ndim && sized; d++)
        sized = shape->size[d] >= 1 && !__builtin_mul_overflow(bytes, shape->size[d], &bytes);
    if (!sized || bytes > INT32_MAX)
        return complain(
            "%s does not have the shape of an image; a .png file takes HxW, HxWx1, HxWx3 (RGB) or "
            "HxWx4 (RGBA), of at most 2 GiB",
            what);
    return dtype == SMELT_UINT8 || is_float(dtype) ||
           complain("%s is %s; a .png file takes uint8, or float16, bfloat16 or float32 from 0 to 1", what,
                    smelt_dtype_name(dtype));
}

#if __has_include(<png.h>)
#include <png.h>

/* The pixels as 8-bit numbers, in heap memory; NULL without memory. */
static unsigned char *pixels_of(const smelt_array *array) {
    size_t count = (size_t)smelt_array_size(array);
    unsigned char *pixels = malloc(count);
    smelt_array *dense = NULL;
    smelt_dtype dtype = is_float(smelt_array_dtype(array)) ? SMELT_FLOAT32 : SMELT_UINT8;
    if (!pixels || smelt_array_convert(array, dtype, &dense) != SMELT_OK) {
        free(pixels);
        return NULL;
    }
    const float *reals = smelt_array_data(dense);
    if (dtype == SMELT_UINT8) memcpy(pixels, reals, count);
    for (size_t i = 0; i < count && dtype != SMELT_UINT8; i++)
        pixels[i] = (unsigned char)(reals[i] >= 1 ? 255 : reals[i] > 0 ? 255 * reals[i] + 0.5F : 0);
    smelt_array_release(dense);
    return pixels;
}

typedef __typeof__(png_image_write_to_memory) write_to_memory;

static write_to_memory *find_libpng(void) {
    char library[32];
    snprintf(library, sizeof library, "libpng%d.so.%d", PNG_LIBPNG_VER_SONUM, PNG_LIBPNG_VER_SONUM);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = handle ? dlsym(handle, "png_image_write_to_memory") : NULL;
    if (!found)
        (void)complain("an image cannot be written: %s cannot be opened (Debian's package libpng%d-%d)",
                       library, PNG_LIBPNG_VER_SONUM, PNG_LIBPNG_VER_SONUM);
    write_to_memory *function;
    memcpy(&function, &found, sizeof function);
    return function;
}

/* The file's contents in heap memory, or NULL after a complaint. */
static void *encode(const smelt_array *array, const char *file, size_t *bytes) {
    static const png_uint_32 formats[] = {0, PNG_FORMAT_GRAY, 0, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
    smelt_shape shape = smelt_array_shape(array);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)shape.size[1],
                       .height = (png_uint_32)shape.size[0],
                       .format = formats[channels_of(&shape)]};
    write_to_memory *write = find_libpng();
    unsigned char *pixels = write ? pixels_of(array) : NULL;
    if (write && !pixels) (void)complain("file '%s': no memory for the image", file);
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    void *out = pixels ? malloc(size) : NULL;
    bool good = out && write(&image, out, &size, 0, pixels, 0, NULL);
    if (pixels && !good)
        (void)complain("file '%s' cannot be written: %s", file, out ? image.message : "no memory");
    free(pixels);
    if (!good) {
        free(out);
        return NULL;
    }
    *bytes = size;
    return out;
}
#else
static void *encode(const smelt_array *array, const char *file, size_t *bytes) {
    (void)array;
    *bytes = 0;
    (void)complain("file '%s' cannot be written: this smelt was built without libpng", file);
    return NULL;
}
#endif

/* Writes to `fd`, if it is one, and closes it. True if all was written; otherwise errno has the reason. */
static bool write_all(int fd, const void *data, size_t size) {
    FILE *out = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!out) return false;
    bool good = fwrite(data, 1, size, out) == size;
    int reason = errno;
    if (fclose(out) == 0 && good) return true;
    if (!good) errno = reason;
    return false;
}

/* A new or regular file gets its name when it is complete; a pipe or device is written in place. */
static bool write_file(const char *file, const void *data, size_t size) {
    struct stat status;
    char temporary[4096];
    if (stat(file, &status) == 0 && !S_ISREG(status.st_mode))
        return write_all(in_place_open(file), data, size);
    int length = snprintf(temporary, sizeof temporary, "%s.tmp.%ld", file, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof temporary) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (write_all(fd, data, size) && rename(temporary, file) == 0) return true;
    int reason = errno;
    if (reason != EEXIST) (void)unlink(temporary);
    errno = reason;
    return false;
}

int picture_write(const smelt_array *array, const char *file) {
    size_t size;
    void *data = encode(array, file, &size);
    if (!data) return EXIT_ENVIRONMENT;
    bool good = write_file(file, data, size);
    if (!good) (void)complain("file '%s' cannot be written: %s", file, in_place_reason(file, errno));
    free(data);
    return good ? EXIT_OK : EXIT_ENVIRONMENT;
}
