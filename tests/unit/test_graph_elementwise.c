/* Elementwise operations against C's own functions in double, on every layout and dtype. */
#include "graph.h"

/* ---- References. */

static double ref_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double ref_rsqrt(double x) {
    return 1 / sqrt(x);
}
static double ref_square(double x) {
    return x * x;
}
static double ref_reciprocal(double x) {
    return 1 / x;
}
static double ref_negative(double x) {
    return -x;
}
static double ref_sign(double x) {
    return (x > 0) - (x < 0);
}
static double ref_not(double x) {
    return x == 0;
}
static double ref_isfinite(double x) {
    return isfinite(x) != 0;
}
static double ref_same(double x) {
    return x;
}
static double ref_zero(double x) {
    return 0 * x;
}

static double ref_add(double x, double y) {
    return x + y;
}
static double ref_subtract(double x, double y) {
    return x - y;
}
static double ref_multiply(double x, double y) {
    return x * y;
}
static double ref_divide(double x, double y) {
    return x / y;
}
static double ref_remainder(double x, double y) {
    return x - floor(x / y) * y;
}
static double ref_floor_divide(double x, double y) {
    return floor(x / y);
}
static double ref_logaddexp(double x, double y) {
    return log(exp(x) + exp(y));
}
static double ref_equal(double x, double y) {
    return x == y;
}
/* By halving. */
static double ref_erfinv(double x) {
    double low = -7, high = 7;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        *(erf(middle) < x ? &low : &high) = middle;
    }
    return low;
}
static double ref_not_equal(double x, double y) {
    return x != y;
}
static double ref_less(double x, double y) {
    return x < y;
}
static double ref_less_equal(double x, double y) {
    return x <= y;
}
static double ref_greater(double x, double y) {
    return x > y;
}
static double ref_greater_equal(double x, double y) {
    return x >= y;
}
static double ref_and(double x, double y) {
    return x != 0 && y != 0;
}
static double ref_or(double x, double y) {
    return x != 0 || y != 0;
}

static const struct unary {
    smelt_operation operation;
    double (*reference)(double);
    double low, high;
} unary[] = {
    {OP(NEGATIVE), ref_negative, -9, 9},
    {OP(ABS), fabs, -9, 9},
    {OP(SIGN), ref_sign, -2, 2},
    {OP(EXP), exp, -9, 9},
    {OP(EXPM1), expm1, -2, 2},
    {OP(LOG), log, 0.01, 9},
    {OP(LOG2), log2, 0.01, 9},
    {OP(LOG10), log10, 0.01, 9},
    {OP(LOG1P), log1p, -0.9, 3},
    {OP(SQRT), sqrt, 0, 9},
    {OP(RSQRT), ref_rsqrt, 0.1, 9},
    {OP(SQUARE), ref_square, -9, 9},
    {OP(RECIPROCAL), ref_reciprocal, 1, 9},
    {OP(SIN), sin, -9, 9},
    {OP(COS), cos, -9, 9},
    {OP(TAN), tan, -1, 1},
    {OP(ARCSIN), asin, -1, 1},
    {OP(ARCCOS), acos, -1, 1},
    {OP(ARCTAN), atan, -9, 9},
    {OP(SINH), sinh, -4, 4},
    {OP(COSH), cosh, -4, 4},
    {OP(TANH), tanh, -4, 4},
    {OP(ARCSINH), asinh, -9, 9},
    {OP(ARCCOSH), acosh, 1.1, 9},
    {OP(ARCTANH), atanh, -0.9, 0.9},
    {OP(SIGMOID), ref_sigmoid, -9, 9},
    {OP(ERF), erf, -4, 4},
    {OP(ERFINV), ref_erfinv, -0.9999, 0.9999},
    {OP(FLOOR), floor, -9, 9},
    {OP(CEIL), ceil, -9, 9},
    {OP(ROUND), rint, -9, 9},
    {OP(LOGICAL_NOT), ref_not, -2, 2},
    {OP(ISFINITE), ref_isfinite, -2, 2},
    {OP(REAL), ref_same, -9, 9},
    {OP(IMAG), ref_zero, -9, 9},
    {OP(CONJUGATE), ref_same, -9, 9},
};

