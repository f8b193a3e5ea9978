#include "geometry.h"

#include "job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- References: n components of the result, each with the size in whose ULP the error is given: the
 * result's own, or, where terms cancel, the sum of their magnitudes. */
typedef void vector_reference(const double *x, const double *y, const double *z, int n, double *out,
                              double *size);

static double dot(const double *a, const double *b, int n, bool magnitudes) {
    double sum = 0;
    for (int c = 0; c < n; c++) sum += magnitudes ? fabs(a[c] * b[c]) : a[c] * b[c];
    return sum;
}
static void spread(double value, double size, int n, double *out, double *sizes) {
    for (int c = 0; c < n; c++) out[c] = value, sizes[c] = size;
}
#define REFERENCE(name)                                                                           \
    static void ref_##name(const double *x, const double *y, const double *z, int n, double *out, \
                           double *size)

REFERENCE(dot) {
    (void)z;
    spread(dot(x, y, n, false), dot(x, y, n, true), n, out, size);
}
REFERENCE(length_squared) {
    (void)y, (void)z;
    spread(dot(x, x, n, false), dot(x, x, n, false), n, out, size);
}
REFERENCE(length) {
    (void)y, (void)z;
    spread(sqrt(dot(x, x, n, false)), sqrt(dot(x, x, n, false)), n, out, size);
}
REFERENCE(distance_squared) {
    double d[4];
    for (int c = 0; c < n; c++) d[c] = x[c] - y[c];
    ref_length_squared(d, y, z, n, out, size);
}
REFERENCE(distance) {
    double d[4];
    for (int c = 0; c < n; c++) d[c] = x[c] - y[c];
    ref_length(d, y, z, n, out, size);
}
REFERENCE(normalize) {
    (void)y, (void)z;
    for (int c = 0; c < n; c++) out[c] = size[c] = x[c] / sqrt(dot(x, x, n, false));
}
REFERENCE(cross) {
    (void)z;
    for (int c = 0; c < n; c++) {
        int p = (c + 1) % 3, q = (c + 2) % 3;
        out[c] = n == 3 ? x[p] * y[q] - x[q] * y[p] : 0;
        size[c] = n == 3 ? fabs(x[p] * y[q]) + fabs(x[q] * y[p]) : 0;
    }
}
REFERENCE(faceforward) {
    for (int c = 0; c < n; c++) out[c] = size[c] = dot(y, z, n, false) < 0 ? x[c] : -x[c];
}
REFERENCE(reflect) {
    (void)z;
    for (int c = 0; c < n; c++) {
        out[c] = x[c] - 2 * dot(y, x, n, false) * y[c];
        size[c] = fabs(x[c]) + 2 * dot(y, x, n, true) * fabs(y[c]);
    }
}
/* eta is z's first component. Near total reflection the root is steep, and what it amplifies counts. */
REFERENCE(refract) {
    double e = z[0], d = dot(y, x, n, false), sum = dot(y, x, n, true), k = 1 - e * e * (1 - d * d);
    double steep = e * e * (1 + sum * sum) / fmax(sqrt(fabs(k)), 1e-4);
    for (int c = 0; c < n; c++) {
        out[c] = k < 0 ? 0 : e * x[c] - (e * d + sqrt(fmax(k, 0))) * y[c];
        size[c] = fabs(e * x[c]) + (fabs(e) * sum + steep + 1) * fabs(y[c]);
    }
}

static const struct function {
    const char *text; /* a vector: scalars are spread */
    vector_reference *reference;
    const char *unit;
    double bar; /* ULP of float; for half and bfloat a rounding more */
} functions[] = {
    {"V(dot(x, y))", ref_dot, "sum of abs(x y)", 4},
    {"V(length(x))", ref_length, "result", 4},
    {"V(length_squared(x))", ref_length_squared, "result", 4},
    {"V(distance(x, y))", ref_distance, "result", 4},
    {"V(distance_squared(x, y))", ref_distance_squared, "result", 4},
    {"normalize(x)", ref_normalize, "result", 4},
    {"faceforward(x, y, z)", ref_faceforward, "result", 4},
    {"reflect(x, y)", ref_reflect, "sum of magnitudes", 4},
    {"refract(x, y, z.x)", ref_refract, "sum of magnitudes", 6},
    {"cross(x, y)", ref_cross, "sum of abs(x y)", 4},
};
#define FUNCTIONS (int)(sizeof functions / sizeof functions[0])
const char *const geometry_rows[] = {
    "dot",     "length",  "length_squared", "distance", "distance_squared", "normalize", "faceforward",
    "reflect", "refract", "cross",          NULL};
static const smelt_dtype dtypes[3] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};
static const char *const modes[3] = {"safe", "relaxed", "fast"};

struct column {
    double worst[FUNCTIONS]; /* over widths 2, 3, 4 */
};

