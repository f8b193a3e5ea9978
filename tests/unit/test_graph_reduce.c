/* Reductions, cumulative operations and indices of extremes against loops in double. */
#include "graph.h"

static double start_of(smelt_operation operation) {
    switch (operation) {
    case OP(PROD):
    case OP(CUMPROD):
    case OP(ALL):
        return 1;
    case OP(MAX):
    case OP(CUMMAX):
        return -INFINITY;
    case OP(MIN):
    case OP(CUMMIN):
        return INFINITY;
    default:
        return 0;
    }
}

static double combine(smelt_operation operation, double a, double b) {
    switch (operation) {
    case OP(PROD):
    case OP(CUMPROD):
        return a * b;
    case OP(MAX):
    case OP(CUMMAX):
        return isnan(b) || b > a ? b : a;
    case OP(MIN):
    case OP(CUMMIN):
        return isnan(b) || b < a ? b : a;
    case OP(ALL):
        return a && b != 0;
    case OP(ANY):
        return a || b != 0;
    default:
        return a + b;
    }
}

/* The reference: the result's element for each of x's, combined in order. */
static double *reduced(smelt_operation operation, smelt_array *x, uint32_t axes) {
    smelt_shape kept = x->shape;
    int64_t strides[SMELT_MAX_DIMENSIONS], count = 1, at = 0;
    for (int d = 0; d < kept.ndim; d++)
        if (axes >> d & 1) kept.size[d] = 1;
    shape_strides(&kept, strides);
    for (int d = 0; d < kept.ndim; d++) {
        count *= kept.size[d];
        if (axes >> d & 1) strides[d] = 0;
    }
    double *want = malloc(((size_t)count + 1) * sizeof *want), *numbers = numbers_of(x);
    for (int64_t i = 0; i < count; i++) want[i] = start_of(operation);
    for (struct walk w = walk_begin(&x->shape, strides); w.left > 0; walk_next(&w))
        want[w.offset] = combine(operation, want[w.offset], numbers[at++]);
    free(numbers);
    return want;
}

static void check(smelt_operation operation, smelt_dtype dtype, smelt_shape shape, enum layout layout,
                  uint32_t axes, bool keepdims) {
    bool product = operation == OP(PROD);
    smelt_array *x = random_array(dtype, shape, layout, product ? 0.9 : -5, product ? 1.1 : 5);
    struct keepsake before = remember(x);
    smelt_apply_desc desc = {.operation = operation, .inputs = {x}, .keepdims = keepdims};
    smelt_shape result_shape = {0};
    for (int d = 0; d < shape.ndim; d++) {
        if (axes >> d & 1) desc.axes[desc.axis_count++] = d % 2 ? d : d - shape.ndim;
        if (!(axes >> d & 1) || keepdims)
            result_shape.size[result_shape.ndim++] = axes >> d & 1 ? 1 : shape.size[d];
    }
    desc.no_axes = !desc.axis_count;
    smelt_array *y = apply_ok(&desc, __FILE__, __LINE__);
    double *want = reduced(operation, x, axes);
    assert_shape(y, result_shape);
    assert_true(smelt_array_is_contiguous(y));
    /* The sum of n numbers of size 5 in any order except one by one. */
    double relative = tolerance_of(y->dtype) * (product ? 20 : 1);
    assert_numbers(y, want, relative,
                   y->dtype == SMELT_FLOAT32 || y->dtype == SMELT_FLOAT16 ? 2e-5 * sqrt((double)x->size)
                                                                          : 1e-9);
    assert_unchanged(&before);
    free(want);
    smelt_array_release(x);
    smelt_array_release(y);
}

static void every_set_of_axes(void **state) {
    (void)state;
    smelt_shape shape = {4, {3, 5, 40, 7}};
    for (uint32_t axes = 0; axes < 16; axes++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            size_t number = axes + (size_t)layout;
            if (in_sample(number, 3))
                check(OP(SUM), SMELT_FLOAT32, shape, (enum layout)layout, axes, axes % 2);
            if (in_sample(number + 1, 3))
                check(OP(MAX), SMELT_FLOAT32, shape, (enum layout)layout, axes, axes % 3);
        }
}

