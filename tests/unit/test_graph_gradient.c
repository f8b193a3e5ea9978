/* Derivatives of every operation against central differences in float64; tapes within tapes. */
#include "graph.h"
#include "autodiff/tape.h"

typedef smelt_array *function(smelt_array **x);

#define DEFINE(name, ...)                       \
    static smelt_array *name(smelt_array **x) { \
        return APPLY(__VA_ARGS__);              \
    }

/* ---- Functions: every operation that has a derivative, as users call it. */

/* clang-format off */
#define UNARY(upper) DEFINE(f_##upper, .operation = OP(upper), .inputs = {x[0]})
UNARY(NEGATIVE) UNARY(ABS) UNARY(EXP) UNARY(EXPM1) UNARY(LOG) UNARY(LOG2) UNARY(LOG10) UNARY(LOG1P)
UNARY(SQRT) UNARY(RSQRT) UNARY(SQUARE) UNARY(RECIPROCAL) UNARY(SIN) UNARY(COS) UNARY(TAN)
UNARY(ARCSIN) UNARY(ARCCOS) UNARY(ARCTAN) UNARY(SINH) UNARY(COSH) UNARY(TANH) UNARY(ARCSINH)
UNARY(ARCCOSH) UNARY(ARCTANH) UNARY(SIGMOID) UNARY(ERF) UNARY(ERFINV) UNARY(FLOOR) UNARY(REAL) UNARY(CONJUGATE)
UNARY(IDENTITY) UNARY(SUM) UNARY(PROD) UNARY(MAX) UNARY(MIN) UNARY(CUMSUM) UNARY(CUMPROD)
UNARY(LOGSUMEXP) UNARY(TRANSPOSE) UNARY(FLATTEN)

#define BINARY(upper) DEFINE(f_##upper, .operation = OP(upper), .inputs = {x[0], x[1]})
BINARY(ADD) BINARY(SUBTRACT) BINARY(MULTIPLY) BINARY(DIVIDE) BINARY(REMAINDER) BINARY(POWER)
BINARY(MAXIMUM) BINARY(MINIMUM) BINARY(ARCTAN2) BINARY(LOGADDEXP) BINARY(MATMUL) BINARY(OUTER)
BINARY(INNER)
/* clang-format on */

DEFINE(clip, .operation = OP(CLIP), .inputs = {x[0], x[1], x[2]})
DEFINE(sum_axes, .operation = OP(SUM), .inputs = {x[0]}, .axes = {0, -1}, .axis_count = 2)
DEFINE(prod_axes, .operation = OP(PROD), .inputs = {x[0]}, .axes = {2, 0}, .axis_count = 2, .keepdims = true)
DEFINE(max_axis, .operation = OP(MAX), .inputs = {x[0]}, .axes = {1}, .axis_count = 1)
DEFINE(mean, .operation = OP(MEAN), .inputs = {x[0]}, .axes = {1}, .axis_count = 1)
DEFINE(var, .operation = OP(VAR), .inputs = {x[0]}, .axes = {1}, .axis_count = 1, .offset = 1)
DEFINE(std, .operation = OP(STD), .inputs = {x[0]}, .axes = {0}, .axis_count = 1, .keepdims = true)
DEFINE(softmax, .operation = OP(SOFTMAX), .inputs = {x[0]}, .axes = {-1}, .axis_count = 1)
DEFINE(cumsum_back, .operation = OP(CUMSUM), .inputs = {x[0]}, .axes = {0}, .axis_count = 1, .reverse = true)
DEFINE(cumsum_before, .operation = OP(CUMSUM), .inputs = {x[0]}, .axes = {-1}, .axis_count = 1,
       .exclusive = true)
DEFINE(cumprod_back, .operation = OP(CUMPROD), .inputs = {x[0]}, .axes = {1}, .axis_count = 1,
       .reverse = true)
