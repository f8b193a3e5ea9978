#include "packing.h"

#include "job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields from the lowest bit on; in sRGB all except the fourth. */
static const struct format {
    const char *name, *pack, *unpack; /* between pack_T_to_ and the end, and between unpack_ and _to_T */
    int components, bits[4];
    bool is_signed, srgb;
} formats[] = {
    {"unorm4x8", "unorm4x8", "unorm4x8", 4, {8, 8, 8, 8}, false, false},
    {"snorm4x8", "snorm4x8", "snorm4x8", 4, {8, 8, 8, 8}, true, false},
    {"srgb_unorm4x8", "srgb_unorm4x8", "unorm4x8_srgb", 4, {8, 8, 8, 8}, false, true},
    {"unorm2x16", "unorm2x16", "unorm2x16", 2, {16, 16}, false, false},
    {"snorm2x16", "snorm2x16", "snorm2x16", 2, {16, 16}, true, false},
    {"unorm10a2", "unorm10a2", "unorm10a2", 4, {10, 10, 10, 2}, false, false},
    {"snorm10a2", "snorm10a2", "snorm10a2", 4, {10, 10, 10, 2}, true, false},
    {"unorm565", "unorm565", "unorm565", 3, {5, 6, 5}, false, false},
};
#define FORMATS (int)(sizeof formats / sizeof formats[0])
const char *const packing_rows[] = {"unorm4x8",  "snorm4x8",  "srgb_unorm4x8", "unorm2x16", "snorm2x16",
                                    "unorm10a2", "snorm10a2", "unorm565",      NULL};
static const smelt_dtype dtypes[2] = {SMELT_FLOAT32, SMELT_FLOAT16};

/* ---- References. */
static double to_srgb(double x) { /* IEC 61966-2-1 */
    return x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055;
}
static double from_srgb(double x) {
    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}
static double steps(const struct format *format, int c) { /* their number from 0 to 1 */
    return (double)((1 << (format->bits[c] - (format->is_signed ? 1 : 0))) - 1);
}
static double limited(const struct format *format, double x) {
    return isnan(x) ? 0 : fmax(format->is_signed ? -1 : 0, fmin(1, x));
}
/* The field of a packed number; a signed one is extended. */
static int64_t field(const struct format *format, uint32_t packed, int c) {
    int low = 0;
    for (int k = 0; k < c; k++) low += format->bits[k];
    uint32_t bits = packed << (32 - low - format->bits[c]);
    int high = 32 - format->bits[c];
    return format->is_signed ? (int64_t)((int32_t)bits >> high) : (int64_t)(bits >> high);
}

struct errors {
    double pack[FORMATS], unpack[FORMATS]; /* in steps; in ULP */
};

/* The largest distance of a packed field from the number, in steps: one half at best. */
static void check_packed(int f, smelt_dtype dtype, const void *numbers, const uint32_t *packed, int64_t count,
                         const char *device, struct errors *errors) {
    const struct format *format = &formats[f];
    double bar = format->srgb ? 0.6 : 0.505; /* the product with the number of steps is rounded to float */
    for (int64_t i = 0, reported = 0; i < count; i++)
        for (int c = 0; c < format->components; c++) {
            double x = number(dtype, numbers, i * format->components + c), y = limited(format, x);
            if (format->srgb && c < 3) y = to_srgb(y);
            double error = fabs((double)field(format, packed[i], c) - y * steps(format, c));
            errors->pack[f] = fmax(errors->pack[f], error);
            if (!(error <= bar) && reported++ == 0)
                failed("pack_%s_to_%s on %s: component %d, %a, becomes %lld, %g steps off", type_name(dtype),
                       format->pack, device, c, x, (long long)field(format, packed[i], c), error);
        }
}
static void check_unpacked(int f, smelt_dtype dtype, const uint32_t *packed, const void *numbers,
                           int64_t count, const char *device, struct errors *errors) {
    const struct format *format = &formats[f];
    double bar = dtype == SMELT_FLOAT16 ? 0.51 : format->srgb ? 4 : 0.5;
    for (int64_t i = 0, reported = 0; i < count; i++)
        for (int c = 0; c < format->components; c++) {
            double expected = fmax(-1, (double)field(format, packed[i], c) / steps(format, c));
            if (format->srgb && c < 3) expected = from_srgb(expected);
            double error = ulp_error(dtype, number(dtype, numbers, i * format->components + c), expected);
            errors->unpack[f] = fmax(errors->unpack[f], error);
            if (!(error <= bar) && reported++ == 0)
                failed("unpack_%s_to_%s on %s: field %d, %lld, is %g ULP off", format->unpack,
                       type_name(dtype), device, c, (long long)field(format, packed[i], c), error);
        }
}

