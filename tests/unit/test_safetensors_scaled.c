/* Tensors with scales from .safetensors files, by the names that publishers give both: their values, and what
 * is refused. */
#include "unit.h"

#include "smelt/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 6, COLUMNS = 64, MOST = 3 * ROWS * COLUMNS };

static char path[] = "/tmp/smelt-test-scaled-XXXXXX";
static uint8_t codes[MOST], exponents[MOST / 32];
static float factors[MOST];

static void succeed(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s", smelt_error());
}

static void fill(void) {
    uint32_t state = 7;
    for (int i = 0; i < MOST; i++) {
        state = state * 1664525 + 1013904223;
        codes[i] = (uint8_t)(state >> 24);
        if ((codes[i] & 127) == 127) codes[i] = 3; /* NaN */
        factors[i] = (float)(state >> 8 & 255) / 16 + 0.5f;
    }
    for (size_t i = 0; i < sizeof exponents; i++) exponents[i] = (uint8_t)(120 + i % 12);
}

static smelt_safetensors_entry entry(const char *name, int element, smelt_dtype dtype, smelt_shape shape,
                                     void *memory) {
    smelt_safetensors_entry out = {.name = name, .element = element, .shape = shape};
    succeed(smelt_array_from_memory(dtype, shape, NULL, memory, NULL, NULL, &out.array));
    return out;
}

static smelt_status open_scaled(smelt_safetensors_entry data, smelt_safetensors_entry scales,
                                const char *name, smelt_tensor **tensor) {
    smelt_safetensors *file;
    succeed(smelt_safetensors_write(path, (smelt_safetensors_entry[]){data, scales}, scales.array ? 2 : 1,
                                    NULL, 0));
    smelt_array_release(data.array);
    smelt_array_release(scales.array);
    succeed(smelt_safetensors_open(path, &file));
    smelt_status status = smelt_safetensors_tensor(file, name, tensor);
    smelt_safetensors_release(file);
    return status;
}

/* Each value is that of the code `code(i)` times `scale(row, column)`. */
static void expect_values(smelt_tensor *tensor, int element, int64_t rows, int64_t columns, int bits,
                          double (*scale)(int64_t, int64_t)) {
    smelt_tensor_desc desc;
    smelt_array *values;
    succeed(smelt_tensor_describe(tensor, &desc));
    assert_int_equal(desc.element, element);
    assert_int_equal(desc.dimensions[0], columns);
    succeed(smelt_tensor_dequantise(tensor, SMELT_FLOAT32, &values));
    assert_int_equal(smelt_array_size(values), rows * columns);
    const float *numbers = smelt_array_data(values);
    for (int64_t i = 0; i < rows * columns; i++) {
        unsigned code = codes[i * bits / 8] >> i * bits % 8 & ((1u << bits) - 1);
        double expected = smelt_element_decode(element, code) * scale(i / columns, i % columns);
        double got = numbers[i];
        if (!(fabs(got - expected) <= 1e-6 * fabs(expected)))
            FAIL_TEST("value %lld is %g, expected %g", (long long)i, got, expected);
    }
    smelt_array_release(values);
    smelt_tensor_release(tensor);
}

static double by_block(int64_t row, int64_t column) {
    return factors[row / 2 * 2 + column / 32];
}
static double by_row(int64_t row, int64_t column) {
    (void)column;
    return factors[row];
}
static double one(int64_t row, int64_t column) {
    (void)row, (void)column;
    return factors[0];
}
static double by_group(int64_t row, int64_t column) {
    return ldexp(1, exponents[row * (COLUMNS / 32) + column / 32] - 127);
}

static const smelt_shape matrix = {2, {ROWS, COLUMNS}};

static void scales_of_fp8_are_of_blocks_rows_or_all(void **state) {
    (void)state;
    static const struct {
        const char *ending;
        smelt_shape shape;
        double (*scale)(int64_t, int64_t);
    } kinds[] = {{"_scale_inv", {2, {ROWS / 2, 2}}, by_block},
                 {"_scale", {2, {ROWS, 1}}, by_row},
                 {"_scale", {1, {ROWS}}, by_row},
                 {"_scale", {1, {1}}, one},
                 {"_scales", {0}, one}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char name[64];
        smelt_tensor *tensor;
        snprintf(name, sizeof name, "layer.weight%s", kinds[i].ending);
        succeed(open_scaled(entry("layer.weight", SMELT_FP8_E4M3, SMELT_UINT8, matrix, codes),
                            entry(name, 0, SMELT_FLOAT32, kinds[i].shape, factors), "layer.weight", &tensor));
        expect_values(tensor, SMELT_FP8_E4M3, ROWS, COLUMNS, 8, kinds[i].scale);
    }
}