DEFINE(cummax, .operation = OP(CUMMAX), .inputs = {x[0]}, .axes = {1}, .axis_count = 1)
DEFINE(cummin_back, .operation = OP(CUMMIN), .inputs = {x[0]}, .axes = {0}, .axis_count = 1, .reverse = true)
DEFINE(reshape, .operation = OP(RESHAPE), .inputs = {x[0]}, .shape = {2, {-1, 2}})
DEFINE(transpose, .operation = OP(TRANSPOSE), .inputs = {x[0]}, .axes = {1, 2, 0}, .axis_count = 3)
DEFINE(broadcast, .operation = OP(BROADCAST_TO), .inputs = {x[0]}, .shape = {4, {2, 2, 3, 4}})
DEFINE(expand, .operation = OP(EXPAND_DIMS), .inputs = {x[0]}, .axes = {0, -1}, .axis_count = 2)
DEFINE(concatenate, .operation = OP(CONCATENATE), .inputs = {x[0], x[1], x[0]}, .axes = {1}, .axis_count = 1)
DEFINE(stack, .operation = OP(STACK), .inputs = {x[0], x[1]}, .axes = {-1}, .axis_count = 1)
DEFINE(slice, .operation = OP(SLICE), .inputs = {x[0]}, .starts = {1, 3}, .stops = {4, -1}, .steps = {2, -2})
DEFINE(slice_update, .operation = OP(SLICE_UPDATE), .inputs = {x[0], x[1]}, .starts = {1, 3},
       .stops = {4, -1}, .steps = {2, -2})
DEFINE(pad, .operation = OP(PAD), .inputs = {x[0], x[1]}, .starts = {1, 0}, .stops = {2, 3})
DEFINE(tril, .operation = OP(TRIL), .inputs = {x[0]}, .offset = -1)
DEFINE(tensordot, .operation = OP(TENSORDOT), .inputs = {x[0], x[1]}, .axes = {0, 2, 1, 0}, .axis_count = 4)

static smelt_array *where(smelt_array **x) {
    smelt_array *condition = APPLY(.operation = OP(GREATER), .inputs = {x[0], x[1]});
    smelt_array *y = APPLY(.operation = OP(WHERE), .inputs = {condition, x[0], x[1]});
    smelt_array_release(condition);
    return y;
}

/* Index arrays with repeated, negative and far too large entries. */
static smelt_array *indices(int which) {
    static const int32_t first[6] = {0, 2, -1, 2, 99, 1}, second[3] = {1, -4, 0};
    smelt_array *array;
    OK(smelt_array_from_values(SMELT_INT32, which ? (smelt_shape){1, {3}} : (smelt_shape){2, {2, 3}},
                               which ? second : first, &array));
    return array;
}

static smelt_array *with_indices(smelt_apply_desc desc, int at) {
    smelt_array *i = indices(0), *j = indices(1);
    desc.inputs[at] = i;
    if (desc.no_axes) desc.inputs[at + 1] = j;
    smelt_array *y = apply_ok(&desc, __FILE__, __LINE__);
    smelt_array_release(i);
    smelt_array_release(j);
    return y;
}

static smelt_array *take(smelt_array **x) {
    return with_indices(
        (smelt_apply_desc){.operation = OP(TAKE), .inputs = {x[0]}, .axes = {1}, .axis_count = 1}, 1);
}
static smelt_array *take_flat(smelt_array **x) {
    return with_indices((smelt_apply_desc){.operation = OP(TAKE), .inputs = {x[0]}}, 1);
}
static smelt_array *take_along(smelt_array **x) {
    return with_indices(
        (smelt_apply_desc){.operation = OP(TAKE_ALONG_AXIS), .inputs = {x[0]}, .axes = {1}, .axis_count = 1},
        1);
}
/* Two arrays of indices, which is what no_axes means to with_indices. */
static smelt_array *gather(smelt_array **x) {
    return with_indices((smelt_apply_desc){.operation = OP(GATHER),
                                           .inputs = {x[0]},
                                           .axes = {0, 2},
                                           .axis_count = 2,
                                           .offset = 1,
                                           .no_axes = true},
                        1);
}
static smelt_array *scatter(smelt_array **x) {
    return with_indices((smelt_apply_desc){.operation = OP(SCATTER),
                                           .inputs = {x[0], x[1]},
                                           .axes = {0, 2},
                                           .axis_count = 2,
                                           .offset = 1,
                                           .no_axes = true},
                        2);
}
static smelt_array *scatter_add(smelt_array **x) {
    return with_indices(
        (smelt_apply_desc){
            .operation = OP(SCATTER_ADD), .inputs = {x[0], x[1]}, .axes = {1}, .axis_count = 1},
        2);
}

