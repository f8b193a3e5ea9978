/* Fills, copies and conversions between strided arrays. Elements go row by row along the last dimension; rows
 * of equal dtype and rows of floats have loops of their own, everything else goes through `struct element`.
 */
#include "array/array.h"
#include "array/dtype.h"
#include "base/trace.h"

/* One row: `count` elements, steps in bytes. */
struct row {
    char *to;
    const char *from;
    int64_t count, to_step, from_step;
};

/* ---- Rows of one dtype. Fixed widths let the compiler make vector code of the memcpy. */

#define COPY_ROW(width)                      \
    for (int64_t i = 0; i < row->count; i++) \
    memcpy(row->to + i * row->to_step, row->from + i * row->from_step, width)

static void copy_row(const struct row *row, size_t width) {
    int64_t dense = (int64_t)width;
    if (row->to_step == dense && row->from_step == dense) {
        memcpy(row->to, row->from, (size_t)row->count * width);
        return;
    }
    switch (width) {
    case 1:
        COPY_ROW(1);
        break;
    case 2:
        COPY_ROW(2);
        break;
    case 4:
        COPY_ROW(4);
        break;
    default:
        COPY_ROW(8);
        break;
    }
}

/* ---- Rows of floats, by way of double, which holds all of them. */

static inline double load_float32(const char *address) {
    float value;
    memcpy(&value, address, sizeof value);
    return (double)value;
}

static inline double load_float64(const char *address) {
    double value;
    memcpy(&value, address, sizeof value);
    return value;
}

static inline uint16_t load_bits(const char *address) {
    uint16_t value;
    memcpy(&value, address, sizeof value);
    return value;
}

static inline double load_float16(const char *address) {
    return float16_to_double(load_bits(address));
}
static inline double load_bfloat16(const char *address) {
    return bfloat16_to_double(load_bits(address));
}

static inline void store_float32(char *address, double value) {
    float rounded = (float)value;
    memcpy(address, &rounded, sizeof rounded);
}

static inline void store_float64(char *address, double value) {
    memcpy(address, &value, sizeof value);
}

static inline void store_float16(char *address, double value) {
    uint16_t bits = float16_from_double(value);
    memcpy(address, &bits, sizeof bits);
}

static inline void store_bfloat16(char *address, double value) {
    uint16_t bits = bfloat16_from_double(value);
    memcpy(address, &bits, sizeof bits);
}

/* Pairs of float dtypes: X(from, to). */
/* clang-format off */
#define FLOAT_PAIRS(X)          \
    X(float32, float16)         \
    X(float32, bfloat16)        \
    X(float32, float64)         \
    X(float16, float32)         \
    X(float16, bfloat16)        \
    X(float16, float64)         \
    X(bfloat16, float32)        \
    X(bfloat16, float16)        \
    X(bfloat16, float64)        \
    X(float64, float32)         \
    X(float64, float16)         \
    X(float64, bfloat16)
/* clang-format on */

#define FLOAT_ROW(source, target)                                                                      \
    static void source##_to_##target(const struct row *row) {                                          \
        for (int64_t i = 0; i < row->count; i++)                                                       \
            store_##target(row->to + i * row->to_step, load_##source(row->from + i * row->from_step)); \
    }
FLOAT_PAIRS(FLOAT_ROW)

typedef void float_row(const struct row *row);

static float_row *find_float_row(smelt_dtype from, smelt_dtype to) {
    static const struct {
        const char *from, *to;
        float_row *row;
    } pairs[] = {
#define X(source, target) {#source, #target, source##_to_##target},
        FLOAT_PAIRS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(pairs[i].from, smelt_dtype_name(from)) == 0 &&
            strcmp(pairs[i].to, smelt_dtype_name(to)) == 0)
            return pairs[i].row;
    return NULL;
}

void store_reals(smelt_dtype dtype, char *to, const double *from, int64_t count) {
    struct row row = {to, (const char *)from, count, (int64_t)smelt_dtype_bytes(dtype), sizeof *from};
    float_row *convert = find_float_row(SMELT_FLOAT64, dtype);
    if (convert)
        convert(&row);
    else
        copy_row(&row, sizeof *from);
}

/* ---- Any row. */

static void convert_row(const struct row *row, smelt_dtype to, smelt_dtype from) {
    for (int64_t i = 0; i < row->count; i++)
        element_store(to, row->to + i * row->to_step, element_load(from, row->from + i * row->from_step));
}

