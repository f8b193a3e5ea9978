/* .safetensors files: 8 bytes with the header's size, the header (safetensors_header.h), the arrays' bytes
 * one after the other. Little endian, as are the machines that smelt runs on. */
#include "smelt/safetensors.h"
#include "array/array.h"
#include "array/format.h"
#include "tensor/safetensors_header.h"
#include "base/file.h"
#include "base/reserved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX 8 /* bytes of the header's size */

/* The mapping outlives the file object while arrays of it do. */
struct mapping {
    atomic_int references;
    char *start;
    size_t bytes;
};

struct smelt_safetensors {
    atomic_int references;
    struct arena arena;
    struct safetensors_header header;
    smelt_array **arrays;
};

static void mapping_release(void *context) {
    struct mapping *mapping = context;
    if (atomic_fetch_sub(&mapping->references, 1) != 1) return;
    if (mapping->bytes) munmap(mapping->start, mapping->bytes);
    free(mapping);
}

/* ---- Reading. */

static smelt_status map_descriptor(const char *path, int fd, struct mapping *mapping) {
    struct stat info;
    if (fstat(fd, &info) != 0) return fail(SMELT_ERROR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fail(SMELT_ERROR_IO, "cannot read '%s': it is not a regular file", path);
    if (info.st_size < PREFIX)
        return fail(SMELT_ERROR_FORMAT, "file '%s' is not a safetensors file: it has %lld bytes", path,
                    (long long)info.st_size);
    char *start = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (start == MAP_FAILED) return fail(SMELT_ERROR_IO, "cannot map '%s': %s", path, strerror(errno));
    mapping->start = start;
    mapping->bytes = (size_t)info.st_size;
    return SMELT_OK;
}

static smelt_status map_file(const char *path, struct mapping **out) {
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping) return fail_out_of_memory(sizeof *mapping);
    atomic_init(&mapping->references, 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    smelt_status status = fd < 0 ? fail(SMELT_ERROR_IO, "cannot read '%s': %s", path, strerror(errno))
                                 : map_descriptor(path, fd, mapping);
    if (fd >= 0) close(fd);
    if (status == SMELT_OK)
        *out = mapping;
    else
        free(mapping);
    return status;
}

/* The shape of the array that holds an item: bytes of packed formats. */
static smelt_shape array_shape(const struct safetensors_item *item) {
    smelt_shape shape = item->shape;
    int bits = smelt_element_bits(item->element);
    if (element_is_packed(item->element) && shape.ndim) shape.size[shape.ndim - 1] /= 8 / bits;
    return shape;
}

static smelt_status make_array(struct mapping *mapping, char *data, const struct safetensors_item *item,
                               smelt_array **array) {
    smelt_dtype dtype = element_is_packed(item->element) ? SMELT_UINT8 : (smelt_dtype)item->element;
    smelt_shape shape = array_shape(item);
    char *at = data + item->begin;
    if ((uintptr_t)at % smelt_dtype_bytes(dtype)) return smelt_array_from_values(dtype, shape, at, array);
    atomic_fetch_add(&mapping->references, 1);
    smelt_status status = smelt_array_from_memory(dtype, shape, NULL, at, mapping_release, mapping, array);
    if (status != SMELT_OK) mapping_release(mapping);
    return status;
}

static smelt_status read_mapping(const char *path, struct mapping *mapping, smelt_safetensors *file) {
    uint64_t size;
    memcpy(&size, mapping->start, PREFIX);
    if (size > SAFETENSORS_MAX_HEADER || size > mapping->bytes - PREFIX)
        return fail(SMELT_ERROR_FORMAT,
                    "file '%s' is not a safetensors file, or truncated: its header would have %llu bytes",
                    path, (unsigned long long)size);
    char *json = mapping->start + PREFIX, *data = json + size;
    size_t data_bytes = mapping->bytes - PREFIX - (size_t)size;
    TRY(safetensors_read_header(path, json, (size_t)size, data_bytes, &file->arena, &file->header));
    file->arrays = arena_alloc(&file->arena, (file->header.count + 1) * sizeof *file->arrays);
    if (!file->arrays) return fail_out_of_memory(file->header.count * sizeof *file->arrays);
    for (size_t i = 0; i < file->header.count; i++)
        TRY(make_array(mapping, data, &file->header.items[i], &file->arrays[i]));
    return SMELT_OK;
}

smelt_status smelt_safetensors_open(const char *path, smelt_safetensors **file) {
    struct mapping *mapping = NULL;
    if (!path || !file)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors open: %s is NULL", path ? "file" : "path");
    smelt_safetensors *out = calloc(1, sizeof *out);
    if (!out) return fail_out_of_memory(sizeof *out);
    atomic_init(&out->references, 1);
    smelt_status status = map_file(path, &mapping);
    if (status == SMELT_OK) {
        status = read_mapping(path, mapping, out);
        mapping_release(mapping);
    }
    if (status == SMELT_OK)
        *file = out;
    else
        smelt_safetensors_release(out);
    return status;
}

smelt_safetensors *smelt_safetensors_retain(smelt_safetensors *file) {
    if (file) atomic_fetch_add(&file->references, 1);
    return file;
}

void smelt_safetensors_release(smelt_safetensors *file) {
    if (!file || atomic_fetch_sub(&file->references, 1) != 1) return;
    for (size_t i = 0; file->arrays && i < file->header.count; i++) smelt_array_release(file->arrays[i]);
    arena_free(&file->arena);
    free(file);
}

/* ---- Entries. */

int smelt_safetensors_count(const smelt_safetensors *file) {
    return file ? (int)file->header.count : 0;
}

smelt_status smelt_safetensors_at(const smelt_safetensors *file, int index, smelt_safetensors_entry *entry) {
    if (!file || !entry)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors at: %s is NULL", file ? "entry" : "file");
    if (index < 0 || (size_t)index >= file->header.count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors at: index is %d; the file has %zu arrays",
                    index, file->header.count);
    const struct safetensors_item *item = &file->header.items[index];
    *entry = (smelt_safetensors_entry){
        .name = item->name, .element = item->element, .shape = item->shape, .array = file->arrays[index]};
    return SMELT_OK;
}

smelt_status smelt_safetensors_find(const smelt_safetensors *file, const char *name,
                                    smelt_safetensors_entry *entry) {
    if (!file || !name || !entry)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors find: %s is NULL",
                    !file   ? "file"
                    : !name ? "name"
                            : "entry");
    for (size_t i = 0; i < file->header.count; i++)
        if (strcmp(file->header.items[i].name, name) == 0) return smelt_safetensors_at(file, (int)i, entry);
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors find: the file has no array '%s'", name);
}

