/* What the functions of smelt/tensor.h and smelt/safetensors.h may be given by mistake: each call ends with
 * one sentence that names the argument, and leaves the results alone. */
#include "outcome.h"

#include "smelt/safetensors.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INVALID(call, words) refused(call, SMELT_ERROR_INVALID_ARGUMENT, words)

static smelt_array *floats(smelt_dtype dtype, int64_t rows, int64_t columns) {
    smelt_array *array;
    succeed(smelt_array_create(dtype, (smelt_shape){2, {rows, columns}}, &array));
    succeed(smelt_array_fill(array, 0));
    return array;
}

static smelt_tensor *new_tensor(smelt_tensor_desc desc) {
    smelt_tensor *tensor;
    succeed(smelt_tensor_create(&desc, &tensor));
    return tensor;
}

static void null_pointers(void **s) {
    (void)s;
    smelt_tensor_desc desc = {.element = SMELT_FLOAT32, .ndim = 1, .dimensions = {4}};
    smelt_tensor *tensor, *untouched = NULL;
    smelt_array *array = floats(SMELT_FLOAT32, 2, 64), *none = NULL;
    smelt_quantise_desc how = {.element = SMELT_UINT4};
    smelt_tensor_slice slice = {.size = {4}};
    float four[4];
    INVALID(smelt_tensor_create(NULL, &untouched), "tensor: desc is NULL");
    INVALID(smelt_tensor_create(&desc, NULL), "tensor: tensor is NULL");
    tensor = new_tensor(desc);
    INVALID(smelt_tensor_describe(NULL, &desc), "tensor describe: tensor is NULL");
    INVALID(smelt_tensor_describe(tensor, NULL), "tensor describe: desc is NULL");
    INVALID(smelt_tensor_array(NULL, SMELT_PLANE_DATA, &none), "tensor array: tensor is NULL");
    INVALID(smelt_tensor_array(tensor, SMELT_PLANE_DATA, NULL), "tensor array: array is NULL");
    INVALID(smelt_tensor_from_array(NULL, 0, &untouched), "tensor from array: array is NULL");
    INVALID(smelt_tensor_from_array(array, 0, NULL), "tensor from array: tensor is NULL");
    INVALID(smelt_tensor_read_slice(NULL, &slice, four, 16), "tensor read: tensor is NULL");
    INVALID(smelt_tensor_read_slice(tensor, &slice, NULL, 16), "tensor read: bytes is NULL");
    INVALID(smelt_tensor_write_slice(NULL, NULL, four, 16), "tensor write: tensor is NULL");
    INVALID(smelt_tensor_write_slice(tensor, NULL, NULL, 16), "tensor write: bytes is NULL");
    INVALID(smelt_tensor_quantise(NULL, &how, &untouched, NULL), "quantise: array is NULL");
    INVALID(smelt_tensor_quantise(array, NULL, &untouched, NULL), "quantise: desc is NULL");
    INVALID(smelt_tensor_quantise(array, &how, NULL, NULL), "quantise: tensor is NULL");
    INVALID(smelt_tensor_dequantise(NULL, SMELT_FLOAT32, &none), "dequantise: tensor is NULL");
    INVALID(smelt_tensor_dequantise(tensor, SMELT_FLOAT32, NULL), "dequantise: array is NULL");
    assert_null(untouched);
    assert_null(none);
    assert_null(smelt_tensor_retain(NULL));
    smelt_tensor_release(NULL);
    smelt_tensor_release(tensor), smelt_array_release(array);
}

