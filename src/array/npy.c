/* .npy files: NumPy's format, versions 1.0, 2.0 and 3.0 (NumPy Enhancement Proposal 1 and numpy.lib.format).
 * A file is: "\x93NUMPY", major, minor, header length (2 bytes in version 1, else 4), a Python dictionary as
 * text, data. */
#include "array/array.h"
#include "array/dtype.h"
#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_LENGTH 6
/* NumPy itself writes headers of some hundred bytes and refuses to read more than 10 000 by default. */
#define MAX_HEADER 65536

/* ---- The header's dictionary. */

struct header {
    bool big_endian, fortran;
    bool has_dtype, has_order, has_shape;
    smelt_dtype dtype;
    smelt_shape shape;
};

struct parser {
    const char *path, *at, *end;
};

static smelt_status damaged(const struct parser *p, const char *what) {
    return fail(SMELT_ERROR_FORMAT, "file '%s' is damaged: its header %s", p->path, what);
}

static void skip_space(struct parser *p) {
    while (p->at < p->end && isspace((unsigned char)*p->at)) p->at++;
}

static bool accept(struct parser *p, char c) {
    skip_space(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool accept_word(struct parser *p, const char *word) {
    size_t length = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static bool read_string(struct parser *p, char *out, size_t size) {
    skip_space(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
    char quote = *p->at++;
    size_t count = 0;
    while (p->at < p->end && *p->at != quote && count + 1 < size) out[count++] = *p->at++;
    out[count] = 0;
    return accept(p, quote);
}

static const struct {
    const char *code;
    smelt_dtype dtype;
} codes[] = {
    {"b1", SMELT_BOOL},      {"u1", SMELT_UINT8},    {"u2", SMELT_UINT16},  {"u4", SMELT_UINT32},
    {"u8", SMELT_UINT64},    {"i1", SMELT_INT8},     {"i2", SMELT_INT16},   {"i4", SMELT_INT32},
    {"i8", SMELT_INT64},     {"f2", SMELT_FLOAT16},  {"f4", SMELT_FLOAT32}, {"f8", SMELT_FLOAT64},
    {"c8", SMELT_COMPLEX64}, {"V2", SMELT_BFLOAT16},
};

static smelt_status read_descr(struct parser *p, smelt_dtype wanted, struct header *out) {
    char descr[64];
    skip_space(p);
    if (p->at < p->end && *p->at == '[')
        return fail(SMELT_ERROR_FORMAT,
                    "file '%s' holds records (a structured dtype), which are not supported", p->path);
    if (!read_string(p, descr, sizeof descr)) return damaged(p, "has no readable 'descr'");
    bool ordered = strchr("<>=|", descr[0]) && descr[0];
    const char *code = ordered ? descr + 1 : descr;
    out->big_endian = descr[0] == '>';
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(code, codes[i].code) != 0) continue;
        bool raw = codes[i].dtype == SMELT_BFLOAT16;
        if (raw && wanted != SMELT_BFLOAT16)
            return fail(SMELT_ERROR_FORMAT,
                        "file '%s' holds two raw bytes per element ('%s'); if they are bfloat16, read it as "
                        "%s:bfloat16",
                        p->path, descr, p->path);
        if (!raw && wanted != SMELT_NO_DTYPE && wanted != codes[i].dtype)
            return fail(SMELT_ERROR_FORMAT, "file '%s' holds %s ('%s'), but %s was requested", p->path,
                        smelt_dtype_name(codes[i].dtype), descr, smelt_dtype_name(wanted));
        out->dtype = codes[i].dtype;
        out->has_dtype = true;
        return SMELT_OK;
    }
    return fail(SMELT_ERROR_FORMAT, "file '%s' holds elements of type '%s', which is not supported", p->path,
                descr);
}

static smelt_status read_shape(struct parser *p, struct header *out) {
    if (!accept(p, '(')) return damaged(p, "has a 'shape' that is not a tuple");
    out->shape.ndim = 0;
    while (!accept(p, ')')) {
        int64_t size = 0;
        skip_space(p);
        if (p->at == p->end || !isdigit((unsigned char)*p->at))
            return damaged(p, "has a 'shape' that is not of integers");
        for (; p->at < p->end && isdigit((unsigned char)*p->at); p->at++)
            if (__builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, *p->at - '0', &size))
                return damaged(p, "has a size of more than 63 bits in 'shape'");
        /* Python 2 wrote 4L. */
        if (p->at < p->end && *p->at == 'L') p->at++;
        if (out->shape.ndim == SMELT_MAX_DIMENSIONS)
            return fail(SMELT_ERROR_FORMAT, "file '%s' has more than %d dimensions", p->path,
                        SMELT_MAX_DIMENSIONS);
        out->shape.size[out->shape.ndim++] = size;
        if (!accept(p, ',')) {
            if (!accept(p, ')')) return damaged(p, "has an unterminated 'shape'");
            break;
        }
    }
    out->has_shape = true;
    return SMELT_OK;
}

static smelt_status read_dictionary(struct parser *p, smelt_dtype wanted, struct header *out) {
    if (!accept(p, '{')) return damaged(p, "is not a dictionary");
    while (!accept(p, '}')) {
        char key[32];
        if (!read_string(p, key, sizeof key) || !accept(p, ':'))
            return damaged(p, "is not a dictionary of strings");
        if (strcmp(key, "descr") == 0) {
            TRY(read_descr(p, wanted, out));
        } else if (strcmp(key, "fortran_order") == 0) {
            out->fortran = accept_word(p, "True");
            if (!out->fortran && !accept_word(p, "False"))
                return damaged(p, "has a 'fortran_order' that is neither True nor False");
            out->has_order = true;
        } else if (strcmp(key, "shape") == 0) {
            TRY(read_shape(p, out));
        } else {
            return damaged(p, "has a key other than descr, fortran_order and shape");
        }
        if (!accept(p, ',')) {
            if (!accept(p, '}')) return damaged(p, "is unterminated");
            break;
        }
    }
    if (!out->has_dtype || !out->has_order || !out->has_shape)
        return damaged(p, "lacks one of descr, fortran_order, shape");
    return SMELT_OK;
}

/* ---- Reading. */

/* Finds the dictionary and the data behind it. */
static smelt_status read_preamble(const char *path, const struct text *file, struct parser *p,
                                  const char **data) {
    const unsigned char *bytes = (const unsigned char *)text_string(file);
    if (file->length < MAGIC_LENGTH + 4 || memcmp(bytes, MAGIC, MAGIC_LENGTH) != 0)
        return fail(SMELT_ERROR_FORMAT, "file '%s' is not a .npy file", path);
    unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return fail(SMELT_ERROR_FORMAT,
                    "file '%s' is of .npy version %u.%u; versions 1.0, 2.0 and 3.0 are supported", path,
                    major, minor);
    size_t start = major == 1 ? 10 : 12;
    if (file->length < start)
        return fail(SMELT_ERROR_FORMAT, "file '%s' is damaged: it ends inside its header", path);
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > MAX_HEADER)
        return fail(SMELT_ERROR_FORMAT, "file '%s' is damaged: its header has %zu bytes, expected at most %d",
                    path, length, MAX_HEADER);
    if (file->length - start < length)
        return fail(SMELT_ERROR_FORMAT, "file '%s' is damaged: it ends inside its header", path);
    *p = (struct parser){path, (const char *)bytes + start, (const char *)bytes + start + length};
    *data = p->end;
    return SMELT_OK;
}

