/* Discrete Fourier transforms by the kernels of kernels/signal/fft.metal: rows of up to 2048 elements whose
 * prime factors are small in threadgroup memory; longer rows as matrices, transformed along one dimension and
 * then the other; rows with a large prime factor by Bluestein's algorithm. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/expression.h"
#include "ops/program.h"
#include "ops/routine_input.h"

#include <limits.h>
#include <math.h>

#define MOST_IN_GROUP 2048
#define LARGEST_FACTOR 13
#define MOST_ELEMENTS (INT64_C(1) << 28)

/* Shared with the kernels. */
struct fft_size {
    uint32_t n, factor_count;
    uint32_t factors[16];
    float scale, direction;
};
struct turn_size {
    uint32_t rows, columns;
    float direction, turn;
};
struct chirp_size {
    uint32_t n, m, rows, around;
    float direction, scale;
};

static smelt_status run(const struct call *call, const char *entry, smelt_dispatch_desc *dispatch) {
    const struct routine routine = {.entry = entry, .texts = {kernel_text_fft}};
    return routine_run(call, &routine, dispatch);
}

static smelt_status run_grid(const struct call *call, const char *entry, smelt_dispatch_desc dispatch,
                             const int64_t grid[3]) {
    for (int d = 0; d < 3; d++) dispatch.grid[d] = grid[d];
    routine_group(call, grid, dispatch.threadgroup);
    return run(call, entry, &dispatch);
}

static smelt_status complex_array(const struct call *call, int64_t rows, int64_t columns,
                                  smelt_array **array) {
    return call_output(call, SMELT_COMPLEX64, &(smelt_shape){2, {rows, columns}}, array);
}

/* ---- Rows in threadgroup memory. */

/* Factors of 4 and primes; what is left of n. */
static int64_t factor(int64_t n, struct fft_size *size) {
    static const uint32_t factors[] = {4, 2, 3, 5, 7, 11, LARGEST_FACTOR};
    size->factor_count = 0;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        while (n % factors[i] == 0 && size->factor_count < 16) {
            size->factors[size->factor_count++] = factors[i];
            n /= factors[i];
        }
    return n;
}

static smelt_status transform_rows(const struct call *call, smelt_array *x, int64_t rows,
                                   struct fft_size *size, smelt_array *out) {
    smelt_array *roots;
    const int64_t grid[3] = {size->n, 1, 1};
    int64_t threads = size->n / 4 < 32 ? 32 : size->n / 4 > 256 ? 256 : size->n / 4 / 32 * 32;
    TRY(complex_array(call, 1, size->n, &roots));
    smelt_status status = run_grid(
        call, "smelt_fft_roots",
        (smelt_dispatch_desc){.buffers = {{.array = roots}, {.bytes = size, .size = sizeof *size}}}, grid);
    if (status == SMELT_OK)
        status = run(call, "smelt_fft_rows",
                     &(smelt_dispatch_desc){.buffers = {{.array = x},
                                                        {.array = out},
                                                        {.array = roots},
                                                        {.bytes = size, .size = sizeof *size}},
                                            .groups = {rows, 1, 1},
                                            .threadgroup = {threads, 1, 1}});
    smelt_array_release(roots);
    return status;
}

/* ---- Longer rows. */

static smelt_status transform(const struct call *call, smelt_array *x, int64_t rows, int64_t n, bool inverse,
                              double scale, smelt_array **out);

/* (rows, a, b) as (rows, b, a). */
static smelt_status turned(const struct call *call, smelt_array *x, int64_t rows, int64_t a, int64_t b,
                           smelt_array **result) {
    const int64_t strides[] = {a * b, 1, b};
    smelt_array *view;
    TRY(smelt_array_view(x, (smelt_shape){3, {rows, b, a}}, strides, 0, &view));
    smelt_status status = call_contiguous(call, view, result);
    smelt_array_release(view);
    return status;
}

/* As matrices of a x b: element j = j1 b + j2 gives element k = k1 + a k2. */
static smelt_status transform_matrix(const struct call *call, smelt_array *x, int64_t rows, int64_t a,
                                     int64_t b, bool inverse, double scale, smelt_array **out) {
    smelt_array *steps[4] = {0};
    const struct turn_size size = {(uint32_t)b, (uint32_t)a, inverse ? 1.0F : -1.0F, 0};
    smelt_status status = turned(call, x, rows, a, b, &steps[0]); /* (j2, j1) */
    if (status == SMELT_OK)
        status = transform(call, steps[0], rows * b, a, inverse, 1, &steps[1]); /* (j2, k1) */
    if (status == SMELT_OK)
        status = run_grid(
            call, "smelt_fft_turn",
            (smelt_dispatch_desc){.buffers = {{.array = steps[1]}, {.bytes = &size, .size = sizeof size}}},
            (int64_t[3]){a, b, rows});
    if (status == SMELT_OK) status = turned(call, steps[1], rows, b, a, &steps[2]); /* (k1, j2) */
    if (status == SMELT_OK)
        status = transform(call, steps[2], rows * a, b, inverse, scale, &steps[3]); /* (k1, k2) */
    if (status == SMELT_OK) status = turned(call, steps[3], rows, a, b, out);       /* (k2, k1) */
    for (int i = 0; i < 4; i++) smelt_array_release(steps[i]);
    return status;
}

