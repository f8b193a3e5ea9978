/* Random numbers from keys, by the kernel of kernels/random/random.metal; float64 and complex64 by its plain
 * reference (array/generate.c). */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/expression.h"
#include "ops/program.h"
#include "ops/routine_input.h"

#include <math.h>

#define BLOCK 4 /* elements of a thread */
#define ROOT_2 1.41421356237309504880

/* Shared with the kernel. */
enum random_kind { KIND_BITS, KIND_UNIFORM, KIND_NORMAL, KIND_GUMBEL, KIND_INTEGERS };
struct random_size {
    uint64_t count, span;
    int64_t low;
    float start, width, first, last;
};

static smelt_status check_key(const struct call *call) {
    const smelt_array *key = call->inputs[0];
    if (key->dtype == SMELT_UINT32 && key->shape.ndim == 1 && key->shape.size[0] == 2) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the key has shape %s and dtype %s; expected 2 of uint32",
                call->name, shape_print(&key->shape).text, smelt_dtype_name(key->dtype));
}

/* ---- Settings. */

/* `value` rounded up or down to a float of a dtype. */
static float next_in(smelt_dtype dtype, double value, bool above) {
    int kept = dtype == SMELT_FLOAT16 ? 10 : dtype == SMELT_BFLOAT16 ? 7 : 23;
    float least = dtype == SMELT_FLOAT16 ? 0x1p-14F : 0x1p-126F, step;
    int exponent;
    (void)frexp(fmax(fabs(value), (double)least), &exponent);
    step = ldexpf(1, exponent - 1 - kept);
    double whole = above ? ceil(value / (double)step) : floor(value / (double)step);
    return (float)(whole * (double)step);
}

/* The numbers of `dtype` from low up to, not including, high. */
static smelt_status read_uniform(const struct call *call, smelt_dtype dtype, struct random_size *size) {
    double low = call->desc->numbers[0], high = call->desc->numbers[1];
    if (low == 0 && high == 0) high = 1;
    if (!(low < high) || !isfinite(high - low))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: low is %g and high is %g; expected low < high",
                    call->name, low, high);
    size->start = (float)low;
    size->width = (float)(high - low);
    size->first = next_in(dtype, low, true);
    size->last = next_in(dtype, nextafter(high, -INFINITY), false);
    if (size->last < size->first) size->last = size->first;
    return SMELT_OK;
}

static smelt_status read_integers(const struct call *call, smelt_dtype dtype, struct random_size *size) {
    int64_t low = call->desc->starts[0], high = call->desc->stops[0];
    unsigned bits = 8 * (unsigned)smelt_dtype_bytes(dtype);
    bool is_signed = dtype_is_signed(dtype);
    int64_t least = !is_signed ? 0 : bits == 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));
    int64_t most = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - is_signed)) - 1;
    if (!dtype_is_integer(dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: dtype is %s; expected integers", call->name,
                    smelt_dtype_name(dtype));
    if (low >= high)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: low is %lld and high is %lld; expected low < high",
                    call->name, (long long)low, (long long)high);
    if (low < least || high - 1 > most)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: low is %lld and high is %lld; expected numbers of %s, %lld to %lld", call->name,
                    (long long)low, (long long)high, smelt_dtype_name(dtype), (long long)least,
                    (long long)most);
    size->low = low;
    size->span = (uint64_t)high - (uint64_t)low;
    return SMELT_OK;
}

static smelt_status refuse(const struct call *call, smelt_dtype dtype, const char *expected) {
    return fail(SMELT_ERROR_UNSUPPORTED, "%s: dtype is %s; expected %s", call->name, smelt_dtype_name(dtype),
                expected);
}

static smelt_status read_settings(const struct call *call, enum random_kind *kind, smelt_dtype *dtype,
                                  struct random_size *size) {
    smelt_operation operation = call->desc->operation;
    int64_t count;
    *dtype = call->desc->dtype                              ? call->desc->dtype
             : operation == SMELT_OPERATION_RANDOM_BITS     ? SMELT_UINT32
             : operation == SMELT_OPERATION_RANDOM_INTEGERS ? SMELT_INT32
                                                            : SMELT_FLOAT32;
    TRY(check_key(call));
    TRY(shape_check(call->name, *dtype, &call->desc->shape, &count));
    if ((uint64_t)count > (uint64_t)UINT32_MAX * BLOCK)
        return fail(SMELT_ERROR_LIMIT, "%s: %lld elements; expected at most 2^34 - 4", call->name,
                    (long long)count);
    *size = (struct random_size){.count = (uint64_t)count};
    switch (operation) {
    case SMELT_OPERATION_RANDOM_BITS:
        *kind = KIND_BITS;
        return dtype_is_inexact(*dtype) ? refuse(call, *dtype, "integers or bool") : SMELT_OK;
    case SMELT_OPERATION_RANDOM_INTEGERS:
        *kind = KIND_INTEGERS;
        return read_integers(call, *dtype, size);
    case SMELT_OPERATION_RANDOM_GUMBEL:
        *kind = KIND_GUMBEL;
        return routine_is_float(*dtype) ? SMELT_OK : refuse(call, *dtype, "float32, float16 or bfloat16");
    case SMELT_OPERATION_RANDOM_NORMAL:
        *kind = KIND_NORMAL;
        return dtype_is_inexact(*dtype) ? SMELT_OK : refuse(call, *dtype, "a float dtype or complex64");
    default:
        *kind = KIND_UNIFORM;
        return dtype_is_float(*dtype) ? read_uniform(call, *dtype, size)
                                      : refuse(call, *dtype, "a float dtype");
    }
}