static void swap_bytes(char *data, size_t count, size_t width) {
    for (size_t i = 0; i < count; i++)
        for (size_t low = 0, high = width - 1; low < high; low++, high--) {
            char kept = data[i * width + low];
            data[i * width + low] = data[i * width + high];
            data[i * width + high] = kept;
        }
}

static smelt_status make_array(const char *path, const struct header *header, const char *data,
                               size_t available, smelt_array **out) {
    int64_t size;
    smelt_status status = shape_check("shape", header->dtype, &header->shape, &size);
    if (status != SMELT_OK) return fail_within(SMELT_ERROR_FORMAT, "file '%s' is damaged", path);
    size_t width = smelt_dtype_bytes(header->dtype), needed = (size_t)size * width;
    if (available < needed)
        return fail(SMELT_ERROR_FORMAT,
                    "file '%s' is truncated: its header declares %zu bytes of data, it has %zu", path, needed,
                    available);
    smelt_array *array;
    TRY(smelt_array_create(header->dtype, header->shape, &array));
    if (needed) memcpy(array->data, data, needed);
    /* A complex number is two floats. */
    size_t part = header->dtype == SMELT_COMPLEX64 ? 4 : width;
    if (header->big_endian) swap_bytes(array->data, needed / part, part);
    if (header->dtype == SMELT_BOOL)
        for (size_t i = 0; i < needed; i++) array->data[i] = array->data[i] != 0;
    if (header->fortran) shape_fortran_strides(&header->shape, array->strides);
    *out = array;
    return SMELT_OK;
}

