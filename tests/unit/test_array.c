/* Arrays: shapes, strides, views and their bounds, copies between odd layouts, references, wrong arguments.
 */
#include "outcome.h"

#include "array/array.h"
#include "array/dtype.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define LINE(count) ((smelt_shape){1, {count}})

static smelt_array *arange(smelt_dtype dtype, smelt_shape shape) {
    smelt_array *array;
    assert_int_equal(smelt_array_arange(dtype, shape, &array), SMELT_OK);
    return array;
}

static smelt_array *view(smelt_array *base, smelt_shape shape, const int64_t *strides, int64_t offset) {
    smelt_array *made;
    assert_int_equal(smelt_array_view(base, shape, strides, offset, &made), SMELT_OK);
    return made;
}

/* Kernels may write slightly past the end: the heap must stay intact. */
static void padding_follows_an_array(void **state) {
    (void)state;
    const int64_t sizes[] = {0, 1, 16, 31, 32, 33, 1000, 1 << 20, (1 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        smelt_array *array;
        assert_int_equal(smelt_array_create(SMELT_FLOAT32, LINE(sizes[i]), &array), SMELT_OK);
        size_t bytes = (size_t)sizes[i] * sizeof(float);
        assert_true(malloc_usable_size(smelt_array_data(array)) >= bytes + 128);
        smelt_array_release(array);
    }
}

static uint64_t random_bits(void) {
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static smelt_array *reinterpreted(smelt_array *base, smelt_dtype dtype) {
    smelt_array *made;
    assert_int_equal(smelt_array_reinterpret(base, dtype, &made), SMELT_OK);
    assert_int_equal(smelt_array_dtype(made), dtype);
    return made;
}

/* ---- Shapes. */

static void a_new_array_is_row_contiguous(void **state) {
    (void)state;
    smelt_array *array;
    assert_int_equal(smelt_array_create(SMELT_FLOAT16, (smelt_shape){3, {2, 3, 5}}, &array), SMELT_OK);
    assert_int_equal(smelt_array_size(array), 30);
    assert_int_equal(smelt_array_dtype(array), SMELT_FLOAT16);
    assert_int_equal(smelt_array_shape(array).size[2], 5);
    assert_memory_equal(smelt_array_strides(array), ((int64_t[]){15, 5, 1}), 24);
    assert_true(smelt_array_is_contiguous(array));
    assert_int_equal((uintptr_t)smelt_array_data(array) % 64, 0);
    smelt_array_release(array);
}

static void scalars_and_empty_arrays(void **state) {
    (void)state;
    smelt_array *scalar = arange(SMELT_INT32, (smelt_shape){.ndim = 0}), *copy;
    assert_int_equal(smelt_array_size(scalar), 1);
    assert_int_equal(smelt_array_convert(scalar, SMELT_FLOAT64, &copy), SMELT_OK);
    smelt_array_release(copy);
    /* Sizes whose product overflows are valid together with a zero. */
    smelt_shape nothing = {3, {INT64_C(1) << 40, INT64_C(1) << 40, 0}};
    smelt_array *empty = arange(SMELT_FLOAT32, nothing);
    assert_int_equal(smelt_array_size(empty), 0);
    assert_non_null(smelt_array_data(empty));
    assert_true(smelt_array_is_contiguous(empty));
    assert_int_equal(smelt_array_fill(empty, 1), SMELT_OK);
    assert_int_equal(smelt_array_convert(empty, SMELT_INT8, &copy), SMELT_OK);
    assert_int_equal(smelt_array_copy(copy, empty), SMELT_OK);
    smelt_array_release(copy);
    copy = view(empty, (smelt_shape){2, {0, 7}}, NULL, 1000);
    smelt_array_release(copy);
    smelt_array_release(empty);
    smelt_array_release(scalar);
    assert_int_equal(smelt_array_from_values(SMELT_INT8, LINE(0), NULL, &empty), SMELT_OK);
    smelt_array_release(empty);
}

static void sixteen_dimensions(void **state) {
    (void)state;
    smelt_shape shape = {.ndim = 16};
    for (int d = 0; d < 16; d++) shape.size[d] = 2;
    smelt_array *array = arange(SMELT_INT32, shape), *copy;
    int64_t reversed[16];
    for (int d = 0; d < 16; d++) reversed[d] = INT64_C(1) << d;
    smelt_array *transposed = view(array, shape, reversed, 0);
    assert_false(smelt_array_is_contiguous(transposed));
    assert_int_equal(smelt_array_contiguous(transposed, &copy), SMELT_OK);
    for (uint32_t i = 0; i < 65536; i++) {
        uint32_t mirrored = 0;
        for (int b = 0; b < 16; b++) mirrored |= (i >> b & 1) << (15 - b);
        assert_int_equal(((int32_t *)copy->data)[i], mirrored);
    }
    smelt_array_release(array);
    smelt_array_release(transposed);
    smelt_array_release(copy);
}

/* Batches of transposed matrices with gaps between their rows; sizes around those of copied blocks. */
static void transposed_matrices(void **state) {
    (void)state;
    const smelt_dtype dtypes[] = {SMELT_UINT8, SMELT_INT16, SMELT_FLOAT32, SMELT_INT64};
    const int64_t sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 130};
    enum { COUNT = sizeof sizes / sizeof *sizes, BATCHES = 3 };
    for (int at = 0; at < 4 * COUNT * COUNT; at++) {
        const int64_t rows = sizes[at / COUNT % COUNT], columns = sizes[at % COUNT], width = rows + 3;
        smelt_array *base = arange(dtypes[at / COUNT / COUNT], LINE(BATCHES * columns * width)), *copy;
        smelt_array *turned = view(base, (smelt_shape){3, {rows, BATCHES, columns}},
                                   (int64_t[3]){1, columns * width, width}, 0);
        const size_t bytes = smelt_dtype_bytes(base->dtype);
        assert_int_equal(smelt_array_convert(turned, base->dtype, &copy), SMELT_OK);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t b = 0; b < BATCHES; b++)
                for (int64_t c = 0; c < columns; c++)
                    assert_memory_equal(copy->data + (size_t)((r * BATCHES + b) * columns + c) * bytes,
                                        base->data + (size_t)((b * columns + c) * width + r) * bytes, bytes);
        smelt_array_release(base);
        smelt_array_release(turned);
        smelt_array_release(copy);
    }
}