/* The largest divisor of n up to MOST_IN_GROUP near its root, or 1. */
static int64_t divisor_of(int64_t n) {
    int64_t best = 1;
    for (int64_t d = 2; d <= MOST_IN_GROUP && d <= (int64_t)sqrt((double)n) + 1; d++)
        if (n % d == 0) best = d;
    return best;
}

/* j k = (j² + k² - (k - j)²) / 2: a transform is a convolution with a chirp, of rows of m = 2^i >= 2 n - 1.
 */
static smelt_status transform_chirp(const struct call *call, smelt_array *x, int64_t rows, int64_t n,
                                    bool inverse, double scale, smelt_array **out) {
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    struct chirp_size size = {(uint32_t)n, (uint32_t)m, (uint32_t)rows, 1, inverse ? -1.0F : 1.0F,
                              (float)scale};
    smelt_array *steps[5] = {0};
    smelt_status status = complex_array(call, 1, m, &steps[0]);
    if (status == SMELT_OK)
        status = run_grid(
            call, "smelt_fft_chirp",
            (smelt_dispatch_desc){.buffers = {{.array = steps[0]}, {.bytes = &size, .size = sizeof size}}},
            (int64_t[3]){m, 1, 1});
    if (status == SMELT_OK) status = transform(call, steps[0], 1, m, false, 1, &steps[1]);
    size.direction = -size.direction;
    if (status == SMELT_OK) status = complex_array(call, rows, m, &steps[2]);
    if (status == SMELT_OK)
        status = run_grid(
            call, "smelt_fft_spread",
            (smelt_dispatch_desc){
                .buffers = {{.array = x}, {.array = steps[2]}, {.bytes = &size, .size = sizeof size}}},
            (int64_t[3]){m, rows, 1});
    if (status == SMELT_OK) status = transform(call, steps[2], rows, m, false, 1, &steps[3]);
    if (status == SMELT_OK)
        status = run_grid(
            call, "smelt_fft_times",
            (smelt_dispatch_desc){
                .buffers = {{.array = steps[3]}, {.array = steps[1]}, {.bytes = &size, .size = sizeof size}}},
            (int64_t[3]){m, rows, 1});
    if (status == SMELT_OK) status = transform(call, steps[3], rows, m, true, 1.0 / (double)m, &steps[4]);
    if (status == SMELT_OK) status = complex_array(call, rows, n, out);
    if (status == SMELT_OK)
        status = run_grid(
            call, "smelt_fft_gather",
            (smelt_dispatch_desc){
                .buffers = {{.array = steps[4]}, {.array = *out}, {.bytes = &size, .size = sizeof size}}},
            (int64_t[3]){n, rows, 1});
    for (int i = 0; i < 5; i++) smelt_array_release(steps[i]);
    return status;
}

/* x: (rows, n), row-contiguous, in whatever shape. *out may be set on failure. */
static smelt_status transform(const struct call *call, smelt_array *x, int64_t rows, int64_t n, bool inverse,
                              double scale, smelt_array **out) {
    struct fft_size size = {.n = (uint32_t)n, .scale = (float)scale, .direction = inverse ? 1.0F : -1.0F};
    if (factor(n, &size) != 1 && n > 1) return transform_chirp(call, x, rows, n, inverse, scale, out);
    if (n > MOST_IN_GROUP) {
        int64_t a = divisor_of(n);
        return transform_matrix(call, x, rows, a, n / a, inverse, scale, out);
    }
    TRY(complex_array(call, rows, n, out));
    return transform_rows(call, x, rows, &size, *out);
}

/* ---- The operations. */

/* The axis and the number of elements along it that are transformed. */
static smelt_status read(const struct call *call, const smelt_array *x, int *axis, int64_t *n) {
    bool flat;
    TRY(call_axis(call, x->shape.ndim, axis, &flat));
    if (flat || !x->shape.ndim)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: x has shape %s and no axis is given; expected one",
                    call->name, shape_print(&x->shape).text);
    *n = call->desc->offset ? call->desc->offset : x->shape.size[*axis];
    if (*n < 1 || *n > MOST_ELEMENTS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: n is %lld; expected 1 to 2^28", call->name,
                    (long long)*n);
    return SMELT_OK;
}