static void add_array(struct job_array *array, const char *prefix, int f, smelt_dtype dtype, int64_t count,
                      const void *data) {
    snprintf(array->name, sizeof array->name, "%s_%d", prefix, f);
    array->dtype = dtype, array->count = count, array->data = data;
}

/* Every format in both directions, for `count` vectors and packed numbers. */
static void measure(smelt_dtype dtype, int64_t count, smelt_math_mode math, const char *device,
                    struct errors *errors) {
    void *numbers = calloc((size_t)count * 4, 4);
    uint32_t *words = calloc((size_t)count, 4);
    if (!numbers || !words) abort();
    random_restart();
    static const double special[] = {0,         -0.0, 1, -1, 0.5,      -0.5,      INFINITY,
                                     -INFINITY, NAN,  2, -2, 0x1p-149, 0.0031308, 1e30};
    for (int64_t i = 0; i < count * 4; i++) {
        double x =
            i < 14 * 16 ? special[i % 14] : random_between(-1.1, 1.1); /* and close to the middle of a step */
        if (i % 3 == 0 && i >= 14 * 16) x = (floor(x * 255) + 0.5) / 255 * (1 + random_between(-1e-6, 1e-6));
        if (math == SMELT_MATH_FAST && !isfinite(x)) x = 1;
        store(dtype, numbers, i, x);
    }
    /* All patterns of 16 bits in both halves. */
    for (int64_t i = 0; i < count; i++) words[i] = (uint32_t)i << 16 | (uint32_t)(i * 40503 & 0xffff);
    struct job job = {.math = math, .device = device, .threads = count, .input_count = 2};
    struct body body = {0};
    body_add(&body, "uint i = thread_position_in_grid.x; typedef %s T; uint w = w_0[i];\n", type_name(dtype));
    add_array(&job.inputs[0], "x", 0, dtype, count * 4, numbers);
    add_array(&job.inputs[1], "w", 0, SMELT_UINT32, count, words);
    for (int f = 0; f < FORMATS; f++) {
        int n = formats[f].components;
        add_array(&job.outputs[job.output_count++], "packed", f, SMELT_UINT32, count, NULL);
        add_array(&job.outputs[job.output_count++], "unpacked", f, dtype, count * n, NULL);
        body_add(&body, "{ vec<T, %d> v, u = unpack_%s_to_%s(w%s);\n", n, formats[f].unpack, type_name(dtype),
                 n == 3 ? " & 0xffffu" : "");
        body_add(
            &body,
            "for (uint c = 0; c < %d; c++) { v[c] = x_0[i * %d + c]; unpacked_%d[i * %d + c] = u[c]; }\n", n,
            n, f, n);
        body_add(&body, "packed_%d[i] = pack_%s_to_%s(v); }\n", f, type_name(dtype), formats[f].pack);
    }
    job.body = body.text;
    smelt_array *out[2 * FORMATS] = {NULL};
    if (job_run(&job, out))
        for (int f = 0; f < FORMATS; f++) {
            check_packed(f, dtype, numbers, smelt_array_data(out[2 * f]), count, device, errors);
            check_unpacked(f, dtype, words, smelt_array_data(out[2 * f + 1]), count, device, errors);
        }
    for (int k = 0; k < 2 * FORMATS; k++) smelt_array_release(out[k]);
    body_free(&body);
    free(numbers);
    free(words);
}

void measure_packing(const struct engines *engines, enum density density, struct body *table) {
    struct errors errors[2] = {{{0}, {0}}};
    for (int type = 0; type < 2; type++)
        for (int math = 0; math < (density ? 3 : 1); math++)
            for (int engine = 0; engine < 2; engine++)
                measure(dtypes[type], 1 << 16, (smelt_math_mode)math, engines->name[engine], &errors[type]);
    body_add(table, "| format | pack float, steps | pack half, steps | unpack to float, ULP | unpack to "
                    "half, ULP |\n|---|---|---|---|---|\n");
    for (int f = 0; f < FORMATS; f++)
        body_add(table, "| %s | %.3f | %.3f | %.2f | %.2f |\n", packing_rows[f], errors[0].pack[f],
                 errors[1].pack[f], errors[0].unpack[f], errors[1].unpack[f]);
}