static const struct binary {
    smelt_operation operation;
    double (*reference)(double, double);
    double low, high, second_low, second_high;
} binary[] = {
    {OP(ADD), ref_add, -9, 9, -9, 9},
    {OP(SUBTRACT), ref_subtract, -9, 9, -9, 9},
    {OP(MULTIPLY), ref_multiply, -9, 9, -9, 9},
    {OP(DIVIDE), ref_divide, -9, 9, 1, 9},
    {OP(FLOOR_DIVIDE), ref_floor_divide, -90, 90, 1, 9},
    {OP(REMAINDER), ref_remainder, -90, 90, 1, 9},
    {OP(POWER), pow, 0.1, 5, -3, 3},
    {OP(MAXIMUM), fmax, -9, 9, -9, 9},
    {OP(MINIMUM), fmin, -9, 9, -9, 9},
    {OP(ARCTAN2), atan2, -9, 9, -9, 9},
    {OP(LOGADDEXP), ref_logaddexp, -9, 9, -9, 9},
    {OP(EQUAL), ref_equal, -2, 2, -2, 2},
    {OP(NOT_EQUAL), ref_not_equal, -2, 2, -2, 2},
    {OP(LESS), ref_less, -2, 2, -2, 2},
    {OP(LESS_EQUAL), ref_less_equal, -2, 2, -2, 2},
    {OP(GREATER), ref_greater, -2, 2, -2, 2},
    {OP(GREATER_EQUAL), ref_greater_equal, -2, 2, -2, 2},
    {OP(LOGICAL_AND), ref_and, -2, 2, -2, 2},
    {OP(LOGICAL_OR), ref_or, -2, 2, -2, 2},
};

/* Halfs are rounded once; the absolute part is for results near 0 of large terms. */
static void check(smelt_array *result, const double *want, const char *what) {
    double *got = numbers_of(result);
    double relative = tolerance_of(result->dtype);
    for (int64_t i = 0; i < result->size; i++)
        if (!close_to(got[i], want[i], relative, relative * 0.05))
            FAIL_TEST("%s: element %lld is %.9g, expected %.9g (%s)", what, (long long)i, got[i], want[i],
                      smelt_dtype_name(result->dtype));
    free(got);
}

static void check_unary(const struct unary *row, smelt_dtype dtype, smelt_shape shape, enum layout layout) {
    smelt_array *x = random_array(dtype, shape, layout, row->low, row->high);
    struct keepsake before = remember(x);
    double *want = numbers_of(x);
    for (int64_t i = 0; i < x->size; i++) want[i] = row->reference(want[i]);
    smelt_array *result = APPLY(.operation = row->operation, .inputs = {x});
    assert_shape(result, shape);
    check(result, want, smelt_operation_name(row->operation));
    assert_unchanged(&before);
    free(want);
    smelt_array_release(result);
    smelt_array_release(x);
}

static void unary_equals_the_reference(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            if (layout == CONTIGUOUS || in_sample(i + (size_t)layout, 6))
                check_unary(&unary[i], SMELT_FLOAT32, (smelt_shape){3, {3, 5, 37}}, (enum layout)layout);
}

static void unary_of_other_dtypes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
        if (in_sample(i, 3))
            check_unary(&unary[i], i / 2 % 2 ? SMELT_FLOAT16 : SMELT_BFLOAT16, (smelt_shape){1, {1500}},
                        CONTIGUOUS);
        if (in_sample(i + 1, 3)) check_unary(&unary[i], SMELT_FLOAT64, (smelt_shape){2, {3, 7}}, REVERSED);
    }
}

static void check_binary(const struct binary *row, smelt_dtype dtype, smelt_shape shape, enum layout a_layout,
                         smelt_shape b_shape, enum layout b_layout) {
    smelt_array *a = random_array(dtype, shape, a_layout, row->low, row->high);
    smelt_array *b = random_array(dtype, b_shape, b_layout, row->second_low, row->second_high), *wide;
    struct keepsake a_before = remember(a), b_before = remember(b);
    wide = APPLY(.operation = OP(BROADCAST_TO), .inputs = {b}, .shape = shape);
    double *want = numbers_of(a), *second = numbers_of(wide);
    for (int64_t i = 0; i < a->size; i++) want[i] = row->reference(want[i], second[i]);
    smelt_array *result = APPLY(.operation = row->operation, .inputs = {a, b});
    assert_shape(result, shape);
    check(result, want, smelt_operation_name(row->operation));
    assert_unchanged(&a_before);
    assert_unchanged(&b_before);
    free(want);
    free(second);
    smelt_array_release(wide);
    smelt_array_release(result);
    smelt_array_release(a);
    smelt_array_release(b);
}

