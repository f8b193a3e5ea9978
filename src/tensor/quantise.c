/* Arrays as tensors with scales, and back. Groups lie along dimension 0; everything is computed in float64 on
 * the host, except that affine groups round as MLX's do, in float32. */
#include "array/dtype.h"
#include "array/format.h"
#include "tensor/tensor.h"
#include "base/reserved.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Methods: each chooses a group's scale and bias, and a value's code. */

struct group {
    double scale, bias;
};

struct method {
    int element;
    bool affine;
    int scales, bits;
    int64_t group;
    double low, high; /* of the data's values */
};

static bool is_float_format(int element) {
    return element == SMELT_FP8_E4M3 || element == SMELT_FP8_E5M2 || element == SMELT_FP4_E2M1;
}

/* The exponent of the largest value. */
static int largest_exponent(int element) {
    return element == SMELT_FP8_E4M3 ? 8 : element == SMELT_FP8_E5M2 ? 15 : 2;
}

static double largest_of(int element) {
    return element == SMELT_FP8_E4M3 ? 448 : element == SMELT_FP8_E5M2 ? 57344 : 6;
}

static smelt_status choose_method(const smelt_quantise_desc *desc, struct method *method) {
    int element = desc->element, bits = smelt_element_bits(element);
    bool real = is_float_format(element),
         is_unsigned = element == SMELT_UINT2 || element == SMELT_UINT4 || element == SMELT_UINT8,
         is_signed = element == SMELT_INT2 || element == SMELT_INT4 || element == SMELT_INT8;
    if (!real && !is_unsigned && !is_signed)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "quantise: element is %d ('%s'); expected fp8_e4m3, fp8_e5m2, fp4_e2m1, int2, int4, int8, uint2, "
            "uint4 or uint8",
            element, smelt_element_name(element));
    smelt_dtype scales = desc->scales ? desc->scales : SMELT_FLOAT32;
    if (real ? desc->scales != SMELT_NO_DTYPE : !dtype_is_float(scales) || scales == SMELT_FLOAT64)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantise: scales is %s; expected %s",
                    smelt_dtype_name(scales),
                    real ? "none: those of microscaling formats are ue8m0" : "float16, bfloat16 or float32");
    *method = (struct method){.element = element,
                              .affine = is_unsigned,
                              .scales = real ? (int)SMELT_UE8M0 : (int)scales,
                              .bits = bits,
                              .group = desc->group ? desc->group
                                       : real      ? 32
                                                   : 64,
                              .low = is_signed ? -(double)((1 << (bits - 1)) - 1) : 0,
                              .high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1};
    if (real) method->high = largest_of(element), method->low = -method->high;
    return SMELT_OK;
}

/* The largest finite value of the scales' dtype. */
static double largest_scale(const struct method *method) {
    return method->scales == SMELT_FLOAT16 ? 65504 : method->scales == SMELT_BFLOAT16 ? 0x1.fep127 : FLT_MAX;
}

/* Rounded to the scales' dtype, as it is stored: scales and biases saturate, too. */
static double stored(const struct method *method, double value) {
    double most = largest_scale(method);
    if (fabs(value) > most) return copysign(most, value);
    union {
        uint64_t word;
        char bytes[8];
    } place = {0};
    element_store((smelt_dtype)method->scales, place.bytes, element_of_real(value));
    double rounded = element_as_real(element_load((smelt_dtype)method->scales, place.bytes));
    return isfinite(rounded) ? rounded : copysign(most, value);
}

static struct group microscaled(const struct method *method, const double *values) {
    double largest = 0;
    int exponent;
    for (int64_t i = 0; i < method->group; i++)
        if (isfinite(values[i])) largest = fmax(largest, fabs(values[i]));
    (void)frexp(largest, &exponent);
    exponent = largest > 0 ? exponent - 1 - largest_exponent(method->element) : -127;
    return (struct group){ldexp(1, exponent < -127 ? -127 : exponent > 127 ? 127 : exponent), 0};
}