static void wrong_shapes_are_refused(void **state) {
    (void)state;
    smelt_array *array = NULL;
    refused(smelt_array_create((smelt_dtype)99, LINE(1), &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array: dtype 99 is not one of smelt_dtype");
    refused(smelt_array_create(SMELT_NO_DTYPE, LINE(1), &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array: dtype 0 is not one of smelt_dtype");
    refused(smelt_array_create(SMELT_INT8, (smelt_shape){.ndim = 17}, &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array: ndim is 17, expected 0 to 16");
    refused(smelt_array_create(SMELT_INT8, (smelt_shape){.ndim = -1}, &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array: ndim is -1, expected 0 to 16");
    refused(smelt_array_create(SMELT_INT8, (smelt_shape){2, {4, -3}}, &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array: size -3 of dimension 1 is negative");
    refused(smelt_array_create(SMELT_INT8, (smelt_shape){2, {INT64_MAX, 2}}, &array), SMELT_ERROR_LIMIT,
            "array: shape 9223372036854775807x2 of int8 needs more than 2^63 - 1 bytes");
    refused(smelt_array_create(SMELT_FLOAT32, LINE(INT64_C(1) << 61), &array), SMELT_ERROR_LIMIT,
            "array: shape 2305843009213693952 of float32 needs more than 2^63 - 1 bytes");
    refused(smelt_array_create(SMELT_INT8, LINE(INT64_MAX), &array), SMELT_ERROR_OUT_OF_MEMORY,
            "an array of shape 9223372036854775807 of int8 needs 9223372036854775807 bytes: out of memory");
    assert_null(array);
}

/* ---- Views. */

static void views_reverse_repeat_and_skip(void **state) {
    (void)state;
    smelt_array *base = arange(SMELT_INT32, LINE(12)), *flat;
    static const struct {
        smelt_shape shape;
        int64_t strides[2], offset;
        int32_t wanted[6];
    } cases[] = {
        {{2, {2, 3}}, {-6, -2}, 11, {11, 9, 7, 5, 3, 1}}, /* backwards */
        {{2, {2, 3}}, {0, 1}, 4, {4, 5, 6, 4, 5, 6}},     /* broadcast rows */
        {{2, {2, 3}}, {5, 0}, 2, {2, 2, 2, 7, 7, 7}},     /* broadcast columns */
        {{2, {2, 3}}, {1, 4}, 0, {0, 4, 8, 1, 5, 9}},     /* transposed */
        {{2, {2, 3}}, {-1, 4}, 3, {3, 7, 11, 2, 6, 10}},  /* one of each sign */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        smelt_array *made = view(base, cases[i].shape, cases[i].strides, cases[i].offset);
        assert_false(smelt_array_is_contiguous(made));
        assert_int_equal(smelt_array_contiguous(made, &flat), SMELT_OK);
        assert_memory_equal(flat->data, cases[i].wanted, 24);
        /* A view of the view goes on from its first element. */
        smelt_array *one = view(made, (smelt_shape){.ndim = 0}, NULL, 0);
        assert_int_equal(*(int32_t *)smelt_array_data(one), cases[i].wanted[0]);
        smelt_array_release(one);
        smelt_array_release(flat);
        smelt_array_release(made);
    }
    smelt_array_release(base);
}

static void a_dimension_of_one_may_have_any_stride(void **state) {
    (void)state;
    smelt_array *base = arange(SMELT_INT8, LINE(6));
    smelt_array *made = view(base, (smelt_shape){3, {1, 6, 1}}, (int64_t[]){-77, 1, 1000}, 0);
    assert_true(smelt_array_is_contiguous(made));
    smelt_array_release(made);
    smelt_array_release(base);
}

static void views_beyond_the_memory_are_refused(void **state) {
    (void)state;
    smelt_array *base = arange(SMELT_INT32, LINE(10)), *made = NULL;
    static const struct {
        int64_t size, stride, offset;
    } outside[] = {{11, 1, 0},        {1, 1, 10},        {1, 1, -1},        {2, -1, 0},
                   {5, 2, 2},         {5, -2, 7},        {2, INT64_MAX, 1}, {3, INT64_MAX, 0},
                   {2, INT64_MIN, 0}, {1, 1, INT64_MAX}, {1, 1, INT64_MIN}, {INT64_C(1) << 60, 0, 10}};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_int_equal(
            smelt_array_view(base, LINE(outside[i].size), &outside[i].stride, outside[i].offset, &made),
            SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_array_view(base, (smelt_shape){2, {2, 6}}, NULL, 0, &made),
                     SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(
        smelt_error(),
        "array view: shape 2x6 at offset 0 reaches outside the base array's memory of 10 elements");
    /* The last element itself is inside; and a view may begin before its base view, within the memory. */
    smelt_array *tail = view(base, LINE(1), NULL, 9);
    smelt_array *all = view(tail, LINE(10), NULL, -9);
    assert_ptr_equal(smelt_array_data(all), smelt_array_data(base));
    assert_int_equal(smelt_array_view(tail, LINE(10), NULL, -8, &made), SMELT_ERROR_INVALID_ARGUMENT);
    assert_null(made);
    smelt_array *arrays[] = {base, tail, all};
    for (int i = 0; i < 3; i++) smelt_array_release(arrays[i]);
}

/* ---- References. */

static void count_release(void *context) {
    ++*(int *)context;
}

static void memory_lives_as_long_as_its_last_view(void **state) {
    (void)state;
    int released = 0;
    int16_t memory[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t backwards = -1;
    smelt_array *array;
    assert_int_equal(smelt_array_from_memory(SMELT_INT16, LINE(8), &backwards, memory + 7, count_release,
                                             &released, &array),
                     SMELT_OK);
    assert_ptr_equal(smelt_array_data(array), memory + 7);
    smelt_array *first = view(array, LINE(4), NULL, -7);
    assert_ptr_equal(smelt_array_retain(array), array);
    smelt_array_release(array);
    assert_int_equal(released, 0);
    smelt_array_release(array);
    assert_int_equal(released, 0);
    assert_int_equal(((int16_t *)smelt_array_data(first))[3], 3);
    smelt_array_release(first);
    assert_int_equal(released, 1);
    /* Without a callback, the memory remains the caller's. */
    assert_int_equal(smelt_array_from_memory(SMELT_INT16, LINE(8), NULL, memory, NULL, NULL, &array),
                     SMELT_OK);
    smelt_array_release(array);
    assert_int_equal(memory[5], 5);
}

static void a_failed_call_does_not_release_the_memory(void **state) {
    (void)state;
    int released = 0;
    float memory[4];
    int64_t far = INT64_MAX;
    smelt_array *array = NULL;
    refused(smelt_array_from_memory(SMELT_FLOAT32, LINE(3), &far, memory, count_release, &released, &array),
            SMELT_ERROR_INVALID_ARGUMENT, "array from memory: the strides span more than 2^63 - 1 bytes");
    far = INT64_MIN;
    assert_int_equal(
        smelt_array_from_memory(SMELT_INT8, LINE(2), &far, memory, count_release, &released, &array),
        SMELT_ERROR_INVALID_ARGUMENT);
    refused(smelt_array_from_memory(SMELT_FLOAT32, LINE(4), NULL, NULL, count_release, &released, &array),
            SMELT_ERROR_INVALID_ARGUMENT, "array from memory: data is NULL");
    assert_int_equal(smelt_array_from_memory((smelt_dtype)50, LINE(4), NULL, memory, NULL, NULL, &array),
                     SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(released, 0);
    assert_null(array);
    /* Without elements there is nothing to point to; zero strides repeat one element. */
    int64_t still[2] = {0, 0};
    assert_int_equal(
        smelt_array_from_memory(SMELT_FLOAT32, LINE(0), NULL, NULL, count_release, &released, &array),
        SMELT_OK);
    smelt_array_release(array);
    assert_int_equal(released, 1);
    memory[0] = 3;
    assert_int_equal(smelt_array_from_memory(SMELT_FLOAT32, (smelt_shape){2, {1 << 20, 1 << 20}}, still,
                                             memory, NULL, NULL, &array),
                     SMELT_OK);
    smelt_array *outside = NULL;
    assert_int_equal(smelt_array_view(array, LINE(2), NULL, 0, &outside), SMELT_ERROR_INVALID_ARGUMENT);
    smelt_array_release(array);
}

static void contiguous_shares_what_needs_no_copy(void **state) {
    (void)state;
    smelt_array *array = arange(SMELT_INT32, LINE(3)), *same;
    assert_int_equal(smelt_array_contiguous(array, &same), SMELT_OK);
    assert_ptr_equal(array, same);
    smelt_array_release(array);
    assert_int_equal(((int32_t *)smelt_array_data(same))[2], 2);
    smelt_array_release(same);
}

/* ---- Copies and fills. */

/* A view of random layout with the given shape, in its own memory: dimensions in random order, gaps, signs.
 */
static smelt_array *odd_layout(smelt_dtype dtype, const smelt_shape *shape, smelt_array **base) {
    int order[4] = {0, 1, 2, 3};
    int64_t strides[4], step = 1 + (int64_t)(random_bits() % 3), offset = 0;
    for (int i = shape->ndim - 1; i > 0; i--) {
        int j = (int)(random_bits() % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < shape->ndim; i++) {
        int d = order[i];
        bool backwards = random_bits() % 2;
        strides[d] = backwards ? -step : step;
        if (backwards) offset += step * (shape->size[d] - 1);
        step *= shape->size[d] + (int64_t)(random_bits() % 2);
    }
    assert_int_equal(smelt_array_create(dtype, LINE(step + 8), base), SMELT_OK);
    memset((*base)->data, 0x5a, (*base)->memory->bytes);
    return view(*base, *shape, strides, offset);
}

static char *element_at(const smelt_array *array, int64_t index) {
    int64_t offset = 0;
    for (int d = array->shape.ndim - 1; d >= 0; d--) {
        offset += array->strides[d] * (index % array->shape.size[d]);
        index /= array->shape.size[d];
    }
    return array->data + offset * (int64_t)smelt_dtype_bytes(array->dtype);
}

static void copies_between_odd_layouts_touch_their_elements_only(void **state) {
    (void)state;
    for (int round = 0; round < 400; round++) {
        smelt_dtype from = (smelt_dtype)(1 + random_bits() % 14), to = (smelt_dtype)(1 + random_bits() % 14);
        smelt_shape shape = {.ndim = (int)(random_bits() % 5)};
        for (int d = 0; d < shape.ndim; d++) shape.size[d] = 1 + (int64_t)(random_bits() % 6);
        smelt_array *from_base, *to_base;
        smelt_array *source = odd_layout(from, &shape, &from_base),
                    *target = odd_layout(to, &shape, &to_base);
        for (size_t i = 0; i < from_base->memory->bytes; i++) from_base->data[i] = (char)random_bits();
        size_t bytes = to_base->memory->bytes, width = smelt_dtype_bytes(to);
        char *wanted = malloc(bytes);
        memcpy(wanted, to_base->data, bytes);
        for (int64_t i = 0; i < source->size; i++) {
            char *place = wanted + (element_at(target, i) - to_base->data);
            if (from == to)
                memcpy(place, element_at(source, i), width);
            else
                element_store(to, place, element_load(from, element_at(source, i)));
        }
        assert_int_equal(smelt_array_copy(target, source), SMELT_OK);
        assert_memory_equal(to_base->data, wanted, bytes);
        /* A fill touches the same elements. */
        char pattern[16];
        element_store(to, pattern, element_of_real(-1.5));
        for (int64_t i = 0; i < target->size; i++)
            memcpy(wanted + (element_at(target, i) - to_base->data), pattern, width);
        assert_int_equal(smelt_array_fill(target, -1.5), SMELT_OK);
        assert_memory_equal(to_base->data, wanted, bytes);
        free(wanted);
        smelt_array *all[] = {source, target, from_base, to_base};
        for (int i = 0; i < 4; i++) smelt_array_release(all[i]);
    }
}

static void fills_convert_their_value(void **state) {
    (void)state;
    static const struct {
        smelt_dtype dtype;
        double value;
        uint64_t bits; /* of one element, little endian */
    } cases[] = {{SMELT_FLOAT16, 1.0 / 3, 0x3555},
                 {SMELT_BFLOAT16, -0.0, 0x8000},
                 {SMELT_FLOAT32, 1e300, 0x7f800000},
                 {SMELT_UINT8, 300, 255},
                 {SMELT_INT8, -1e9, 0x80},
                 {SMELT_BOOL, 0.25, 1},
                 {SMELT_COMPLEX64, 2, 0x40000000},
                 {SMELT_INT64, -1, UINT64_MAX},
                 {SMELT_UINT64, 0x1p63, UINT64_C(1) << 63},
                 {SMELT_FLOAT64, 1, UINT64_C(0x3ff) << 52}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        smelt_array *array;
        size_t width = smelt_dtype_bytes(cases[i].dtype);
        assert_int_equal(smelt_array_create(cases[i].dtype, LINE(37), &array), SMELT_OK);
        assert_int_equal(smelt_array_fill(array, cases[i].value), SMELT_OK);
        for (size_t k = 0; k < 37; k++) assert_memory_equal(array->data + k * width, &cases[i].bits, width);
        smelt_array_release(array);
    }
}

static void copies_need_equal_shapes(void **state) {
    (void)state;
    smelt_array *a = arange(SMELT_INT8, (smelt_shape){2, {2, 3}}),
                *b = arange(SMELT_INT8, (smelt_shape){2, {3, 2}});
    smelt_array *c = arange(SMELT_INT8, LINE(6)), *scalar = arange(SMELT_INT8, (smelt_shape){.ndim = 0});
    refused(smelt_array_copy(a, b), SMELT_ERROR_INVALID_ARGUMENT,
            "copy: shape 3x2 cannot be copied into shape 2x3");
    refused(smelt_array_copy(a, c), SMELT_ERROR_INVALID_ARGUMENT,
            "copy: shape 6 cannot be copied into shape 2x3");
    refused(smelt_array_copy(scalar, c), SMELT_ERROR_INVALID_ARGUMENT,
            "copy: shape 6 cannot be copied into shape scalar");
    smelt_array *all[] = {a, b, c, scalar};
    for (int i = 0; i < 4; i++) smelt_array_release(all[i]);
}

/* ---- NULL. */

static void null_is_an_error_and_no_crash(void **state) {
    (void)state;
    smelt_array *array = arange(SMELT_INT8, LINE(2)), *made = NULL;
    int8_t data[2] = {0};
    const smelt_status wrong = SMELT_ERROR_INVALID_ARGUMENT;
    refused(smelt_array_create(SMELT_INT8, LINE(1), NULL), wrong,
            "array: the address for the new array is NULL");
    refused(smelt_array_from_memory(SMELT_INT8, LINE(2), NULL, data, NULL, NULL, NULL), wrong,
            "array from memory: the address for the new array is NULL");
    refused(smelt_array_from_values(SMELT_INT8, LINE(2), NULL, &made), wrong,
            "array from values: data is NULL");
    refused(smelt_array_from_values(SMELT_INT8, LINE(2), data, NULL), wrong,
            "array from values: the address for the new array is NULL");
    refused(smelt_array_view(NULL, LINE(1), NULL, 0, &made), wrong, "array view: base is NULL");
    refused(smelt_array_view(array, LINE(1), NULL, 0, NULL), wrong,
            "array view: the address for the view is NULL");
    refused(smelt_array_fill(NULL, 0), wrong, "fill: array is NULL");
    refused(smelt_array_copy(NULL, array), wrong, "copy: to is NULL");
    refused(smelt_array_copy(array, NULL), wrong, "copy: from is NULL");
    refused(smelt_array_convert(NULL, SMELT_INT8, &made), wrong, "convert: array is NULL");
    refused(smelt_array_convert(array, SMELT_INT8, NULL), wrong, "convert: result is NULL");
    refused(smelt_array_contiguous(NULL, &made), wrong, "contiguous: array is NULL");
    refused(smelt_array_contiguous(array, NULL), wrong, "contiguous: result is NULL");
    assert_null(made);
    assert_null(smelt_array_retain(NULL));
    smelt_array_release(NULL);
    assert_int_equal(smelt_array_dtype(NULL), SMELT_NO_DTYPE);
    assert_int_equal(smelt_array_shape(NULL).ndim, 0);
    assert_int_equal(smelt_array_size(NULL), 0);
    assert_null(smelt_array_strides(NULL));
    assert_null(smelt_array_data(NULL));
    assert_true(smelt_array_is_contiguous(NULL));
    smelt_array_release(array);
}

static void bytes_are_seen_as_another_dtype(void **state) {
    (void)state;
    smelt_array *base = arange(SMELT_UINT16, (smelt_shape){2, {3, 4}});
    smelt_array *words = reinterpreted(base, SMELT_UINT32), *bytes = reinterpreted(words, SMELT_UINT8);
    assert_int_equal(smelt_array_shape(words).size[1], 2);
    assert_int_equal(smelt_array_strides(words)[0], 2);
    assert_int_equal(smelt_array_shape(bytes).size[1], 8);
    assert_ptr_equal(smelt_array_data(bytes), smelt_array_data(base));
    assert_int_equal(((uint32_t *)smelt_array_data(words))[5], 0x000b000a);
    /* Rows with gaps keep them; if they have one column, the strides do not matter. */
    smelt_array *rows = view(base, (smelt_shape){2, {2, 2}}, (const int64_t[]){-8, 1}, 8);
    smelt_array *wide = reinterpreted(rows, SMELT_FLOAT32), *same = reinterpreted(rows, SMELT_FLOAT16);
    assert_int_equal(smelt_array_strides(wide)[0], -4);
    assert_int_equal(smelt_array_shape(wide).size[1], 1);
    assert_int_equal(smelt_array_strides(same)[0], -8);
    smelt_array *empty = arange(SMELT_INT8, (smelt_shape){2, {0, 8}}),
                *none = reinterpreted(empty, SMELT_INT64);
    assert_int_equal(smelt_array_size(none), 0);
    assert_int_equal(smelt_array_shape(none).size[1], 1);
    smelt_array *const all[] = {base, words, bytes, rows, wide, same, empty, none};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) smelt_array_release(all[i]);
}

static void bytes_that_are_not_whole_elements_are_refused(void **state) {
    (void)state;
    smelt_status wrong = SMELT_ERROR_INVALID_ARGUMENT;
    smelt_array *base = arange(SMELT_UINT16, (smelt_shape){2, {3, 4}}), *made = NULL;
    smelt_array *turned = view(base, (smelt_shape){2, {4, 3}}, (const int64_t[]){1, 4}, 0);
    smelt_array *odd = view(base, LINE(2), NULL, 1), *scalar = arange(SMELT_UINT16, (smelt_shape){0});
    refused(smelt_array_reinterpret(base, SMELT_UINT64 + 100, &made), wrong,
            "array reinterpret: dtype 105 is not one of smelt_dtype");
    refused(
        smelt_array_reinterpret(turned, SMELT_UINT8, &made), wrong,
        "array reinterpret: the last dimension of a uint16 array of shape 4x3 is not a dense row of whole "
        "uint8 elements");
    refused(
        smelt_array_reinterpret(scalar, SMELT_UINT8, &made), wrong,
        "array reinterpret: the last dimension of a uint16 array of shape scalar is not a dense row of whole "
        "uint8 elements");
    refused(smelt_array_reinterpret(odd, SMELT_FLOAT32, &made), wrong,
            "array reinterpret: the array's address is not aligned for float32");
    refused(smelt_array_reinterpret(NULL, SMELT_UINT8, &made), wrong, "array reinterpret: base is NULL");
    refused(smelt_array_reinterpret(base, SMELT_UINT8, NULL), wrong,
            "array reinterpret: the address for the view is NULL");
    assert_null(made);
    smelt_array_release(base);
    smelt_array_release(turned);
    smelt_array_release(odd);
    smelt_array_release(scalar);
}

static void parameters_take_their_own_dtype(void **state) {
    (void)state;
    smelt_parameter scalar = {.name = "x", .index = 3, .dtype = SMELT_INT32, .components = 1, .bytes = 4};
    smelt_parameter pair = {.name = "y", .index = 1, .dtype = SMELT_FLOAT32, .components = 2, .bytes = 8};
    smelt_parameter structure = {.name = "s", .bytes = 24};
    const smelt_dtype ints[] = {SMELT_INT32, SMELT_UINT32, SMELT_UINT8};
    const smelt_dtype reals[] = {SMELT_FLOAT32, SMELT_COMPLEX64, SMELT_UINT8};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(smelt_parameter_check(&scalar, ints[i]), SMELT_OK);
        assert_int_equal(smelt_parameter_check(&pair, reals[i]), SMELT_OK);
    }
    for (smelt_dtype dtype = SMELT_BOOL; dtype <= SMELT_FLOAT64; dtype++)
        assert_int_equal(smelt_parameter_check(&structure, dtype), SMELT_OK);
    smelt_parameter bytes = {.name = "b", .pointer = true, .dtype = SMELT_INT8, .components = 1, .bytes = 1};
    assert_int_equal(smelt_parameter_check(&bytes, SMELT_FLOAT32), SMELT_OK);
    bytes.components = 4;
    assert_int_equal(smelt_parameter_check(&bytes, SMELT_FLOAT32), SMELT_ERROR_INVALID_ARGUMENT);
    refused(smelt_parameter_check(&scalar, SMELT_FLOAT32), SMELT_ERROR_INVALID_ARGUMENT,
            "buffer 3 ('x') is float32; the function takes int32 (or uint8, which passes bytes as they are)");
    refused(
        smelt_parameter_check(&pair, SMELT_FLOAT16), SMELT_ERROR_INVALID_ARGUMENT,
        "buffer 1 ('y') is float16; the function takes vectors of 2 float32 (or uint8, which passes bytes as "
        "they are)");
    pair.components = 4;
    assert_int_equal(smelt_parameter_check(&pair, SMELT_COMPLEX64), SMELT_ERROR_INVALID_ARGUMENT);
    refused(smelt_parameter_check(NULL, SMELT_INT8), SMELT_ERROR_INVALID_ARGUMENT,
            "parameter check: parameter is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_array_is_row_contiguous),
        cmocka_unit_test(scalars_and_empty_arrays),
        cmocka_unit_test(sixteen_dimensions),
        cmocka_unit_test(wrong_shapes_are_refused),
        cmocka_unit_test(views_reverse_repeat_and_skip),
        cmocka_unit_test(a_dimension_of_one_may_have_any_stride),
        cmocka_unit_test(views_beyond_the_memory_are_refused),
        cmocka_unit_test(memory_lives_as_long_as_its_last_view),
        cmocka_unit_test(a_failed_call_does_not_release_the_memory),
        cmocka_unit_test(contiguous_shares_what_needs_no_copy),
        cmocka_unit_test(transposed_matrices),
        cmocka_unit_test(copies_between_odd_layouts_touch_their_elements_only),
        cmocka_unit_test(fills_convert_their_value),
        cmocka_unit_test(copies_need_equal_shapes),
        cmocka_unit_test(null_is_an_error_and_no_crash),
        cmocka_unit_test(bytes_are_seen_as_another_dtype),
        cmocka_unit_test(bytes_that_are_not_whole_elements_are_refused),
        cmocka_unit_test(parameters_take_their_own_dtype),
        cmocka_unit_test(padding_follows_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