static void numbers_out_of_range(void **s) {
    (void)s;
    smelt_tensor *tensor;
    smelt_array *array = floats(SMELT_UINT8, 2, 64), *none;
#define TENSOR(status, words, ...) \
    refused(smelt_tensor_create(&(smelt_tensor_desc){__VA_ARGS__}, &tensor), status, words)
    TENSOR(SMELT_ERROR_INVALID_ARGUMENT, "tensor: ndim is -1; expected 1 to 16", .element = SMELT_INT8,
           .ndim = -1);
    TENSOR(SMELT_ERROR_INVALID_ARGUMENT, "tensor: dimension 1 is -9223372036854775808; expected at least 1",
           .element = SMELT_INT8, .ndim = 2, .dimensions = {1, INT64_MIN});
    TENSOR(SMELT_ERROR_LIMIT, "tensor: dimensions have more bytes than 64 bits count", .element = SMELT_INT8,
           .ndim = 2, .dimensions = {INT64_MAX, INT64_MAX});
    TENSOR(SMELT_ERROR_LIMIT, "tensor: dimensions have more bytes than 64 bits count", .element = SMELT_UINT4,
           .ndim = 2, .dimensions = {INT64_C(1) << 62, 1});
    TENSOR(SMELT_ERROR_LIMIT, "tensor: strides reach more bytes than 64 bits count", .element = SMELT_INT64,
           .ndim = 2, .dimensions = {4, 2}, .strides = {1, INT64_MAX});
    TENSOR(
        SMELT_ERROR_INVALID_ARGUMENT,
        "tensor: stride 1 is -9223372036854775808 elements; expected at least 4, what the dimensions before "
        "it take",
        .element = SMELT_INT64, .ndim = 2, .dimensions = {4, 2}, .strides = {1, INT64_MIN});
    TENSOR(SMELT_ERROR_INVALID_ARGUMENT,
           "tensor: the block of scales in dimension 0 is -32; expected at least 1, or 0 for 1",
           .element = SMELT_INT8, .ndim = 1, .dimensions = {64},
           .scales = {.element = SMELT_UE8M0, .block = {-32}});
    TENSOR(SMELT_ERROR_INVALID_ARGUMENT,
           "tensor: the element of biases is 99 ('none'); expected one of at least 8 bits",
           .element = SMELT_INT8, .ndim = 1, .dimensions = {64}, .biases = {.element = 99});
    TENSOR(SMELT_ERROR_INVALID_ARGUMENT,
           "tensor: the offset of data is -1 bytes; for int8, expected a multiple of 1 bytes",
           .element = SMELT_INT8, .ndim = 1, .dimensions = {64}, .memory = array, .offset = -1);
    TENSOR(SMELT_ERROR_INVALID_ARGUMENT,
           "tensor: the memory of data has 0 bytes from its offset on; expected 64", .element = SMELT_INT8,
           .ndim = 1, .dimensions = {64}, .memory = array, .offset = INT64_MAX);
    TENSOR(SMELT_ERROR_INVALID_ARGUMENT,
           "tensor: the memory of scales has 128 bytes from its offset on; expected 256",
           .element = SMELT_INT8, .ndim = 1, .dimensions = {64},
           .scales = {.element = SMELT_FLOAT32, .memory = array});
    int invalid[] = {-1, 15, 63, 72, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        smelt_tensor_desc desc = {.element = invalid[i], .ndim = 1, .dimensions = {4}};
        assert_int_equal(smelt_tensor_create(&desc, &tensor), SMELT_ERROR_INVALID_ARGUMENT);
        assert_int_equal(smelt_tensor_from_array(array, invalid[i], &tensor), SMELT_ERROR_INVALID_ARGUMENT);
        assert_int_equal(smelt_element_bits(invalid[i]), 0);
        assert_string_equal(smelt_element_name(invalid[i]), "none");
        assert_true(isnan(smelt_element_decode(invalid[i], 1)));
        assert_int_equal(smelt_element_encode(invalid[i], 1), 0);
    }
    tensor = new_tensor((smelt_tensor_desc){.element = SMELT_UINT8, .ndim = 1, .dimensions = {4}});
    INVALID(smelt_tensor_array(tensor, (smelt_tensor_plane)3, &none),
            "tensor array: plane is 3; expected 0 to 2");
    INVALID(smelt_tensor_array(tensor, SMELT_PLANE_SCALES, &none), "tensor array: the tensor has no scales");
    INVALID(smelt_tensor_dequantise(tensor, SMELT_INT8, &none),
            "dequantise: dtype is int8; expected a float");
    INVALID(smelt_tensor_dequantise(tensor, (smelt_dtype)999, &none),
            "dequantise: dtype is none; expected a float");
    smelt_tensor_release(tensor), smelt_array_release(array);
}