static struct group symmetric(const struct method *method, const double *values) {
    double largest = 0;
    for (int64_t i = 0; i < method->group; i++)
        if (isfinite(values[i])) largest = fmax(largest, fabs(values[i]));
    return (struct group){stored(method, largest / method->high), 0};
}

/* As a float: what is larger in float64 saturates. */
static float as_float(double value) {
    return value > FLT_MAX ? FLT_MAX : value < -FLT_MAX ? -FLT_MAX : (float)value;
}

/* The edge farther from 0 becomes the bias; the scale is such that 0 is a whole number of steps from it. */
static struct group affine(const struct method *method, const double *values) {
    float low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < method->group; i++)
        if (isfinite(values[i]))
            low = fminf(low, as_float(values[i])), high = fmaxf(high, as_float(values[i]));
    if (low > high) return (struct group){1, 0};
    float levels = (float)method->high, range = high - low;
    float scale = fmaxf(isfinite(range) ? range / levels : high / levels - low / levels, 1e-7f);
    bool from_low = fabsf(low) > fabsf(high);
    float edge = from_low ? low : high;
    if (!from_low) scale = -scale;
    float steps = rintf(edge / scale);
    if (steps != 0) scale = edge / steps;
    return (struct group){stored(method, scale), steps != 0 ? stored(method, edge) : 0};
}

static struct group group_of(const struct method *method, const double *values) {
    return is_float_format(method->element) ? microscaled(method, values)
           : method->affine                 ? affine(method, values)
                                            : symmetric(method, values);
}

/* ---- Elements. */

static unsigned code_of(const struct method *method, double value) {
    if (element_is_packed(method->element)) {
        /* -8 and -2 have no counterpart of the other sign. */
        double held = value < method->low ? method->low : value > method->high ? method->high : value;
        return smelt_element_encode(method->element,
                                    isnan(value) || is_float_format(method->element) ? value : held);
    }
    double whole = isnan(value) ? 0 : nearbyint(value);
    whole = whole < method->low ? method->low : whole > method->high ? method->high : whole;
    return (unsigned)(int)whole & 255;
}

/* Of 8-bit integers, and of formats. */
static double value_of(int element, unsigned code) {
    if (element == SMELT_INT8) return (int8_t)(uint8_t)code;
    return element == SMELT_UINT8 ? code : smelt_element_decode(element, code);
}

/* ---- Statistics. */

struct statistics {
    smelt_quantise_error error;
    double sum, squares, signal;
};

static void compare(struct statistics *s, const struct method *method, struct group group, int64_t at,
                    double value, unsigned code) {
    if (!isfinite(value)) {
        s->error.not_finite++;
        return;
    }
    double found = value_of(method->element, code) * group.scale + group.bias, error = fabs(found - value);
    double units = group.scale != 0 ? (value - group.bias) / group.scale : 0;
    s->error.count++;
    s->error.flushed += value != 0 && found == 0;
    /* Half a step beyond the end is rounding. */
    double step = is_float_format(method->element) ? method->high / 16 : 0.5;
    s->error.saturated += units > method->high + step || units < method->low - step;
    if (error > s->error.largest) s->error.largest = error, s->error.at = at;
    s->sum += error;
    s->squares += error * error;
    s->signal += value * value;
}

static void finish(struct statistics *s, smelt_quantise_error *error) {
    double count = s->error.count ? (double)s->error.count : 1;
    *error = s->error;
    error->mean = s->sum / count;
    error->root_mean_square = sqrt(s->squares / count);
    error->signal_to_noise = s->squares > 0 ? 10 * log10(s->signal / s->squares) : INFINITY;
}

/* ---- Quantisation. */

static smelt_status check_array(const smelt_array *array, const struct method *method) {
    if (!dtype_is_float(array->dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantise: the array is of %s; expected floats",
                    smelt_dtype_name(array->dtype));
    int last = array->shape.ndim - 1;
    if (last < 0 || !array->size)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "quantise: the array has shape %s; expected elements in at least "
                    "one dimension",
                    shape_print(&array->shape).text);
    if (method->group < 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantise: group is %lld; expected at least 1, or 0",
                    (long long)method->group);
    if (array->shape.size[last] % method->group)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "quantise: the last dimension is %lld; expected a multiple of the group, %lld",
                    (long long)array->shape.size[last], (long long)method->group);
    return SMELT_OK;
}