/* Shape without its last dimension; the number of elements in a row. */
static int64_t split_rows(const smelt_shape *shape, smelt_shape *outer) {
    *outer = *shape;
    if (!shape->ndim) return 1;
    outer->ndim--;
    return shape->size[shape->ndim - 1];
}

static int64_t row_step(const smelt_array *array) {
    int ndim = array->shape.ndim;
    return ndim ? array->strides[ndim - 1] * (int64_t)smelt_dtype_bytes(array->dtype) : 0;
}

/* ---- Transposed copies. */

/* A block of floats has whole cache lines in both arrays. (smelt_array_convert of a transposed array of
 * 5120 x 1280 floats, Sapphire Rapids, processor time: 35 ms row by row, 10 to 12 ms by blocks.) */
#define BLOCK_ROWS 32
#define BLOCK_COLUMNS 16

/* The dimension of `from` with stride 1 if that is not the last one, as in a transposed matrix; else -1. */
static int dense_dimension(const smelt_array *from) {
    int last = from->shape.ndim - 1;
    if (last < 1 || from->strides[last] == 1 || from->shape.size[last] == 1) return -1;
    for (int d = 0; d < last; d++)
        if (from->strides[d] == 1 && from->shape.size[d] > 1) return d;
    return -1;
}

/* Neighbouring rows are adjacent in `from`, neighbouring columns in `to`. */
struct block {
    char *to;
    const char *from;
    int64_t rows, columns, to_step, from_step; /* steps in bytes: from row to row, from column to column */
};

#define TRANSPOSE(type)                                                                    \
    for (int64_t r = 0; r < b->rows; r++) {                                                \
        char *to = b->to + r * b->to_step;                                                 \
        const char *from = b->from + r * (int64_t)sizeof(type);                            \
        for (int64_t c = 0; c < b->columns; c++)                                           \
            memcpy(to + c * (int64_t)sizeof(type), from + c * b->from_step, sizeof(type)); \
    }

static void transpose_block(const struct block *b, size_t bytes) {
    if (bytes == 1)
        TRANSPOSE(uint8_t)
    else if (bytes == 2)
        TRANSPOSE(uint16_t)
    else if (bytes == 4)
        TRANSPOSE(uint32_t)
    else
        TRANSPOSE(uint64_t)
}

/* Copies block by block; row by row, each cache line of `from` would be loaded once for each of its elements.
 * The last dimension of `to` and dimension d of `from` have stride 1. */
static void copy_transposed(smelt_array *to, const smelt_array *from, int d) {
    const int64_t bytes = (int64_t)smelt_dtype_bytes(to->dtype);
    const int last = to->shape.ndim - 1;
    const int64_t rows = to->shape.size[d], columns = to->shape.size[last];
    smelt_shape outer = to->shape;
    outer.size[d] = outer.size[last] = 1;
    struct block block = {.to_step = to->strides[d] * bytes, .from_step = from->strides[last] * bytes};
    struct walk target = walk_begin(&outer, to->strides), source = walk_begin(&outer, from->strides);
    for (; target.left > 0; walk_next(&target), walk_next(&source))
        for (int64_t c = 0; c < columns; c += BLOCK_COLUMNS)
            for (int64_t r = 0; r < rows; r += BLOCK_ROWS) {
                block.to = to->data + target.offset * bytes + r * block.to_step + c * bytes;
                block.from = from->data + source.offset * bytes + r * bytes + c * block.from_step;
                block.rows = rows - r < BLOCK_ROWS ? rows - r : BLOCK_ROWS;
                block.columns = columns - c < BLOCK_COLUMNS ? columns - c : BLOCK_COLUMNS;
                transpose_block(&block, (size_t)bytes);
            }
}

/* A contiguous array is one row. */
static void copy_elements(smelt_array *to, const smelt_array *from) {
    int64_t to_bytes = (int64_t)smelt_dtype_bytes(to->dtype),
            from_bytes = (int64_t)smelt_dtype_bytes(from->dtype);
    bool dense = smelt_array_is_contiguous(to) && smelt_array_is_contiguous(from);
    smelt_shape outer;
    struct row row = {
        .count = split_rows(&to->shape, &outer), .to_step = row_step(to), .from_step = row_step(from)};
    if (dense) {
        row = (struct row){.count = to->size, .to_step = to_bytes, .from_step = from_bytes};
        outer.ndim = 0;
    }
    if (!to->size) return;
    int transposed =
        to->dtype == from->dtype && row.to_step == to_bytes && !dense ? dense_dimension(from) : -1;
    if (transposed >= 0) {
        copy_transposed(to, from, transposed);
        return;
    }
    float_row *float_row = find_float_row(from->dtype, to->dtype);
    struct walk target = walk_begin(&outer, to->strides), source = walk_begin(&outer, from->strides);
    for (; target.left > 0; walk_next(&target), walk_next(&source)) {
        row.to = to->data + target.offset * to_bytes;
        row.from = from->data + source.offset * from_bytes;
        if (to->dtype == from->dtype)
            copy_row(&row, (size_t)to_bytes);
        else if (float_row)
            float_row(&row);
        else
            convert_row(&row, to->dtype, from->dtype);
    }
}