/* Arrays whose layout no tensor has. */
static void arrays_without_room(void **s) {
    (void)s;
    smelt_tensor *tensor;
    smelt_array *array = floats(SMELT_UINT8, 4, 64), *view;
    int64_t backwards[] = {-64, 1}, spread[] = {0, 0};
    succeed(smelt_array_view(array, (smelt_shape){2, {4, 64}}, backwards, 192, &view));
    INVALID(smelt_tensor_from_array(view, 0, &tensor),
            "tensor: stride 1 is -64 elements; expected at least 64, what the dimensions before it take");
    smelt_array_release(view);
    succeed(smelt_array_view(array, (smelt_shape){2, {1, INT64_C(1) << 62}}, spread, 0, &view));
    refused(smelt_tensor_from_array(view, SMELT_INT2, &tensor), SMELT_ERROR_LIMIT,
            "tensor from array: dimension 0 has more elements than 64 bits count");
    INVALID(smelt_tensor_from_array(view, 0, &tensor), "tensor: stride 0 is 0; expected 1");
    smelt_array_release(view);
    succeed(smelt_array_view(array, (smelt_shape){2, {0, 64}}, (int64_t[]){64, 1}, 0, &view));
    INVALID(smelt_tensor_from_array(view, 0, &tensor), "tensor: dimension 1 is 0; expected at least 1");
    smelt_array_release(view), smelt_array_release(array);
}

static void slices(void **s) {
    (void)s;
    smelt_tensor *tensor =
        new_tensor((smelt_tensor_desc){.element = SMELT_FLOAT32, .ndim = 2, .dimensions = {4, 3}});
    float room[64];
    char bytes[65];
#define SLICE(status, words, ...)                                                                           \
    refused(smelt_tensor_read_slice(tensor, &(smelt_tensor_slice){__VA_ARGS__}, room, sizeof room), status, \
            words)
    SLICE(SMELT_ERROR_INVALID_ARGUMENT, "tensor read: plane is -1; expected 0 to 2",
          .plane = (smelt_tensor_plane)-1);
    SLICE(SMELT_ERROR_INVALID_ARGUMENT,
          "tensor slice: dimension 0 begins at 0 and has 0 elements; expected a part of the plane's 4",
          .size = {0, 1});
    SLICE(SMELT_ERROR_INVALID_ARGUMENT,
          "tensor slice: dimension 1 begins at 9223372036854775807 and has 9223372036854775807 elements; "
          "expected "
          "a part of the plane's 3",
          .origin = {0, INT64_MAX}, .size = {4, INT64_MAX});
    SLICE(SMELT_ERROR_INVALID_ARGUMENT, "tensor slice: stride 0 is 2; expected 1", .size = {4, 3},
          .strides = {2, 8});
    SLICE(SMELT_ERROR_INVALID_ARGUMENT, "tensor slice: stride 1 is -4; expected 0 or more", .size = {4, 3},
          .strides = {1, -4});
    SLICE(SMELT_ERROR_LIMIT, "tensor slice: strides reach more bytes than 64 bits count", .size = {4, 3},
          .strides = {1, INT64_MAX});
    SLICE(SMELT_ERROR_INVALID_ARGUMENT, "tensor read: there is room for 256 bytes; expected 8589934608",
          .size = {4, 3}, .strides = {1, INT64_C(1) << 30});
    SLICE(SMELT_ERROR_INVALID_ARGUMENT,
          "tensor read: stride 1 is 3; expected at least 4, what other dimensions take", .size = {4, 3},
          .strides = {1, 3});
    /* In any order of dimensions. */
    succeed(smelt_tensor_read_slice(tensor, &(smelt_tensor_slice){.size = {4, 3}, .strides = {1, 20}}, room,
                                    sizeof room));
    /* To write, one row may stand for all. */
    for (int i = 0; i < 64; i++) room[i] = (float)i;
    smelt_tensor_slice one_row = {.size = {4, 3}, .strides = {1, 0}};
    succeed(smelt_tensor_write_slice(tensor, &one_row, room, 16));
    succeed(smelt_tensor_read_slice(tensor, NULL, room, 48));
    for (int i = 0; i < 12; i++) assert_true(room[i] == (float)(i % 4));
    /* Bytes need not be aligned. */
    succeed(smelt_tensor_read_slice(tensor, NULL, bytes + 1, 48));
    assert_memory_equal(bytes + 1, room, 48);
    succeed(smelt_tensor_write_slice(tensor, NULL, bytes + 1, 48));
    INVALID(smelt_tensor_write_slice(tensor, NULL, room, 47),
            "tensor write: there is room for 47 bytes; expected 48");
    INVALID(smelt_tensor_write_slice(tensor, NULL, room, 0),
            "tensor write: there is room for 0 bytes; expected 48");
    smelt_tensor_release(tensor);
}