/* ---- With numbers, as Python gives them: weak, float64, on the host. */

static smelt_array *with_number(smelt_apply_desc desc, int at, double value) {
    smelt_array *number;
    OK(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){0}, &value, &number));
    for (int i = SMELT_MAX_ARGUMENTS - 1; i > at; i--) desc.inputs[i] = desc.inputs[i - 1];
    desc.inputs[at] = number;
    desc.weak = UINT64_C(1) << at;
    smelt_array *y = apply_ok(&desc, __FILE__, __LINE__);
    smelt_array_release(number);
    return y;
}

/* clang-format off */
#define NUMBER(name, upper, at, value)                                                                \
    static smelt_array *name(smelt_array **x) {                                                       \
        return with_number((smelt_apply_desc){.operation = OP(upper), .inputs = {x[0]}}, at, value);  \
    }
NUMBER(times_number, MULTIPLY, 1, 3.3)
NUMBER(by_number, DIVIDE, 1, 0.7)
NUMBER(number_by, DIVIDE, 0, 1.3)
NUMBER(number_minus, SUBTRACT, 0, 0.9)
NUMBER(to_power_number, POWER, 1, 2.5)
NUMBER(number_to_power, POWER, 0, 1.7)
NUMBER(at_least_number, MAXIMUM, 1, 0.2)
NUMBER(remainder_by_number, REMAINDER, 1, 0.4)
NUMBER(angle_to_number, ARCTAN2, 1, 0.6)
NUMBER(added_to_number, LOGADDEXP, 0, 0.1)
NUMBER(inner_with_number, INNER, 1, 1.9)
/* clang-format on */

static smelt_array *where_number(smelt_array **x) {
    smelt_array *condition = APPLY(.operation = OP(GREATER), .inputs = {x[0], x[1]});
    smelt_array *y =
        with_number((smelt_apply_desc){.operation = OP(WHERE), .inputs = {condition, x[0]}}, 2, 0.3);
    smelt_array_release(condition);
    return y;
}
static smelt_array *pad_with_number(smelt_array **x) {
    return with_number(
        (smelt_apply_desc){.operation = OP(PAD), .inputs = {x[0]}, .starts = {1, 0}, .stops = {2, 3}}, 1,
        0.3);
}
static smelt_array *update_with_number(smelt_array **x) {
    return with_number((smelt_apply_desc){.operation = OP(SLICE_UPDATE),
                                          .inputs = {x[0]},
                                          .starts = {1, 3},
                                          .stops = {4, -1},
                                          .steps = {2, -2}},
                       1, 0.3);
}
static smelt_array *cube_by_number(smelt_array **x) {
    return with_number((smelt_apply_desc){.operation = OP(POWER), .inputs = {x[0]}}, 1, 3);
}

/* ---- The problems. */