/* Reads `points` numbers as vectors of n; cross needs three components. */
static void add_calls(struct body *body, int n, int64_t points, const char *form) {
    body_add(body, "if (i < %lldu) { typedef vec<%s, %d> V; uint at = i * %d; V x, y, z;\n",
             (long long)(points / n), "T", n, n);
    body_add(body,
             "for (int c = 0; c < %d; c++) { x[c] = xs[at + c]; y[c] = ys[at + c]; z[c] = zs[at + c]; }\n",
             n);
    for (int f = 0; f < FUNCTIONS - (n != 3); f++)
        body_add(body,
                 "{ using namespace metal::%s; V r = %s; for (int c = 0; c < %d; c++) out[%lldul + at + c] = "
                 "r[c]; }\n",
                 form, functions[f].text, n, (long long)(((n - 2) * FUNCTIONS + f) * points));
    body_add(body, "}\n");
}

static void check(smelt_dtype dtype, int n, const struct job *job, smelt_array *out, int64_t points,
                  struct column *column) {
    for (int f = 0; f < FUNCTIONS - (n != 3); f++) {
        int64_t start = ((n - 2) * FUNCTIONS + f) * points;
        int reported = 0;
        for (int64_t i = 0; i + n <= points; i += n) {
            double a[3][4], expected[4], size[4];
            for (int k = 0; k < 3; k++)
                for (int c = 0; c < n; c++) a[k][c] = number(dtype, job->inputs[k].data, i + c);
            functions[f].reference(a[0], a[1], a[2], n, expected, size);
            for (int c = 0; c < n; c++) {
                double got = number(dtype, smelt_array_data(out), start + i + c);
                if (fabs(expected[c]) > largest(dtype) / 2) continue; /* overflows */
                double off = fabs(got - expected[c]), ulp = ulp_of(dtype, fmax(fabs(expected[c]), size[c]));
                double allowed = dtype == SMELT_FLOAT32
                                     ? functions[f].bar * ulp
                                     : 0.501 * ulp_of(dtype, expected[c]) +
                                           functions[f].bar * ulp_of(SMELT_FLOAT32, size[c]);
                column->worst[f] = fmax(column->worst[f], off / ulp);
                if (!(off <= allowed) && reported++ == 0)
                    failed("%s of %s%d (math mode %s, %s): component %d is %a, expected %a", geometry_rows[f],
                           type_name(dtype), n, modes[job->math], job->device, c, got, expected[c]);
            }
        }
    }
}

static struct column measure(smelt_dtype dtype, int64_t points, smelt_math_mode math, const char *device) {
    struct job job = {
        .math = math, .device = device, .threads = points / 2, .input_count = 3, .output_count = 1};
    struct body body = {0};
    body_add(&body, "typedef %s T; uint i = thread_position_in_grid.x;\n", type_name(dtype));
    for (int n = 2; n <= 4; n++) add_calls(&body, n, points, "precise");
    job.body = body.text;
    random_restart();
    static const char names[3][3] = {"xs", "ys", "zs"};
    for (int k = 0; k < 3; k++) {
        void *data = calloc((size_t)points, 4);
        if (!data) abort();
        for (int64_t i = 0; i < points;
             i++) /* ordinary numbers, and in every other stretch of 12 some of any size */
            store(dtype, data, i,
                  i / 12 % 2 ? random_between(-2, 2)
                             : copysign(exp2(random_between(-7, 7)), random_between(-1, 1)));
        snprintf(job.inputs[k].name, sizeof job.inputs[k].name, "%s", names[k]);
        job.inputs[k].dtype = dtype, job.inputs[k].count = points, job.inputs[k].data = data;
    }
    snprintf(job.outputs[0].name, sizeof job.outputs[0].name, "out");
    job.outputs[0].dtype = dtype, job.outputs[0].count = 3 * FUNCTIONS * points;
    struct column column = {{0}};
    smelt_array *out = NULL;
    for (int n = 2; n <= 4 && (out || job_run(&job, &out)); n++) check(dtype, n, &job, out, points, &column);
    smelt_array_release(out);
    body_free(&body);
    for (int k = 0; k < 3; k++) free((void *)(uintptr_t)job.inputs[k].data);
    return column;
}

void measure_geometry(const struct engines *engines, enum density density, struct body *table) {
    int64_t points = density ? 12 << 16 : 12 << 9;
    struct column safe[3], others[3] = {{{0}}};
    for (int type = 0; type < 3; type++) {
        safe[type] = measure(dtypes[type], points, SMELT_MATH_SAFE, engines->name[0]);
        for (int math = 0; math < (density || type == 0 ? 3 : 1); math++)
            for (int engine = math ? 0 : 1; engine < 2; engine++) {
                struct column other =
                    measure(dtypes[type], points, (smelt_math_mode)math, engines->name[engine]);
                for (int f = 0; f < FUNCTIONS; f++)
                    others[type].worst[f] = fmax(others[type].worst[f], other.worst[f]);
            }
    }
    body_add(table, "| function | ULP of | float | half | bfloat | other modes, `cpu-scalar` "
                    "|\n|---|---|---|---|---|---|\n");
    for (int f = 0; f < FUNCTIONS; f++) {
        body_add(table, "| %s | %s |", geometry_rows[f], functions[f].unit);
        for (int type = 0; type < 3; type++) body_add(table, " %.2f |", safe[type].worst[f]);
        body_add(table, " %.2f / %.2f / %.2f |\n", others[0].worst[f], others[1].worst[f],
                 others[2].worst[f]);
    }
}