static void binary_equals_the_reference(void **state) {
    (void)state;
    smelt_shape shape = {3, {4, 6, 33}};
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
        check_binary(&binary[i], SMELT_FLOAT32, shape, CONTIGUOUS, shape, CONTIGUOUS);
        if (in_sample(i, 3))
            check_binary(&binary[i], SMELT_FLOAT32, shape, SLICED, (smelt_shape){1, {33}}, CONTIGUOUS);
        if (in_sample(i + 1, 3))
            check_binary(&binary[i], SMELT_FLOAT32, shape, TRANSPOSED, (smelt_shape){2, {6, 1}}, REVERSED);
        if (in_sample(i + 2, 3))
            check_binary(&binary[i], SMELT_FLOAT32, shape, CONTIGUOUS, (smelt_shape){0}, CONTIGUOUS);
        if (in_sample(i, 4))
            check_binary(&binary[i], SMELT_FLOAT64, shape, REVERSED, (smelt_shape){3, {4, 1, 33}}, SLICED);
        if (in_sample(i + 1, 2))
            check_binary(&binary[i], i / 2 % 2 ? SMELT_FLOAT16 : SMELT_BFLOAT16, shape, CONTIGUOUS, shape,
                         CONTIGUOUS);
    }
}

/* Five dimensions that cannot be joined. */
static void many_dimensions(void **state) {
    (void)state;
    smelt_shape shape = {5, {2, 3, 4, 5, 6}};
    check_binary(&binary[0], SMELT_FLOAT32, shape, SLICED, (smelt_shape){5, {2, 1, 4, 1, 6}}, TRANSPOSED);
    check_binary(&binary[0], SMELT_FLOAT32, shape, TRANSPOSED, (smelt_shape){4, {3, 1, 5, 1}}, SLICED);
}

static void sizes_of_nothing_and_one(void **state) {
    (void)state;
    check_unary(&unary[3], SMELT_FLOAT32, (smelt_shape){0}, CONTIGUOUS);
    check_unary(&unary[3], SMELT_FLOAT32, (smelt_shape){2, {1, 1}}, CONTIGUOUS);
    check_unary(&unary[3], SMELT_FLOAT32, (smelt_shape){2, {0, 5}}, CONTIGUOUS);
    check_unary(&unary[3], SMELT_FLOAT32, (smelt_shape){1, {70001}}, CONTIGUOUS);
    check_binary(&binary[0], SMELT_FLOAT32, (smelt_shape){2, {0, 5}}, CONTIGUOUS, (smelt_shape){2, {1, 5}},
                 CONTIGUOUS);
    check_binary(&binary[0], SMELT_FLOAT32, (smelt_shape){0}, CONTIGUOUS, (smelt_shape){0}, CONTIGUOUS);
}

/* ---- Integers. */

static double wrap(smelt_dtype dtype, double value) {
    char bytes[8];
    element_store(dtype, bytes, (struct element){.kind = ELEMENT_SIGNED, .integer = (int64_t)value});
    return element_as_real(element_load(dtype, bytes));
}

static double integer_reference(smelt_operation operation, smelt_dtype dtype, double x, double y) {
    int64_t a = (int64_t)x, b = (int64_t)y;
    int bits = 8 * (int)smelt_dtype_bytes(dtype);
    switch (operation) {
    case OP(ADD):
        return wrap(dtype, x + y);
    case OP(SUBTRACT):
        return wrap(dtype, x - y);
    case OP(MULTIPLY):
        return wrap(dtype, x * y);
    case OP(FLOOR_DIVIDE):
        return b ? wrap(dtype, floor(x / y)) : 0;
    case OP(REMAINDER):
        return b ? x - floor(x / y) * y : x;
    case OP(BITWISE_AND):
        return wrap(dtype, (double)(a & b));
    case OP(BITWISE_OR):
        return wrap(dtype, (double)(a | b));
    case OP(BITWISE_XOR):
        return wrap(dtype, (double)(a ^ b));
    case OP(LEFT_SHIFT):
        return wrap(dtype, (double)(int64_t)((uint64_t)a << (b & (bits - 1))));
    case OP(RIGHT_SHIFT):
        return wrap(dtype, (double)(a >> (b & (bits - 1))));
    case OP(MAXIMUM):
        return x > y ? x : y;
    default:
        return x < y;
    }
}

