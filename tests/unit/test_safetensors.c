/* .safetensors files: written and read again; files that are damaged on purpose, each with its sentence. */
#include "unit.h"

#include "smelt/safetensors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/smelt-test-safetensors-XXXXXX";

static void succeed(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s", smelt_error());
}

static void write_bytes(const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

/* A file of a header and so many bytes of data, 0, 1, 2 … */
static void write_file(const char *json, size_t data) {
    char file[2048];
    uint64_t size = strlen(json);
    memcpy(file, &size, 8);
    memcpy(file + 8, json, size);
    for (size_t i = 0; i < data; i++) file[8 + size + i] = (char)i;
    write_bytes(file, 8 + size + data);
}

/* The message, behind the path. */
static void refused(const char *words) {
    smelt_safetensors *file;
    char message[512];
    smelt_status status = smelt_safetensors_open(path, &file);
    snprintf(message, sizeof message, "file '%s'%s", path, words);
    if (status != SMELT_ERROR_FORMAT || strcmp(smelt_error(), message) != 0)
        FAIL_TEST("%s: \"%s\", expected \"%s\"", smelt_status_name(status), smelt_error(), message);
}

static void damaged_files_are_refused(void **s) {
    (void)s;
    static const struct {
        const char *json;
        size_t data;
        const char *words;
    } files[] = {
        {"", 0, " is damaged: at byte 0 of its header, expected '{'"},
        {"{} x", 0, " is damaged: at byte 3 of its header, expected the end of the header"},
        {"{\"a\"", 0, " is damaged: at byte 4 of its header, expected ':'"},
        {"{\"a", 0, " is damaged: at byte 2 of its header, expected a string with an end"},
        {"{\"a\\", 0, " is damaged: at byte 2 of its header, expected a string with an end"},
        {"{\"a\\q\":{}}", 0, " is damaged: at byte 4 of its header, expected an escape"},
        {"{\"a\\ud800\":{}}", 0, " is damaged: at byte 9 of its header, expected the second half of a pair"},
        {"{\"a\\u0000\":{}}", 0, " is damaged: at byte 9 of its header, expected a character"},
        {"{\"\xc0\x80\":{}}", 0, " is damaged: at byte 2 of its header, expected a character"},
        {"{\"a\":{}}", 0, " is damaged: at byte 6 of its header, expected a string"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4,
         " is damaged: at byte 31 of its header, expected dtype, shape and data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 4,
         " is damaged: at byte 26 of its header, expected the keys dtype, shape and data_offsets, each once"},
        {"{\"a\":{\"dtype\":\"F8_X\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
         ": array 'a' has the element type 'F8_X', which is not supported"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]}}", 4,
         " is damaged: at byte 28 of its header, expected a whole number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[04],\"data_offsets\":[0,4]}}", 4,
         " is damaged: at byte 30 of its header, expected a whole number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4,
         " is damaged: at byte 46 of its header, expected a number below 2^63"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775000,3],\"data_offsets\":[0,4]}}", 4,
         ": the shape of array 'a' has more bytes than 64 bits count"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
         ": array 'a' has more than 16 dimensions"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
         ": array 'a' has bytes 0 to 4; expected 8 of them for its shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}}", 4,
         ": array 'a' has bytes 4 to 0; expected 4 of them for its shape"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", 3,
         ": a row of array 'a' is not a whole number of bytes"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":["
         "4],\"data_offsets\":[2,6]}}",
         6, ": array 'b' begins at byte 2 of the data; expected 4: it overlaps the one before"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]}}", 5,
         ": array 'a' begins at byte 1 of the data; expected 0: there is a gap"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 3,
         " is truncated: its arrays take 4 bytes; it has 3"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 5,
         " is damaged: its arrays take 4 bytes; it has 5"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":["
         "1],\"data_offsets\":[1,2]}}",
         2, ": array 'a' is there twice"},
        {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, ": metadata 'k' is there twice"},
        {"{\"__metadata__\":{\"k\":1}}", 0, " is damaged: at byte 21 of its header, expected a string"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file(files[i].json, files[i].data);
        refused(files[i].words);
    }
    write_bytes("1234567", 7);
    refused(" is not a safetensors file: it has 7 bytes");
    write_bytes("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    refused(" is not a safetensors file, or truncated: its header would have 18446744073709551615 bytes");
    smelt_safetensors *file;
    assert_int_equal(smelt_safetensors_open("/tmp", &file), SMELT_ERROR_IO);
    assert_string_equal(smelt_error(), "cannot read '/tmp': it is not a regular file");
}