/* ---- On the host: float64 and complex64. */

static smelt_status seed_of(const struct call *call, uint64_t *seed) {
    smelt_array *host, *key;
    TRY(smelt_array_to(call->inputs[0], "cpu", NULL, &host));
    smelt_status status = smelt_array_contiguous(host, &key);
    smelt_array_release(host);
    TRY(status);
    const uint32_t *words = smelt_array_data(key);
    *seed = words[0] | (uint64_t)words[1] << 32;
    smelt_array_release(key);
    return SMELT_OK;
}

static smelt_status generate(const struct call *call, enum random_kind kind, smelt_dtype dtype,
                             smelt_array **result) {
    uint64_t seed = 0;
    smelt_array *made = NULL;
    TRY(seed_of(call, &seed));
    if (kind == KIND_NORMAL)
        TRY(smelt_array_normal(dtype, call->desc->shape, seed, &made));
    else
        TRY(smelt_array_uniform(dtype, call->desc->shape, seed, &made));
    double low = call->desc->numbers[0], high = call->desc->numbers[1];
    if (kind == KIND_UNIFORM && (low != 0 || (high != 1 && high != 0))) {
        double *values = smelt_array_data(made);
        for (int64_t i = 0; i < made->size; i++)
            values[i] = fmin(fma(values[i], high - low, low), nextafter(high, low));
    }
    smelt_status status = SMELT_OK;
    if (program_is_host(call->device) || dtype == SMELT_FLOAT64)
        *result = smelt_array_retain(made);
    else
        status = smelt_array_to(made, call->device, call->desc->stream, result);
    smelt_array_release(made);
    return status;
}

/* ---- By the kernel. */

static smelt_status run(const struct call *call, const char *entry, int32_t kind, smelt_dtype dtype,
                        int64_t threads, smelt_array *out, const struct random_size *size) {
    const struct routine routine = {
        .entry = entry, .texts = {kernel_text_random}, .types = {{"T", dtype}}, .sizes = {{"KIND", kind}}};
    const int64_t grid[3] = {threads, 1, 1};
    smelt_array *key;
    TRY(routine_input(call, call->inputs[0], SMELT_UINT32, &key));
    smelt_dispatch_desc dispatch = {.buffers = {{.array = key}, {.array = out}}, .grid = {threads, 1, 1}};
    if (size) dispatch.buffers[2] = (smelt_buffer){.bytes = size, .size = sizeof *size};
    routine_group(call, grid, dispatch.threadgroup);
    smelt_status status = routine_run(call, &routine, &dispatch);
    smelt_array_release(key);
    return status;
}