/* Values at the ends of what floats hold: results are finite, and what had to be cut off is counted. */
static void groups_of_large_values(void **s) {
    (void)s;
    static const int elements[] = {SMELT_INT2, SMELT_UINT2, SMELT_INT4, SMELT_UINT4, SMELT_INT8, SMELT_UINT8};
    static const smelt_dtype scales[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};
    static const double magnitudes[] = {65504, 70000, 1e7, 0x1p127, FLT_MAX, 1e300, DBL_MAX};
    smelt_array *array = floats(SMELT_FLOAT64, 1, 64), *back;
    double *values = smelt_array_data(array);
    smelt_tensor *tensor;
    smelt_quantise_error error;
    for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
        for (size_t k = 0; k < 3; k++)
            for (size_t m = 0; m < sizeof magnitudes / sizeof *magnitudes; m++) {
                for (int i = 0; i < 64; i++) values[i] = (i % 5 - 2) / 2.0 * magnitudes[m];
                succeed(smelt_tensor_quantise(
                    array, &(smelt_quantise_desc){.element = elements[e], .scales = scales[k]}, &tensor,
                    &error));
                succeed(smelt_tensor_dequantise(tensor, SMELT_FLOAT64, &back));
                const double *found = smelt_array_data(back);
                double largest = 0;
                for (int i = 0; i < 64; i++) {
                    if (!isfinite(found[i]) || (values[i] != 0 && found[i] * values[i] < 0))
                        FAIL_TEST("%s with scales of %s: %g became %g", smelt_element_name(elements[e]),
                                  smelt_dtype_name(scales[k]), values[i], found[i]);
                    largest = fmax(largest, fabs(found[i] - values[i]));
                }
                assert_int_equal(error.count, 64);
                assert_true(error.largest == largest);
                double step = magnitudes[m] * 2 / (smelt_element_bits(elements[e]) == 8 ? 127 : 1);
                if (largest > step && !error.saturated)
                    FAIL_TEST("%s with scales of %s: an error of %g is not counted",
                              smelt_element_name(elements[e]), smelt_dtype_name(scales[k]), largest);
                smelt_tensor_release(tensor), smelt_array_release(back);
            }
    smelt_array_release(array);
}

