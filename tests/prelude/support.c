#include "support.h"

#include "../device.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int failures;

void failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (failures++ < 60) {
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
    }
    va_end(arguments);
}

void body_add(struct body *body, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    size_t length = (size_t)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= sizeof line) abort();
    if (body->length + length + 1 > body->capacity) {
        body->capacity = 2 * (body->length + length + 1);
        body->text = realloc(body->text, body->capacity);
        if (!body->text) abort();
    }
    memcpy(body->text + body->length, line, length + 1);
    body->length += length;
}

void body_free(struct body *body) {
    free(body->text);
    *body = (struct body){0};
}

static smelt_kernel *make_kernel(const struct run *run) {
    smelt_kernel_desc desc = {
        .name = "test", .header = run->header, .source = run->body, .outputs = {"out"}, .math = run->math};
    const void *data[3] = {run->x, run->y, run->z};
    static const char *const names[3] = {"x_values", "y_values", "z_values"};
    for (int i = 0, n = 0; i < 3; i++)
        if (data[i]) desc.inputs[n++] = names[i];
    smelt_kernel *kernel = NULL;
    if (smelt_kernel_create(&desc, &kernel) != SMELT_OK) failed("create: %s", smelt_error());
    return kernel;
}

smelt_array *run_body(const struct run *run) {
    smelt_kernel *kernel = make_kernel(run);
    if (!kernel) return NULL;
    int64_t threads = run->threads ? run->threads : run->count;
    smelt_run_desc desc = {.grid = {threads},
                           .threadgroup = {256},
                           .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = run->dtype}},
                           .output_shapes = {{1, {run->outputs}}},
                           .output_dtypes = {run->dtype},
                           .initialise = true,
                           .device = test_device()};
    const void *data[3] = {run->x, run->y, run->z};
    int inputs = 0;
    smelt_array *out = NULL;
    for (int i = 0; i < 3; i++)
        if (data[i] && smelt_array_from_values(run->dtype, (smelt_shape){1, {run->count}}, data[i],
                                               &desc.inputs[inputs++]) != SMELT_OK)
            abort();
    if (smelt_kernel_run(kernel, &desc, &out) != SMELT_OK || test_to_host(&out) != SMELT_OK) {
        failed("run: %s", smelt_error());
        smelt_array_release(out);
        out = NULL;
    }
    while (inputs) smelt_array_release(desc.inputs[--inputs]);
    smelt_kernel_release(kernel);
    return out;
}

const char *compile_error(const char *body) {
    float zero = 0;
    struct run run = {.body = body, .dtype = SMELT_FLOAT32, .x = &zero, .count = 1, .outputs = 1};
    smelt_kernel *kernel = make_kernel(&run);
    smelt_run_desc desc = {.grid = {1},
                           .threadgroup = {1},
                           .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = SMELT_FLOAT32}},
                           .output_shapes = {{1, {1}}},
                           .output_dtypes = {SMELT_FLOAT32},
                           .device = test_device()};
    if (smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){1, {1}}, &zero, &desc.inputs[0]) != SMELT_OK)
        abort();
    smelt_array *out = NULL;
    smelt_status status = smelt_kernel_run(kernel, &desc, &out);
    smelt_array_release(desc.inputs[0]);
    smelt_kernel_release(kernel);
    if (status == SMELT_OK) {
        smelt_array_release(out);
        failed("compiles, but should not: %s", body);
        return "";
    }
    return smelt_error();
}

double number(smelt_dtype dtype, const void *data, int64_t i) {
    if (dtype == SMELT_FLOAT32) return ((const float *)data)[i];
    if (dtype == SMELT_FLOAT16) return (double)((const _Float16 *)data)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

const char *type_name(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 ? "float" : dtype == SMELT_FLOAT16 ? "half" : "bfloat";
}
size_t type_size(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 ? 4 : 2;
}

static int digits(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 ? 24 : dtype == SMELT_FLOAT16 ? 11 : 8;
}
static int smallest_exponent(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 ? -14 : -126;
}
static double overflow(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 ? 65536 : 0x1p128;
}
double largest(smelt_dtype dtype) {
    return overflow(dtype) - overflow(dtype) / (double)(1 << digits(dtype));
}

double ulp_of(smelt_dtype dtype, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent < smallest_exponent(dtype)) exponent = smallest_exponent(dtype);
    bits = (uint64_t)(exponent - digits(dtype) + 1 + 1023) << 52;
    memcpy(&value, &bits, 8);
    return value;
}

double ulp_error(smelt_dtype dtype, double got, double expected) {
    if (isnan(got) || isnan(expected)) return isnan(got) && isnan(expected) ? 0 : INFINITY;
    if (fabs(expected) >= overflow(dtype)) expected = copysign(overflow(dtype), expected);
    if (isinf(got)) got = copysign(overflow(dtype), got);
    if (got == expected) return 0;
    double scale = fabs(expected) >= overflow(dtype) ? largest(dtype) : expected;
    return fabs(got - expected) / ulp_of(dtype, scale);
}

static uint64_t state = 0x9e3779b97f4a7c15;

void random_restart(void) {
    state = 0x9e3779b97f4a7c15;
}
uint64_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
double random_between(double low, double high) {
    return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

void store(smelt_dtype dtype, void *data, int64_t i, double value) {
    if (dtype == SMELT_FLOAT32) {
        ((float *)data)[i] = (float)value;
    } else if (dtype == SMELT_FLOAT16) {
        ((_Float16 *)data)[i] = (_Float16)value;
    } else {
        float single = (float)value;
        uint32_t bits;
        memcpy(&bits, &single, 4);
        ((uint16_t *)data)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}