static void integers_are_integers(void **state) {
    (void)state;
    static const smelt_operation operations[] = {
        OP(ADD),        OP(SUBTRACT),    OP(MULTIPLY),   OP(FLOOR_DIVIDE), OP(REMAINDER), OP(BITWISE_AND),
        OP(BITWISE_OR), OP(BITWISE_XOR), OP(LEFT_SHIFT), OP(RIGHT_SHIFT),  OP(MAXIMUM),   OP(LESS)};
    static const smelt_dtype dtypes[] = {SMELT_INT8, SMELT_UINT8, SMELT_INT32, SMELT_INT64};
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            if (!in_sample(o + d, 4)) continue;
            bool is_signed = dtype_is_signed(dtypes[d]);
            smelt_array *a =
                random_array(dtypes[d], (smelt_shape){1, {200}}, CONTIGUOUS, is_signed ? -100 : 0, 100);
            smelt_array *b =
                random_array(dtypes[d], (smelt_shape){1, {200}}, CONTIGUOUS, is_signed ? -4 : 0, 5);
            smelt_array *result = APPLY(.operation = operations[o], .inputs = {a, b});
            double *want = numbers_of(a), *second = numbers_of(b);
            for (int i = 0; i < 200; i++)
                want[i] = integer_reference(operations[o], dtypes[d], want[i], second[i]);
            check(result, want, smelt_operation_name(operations[o]));
            free(want);
            free(second);
            smelt_array_release(result);
            smelt_array_release(a);
            smelt_array_release(b);
        }
}

static smelt_array *integer(int64_t value) {
    smelt_array *array;
    OK(smelt_array_from_values(SMELT_INT64, (smelt_shape){0}, &value, &array));
    return array;
}

static void powers_of_integers(void **state) {
    (void)state;
    static const int64_t rows[][3] = {{3, 4, 81}, {-2, 3, -8},  {2, 40, INT64_C(1) << 40},
                                      {5, 0, 1},  {0, 0, 1},    {7, -1, 0},
                                      {1, -5, 1}, {-1, -3, -1}, {-1, -4, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        smelt_array *a = integer(rows[i][0]), *b = integer(rows[i][1]);
        smelt_array *result = APPLY(.operation = OP(POWER), .inputs = {a, b});
        assert_true(*(int64_t *)smelt_array_data(result) == rows[i][2]);
        smelt_array_release(result);
        smelt_array_release(a);
        smelt_array_release(b);
    }
}

/* ---- Special values. */

static smelt_array *real(double value) {
    smelt_array *array;
    OK(smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){0}, &value, &array));
    return array;
}

static double float32_of(smelt_operation operation, double x, double y, bool two) {
    smelt_array *a = real(x), *b = real(y), *a32, *b32;
    OK(smelt_array_convert(a, SMELT_FLOAT32, &a32));
    OK(smelt_array_convert(b, SMELT_FLOAT32, &b32));
    smelt_array *result = APPLY(.operation = operation, .inputs = {a32, two ? b32 : NULL});
    double value = element_at(result, 0);
    smelt_array *arrays[] = {a, b, a32, b32, result};
    for (int i = 0; i < 5; i++) smelt_array_release(arrays[i]);
    return value;
}