static void every_reduction(void **state) {
    (void)state;
    static const smelt_operation operations[] = {OP(SUM), OP(PROD), OP(MAX), OP(MIN), OP(ALL), OP(ANY)};
    static const smelt_dtype dtypes[] = {SMELT_FLOAT16, SMELT_INT8, SMELT_BOOL, SMELT_INT64, SMELT_FLOAT64};
    for (int o = 0; o < 6; o++)
        for (int d = 0; d < 5; d++) {
            if (operations[o] == OP(PROD) && dtypes[d] == SMELT_INT8) continue;
            size_t number = (size_t)(o + d);
            if (in_sample(number, 3))
                check(operations[o], dtypes[d], (smelt_shape){2, {9, 50}}, CONTIGUOUS, 2, false);
            if (in_sample(number + 1, 3))
                check(operations[o], dtypes[d], (smelt_shape){2, {9, 50}}, CONTIGUOUS, 1, true);
        }
}

/* Rows and columns in chunks, with last chunks of all sizes, down to one group of chunks of chunks. */
static void long_runs(void **state) {
    (void)state;
    static const int64_t sizes[] = {31, 32, 33, 4096, 8192, 8193, 12289, 100003, 5000011};
    for (int i = 0; i < 9; i++) {
        check(OP(SUM), SMELT_FLOAT32, (smelt_shape){1, {sizes[i]}}, CONTIGUOUS, 1, false);
        check(OP(SUM), SMELT_FLOAT32, (smelt_shape){1, {sizes[i]}}, REVERSED, 1, false);
    }
    for (int i = 0; i < 7; i++) {
        check(OP(SUM), SMELT_FLOAT32, (smelt_shape){2, {sizes[i], 5}}, CONTIGUOUS, 1, false);
        check(OP(MIN), SMELT_FLOAT32, (smelt_shape){2, {3, sizes[i]}}, CONTIGUOUS, 2, false);
    }
}

static void sums_are_accurate(void **state) {
    (void)state;
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){1, {4000000}}, CONTIGUOUS, 0, 1);
    smelt_array *y = APPLY(.operation = OP(SUM), .inputs = {x});
    double *numbers = numbers_of(x), want = 0;
    for (int i = 0; i < 4000000; i++) want += numbers[i];
    double got = element_at(y, 0);
    if (fabs(got - want) > 1e-6 * want) FAIL_TEST("the sum is %.9g, expected %.9g", got, want);
    smelt_array *half, *again;
    OK(smelt_array_convert(x, SMELT_FLOAT16, &half));
    smelt_array *z = APPLY(.operation = OP(MEAN), .inputs = {half});
    assert_true(fabs(element_at(z, 0) - want / 4e6) < 1e-3);
    again = APPLY(.operation = OP(SUM), .inputs = {x});
    assert_memory_equal(again->data, y->data, 4);
    free(numbers);
    smelt_array *arrays[] = {x, y, half, z, again};
    for (int i = 0; i < 5; i++) smelt_array_release(arrays[i]);
}

static void nothing_to_reduce(void **state) {
    (void)state;
    check(OP(SUM), SMELT_FLOAT32, (smelt_shape){2, {0, 4}}, CONTIGUOUS, 1, false);
    check(OP(PROD), SMELT_FLOAT32, (smelt_shape){2, {4, 0}}, CONTIGUOUS, 2, true);
    check(OP(ALL), SMELT_FLOAT32, (smelt_shape){1, {0}}, CONTIGUOUS, 1, false);
    check(OP(MAX), SMELT_FLOAT32, (smelt_shape){2, {0, 4}}, CONTIGUOUS, 2, false);
    check(OP(SUM), SMELT_FLOAT32, (smelt_shape){0}, CONTIGUOUS, 0, false);
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){2, {0, 4}}, CONTIGUOUS, 0, 1);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "max: no elements along the axes of shape 0x4", .operation = OP(MAX),
          .inputs = {x}, .axes = {0}, .axis_count = 1);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "argmin: no elements", .operation = OP(ARGMIN), .inputs = {x},
          .axes = {0}, .axis_count = 1);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "axis 2 is out of range for 2 dimensions", .operation = OP(SUM),
          .inputs = {x}, .axes = {2}, .axis_count = 1);
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "axis -1 is given twice", .operation = OP(SUM), .inputs = {x},
          .axes = {1, -1}, .axis_count = 2);
    smelt_array_release(x);
}