static const struct problem {
    const char *name;
    function *f;
    int count;
    smelt_shape shapes[3];
    double low, high;

} problems[] = {
#define ONE(upper, low, high) {#upper, f_##upper, 1, {{2, {3, 4}}}, low, high}
    ONE(NEGATIVE, -2, 2),
    ONE(ABS, 0.1, 2),
    ONE(EXP, -2, 2),
    ONE(EXPM1, -2, 2),
    ONE(LOG, 0.5, 2),
    ONE(LOG2, 0.5, 2),
    ONE(LOG10, 0.5, 2),
    ONE(LOG1P, -0.5, 2),
    ONE(SQRT, 0.5, 2),
    ONE(RSQRT, 0.5, 2),
    ONE(SQUARE, -2, 2),
    ONE(RECIPROCAL, 0.5, 2),
    ONE(SIN, -2, 2),
    ONE(COS, -2, 2),
    ONE(TAN, -1, 1),
    ONE(ARCSIN, -0.8, 0.8),
    ONE(ARCCOS, -0.8, 0.8),
    ONE(ARCTAN, -2, 2),
    ONE(SINH, -2, 2),
    ONE(COSH, -2, 2),
    ONE(TANH, -2, 2),
    ONE(ARCSINH, -2, 2),
    ONE(ARCCOSH, 1.5, 3),
    ONE(ARCTANH, -0.8, 0.8),
    ONE(SIGMOID, -2, 2),
    ONE(ERF, -2, 2),
    ONE(ERFINV, -0.8, 0.8),
    ONE(FLOOR, 0.1, 0.9),
    ONE(REAL, -2, 2),
    ONE(CONJUGATE, -2, 2),
    ONE(IDENTITY, -2, 2),
    ONE(SUM, -2, 2),
    ONE(PROD, -2, 2),
    ONE(MAX, -2, 2),
    ONE(MIN, -2, 2),
    ONE(CUMSUM, -2, 2),
    ONE(CUMPROD, 0.5, 2),
    ONE(LOGSUMEXP, -2, 2),
    ONE(TRANSPOSE, -2, 2),
    ONE(FLATTEN, -2, 2),
#define TWO(upper, low, high)                                                                 \
    {#upper, f_##upper, 2, {{2, {3, 4}}, {1, {4}}}, low, high}, {                             \
        #upper " of columns and rows", f_##upper, 2, {{2, {3, 1}}, {3, {2, 1, 4}}}, low, high \
    }
    TWO(ADD, -2, 2),
    TWO(SUBTRACT, -2, 2),
    TWO(MULTIPLY, -2, 2),
    TWO(DIVIDE, 0.5, 2),
    TWO(REMAINDER, 0.5, 2),
    TWO(POWER, 0.5, 2),
    TWO(MAXIMUM, -2, 2),
    TWO(MINIMUM, -2, 2),
    TWO(ARCTAN2, 0.5, 2),
    TWO(LOGADDEXP, -2, 2),
    TWO(OUTER, -2, 2),
    {"matmul", f_MATMUL, 2, {{2, {3, 4}}, {2, {4, 2}}}, -2, 2},
    {"matmul of batches", f_MATMUL, 2, {{3, {2, 3, 4}}, {4, {3, 1, 4, 2}}}, -2, 2},
    {"matmul of a vector", f_MATMUL, 2, {{1, {4}}, {3, {2, 4, 3}}}, -2, 2},
    {"matmul by a vector", f_MATMUL, 2, {{3, {2, 3, 4}}, {1, {4}}}, -2, 2},
    {"matmul of vectors", f_MATMUL, 2, {{1, {4}}, {1, {4}}}, -2, 2},
    {"inner", f_INNER, 2, {{2, {3, 4}}, {2, {2, 4}}}, -2, 2},
    {"tensordot", tensordot, 2, {{3, {2, 3, 4}}, {3, {4, 2, 2}}}, -2, 2},
    {"clip", clip, 3, {{2, {3, 4}}, {0}, {1, {4}}}, -2, 2},
    {"sum over axes", sum_axes, 1, {{3, {2, 3, 4}}}, -2, 2},
    {"prod over axes", prod_axes, 1, {{3, {2, 3, 2}}}, -2, 2},
    {"max over an axis", max_axis, 1, {{2, {3, 4}}}, -2, 2},
    {"mean", mean, 1, {{2, {3, 4}}}, -2, 2},
    {"var", var, 1, {{2, {3, 4}}}, -2, 2},
    {"std", std, 1, {{2, {3, 4}}}, -2, 2},
    {"softmax", softmax, 1, {{2, {3, 4}}}, -2, 2},
    {"cumsum back", cumsum_back, 1, {{2, {3, 4}}}, -2, 2},
    {"cumsum before", cumsum_before, 1, {{2, {3, 4}}}, -2, 2},
    {"cumprod back", cumprod_back, 1, {{2, {3, 4}}}, 0.5, 2},
    {"cummax", cummax, 1, {{2, {3, 5}}}, -2, 2},
    {"cummin back", cummin_back, 1, {{2, {5, 3}}}, -2, 2},
    {"reshape", reshape, 1, {{2, {3, 4}}}, -2, 2},
    {"transpose", transpose, 1, {{3, {2, 3, 4}}}, -2, 2},
    {"broadcast_to", broadcast, 1, {{3, {2, 1, 4}}}, -2, 2},
    {"expand_dims", expand, 1, {{2, {3, 4}}}, -2, 2},
    {"concatenate", concatenate, 2, {{2, {3, 2}}, {2, {3, 3}}}, -2, 2},
    {"stack", stack, 2, {{2, {3, 2}}, {2, {3, 2}}}, -2, 2},
    {"slice", slice, 1, {{2, {4, 5}}}, -2, 2},
    {"slice_update", slice_update, 2, {{2, {4, 5}}, {2, {2, 1}}}, -2, 2},
    {"pad", pad, 2, {{2, {2, 3}}, {0}}, -2, 2},
    {"tril", tril, 1, {{3, {2, 3, 3}}}, -2, 2},
    {"where", where, 2, {{2, {3, 4}}, {1, {4}}}, -2, 2},
    {"take", take, 1, {{3, {2, 3, 2}}}, -2, 2},
    {"take of all", take_flat, 1, {{2, {2, 3}}}, -2, 2},
    {"take_along_axis", take_along, 1, {{2, {2, 3}}}, -2, 2},
    {"gather", gather, 1, {{3, {3, 2, 4}}}, -2, 2},
    {"scatter", scatter, 2, {{3, {3, 2, 4}}, {3, {2, 2, 3}}}, -2, 2},
    {"scatter_add", scatter_add, 2, {{2, {2, 3}}, {1, {1}}}, -2, 2},
#define WITH_NUMBER(f) {#f, f, 1, {{2, {3, 4}}}, 0.5, 2}
    WITH_NUMBER(times_number),
    WITH_NUMBER(by_number),
    WITH_NUMBER(number_by),
    WITH_NUMBER(number_minus),
    WITH_NUMBER(to_power_number),
    WITH_NUMBER(number_to_power),
    WITH_NUMBER(cube_by_number),
    WITH_NUMBER(at_least_number),
    {"remainder_by_number", remainder_by_number, 1, {{2, {3, 4}}}, 0.45, 0.75},
    WITH_NUMBER(angle_to_number),
    WITH_NUMBER(added_to_number),
    WITH_NUMBER(inner_with_number),
    {"where_number", where_number, 2, {{2, {3, 4}}, {1, {4}}}, -2, 2},
    WITH_NUMBER(pad_with_number),
    {"update_with_number", update_with_number, 1, {{2, {4, 5}}}, -2, 2},
};