/* `from` is NULL for a fill. */
static void trace_elements(struct trace_span span, const char *name, const smelt_array *to,
                           const smelt_array *from, smelt_status status) {
    struct trace_slice slice = {.category = "array", .name = name};
    trace_string(&slice, "shape", shape_print(&to->shape).text);
    trace_string(&slice, "dtype", smelt_dtype_name(to->dtype));
    trace_integer(&slice, "bytes", (int64_t)((size_t)to->size * smelt_dtype_bytes(to->dtype)));
    if (from) trace_string(&slice, "from_dtype", smelt_dtype_name(from->dtype));
    if (from && from->memory->space) trace_string(&slice, "from_device", from->memory->space->device);
    if (to->memory->space) trace_string(&slice, "device", to->memory->space->device);
    trace_status(&slice, status);
    trace_end(span, &slice);
}

static smelt_status copy(smelt_array *to, const smelt_array *from) {
    if (to->memory->space || from->memory->space) return space_copy(to, from);
    copy_elements(to, from);
    return SMELT_OK;
}

smelt_status smelt_array_copy(smelt_array *to, const smelt_array *from) {
    if (!to || !from) return fail(SMELT_ERROR_INVALID_ARGUMENT, "copy: %s is NULL", to ? "from" : "to");
    bool equal = to->shape.ndim == from->shape.ndim;
    for (int d = 0; equal && d < to->shape.ndim; d++) equal = to->shape.size[d] == from->shape.size[d];
    if (!equal)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "copy: shape %s cannot be copied into shape %s",
                    shape_print(&from->shape).text, shape_print(&to->shape).text);
    struct trace_span span = trace_begin();
    smelt_status status = copy(to, from);
    if (span.capture) trace_elements(span, "copy", to, from, status);
    return status;
}

smelt_status smelt_array_fill(smelt_array *array, double value) {
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "fill: array is NULL");
    return array_fill_on(array, NULL, value);
}

static void fill_elements(smelt_array *array, const char *pattern) {
    size_t bytes = smelt_dtype_bytes(array->dtype);
    smelt_shape outer;
    struct row row = {
        .from = pattern, .count = split_rows(&array->shape, &outer), .to_step = row_step(array)};
    if (smelt_array_is_contiguous(array)) {
        row.count = array->size;
        row.to_step = (int64_t)bytes;
        outer.ndim = 0;
    }
    for (struct walk w = walk_begin(&outer, array->strides); w.left > 0; walk_next(&w)) {
        row.to = array->data + w.offset * (int64_t)bytes;
        copy_row(&row, bytes);
    }
}

smelt_status array_fill_on(smelt_array *array, smelt_stream *stream, double value) {
    char pattern[16];
    smelt_status status = SMELT_OK;
    element_store(array->dtype, pattern, element_of_real(value));
    if (!array->size) return SMELT_OK;
    struct trace_span span = trace_begin();
    if (array->memory->space)
        status = space_fill(array, stream, pattern);
    else
        fill_elements(array, pattern);
    if (span.capture) trace_elements(span, "fill", array, NULL, status);
    return status;
}

smelt_status smelt_array_convert(const smelt_array *array, smelt_dtype dtype, smelt_array **result) {
    if (!array || !result)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "convert: %s is NULL", array ? "result" : "array");
    smelt_array *made;
    struct trace_span span = trace_begin();
    if (array->memory->space) {
        TRY(space_convert(array, dtype, &made));
    } else {
        TRY(smelt_array_create(dtype, array->shape, &made));
        copy_elements(made, array);
    }
    if (span.capture)
        trace_elements(span, dtype == array->dtype ? "make contiguous" : "convert", made, array, SMELT_OK);
    *result = made;
    return SMELT_OK;
}

smelt_status smelt_array_contiguous(smelt_array *array, smelt_array **result) {
    if (!array || !result)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "contiguous: %s is NULL", array ? "result" : "array");
    if (!smelt_array_is_contiguous(array)) return smelt_array_convert(array, array->dtype, result);
    *result = smelt_array_retain(array);
    return SMELT_OK;
}