static void groups_of_32_are_found_in_bytes_and_words(void **state) {
    (void)state;
    static const struct {
        const char *data, *scales, *name;
        smelt_dtype dtype;
        smelt_shape shape;
        int element, scales_element;
    } kinds[] = {
        {"w_blocks", "w_scales", "w", SMELT_UINT8, {3, {ROWS, COLUMNS / 32, 16}}, SMELT_FP4_E2M1, 0},
        {"w_blocks", "w_scales", "w_blocks", SMELT_UINT8, {3, {ROWS, COLUMNS / 32, 16}}, SMELT_FP4_E2M1, 0},
        {"w_packed",
         "w_scale",
         "w_packed",
         SMELT_UINT8,
         {2, {ROWS, COLUMNS / 2}},
         SMELT_FP4_E2M1,
         SMELT_UE8M0},
        {"l.weight", "l.scales", "l.weight", SMELT_UINT32, {2, {ROWS, COLUMNS / 8}}, SMELT_FP4_E2M1, 0},
        {"l.weight", "l.scales", "l.weight", SMELT_UINT32, {2, {ROWS, COLUMNS / 4}}, SMELT_FP8_E4M3, 0}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        smelt_tensor *tensor;
        succeed(open_scaled(entry(kinds[i].data, 0, kinds[i].dtype, kinds[i].shape, codes),
                            entry(kinds[i].scales, kinds[i].scales_element, SMELT_UINT8,
                                  (smelt_shape){2, {ROWS, COLUMNS / 32}}, exponents),
                            kinds[i].name, &tensor));
        expect_values(tensor, kinds[i].element, ROWS, COLUMNS, smelt_element_bits(kinds[i].element),
                      by_group);
    }
}

static void refused(smelt_safetensors_entry data, smelt_safetensors_entry scales, const char *name,
                    const char *message) {
    smelt_tensor *tensor;
    assert_int_equal(open_scaled(data, scales, name, &tensor), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(), message);
}

static void what_does_not_belong_together_is_refused(void **state) {
    (void)state;
    smelt_safetensors_entry none = {0};
    refused(entry("w", SMELT_FP8_E4M3, SMELT_UINT8, matrix, codes), none, "w",
            "safetensors tensor 'w': the file has no scales for it; expected an array called 'w_scale_inv', "
            "'w_scale' or 'w_scales'");
    refused(
        entry("w", SMELT_FP8_E4M3, SMELT_UINT8, matrix, codes),
        entry("w_scale", 0, SMELT_FLOAT32, (smelt_shape){2, {4, 1}}, factors), "w",
        "safetensors tensor 'w': dimension 1 has 6 elements and 4 scales in 'w_scale'; expected a multiple");
    refused(
        entry("w", SMELT_FP8_E4M3, SMELT_UINT8, matrix, codes),
        entry("w_scale", 0, SMELT_FLOAT32, (smelt_shape){3, {ROWS, 1, 2}}, factors), "w",
        "safetensors tensor 'w': 'w' of fp8_e4m3 and 'w_scale' of float32 are not elements and their scales; "
        "expected as many dimensions of both");
    refused(entry("w_packed", 0, SMELT_UINT8, (smelt_shape){2, {ROWS, 24}}, codes),
            entry("w_scale", 0, SMELT_UINT8, (smelt_shape){2, {ROWS, 2}}, exponents), "w_packed",
            "safetensors tensor 'w_packed': 'w_packed' of uint8 and 'w_scale' of uint8 are not elements and "
            "their "
            "scales; expected 16 or 32 bytes for each scale");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(scales_of_fp8_are_of_blocks_rows_or_all),
                                       cmocka_unit_test(groups_of_32_are_found_in_bytes_and_words),
                                       cmocka_unit_test(what_does_not_belong_together_is_refused)};
    int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    fill();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