static void extremes_pass_nan_on(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        smelt_array *x =
            random_array(SMELT_FLOAT32, (smelt_shape){2, {4, 100}}, i ? TRANSPOSED : CONTIGUOUS, -5, 5);
        ((float *)x->data)[2 * x->strides[0] + 57 * x->strides[1]] = NAN;
        smelt_array *y =
            APPLY(.operation = i ? OP(MIN) : OP(MAX), .inputs = {x}, .axes = {1}, .axis_count = 1);
        smelt_array *z =
            APPLY(.operation = i ? OP(ARGMIN) : OP(ARGMAX), .inputs = {x}, .axes = {1}, .axis_count = 1);
        for (int row = 0; row < 4; row++) assert_int_equal(isnan(element_at(y, row)) != 0, row == 2);
        assert_true(element_at(z, 2) == 57);
        smelt_array_release(x);
        smelt_array_release(y);
        smelt_array_release(z);
    }
}

static void indices_of_extremes(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_INT8, SMELT_INT64,
                                         SMELT_FLOAT64, SMELT_BOOL, SMELT_BFLOAT16};
    static const int64_t sizes[] = {1, 5, 31, 33, 1000};
    for (int d = 0; d < 6; d++)
        for (int s = 0; s < 5; s++)
            for (int axis = 0; axis < 2; axis++) {
                smelt_shape shape = {2, {axis ? 6 : sizes[s], axis ? sizes[s] : 6}};
                smelt_array *x = random_array(dtypes[d], shape, s % 2 ? REVERSED : SLICED, -4, 4);
                bool largest = s % 2 == axis;
                smelt_array *y = APPLY(.operation = largest ? OP(ARGMAX) : OP(ARGMIN), .inputs = {x},
                                       .axes = {axis}, .axis_count = 1, .keepdims = true);
                double *numbers = numbers_of(x);
                assert_shape(y, (smelt_shape){2, {axis ? 6 : 1, axis ? 1 : 6}});
                for (int line = 0; line < 6; line++) {
                    int64_t best = 0;
                    for (int64_t k = 1; k < sizes[s]; k++) {
                        double a = numbers[axis ? line * sizes[s] + k : k * 6 + line];
                        double b = numbers[axis ? line * sizes[s] + best : best * 6 + line];
                        if (largest ? a > b : a < b) best = k;
                    }
                    assert_int_equal((int64_t)element_at(y, line), best);
                }
                free(numbers);
                smelt_array_release(x);
                smelt_array_release(y);
            }
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){3, {4, 5, 6}}, TRANSPOSED, -5, 5);
    smelt_array *flat = APPLY(.operation = OP(ARGMAX), .inputs = {x});
    double *numbers = numbers_of(x);
    int best = 0;
    for (int i = 0; i < 120; i++)
        if (numbers[i] > numbers[best]) best = i;
    assert_shape(flat, (smelt_shape){0});
    assert_int_equal((int)element_at(flat, 0), best);
    free(numbers);
    smelt_array_release(flat);
    smelt_array_release(x);
}