static smelt_array *random_like(const smelt_array *array) {
    return random_array(array->dtype, array->shape, CONTIGUOUS, -1, 1);
}

static double dot(smelt_array *a, smelt_array *b) {
    double *x = numbers_of(a), *y = numbers_of(b), sum = 0;
    for (int64_t i = 0; i < a->size; i++) sum += x[i] * y[i];
    free(x);
    free(y);
    return sum;
}

/* w · f at x moved by t along v. */
static double moved(function *f, smelt_array **x, smelt_array **v, int count, smelt_array *w, double t) {
    smelt_array *y[3];
    for (int i = 0; i < count; i++) {
        double *at = numbers_of(x[i]), *along = numbers_of(v[i]);
        for (int64_t k = 0; k < x[i]->size; k++) at[k] += t * along[k];
        OK(smelt_array_from_values(SMELT_FLOAT64, x[i]->shape, at, &y[i]));
        free(at);
        free(along);
    }
    smelt_array *result = f(y);
    double value = dot(result, w);
    smelt_array_release(result);
    for (int i = 0; i < count; i++) smelt_array_release(y[i]);
    return value;
}

static void compare(const char *name, const char *what, double got, double want) {
    if (!(fabs(got - want) <= 2e-6 * (1 + fabs(want))))
        FAIL_TEST("%s: %s is %.10g, expected %.10g", name, what, got, want);
}