int smelt_safetensors_metadata_count(const smelt_safetensors *file) {
    return file ? (int)file->header.metadata_count : 0;
}

static const char *metadata_at(const smelt_safetensors *file, int index, int which) {
    if (index < 0 || index >= smelt_safetensors_metadata_count(file)) return NULL;
    return file->header.metadata[2 * index + which];
}

const char *smelt_safetensors_metadata_key(const smelt_safetensors *file, int index) {
    return metadata_at(file, index, 0);
}

const char *smelt_safetensors_metadata_value(const smelt_safetensors *file, int index) {
    return metadata_at(file, index, 1);
}

/* ---- Writing. */

struct written {
    const smelt_safetensors_entry *entry;
    smelt_array *array; /* on the host, row-contiguous */
    int element, order;
};

/* Wider elements first, so that each array begins at a multiple of its element's size. */
static int by_width(const void *a, const void *b) {
    const struct written *x = a, *y = b;
    int wider = (int)smelt_dtype_bytes(y->array->dtype) - (int)smelt_dtype_bytes(x->array->dtype);
    return wider ? wider : x->order - y->order;
}

static smelt_status to_host(smelt_array *array, smelt_array **result) {
    smelt_array *host;
    TRY(smelt_array_to(array, "cpu", NULL, &host));
    smelt_status status = smelt_array_contiguous(host, result);
    smelt_array_release(host);
    return status;
}

static smelt_status open_written(const smelt_safetensors_entry *entry, int order, struct written *out) {
    if (!entry->name || !*entry->name || strcmp(entry->name, "__metadata__") == 0)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "safetensors write: the name of entry %d is '%s'; expected an array's name", order,
                    entry->name ? entry->name : "");
    if (!entry->array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors write: array '%s' is NULL", entry->name);
    TRY(reserved_check(smelt_safetensors_entry, entry));
    int element = entry->element ? entry->element : (int)entry->array->dtype;
    bool packed = element_is_packed(element);
    if (!safetensors_dtype(element) ||
        (packed ? entry->array->dtype != SMELT_UINT8 : (int)entry->array->dtype != element))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "safetensors write: array '%s' is of %s and its element %s; expected %s", entry->name,
                    smelt_dtype_name(entry->array->dtype), smelt_element_name(element),
                    !safetensors_dtype(element) ? "one that the format has"
                    : packed                    ? "bytes (uint8)"
                                                : "the same");
    out->entry = entry;
    out->element = element;
    out->order = order;
    return to_host(entry->array, &out->array);
}