static smelt_status create(const smelt_array *array, const struct method *method, smelt_tensor **tensor) {
    smelt_tensor_desc desc = {.element = method->element,
                              .ndim = array->shape.ndim,
                              .scales = {.element = method->scales, .block = {method->group}}};
    if (method->affine) desc.biases = desc.scales;
    for (int d = 0; d < desc.ndim; d++) desc.dimensions[d] = array->shape.size[desc.ndim - 1 - d];
    return smelt_tensor_create(&desc, tensor);
}

/* Rows of the last dimension: where each begins in a plane, in its units. */
static int64_t row_offset(const smelt_array *array, int64_t row) {
    int64_t offset = 0;
    for (int d = array->shape.ndim - 2; d >= 0; d--) {
        offset += row % array->shape.size[d] * array->strides[d];
        row /= array->shape.size[d];
    }
    return offset;
}

static char *row_of(const smelt_array *array, int64_t row) {
    return array->data + row_offset(array, row) * (int64_t)smelt_dtype_bytes(array->dtype);
}

static void store_scale(const smelt_tensor *tensor, enum smelt_tensor_plane which, int64_t row, int64_t index,
                        double value) {
    const struct tensor_plane *plane = &tensor->planes[which];
    int exponent;
    if (!plane->element) return;
    char *at = row_of(plane->array, row) + index * (smelt_element_bits(plane->element) / 8);
    if (plane->element == SMELT_UE8M0) {
        (void)frexp(value, &exponent);
        *(uint8_t *)at = (uint8_t)(exponent - 1 + 127);
    } else {
        element_store((smelt_dtype)plane->element, at, element_of_real(value));
    }
}

static void quantise_row(const struct method *method, const smelt_tensor *tensor, int64_t row, int64_t length,
                         const double *values, struct statistics *statistics) {
    char *data = row_of(tensor->planes[SMELT_PLANE_DATA].array, row);
    for (int64_t g = 0; g < length / method->group; g++) {
        const double *from = values + g * method->group;
        struct group group = group_of(method, from);
        store_scale(tensor, SMELT_PLANE_SCALES, row, g, group.scale);
        store_scale(tensor, SMELT_PLANE_BIASES, row, g, group.bias);
        for (int64_t i = 0; i < method->group; i++) {
            double units = group.scale != 0 ? (from[i] - group.bias) / group.scale
                           : isnan(from[i]) ? from[i]
                                            : 0;
            unsigned code = code_of(method, units);
            packed_store(data, method->bits, g * method->group + i, code);
            compare(statistics, method, group, row * length + g * method->group + i, from[i], code);
        }
    }
}

smelt_status smelt_tensor_quantise(const smelt_array *array, const smelt_quantise_desc *desc,
                                   smelt_tensor **tensor, smelt_quantise_error *error) {
    struct method method;
    struct statistics statistics = {.sum = 0};
    smelt_array *values;
    if (!array || !desc || !tensor)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantise: %s is NULL",
                    !array  ? "array"
                    : !desc ? "desc"
                            : "tensor");
    TRY(reserved_check(smelt_quantise_desc, desc));
    TRY(choose_method(desc, &method));
    TRY(check_array(array, &method));
    TRY(smelt_array_convert(array, SMELT_FLOAT64, &values));
    smelt_array *host = values;
    smelt_status status = smelt_array_to(values, "cpu", NULL, &host);
    smelt_array_release(values);
    if (status != SMELT_OK) return status;
    status = create(array, &method, tensor);
    int64_t length = array->shape.size[array->shape.ndim - 1], rows = array->size / length;
    const double *numbers = smelt_array_data(host);
    for (int64_t row = 0; row < rows && status == SMELT_OK; row++)
        quantise_row(&method, *tensor, row, length, numbers + row * length, &statistics);
    if (status == SMELT_OK && error) finish(&statistics, error);
    smelt_array_release(host);
    return status;
}