static void special_values(void **state) {
    (void)state;
    assert_true(isnan(float32_of(OP(MAXIMUM), NAN, 1, true)) && isnan(float32_of(OP(MAXIMUM), 1, NAN, true)));
    assert_true(isnan(float32_of(OP(MINIMUM), NAN, 1, true)) && isnan(float32_of(OP(MINIMUM), 1, NAN, true)));
    assert_true(float32_of(OP(EXPM1), 200, 0, false) == INFINITY &&
                float32_of(OP(EXPM1), -200, 0, false) == -1);
    assert_true(float32_of(OP(EXPM1), 1e-10, 0, false) == (float)1e-10);
    assert_true(float32_of(OP(LOG1P), -1, 0, false) == -INFINITY &&
                isnan(float32_of(OP(LOG1P), -2, 0, false)));
    assert_true(float32_of(OP(LOG1P), INFINITY, 0, false) == INFINITY);
    assert_true(float32_of(OP(ERF), 50, 0, false) == 1 && float32_of(OP(ERF), -INFINITY, 0, false) == -1);
    assert_true(isnan(float32_of(OP(ERF), NAN, 0, false)));
    assert_true(float32_of(OP(SIGMOID), -200, 0, false) == 0 && float32_of(OP(SIGMOID), 200, 0, false) == 1);
    assert_true(float32_of(OP(LOGADDEXP), -INFINITY, -INFINITY, true) == -INFINITY);
    assert_true(float32_of(OP(LOGADDEXP), INFINITY, 1, true) == INFINITY);
    assert_true(isnan(float32_of(OP(LOGADDEXP), NAN, INFINITY, true)));
    assert_true(float32_of(OP(ISNAN), NAN, 0, false) == 1 && float32_of(OP(ISINF), -INFINITY, 0, false) == 1);
    assert_true(isnan(float32_of(OP(SIGN), NAN, 0, false)));
    assert_true(float32_of(OP(FLOOR_DIVIDE), 1, 0.1, true) == 9);
    assert_true(float32_of(OP(ROUND), 2.5, 0, false) == 2 && float32_of(OP(ROUND), -3.5, 0, false) == -4);
}

/* ---- Dtypes. */

static void the_common_dtype(void **state) {
    (void)state;
    static const struct {
        smelt_dtype a, b;
        uint64_t weak;
        smelt_dtype common;
    } rows[] = {
        {SMELT_INT8, SMELT_UINT8, 0, SMELT_INT16},
        {SMELT_INT32, SMELT_UINT32, 0, SMELT_INT64},
        {SMELT_INT64, SMELT_UINT64, 0, SMELT_FLOAT32},
        {SMELT_BOOL, SMELT_UINT8, 0, SMELT_UINT8},
        {SMELT_INT64, SMELT_FLOAT16, 0, SMELT_FLOAT16},
        {SMELT_FLOAT16, SMELT_BFLOAT16, 0, SMELT_FLOAT32},
        {SMELT_FLOAT16, SMELT_FLOAT64, 0, SMELT_FLOAT64},
        {SMELT_FLOAT16, SMELT_FLOAT64, 2, SMELT_FLOAT16},
        {SMELT_INT8, SMELT_FLOAT64, 2, SMELT_FLOAT32},
        {SMELT_INT8, SMELT_INT64, 2, SMELT_INT8},
        {SMELT_BOOL, SMELT_INT64, 2, SMELT_INT32},
        {SMELT_FLOAT64, SMELT_FLOAT64, 3, SMELT_FLOAT32},
        {SMELT_FLOAT32, SMELT_COMPLEX64, 0, SMELT_COMPLEX64},
        {SMELT_INT64, SMELT_INT64, 3, SMELT_INT32},
        {SMELT_UINT16, SMELT_INT32, 0, SMELT_INT32},
        {SMELT_UINT8, SMELT_UINT64, 0, SMELT_UINT64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        smelt_dtype dtypes[2] = {rows[i].a, rows[i].b}, common;
        OK(smelt_result_dtype(dtypes, rows[i].weak, 2, &common));
        if (common != rows[i].common)
            FAIL_TEST("%s and %s (weak %d) give %s, expected %s", smelt_dtype_name(rows[i].a),
                      smelt_dtype_name(rows[i].b), (int)rows[i].weak, smelt_dtype_name(common),
                      smelt_dtype_name(rows[i].common));
    }
}

static void weak_numbers_are_rounded_first(void **state) {
    (void)state;
    smelt_array *tenth = real(0.1), *half;
    OK(smelt_array_convert(tenth, SMELT_FLOAT16, &half));
    smelt_array *equal = APPLY(.operation = OP(EQUAL), .inputs = {half, tenth}, .weak = 2);
    assert_true(element_at(equal, 0) == 1);
    smelt_array *sum = APPLY(.operation = OP(ADD), .inputs = {half, tenth}, .weak = 2);
    assert_int_equal(sum->dtype, SMELT_FLOAT16);
    smelt_array *all_equal = APPLY(.operation = OP(ARRAY_EQUAL), .inputs = {half, tenth}, .weak = 2);
    assert_true(element_at(all_equal, 0) == 1);
    smelt_array *product = APPLY(.operation = OP(INNER), .inputs = {half, tenth}, .weak = 2);
    assert_int_equal(product->dtype, SMELT_FLOAT16);
    smelt_array *arrays[] = {tenth, half, equal, sum, all_equal, product};
    for (int i = 0; i < 6; i++) smelt_array_release(arrays[i]);
}

static void dtypes_are_mixed(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_BOOL,  SMELT_UINT8,   SMELT_INT16,
                                         SMELT_INT64, SMELT_FLOAT16, SMELT_FLOAT32};
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++) {
            if (!in_sample((size_t)(a + b), 3)) continue;
            smelt_array *x = random_array(dtypes[a], (smelt_shape){1, {50}}, CONTIGUOUS, 0, 9);
            smelt_array *y = random_array(dtypes[b], (smelt_shape){1, {50}}, CONTIGUOUS, 0, 9);
            smelt_array *z = APPLY(.operation = OP(ADD), .inputs = {x, y});
            double *want = numbers_of(x), *second = numbers_of(y);
            for (int i = 0; i < 50; i++) {
                want[i] += second[i];
                if (z->dtype == SMELT_BOOL) want[i] = want[i] != 0;
            }
            check(z, want, "add");
            free(want);
            free(second);
            smelt_array_release(x);
            smelt_array_release(y);
            smelt_array_release(z);
        }
}

