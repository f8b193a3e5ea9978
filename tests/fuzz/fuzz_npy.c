/* Any bytes as a .npy file: an error or an array. An array that was read is written and read again unchanged.
 */
#include "array/array.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void require(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, smelt_error());
    abort();
}

/* A file in memory with a path. */
static char *memory_file(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) fd = memfd_create("npy", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    require(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size, "memory file");
    return path;
}

static void compare(const smelt_array *a, const smelt_array *b) {
    int64_t width = (int64_t)smelt_dtype_bytes(a->dtype);
    require(a->dtype == b->dtype && a->size == b->size && a->shape.ndim == b->shape.ndim,
            "round trip keeps dtype and shape");
    struct walk p = walk_begin(&a->shape, a->strides), q = walk_begin(&b->shape, b->strides);
    for (; p.left > 0; walk_next(&p), walk_next(&q))
        require(memcmp(a->data + p.offset * width, b->data + q.offset * width, (size_t)width) == 0,
                "round trip keeps the elements");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char copy[64];
    snprintf(copy, sizeof copy, "/tmp/smelt-fuzz-npy-%ld", (long)getpid());
    const char *path = memory_file(data, size);
    for (int round = 0; round < 2; round++) {
        smelt_array *array = NULL, *again = NULL;
        if (smelt_array_read_npy(path, round ? SMELT_BFLOAT16 : SMELT_NO_DTYPE, &array) != SMELT_OK) {
            require(!array && *smelt_error(), "a failed read leaves the output and tells why");
            continue;
        }
        require(smelt_array_write_npy(array, copy) == SMELT_OK, "an array that was read can be written");
        require(smelt_array_read_npy(copy, round ? SMELT_BFLOAT16 : SMELT_NO_DTYPE, &again) == SMELT_OK,
                "and read again");
        compare(array, again);
        smelt_array_release(array);
        smelt_array_release(again);
        unlink(copy);
    }
    return 0;
}