static void cumulative_operations(void **state) {
    (void)state;
    static const smelt_operation operations[] = {OP(CUMSUM), OP(CUMPROD), OP(CUMMAX), OP(CUMMIN)};
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_FLOAT64, SMELT_INT16};
    for (int o = 0; o < 4; o++)
        for (int d = 0; d < 3; d++)
            for (int form = 0; form < 4; form++)
                for (int axis = 0; axis < 2; axis++) {
                    bool reverse = form & 1, exclusive = form & 2;
                    if ((exclusive && o >= 2) || !in_sample((size_t)(o + d + form + axis), 2)) continue;
                    smelt_array *x =
                        random_array(dtypes[d], (smelt_shape){2, {7, 9}}, o % 2 ? TRANSPOSED : SLICED, -2, 2);
                    smelt_array *y = APPLY(.operation = operations[o], .inputs = {x}, .axes = {axis},
                                           .axis_count = 1, .reverse = reverse, .exclusive = exclusive);
                    double *want = numbers_of(x);
                    int count = axis ? 9 : 7, step = axis ? 1 : 9;
                    for (int line = 0; line < 63 / count; line++) {
                        double sum = start_of(operations[o]);
                        for (int i = 0; i < count; i++) {
                            int at = line * (axis ? 9 : 1) + (reverse ? count - 1 - i : i) * step;
                            double before = sum;
                            sum = combine(operations[o], sum, want[at]);
                            want[at] = exclusive ? before : sum;
                        }
                    }
                    assert_numbers(y, want, tolerance_of(y->dtype), 1e-5);
                    free(want);
                    smelt_array_release(x);
                    smelt_array_release(y);
                }
    smelt_array *x = random_array(SMELT_FLOAT32, (smelt_shape){2, {3, 4}}, TRANSPOSED, 0, 1);
    smelt_array *y = APPLY(.operation = OP(CUMSUM), .inputs = {x});
    assert_shape(y, (smelt_shape){1, {12}});
    FAILS(SMELT_ERROR_INVALID_ARGUMENT, "cummax has no exclusive form", .operation = OP(CUMMAX),
          .inputs = {x}, .exclusive = true);
    smelt_array_release(x);
    smelt_array_release(y);
}

static void moments(void **state) {
    (void)state;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        smelt_array *x =
            random_array(SMELT_FLOAT32, (smelt_shape){3, {4, 5, 60}}, (enum layout)layout, -3, 3);
        double *numbers = numbers_of(x), mean[4], var[4], std[4], log_sum[4], soft[1200];
        for (int i = 0; i < 4; i++) {
            double sum = 0, squares = 0, exps = 0;
            for (int k = 0; k < 300; k++) sum += numbers[i * 300 + k];
            mean[i] = sum / 300;
            for (int k = 0; k < 300; k++) {
                squares += pow(numbers[i * 300 + k] - mean[i], 2);
                exps += exp(numbers[i * 300 + k]);
            }
            var[i] = squares / 299;
            std[i] = sqrt(var[i]);
            log_sum[i] = log(exps);
            for (int k = 0; k < 300; k++) soft[i * 300 + k] = exp(numbers[i * 300 + k]) / exps;
        }
        static const smelt_operation operations[] = {OP(MEAN), OP(VAR), OP(STD), OP(LOGSUMEXP), OP(SOFTMAX)};
        double *want[] = {mean, var, std, log_sum, soft};
        for (int o = 0; o < 5; o++) {
            smelt_array *y = APPLY(.operation = operations[o], .inputs = {x}, .axes = {1, -1},
                                   .axis_count = 2, .offset = 1);
            assert_int_equal(y->size, o == 4 ? 1200 : 4);
            assert_numbers(y, want[o], 1e-5, 1e-6);
            smelt_array_release(y);
        }
        free(numbers);
        smelt_array_release(x);
    }
    smelt_array *x = random_array(SMELT_INT32, (smelt_shape){1, {10}}, CONTIGUOUS, -9, 9);
    smelt_array *y = APPLY(.operation = OP(MEAN), .inputs = {x});
    assert_int_equal(y->dtype, SMELT_FLOAT32);
    smelt_array_release(x);
    smelt_array_release(y);
}

int main(void) {
    test_quick_code();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_of_axes),
        cmocka_unit_test(every_reduction),
        cmocka_unit_test(long_runs),
        cmocka_unit_test(nothing_to_reduce),
        cmocka_unit_test(extremes_pass_nan_on),
        cmocka_unit_test(indices_of_extremes),
        cmocka_unit_test(cumulative_operations),
        cmocka_unit_test(sums_are_accurate),
        cmocka_unit_test(moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