static void quantisation(void **s) {
    (void)s;
    smelt_tensor *tensor;
    smelt_array *array = floats(SMELT_FLOAT32, 2, 64), *whole = floats(SMELT_INT32, 2, 64),
                *empty = floats(SMELT_FLOAT32, 0, 64);
#define QUANTISE(words, from, ...) \
    INVALID(smelt_tensor_quantise(from, &(smelt_quantise_desc){__VA_ARGS__}, &tensor, NULL), words)
    QUANTISE("quantise: the array is of int32; expected floats", whole, .element = SMELT_UINT4);
    QUANTISE("quantise: the array has shape 0x64; expected elements in at least one dimension", empty,
             .element = SMELT_UINT4);
    QUANTISE("quantise: group is -64; expected at least 1, or 0", array, .element = SMELT_UINT4,
             .group = -64);
    QUANTISE("quantise: the last dimension is 64; expected a multiple of the group, 9223372036854775807",
             array, .element = SMELT_UINT4, .group = INT64_MAX);
    QUANTISE("quantise: scales is float64; expected float16, bfloat16 or float32", array,
             .element = SMELT_UINT4, .scales = SMELT_FLOAT64);
    QUANTISE("quantise: scales is none; expected float16, bfloat16 or float32", array, .element = SMELT_UINT4,
             .scales = (smelt_dtype)77);
    smelt_array_release(array), smelt_array_release(whole), smelt_array_release(empty);
}

static void files(void **s) {
    (void)s;
    smelt_safetensors *file = NULL;
    smelt_safetensors_entry entry;
    smelt_array *array = floats(SMELT_UINT8, 2, 3);
    const char *path = "unit_tensor_refusals.safetensors";
    INVALID(smelt_safetensors_open(NULL, &file), "safetensors open: path is NULL");
    INVALID(smelt_safetensors_open(path, NULL), "safetensors open: file is NULL");
    INVALID(smelt_safetensors_at(NULL, 0, &entry), "safetensors at: file is NULL");
    INVALID(smelt_safetensors_find(NULL, "a", &entry), "safetensors find: file is NULL");
    assert_int_equal(smelt_safetensors_count(NULL), 0);
    assert_null(smelt_safetensors_metadata_key(NULL, 0));
    assert_null(smelt_safetensors_retain(NULL));
    smelt_safetensors_release(NULL);
    smelt_safetensors_entry one = {.name = "a", .array = array};
    INVALID(smelt_safetensors_write(NULL, &one, 1, NULL, 0), "safetensors write: path is NULL");
    INVALID(smelt_safetensors_write(path, NULL, 1, NULL, 0), "safetensors write: entries is NULL");
    INVALID(smelt_safetensors_write(path, &one, -1, NULL, 0),
            "safetensors write: count is -1; expected 0 or more");
    INVALID(smelt_safetensors_write(path, &one, 1, NULL, -1),
            "safetensors write: metadata_count is -1; expected 0 or more");
    INVALID(smelt_safetensors_write(path, &one, 1, NULL, INT32_MAX),
            "safetensors write: metadata is NULL; expected 2147483647 pairs");
    INVALID(smelt_safetensors_write(path, &one, 1, (const char *[]){"k", NULL}, 1),
            "safetensors write: metadata[1] is NULL");
    INVALID(smelt_safetensors_write(path, &(smelt_safetensors_entry){.name = "a"}, 1, NULL, 0),
            "safetensors write: array 'a' is NULL");
    INVALID(smelt_safetensors_write(path, &(smelt_safetensors_entry){.array = array}, 1, NULL, 0),
            "safetensors write: the name of entry 0 is ''; expected an array's name");
    succeed(smelt_safetensors_write(path, &one, 1, NULL, 0));
    succeed(smelt_safetensors_open(path, &file));
    INVALID(smelt_safetensors_at(file, -1, &entry), "safetensors at: index is -1; the file has 1 arrays");
    INVALID(smelt_safetensors_at(file, 1, &entry), "safetensors at: index is 1; the file has 1 arrays");
    INVALID(smelt_safetensors_at(file, 0, NULL), "safetensors at: entry is NULL");
    INVALID(smelt_safetensors_find(file, "b", &entry), "safetensors find: the file has no array 'b'");
    INVALID(smelt_safetensors_find(file, NULL, &entry), "safetensors find: name is NULL");
    smelt_safetensors_release(file), smelt_array_release(array);
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(null_pointers),
                                       cmocka_unit_test(numbers_out_of_range),
                                       cmocka_unit_test(arrays_without_room),
                                       cmocka_unit_test(slices),
                                       cmocka_unit_test(groups_of_large_values),
                                       cmocka_unit_test(quantisation),
                                       cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
