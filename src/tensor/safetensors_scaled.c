/* A tensor of a file together with its scales, which publishers store as an array of their own under a
 * related name. What is copied keeps its codes; scales stored as plain bytes are ue8m0. */
#include "array/array.h"
#include "base/error.h"
#include "smelt/safetensors.h"

#include <stdio.h>
#include <string.h>

/* The endings of both names. */
static const struct convention {
    const char *data, *scales;
} conventions[] = {
    {"", "_scale_inv"}, /* fp8 with blocks of 128 × 128 */
    {"", "_scale"},     /* fp8 with a scale per row or one for all */
    {"", "_scales"},
    {"_blocks", "_scales"}, /* MXFP4, 16 bytes per group in a dimension of their own */
    {"_packed", "_scale"},  /* MXFP4, 2 elements per byte */
    {".weight", ".scales"}, /* MXFP4 and MXFP8, in words of 32 bits */
    {".weight", ".scale"},
};
enum { MX_GROUP = 32, CONVENTIONS = sizeof conventions / sizeof *conventions };

struct scaled {
    const char *name; /* as the caller gave it */
    smelt_safetensors_entry data, scales;
    smelt_tensor_desc desc;
};

static bool find_ending(const smelt_safetensors *file, const char *stem, int length, const char *ending,
                        smelt_safetensors_entry *entry) {
    char name[4096];
    int size = snprintf(name, sizeof name, "%.*s%s", length, stem, ending);
    return size > 0 && (size_t)size < sizeof name && smelt_safetensors_find(file, name, entry) == SMELT_OK;
}

/* Finds both arrays: `name` is the data's, or what precedes "_blocks". */
static smelt_status find_both(const smelt_safetensors *file, struct scaled *s) {
    int length = (int)strlen(s->name);
    if (!find_ending(file, s->name, length, "", &s->data) &&
        !find_ending(file, s->name, length, "_blocks", &s->data))
        return smelt_safetensors_find(file, s->name, &s->data);
    const char *name = s->data.name;
    length = (int)strlen(name);
    for (int i = 0; i < CONVENTIONS; i++) {
        int ending = (int)strlen(conventions[i].data);
        if (length >= ending && strcmp(name + length - ending, conventions[i].data) == 0 &&
            find_ending(file, name, length - ending, conventions[i].scales, &s->scales))
            return SMELT_OK;
    }
    return fail(
        SMELT_ERROR_INVALID_ARGUMENT,
        "safetensors tensor '%s': the file has no scales for it; expected an array called '%s_scale_inv', "
        "'%s_scale' or '%s_scales'",
        s->name, name, name, name);
}

static smelt_status fail_of_shapes(const struct scaled *s, const char *expected) {
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "safetensors tensor '%s': '%s' of %s and '%s' of %s are not elements and their scales; %s",
                s->name, s->data.name, smelt_element_name(s->data.element), s->scales.name,
                smelt_element_name(s->scales.element), expected);
}

static int64_t size_at(const smelt_shape *shape, int from_last) {
    return from_last < shape->ndim ? shape->size[shape->ndim - 1 - from_last] : 1;
}

/* Bytes or words that hold elements of a microscaling format: their bits follow from the number of groups. */
static smelt_status unpack_shape(struct scaled *s) {
    const smelt_shape *shape = &s->data.shape, *scales = &s->scales.shape;
    bool grouped = shape->ndim == scales->ndim + 1; /* the bytes of a group are a dimension */
    int outer = shape->ndim - (grouped ? 1 : 0);
    int64_t bytes = size_at(shape, 0) * (s->data.element == SMELT_UINT32 ? 4 : 1);
    int64_t groups = grouped ? 1 : size_at(scales, 0);
    if (outer != scales->ndim || groups < 1 || bytes % groups ||
        (bytes / groups != 16 && bytes / groups != MX_GROUP))
        return fail_of_shapes(s, "expected 16 or 32 bytes for each scale");
    s->desc.element = bytes / groups == 16 ? SMELT_FP4_E2M1 : SMELT_FP8_E4M3;
    s->desc.ndim = outer;
    for (int d = 0; d < outer; d++) s->desc.dimensions[d] = size_at(shape, d + (grouped ? 1 : 0));
    s->desc.dimensions[0] = size_at(scales, 0) * MX_GROUP;
    return SMELT_OK;
}

static smelt_status describe_data(struct scaled *s) {
    bool bytes = s->data.element == SMELT_UINT8 || s->data.element == SMELT_UINT32;
    if (bytes) return unpack_shape(s);
    s->desc.element = s->data.element;
    s->desc.ndim = s->data.shape.ndim;
    for (int d = 0; d < s->desc.ndim; d++) s->desc.dimensions[d] = size_at(&s->data.shape, d);
    return SMELT_OK;
}

/* Blocks: as many elements per scale as there are more of them. One scale is of all; a list of as many as
 * there are rows is of a row each. */
static smelt_status describe_scales(struct scaled *s) {
    const smelt_shape *shape = &s->scales.shape;
    smelt_tensor_plane_desc *plane = &s->desc.scales;
    plane->element = s->scales.element == SMELT_UINT8 ? SMELT_UE8M0 : s->scales.element;
    bool by_rows = shape->ndim == 1 && s->desc.ndim == 2 && shape->size[0] == s->desc.dimensions[1];
    if (s->scales.array->size != 1 && shape->ndim != s->desc.ndim && !by_rows)
        return fail_of_shapes(s, "expected as many dimensions of both");
    for (int d = 0; d < s->desc.ndim; d++) {
        int64_t count = by_rows                      ? (d == 0 ? 1 : shape->size[0])
                        : s->scales.array->size == 1 ? 1
                                                     : size_at(shape, d);
        if (count < 1 || s->desc.dimensions[d] % count)
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "safetensors tensor '%s': dimension %d has %lld elements and %lld scales in '%s'; expected a "
                "multiple",
                s->name, d, (long long)s->desc.dimensions[d], (long long)count, s->scales.name);
        plane->block[d] = s->desc.dimensions[d] / count;
    }
    return SMELT_OK;
}

static size_t bytes_of(const smelt_array *array) {
    return (size_t)array->size * smelt_dtype_bytes(array->dtype);
}

static smelt_status copy(const struct scaled *s, smelt_tensor *tensor) {
    smelt_tensor_slice scales = {.plane = SMELT_PLANE_SCALES};
    for (int d = 0; d < s->desc.ndim; d++) scales.size[d] = s->desc.dimensions[d] / s->desc.scales.block[d];
    TRY(smelt_tensor_write_slice(tensor, NULL, s->data.array->data, bytes_of(s->data.array)));
    return smelt_tensor_write_slice(tensor, &scales, s->scales.array->data, bytes_of(s->scales.array));
}

smelt_status smelt_safetensors_tensor(const smelt_safetensors *file, const char *name,
                                      smelt_tensor **tensor) {
    if (!file || !name || !tensor)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors tensor: %s is NULL",
                    !file   ? "file"
                    : !name ? "name"
                            : "tensor");
    struct scaled s = {.name = name};
    TRY(find_both(file, &s));
    TRY(describe_data(&s));
    TRY(describe_scales(&s));
    TRY(smelt_tensor_create(&s.desc, tensor));
    smelt_status status = copy(&s, *tensor);
    if (status != SMELT_OK) smelt_tensor_release(*tensor);
    return status;
}
