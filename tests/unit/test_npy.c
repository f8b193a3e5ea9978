/* .npy files: round trips, every supported form of header, and the messages for unsupported ones. */
#include "unit.h"

#include "array/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/smelt-npy-XXXXXX";

static int make_scratch(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_scratch(void **state) {
    (void)state;
    return rmdir(folder); /* fails if a test, or a write that failed, left a file */
}

static const char *path_of(const char *name) {
    static char path[4][256];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

/* A file with the given bytes. */
static const char *file_of(const char *name, const void *bytes, size_t size) {
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* A file with this dictionary and data; the header is padded as NumPy does. */
static const char *npy_of(int version, const char *dictionary, const void *data, size_t size) {
    char bytes[4096] = "\x93NUMPY";
    size_t start = version == 1 ? 10 : 12, length = strlen(dictionary) + 1;
    while ((start + length) % 64) length++;
    bytes[6] = (char)version;
    bytes[8] = (char)(length & 255);
    bytes[9] = (char)(length >> 8);
    memset(bytes + start, ' ', length);
    memcpy(bytes + start, dictionary, strlen(dictionary));
    bytes[start + length - 1] = '\n';
    if (size) memcpy(bytes + start + length, data, size);
    return file_of("in.npy", bytes, start + length + size);
}

static smelt_array *read_good(const char *path, smelt_dtype dtype) {
    smelt_array *array = NULL;
    smelt_status status = smelt_array_read_npy(path, dtype, &array);
    if (status != SMELT_OK) print_error("%s\n", smelt_error());
    assert_int_equal(status, SMELT_OK);
    unlink(path);
    return array;
}

/* The message, with {path} for the path. */
static void refused_as(const char *path, smelt_dtype dtype, smelt_status wanted, const char *message) {
    smelt_array *array = NULL;
    char expected[1024] = "";
    for (const char *at = message; *at;) {
        size_t used = strlen(expected);
        if (strncmp(at, "{path}", 6) == 0) {
            snprintf(expected + used, sizeof expected - used, "%s", path);
            at += 6;
        } else {
            expected[used] = *at++;
        }
    }
    smelt_status status = smelt_array_read_npy(path, dtype, &array);
    assert_string_equal(smelt_error(), expected);
    assert_int_equal(status, wanted);
    assert_null(array);
    unlink(path);
}

static void refused(const char *path, const char *message) {
    refused_as(path, SMELT_NO_DTYPE, SMELT_ERROR_FORMAT, message);
}

/* ---- Round trips. */

static void every_dtype_and_shape_comes_back(void **state) {
    (void)state;
    static const smelt_shape shapes[] = {{.ndim = 0}, {1, {0}},          {1, {7}},
                                         {2, {3, 5}}, {4, {2, 1, 0, 3}}, {3, {2, 3, 4}}};
    for (int dtype = SMELT_BOOL; dtype <= SMELT_FLOAT64; dtype++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            smelt_array *array, *back;
            const char *path = path_of("a.npy");
            assert_int_equal(smelt_array_uniform((smelt_dtype)dtype, shapes[i], 9, &array), SMELT_OK);
            assert_int_equal(smelt_array_write_npy(array, path), SMELT_OK);
            back = read_good(path, dtype == SMELT_BFLOAT16 ? SMELT_BFLOAT16 : SMELT_NO_DTYPE);
            assert_int_equal(back->dtype, dtype);
            assert_int_equal(back->shape.ndim, shapes[i].ndim);
            for (int d = 0; d < shapes[i].ndim; d++) assert_int_equal(back->shape.size[d], shapes[i].size[d]);
            assert_true(smelt_array_is_contiguous(back));
            if (array->size)
                assert_memory_equal(back->data, array->data,
                                    (size_t)array->size * smelt_dtype_bytes(array->dtype));
            smelt_array_release(array);
            smelt_array_release(back);
        }
}

static void sixteen_dimensions_come_back(void **state) {
    (void)state;
    smelt_shape shape = {.ndim = 16};
    for (int d = 0; d < 16; d++) shape.size[d] = 1 + (d % 8 == 3);
    smelt_array *array;
    assert_int_equal(smelt_array_arange(SMELT_INT8, shape, &array), SMELT_OK);
    assert_int_equal(smelt_array_write_npy(array, path_of("a.npy")), SMELT_OK);
    smelt_array *back = read_good(path_of("a.npy"), SMELT_NO_DTYPE);
    assert_int_equal(back->shape.ndim, 16);
    assert_memory_equal(back->data, array->data, 4);
    smelt_array_release(array);
    smelt_array_release(back);
}

/* Byte for byte what NumPy 1.24 writes for numpy.save of arange(3, dtype=int16). */
static void the_file_is_numpys(void **state) {
    (void)state;
    static const char wanted[] =
        "\x93NUMPY\x01\x00v\x00{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
    smelt_array *array;
    assert_int_equal(smelt_array_arange(SMELT_INT16, (smelt_shape){1, {3}}, &array), SMELT_OK);
    assert_int_equal(smelt_array_write_npy(array, path_of("a.npy")), SMELT_OK);
    char bytes[200];
    FILE *file = fopen(path_of("a.npy"), "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), 128 + 6);
    fclose(file);
    unlink(path_of("a.npy"));
    assert_memory_equal(bytes, wanted, sizeof wanted - 1);
    for (size_t i = sizeof wanted - 1; i < 127; i++) assert_int_equal(bytes[i], ' ');
    assert_memory_equal(bytes + 127, "\n\0\0\1\0\2\0", 7);
    smelt_array_release(array);
}

static void views_are_written_in_row_major_order(void **state) {
    (void)state;
    smelt_array *base, *turned;
    assert_int_equal(smelt_array_arange(SMELT_INT32, (smelt_shape){2, {2, 3}}, &base), SMELT_OK);
    assert_int_equal(smelt_array_view(base, (smelt_shape){2, {3, 2}}, (int64_t[]){1, 3}, 0, &turned),
                     SMELT_OK);
    assert_int_equal(smelt_array_write_npy(turned, path_of("a.npy")), SMELT_OK);
    smelt_array *back = read_good(path_of("a.npy"), SMELT_NO_DTYPE);
    assert_memory_equal(back->data, ((int32_t[]){0, 3, 1, 4, 2, 5}), 24);
    smelt_array *all[] = {base, turned, back};
    for (int i = 0; i < 3; i++) smelt_array_release(all[i]);
}

/* ---- What is read. */

static void every_version_is_read(void **state) {
    (void)state;
    int32_t data[2] = {5, -6};
    for (int version = 1; version <= 3; version++) {
        smelt_array *array =
            read_good(npy_of(version, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", data, 8),
                      SMELT_NO_DTYPE);
        assert_memory_equal(array->data, data, 8);
        smelt_array_release(array);
    }
}

static void both_byte_orders_are_read(void **state) {
    (void)state;
    static const struct {
        const char *descr;
        size_t size;
        const char *bytes, *little;
    } cases[] = {{">u2", 2, "\x12\x34", "\x34\x12"},
                 {">i4", 4, "\x12\x34\x56\x78", "\x78\x56\x34\x12"},
                 {">f8", 8, "\x3f\xf8\0\0\0\0\0\1", "\1\0\0\0\0\0\xf8\x3f"},
                 {">c8", 8, "\x3f\x80\0\0\x40\0\0\1", "\0\0\x80\x3f\1\0\0\x40"},
                 {"=u2", 2, "\x12\x34", "\x12\x34"},
                 {"|i1", 1, "\x80", "\x80"},
                 {"i8", 8, "\1\2\3\4\5\6\7\x08", "\1\2\3\4\5\6\7\x08"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dictionary[128];
        snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': ()}",
                 cases[i].descr);
        smelt_array *array = read_good(npy_of(1, dictionary, cases[i].bytes, cases[i].size), SMELT_NO_DTYPE);
        assert_memory_equal(array->data, cases[i].little, cases[i].size);
        smelt_array_release(array);
    }
    smelt_array *brain = read_good(
        npy_of(1, "{'descr': '>V2', 'fortran_order': False, 'shape': ()}", "\x3f\x80", 2), SMELT_BFLOAT16);
    assert_memory_equal(brain->data, "\x80\x3f", 2);
    smelt_array_release(brain);
}

static void fortran_order_becomes_strides(void **state) {
    (void)state;
    int16_t data[6] = {0, 10, 1, 11, 2, 12};
    smelt_array *array = read_good(
                    npy_of(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", data, 12),
                    SMELT_NO_DTYPE),
                *flat;
    assert_memory_equal(smelt_array_strides(array), ((int64_t[]){1, 2}), 16);
    assert_false(smelt_array_is_contiguous(array));
    assert_int_equal(smelt_array_contiguous(array, &flat), SMELT_OK);
    assert_memory_equal(flat->data, ((int16_t[]){0, 1, 2, 10, 11, 12}), 12);
    smelt_array_release(array);
    smelt_array_release(flat);
}

/* Other writers use another order of keys, other quotes, no last comma, Python 2's long integers. */
static void unusual_dictionaries_are_read(void **state) {
    (void)state;
    static const char *const forms[] = {
        "{'shape': (2L,), 'fortran_order': False, 'descr': '<i4'}",
        "{\"descr\":\"<i4\",\"fortran_order\":False,\"shape\":(2,)}",
        "  { 'descr' : '<i4' ,\t'fortran_order' : False , 'shape' : ( 2 , ) , }",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        smelt_array *array = read_good(npy_of(1, forms[i], "\1\0\0\0\2\0\0\0", 8), SMELT_NO_DTYPE);
        assert_int_equal(array->shape.ndim, 1);
        assert_memory_equal(array->data, "\1\0\0\0\2\0\0\0", 8);
        smelt_array_release(array);
    }
}

static void bytes_of_bool_become_0_or_1_and_more_data_is_left(void **state) {
    (void)state;
    smelt_array *array =
        read_good(npy_of(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\2\0\xff\5\5", 5),
                  SMELT_NO_DTYPE);
    assert_memory_equal(array->data, "\1\0\1", 3);
    smelt_array_release(array);
}

static void pipes_are_read_and_written(void **state) {
    (void)state;
    int ends[2];
    char path[64];
    smelt_array *array, *back;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){1, {10}}, &array), SMELT_OK);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
    assert_int_equal(smelt_array_write_npy(array, path), SMELT_OK);
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(smelt_array_read_npy(path, SMELT_NO_DTYPE, &back), SMELT_OK);
    close(ends[0]);
    assert_memory_equal(array->data, back->data, 40);
    smelt_array_release(array);
    smelt_array_release(back);
}

/* ---- Unsupported files. */

static void files_that_cannot_be_read(void **state) {
    (void)state;
    refused_as(path_of("none.npy"), SMELT_NO_DTYPE, SMELT_ERROR_IO,
               "file '{path}' cannot be opened: No such file or directory");
    refused_as("/tmp", SMELT_NO_DTYPE, SMELT_ERROR_IO, "file '{path}' cannot be read: Is a directory");
    refused_as("", SMELT_NO_DTYPE, SMELT_ERROR_IO,
               "file '{path}' cannot be opened: No such file or directory");
    smelt_array *array = NULL;
    assert_int_equal(smelt_array_read_npy(NULL, SMELT_NO_DTYPE, &array), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_array_read_npy("x", SMELT_NO_DTYPE, NULL), SMELT_ERROR_INVALID_ARGUMENT);
}

static void damaged_headers(void **state) {
    (void)state;
    refused(file_of("in.npy", "", 0), "file '{path}' is not a .npy file");
    refused(file_of("in.npy", "PK\3\4 and so on", 14), "file '{path}' is not a .npy file");
    refused(file_of("in.npy", "\x93NUMPY\1\0v", 9), "file '{path}' is not a .npy file");
    refused(file_of("in.npy", "\x93NUMPY\1\0v\0{'descr'", 18),
            "file '{path}' is damaged: it ends inside its header");
    refused(file_of("in.npy", "\x93NUMPY\2\0v\0\0", 11),
            "file '{path}' is damaged: it ends inside its header");
    refused(file_of("in.npy", "\x93NUMPY\4\0v\0{'descr'", 18),
            "file '{path}' is of .npy version 4.0; versions 1.0, 2.0 and 3.0 are supported");
    refused(file_of("in.npy", "\x93NUMPY\1\1v\0{'descr'", 18),
            "file '{path}' is of .npy version 1.1; versions 1.0, 2.0 and 3.0 are supported");
    refused(file_of("in.npy", "\x93NUMPY\2\0\xff\xff\xff\xff{}", 14),
            "file '{path}' is damaged: its header has 4294967295 bytes, expected at most 65536");
}

static void damaged_dictionaries(void **state) {
    (void)state;
    static const struct {
        const char *dictionary, *reason;
    } cases[] = {
        {"[1, 2]", "is not a dictionary"},
        {"{descr: '<f4'}", "is not a dictionary of strings"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
         "has a key other than descr, fortran_order and shape"},
        {"{'descr': 4, 'fortran_order': False, 'shape': (2,)}", "has no readable 'descr'"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
         "has a 'fortran_order' that is neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "has a 'shape' that is not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "has a 'shape' that is not of integers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.5,)}", "has an unterminated 'shape'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         "has a size of more than 63 bits in 'shape'"},
        {"{'descr': '<f4', 'fortran_order': False}", "lacks one of descr, fortran_order, shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "is unterminated"},
        {"{}", "lacks one of descr, fortran_order, shape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[256];
        snprintf(message, sizeof message, "file '{path}' is damaged: its header %s", cases[i].reason);
        refused(npy_of(1, cases[i].dictionary, NULL, 0), message);
    }
}

static void unsupported_contents(void **state) {
    (void)state;
    static const struct {
        const char *descr, *message;
    } cases[] = {
        {"'<c16'", "file '{path}' holds elements of type '<c16', which is not supported"},
        {"'<f16'", "file '{path}' holds elements of type '<f16', which is not supported"},
        {"'<U5'", "file '{path}' holds elements of type '<U5', which is not supported"},
        {"'|O'", "file '{path}' holds elements of type '|O', which is not supported"},
        {"'<M8[ns]'", "file '{path}' holds elements of type '<M8[ns]', which is not supported"},
        {"''", "file '{path}' holds elements of type '', which is not supported"},
        {"[('a', '<f4')]", "file '{path}' holds records (a structured dtype), which are not supported"},
        {"'<V2'", "file '{path}' holds two raw bytes per element ('<V2'); if they are bfloat16, read it as "
                  "{path}:bfloat16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dictionary[128];
        snprintf(dictionary, sizeof dictionary, "{'descr': %s, 'fortran_order': False, 'shape': (1,)}",
                 cases[i].descr);
        refused(npy_of(1, dictionary, "\0\0\0\0", 4), cases[i].message);
    }
    refused_as(npy_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "\0\0\0\0", 4),
               SMELT_BFLOAT16, SMELT_ERROR_FORMAT,
               "file '{path}' holds float32 ('<f4'), but bfloat16 was requested");
    refused(npy_of(1,
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
                   "\0\0\0\0", 4),
            "file '{path}' has more than 16 dimensions");
}

static void less_data_than_promised(void **state) {
    (void)state;
    refused(npy_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "\0\0\0\0\0", 5),
            "file '{path}' is truncated: its header declares 24 bytes of data, it has 5");
    refused(npy_of(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", "\0\0\0", 3),
            "file '{path}' is truncated: its header declares 4 bytes of data, it has 3");
    /* A size that the file cannot have must not cause an allocation. */
    refused(npy_of(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}", NULL, 0),
            "file '{path}' is truncated: its header declares 8000000000000 bytes of data, it has 0");
    refused(npy_of(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (4294967296, 4294967296)}", NULL, 0),
            "file '{path}' is damaged: shape: shape 4294967296x4294967296 of float64 needs more than 2^63 - "
            "1 bytes");
    smelt_array *empty = read_good(
        npy_of(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (4294967296, 4294967296, 0)}", NULL, 0),
        SMELT_NO_DTYPE);
    assert_int_equal(smelt_array_size(empty), 0);
    smelt_array_release(empty);
}

static void places_that_cannot_be_written(void **state) {
    (void)state;
    smelt_array *array;
    assert_int_equal(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){1, {10000}}, &array), SMELT_OK);
    assert_int_equal(smelt_array_write_npy(array, "/dev/full"), SMELT_ERROR_IO);
    assert_string_equal(smelt_error(), "file '/dev/full' cannot be written: No space left on device");
    assert_int_equal(smelt_array_write_npy(array, "/nowhere/at/all.npy"), SMELT_ERROR_IO);
    assert_string_equal(smelt_error(),
                        "file '/nowhere/at/all.npy' cannot be written: No such file or directory");
    assert_int_equal(smelt_array_write_npy(array, folder), SMELT_ERROR_IO);
    assert_int_equal(smelt_array_write_npy(NULL, path_of("a.npy")), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_array_write_npy(array, NULL), SMELT_ERROR_INVALID_ARGUMENT);
    smelt_array_release(array);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_shape_comes_back),
        cmocka_unit_test(sixteen_dimensions_come_back),
        cmocka_unit_test(the_file_is_numpys),
        cmocka_unit_test(views_are_written_in_row_major_order),
        cmocka_unit_test(every_version_is_read),
        cmocka_unit_test(both_byte_orders_are_read),
        cmocka_unit_test(fortran_order_becomes_strides),
        cmocka_unit_test(unusual_dictionaries_are_read),
        cmocka_unit_test(bytes_of_bool_become_0_or_1_and_more_data_is_left),
        cmocka_unit_test(pipes_are_read_and_written),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(damaged_headers),
        cmocka_unit_test(damaged_dictionaries),
        cmocka_unit_test(unsupported_contents),
        cmocka_unit_test(less_data_than_promised),
        cmocka_unit_test(places_that_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