/* ---- And back. */

static double plane_value(const smelt_array *array, int element, int64_t row, int64_t index) {
    const char *at = row_of(array, row);
    if (element_is_packed(element) || element == SMELT_INT8 || element == SMELT_UINT8)
        return value_of(element, packed_load(at, smelt_element_bits(element), index));
    at += index * (smelt_element_bits(element) / 8);
    return element_as_real(element_load((smelt_dtype)element, at));
}

/* The planes on the host. */
struct planes {
    smelt_array *arrays[SMELT_PLANE_COUNT];
};

static smelt_status open_planes(const smelt_tensor *tensor, struct planes *planes) {
    *planes = (struct planes){{NULL}};
    for (int p = 0; p < SMELT_PLANE_COUNT; p++)
        if (tensor->planes[p].element)
            TRY(smelt_array_to(tensor->planes[p].array, "cpu", NULL, &planes->arrays[p]));
    return SMELT_OK;
}

/* The row and index in a plane of blocks for a row and index in the data. */
static double block_value(const smelt_tensor *tensor, const struct planes *planes, int which, int64_t row,
                          int64_t index) {
    const struct tensor_plane *plane = &tensor->planes[which], *data = &tensor->planes[SMELT_PLANE_DATA];
    int64_t block_row = 0, weight = 1;
    for (int d = 1; d < tensor->ndim; d++) {
        block_row += row % data->extents[d] / plane->block[d] * weight;
        row /= data->extents[d];
        weight *= plane->extents[d];
    }
    return plane_value(planes->arrays[which], plane->element, block_row, index / plane->block[0]);
}

static void dequantise_row(const smelt_tensor *tensor, const struct planes *planes, int64_t row,
                           double *values) {
    const struct tensor_plane *data = &tensor->planes[SMELT_PLANE_DATA],
                              *scales = &tensor->planes[SMELT_PLANE_SCALES],
                              *biases = &tensor->planes[SMELT_PLANE_BIASES];
    double scale = 1, bias = 0;
    for (int64_t i = 0; i < data->extents[0]; i++) {
        if (scales->element && i % scales->block[0] == 0)
            scale = block_value(tensor, planes, SMELT_PLANE_SCALES, row, i);
        if (biases->element && i % biases->block[0] == 0)
            bias = block_value(tensor, planes, SMELT_PLANE_BIASES, row, i);
        values[i] = plane_value(planes->arrays[SMELT_PLANE_DATA], data->element, row, i) * scale + bias;
    }
}

static smelt_status dequantise(const smelt_tensor *tensor, const struct planes *planes, smelt_array **reals) {
    smelt_shape shape = {.ndim = tensor->ndim};
    for (int d = 0; d < tensor->ndim; d++)
        shape.size[tensor->ndim - 1 - d] = tensor->planes[SMELT_PLANE_DATA].extents[d];
    TRY(smelt_array_create(SMELT_FLOAT64, shape, reals));
    int64_t length = shape.size[tensor->ndim - 1];
    double *numbers = smelt_array_data(*reals);
    for (int64_t row = 0; row < (*reals)->size / length; row++)
        dequantise_row(tensor, planes, row, numbers + row * length);
    return SMELT_OK;
}

smelt_status smelt_tensor_dequantise(const smelt_tensor *tensor, smelt_dtype dtype, smelt_array **array) {
    struct planes planes;
    smelt_array *reals = NULL;
    if (!tensor || !array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "dequantise: %s is NULL", tensor ? "array" : "tensor");
    if (!dtype) dtype = SMELT_FLOAT32;
    if (!dtype_is_float(dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "dequantise: dtype is %s; expected a float",
                    smelt_dtype_name(dtype));
    smelt_status status = open_planes(tensor, &planes);
    if (status == SMELT_OK) status = dequantise(tensor, &planes, &reals);
    if (status == SMELT_OK) status = smelt_array_convert(reals, dtype, array);
    smelt_array_release(reals);
    for (int p = 0; p < SMELT_PLANE_COUNT; p++) smelt_array_release(planes.arrays[p]);
    return status;
}