static void astype_converts_as_arrays_do(void **state) {
    (void)state;
    for (smelt_dtype from = SMELT_BOOL; from <= SMELT_FLOAT64; from++)
        for (smelt_dtype to = SMELT_BOOL; to <= SMELT_FLOAT64; to++) {
            if (!in_sample(from + to, 6)) continue; /* every dtype is read and written */
            smelt_array *x = random_array(from, (smelt_shape){2, {5, 20}}, TRANSPOSED, -300, 300), *want;
            OK(smelt_array_convert(x, to, &want));
            smelt_array *got = APPLY(.operation = OP(ASTYPE), .inputs = {x}, .dtype = to), *dense;
            OK(smelt_array_contiguous(got, &dense));
            if (memcmp(dense->data, want->data, 100 * smelt_dtype_bytes(to)) != 0)
                FAIL_TEST("astype from %s to %s differs from smelt_array_convert", smelt_dtype_name(from),
                          smelt_dtype_name(to));
            smelt_array *arrays[] = {x, want, got, dense};
            for (int i = 0; i < 4; i++) smelt_array_release(arrays[i]);
        }
}

static void where_selects(void **state) {
    (void)state;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        smelt_dtype dtype = layout % 2 ? SMELT_FLOAT32 : SMELT_FLOAT64;
        smelt_array *c = random_array(SMELT_BOOL, (smelt_shape){2, {20, 1}}, CONTIGUOUS, 0, 2);
        smelt_array *x = random_array(dtype, (smelt_shape){2, {20, 30}}, (enum layout)layout, -9, 9);
        smelt_array *y = random_array(SMELT_FLOAT16, (smelt_shape){1, {30}}, CONTIGUOUS, -9, 9);
        smelt_array *z = APPLY(.operation = OP(WHERE), .inputs = {c, x, y});
        assert_int_equal(z->dtype, dtype);
        double *condition = numbers_of(c), *want = numbers_of(x), *no = numbers_of(y);
        for (int i = 0; i < 600; i++)
            if (!condition[i / 30]) want[i] = no[i % 30];
        assert_numbers(z, want, 0, 0);
        free(condition);
        free(want);
        free(no);
        smelt_array *arrays[] = {c, x, y, z};
        for (int i = 0; i < 4; i++) smelt_array_release(arrays[i]);
    }
}