/* Along a random direction, and along each single element. */
static void gradients_equal_differences(void **state) {
    (void)state;
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
        const struct problem *problem = &problems[p];
        smelt_array *x[3], *v[3], *gradient[3], *tangent;
        smelt_tape *tape;
        int count = problem->count;
        for (int i = 0; i < count; i++)
            x[i] = random_array(SMELT_FLOAT64, problem->shapes[i], i ? CONTIGUOUS : TRANSPOSED, problem->low,
                                problem->high);
        OK(smelt_tape_begin(&tape));
        for (int i = 0; i < count; i++) OK(smelt_tape_watch(tape, x[i]));
        smelt_array *y = problem->f(x);
        OK(smelt_tape_end(tape));
        smelt_array *w = random_like(y);
        OK(smelt_tape_vjp(tape, &y, 1, &w, x, count, gradient));
        for (int i = 0; i < count; i++) {
            v[i] = random_like(x[i]);
            assert_shape(gradient[i], x[i]->shape);
        }
        const double h = 1e-6;
        for (int i = 0; i < count; i++)
            for (int64_t k = 0; k < x[i]->size; k++) {
                smelt_array *unit[3];
                for (int j = 0; j < count; j++) {
                    OK(smelt_array_create(SMELT_FLOAT64, x[j]->shape, &unit[j]));
                    OK(smelt_array_fill(unit[j], 0));
                }
                ((double *)unit[i]->data)[k] = 1;
                double difference =
                    (moved(problem->f, x, unit, count, w, h) - moved(problem->f, x, unit, count, w, -h)) /
                    (2 * h);
                compare(problem->name, "an element of the gradient", dot(gradient[i], unit[i]), difference);
                for (int j = 0; j < count; j++) smelt_array_release(unit[j]);
            }
        OK(smelt_tape_jvp(tape, x, count, v, &y, 1, &tangent));
        assert_shape(tangent, y->shape);
        double along =
            (moved(problem->f, x, v, count, w, h) - moved(problem->f, x, v, count, w, -h)) / (2 * h);
        compare(problem->name, "the tangent", dot(tangent, w), along);
        smelt_tape_release(tape);
        for (int i = 0; i < count; i++) {
            smelt_array_release(x[i]);
            smelt_array_release(v[i]);
            smelt_array_release(gradient[i]);
        }
        smelt_array_release(w);
        smelt_array_release(y);
        smelt_array_release(tangent);
    }
}

/* The gradient along v, as a function that is differentiated again. */
static double gradient_along(function *f, smelt_array **x, smelt_array **v, int count, double t) {
    smelt_array *at[3], *gradient[3];
    smelt_tape *tape;
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double *numbers = numbers_of(x[i]), *along = numbers_of(v[i]);
        for (int64_t k = 0; k < x[i]->size; k++) numbers[k] += t * along[k];
        OK(smelt_array_from_values(SMELT_FLOAT64, x[i]->shape, numbers, &at[i]));
        free(numbers);
        free(along);
    }
    OK(smelt_tape_begin(&tape));
    for (int i = 0; i < count; i++) OK(smelt_tape_watch(tape, at[i]));
    smelt_array *y = f(at), *z = APPLY(.operation = OP(SQUARE), .inputs = {y});
    OK(smelt_tape_end(tape));
    OK(smelt_tape_vjp(tape, &z, 1, NULL, at, count, gradient));
    smelt_tape_release(tape);
    for (int i = 0; i < count; i++) {
        sum += dot(gradient[i], v[i]);
        smelt_array_release(gradient[i]);
        smelt_array_release(at[i]);
    }
    smelt_array_release(y);
    smelt_array_release(z);
    return sum;
}

/* Two tapes, of sum(f(x)²): the derivative of its gradient. */
static void gradients_of_gradients(void **state) {
    (void)state;
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
        if (!in_sample(p + 1, 3)) continue;
        const struct problem *problem = &problems[p];
        smelt_array *x[3], *v[3], *gradient[3], *second[3];
        smelt_tape *outer, *inner;
        int count = problem->count;
        for (int i = 0; i < count; i++) {
            x[i] = random_array(SMELT_FLOAT64, problem->shapes[i], CONTIGUOUS, problem->low, problem->high);
            v[i] = random_like(x[i]);
        }
        OK(smelt_tape_begin(&outer));
        for (int i = 0; i < count; i++) OK(smelt_tape_watch(outer, x[i]));
        OK(smelt_tape_begin(&inner));
        for (int i = 0; i < count; i++) OK(smelt_tape_watch(inner, x[i]));
        smelt_array *y = problem->f(x), *z = APPLY(.operation = OP(SQUARE), .inputs = {y});
        OK(smelt_tape_end(inner));
        OK(smelt_tape_vjp(inner, &z, 1, NULL, x, count, gradient));
        smelt_tape_release(inner);
        OK(smelt_tape_end(outer));
        OK(smelt_tape_vjp(outer, gradient, count, v, x, count, second));
        smelt_tape_release(outer);
        double got = 0, want, h = 1e-5;
        for (int i = 0; i < count; i++) got += dot(second[i], v[i]);
        want = (gradient_along(problem->f, x, v, count, h) - gradient_along(problem->f, x, v, count, -h)) /
               (2 * h);
        if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
            FAIL_TEST("%s: the second derivative is %.10g, expected %.10g", problem->name, got, want);
        for (int i = 0; i < count; i++) {
            smelt_array *arrays[] = {x[i], v[i], gradient[i], second[i]};
            for (int k = 0; k < 4; k++) smelt_array_release(arrays[k]);
        }
        smelt_array_release(y);
        smelt_array_release(z);
    }
}

