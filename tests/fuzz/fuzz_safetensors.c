/* Any bytes as the header of a .safetensors file: an error, or arrays that fill the data one after the other.
 */
#include "smelt/tensor.h"
#include "tensor/safetensors_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, smelt_error());
    abort();
}

static void check(const struct safetensors_header *header, uint64_t data) {
    uint64_t at = 0;
    for (size_t i = 0; i < header->count; i++) {
        const struct safetensors_item *item = &header->items[i];
        double bits = smelt_element_bits(item->element);
        require(item->begin == at && item->end >= at && item->end <= data, "arrays follow each other");
        require(item->shape.ndim <= SMELT_MAX_DIMENSIONS && bits > 0, "shapes and elements are known");
        for (int d = 0; d < item->shape.ndim; d++) bits *= (double)item->shape.size[d];
        require(bits == 8 * (double)(item->end - item->begin), "an array has the bytes of its shape");
        at = item->end;
    }
    require(at == data, "the data are filled");
}

/* The first two bytes: how many bytes of data follow the header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena arena = {0};
    struct safetensors_header header;
    if (size < 2) return 0;
    uint64_t bytes = data[0] | (uint64_t)data[1] << 8;
    char *json = malloc(size - 2 ? size - 2 : 1); /* ends where the header does */
    if (!json) return 0;
    memcpy(json, data + 2, size - 2);
    if (safetensors_read_header("f", json, size - 2, bytes, &arena, &header) == SMELT_OK)
        check(&header, bytes);
    else
        require(*smelt_error() != 0, "a failed read tells why");
    arena_free(&arena);
    free(json);
    return 0;
}
