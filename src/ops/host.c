/* Operations on float64 arrays, which no kernel has: plain loops on the host, in double, element by element.
 * They are also the reference for the kernels' operations. */
#include "array/dtype.h"
#include "ops/accumulate.h"
#include "ops/elementwise.h"
#include "ops/map.h"
#include "ops/operation.h"

#include <string.h>

#include <math.h>

/* ---- Elementwise. */

static double host_remainder(double x, double y) {
    double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static double host_floor_divide(double x, double y) {
    if (y == 0) return x / y;
    double q = (x - host_remainder(x, y)) / y, whole = floor(q);
    return q - whole > 0.5 ? whole + 1 : whole;
}

static double host_logaddexp(double x, double y) {
    double high = x > y || isnan(x) ? x : y, low = x > y || isnan(x) ? y : x;
    if (isnan(low)) return low;
    return isinf(high) || isnan(high) ? high : high + log1p(exp(low - high));
}

/* Halley's iteration, on erfc where 1 - erf would have few digits. */
static double host_erfinv(double x) {
    double size = fabs(x), w = -log1p(-x * x), y;
    if (!(size < 1)) return size == 1 ? x * INFINITY : NAN;
    /* Winitzki's formula begins it, with an error of some 2e-3. */
    double a = 0.147, half = 2 / (M_PI * a) - w / 2;
    y = sqrt(sqrt(half * half + w / a) - half);
    for (int i = 0; i < 3 && size > 0; i++) {
        double error = size > 0.5 ? (1 - size) - erfc(y) : erf(y) - size;
        double step = error / (2 / sqrt(M_PI) * exp(-y * y));
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

typedef double real_function(double x, double y);

#define UNARY_FUNCTION(upper, domain, outcome, real, integer, complex, host) \
    static double host_##upper(double x, double y) {                         \
        (void)y;                                                             \
        (void)x;                                                             \
        return host;                                                         \
    }
UNARY_TABLE(UNARY_FUNCTION)
BINARY_TABLE(UNARY_FUNCTION)

static real_function *function_of(smelt_operation operation) {
    static real_function *const functions[SMELT_OPERATION_END] = {
#define ROW(upper, domain, outcome, real, integer, complex, host) [SMELT_OPERATION_##upper] = host_##upper,
        UNARY_TABLE(ROW) BINARY_TABLE(ROW)
#undef ROW
    };
    return functions[operation];
}

/* Reads an array broadcast to a space, one element after the other. */
struct reader {
    const smelt_array *array;
    int64_t strides[SMELT_MAX_DIMENSIONS];
    struct walk walk;
};

static void reader_open(struct reader *reader, const smelt_array *array, const smelt_shape *space) {
    reader->array = array;
    map_broadcast(array, space, reader->strides);
    reader->walk = walk_begin(space, reader->strides);
}

static double reader_next(struct reader *reader) {
    size_t bytes = smelt_dtype_bytes(reader->array->dtype);
    double value = element_as_real(
        element_load(reader->array->dtype, reader->array->data + reader->walk.offset * (int64_t)bytes));
    walk_next(&reader->walk);
    return value;
}

static void store(smelt_array *array, int64_t index, double value) {
    element_store(array->dtype, array->data + index * (int64_t)smelt_dtype_bytes(array->dtype),
                  element_of_real(value));
}

static smelt_status check_place(const struct call *call) {
    if (program_is_host(call->device) || program_is_symbolic(call->device)) return SMELT_OK;
    return fail(SMELT_ERROR_UNSUPPORTED,
                "%s: float64 is supported on the host only, but an input is on %s; convert the float64 "
                "input to float32, or move the other inputs to the host",
                call->name, call->device);
}

static smelt_status host_elementwise(const struct call *call, smelt_array **result) {
    smelt_dtype common, computed, dtype;
    smelt_shape shape;
    smelt_array *made;
    struct reader readers[2];
    double values[2] = {0, 0};
    TRY(check_place(call));
    TRY(call_dtype(call, 0, call->count, &common));
    TRY(elementwise_dtypes(call->desc->operation, common, &computed, &dtype));
    TRY(call_shape(call, 0, call->count, &shape));
    TRY(call_output(call, dtype, &shape, &made));
    *result = made;
    if (program_is_symbolic(call->device)) return SMELT_OK;
    real_function *function = function_of(call->desc->operation);
    for (int i = 0; i < call->count; i++) reader_open(&readers[i], call->inputs[i], &shape);
    for (int64_t at = 0; at < made->size; at++) {
        for (int i = 0; i < call->count; i++) values[i] = reader_next(&readers[i]);
        store(made, at, function(values[0], values[1]));
    }
    return SMELT_OK;
}

smelt_status host_unary(const struct call *call, smelt_array **result) {
    return host_elementwise(call, result);
}

smelt_status host_binary(const struct call *call, smelt_array **result) {
    return host_elementwise(call, result);
}

smelt_status host_where(const struct call *call, smelt_array **result) {
    smelt_dtype dtype;
    smelt_shape shape;
    smelt_array *made;
    struct reader readers[3];
    TRY(check_place(call));
    TRY(call_dtype(call, 1, 2, &dtype));
    TRY(call_shape(call, 0, 3, &shape));
    TRY(call_output(call, dtype, &shape, &made));
    *result = made;
    if (program_is_symbolic(call->device)) return SMELT_OK;
    for (int i = 0; i < 3; i++) reader_open(&readers[i], call->inputs[i], &shape);
    for (int64_t at = 0; at < made->size; at++) {
        bool condition = reader_next(&readers[0]) != 0;
        double yes = reader_next(&readers[1]), no = reader_next(&readers[2]);
        store(made, at, condition ? yes : no);
    }
    return SMELT_OK;
}

/* ---- Over axes. */

smelt_status host_reduce(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0], *made;
    smelt_shape kept = input->shape, shape = {.ndim = 0};
    int64_t strides[SMELT_MAX_DIMENSIONS];
    uint32_t axes;
    TRY(check_place(call));
    TRY(call_axes(call, input->shape.ndim, &axes));
    for (int d = 0; d < kept.ndim; d++) {
        bool reduced = axes >> d & 1;
        if (reduced) kept.size[d] = 1;
        if (!reduced || call->desc->keepdims) shape.size[shape.ndim++] = kept.size[d];
    }
    smelt_operation operation = call->desc->operation;
    bool logical = operation == SMELT_OPERATION_ALL || operation == SMELT_OPERATION_ANY;
    TRY(call_output(call, logical ? SMELT_BOOL : SMELT_FLOAT64, &shape, &made));
    *result = made;
    if (program_is_symbolic(call->device)) return SMELT_OK;
    TRY(smelt_array_fill(made, accumulate_start(operation)));
    shape_strides(&kept, strides);
    for (int d = 0; d < kept.ndim; d++)
        if (axes >> d & 1) strides[d] = 0;
    struct reader reader;
    reader_open(&reader, input, &input->shape);
    size_t bytes = smelt_dtype_bytes(made->dtype);
    for (struct walk to = walk_begin(&input->shape, strides); to.left > 0; walk_next(&to)) {
        double so_far = element_as_real(element_load(made->dtype, made->data + to.offset * (int64_t)bytes));
        store(made, to.offset, accumulate_combine(operation, so_far, reader_next(&reader)));
    }
    return SMELT_OK;
}

/* Lines along an axis: all dimensions but it, and the address of each line's first element. */
static smelt_shape without(const smelt_array *array, int axis, int64_t *strides) {
    smelt_shape shape = {.ndim = 0};
    for (int d = 0; d < array->shape.ndim; d++) {
        if (d == axis) continue;
        strides[shape.ndim] = array->strides[d];
        shape.size[shape.ndim++] = array->shape.size[d];
    }
    return shape;
}

static double real_at(const smelt_array *array, int64_t offset) {
    return element_as_real(
        element_load(array->dtype, array->data + offset * (int64_t)smelt_dtype_bytes(array->dtype)));
}

void host_lines_argument(const struct call *call, const smelt_array *from, int axis, smelt_array *to) {
    int64_t strides[SMELT_MAX_DIMENSIONS], at = 0;
    smelt_shape space = without(from, axis, strides);
    bool largest = call->desc->operation == SMELT_OPERATION_ARGMAX;
    for (struct walk w = walk_begin(&space, strides); w.left > 0; walk_next(&w)) {
        int64_t index = 0;
        double best = real_at(from, w.offset);
        for (int64_t k = 1; k < from->shape.size[axis]; k++) {
            double x = real_at(from, w.offset + k * from->strides[axis]);
            if ((largest ? x > best : x < best) || (isnan(x) && !isnan(best))) {
                best = x;
                index = k;
            }
        }
        store(to, at++, (double)index);
    }
}

void host_lines_cumulative(const struct call *call, const smelt_array *from, int axis, smelt_array *to) {
    int64_t from_strides[SMELT_MAX_DIMENSIONS], to_strides[SMELT_MAX_DIMENSIONS];
    smelt_shape space = without(from, axis, from_strides);
    int64_t count = from->shape.size[axis];
    (void)without(to, axis, to_strides);
    struct walk source = walk_begin(&space, from_strides), target = walk_begin(&space, to_strides);
    for (; source.left > 0; walk_next(&source), walk_next(&target)) {
        double sum = accumulate_start(call->desc->operation);
        for (int64_t i = 0; i < count; i++) {
            int64_t k = call->desc->reverse ? count - 1 - i : i;
            double before = sum;
            sum = accumulate_combine(call->desc->operation, sum,
                                     real_at(from, source.offset + k * from->strides[axis]));
            store(to, target.offset + k * to->strides[axis], call->desc->exclusive ? before : sum);
        }
    }
}