/* float32, which kernels compute, against float64, which plain loops do. */
static void kernels_equal_plain_loops(void **state) {
    (void)state;
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
        if (!in_sample(p, 3)) continue;
        const struct problem *problem = &problems[p];
        smelt_array *x[2][3], *y[2], *w[2], *gradient[2][3];
        for (int wide = 0; wide < 2; wide++) {
            smelt_tape *tape;
            for (int i = 0; i < problem->count; i++) {
                if (wide)
                    OK(smelt_array_convert(x[0][i], SMELT_FLOAT64, &x[1][i]));
                else
                    x[0][i] =
                        random_array(SMELT_FLOAT32, problem->shapes[i], SLICED, problem->low, problem->high);
            }
            OK(smelt_tape_begin(&tape));
            for (int i = 0; i < problem->count; i++) OK(smelt_tape_watch(tape, x[wide][i]));
            y[wide] = problem->f(x[wide]);
            if (wide)
                OK(smelt_array_convert(w[0], SMELT_FLOAT64, &w[1]));
            else
                w[0] = random_like(y[0]);
            OK(smelt_tape_vjp(tape, &y[wide], 1, &w[wide], x[wide], problem->count, gradient[wide]));
            smelt_tape_release(tape);
        }
        double *want = numbers_of(y[1]);
        assert_int_equal(y[0]->dtype, SMELT_FLOAT32);
        assert_numbers(y[0], want, 2e-5, 2e-6);
        free(want);
        for (int i = 0; i < problem->count; i++) {
            want = numbers_of(gradient[1][i]);
            double *got = numbers_of(gradient[0][i]);
            assert_int_equal(gradient[0][i]->dtype, SMELT_FLOAT32);
            for (int64_t k = 0; k < x[0][i]->size; k++)
                if (!close_to(got[k], want[k], 5e-5, 2e-5))
                    FAIL_TEST("%s: gradient %d has %.9g at %d, expected %.9g", problem->name, i, got[k],
                              (int)k, want[k]);
            free(want);
            free(got);
        }
        for (int wide = 0; wide < 2; wide++) {
            for (int i = 0; i < problem->count; i++) {
                smelt_array_release(x[wide][i]);
                smelt_array_release(gradient[wide][i]);
            }
            smelt_array_release(y[wide]);
            smelt_array_release(w[wide]);
        }
    }
}

/* float64 occurs only as weak numbers: elsewhere plain loops would compute it, and a device could not. */
static void check_nodes(const smelt_tape *tape, const char *problem) {
    for (int n = 0; n < tape->node_count; n++) {
        const struct node *node = &tape->nodes[n];
        const char *name = smelt_operation_name(node->desc.operation);
        if (node->outputs[0]->dtype == SMELT_FLOAT64)
            FAIL_TEST("%s: %s gave float64, expected float32", problem, name);
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i]->dtype == SMELT_FLOAT64 && !(node->desc.weak >> i & 1))
                FAIL_TEST("%s: input %d of %s is a float64 that is not weak", problem, i, name);
    }
}

/* Gradients, tangents, and the derivatives of both. The fake driver also runs this test: its kernels do
 * nothing, but every step must reach it. */