static void complex_numbers(void **state) {
    (void)state;
    float a[4] = {1, 2, -3, 0.5f}, b[4] = {2, -1, 0.25f, 3};
    smelt_array *x, *y;
    OK(smelt_array_from_values(SMELT_COMPLEX64, (smelt_shape){1, {2}}, a, &x));
    OK(smelt_array_from_values(SMELT_COMPLEX64, (smelt_shape){1, {2}}, b, &y));
    static const smelt_operation operations[] = {OP(ADD), OP(SUBTRACT), OP(MULTIPLY), OP(DIVIDE)};
    for (int o = 0; o < 4; o++) {
        smelt_array *z = APPLY(.operation = operations[o], .inputs = {x, y});
        const float *got = smelt_array_data(z);
        for (int i = 0; i < 4; i += 2) {
            _Complex double p = a[i] + a[i + 1] * 1.0i, q = b[i] + b[i + 1] * 1.0i;
            _Complex double want = o == 0 ? p + q : o == 1 ? p - q : o == 2 ? p * q : p / q;
            assert_true(fabs(got[i] - __real__ want) < 1e-6 && fabs(got[i + 1] - __imag__ want) < 1e-6);
        }
        smelt_array_release(z);
    }
    smelt_array *size = APPLY(.operation = OP(ABS), .inputs = {x});
    assert_int_equal(size->dtype, SMELT_FLOAT32);
    assert_numbers(size, (double[]){sqrt(5), sqrt(9.25)}, 1e-6, 0);
    smelt_array *imaginary = APPLY(.operation = OP(IMAG), .inputs = {x});
    assert_numbers(imaginary, (double[]){2, 0.5}, 0, 0);
    FAILS(SMELT_ERROR_UNSUPPORTED, "complex64", .operation = OP(ERF), .inputs = {x});
    smelt_array *arrays[] = {x, y, size, imaginary};
    for (int i = 0; i < 4; i++) smelt_array_release(arrays[i]);
}

/* The scalar engine runs the same kernels; results are the same bits. */
static void engines_agree(void **state) {
    (void)state;
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){2, {7, 45}}, TRANSPOSED, -3, 3);
    smelt_array *fast = APPLY(.operation = OP(SIGMOID), .inputs = {x}, .device = "cpu");
    smelt_array *plain = APPLY(.operation = OP(SIGMOID), .inputs = {x}, .device = "cpu-scalar");
    assert_memory_equal(fast->data, plain->data, 7 * 45 * 4);
    smelt_array_release(fast);
    smelt_array_release(plain);
    smelt_array_release(x);
}

static void mistakes_are_named(void **state) {
    (void)state;
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){2, {3, 4}}, CONTIGUOUS, 0, 1);
    smelt_array *y = random_array(SMELT_FLOAT32, (smelt_shape){1, {3}}, CONTIGUOUS, 0, 1);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "3x4 and 3 cannot be broadcast", .operation = OP(ADD),
          .inputs = {x, y});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "add: 1 inputs are given, expected 2", .operation = OP(ADD),
          .inputs = {x});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "operation 9999", .operation = (smelt_operation)9999);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "bitwise_and: the inputs' dtype is float32",
          .operation = OP(BITWISE_AND), .inputs = {x, x});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "astype: dtype 0", .operation = OP(ASTYPE), .inputs = {x});
    assert_int_equal(smelt_operation_from_name("logaddexp"), OP(LOGADDEXP));
    assert_int_equal(smelt_operation_from_name("no such"), OP(NONE));
    assert_int_equal(smelt_operation_inputs(OP(WHERE)), 3);
    for (int i = 1; i <= smelt_operation_count(); i++)
        assert_int_equal(smelt_operation_from_name(smelt_operation_name((smelt_operation)i)), i);
    smelt_array_release(x);
    smelt_array_release(y);
}

int main(void) {
    test_quick_code();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_equals_the_reference),
        cmocka_unit_test(unary_of_other_dtypes),
        cmocka_unit_test(binary_equals_the_reference),
        cmocka_unit_test(many_dimensions),
        cmocka_unit_test(sizes_of_nothing_and_one),
        cmocka_unit_test(integers_are_integers),
        cmocka_unit_test(powers_of_integers),
        cmocka_unit_test(special_values),
        cmocka_unit_test(the_common_dtype),
        cmocka_unit_test(weak_numbers_are_rounded_first),
        cmocka_unit_test(dtypes_are_mixed),
        cmocka_unit_test(astype_converts_as_arrays_do),
        cmocka_unit_test(where_selects),
        cmocka_unit_test(complex_numbers),
        cmocka_unit_test(engines_agree),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