/* `reverse`: the inverse. The input is complex64 and has the elements that are transformed. */
smelt_status evaluate_fourier(const struct call *call, smelt_array **result) {
    struct routine_rows rows;
    smelt_array *x = call->inputs[0], *made = NULL, *shaped = NULL;
    int axis;
    int64_t n;
    TRY(read(call, x, &axis, &n));
    if (x->dtype == SMELT_FLOAT64)
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "%s: x has dtype float64; expected complex64, or what converts to it", call->name);
    if (program_is_symbolic(call->device)) {
        smelt_shape shape = x->shape;
        shape.size[axis] = n;
        return call_output(call, SMELT_COMPLEX64, &shape, result);
    }
    if (x->dtype != SMELT_COMPLEX64 || n != x->shape.size[axis]) {
        struct expression e = {.device = call->desc->device, .stream = call->desc->stream};
        smelt_apply_desc desc = *call->desc;
        desc.offset = 0;
        desc.weak = 0;
        smelt_array *untracked; /* tapes see this call, not its parts */
        TRY(smelt_array_view(x, x->shape, x->strides, 0, &untracked));
        desc.inputs[0] = expr_sized(&e, expr_astype(&e, expr_keep(&e, untracked), SMELT_COMPLEX64), axis, n);
        return expr_close(&e, expr_apply(&e, &desc), result);
    }
    TRY(routine_rows_open(call, x, UINT32_C(1) << axis, SMELT_COMPLEX64, &rows));
    smelt_status status = SMELT_OK;
    if (rows.rows > INT_MAX)
        status = fail(SMELT_ERROR_LIMIT, "%s: %lld rows; expected fewer than 2^31", call->name,
                      (long long)rows.rows);
    if (status == SMELT_OK && !x->size)
        status = call_output(call, SMELT_COMPLEX64, &rows.shape, &shaped);
    else if (status == SMELT_OK)
        status = transform(call, rows.array, rows.rows, n, call->desc->reverse,
                           call->desc->reverse ? 1 / (double)n : 1, &made);
    if (status == SMELT_OK && made) status = smelt_array_view(made, rows.shape, NULL, 0, &shaped);
    smelt_array_release(made);
    return routine_rows_close(call, &rows, status, shaped, result);
}

smelt_status compose_rfft(const struct call *call, smelt_array **result) {
    struct expression e = {.device = call->desc->device, .stream = call->desc->stream};
    smelt_array *x = call->inputs[0];
    int axis;
    int64_t n;
    TRY(read(call, x, &axis, &n));
    if (x->dtype == SMELT_COMPLEX64)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: x has dtype complex64; expected real numbers",
                    call->name);
    smelt_array *full = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_FFT,
                                                           .inputs = {expr_sized(&e, x, axis, n)},
                                                           .axes = {axis},
                                                           .axis_count = 1});
    return expr_close(&e, expr_sized(&e, full, axis, n / 2 + 1), result);
}

/* The other half of what has real numbers as its transform: conjugates, back to front. */
smelt_status compose_irfft(const struct call *call, smelt_array **result) {
    struct expression e = {.device = call->desc->device, .stream = call->desc->stream};
    smelt_array *x = call->inputs[0];
    smelt_apply_desc desc = *call->desc;
    int axis;
    int64_t n;
    if (x->shape.ndim && !desc.offset && desc.axis_count == 1) {
        int given = desc.axes[0] < 0 ? desc.axes[0] + x->shape.ndim : desc.axes[0];
        if (given >= 0 && given < x->shape.ndim) desc.offset = 2 * (x->shape.size[given] - 1);
        if (!desc.offset) desc.offset = 1;
    }
    struct call sized_call = *call;
    sized_call.desc = &desc;
    TRY(read(&sized_call, x, &axis, &n));
    smelt_array *half = expr_sized(&e, expr_astype(&e, x, SMELT_COMPLEX64), axis, n / 2 + 1), *full = half;
    if (half && n > 2) {
        smelt_apply_desc slice = {.operation = SMELT_OPERATION_SLICE, .inputs = {half}};
        for (int d = 0; d < half->shape.ndim; d++) slice.stops[d] = half->shape.size[d], slice.steps[d] = 1;
        slice.starts[axis] = (n - 1) / 2;
        slice.stops[axis] = 0;
        slice.steps[axis] = -1;
        smelt_array *mirrored = expr_unary(&e, SMELT_OPERATION_CONJUGATE, expr_apply(&e, &slice));
        full = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_CONCATENATE,
                                                  .inputs = {half, mirrored},
                                                  .axes = {axis},
                                                  .axis_count = 1});
    }
    full = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_FFT,
                                              .inputs = {expr_sized(&e, full, axis, n)},
                                              .axes = {axis},
                                              .axis_count = 1,
                                              .reverse = true});
    return expr_close(&e, expr_unary(&e, SMELT_OPERATION_REAL, full), result);
}
