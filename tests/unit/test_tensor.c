/* Tensors of the host: Metal's rules, slices of planes against a plain index computation, formats by all
 * their codes, quantisation against its definition. */
#include "outcome.h"

#include "array/format.h"
#include "smelt/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 0x7e50;
static uint32_t random_below(uint32_t bound) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % bound;
}
static double random_normal(void) {
    double u = (random_below(1u << 30) + 0.5) / (1u << 30), v = random_below(1u << 30) / (double)(1u << 30);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* ---- Rules. */

static void rule(smelt_tensor_desc desc, const char *words) {
    smelt_tensor *tensor;
    refused(smelt_tensor_create(&desc, &tensor), SMELT_ERROR_INVALID_ARGUMENT, words);
}
#define RULE(words, ...) rule((smelt_tensor_desc){__VA_ARGS__}, words)

static void rules_are_stated(void **s) {
    (void)s;
    smelt_array *memory;
    smelt_tensor *tensor;
    succeed(smelt_array_create(SMELT_UINT8, (smelt_shape){1, {1000}}, &memory));
    RULE("tensor: dimension 0 of a tensor of fp8_e4m3 is 33; expected a multiple of 32",
         .element = SMELT_FP8_E4M3, .ndim = 2, .dimensions = {33, 2});
    RULE("tensor: ndim is 0; expected 1 to 16", .element = SMELT_FLOAT16);
    RULE("tensor: ndim is 17; expected 1 to 16", .element = SMELT_FLOAT16, .ndim = 17);
    RULE("tensor: dimension 1 is 0; expected at least 1", .element = SMELT_FLOAT16, .ndim = 2,
         .dimensions = {4, 0});
    RULE("tensor: usage is 0x8; expected SMELT_TENSOR_ bits (0x7)", .element = SMELT_FLOAT16, .ndim = 1,
         .dimensions = {4}, .usage = 8);
    RULE("tensor: stride 0 is 2; expected 1", .element = SMELT_FLOAT16, .ndim = 1, .dimensions = {4},
         .strides = {2});
    RULE("tensor: stride 1 is 3 elements; expected at least 4, what the dimensions before it take",
         .element = SMELT_FLOAT16, .ndim = 2, .dimensions = {4, 2}, .strides = {1, 3});
    RULE("tensor: stride 1 is 64 elements of uint4, 32 bytes; expected a multiple of 128 bytes",
         .element = SMELT_UINT4, .ndim = 2, .dimensions = {64, 2}, .strides = {1, 64});
    RULE("tensor: stride 1 is 24 bytes; for machine learning, expected a multiple of 64 bytes",
         .element = SMELT_FLOAT32, .ndim = 2, .dimensions = {6, 2}, .strides = {1, 6},
         .usage = SMELT_TENSOR_MACHINE_LEARNING);
    RULE("tensor: stride 2 is 64; for machine learning, expected 32: packed", .element = SMELT_FLOAT32,
         .ndim = 3, .dimensions = {6, 2, 2}, .strides = {1, 16, 64}, .usage = SMELT_TENSOR_MACHINE_LEARNING);
    RULE("tensor: the offset of data is 64 bytes; for fp8_e5m2, expected a multiple of 128 bytes",
         .element = SMELT_FP8_E5M2, .ndim = 1, .dimensions = {32}, .memory = memory, .offset = 64);
    RULE("tensor: the offset of data is 6 bytes; for float32, expected a multiple of 4 bytes",
         .element = SMELT_FLOAT32, .ndim = 1, .dimensions = {32}, .memory = memory, .offset = 6);
    RULE("tensor: the offset of data is 4 bytes; for machine learning, expected 0", .element = SMELT_FLOAT32,
         .ndim = 1, .dimensions = {32}, .memory = memory, .offset = 4,
         .usage = SMELT_TENSOR_MACHINE_LEARNING);
    RULE("tensor: the memory of data has 999 bytes from its offset on; expected 1000", .element = SMELT_UINT8,
         .ndim = 1, .dimensions = {1000}, .memory = memory, .offset = 1);
    RULE("tensor: dimension 0 is 96; expected a multiple of its block of scales, 64",
         .element = SMELT_FP8_E4M3, .ndim = 2, .dimensions = {96, 2},
         .scales = {.element = SMELT_UE8M0, .block = {64}});
    RULE("tensor: the element of scales is 65 ('uint4'); expected one of at least 8 bits",
         .element = SMELT_FP8_E4M3, .ndim = 2, .dimensions = {96, 2}, .scales = {.element = SMELT_UINT4});
    RULE("smelt_tensor_desc: reserved[3] is 0x1; expected 0: zero-initialise the structure, or use the newer "
         "libsmelt that defines this field",
         .element = SMELT_FLOAT16, .ndim = 1, .dimensions = {4}, .reserved = {[3] = 1});
    refused(smelt_tensor_create(&(smelt_tensor_desc){.element = SMELT_FLOAT16,
                                                     .ndim = 3,
                                                     .dimensions = {INT64_MAX, INT64_MAX, 4}},
                                &tensor),
            SMELT_ERROR_LIMIT, "tensor: dimensions have more bytes than 64 bits count");
    /* The same within the rules. */
    succeed(smelt_tensor_create(
        &(smelt_tensor_desc){
            .element = SMELT_UINT4, .ndim = 2, .dimensions = {64, 2}, .memory = memory, .offset = 128},
        &tensor));
    smelt_tensor_desc found;
    succeed(smelt_tensor_describe(tensor, &found));
    assert_int_equal(found.strides[1], 256);
    assert_int_equal(found.usage, SMELT_TENSOR_COMPUTE);
    assert_string_equal(found.device, "cpu");
    smelt_array *bytes;
    succeed(smelt_tensor_array(tensor, SMELT_PLANE_DATA, &bytes));
    assert_ptr_equal(smelt_array_data(bytes), (char *)smelt_array_data(memory) + 128);
    assert_int_equal(smelt_array_shape(bytes).size[1], 32);
    assert_int_equal(smelt_array_strides(bytes)[0], 128);
    smelt_array_release(bytes);
    refused(smelt_tensor_array(tensor, SMELT_PLANE_SCALES, &bytes), SMELT_ERROR_INVALID_ARGUMENT,
            "tensor array: the tensor has no scales");
    smelt_tensor_release(tensor);
    smelt_array_release(memory);
}

/* ---- Slices. */

/* Writes a random slice of each plane of a random tensor, then compares every element with a list of them. */
static void random_slices(int element) {
    int bits = smelt_element_bits(element), in_byte = element >= SMELT_INT4 ? 8 / bits : 1;
    int ndim = 1 + (int)random_below(3);
    smelt_tensor_desc desc = {
        .element = element, .ndim = ndim, .scales = {.element = SMELT_UE8M0, .block = {32, 1, 2}}};
    for (int d = 0; d < ndim; d++)
        desc.dimensions[d] =
            d == 0 ? 32 * (1 + (int64_t)random_below(6)) : 2 * (1 + (int64_t)random_below(4));
    smelt_tensor *tensor;
    succeed(smelt_tensor_create(&desc, &tensor));
    for (int p = 0; p < 2; p++) {
        int64_t extents[3] = {1, 1, 1},
                width = p                       ? 1
                        : element >= SMELT_INT4 ? 1
                                                : bits / 8,
                per = p ? 1 : in_byte;
        for (int d = 0; d < ndim; d++)
            extents[d] = p ? desc.dimensions[d] / (desc.scales.block[d] ? desc.scales.block[d] : 1)
                           : desc.dimensions[d];
        extents[0] /= per;
        size_t size = (size_t)(extents[0] * extents[1] * extents[2] * width);
        char *all = calloc(size, 1), *found = calloc(size, 1);
        for (int round = 0; round < 8; round++) {
            smelt_tensor_slice slice = {.plane = p ? SMELT_PLANE_SCALES : SMELT_PLANE_DATA};
            int64_t origin[3] = {0, 0, 0}, part[3] = {1, 1, 1};
            for (int d = 0; d < ndim; d++) {
                origin[d] = random_below((uint32_t)extents[d]);
                part[d] = 1 + random_below((uint32_t)(extents[d] - origin[d]));
                slice.origin[d] = origin[d] * (d ? 1 : per);
                slice.size[d] = part[d] * (d ? 1 : per);
            }
            /* Rows on the host with gaps, every second time. */
            int64_t pitch = part[0] + (round & 1 ? 3 : 0);
            if (round & 1)
                slice.strides[0] = 1, slice.strides[1] = pitch * per,
                slice.strides[2] = pitch * part[1] * per;
            size_t room = (size_t)(pitch * part[1] * part[2] * width);
            char *host = malloc(room), *again = malloc(room);
            for (size_t i = 0; i < room; i++) host[i] = (char)random_below(256), again[i] = 0x55;
            succeed(smelt_tensor_write_slice(tensor, &slice, host, room));
            succeed(smelt_tensor_read_slice(tensor, &slice, again, room));
            for (int64_t z = 0; z < part[2]; z++)
                for (int64_t y = 0; y < part[1]; y++) {
                    int64_t at = ((origin[2] + z) * extents[1] + origin[1] + y) * extents[0] + origin[0],
                            from = (z * part[1] + y) * pitch;
                    memcpy(all + at * width, host + from * width, (size_t)(part[0] * width));
                    assert_memory_equal(again + from * width, host + from * width, (size_t)(part[0] * width));
                    for (int64_t x = part[0] * width; x < pitch * width; x++)
                        assert_int_equal(again[from * width + x], 0x55);
                }
            free(host), free(again);
        }
        smelt_tensor_slice whole = {.plane = p ? SMELT_PLANE_SCALES : SMELT_PLANE_DATA};
        for (int d = 0; d < ndim; d++) whole.size[d] = extents[d] * (d ? 1 : per);
        succeed(smelt_tensor_read_slice(tensor, &whole, found, size));
        assert_memory_equal(found, all, size);
        free(all), free(found);
    }
    smelt_tensor_release(tensor);
}

static void slices_are_copied(void **s) {
    (void)s;
    static const int elements[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_INT64,   SMELT_FP8_E4M3,
                                   SMELT_UINT4,   SMELT_INT2,    SMELT_FP4_E2M1};
    for (int round = 0; round < 20; round++)
        for (size_t e = 0; e < sizeof elements / sizeof *elements; e++) random_slices(elements[e]);
}

static void slices_outside_are_refused(void **s) {
    (void)s;
    smelt_tensor *tensor;
    char bytes[64];
    succeed(smelt_tensor_create(
        &(smelt_tensor_desc){.element = SMELT_UINT4, .ndim = 2, .dimensions = {32, 4}}, &tensor));
    refused(
        smelt_tensor_read_slice(tensor, &(smelt_tensor_slice){.origin = {0, 3}, .size = {32, 2}}, bytes, 64),
        SMELT_ERROR_INVALID_ARGUMENT,
        "tensor slice: dimension 1 begins at 3 and has 2 elements; expected a part of the plane's 4");
    refused(
        smelt_tensor_read_slice(tensor, &(smelt_tensor_slice){.origin = {1, 0}, .size = {2, 2}}, bytes, 64),
        SMELT_ERROR_INVALID_ARGUMENT,
        "tensor slice: the origin of dimension 0 is 1; for uint4, expected a multiple of 2, whole bytes");
    refused(smelt_tensor_read_slice(tensor, &(smelt_tensor_slice){.size = {32, 4}}, bytes, 63),
            SMELT_ERROR_INVALID_ARGUMENT, "tensor read: there is room for 63 bytes; expected 64");
    refused(smelt_tensor_write_slice(
                tensor, &(smelt_tensor_slice){.plane = SMELT_PLANE_BIASES, .size = {32, 4}}, bytes, 64),
            SMELT_ERROR_INVALID_ARGUMENT, "tensor write: the tensor has no biases");
    succeed(smelt_tensor_read_slice(tensor, NULL, bytes, 64));
    smelt_tensor_release(tensor);
}

/* ---- Formats. */

/* Every code, by definition: independent of format.c. */
static double by_definition(int element, unsigned code) {
    static const double fp4[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    switch (element) {
    case SMELT_INT4:
        return code < 8 ? code : (double)code - 16;
    case SMELT_INT2:
        return code < 2 ? code : (double)code - 4;
    case SMELT_UINT4:
    case SMELT_UINT2:
        return code;
    case SMELT_FP4_E2M1:
        return code & 8 ? -fp4[code & 7] : fp4[code & 7];
    case SMELT_UE8M0:
        return code == 255 ? NAN : pow(2, (double)code - 127);
    default:
        break;
    }
    int mantissa = element == SMELT_FP8_E4M3 ? 3 : 2, bias = element == SMELT_FP8_E4M3 ? 7 : 15;
    unsigned magnitude = code & 127, exponent = magnitude >> mantissa,
             fraction = magnitude & ((1u << mantissa) - 1);
    double sign = code & 128 ? -1 : 1, unit = 1 << mantissa;
    if (element == SMELT_FP8_E4M3 && magnitude == 127) return NAN;
    if (element == SMELT_FP8_E5M2 && magnitude > 124) return NAN;
    if (element == SMELT_FP8_E5M2 && magnitude == 124) return sign * INFINITY;
    return exponent ? sign * (1 + fraction / unit) * pow(2, (double)exponent - bias)
                    : sign * fraction / unit * pow(2, 1 - bias);
}

static bool same(double a, double b) {
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* The nearest value by trying all; of two, the one with an even code. */
static double nearest(int element, double value) {
    double best = NAN;
    unsigned best_code = 0;
    for (unsigned code = 0; code < 1u << smelt_element_bits(element); code++) {
        double candidate = by_definition(element, code);
        if (!isfinite(candidate) || (value != 0 && candidate != 0 && signbit(candidate) != signbit(value)))
            continue;
        double closer = fabs(candidate - value), before = fabs(best - value);
        if (isnan(best) || closer < before || (closer == before && !(code & 1) && (best_code & 1)))
            best = candidate, best_code = code;
    }
    return best;
}

static void formats_are_exact(void **s) {
    (void)s;
    for (int element = SMELT_INT4; element <= SMELT_UE8M0; element++) {
        bool integer = element <= SMELT_UINT2;
        for (unsigned code = 0; code < 1u << smelt_element_bits(element); code++) {
            double value = by_definition(element, code);
            if (!same(smelt_element_decode(element, code), value))
                FAIL_TEST("%s %u is %g", smelt_element_name(element), code,
                          smelt_element_decode(element, code));
            if (element != SMELT_UE8M0 && isfinite(value) && smelt_element_encode(element, value) != code)
                FAIL_TEST("%s: %g becomes code %u, not %u", smelt_element_name(element), value,
                          smelt_element_encode(element, value), code);
        }
        for (int i = 0; i < 4000 && element != SMELT_UE8M0; i++) {
            double value =
                i < 200 ? (i - 100) / 16.0 : random_normal() * pow(2, (double)random_below(40) - 24);
            double found = smelt_element_decode(element, smelt_element_encode(element, value)),
                   wanted = nearest(element, value);
            if (found != wanted && !(integer && fabs(value) == 0.5))
                FAIL_TEST("%s: %.17g becomes %g, expected %g", smelt_element_name(element), value, found,
                          wanted);
        }
    }
    assert_true(isnan(smelt_element_decode(SMELT_FP8_E4M3, smelt_element_encode(SMELT_FP8_E4M3, NAN))));
    assert_true(isnan(smelt_element_decode(SMELT_FP8_E5M2, smelt_element_encode(SMELT_FP8_E5M2, NAN))));
    assert_true(smelt_element_decode(SMELT_FP8_E4M3, smelt_element_encode(SMELT_FP8_E4M3, -INFINITY)) ==
                -448);
    assert_true(smelt_element_decode(SMELT_FP4_E2M1, smelt_element_encode(SMELT_FP4_E2M1, 1e300)) == 6);
    int element;
    refused(smelt_element_from_name("fp8", &element), SMELT_ERROR_INVALID_ARGUMENT,
            "element type 'fp8' is unknown; expected one of bool, uint8, uint16, uint32, uint64, int8, "
            "int16, int32, int64, "
            "float16, bfloat16, float32, complex64, float64, int4, uint4, int2, uint2, fp4_e2m1, fp8_e4m3, "
            "fp8_e5m2, ue8m0");
}

/* ---- Quantisation. */

static smelt_array *normals(int64_t rows, int64_t columns, double scale) {
    smelt_array *array;
    succeed(smelt_array_create(SMELT_FLOAT32, (smelt_shape){2, {rows, columns}}, &array));
    float *x = smelt_array_data(array);
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = (float)(random_normal() * scale * pow(2, (double)(i / 64 % 7) - 3));
    return array;
}

/* The scale of microscaling formats, and each value the nearest multiple that a code holds. */
static void microscaling_follows_its_definition(void **s) {
    (void)s;
    static const struct {
        int element, exponent;
    } formats[] = {{SMELT_FP8_E4M3, 8}, {SMELT_FP8_E5M2, 15}, {SMELT_FP4_E2M1, 2}};
    for (size_t f = 0; f < 3; f++) {
        smelt_array *x = normals(5, 96, 3), *back;
        float *values = smelt_array_data(x);
        for (int i = 0; i < 32; i++) values[i] = 0;
        values[40] = -0.0f, values[41] = 1e-30f;
        smelt_tensor *tensor;
        smelt_quantise_error error;
        succeed(
            smelt_tensor_quantise(x, &(smelt_quantise_desc){.element = formats[f].element}, &tensor, &error));
        succeed(smelt_tensor_dequantise(tensor, SMELT_FLOAT64, &back));
        const double *found = smelt_array_data(back);
        uint8_t scales[15];
        succeed(smelt_tensor_read_slice(
            tensor, &(smelt_tensor_slice){.plane = SMELT_PLANE_SCALES, .size = {3, 5}}, scales, 15));
        double sum = 0, squares = 0, signal = 0, largest = 0;
        for (int g = 0; g < 15; g++) {
            double most = 0;
            for (int i = 0; i < 32; i++) most = fmax(most, fabs((double)values[32 * g + i]));
            double scale = most > 0 ? pow(2, floor(log2(most)) - formats[f].exponent) : pow(2, -127);
            assert_true(by_definition(SMELT_UE8M0, scales[g]) == scale);
            for (int i = 32 * g; i < 32 * g + 32; i++) {
                double wanted = nearest(formats[f].element, values[i] / scale) * scale,
                       miss = fabs(wanted - (double)values[i]);
                if (found[i] != wanted)
                    FAIL_TEST("%s %d: %.9g becomes %.9g, expected %.9g",
                              smelt_element_name(formats[f].element), i, (double)values[i], found[i], wanted);
                sum += miss, squares += miss * miss, signal += (double)values[i] * values[i];
                largest = fmax(largest, miss);
            }
        }
        assert_int_equal(error.count, 480);
        assert_int_equal(error.not_finite, 0);
        assert_true(error.largest == largest && fabs(error.mean - sum / 480) < 1e-12 * sum);
        assert_true(fabs(error.root_mean_square - sqrt(squares / 480)) < 1e-12 * sqrt(squares));
        assert_true(fabs(error.signal_to_noise - 10 * log10(signal / squares)) < 1e-9);
        assert_true(error.flushed >= 1);
        smelt_tensor_release(tensor), smelt_array_release(x), smelt_array_release(back);
    }
}

/* Errors of at most half a step, and exact edges. */
static void integers_are_within_half_a_step(void **s) {
    (void)s;
    static const int elements[] = {SMELT_UINT2, SMELT_UINT4, SMELT_UINT8, SMELT_INT2, SMELT_INT4, SMELT_INT8};
    for (size_t e = 0; e < 6; e++)
        for (int group = 32; group <= 128; group *= 2) {
            bool affine = e < 3;
            int bits = smelt_element_bits(elements[e]);
            smelt_array *x = normals(3, 256, 1), *back;
            const float *values = smelt_array_data(x);
            smelt_tensor *tensor;
            smelt_quantise_error error;
            succeed(smelt_tensor_quantise(x, &(smelt_quantise_desc){.element = elements[e], .group = group},
                                          &tensor, &error));
            succeed(smelt_tensor_dequantise(tensor, SMELT_FLOAT64, &back));
            const double *found = smelt_array_data(back);
            for (int64_t g = 0; g < 768 / group; g++) {
                double low = INFINITY, high = -INFINITY, worst = 0;
                for (int64_t i = g * group; i < (g + 1) * group; i++)
                    low = fmin(low, values[i]), high = fmax(high, values[i]);
                double most = fmax(fabs(low), fabs(high));
                double step = affine ? (high - low) / ((1 << bits) - 1) : most / ((1 << (bits - 1)) - 1);
                for (int64_t i = g * group; i < (g + 1) * group; i++)
                    worst = fmax(worst, fabs(found[i] - values[i]));
                /* Affine steps are stretched so that 0 is one of them, which cuts off less than a step at the
                 * other edge. */
                if (worst > step * (affine ? 1.5 : 0.5) * 1.001)
                    FAIL_TEST("%s, group %d: error %g, step %g", smelt_element_name(elements[e]), group,
                              worst, step);
                for (int64_t i = g * group; i < (g + 1) * group; i++)
                    if (fabs((double)values[i]) == most && fabs(found[i] - values[i]) > 1e-6 * most)
                        FAIL_TEST("the edge %g became %g", (double)values[i], found[i]);
            }
            assert_true(error.signal_to_noise > 6.0 * bits - 10);
            smelt_tensor_release(tensor), smelt_array_release(x), smelt_array_release(back);
        }
}

static void quantisation_refuses(void **s) {
    (void)s;
    smelt_array *x = normals(2, 96, 1), *back;
    smelt_tensor *tensor;
    float *values = smelt_array_data(x);
    refused(smelt_tensor_quantise(x, &(smelt_quantise_desc){.element = SMELT_UINT4}, &tensor, NULL),
            SMELT_ERROR_INVALID_ARGUMENT,
            "quantise: the last dimension is 96; expected a multiple of the group, 64");
    refused(smelt_tensor_quantise(x, &(smelt_quantise_desc){.element = SMELT_FLOAT16}, &tensor, NULL),
            SMELT_ERROR_INVALID_ARGUMENT,
            "quantise: element is 10 ('float16'); expected fp8_e4m3, fp8_e5m2, fp4_e2m1, int2, int4, int8, "
            "uint2, uint4 or uint8");
    refused(smelt_tensor_quantise(
                x, &(smelt_quantise_desc){.element = SMELT_FP4_E2M1, .scales = SMELT_FLOAT16}, &tensor, NULL),
            SMELT_ERROR_INVALID_ARGUMENT,
            "quantise: scales is float16; expected none: those of microscaling formats are ue8m0");
    values[5] = NAN, values[6] = INFINITY, values[7] = -INFINITY;
    smelt_quantise_error error;
    succeed(smelt_tensor_quantise(x, &(smelt_quantise_desc){.element = SMELT_FP8_E4M3}, &tensor, &error));
    assert_int_equal(error.not_finite, 3);
    assert_int_equal(error.count, 189);
    succeed(smelt_tensor_dequantise(tensor, SMELT_NO_DTYPE, &back));
    const float *found = smelt_array_data(back);
    assert_true(isnan(found[5]) && found[6] > 0 && found[7] == -found[6]);
    smelt_array_release(back), smelt_tensor_release(tensor), smelt_array_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules_are_stated),
                                       cmocka_unit_test(slices_are_copied),
                                       cmocka_unit_test(slices_outside_are_refused),
                                       cmocka_unit_test(formats_are_exact),
                                       cmocka_unit_test(microscaling_follows_its_definition),
                                       cmocka_unit_test(integers_are_within_half_a_step),
                                       cmocka_unit_test(quantisation_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