smelt_status smelt_array_read_npy(const char *path, smelt_dtype dtype, smelt_array **array) {
    if (!path || !array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "read npy: %s is NULL", path ? "array" : "path");
    struct text file = {0};
    struct parser parser = {.path = path};
    struct header header = {.dtype = SMELT_NO_DTYPE};
    const char *data = NULL;
    TRY(file_read(path, &file));
    smelt_status status = read_preamble(path, &file, &parser, &data);
    if (status == SMELT_OK) status = read_dictionary(&parser, dtype, &header);
    if (status == SMELT_OK)
        status = make_array(path, &header, data, file.length - (size_t)(data - file.data), array);
    text_free(&file);
    return status;
}

/* ---- Writing. */

static const char *descr_of(smelt_dtype dtype) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].dtype == dtype) return codes[i].code;
    return "?";
}

smelt_status smelt_array_write_npy(const smelt_array *array, const char *path) {
    if (!array || !path)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "write npy: %s is NULL", array ? "path" : "array");
    if (array->memory->space) {
        smelt_array *host;
        TRY(array_move(array, NULL, NULL, &host));
        smelt_status status = smelt_array_write_npy(host, path);
        smelt_array_release(host);
        return status;
    }
    smelt_array *contiguous;
    TRY(smelt_array_contiguous((smelt_array *)array, &contiguous));
    struct text header = {0};
    bool one_byte = smelt_dtype_bytes(array->dtype) == 1;
    text_addf(&header, "{'descr': '%s%s', 'fortran_order': False, 'shape': (", one_byte ? "|" : "<",
              descr_of(array->dtype));
    for (int d = 0; d < array->shape.ndim; d++)
        text_addf(&header, d ? " %lld," : "%lld,", (long long)array->shape.size[d]);
    if (array->shape.ndim > 1) header.data[--header.length] = 0;
    text_add(&header, "), }");
    /* Data starts at a multiple of 64, the header ends in a newline. */
    while ((10 + header.length + 1) % 64) text_add(&header, " ");
    text_add(&header, "\n");
    unsigned char preamble[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    preamble[8] = (unsigned char)(header.length & 255);
    preamble[9] = (unsigned char)(header.length >> 8);
    struct bytes pieces[3] = {{preamble, sizeof preamble},
                              {header.data, header.length},
                              {contiguous->data, (size_t)contiguous->size * smelt_dtype_bytes(array->dtype)}};
    smelt_status status = header.failed ? fail_out_of_memory(256) : file_write(path, pieces, 3);
    text_free(&header);
    smelt_array_release(contiguous);
    return status;
}