static void add_item(const struct written *w, uint64_t *at, struct text *json) {
    uint64_t bytes = (uint64_t)w->array->size * smelt_dtype_bytes(w->array->dtype);
    int last = w->array->shape.ndim - 1;
    text_add(json, json->length > 1 ? "," : "");
    safetensors_add_string(json, w->entry->name);
    text_addf(json, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_dtype(w->element));
    for (int d = 0; d <= last; d++) {
        int64_t size = w->array->shape.size[d];
        if (d == last && element_is_packed(w->element)) size = size * 8 / smelt_element_bits(w->element);
        text_addf(json, "%s%lld", d ? "," : "", (long long)size);
    }
    uint64_t begin = *at;
    *at += bytes;
    text_addf(json, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin, (unsigned long long)*at);
}

static void add_metadata(const char *const *metadata, int count, struct text *json) {
    if (!count) return;
    text_add(json, "\"__metadata__\":{");
    for (int i = 0; i < count; i++) {
        text_add(json, i ? "," : "");
        safetensors_add_string(json, metadata[2 * i]);
        text_add(json, ":");
        safetensors_add_string(json, metadata[2 * i + 1]);
    }
    text_add(json, "}");
}

/* The header is padded with spaces, so that the data begin at a multiple of 8. */
static smelt_status write_list(const char *path, struct written *list, int count, const char *const *metadata,
                               int metadata_count) {
    struct text json = {0};
    struct arena arena = {0};
    struct safetensors_header header;
    uint64_t at = 0, size;
    struct bytes *pieces = calloc((size_t)count + 2, sizeof *pieces);
    if (!pieces) return fail_out_of_memory((size_t)count * sizeof *pieces);
    text_add(&json, "{");
    add_metadata(metadata, metadata_count, &json);
    for (int i = 0; i < count; i++) add_item(&list[i], &at, &json);
    text_add(&json, "}");
    while (json.length % 8 && !json.failed) text_add(&json, " ");
    size = json.length;
    pieces[0] = (struct bytes){&size, PREFIX};
    pieces[1] = (struct bytes){text_string(&json), json.length};
    for (int i = 0; i < count; i++)
        pieces[i + 2] = (struct bytes){list[i].array->data,
                                       (size_t)list[i].array->size * smelt_dtype_bytes(list[i].array->dtype)};
    smelt_status status = json.failed ? fail_out_of_memory(json.length) : SMELT_OK;
    /* What could not be read again is not written. */
    if (status == SMELT_OK)
        status = safetensors_read_header(path, text_string(&json), json.length, at, &arena, &header);
    if (status == SMELT_ERROR_FORMAT) status = SMELT_ERROR_INVALID_ARGUMENT;
    if (status == SMELT_OK) status = file_write(path, pieces, count + 2);
    arena_free(&arena);
    text_free(&json);
    free(pieces);
    return status;
}

static smelt_status check_metadata(const char *const *metadata, int count) {
    if (count < 0)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "safetensors write: metadata_count is %d; expected 0 or more", count);
    if (!metadata && count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors write: metadata is NULL; expected %d pairs",
                    count);
    for (int64_t i = 0; i < 2 * (int64_t)count; i++)
        if (!metadata[i])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors write: metadata[%lld] is NULL",
                        (long long)i);
    return SMELT_OK;
}

smelt_status smelt_safetensors_write(const char *path, const smelt_safetensors_entry *entries, int count,
                                     const char *const *metadata, int metadata_count) {
    if (!path || (!entries && count > 0))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors write: %s is NULL", path ? "entries" : "path");
    if (count < 0)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "safetensors write: count is %d; expected 0 or more",
                    count);
    TRY(check_metadata(metadata, metadata_count));
    struct written *list = calloc((size_t)count + 1, sizeof *list);
    if (!list) return fail_out_of_memory((size_t)count * sizeof *list);
    smelt_status status = SMELT_OK;
    for (int i = 0; i < count && status == SMELT_OK; i++) status = open_written(&entries[i], i, &list[i]);
    if (status == SMELT_OK) {
        qsort(list, (size_t)count, sizeof *list, by_width);
        status = write_list(path, list, count, metadata, metadata_count);
    }
    for (int i = 0; i < count; i++) smelt_array_release(list[i].array);
    free(list);
    return status;
}