smelt_status evaluate_random(const struct call *call, smelt_array **result) {
    struct random_size size;
    enum random_kind kind;
    smelt_dtype dtype;
    smelt_array *made;
    TRY(read_settings(call, &kind, &dtype, &size));
    bool plain = dtype == SMELT_FLOAT64 || dtype == SMELT_COMPLEX64;
    if (plain && !program_is_symbolic(call->device)) return generate(call, kind, dtype, result);
    TRY(call_output(call, dtype, &call->desc->shape, &made));
    smelt_status status = SMELT_OK;
    if (made->size)
        status =
            run(call, "smelt_random", (int32_t)kind, dtype, (made->size + BLOCK - 1) / BLOCK, made, &size);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

smelt_status evaluate_random_split(const struct call *call, smelt_array **result) {
    smelt_array *made;
    int64_t count = call->desc->offset;
    TRY(check_key(call));
    if (count < 1 || count > INT32_MAX)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %lld keys; expected 1 to 2^31 - 1", call->name,
                    (long long)count);
    TRY(call_output(call, SMELT_UINT32, &(smelt_shape){2, {count, 2}}, &made));
    smelt_status status = run(call, "smelt_random_split", KIND_BITS, SMELT_UINT32, count, made, NULL);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* ---- Composed. */

static struct expression open(const struct call *call) {
    return (struct expression){.device = call->desc->device, .stream = call->desc->stream};
}

/* The shape given, or that of inputs 1 …. */
static smelt_status shape_of(const struct call *call, smelt_shape *shape) {
    smelt_shape joined;
    TRY(call_shape(call, 1, call->count - 1, &joined));
    *shape = call->desc->shape.ndim ? call->desc->shape : joined;
    if (!call->desc->shape.ndim) return SMELT_OK;
    smelt_shape both = joined;
    TRY(call_join_shapes(call->name, shape, &both));
    if (shape_equal(&both, shape)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: shape is %s; expected one to which %s can be broadcast",
                call->name, shape_print(shape).text, shape_print(&joined).text);
}

static smelt_array *numbers_of(struct expression *e, const struct call *call, smelt_operation operation,
                               smelt_dtype dtype, const smelt_shape *shape) {
    return expr_apply(
        e, &(smelt_apply_desc){
               .operation = operation, .inputs = {call->inputs[0]}, .dtype = dtype, .shape = *shape});
}

/* Of the distribution function's values between its values at the ends the inverse is taken. */
smelt_status compose_truncated_normal(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_dtype dtype = call->desc->dtype ? call->desc->dtype : SMELT_FLOAT32;
    smelt_shape shape;
    TRY(check_key(call));
    TRY(shape_of(call, &shape));
    if (!dtype_is_float(dtype)) return refuse(call, dtype, "a float dtype");
    smelt_dtype wide = dtype == SMELT_FLOAT64 ? dtype : SMELT_FLOAT32;
    smelt_array *ends[2], *values[2];
    for (int i = 0; i < 2; i++) {
        ends[i] = expr_astype(&e, call->inputs[i + 1], wide);
        values[i] =
            expr_unary(&e, SMELT_OPERATION_ERF, expr_with(&e, SMELT_OPERATION_MULTIPLY, ends[i], 1 / ROOT_2));
    }
    smelt_array *u = numbers_of(&e, call, SMELT_OPERATION_RANDOM_UNIFORM, wide, &shape);
    smelt_array *width = expr_binary(&e, SMELT_OPERATION_SUBTRACT, values[1], values[0]);
    u = expr_binary(&e, SMELT_OPERATION_ADD, expr_binary(&e, SMELT_OPERATION_MULTIPLY, u, width), values[0]);
    smelt_array *x =
        expr_with(&e, SMELT_OPERATION_MULTIPLY, expr_unary(&e, SMELT_OPERATION_ERFINV, u), ROOT_2);
    x = expr_binary(&e, SMELT_OPERATION_MINIMUM, expr_binary(&e, SMELT_OPERATION_MAXIMUM, x, ends[0]),
                    ends[1]);
    return expr_close(&e, expr_astype(&e, x, dtype), result);
}

smelt_status compose_bernoulli(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_shape shape;
    TRY(check_key(call));
    TRY(shape_of(call, &shape));
    smelt_array *u = numbers_of(&e, call, SMELT_OPERATION_RANDOM_UNIFORM, SMELT_FLOAT32, &shape);
    return expr_close(&e,
                      expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_LESS,
                                                         .inputs = {u, call->inputs[1]},
                                                         .weak = call->desc->weak & 2}),
                      result);
}

/* The largest of the logarithms plus Gumbel's numbers. */
smelt_status compose_categorical(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_array *logits = call->inputs[1];
    smelt_shape shape = {0};
    int axis = logits->shape.ndim - 1;
    bool flat = false;
    TRY(check_key(call));
    if (call->desc->axis_count) TRY(call_axis(call, logits->shape.ndim, &axis, &flat));
    if (axis < 0 || call->desc->offset < 0)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "%s: the logits have shape %s and %lld samples are wanted; expected a dimension, and at least 1",
            call->name, shape_print(&logits->shape).text, (long long)call->desc->offset);
    int order[SMELT_MAX_DIMENSIONS], ndim = 0;
    for (int d = 0; d < logits->shape.ndim; d++)
        if (d != axis) order[ndim++] = d;
    order[ndim++] = axis;
    logits = expr_transpose(&e, expr_astype(&e, logits, SMELT_FLOAT32), order);
    if (logits) shape = logits->shape;
    if (call->desc->offset && logits) { /* (lines …, samples, classes) */
        if (ndim == SMELT_MAX_DIMENSIONS)
            return fail(SMELT_ERROR_LIMIT, "%s: the logits have %d dimensions; expected fewer", call->name,
                        ndim);
        shape.size[ndim] = shape.size[ndim - 1];
        shape.size[ndim - 1] = 1;
        shape.ndim++;
        logits = expr_reshape(&e, logits, &shape);
        shape.size[ndim - 1] = call->desc->offset;
    }
    smelt_array *noise = numbers_of(&e, call, SMELT_OPERATION_RANDOM_GUMBEL, SMELT_FLOAT32, &shape);
    smelt_array *sum = expr_binary(&e, SMELT_OPERATION_ADD, noise, logits);
    return expr_close(&e,
                      expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ARGMAX,
                                                         .inputs = {sum},
                                                         .axes = {-1},
                                                         .axis_count = 1}),
                      result);
}

/* The order of random numbers. Two of 32 bits are seldom equal, and then keep their order. */
smelt_status compose_permutation(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    int64_t count = call->desc->offset;
    TRY(check_key(call));
    if (count < 0 || count > INT32_MAX)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %lld numbers; expected 0 to 2^31 - 1", call->name,
                    (long long)count);
    smelt_array *bits =
        numbers_of(&e, call, SMELT_OPERATION_RANDOM_BITS, SMELT_UINT32, &(smelt_shape){1, {count}});
    return expr_close(&e,
                      expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ARGSORT,
                                                         .inputs = {bits},
                                                         .axes = {0},
                                                         .axis_count = 1}),
                      result);
}