static void numbers_do_not_widen(void **state) {
    (void)state;
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
        const struct problem *problem = &problems[p];
        int count = problem->count;
        smelt_array *x[3], *v[3], *results[4], *seconds[3], *w;
        smelt_tape *watching, *outer, *inner;
        for (int i = 0; i < count; i++) {
            x[i] = random_array(SMELT_FLOAT32, problem->shapes[i], CONTIGUOUS, problem->low, problem->high);
            v[i] = random_like(x[i]);
        }
        OK(smelt_tape_begin(&watching));
        OK(smelt_tape_begin(&outer));
        for (int i = 0; i < count; i++) {
            OK(smelt_tape_watch(watching, x[i]));
            OK(smelt_tape_watch(watching, v[i]));
            OK(smelt_tape_watch(outer, x[i]));
        }
        OK(smelt_tape_begin(&inner));
        for (int i = 0; i < count; i++) OK(smelt_tape_watch(inner, x[i]));
        smelt_array *y = problem->f(x);
        OK(smelt_tape_end(inner));
        w = random_like(y);
        OK(smelt_tape_watch(watching, w));
        OK(smelt_tape_vjp(inner, &y, 1, &w, x, count, results));
        OK(smelt_tape_jvp(inner, x, count, v, &y, 1, &results[count]));
        OK(smelt_tape_end(outer));
        OK(smelt_tape_vjp(outer, results, count + 1, NULL, x, count, seconds));
        OK(smelt_tape_end(watching));
        check_nodes(watching, problem->name);
        smelt_tape_release(inner);
        smelt_tape_release(outer);
        smelt_tape_release(watching);
        for (int i = 0; i < count; i++) {
            smelt_array *arrays[] = {x[i], v[i], results[i], seconds[i]};
            for (int k = 0; k < 4; k++) smelt_array_release(arrays[k]);
        }
        smelt_array_release(results[count]);
        smelt_array_release(y);
        smelt_array_release(w);
    }
}

/* With respect to a float64 vector that is rounded twice, and to a weak float64 number: contributions
 * computed on a device are added in float64. */
static void numbers_in_float64_have_gradients(void **state) {
    (void)state;
    smelt_array *x, *number, *gradients[2], *seconds[2];
    smelt_tape *tape, *outer;
    OK(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){1, {2}}, (double[]){2, -3}, &x));
    OK(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){0}, &(double){5}, &number));
    smelt_array *watched[] = {x, number};
    OK(smelt_tape_begin(&outer));
    OK(smelt_tape_begin(&tape));
    for (int i = 0; i < 2; i++) {
        OK(smelt_tape_watch(outer, watched[i]));
        OK(smelt_tape_watch(tape, watched[i]));
    }
    smelt_apply_desc rounding = {
        .operation = OP(ASTYPE), .inputs = {x}, .dtype = SMELT_FLOAT32, .device = test_device()};
    smelt_array *a = apply_ok(&rounding, __FILE__, __LINE__), *b = apply_ok(&rounding, __FILE__, __LINE__);
    smelt_array *square = APPLY(.operation = OP(MULTIPLY), .inputs = {a, b});
    smelt_array *scaled = APPLY(.operation = OP(MULTIPLY), .inputs = {square, number}, .weak = 2);
    smelt_array *y = APPLY(.operation = OP(MULTIPLY), .inputs = {scaled, number}, .weak = 2);
    OK(smelt_tape_end(tape));
    OK(smelt_tape_vjp(tape, &y, 1, NULL, watched, 2, gradients)); /* 2 n² x, 2 n Σ x² */
    OK(smelt_tape_end(outer));
    OK(smelt_tape_vjp(outer, gradients, 2, NULL, watched, 2, seconds));
    smelt_array *found[] = {gradients[0], gradients[1], seconds[0], seconds[1]};
    const double want[4][2] = {{100, -150}, {130}, {50 + 40, 50 - 60}, {-20 + 26}};
    const char *driver = getenv("SMELT_CUDA_DRIVER");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(found[i]->dtype, SMELT_FLOAT64);
        assert_string_equal(smelt_array_device(found[i]), "cpu");
        if (!driver || !*driver)
            assert_numbers(found[i], want[i], 1e-6, 0); /* otherwise it is the fake one */
    }
    smelt_tape_release(tape);
    smelt_tape_release(outer);
    smelt_array *arrays[] = {x, number, a, b, square, scaled, y};
    for (int i = 0; i < 7; i++) smelt_array_release(arrays[i]);
    for (int i = 0; i < 4; i++) smelt_array_release(found[i]);
}

/* The argument: the tests to run, as a pattern; without it, all. */
int main(int count, char **arguments) {
    test_quick_code();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_differences),       cmocka_unit_test(gradients_of_gradients),
        cmocka_unit_test(kernels_equal_plain_loops),         cmocka_unit_test(numbers_do_not_widen),
        cmocka_unit_test(numbers_in_float64_have_gradients),
    };
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