static void good_files_are_read(void **s) {
    (void)s;
    smelt_safetensors *file;
    smelt_safetensors_entry entry;
    write_file("{\"__metadata__\":{\"k\\u00e9\\ud83d\\ude00\":\"v\\n\"}, "
               "\"two\":{\"shape\":[2,4],\"dtype\":\"F4\",\"data_offsets\":[6,10]},"
               "\"odd\":{\"dtype\":\"U16\",\"shape\":[],\"data_offsets\":[4,6]},\"one\":{\"dtype\":\"F8_"
               "E4M3\",\"shape\":[4],\"data_offsets\":[0,4]},"
               "\"empty\":{\"dtype\":\"I64\",\"shape\":[0,7],\"data_offsets\":[4,4]}}    ",
               10);
    succeed(smelt_safetensors_open(path, &file));
    assert_int_equal(smelt_safetensors_count(file), 4);
    assert_string_equal(smelt_safetensors_metadata_key(file, 0), "k\xc3\xa9\xf0\x9f\x98\x80");
    assert_string_equal(smelt_safetensors_metadata_value(file, 0), "v\n");
    assert_null(smelt_safetensors_metadata_key(file, 1));
    succeed(smelt_safetensors_at(file, 0, &entry));
    assert_string_equal(entry.name, "one");
    assert_int_equal(entry.element, SMELT_FP8_E4M3);
    succeed(smelt_safetensors_find(file, "empty", &entry));
    assert_int_equal(smelt_array_size(entry.array), 0);
    succeed(smelt_safetensors_find(file, "odd", &entry));
    assert_int_equal(*(uint16_t *)smelt_array_data(entry.array), 0x504);
    succeed(smelt_safetensors_find(file, "two", &entry));
    assert_int_equal(entry.shape.size[1], 4);
    assert_int_equal(smelt_array_shape(entry.array).size[1], 2);
    smelt_array *kept = smelt_array_retain(entry.array);
    assert_int_equal(smelt_safetensors_find(file, "three", &entry), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), "safetensors find: the file has no array 'three'");
    smelt_safetensors_release(file);
    assert_memory_equal(smelt_array_data(kept), "\6\7\10\11", 4);
    smelt_array_release(kept);
    /* Nothing, of a size that bits could not count. */
    write_file("{\"a\":{\"dtype\":\"F4\",\"shape\":[0,4611686018427387904],\"data_offsets\":[0,0]}}", 0);
    succeed(smelt_safetensors_open(path, &file));
    succeed(smelt_safetensors_at(file, 0, &entry));
    assert_true(entry.shape.size[1] == INT64_C(1) << 62);
    assert_true(smelt_array_shape(entry.array).size[1] == INT64_C(1) << 61);
    smelt_safetensors_release(file);
}

static void what_is_written_is_read(void **s) {
    (void)s;
    smelt_array *wide, *part, *bytes;
    succeed(smelt_array_arange(SMELT_FLOAT32, (smelt_shape){2, {6, 8}}, &wide));
    succeed(smelt_array_view(wide, (smelt_shape){2, {3, 4}}, (int64_t[]){16, 2}, 1, &part));
    succeed(smelt_array_arange(SMELT_UINT8, (smelt_shape){2, {3, 5}}, &bytes));
    const smelt_safetensors_entry entries[] = {{.name = "a \"name\"\n", .array = bytes},
                                               {.name = "weights", .array = part},
                                               {.name = "codes", .array = bytes, .element = SMELT_FP4_E2M1}};
    succeed(smelt_safetensors_write(path, entries, 3, (const char *const[]){"format", "pt", "x", ""}, 2));
    smelt_safetensors *file;
    smelt_safetensors_entry found;
    succeed(smelt_safetensors_open(path, &file));
    assert_int_equal(smelt_safetensors_metadata_count(file), 2);
    assert_string_equal(smelt_safetensors_metadata_value(file, 0), "pt");
    succeed(smelt_safetensors_at(file, 0, &found));
    assert_string_equal(found.name, "weights");
    const float *x = smelt_array_data(found.array);
    for (int i = 0; i < 12; i++) assert_true(x[i] == (float)(1 + i / 4 * 16 + i % 4 * 2));
    succeed(smelt_safetensors_find(file, "codes", &found));
    assert_int_equal(found.element, SMELT_FP4_E2M1);
    assert_int_equal(found.shape.size[1], 10);
    assert_memory_equal(smelt_array_data(found.array), smelt_array_data(bytes), 15);
    succeed(smelt_safetensors_find(file, "a \"name\"\n", &found));
    smelt_safetensors_release(file);
    const smelt_safetensors_entry twice[] = {{.name = "a", .array = bytes}, {.name = "a", .array = bytes}},
                                  unnamed = {.array = bytes},
                                  other = {.name = "a", .array = bytes, .element = SMELT_UINT4};
    char message[256];
    snprintf(message, sizeof message, "file '%s': array 'a' is there twice", path);
    assert_int_equal(smelt_safetensors_write(path, twice, 2, NULL, 0), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), message);
    assert_int_equal(smelt_safetensors_write(path, &unnamed, 1, NULL, 0), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "safetensors write: the name of entry 0 is ''; expected an array's name");
    assert_int_equal(smelt_safetensors_write(path, &other, 1, NULL, 0), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(
        smelt_error(),
        "safetensors write: array 'a' is of uint8 and its element uint4; expected one that the format has");
    smelt_array_release(part), smelt_array_release(wide), smelt_array_release(bytes);
}

static int make_file(void **s) {
    (void)s;
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return fd < 0;
}

static int remove_file(void **s) {
    (void)s;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_files_are_refused),
                                       cmocka_unit_test(good_files_are_read),
                                       cmocka_unit_test(what_is_written_is_read)};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
